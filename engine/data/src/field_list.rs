//! Lists of fields as type parameters of registered functions.

use super::pool::Field;

/// A field, or a tuple of two or three fields, as a type parameter.
///
/// A function of the list reads the states of all fields in this order. It changes or reduces the first one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a field nor a tuple of two or three fields",
    label = "not a list of fields"
)]
pub trait FieldList: 'static {
    /// First field.
    type First: Field;
    /// Tuple of the other fields.
    type Others: 'static;
}

impl<A: Field> FieldList for A {
    type First = A;
    type Others = ();
}

impl<A: Field, B: Field> FieldList for (A, B) {
    type First = A;
    type Others = (B,);
}

impl<A: Field, B: Field, C: Field> FieldList for (A, B, C) {
    type First = A;
    type Others = (B, C);
}
