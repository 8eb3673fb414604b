//! Translates statements and control flow.
use super::{Tail, Translator};
use crate::code::{CppCode, text};
use crate::subset::{compound, is_place};
use proc_macro2::Span;
use std::collections::HashMap;
use syn::{
    Block, Expr, ExprAssign, ExprBinary, ExprIf, ExprMatch, ExprReturn, Lit, Macro, Pat, PatRange,
    RangeLimits, Stmt, spanned::Spanned,
};

impl Translator {
    /// Starts a statement with its Rust line for compiler messages.
    pub(super) fn line(&self, span: Span, out: &mut CppCode) {
        let indent = "  ".repeat(self.scopes.len().saturating_sub(1));
        out.push(format!("\n#line {}\n  {indent}", span.start().line));
    }

    pub(super) fn block(&mut self, b: &Block, tail: Tail, out: &mut CppCode) {
        self.scopes.push(HashMap::new());
        for (k, statement) in b.stmts.iter().enumerate() {
            let last = k + 1 == b.stmts.len();
            match statement {
                Stmt::Local(l) => self.local(l, out),
                Stmt::Expr(e, None) if last && tail == Tail::Return => self.tail(e, out),
                Stmt::Expr(e, _) => self.stmt(e, out),
                Stmt::Macro(m) => self.macro_statement(&m.mac),
                Stmt::Item(i) => {
                    let why = "no items inside a device function; \
                               put it at module level with its own #[device]";
                    self.err(i, why);
                }
            }
        }
        self.scopes.pop();
    }

    fn macro_statement(&mut self, m: &Macro) {
        let name = m
            .path
            .segments
            .last()
            .map(|s| s.ident.to_string())
            .unwrap_or_default();
        if !name.starts_with("debug_assert") {
            let why = format!(
                "macro `{name}!` is not supported (only debug_assert*!, which the CUDA text drops)"
            );
            self.err(m, why);
        }
    }

    /// Translates an expression whose value is dropped.
    pub(super) fn stmt(&mut self, e: &Expr, out: &mut CppCode) {
        self.line(e.span(), out);
        match e {
            Expr::Assign(a) => self.assign(a, out),
            Expr::Binary(b) if compound(&b.op).is_some() => self.compound_assign(b, out),
            Expr::If(i) => self.if_stmt(i, Tail::Discard, out),
            Expr::Match(m) => self.match_stmt(m, Tail::Discard, out),
            Expr::Block(b) => {
                out.push("{");
                self.block(&b.block, Tail::Discard, out);
                out.push(" }");
            }
            Expr::While(w) => self.while_loop(w, out),
            Expr::Loop(l) => self.loop_stmt(l, Tail::Discard, out),
            Expr::ForLoop(f) => self.for_loop(f, out),
            Expr::Break(b) => self.break_stmt(b, out),
            Expr::Continue(c) => {
                self.jump(c, &c.label);
                out.push("continue;");
            }
            Expr::Return(r) => self.return_stmt(r, out),
            Expr::Macro(m) => self.macro_statement(&m.mac),
            Expr::Tuple(unit) if unit.elems.is_empty() => {}
            e => {
                let value = self.expr(e, true);
                out.add(value.t(";"));
            }
        }
    }

    fn assign(&mut self, a: &ExprAssign, out: &mut CppCode) {
        if let Expr::Tuple(places) = &*a.left {
            let (whole, value) = (self.temporary("t"), self.expr(&a.right, true));
            out.add(text(format!("const auto {whole} = ")).c(value).t(";"));
            for (k, place) in places
                .elems
                .iter()
                .enumerate()
                .filter(|(_, e)| !matches!(e, Expr::Infer(_)))
            {
                let place = self.place(place);
                out.add(text(" ").c(place).t(format!(" = {whole}._{k};")));
            }
            return;
        }
        if !is_place(&a.left) {
            let why = "assign to a variable, field or element, or to a tuple of those";
            return self.err(&a.left, why);
        }
        let (left, right) = (self.place(&a.left), self.expr(&a.right, true));
        out.add(left.t(" = ").c(right).t(";"));
    }

    fn compound_assign(&mut self, b: &ExprBinary, out: &mut CppCode) {
        let (left, right) = (self.place(&b.left), self.expr(&b.right, true));
        match compound(&b.op) {
            Some("%") => {
                out.add(
                    left.clone()
                        .t(" = rs::rem(")
                        .c(left)
                        .t(", ")
                        .c(right)
                        .t(");"),
                );
            }
            Some(op) => out.add(left.t(format!(" {op}= ")).c(right).t(";")),
            None => {}
        }
    }

    fn return_stmt(&mut self, r: &ExprReturn, out: &mut CppCode) {
        if self.lambdas > 0 {
            let why = "`return` inside a block used as a value cannot be translated; \
                       use the `if` as a statement, or return from the function's tail";
            self.err(r, why);
        }
        match &r.expr {
            None => out.push("return;"),
            Some(e) => {
                let value = self.expr(e, true);
                out.add(text("return ").c(value).t(";"));
            }
        }
    }

