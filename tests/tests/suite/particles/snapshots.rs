//! Particles in snapshots: complete arrays, written by all ranks and read by any number.

use super::determinism::CLUMP;
use super::{bits, particles};
use nestar::Simulation;
use nestar::engine::Error;
use nestar::engine::comm::Ranks;
use nestar::snapshot::{LEAF, ORIGIN, Snapshot, Values, digest};
use nestar_tests::decks::deck;
use nestar_tests::ranks::run_on_ranks_of;
use nestar_tests::runs::quietly_into;
use nestar_tests::{Scratch, Stepper};
use std::path::PathBuf;

/// Runs the deck up to a step, with a snapshot at the end.
fn run_to(
    scratch: &Scratch,
    (ranks, step): (usize, usize),
    resume: bool,
    settings: &[&str],
) -> Result<(), Error> {
    run_deck_to(CLUMP, scratch, (ranks, step), resume, settings)
}

fn run_deck_to(
    text: &str,
    scratch: &Scratch,
    (ranks, step): (usize, usize),
    resume: bool,
    settings: &[&str],
) -> Result<(), Error> {
    let steps = format!("time.max_steps={step}");
    let settings = [&["output.final=true", &steps], settings].concat();
    let build = |ranks: Ranks| Simulation::with_ranks(deck(text, &settings), ranks);
    let options = (0..ranks).map(|_| quietly_into(&scratch.run(), resume));
    let ended = run_on_ranks_of(build, options.collect());
    ended.into_iter().try_for_each(|ended| ended.map(|_| ()))
}

/// The last snapshot of a run.
fn last(scratch: &Scratch) -> PathBuf {
    let latest = nestar::snapshot::latest(&scratch.run()).expect("a run is there");
    latest.expect("with a snapshot").1
}

/// The digest of the last snapshot after consecutive runs with the given ranks and step counts.
fn after(runs: &[(usize, usize)], settings: &[&str]) -> String {
    let scratch = Scratch::new();
    for (n, run) in runs.iter().enumerate() {
        run_to(&scratch, *run, n > 0, settings).unwrap_or_else(|e| panic!("{e}"));
    }
    let snapshot = Snapshot::open(&last(&scratch)).expect("it is whole");
    snapshot.verify(|_| ()).expect("it is whole");
    digest(&snapshot).expect("it is whole")
}

/// What a snapshot says of the particles of a species, as [`bits`] has it; each lies where its patch and its offset say, in the order of the
/// patches and of identities.
fn held(snapshot: &Snapshot, species: &str) -> Vec<Vec<u64>> {
    let path = format!("particles/{species}");
    let header = snapshot.particles().find(|items| items.path == path);
    let count = header.expect("the species is there").count;
    let read = |name: &str| {
        snapshot
            .read_particles(&path, name, 0..count)
            .expect("it is read")
    };
    let Values::U64(id) = read("id") else {
        panic!("identities are u64")
    };
    let offset = match read("offset") {
        Values::U32(offset) => offset
            .into_iter()
            .map(|n| f64::from(n) / 2f64.powi(32))
            .collect(),
        Values::U64(offset) => offset
            .into_iter()
            .map(|n| n as f64 / 2f64.powi(64))
            .collect(),
        _ => Vec::<f64>::new(),
    };
    let columns = ["position", "velocity", "acceleration", "mass"].map(|name| read(name).to_f64());
    let [position, velocity, acceleration, mass] = &columns;
    assert!(read("moved_by_finer").bytes().iter().all(|&mark| mark < 2));
    let (mut found, mut n) = (Vec::new(), 0);
    for level in snapshot.levels() {
        let read = |name: &str| snapshot.read(level.level, name).expect("it is read");
        let (Values::U32(counts), Values::I32(origins), Values::U8(leaf)) = (
            read(&format!("particles_{species}")),
            read(ORIGIN),
            read(LEAF),
        ) else {
            panic!("types")
        };
        for (patch, &count) in counts.iter().enumerate() {
            let here = n..n + count as usize;
            assert!(count == 0 || leaf[patch] == 1, "they lie in leaves");
            assert!(id[here.clone()].is_sorted_by(|a, b| a < b), "by identity");
            for n in here.clone() {
                let vector = |of: &[f64]| [0, 1, 2].map(|axis| of[3 * n + axis]);
                for axis in 0..3 {
                    let (left, width) = (snapshot.attributes().domain_left_edge, level.cell_width);
                    let cells = f64::from(origins[3 * patch + axis]) + 8.0 * offset[3 * n + axis];
                    let away = left[axis] + cells * width[axis] - position[3 * n + axis];
                    assert!(away.abs() < 1e-14, "{away} from where the patch is");
                }
                let numbers = [position, velocity, acceleration]
                    .map(|of| vector(of))
                    .concat();
                let numbers = numbers.iter().chain([&mass[n]]).map(|x| x.to_bits());
                let first = [id[n], u64::from(level.level)].into_iter();
                found.push(first.chain(numbers).collect());
            }
            n = here.end;
        }
    }
    assert_eq!(n as u64, count, "each lies in a patch");
    found.sort_unstable();
    found
}

