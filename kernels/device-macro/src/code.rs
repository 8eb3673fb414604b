//! C++ text with unresolved references to other `#[device]` items.
use syn::Path;

/// Text, or the path of another item, which is replaced by its qualified C++ name.
#[derive(Clone)]
pub enum CppPart {
    /// Literal text.
    Text(String),
    /// A function or constant, whose companion is a type of that path; or a type without generic arguments.
    Value(Path),
    /// A type whose function is called.
    Owner(Path),
    /// A structure with generic arguments: its companion is a constant of that path.
    Type(Path),
    /// A structure whose generic arguments Rust infers.
    Inferred(Path),
}

/// A sequence of parts.
#[derive(Clone, Default)]
pub struct CppCode {
    /// The parts; adjacent texts are merged.
    pub parts: Vec<CppPart>,
}

impl CppCode {
    /// Creates code of a single part.
    pub fn of(part: CppPart) -> Self {
        CppCode { parts: vec![part] }
    }

    /// Returns this code with `text` appended.
    pub fn t(mut self, text: impl AsRef<str>) -> Self {
        self.push(text);
        self
    }

    /// Returns this code with `other` appended.
    pub fn c(mut self, other: CppCode) -> Self {
        self.add(other);
        self
    }

    /// Appends text.
    pub fn push(&mut self, text: impl AsRef<str>) {
        match self.parts.last_mut() {
            Some(CppPart::Text(last)) => last.push_str(text.as_ref()),
            _ => self.parts.push(CppPart::Text(text.as_ref().into())),
        }
    }

    /// Appends code.
    pub fn add(&mut self, other: CppCode) {
        for part in other.parts {
            match part {
                CppPart::Text(text) => self.push(text),
                part => self.parts.push(part),
            }
        }
    }
}

/// Creates code from a text.
pub fn text(text: impl AsRef<str>) -> CppCode {
    CppCode::default().t(text)
}

/// Joins items with commas.
pub fn list(items: impl IntoIterator<Item = CppCode>) -> CppCode {
    let mut all = CppCode::default();
    for (k, item) in items.into_iter().enumerate() {
        if k > 0 {
            all.push(", ");
        }
        all.add(item);
    }
    all
}
