//! Random perturbations of the initial density in linear theory: the table `[perturbations]`.
//!
//! Each mode of the box draws its own random numbers, by its wave numbers as integers. A box with more cells, and a run on any number of
//! ranks, therefore has the same modes. Displacements and velocities are those of Zel'dovich (1970), or of second order.

use super::config::Universe;
use super::second_order::{Grid, Growth, Part, SecondOrder};
use super::spectrum::{Normalisation, PrimordialAmplitude, Shape, Spectrum, SpectrumParameters};
use super::spectrum_table::SpectrumTable;
use crate::fields::{PerturbationField, PerturbedMatter};
use crate::spectral::box_of_modes;
use crate::units::PARSEC;
use nestar_deck::{Deck, DeckError, deck};
use nestar_device::Place;
use nestar_device::math::{cos, sin, sqrt};
use nestar_device::random::{Stream, in_cell, normals};
use nestar_engine::mesh::Domain;
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::path::Path;
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
    /// The columns of a text file.
    Table,
}

/// Perturbations of the initial density, random or from files, for `scenario = "cosmological"` and for particles with `perturbed = true`. They need a table
/// `[cosmology]`.
#[deck]
pub struct PerturbationsConfig {
    /// Shape of the power spectrum.
    #[key(default = SpectrumShape::EisensteinHu)]
    pub spectrum: SpectrumShape,
    /// Order of the displacements in the density contrast: 1 (Zel'dovich 1970) or 2 (2LPT).
    #[key(default = 1, min = 1, max = 2)]
    pub order: u32,
    /// Finest level with waves of its own, below the Nyquist frequency of its cells: for lattices with more points than root cells, and for gas that
    /// is refined at the start. All waves of a level are in memory.
    #[key(default = 0, max = 12)]
    pub level: u32,
    /// Root of the mean square of the density contrast today in spheres of 8 Mpc/h, in linear theory. Default: 0.8102 without `a_s`; a table
    /// keeps its own amplitude.
    #[key(above = 0.0, max = 100.0)]
    pub sigma8: Option<f64>,
    /// Amplitude of the primordial perturbations of curvature, in place of `sigma8`, such as 2.1e-9.
    #[key(above = 0.0, max = 1.0)]
    pub a_s: Option<f64>,
    /// Wave number at which `a_s` is given.
    #[key(default = 0.05, unit = "1/Mpc", above = 0.0, max = 1e3)]
    pub pivot: f64,
    /// Power of the wave number in the primordial spectrum; a table does not need it.
    #[key(default = 0.9665, min = -3.0, max = 4.0)]
    pub n_s: f64,
    /// Text file of `spectrum = "table"`, relative to the deck: wave numbers in h/Mpc and powers in (Mpc/h)^3, in linear theory; or powers of gas,
    /// then those of dark matter.
    pub file: Option<String>,
    /// Redshift of the powers in the table.
    #[key(default = 0.0, min = 0.0, max = 1e5)]
    pub table_redshift: f64,
    /// Folder of files of GRAFIC2 with the perturbations, relative to the deck, in place of random ones: `ic_deltab` and `ic_velbx` to
    /// `ic_velbz` for gas, `ic_velcx` to `ic_velcz` and possibly `ic_poscx` to `ic_poscz` for particles.
    pub grafic: Option<String>,
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

/// Standard deviation of the default spectrum (Planck Collaboration 2020, A&A 641, A6, last column of table 2).
const SIGMA8: f64 = 0.8102;
/// Wave numbers that a table must contain for its normalisation by `sigma8`, h/Mpc.
const SIGMA8_RANGE: [f64; 2] = [1e-3, 10.0];

impl PerturbationsConfig {
    /// Returns the spectrum in a universe, which must contain the wave numbers `waves` of the box in h/Mpc.
    ///
    /// # Errors
    /// The amplitude is given twice, or the file is missing, is invalid or does not contain the wave numbers.
    pub(super) fn spectrum(
        &self,
        deck: &Deck,
        universe: &Universe,
        waves: [f64; 2],
    ) -> Result<Spectrum, DeckError> {
        if let (Some(_), Some(_)) = (self.sigma8, self.a_s) {
            let why = "give the amplitude as `sigma8` or as `a_s`: remove one of them";
            let keys = ["perturbations.sigma8", "perturbations.a_s"];
            let [first, second] = keys.map(|key| deck.error_at(key, format!("`{key}`: {why}")));
            return Err(first.and(second));
        }
        let shape = match self.spectrum {
            SpectrumShape::EisensteinHu => Shape::EisensteinHu,
            SpectrumShape::NoWiggle => Shape::NoWiggle,
            SpectrumShape::PowerLaw => Shape::PowerLaw,
            SpectrumShape::Table => return self.table(deck, universe, waves),
        };
        if self.file.is_some() {
            let why = "`perturbations.file` needs spectrum = \"table\": set it, or remove the file";
            return Err(deck.error_at("perturbations.file", why));
        }
        let normalisation = match self.a_s {
            Some(a_s) => Normalisation::Primordial(PrimordialAmplitude {
                a_s,
                pivot: self.pivot,
                growth: universe.background.growth(1.0),
            }),
            None => Normalisation::Sigma8(self.sigma8.unwrap_or(SIGMA8)),
        };
        Ok(Spectrum::new(SpectrumParameters {
            shape,
            omega_m: universe.parameters.matter,
            omega_b: self.omega_b,
            h: universe.h,
            n_s: self.n_s,
            normalisation,
        }))
    }

