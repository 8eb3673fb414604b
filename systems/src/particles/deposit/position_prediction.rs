//! Predicts particle positions at the time of a deposit.

use super::super::pages::{PAGE, Page, ParticleReal};
use nestar_device::Real;
use nestar_kernels::particles::cloud::quanta_of;
use nestar_kernels::particles::motion::{displacement, moved};

/// Weight of particles in a deposit.
#[derive(Clone, Copy, Debug)]
pub enum DepositWeights {
    /// The mass, with this number of quanta per unit mass.
    Masses(f64),
    /// One per particle.
    Ones,
}

impl DepositWeights {
    /// Returns the weight of a particle of a mass.
    #[inline(always)]
    pub fn of(self, mass: impl Real) -> u64 {
        match self {
            Self::Masses(quanta_per_mass) => quanta_of(mass, quanta_per_mass),
            Self::Ones => 1,
        }
    }
}

/// Prediction for the particles of a list, at the time of a deposit.
pub struct PredictedPositions<R> {
    /// Deposit time minus particle time.
    pub dt: R,
    /// Inverse patch width along each axis.
    pub per_width: [R; 3],
    /// Longest displacement in patch widths: one cell of the level of the deposit.
    pub most: f64,
    /// Weight of particles.
    pub weights: DepositWeights,
    /// Weight of a particle if all have the same mass.
    pub one: u64,
}

impl<R: ParticleReal> PredictedPositions<R> {
    /// Returns the predicted offset of particle `n` and the number of patches it has moved.
    #[inline(always)]
    pub fn offset(&self, page: &Page<R>, n: usize) -> ([u64; 3], [i32; 3]) {
        let mut offset = page.offset_of(n);
        let mut step = [0; 3];
        if self.dt == R::lit(0.0) {
            return (offset, step);
        }
        for axis in 0..3 {
            let (v, a) = (page.velocity[axis][n], page.acceleration[axis][n]);
            let by = displacement(v, a, self.dt, self.per_width[axis]).to_f64();
            let by = by.clamp(-self.most, self.most);
            let whole = by.trunc();
            let (to, carry) = moved(offset[axis], by - whole, R::BITS);
            (offset[axis], step[axis]) = (to, whole as i32 + carry);
        }
        (offset, step)
    }

    /// Predicts all particles of a page, axis by axis.
    #[inline(always)]
    pub fn offsets(&self, page: &Page<R>) -> ([[u64; PAGE]; 3], [[i32; PAGE]; 3]) {
        let (mut offsets, mut steps) = ([[0; PAGE]; 3], [[0; PAGE]; 3]);
        if self.dt == R::lit(0.0) {
            for axis in 0..3 {
                for n in 0..PAGE {
                    offsets[axis][n] = R::widen(page.offset[axis][n]);
                }
            }
            return (offsets, steps);
        }
        for n in 0..PAGE {
            let (offset, step) = self.offset(page, n);
            for axis in 0..3 {
                (offsets[axis][n], steps[axis][n]) = (offset[axis], step[axis]);
            }
        }
        (offsets, steps)
    }

    /// Returns the weight of particle `n`.
    #[inline(always)]
    pub fn weight(&self, page: &Page<R>, n: usize) -> u64 {
        match page.mass.get(n) {
            Some(&mass) => self.weights.of(mass),
            None => self.one,
        }
    }
}
