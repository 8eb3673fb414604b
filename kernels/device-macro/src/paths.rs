//! Where generated code finds the runtime crate.
use crate::manifest::identifier;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// Path of the runtime crate as seen from the crate being compiled.
///
/// A crate that depends on `nestar-device` (under any name) is given that; one that depends on the facade `nestar`
/// alone reaches the runtime through the facade's re-export `device_runtime`. Both crates name themselves by
/// `extern crate self`.
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
