//! `#[device]`: keeps the item as ordinary Rust and adds a same-named companion (in the *other*
//! namespace, so that `use m::f` imports both) whose `ITEM` holds the equivalent CUDA C++ text.
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Item, spanned::Spanned};
mod rustside;
mod translate;

#[proc_macro_attribute]
pub fn device(attr: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let attr: TokenStream = attr.into();
    let item: Item = match syn::parse(item) {
        Ok(i) => i,
        Err(e) => return e.to_compile_error().into(),
    };
    let mut out = match item {
        Item::Fn(f) => device_fn(f),
        Item::Struct(s) => device_struct(s),
        Item::Const(c) => device_const(c),
        other => syn::Error::new(other.span(), "#[device] goes on a free `fn`, a `struct` with named fields or a `const`").to_compile_error(),
    };
    if !attr.is_empty() {
        out.extend(syn::Error::new(attr.span(), "#[device] takes no arguments").to_compile_error());
    }
    out.into()
}

fn pieces(code: &translate::Code) -> TokenStream {
    let p = code.parts.iter().map(|p| match p {
        translate::Part::Text(s) => quote!(::nestar_device::Piece::T(#s)),
        translate::Part::Val(path) => {
            let sp = path.span();
            quote_spanned!(sp=> ::nestar_device::Piece::I(#path::ITEM))
        }
        translate::Part::Ty(path) => quote_spanned!(path.span()=> ::nestar_device::Piece::I(#path)),
    });
    quote!(&[#(#p),*])
}

/// Companion in the type namespace for functions and constants.
fn companion(vis: &syn::Visibility, name: &syn::Ident, kind: &str, generics: &str, proto: &translate::Code, body: &translate::Code, span: Span) -> TokenStream {
    let s = name.to_string();
    let name2 = format_ident!("{}", name, span = name.span());
    let (proto, body) = (pieces(proto), pieces(body));
    let line = span.start().line as u32;
    let kind = format_ident!("{}", kind);
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #vis enum #name2 {}
        #[allow(dead_code)]
        impl #name2 {
            #[doc(hidden)]
            pub const ITEM: &'static ::nestar_device::Item = &::nestar_device::Item {
                module: module_path!(), name: #s, file: file!(), line: #line, kind: ::nestar_device::Kind::#kind,
                generics: #generics, proto: #proto, body: #body,
            };
        }
    }
}

fn device_fn(f: syn::ItemFn) -> TokenStream {
    let (tr, res) = translate::function(&f);
    let mut rust = f.clone();
    let lane_err = rustside::rewrite(&mut rust, &tr);
    let mut out = quote!(#rust);
    if let Some(e) = lane_err { out.extend(e.to_compile_error()) }
    let (proto, body, err) = match res {
        Ok((p, b)) => (p, b, TokenStream::new()),
        Err(e) => (Default::default(), Default::default(), e.to_compile_error()),
    };
    out.extend(err);
    out.extend(companion(&f.vis, &f.sig.ident, "Fn", &tr.generic_args(), &proto, &body, f.sig.fn_token.span));
    out
}

fn device_const(c: syn::ItemConst) -> TokenStream {
    let (body, err) = match translate::constant(&c) {
        Ok(b) => (b, TokenStream::new()),
        Err(e) => (Default::default(), e.to_compile_error()),
    };
    let comp = companion(&c.vis, &c.ident, "Const", "", &Default::default(), &body, c.ident.span());
    quote!(#c #err #comp)
}

fn device_struct(s: syn::ItemStruct) -> TokenStream {
    let (generics, proto, body, err) = match translate::structure(&s) {
        Ok((g, p, b)) => (g, p, b, TokenStream::new()),
        Err(e) => (String::new(), Default::default(), Default::default(), e.to_compile_error()),
    };
    let (vis, name, n) = (&s.vis, &s.ident, s.ident.to_string());
    let (proto, body) = (pieces(&proto), pieces(&body));
    let line = s.ident.span().start().line as u32;
    quote! {
        #s
        #err
        #[doc(hidden)]
        #[allow(non_upper_case_globals, dead_code)]
        #vis const #name: &'static ::nestar_device::Item = &::nestar_device::Item {
            module: module_path!(), name: #n, file: file!(), line: #line, kind: ::nestar_device::Kind::Struct,
            generics: #generics, proto: #proto, body: #body,
        };
    }
}
