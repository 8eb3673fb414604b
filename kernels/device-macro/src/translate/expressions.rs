//! Translates expressions.
use super::{Tail, Translator};
use crate::code::{CppCode, CppPart, list, text};
use crate::subset::{
    bare, compound, cpp_name, has_effects, integer_literal, operator, operator_function,
};
use syn::{
    BinOp, Block, Expr, ExprBinary, ExprBlock, ExprIf, ExprStruct, ExprUnary, Member,
    PathArguments, Stmt, UnOp,
};

/// Returns the only expression of a block.
fn single(b: &Block) -> Option<&Expr> {
    match &b.stmts[..] {
        [Stmt::Expr(e, None)] => Some(e),
        _ => None,
    }
}

impl Translator {
    /// Translates a place, that is, an assignable expression, or any expression.
    pub(super) fn place(&mut self, e: &Expr) -> CppCode {
        match e {
            Expr::Paren(p) => self.place(&p.expr),
            Expr::Group(p) => self.place(&p.expr),
            Expr::Path(p) if p.qself.is_none() => self.path(&p.path),
            Expr::Field(f) => {
                let base = self.place(&f.base);
                match &f.member {
                    Member::Named(n) => base.t(format!(".{}", cpp_name(n))),
                    Member::Unnamed(i) => base.t(format!("._{}", i.index)),
                }
            }
            Expr::Index(i) => {
                if let Expr::Range(r) = &*i.index {
                    return self.bad(r, "no slicing; index elements");
                }
                let (base, index) = (self.place(&i.expr), self.expr(&i.index, false));
                base.t("[").c(index).t("]")
            }
            Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => self.place(&u.expr),
            e => self.expr(e, false),
        }
    }

    /// Returns `true` if it can be written as one C++ expression without a lambda.
    pub(super) fn pure(&self, e: &Expr) -> bool {
        let block = |b: &Block| single(b).is_some_and(|e| self.pure(e));
        match e {
            Expr::If(i) => {
                block(&i.then_branch) && i.else_branch.as_ref().is_some_and(|(_, e)| self.pure(e))
            }
            Expr::Block(b) => block(&b.block),
            Expr::Binary(b) => compound(&b.op).is_none(),
            Expr::Match(_) | Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => false,
            Expr::Assign(_) | Expr::While(_) | Expr::ForLoop(_) | Expr::Loop(_) => false,
            _ => true,
        }
    }

    /// Translates the value of an expression; `top` if nothing else in the statement is evaluated.
    pub(super) fn expr(&mut self, e: &Expr, top: bool) -> CppCode {
        self.expr_of(e, top, None)
    }

