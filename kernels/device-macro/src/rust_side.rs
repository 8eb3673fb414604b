//! Rewrites functions on the Rust side.
//!
//! Float literals become numbers of the function's real type, methods of the subset become calls of the traits of `nestar-device`, and the
//! function is always inlined. In a lane-capable function (`R: Lane`) comparisons give masks, and an `if` on them becomes a selection.
use crate::subset::{METHODS, compound, names_type};
use crate::translate::{Translator, digits};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use syn::{
    BinOp, Error, Expr, ExprBinary, ExprIf, ExprMethodCall, FnArg, Ident, ItemFn, Lit, LitFloat,
    Pat, Result, Stmt, Type,
    parse::Parser,
    parse_quote_spanned,
    spanned::Spanned,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
};

const INTEGERS: &[&str] = &["i32", "u32", "i64", "u64", "usize", "bool"];

/// Rewrites the function in place.
pub fn rewrite(f: &mut ItemFn, translator: &Translator, runtime: &TokenStream) -> Result<()> {
    if !f.attrs.iter().any(|a| a.path().is_ident("inline")) {
        f.attrs.push(syn::parse_quote!(#[inline(always)]));
    }
    let mut scalars = Scalars(HashSet::new());
    scalars.visit_item_fn(f);
    let mut rewriter = Rewriter {
        translator,
        runtime,
        scalars: scalars.0,
        doubles: false,
        errors: Vec::new(),
    };
    rewriter.visit_block_mut(&mut f.block);
    let errors = rewriter.errors.into_iter().reduce(|mut all, e| {
        all.combine(e);
        all
    });
    errors.map_or(Ok(()), Err)
}

/// Names that are declared as integers or flags, so that conditions on them hold for all lanes at once.
struct Scalars(HashSet<String>);

impl Scalars {
    fn add(&mut self, pattern: &Pat) {
        if let Pat::Ident(i) = pattern {
            self.0.insert(i.ident.to_string());
        }
    }
    fn typed(&mut self, pattern: &Pat, ty: &Type) {
        if let Type::Path(p) = ty
            && p.path
                .get_ident()
                .is_some_and(|i| INTEGERS.contains(&i.to_string().as_str()))
        {
            self.add(pattern);
        }
    }
}

impl<'a> Visit<'a> for Scalars {
    fn visit_fn_arg(&mut self, a: &'a FnArg) {
        if let FnArg::Typed(p) = a {
            self.typed(&p.pat, &p.ty);
        }
    }
    fn visit_local(&mut self, l: &'a syn::Local) {
        if let Pat::Type(t) = &l.pat {
            self.typed(&t.pat, &t.ty);
        }
        visit::visit_local(self, l);
    }
    fn visit_expr_for_loop(&mut self, f: &'a syn::ExprForLoop) {
        self.add(&f.pat);
        visit::visit_expr_for_loop(self, f);
    }
}

/// How a lane-capable function uses an expression, decided on the original source.
enum LaneUse {
    Nothing,
    Select,
    Compare(&'static str),
    Logic(BinOp),
}

struct Rewriter<'a> {
    translator: &'a Translator,
    runtime: &'a TokenStream,
    scalars: HashSet<String>,
    /// `true` inside an argument of type `f64`.
    doubles: bool,
    errors: Vec<Error>,
}

impl Rewriter<'_> {
    fn err(&mut self, node: &impl ToTokens, message: &str) {
        self.errors
            .push(Error::new_spanned(node, format!("#[device]: {message}")));
    }

    /// Returns `true` if the expression is certainly not a number of `R`: a literal, const parameter, cast, or a name declared as an
    /// integer.
    fn scalar(&self, e: &Expr) -> bool {
        match e {
            Expr::Lit(l) => matches!(l.lit, Lit::Int(_) | Lit::Bool(_)),
            Expr::Paren(p) => self.scalar(&p.expr),
            Expr::Cast(_) => true,
            Expr::Path(p) => match p.path.get_ident() {
                Some(i) => {
                    let name = i.to_string();
                    self.translator.is_const(&name) || self.scalars.contains(&name)
                }
                None => self.variant(&p.path),
            },
            Expr::Binary(b) => self.scalar(&b.left) || self.scalar(&b.right),
            _ => false,
        }
    }

    /// Returns `true` for a variant of an enum, or a constant of a type other than the number.
    fn variant(&self, path: &syn::Path) -> bool {
        let mut names = path.segments.iter().rev().skip(1).map(|s| &s.ident);
        let owner = names.next();
        owner.is_some_and(|o| names_type(o) && !self.translator.types().any(|t| o == t))
    }

    /// Returns `true` for a condition that is one `bool` for all lanes.
    fn plain(&self, condition: &Expr) -> bool {
        use BinOp::*;
        match condition {
            Expr::Paren(p) => self.plain(&p.expr),
            Expr::Unary(u) => self.plain(&u.expr),
            Expr::Lit(_) => true,
            Expr::Path(_) => self.scalar(condition),
            Expr::Binary(b) => match b.op {
                And(_) | Or(_) | BitAnd(_) | BitOr(_) => {
                    self.plain(&b.left) && self.plain(&b.right)
                }
                _ => self.scalar(&b.left) || self.scalar(&b.right),
            },
            _ => false,
        }
    }

    fn lanes(&mut self, e: &Expr) -> LaneUse {
        use BinOp::*;
        match e {
            Expr::If(i) if !self.plain(&i.cond) => {
                self.branches(i);
                LaneUse::Select
            }
            Expr::While(w) if !self.plain(&w.cond) => {
                let why = "a loop that ends on a condition of R cannot run in lanes; \
                           bound R by `Real` (scalar only)";
                self.err(&w.cond, why);
                LaneUse::Nothing
            }
            Expr::Binary(b) if !self.plain(e) => match b.op {
                Lt(_) => LaneUse::Compare("lt"),
                Le(_) => LaneUse::Compare("le"),
                Gt(_) => LaneUse::Compare("gt"),
                Ge(_) => LaneUse::Compare("ge"),
                Eq(_) => LaneUse::Compare("eq"),
                Ne(_) => LaneUse::Compare("ne"),
                And(t) => LaneUse::Logic(BitAnd(syn::Token![&](t.spans[0]))),
                Or(t) => LaneUse::Logic(BitOr(syn::Token![|](t.spans[0]))),
                _ => LaneUse::Nothing,
            },
            _ => LaneUse::Nothing,
        }
    }

    /// Checks the branches of a selection: both run, so neither may have effects besides its value.
    fn branches(&mut self, i: &ExprIf) {
        let mut acting = SideEffectFinder(None);
        acting.visit_block(&i.then_branch);
        match i.else_branch.as_ref().map(|(_, e)| &**e) {
            Some(Expr::Block(b)) => acting.visit_block(&b.block),
            Some(_) => {}
            None => {
                let why = "in a lane-capable function (`R: Lane`) an `if` on R needs an `else` and a value: \
                           write `x = if c { new } else { x };`, or bound R by `Real` (scalar only)";
                return self.err(i, why);
            }
        }
        if let Some(span) = acting.0 {
            let why = "#[device]: in a lane-capable function (`R: Lane`) both branches of an `if` on R run \
                       and one is selected: no return, break, assignment or `&mut` inside; \
                       write `x = if c { new } else { x };`, or bound R by `Real` (scalar only)";
            self.errors.push(Error::new(span, why));
        }
    }

    fn literal(&self, f: &LitFloat) -> Option<Expr> {
        if !f.suffix().is_empty() {
            return None;
        }
        let runtime = self.runtime;
        match self.translator.real() {
            Some(real) if !self.doubles => {
                let real = Ident::new(real, f.span());
                Some(parse_quote_spanned!(f.span()=> <#real as #runtime::Lane>::lit(#f)))
            }
            _ if self.doubles || self.translator.types().next().is_none() => {
                let double = LitFloat::new(&format!("{}f64", digits(f)), f.span());
                Some(parse_quote_spanned!(f.span()=> #double))
            }
            _ => None,
        }
    }

    fn method(&self, m: &ExprMethodCall) -> Option<Expr> {
        let known = METHODS.iter().find(|known| m.method == known.name)?;
        let (name, arguments, runtime) = (&m.method, &m.args, self.runtime);
        let receiver = without_parentheses(&m.receiver);
        let of = Ident::new(known.of, name.span());
        let function = quote_spanned!(name.span()=> #runtime::#of::#name);
        syn::parse2(quote!(#function(#receiver, #arguments))).ok()
    }

    fn compare(&self, b: &ExprBinary, name: &str) -> Expr {
        let (left, right) = (without_parentheses(&b.left), without_parentheses(&b.right));
        let (name, runtime) = (Ident::new(name, b.op.span()), self.runtime);
        parse_quote_spanned!(b.op.span()=> #runtime::Num::#name(#left, #right))
    }

    fn select(&self, i: &ExprIf) -> Option<Expr> {
        let (_, other) = i.else_branch.as_ref()?;
        let span = i.if_token.span;
        let real = Ident::new(self.translator.real().unwrap_or("R"), span);
        let (condition, runtime) = (&i.cond, self.runtime);
        let then = value(&i.then_branch);
        let other = match &**other {
            Expr::Block(b) => value(&b.block),
            e => quote!(#e),
        };
        let pick = quote_spanned!(span=> <_ as #runtime::Pick<#real>>::pick);
        Some(parse_quote_spanned!(span=> #pick(#condition, #then, #other)))
    }

    /// Handles `R::lit(0.1)`: the literals in the argument are doubles.
    fn double_argument(&mut self, e: &mut Expr) -> bool {
        let Expr::Call(call) = e else { return false };
        let Expr::Path(p) = &*call.func else {
            return false;
        };
        if !p
            .path
            .segments
            .last()
            .is_some_and(|s| s.ident == "lit" || s.ident == "from_f64")
        {
            return false;
        }
        let outer = std::mem::replace(&mut self.doubles, true);
        for argument in &mut call.args {
            self.visit_expr_mut(argument);
        }
        self.doubles = outer;
        true
    }
}

/// Removes parentheses around an argument, which would cause a rustc warning.
fn without_parentheses(e: &Expr) -> &Expr {
    match e {
        Expr::Paren(p) => without_parentheses(&p.expr),
        e => e,
    }
}

/// Returns the block, or its only expression.
fn value(b: &syn::Block) -> TokenStream {
    match &b.stmts[..] {
        [Stmt::Expr(e, None)] => quote!(#e),
        _ => quote!(#b),
    }
}

/// Finds effects besides the value of a block.
struct SideEffectFinder(Option<Span>);

impl<'a> Visit<'a> for SideEffectFinder {
    fn visit_expr(&mut self, e: &'a Expr) {
        let acts = match e {
            Expr::Assign(_) | Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
            Expr::Reference(r) => r.mutability.is_some(),
            Expr::Binary(b) => compound(&b.op).is_some(),
            _ => false,
        };
        if acts {
            self.0.get_or_insert(e.span());
        }
        visit::visit_expr(self, e);
    }
}

impl VisitMut for Rewriter<'_> {
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        if self.double_argument(e) {
            return;
        }
        let lanes = if self.translator.lane {
            self.lanes(e)
        } else {
            LaneUse::Nothing
        };
        visit_mut::visit_expr_mut(self, e);
        let replacement = match (lanes, &mut *e) {
            (LaneUse::Select, Expr::If(i)) => self.select(i),
            (LaneUse::Compare(name), Expr::Binary(b)) => Some(self.compare(b, name)),
            (LaneUse::Logic(op), Expr::Binary(b)) => {
                b.op = op;
                None
            }
            (_, Expr::Lit(l)) => match &l.lit {
                Lit::Float(f) => self.literal(f),
                _ => None,
            },
            (_, Expr::MethodCall(m)) => self.method(m),
            _ => None,
        };
        if let Some(replacement) = replacement {
            *e = replacement;
        }
    }

    /// Rewrites the condition of `debug_assert!(x > 0.0)`, which must hold in all lanes.
    fn visit_macro_mut(&mut self, m: &mut syn::Macro) {
        let list = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        let Ok(mut arguments) = list.parse2(m.tokens.clone()) else {
            return;
        };
        let conditions = if m.path.is_ident("debug_assert") {
            1
        } else {
            2
        };
        for argument in arguments.iter_mut().take(conditions) {
            let mask = self.translator.lane && conditions == 1 && !self.plain(argument);
            self.visit_expr_mut(argument);
            if mask {
                let runtime = self.runtime;
                *argument = parse_quote_spanned!(argument.span()=> #runtime::Mask::all(#argument));
            }
        }
        m.tokens = quote!(#arguments);
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
}
