//! Particles at another time than theirs.

use super::super::columns::{PAGE, Page, ParticleReal};
use nestar_device::Real;
use nestar_kernels::particles::cloud::units_of;
use nestar_kernels::particles::motion::{ahead, moved};

/// What particles count in sums.
#[derive(Clone, Copy, Debug)]
pub enum DepositWeights {
    /// Their mass, in so many units for a mass of 1.
    Masses(f64),
    /// One each.
    Ones,
}

impl DepositWeights {
    /// What a particle of a mass counts.
    #[inline(always)]
    pub fn of(self, mass: impl Real) -> u64 {
        match self {
            Self::Masses(scale) => units_of(mass, scale),
            Self::Ones => 1,
        }
    }
}

/// The particles of a list of a patch, as the sums of a level at a time see them.
pub struct PredictedPositions<R> {
    /// From the time of the particles to that of the sums.
    pub dt: R,
    /// Over the width of the patch, along each axis.
    pub per_width: [R; 3],
    /// The farthest way in widths of the patch: one cell of the level of the sums.
    pub most: f64,
    /// What each counts.
    pub weights: DepositWeights,
    /// Where all have one mass, what that counts.
    pub one: u64,
}

impl<R: ParticleReal> PredictedPositions<R> {
    /// Where a particle is then, and how many patches away.
    #[inline(always)]
    pub fn place(&self, page: &Page<R>, n: usize) -> ([u64; 3], [i32; 3]) {
        let mut place = page.place_of(n);
        let mut step = [0; 3];
        if self.dt == R::lit(0.0) {
            return (place, step);
        }
        for axis in 0..3 {
            let (v, a) = (page.velocity[axis][n], page.acceleration[axis][n]);
            let by = ahead(v, a, self.dt, self.per_width[axis]).to_f64();
            let by = by.clamp(-self.most, self.most);
            let whole = by.trunc();
            let (to, carry) = moved(place[axis], by - whole, R::BITS);
            (place[axis], step[axis]) = (to, whole as i32 + carry);
        }
        (place, step)
    }

    /// The same of all rows of a page, axis by axis.
    #[inline(always)]
    pub fn places(&self, page: &Page<R>) -> ([[u64; PAGE]; 3], [[i32; PAGE]; 3]) {
        let (mut places, mut steps) = ([[0; PAGE]; 3], [[0; PAGE]; 3]);
        if self.dt == R::lit(0.0) {
            for axis in 0..3 {
                for n in 0..PAGE {
                    places[axis][n] = R::whole(page.place[axis][n]);
                }
            }
            return (places, steps);
        }
        for n in 0..PAGE {
            let (place, step) = self.place(page, n);
            for axis in 0..3 {
                (places[axis][n], steps[axis][n]) = (place[axis], step[axis]);
            }
        }
        (places, steps)
    }

    /// What it counts.
    #[inline(always)]
    pub fn weight(&self, page: &Page<R>, n: usize) -> u64 {
        match page.mass.get(n) {
            Some(&mass) => self.weights.of(mass),
            None => self.one,
        }
    }
}
