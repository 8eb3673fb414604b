//! The companions: same-named items in Rust's other namespace that carry the CUDA C++ text.
use crate::{map_fn, paths, rustside, translate};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use translate::{Code, Part};

/// The pieces of a text as an expression of type `&'static [Piece]`.
fn pieces(code: &Code, runtime: &TokenStream) -> TokenStream {
    let pieces = code.parts.iter().map(|part| match part {
        Part::Text(text) => quote!(#runtime::Piece::Text(#text)),
        Part::Val(path) => quote_spanned!(path.span()=> #runtime::Piece::Item(#path::ITEM)),
        Part::Ty(path) => quote_spanned!(path.span()=> #runtime::Piece::Item(#path)),
    });
    quote!(&[#(#pieces),*])
}

/// What is said of an item on the CUDA side.
struct Text<'a> {
    kind: &'a str,
    generics: &'a str,
    prototype: Code,
    body: Code,
}

impl Text<'_> {
    /// An expression of type `&'static Item`.
    fn item(&self, name: &str, line: Span, runtime: &TokenStream) -> TokenStream {
        let (proto, body) = (pieces(&self.prototype, runtime), pieces(&self.body, runtime));
        let (kind, generics) = (format_ident!("{}", self.kind), self.generics);
        let line = line.start().line as u32;
        quote! {
            &#runtime::Item {
                module: module_path!(), name: #name, file: file!(), line: #line, kind: #runtime::Kind::#kind,
                generics: #generics, proto: #proto, body: #body,
            }
        }
    }
}

/// An empty enum in the type namespace, for functions and constants.
fn type_companion(vis: &syn::Visibility, name: &syn::Ident, item: TokenStream, runtime: &TokenStream) -> TokenStream {
    let companion = format_ident!("{}", name, span = name.span());
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #vis enum #companion {}
        #[allow(dead_code)]
        impl #companion {
            #[doc(hidden)]
            pub const ITEM: &'static #runtime::Item = #item;
        }
    }
}

/// A function: itself, rewritten for lanes, and its companion.
pub fn function(f: syn::ItemFn) -> TokenStream {
    let runtime = paths::runtime();
    let (tr, translated) = translate::function(&f);
    let mut rust = f.clone();
    let lane_error = rustside::rewrite(&mut rust, &tr, &runtime);
    let mut out = quote!(#rust);
    if let Some(e) = lane_error {
        out.extend(e.to_compile_error())
    }
    let (prototype, body) = translated.unwrap_or_else(|e| {
        out.extend(e.to_compile_error());
        Default::default()
    });
    let generics = tr.generic_args();
    let text = Text { kind: "Fn", generics: &generics, prototype, body };
    let item = text.item(&f.sig.ident.to_string(), f.sig.fn_token.span, &runtime);
    out.extend(type_companion(&f.vis, &f.sig.ident, item, &runtime));
    out.extend(map_fn::implementation(&f, &runtime));
    out
}

/// A constant and its companion.
pub fn constant(c: syn::ItemConst) -> TokenStream {
    let runtime = paths::runtime();
    let mut out = quote!(#c);
    let body = translate::constant(&c).unwrap_or_else(|e| {
        out.extend(e.to_compile_error());
        Code::default()
    });
    let text = Text { kind: "Const", generics: "", prototype: Code::default(), body };
    let item = text.item(&c.ident.to_string(), c.ident.span(), &runtime);
    out.extend(type_companion(&c.vis, &c.ident, item, &runtime));
    out
}

/// A structure and its companion, a constant in the value namespace.
pub fn structure(s: syn::ItemStruct) -> TokenStream {
    let runtime = paths::runtime();
    let mut out = quote!(#s);
    let (generics, prototype, body) = translate::structure(&s).unwrap_or_else(|e| {
        out.extend(e.to_compile_error());
        Default::default()
    });
    let text = Text { kind: "Struct", generics: &generics, prototype, body };
    let item = text.item(&s.ident.to_string(), s.ident.span(), &runtime);
    let (vis, name) = (&s.vis, &s.ident);
    out.extend(quote! {
        #[doc(hidden)]
        #[allow(non_upper_case_globals, dead_code)]
        #vis const #name: &'static #runtime::Item = #item;
    });
    out
}
