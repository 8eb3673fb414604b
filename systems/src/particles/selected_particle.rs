//! A particle with its place, as functions and births give and take it.

use super::mass_quantum::power_of_two;
use super::particle::Particle;
use super::species::Species;
use nestar_engine::data::PatchPlace;
use nestar_engine::mesh::Topology;
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
    /// The particle. Its mass includes the scalar `mass_remainder`, if the species has it.
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

impl Species {
    /// Returns the particle of a record.
    pub(super) fn selected(
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

    /// Adds the remainder of the mass to the masses of selected particles.
    pub(super) fn complete_masses<'a>(&self, all: impl Iterator<Item = &'a mut SelectedParticle>) {
        if let Some(n) = self.mass_remainder() {
            all.for_each(|found| found.particle.mass += found.particle.scalars[n]);
        }
    }
}

/// Returns the particle of the words of a device: identity, row, offset, then the other numbers. `mass` is that of each particle, if all have
/// the same.
pub(super) fn decode_words(
    topology: &Topology,
    level: usize,
    mass: Option<f64>,
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
    let first = 9 + usize::from(mass.is_none());
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
            mass: mass.unwrap_or_else(|| number(9)),
            scalars: words[2 + first..]
                .iter()
                .map(|bits| f64::from_bits(*bits))
                .collect(),
        },
    }
}
