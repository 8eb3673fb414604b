//! Columns of particle data and their layout in a page.

use nestar_engine::data::Element;

/// Particles of a page: one per thread of a warp.
pub const PAGE: usize = 32;

/// Floating-point type of particle data and the matching fixed-point type of offsets.
pub trait ParticleReal: Element {
    /// Fixed-point offset in the patch along an axis.
    type Offset: bytemuck::Pod + Ord + Send + Sync;
    /// Bits of an offset.
    const BITS: u32;
    /// Converts an offset to units of 2^-64 patch widths.
    fn widen(offset: Self::Offset) -> u64;
    /// Keeps the upper bits of an offset in units of 2^-64 patch widths.
    fn narrow(offset: u64) -> Self::Offset;
    /// Moves an offset as [`moved`](nestar_kernels::particles::motion::moved) does, for displacements below
    /// one patch width. It has no branch, so that loops over pages vectorise.
    fn moved(offset: Self::Offset, by: f64) -> (Self::Offset, i32);
    /// Maps the absolute value of a number to an integer of the same order; NaN is the largest.
    fn ordered(number: Self) -> Self::Offset;
    /// Inverts [`ParticleReal::ordered`].
    fn size(ordered: Self::Offset) -> Self;
}

/// Truncates a number from 0 to below 2^32 to an integer in the lower half of the result. The conversion
/// vectorises.
#[inline(always)]
fn cut(number: f64) -> u64 {
    (number.trunc() + 4_503_599_627_370_496.0).to_bits() & 0xffff_ffff
}

impl ParticleReal for f32 {
    type Offset = u32;
    const BITS: u32 = 32;
    fn widen(offset: u32) -> u64 {
        u64::from(offset) << 32
    }
    fn narrow(offset: u64) -> u32 {
        (offset >> 32) as u32
    }
    #[inline(always)]
    fn moved(offset: u32, by: f64) -> (u32, i32) {
        let steps = cut(by.abs() * 4_294_967_296.0 + 0.5) as u32;
        let (below, above) = (offset.wrapping_sub(steps), offset.wrapping_add(steps));
        let back = by < 0.0;
        let step = i32::from(!back & (above < offset)) - i32::from(back & (below > offset));
        (if back { below } else { above }, step)
    }
    #[inline(always)]
    fn ordered(number: f32) -> u32 {
        number.abs().to_bits()
    }
    fn size(ordered: u32) -> f32 {
        f32::from_bits(ordered)
    }
}

impl ParticleReal for f64 {
    type Offset = u64;
    const BITS: u32 = 64;
    fn widen(offset: u64) -> u64 {
        offset
    }
    fn narrow(offset: u64) -> u64 {
        offset
    }
    #[inline(always)]
    fn moved(offset: u64, by: f64) -> (u64, i32) {
        let ways = by.abs() * 18_446_744_073_709_551_616.0 + 0.5;
        let upper = (ways / 4_294_967_296.0).trunc();
        let steps = cut(upper) << 32 | cut(ways - upper * 4_294_967_296.0);
        let (below, above) = (offset.wrapping_sub(steps), offset.wrapping_add(steps));
        let back = by < 0.0;
        let step = i32::from(!back & (above < offset)) - i32::from(back & (below > offset));
        (if back { below } else { above }, step)
    }
    #[inline(always)]
    fn ordered(number: f64) -> u64 {
        number.abs().to_bits()
    }
    fn size(ordered: u64) -> f64 {
        f64::from_bits(ordered)
    }
}

/// Columns of a species: identity, offset, velocity, acceleration, optional mass, scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticleColumns {
    /// Bytes of a number and of an offset along an axis: 4 in single precision, 8 in double.
    pub number: usize,
    /// `true` if each particle has its own mass.
    pub masses: bool,
    /// Number of scalars.
    pub scalars: usize,
}

impl ParticleColumns {
    /// Returns the bytes of one value of each column, in storage order. A page stores its columns one after
    /// the other, `PAGE` values each.
    pub fn widths(self) -> impl Iterator<Item = usize> {
        let numbers = 9 + usize::from(self.masses) + self.scalars;
        std::iter::once(8).chain((0..numbers).map(move |_| self.number))
    }

