//! Locates the runtime crate for generated code.
use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// Returns the path of the runtime crate as seen from the crate being compiled.
///
/// A crate that depends on `nestar-device` (under any name) uses it directly. One that depends only on the facade `nestar` uses the
/// facade's re-export `device_runtime`.
pub fn runtime() -> TokenStream {
    match crate_name("nestar-device") {
        Ok(FoundCrate::Name(name)) => {
            let name = Ident::new(&name, Span::call_site());
            return quote!(::#name);
        }
        // the crate names itself by `extern crate self as nestar_device`
        Ok(FoundCrate::Itself) => return quote!(::nestar_device),
        Err(_) => {}
    }
    match crate_name("nestar") {
        Ok(FoundCrate::Name(name)) => {
            let name = Ident::new(&name, Span::call_site());
            quote!(::#name::device_runtime)
        }
        // without either dependency rustc's own "unresolved crate" error is the clearest
        _ => quote!(::nestar_device),
    }
}
