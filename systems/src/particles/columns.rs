//! What is kept of a particle, and where in a page.

use nestar_engine::data::Element;

/// Particles of a page: as many as a warp has threads.
pub const PAGE: usize = 32;

/// Numbers that places of a run in this precision are kept in, `Place::BITS` along an axis.
pub trait ParticleReal: Element {
    /// A place along an axis.
    type Place: bytemuck::Pod + Ord + Send + Sync;
    /// Bits of it.
    const BITS: u32;
    /// In units of 2^-64 of the patch's width.
    fn whole(place: Self::Place) -> u64;
    /// The upper bits of it.
    fn kept(place: u64) -> Self::Place;
    /// As [`moved`](nestar_kernels::particles::motion::moved) of ways shorter than the width, without a branch: for loops over pages.
    fn moved(place: Self::Place, by: f64) -> (Self::Place, i32);
    /// A whole number for the size of a number, in the order of the sizes; that of a NaN is above all others.
    fn ordered(number: Self) -> Self::Place;
    /// The size that a whole number stands for.
    fn size(ordered: Self::Place) -> Self;
}

/// The whole number that a number from 0 to below 2^32 is cut to, as the lower half: one that vectors of numbers have too.
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

/// The columns of a species: identity, place, velocity, acceleration, mass where each particle has its own, scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticleColumns {
    /// Bytes of a number: 4 in single precision, 8 in double. A place along an axis has as many.
    pub number: usize,
    /// Whether each particle has a mass of its own.
    pub masses: bool,
    /// Scalars.
    pub scalars: usize,
}

impl ParticleColumns {
    /// Bytes of each column's values, in their order: the columns of a page follow each other, `PAGE` values of each.
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

/// The columns of a page of particles: `PAGE` values each, of which the first ones are in use.
pub struct Page<'a, R: ParticleReal> {
    /// Identities, unique in the species for ever.
    pub id: &'a mut [u64; PAGE],
    /// Places along the axes in the patch.
    pub place: [&'a mut [R::Place; PAGE]; 3],
    /// Velocities, code units.
    pub velocity: [&'a mut [R; PAGE]; 3],
    /// Accelerations at the time of the particle, code units.
    pub acceleration: [&'a mut [R; PAGE]; 3],
    /// Masses, or nothing where all have one.
    pub mass: &'a mut [R],
}

impl<'a, R: ParticleReal> Page<'a, R> {
    /// Of the words of a page.
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

    /// The place of a particle in units of 2^-64 of the patch's width.
    #[inline(always)]
    pub fn place_of(&self, n: usize) -> [u64; 3] {
        let [x, y, z] = &self.place;
        [R::whole(x[n]), R::whole(y[n]), R::whole(z[n])]
    }

    /// Three numbers of a particle.
    #[inline(always)]
    pub fn vector(of: &[&'a mut [R; PAGE]; 3], n: usize) -> [R; 3] {
        [of[0][n], of[1][n], of[2][n]]
    }
}

/// Takes the next column off the words of a page.
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

    /// Places, and ways shorter than the width.
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
