//! What is kept of a particle, and where in a page.

use nestar_engine::field::Element;

/// Particles of a page: as many as a warp has threads.
pub const PAGE: usize = 32;

/// Numbers that places of a run in this precision are kept in, `Place::BITS` along an axis.
pub trait Precise: Element {
    /// A place along an axis.
    type Place: bytemuck::Pod + Send + Sync;
    /// Bits of it.
    const BITS: u32;
    /// In units of 2^-64 of the patch's width.
    fn whole(place: Self::Place) -> u64;
    /// The upper bits of it.
    fn kept(place: u64) -> Self::Place;
}

impl Precise for f32 {
    type Place = u32;
    const BITS: u32 = 32;
    fn whole(place: u32) -> u64 {
        u64::from(place) << 32
    }
    fn kept(place: u64) -> u32 {
        (place >> 32) as u32
    }
}

impl Precise for f64 {
    type Place = u64;
    const BITS: u32 = 64;
    fn whole(place: u64) -> u64 {
        place
    }
    fn kept(place: u64) -> u64 {
        place
    }
}

/// The columns of a species: identity, place, velocity, acceleration, mass where each particle has its own, scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Bytes of a number: 4 in single precision, 8 in double. A place along an axis has as many.
    pub number: usize,
    /// Whether each particle has a mass of its own.
    pub masses: bool,
    /// Scalars.
    pub scalars: usize,
}

impl Columns {
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
pub struct Page<'a, R: Precise> {
    /// Identities, unique in the species for ever.
    pub id: &'a mut [u64],
    /// Places along the axes in the patch.
    pub place: [&'a mut [R::Place]; 3],
    /// Velocities, code units.
    pub velocity: [&'a mut [R]; 3],
    /// Accelerations at the time of the particle, code units.
    pub acceleration: [&'a mut [R]; 3],
    /// Masses, or nothing where all have one.
    pub mass: &'a mut [R],
}

impl<'a, R: Precise> Page<'a, R> {
    /// Of the words of a page.
    pub fn of(words: &'a mut [u64], columns: Columns) -> Self {
        let (id, rest) = words.split_at_mut(PAGE);
        let mut rest = rest;
        let mut next = || {
            let (column, others) =
                std::mem::take(&mut rest).split_at_mut(PAGE * columns.number / 8);
            rest = others;
            column
        };
        Self {
            id,
            place: [(); 3].map(|()| bytemuck::cast_slice_mut(next())),
            velocity: [(); 3].map(|()| bytemuck::cast_slice_mut(next())),
            acceleration: [(); 3].map(|()| bytemuck::cast_slice_mut(next())),
            mass: match columns.masses {
                true => bytemuck::cast_slice_mut(next()),
                false => &mut [],
            },
        }
    }

    /// The place of a particle in units of 2^-64 of the patch's width.
    #[inline(always)]
    pub fn place_of(&self, n: usize) -> [u64; 3] {
        [0, 1, 2].map(|axis| R::whole(self.place[axis][n]))
    }

    /// Three numbers of a particle.
    #[inline(always)]
    pub fn vector(of: &[&'a mut [R]; 3], n: usize) -> [R; 3] {
        [0, 1, 2].map(|axis| of[axis][n])
    }
}
