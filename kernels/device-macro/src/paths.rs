//! Locates the runtime crate for generated code.
use crate::manifest::identifier;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// Returns the path of the runtime crate as seen from the crate being compiled.
///
/// A crate that depends on `nestar-device` (under any name) uses it directly. One that depends only on the facade `nestar` uses the
/// facade's re-export `device_runtime`.
pub fn runtime() -> TokenStream {
    let named = |name: String| Ident::new(&name, Span::call_site());
    if let Some(name) = identifier("nestar-device").map(named) {
        return quote!(::#name);
    }
    match identifier("nestar").map(named) {
        Some(name) => quote!(::#name::device_runtime),
        // without either dependency rustc's own "unresolved crate" error is the clearest
        None => quote!(::nestar_device),
    }
}
