//! Traverses a function.
use super::{Inference, TypeTerm};
use crate::subset::{compares, compound, shifts};
use std::collections::HashMap;
use syn::{Expr, ExprCall, ExprCast, ExprLit, ExprMethodCall, Ident, Lit, Pat, Stmt, UnOp};

/// Returns `true` for a literal without a suffix, possibly negated or in parentheses.
fn literal(e: &Expr) -> bool {
    match e {
        Expr::Lit(l) => matches!(&l.lit, Lit::Int(i) if i.suffix().is_empty()),
        Expr::Paren(p) => literal(&p.expr),
        Expr::Unary(u) => literal(&u.expr),
        _ => false,
    }
}

impl Inference {
    pub(super) fn literal(&mut self, l: &ExprLit) -> TypeTerm {
        let i = match &l.lit {
            Lit::Int(i) => i,
            Lit::Float(_) => return TypeTerm::Real,
            _ => return TypeTerm::Other,
        };
        if !i.suffix().is_empty() {
            return self.known(i.suffix());
        }
        let v = self.variable(None);
        self.literals.insert(i, v);
        self.written.push((i.clone(), v));
        TypeTerm::Integer(v)
    }

    pub(super) fn block(&mut self, b: &syn::Block) -> TypeTerm {
        self.scopes.push(HashMap::new());
        let mut value = TypeTerm::Other;
        for statement in &b.stmts {
            value = TypeTerm::Other;
            match statement {
                Stmt::Local(l) => self.local(l),
                Stmt::Expr(e, None) => value = self.expr(e),
                Stmt::Expr(e, Some(_)) => drop(self.expr(e)),
                Stmt::Item(_) | Stmt::Macro(_) => {}
            }
        }
        self.scopes.pop();
        value
    }

    fn local(&mut self, l: &syn::Local) {
        let declared = match &l.pat {
            Pat::Type(t) => Some(self.declared(&t.ty)),
            _ => None,
        };
        let term = match (&l.init, declared) {
            (Some(init), declared) => {
                let value = self.expr(&init.expr);
                match declared {
                    Some(declared) => {
                        self.unify(&value, &declared);
                        declared
                    }
                    None => {
                        self.literal_expressions
                            .push(((*init.expr).clone(), value.clone()));
                        value
                    }
                }
            }
            (None, declared) => declared.unwrap_or(TypeTerm::Other),
        };
        self.bind(&l.pat, term);
    }

    pub(super) fn expr(&mut self, e: &Expr) -> TypeTerm {
        match e {
            Expr::Lit(l) => self.literal(l),
            Expr::Path(p) => match p.path.get_ident() {
                Some(name) => self.lookup(name),
                // `u32::MAX`; the types of `f64::DIGITS` and `R::PI` are known elsewhere
                None => match self.known(&p.path.segments[0].ident.to_string()) {
                    TypeTerm::Real => TypeTerm::Other,
                    known => known,
                },
            },
            Expr::Paren(p) => self.expr(&p.expr),
            Expr::Group(p) => self.expr(&p.expr),
            Expr::Reference(r) => self.expr(&r.expr),
            Expr::Unary(u) => {
                let value = self.expr(&u.expr);
                match u.op {
                    UnOp::Neg(_) | UnOp::Not(_) | UnOp::Deref(_) => value,
                    _ => TypeTerm::Other,
                }
            }
            Expr::Binary(b) => self.binary(b),
            Expr::Assign(a) => {
                let (place, value) = (self.expr(&a.left), self.expr(&a.right));
                self.unify(&place, &value);
                TypeTerm::Other
            }
            Expr::Cast(c) => self.cast(c),
            Expr::Call(c) => self.call(c),
            Expr::MethodCall(m) => self.method(m),
            Expr::Struct(s) => {
                for value in s.fields.iter().map(|f| &f.expr).chain(s.rest.as_deref()) {
                    let value = self.expr(value);
                    self.elsewhere(&value);
                }
                TypeTerm::Other
            }
            Expr::Index(_) | Expr::Field(_) | Expr::Array(_) | Expr::Repeat(_) | Expr::Tuple(_) => {
                self.composed(e)
            }
            e => self.control(e),
        }
    }

    fn cast(&mut self, c: &ExprCast) -> TypeTerm {
        let (value, ty) = (self.expr(&c.expr), self.declared(&c.ty));
        if literal(&c.expr) && matches!(ty, TypeTerm::Integer(_)) {
            self.unify(&value, &ty);
        }
        ty
    }

    /// Arrays and tuples, with their elements.
    fn composed(&mut self, e: &Expr) -> TypeTerm {
        match e {
            Expr::Index(i) => {
                let base = self.expr(&i.expr);
                // a plain number means the same in any type
                if !literal(&i.index) {
                    let (index, usize) = (self.expr(&i.index), self.known("usize"));
                    self.unify(&index, &usize);
                }
                match base {
                    TypeTerm::Array(element) => *element,
                    _ => TypeTerm::Other,
                }
            }
            Expr::Field(f) => match (self.expr(&f.base), &f.member) {
                (TypeTerm::Tuple(t), syn::Member::Unnamed(n)) => {
                    t.get(n.index as usize).cloned().unwrap_or(TypeTerm::Other)
                }
                _ => TypeTerm::Other,
            },
            Expr::Array(a) => {
                let elements: Vec<_> = a.elems.iter().map(|e| self.expr(e)).collect();
                let all = elements.into_iter().reduce(|a, b| self.both(a, b));
                TypeTerm::Array(Box::new(all.unwrap_or(TypeTerm::Other)))
            }
            Expr::Repeat(r) => TypeTerm::Array(Box::new(self.expr(&r.expr))),
            Expr::Tuple(t) => TypeTerm::Tuple(t.elems.iter().map(|e| self.expr(e)).collect()),
            _ => TypeTerm::Other,
        }
    }

