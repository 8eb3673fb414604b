//! What changes on the Rust side: float literals become `R::lit(..)`, methods of the fixed list become
//! calls of OUR trait (so that the inherent `f64::max`, `powi`.. can never be picked), and #[inline] is added.
use crate::translate::{METHODS, Tr};
use quote::{quote, quote_spanned};
use syn::{Expr, parse::Parser, parse_quote_spanned, spanned::Spanned, visit_mut::{self, VisitMut}};

struct V<'a> { tr: &'a Tr, rt: &'a proc_macro2::TokenStream, errs: Vec<syn::Error> }

pub fn rewrite(f: &mut syn::ItemFn, tr: &Tr, rt: &proc_macro2::TokenStream) -> Option<syn::Error> {
    if !f.attrs.iter().any(|a| a.path().is_ident("inline")) {
        f.attrs.push(syn::parse_quote!(#[inline(always)]));
    }
    let mut v = V { tr, rt, errs: vec![] };
    v.visit_block_mut(&mut f.block);
    v.errs.into_iter().reduce(|mut a, b| { a.combine(b); a })
}
impl V<'_> {
    /// Certainly an integer (literal, const generic, SCREAMING constant): its comparison stays a bool.
    fn int(&self, e: &Expr) -> bool {
        match e {
            Expr::Lit(l) => matches!(l.lit, syn::Lit::Int(_)), Expr::Paren(p) => self.int(&p.expr), Expr::Cast(_) => true,
            Expr::Path(p) => p.path.get_ident().is_some_and(|i| self.tr.consts.contains(&i.to_string())),
            Expr::Binary(b) => self.int(&b.left) || self.int(&b.right), _ => false,
        }
    }
    fn plain(&self, c: &Expr) -> bool {
        use syn::BinOp::*;
        match c {
            Expr::Paren(p) => self.plain(&p.expr), Expr::Unary(u) => self.plain(&u.expr), Expr::Lit(_) => true,
            Expr::Binary(b) => match b.op { And(_) | Or(_) | BitAnd(_) | BitOr(_) => self.plain(&b.left) && self.plain(&b.right), _ => self.int(&b.left) || self.int(&b.right) },
            _ => false,
        }
    }
    fn arm(&mut self, b: &syn::Block) {
        struct E(Option<proc_macro2::Span>);
        impl<'a> syn::visit::Visit<'a> for E {
            fn visit_expr_assign(&mut self, a: &'a syn::ExprAssign) { self.0 = Some(a.span()) }
            fn visit_expr_return(&mut self, a: &'a syn::ExprReturn) { self.0 = Some(a.span()) }
            fn visit_expr_break(&mut self, a: &'a syn::ExprBreak) { self.0 = Some(a.span()) }
            fn visit_expr_continue(&mut self, a: &'a syn::ExprContinue) { self.0 = Some(a.span()) }
            fn visit_expr_reference(&mut self, r: &'a syn::ExprReference) { if r.mutability.is_some() { self.0 = Some(r.span()) } syn::visit::visit_expr_reference(self, r) }
            fn visit_bin_op(&mut self, o: &'a syn::BinOp) { use syn::BinOp::*; if matches!(o, AddAssign(_) | SubAssign(_) | MulAssign(_) | DivAssign(_)) { self.0 = Some(o.span()) } }
        }
        let mut e = E(None); syn::visit::Visit::visit_block(&mut e, b);
        if let Some(sp) = e.0 { self.errs.push(syn::Error::new(sp, "#[device]: in a lane-capable function (`R: Lane`) both branches of an `if` on R run and one is selected: no return, break, assignment or `&mut` inside; write `x = if c { new } else { x };`, or bound R by `Real` (scalar only)")) }
    }
}

impl VisitMut for V<'_> {
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        // R::lit(0.1) keeps its argument
        if let Expr::Call(c) = e {
            if let Expr::Path(p) = &*c.func {
                if p.path.segments.last().is_some_and(|s| s.ident == "lit") { return; }
            }
        }
        // decided on the source as written, before the operands are rewritten
        let (mut select, mut compare, mut logic) = (false, None, None);
        if self.tr.lane {
            use syn::BinOp::*;
            match &*e {
                Expr::If(i) if !self.plain(&i.cond) => {
                    select = true;
                    self.arm(&i.then_branch);
                    match i.else_branch.as_ref().map(|x| &*x.1) { Some(Expr::Block(b)) => self.arm(&b.block), Some(_) => {}, None => self.errs.push(syn::Error::new(i.if_token.span, "#[device]: in a lane-capable function an `if` on R needs an `else` and a value")) }
                }
                Expr::Binary(b) if !self.plain(e) => match b.op {
                    Lt(_) => compare = Some("lt"), Le(_) => compare = Some("le"), Gt(_) => compare = Some("gt"), Ge(_) => compare = Some("ge"), Eq(_) => compare = Some("eq"), Ne(_) => compare = Some("ne"),
                    And(t) => logic = Some(syn::BinOp::BitAnd(syn::Token![&](t.spans[0]))), Or(t) => logic = Some(syn::BinOp::BitOr(syn::Token![|](t.spans[0]))), _ => {}
                },
                Expr::While(w) if !self.plain(&w.cond) => self.errs.push(syn::Error::new(w.while_token.span, "#[device]: a loop that ends on a condition of R cannot run in lanes; bound R by `Real` (scalar only)")),
                _ => {}
            }
        }
        visit_mut::visit_expr_mut(self, e);
        if let (Some(o), Expr::Binary(b)) = (logic, &mut *e) { b.op = o }
        if let (Some(n), Expr::Binary(b)) = (compare, &*e) {
            let strip = |e: &Expr| { let mut e = e.clone(); while let Expr::Paren(p) = e { e = *p.expr } e };
            let (l, r, n) = (strip(&b.left), strip(&b.right), syn::Ident::new(n, b.op.span()));
            let rt = self.rt; *e = parse_quote_spanned!(b.op.span()=> #rt::Num::#n(#l, #r));
            return;
        }
        if select && let Expr::If(i) = &*e && let Some((_, els)) = &i.else_branch {
            let (c, t, r) = (&i.cond, &i.then_branch, syn::Ident::new(self.tr.real.as_deref().unwrap_or("R"), i.if_token.span));
            let one = |b: &syn::Block| if let [syn::Stmt::Expr(e, None)] = &b.stmts[..] { quote!(#e) } else { quote!(#b) };
            let t = one(t); let els = if let Expr::Block(b) = &**els { one(&b.block) } else { quote!(#els) };
            let rt = self.rt; *e = parse_quote_spanned!(i.if_token.span=> <_ as #rt::Pick<#r>>::pick(#c, #t, #els));
            return;
        }
        match e {
            Expr::Lit(l) => {
                if let (syn::Lit::Float(f), Some(r)) = (&l.lit, &self.tr.real) {
                    if f.suffix().is_empty() {
                        let r = syn::Ident::new(r, f.span());
                        let rt = self.rt; *e = parse_quote_spanned!(f.span()=> <#r as #rt::Lane>::lit(#l));
                    }
                }
            }
            Expr::MethodCall(m) => {
                if let Some((_, tr, _)) = METHODS.iter().find(|(n, _, _)| m.method == n) {
                    // `(a + b).sqrt()`: the parentheses must go, or rustc would warn and `cargo fix` would break the source
                    let mut recv = &*m.receiver;
                    while let Expr::Paren(p) = recv { recv = &p.expr }
                    let (args, name) = (&m.args, &m.method);
                    let t = syn::Ident::new(tr, name.span());
                    let sp = name.span();
                    let rt = self.rt; let func = quote_spanned!(sp=> #rt::#t::#name);
                    *e = syn::parse2(quote!(#func(#recv, #args))).unwrap_or_else(|_| Expr::MethodCall(m.clone()));
                }
            }
            _ => {}
        }
    }
    fn visit_macro_mut(&mut self, m: &mut syn::Macro) {
        // debug_assert!(x > 0.0): its literals must be rewritten too
        let p = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        if let Ok(mut a) = p.parse2(m.tokens.clone()) {
            for (i, x) in a.iter_mut().enumerate() { if i == 0 { self.visit_expr_mut(x) } }
            let _ = a.span();
            m.tokens = quote!(#a);
        }
    }
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}
}
