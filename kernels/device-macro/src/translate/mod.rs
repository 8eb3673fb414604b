//! The Rust subset as CUDA C++ text. Purely syntactic: C++ templates and `auto` do the typing.
mod calls;
mod expressions;
mod literals;
mod locals;
mod signature;
mod statements;
#[cfg(test)]
mod tests;
mod types;

pub use literals::digits;

use crate::code::{Code, text};
use crate::subset::{cpp_name, docs};
use quote::ToTokens;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use syn::{Error, Fields, Ident, ItemConst, ItemFn, ItemStruct, Result};

/// How a local name may be used.
#[derive(Clone, Copy, PartialEq)]
enum Binding {
    /// A value, or a shared reference that C++ treats as one.
    Value,
    /// A `&mut`: dereferenced, indexed or passed on, never copied.
    Mutable,
}

struct Local {
    cpp: String,
    binding: Binding,
}

/// What becomes of the value of a block's last expression.
#[derive(Clone, Copy, PartialEq)]
enum Tail {
    Return,
    Discard,
}

/// A generic parameter, by name.
#[derive(Clone, Debug, PartialEq)]
pub enum Generic {
    /// A floating type.
    Real(String),
    /// An integer or bool constant.
    Const(String),
}

/// State of the translation of one item.
#[derive(Default)]
pub struct Translator {
    /// Generic parameters in order.
    pub generics: Vec<Generic>,
    /// Is a type parameter bounded by `Lane`?
    pub lane: bool,
    /// Type of unsuffixed float literals where no real type parameter gives it.
    float: Option<&'static str>,
    /// Inside an argument of type `f64`.
    doubles: bool,
    /// Name of the function, which may not call itself.
    name: String,
    scopes: Vec<HashMap<String, Local>>,
    /// C++ names given so far: shadowing becomes a new name.
    used: HashSet<String>,
    temporaries: usize,
    /// Depth of lambdas and, inside the innermost, of loops: what `return` and `break` would leave.
    lambdas: usize,
    loops: usize,
    errors: Vec<Error>,
}

/// Text of a function: prototype and body.
pub fn function(f: &ItemFn) -> (Translator, Result<(Code, Code)>) {
    let mut t = Translator::default();
    let texts = t.function(f);
    let result = t.finish(texts);
    (t, result)
}

/// Text of a constant.
pub fn constant(c: &ItemConst) -> Result<Code> {
    let single = c.ty.to_token_stream().to_string().contains("f32");
    let float = Some(if single { "f32" } else { "f64" });
    let mut t = Translator {
        scopes: vec![HashMap::new()],
        float,
        ..Default::default()
    };
    let ty = t.ty(&c.ty);
    let array = matches!(&*c.ty, syn::Type::Array(_));
    let value = if array {
        t.table(&c.expr)
    } else {
        t.expr(&c.expr, true)
    };
    let storage = if array { "RS_TABLE " } else { "RS_CONST " };
    let definition = text(docs(&c.attrs)).t(storage).c(ty);
    t.finish(
        definition
            .t(format!(" {} = ", cpp_name(&c.ident)))
            .c(value)
            .t(";"),
    )
}

/// Text of a structure: its generics, declaration and definition.
pub fn structure(s: &ItemStruct) -> Result<(Vec<Generic>, Code, Code)> {
    let mut t = Translator::default();
    let head = t.structure_generics(&s.generics);
    let name = cpp_name(&s.ident);
    let mut body = text(docs(&s.attrs))
        .c(head.clone())
        .t(format!("struct {name} {{"));
    if let Fields::Named(fields) = &s.fields {
        for field in &fields.named {
            body.push(docs(&field.attrs).replace("//", "\n  //"));
            body.push("\n  ");
            body.add(t.ty(&field.ty));
            if let Some(name) = &field.ident {
                body.push(format!(" {};", cpp_name(name)));
            }
        }
    } else {
        let why = "a structure must have named fields \
                   (a tuple structure would collide with its companion in the value namespace)";
        t.err(&s.ident, why);
    }
    let generics = t.generics.clone();
    t.finish((generics, head.t(format!("struct {name};")), body.t("\n};")))
}

impl Translator {
    /// Name of the only real type parameter.
    pub fn real(&self) -> Option<&str> {
        let mut types = self.types();
        match (types.next(), types.next()) {
            (Some(one), None) => Some(one),
            _ => None,
        }
    }

    /// Names of the real type parameters.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.generics.iter().filter_map(|g| match g {
            Generic::Real(name) => Some(name.as_str()),
            Generic::Const(_) => None,
        })
    }

    /// Is it the name of a const parameter?
    pub fn is_const(&self, name: &str) -> bool {
        self.generics
            .iter()
            .any(|g| matches!(g, Generic::Const(n) if n == name))
    }

    fn is_type(&self, name: &str) -> bool {
        self.types().any(|n| n == name)
    }

    /// Reports an error under the whole of `node`.
    fn err(&mut self, node: &impl ToTokens, message: impl Display) {
        self.errors
            .push(Error::new_spanned(node, format!("#[device]: {message}")));
    }

    /// Reports an error and stands in for the expression.
    fn bad(&mut self, node: &impl ToTokens, message: impl Display) -> Code {
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
        self.temporaries += 1;
        format!("{prefix}_{}_", self.temporaries)
    }

    fn lookup(&self, name: &str) -> Option<&Local> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Enters a name into the innermost scope and returns its C++ name.
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
