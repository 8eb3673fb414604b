//! Implements traits of structures: `Parameter` and `Precise` for kernel parameters, `Pick` for values of an `if` on lanes.

use crate::subset::primitive;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Fields, GenericParam, Ident, Index, ItemEnum, ItemStruct, Type};

/// Returns the implementations for a structure with named fields.
pub fn implementations(s: &ItemStruct, runtime: &TokenStream) -> TokenStream {
    let Fields::Named(fields) = &s.fields else {
        return TokenStream::new();
    };
    let names: Vec<&Ident> = fields
        .named
        .iter()
        .filter_map(|f| f.ident.as_ref())
        .collect();
    let types: Vec<&Type> = fields.named.iter().map(|f| &f.ty).collect();
    let parameter = parameter(s, &names, &types, runtime);
    let precise = precise(s, &names, &types, runtime);
    quote!(#parameter #precise)
}

fn parameter(
    s: &ItemStruct,
    names: &[&Ident],
    types: &[&Type],
    runtime: &TokenStream,
) -> TokenStream {
    let (name, (generics, arguments, _)) = (&s.ident, s.generics.split_for_impl());
    let layout = quote!(#runtime::StructLayout::new()#(.with::<#types>())*);
    // bounds without a parameter would cause further errors
    let generic =
        (!s.generics.params.is_empty()).then(|| quote!(where #(#types: #runtime::Parameter,)*));
    let whole = in_memory(s).then(|| {
        quote! {
            const _: () = assert!(
                ::core::mem::size_of::<#name>() == <#name as #runtime::Parameter>::BYTES,
                "the structure has another layout than the device's"
            );
        }
    });
    quote! {
        impl #generics #runtime::Parameter for #name #arguments #generic {
            const BYTES: usize = #layout.bytes();
            const ALIGNMENT: usize = #layout.alignment();
            #[inline]
            #[allow(unused_mut, unused_variables, reason = "a structure may have no fields")]
            fn write(&self, to: &mut [u8]) {
                let mut members = #runtime::Members::new(to);
                #(members.write(&self.#names);)*
            }
            #[inline]
            #[allow(unused_variables, reason = "a structure may have no fields")]
            fn bind(
                &mut self,
                place: &mut dyn ::core::ops::FnMut(&::std::sync::Arc<[f64]>) -> u64,
            ) {
                #(#runtime::Parameter::bind(&mut self.#names, place);)*
            }
        }
        #whole
    }
}

/// Returns the implementations for an enum without data, an `int` in C++.
pub fn of_enum(e: &ItemEnum, runtime: &TokenStream) -> TokenStream {
    let name = &e.ident;
    let variants: Vec<&Ident> = e.variants.iter().map(|v| &v.ident).collect();
    quote! {
        impl #runtime::Parameter for #name {
            const BYTES: usize = 4;
            const ALIGNMENT: usize = 4;
            #[inline]
            fn write(&self, to: &mut [u8]) {
                let number = match self {
                    #(Self::#variants => Self::#variants as i32,)*
                };
                #runtime::Parameter::write(&number, to);
            }
        }
        #runtime::no_number!(#name);
        impl #runtime::Precise for #name {
            type In<PreciseReal: #runtime::Real> = Self;
            #[inline]
            fn precise<PreciseReal: #runtime::Real>(&self) -> Self {
                match self {
                    #(Self::#variants => Self::#variants,)*
                }
            }
        }
    }
}

/// Returns `true` if values of the structure are stored in device memory as they are, so that Rust must use the C layout.
fn in_memory(s: &ItemStruct) -> bool {
    let c = |a: &syn::Attribute| {
        a.path().is_ident("repr") && a.to_token_stream().to_string().contains("(C)")
    };
    s.generics.params.is_empty() && s.attrs.iter().any(c)
}

fn precise(
    s: &ItemStruct,
    names: &[&Ident],
    types: &[&Type],
    runtime: &TokenStream,
) -> TokenStream {
    let Some(real) = only_type(s) else {
        return TokenStream::new();
    };
    let name = &s.ident;
    let (of_double, of_real) = match real {
        Some(_) => (quote!(#name<f64>), quote!(#name<PreciseReal>)),
        None => (quote!(#name), quote!(#name)),
    };
    let members = names.iter().zip(types).map(|(member, ty)| {
        let value = converted(&quote!(self.#member), ty, runtime);
        quote!(#member: #value)
    });
    quote! {
        impl #runtime::Precise for #of_double {
            type In<PreciseReal: #runtime::Real> = #of_real;
            #[inline]
            fn precise<PreciseReal: #runtime::Real>(&self) -> #of_real {
                #name { #(#members,)* }
            }
        }
    }
}

/// Returns the only type parameter, if any, of a structure without other parameters.
fn only_type(s: &ItemStruct) -> Option<Option<&Ident>> {
    let mut parameters = s.generics.params.iter();
    match (parameters.next(), parameters.next()) {
        (None, _) => Some(None),
        (Some(GenericParam::Type(t)), None) => Some(Some(&t.ident)),
        _ => None,
    }
}

/// Returns the assertion that the device's compiler gives the structure the size that [`parameter`] writes.
pub fn assertion(s: &ItemStruct, runtime: &TokenStream) -> Option<TokenStream> {
    let name = &s.ident;
    let one = |rust: TokenStream, cpp: &str| {
        let text = format!("\nstatic_assert(sizeof({name}{cpp}) == ");
        quote! {
            #runtime::TextPiece::Text(#text),
            #runtime::TextPiece::Number(<#rust as #runtime::Parameter>::BYTES),
            #runtime::TextPiece::Text(", \"the layout of Rust\");")
        }
    };
    Some(match only_type(s)? {
        None => one(quote!(#name), ""),
        Some(_) => {
            let (single, double) = (
                one(quote!(#name<f32>), "<float>"),
                one(quote!(#name<f64>), "<double>"),
            );
            quote!(#single, #double)
        }
    })
}

/// Returns a value of a member type in the precision `PreciseReal`.
fn converted(value: &TokenStream, ty: &Type, runtime: &TokenStream) -> TokenStream {
    match ty {
        Type::Array(array) => {
            let element = converted(&quote!(#value[n]), &array.elem, runtime);
            quote!(::core::array::from_fn(|n| #element))
        }
        Type::Tuple(tuple) => {
            let elements = tuple.elems.iter().enumerate().map(|(n, ty)| {
                let n = Index::from(n);
                converted(&quote!(#value.#n), ty, runtime)
            });
            quote!((#(#elements),*))
        }
        Type::Path(p) => {
            let last = p.path.segments.last().map(|s| s.ident.to_string());
            match last.as_deref() {
                Some("Address") => quote!(#runtime::Address::from(#value.number())),
                Some(name) if primitive(name).is_some() => quote!(#value),
                _ => quote!(#runtime::Precise::precise::<PreciseReal>(&#value)),
            }
        }
        _ => quote!(#value),
    }
}

/// Returns the field-wise implementation of `Pick` for a structure with one type parameter.
///
/// It applies if all fields implement `Pick` and the structure is `Copy`; otherwise it is void, not an error.
pub fn pick(s: &ItemStruct, runtime: &TokenStream) -> TokenStream {
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
