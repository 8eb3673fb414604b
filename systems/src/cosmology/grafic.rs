//! Perturbations from files of GRAFIC2 (Bertschinger 2001, ApJS 137, 1), which MUSIC and monofonIC also write.
//!
//! A file has a Fortran record with a header, and one for each plane of cells with numbers of 4 bytes, x fastest. A record has its length in bytes
//! before and after its content.

use super::config::Universe;
use super::perturbations::{PerturbationsConfig, gas_temperature, interpolated};
use super::second_order::Part;
use crate::fields::{PerturbationField, PerturbedMatter};
use crate::units::PARSEC;
use nestar_deck::{Deck, DeckError};
use nestar_engine::mesh::Domain;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Largest relative difference of numbers in a header, which have 4 bytes, from those of the deck.
const TOLERANCE: f64 = 1e-5;
/// Points that are nearer to the centre of a cell, in cells, have its numbers without interpolation.
const SNAP: f64 = 1e-9;
/// Bytes of a header.
const HEADER: usize = 44;

/// Perturbations from the files of a folder, on the cells of the root level.
pub(super) struct Grafic {
    folder: PathBuf,
    domain: Domain,
    wanted: GraficHeader,
    /// Code units of velocity in 1 km/s, and of length in 1 Mpc/h.
    units: [f64; 2],
    /// Logarithmic derivative of the growing mode by the comoving time at the start.
    rate: f64,
    gas_share: f64,
    boxes: [OnceLock<Vec<f32>>; Part::COUNT],
}

/// Header of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
struct GraficHeader {
    /// Numbers of cells along x, y and z.
    cells: [usize; 3],
    /// Width of a cell, Mpc.
    width: f64,
    /// Place of the box in the base grid, Mpc.
    offset: [f64; 3],
    scale_factor: f64,
    omega_m: f64,
    omega_lambda: f64,
    /// Hubble constant, km/s/Mpc.
    hubble: f64,
}

/// Returns the name of the file with a part of the perturbations.
fn file_name(part: Part) -> String {
    let axis = |axis: usize| ["x", "y", "z"][axis];
    match part {
        Part::Density => "ic_deltab".into(),
        Part::Displacement(a) => format!("ic_posc{}", axis(a)),
        Part::Velocity(a) => format!("ic_velc{}", axis(a)),
        Part::Flow(a) => format!("ic_velb{}", axis(a)),
    }
}

impl Grafic {
    /// Prepares the perturbations of a folder, relative to the deck.
    ///
    /// # Errors
    /// The deck has keys of random perturbations, or the cells of the root level are not cubes.
    pub fn new(
        folder: &str,
        config: &PerturbationsConfig,
        universe: &Universe,
        deck: &Deck,
        domain: Domain,
    ) -> Result<Self, DeckError> {
        let random = [
            ("sigma8", config.sigma8.is_some()),
            ("a_s", config.a_s.is_some()),
            ("file", config.file.is_some()),
            ("order", config.order != 1),
            ("level", config.level != 0),
            ("fixed", config.fixed),
            ("paired", config.paired),
        ];
        if let Some((key, _)) = random.into_iter().find(|(_, is_given)| *is_given) {
            let key = format!("perturbations.{key}");
            let why = format!(
                "`{key}` is of random perturbations, but those of `perturbations.grafic` are given: remove one of them"
            );
            return Err(deck.error_at(&key, why));
        }
        let cells = domain.cells(0).map(|n| n as usize);
        let length = universe.units.length_cgs / (1e6 * PARSEC);
        let widths = [0, 1, 2]
            .map(|a| length * (domain.right_edge[a] - domain.left_edge[a]) / cells[a] as f64);
        if widths.iter().any(|width| differ(*width, widths[0])) {
            let why = "cells of files of GRAFIC2 are cubes, but those of the root level are not: change domain.cells or the edges";
            return Err(deck.error_at("perturbations.grafic", why));
        }
        let start = universe.range[0];
        Ok(Self {
            folder: deck.directory().unwrap_or(Path::new("")).join(folder),
            domain,
            wanted: GraficHeader {
                cells,
                width: widths[0],
                offset: [0.0; 3],
                scale_factor: start,
                omega_m: universe.parameters.matter,
                omega_lambda: universe.parameters.dark_energy,
                hubble: 100.0 * universe.h,
            },
            units: [start / 100.0, 1.0].map(|unit| unit / (length * universe.h)),
            rate: universe.background.growth_rate(start),
            gas_share: config.omega_b / universe.parameters.matter,
            boxes: Default::default(),
        })
    }

