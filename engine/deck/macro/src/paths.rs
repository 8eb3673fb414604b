//! Paths for generated code, in crates that depend on `nestar-deck` or only on `nestar`.

use crate::manifest::identifier;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// Returns the path of `nestar-deck`.
fn deck() -> TokenStream {
    let named = |name: String| Ident::new(&name, Span::call_site());
    if let Some(name) = identifier("nestar-deck").map(named) {
        return quote!(::#name);
    }
    match identifier("nestar").map(named) {
        Some(name) => quote!(::#name::deck),
        None => quote!(::nestar_deck),
    }
}

/// Returns the derives of every table and choice, plus the standard derives `more`.
pub fn derives(more: &[&str]) -> TokenStream {
    let deck = deck();
    let more = more.iter().map(|name| Ident::new(name, Span::call_site()));
    let [serde, schemars] = ["serde", "schemars"].map(|name| {
        let path = format!("{deck}::macro_support::{name}");
        path.replace(' ', "")
    });
    quote! {
        #[derive(
            Clone, Debug, #(#more,)*
            #deck::macro_support::serde::Serialize,
            #deck::macro_support::serde::Deserialize,
            #deck::macro_support::schemars::JsonSchema
        )]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
    }
}
