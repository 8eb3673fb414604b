//! The attribute `#[deck]`: turns a struct into a deck table and an enum into a choice of words.

#[path = "../../../../kernels/device-macro/src/manifest.rs"]
mod manifest;

use manifest::identifier;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::{
    Attribute, Error, Expr, Field, Fields, Ident, Item, ItemEnum, ItemStruct, LitStr, Type,
    parse_macro_input,
};

/// Turns a struct into a deck table, or an enum without data into a choice of words in `kebab-case`. Doc comments document the
/// keys and words.
///
/// The attribute `#[key(…)]` describes the key of a field. All parts are optional:
/// - `default = EXPRESSION`: value if the deck lacks the key. A key without a default is required unless it is an `Option`,
///   which is then `None`. The struct implements `Default` if no key is required.
/// - `unit = "mass/length**3"`: unit.
/// - `min = 0.0`, `max = 1.0`: inclusive bounds.
/// - `above = 0.0`, `below = 1.0`: exclusive bounds.
/// - `zero_or = 1e-3`: the value is 0 or at least this one.
/// - `least = 2`: minimum number of elements of a list or of characters of a text.
///
/// The documentation of the crate `nestar-deck` begins with an example.
#[proc_macro_attribute]
pub fn deck(_: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let item = parse_macro_input!(item as Item);
    let made = match item {
        Item::Struct(item) => table(item),
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
    let derives = derives(&["Copy", "PartialEq", "Eq"]);
    Ok(quote! {
        #derives
        #[serde(rename_all = "kebab-case")]
        #item
    })
}

/// Expands a struct into a deck table.
fn table(mut item: ItemStruct) -> syn::Result<TokenStream> {
    if !item.generics.params.is_empty() {
        let message = "a table must not have type parameters: use f64 for numbers in any precision";
        return Err(Error::new_spanned(&item.generics, message));
    }
    let name = item.ident.clone();
    let mut defaults = Vec::new();
    let mut keys = 0;
    match &mut item.fields {
        Fields::Unit => {
            item.fields = Fields::Named(syn::parse_quote!({}));
            item.semi_token = None;
        }
        Fields::Unnamed(fields) => {
            let message = "the fields of a table must have names: they are its keys";
            return Err(Error::new_spanned(fields, message));
        }
        Fields::Named(fields) => {
            keys = fields.named.len();
            for field in &mut fields.named {
                defaults.extend(annotated(field, &name)?);
            }
        }
    }
    let whole = defaults.len() == keys;
    let implied = implied(&name, defaults, whole);
    let derives = derives(&["PartialEq"]);
    Ok(quote! {
        #derives
        #[serde(deny_unknown_fields)]
        #item
        #implied
    })
}

/// Returns the functions for the defaults of keys, and an impl of `Default` if the `whole` table has defaults.
fn implied(name: &Ident, defaults: Vec<(TokenStream, TokenStream)>, whole: bool) -> TokenStream {
    let (functions, values): (Vec<_>, Vec<_>) = defaults.into_iter().unzip();
    let whole = whole.then(|| {
        quote! {
            impl ::core::default::Default for #name {
                fn default() -> Self {
                    Self { #(#values),* }
                }
            }
        }
    });
    quote! {
        impl #name {
            #(#functions)*
        }
        #whole
    }
}

