// C++ names of Rust names; included by the attribute and the runtime crate.

/// C++ keywords that can be Rust names, and names that C++ compilers or headers predefine as macros.
const WORDS: &[&str] = &[
    "alignas", "alignof", "and", "and_eq", "asm", "assert", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
    "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
    "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "errno", "explicit", "export", "extern", "far", "float", "for", "friend", "goto",
    "if", "inline", "int", "linux", "long", "main", "math_errhandling", "mutable", "namespace", "near", "new",
    "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
    "reinterpret_cast", "requires", "return", "rs", "short", "signed", "sizeof", "static", "static_assert",
    "static_cast", "std", "stderr", "stdin", "stdout", "struct", "switch", "template", "this", "thread_local", "throw",
    "try", "typedef", "typeid", "typename", "typeof", "union", "unix", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "xor_eq",
];

/// Prefixes of macros and of names reserved by compilers.
const PREFIXES: &[&str] = &[
    "BIG_ENDIAN", "BYTE_ORDER", "CHAR_", "CUDART_", "DBL_", "EOF", "EXIT_", "FLT_", "FP_", "HUGE_VAL", "INFINITY", "INT_",
    "LDBL_", "LITTLE_ENDIAN", "LLONG_", "LONG_", "MATH_ERR", "M_", "NAN", "NULL", "RAND_MAX", "RS_", "SEEK_", "SNAN",
    "UINT_", "ULONG_", "__", "blockDim", "blockIdx", "gridDim", "threadIdx", "warpSize",
];

/// Returns the C++ name: the same, with an underscore if it is reserved in C++. Characters beyond ASCII are replaced by their code.
fn mangled(name: &str) -> String {
    let name = name.trim_start_matches("r#");
    let mut cpp = String::new();
    for c in name.chars() {
        if c.is_ascii() {
            cpp.push(c);
        } else {
            cpp.push_str(&format!("u{:x}_", u32::from(c)));
        }
    }
    if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        cpp.insert_str(0, "n_");
    } else if WORDS.contains(&name) {
        cpp.push('_');
    }
    cpp
}
