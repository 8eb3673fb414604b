//! Particle sets of a plugin: test particles fly straight through a periodic box, whatever the hierarchy does.

mod weights;

use crate::device_runs::emulation;
use bevy_ecs::prelude::*;
use nestar::engine::comm::Comm;
use nestar::engine::data::{MigrationBatch, ParticleSet};
use nestar::engine::device::DeviceError;
use nestar::engine::mesh::Topology;
use nestar::prelude::*;
use nestar::snapshot::Snapshot;
use nestar_tests::decks::{BLAST, deck};
use nestar_tests::ranks::{on_ranks_of, run_with};
use nestar_tests::runs::digests;
use nestar_tests::{Scratch, Stepper};

/// Position of a test particle in its patch, in units of 2^-32 of the patch's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TestParticle {
    id: u64,
    at: [u32; 3],
}

impl TestParticle {
    const BYTES: usize = 20;

    fn to_bytes(self) -> impl Iterator<Item = u8> {
        let at = self.at.into_iter().flat_map(u32::to_le_bytes);
        self.id.to_le_bytes().into_iter().chain(at)
    }

    fn of(record: &[u8]) -> Self {
        let (id, at) = record.split_first_chunk().expect("eight bytes of twenty");
        let at = at.as_chunks().0;
        Self {
            id: u64::from_le_bytes(*id),
            at: [0, 1, 2].map(|axis| u32::from_le_bytes(at[axis])),
        }
    }

    fn write(self, record: &mut [u8]) {
        for (byte, new) in record.iter_mut().zip(self.to_bytes()) {
            *byte = new;
        }
    }

    /// Distance in a root step along an axis, in units of 2^-32 of a root patch's width: up to half of that. Whole multiples of 4096
    /// stay exact where a particle goes from a finer patch to a coarser one.
    fn speed(self, axis: usize) -> i64 {
        let hash = (self.id + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 + 2 * axis as u64);
        ((hash >> 40) as i64 - (1 << 23)) << 8 & !0xfff
    }
}

/// Test particles of the patches by row, in any order, and the work of one in cells.
#[derive(Resource, Default)]
struct TestParticles(Vec<Vec<TestParticle>>, f64);

impl ParticleSet for TestParticles {
    fn name(&self) -> &'static str {
        "test_particles"
    }

    fn version(&self) -> u32 {
        1
    }

    fn record_bytes(&self) -> usize {
        TestParticle::BYTES
    }

    fn weight(&self) -> f64 {
        self.1
    }

    fn count(&self, row: u32) -> usize {
        self.0[row as usize].len()
    }

    fn resize_rows(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.0.resize_with(rows, Vec::new);
        Ok(())
    }

    fn copy(&self, row: u32) -> Result<Vec<u8>, DeviceError> {
        let mut test_particles = self.0[row as usize].clone();
        test_particles.sort_unstable();
        Ok(test_particles
            .into_iter()
            .flat_map(TestParticle::to_bytes)
            .collect())
    }

    fn take(&mut self, row: u32) -> Result<Vec<u8>, DeviceError> {
        let test_particles = std::mem::take(&mut self.0[row as usize]);
        Ok(test_particles
            .into_iter()
            .flat_map(TestParticle::to_bytes)
            .collect())
    }

    fn put(&mut self, row: u32, records: &[u8]) -> Result<(), DeviceError> {
        self.0[row as usize].extend(
            records
                .chunks_exact(TestParticle::BYTES)
                .map(TestParticle::of),
        );
        Ok(())
    }

    fn to_child(&self, record: &mut [u8]) -> usize {
        let mut particle = TestParticle::of(record);
        let child = (0..3)
            .map(|axis| (particle.at[axis] >> 31 << axis) as usize)
            .sum();
        particle.at = particle.at.map(|at| at << 1);
        particle.write(record);
        child
    }

    fn to_parent(&self, child: usize, record: &mut [u8]) {
        let mut particle = TestParticle::of(record);
        for axis in 0..3 {
            particle.at[axis] = particle.at[axis] >> 1 | (child as u32 >> axis & 1) << 31;
        }
        particle.write(record);
    }
}

struct Flight;

impl Plugin for Flight {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_particle_set(TestParticles::default())?;
        sim.system_in(Initialise::State, begin);
        sim.system_in(Advance::Sources, fly);
        Ok(())
    }
}

/// Root patches along the axes, as powers of two.
const ROOT: [u32; 3] = [2, 1, 2];
/// Initial number of test particles in each root patch.
const PER_PATCH: u64 = 4;
/// Number of test particles.
const ALL: u64 = PER_PATCH << 5;

