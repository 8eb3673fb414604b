//! Translates loops, `break` and `continue`.
use super::{Binding, Tail, Translator};
use crate::code::{CppCode, text};
use crate::subset::{ident_of, integer_literal, primitive};
use std::collections::HashMap;
use syn::{
    Block, Expr, ExprBreak, ExprForLoop, ExprLoop, ExprRange, ExprWhile, Label, Lifetime, Pat,
    RangeLimits,
};

/// Largest number of iterations of an unrolled loop with constant bounds.
const UNROLLED: i64 = 16;

impl Translator {
    /// Translates a `loop`; if it is a value, `break` returns it.
    pub(super) fn loop_stmt(&mut self, l: &ExprLoop, tail: Tail, out: &mut CppCode) {
        self.no_label(&l.label);
        out.push("for (;;) {");
        self.loop_body(&l.body, tail, out);
    }

    pub(super) fn break_stmt(&mut self, b: &ExprBreak, out: &mut CppCode) {
        self.jump(b, &b.label);
        let value = b.expr.as_ref().map(|e| self.expr(e, true));
        match (self.loops.last(), value) {
            (Some(Tail::Return), Some(value)) => out.add(text("return ").c(value).t(";")),
            (_, Some(value)) => out.add(text("{ (void)(").c(value).t("); break; }")),
            (_, None) => out.push("break;"),
        }
    }

    pub(super) fn while_loop(&mut self, w: &ExprWhile, out: &mut CppCode) {
        self.no_label(&w.label);
        let condition = self.condition(&w.cond);
        out.add(text("while (").c(condition).t(") {"));
        self.loop_body(&w.body, Tail::Discard, out);
    }

    pub(super) fn no_label(&mut self, label: &Option<Label>) {
        if let Some(label) = label {
            self.err(label, "no loop labels");
        }
    }

    pub(super) fn jump(&mut self, node: &impl quote::ToTokens, label: &Option<Lifetime>) {
        if label.is_some() {
            self.err(
                node,
                "no labels: `break` and `continue` act on the innermost loop",
            );
        } else if self.loops.is_empty() {
            let why = "a jump inside a block used as a value cannot be translated; \
                       use the `if` as a statement";
            self.err(node, why);
        }
    }

    fn loop_body(&mut self, b: &Block, tail: Tail, out: &mut CppCode) {
        self.loops.push(tail);
        self.block(b, Tail::Discard, out);
        self.loops.pop();
        out.push(" }");
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

    /// Returns `true` for short loops with constant bounds.
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

    /// Returns the C++ name of a loop variable.
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

    pub(super) fn for_loop(&mut self, f: &ExprForLoop, out: &mut CppCode) {
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
        self.loop_body(&f.body, Tail::Discard, out);
        self.scopes.pop();
        if hoisted {
            out.push(" }");
        }
    }
}

/// Returns the C++ type of a loop counter: that of a literal's suffix, `int` between plain literals, else that of the other bound.
fn counter_type(start: &Expr, end: &Expr, first: &CppCode, last: &CppCode) -> CppCode {
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
