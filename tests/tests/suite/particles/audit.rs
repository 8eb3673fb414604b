//! The audit of particles that a plugin loses, duplicates or makes heavier.

use super::determinism::CLUMP;
use bevy_ecs::prelude::*;
use nestar::Simulation;
use nestar::engine::comm::Ranks;
use nestar::engine::data::ParticleSet;
use nestar::engine::mesh::{LevelClock, Topology};
use nestar::prelude::*;
use nestar::systems::order::Advance;
use nestar::systems::particles::SpeciesMap;
use nestar_tests::Scratch;
use nestar_tests::decks::deck;
use nestar_tests::ranks::run_on_ranks_of;
use nestar_tests::runs::quietly_into;

/// A fault of a particle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mishap {
    Lost,
    Doubled,
    Heavier,
    Exchanged,
}

/// Applies the fault to a particle of a species on rank 0, in the step of a level.
#[derive(Resource, Clone, Copy, Debug)]
struct Plan {
    what: Mishap,
    species: &'static str,
    at: (usize, u64),
    told: bool,
}

impl Plugin for Plan {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.world.insert_resource(*self);
        sim.system_in(Advance::Sources, happen);
        Ok(())
    }
}

fn happen(
    plan: Res<Plan>,
    (topology, clock): (Res<Topology>, Res<LevelClock>),
    mut all: ResMut<SpeciesMap>,
) -> Result<(), Error> {
    if topology.rank() > 0 || (clock.level, clock.step) != plan.at {
        return Ok(());
    }
    let mut all = all.0.iter_mut();
    let species = all.find(|species| species.name == plan.species);
    let species = species.expect("the species is there");
    species.fetch()?;
    let mut rows = (0..=topology.finest()).flat_map(|level| topology.rows(level));
    let row = rows.find(|row| species.count(**row) > 0).copied();
    let row = row.expect("there are particles");
    let (mut records, bytes) = (species.take(row)?, species.record_bytes());
    match plan.what {
        Mishap::Lost => records.truncate(records.len() - bytes),
        Mishap::Doubled => records.extend_from_within(..bytes),
        // the mass is stored after identity, position, velocity and acceleration: change its tenth digit by one
        Mishap::Heavier => records[8 + 9 * 8 + 3] ^= 1,
        // for those of the next patch
        Mishap::Exchanged => records.rotate_left(bytes),
    }
    species.put(row, &records)?;
    if plan.told {
        species.recount();
    }
    Ok(())
}

/// Returns the error of a run with the fault.
fn ended(plan: Plan, ranks: usize, settings: &[&str]) -> Result<(), String> {
    let settings = [&["time.max_steps=3", "output.final=false"], settings].concat();
    let scratch = Scratch::new();
    let build = |ranks: Ranks| Simulation::with_ranks(deck(CLUMP, &settings), ranks)?.add(plan);
    let options = (0..ranks).map(|_| quietly_into(&scratch.run(), false));
    let mut ended = run_on_ranks_of(build, options.collect());
    let ended = ended.swap_remove(0);
    ended.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn the_audit_reports_particles_lost_by_a_plugin() {
    // the audit at the begin of the next step, or where levels are synchronised, finds it
    for (what, species, at, expected) in [
        (
            Mishap::Lost,
            "dark",
            (0, 1),
            "particles.species.dark has 1999 particles",
        ),
        (
            Mishap::Doubled,
            "stars",
            (1, 2),
            "particles.species.stars has 513 particles",
        ),
        (Mishap::Heavier, "dark", (2, 3), "mass quanta"),
    ] {
        let plan = Plan {
            what,
            species,
            at,
            told: false,
        };
        // the first on more places than the others
        let first = what == Mishap::Lost;
        let places = [(2, &["run.imbalance=1.01"][..]), (1, &["gravity.cycles=2"])];
        for (ranks, settings) in places.into_iter().take(if first { 2 } else { 1 }) {
            let why = ended(plan, ranks, settings).expect_err("refused");
            let off = why.contains("too few") || why.contains("too many");
            assert!(
                why.contains(expected) && why.contains(species) && off,
                "{plan:?}: {why}"
            );
            let places = ["before step", "after synchronisation of levels"];
            let place = places.iter().any(|place| why.contains(place));
            assert!(place && why.contains("time"), "{plan:?}: {why}");
        }
        if first {
            let without = ended(plan, 1, &["run.audit=false"]);
            assert_eq!(without, Ok(()), "without the audit");
        }
        if what != Mishap::Doubled {
            let told = ended(Plan { told: true, ..plan }, 2, &[]);
            assert_eq!(told, Ok(()), "it is told");
        }
    }
}

#[test]
fn the_audit_ignores_the_order_of_particles() {
    let plan = Plan {
        what: Mishap::Exchanged,
        species: "dark",
        at: (1, 2),
        told: false,
    };
    assert_eq!(ended(plan, 2, &[]), Ok(()));
}

#[test]
fn the_audit_reports_tracers_lost_by_a_plugin() {
    for moved_by in ["gas", "mass-fluxes"] {
        let moved_by = format!("particles.species.dye.moved_by={moved_by}");
        let dye = [
            &*moved_by,
            "particles.species.dye.initial={kind=\"lattice\", points=[4, 4, 4]}",
        ];
        let plan = Plan {
            what: Mishap::Lost,
            species: "dye",
            at: (1, 3),
            told: false,
        };
        let why = ended(plan, 2, &dye).expect_err("refused");
        assert!(
            why.contains("particles.species.dye has 63 particles"),
            "{why}"
        );
        assert_eq!(
            ended(
                Plan {
                    species: "stars",
                    told: true,
                    ..plan
                },
                2,
                &dye
            ),
            Ok(())
        );
    }
}