/// Adds serde and schemars attributes to a field. Returns the function for its default and the field's initialiser.
fn annotated(field: &mut Field, table: &Ident) -> syn::Result<Option<(TokenStream, TokenStream)>> {
    let key = Key::take(field)?;
    let Some(name) = field.ident.clone() else {
        return Ok(None);
    };
    let kind = field.ty.clone();
    let mut attributes = key.schema(&kind);
    let mut default = key.default;
    if is(&kind, "Option") && default.is_none() {
        default = Some(syn::parse_quote!(None));
        attributes.extend(quote!(#[serde(skip_serializing_if = "Option::is_none")]));
    }
    let Some(default) = default else {
        field
            .attrs
            .extend(Attribute::parse_outer.parse2(attributes)?);
        return Ok(None);
    };
    let function = format_ident!("default_of_{}", name);
    let path = format!("{table}::{function}");
    attributes.extend(quote!(#[serde(default = #path)]));
    field
        .attrs
        .extend(Attribute::parse_outer.parse2(attributes)?);
    let made = quote! {
        #[doc(hidden)]
        fn #function() -> #kind {
            #default
        }
    };
    Ok(Some((made, quote!(#name: Self::#function()))))
}

/// Contents of a `#[key(…)]` attribute.
#[derive(Default)]
struct Key {
    default: Option<Expr>,
    unit: Option<LitStr>,
    min: Option<Expr>,
    max: Option<Expr>,
    above: Option<Expr>,
    below: Option<Expr>,
    zero_or: Option<Expr>,
    least: Option<Expr>,
}

impl Key {
    /// Removes the attribute from `field` and parses it.
    ///
    /// # Errors
    /// The attribute has an unknown part.
    fn take(field: &mut Field) -> syn::Result<Self> {
        let mut key = Self::default();
        let own: Vec<_> = field
            .attrs
            .extract_if(.., |attribute| attribute.path().is_ident("key"))
            .collect();
        for attribute in own {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.require_ident()?.to_string();
                if name == "unit" {
                    key.unit = Some(meta.value()?.parse()?);
                    return Ok(());
                }
                let place = match name.as_str() {
                    "default" => &mut key.default,
                    "min" => &mut key.min,
                    "max" => &mut key.max,
                    "above" => &mut key.above,
                    "below" => &mut key.below,
                    "zero_or" => &mut key.zero_or,
                    "least" => &mut key.least,
                    _ => {
                        let known = "unknown part: a key may have default, unit, min, max, above, below, zero_or and least";
                        return Err(Error::new_spanned(&meta.path, known));
                    }
                };
                *place = Some(meta.value()?.parse()?);
                Ok(())
            })?;
        }
        Ok(key)
    }

    /// Returns the `schemars` attribute for the unit and the bounds.
    fn schema(&self, kind: &Type) -> TokenStream {
        let mut parts = Vec::new();
        let bounds: Vec<TokenStream> = [("min", &self.min), ("max", &self.max)]
            .into_iter()
            .filter_map(|(name, bound)| {
                let name = syn::Ident::new(name, proc_macro2::Span::call_site());
                bound.as_ref().map(|bound| quote!(#name = #bound))
            })
            .collect();
        if !bounds.is_empty() {
            let range = quote!(range(#(#bounds),*));
            parts.push(match matches!(kind, Type::Array(_)) || is(kind, "Vec") {
                true => quote!(inner(#range)),
                false => range,
            });
        }
        parts.extend(self.least.as_ref().map(|n| quote!(length(min = #n))));
        let unit = self.unit.as_ref().map(|unit| quote!("unit" = #unit));
        let above = self.above.as_ref().map(|v| quote!("exclusiveMinimum" = #v));
        let below = self.below.as_ref().map(|v| quote!("exclusiveMaximum" = #v));
        // other programs know `minimum`
        let zero_or = (self.zero_or.as_ref()).map(|v| quote!("minimum" = 0.0, "zeroOr" = #v));
        let extended = [unit, above, below, zero_or].into_iter();
        let extended: Vec<_> = extended.flatten().collect();
        if !extended.is_empty() {
            parts.push(quote!(extend(#(#extended),*)));
        }
        match parts.is_empty() {
            true => quote!(),
            false => quote!(#[schemars(#(#parts),*)]),
        }
    }
}

/// Returns `true` for the generic type `name`.
fn is(kind: &Type, name: &str) -> bool {
    match kind {
        Type::Path(path) => path.path.segments.last().is_some_and(|s| s.ident == name),
        _ => false,
    }
}

/// Returns the path of `nestar-deck`.
fn deck_crate() -> TokenStream {
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
fn derives(more: &[&str]) -> TokenStream {
    let deck = deck_crate();
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
