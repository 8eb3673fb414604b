//! Refines the surroundings of single particles, such as sinks and young stars.

use super::config::NearConfig;
use super::species::SpeciesMap;
use crate::order::Flag;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Ranks;
use nestar_engine::data::{LevelRows, Patches};
use nestar_engine::mesh::{LevelClock, RefinementFlags, Topology};
use nestar_engine::step::Settings;
use nestar_engine::{Engine, Error};
use nestar_kernels::PATCH;

/// Scalar that holds the time of birth.
const BIRTH_TIME: &str = "birth_time";

/// The rules of a run.
#[derive(Resource)]
struct NearRules(Vec<NearConfig>);

/// Registers the system that flags the surroundings of particles.
///
/// # Errors
/// A species is unknown, or has no time of birth.
pub(super) fn register(sim: &mut Engine, rules: &[NearConfig]) -> Result<(), Error> {
    for (n, rule) in rules.iter().enumerate() {
        let key = format!("particles.refine.near[{n}].species");
        let all = sim.world.resource::<SpeciesMap>();
        let known: Vec<&str> = all.0.iter().map(|species| &*species.name).collect();
        let Ok(species) = all.named(&rule.species) else {
            let why = sim.deck.unknown_word_at(&key, &rule.species, &known);
            return Err(why.into());
        };
        if species.scalars.iter().all(|scalar| scalar != BIRTH_TIME) {
            let why = format!(
                "needs the scalar `{BIRTH_TIME}`: add it to `particles.species.{}.scalars`",
                rule.species
            );
            return Err(sim.deck.error_at(&key, why).into());
        }
        species.prepare_selection();
    }
    if !rules.is_empty() {
        sim.world.insert_resource(NearRules(rules.to_vec()));
        sim.system_in(Flag::Criteria, flag_near_particles)
            .in_sequence()
            .keeps_particles();
    }
    Ok(())
}

/// A particle on the level of the flags.
#[derive(Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct NearParticle {
    /// Index of its cell on the level.
    cell: [i32; 3],
    /// Number of cells around it that are refined.
    reach: i32,
}

impl NearParticle {
    /// Returns the patch of the cell and the sectors of the cells around the particle.
    fn patch_and_sectors(&self) -> ([i32; 3], u32) {
        let side = PATCH as i32;
        let within = self.cell.map(|i| i.rem_euclid(side));
        let meets = |axis: usize, sector: i32| {
            let first = (within[axis] - self.reach).div_euclid(side);
            let last = (within[axis] + self.reach).div_euclid(side);
            (first..=last).contains(&(sector - 1))
        };
        let mut sectors = 0;
        for n in 0..27 {
            let at = [n % 3, n / 3 % 3, n / 9];
            if (0..3).all(|axis| meets(axis, at[axis])) {
                sectors |= 1 << n;
            }
        }
        (self.cell.map(|i| i.div_euclid(side)), sectors)
    }
}

/// What the flags depend on.
#[derive(SystemParam)]
struct NearInput<'w> {
    topology: Res<'w, Topology>,
    settings: Res<'w, Settings>,
    rules: Res<'w, NearRules>,
    clock: Res<'w, LevelClock>,
    ranks: Res<'w, Ranks>,
}

/// Flags cells around particles of the level and of finer levels.
fn flag_near_particles(
    rows: LevelRows,
    input: NearInput,
    mut species: ResMut<SpeciesMap>,
    mut patches: Patches<&mut RefinementFlags>,
) -> Result<(), Error> {
    let topology = &*input.topology;
    if rows.is_estimate() {
        return Ok(());
    }
    let level = rows.level();
    let mut own = Vec::new();
    for rule in &input.rules.0 {
        if rule.level.is_some_and(|finest| level >= finest as usize) {
            continue;
        }
        let reach = rule.cells.max(input.settings.mesh.flag_buffer[level]) as i32;
        let after = rule
            .younger
            .map_or(f64::NEG_INFINITY, |age| input.clock.time - age);
        let between = [after, f64::INFINITY];
        let found = species.0.iter_mut().find(|own| own.name == rule.species);
        let Some(particles) = found else { continue };
        let tables = rows.view().tables;
        for finer in level..=topology.finest() {
            let found = particles.select(topology, tables, finer, BIRTH_TIME, between)?;
            own.extend(found.iter().map(|particle| NearParticle {
                cell: particle.cell_on(finer).map(|i| i >> (finer - level)),
                reach: reach.min(PATCH as i32),
            }));
        }
    }
    for particle in input.ranks.gather(&own)? {
        let (patch, sectors) = particle.patch_and_sectors();
        if let Some(row) = topology.find(level, patch)
            && let Some(mut flags) = patches.get_mut(row)
        {
            flags.refine_sectors(sectors);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_those_of_the_cells_around() {
        let of = |cell: [i32; 3], reach: i32| NearParticle { cell, reach }.patch_and_sectors();
        let own = 1 << 13;
        assert_eq!(of([12, 3, 4], 3), ([1, 0, 0], own));
        assert_eq!(of([8, 3, 4], 1), ([1, 0, 0], own | 1 << 12));
        assert_eq!(of([15, 3, 4], 1), ([1, 0, 0], own | 1 << 14));
        assert_eq!(of([7, 7, 4], 1).1, own | 1 << 14 | 1 << 16 | 1 << 17);
        assert_eq!(of([3, 3, 3], 8).1, (1 << 27) - 1);
    }
}
