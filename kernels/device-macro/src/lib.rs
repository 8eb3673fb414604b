//! `#[device]`: keeps the item as ordinary Rust and adds a same-named companion (in the *other*
//! namespace, so that `use m::f` imports both) whose `ITEM` holds the equivalent CUDA C++ text.
use proc_macro2::TokenStream;
use syn::{Item, spanned::Spanned};

mod code;
mod companion;
mod map_fn;
mod paths;
mod pick;
mod rust_side;
mod subset;
mod translate;

/// Marks a free function, a structure with named fields or a constant as usable on the device too.
#[proc_macro_attribute]
pub fn device(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let attribute: TokenStream = attribute.into();
    let item: Item = match syn::parse(item) {
        Ok(i) => i,
        Err(e) => return e.to_compile_error().into(),
    };
    let mut out = match item {
        Item::Fn(f) => companion::function(f),
        Item::Struct(s) => companion::structure(s),
        Item::Const(c) => companion::constant(c),
        other => syn::Error::new(
            other.span(),
            "#[device] goes on a free `fn`, a `struct` with named fields or a `const`",
        )
        .to_compile_error(),
    };
    if !attribute.is_empty() {
        let error = syn::Error::new(attribute.span(), "#[device] takes no arguments");
        out.extend(error.to_compile_error());
    }
    out.into()
}
