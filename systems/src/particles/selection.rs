//! Selects particles by one of their scalars, such as the time of their birth.

use super::device::ListId;
use super::mass_quantum::power_of_two;
use super::pages::{ParticleReal, PatchParticles};
use super::particle::Particle;
use super::species::Species;
use nestar_device::Real;
use nestar_engine::data::PatchPlace;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::DeviceError;
use nestar_engine::in_precision;
use nestar_engine::mesh::{Topology, parallel};
use nestar_kernels::PATCH;

/// A selected particle.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectedParticle {
    /// Row of the patch that contains it.
    pub row: u32,
    /// Level of the patch: that of the step, or the next coarser one.
    pub level: usize,
    /// Index of the patch on its level, in patches.
    pub patch: [i32; 3],
    /// Offset in the patch in units of 2^-64 of its width.
    pub offset: [u64; 3],
    /// The particle.
    pub particle: Particle,
}

impl SelectedParticle {
    /// Returns the index on `level` of the cell that contains the particle. The level is that of the patch or the next finer one.
    #[must_use]
    pub fn cell_on(&self, level: usize) -> [i32; 3] {
        let finer = (level - self.level) as u32;
        let bits = PATCH.trailing_zeros() + finer;
        [0, 1, 2].map(|axis| {
            let within = (self.offset[axis] >> (64 - bits)) as i32;
            (self.patch[axis] << bits) + within
        })
    }
}

impl SelectedParticle {
    /// Returns the position in cells of `level`, which is that of the patch or the next finer one.
    #[must_use]
    pub fn place_on(&self, level: usize) -> [f64; 3] {
        let cells = (PATCH << (level - self.level)) as f64;
        [0, 1, 2].map(|axis| {
            let within = self.offset[axis] as f64 / power_of_two(64);
            (f64::from(self.patch[axis]) + within) * cells
        })
    }
}

/// Particles whose number in a column lies above the first bound and not above the second one.
#[derive(Clone, Copy)]
pub(super) struct NumberRange {
    /// Column, counted after the identity.
    pub column: usize,
    pub above: f64,
    pub upto: f64,
}

impl Species {
    /// Returns the particles that `level` moves on this rank and whose scalar lies in the interval from `bounds[0]`, which is excluded,
    /// to `bounds[1]`, in the order of their identities. On a device, eight bytes are fetched if there is none.
    ///
    /// # Errors
    /// There is no such scalar; the device fails.
    pub fn select(
        &mut self,
        topology: &Topology,
        tables: Option<&DeviceTopology>,
        level: usize,
        scalar: &str,
        bounds: [f64; 2],
    ) -> Result<Vec<SelectedParticle>, DeviceError> {
        let number = self.scalars.iter().position(|own| own == scalar);
        let number = number.ok_or_else(|| {
            DeviceError::Setup(format!(
                "a plugin selects particles by the scalar {scalar:?}: add it to `particles.species.{}.scalars`",
                self.name
            ))
        })?;
        let [above, upto] = bounds;
        let range = NumberRange {
            column: 9 + usize::from(self.pool.columns.masses) + number,
            above,
            upto,
        };
        let lists = [(Some(level), 0), (level.checked_sub(1), 1)];
        let mut all = Vec::new();
        for (level, list) in lists {
            let Some(level) = level else { continue };
            let found = match self.upload(topology, tables)? {
                Some(lists) => lists.select(topology, tables, ListId { level, list }, range)?,
                None => {
                    in_precision!(self.precision(), R => self.select_on_host::<R>(topology, level, list, range))
                }
            };
            all.extend(found);
        }
        all.sort_unstable_by_key(|found| found.particle.id);
        Ok(all)
    }

    fn select_on_host<R: ParticleReal>(
        &mut self,
        topology: &Topology,
        level: usize,
        list: usize,
        range: NumberRange,
    ) -> Vec<SelectedParticle> {
        let rows = topology.rows(level);
        let found = parallel::map(rows, |&row| {
            let pages = &(&self.patches[row as usize] as &PatchParticles)[list];
            let numbers = pages.numbers::<R>(range.column).enumerate();
            let is_in = |number: f64| number > range.above && number <= range.upto;
            let selected = numbers.filter(|(_, number)| is_in(Real::to_f64(*number)));
            let record_of = |(n, _): (usize, R)| {
                let mut record = Vec::new();
                pages.read(self.pool.columns, n, &mut record);
                self.selected(topology, level, row, &record)
            };
            selected.map(record_of).collect::<Vec<_>>()
        });
        found.into_iter().flatten().collect()
    }

    /// Returns the particle of a record.
    fn selected(
        &self,
        topology: &Topology,
        level: usize,
        row: u32,
        record: &[u8],
    ) -> SelectedParticle {
        let offset = |axis: usize| {
            let bytes = &record[self.offset_in(axis)];
            let mut wide = [0; 8];
            wide[8 - bytes.len()..].copy_from_slice(bytes);
            u64::from_le_bytes(wide)
        };
        SelectedParticle {
            row,
            level,
            patch: topology.index(row),
            offset: [0, 1, 2].map(offset),
            particle: self.decode(topology, level, row, record),
        }
    }
}

/// Returns the particle of the words that a device selects: identity, row, offset, then the other numbers.
pub(super) fn decode_words(
    topology: &Topology,
    level: usize,
    masses: bool,
    words: &[u64],
) -> SelectedParticle {
    let row = words[1] as u32;
    let offset = [words[2], words[3], words[4]];
    let place = PatchPlace {
        domain: &topology.domain,
        level,
        index: topology.index(row),
    };
    let number = |n: usize| f64::from_bits(words[2 + n]);
    // below the upper edge also if the conversion rounds up
    let share = |offset: u64| (offset as f64 / power_of_two(64)).min(1f64.next_down());
    let first = 9 + usize::from(masses);
    SelectedParticle {
        row,
        level,
        patch: topology.index(row),
        offset,
        particle: Particle {
            id: words[0],
            level,
            position: place.at(offset.map(share)),
            velocity: [number(3), number(4), number(5)],
            acceleration: [number(6), number(7), number(8)],
            mass: if masses { number(9) } else { 0.0 },
            scalars: words[2 + first..]
                .iter()
                .map(|bits| f64::from_bits(*bits))
                .collect(),
        },
    }
}
