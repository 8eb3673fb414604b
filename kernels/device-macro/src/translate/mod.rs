//! Translates the Rust subset to CUDA C++ text. It is purely syntactic: C++ templates and `auto` determine types.
mod calls;
mod expressions;
mod items;
mod literals;
mod locals;
mod loops;
mod signature;
mod statements;
#[cfg(test)]
mod tests;
mod types;

pub use items::{constant, enumeration, implementation, structure};
pub use literals::digits;

use crate::code::{CppCode, text};
use crate::subset::cpp_name;
use quote::ToTokens;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use syn::{Error, Ident, ItemFn, Result};

/// Kinds of local names.
#[derive(Clone, Copy, PartialEq)]
enum Binding {
    /// A value, or a shared reference that C++ treats as one.
    Value,
    /// A `&mut`: dereferenced, indexed or passed on, but never copied.
    Mutable,
}

struct Local {
    cpp: String,
    binding: Binding,
}

/// Use of the value of a block's last expression.
#[derive(Clone, Copy, PartialEq)]
enum Tail {
    Return,
    Discard,
}

/// Text of a function, in parts.
#[derive(Default)]
pub struct FunctionText {
    /// Comments.
    pub docs: String,
    /// `template<…> `, or nothing.
    pub template: CppCode,
    /// Result type.
    pub result: CppCode,
    /// Name and parameters.
    pub call: CppCode,
    /// Body with its braces.
    pub body: CppCode,
}

/// A generic parameter, by name.
#[derive(Clone, Debug, PartialEq)]
pub enum GenericKind {
    /// A floating type.
    Real(String),
    /// An integer or bool constant.
    Const(String),
    /// A type that provides functions: its bound is a trait with an `impl` marked `#[device]`.
    Choice(String),
}

/// State of the translation of one item.
#[derive(Default)]
pub struct Translator {
    /// Generic parameters in order.
    pub generics: Vec<GenericKind>,
    /// `true` if a type parameter is bounded by `Lane`.
    pub lane: bool,
    /// Type of unsuffixed float literals without a real type parameter.
    float: Option<&'static str>,
    /// `true` inside an argument of type `f64`.
    doubles: bool,
    /// Name of the function, which must not call itself.
    name: String,
    /// Type whose implementation it belongs to: `Self`.
    of: Option<Ident>,
    scopes: Vec<HashMap<String, Local>>,
    /// C++ names used so far; shadowing gets a new name.
    used: HashSet<String>,
    temporaries: usize,
    /// Depth of lambdas, and loops inside the innermost one, which `return` and `break` would leave. The value of a `break` is handled by
    /// [`Tail::Return`] if the loop is a value.
    lambdas: usize,
    loops: Vec<Tail>,
    errors: Vec<Error>,
}

/// Returns the text of a function: prototype and body.
pub fn function(f: &ItemFn) -> (Translator, Result<(CppCode, CppCode)>) {
    let (t, result) = member(f, None);
    let result = result.map(|m| {
        let prototype = text(m.docs)
            .c(m.template)
            .t("RS_FN ")
            .c(m.result)
            .t(" ")
            .c(m.call);
        (prototype, m.body)
    });
    (t, result)
}

/// Returns the text of a function in parts, for members of the structure `of`.
pub fn member(f: &ItemFn, of: Option<&Ident>) -> (Translator, Result<FunctionText>) {
    let mut t = Translator {
        of: of.cloned(),
        ..Default::default()
    };
    let function = t.function(f);
    let result = t.finish(function);
    (t, result)
}

impl Translator {
    /// Returns the name of the only real type parameter.
    pub fn real(&self) -> Option<&str> {
        let mut types = self.types();
        match (types.next(), types.next()) {
            (Some(one), None) => Some(one),
            _ => None,
        }
    }

    /// Iterates over the names of the real type parameters.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.generics.iter().filter_map(|g| match g {
            GenericKind::Real(name) => Some(name.as_str()),
            GenericKind::Const(_) | GenericKind::Choice(_) => None,
        })
    }

    /// Returns `true` for the name of a const parameter.
    pub fn is_const(&self, name: &str) -> bool {
        self.generics
            .iter()
            .any(|g| matches!(g, GenericKind::Const(n) if n == name))
    }

    /// Returns `true` for the name of a type parameter that provides functions.
    fn is_choice(&self, name: &str) -> bool {
        self.generics
            .iter()
            .any(|g| matches!(g, GenericKind::Choice(n) if n == name))
    }

    /// Returns `true` for the type whose implementation is translated.
    fn is_own(&self, name: &Ident) -> bool {
        self.of
            .as_ref()
            .is_some_and(|of| name == of || name == "Self")
    }

    fn is_type(&self, name: &str) -> bool {
        self.types().any(|n| n == name)
    }

    /// Reports an error for the whole of `node`.
    fn err(&mut self, node: &impl ToTokens, message: impl Display) {
        self.errors
            .push(Error::new_spanned(node, format!("#[device]: {message}")));
    }

    /// Reports an error and returns a placeholder expression.
    fn bad(&mut self, node: &impl ToTokens, message: impl Display) -> CppCode {
        self.err(node, message);
        text("0")
    }

    fn finish<T>(&mut self, value: T) -> Result<T> {
        let errors = self.errors.drain(..).reduce(|mut all, e| {
            all.combine(e);
            all
        });
        match errors {
            Some(e) => Err(e),
            None => Ok(value),
        }
    }

    fn temporary(&mut self, prefix: &str) -> String {
        loop {
            self.temporaries += 1;
            let name = format!("{prefix}_{}_", self.temporaries);
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }

    fn lookup(&self, name: &str) -> Option<&Local> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Adds a name to the innermost scope. Returns its C++ name.
    fn declare(&mut self, name: &Ident, binding: Binding) -> String {
        let base = cpp_name(name);
        let mut cpp = base.clone();
        let mut k = 1;
        while !self.used.insert(cpp.clone()) {
            cpp = format!("{base}_{k}");
            k += 1;
        }
        let local = Local {
            cpp: cpp.clone(),
            binding,
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), local);
        }
        cpp
    }
}