    /// Reads the spectrum from the file.
    fn table(
        &self,
        deck: &Deck,
        universe: &Universe,
        waves: [f64; 2],
    ) -> Result<Spectrum, DeckError> {
        if self.a_s.is_some() {
            let why = "`perturbations.a_s` needs a spectrum in closed form: remove it, or give `sigma8`; without both, the powers \
                       are those of the table";
            return Err(deck.error_at("perturbations.a_s", why));
        }
        let Some(file) = &self.file else {
            let why = "spectrum = \"table\" needs a text file with wave numbers and powers: give `perturbations.file`";
            return Err(deck.error_at("perturbations.spectrum", why));
        };
        let path = deck.directory().unwrap_or(Path::new("")).join(file);
        let table = SpectrumTable::read(&path)?;
        if table.is_by_species() && self.order != 1 {
            let why = format!(
                "{} has powers of gas and of dark matter, which work with perturbations.order = 1: set it, or give the power of all matter",
                path.display()
            );
            return Err(deck.error_at("perturbations.order", why));
        }
        let [first, last] = table.range();
        let check = |[least, most]: [f64; 2], what: &str, remedy: &str| {
            if first <= least && most <= last {
                return Ok(());
            }
            let why = format!(
                "{} has the wave numbers {first:.4e} to {last:.4e} h/Mpc, but {what} needs {least:.4e} to {most:.4e}: {remedy}",
                path.display()
            );
            Err(deck.error_at("perturbations.file", why))
        };
        check(
            waves,
            "the box",
            "give a table with more rows, or change domain.cells or the edges",
        )?;
        let background = &universe.background;
        let growth = background.growth(1.0) / background.growth(1.0 / (1.0 + self.table_redshift));
        let gas = self.omega_b / universe.parameters.matter;
        let Some(sigma8) = self.sigma8 else {
            return Ok(Spectrum::tabulated(table, gas, growth * growth));
        };
        let remedy = "give a table with more rows, or remove `sigma8`";
        check(SIGMA8_RANGE, "a normalisation by `sigma8`", remedy)?;
        Ok(Spectrum::tabulated(table, gas, 1.0).with_sigma8(sigma8))
    }
}

/// Temperature of the microwave background today, kelvin (Fixsen 2009, ApJ 707, 916).
const BACKGROUND_K: f64 = 2.7255;
/// Redshift at which gas decouples thermally from the microwave background (Peebles 1993).
const DECOUPLING: f64 = 136.0;

/// The perturbations of a run on the cells of some levels.
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
    /// The levels from the root on.
    levels: Vec<LevelWaves>,
}

/// Waves below the Nyquist frequency of the cells of a level. Each box of numbers is made when it is first read.
struct LevelWaves {
    grid: Grid,
    /// The second order, if it is wanted.
    second: Option<SecondOrder>,
    boxes: [OnceLock<Vec<f64>>; Part::COUNT],
}

impl LevelWaves {
    /// Describes the waves of a level; `second` is present for the second order.
    fn new(domain: &Domain, level: usize, second: Option<Growth>) -> Self {
        let grid = Grid {
            cells: domain.cells(level).map(|n| n as usize),
            edges: [0, 1, 2].map(|a| domain.right_edge[a] - domain.left_edge[a]),
        };
        Self {
            grid,
            second: second.map(|growth| SecondOrder::new(grid, growth)),
            boxes: Default::default(),
        }
    }

