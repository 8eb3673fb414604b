//! The companions: same-named items in Rust's other namespace that carry the CUDA C++ text.
use crate::code::{Code, Part};
use crate::translate::{self, Generic};
use crate::{cell_fn, parameter, paths, pick, rust_side};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, ItemConst, ItemFn, ItemStruct, Path, Visibility};

/// Imports an item under a name by which rustc's complaint about a missing companion explains itself.
fn import(path: &Path) -> (Span, TokenStream, Ident) {
    let last = path.segments.last().map(|s| &s.ident);
    let span = last.map_or_else(Span::call_site, |i| i.span());
    let name = last.map(|i| i.to_string()).unwrap_or_default();
    let alias = format_ident!(
        "{}_has_no_device_attribute",
        name.trim_start_matches("r#"),
        span = span
    );
    let import = quote_spanned!(span=> #[allow(unused_imports)] use #path as #alias;);
    (span, import, alias)
}

/// One part as an expression of type `Piece`; `real` is the only real type of the surrounding item.
fn piece(part: &Part, real: &str, runtime: &TokenStream) -> TokenStream {
    match part {
        Part::Text(text) => quote!(#runtime::Piece::Text(#text)),
        Part::Value(path) => {
            let (span, import, alias) = import(path);
            quote_spanned!(span=> #runtime::Piece::Item({ #import #alias::ITEM }))
        }
        Part::Type(path) => {
            let (span, import, alias) = import(path);
            quote_spanned!(span=> #runtime::Piece::Item({ #import #alias }))
        }
        Part::Inferred(path) => {
            let (span, import, alias) = import(path);
            quote_spanned!(span=> #runtime::Piece::Inferred({ #import #alias }, #real))
        }
    }
}

/// What is said of an item on the CUDA side.
#[derive(Default)]
struct Text {
    generics: Vec<Generic>,
    prototype: Code,
    body: Code,
    /// Pieces behind the body.
    assertion: Option<TokenStream>,
}

impl Text {
    fn pieces(
        &self,
        code: &Code,
        more: Option<&TokenStream>,
        runtime: &TokenStream,
    ) -> TokenStream {
        let mut reals = self.generics.iter().filter_map(|g| match g {
            Generic::Real(name) => Some(name.as_str()),
            Generic::Const(_) => None,
        });
        let real = match (reals.next(), reals.next()) {
            (Some(one), None) => one,
            (None, _) => "double",
            _ => "",
        };
        let pieces = code.parts.iter().map(|part| piece(part, real, runtime));
        quote!(&[#(#pieces,)* #more])
    }

    /// An expression of type `&'static Item`.
    fn item(&self, kind: &str, name: &Ident, position: Span, runtime: &TokenStream) -> TokenStream {
        let prototype = self.pieces(&self.prototype, None, runtime);
        let body = self.pieces(&self.body, self.assertion.as_ref(), runtime);
        let generics = self.generics.iter().map(|g| match g {
            Generic::Real(name) => quote!(#runtime::Generic::Real(#name)),
            Generic::Const(name) => quote!(#runtime::Generic::Const(#name)),
        });
        let (kind, name) = (format_ident!("{kind}"), name.to_string());
        let line = position.start().line as u32;
        quote! {
            &#runtime::Item {
                module: module_path!(), name: #name, file: file!(), line: #line,
                kind: #runtime::Kind::#kind, generics: &[#(#generics),*],
                proto: #prototype, body: #body,
            }
        }
    }
}

/// An empty enum in the type namespace, for functions and constants.
fn type_companion(
    vis: &Visibility,
    name: &Ident,
    item: TokenStream,
    runtime: &TokenStream,
) -> TokenStream {
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code, clippy::upper_case_acronyms)]
        #vis enum #name {}
        #[allow(dead_code)]
        impl #name {
            #[doc(hidden)]
            pub const ITEM: &'static #runtime::Item = #item;
        }
    }
}

/// Silences advice that the subset cannot follow: it has neither iterators nor the constants of the standard library.
fn lints() -> TokenStream {
    quote! {
        #[allow(
            clippy::needless_range_loop, clippy::manual_memcpy, clippy::manual_is_multiple_of, clippy::approx_constant, clippy::excessive_precision,
            reason = "the device subset has neither iterators nor the constants of the standard library"
        )]
    }
}

/// A function: itself, rewritten, and its companion.
pub fn function(f: ItemFn) -> TokenStream {
    let runtime = paths::runtime();
    let (translator, translated) = translate::function(&f);
    let mut rust = f.clone();
    let rewritten = rust_side::rewrite(&mut rust, &translator, &runtime);
    let (text, error) = match (translated, rewritten) {
        (Ok((prototype, body)), Ok(())) => (
            Text {
                generics: translator.generics.clone(),
                prototype,
                body,
                assertion: None,
            },
            None,
        ),
        (Err(e), _) | (_, Err(e)) => (Text::default(), Some(e.to_compile_error())),
    };
    if error.is_some() {
        // rustc would find fault with the same places again
        rust.block = syn::parse_quote!({ ::core::unimplemented!() });
        rust.attrs
            .push(syn::parse_quote!(#[allow(unused, clippy::all)]));
    }
    let lints = lints();
    let name = &f.sig.ident;
    let item = text.item("Fn", name, f.sig.fn_token.span, &runtime);
    let companion = type_companion(&f.vis, name, item, &runtime);
    let of_cell = cell_fn::implementation(&f, &runtime);
    quote!(#lints #rust #error #companion #of_cell)
}

/// A constant and its companion.
pub fn constant(c: ItemConst) -> TokenStream {
    let runtime = paths::runtime();
    let (body, error) = match translate::constant(&c) {
        Ok(body) => (body, None),
        Err(e) => (Code::default(), Some(e.to_compile_error())),
    };
    let text = Text {
        body,
        ..Text::default()
    };
    let item = text.item("Const", &c.ident, c.ident.span(), &runtime);
    let companion = type_companion(&c.vis, &c.ident, item, &runtime);
    let lints = lints();
    quote!(#lints #c #error #companion)
}

/// A structure and its companion, a constant in the value namespace.
pub fn structure(s: ItemStruct) -> TokenStream {
    let runtime = paths::runtime();
    let (text, error) = match translate::structure(&s) {
        Ok((generics, prototype, body)) => (
            Text {
                generics,
                prototype,
                body,
                assertion: parameter::assertion(&s, &runtime),
            },
            None,
        ),
        Err(e) => (Text::default(), Some(e.to_compile_error())),
    };
    let (vis, name) = (&s.vis, &s.ident);
    let item = text.item("Struct", name, s.ident.span(), &runtime);
    // a tuple structure has a constructor of that name already
    let companion = (error.is_none()).then(|| {
        quote! {
            #[doc(hidden)]
            #[allow(non_upper_case_globals, dead_code)]
            #vis const #name: &'static #runtime::Item = #item;
        }
    });
    let traits = error.is_none().then(|| {
        let pick = pick::implementation(&s, &runtime);
        let parameter = parameter::implementations(&s, &runtime);
        let state = cell_fn::state(&s, &runtime);
        quote!(#pick #parameter #state)
    });
    quote!(#s #error #companion #traits)
}
