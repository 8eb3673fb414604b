//! Columns of particle data and their layout in a page.

use nestar_engine::data::Element;

/// Particles of a page: one per thread of a warp.
pub const PAGE: usize = 32;

/// Floating-point type of particle data and the matching fixed-point type of offsets.
pub trait ParticleReal: Element {
    /// Fixed-point offset in the patch along an axis.
    type Place: bytemuck::Pod + Ord + Send + Sync;
    /// Bits of an offset.
    const BITS: u32;
    /// Converts an offset to units of 2^-64 patch widths.
    fn whole(place: Self::Place) -> u64;
    /// Keeps the upper bits of an offset in units of 2^-64 patch widths.
    fn kept(place: u64) -> Self::Place;
    /// Moves an offset as [`moved`](nestar_kernels::particles::motion::moved) does, for displacements below
    /// one patch width. It has no branch, so that loops over pages vectorise.
    fn moved(place: Self::Place, by: f64) -> (Self::Place, i32);
    /// Maps the absolute value of a number to an integer of the same order; NaN is the largest.
    fn ordered(number: Self) -> Self::Place;
    /// Inverts [`ParticleReal::ordered`].
    fn size(ordered: Self::Place) -> Self;
}

/// Truncates a number from 0 to below 2^32 to an integer in the lower half of the result. The conversion
/// vectorises.
#[inline(always)]
fn cut(number: f64) -> u64 {
    (number.trunc() + 4_503_599_627_370_496.0).to_bits() & 0xffff_ffff
}

impl ParticleReal for f32 {
    type Place = u32;
    const BITS: u32 = 32;
    fn whole(place: u32) -> u64 {
        u64::from(place) << 32
    }
    fn kept(place: u64) -> u32 {
        (place >> 32) as u32
    }
    #[inline(always)]
    fn moved(place: u32, by: f64) -> (u32, i32) {
        let steps = cut(by.abs() * 4_294_967_296.0 + 0.5) as u32;
        let (below, above) = (place.wrapping_sub(steps), place.wrapping_add(steps));
        let back = by < 0.0;
        let step = i32::from(!back & (above < place)) - i32::from(back & (below > place));
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
    type Place = u64;
    const BITS: u32 = 64;
    fn whole(place: u64) -> u64 {
        place
    }
    fn kept(place: u64) -> u64 {
        place
    }
    #[inline(always)]
    fn moved(place: u64, by: f64) -> (u64, i32) {
        let ways = by.abs() * 18_446_744_073_709_551_616.0 + 0.5;
        let upper = (ways / 4_294_967_296.0).trunc();
        let steps = cut(upper) << 32 | cut(ways - upper * 4_294_967_296.0);
        let (below, above) = (place.wrapping_sub(steps), place.wrapping_add(steps));
        let back = by < 0.0;
        let step = i32::from(!back & (above < place)) - i32::from(back & (below > place));
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
    pub place: [&'a mut [R::Place; PAGE]; 3],
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
        let mut places = || column(&mut rest);
        let place = [places(), places(), places()];
        let mut numbers = || column(&mut rest);
        Self {
            id,
            place,
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
    pub fn place_of(&self, n: usize) -> [u64; 3] {
        let [x, y, z] = &self.place;
        [R::whole(x[n]), R::whole(y[n]), R::whole(z[n])]
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
        let places = [0, 1 << 32, 1 << 63, u64::MAX, 0x1234_5678_9abc_def0];
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
        let edges = places.into_iter().flat_map(move |p| ways.map(|w| (p, w)));
        let others = (0..20_000).map(move |n| {
            let way = random(n + 1) as f64 / 1.9e19 / (1u64 << (n % 60)) as f64;
            (random(7 * n), way)
        });
        edges.chain(others).flat_map(|(p, w)| [(p, w), (p, -w)])
    }

    #[test]
    fn places_move_without_a_branch_as_with_one() {
        for (place, by) in cases() {
            assert_eq!(
                <f64 as ParticleReal>::moved(place, by),
                moved(place, by, 64),
                "{place:x} {by:e}"
            );
            let (short, by) = (<f32 as ParticleReal>::kept(place), f64::from(by as f32));
            let (to, step) = <f32 as ParticleReal>::moved(short, by);
            let there = (<f32 as ParticleReal>::whole(to), step);
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
