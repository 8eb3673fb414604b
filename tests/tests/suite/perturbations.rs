//! Initial perturbations of an expanding universe: second order, normalisation, spectra from tables and files of GRAFIC2.

use super::cosmology::{RANDOM, density_mode};
use super::particles::particles;
use nestar::Simulation;
use nestar::engine::comm::{Ranks, SingleRank};
use nestar_tests::decks::deck;
use nestar_tests::ranks::run_on_ranks;
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, Stepper};
use std::f64::consts::PI;
use std::path::Path;

/// Settings of an Einstein-de Sitter universe on one level, in which gas is all matter.
const SIMPLE: [&str; 3] = [
    "cosmology.preset=\"eds\"",
    "mesh.max_level=0",
    "cosmological.gas=1",
];

fn simple(more: &[&str]) -> Stepper {
    Stepper::new(RANDOM, &[&SIMPLE[..], more].concat())
}

/// Returns why a deck is refused.
pub(super) fn refusal(text: &str, settings: &[&str]) -> String {
    let built = Simulation::with_ranks(deck(text, settings), Ranks::new(SingleRank));
    let refused = built.and_then(Stepper::begin).err();
    refused
        .unwrap_or_else(|| panic!("{settings:?} is accepted"))
        .to_string()
}

/// Displacements and velocities of the particles of [`RANDOM`] by identity.
fn motions(stepper: &mut Stepper) -> Vec<[f64; 6]> {
    let mut all = particles(stepper, "dark");
    all.sort_by_key(|particle| particle.id);
    let motion = all.iter().map(|particle| {
        let (n, x, v) = (particle.id as usize, &particle.position, &particle.velocity);
        let q = [n % 16, n / 16 % 16, n / 256].map(|n| n as f64 + 0.5);
        let by = [0, 1, 2].map(|a| (x[a] - q[a] + 8.0).rem_euclid(16.0) - 8.0);
        [by[0], by[1], by[2], v[0], v[1], v[2]]
    });
    motion.collect()
}

/// The contribution of second order.
fn second_order(settings: &[&str]) -> Vec<[f64; 6]> {
    let both = motions(&mut simple(
        &[settings, &["perturbations.order=2"]].concat(),
    ));
    let first = motions(&mut simple(settings));
    let pairs = both.iter().zip(&first);
    pairs
        .map(|(both, first)| std::array::from_fn(|n| both[n] - first[n]))
        .collect()
}

/// In matter it grows with the square of the scale factor, at redshift 99 by 0.2 for each unit of time, is proportional to the square of the
/// amplitude and does not depend on its sign.
#[test]
fn the_second_order_of_particles_is_quadratic() {
    let base = second_order(&[]);
    let twice = second_order(&["perturbations.sigma8=1.6204"]);
    let paired = second_order(&["perturbations.paired=true"]);
    let largest = base.iter().flatten().fold(0.0_f64, |a, b| a.max(b.abs()));
    assert!(largest > 1e-4, "{largest:e}");
    for n in 0..base.len() {
        for a in 0..3 {
            let [by, speed] = [base[n][a], base[n][a + 3]];
            assert!((speed - 0.2 * by).abs() < 1e-12, "{n}: {:?}", base[n]);
            assert!((twice[n][a] - 4.0 * by).abs() < 1e-12, "{n}");
            assert!((paired[n][a] - by).abs() < 1e-12, "{n}");
        }
    }
}

/// The gas has the mean density and, to third order, the power that is added to a low mode.
#[test]
fn the_gas_of_second_order_has_the_mean_density() {
    let mut both = simple(&["perturbations.order=2"]);
    let mut first = simple(&[]);
    let [mean, _] = density_mode(&mut both, 4096.0, [0.0; 3]);
    assert!(mean.abs() < 1e-14, "{mean:e}");
    let wave = [2.0, -1.0, 1.0];
    let [found, linear] =
        [&mut both, &mut first].map(|stepper| density_mode(stepper, 4096.0, wave));
    let differs = (found[0] - linear[0]).hypot(found[1] - linear[1]);
    let size = linear[0].hypot(linear[1]);
    assert!(
        differs > 1e-4 * size && differs < 0.5 * size,
        "{differs:e} {size:e}"
    );
}

