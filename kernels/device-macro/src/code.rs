//! C++ text with references to other `#[device]` items left open.
use syn::Path;

/// A piece of text, or the path of another item whose qualified C++ name goes there.
#[derive(Clone)]
pub enum Part {
    /// Literal text.
    Text(String),
    /// A function or constant, whose companion is a type of that path, or a type without generic arguments.
    Value(Path),
    /// A type of which a function is called.
    Owner(Path),
    /// A structure with its generic arguments following: its companion is a constant of that path.
    Type(Path),
    /// A structure whose generic arguments Rust infers.
    Inferred(Path),
}

/// A sequence of parts, built from left to right.
#[derive(Clone, Default)]
pub struct Code {
    /// The parts; neighbouring texts are merged.
    pub parts: Vec<Part>,
}

impl Code {
    /// Code of a single part.
    pub fn of(part: Part) -> Self {
        Code { parts: vec![part] }
    }

    /// This code with `text` appended.
    pub fn t(mut self, text: impl AsRef<str>) -> Self {
        self.push(text);
        self
    }

    /// This code with `other` appended.
    pub fn c(mut self, other: Code) -> Self {
        self.add(other);
        self
    }

    /// Appends text.
    pub fn push(&mut self, text: impl AsRef<str>) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text.as_ref()),
            _ => self.parts.push(Part::Text(text.as_ref().into())),
        }
    }

    /// Appends code.
    pub fn add(&mut self, other: Code) {
        for part in other.parts {
            match part {
                Part::Text(text) => self.push(text),
                part => self.parts.push(part),
            }
        }
    }
}

/// Code of a text.
pub fn text(text: impl AsRef<str>) -> Code {
    Code::default().t(text)
}

/// Items separated by commas.
pub fn list(items: impl IntoIterator<Item = Code>) -> Code {
    let mut all = Code::default();
    for (k, item) in items.into_iter().enumerate() {
        if k > 0 {
            all.push(", ");
        }
        all.add(item);
    }
    all
}