/// Initial position of a test particle: its root patch is the `id / PER_PATCH`-th.
fn first(id: u64) -> [u64; 3] {
    [0, 1, 2].map(|axis| {
        let hash = (id + 7).wrapping_mul(0xd129_0b26_88d4_7f1d + 2 * axis as u64);
        let below: u32 = ROOT[..axis].iter().sum();
        let patch = ((id / PER_PATCH) >> below) & ((1 << ROOT[axis]) - 1);
        patch << 32 | (hash >> 32 & 0xffff_f000)
    })
}

fn begin(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut test_particles: ResMut<TestParticles>,
) {
    if clock.level > 0 {
        return;
    }
    for &row in topology.rows(0) {
        test_particles.0[row as usize] = particles_of(topology.index(row));
    }
}

/// Those that begin in a root patch.
fn particles_of(index: [i32; 3]) -> Vec<TestParticle> {
    let [x, y, z] = index.map(|i| i as u64);
    let patch = x | y << ROOT[0] | z << (ROOT[0] + ROOT[1]);
    let ids = patch * PER_PATCH..(patch + 1) * PER_PATCH;
    let particle = |id| TestParticle {
        id,
        at: first(id).map(|at| at as u32),
    };
    ids.map(particle).collect()
}

/// Moves the test particles of all levels once per root step; those that leave their patches migrate.
fn fly(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut test_particles: ResMut<TestParticles>,
    mut ranks: Comm,
) -> Result<(), Error> {
    if clock.level > 0 {
        return Ok(());
    }
    let mut parcels = Vec::new();
    for level in 0..=topology.finest() {
        for &row in topology.rows(level) {
            let index = topology.index(row);
            for mut particle in std::mem::take(&mut test_particles.0[row as usize]) {
                let mut to = index;
                for axis in 0..3 {
                    let at = i64::from(particle.at[axis]) + (particle.speed(axis) << level);
                    particle.at[axis] = at as u32;
                    to[axis] = (to[axis] + (at >> 32) as i32).rem_euclid(1 << ROOT[axis] << level);
                }
                let records = particle.to_bytes().collect();
                match to == index {
                    true => test_particles.put(row, &particle.to_bytes().collect::<Vec<u8>>())?,
                    false => parcels.push(MigrationBatch {
                        level,
                        index: to,
                        records,
                    }),
                }
            }
        }
    }
    Ok(ranks.migrate(&topology, &mut *test_particles, parcels)?)
}

/// Positions of the test particles of a rank, in units of 2^-32 of a root patch's width, and their levels; all are in leaves.
fn places(stepper: &mut Stepper) -> Vec<(u64, [u64; 3], usize)> {
    let world = &stepper.0.engine().world;
    let (topology, test_particles) = (
        world.resource::<Topology>(),
        world.resource::<TestParticles>(),
    );
    let mut found = Vec::new();
    for (row, test_particles) in test_particles
        .0
        .iter()
        .enumerate()
        .filter(|(_, test_particles)| !test_particles.is_empty())
    {
        let row = row as u32;
        let level = topology
            .level(row)
            .expect("a row with test_particles is in use");
        assert!(topology.is_leaf(row) && topology.is_owned(row), "row {row}");
        for particle in test_particles {
            let index = topology.index(row);
            let at = [0, 1, 2]
                .map(|axis| ((index[axis] as u64) << 32 | u64::from(particle.at[axis])) >> level);
            found.push((particle.id, at, level));
        }
    }
    found
}

const BUSY: &[&str] = &[
    "domain.cells=[32, 16, 32]",
    "mesh.regrid_interval=1",
    "time.courant=0.8",
];

#[test]
fn items_are_where_they_belong_whatever_the_patches_do() {
    for ranks in [1, 2, 5] {
        let settings = [BUSY, &["run.imbalance=1.01"]].concat();
        let build = |ranks| Simulation::with_ranks(deck(BLAST, &settings), ranks)?.add(Flight);
        let steps = 6;
        let found = on_ranks_of(ranks, build, |stepper| {
            (0..=steps)
                .map(|step| {
                    if step > 0 {
                        stepper.steps(1);
                    }
                    places(stepper)
                })
                .collect::<Vec<_>>()
        });
        let mut levels = [0; 3];
        for step in 0..=steps {
            let all = found.iter().flat_map(|steps| &steps[step]);
            let mut all: Vec<_> = all.copied().collect();
            all.sort_unstable();
            assert_eq!(all.len() as u64, ALL, "{ranks} ranks, step {step}");
            for (n, (id, at, level)) in all.into_iter().enumerate() {
                let particle = TestParticle { id, at: [0; 3] };
                let moved = |axis: usize| {
                    let at = first(id)[axis] as i64 + step as i64 * particle.speed(axis);
                    at.rem_euclid(1 << ROOT[axis] << 32) as u64
                };
                assert_eq!((n as u64, [0, 1, 2].map(moved)), (id, at), "step {step}");
                levels[level] += 1;
            }
        }
        assert!(
            levels.into_iter().all(|test_particles| test_particles > 50),
            "{levels:?}"
        );
    }
}

