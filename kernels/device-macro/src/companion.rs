//! Companions: items of the same name in Rust's other namespace that hold the CUDA C++ text.
use crate::code::{CppCode, CppPart};
use crate::translate::{self, GenericKind};
use crate::{cell_fn, infer, parameter, runtime, rust_side};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{GenericParam, Ident, ItemConst, ItemEnum, ItemFn, ItemStruct, Path, Visibility};

/// Imports an item under the name `marked`. A path without anything in the type namespace, such as a function without the attribute,
/// resolves to a fallback type. Its compiler error explains what is missing.
fn import(path: &Path, runtime: &TokenStream) -> (Span, TokenStream) {
    let span = path
        .segments
        .last()
        .map_or_else(Span::call_site, |s| s.ident.span());
    let import = quote_spanned!(span=>
        #[allow(unused_imports)] use #runtime::unmarked::*;
        #[allow(unused_imports)] use #path as marked;
    );
    (span, import)
}

/// Returns one part as an expression of type `TextPiece`; `real` is the only real type of the surrounding item.
fn piece(part: &CppPart, real: &str, runtime: &TokenStream) -> TokenStream {
    match part {
        CppPart::Text(text) => quote!(#runtime::TextPiece::Text(#text)),
        CppPart::Value(path) | CppPart::Owner(path) => {
            let (span, import) = import(path, runtime);
            let trait_ = match part {
                CppPart::Owner(_) => quote!(#runtime::Functions),
                _ => quote!(#runtime::Marked),
            };
            quote_spanned!(span=> #runtime::TextPiece::Item({ #import <marked as #trait_>::ITEM }))
        }
        CppPart::Type(path) => {
            let (span, import) = import(path, runtime);
            quote_spanned!(span=> #runtime::TextPiece::Item({ #import marked }))
        }
        CppPart::Inferred(path) => {
            let (span, import) = import(path, runtime);
            quote_spanned!(span=> #runtime::TextPiece::Inferred({ #import marked }, #real))
        }
    }
}

/// CUDA text of an item.
#[derive(Default)]
pub struct Text {
    pub generics: Vec<GenericKind>,
    pub prototype: CppCode,
    pub body: CppCode,
    /// Pieces after the body.
    pub assertion: Option<TokenStream>,
}

impl Text {
    fn pieces(
        &self,
        code: &CppCode,
        more: Option<&TokenStream>,
        runtime: &TokenStream,
    ) -> TokenStream {
        let mut reals = self.generics.iter().filter_map(|g| match g {
            GenericKind::Real(name) => Some(name.as_str()),
            GenericKind::Const(_) | GenericKind::Choice(_) => None,
        });
        let real = match (reals.next(), reals.next()) {
            (Some(one), None) => one,
            (None, _) => "double",
            _ => "",
        };
        let pieces = code.parts.iter().map(|part| piece(part, real, runtime));
        quote!(&[#(#pieces,)* #more])
    }

    /// Returns an expression of type `&'static Item`.
    pub fn item(
        &self,
        kind: &str,
        name: &Ident,
        position: Span,
        runtime: &TokenStream,
    ) -> TokenStream {
        let prototype = self.pieces(&self.prototype, None, runtime);
        let body = self.pieces(&self.body, self.assertion.as_ref(), runtime);
        let generics = self.generics.iter().map(|g| match g {
            GenericKind::Real(name) => quote!(#runtime::Generic::Real(#name)),
            GenericKind::Const(name) => quote!(#runtime::Generic::Const(#name)),
            GenericKind::Choice(name) => quote!(#runtime::Generic::Choice(#name)),
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

/// Returns an empty enum in the type namespace, for functions and constants. `uses` prevents dead-code warnings for items that are only
/// used through their type.
fn type_companion(
    vis: &Visibility,
    name: &Ident,
    item: TokenStream,
    uses: Option<TokenStream>,
    runtime: &TokenStream,
) -> TokenStream {
    // rustc does not report dead code for names from an expansion
    let name = Ident::new(
        &name.to_string(),
        name.span().resolved_at(Span::mixed_site()),
    );
    let marked = marked(&name, &quote!({ #uses #item }), runtime);
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #vis enum #name {}
        impl #name {
            #[doc(hidden)]
            pub const ITEM: &'static #runtime::Item = <Self as #runtime::Marked>::ITEM;
        }
        #marked
    }
}

/// Returns the item of a type without generic parameters.
pub fn marked(name: &Ident, item: &TokenStream, runtime: &TokenStream) -> TokenStream {
    // a list of other marked items would hide the advice
    quote! {
        #[diagnostic::do_not_recommend]
        impl #runtime::Marked for #name {
            const ITEM: &'static #runtime::Item = #item;
        }
    }
}

/// Mentions a function if its generic parameters are numbers.
fn mention(f: &ItemFn, translator: &translate::Translator) -> Option<TokenStream> {
    let arguments = f
        .sig
        .generics
        .params
        .iter()
        .zip(&translator.generics)
        .map(|parameter| match parameter {
            (_, GenericKind::Real(_)) => Some(quote!(f64)),
            (GenericParam::Const(c), _) if c.ty.to_token_stream().to_string() == "bool" => {
                Some(quote!(false))
            }
            (_, GenericKind::Const(_)) => Some(quote!(0)),
            (_, GenericKind::Choice(_)) => None,
        });
    let (name, arguments) = (&f.sig.ident, arguments.collect::<Option<Vec<_>>>()?);
    Some(quote!(let _ = #name::<#(#arguments),*>;))
}

/// Silences lints that the subset cannot follow, because it has neither iterators nor the constants of the standard library.
pub fn lints() -> TokenStream {
    quote! {
        #[allow(
            clippy::needless_range_loop, clippy::manual_memcpy, clippy::manual_is_multiple_of, clippy::approx_constant, clippy::excessive_precision,
            reason = "the device subset has neither iterators nor the constants of the standard library"
        )]
    }
}

/// Expands a function: the rewritten function and its companion.
pub fn function(mut f: ItemFn) -> TokenStream {
    let runtime = runtime();
    let inferred = infer::function(&mut f);
    let (translator, translated) = translate::function(&f);
    let mut rust = f.clone();
    let rewritten = rust_side::rewrite(&mut rust, &translator, &runtime);
    let rewritten = inferred.and(rewritten);
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
        // a body that fits any type avoids further errors by rustc; the program does not compile
        rust.block = syn::parse_quote!({ loop {} });
        rust.attrs
            .push(syn::parse_quote!(#[allow(unused, clippy::all)]));
    }
    let lints = lints();
    let name = &f.sig.ident;
    let item = text.item("Fn", name, f.sig.fn_token.span, &runtime);
    let uses = mention(&f, &translator).filter(|_| error.is_none());
    let companion = type_companion(&f.vis, name, item, uses, &runtime);
    let of_cell = cell_fn::implementation(&f, &runtime);
    quote!(#lints #rust #error #companion #of_cell)
}

/// Expands a constant and its companion.
pub fn constant(mut c: ItemConst) -> TokenStream {
    let runtime = runtime();
    let inferred = infer::constant(&mut c);
    let (body, error) = match inferred.and(translate::constant(&c, None)) {
        Ok(body) => (body, None),
        Err(e) => (CppCode::default(), Some(e.to_compile_error())),
    };
    let text = Text {
        body,
        ..Text::default()
    };
    let item = text.item("Const", &c.ident, c.ident.span(), &runtime);
    let name = &c.ident;
    let companion = type_companion(&c.vis, name, item, Some(quote!(let _ = #name;)), &runtime);
    let lints = lints();
    quote!(#lints #c #error #companion)
}

/// Expands a structure and its companion, a constant in the value namespace.
pub fn structure(s: ItemStruct) -> TokenStream {
    let runtime = runtime();
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
    // a tuple structure already has a constructor of that name
    let companion = (error.is_none()).then(|| {
        quote! {
            #[doc(hidden)]
            #[allow(non_upper_case_globals, dead_code)]
            #vis const #name: &'static #runtime::Item = #item;
        }
    });
    let plain = error.is_none() && s.generics.params.is_empty();
    let marked = plain.then(|| marked(name, &quote!(#name), &runtime));
    let traits = error.is_none().then(|| {
        let pick = parameter::pick(&s, &runtime);
        let parameter = parameter::implementations(&s, &runtime);
        let state = cell_fn::state(&s, &runtime);
        quote!(#pick #parameter #state)
    });
    quote!(#s #error #companion #marked #traits)
}

/// Expands an enum without data, its text, and the trait that makes it a kernel parameter.
pub fn enumeration(e: ItemEnum) -> TokenStream {
    let runtime = runtime();
    let (body, error) = match translate::enumeration(&e) {
        Ok(body) => (body, None),
        Err(error) => (CppCode::default(), Some(error.to_compile_error())),
    };
    let text = Text {
        body,
        ..Text::default()
    };
    let (name, item) = (
        &e.ident,
        text.item("Struct", &e.ident, e.ident.span(), &runtime),
    );
    let traits = error.is_none().then(|| {
        let marked = marked(name, &item, &runtime);
        let parameter = parameter::of_enum(&e, &runtime);
        quote!(#marked #parameter)
    });
    quote!(#e #error #traits)
}
