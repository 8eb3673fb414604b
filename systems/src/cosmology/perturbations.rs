//! Random perturbations of the initial density in linear theory: the table `[perturbations]`.
//!
//! Each mode of the box draws its own random numbers, by its wave numbers as integers. A box with more cells, and a run on any number of
//! ranks, therefore has the same modes. Displacements and velocities are those of Zel'dovich (1970).

use super::config::Universe;
use super::spectrum::{Shape, Spectrum, SpectrumParameters};
use crate::fields::PerturbationField;
use crate::spectral::box_of_modes;
use crate::units::PARSEC;
use nestar_deck::deck;
use nestar_device::Place;
use nestar_device::math::{cos, sin, sqrt};
use nestar_device::random::{Stream, in_cell, normals};
use nestar_engine::mesh::Domain;
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::sync::OnceLock;

/// Shape of the power spectrum.
#[deck]
pub enum SpectrumShape {
    /// Cold dark matter and baryons with acoustic oscillations (Eisenstein & Hu 1998).
    EisensteinHu,
    /// The same without oscillations.
    NoWiggle,
    /// The power `n_s` of the wave number.
    PowerLaw,
}

/// Random perturbations of the initial density, for `scenario = "cosmological"` and for particles with `perturbed = true`. They need a table
/// `[cosmology]`.
#[deck]
pub struct PerturbationsConfig {
    /// Shape of the power spectrum.
    #[key(default = SpectrumShape::EisensteinHu)]
    pub spectrum: SpectrumShape,
    /// Root of the mean square of the density contrast today in spheres of 8 Mpc/h, in linear theory.
    #[key(default = 0.8102, above = 0.0, max = 100.0)]
    pub sigma8: f64,
    /// Power of the wave number in the primordial spectrum.
    #[key(default = 0.9665, min = -3.0, max = 4.0)]
    pub n_s: f64,
    /// Density parameter of baryons today, for the shape of the spectrum and for the share of gas.
    #[key(default = 0.049, above = 0.0, max = 1.0)]
    pub omega_b: f64,
    /// Seed of the random numbers.
    #[key(default = 0)]
    pub seed: u32,
    /// Give each mode the root of its expected power as amplitude, and draw its phase alone (Angulo & Pontzen 2016).
    #[key(default = false)]
    pub fixed: bool,
    /// Change the sign of all modes: with `fixed`, the mean of both runs has a small variance.
    #[key(default = false)]
    pub paired: bool,
}

impl PerturbationsConfig {
    /// Returns the spectrum in a universe.
    pub(super) fn spectrum(&self, omega_m: f64, h: f64) -> Spectrum {
        Spectrum::new(SpectrumParameters {
            shape: match self.spectrum {
                SpectrumShape::EisensteinHu => Shape::EisensteinHu,
                SpectrumShape::NoWiggle => Shape::NoWiggle,
                SpectrumShape::PowerLaw => Shape::PowerLaw,
            },
            omega_m,
            omega_b: self.omega_b,
            h,
            n_s: self.n_s,
            sigma8: self.sigma8,
        })
    }
}

/// Temperature of the microwave background today, kelvin (Fixsen 2009, ApJ 707, 916).
const BACKGROUND_K: f64 = 2.7255;
/// Redshift at which gas decouples thermally from the microwave background (Peebles 1993).
const DECOUPLING: f64 = 136.0;

/// Number of boxes: the density contrast, and the displacement along each axis.
const BOXES: usize = 4;

/// The perturbations of a run on the cells of its root level. Each box of numbers is made when it is first read.
pub(super) struct Perturbations {
    domain: Domain,
    spectrum: Spectrum,
    stream: Stream,
    /// Amplitudes at the start over those today; negative with `paired`.
    growth: f64,
    is_fixed: bool,
    /// Logarithmic derivative of the growing mode by the comoving time at the start.
    rate: f64,
    /// Unit of length in Mpc/h.
    length: f64,
    gas_share: f64,
    /// Redshift at the start.
    redshift: f64,
    boxes: [OnceLock<Vec<f64>>; BOXES],
}

impl Perturbations {
    /// Prepares the perturbations at the start of a run.
    pub fn new(
        config: &PerturbationsConfig,
        universe: &Universe,
        stream: Stream,
        domain: Domain,
    ) -> Self {
        let sign = if config.paired { -1.0 } else { 1.0 };
        let (background, [start, _]) = (&universe.background, universe.range);
        Self {
            domain,
            spectrum: config.spectrum(universe.parameters.matter, universe.h),
            stream,
            growth: sign * background.growth(start) / background.growth(1.0),
            is_fixed: config.fixed,
            rate: background.growth_rate(start),
            length: universe.units.length_cgs * universe.h / (1e6 * PARSEC),
            gas_share: config.omega_b / universe.parameters.matter,
            redshift: 1.0 / start - 1.0,
            boxes: Default::default(),
        }
    }

    /// Returns the numbers of cells of the root level.
    fn cells(&self) -> [usize; 3] {
        self.domain.cells(0).map(|n| n as usize)
    }

