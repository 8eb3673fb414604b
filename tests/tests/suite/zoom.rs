//! Zooms: lattices inside and outside a region, waves of finer levels, refinement by some species, and the nearest particle of another species.

use super::cosmology::require_equal_bits;
use super::device_runs::places;
use super::particles::particles;
use super::perturbations::refusal;
use nestar::snapshot::read_array;
use nestar_tests::runs::run_into;
use nestar_tests::{Scratch, Stepper};
use std::collections::BTreeMap;
use std::path::Path;

/// Gas, and particles of 16 cells along each axis, which are finer in a region.
const ZOOM: &str = r#"
scenario = "cosmological"
[cosmology]
[perturbations]
seed  = 7
level = 1
[domain]
cells      = [16, 16, 16]
right_edge = ["16 Mpc/h", "16 Mpc/h", "16 Mpc/h"]
[mesh]
max_level   = 1
flag_buffer = 1
[hydro]
dual_energy = true
[gravity]
[particles.refine]
species  = ["fine"]
per_cell = [1.0]
[particles.species.coarse]
mass    = 0.8425
initial = { kind = "lattice", points = [16, 16, 16], perturbed = true, outside = "region.csv" }
[particles.species.fine]
mass    = 0.1053125
initial = { kind = "lattice", points = [32, 32, 32], perturbed = true, inside = "region.csv" }
"#;

/// The same box with one kind of particles on a lattice with a point in each cell.
const UNIFORM: &str = r#"
scenario = "cosmological"
[cosmology]
[perturbations]
seed = 7
[domain]
cells      = [16, 16, 16]
right_edge = ["16 Mpc/h", "16 Mpc/h", "16 Mpc/h"]
[hydro]
dual_energy = true
[gravity]
[particles.species.dark]
mass    = 0.8425
initial = { kind = "lattice", points = [16, 16, 16], perturbed = true }
"#;

/// Settings of [`UNIFORM`] with the cells of the finer level.
const FINE: [&str; 3] = [
    "domain.cells=[32, 32, 32]",
    "particles.species.dark.initial.points=[32, 32, 32]",
    "particles.species.dark.mass=0.1053125",
];

/// Cells of the region, in the first patch.
fn region() -> Vec<[u64; 3]> {
    let all = (0..64).map(|n| [2 + n % 4, 2 + n / 4 % 4, 2 + n / 16]);
    // a corner and a cell in the middle are missing
    all.filter(|cell| *cell != [2, 2, 2] && *cell != [3, 4, 3])
        .collect()
}

/// Writes the region, and returns the setting of the folder.
fn with_region(folder: &Path) -> String {
    let rows = region();
    let rows = rows.iter().map(|[x, y, z]| format!("{x},{y},{z}\n"));
    let text = format!("x,y,z\n16,16,16\n{}", rows.collect::<String>());
    std::fs::write(folder.join("region.csv"), text).expect("a file");
    format!("run.folder={}", folder.display())
}

/// Positions and velocities by identity.
fn motions(stepper: &mut Stepper, species: &str) -> BTreeMap<u64, [f64; 6]> {
    let all = particles(stepper, species).into_iter().map(|one| {
        let [x, y, z] = one.position;
        let [u, v, w] = one.velocity;
        (one.id, [x, y, z, u, v, w])
    });
    all.collect()
}

/// Density and velocity of the gas in the cells of a level that contain no finer ones, by the centre in units of half a cell.
fn gas(stepper: &mut Stepper, wanted: usize, width: f64) -> BTreeMap<[i64; 3], [f64; 4]> {
    let mut cells = BTreeMap::new();
    stepper.state().each_leaf_cell(|level, x, _, u| {
        if level == wanted {
            let place = x.map(|x| (2.0 * x / width).round() as i64);
            cells.insert(place, [u[0], u[1] / u[0], u[2] / u[0], u[3] / u[0]]);
        }
    });
    cells
}

/// Requires that numbers with the same key are equal to `tolerance`; returns how many there are.
fn compare<K: Ord + std::fmt::Debug, const N: usize>(
    found: &BTreeMap<K, [f64; N]>,
    expected: &BTreeMap<K, [f64; N]>,
    tolerance: f64,
) -> usize {
    for (key, found) in found {
        let expected = expected.get(key).unwrap_or_else(|| panic!("no {key:?}"));
        let differs = (0..N).any(|n| (found[n] - expected[n]).abs() > tolerance);
        assert!(!differs, "{key:?}: {found:?} {expected:?}");
    }
    found.len()
}

