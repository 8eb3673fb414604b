//! Conservative, monotonic interpolation from a coarse level to the next finer one.

use super::fluxes::with_kept_remainder;
use super::means::mean8;
use super::states::{DependentComponents, MAX_COMPONENTS, ShareSets, StateFunctions};
use nestar_device::math::sum3;
use nestar_device::{Lane, Real, device};

/// Selects the limiter of slopes between levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlopeLimiter {
    /// The smaller of the two one-sided differences.
    Minmod,
    /// Harmonic mean (van Leer 1974).
    VanLeer,
    /// Monotonised central difference (van Leer 1977).
    #[default]
    MonotonizedCentral,
    /// No limiter: the central difference.
    Central,
    /// No slope at all.
    Flat,
}

impl SlopeLimiter {
    /// Returns the code of this limiter in [`limited_slope`].
    #[must_use]
    pub fn code(self) -> u32 {
        self as u32
    }
}

/// Returns the limited slope per cell from the one-sided differences `a` (below) and `b` (above); `limiter` as in [`SlopeLimiter::code`].
///
/// The product of the differences is not formed, because it underflows for small numbers in single precision.
#[device]
pub fn limited_slope<R: Real>(a: R, b: R, limiter: u32) -> R {
    if a.min(b) > 0.0 || a.max(b) < 0.0 {
        let small = a.abs().min(b.abs());
        let large = a.abs().max(b.abs());
        let size = if limiter == 0u32 {
            small
        } else if limiter == 1u32 {
            2.0 * small * (large / (small + large))
        } else {
            (2.0 * small).min(0.5 * small + 0.5 * large)
        };
        size.copysign(a)
    } else {
        0.0
    }
}

/// Returns the factor in [0, 1] that limits the slopes of a cell, so that its eight fine cells stay within the range of the neighbourhood.
///
/// `low` and `high` bound that range (the cell and its six neighbours); `reach` is the largest deviation from `u`.
#[device]
pub fn monotonic_factor<R: Real>(u: R, low: R, high: R, reach: R) -> R {
    let room = (high - u).min(u - low);
    if reach > room { room / reach } else { 1.0 }
}

/// Returns [`fine_offsets`] from central differences, or 0 for [`SlopeLimiter::Flat`].
#[device]
pub fn unlimited_offsets<R: Real>(n: &[R; 6], limiter: u32) -> [R; 3] {
    if limiter == 3u32 {
        [
            0.125 * (n[1] - n[0]),
            0.125 * (n[3] - n[2]),
            0.125 * (n[5] - n[4]),
        ]
    } else {
        [0.0, 0.0, 0.0]
    }
}

/// Returns the limited slopes of coarse cell `u`, divided by 4, from its six neighbours `n` (x-, x+, y-, y+, z-, z+).
///
/// They are scaled to be monotonic in three dimensions. Fine cell (±, ±, ±) has the value `u + sum3(±s0, ±s1, ±s2)`.
#[device]
pub fn fine_offsets<R: Real>(u: R, n: &[R; 6], limiter: u32) -> [R; 3] {
    if limiter > 2u32 {
        unlimited_offsets(n, limiter)
    } else {
        let sx = 0.25 * limited_slope(u - n[0], n[1] - u, limiter);
        let sy = 0.25 * limited_slope(u - n[2], n[3] - u, limiter);
        let sz = 0.25 * limited_slope(u - n[4], n[5] - u, limiter);
        let low = n[0]
            .min(n[1])
            .min(n[2].min(n[3]))
            .min(n[4].min(n[5]))
            .min(u);
        let high = n[0]
            .max(n[1])
            .max(n[2].max(n[3]))
            .max(n[4].max(n[5]))
            .max(u);
        let reach = sum3(sx.abs(), sy.abs(), sz.abs());
        let f = monotonic_factor(u, low, high, reach);
        [f * sx, f * sy, f * sz]
    }
}

/// Returns the value of the fine cell on side `s` (0 below, 1 above, per axis) of a coarse cell with offsets `o`.
#[device]
pub fn fine_value<R: Real>(u: R, o: &[R; 3], sx: u32, sy: u32, sz: u32) -> R {
    let x = if sx == 0u32 { -o[0] } else { o[0] };
    let y = if sy == 0u32 { -o[1] } else { o[1] };
    let z = if sz == 0u32 { -o[2] } else { o[2] };
    u + sum3(x, y, z)
}

