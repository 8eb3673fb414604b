//! C++ names of Rust paths.
include!("../../device-macro/src/words.rs");

/// The C++ name of a module or item.
pub fn cpp_name(name: &str) -> String {
    mangled(name)
}
