//! Functions of one particle, as types.
use crate::{CellState, Item, Precise, Real, device};

/// Describes identity, position and time of a particle.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParticlePlace<R> {
    /// Identity, unique in the species for the whole run.
    pub id: u64,
    /// Position, code length.
    pub position: [R; 3],
    /// Width of a cell of the level along each axis, code length.
    pub width: [R; 3],
    /// Level that moves the particle.
    pub level: i32,
    /// Simulation time at the beginning of the step.
    pub time: f64,
    /// Length of the step; 0 outside one.
    pub dt: R,
    /// Numbers that follow the simulation time, in double precision; 1 where no plugin defines them.
    pub numbers: [f64; 2],
}

/// Provides the arguments of a function of a particle.
pub trait ParticleInputs<R> {
    /// Returns a number of a member of the state: of the whole state, or of a member of a tuple.
    fn value(&self, member: usize, number: usize) -> R;
    /// Returns the place of the particle.
    fn place(&self) -> ParticlePlace<R>;
}

/// A function of one particle, as a type:
///
/// ```text
/// fn f<R: Real>(state: S<R>, at: &ParticlePlace<R>, p: &P<R>) -> T      // `at` and `p` are optional
/// fn f<R: Real>(state: S<R>, at: &ParticlePlace<R>, p1: R, …) -> T      // numbers instead of a structure
/// fn f<R: Real>(at: &ParticlePlace<R>, p: &P<R>) -> T                   // of the place only
/// ```
///
/// `S` is made of numbers: the mass, the velocity, and the chosen scalars, in this order. An update returns a state, a reduction a number.
///
/// [`#[device]`](crate::device) implements the trait for the companion type `f` of every such function, as it does
/// [`CellFn`](crate::CellFn). A function without a place is a function of a cell as well.
///
/// ```compile_fail,E0277
/// # use nestar_device::{ParticleFn, Place, Real, device};
/// #[device]
/// fn cool<R: Real>(u: [R; 4], at: &Place<R>, rate: R) -> [R; 4] {
///     u
/// }
///
/// fn launched<F: ParticleFn>() {}
/// launched::<cool>(); // a particle has a `ParticlePlace`
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `#[device]` function of a particle",
    label = "not a function of a particle",
    note = "expected `#[device] fn f<R: Real>(s: S<R>, at: &ParticlePlace<R>, p: &P<R>) -> T` in this order; `at` and `p` are optional",
    note = "`S` has the mass, the velocity and the chosen scalars: `Body<R>`, or a `#[device]` structure or tuple that begins with it",
    note = "`p: &P<R>` is a `#[device]` structure; up to 8 numbers of type `R` may replace it, but not `f64`, integers or `bool`"
)]
pub trait ParticleFn: 'static {
    /// State that the function reads.
    type State<R: Real>: CellState<R>;
    /// Parameters in double precision; numbers form an array.
    type Parameters: Precise;
    /// Return type.
    type Result<R: Real>;
    /// CUDA C++ text.
    const ITEM: &'static Item;
    /// First paragraph of its documentation, in one line.
    const DOC: &'static str;
    /// Calls the function.
    fn call<R: Real>(
        inputs: &impl ParticleInputs<R>,
        p: &<Self::Parameters as Precise>::In<R>,
    ) -> Self::Result<R>;
}
