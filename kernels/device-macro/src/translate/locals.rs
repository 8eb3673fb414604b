//! Translates `let` and destructuring.
use super::{Binding, Translator};
use crate::code::{CppCode, text};
use crate::subset::{cpp_name, is_place};
use syn::{Expr, ExprReference, Local, Member, Pat, PatIdent, Type, spanned::Spanned};

fn plain(i: &PatIdent) -> bool {
    i.by_ref.is_none() && i.subpat.is_none()
}

impl Translator {
    pub(super) fn local(&mut self, l: &Local, out: &mut CppCode) {
        self.line(l.span(), out);
        let (pattern, ty) = match &l.pat {
            Pat::Type(t) => (&*t.pat, Some(&*t.ty)),
            p => (p, None),
        };
        let Some(init) = &l.init else {
            return self.uninitialised(l, pattern, ty, out);
        };
        if let Some((_, e)) = &init.diverge {
            return self.err(e, "`let … else` is not supported");
        }
        match pattern {
            Pat::Ident(i) if plain(i) => self.named(i, ty, &init.expr, out),
            Pat::Wild(_) => {
                let value = self.expr(&init.expr, true);
                out.add(text("(void)(").c(value).t(");"));
            }
            pattern => {
                let ty = ty.map(|t| self.ty(t)).unwrap_or_else(|| text("auto"));
                let value = self.expr(&init.expr, true);
                let whole = self.temporary("t");
                let head = text("const ").c(ty).t(format!(" {whole} = "));
                out.add(head.c(value).t(";"));
                self.destructure(pattern, &whole, out);
            }
        }
    }

    fn uninitialised(&mut self, l: &Local, pattern: &Pat, ty: Option<&Type>, out: &mut CppCode) {
        let (Pat::Ident(i), Some(ty)) = (pattern, ty) else {
            return self.err(
                l,
                "a `let` without value needs one name and a type: `let x: R;`",
            );
        };
        let ty = self.ty(ty);
        let name = self.declare(&i.ident, Binding::Value);
        out.add(ty.t(format!(" {name};")));
    }

    fn named(&mut self, i: &PatIdent, ty: Option<&Type>, e: &Expr, out: &mut CppCode) {
        if let Expr::Reference(r) = e
            && self.reference(i, r, out)
        {
            return;
        }
        let ty = ty
            .filter(|t| !matches!(t, Type::Reference(_)))
            .map(|t| self.ty(t));
        let value = self.expr_of(e, true, ty.as_ref());
        // declared last, because the value may use the shadowed name
        let name = self.declare(&i.ident, Binding::Value);
        let qualifier = if i.mutability.is_some() { "" } else { "const " };
        let head = text(qualifier).c(ty.unwrap_or_else(|| text("auto")));
        out.add(head.t(format!(" {name} = ")).c(value).t(";"));
    }

    /// Translates `let x = &mut place` and `let x = &place`. Returns false for a reference to a temporary, which is a value in C++.
    fn reference(&mut self, i: &PatIdent, r: &ExprReference, out: &mut CppCode) -> bool {
        let mutable = r.mutability.is_some();
        if !is_place(&r.expr) {
            if mutable {
                self.err(r, "`&mut` of a temporary");
            }
            return mutable;
        }
        if !mutable && i.mutability.is_some() {
            return false;
        }
        let place = self.place(&r.expr);
        let binding = if mutable {
            Binding::Mutable
        } else {
            Binding::Value
        };
        let qualifier = if mutable { "" } else { "const " };
        let name = self.declare(&i.ident, binding);
        out.add(text(format!("{qualifier}auto& {name} = ")).c(place).t(";"));
        true
    }

    fn destructure(&mut self, p: &Pat, from: &str, out: &mut CppCode) {
        match p {
            Pat::Wild(_) | Pat::Rest(_) => {}
            Pat::Ident(i) if plain(i) => {
                let name = self.declare(&i.ident, Binding::Value);
                let qualifier = if i.mutability.is_some() { "" } else { "const " };
                out.push(format!(" {qualifier}auto {name} = {from};"));
            }
            Pat::Tuple(t) => {
                for (k, p) in t.elems.iter().enumerate() {
                    self.destructure(p, &format!("{from}._{k}"), out);
                }
            }
            Pat::Slice(s) => {
                for (k, p) in s.elems.iter().enumerate() {
                    if matches!(p, Pat::Rest(_)) && k + 1 != s.elems.len() {
                        self.err(p, "`..` only at the end");
                    }
                    self.destructure(p, &format!("{from}[{k}]"), out);
                }
            }
            Pat::Struct(s) => {
                for f in &s.fields {
                    if let Member::Named(n) = &f.member {
                        self.destructure(&f.pat, &format!("{from}.{}", cpp_name(n)), out);
                    }
                }
            }
            other => {
                let why = "unsupported pattern; names, `_`, tuples, `[a, b]` and `S { a, b }` \
                           can be destructured";
                self.err(other, why);
            }
        }
    }
}
