//! States of cells, made of numbers.

/// A state that consists of numbers, in the order of a field's components, or a tuple of such states of several fields.
///
/// [`#[device]`](crate::device) implements it for structures with one type parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the state of a field",
    label = "not a state",
    note = "a state is a number `R`, an array of states, a `#[device]` structure of such members with one type parameter (`S<R>`), \
            or a tuple of the states of two to four fields"
)]
pub trait CellState<R>: Sized {
    /// Number of values of each field.
    const COMPONENTS: [usize; 4];
    /// Number of values of the first field.
    const COUNT: usize = Self::COMPONENTS[0];
    /// Reads the state from field `field` on, and there from component `first` on; `get` receives both.
    fn read(get: &mut impl FnMut(usize, usize) -> R, field: usize, first: usize) -> Self;
    /// Writes the state in the order of [`CellState::read`].
    fn write(&self, set: &mut impl FnMut(usize, usize, R), field: usize, first: usize);
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl CellState<$t> for $t {
            const COMPONENTS: [usize; 4] = [1, 0, 0, 0];
            #[inline(always)]
            fn read(get: &mut impl FnMut(usize, usize) -> $t, field: usize, first: usize) -> Self {
                get(field, first)
            }
            #[inline(always)]
            fn write(&self, set: &mut impl FnMut(usize, usize, $t), field: usize, first: usize) {
                set(field, first, *self);
            }
        }
    )*};
}
number!(f32, f64);

/// Lets functions take structures whose members no field can hold. Using such a structure as a state does not compile.
#[doc(hidden)]
#[macro_export]
macro_rules! no_number {
    ($($t:ty),*) => {$(
        impl<Number> $crate::CellState<Number> for $t {
            const COMPONENTS: [usize; 4] = panic!(
                "the state of a field consists of numbers `R`, arrays and structures of them; integers, `bool` and enums are not allowed"
            );
            fn read(_: &mut impl ::core::ops::FnMut(usize, usize) -> Number, _: usize, _: usize) -> Self {
                ::core::unreachable!()
            }
            fn write(&self, _: &mut impl ::core::ops::FnMut(usize, usize, Number), _: usize, _: usize) {}
        }
    )*};
}
no_number!(i32, u32, i64, u64, usize, bool);

impl<R, T: CellState<R>, const N: usize> CellState<R> for [T; N] {
    const COMPONENTS: [usize; 4] = [N * T::COUNT, 0, 0, 0];
    #[inline(always)]
    fn read(get: &mut impl FnMut(usize, usize) -> R, field: usize, first: usize) -> Self {
        std::array::from_fn(|n| T::read(get, field, first + n * T::COUNT))
    }
    #[inline(always)]
    fn write(&self, set: &mut impl FnMut(usize, usize, R), field: usize, first: usize) {
        for (n, state) in self.iter().enumerate() {
            state.write(set, field, first + n * T::COUNT);
        }
    }
}

macro_rules! tuple {
    ($counts:expr, $($t:ident $n:tt),*) => {
        impl<R, $($t: CellState<R>),*> CellState<R> for ($($t,)*) {
            const COMPONENTS: [usize; 4] = $counts;
            #[inline(always)]
            fn read(get: &mut impl FnMut(usize, usize) -> R, field: usize, _: usize) -> Self {
                ($($t::read(get, field + $n, 0),)*)
            }
            #[inline(always)]
            fn write(&self, set: &mut impl FnMut(usize, usize, R), field: usize, _: usize) {
                $(self.$n.write(set, field + $n, 0);)*
            }
        }
    };
}
tuple!([A::COUNT, B::COUNT, 0, 0], A 0, B 1);
tuple!([A::COUNT, B::COUNT, C::COUNT, 0], A 0, B 1, C 2);
tuple!([A::COUNT, B::COUNT, C::COUNT, D::COUNT], A 0, B 1, C 2, D 3);
