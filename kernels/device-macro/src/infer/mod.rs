//! Infers the types of integer literals from the function itself.
//!
//! rustc infers the type of a literal from all its uses, while C++ uses `int`. Literals whose type follows from the function's own
//! declarations, operators and loops get it as a suffix on both sides; if rustc infers another type, it reports an error. A variable whose
//! type follows only from other functions must be given one. A literal without a point is rejected where a floating-point number is
//! expected.
mod walk;

use crate::errors::Errors;
use proc_macro2::Span;
use std::collections::HashMap;
use syn::{
    Error, Expr, FnArg, GenericParam, Ident, ItemConst, ItemFn, LitInt, Pat, ReturnType, Type,
    TypeParam, TypeParamBound, visit_mut::VisitMut,
};

/// Knowledge about the type of an expression.
#[derive(Clone)]
enum TypeTerm {
    /// The integer type of a variable.
    Integer(usize),
    /// A floating-point number.
    Real,
    Array(Box<TypeTerm>),
    Tuple(Vec<TypeTerm>),
    /// Not a number, or a number whose type is given elsewhere.
    Other,
}

/// An unknown integer type.
struct Variable {
    /// A variable that it equals.
    same: usize,
    known: Option<&'static str>,
    /// `true` if other code determines it.
    elsewhere: bool,
    /// `true` if it must be a floating-point number.
    real: bool,
}

/// Types of the literals and locals of one item.
#[derive(Default)]
struct Inference {
    variables: Vec<Variable>,
    /// Names of floating-point types.
    reals: Vec<String>,
    /// Literals without a suffix, by their addresses in the tree.
    literals: HashMap<*const LitInt, usize>,
    /// The same literals in source order, with their variables.
    written: Vec<(LitInt, usize)>,
    scopes: Vec<HashMap<String, TypeTerm>>,
    /// Expressions whose C++ type would be that of their literals alone.
    literal_expressions: Vec<(Expr, TypeTerm)>,
    /// Types of the values of the enclosing `loop`s.
    loops: Vec<Option<TypeTerm>>,
    result: Option<TypeTerm>,
}

/// Returns `true` for a type parameter that stands for numbers.
fn is_number(t: &TypeParam) -> bool {
    t.bounds.iter().any(|bound| match bound {
        TypeParamBound::Trait(t) => {
            let name = t.path.segments.last();
            name.is_some_and(|s| s.ident == "Real" || s.ident == "Lane")
        }
        _ => false,
    })
}

/// Gives suffixes to the literals of a function, in place.
pub fn function(f: &mut ItemFn) -> syn::Result<()> {
    let mut i = Inference::new();
    i.scopes.push(HashMap::new());
    for parameter in &f.sig.generics.params {
        match parameter {
            GenericParam::Const(c) => {
                let term = i.declared(&c.ty);
                i.name(&c.ident, term);
            }
            GenericParam::Type(t) if is_number(t) => i.reals.push(t.ident.to_string()),
            _ => {}
        }
    }
    for input in &f.sig.inputs {
        if let FnArg::Typed(typed) = input {
            let term = i.declared(&typed.ty);
            i.bind(&typed.pat, term);
        }
    }
    let result = match &f.sig.output {
        ReturnType::Type(_, ty) => i.declared(ty),
        ReturnType::Default => TypeTerm::Other,
    };
    i.result = Some(result.clone());
    let value = i.block(&f.block);
    i.unify(&value, &result);
    let errors = i.resolve();
    i.visit_block_mut(&mut f.block);
    errors
}

/// Gives suffixes to the literals of a constant, in place.
pub fn constant(c: &mut ItemConst) -> syn::Result<()> {
    let mut i = Inference::new();
    let (ty, value) = (i.declared(&c.ty), i.expr(&c.expr));
    i.unify(&ty, &value);
    let errors = i.resolve();
    i.visit_expr_mut(&mut c.expr);
    errors
}

impl VisitMut for Inference {
    fn visit_lit_int_mut(&mut self, l: &mut LitInt) {
        if let Some(v) = self.literals.get(&(l as *const LitInt)).copied()
            && let Some(known) = self.variables[self.root(v)].known
        {
            // of the macro, because clippy would take the suffix for digits of the source
            let span = l.span().resolved_at(Span::mixed_site());
            *l = LitInt::new(&format!("{l}{known}"), span);
        }
    }
}

impl Inference {
    fn new() -> Self {
        Self {
            reals: ["f32", "f64"].map(String::from).to_vec(),
            ..Self::default()
        }
    }

    fn variable(&mut self, known: Option<&'static str>) -> usize {
        let same = self.variables.len();
        self.variables.push(Variable {
            same,
            known,
            elsewhere: false,
            real: false,
        });
        same
    }

    fn root(&self, mut v: usize) -> usize {
        while self.variables[v].same != v {
            v = self.variables[v].same;
        }
        v
    }

    fn known(&mut self, name: &str) -> TypeTerm {
        const INTEGERS: [&str; 5] = ["i32", "u32", "i64", "u64", "usize"];
        match INTEGERS.iter().find(|known| **known == name) {
            Some(known) => TypeTerm::Integer(self.variable(Some(known))),
            None if self.reals.iter().any(|real| real == name) => TypeTerm::Real,
            None => TypeTerm::Other,
        }
    }