    /// Reads the file of a part, unless it has been read.
    fn read(&self, part: Part) -> Result<(), String> {
        if self.boxes[part.number()].get().is_some() {
            return Ok(());
        }
        let path = self.folder.join(file_name(part));
        let at = |why: String| format!("{}: {why}", path.display());
        let bytes = std::fs::read(&path).map_err(|why| at(format!("cannot be read: {why}")))?;
        let numbers = numbers(&bytes, &self.wanted).map_err(at)?;
        let _ = self.boxes[part.number()].set(numbers);
        Ok(())
    }

    /// Returns `true` if the folder has displacements of particles.
    fn has_displacements(&self) -> bool {
        (0..3).any(|a| self.folder.join(file_name(Part::Displacement(a))).exists())
    }

    /// Returns the number of a part at a point.
    ///
    /// # Panics
    /// If its file has not been read.
    fn at(&self, part: Part, point: [f64; 3]) -> f64 {
        let numbers = self.boxes[part.number()]
            .get()
            .map_or(&[][..], Vec::as_slice);
        let cells = self.wanted.cells;
        interpolated(&self.domain, cells, point, SNAP, |n| f64::from(numbers[n]))
    }
}

impl PerturbationField for Grafic {
    fn prepare(&self, deck: &Deck, matter: PerturbedMatter) -> Result<(), DeckError> {
        let mut parts = match matter {
            PerturbedMatter::Gas => vec![Part::Density],
            PerturbedMatter::Particles => Vec::new(),
        };
        for axis in 0..3 {
            match matter {
                PerturbedMatter::Gas => parts.push(Part::Flow(axis)),
                PerturbedMatter::Particles => parts.push(Part::Velocity(axis)),
            }
            if matter == PerturbedMatter::Particles && self.has_displacements() {
                parts.push(Part::Displacement(axis));
            }
        }
        let mut all = parts.into_iter().map(|part| self.read(part));
        let read = all.try_for_each(|read| read);
        read.map_err(|why| deck.error_at("perturbations.grafic", why))
    }

    fn level_of_lattice(&self, _points: [u64; 3]) -> usize {
        0
    }

    fn overdensity(&self, point: [f64; 3], _level: usize) -> f64 {
        self.at(Part::Density, point)
    }

    fn displacement(&self, point: [f64; 3], level: usize) -> [f64; 3] {
        match self.boxes[Part::Displacement(0).number()].get() {
            Some(_) => [0, 1, 2].map(|a| self.at(Part::Displacement(a), point) * self.units[1]),
            None => self
                .velocity(point, level)
                .map(|velocity| velocity / self.rate),
        }
    }

    fn velocity(&self, point: [f64; 3], _level: usize) -> [f64; 3] {
        [0, 1, 2].map(|a| self.at(Part::Velocity(a), point) * self.units[0])
    }

    fn flow(&self, point: [f64; 3], _level: usize) -> [f64; 3] {
        [0, 1, 2].map(|a| self.at(Part::Flow(a), point) * self.units[0])
    }

    fn gas_share(&self) -> f64 {
        self.gas_share
    }

    fn temperature_k(&self) -> f64 {
        gas_temperature(1.0 / self.wanted.scale_factor - 1.0)
    }
}

/// Returns `true` if two numbers differ by more than the round-off of 4 bytes.
fn differ(a: f64, b: f64) -> bool {
    // a number that is not finite differs as well
    let difference = (a - b).abs();
    difference.is_nan() || difference > TOLERANCE * a.abs().max(b.abs()).max(TOLERANCE)
}

/// Returns the numbers of a file, x fastest.
fn numbers(bytes: &[u8], wanted: &GraficHeader) -> Result<Vec<f32>, String> {
    let mut records = Records::of(bytes)?;
    let header = records.next("the header", HEADER)?;
    records.header(header).check(wanted)?;
    let [nx, ny, nz] = wanted.cells;
    let mut numbers = Vec::with_capacity(nx * ny * nz);
    for plane in 0..nz {
        let record = records.next(&format!("plane {}", plane + 1), 4 * nx * ny)?;
        let words = record.chunks_exact(4);
        numbers.extend(words.map(|word| f32::from_bits(records.word(word))));
    }
    if !records.rest.is_empty() {
        let rest = records.rest.len();
        return Err(format!(
            "has {rest} bytes more than its {nz} planes: the file is damaged"
        ));
    }
    match numbers.iter().position(|number| !number.is_finite()) {
        None => Ok(numbers),
        Some(n) => Err(format!(
            "the number in cell {:?} (x, y, z, from 1) is {}",
            [n % nx + 1, n / nx % ny + 1, n / (nx * ny) + 1],
            numbers[n]
        )),
    }
}

