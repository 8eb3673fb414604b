//! Implements `CellFn`, `FaceFn`, `ParticleFn` and `CellState`: functions of a cell, a face or a particle for launch skeletons, and states
//! made of numbers.
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, Expr, Fields, FnArg, GenericParam, Ident, ItemFn, ItemStruct, Lit, Meta,
    MetaNameValue, PathArguments, ReturnType, Type,
};

/// Largest number of numeric parameters; more must be a structure.
const MOST_NUMBERS: usize = 8;

/// Types that only the runtime creates.
const PLACES: [&str; 5] = ["Stencil", "FaceStencil", "Place", "Face", "ParticlePlace"];

/// What a function is called for.
#[derive(Clone, Copy, PartialEq)]
enum Subject {
    Cell,
    Face,
    Particle,
}

impl Subject {
    /// Returns the name of the type of places.
    fn place(self) -> &'static str {
        match self {
            Self::Cell => "Place",
            Self::Face => "Face",
            Self::Particle => "ParticlePlace",
        }
    }

    /// Returns the trait, the argument of its `call`, and the place made from it.
    fn given(self, real: &Ident, runtime: &TokenStream) -> (TokenStream, TokenStream, TokenStream) {
        match self {
            Self::Face => {
                let given =
                    quote!(beside: #runtime::BlockFace<'_, #real>, face: &#runtime::Face<#real>);
                (quote!(FaceFn), given, quote!(face,))
            }
            Self::Cell => {
                let given = quote!(inputs: &impl #runtime::CellInputs<#real>);
                (quote!(CellFn), given, quote!(&inputs.place(),))
            }
            Self::Particle => {
                let given = quote!(inputs: &impl #runtime::ParticleInputs<#real>);
                (quote!(ParticleFn), given, quote!(&inputs.place(),))
            }
        }
    }
}

/// Parts of the signature of a function of a cell, a face or a particle.
struct CellFnParts<'a> {
    real: &'a Ident,
    reads: Reads<'a>,
    place: bool,
    /// What it can be called for.
    subjects: &'static [Subject],
    /// What follows: a structure, or a number of numbers.
    given: Result<&'a Type, usize>,
    result: &'a Type,
}

/// States that a function takes.
enum Reads<'a> {
    /// None: the function takes the place only.
    Nothing,
    /// States of the cell.
    Cell(&'a Type),
    /// The stencil of the first field, then states of other fields in the cell.
    Stencil(Block, Option<&'a Type>),
    /// States beside a face.
    FaceStencil(Block),
}

/// A type `&Stencil<R, STATE, REACH>` or `&FaceStencil<…>`.
struct Block {
    state: TokenStream,
    reach: TokenStream,
}

impl Reads<'_> {
    /// Returns the type of all states, and the reach of the function.
    fn types(&self, real: &Ident) -> (TokenStream, TokenStream) {
        match self {
            Self::Nothing => (quote!([#real; 0]), quote!(0)),
            Self::Cell(state) => (quote!(#state), quote!(0)),
            Self::Stencil(Block { state, reach }, others) => {
                let others = others.map(|others| match others {
                    Type::Tuple(all) => all.elems.to_token_stream(),
                    one => one.to_token_stream(),
                });
                let all = others.map_or(state.clone(), |others| quote!((#state, #others)));
                (all, reach.clone())
            }
            Self::FaceStencil(Block { state, reach }) => (state.clone(), reach.clone()),
        }
    }

    /// Returns the function's arguments, made from the argument of `call`.
    fn arguments(&self, real: &Ident, runtime: &TokenStream) -> TokenStream {
        let read = |state: &Type, field: usize| quote!(<#state as #runtime::CellState<#real>>::read(&mut |field, c| inputs.value(field, c), #field, 0));
        match self {
            Self::Nothing => TokenStream::new(),
            Self::Cell(state) => {
                let state = read(state, 0);
                quote!(#state,)
            }
            Self::Stencil(_, others) => {
                let others = others.map(|others| read(others, 1)).into_iter();
                quote!(&#runtime::Stencil::new(inputs.around()), #(#others,)*)
            }
            Self::FaceStencil(_) => quote!(&#runtime::FaceStencil::new(beside),),
        }
    }
}

/// Returns the implementations of `CellFn`, `FaceFn` and `ParticleFn` for the companion of `f`. Other signatures give nothing.
pub fn implementation(f: &ItemFn, runtime: &TokenStream) -> TokenStream {
    let Some(parts) = parts(f) else {
        return TokenStream::new();
    };
    let subjects = parts.subjects.iter();
    subjects
        .map(|subject| parts.implementation(f, *subject, runtime))
        .collect()
}

impl CellFnParts<'_> {
    /// Returns the implementation for a subject.
    fn implementation(&self, f: &ItemFn, subject: Subject, runtime: &TokenStream) -> TokenStream {
        let (real, result) = (self.real, self.result);
        let (state, reach) = self.reads.types(real);
        let states = self.reads.arguments(real, runtime);
        let name = &f.sig.ident;
        let companion = format_ident!("{}", name, span = name.span());
        let (implemented, given, place) = subject.given(real, runtime);
        let place = self.place.then_some(place);
        let doc = first_paragraph(&f.attrs);
        let (parameters, arguments) = match self.given {
            Ok(structure) => (in_double(structure.to_token_stream(), real), quote!(p)),
            Err(numbers) => {
                let index = 0..numbers;
                (quote!([f64; #numbers]), quote!(#(p[#index]),*))
            }
        };
        let reach = (subject != Subject::Particle).then(|| quote!(const REACH: usize = #reach;));
        quote! {
            #[diagnostic::do_not_recommend]
            impl #runtime::#implemented for #companion {
                type State<#real: #runtime::Real> = #state;
                type Parameters = #parameters;
                type Result<#real: #runtime::Real> = #result;
                const ITEM: &'static #runtime::Item = #companion::ITEM;
                const DOC: &'static str = #doc;
                #reach
                #[inline(always)]
                #[allow(unused_variables, reason = "a function need not take its place")]
                fn call<#real: #runtime::Real>(
                    #given,
                    p: &<#parameters as #runtime::Precise>::In<#real>,
                ) -> #result {
                    #name::<#real>(#states #place #arguments)
                }
            }
        }
    }
}

/// Returns the first paragraph of a documentation, in one line.
fn first_paragraph(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(MetaNameValue {
            path,
            value: Expr::Lit(text),
            ..
        }) if path.is_ident("doc") => match &text.lit {
            Lit::Str(text) => Some(text.value().trim().to_string()),
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    let first = lines
        .split(String::is_empty)
        .find(|lines| !lines.is_empty());
    first.unwrap_or_default().join(" ")
}

fn parts(f: &ItemFn) -> Option<CellFnParts<'_>> {
    let mut generics = f.sig.generics.params.iter();
    let (Some(GenericParam::Type(real)), None) = (generics.next(), generics.next()) else {
        return None;
    };
    let ReturnType::Type(_, result) = &f.sig.output else {
        return None;
    };
    let types = f.sig.inputs.iter().map(|input| match input {
        FnArg::Typed(typed) => Some(&*typed.ty),
        FnArg::Receiver(_) => None,
    });
    let types: Vec<&Type> = types.collect::<Option<_>>()?;
    let real = &real.ident;
    let (reads, mut rest) = reads(&types, real)?;
    let subjects = subjects(&reads);
    let next = rest.first();
    let placed = |subject: &Subject| next.is_some_and(|ty| named(ty, subject.place()));
    let placed = subjects.iter().position(placed);
    let subjects = placed.map_or(subjects, |n| &subjects[n..=n]);
    let place = placed.is_some();
    if place {
        rest = &rest[1..];
    }
    let numbers = rest.len() <= MOST_NUMBERS && rest.iter().all(|ty| is(ty, real));
    let given = match rest {
        _ if numbers => Err(rest.len()),
        [one] if PLACES.iter().all(|place| !named(one, place)) => Ok(shared(one)?),
        _ => return None,
    };
    Some(CellFnParts {
        real,
        reads,
        place,
        subjects,
        given,
        result,
    })
}

/// Returns what a function can be called for by the states that it reads.
fn subjects(reads: &Reads) -> &'static [Subject] {
    match reads {
        Reads::Nothing | Reads::Cell(_) => &[Subject::Cell, Subject::Particle],
        Reads::Stencil(..) => &[Subject::Cell],
        Reads::FaceStencil(_) => &[Subject::Face],
    }
}

/// Parses the states at the front of the parameters. Returns what follows.
fn reads<'a, 'b>(types: &'b [&'a Type], real: &'a Ident) -> Option<(Reads<'a>, &'b [&'a Type])> {
    let (first, mut rest) = types.split_first()?;
    if named(first, "Place") || named(first, "ParticlePlace") {
        return Some((Reads::Nothing, types));
    }
    let Some(ty) = shared(first) else {
        return is_state(first, real).then_some((Reads::Cell(first), rest));
    };
    if let Some(block) = block(ty, "FaceStencil", real) {
        return Some((Reads::FaceStencil(block), rest));
    }
    let block = block(ty, "Stencil", real)?;
    let others = rest.first().copied();
    let others = others.filter(|ty| is_state(ty, real) && !is(ty, real));
    if others.is_some() {
        rest = &rest[1..];
    }
    Some((Reads::Stencil(block, others), rest))
}

fn is_state(ty: &Type, real: &Ident) -> bool {
    by_value(ty) && mentions(ty.to_token_stream(), real)
}

/// Returns `true` for types passed by value, unlike references and functions.
fn by_value(ty: &Type) -> bool {
    matches!(ty, Type::Path(_) | Type::Tuple(_) | Type::Array(_))
}

/// Parses the state and the reach of `NAME<R, S, REACH>`.
fn block(ty: &Type, name: &str, real: &Ident) -> Option<Block> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|s| s.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    let mut arguments = arguments.args.iter().skip(1);
    let mut next = || arguments.next().map(ToTokens::to_token_stream);
    Some(Block {
        state: next().unwrap_or_else(|| quote!(#real)),
        reach: next().unwrap_or_else(|| quote!(1)),
    })
}

/// Returns the type behind a shared reference.
fn shared(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Reference(r) if r.mutability.is_none() && by_value(&r.elem) => Some(&r.elem),
        _ => None,
    }
}

/// Returns `true` for a shared reference to a type of that name.
fn named(ty: &Type, name: &str) -> bool {
    match shared(ty) {
        Some(Type::Path(p)) => p.path.segments.last().is_some_and(|s| s.ident == name),
        _ => false,
    }
}

fn is(ty: &Type, name: &Ident) -> bool {
    matches!(ty, Type::Path(p) if p.path.is_ident(name))
}

/// Returns the type with `f64` in place of the type parameter.
fn in_double(tokens: TokenStream, real: &Ident) -> TokenStream {
    let replace = |token| match token {
        TokenTree::Ident(i) if i == *real => TokenTree::Ident(Ident::new("f64", i.span())),
        TokenTree::Group(g) => {
            TokenTree::Group(Group::new(g.delimiter(), in_double(g.stream(), real)))
        }
        other => other,
    };
    tokens.into_iter().map(replace).collect()
}

fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(i) => i == *name,
        TokenTree::Group(g) => mentions(g.stream(), name),
        _ => false,
    })
}

/// Returns the implementation of `CellState` for a structure with one type parameter. It is void if a member is not a number.
pub fn state(s: &ItemStruct, runtime: &TokenStream) -> TokenStream {
    let mut generics = s.generics.params.iter();
    let (Some(GenericParam::Type(real)), None, Fields::Named(fields)) =
        (generics.next(), generics.next(), &s.fields)
    else {
        return TokenStream::new();
    };
    let (name, real) = (&s.ident, &real.ident);
    let (parameters, arguments, _) = s.generics.split_for_impl();
    let members = fields.named.iter().filter_map(|f| f.ident.as_ref());
    let members: Vec<&Ident> = members.collect();
    let types: Vec<&Type> = fields.named.iter().map(|f| &f.ty).collect();
    let count = quote!(0 #(+ <#types as #runtime::CellState<#real>>::COUNT)*);
    let functions = read_and_write(real, &members, &types, runtime);
    quote! {
        impl #parameters #runtime::CellState<#real> for #name #arguments
        where
            #(#types: #runtime::CellState<#real>,)*
        {
            const COMPONENTS: [usize; 4] = [#count, 0, 0, 0];
            #functions
        }
    }
}

/// Returns the functions of `CellState`, member by member.
fn read_and_write(
    real: &Ident,
    members: &[&Ident],
    types: &[&Type],
    runtime: &TokenStream,
) -> TokenStream {
    let first = |n: usize| {
        let before = &types[..n];
        quote!(first #(+ <#before as #runtime::CellState<#real>>::COUNT)*)
    };
    let firsts: Vec<TokenStream> = (0..types.len()).map(first).collect();
    quote! {
            #[inline(always)]
            fn read(
                get: &mut impl ::core::ops::FnMut(usize, usize) -> #real,
                field: usize,
                first: usize,
            ) -> Self {
                Self { #(#members: #runtime::CellState::<#real>::read(get, field, #firsts),)* }
            }
            #[inline(always)]
            fn write(
                &self,
                set: &mut impl ::core::ops::FnMut(usize, usize, #real),
                field: usize,
                first: usize,
            ) {
                #(#runtime::CellState::<#real>::write(&self.#members, set, field, #firsts);)*
            }
    }
}