/// Interpolates in time between a level's two banks, with weight 0 to 1. Constant values keep their bits.
#[device]
pub fn between<R: Lane>(old: R, new: R, weight: R) -> R {
    old + weight * (new - old)
}

/// Eight fine cells of a coarse cell, `[component][side]`, with sides as bits x, y, z.
pub type FineCells<R> = [[R; 8]; MAX_COMPONENTS];

/// Returns the factor in [0, 1] that limits the deviation of a fine cell's scalar, so that its mass fraction stays between `low` and
/// `high`.
///
/// `share` is the mass fraction in the coarse cell, `density` the density of the fine cell, and `deviation` its scalar density minus
/// `density * share`.
#[device]
pub fn scalar_limit_factor<R: Real>(share: R, low: R, high: R, density: R, deviation: R) -> R {
    let room = if deviation > 0.0 {
        density * (high - share)
    } else {
        density * (share - low)
    };
    if deviation.abs() > room {
        room / deviation.abs()
    } else {
        1.0
    }
}

/// Reconciles each of eight fine states.
fn reconcile_all<R: Real>(fine: &mut [[R; 8]], dependents: &DependentComponents<R>) {
    let mut state = [R::lit(0.0); MAX_COMPONENTS];
    for side in 0..8 {
        for (value, fine) in state.iter_mut().zip(&*fine) {
            *value = fine[side];
        }
        dependents.reconcile(&mut state[..fine.len()]);
        for (value, fine) in state.iter().zip(&mut *fine) {
            fine[side] = *value;
        }
    }
}

/// Describes a coarse block `[component][n][n][n]` to interpolate from.
pub struct CoarseBlock<'a, R> {
    /// States; every cell used and its six neighbours must be filled.
    pub states: &'a [R],
    /// Interpolated variables: [`StateFunctions::primitive`] of the states, or the states themselves.
    pub primitive: &'a [R],
    /// Cells along an axis.
    pub n: usize,
    /// Values between two components.
    pub stride: usize,
    /// Number of components.
    pub components: usize,
    /// Limiter of the slopes.
    pub limiter: SlopeLimiter,
    /// State functions; `None`: all states are physical and interpolated as they are.
    pub rules: Option<StateFunctions<R>>,
    /// `true` if fine states must have the mean of the coarse state, as in new patches; ghost cells keep the limits of their primitive
    /// variables instead.
    pub preserves_means: bool,
}