/// Records of a Fortran file.
struct Records<'a> {
    rest: &'a [u8],
    is_big_endian: bool,
}

impl<'a> Records<'a> {
    /// Finds the order of bytes by the length of the header.
    fn of(bytes: &'a [u8]) -> Result<Self, String> {
        let first = bytes.first_chunk::<4>().copied().unwrap_or_default();
        let is_big_endian = u32::from_be_bytes(first) == HEADER as u32;
        if !is_big_endian && u32::from_le_bytes(first) != HEADER as u32 {
            return Err(format!(
                "is no file of GRAFIC2: it does not begin with a Fortran record of {HEADER} bytes"
            ));
        }
        Ok(Self {
            rest: bytes,
            is_big_endian,
        })
    }

    /// Returns the number of 4 bytes.
    fn word(&self, bytes: &[u8]) -> u32 {
        let bytes = bytes.first_chunk::<4>().copied().unwrap_or_default();
        match self.is_big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        }
    }

    /// Returns the content of the next record, which must have this length.
    fn next(&mut self, what: &str, length: usize) -> Result<&'a [u8], String> {
        if self.rest.len() < length + 8 {
            return Err(format!(
                "ends in {what}: {} bytes are left of a record of {length} and its two lengths; the file is damaged",
                self.rest.len()
            ));
        }
        let (record, rest) = self.rest.split_at(length + 8);
        for (place, mark) in [("before", &record[..4]), ("after", &record[length + 4..])] {
            let found = self.word(mark);
            if found as usize != length {
                return Err(format!(
                    "the length {place} {what} is {found} bytes in place of {length}: the file is damaged"
                ));
            }
        }
        self.rest = rest;
        Ok(&record[4..length + 4])
    }

    /// Reads the header.
    fn header(&self, record: &[u8]) -> GraficHeader {
        let word = |n: usize| self.word(&record[4 * n..]);
        let number = |n: usize| f64::from(f32::from_bits(word(n)));
        GraficHeader {
            cells: [0, 1, 2].map(|n| word(n) as usize),
            width: number(3),
            offset: [4, 5, 6].map(number),
            scale_factor: number(7),
            omega_m: number(8),
            omega_lambda: number(9),
            hubble: number(10),
        }
    }
}

