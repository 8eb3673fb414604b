//! The attribute `#[device]`: one numerical function, in Rust for the CPU and as CUDA C++ text for the GPU.
//!
//! `translate` writes the text, `rust_side` adapts the Rust function, `companion` puts both into the output; `cell_fn`,
//! `parameter` and `pick` add the trait implementations. Users reach the attribute through the crate `nestar-device`.
use proc_macro2::TokenStream;
use syn::{Item, spanned::Spanned};

mod cell_fn;
mod code;
mod companion;
mod parameter;
mod paths;
mod pick;
mod rust_side;
mod subset;
mod translate;

/// Marks a free function, a structure with named fields or a constant as usable on the device too.
///
/// The item stays ordinary Rust; a companion of the same name in Rust's other namespace carries its CUDA C++ text, so
/// that `use m::f` imports both and `f::ITEM` (for a structure, the constant `S`) is the text. Everything that the item
/// names must be marked too. The subset of Rust:
///
/// - **Generics**: type parameters bounded by `Real` (one number) or `Lane` (perhaps several, in SIMD lanes); const parameters.
///   A structure's type parameters need no bound.
/// - **Types**: those parameters, `f32`, `f64`, `bool`, `i32`, `u32`, `i64`, `u64`, `usize`, arrays `[T; N]`, tuples of 2 to
///   4, `#[device]` structures; `&T` and `&mut T` for parameters only; `Address<T>` for members of structures that only
///   launch skeletons read (`Address<u8>`: bytes of any meaning).
/// - **Literals**: `0.5` is a number of the only type parameter, an `f64` in a function without one and in the argument of
///   `R::lit(…)`. An integer whose type only inference knows is refused.
/// - **Statements**: `let` with destructuring, assignment, `if`, `match` on integers, `for i in a..b`, `while`, `loop`,
///   `break`, `continue`, `return`, `debug_assert!` (Rust side only).
/// - **Expressions**: arithmetic, comparison, logic, casts, blocks, `if` and `match` as values, structure literals with
///   `..base`, calls of marked functions, `R::lit`, `R::from_i32` and its like, `R::EPSILON`, `f64::from_bits`.
/// - **Methods**: sqrt, abs, min, max, clamp, powi, copysign, signum, recip, is_nan; for one number also mul_add, floor,
///   ceil, trunc, is_finite, frexp, ldexp, to_i32, to_f64, to_bits. They are calls of our own traits, never of the inherent
///   methods of `f32` and `f64`.
/// - **Lanes**: with `R: Lane`, an `if` on numbers is a value with an `else`; both branches run and one is selected.
/// - **Constants**: scalars, and arrays written out in full.
///
/// A structure is a `Parameter`: a launch may be given it, or a structure made of it, and the text asserts its size.
///
/// A function `fn f<R: Real>(state: S<R>, at: &Place<R>, p: &P<R>) -> T`, of which `at` and `p` may be left out or numbers take
/// the place of `p`, can be launched on the cells of a field: its companion type implements `CellFn`. The attribute works in crates that depend on `nestar-device` or only on `nestar`.
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
        other => syn::Error::new(
            other.span(),
            "#[device] goes on a free `fn`, a `struct` with named fields or a `const`",
        )
        .to_compile_error(),
    };
    if !attribute.is_empty() {
        let error = syn::Error::new(attribute.span(), "#[device] takes no arguments");
        out.extend(error.to_compile_error());
    }
    out.into()
}