#[test]
fn particle_arrays_are_complete_and_independent_of_the_writing_ranks() {
    for precision in ["run.precision=single", "run.precision=double"] {
        let one = Scratch::new();
        run_to(&one, (1, 2), false, &[precision]).unwrap_or_else(|e| panic!("{e}"));
        let snapshot = Snapshot::open(&last(&one)).expect("it is whole");
        let expected = digest(&snapshot).expect("it is whole");
        assert_eq!(after(&[(3, 2)], &[precision]), expected, "{precision}");
        let mut stepper = Stepper::new(CLUMP, &[precision]);
        stepper.steps(2);
        for species in ["dark", "stars"] {
            let mut all: Vec<_> = particles(&mut stepper, species).iter().map(bits).collect();
            all.sort_unstable();
            assert!(all == held(&snapshot, species), "{species}, {precision}");
        }
        let names = snapshot.columns("particles/dark").into_iter();
        let described = names.map(|c| (&*c.name, c.data_type.name(), &*c.units, c.shape.len()));
        let float = if precision.ends_with("single") {
            "float32"
        } else {
            "float64"
        };
        let offset = if precision.ends_with("single") {
            "uint32"
        } else {
            "uint64"
        };
        let wanted = [
            ("acceleration", float, "length/time**2", 1),
            ("id", "uint64", "1", 0),
            ("mass", float, "mass", 0),
            ("moved_by_finer", "uint8", "1", 0),
            ("offset", offset, "1", 1),
            ("position", "float64", "length", 1),
            ("velocity", float, "length/time", 1),
        ];
        assert!(described.eq(wanted));
    }
}

#[test]
fn runs_resume_from_particle_arrays_on_another_number_of_ranks() {
    let expected = after(&[(1, 3)], &[]);
    assert_eq!(after(&[(3, 1), (1, 2), (2, 3)], &[]), expected);
    assert_eq!(after(&[(2, 2), (5, 3)], &["run.imbalance=1.01"]), expected);
}

#[test]
fn particle_arrays_in_several_shards_equal_those_of_one_writer() {
    let many = [
        "particles.species.stars.initial.points=[66, 64, 64]",
        "mesh.max_level=1",
    ];
    let expected = after(&[(1, 2)], &many);
    assert_eq!(after(&[(3, 1), (2, 2)], &many), expected);
}

#[test]
fn missing_or_mismatched_particle_arrays_are_reported() {
    let scratch = Scratch::new();
    run_to(&scratch, (1, 1), false, &[]).unwrap_or_else(|e| panic!("{e}"));
    let (path, other) = (last(&scratch), ["run.precision=single"]);
    let refused = |settings: &[&str]| {
        let ended = run_to(&scratch, (2, 2), true, settings);
        ended.expect_err("refused").to_string()
    };
    let text = refused(&other);
    assert!(text.contains("particles/dark: the array `offset` has the type uint64, this run needs uint32: set `run.precision`"), "{text}");
    let root = path.join("zarr.json");
    let document = std::fs::read_to_string(&root).expect("it is there");
    let document = document.replace("\"checksums\":\"blake3\",", "");
    std::fs::remove_file(path.join("checksums")).expect("it is there");
    let edited = |from: &str, to: &str| {
        assert!(document.contains(from), "{from}");
        std::fs::write(&root, document.replace(from, to)).expect("it is written");
        refused(&[])
    };
    let text = edited("\"particles/dark/velocity\"", "\"particles/dark/speed\"");
    assert!(
        text.contains("particles/dark: the array `velocity`") && text.contains("speed"),
        "{text}"
    );
    let text = edited("\"level_1/particles_dark\"", "\"level_1/particles_dust\"");
    assert!(text.contains("level_1/particles_dark"), "{text}");
    let text = edited("\"particles/stars\"", "\"particles/dust\"");
    assert!(text.contains("dust"), "{text}");
    std::fs::write(&root, &document).expect("it is written");
    std::fs::remove_file(path.join("particles/dark/id/c.0")).expect("it is there");
    let text = refused(&[]);
    assert!(text.contains("particles/dark/id/c.0"), "{text}");
}

#[test]
fn a_species_missing_in_the_snapshot_or_the_deck_is_reported() {
    let scratch = Scratch::new();
    run_to(&scratch, (1, 1), false, &[]).unwrap_or_else(|e| panic!("{e}"));
    let more = [
        "particles.species.dust.mass=0",
        "particles.species.dust.initial={kind=\"lattice\", points=[2, 2, 2]}",
    ];
    let text = run_to(&scratch, (1, 2), true, &more)
        .expect_err("refused")
        .to_string();
    assert!(text.contains("lacks the particles `dust`"), "{text}");
}