impl GraficHeader {
    /// Compares the header with that of the deck.
    fn check(&self, wanted: &Self) -> Result<(), String> {
        if self.cells != wanted.cells {
            return Err(format!(
                "has {:?} cells, and the root level {:?}: set domain.cells to those of the file",
                self.cells, wanted.cells
            ));
        }
        // some writers give the centre of the first cell
        let is_shifted =
            |offset: &f64| offset.is_nan() || offset.abs() > (0.5 + TOLERANCE) * wanted.width;
        if self.offset.iter().any(is_shifted) {
            return Err(format!(
                "begins at {:?} Mpc in another grid: files of zooms are not supported",
                self.offset
            ));
        }
        let [found, own] = [self, wanted].map(|header| 1.0 / header.scale_factor - 1.0);
        let starts = [1.0 / self.scale_factor, 1.0 / wanted.scale_factor];
        if differ(starts[0], starts[1]) {
            return Err(format!(
                "is of redshift {found}, and the run starts at {own}: set cosmology.start_redshift"
            ));
        }
        for (name, found, own, remedy) in [
            ("omega_m", self.omega_m, wanted.omega_m, "cosmology.omega_m"),
            (
                "omega_lambda",
                self.omega_lambda,
                wanted.omega_lambda,
                "cosmology.omega_lambda",
            ),
            (
                "the Hubble constant in km/s/Mpc",
                self.hubble,
                wanted.hubble,
                "cosmology.h",
            ),
            (
                "the width of a cell in Mpc",
                self.width,
                wanted.width,
                "domain.left_edge and domain.right_edge",
            ),
        ] {
            if differ(found, own) {
                return Err(format!(
                    "{name} is {found}, and {own} in the deck: set {remedy}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{GraficHeader, numbers};

    const WANTED: GraficHeader = GraficHeader {
        cells: [4, 3, 2],
        width: 1.25,
        offset: [0.0; 3],
        scale_factor: 0.02,
        omega_m: 0.3,
        omega_lambda: 0.7,
        hubble: 70.0,
    };

    /// Numbers with all kinds of bits.
    fn values() -> Vec<f32> {
        (0..24)
            .map(|n| f32::from_bits(0x3f9d_70a4_u32.wrapping_mul(2 * n + 1) & 0xbfff_ffff))
            .collect()
    }

    /// A file with this header.
    fn file(header: &GraficHeader, values: &[f32], is_big_endian: bool) -> Vec<u8> {
        let swap = |word: u32| match is_big_endian {
            true => word.to_be_bytes(),
            false => word.to_le_bytes(),
        };
        let [nx, ny, nz] = header.cells;
        let numbers = [
            header.width,
            header.offset[0],
            header.offset[1],
            header.offset[2],
            header.scale_factor,
            header.omega_m,
            header.omega_lambda,
            header.hubble,
        ];
        let head: Vec<u32> = header
            .cells
            .iter()
            .map(|n| *n as u32)
            .chain(numbers.map(|number| (number as f32).to_bits()))
            .collect();
        let planes = values.chunks(nx * ny).take(nz);
        let planes = planes.map(|plane| plane.iter().map(|x| x.to_bits()).collect());
        let mut bytes = Vec::new();
        for record in std::iter::once(head).chain(planes) {
            let mark = swap(4 * record.len() as u32);
            bytes.extend(mark);
            bytes.extend(record.into_iter().flat_map(swap));
            bytes.extend(mark);
        }
        bytes
    }

    #[test]
    fn numbers_of_both_orders_of_bytes_are_read_to_the_bit() {
        for is_big_endian in [false, true] {
            let found = numbers(&file(&WANTED, &values(), is_big_endian), &WANTED);
            let found = found.unwrap_or_else(|why| panic!("{why}"));
            let bits = |all: &[f32]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&values()));
        }
    }

    #[test]
    fn files_of_another_universe_are_refused() {
        for (header, word) in [
            (
                GraficHeader {
                    cells: [3, 4, 2],
                    ..WANTED
                },
                "domain.cells",
            ),
            (
                GraficHeader {
                    width: 1.26,
                    ..WANTED
                },
                "width of a cell",
            ),
            (
                GraficHeader {
                    offset: [0.0, 2.5, 0.0],
                    ..WANTED
                },
                "zooms",
            ),
            (
                GraficHeader {
                    scale_factor: 0.021,
                    ..WANTED
                },
                "cosmology.start_redshift",
            ),
            (
                GraficHeader {
                    omega_m: 0.3001,
                    ..WANTED
                },
                "cosmology.omega_m",
            ),
            (
                GraficHeader {
                    omega_lambda: f64::NAN,
                    ..WANTED
                },
                "cosmology.omega_lambda",
            ),
            (
                GraficHeader {
                    hubble: 67.66,
                    ..WANTED
                },
                "cosmology.h",
            ),
        ] {
            let why = numbers(&file(&header, &values(), true), &WANTED).expect_err(word);
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = file(&WANTED, &values(), false);
        let with = |change: fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            numbers(&bytes, &WANTED).expect_err("refused")
        };
        for (change, word) in [
            (
                (|bytes| bytes.clear()) as fn(&mut Vec<u8>),
                "no file of GRAFIC2",
            ),
            (|bytes| bytes[0] = 45, "no file of GRAFIC2"),
            (|bytes| bytes.truncate(30), "ends in the header"),
            (|bytes| bytes[48] = 45, "after the header is 45"),
            (|bytes| bytes[52] = 47, "before plane 1 is 47"),
            (|bytes| bytes.truncate(bytes.len() - 1), "ends in plane 2"),
            (|bytes| bytes.push(0), "1 bytes more"),
            (
                |bytes| bytes[56..60].copy_from_slice(&f32::NAN.to_le_bytes()),
                "cell [1, 1, 1]",
            ),
        ] {
            let why = with(change);
            assert!(why.contains(word), "{word}: {why}");
        }
    }
}