    /// Translates the last expression of a function or lambda.
    pub(super) fn tail(&mut self, e: &Expr, out: &mut CppCode) {
        match e {
            Expr::If(i) if !self.pure(e) => {
                self.line(e.span(), out);
                self.if_stmt(i, Tail::Return, out);
            }
            Expr::Match(m) => {
                self.line(e.span(), out);
                self.match_stmt(m, Tail::Return, out);
            }
            Expr::Block(b) => {
                out.push(" {");
                self.block(&b.block, Tail::Return, out);
                out.push(" }");
            }
            Expr::Return(_) => self.stmt(e, out),
            Expr::Loop(l) => {
                self.line(e.span(), out);
                self.loop_stmt(l, Tail::Return, out);
            }
            e => {
                self.line(e.span(), out);
                let value = self.expr(e, true);
                out.add(text("return ").c(value).t(";"));
            }
        }
    }

    pub(super) fn condition(&mut self, e: &Expr) -> CppCode {
        match e {
            Expr::Let(l) => self.bad(l, "`if let` and `while let` are not supported"),
            e => self.expr(e, false),
        }
    }

    pub(super) fn if_stmt(&mut self, i: &ExprIf, tail: Tail, out: &mut CppCode) {
        let condition = self.condition(&i.cond);
        out.add(text("if (").c(condition).t(") {"));
        self.block(&i.then_branch, tail, out);
        out.push(" }");
        match i.else_branch.as_ref().map(|(_, e)| &**e) {
            None if tail == Tail::Return => {
                self.err(i, "an `if` used as a value needs an `else`");
            }
            None => {}
            Some(Expr::If(other)) => {
                out.push(" else ");
                self.if_stmt(other, tail, out);
            }
            Some(Expr::Block(b)) => {
                out.push(" else {");
                self.block(&b.block, tail, out);
                out.push(" }");
            }
            Some(other) => self.err(other, "unsupported else branch"),
        }
    }

    /// Returns the condition under which a pattern matches the value, `None` if it always does.
    fn pattern_test(&mut self, p: &Pat, value: &str) -> Option<CppCode> {
        match p {
            Pat::Wild(_) => None,
            Pat::Lit(l) if matches!(l.lit, Lit::Int(_) | Lit::Bool(_)) => {
                let literal = self.lit(&l.lit);
                Some(text(format!("({value} == ")).c(literal).t(")"))
            }
            Pat::Or(or) => {
                let mut any: Option<CppCode> = None;
                for case in &or.cases {
                    let test = self.pattern_test(case, value)?;
                    any = Some(match any {
                        Some(all) => all.t(" || ").c(test),
                        None => test,
                    });
                }
                any
            }
            Pat::Range(r) => self.range_test(r, value),
            Pat::Path(p) => {
                let constant = self.path(&p.path);
                Some(text(format!("({value} == ")).c(constant).t(")"))
            }
            Pat::Ident(i) if i.subpat.is_none() && i.by_ref.is_none() => {
                let constant = self.path(&i.ident.clone().into());
                Some(text(format!("({value} == ")).c(constant).t(")"))
            }
            other => {
                let why = "`match` takes integer or bool literals, ranges of them, constants, variants of enums without data, `|` and `_` only";
                self.err(other, why);
                None
            }
        }
    }

    fn range_test(&mut self, r: &PatRange, value: &str) -> Option<CppCode> {
        let [first, last] = [&r.start, &r.end].map(|e| e.as_ref().map(|e| self.expr(e, false)));
        let (Some(first), Some(last)) = (first, last) else {
            self.err(r, "the range needs both ends");
            return None;
        };
        let upper = match r.limits {
            RangeLimits::Closed(_) => "<=",
            RangeLimits::HalfOpen(_) => "<",
        };
        let test = text(format!("({value} >= ")).c(first);
        Some(test.t(format!(" && {value} {upper} ")).c(last).t(")"))
    }

    pub(super) fn match_stmt(&mut self, m: &ExprMatch, tail: Tail, out: &mut CppCode) {
        let matched = self.expr(&m.expr, true);
        let value = self.temporary("m");
        out.add(text(format!("const auto {value} = ")).c(matched).t("; "));
        for (k, arm) in m.arms.iter().enumerate() {
            if let Some((_, guard)) = &arm.guard {
                self.err(guard, "no match guards; put an `if` into the arm");
            }
            let test = self.pattern_test(&arm.pat, &value);
            out.push(if k > 0 { " else " } else { "" });
            match test {
                // the last arm covers the rest, so that C++ sees that every path returns
                Some(test) if k + 1 < m.arms.len() => out.add(text("if (").c(test).t(") ")),
                _ if k == 0 => out.push("if (true) "),
                _ => {}
            }
            out.push("{");
            self.scopes.push(HashMap::new());
            match tail {
                Tail::Return => self.tail(&arm.body, out),
                Tail::Discard => self.stmt(&arm.body, out),
            }
            self.scopes.pop();
            out.push(" }");
        }
    }
}
