//! Parameters of kernels: plain data in the memory layout of the device's compiler.
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Data that can be a kernel parameter or a part of one.
///
/// [`#[device]`](crate::device) implements it for structures whose fields implement it. The text of the structure asserts that the device's
/// compiler gives it the same size.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given to a kernel",
    label = "not a valid kernel parameter",
    note = "kernels take numbers, integers, flags, arrays `[T; N]`, tuples, `Table<R>` and `#[device]` structures and enums of them"
)]
pub trait Parameter {
    /// Size in bytes, a multiple of the alignment.
    const BYTES: usize;
    /// Alignment in bytes.
    const ALIGNMENT: usize;
    /// Writes it to `to`, which has `BYTES` zero bytes. Panics if there are fewer.
    fn write(&self, to: &mut [u8]);
    /// Sets the address of each [`Table`](crate::Table) in it; `place` returns the address of values on the launch's device.
    #[inline]
    fn bind(&mut self, _place: &mut dyn FnMut(&Arc<[f64]>) -> u64) {}
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl Parameter for $t {
            const BYTES: usize = size_of::<$t>();
            const ALIGNMENT: usize = size_of::<$t>();
            #[inline]
            fn write(&self, to: &mut [u8]) {
                to[..Self::BYTES].copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}
number!(f32, f64, i32, u32, i64, u64, usize);

impl Parameter for bool {
    const BYTES: usize = 1;
    const ALIGNMENT: usize = 1;
    #[inline]
    fn write(&self, to: &mut [u8]) {
        to[0] = u8::from(*self);
    }
}

impl<T: Parameter, const N: usize> Parameter for [T; N] {
    // as in C++, an empty array takes a byte
    const BYTES: usize = if N == 0 { 1 } else { N * T::BYTES };
    const ALIGNMENT: usize = if N == 0 { 1 } else { T::ALIGNMENT };
    #[inline]
    fn write(&self, to: &mut [u8]) {
        for (value, to) in self.iter().zip(to.chunks_exact_mut(T::BYTES)) {
            value.write(to);
        }
    }
    fn bind(&mut self, place: &mut dyn FnMut(&Arc<[f64]>) -> u64) {
        self.iter_mut().for_each(|value| value.bind(place));
    }
}

macro_rules! tuple {
    ($($t:ident $n:tt),*) => {
        impl<$($t: Parameter),*> Parameter for ($($t,)*) {
            const BYTES: usize = StructLayout::new()$(.with::<$t>())*.bytes();
            const ALIGNMENT: usize = StructLayout::new()$(.with::<$t>())*.alignment();
            #[inline]
            fn write(&self, to: &mut [u8]) {
                let mut members = Members::new(to);
                $(members.write(&self.$n);)*
            }
        }
    };
}
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

/// Address of values of type `T` in a device's memory, or null. In the text it is a pointer to `T`; `u8` stands for untyped bytes. On the
/// CPU it is a number.
pub struct Address<T>(u64, PhantomData<fn() -> T>);

impl<T> Address<T> {
    /// Null address.
    pub const NONE: Self = Self(0, PhantomData);

    /// Returns the address as a number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl<T> Clone for Address<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Address<T> {}

impl<T> Default for Address<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T> fmt::Debug for Address<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl<T> From<u64> for Address<T> {
    fn from(number: u64) -> Self {
        Self(number, PhantomData)
    }
}

impl<T> Parameter for Address<T> {
    const BYTES: usize = 8;
    const ALIGNMENT: usize = 8;
    #[inline]
    fn write(&self, to: &mut [u8]) {
        self.0.write(to);
    }
}

/// Placeholder for the precision of a run: `Address<Number>` is the address of values whose type only the text knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Number;

/// Size and alignment of a C++ structure, computed member by member.
#[derive(Clone, Copy)]
pub struct StructLayout {
    end: usize,
    alignment: usize,
}

impl StructLayout {
    /// Creates the layout of an empty structure.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "the default is no constant")]
    pub const fn new() -> Self {
        Self {
            end: 0,
            alignment: 1,
        }
    }

    /// Appends a member.
    #[must_use]
    pub const fn with<T: Parameter>(self) -> Self {
        Self {
            end: self.end.next_multiple_of(T::ALIGNMENT) + T::BYTES,
            alignment: if T::ALIGNMENT > self.alignment {
                T::ALIGNMENT
            } else {
                self.alignment
            },
        }
    }

    /// Returns the size in bytes; an empty structure has one.
    #[must_use]
    pub const fn bytes(self) -> usize {
        if self.end == 0 {
            1
        } else {
            self.end.next_multiple_of(self.alignment)
        }
    }

    /// Returns the alignment in bytes.
    #[must_use]
    pub const fn alignment(self) -> usize {
        self.alignment
    }
}

/// Writes the members of a structure one after another.
pub struct Members<'a> {
    to: &'a mut [u8],
    end: usize,
}

impl<'a> Members<'a> {
    /// Starts writing a structure at `to`.
    #[must_use]
    pub fn new(to: &'a mut [u8]) -> Self {
        Self { to, end: 0 }
    }

    /// Writes the next member.
    #[inline]
    pub fn write<T: Parameter>(&mut self, member: &T) {
        let from = self.end.next_multiple_of(T::ALIGNMENT);
        self.end = from + T::BYTES;
        member.write(&mut self.to[from..self.end]);
    }
}
