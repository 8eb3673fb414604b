//! Runs that need more memory than there is.

use nestar::engine::Error;
use nestar::engine::data::Stores;
use nestar::engine::mesh::Topology;
use nestar::engine::step::memory::{MemoryGuard, RegridDemand};
use nestar_tests::decks::BLAST;
use nestar_tests::devices;
use nestar_tests::norms::{magnitudes, totals};
use nestar_tests::ranks::{joined, on_ranks};
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, Stepper};

/// Gas at rest in 64 root patches; half of them are refined from time 0.008 on. 64 patches take 5 MiB, 320 take 15 MiB.
const LATE: &str = r#"
scenario = "formula"
[initial]
density = "1"
pressure = "0.6 + 0.1*sin(2*pi*x)"
[domain]
cells = [32, 32, 32]
[time]
end = 10.0
max_step = 0.002
max_steps = 8
[mesh]
max_level = 1
regrid_interval = 1
flag_buffer = 0
[[mesh.refine]]
criterion = "formula"
when = "t > 0.007 and x > 0.5"
"#;

fn patches(stepper: &mut Stepper) -> usize {
    let world = &stepper.0.engine().world;
    world.resource::<Topology>().patches()
}

/// The digest of a run's latest snapshot, if it has written one.
fn last(run: &Scratch) -> Option<String> {
    let written = run.run().join("snapshots").exists();
    let latest = written.then(|| digests(&run.run()).pop()).flatten();
    latest.map(|(_, digest)| digest)
}

#[test]
fn a_run_out_of_memory_resumes_with_more_memory() {
    let scratch = Scratch::new();
    let run = |limit: &str, resume| run_into(&scratch.run(), resume, LATE, &[limit]);
    let error = run("run.memory_limit=6", false).expect_err("the patches do not fit");
    let message = error.to_string();
    for text in [
        "256 new patches of level 1",
        "15.1 MiB",
        "run.memory_limit allows 6.0 MiB",
    ] {
        assert!(message.contains(text), "no {text:?} in\n{message}");
    }
    let Error::Memory(shortage) = error else {
        panic!("{message}")
    };
    assert!(shortage.resumable && shortage.level == 1 && shortage.patches == 256);
    let before = digests(&scratch.run());
    assert_eq!(before.len(), 1, "the state before, and nothing else");
    // still too little: the same end, no step further
    run("run.memory_limit=14", true).expect_err("the patches do not fit yet");
    assert_eq!(digests(&scratch.run()), before);
    let rows = || {
        let text = std::fs::read_to_string(scratch.run().join("diagnostics.csv"));
        let text = text.expect("there are diagnostics");
        let patches = |line: &str| line.split(',').nth(5).map(String::from);
        text.lines().skip(1).filter_map(patches).collect::<Vec<_>>()
    };
    assert_eq!(rows(), ["0"; 5]);
    let summary = run("run.memory_limit=16", true).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(summary.step, 8);
    // what memory had forbidden is done before the next step
    assert_eq!(rows()[5..], ["256"; 4]);
    let whole = Scratch::new();
    let settings = ["output.final=true"];
    run_into(&whole.run(), false, LATE, &settings).unwrap_or_else(|e| panic!("{e}"));
    let more = ["output.final=true", "run.memory_limit=16"];
    let scratch = Scratch::new();
    run_into(&scratch.run(), false, LATE, &["run.memory_limit=6"]).expect_err("too little");
    run_into(&scratch.run(), true, LATE, &more).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(last(&scratch), last(&whole));
}

/// Also where a finer level asks for the patches that do not fit, in the middle of a root step.
#[test]
fn a_run_resumed_after_running_out_of_memory_is_identical() {
    let common = [
        "time.max_steps=14",
        "output.initial=true",
        "output.final=true",
    ];
    let grown = [&common[..], &["mesh.flag_buffer=4"]].concat();
    let whole = Scratch::new();
    run_into(&whole.run(), false, BLAST, &grown).unwrap_or_else(|e| panic!("{e}"));
    let mut levels = Vec::new();
    for limit in (9..25).step_by(4) {
        let limit = format!("run.memory_limit={limit}");
        let scratch = Scratch::new();
        let limited = [&grown[..], &[&limit]].concat();
        let ended = run_into(&scratch.run(), false, BLAST, &limited);
        // with the least of memory there is no beginning, with the most no end before time
        let (Err(Error::Memory(shortage)), Some(_)) = (ended, last(&scratch)) else {
            continue;
        };
        assert!(shortage.resumable, "{limit}");
        levels.push(shortage.level);
        let resumed = run_into(&scratch.run(), true, BLAST, &grown);
        resumed.unwrap_or_else(|e| panic!("{limit}: {e}"));
        assert_eq!(last(&scratch), last(&whole), "{limit}");
    }
    assert!(levels.contains(&2), "the case is too easy: {levels:?}");
}

#[test]
fn an_initial_hierarchy_too_large_for_memory_writes_nothing() {
    let scratch = Scratch::new();
    let settings = ["mesh.refine[0].when=x > 0.5", "run.memory_limit=6"];
    for policy in ["run.out_of_memory=stop", "run.out_of_memory=cap"] {
        let settings = [&settings[..], &[policy]].concat();
        let result = run_into(&scratch.run(), false, LATE, &settings);
        match (policy, result) {
            (_, Err(Error::Memory(shortage))) if policy.ends_with("stop") => {
                assert!(!shortage.resumable);
                assert!(!scratch.run().join("run.toml").exists());
            }
            (_, Ok(summary)) if policy.ends_with("cap") => assert_eq!(summary.step, 8),
            (_, result) => panic!("{policy}: {result:?}"),
        }
    }
    let tiny = run_into(&scratch.run(), false, LATE, &["run.memory_limit=4"]);
    let message = tiny.expect_err("not even the root grid fits").to_string();
    assert!(message.contains("fewer domain.cells"), "{message}");
}