/// Particles and gas of the region have the waves of a run with its cells everywhere, all others those of a coarse run.
#[test]
fn waves_are_those_of_uniform_runs() {
    let scratch = Scratch::new();
    let folder = with_region(scratch.path());
    for order in ["perturbations.order=1", "perturbations.order=2"] {
        let mut zoom = Stepper::new(ZOOM, &[&folder, order]);
        let coarse = ["mesh.max_level=0", order];
        let mut coarse = Stepper::new(UNIFORM, &coarse);
        let mut fine = Stepper::new(UNIFORM, &[&FINE[..], &["mesh.max_level=0", order]].concat());
        let [own, all] = [motions(&mut zoom, "fine"), motions(&mut fine, "dark")];
        assert_eq!(compare(&own, &all, 1e-14), 8 * region().len(), "{order}");
        let place = |n: u64, points: u64| [n % points, n / points % points, n / points.pow(2)];
        let is_inside = |n: &u64| region().contains(&place(*n, 32).map(|i| i / 2));
        assert!(own.keys().all(is_inside));
        let [own, all] = [motions(&mut zoom, "coarse"), motions(&mut coarse, "dark")];
        assert_eq!(compare(&own, &all, 0.0), 4096 - region().len(), "{order}");
        assert!(own.keys().all(|n| !region().contains(&place(*n, 16))));
        // one of eight patches is refined
        let [own, all] = [gas(&mut zoom, 1, 0.5), gas(&mut fine, 0, 0.5)];
        assert_eq!(compare(&own, &all, 1e-14), 4096, "{order}");
        let [own, all] = [gas(&mut zoom, 0, 1.0), gas(&mut coarse, 0, 1.0)];
        assert_eq!(compare(&own, &all, 0.0), 4096 - 512, "{order}");
    }
}

/// Without the key `level`, a finer lattice has the waves of the root cells only.
#[test]
fn waves_of_finer_levels_need_their_key() {
    let with = |level: &str| {
        let points = "particles.species.dark.initial.points=[32, 32, 32]";
        let settings = [
            "mesh.max_level=0",
            points,
            level,
            "particles.species.dark.mass=0.1053125",
        ];
        motions(&mut Stepper::new(UNIFORM, &settings), "dark")
    };
    let [without, with] = [0, 1].map(|level| with(&format!("perturbations.level={level}")));
    let difference = |n: &u64| {
        (0..3)
            .map(|a| (without[n][a] - with[n][a]).abs())
            .sum::<f64>()
    };
    let largest = with.keys().map(difference).fold(0.0, f64::max);
    assert!(largest > 1e-3, "{largest:e}");
}

#[test]
fn the_mass_is_that_of_a_uniform_run() {
    let scratch = Scratch::new();
    let folder = with_region(scratch.path());
    let mut zoom = Stepper::new(ZOOM, &[&folder]);
    let masses = ["coarse", "fine"].map(|species| {
        let all = particles(&mut zoom, species);
        all.iter().map(|one| one.mass).sum::<f64>()
    });
    let share = region().len() as f64 / 4096.0;
    assert!((masses[1] / (0.8425 * 4096.0 * share) - 1.0).abs() < 1e-13);
    let sum = masses[0] + masses[1];
    assert!((sum / (0.8425 * 4096.0) - 1.0).abs() < 1e-13, "{masses:?}");
}

/// All patches have coarse particles, but only one has fine ones.
#[test]
fn only_chosen_species_refine() {
    let scratch = Scratch::new();
    let folder = with_region(scratch.path());
    let patches = |settings: &[&str]| {
        let mut zoom = Stepper::new(ZOOM, &[&[&*folder], settings].concat());
        let at_start = zoom.state().counts();
        zoom.steps(2);
        [at_start, zoom.state().counts()].map(|counts| counts[1])
    };
    assert_eq!(patches(&[]), [8, 8]);
    let all = "particles.refine={ per_cell = [0.0] }";
    assert_eq!(patches(&[all]), [64, 64]);
    let coarse = "particles.refine={ species = [\"coarse\"], mass_per_cell = [0.5] }";
    assert_eq!(patches(&[coarse]), [64, 64]);
}

#[test]
fn devices_and_ranks_do_not_matter_to_zooms() {
    let scratch = Scratch::new();
    with_region(scratch.path());
    let file = scratch.path().join("region.csv");
    let text = ZOOM.replace("region.csv", &file.display().to_string());
    let others = places(&[2], &[1]);
    require_equal_bits(&text, "run.precision=double", &others);
}