#[test]
fn items_are_stored_and_restored_on_any_number_of_ranks() {
    let run = |scratch: &Scratch, ranks, resume, steps: &str, device| {
        let settings = [BUSY, &["output.steps=2", steps, device]].concat();
        let ended = run_with(&scratch.run(), resume, ranks, &settings, |sim| {
            sim.add(Flight)
        });
        ended.unwrap_or_else(|e| panic!("{e}"));
    };
    let whole = Scratch::new();
    run(&whole, 1, false, "time.max_steps=4", "run.device=cpu");
    let expected = digests(&whole.run());
    let snapshot = Snapshot::open(&whole.run().join("snapshots/000001.zarr")).expect("a snapshot");
    let records = snapshot.read_particles("items/test_particles", "record", 0..ALL);
    let records = records.expect("the test_particles are there");
    let ids: std::collections::BTreeSet<u64> = records
        .bytes()
        .chunks_exact(TestParticle::BYTES)
        .map(|record| TestParticle::of(record).id)
        .collect();
    assert!(ids.into_iter().eq(0..ALL), "each once");
    let mut cases = vec![(2, 3, "run.device=cpu"), (4, 2, "run.device=cpu")];
    if emulation() {
        cases.push((2, 1, "run.device=emulated"));
    }
    for (before, after, device) in cases {
        let parts = Scratch::new();
        run(&parts, before, false, "time.max_steps=2", device);
        run(&parts, after, true, "time.max_steps=4", device);
        let digests = digests(&parts.run());
        assert_eq!(digests, expected, "{before}, then {after} ranks, {device}");
    }
    let settings = [BUSY, &["time.max_steps=6"]].concat();
    let without = run_with(&whole.run(), true, 1, &settings, Ok);
    let message = without.expect_err("refused").to_string();
    assert!(
        message.contains("holds the item `test_particles` (version 1), which no plugin"),
        "{message}"
    );
}

#[test]
fn items_that_do_not_fit_are_refused_by_name() {
    let refused = |sim: Result<Simulation, Error>| sim.err().expect("refused").to_string();
    let twice = nestar_tests::build(BLAST, &[]).add(Flight);
    let twice = refused(twice.and_then(|sim| sim.add(Flight)));
    assert!(
        twice.contains("particles `test_particles`: other particles"),
        "{twice}"
    );
}

/// Sends something out of the box.
fn lose(
    topology: Res<Topology>,
    mut test_particles: ResMut<TestParticles>,
    mut ranks: Comm,
) -> Result<(), Error> {
    let records = TestParticle { id: 0, at: [0; 3] }.to_bytes().collect();
    let parcel = MigrationBatch {
        level: 1,
        index: [0, -1, 0],
        records,
    };
    let parcels = match topology.rank() {
        0 => vec![parcel],
        _ => Vec::new(),
    };
    Ok(ranks.migrate(&topology, &mut *test_particles, parcels)?)
}

struct Losing;

impl Plugin for Losing {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_particle_set(TestParticles::default())?;
        sim.system_in(Advance::Sources, lose);
        Ok(())
    }
}

#[test]
fn items_that_are_sent_out_of_the_domain_end_the_run_on_all_ranks() {
    for ranks in [1, 2] {
        let scratch = Scratch::new();
        let settings = ["time.max_steps=1"];
        let ended = run_with(&scratch.run(), false, ranks, &settings, |sim| {
            sim.add(Losing)
        });
        let message = ended.expect_err("refused").to_string();
        let wanted = "particles `test_particles` were sent to the patch [0, -1, 0] of level 1";
        assert!(message.contains(wanted), "{ranks} ranks: {message}");
    }
}

#[test]
fn items_of_a_beginning_that_is_only_looked_at_go_nowhere() {
    let mut sim = nestar_tests::build(BLAST, BUSY)
        .add(Flight)
        .expect("it fits");
    sim.with(|sim| sim.preview_hierarchy(|_| ()))
        .expect("it is found");
    let foreseen = sim.engine().world.resource::<Topology>().patches();
    let build = |ranks| Simulation::with_ranks(deck(BLAST, BUSY), ranks)?.add(Flight);
    let found = on_ranks_of(1, build, |stepper| {
        stepper.0.engine().world.resource::<Topology>().patches()
    });
    assert_eq!(vec![foreseen], found);
}
