//! `MapFn`: the companions of cell-wise maps `fn f<R: Real>(state: S<R>, p1: R, …) -> S<R>` can be handed to a launcher.
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{FnArg, GenericParam, Ident, ItemFn, ReturnType, Type};

/// More scalar parameters than this are a structure's job.
const MAX_PARAMETERS: usize = 8;

/// The implementation of `MapFn` for the companion of `f`, or nothing when the signature is not a cell-wise map.
pub fn implementation(f: &ItemFn, runtime: &TokenStream) -> TokenStream {
    let Some((real, state, parameters)) = cell_map(f) else {
        return TokenStream::new();
    };
    let name = &f.sig.ident;
    let companion = format_ident!("{}", name, span = name.span());
    let index = 0..parameters;
    quote! {
        impl #runtime::MapFn for #companion {
            type State<#real: #runtime::Real> = #state;
            const PARAMETERS: usize = #parameters;
            const ITEM: &'static #runtime::Item = #companion::ITEM;
            #[inline(always)]
            fn call<#real: #runtime::Real>(state: #state, p: &[#real]) -> #state {
                #name::<#real>(state, #(p[#index]),*)
            }
        }
    }
}

/// Name of the real type, type of the state and number of scalar parameters of a cell-wise map.
fn cell_map(f: &ItemFn) -> Option<(&Ident, &Type, usize)> {
    let mut generics = f.sig.generics.params.iter();
    let (Some(GenericParam::Type(real)), None) = (generics.next(), generics.next()) else {
        return None;
    };
    let ReturnType::Type(_, returned) = &f.sig.output else {
        return None;
    };
    let mut types = f.sig.inputs.iter().map(|input| match input {
        FnArg::Typed(typed) => Some(&*typed.ty),
        FnArg::Receiver(_) => None,
    });
    let state = types.next()??;
    if matches!(state, Type::Reference(_)) || !same(state, &**returned) {
        return None;
    }
    let mut parameters = 0;
    for ty in types {
        if !same(ty?, &real.ident) {
            return None;
        }
        parameters += 1;
    }
    (parameters <= MAX_PARAMETERS).then_some((&real.ident, state, parameters))
}

fn same(a: &impl ToTokens, b: &impl ToTokens) -> bool {
    a.to_token_stream().to_string() == b.to_token_stream().to_string()
}
