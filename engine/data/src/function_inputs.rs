//! Inputs of cell functions besides the field on which they are called: other fields, as lists of types, or derived
//! inputs.

use super::criteria::DerivedInputs;
use super::field_spec::FieldSpec;
use super::pool::Field;
use super::storage::Storage;

/// A field whose present state a cell function may read; implemented by every [`Pool`](super::Pool).
pub trait CellSource: Sync {
    /// Returns the storage of the values.
    fn values(&self) -> &Storage;
    /// Returns the bank with the present state of `level`.
    fn present_bank(&self, level: usize) -> usize;
    /// Returns the number of components.
    fn count(&self) -> usize;
    /// Returns the name of the field.
    fn name(&self) -> &'static str;
    /// Returns the description of the field.
    fn spec(&self) -> &FieldSpec;
}

/// Inputs of a cell function: `()`, a field, a tuple of two or three fields, or [`DerivedInputs`].
///
/// They are the states after the first one in the tuple of the function. All fields have the same device and
/// precision; the function reads their present states in its own cell.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no input of a cell function",
    label = "not an input",
    note = "expected `()`, `&field`, `(&field, &field)`, `(&field, &field, &field)`, or `&numbers` with `DerivedInputs`"
)]
pub trait FunctionInputs {
    /// Returns the inputs of one call.
    fn list(&self) -> InputList<'_>;
}

/// Largest number of fields besides the first one.
const OTHERS: usize = 3;

/// The inputs of one call of a cell function.
#[derive(Clone, Copy, Default)]
pub struct InputList<'a> {
    /// Fields in the order of the states; the used ones come first.
    fields: [Option<&'a dyn CellSource>; OTHERS],
    /// Derived inputs in place of fields; they are the second state.
    pub(super) numbers: Option<&'a DerivedInputs>,
}

impl<'a> InputList<'a> {
    /// Creates a list of fields; the used ones come first.
    #[must_use]
    pub fn of_fields(fields: [Option<&'a dyn CellSource>; OTHERS]) -> Self {
        Self {
            fields,
            numbers: None,
        }
    }

    /// Adds derived inputs, if there are any. They cannot be combined with fields.
    #[must_use]
    pub fn with_numbers(self, numbers: Option<&'a DerivedInputs>) -> Self {
        Self { numbers, ..self }
    }

    /// Returns the fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &'a dyn CellSource> + use<'a> {
        self.fields.into_iter().flatten()
    }

    /// Returns the number of states.
    pub(super) fn count(&self) -> usize {
        self.fields().count() + usize::from(self.numbers.is_some())
    }
}

impl FunctionInputs for InputList<'_> {
    fn list(&self) -> InputList<'_> {
        *self
    }
}

impl FunctionInputs for () {
    fn list(&self) -> InputList<'_> {
        InputList::default()
    }
}

impl FunctionInputs for &DerivedInputs {
    fn list(&self) -> InputList<'_> {
        InputList {
            numbers: Some(self),
            ..InputList::default()
        }
    }
}

impl<A: CellSource> FunctionInputs for &A {
    fn list(&self) -> InputList<'_> {
        InputList::of_fields([Some(*self), None, None])
    }
}

impl<A: CellSource, B: CellSource> FunctionInputs for (&A, &B) {
    fn list(&self) -> InputList<'_> {
        InputList::of_fields([Some(self.0), Some(self.1), None])
    }
}

impl<A: CellSource, B: CellSource, C: CellSource> FunctionInputs for (&A, &B, &C) {
    fn list(&self) -> InputList<'_> {
        InputList::of_fields([Some(self.0), Some(self.1), Some(self.2)])
    }
}

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
