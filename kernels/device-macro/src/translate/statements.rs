//! Statements and control flow.
use super::{Binding, Tail, Translator};
use crate::code::{Code, text};
use crate::subset::{compound, ident_of, integer_literal, is_place, primitive};
use proc_macro2::Span;
use std::collections::HashMap;
use syn::{
    Block, Expr, ExprAssign, ExprBinary, ExprForLoop, ExprIf, ExprMatch, ExprRange, ExprReturn,
    ExprWhile, Label, Lit, Macro, Pat, RangeLimits, Stmt, spanned::Spanned,
};

/// Loops with constant bounds up to this many turns are unrolled.
const UNROLLED: i64 = 16;

impl Translator {
    /// Starts a statement: the compiler's messages then name the Rust line.
    pub(super) fn line(&self, span: Span, out: &mut Code) {
        let indent = "  ".repeat(self.scopes.len().saturating_sub(1));
        out.push(format!("\n#line {}\n  {indent}", span.start().line));
    }

    pub(super) fn block(&mut self, b: &Block, tail: Tail, out: &mut Code) {
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

    /// An expression whose value, if any, is dropped.
    pub(super) fn stmt(&mut self, e: &Expr, out: &mut Code) {
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
            Expr::Loop(l) => {
                self.no_label(&l.label);
                out.push("for (;;) {");
                self.loop_body(&l.body, out);
            }
            Expr::ForLoop(f) => self.for_loop(f, out),
            Expr::Break(b) => {
                self.jump(b, b.expr.is_none() && b.label.is_none());
                out.push("break;");
            }
            Expr::Continue(c) => {
                self.jump(c, c.label.is_none());
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

    fn while_loop(&mut self, w: &ExprWhile, out: &mut Code) {
        self.no_label(&w.label);
        let condition = self.condition(&w.cond);
        out.add(text("while (").c(condition).t(") {"));
        self.loop_body(&w.body, out);
    }

    fn assign(&mut self, a: &ExprAssign, out: &mut Code) {
        if !is_place(&a.left) {
            let why = "assign to a variable, field or element (no destructuring assignment)";
            return self.err(&a.left, why);
        }
        let (left, right) = (self.place(&a.left), self.expr(&a.right, true));
        out.add(left.t(" = ").c(right).t(";"));
    }

    fn compound_assign(&mut self, b: &ExprBinary, out: &mut Code) {
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

    fn return_stmt(&mut self, r: &ExprReturn, out: &mut Code) {
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

    fn no_label(&mut self, label: &Option<Label>) {
        if let Some(label) = label {
            self.err(label, "no loop labels");
        }
    }

    fn jump(&mut self, node: &impl quote::ToTokens, plain: bool) {
        if !plain {
            self.err(
                node,
                "only a plain `break` or `continue`, without label or value",
            );
        } else if self.loops == 0 {
            let why = "a jump inside a block used as a value cannot be translated; \
                       use the `if` as a statement";
            self.err(node, why);
        }
    }

    fn loop_body(&mut self, b: &Block, out: &mut Code) {
        self.loops += 1;
        self.block(b, Tail::Discard, out);
        self.loops -= 1;
        out.push(" }");
    }

    /// The last expression of a function or lambda.
    pub(super) fn tail(&mut self, e: &Expr, out: &mut Code) {
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
            e => {
                self.line(e.span(), out);
                let value = self.expr(e, true);
                out.add(text("return ").c(value).t(";"));
            }
        }
    }

    pub(super) fn condition(&mut self, e: &Expr) -> Code {
        match e {
            Expr::Let(l) => self.bad(l, "`if let` and `while let` are not supported"),
            e => self.expr(e, false),
        }
    }

    pub(super) fn if_stmt(&mut self, i: &ExprIf, tail: Tail, out: &mut Code) {
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

    /// The condition under which a pattern matches the value, `None` if it always does.
    fn pattern_test(&mut self, p: &Pat, value: &str) -> Option<Code> {
        match p {
            Pat::Wild(_) => None,
            Pat::Lit(l) if matches!(l.lit, Lit::Int(_) | Lit::Bool(_)) => {
                let literal = self.lit(&l.lit);
                Some(text(format!("({value} == ")).c(literal).t(")"))
            }
            Pat::Or(or) => {
                let mut any: Option<Code> = None;
                for case in &or.cases {
                    let test = self.pattern_test(case, value)?;
                    any = Some(match any {
                        Some(all) => all.t(" || ").c(test),
                        None => test,
                    });
                }
                any
            }
            Pat::Path(p) => {
                let constant = self.path(&p.path);
                Some(text(format!("({value} == ")).c(constant).t(")"))
            }
            Pat::Ident(i) if i.subpat.is_none() && i.by_ref.is_none() => {
                let constant = self.path(&i.ident.clone().into());
                Some(text(format!("({value} == ")).c(constant).t(")"))
            }
            other => {
                let why = "`match` takes integer or bool literals, constants, `|` and `_` only";
                self.err(other, why);
                None
            }
        }
    }

    pub(super) fn match_stmt(&mut self, m: &ExprMatch, tail: Tail, out: &mut Code) {
        let matched = self.expr(&m.expr, true);
        let value = self.temporary("m");
        out.add(text(format!("const auto {value} = ")).c(matched).t("; "));
        for (k, arm) in m.arms.iter().enumerate() {
            if let Some((_, guard)) = &arm.guard {
                self.err(guard, "no match guards");
            }
            let test = self.pattern_test(&arm.pat, &value);
            out.push(if k > 0 { " else " } else { "" });
            match test {
                // the last arm covers what is left: C++ then sees that every path returns
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

    fn range<'a>(&mut self, e: &'a Expr) -> Option<(&'a ExprRange, &'a Expr, &'a Expr)> {
        let range = match e {
            Expr::Range(r) => r,
            Expr::Paren(p) => return self.range(&p.expr),
            other => {
                let why = "`for` runs over a range `a..b` or `a..=b` only (no iterators, `.rev()` or \
                           `.step_by()`); index the array in the body";
                self.err(other, why);
                return None;
            }
        };
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            self.err(range, "the range needs both ends");
            return None;
        };
        Some((range, start, end))
    }

    /// Short loops with bounds known to the compiler.
    fn unrolled(&self, start: &Expr, end: &Expr) -> bool {
        let Some(first) = integer_literal(start).and_then(|l| l.base10_parse::<i64>().ok()) else {
            return false;
        };
        match integer_literal(end) {
            Some(last) => last
                .base10_parse::<i64>()
                .is_ok_and(|last| last - first <= UNROLLED),
            None => ident_of(end).is_some_and(|i| self.is_const(&i.to_string())),
        }
    }

    /// C++ name of a loop variable.
    fn counter(&mut self, p: &Pat) -> String {
        match p {
            Pat::Ident(i) => self.declare(&i.ident, Binding::Value),
            Pat::Wild(_) => self.temporary("i"),
            other => {
                self.err(other, "the loop variable must be a plain name");
                self.temporary("i")
            }
        }
    }

    fn for_loop(&mut self, f: &ExprForLoop, out: &mut Code) {
        self.no_label(&f.label);
        let Some((range, start, end)) = self.range(&f.expr) else {
            return;
        };
        let comparison = if matches!(range.limits, RangeLimits::Closed(_)) {
            "<="
        } else {
            "<"
        };
        let unrolled = self.unrolled(start, end);
        let (first, mut last) = (self.expr(start, false), self.expr(end, false));
        let ty = counter_type(start, end, &first, &last);
        // Rust evaluates the end once
        let hoisted = integer_literal(end).is_none() && !unrolled;
        if hoisted {
            let e = self.temporary("e");
            out.add(text(format!("{{ const auto {e} = ")).c(last).t("; "));
            last = text(e);
        }
        if unrolled {
            out.push("RS_UNROLL ");
        }
        self.scopes.push(HashMap::new());
        let i = self.counter(&f.pat);
        let head = text("for (").c(ty).t(format!(" {i} = ")).c(first);
        out.add(
            head.t(format!("; {i} {comparison} "))
                .c(last)
                .t(format!("; ++{i}) {{")),
        );
        self.loop_body(&f.body, out);
        self.scopes.pop();
        if hoisted {
            out.push(" }");
        }
    }
}

/// C++ type of a loop counter: that of a literal's suffix, `int` between plain literals, else that of the other bound.
fn counter_type(start: &Expr, end: &Expr, first: &Code, last: &Code) -> Code {
    let (a, b) = (integer_literal(start), integer_literal(end));
    let suffix = [a, b]
        .into_iter()
        .flatten()
        .map(|l| l.suffix())
        .find(|s| !s.is_empty());
    if let Some(suffix) = suffix {
        return text(primitive(suffix).unwrap_or("int"));
    }
    match (a, b) {
        (Some(_), Some(_)) => text("int"),
        (_, Some(_)) => text("rs::val<decltype(").c(first.clone()).t(")>"),
        _ => text("rs::val<decltype(").c(last.clone()).t(")>"),
    }
}
