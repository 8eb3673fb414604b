//! Expands `#[deck]` on structs.

use crate::key::Key;
use crate::paths;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::{Attribute, Error, Field, Fields, Ident, ItemStruct};

/// Expands a struct into a deck table.
pub fn table(mut item: ItemStruct) -> syn::Result<TokenStream> {
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
    let derives = paths::derives(&["PartialEq"]);
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
    let schema = key.schema(&kind);
    let Some(default) = key.default else {
        field.attrs.extend(Attribute::parse_outer.parse2(schema)?);
        return Ok(None);
    };
    let function = format_ident!("default_of_{}", name);
    let path = format!("{table}::{function}");
    let both = quote!(#schema #[serde(default = #path)]);
    field.attrs.extend(Attribute::parse_outer.parse2(both)?);
    let made = quote! {
        #[doc(hidden)]
        fn #function() -> #kind {
            #default
        }
    };
    Ok(Some((made, quote!(#name: Self::#function()))))
}
