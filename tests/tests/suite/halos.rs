//! Catalogues of halos and spectra of matter: those of the particles of a snapshot, equal bits on ranks and devices, lists of resumed runs,
//! refusals.

use super::device_runs::places;
use nestar::Simulation;
use nestar::snapshot::{Snapshot, latest, read_array};
use nestar_tests::decks::deck;
use nestar_tests::ranks::run_on_ranks;
use nestar_tests::runs::{quietly_into, run_into};
use nestar_tests::{Scratch, Stepper};
use std::collections::BTreeMap;
use std::path::Path;

/// Two species of particles that a wave pushes together at a corner of the box, and a second level there.
const CLUMPS: &str = r#"
scenario = "formula"
[constants]
k = "2*pi"
[domain]
cells    = [16, 16, 16]
boundary = "periodic"
[mesh]
max_level = 1
[particles.refine]
mass_per_cell = [1e-3]
[initial]
density  = "0.25*(1 + 0.5*sin(k*x))"
pressure = "1"
[gravity]
constant = 1.0
[particles.species.dark]
mass    = 1e-4
initial = { kind = "lattice", points = [20, 20, 20], displacement = ["-0.97/k*sin(k*x)", "-0.95/k*sin(k*y)", "0.3/k*sin(2*k*z)"], velocity = ["0.1*sin(k*x)", "0.2", "0"] }
[particles.species.stars]
mass    = 1e-5
initial = { kind = "lattice", points = [9, 9, 9], displacement = ["0.8/k*sin(k*x)", "-0.8/k*sin(k*y)", "0"] }
[time]
end = 1.0
max_steps = 2
[[output.view]]
name      = "groups"
kind      = "halos"
least     = 10
steps     = 1
precision = "double"
[[output.view]]
name           = "of_dark"
kind           = "halos"
species        = ["dark"]
linking_length = 0.1
least          = 5
steps          = 1
[[output.view]]
name       = "power"
kind       = "spectrum"
species    = ["dark", "matter"]
interlaced = true
steps      = 1
precision  = "double"
"#;

const COLUMNS: [&str; 11] = [
    "id",
    "species",
    "number",
    "mass",
    "position",
    "centre_of_mass",
    "velocity",
    "r200m",
    "m200m",
    "vmax",
    "count",
];

fn column(run: &Path, view: &str, name: &str) -> Vec<f64> {
    let path = run.join("views").join(format!("{view}.zarr"));
    let read = read_array(&path, name);
    read.unwrap_or_else(|e| panic!("{view}/{name}: {e}")).values
}

/// A particle of a snapshot.
#[derive(Clone, Copy)]
struct Point {
    id: [u64; 2],
    position: [f64; 3],
    mass: f64,
}