    /// Bytes of a particle.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.widths().sum()
    }

    /// Words of 8 bytes of a page.
    #[must_use]
    pub fn page_words(self) -> usize {
        self.bytes() * PAGE / 8
    }
}

/// Columns of a page of particles, `PAGE` values each; only the first ones are in use.
pub struct Page<'a, R: ParticleReal> {
    /// Identities, unique in the species for the whole run.
    pub id: &'a mut [u64; PAGE],
    /// Offsets in the patch, by axis.
    pub offset: [&'a mut [R::Offset; PAGE]; 3],
    /// Velocities, code units.
    pub velocity: [&'a mut [R; PAGE]; 3],
    /// Accelerations at the time of the particle, code units.
    pub acceleration: [&'a mut [R; PAGE]; 3],
    /// Masses; empty if all particles have the same mass.
    pub mass: &'a mut [R],
}

impl<'a, R: ParticleReal> Page<'a, R> {
    /// Splits the words of a page into columns.
    #[inline(always)]
    pub fn of(words: &'a mut [u64], columns: ParticleColumns) -> Self {
        let mut rest = words;
        let id = column(&mut rest);
        let mut offsets = || column(&mut rest);
        let offset = [offsets(), offsets(), offsets()];
        let mut numbers = || column(&mut rest);
        Self {
            id,
            offset,
            velocity: [numbers(), numbers(), numbers()],
            acceleration: [numbers(), numbers(), numbers()],
            mass: match columns.masses {
                true => &mut numbers()[..],
                false => &mut [],
            },
        }
    }

    /// Returns the offset of particle `n` in units of 2^-64 patch widths.
    #[inline(always)]
    pub fn offset_of(&self, n: usize) -> [u64; 3] {
        let [x, y, z] = &self.offset;
        [R::widen(x[n]), R::widen(y[n]), R::widen(z[n])]
    }

    /// Returns a vector of particle `n`.
    #[inline(always)]
    pub fn vector(of: &[&'a mut [R; PAGE]; 3], n: usize) -> [R; 3] {
        [of[0][n], of[1][n], of[2][n]]
    }
}

/// Splits the next column off the words of a page.
#[inline(always)]
fn column<'a, T: bytemuck::Pod>(words: &mut &'a mut [u64]) -> &'a mut [T; PAGE] {
    let (column, rest) = std::mem::take(words).split_at_mut(PAGE * size_of::<T>() / 8);
    *words = rest;
    bytemuck::from_bytes_mut(bytemuck::cast_slice_mut(column))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_kernels::particles::motion::moved;

    /// Offsets and displacements below one patch width.
    fn cases() -> impl Iterator<Item = (u64, f64)> {
        let random = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n << 41);
        let offsets = [0, 1 << 32, 1 << 63, u64::MAX, 0x1234_5678_9abc_def0];
        let ways = [
            0.0,
            -0.0,
            1e-300,
            5e-20,
            2.8e-20,
            1.4e-10,
            0.5,
            1.0 - f64::EPSILON,
        ];
        let edges = offsets.into_iter().flat_map(move |p| ways.map(|w| (p, w)));
        let others = (0..20_000).map(move |n| {
            let way = random(n + 1) as f64 / 1.9e19 / (1u64 << (n % 60)) as f64;
            (random(7 * n), way)
        });
        edges.chain(others).flat_map(|(p, w)| [(p, w), (p, -w)])
    }

    #[test]
    fn places_move_without_a_branch_as_with_one() {
        for (offset, by) in cases() {
            assert_eq!(
                <f64 as ParticleReal>::moved(offset, by),
                moved(offset, by, 64),
                "{offset:x} {by:e}"
            );
            let (short, by) = (<f32 as ParticleReal>::narrow(offset), f64::from(by as f32));
            let (to, step) = <f32 as ParticleReal>::moved(short, by);
            let there = (<f32 as ParticleReal>::widen(to), step);
            if by.abs() < 1.0 {
                assert_eq!(
                    there,
                    moved(u64::from(short) << 32, by, 32),
                    "{short:x} {by:e}"
                );
            }
        }
    }
}
