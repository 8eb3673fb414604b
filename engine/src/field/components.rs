//! The choice of components that the states of functions consist of.

use nestar_kernels::mesh::MAX_COMPONENTS;

/// Which components of the first field a function's state consists of, in order. By default the leading ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Components([u8; MAX_COMPONENTS]);

impl Default for Components {
    fn default() -> Self {
        Self(std::array::from_fn(|n| n as u8))
    }
}

impl Components {
    /// The components of these numbers; a state has no more of them.
    ///
    /// # Panics
    /// With more numbers than a field may have components, or a number beyond.
    #[must_use]
    pub fn of(numbers: &[usize]) -> Self {
        let mut chosen = [u8::MAX; MAX_COMPONENTS];
        for (place, &number) in chosen[..numbers.len()].iter_mut().zip(numbers) {
            assert!(number < MAX_COMPONENTS, "a field has no component {number}");
            *place = number as u8;
        }
        Self(chosen)
    }

    /// Component `n` of the state.
    #[inline(always)]
    pub(super) fn number(&self, n: usize) -> usize {
        usize::from(self.0[n])
    }

    /// Whether they are the leading ones.
    pub(super) fn lead(&self) -> bool {
        *self == Self::default()
    }

    /// Components that a field must have for a state of so many.
    pub(super) fn wanted(&self, count: usize) -> usize {
        let numbers = self.0[..count.min(MAX_COMPONENTS)].iter();
        numbers.map(|n| usize::from(*n) + 1).max().unwrap_or(0)
    }

    /// As kernels take them.
    pub(super) fn numbers(&self) -> [i32; MAX_COMPONENTS] {
        self.0.map(i32::from)
    }
}
