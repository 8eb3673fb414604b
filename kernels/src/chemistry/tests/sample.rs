//! Random cells: temperature, ionisation at another temperature (shocked, or cooled faster than it recombines), density, step.
use super::super::species::{DI, DP, H2, H2P, HD, HI, HII, HM};
use super::Network;
use super::{Abundances, at, charge, heat_capacity};
use nestar_device::math::pow;

/// Random numbers between 0 and 1.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Between two powers of 10.
    pub fn decades(&mut self, from: f64, to: f64) -> f64 {
        pow(10.0, from + (to - from) * self.next())
    }
}

/// A cell: density, state, step.
pub struct Random {
    pub density: f64,
    pub state: Abundances<f64>,
    pub dt: f64,
}

/// Returns `count` random cells of a network.
pub fn cells<const S: usize>(p: &Network<f64>, count: usize) -> Vec<Random> {
    let mut r = Numbers(7);
    (0..count).map(|_| cell::<S>(p, &mut r)).collect()
}

fn cell<const S: usize>(p: &Network<f64>, r: &mut Numbers) -> Random {
    let density = r.decades(-3.0, 3.0);
    let t = r.decades(if S > 3 { 2.0 } else { 3.5 }, 7.5);
    let ionised_at = if r.next() < 0.5 {
        t
    } else {
        r.decades(3.8, 6.5)
    };
    let mut s = at::<S>(p, density, ionised_at);
    s.y[HII] = s.y[HII].max(r.decades(-5.0, -1.0));
    s.y[HI] = (1.0 - s.y[HII]).max(1e-10);
    if S > 3 {
        (s.y[HM], s.y[H2P]) = (1e-12, 1e-12);
        s.y[H2] = if t < 2e4 {
            r.decades(-7.0, -2.5)
        } else {
            1e-12
        };
    }
    if S > 6 {
        (s.y[DP], s.y[HD]) = (p.deuterium * s.y[HII], 1e-9);
        s.y[DI] = p.deuterium * s.y[HI];
    }
    let mut s = super::super::renormalised::<f64, S>(&s, p.helium, p.deuterium);
    s.energy = t * heat_capacity::<f64, S>(&s, charge::<S>(&s));
    let dt = r.decades(-4.0, 1.0) / density;
    Random {
        density,
        state: s,
        dt,
    }
}
