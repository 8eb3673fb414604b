//! Conversion of parameters to the precision of a field.
use crate::{Parameter, Real};

/// Parameters in double precision that a launch converts to the precision of its field.
///
/// [`#[device]`](crate::device) implements it for a structure `S<f64>` with one type parameter (members of that type are rounded, others
/// stay) and for one without any.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the parameters of a `#[device]` function",
    label = "not valid as parameters",
    note = "parameters are a `#[device]` structure with one type parameter (`P<R>`) or none, of numbers, integers, flags, enums, arrays and \
            `Table<R>`; or up to 8 numbers"
)]
pub trait Precise {
    /// The same type in precision `R`.
    type In<R: Real>: Parameter + Sync;
    /// Returns the parameters in precision `R`.
    fn precise<R: Real>(&self) -> Self::In<R>;
}

impl Precise for f64 {
    type In<R: Real> = R;
    fn precise<R: Real>(&self) -> R {
        R::lit(*self)
    }
}

impl<const N: usize> Precise for [f64; N] {
    type In<R: Real> = [R; N];
    fn precise<R: Real>(&self) -> [R; N] {
        self.map(R::lit)
    }
}
