//! Riemann solvers. A state is primitive, `[density, normal velocity, two tangential velocities, pressure]`. A flux is the flux density of
//! `[density, normal momentum, two tangential momenta, energy]` along the normal.
//!
//! Each solver returns mirrored fluxes for mirrored states and treats both tangential directions equally, bit for bit.

pub mod aufs;
pub mod barotropic;
pub mod exact;
pub mod hllc;
pub mod hlle;
pub mod llf;
pub mod magnetic;
pub mod roe;

use crate::choice::choices;
use nestar_device::simd::Simd;
use nestar_device::{Lane, device};

choices! {
    $
    /// Riemann solver.
    pub enum RiemannSolver by select_riemann_solver;
    /// Returns the flux of a solver, which is one of [`RiemannSolver`].
    fn flux<R: Simd>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] as (l, r, gamma);
    /// Three waves (HLLC; Toro, Spruce & Speares 1994).
    Hllc = "hllc": hllc::flux_hllc;
    /// Five waves (HLLD; Miyoshi & Kusano 2005), for gas with a magnetic field only.
    Hlld = "hlld": hllc::flux_hllc;
    /// Five waves with less diffusion in slow flows (LHLLD; Minoshima & Miyoshi 2021), for gas with a magnetic field only.
    Lhlld = "lhlld": hllc::flux_hllc;
    /// Two waves (HLLE; Einfeldt et al. 1991).
    Hlle = "hlle": hlle::flux_hlle;
    /// Two waves with the speeds of Davis 1988 (HLL; Harten, Lax & van Leer 1983).
    Hll = "hll": hlle::flux_hll;
    /// One wave (local Lax-Friedrichs; Rusanov 1961): the most diffusive solver.
    Llf = "llf": llf::flux_llf;
    /// Linearised solution (Roe 1981), with the entropy fix of Harten & Hyman 1983.
    Roe = "roe": roe::flux_roe;
    /// Artificially upstream flux vector splitting (Sun & Takayama 2003).
    Aufs = "aufs": aufs::flux_aufs;
    /// Exact solution (Toro 2009, chapter 4); slow.
    Exact = "exact": exact::flux_exact as exact::flux_in_each_lane;
}

impl RiemannSolver {
    /// Returns `true` if the solver serves gas with a magnetic field only.
    #[must_use]
    pub fn needs_field(self) -> bool {
        matches!(self, RiemannSolver::Hlld | RiemannSolver::Lhlld)
    }

    /// Returns `true` if the solver keeps contact discontinuities at rest.
    #[must_use]
    pub fn resolves_contacts(self) -> bool {
        let [light, heavy] = [1.0, 2.0].map(|density| [density, 0.0, 0.0, 0.0, 1.0]);
        let flux = select_riemann_solver!(self, flux::<f64>);
        flux(&light, &heavy, 1.4)[0] == 0.0
    }
}

/// Returns the speeds of the outermost waves: the smaller of `v - c` of the left and the Roe-averaged state, the larger of `v + c` of the
/// right and the averaged state (Einfeldt et al. 1991, J. Comput. Phys. 92, 273; Batten et al. 1997, SIAM J. Sci. Comput. 18, 1553).
///
/// They are exact for an isolated shock. Averages are weighted by the square root of the density, multiplied through to need only one root.
/// In single precision the product of the two densities must be in range: densities from 1e-19 to 1e19.
#[device]
pub fn wave_speeds<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> (R, R) {
    let c2_l = gamma * l[4] / l[0];
    let c2_r = gamma * r[4] / r[0];
    let mean = (l[0] * r[0]).sqrt();
    let weight = 1.0 / ((l[0] + r[0]) + 2.0 * mean);
    let velocity = ((l[0] * l[1] + r[0] * r[1]) + mean * (l[1] + r[1])) * weight;
    let (a, b, c) = (r[1] - l[1], r[2] - l[2], r[3] - l[3]);
    let shear = 0.5 * (gamma - 1.0) * mean * (a * a + (b * b + c * c));
    let c2 = ((gamma * (l[4] + r[4]) + mean * (c2_l + c2_r)) + shear) * weight;
    let c = c2.sqrt();
    (
        (velocity - c).min(l[1] - c2_l.sqrt()),
        (velocity + c).max(r[1] + c2_r.sqrt()),
    )
}

/// Returns the flux density of a primitive state with total energy density `energy`.
#[device]
pub fn flux_of_state<R: Lane>(w: &[R; 5], energy: R) -> [R; 5] {
    let mass = w[0] * w[1];
    [
        mass,
        mass * w[1] + w[4],
        mass * w[2],
        mass * w[3],
        w[1] * (energy + w[4]),
    ]
}

/// Returns a mass fraction at a face divided by the sum of its set there. Limiting each one separately leaves sums that differ from 1
/// (Plewa & Mueller 1999, A&A 342, 179).
#[device]
pub fn normalized_fraction<R: Lane>(concentration: R, sum: R) -> R {
    let part = concentration / sum;
    if sum > 0.0 { part } else { concentration }
}

/// Returns the flux density of a passive scalar: the mass flux times the upwind mass fraction.
#[device]
pub fn flux_of_scalar<R: Lane>(mass_flux: R, left: R, right: R) -> R {
    let upwind = if mass_flux > 0.0 { left } else { right };
    mass_flux * upwind
}