#[test]
fn individual_masses_and_a_common_mass_are_not_confused() {
    let scratch = Scratch::new();
    run_to(&scratch, (1, 1), false, &[]).unwrap_or_else(|e| panic!("{e}"));
    let (each, one) = (", mass = \"0.0002*(1.5 + sin(id))\"", "mass    = 0.0001\n");
    let dark = "[particles.species.dark]\n";
    let cases = [
        (
            CLUMP
                .replace(each, "")
                .replace(dark, &format!("{dark}mass = 2e-4\n")),
            "dark.mass = 0.0002 (was absent)",
        ),
        (
            CLUMP
                .replace(one, "")
                .replace("\"0.2\", \"0\"]", "\"0.2\", \"0\"], mass = \"1e-4\""),
            "stars.mass = absent (was 0.0001)",
        ),
    ];
    for (text, told) in cases {
        let resumed = run_deck_to(&text, &scratch, (2, 2), true, &[]);
        let why = resumed.expect_err("refused").to_string();
        let told = format!("written by another run: particles.species.{told}");
        assert!(why.contains(&told), "{why}");
    }
    // who says so means it
    let meant = ["particles.species.stars.mass=2e-4"];
    run_to(&scratch, (1, 2), true, &meant).unwrap_or_else(|e| panic!("{e}"));
}

/// A snapshot of an older program, which had another default or did not have the key, gives its values another meaning.
#[test]
fn a_default_that_has_changed_since_the_snapshot_needs_consent() {
    let scratch = Scratch::new();
    run_to(&scratch, (1, 1), false, &[]).unwrap_or_else(|e| panic!("{e}"));
    let (path, default) = (last(&scratch), "zone = 3\\n");
    let root = path.join("zarr.json");
    let document = std::fs::read_to_string(&root).expect("it is there");
    let document = document.replace("\"checksums\":\"blake3\",", "");
    std::fs::remove_file(path.join("checksums")).expect("it is there");
    assert!(document.contains(default), "{document}");
    for (stored, was) in [("zone = 2\\n", "2"), ("", "absent")] {
        std::fs::write(&root, document.replace(default, stored)).expect("it is written");
        let refused = run_to(&scratch, (1, 2), true, &[]).expect_err("refused");
        let why = refused.to_string();
        let told = format!("particles.zone = 3 (was {was})");
        assert!(
            why.contains(&told) && why.contains("--set particles.zone="),
            "{why}"
        );
    }
    // who says so means it
    run_to(&scratch, (1, 2), true, &["particles.zone=3"]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn particles_keep_the_precision_of_their_snapshot() {
    let scratch = Scratch::new();
    run_to(&scratch, (1, 1), false, &["run.precision=single"]).unwrap_or_else(|e| panic!("{e}"));
    let double = run_to(&scratch, (1, 2), true, &["run.precision=double"]);
    let error = double.expect_err("refused");
    assert!(matches!(error, Error::Setup(_)), "{error:?}");
    let why = error.to_string();
    assert!(
        why.contains("set `run.precision`") && !why.contains("move"),
        "{why}"
    );
}

#[test]
fn added_and_dropped_particle_scalars_are_reported() {
    let aged = ["particles.species.dark.scalars=[\"age\"]"];
    let plain = Scratch::new();
    run_to(&plain, (1, 1), false, &[]).unwrap_or_else(|e| panic!("{e}"));
    let added = run_to(&plain, (2, 2), true, &aged);
    let text = added.expect_err("refused").to_string();
    let parts = [
        "particles/dark: the array `age`",
        "has no initial value",
        "velocity",
        "change `particles.species.dark.scalars`",
    ];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    let old = Scratch::new();
    run_to(&old, (1, 1), false, &aged).unwrap_or_else(|e| panic!("{e}"));
    let left = run_to(&old, (2, 2), true, &[]);
    let text = left.expect_err("refused").to_string();
    let way = "--set 'run.dropped=[\"particles/dark/age\"]'";
    assert!(
        text.contains("it holds particles/dark/age") && text.contains(way),
        "{text}"
    );
    let drop = "run.dropped=[\"particles/dark/age\"]";
    let kept = run_to(&old, (2, 2), true, &[&aged[..], &[drop]].concat());
    let text = kept.expect_err("refused").to_string();
    assert!(
        text.contains("particles/dark/age") && text.contains("cannot be dropped"),
        "{text}"
    );
    run_to(&old, (2, 2), true, &[drop]).unwrap_or_else(|e| panic!("{e}"));
    let held = |scratch: &Scratch| {
        let snapshot = Snapshot::open(&last(scratch)).expect("it is whole");
        assert!(
            snapshot
                .columns("particles/dark")
                .iter()
                .all(|column| column.name != "age")
        );
        held(&snapshot, "dark")
    };
    run_to(&plain, (1, 2), true, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert!(held(&old) == held(&plain), "all else is as it was");
}