#[test]
fn ranks_do_not_matter_to_the_second_order() {
    let settings = [
        "perturbations.order=2",
        "time.max_steps=1",
        "output.initial=true",
        "output.final=true",
    ];
    let run = |ranks: usize| {
        let scratch = Scratch::new();
        let options = (0..ranks).map(|_| quietly_into(&scratch.run(), false));
        for result in run_on_ranks(RANDOM, &settings, options.collect()) {
            result.unwrap_or_else(|why| panic!("{ranks} ranks: {why}"));
        }
        digests(&scratch.run())
    };
    let reference = run(1);
    assert_eq!(reference.len(), 2);
    assert_eq!(run(3), reference);
}

/// Amplitude of a mode with `fixed = true`.
fn size(stepper: &mut Stepper, wave: [f64; 3]) -> f64 {
    let [re, im] = density_mode(stepper, 4096.0, wave);
    re.hypot(im)
}

/// `A_s = 2.1e-9` is the amplitude that an independent quadrature gives as `sigma8`. CAMB gives 0.8236 without massive neutrinos.
#[test]
fn the_primordial_amplitude_is_that_of_its_sigma8() {
    let common = ["mesh.max_level=0", "cosmological.gas=1"];
    let with = |key: &str| Stepper::new(RANDOM, &[&common[..], &[key]].concat());
    let mut primordial = with("perturbations.a_s=2.1e-9");
    let mut today = with("perturbations.sigma8=0.8304694155");
    let ratio = size(&mut primordial, [1.0, 2.0, 0.0]) / size(&mut today, [1.0, 2.0, 0.0]);
    assert!((ratio - 1.0).abs() < 1e-7, "{ratio}");
    assert!((0.830_469_4_f64 / 0.823_614 - 1.0).abs() < 0.01);
}

/// Writes the power law `100 k^-2` between two wave numbers; returns the settings of a deck that reads it.
fn with_table(folder: &Path, range: [f64; 2]) -> [String; 2] {
    let rows = (0..=20).map(|n| {
        let k = range[0] * (range[1] / range[0]).powf(f64::from(n) / 20.0);
        format!("{k:.17e} {:.17e}\n", 100.0 / (k * k))
    });
    let text: String = rows.collect();
    std::fs::write(folder.join("P.txt"), format!("# k/h P\n{text}")).expect("a file");
    let table = "perturbations={ spectrum = \"table\", file = \"P.txt\", fixed = true, seed = 3 }";
    [format!("run.folder={}", folder.display()), table.into()]
}

