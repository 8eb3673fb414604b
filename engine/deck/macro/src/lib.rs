//! The attribute `#[deck]`: turns a struct into a deck table and an enum into a choice of words.

#[path = "../../../../kernels/device-macro/src/manifest.rs"]
mod manifest;
mod table;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Error, Fields, Item, ItemEnum, parse_macro_input};

/// Turns a struct into a deck table, or an enum without data into a choice of words in `kebab-case`. Doc comments document the
/// keys and words.
///
/// The attribute `#[key(…)]` describes the key of a field. All parts are optional:
/// - `default = EXPRESSION`: value if the deck lacks the key. A key without a default is required unless it is an `Option`. The
///   struct implements `Default` if all keys have defaults.
/// - `unit = "mass/length**3"`: unit.
/// - `min = 0.0`, `max = 1.0`: inclusive bounds.
/// - `above = 0.0`, `below = 1.0`: exclusive bounds.
/// - `least = 2`: minimum number of elements of a list or of characters of a text.
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
            "#[deck] needs a struct (a table) or an enum (a choice of words)",
        )),
    };
    made.unwrap_or_else(|error| error.to_compile_error()).into()
}

fn words(item: &ItemEnum) -> syn::Result<proc_macro2::TokenStream> {
    let with_data = item.variants.iter().find(|v| v.fields != Fields::Unit);
    if let Some(variant) = with_data {
        let message = "a variant of a choice of words must not have data";
        return Err(Error::new_spanned(variant, message));
    }
    let derives = table::derives(&["Copy", "PartialEq", "Eq"]);
    Ok(quote! {
        #derives
        #[serde(rename_all = "kebab-case")]
        #item
    })
}