    /// Returns the bytes that all boxes need while they are made; `by_species`: gas and dark matter have spectra of their own.
    fn bytes(&self, by_species: bool) -> f64 {
        let cells: f64 = self.grid.cells.map(|n| n as f64).iter().product();
        let numbers = match (&self.second, by_species) {
            (Some(_), _) => 22,
            (None, true) => 8,
            (None, false) => 5,
        };
        (numbers * size_of::<f64>()) as f64 * cells
    }
}

impl Perturbations {
    /// Prepares the perturbations at the start of a run.
    ///
    /// # Errors
    /// The spectrum is invalid.
    pub fn new(
        config: &PerturbationsConfig,
        universe: &Universe,
        deck: &Deck,
        stream: Stream,
        domain: Domain,
    ) -> Result<Self, DeckError> {
        let sign = if config.paired { -1.0 } else { 1.0 };
        let (background, [start, _]) = (&universe.background, universe.range);
        let rate = background.growth_rate(start);
        let growth = Growth {
            rate,
            ratio: background.second_growth(start),
            second_rate: background.second_growth_rate(start),
        };
        let second = (config.order == 2).then_some(growth);
        let finest = config.level as usize;
        let levels = (0..=finest).map(|level| LevelWaves::new(&domain, level, second));
        let levels: Vec<LevelWaves> = levels.collect();
        let length = universe.units.length_cgs * universe.h / (1e6 * PARSEC);
        let waves = levels[finest].grid.wave_numbers().map(|k| k / length);
        Ok(Self {
            domain,
            spectrum: config.spectrum(deck, universe, waves)?,
            stream,
            growth: sign * background.growth(start) / background.growth(1.0),
            is_fixed: config.fixed,
            rate,
            length,
            gas_share: config.omega_b / universe.parameters.matter,
            redshift: 1.0 / start - 1.0,
            levels,
        })
    }

    /// Refuses levels whose waves need more than the `free` bytes of memory of each rank.
    ///
    /// # Errors
    /// They need more.
    pub fn check_memory(&self, deck: &Deck, free: u64) -> Result<(), DeckError> {
        let by_species = self.spectrum.is_by_species();
        let bytes: f64 = self.levels.iter().map(|own| own.bytes(by_species)).sum();
        let finest = self.levels.len() - 1;
        if finest == 0 || bytes <= free as f64 {
            return Ok(());
        }
        let gib = |bytes: f64| bytes / f64::from(1u32 << 30);
        let why = format!(
            "`perturbations.level` = {finest}: the waves of {:?} cells need {:.1} GiB of memory, but each rank has {:.1} GiB: give a lower level, \
             or run fewer ranks on a host",
            self.levels[finest].grid.cells,
            gib(bytes),
            gib(free as f64)
        );
        Err(deck.error_at("perturbations.level", why))
    }

    /// Returns the waves of a level, or of the finest one.
    fn level(&self, level: usize) -> &LevelWaves {
        &self.levels[level.min(self.levels.len() - 1)]
    }