#[test]
fn spectra_of_tables_have_their_power() {
    let scratch = Scratch::new();
    let settings = with_table(scratch.path(), [0.1, 6.0]);
    let with = |more: &[&str]| {
        let settings = settings.iter().map(String::as_str);
        simple(&settings.chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let (mut today, mut early) = (with(&[]), with(&["perturbations.table_redshift=1"]));
    for wave in [[1.0, 0.0, 0.0], [0.0, 3.0, -2.0]] {
        let k = 2.0 * PI / 16.0 * wave.iter().map(|n| n * n).sum::<f64>().sqrt();
        // the growth is 1/100
        let exact = 0.01 * (100.0 / (k * k) / 4096.0).sqrt();
        let found = size(&mut today, wave);
        assert!((found / exact - 1.0).abs() < 1e-10, "{found:e} {exact:e}");
        let ratio = size(&mut early, wave) / found;
        assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
    }
}

/// Gas has the modes of the second column of a table, and particles those of the third, as if each were the power of all matter.
#[test]
fn gas_and_dark_matter_have_spectra_of_their_own() {
    let scratch = Scratch::new();
    let settings = with_table(scratch.path(), [1e-4, 20.0]);
    let file = scratch.path().join("P.txt");
    let rows = std::fs::read_to_string(&file).expect("a table");
    let run = |columns: &dyn Fn(&str, f64) -> String, more: &[&str]| {
        let rows = rows.lines().skip(1).map(|row| {
            let (k, power) = row.split_once(' ').expect("two columns");
            columns(k, power.trim().parse().expect("a power"))
        });
        std::fs::write(&file, rows.collect::<String>()).expect("a file");
        let settings = settings.iter().map(String::as_str);
        let mut stepper = simple(&settings.chain(more.iter().copied()).collect::<Vec<_>>());
        let mut gas = Vec::new();
        // without the fields of gravity, which the particles change
        stepper
            .state()
            .each_leaf_cell(|_, _, _, u| gas.extend_from_slice(&u[..6]));
        (gas, motions(&mut stepper))
    };
    let both = |k: &str, power: f64| format!("{k} {power:e} {:e}\n", 4.0 * power);
    let (gas, dark) = run(&both, &[]);
    let (gas_alone, slow) = run(&|k, power| format!("{k} {power:e}\n"), &[]);
    let (_, dark_alone) = run(&|k, power| format!("{k} {:e}\n", 4.0 * power), &[]);
    assert_eq!(gas, gas_alone);
    assert_eq!(dark, dark_alone);
    assert_ne!(dark, slow);
    // the mass of matter is 0.049/0.3111 gas: the powers are those of the total with this standard deviation
    let sigma8 = ["perturbations.sigma8=0.7"];
    let (_, dark) = run(&|k, power| format!("{k} {power:e} {power:e}\n"), &sigma8);
    let (_, dark_alone) = run(&|k, power| format!("{k} {power:e}\n"), &sigma8);
    let largest = |all: &[[f64; 6]]| {
        all.iter()
            .flatten()
            .fold(0.0, |most: f64, x| most.max(x.abs()))
    };
    let ratio = largest(&dark) / largest(&dark_alone);
    assert!((ratio - 1.0).abs() < 1e-12, "{ratio}");
    std::fs::write(&file, "0.1 1 2\n6 1 2\n").expect("a file");
    let second = [
        settings[0].as_str(),
        settings[1].as_str(),
        "perturbations.order=2",
    ];
    let why = refusal(RANDOM, &second);
    assert!(
        why.contains("perturbations.order") && why.contains("P.txt"),
        "{why}"
    );
}

/// A table with the normalisation by `sigma8` is the same as the formula.
#[test]
fn sigma8_normalises_a_table() {
    let scratch = Scratch::new();
    let settings = with_table(scratch.path(), [1e-4, 20.0]);
    let settings = settings.iter().map(String::as_str);
    let sigma8 = ["perturbations.sigma8=0.7"];
    let mut table = simple(&settings.chain(sigma8).collect::<Vec<_>>());
    let law = "perturbations={ spectrum = \"power-law\", n_s = -2, sigma8 = 0.7, fixed = true, seed = 3 }";
    let mut law = simple(&[law]);
    for wave in [[1.0, 0.0, 0.0], [0.0, 3.0, -2.0]] {
        let ratio = size(&mut table, wave) / size(&mut law, wave);
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }
}

#[test]
fn contradictory_spectra_are_refused() {
    let both = RANDOM.replace("seed = 7", "seed = 7\nsigma8 = 0.8\na_s = 2e-9");
    let why = refusal(&both, &[]);
    assert!(
        ["test:6", "test:7"].iter().all(|line| why.contains(line)),
        "{why}"
    );
    let scratch = Scratch::new();
    let settings = with_table(scratch.path(), [0.5, 6.0]);
    let folder = settings[0].as_str();
    let table = settings[1].as_str();
    std::fs::write(scratch.path().join("bad.txt"), "0.1 2\n0.05 3\n").expect("a file");
    for (settings, words) in [
        (&[folder, table][..], ["P.txt", "5.0000e-1", "3.9270e-1"]),
        (
            &[folder, table, "perturbations.a_s=2e-9"],
            ["perturbations.a_s", "table", "sigma8"],
        ),
        (
            &[folder, table, "perturbations.file=bad.txt"],
            ["bad.txt:2", "ascend", "0.05"],
        ),
        (
            &[folder, table, "perturbations.file=none.txt"],
            ["none.txt", "cannot", "read"],
        ),
        (
            &["perturbations.spectrum=table"],
            ["perturbations.file", "table", "give"],
        ),
        (
            &["perturbations.file=P.txt"],
            ["perturbations.file", "table", "remove"],
        ),
        (
            &["perturbations.order=3"],
            ["perturbations.order", "3", "2"],
        ),
    ] {
        let why = refusal(RANDOM, settings);
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    }
    let wide = with_table(scratch.path(), [0.01, 6.0]);
    let why = refusal(RANDOM, &[&wide[0], &wide[1], "perturbations.sigma8=0.8"]);
    assert!(why.contains("sigma8") && why.contains("1.0000e-3"), "{why}");
}

/// The number of a file in a cell.
fn number(file: usize, cell: usize) -> f32 {
    let mixed = (cell * 7919 + file * 104_729) % 10_007;
    (mixed as f32 / 10_007.0 - 0.5) * [0.2, 30.0, 30.0, 0.1][file / 3]
}

/// Files of GRAFIC2 by the order of [`number`]: each third file begins another kind.
const FILES: [&str; 12] = [
    "ic_deltab",
    "",
    "",
    "ic_velbx",
    "ic_velby",
    "ic_velbz",
    "ic_velcx",
    "ic_velcy",
    "ic_velcz",
    "ic_poscx",
    "ic_poscy",
    "ic_poscz",
];

/// Writes a file of 16 cells along each axis in a box of 16 Mpc/h, for the universe of [`SIMPLE`].
fn write_file(folder: &Path, file: usize, omega_m: f32) {
    let mut bytes = Vec::new();
    let mut record = |words: Vec<u32>| {
        let mark = (4 * words.len() as u32).to_le_bytes();
        bytes.extend(mark);
        bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(mark);
    };
    let numbers = [2.0, 0.0, 0.0, 0.0, 0.01, omega_m, 0.0, 50.0].map(f32::to_bits);
    record([[16; 3].to_vec(), numbers.to_vec()].concat());
    for z in 0..16 {
        let cells = z * 256..(z + 1) * 256;
        record(cells.map(|n| number(file, n).to_bits()).collect());
    }
    std::fs::write(folder.join(FILES[file]), bytes).expect("a file");
}

fn with_files(folder: &Path, files: &[usize]) -> String {
    for file in files {
        write_file(folder, *file, 1.0);
    }
    format!("perturbations={{ grafic = \"{}\" }}", folder.display())
}

/// Gas has the numbers of the files to the bit, and particles those of its velocities and displacements.
#[test]
fn files_of_grafic_are_read_to_the_bit() {
    let scratch = Scratch::new();
    let all = [0, 3, 4, 5, 6, 7, 8, 9, 10, 11];
    let mut stepper = simple(&[&with_files(scratch.path(), &all)]);
    // peculiar velocity times the scale factor, in units of 100 km/s
    let speed = |file: usize, n: usize| f64::from(number(file, n)) * (0.01 / 100.0);
    stepper.state().each_leaf_cell(|_, x, _, u| {
        let [i, j, k] = x.map(|x| x as usize);
        let n = i + 16 * (j + 16 * k);
        assert_eq!(u[0], 1.0 + f64::from(number(0, n)), "{x:?}");
        for a in 0..3 {
            assert!((u[1 + a] / u[0] - speed(3 + a, n)).abs() < 1e-17, "{x:?}");
        }
    });
    for (n, motion) in motions(&mut stepper).iter().enumerate() {
        for a in 0..3 {
            let by = f64::from(number(9 + a, n));
            assert!((motion[a] - by).abs() < 1e-14, "{n}: {motion:?} {by}");
            assert!((motion[a + 3] - speed(6 + a, n)).abs() < 1e-17, "{n}");
        }
    }
}

/// Without displacements, they follow from the velocities: the growing mode changes by 0.1 for each unit of time at redshift 99.
#[test]
fn displacements_follow_from_velocities() {
    let scratch = Scratch::new();
    let files = with_files(scratch.path(), &[0, 3, 4, 5, 6, 7, 8]);
    for motion in motions(&mut simple(&[&files])) {
        for a in 0..3 {
            assert!(
                (motion[a] - 10.0 * motion[a + 3]).abs() < 1e-12,
                "{motion:?}"
            );
        }
    }
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    let files = with_files(scratch.path(), &[0, 3, 4, 5, 6, 7]);
    let with = |more: &[&str]| refusal(RANDOM, &[&SIMPLE[..], &[&files], more].concat());
    let why = with(&[]);
    assert!(
        why.contains("ic_velcz") && why.contains("cannot be read"),
        "{why}"
    );
    write_file(scratch.path(), 8, 1.0);
    for (setting, word) in [
        ("domain.cells=[32, 16, 16]", "cubes"),
        ("domain.cells=[32, 32, 32]", "domain.cells"),
        ("domain.right_edge=[16.1, 16.1, 16.1]", "width of a cell"),
        ("cosmology.start_redshift=98", "cosmology.start_redshift"),
        ("cosmology.h=0.51", "cosmology.h"),
        ("perturbations.sigma8=0.8", "perturbations.sigma8"),
        ("perturbations.order=2", "perturbations.order"),
    ] {
        let why = with(&[setting]);
        assert!(why.contains(word), "{setting}: {why}");
    }
    write_file(scratch.path(), 4, 0.3);
    let why = with(&[]);
    assert!(why.contains("ic_velby") && why.contains("omega_m"), "{why}");
}