    /// Translates expressions, separated by commas.
    pub(super) fn expr_list<'a>(&mut self, all: impl Iterator<Item = &'a Expr>) -> CppCode {
        let all: Vec<_> = all.map(|e| self.expr(e, false)).collect();
        list(all)
    }

    /// Translates a block used as a value to a lambda that is called immediately, with its type if known.
    fn lambda(
        &mut self,
        e: &Expr,
        top: bool,
        ty: Option<&CppCode>,
        body: impl FnOnce(&mut Translator, &mut CppCode),
    ) -> CppCode {
        if !top && has_effects(e) {
            let why = "this block changes variables inside a larger expression, where C++ does not fix \
                       the order of evaluation; put it into its own `let` first";
            self.err(e, why);
        }
        let loops = std::mem::take(&mut self.loops);
        self.lambdas += 1;
        let mut code = text("[&]()");
        if let Some(ty) = ty {
            code = code.t(" -> ").c(ty.clone());
        }
        code.push(" {");
        body(self, &mut code);
        (self.lambdas, self.loops) = (self.lambdas - 1, loops);
        code.t(" }()")
    }

    /// Translates like [`expr`](Self::expr), with the type of the result if a `let` gives it.
    pub(super) fn expr_of(&mut self, e: &Expr, top: bool, ty: Option<&CppCode>) -> CppCode {
        match e {
            Expr::Lit(l) => self.lit(&l.lit),
            Expr::Paren(p) => text("(").c(self.expr(&p.expr, top)).t(")"),
            Expr::Group(p) => self.expr(&p.expr, top),
            Expr::Path(p) => self.value(p),
            Expr::Field(_) | Expr::Index(_) => self.place(e),
            Expr::Unary(u) => self.unary(u),
            Expr::Reference(r) if r.mutability.is_none() => self.expr(&r.expr, false),
            Expr::Binary(b) => self.binary(b),
            Expr::Cast(c) => {
                let (value, ty) = (self.expr(&c.expr, false), self.ty(&c.ty));
                text("rs::cast<").c(ty).t(">(").c(value).t(")")
            }
            Expr::Array(a) if a.elems.is_empty() => self.bad(a, "empty array"),
            Expr::Array(a) => text("rs::mk(").c(self.expr_list(a.elems.iter())).t(")"),
            Expr::Repeat(r) => {
                let (value, n) = (self.expr(&r.expr, false), self.expr(&r.len, false));
                text("rs::splat<").c(n).t(">(").c(value).t(")")
            }
            Expr::Tuple(t) if (2..=4).contains(&t.elems.len()) => {
                text("rs::mkt(").c(self.expr_list(t.elems.iter())).t(")")
            }
            Expr::If(i) => self.if_value(e, i, top, ty),
            Expr::Block(b) => self.block_value(e, b, top, ty),
            Expr::Match(m) => self.lambda(e, top, ty, |t, o| t.match_stmt(m, Tail::Return, o)),
            Expr::Loop(l) => self.lambda(e, top, ty, |t, o| t.loop_stmt(l, Tail::Return, o)),
            Expr::Struct(s) => self.structure_value(e, s),
            Expr::MethodCall(m) => self.method_call(m),
            Expr::Call(c) => self.call(c, top),
            other => self.refused(other),
        }
    }

    fn unary(&mut self, u: &ExprUnary) -> CppCode {
        match u.op {
            UnOp::Neg(_) => match self.negative(&u.expr) {
                Some(literal) => literal,
                None => text("(-").c(self.expr(&u.expr, false)).t(")"),
            },
            UnOp::Not(_) => text("rs::not_(").c(self.expr(&u.expr, false)).t(")"),
            _ => self.place(&u.expr),
        }
    }

    fn binary(&mut self, b: &ExprBinary) -> CppCode {
        if matches!(b.op, BinOp::Shl(_))
            && let Some(l) = integer_literal(&b.left)
            && l.suffix().is_empty()
        {
            self.err(&b.left, "give the shifted literal a type (`1u32 << n`)");
        }
        if compound(&b.op).is_some() {
            return self.bad(b, "assignment is a statement here, not an expression");
        }
        let (left, right) = (self.expr(&b.left, false), self.expr(&b.right, false));
        match (operator(&b.op), operator_function(&b.op)) {
            (Some(o), _) => text("(").c(left).t(format!(" {o} ")).c(right).t(")"),
            (_, Some(f)) => text(format!("rs::{f}(")).c(left).t(", ").c(right).t(")"),
            _ => self.bad(b, "unsupported operator"),
        }
    }

    fn if_value(&mut self, e: &Expr, i: &ExprIf, top: bool, ty: Option<&CppCode>) -> CppCode {
        if self.pure(e)
            && let (Some(a), Some((_, b))) = (single(&i.then_branch), &i.else_branch)
        {
            let condition = self.condition(&i.cond);
            let (a, b) = (self.expr(a, false), self.expr(b, false));
            return text("(").c(condition).t(" ? ").c(a).t(" : ").c(b).t(")");
        }
        self.lambda(e, top, ty, |t, o| t.if_stmt(i, Tail::Return, o))
    }

    fn block_value(&mut self, e: &Expr, b: &ExprBlock, top: bool, ty: Option<&CppCode>) -> CppCode {
        if let Some(label) = &b.label {
            self.err(label, "no block labels");
        }
        match single(&b.block) {
            Some(value) => self.expr_of(value, top, ty),
            None => self.lambda(e, top, ty, |t, o| t.block(&b.block, Tail::Return, o)),
        }
    }

    fn structure_value(&mut self, e: &Expr, s: &ExprStruct) -> CppCode {
        if has_effects(e) {
            self.err(e, "no side effects inside a structure literal");
        }
        let arguments = match s.path.segments.last().map(|last| &last.arguments) {
            Some(a) if !matches!(a, PathArguments::None) => Some(self.generic_arguments(a)),
            _ => None,
        };
        let path = bare(&s.path);
        let ty = match arguments {
            Some(arguments) => CppCode::of(CppPart::Type(path)).c(arguments),
            None => CppCode::of(CppPart::Inferred(path)),
        };
        let whole = self.temporary("s");
        let mut code = text("[&]() { ").c(ty).t(format!(" {whole}"));
        if let Some(rest) = &s.rest {
            code = code.t(" = ").c(self.expr(rest, false));
        }
        code.push(";");
        for f in &s.fields {
            if let Member::Named(name) = &f.member {
                let value = self.expr(&f.expr, false);
                code = code
                    .t(format!(" {whole}.{} = ", cpp_name(name)))
                    .c(value)
                    .t(";");
            }
        }
        code.t(format!(" return {whole}; }}()"))
    }

    fn refused(&mut self, e: &Expr) -> CppCode {
        let why = match e {
            Expr::Tuple(_) => "tuples of 2 to 4 elements only; use a #[device] structure",
            Expr::Closure(_) => {
                "closures are not supported; write a #[device] fn and call it, or hand functions over by type: \
                 a parameter `L: Law` with a trait `Law` of yours, `#[device] impl Law for …`, and `L::rate(x)`"
            }
            Expr::Range(_) => "ranges only in `for`",
            Expr::Reference(_) => {
                "`&mut` only directly as a call argument or as `let x = &mut place`"
            }
            Expr::Assign(_) => "assignment is a statement here, not an expression",
            Expr::Unsafe(_) => "no unsafe blocks",
            Expr::Try(_) => "no `?` on the device",
            Expr::Return(_) => "`return` only as a statement",
            Expr::Macro(_) => {
                "no macros but debug_assert*! as a statement; arrays are `[x; N]`, text is not supported on the device"
            }
            Expr::Lit(_) => "only bool, integer and float literals",
            _ => "this expression is outside the #[device] subset",
        };
        self.bad(e, why)
    }
}