    /// Returns the mode of the density contrast of matter at the start, with the origin at the centre of the first cell of a grid. It is 0 from
    /// the Nyquist frequency on.
    fn mode(&self, grid: &Grid, of: PerturbedMatter, wave: [i64; 3]) -> [f64; 2] {
        let Grid { cells, edges } = *grid;
        if !grid.contains(wave) {
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
        let k = grid.wave_vector(wave).map(|k| k / self.length);
        let k = sqrt(k[0] * k[0] + k[1] * k[1] + k[2] * k[2]);
        let volume: f64 = edges.into_iter().map(|edge| edge * self.length).product();
        let size = self.growth * sqrt(self.spectrum.power_of(k, of) / volume);
        let phase = PI
            * (0..3)
                .map(|a| wave[a] as f64 / cells[a] as f64)
                .sum::<f64>();
        let (c, s) = (cos(phase), sin(phase));
        let (re, im) = (size * re, size * sign * im);
        [re * c - im * s, re * s + im * c]
    }

    /// Returns the box of a part; without a second order, those of velocities contain displacements.
    fn numbers<'a>(&'a self, own: &'a LevelWaves, part: Part) -> &'a [f64] {
        let grid = &own.grid;
        let linear = |wave: [i64; 3]| self.mode(grid, part.matter(), wave);
        own.boxes[part.number()].get_or_init(|| {
            on_own_threads(|| match (&own.second, part) {
                (Some(second), _) => box_of_modes(grid.cells, second.modes(part, &linear)),
                (None, Part::Density) => box_of_modes(grid.cells, linear),
                (None, Part::Displacement(axis) | Part::Velocity(axis) | Part::Flow(axis)) => {
                    box_of_modes(grid.cells, |wave| {
                        grid.displacement(wave, linear(wave), axis)
                    })
                }
            })
        })
    }

    /// Returns the number of a box at a point.
    fn number_at(&self, own: &LevelWaves, part: Part, point: [f64; 3]) -> f64 {
        let numbers = self.numbers(own, part);
        interpolated(&self.domain, own.grid.cells, point, 0.0, |n| numbers[n])
    }

    /// Returns the numbers of boxes at a point.
    fn at(&self, own: &LevelWaves, part: fn(usize) -> Part, point: [f64; 3]) -> [f64; 3] {
        [0, 1, 2].map(|axis| self.number_at(own, part(axis), point))
    }

    /// Returns a velocity at a point; that of first order is the displacement of this matter times its rate.
    fn velocity_of(&self, own: &LevelWaves, part: fn(usize) -> Part, point: [f64; 3]) -> [f64; 3] {
        if own.second.is_some() {
            return self.at(own, part, point);
        }
        let is_of_gas = part(0).matter() == PerturbedMatter::Gas;
        let displacement = match is_of_gas && self.spectrum.is_by_species() {
            true => Part::Flow,
            false => Part::Displacement,
        };
        self.at(own, displacement, point).map(|by| by * self.rate)
    }
}

/// Calls `make` on threads of its own, and waits for it. A task that waits for a part of its work may begin another one of its pool, which
/// would need the same box.
fn on_own_threads<T: Send>(make: impl FnOnce() -> T + Send) -> T {
    let threads = rayon::current_num_threads();
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => std::thread::scope(|scope| {
            let made = scope.spawn(|| pool.install(make)).join();
            made.unwrap_or_else(|why| std::panic::resume_unwind(why))
        }),
        Err(_) => make(),
    }
}

/// Returns a number on `cells` of the box at a point, by linear interpolation between their centres. A point that is nearer to a
/// centre than `snap` cells along an axis is at the centre.
pub(super) fn interpolated(
    domain: &Domain,
    cells: [usize; 3],
    point: [f64; 3],
    snap: f64,
    number: impl Fn(usize) -> f64,
) -> f64 {
    let along = |a: usize| {
        let edge = domain.right_edge[a] - domain.left_edge[a];
        let mut cell = (point[a] - domain.left_edge[a]) / edge * cells[a] as f64 - 0.5;
        if (cell - cell.round()).abs() < snap {
            cell = cell.round();
        }
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
        sum += weight * number(place);
    }
    sum
}

/// Returns the temperature of gas that has cooled by the expansion since it decoupled from the microwave background, kelvin.
pub(super) fn gas_temperature(redshift: f64) -> f64 {
    let scale = 1.0 + redshift;
    match scale < 1.0 + DECOUPLING {
        true => BACKGROUND_K * scale * scale / (1.0 + DECOUPLING),
        false => BACKGROUND_K * scale,
    }
}

impl PerturbationField for Perturbations {
    fn prepare(&self, _: &Deck, _: PerturbedMatter) -> Result<(), DeckError> {
        Ok(())
    }

    fn level_of_lattice(&self, points: [u64; 3]) -> usize {
        let finest = self.levels.len() - 1;
        let holds = |own: &LevelWaves| (0..3).all(|a| own.grid.cells[a] as u64 >= points[a]);
        self.levels.iter().position(holds).unwrap_or(finest)
    }

    fn overdensity(&self, point: [f64; 3], level: usize) -> f64 {
        self.number_at(self.level(level), Part::Density, point)
    }

    fn displacement(&self, point: [f64; 3], level: usize) -> [f64; 3] {
        self.at(self.level(level), Part::Displacement, point)
    }

    fn velocity(&self, point: [f64; 3], level: usize) -> [f64; 3] {
        self.velocity_of(self.level(level), Part::Velocity, point)
    }

    fn flow(&self, point: [f64; 3], level: usize) -> [f64; 3] {
        self.velocity_of(self.level(level), Part::Flow, point)
    }

    fn gas_share(&self) -> f64 {
        self.gas_share
    }

    fn temperature_k(&self) -> f64 {
        gas_temperature(self.redshift)
    }
}