    /// Returns what a type declaration says.
    fn declared(&mut self, ty: &Type) -> TypeTerm {
        match ty {
            Type::Path(p) => match p.path.get_ident() {
                Some(i) => self.known(&i.to_string()),
                None => TypeTerm::Other,
            },
            Type::Array(a) => TypeTerm::Array(Box::new(self.declared(&a.elem))),
            Type::Tuple(t) => TypeTerm::Tuple(t.elems.iter().map(|t| self.declared(t)).collect()),
            Type::Reference(r) => self.declared(&r.elem),
            Type::Paren(p) => self.declared(&p.elem),
            _ => TypeTerm::Other,
        }
    }

    fn elsewhere(&mut self, term: &TypeTerm) {
        match term {
            TypeTerm::Integer(v) => {
                let v = self.root(*v);
                self.variables[v].elsewhere = true;
            }
            TypeTerm::Array(element) => self.elsewhere(element),
            TypeTerm::Tuple(elements) => elements.iter().for_each(|e| self.elsewhere(e)),
            TypeTerm::Real | TypeTerm::Other => {}
        }
    }

    fn unify(&mut self, a: &TypeTerm, b: &TypeTerm) {
        match (a, b) {
            (TypeTerm::Integer(a), TypeTerm::Integer(b)) => {
                let (a, b) = (self.root(*a), self.root(*b));
                if a != b {
                    let Variable {
                        known,
                        elsewhere,
                        real,
                        ..
                    } = self.variables[a];
                    self.variables[a].same = b;
                    let b = &mut self.variables[b];
                    b.known = b.known.or(known);
                    b.elsewhere |= elsewhere;
                    b.real |= real;
                }
            }
            (TypeTerm::Integer(v), TypeTerm::Real) | (TypeTerm::Real, TypeTerm::Integer(v)) => {
                let v = self.root(*v);
                self.variables[v].real = true;
            }
            (TypeTerm::Array(a), TypeTerm::Array(b)) => self.unify(a, b),
            (TypeTerm::Tuple(a), TypeTerm::Tuple(b)) => {
                a.iter().zip(b).for_each(|(a, b)| self.unify(a, b))
            }
            (TypeTerm::Other, t) | (t, TypeTerm::Other) => self.elsewhere(t),
            _ => {}
        }
    }

    /// Applies [`unify`](Self::unify) and returns the type of both.
    fn both(&mut self, a: TypeTerm, b: TypeTerm) -> TypeTerm {
        self.unify(&a, &b);
        if matches!(a, TypeTerm::Other) && !matches!(b, TypeTerm::Real)
            || matches!(a, TypeTerm::Real)
        {
            a
        } else {
            b
        }
    }

    /// Assigns default types to the remaining variables, and reports those that need a declaration.
    fn resolve(&mut self) -> syn::Result<()> {
        let mut errors = Errors::default();
        for (literal, v) in std::mem::take(&mut self.written) {
            let v = self.root(v);
            if self.variables[v].real && self.variables[v].known.is_none() {
                let why = format!(
                    "#[device]: a floating-point number is expected here: write `{literal}.0`"
                );
                errors.add(Error::new_spanned(&literal, why));
                // one error is enough
                self.variables[v].elsewhere = false;
            }
        }
        for (e, term) in std::mem::take(&mut self.literal_expressions) {
            if self.unknown(&term) {
                let why = "#[device]: give this integer a type (`2usize * 3` or `let n: usize = 2 * 3`): \
                           it follows only from other functions, which this attribute does not see";
                errors.add(Error::new_spanned(&e, why));
            }
        }
        errors.finish(())
    }

    /// Returns `true` if the type follows from other code. Without any constraint it is `i32`.
    fn unknown(&mut self, term: &TypeTerm) -> bool {
        match term {
            TypeTerm::Integer(v) => {
                let v = self.root(*v);
                let variable = &mut self.variables[v];
                if !variable.elsewhere {
                    variable.known = variable.known.or(Some("i32"));
                }
                variable.known.is_none()
            }
            TypeTerm::Array(element) => self.unknown(element),
            TypeTerm::Tuple(elements) => elements.iter().any(|e| self.unknown(e)),
            TypeTerm::Real | TypeTerm::Other => false,
        }
    }

    fn name(&mut self, name: &Ident, term: TypeTerm) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), term);
        }
    }

    fn bind(&mut self, pattern: &Pat, term: TypeTerm) {
        match pattern {
            Pat::Ident(i) => self.name(&i.ident, term),
            Pat::Type(t) => self.bind(&t.pat, term),
            Pat::Tuple(t) => {
                let elements = match term {
                    TypeTerm::Tuple(elements) => elements,
                    _ => Vec::new(),
                };
                let elements = elements
                    .into_iter()
                    .chain(std::iter::repeat(TypeTerm::Other));
                for (p, term) in t.elems.iter().zip(elements) {
                    self.bind(p, term);
                }
            }
            Pat::Slice(s) => {
                let element = match term {
                    TypeTerm::Array(element) => *element,
                    _ => TypeTerm::Other,
                };
                for p in &s.elems {
                    self.bind(p, element.clone());
                }
            }
            Pat::Struct(s) => s
                .fields
                .iter()
                .for_each(|f| self.bind(&f.pat, TypeTerm::Other)),
            Pat::Or(or) => or.cases.iter().for_each(|p| self.bind(p, term.clone())),
            Pat::Lit(l) => {
                let value = self.literal(l);
                self.unify(&value, &term);
            }
            _ => {}
        }
    }
}