#[test]
fn zooms_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    let folder = with_region(scratch.path());
    let write = |name: &str, text: &str| {
        std::fs::write(scratch.path().join(name), text).expect("a file");
    };
    write("outside.csv", "16 16 16\n3 16 3\n");
    for (from, to, words) in [
        (
            "points = [32, 32, 32]",
            "points = [32, 24, 32]",
            &["test:24", "initial.inside", "[32, 32, 32]"][..],
        ),
        (
            "outside = \"region.csv\"",
            "outside = \"outside.csv\"",
            &["outside.csv:2", "from 0 to 15", "initial.outside"],
        ),
        (
            "inside = \"region.csv\"",
            "inside = \"none.csv\"",
            &["none.csv", "cannot be read", "initial.inside"],
        ),
        (
            "species  = [\"fine\"]",
            "species  = [\"dark\"]",
            &["test:17", "particles.refine.species[0]", "coarse"],
        ),
        (
            "level = 1",
            "level = 12",
            &["test:6", "perturbations.level", "GiB"],
        ),
        (
            "level = 1",
            "level = 1\ngrafic = \"ics\"",
            &["test:6", "perturbations.level"],
        ),
    ] {
        let text = ZOOM.replace(from, to);
        assert_ne!(text, ZOOM);
        let why = refusal(&text, &[&folder]);
        assert!(words.iter().all(|word| why.contains(word)), "{to}: {why}");
    }
}

/// Returns the sizes of the groups of points by tests of all pairs, in descending order.
fn sizes(points: &[[f64; 6]], length: f64) -> Vec<usize> {
    let mut free = points.to_vec();
    let mut sizes = Vec::new();
    while let Some(first) = free.pop() {
        let mut members = vec![first];
        let mut next = 0;
        while let Some(one) = members.get(next).copied() {
            let near = |own: &[f64; 6]| distance(own, &one) <= length;
            let (friends, others): (Vec<_>, Vec<_>) = free.iter().partition(|own| near(own));
            free = others;
            members.extend(friends);
            next += 1;
        }
        sizes.push(members.len());
    }
    sizes.sort_by(|a, b| b.cmp(a));
    sizes
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let way = (0..3).map(|n| (a[n] - b[n] + 8.0).rem_euclid(16.0) - 8.0);
    way.map(|way| way * way).sum::<f64>().sqrt()
}

/// Groups of a part of a lattice by its own mean distance, and the nearest of the coarse particles.
#[test]
fn catalogues_of_zooms_tell_the_nearest_other_particle() {
    let scratch = Scratch::new();
    let folder = with_region(scratch.path());
    let view = "\n[[output.view]]\nname = \"halos\"\nkind = \"halos\"\nsteps = 1\nspecies = [\"fine\"]\nleast = 2\n\
                points = [32, 32, 32]\nlinking_length = 0.95\nprecision = \"double\"\n";
    let text = format!("{ZOOM}{view}");
    let settings = [&folder, "time.max_steps=1", "run.precision=double"];
    run_into(&scratch.run(), false, &text, &settings).expect("a run");
    let mut zoom = Stepper::new(ZOOM, &settings);
    let path = scratch.run().join("views/halos.zarr");
    let column = |name: &str| {
        let read = read_array(&path, name);
        read.unwrap_or_else(|why| panic!("{name}: {why}")).values
    };
    let count = column("count")[0] as usize;
    let fine: Vec<[f64; 6]> = motions(&mut zoom, "fine").into_values().collect();
    let mut expected = sizes(&fine, 0.95 * 0.5);
    expected.retain(|size| *size >= 2);
    assert!(count > 1, "{expected:?}");
    let number = &column("number")[..count];
    assert!(
        number.iter().eq(expected
            .iter()
            .map(|n| *n as f64)
            .collect::<Vec<_>>()
            .iter())
    );
    let (position, found) = (column("position"), column("nearest_other"));
    let coarse = motions(&mut zoom, "coarse");
    for n in 0..count {
        let centre = &position[3 * n..3 * n + 3];
        let all = coarse.values().map(|other| distance(centre, other));
        let nearest = all.fold(f64::INFINITY, f64::min);
        assert!((found[n] - nearest).abs() < 1e-12, "{} {nearest}", found[n]);
    }
}
