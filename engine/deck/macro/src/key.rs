//! Parses the attribute `#[key(…)]` of a field.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, Field, LitStr, Type};

/// Contents of a `#[key(…)]` attribute.
#[derive(Default)]
pub struct Key {
    pub default: Option<Expr>,
    unit: Option<LitStr>,
    min: Option<Expr>,
    max: Option<Expr>,
    above: Option<Expr>,
    below: Option<Expr>,
    least: Option<Expr>,
}

impl Key {
    /// Removes the attribute from `field` and parses it.
    ///
    /// # Errors
    /// The attribute has an unknown part.
    pub fn take(field: &mut Field) -> syn::Result<Self> {
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
                    "least" => &mut key.least,
                    _ => {
                        let known = "unknown part: a key may have default, unit, min, max, above, below and least";
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
    pub fn schema(&self, kind: &Type) -> TokenStream {
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
            parts.push(match is_list(kind) {
                true => quote!(inner(#range)),
                false => range,
            });
        }
        parts.extend(self.least.as_ref().map(|n| quote!(length(min = #n))));
        let unit = self.unit.as_ref().map(|unit| quote!("unit" = #unit));
        let above = self.above.as_ref().map(|v| quote!("exclusiveMinimum" = #v));
        let below = self.below.as_ref().map(|v| quote!("exclusiveMaximum" = #v));
        let extended: Vec<_> = [unit, above, below].into_iter().flatten().collect();
        if !extended.is_empty() {
            parts.push(quote!(extend(#(#extended),*)));
        }
        match parts.is_empty() {
            true => quote!(),
            false => quote!(#[schemars(#(#parts),*)]),
        }
    }
}

fn is_list(kind: &Type) -> bool {
    match kind {
        Type::Array(_) => true,
        Type::Path(path) => path.path.segments.last().is_some_and(|s| s.ident == "Vec"),
        _ => false,
    }
}
