//! Paths for generated code, in crates that depend on `nestar-deck` or only on `nestar`.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// Returns the path of `nestar-deck`.
fn deck() -> TokenStream {
    let named = |name: &str| Ident::new(name, Span::call_site());
    match (crate_name("nestar-deck"), crate_name("nestar")) {
        (Ok(FoundCrate::Name(name)), _) => {
            let name = named(&name);
            quote!(::#name)
        }
        (_, Ok(FoundCrate::Name(name))) => {
            let name = named(&name);
            quote!(::#name::deck)
        }
        // both crates name themselves by `extern crate self`
        (Ok(FoundCrate::Itself), _) | (_, Err(_)) => quote!(::nestar_deck),
        (_, Ok(FoundCrate::Itself)) => {
            let name = named("nestar");
            quote!(::#name::deck)
        }
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