#[test]
fn a_capped_run_stays_within_its_memory_and_conserves() {
    // two slabs of 128 rows of 48 KiB, and their tables
    let settings = [
        "mesh.flag_buffer=8",
        "run.memory_limit=13",
        "run.out_of_memory=cap",
    ];
    let mut free = Stepper::new(BLAST, &settings[..1]);
    free.steps(12);
    assert!(patches(&mut free) > 256, "{}", patches(&mut free));
    let mut stepper = Stepper::new(BLAST, &settings);
    let scale = magnitudes(&stepper.state());
    let before = stepper.0.with(|s| totals(s));
    let mut most = 0;
    for _ in 0..12 {
        // the audit is on: the hierarchy stays properly nested although patches are missing
        stepper.steps(1);
        let world = &stepper.0.engine().world;
        let fields = world.resource::<Stores>().all();
        let bytes: usize = fields.iter().map(|field| field.of(world).bytes()).sum();
        assert!(bytes <= 13 << 20, "{bytes}");
        most = most.max(patches(&mut stepper));
    }
    assert_eq!(most, 256, "all that fits is used");
    let world = &stepper.0.engine().world;
    assert!(world.resource::<MemoryGuard>().capped > 0);
    let after = stepper.0.with(|s| totals(s));
    for c in 0..before.len() {
        let drift = (after[c] - before[c]).abs() / scale[c];
        assert!(drift <= 1e-13, "component {c}: {drift:e}");
    }
}

/// The patches that fit are the first along the Hilbert curve, on any rank.
#[test]
fn a_memory_limit_caps_any_number_of_ranks_identically() {
    let settings = [
        "mesh.flag_buffer=8",
        "run.memory_limit=13",
        "run.out_of_memory=cap",
        "mesh.regrid_interval=1",
    ];
    let mut alone = Stepper::new(BLAST, &settings);
    alone.steps(4);
    let capped = |stepper: &mut Stepper| {
        let world = &stepper.0.engine().world;
        world.resource::<MemoryGuard>().capped
    };
    assert!(capped(&mut alone) > 0, "the case is too easy");
    assert_eq!(patches(&mut alone), 256, "all that fits is used");
    for size in [2, 3, 8] {
        let ends = on_ranks(size, BLAST, &settings, |stepper| {
            stepper.steps(4);
            (stepper.state(), capped(stepper))
        });
        let (states, counts): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        assert_eq!(counts, vec![capped(&mut alone); size]);
        let difference = alone.state().difference(&joined(states));
        assert!(difference.is_none(), "{size} ranks: {difference:?}");
    }
}

fn first_refusal(stepper: &mut Stepper) -> String {
    let refusals = (0..8).filter_map(|_| stepper.try_step().err());
    refusals.map(|e| e.to_string()).next().unwrap_or_default()
}

#[test]
fn ranks_stop_together_for_the_same_shortage() {
    let alone = first_refusal(&mut Stepper::new(LATE, &["run.memory_limit=6"]));
    assert!(alone.contains("256 new patches of level 1"), "{alone}");
    for size in [2, 5] {
        let refusals = on_ranks(size, LATE, &["run.memory_limit=6"], |stepper| {
            first_refusal(stepper)
        });
        assert_eq!(refusals, vec![alone.clone(); size]);
    }
}

/// The predicted rows of a rank are those that it has later, or a few more.
#[test]
fn the_rows_of_ranks_are_predicted() {
    for size in [1, 2, 4] {
        let rows = on_ranks(size, LATE, &["domain.cells=[64,64,64]"], |stepper| {
            stepper.steps(3);
            let foreseen = RegridDemand::new(&stepper.0.engine().world, 0, 0).rows(256);
            stepper.steps(1);
            let topology = stepper.0.engine().world.resource::<Topology>();
            (topology.count(1), foreseen, topology.capacity())
        });
        for (fine, foreseen, held) in rows {
            assert_eq!(fine, 8 * 256);
            assert!(held <= foreseen, "{size} ranks: {held} of {foreseen} rows");
            assert!(
                foreseen <= 2 * held,
                "{size} ranks: {held} of {foreseen} rows"
            );
        }
    }
}

/// The patches that fit are counted identically on all devices.
#[test]
fn a_memory_limit_caps_device_and_cpu_identically() {
    if let Err(why) = devices::open() {
        println!("skipped: {why}");
        return;
    }
    let digest = |device: &str| {
        let scratch = Scratch::new();
        let settings = [
            device,
            "mesh.flag_buffer=8",
            "run.memory_limit=13",
            "run.out_of_memory=cap",
            "time.max_steps=4",
            "output.final=true",
        ];
        run_into(&scratch.run(), false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
        digests(&scratch.run())
    };
    assert_eq!(digest("run.device=cpu"), digest("run.device=emulated"));
}

#[test]
fn a_program_that_drives_its_own_steps_gets_the_error_and_may_continue() {
    let mut stepper = Stepper::new(LATE, &["run.memory_limit=6"]);
    let refused = (0..8).map(|_| stepper.try_step()).filter(Result::is_err);
    // one refusal a step from step 4 on; the state goes on and stays good
    assert_eq!(refused.count(), 5);
    assert!((stepper.time() - 8.0 * 0.002).abs() < 1e-12);
    assert_eq!(patches(&mut stepper), 64);
    stepper.state().physical().unwrap_or_else(|e| panic!("{e}"));
}
