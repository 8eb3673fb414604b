//! Particles as entities: a plugin follows some of them by components. The result is bitwise equal on any ranks and devices,
//! after any restart, and for any choice of entities.

use super::determinism::CLUMP;
use nestar::Simulation;
use nestar::engine::comm::Ranks;
use nestar::engine::data::ParticleSet;
use nestar::entities::{Commands, ParticleEntities, ParticleId, PatchComponent, Topology};
use nestar::prelude::*;
use nestar::snapshot::Snapshot;
use nestar::systems::order::Limit;
use nestar::systems::particles::SpeciesMap;
use nestar_tests::decks::deck;
use nestar_tests::devices::open;
use nestar_tests::ranks::{on_ranks_of, run_on_ranks_of};
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, Stepper};

/// The history of some particles.
#[derive(Component, Clone, Debug, PartialEq)]
struct Diary {
    /// Steps of the root level.
    steps: u64,
    /// A hash of all places and velocities.
    path: u64,
}

impl PatchComponent for Diary {
    const NAME: &'static str = "diary";
    const VERSION: u32 = 1;

    fn save(&self) -> Vec<u8> {
        [self.steps, self.path].map(u64::to_le_bytes).concat()
    }

    fn load(bytes: &[u8]) -> Result<Self, String> {
        let (words, rest) = bytes.as_chunks();
        match (words, rest) {
            ([steps, path], []) => Ok(Self {
                steps: u64::from_le_bytes(*steps),
                path: u64::from_le_bytes(*path),
            }),
            _ => Err("it is no diary".into()),
        }
    }
}

/// Gives every 7th particle a diary at the second step, and a push.
struct Diaries;

impl Plugin for Diaries {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_carried::<Diary>();
        sim.system_in(Limit::Propose, hand_out);
        sim.system_in(Advance::Correct, keep);
        Ok(())
    }
}

fn hand_out(
    (topology, clock): (Res<Topology>, Res<LevelClock>),
    mut all: ResMut<SpeciesMap>,
    (mut individuals, mut commands): (ParticleEntities, Commands),
    known: Query<&Diary>,
) -> Result<(), Error> {
    if clock.level > 0 || clock.step != 2 {
        return Ok(());
    }
    for name in ["dark", "stars"] {
        let species = all.0.iter_mut().find(|species| species.name == name);
        let species = species.expect("it is in the deck");
        for id in (0..2000).step_by(7) {
            let Some(entity) = individuals.entity(&topology, &*species, id)? else {
                continue;
            };
            if known.get(entity).is_ok() {
                continue;
            }
            commands.entity(entity).insert(Diary { steps: 0, path: id });
            let push = |particle: &mut nestar::systems::particles::Particle| {
                particle.velocity = particle.velocity.map(|v| 0.75 * v);
                particle.mass *= 0.5;
            };
            assert!(species.change(&topology, id, push)?);
        }
    }
    Ok(())
}

