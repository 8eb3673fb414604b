//! C++ names of Rust paths.
include!("../../device-macro/src/words.rs");

/// Returns the C++ name of a module or item.
pub fn cpp_name(name: &str) -> String {
    mangled(name)
}