    fn lookup(&self, name: &Ident) -> TypeTerm {
        let name = name.to_string();
        let found = self.scopes.iter().rev().find_map(|s| s.get(&name));
        found.cloned().unwrap_or(TypeTerm::Other)
    }

    fn control(&mut self, e: &Expr) -> TypeTerm {
        match e {
            Expr::If(i) => {
                self.expr(&i.cond);
                let then = self.block(&i.then_branch);
                match &i.else_branch {
                    Some((_, other)) => {
                        let other_value = self.expr(other);
                        self.branches(e, &[then.clone(), other_value.clone()]);
                        self.both(then, other_value)
                    }
                    None => TypeTerm::Other,
                }
            }
            Expr::Match(m) => {
                let matched = self.expr(&m.expr);
                let values: Vec<_> = m.arms.iter().map(|arm| self.arm(arm, &matched)).collect();
                self.branches(e, &values);
                values
                    .into_iter()
                    .reduce(|a, b| self.both(a, b))
                    .unwrap_or(TypeTerm::Other)
            }
            Expr::Block(b) => self.block(&b.block),
            e => self.loop_type(e),
        }
    }

    /// Loops, `break` and `continue`.
    fn loop_type(&mut self, e: &Expr) -> TypeTerm {
        match e {
            Expr::ForLoop(f) => {
                let counter = self.expr(&f.expr);
                self.scopes.push(HashMap::new());
                self.bind(&f.pat, counter);
                self.block(&f.body);
                self.scopes.pop();
                TypeTerm::Other
            }
            Expr::Range(r) => {
                let ends = [&r.start, &r.end].map(|e| e.as_ref().map(|e| self.expr(e)));
                match ends {
                    [Some(a), Some(b)] => self.both(a, b),
                    _ => TypeTerm::Other,
                }
            }
            Expr::While(w) => {
                self.expr(&w.cond);
                self.block(&w.body)
            }
            Expr::Loop(l) => {
                self.loops.push(None);
                self.block(&l.body);
                self.loops.pop().flatten().unwrap_or(TypeTerm::Other)
            }
            e => self.jump(e),
        }
    }

    fn jump(&mut self, e: &Expr) -> TypeTerm {
        match e {
            Expr::Break(b) => {
                if let Some(value) = &b.expr {
                    let (value, before) = (self.expr(value), self.loops.pop().flatten());
                    let all = before.map_or(value.clone(), |before| self.both(before, value));
                    self.loops.push(Some(all));
                }
                TypeTerm::Other
            }
            Expr::Return(r) => {
                if let (Some(value), Some(result)) = (&r.expr, self.result.clone()) {
                    let value = self.expr(value);
                    self.unify(&value, &result);
                }
                TypeTerm::Other
            }
            _ => TypeTerm::Other,
        }
    }

    fn arm(&mut self, arm: &syn::Arm, matched: &TypeTerm) -> TypeTerm {
        self.scopes.push(HashMap::new());
        self.bind(&arm.pat, matched.clone());
        let value = self.expr(&arm.body);
        self.scopes.pop();
        value
    }

    /// A literal in one branch and a value of other code in another would give a C++ function with two result types.
    fn branches(&mut self, e: &Expr, values: &[TypeTerm]) {
        let mixed = values.iter().any(|v| matches!(v, TypeTerm::Other));
        if mixed && let Some(one) = values.iter().find(|v| matches!(v, TypeTerm::Integer(_))) {
            self.elsewhere(&one.clone());
            self.literal_expressions.push((e.clone(), one.clone()));
        }
    }

    fn binary(&mut self, b: &syn::ExprBinary) -> TypeTerm {
        let (left, right) = (self.expr(&b.left), self.expr(&b.right));
        if shifts(&b.op) {
            return left;
        }
        let value = self.both(left, right);
        if compares(&b.op) || compound(&b.op).is_some() {
            TypeTerm::Other
        } else {
            value
        }
    }

    fn call(&mut self, c: &ExprCall) -> TypeTerm {
        let function = match &*c.func {
            Expr::Path(p) => p
                .path
                .segments
                .iter()
                .map(|s| s.ident.to_string())
                .collect(),
            _ => Vec::new(),
        };
        let function: Vec<&str> = function.iter().map(String::as_str).collect();
        let taken = match function[..] {
            [_, "from_i32"] => "i32",
            [_, "from_u32"] | ["f32", "from_bits"] => "u32",
            [_, "from_usize"] => "usize",
            [_, "from_f64" | "lit"] => "f64",
            ["f64", "from_bits"] => "u64",
            _ => "",
        };
        for argument in &c.args {
            let (argument, taken) = (self.expr(argument), self.known(taken));
            self.unify(&argument, &taken);
        }
        TypeTerm::Other
    }

    fn method(&mut self, m: &ExprMethodCall) -> TypeTerm {
        let receiver = self.expr(&m.receiver);
        let arguments: Vec<_> = m.args.iter().map(|a| self.expr(a)).collect();
        let name = m.method.to_string();
        let (taken, given) = match name.as_str() {
            "min" | "max" | "lesser" | "greater" | "clamp" | "abs" | "wrapping_add"
            | "wrapping_sub" | "wrapping_mul" => (receiver.clone(), receiver),
            "powi" | "ldexp" => (self.known("i32"), TypeTerm::Other),
            "to_i32" => (TypeTerm::Other, self.known("i32")),
            "len" => (TypeTerm::Other, self.known("usize")),
            _ => {
                self.elsewhere(&receiver);
                (TypeTerm::Other, TypeTerm::Other)
            }
        };
        for argument in &arguments {
            self.unify(argument, &taken);
        }
        given
    }
}