fn keep(
    (topology, clock): (Res<Topology>, Res<LevelClock>),
    all: Res<SpeciesMap>,
    mut diaries: Query<(&ParticleId, &mut Diary)>,
) -> Result<(), Error> {
    if clock.level > 0 {
        return Ok(());
    }
    for (item, mut diary) in &mut diaries {
        let particle = all.particle(&topology, item)?;
        let particle = particle.expect("who has an entity is there");
        let numbers = [particle.position, particle.velocity].concat();
        for word in numbers.iter().map(|number| number.to_bits()) {
            let mixed = (diary.path ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            diary.path = mixed ^ mixed >> 29;
        }
        diary.steps += 1;
    }
    Ok(())
}

const EACH: [&str; 2] = [
    "particles.species.dark.entities=each",
    "particles.species.stars.entities=each",
];
const ON_DEMAND: [&str; 2] = [
    "particles.species.dark.entities=on-demand",
    "particles.species.stars.entities=on-demand",
];
const OPEN: &[&str] = &["domain.boundary=outflow", "run.audit=false"];

fn snapshots(scratch: &Scratch) -> Vec<(String, String)> {
    digests(&scratch.run())
}

/// Runs on some ranks, up to some steps.
fn run(scratch: &Scratch, ranks: usize, resume: bool, settings: &[&str]) {
    let own = ["output.final=true", "output.steps=1"];
    let settings = [&own, OPEN, settings].concat();
    let build = |ranks: Ranks| Simulation::with_ranks(deck(CLUMP, &settings), ranks)?.add(Diaries);
    let options = (0..ranks).map(|_| quietly_into(&scratch.run(), resume));
    for ended in run_on_ranks_of(build, options.collect()) {
        ended.unwrap_or_else(|e| panic!("{settings:?}: {e}"));
    }
}

#[test]
fn components_follow_particles_through_migration_and_restart() {
    let whole = Scratch::new();
    run(
        &whole,
        1,
        false,
        &[&EACH[..], &["time.max_steps=4"]].concat(),
    );
    let expected = snapshots(&whole);
    let snapshot = whole.run().join("snapshots/000003.zarr");
    let snapshot = Snapshot::open(&snapshot).expect("a snapshot");
    let length = |path: &str| {
        snapshot
            .blobs()
            .find(|part| part.path == path)
            .map(|p| p.length)
    };
    for path in ["components/diary_of_dark", "components/diary_of_stars"] {
        assert!(length(path).expect("it is there") > 1000, "{path}");
    }
    let other = match open() {
        Ok(_) => (1, 2, &ON_DEMAND, "run.device=emulated"),
        Err(_) => (3, 1, &ON_DEMAND, "run.device=cpu"),
    };
    for (before, after, entities, device) in [(2, 3, &EACH, "run.device=cpu"), other] {
        let parts = Scratch::new();
        let settings = |steps| [&entities[..], &[steps, device, "run.imbalance=1.01"]].concat();
        run(&parts, before, false, &settings("time.max_steps=3"));
        run(&parts, after, true, &settings("time.max_steps=4"));
        let found = snapshots(&parts);
        assert_eq!(
            found, expected,
            "{before}, {after} ranks, {entities:?}, {device}"
        );
    }
}

/// How many particles and how many entities of them a rank has.
fn census(stepper: &mut Stepper) -> [usize; 2] {
    let world = &mut stepper.0.engine().world;
    let entities = world.query::<&ParticleId>().iter(world).count();
    let (all, topology) = (world.resource::<SpeciesMap>(), world.resource::<Topology>());
    let rows = 0..topology.capacity() as u32;
    let count = |row: u32| {
        all.0
            .iter()
            .map(move |species| species.count(row))
            .sum::<usize>()
    };
    [rows.map(count).sum(), entities]
}

#[test]
fn each_particle_has_an_entity_for_its_lifetime() {
    let places = [(3, "cpu"), (1, "emulated")];
    let count = 1 + usize::from(open().is_ok());
    for (ranks, device) in places.into_iter().take(count) {
        let device = format!("run.device={device}");
        let settings = [OPEN, &["run.imbalance=1.01", &device, "time.max_steps=9"]].concat();
        let build = |ranks: Ranks| Simulation::with_ranks(deck(CLUMP, &settings), ranks);
        let found = on_ranks_of(ranks, build, |stepper| {
            (0..4)
                .map(|_| {
                    stepper.steps(1);
                    census(stepper)
                })
                .collect::<Vec<_>>()
        });
        let mut all = Vec::new();
        for step in 0..4 {
            let here = found.iter().map(|steps| steps[step]);
            here.clone()
                .for_each(|[particles, entities]| assert_eq!(particles, entities));
            all.push(here.map(|[particles, _]| particles).sum::<usize>());
        }
        assert!(
            all[0] <= 2512 && all[3] + 10 < all[0],
            "some leave: {all:?}"
        );
    }
}

/// Gives a particle a mass, once.
struct Feed(f64);

impl Plugin for Feed {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let mass = self.0;
        let feed = move |(topology, clock): (Res<Topology>, Res<LevelClock>),
                         mut all: ResMut<SpeciesMap>|
              -> Result<(), Error> {
            let dark = all.0.iter_mut().find(|species| species.name == "dark");
            if clock.level == 0 && clock.step == 1 {
                let dark = dark.expect("it is in the deck");
                dark.change(&topology, 5, |particle| particle.mass = mass)?;
            }
            Ok(())
        };
        sim.system_in(Limit::Propose, feed);
        Ok(())
    }
}

#[test]
fn invalid_particle_masses_are_refused() {
    let fed = |mass: f64, ranks: usize| {
        let scratch = Scratch::new();
        let settings = [
            "time.max_steps=3",
            "run.audit=false",
            "gravity.constant=1e-20",
        ];
        let build =
            |ranks: Ranks| Simulation::with_ranks(deck(CLUMP, &settings), ranks)?.add(Feed(mass));
        let options = (0..ranks).map(|_| quietly_into(&scratch.run(), false));
        let ended = run_on_ranks_of(build, options.collect());
        let errors = ended.into_iter().filter_map(Result::err);
        errors
            .map(|error| error.to_string())
            .collect::<Vec<_>>()
            .concat()
    };
    assert_eq!(fed(0.001, 2), "");
    for (mass, ranks, words) in [
        (1e9, 2, "much more mass"),
        (
            f64::NAN,
            1,
            "gives particle 5 of particles.species.dark a mass",
        ),
    ] {
        let why = fed(mass, ranks);
        assert!(why.contains(words), "{why}");
    }
}
