//! The choice of components that the states of functions consist of.

use nestar_kernels::mesh::MAX_COMPONENTS;

/// Which components of the first field a function's state consists of, in order. By default the leading ones. A member of the state may
/// be [`Components::ZERO`] instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Components([u8; MAX_COMPONENTS]);

impl Default for Components {
    fn default() -> Self {
        Self(std::array::from_fn(|n| n as u8))
    }
}

impl Components {
    /// In place of a component's number: reads as 0, and what a function gives for it is dropped. Members that are not chosen differ: a state
    /// with more members than were chosen is refused.
    pub const ZERO: usize = u8::MAX as usize - 1;

    /// The components of these numbers; a state has no more of them.
    ///
    /// # Panics
    /// With more numbers than a field may have components, or a number beyond that is not [`Components::ZERO`].
    #[must_use]
    pub fn of(numbers: &[usize]) -> Self {
        let mut chosen = [u8::MAX; MAX_COMPONENTS];
        for (place, &number) in chosen[..numbers.len()].iter_mut().zip(numbers) {
            let known = number < MAX_COMPONENTS || number == Self::ZERO;
            assert!(known, "a field has no component {number}");
            *place = number as u8;
        }
        Self(chosen)
    }

    /// Component `n` of the state; none where it is 0.
    #[inline(always)]
    pub(super) fn number(&self, n: usize) -> Option<usize> {
        let number = usize::from(self.0[n]);
        (number != Self::ZERO).then_some(number)
    }

    /// Whether they are the leading ones.
    pub(super) fn lead(&self) -> bool {
        *self == Self::default()
    }

    /// Components that a field must have for a state of so many.
    pub(super) fn wanted(&self, count: usize) -> usize {
        let numbers = (0..count.min(MAX_COMPONENTS)).filter_map(|n| self.number(n));
        numbers.map(|n| n + 1).max().unwrap_or(0)
    }

    /// As kernels take them: negative for 0.
    pub(super) fn numbers(&self) -> [i32; MAX_COMPONENTS] {
        std::array::from_fn(|n| self.number(n).map_or(-1, |number| number as i32))
    }
}
