//! State of plugins: saved in snapshots, restored bitwise, and refused by name on a mismatch.

use nestar::Simulation;
use nestar::engine::Error;
use nestar::prelude::*;
use nestar::snapshot::{self, Snapshot};
use nestar_tests::Scratch;
use nestar_tests::decks::{BLAST, deck};
use nestar_tests::ranks::run_with;
use nestar_tests::runs::digests;
use std::path::Path;

/// Gas that is heated by a rate.
#[device]
fn heat<R: Real>(u: Conserved<R>, rate: R, dt: R) -> Conserved<R> {
    let mut v = u;
    v.energy = u.energy * (1.0 + rate * dt);
    v
}

/// How many level steps were taken.
#[derive(Resource, Default)]
struct Count<const VERSION: u32>(u64);

impl<const VERSION: u32> PluginState for Count<VERSION> {
    const VERSION: u32 = VERSION;

    fn save(&self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let bytes = bytes.try_into().map_err(|_| "a count has 8 bytes")?;
        self.0 = u64::from_le_bytes(bytes);
        Ok(())
    }
}

/// Heats the gas at a rate that depends on the number of steps taken.
struct Heating<const VERSION: u32>;

impl<const VERSION: u32> Plugin for Heating<VERSION> {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_state("heating_steps", Count::<VERSION>::default())?;
        sim.system_in(
            Advance::Sources,
            |clock: Res<LevelClock>,
             rows: LevelRows,
             mut count: ResMut<Count<VERSION>>,
             mut gas: Write<Gas>| {
                count.0 += 1;
                gas.update::<heat>(&rows, (), &[count.0 as f64, clock.dt]);
            },
        );
        Ok(())
    }
}

fn heated(sim: Simulation) -> Result<Simulation, Error> {
    sim.add(Heating::<1>)
}

/// The digest of the last snapshot.
fn last(directory: &Path) -> String {
    let mut all = digests(directory);
    all.pop().expect("the run has snapshots").1
}

#[test]
fn a_plugin_counter_is_restored_after_three_of_six_steps() {
    let scratch = Scratch::new();
    let whole = scratch.path().join("whole");
    run_with(&whole, false, 1, &["time.max_steps=6"], heated).unwrap_or_else(|e| panic!("{e}"));
    let snapshot = latest(&whole);
    let text = snapshot::summary(&snapshot).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        text.contains("state/heating_steps: version 1, 8 bytes"),
        "{text}"
    );
    for (first, then) in [(1, 1), (1, 3), (4, 2), (2, 1)] {
        let parts = scratch.path().join(format!("{first}-{then}"));
        let settings = ["time.max_steps=3"];
        run_with(&parts, false, first, &settings, heated).unwrap_or_else(|e| panic!("{e}"));
        let settings = ["time.max_steps=6"];
        run_with(&parts, true, then, &settings, heated).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(last(&parts), last(&whole), "{first} ranks, then {then}");
    }
}

fn latest(directory: &Path) -> Snapshot {
    let found = snapshot::latest(directory).unwrap_or_else(|e| panic!("{e}"));
    let (_, path) = found.expect("the run has a snapshot");
    Snapshot::open(&path).unwrap_or_else(|e| panic!("{e}"))
}

/// Why a restart is refused.
fn refusal(
    directory: &Path,
    settings: &[&str],
    add: impl Fn(Simulation) -> Result<Simulation, Error> + Sync,
) -> String {
    let settings = [&["time.max_steps=2"], settings].concat();
    let refused = run_with(directory, true, 1, &settings, &add).expect_err("refused");
    assert!(matches!(refused, Error::Setup(_)), "{refused}");
    let together = run_with(directory, true, 2, &settings, &add).expect_err("refused");
    assert_eq!(refused.to_string(), together.to_string());
    refused.to_string()
}

#[test]
fn a_mismatched_plugin_state_is_refused_by_name_and_can_be_reset() {
    let scratch = Scratch::new();
    let first = ["time.max_steps=1"];
    let reset = "run.reset_states=[\"heating_steps\"]";
    let more = ["time.max_steps=2", reset];

    let with = scratch.path().join("with");
    run_with(&with, false, 1, &first, heated).unwrap_or_else(|e| panic!("{e}"));
    let why = refusal(&with, &[], Ok);
    assert!(
        why.contains("`heating_steps` (version 1), which no plugin"),
        "{why}"
    );
    assert!(why.contains(reset), "{why}");
    let why = refusal(&with, &[], |sim| sim.add(Heating::<2>));
    assert!(
        why.contains("version 1 of the state `heating_steps`"),
        "{why}"
    );
    assert!(
        why.contains("reads version 2") && why.contains(reset),
        "{why}"
    );
    // a state that fits is not reset by a setting that was left behind
    let why = refusal(&with, &[reset], heated);
    assert!(why.contains("remove it"), "{why}");
    run_with(&with, true, 1, &more, |sim| sim.add(Heating::<2>)).unwrap_or_else(|e| panic!("{e}"));

    let without = scratch.path().join("without");
    run_with(&without, false, 1, &first, Ok).unwrap_or_else(|e| panic!("{e}"));
    let why = refusal(&without, &[], heated);
    assert!(why.contains("lacks the state `heating_steps`"), "{why}");
    assert!(why.contains(reset), "{why}");
    run_with(&without, true, 1, &more, heated).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn names_of_plugin_states_are_unique_and_valid() {
    let twice = heated(Simulation::new(deck(BLAST, &[])).unwrap_or_else(|e| panic!("{e}")));
    let twice = twice.and_then(heated).err().expect("refused").to_string();
    assert!(
        twice.contains("two plugins register the state `heating_steps`"),
        "{twice}"
    );
    let mut sim = nestar_tests::build(BLAST, &[]);
    let odd = sim
        .engine()
        .register_state("a state", Count::<1>::default());
    assert!(odd.is_err_and(|e| e.to_string().contains("letters, digits")));
}

/// A state that each rank changes in its own way.
struct Uneven;

impl Plugin for Uneven {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_state("uneven", Count::<1>::default())?;
        sim.system_in(
            Advance::Sources,
            |rows: LevelRows, mut count: ResMut<Count<1>>| count.0 += rows.rows().len() as u64,
        );
        Ok(())
    }
}

#[test]
fn a_state_that_differs_between_ranks_is_an_error() {
    let scratch = Scratch::new();
    // five patches along an axis make parts of two and three
    let settings = [
        "time.max_steps=1",
        "mesh.max_level=0",
        "domain.cells=[40,8,8]",
    ];
    let uneven = |sim: Simulation| sim.add(Uneven);
    run_with(&scratch.run(), false, 1, &settings, uneven).unwrap_or_else(|e| panic!("{e}"));
    let two = scratch.path().join("two");
    let error = run_with(&two, false, 2, &settings, uneven).expect_err("the states differ");
    let text = error.to_string();
    assert!(
        text.contains("`state/uneven` is not the same on all ranks"),
        "{text}"
    );
}
