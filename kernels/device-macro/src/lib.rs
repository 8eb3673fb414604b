//! The attribute `#[device]`: one numerical function, in Rust for the CPU and as CUDA C++ text for the GPU.
//!
//! `translate` writes the text, `rust_side` adapts the Rust function, `companion` combines both in the output; `cell_fn` and `parameter`
//! add trait implementations. Users reach the attribute through the crate `nestar-device`.
use manifest::identifier;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, Item, spanned::Spanned};

mod cell_fn;
mod choice;
mod code;
mod companion;
mod errors;
mod infer;
mod manifest;
mod parameter;
mod rust_side;
mod subset;
mod translate;

/// Makes a free function, a structure with named fields, an enum without data, a constant or a trait implementation usable on devices as
/// well.
///
/// The item stays ordinary Rust. A companion of the same name in Rust's other namespace holds its CUDA C++ text: `use m::f` imports both,
/// and `f::ITEM` (for a structure, the constant `S`) is the text. Everything that the item names must be marked too. The supported subset
/// of Rust:
///
/// - **Generics**: type parameters bounded by `Real` (one number) or `Lane` (possibly several, in SIMD lanes); const parameters; type
///   parameters that provide functions (below). A structure's type parameters need no bound.
/// - **Types**: those parameters, `f32`, `f64`, `bool`, `i32`, `u32`, `i64`, `u64`, `usize`, arrays `[T; N]`, tuples of 2 to 4, `#[device]`
///   structures and enums without data; `&T` and `&mut T` for parameters only; `Address<T>` for members of structures that only launch
///   skeletons read (`Address<u8>`: untyped bytes).
/// - **Literals**: `0.5` is a number of the only type parameter; it is an `f64` in a function without one and in the argument of
///   `R::lit(…)`. An integer has the type that rustc infers from the function itself. If the type follows only from the signatures of other
///   functions, the attribute requires a declaration. Floating-point numbers need a point: write `2.0`.
/// - **Statements**: `let` with destructuring, assignment (also to a tuple), `if`, `match` on integers and enums, `for i in a..b`, `while`,
///   `loop`, `break` (with the value of a `loop`), `continue`, `return`, `debug_assert!` (Rust side only).
/// - **Expressions**: arithmetic, comparison, logic, casts, blocks, `if` and `match` as values, structure literals with `..base`, `[x; N]`,
///   `==` of numbers, arrays and tuples, calls of marked functions, `R::lit`, `R::from_i32` and similar, `R::EPSILON`, `f64::from_bits`.
/// - **Methods**: sqrt, abs, min, max, clamp, powi, copysign, signum, recip, is_nan; for one number also mul_add, floor, ceil, trunc,
///   is_finite, frexp, ldexp, to_i32, to_f64, to_bits; `len` of arrays and tables; wrapping_add, wrapping_sub and wrapping_mul of integers.
///   Methods of numbers call the traits of `nestar-device`, never the inherent methods of `f32` and `f64`.
/// - **Lanes**: with `R: Lane`, an `if` on numbers is a value with an `else`; both branches run and one is selected.
/// - **Constants**: scalars, tuples, and arrays written out or `[x; N]`, made of literals, other constants, operators and casts.
/// - **Errors**: integer overflow, shifts by more than the width and divisions by 0 are errors, as in Rust. Devices do not detect them.
///
/// Functions can be selected by a type, for example an equation of state or a cooling law, with a trait of functions and constants without
/// `self`. The trait needs no attribute. Each `#[device] impl Law for Type` provides a choice, and the text has one instance for each.
/// Default implementations of the trait are not available in the text: each `impl` must have all functions and constants that are used. A
/// type may provide the functions of one trait only.
///
/// ```text
/// trait Law { fn rate<R: Real>(temperature: R) -> R; }
/// struct Bremsstrahlung;
/// #[device]
/// impl Law for Bremsstrahlung { fn rate<R: Real>(temperature: R) -> R { temperature.sqrt() } }
/// #[device]
/// fn cooled<R: Real, L: Law>(energy: R, dt: R) -> R { energy - dt * L::rate(energy) }
/// #[device]
/// fn cool<R: Real>(energy: R, dt: R) -> R { cooled::<R, Bremsstrahlung>(energy, dt) }
/// ```
///
/// A structure implements `Parameter`: a launch can take it, or a structure that contains it, and the text asserts its size.
///
/// A function `fn f<R: Real>(state: S<R>, at: &Place<R>, p: &P<R>) -> T` can be launched on the cells of a field, because its companion
/// type implements `CellFn`. `at` and `p` are optional, and numbers may replace `p`. With `at: &ParticlePlace<R>` it can be launched on
/// particles (`ParticleFn`), and without `at` on both. The attribute works in crates that depend on
/// `nestar-device` or only on `nestar`.
#[proc_macro_attribute]
pub fn device(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let attribute: TokenStream = attribute.into();
    let item: Item = match syn::parse(item) {
        Ok(i) => i,
        Err(e) => return e.to_compile_error().into(),
    };
    let mut out = match item {
        Item::Fn(f) => companion::function(f),
        Item::Struct(s) => companion::structure(s),
        Item::Const(c) => companion::constant(c),
        Item::Enum(e) => companion::enumeration(e),
        Item::Impl(i) => choice::implementation(i),
        other => syn::Error::new(
            other.span(),
            "#[device] goes on a free `fn`, a `struct` with named fields, an `enum` without data, a `const` or an \
             `impl Trait for Type` (the trait itself needs none)",
        )
        .to_compile_error(),
    };
    if !attribute.is_empty() {
        let error = syn::Error::new(attribute.span(), "#[device] takes no arguments");
        out.extend(error.to_compile_error());
    }
    out.into()
}

/// Returns the path of the runtime crate as seen from the crate being compiled.
///
/// A crate that depends on `nestar-device` (under any name) uses it directly. One that depends only on the facade `nestar` uses the
/// facade's re-export `device_runtime`.
fn runtime() -> TokenStream {
    let named = |name: String| Ident::new(&name, Span::call_site());
    if let Some(name) = identifier("nestar-device").map(named) {
        return quote!(::#name);
    }
    match identifier("nestar").map(named) {
        Some(name) => quote!(::#name::device_runtime),
        // without either dependency rustc's own "unresolved crate" error is the clearest
        None => quote!(::nestar_device),
    }
}