/// Returns the particles of some species in the latest snapshot.
fn points(run: &Path, species: &[&str]) -> Vec<Point> {
    let (_, path) = latest(run).expect("readable").expect("a snapshot");
    let snapshot = Snapshot::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let mut all = Vec::new();
    for (number, name) in species.iter().enumerate() {
        let path = format!("particles/{name}");
        let count = snapshot.particles().find(|own| own.path == path);
        let count = count.expect("a species").count;
        let read = |array: &str| {
            let values = snapshot.read_particles(&path, array, 0..count);
            values.unwrap_or_else(|e| panic!("{e}")).to_f64()
        };
        let (id, position, mass) = (read("id"), read("position"), read("mass"));
        all.extend((0..count as usize).map(|n| Point {
            id: [id[n] as u64, number as u64],
            position: [0, 1, 2].map(|a| position[3 * n + a]),
            mass: mass[n],
        }));
    }
    all
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let way = [0, 1, 2].map(|n| (b[n] - a[n] + 0.5).rem_euclid(1.0) - 0.5);
    way.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Returns the members of each group by its least identity, by tests of all pairs.
fn groups(points: &[Point], linking_length: f64) -> BTreeMap<[u64; 2], Vec<Point>> {
    let spacing = (1.0 / points.len() as f64).cbrt();
    let mut free: Vec<Point> = points.to_vec();
    let mut groups = BTreeMap::new();
    while let Some(first) = free.pop() {
        let mut members = vec![first];
        let mut next = 0;
        while let Some(one) = members.get(next).copied() {
            let near =
                |own: &Point| distance(own.position, one.position) <= linking_length * spacing;
            let (friends, others): (Vec<Point>, Vec<Point>) =
                free.iter().partition(|own| near(own));
            free = others;
            members.extend(friends);
            next += 1;
        }
        let least = members.iter().map(|own| own.id).min().expect("a member");
        groups.insert(least, members);
    }
    groups
}

/// Compares the latest entry of a view with groups by all pairs; returns their number.
fn compare(run: &Path, view: &str, all: &[Point], linking_length: f64, least: usize) -> usize {
    let mut expected = groups(all, linking_length);
    expected.retain(|_, members| members.len() >= least);
    let counts = column(run, view, "count");
    let count = *counts.last().expect("an entry") as usize;
    assert_eq!(count, expected.len(), "{view}");
    let of = |name: &str| {
        let values = column(run, view, name);
        let width = values.len() / counts.iter().sum::<f64>() as usize;
        values[values.len() - width * count..].to_vec()
    };
    let (id, species, number, mass) = (of("id"), of("species"), of("number"), of("mass"));
    let (place, mean) = (of("position"), of("centre_of_mass"));
    assert!(mass.is_sorted_by(|a, b| a >= b));
    for n in 0..count {
        let key = [id[n] as u64, species[n] as u64];
        let members = expected
            .get(&key)
            .unwrap_or_else(|| panic!("{view}: group {key:?}"));
        assert_eq!(number[n] as usize, members.len());
        let sum: f64 = members.iter().map(|own| own.mass).sum();
        assert!((mass[n] / sum - 1.0).abs() < 1e-6);
        let at = |list: &[f64]| [0, 1, 2].map(|a| list[3 * n + a]);
        let nearest = members.iter().map(|own| distance(own.position, at(&place)));
        assert!(
            nearest.fold(1.0, f64::min) < 1e-6,
            "the centre is no member"
        );
        let off = members.iter().fold([0.0; 3], |sum, own| {
            [0, 1, 2].map(|a| {
                let way = own.position[a] - at(&mean)[a];
                sum[a] + own.mass * ((way + 0.5).rem_euclid(1.0) - 0.5)
            })
        });
        assert!(off.iter().all(|off| off.abs() < 1e-6 * sum), "{off:?}");
    }
    count
}

/// Requires that two runs have the same lists, bit by bit.
fn require_same(one: &Path, other: &Path, what: &str) {
    for view in ["groups", "of_dark"] {
        for name in COLUMNS {
            let bits = |run: &Path| -> Vec<u64> {
                column(run, view, name)
                    .iter()
                    .map(|x| x.to_bits())
                    .collect()
            };
            assert!(bits(one) == bits(other), "{what}: {view}/{name}");
        }
    }
    for name in ["power_dark", "power_matter", "shot_noise_matter"] {
        let [one, other] = [one, other].map(|run| column(run, "power", name));
        assert!(one == other, "{what}: {name}");
    }
}

#[test]
fn catalogues_have_the_groups_of_all_pairs() {
    let scratch = Scratch::new();
    let run = scratch.run();
    let settings = ["output.final=true", "run.precision=double"];
    run_into(&run, false, CLUMPS, &settings).expect("runs");
    let both = points(&run, &["dark", "stars"]);
    assert!(compare(&run, "groups", &both, 0.2, 10) > 1);
    let dark = points(&run, &["dark"]);
    assert!(compare(&run, "of_dark", &dark, 0.1, 5) > 1);
    // the largest group is at the border, and its sphere contains other matter, too
    let place = |name: &str| -> [f64; 3] {
        let values = column(&run, "groups", name);
        let counts = column(&run, "groups", "count");
        let before: f64 = counts[..counts.len() - 1].iter().sum();
        [0, 1, 2].map(|a| values[3 * before as usize + a])
    };
    let [x, y, _] = place("centre_of_mass");
    assert!(distance([x, y, 0.0], [0.0; 3]) < 0.05, "{x} {y}");
}

#[test]
fn catalogues_have_the_same_bits_on_ranks_threads_and_devices() {
    let settings = ["run.precision=double"];
    let alone = Scratch::new();
    run_into(&alone.run(), false, CLUMPS, &settings).expect("runs");
    let mut others = places(&[3], &[1]);
    others.push(("run.threads=2", 1));
    for (setting, ranks) in others {
        let scratch = Scratch::new();
        let options = (0..ranks).map(|_| quietly_into(&scratch.run(), false));
        let settings = [settings[0], setting];
        for result in run_on_ranks(CLUMPS, &settings, options.collect()) {
            result.unwrap_or_else(|e| panic!("{e}"));
        }
        require_same(
            &alone.run(),
            &scratch.run(),
            &format!("{setting}, {ranks} ranks"),
        );
    }
}

#[test]
fn spectra_of_matter_are_those_of_the_particles() {
    let scratch = Scratch::new();
    let run = scratch.run();
    let settings = ["output.final=true", "run.precision=double"];
    run_into(&run, false, CLUMPS, &settings).expect("runs");
    let of = |name: &str| column(&run, "power", name);
    // 16 root cells resolve 8 wave numbers
    let (k, modes) = (of("wavenumber"), of("modes"));
    assert_eq!((k.len(), modes.len()), (8, 3 * 8));
    assert!((k[0] / std::f64::consts::TAU - 1.0).abs() < 1e-15);
    assert_eq!(modes[..3], [18.0, 62.0, 98.0]);
    for noise in of("shot_noise_dark") {
        assert!((noise * 8000.0 - 1.0).abs() < 1e-12, "{noise}");
    }
    // a mode by a sum over particles: the waves along x, y and z are those of the displacements
    let dark = points(&run, &["dark"]);
    let mut power = 0.0;
    for x in -1..=1 {
        for y in -1..=1 {
            for z in -1..=1 {
                let wave = [x, y, z].map(f64::from);
                let square = wave.iter().map(|n| n * n).sum::<f64>();
                if square.sqrt().round() != 1.0 {
                    continue;
                }
                let mut mode = [0.0; 2];
                for own in &dark {
                    let phase: f64 = (0..3).map(|a| wave[a] * own.position[a]).sum();
                    let (sin, cos) = (std::f64::consts::TAU * phase).sin_cos();
                    mode = [mode[0] + cos / 8000.0, mode[1] + sin / 8000.0];
                }
                power += mode[0] * mode[0] + mode[1] * mode[1];
            }
        }
    }
    let found = of("power_dark")[2 * 8];
    let expected = power / modes[0];
    // images of even order remain
    assert!((found / expected - 1.0).abs() < 4e-3, "{found} {expected}");
    // gas and stars are part of all matter
    assert!(of("shot_noise_matter")[0] < 1.0 / 8000.0);
}

#[test]
fn a_resumed_run_continues_its_lists() {
    let (whole, cut) = (Scratch::new(), Scratch::new());
    run_into(&whole.run(), false, CLUMPS, &["time.max_steps=4"]).expect("runs");
    let settings = ["time.max_steps=3", "output.steps=2"];
    run_into(&cut.run(), false, CLUMPS, &settings).expect("runs");
    run_into(&cut.run(), true, CLUMPS, &["time.max_steps=4"]).expect("resumes");
    assert_eq!(column(&cut.run(), "groups", "count").len(), 5);
    require_same(&whole.run(), &cut.run(), "resumed");
}

/// Returns the error of a deck.
fn refused(text: &str) -> String {
    let made = Simulation::new(deck(text, &[])).and_then(Stepper::begin);
    made.map(|_| ()).expect_err(text).to_string()
}

#[test]
fn wrong_keys_are_refused_with_their_line() {
    for (from, to, why, line) in [
        (
            "species        = [\"dark\"]",
            "species = [\"drak\"]",
            "did you mean \"dark\"?",
            "species = [\"drak\"]",
        ),
        (
            "linking_length = 0.1",
            "linking_length = 0.0",
            "output.view[1].linking_length",
            "linking_length = 0.0",
        ),
        (
            "linking_length = 0.1",
            "linking_length = 1.1",
            "at most 1",
            "linking_length = 1.1",
        ),
        ("least          = 5", "least = 1", "at least 2", "least = 1"),
        (
            "least          = 5",
            "level = 1",
            "has no meaning for halos",
            "level = 1",
        ),
        (
            "least          = 5",
            "fields = [\"density\"]",
            "has no meaning for halos",
            "fields = [\"density\"]",
        ),
        (
            "[\"dark\", \"matter\"]",
            "[\"dark\", \"mater\"]",
            "did you mean \"matter\"?",
            "\"mater\"]",
        ),
        (
            "[\"dark\", \"matter\"]",
            "[\"dark\", \"dark\"]",
            "names \"dark\" a second time",
            "[\"dark\", \"dark\"]",
        ),
        (
            "interlaced = true",
            "fields = [\"density\"]",
            "has no meaning together with `species`",
            "fields = [\"density\"]",
        ),
        (
            "species    = [\"dark\", \"matter\"]",
            "fields = [\"density\"]",
            "needs the key `species`",
            "interlaced = true",
        ),
    ] {
        assert!(CLUMPS.contains(from), "{from}");
        let message = refused(&CLUMPS.replacen(from, to, 1));
        assert!(message.contains(why), "{why}: {message}");
        assert!(message.contains(line), "{line}: {message}");
    }
}

#[test]
fn halos_without_particles_are_refused() {
    let start = CLUMPS.find("[particles.species.dark]").expect("a table");
    let end = CLUMPS.find("[time]").expect("a table");
    let text = format!("{}{}", &CLUMPS[..start], &CLUMPS[end..]);
    let text = text.replace("[particles.refine]\nmass_per_cell = [1e-3]\n", "");
    let text = text.replace("species        = [\"dark\"]\n", "");
    let text = &text[..text
        .find("[[output.view]]\nname       = \"power\"")
        .expect("a view")];
    let why = refused(text);
    assert!(why.contains("needs particles with mass"), "{why}");
    assert!(why.contains("[[output.view]]"), "{why}");
}