    /// Returns the edges of the domain.
    fn edges(&self) -> [f64; 3] {
        [0, 1, 2].map(|a| self.domain.right_edge[a] - self.domain.left_edge[a])
    }

    /// Returns the mode of the density contrast at the start, with the origin at the centre of the first cell. It is 0 from the Nyquist
    /// frequency on.
    fn mode(&self, wave: [i64; 3]) -> [f64; 2] {
        let (cells, edges) = (self.cells(), self.edges());
        let is_above = (0..3).any(|a| 2 * wave[a].unsigned_abs() as usize >= cells[a]);
        if is_above || wave == [0; 3] {
            return [0.0; 2];
        }
        // of two opposite modes, which are conjugate, one draws
        let first = wave.into_iter().find(|n| *n != 0).unwrap_or(0);
        let sign = if first > 0 { 1.0 } else { -1.0 };
        let index = wave.map(|n| (n * first.signum()) as i32);
        let at = Place {
            centre: [0.0; 3],
            width: [0.0; 3],
            index,
            level: 0,
            time: 0.0,
            dt: 0.0,
            numbers: [1.0; 2],
        };
        let [mut re, mut im] = normals::<f64>(in_cell(&self.stream, &at, 0));
        if self.is_fixed {
            let size = sqrt(re * re + im * im);
            (re, im) = (re / size, im / size);
        } else {
            (re, im) = (re * FRAC_1_SQRT_2, im * FRAC_1_SQRT_2);
        }
        let k = self.wave_vector(wave).map(|k| k / self.length);
        let k = sqrt(k[0] * k[0] + k[1] * k[1] + k[2] * k[2]);
        let volume: f64 = edges.into_iter().map(|edge| edge * self.length).product();
        let size = self.growth * sqrt(self.spectrum.power(k) / volume);
        let phase = PI
            * (0..3)
                .map(|a| wave[a] as f64 / cells[a] as f64)
                .sum::<f64>();
        let (c, s) = (cos(phase), sin(phase));
        let (re, im) = (size * re, size * sign * im);
        [re * c - im * s, re * s + im * c]
    }

    /// Returns the wave vector in code units.
    fn wave_vector(&self, wave: [i64; 3]) -> [f64; 3] {
        let edges = self.edges();
        [0, 1, 2].map(|a| 2.0 * PI * wave[a] as f64 / edges[a])
    }

    /// Returns box `n`.
    fn numbers(&self, n: usize) -> &[f64] {
        self.boxes[n].get_or_init(|| {
            box_of_modes(self.cells(), |wave| {
                let [re, im] = self.mode(wave);
                let Some(axis) = n.checked_sub(1) else {
                    return [re, im];
                };
                let k = self.wave_vector(wave);
                let square = k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
                // the density contrast is minus the divergence of the displacement
                match square > 0.0 {
                    true => [-im * k[axis] / square, re * k[axis] / square],
                    false => [0.0; 2],
                }
            })
        })
    }

    /// Returns the value of box `n` at a point, by linear interpolation between the centres of cells.
    fn at(&self, n: usize, point: [f64; 3]) -> f64 {
        let (numbers, cells, edges) = (self.numbers(n), self.cells(), self.edges());
        let along = |a: usize| {
            let cell = (point[a] - self.domain.left_edge[a]) / edges[a] * cells[a] as f64 - 0.5;
            let lower = cell.floor();
            let index = |by: f64| (lower + by).rem_euclid(cells[a] as f64) as usize % cells[a];
            ([index(0.0), index(1.0)], cell - lower)
        };
        let [x, y, z] = [0, 1, 2].map(along);
        let mut sum = 0.0;
        for corner in 0..8 {
            let side = [corner & 1, corner >> 1 & 1, corner >> 2];
            let part = |(_, share): &([usize; 2], f64), side: usize| match side {
                0 => 1.0 - share,
                _ => *share,
            };
            let weight = part(&x, side[0]) * part(&y, side[1]) * part(&z, side[2]);
            let place = x.0[side[0]] + cells[0] * (y.0[side[1]] + cells[1] * z.0[side[2]]);
            sum += weight * numbers[place];
        }
        sum
    }
}

impl PerturbationField for Perturbations {
    fn overdensity(&self, point: [f64; 3]) -> f64 {
        self.at(0, point)
    }

    fn displacement(&self, point: [f64; 3]) -> [f64; 3] {
        [1, 2, 3].map(|n| self.at(n, point))
    }

    fn velocity(&self, point: [f64; 3]) -> [f64; 3] {
        self.displacement(point).map(|by| by * self.rate)
    }

    fn gas_share(&self) -> f64 {
        self.gas_share
    }

    fn temperature_k(&self) -> f64 {
        let scale = 1.0 + self.redshift;
        match scale < 1.0 + DECOUPLING {
            true => BACKGROUND_K * scale * scale / (1.0 + DECOUPLING),
            false => BACKGROUND_K * scale,
        }
    }
}
