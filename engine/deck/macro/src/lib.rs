//! The attribute `#[deck]`, which makes a struct a table of decks and an enum a choice of words.

mod key;
#[path = "../../../../kernels/device-macro/src/manifest.rs"]
mod manifest;
mod paths;
mod table;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Error, Fields, Item, ItemEnum, parse_macro_input};

/// Makes a struct a table of decks, or an enum without data a choice of words in `kebab-case`; doc comments document the keys and
/// words.
///
/// A field says by `#[key(…)]` what its key is, each part by choice:
/// - `default = EXPRESSION`: its value in decks without the key; a key without a default is required, unless it is an `Option`. A
///   struct whose keys all have one implements `Default`;
/// - `unit = "mass/length**3"`;
/// - `min = 0.0`, `max = 1.0`: bounds that are allowed themselves;
/// - `above = 0.0`, `below = 1.0`: bounds that are not;
/// - `least = 2`: the number of elements of a list, or of characters of a text, that it has at least.
///
/// The documentation of the crate `nestar-deck` begins with an example.
#[proc_macro_attribute]
pub fn deck(_: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as Item);
    let made = match item {
        Item::Struct(item) => table::table(item),
        Item::Enum(item) => words(&item),
        other => Err(Error::new_spanned(
            other,
            "#[deck] stands before a struct (a table) or an enum (a choice of words)",
        )),
    };
    made.unwrap_or_else(|error| error.to_compile_error()).into()
}

fn words(item: &ItemEnum) -> syn::Result<proc_macro2::TokenStream> {
    let with_data = item.variants.iter().find(|v| v.fields != Fields::Unit);
    if let Some(variant) = with_data {
        let message = "a word of a deck has no data: write the name alone";
        return Err(Error::new_spanned(variant, message));
    }
    let derives = paths::derives(&["Copy", "PartialEq", "Eq"]);
    Ok(quote! {
        #derives
        #[serde(rename_all = "kebab-case")]
        #item
    })
}