impl<R: Real> CoarseBlock<'_, R> {
    /// Computes the fine cells of the coarse cell at flat index `index`. All take the coarse state if one of them would be unphysical.
    pub fn refine(&self, index: usize, fine: &mut FineCells<R>) {
        let fine = &mut fine[..self.components];
        for (c, fine) in fine.iter_mut().enumerate() {
            let (u, around) = self.around(index, c);
            let offsets = fine_offsets(u, &around, self.limiter.code());
            *fine = std::array::from_fn(|side| {
                let side = side as u32;
                fine_value(u, &offsets, side & 1, side >> 1 & 1, side >> 2)
            });
        }
        let Some(rules) = &self.rules else { return };
        (rules.conserved)(fine.as_flattened_mut(), 8);
        if self.preserves_means {
            self.restore_means(index, fine, rules.leading, &rules.sets);
            rules
                .dependents
                .iter()
                .for_each(|dependents| reconcile_all(fine, dependents));
        }
        if !(rules.physical)(fine.as_flattened(), 8) {
            for (c, fine) in fine.iter_mut().enumerate() {
                *fine = [self.states[c * self.stride + index]; 8];
            }
        }
    }

    /// Returns a component of the cell at `index` and of its six neighbours.
    fn around(&self, index: usize, c: usize) -> (R, [R; 6]) {
        let (dy, dz) = (self.n, self.n * self.n);
        let q = &self.primitive[c * self.stride..];
        let places = [
            index - 1,
            index + 1,
            index - dy,
            index + dy,
            index - dz,
            index + dz,
        ];
        (q[index], places.map(|place| q[place]))
    }

    /// Shifts each component of the fine states so that their mean is the coarse state, then limits the mass fractions of scalars.
    ///
    /// Scalars are the components from `leading` on. Their limits are the range of the neighbourhood.
    fn restore_means(&self, index: usize, fine: &mut [[R; 8]], leading: usize, sets: &ShareSets) {
        for (c, fine) in fine.iter_mut().enumerate() {
            let missing = self.states[c * self.stride + index] - mean8(fine);
            fine.iter_mut().for_each(|value| *value += missing);
        }
        if let Some(remainder) = self.rules.and_then(|rules| rules.remainder) {
            self.restore_remainders(index, fine, remainder);
        }
        for c in (leading..self.components).filter(|&c| sets.of(c) == 0) {
            let kept = self.scalar_factor(index, fine, c);
            self.limit_scalar(index, fine, c, kept);
        }
        for set in 1..=sets.count() {
            let members = sets.members(set);
            for side in 0..8 {
                self.normalize_set(index, fine, side, members.clone());
            }
            let kept = members.clone().map(|c| self.scalar_factor(index, fine, c));
            let kept = kept.fold(R::lit(1.0), |least, kept| least.min(kept));
            members.for_each(|c| self.limit_scalar(index, fine, c, kept));
        }
    }

    /// Shifts each component of the fine states so that component and remainder together have the mean of the coarse ones.
    fn restore_remainders(
        &self,
        index: usize,
        fine: &mut [[R; 8]],
        remainder: fn(&mut [R], usize),
    ) {
        let mut own = [R::lit(0.0); MAX_COMPONENTS];
        let own = &mut own[..self.components];
        for (c, value) in own.iter_mut().enumerate() {
            *value = self.states[c * self.stride + index];
        }
        remainder(own, 1);
        let mut of_fine = [[R::lit(0.0); 8]; MAX_COMPONENTS];
        let of_fine = &mut of_fine[..self.components];
        of_fine.copy_from_slice(fine);
        remainder(of_fine.as_flattened_mut(), 8);
        for ((fine, kept), of_fine) in fine.iter_mut().zip(own).zip(of_fine) {
            let mean = mean8(of_fine);
            (fine.iter_mut()).for_each(|value| *value = with_kept_remainder(*value, *kept, mean));
        }
    }

    /// Subtracts the excess of a set's sum over the fine density from each member, in proportion to its coarse mass fraction. Over the
    /// eight fine cells the excess vanishes.
    fn normalize_set(
        &self,
        index: usize,
        fine: &mut [[R; 8]],
        side: usize,
        members: impl Iterator<Item = usize> + Clone,
    ) {
        let share = |c: usize| self.primitive[c * self.stride + index];
        let sum = members.clone().map(|c| fine[c][side]);
        let excess = sum.fold(R::lit(0.0), |sum, amount| sum + amount) - fine[0][side];
        for c in members {
            fine[c][side] -= excess * share(c);
        }
    }

    /// Returns the smallest [`scalar_limit_factor`] of the fine cells.
    fn scalar_factor(&self, index: usize, fine: &[[R; 8]], c: usize) -> R {
        let (share, around) = self.around(index, c);
        let low = around.iter().fold(share, |low, v| low.min(*v));
        let high = around.iter().fold(share, |high, v| high.max(*v));
        let kept = fine[0].iter().zip(&fine[c]).map(|(density, value)| {
            scalar_limit_factor(share, low, high, *density, *value - *density * share)
        });
        kept.fold(R::lit(1.0), |least, kept| least.min(kept))
    }

    /// Scales the deviation of the fine cells from the coarse mass fraction by `kept`.
    fn limit_scalar(&self, index: usize, fine: &mut [[R; 8]], c: usize, kept: R) {
        if kept < R::lit(1.0) {
            let share = self.primitive[c * self.stride + index];
            let (first, rest) = fine.split_at_mut(c);
            for (density, value) in first[0].iter().zip(&mut rest[0]) {
                *value = *density * share + kept * (*value - *density * share);
            }
        }
    }
}
