//! Implements `Pick`: a structure of lanes can be the value of an `if` on lanes.
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Fields, GenericParam, ItemStruct};

/// Returns the field-wise implementation of `Pick` for a structure with one type parameter.
///
/// It applies if all fields implement `Pick` and the structure is `Copy`; otherwise it is void, not an error.
pub fn implementation(s: &ItemStruct, runtime: &TokenStream) -> TokenStream {
    let mut reals = s.generics.params.iter().filter_map(|p| match p {
        GenericParam::Type(t) => Some(&t.ident),
        _ => None,
    });
    let (Some(real), None, Fields::Named(fields)) = (reals.next(), reals.next(), &s.fields) else {
        return TokenStream::new();
    };
    let (parameters, arguments, _) = s.generics.split_for_impl();
    let name = &s.ident;
    let names: Vec<_> = fields
        .named
        .iter()
        .filter_map(|f| f.ident.as_ref())
        .collect();
    let types = fields.named.iter().map(|f| &f.ty);
    quote! {
        impl #parameters #runtime::Pick<#real> for #name #arguments
        where
            #real: #runtime::Lane,
            Self: ::core::marker::Copy,
            #(#types: #runtime::Pick<#real>,)*
        {
            #[inline(always)]
            fn pick(m: <#real as #runtime::Num>::Mask, a: Self, b: Self) -> Self {
                #name { #(#names: #runtime::Pick::pick(m, a.#names, b.#names),)* }
            }
        }
    }
}
