//! The expanding universe: cooling by expansion, the collapse of a plane wave (Zel'dovich 1970), linear growth, equal bits everywhere,
//! restarts, and refusals.

use super::device_runs::places;
use super::particles::particles;
use nestar::Simulation;
use nestar::engine::comm::{Ranks, SingleRank};
use nestar::snapshot::{Snapshot, read_array};
use nestar_tests::decks::deck;
use nestar_tests::ranks::run_on_ranks;
use nestar_tests::runs::{digests, quietly_into, run_into};
use nestar_tests::{Scratch, Stepper};
use std::f64::consts::PI;

const EMPTY: &str = include_str!("../../../scenarios/empty-universe.toml");
const PANCAKE: &str = include_str!("../../../scenarios/pancake.toml");

/// The same plane wave of particles.
const SHEET: &str = r#"
scenario = "formula"
[cosmology]
preset       = "eds"
end_redshift = 1.5
[constants]
k      = "2*pi/64"
growth = 0.02
[domain]
cells      = [256, 8, 8]
right_edge = ["64 Mpc/h", "2 Mpc/h", "2 Mpc/h"]
[initial]
density  = "1e-12"
pressure = "1e-12"
[hydro]
frozen = true
[gravity]
[particles.species.dark]
mass    = 0.015625
initial = { kind = "lattice", points = [256, 8, 8], displacement = ["-growth/k*sin(k*x)", "0", "0"], velocity = ["-0.1*growth/k*sin(k*x)", "0", "0"] }
"#;

/// Temperature times the square of the scale factor, which the expansion keeps for a ratio of specific heats of 5/3.
fn temperature(gamma: f64) -> f64 {
    let settings = format!("hydro.gamma={gamma}");
    let mut stepper = Stepper::new(EMPTY, &[&settings, "domain.cells=[8,8,8]"]);
    let state = stepper.finish().state();
    let mut all: Vec<f64> = Vec::new();
    state.each_leaf_cell(|_, _, _, u| {
        assert!((u[0] - 1.0).abs() < 1e-13, "density {:e}", u[0]);
        all.push((gamma - 1.0) * u[5] / u[0]);
    });
    let [a] = stepper.columns(["scale_factor"]);
    assert!((a - 1.0).abs() < 1e-12, "{a}");
    assert!(all.iter().all(|t| *t == all[0]));
    all[0]
}

/// The temperature falls as `a^(-3(gamma - 1))`, from 100 K at redshift 99 to that of today in code units.
#[test]
fn gas_cools_by_the_expansion() {
    let first = temperature(5.0 / 3.0);
    for (gamma, tolerance) in [(1.4, 1e-12), (4.0 / 3.0, 1e-12), (2.0, 1e-12)] {
        let found = temperature(gamma) / first;
        let exact = 100.0_f64.powf(5.0 - 3.0 * gamma);
        let error = (found / exact - 1.0).abs();
        println!("gamma {gamma}: error {error:e}");
        assert!(
            error < tolerance,
            "gamma {gamma}: {found:e} instead of {exact:e}"
        );
    }
}

/// The initial place of matter of a pancake with the plane at 32 that is at `x`, by Newton's method, and its density, for a ratio of
/// scale factors `growth`.
fn zeldovich(x: f64, growth: f64) -> [f64; 2] {
    let k = 2.0 * PI / 64.0;
    let mut q = x - 32.0;
    for _ in 0..100 {
        q -= (q - growth / k * (k * q).sin() - (x - 32.0)) / (1.0 - growth * (k * q).cos());
    }
    [q, 1.0 / (1.0 - growth * (k * q).cos())]
}

/// Mean relative errors of density and temperature of a pancake of gas at redshift 1.5, where the growth is 0.8.
fn pancake_errors(settings: &[&str]) -> [f64; 2] {
    let settings = [
        settings,
        &["cosmology.end_redshift=1.5", "cosmology.redshifts=[]"],
    ]
    .concat();
    let mut stepper = Stepper::new(PANCAKE, &settings);
    let state = stepper.finish().state();
    let (mut sums, mut cells) = ([0.0; 2], 0.0);
    let width = 64.0 / 256.0;
    state.each_leaf_cell(|_, x, _, u| {
        // the exact mean over the cell follows from the initial places of its faces
        let [lower, upper] = [-0.5, 0.5].map(|by| zeldovich(x[0] + by * width, 0.8)[0]);
        let exact = (upper - lower) / width;
        sums[0] += (u[0] - exact).abs();
        let adiabat = u[5] / u[0].powf(5.0 / 3.0);
        sums[1] += adiabat;
        cells += 1.0;
    });
    let mean = sums[1] / cells;
    let mut scatter = 0.0;
    state.each_leaf_cell(|_, _, _, u| {
        scatter += (u[5] / u[0].powf(5.0 / 3.0) / mean - 1.0).abs();
    });
    [sums[0] / cells, scatter / cells]
}

#[test]
fn a_pancake_of_gas_follows_zeldovich_until_it_collapses() {
    let [density, temperature] = pancake_errors(&[]);
    println!("256 cells: density {density:e}, temperature {temperature:e}");
    assert!(density < 3.2e-3, "{density:e}");
    assert!(temperature < 3e-3, "{temperature:e}");
}

/// The pancake at redshift 0: the largest distance of hot gas from the plane over the box, the mean pressure in units of the box and the Hubble
/// constant, and the median temperature of the voids.
struct Collapsed {
    shock: f64,
    pressure: f64,
    void: f64,
    /// Error of the cosmic energy equation, over the gravitational energy.
    energy: f64,
}

/// Runs a pancake whose plane is at `plane` to redshift 0.
fn collapsed(plane: f64, settings: &[&str]) -> Collapsed {
    let plane_at = format!("constants.plane={plane}");
    let settings = [&["cosmology.redshifts=[]", &*plane_at][..], settings].concat();
    let mut stepper = Stepper::new(PANCAKE, &settings);
    let [mut energy, mut redshift] = stepper.columns(["layzer_irvine", "redshift"]);
    while redshift > 0.0 {
        [energy, redshift] = stepper.steps(1).columns(["layzer_irvine", "redshift"]);
    }
    let state = stepper.state();
    // kelvin per code unit of pressure over density at a scale factor of 1, where the code velocity is 100 km/s
    let kelvin = 0.6 * 1.673_532_84e-24 / 1.380_649e-16 * 1e14;
    let (mut shock, mut sums, mut voids) = (0.0_f64, [0.0; 2], Vec::new());
    state.each_leaf_cell(|_, x, volume, u| {
        let from = ((x[0] - plane + 32.0).rem_euclid(64.0) - 32.0).abs() / 64.0;
        let pressure = 2.0 / 3.0 * u[5];
        let temperature = kelvin * pressure / u[0];
        if temperature > 1e4 {
            shock = shock.max(from);
        }
        if from > 0.3 {
            voids.push(temperature);
        }
        sums[0] += volume;
        sums[1] += volume * pressure / (64.0 * 64.0);
    });
    voids.sort_by(f64::total_cmp);
    Collapsed {
        shock,
        pressure: sums[1] / sums[0],
        void: voids[voids.len() / 2],
        energy,
    }
}

/// Compares a pancake with the converged values, which are those of 4096 cells; the gas of the voids cools exactly by the expansion.
fn collapses(place: f64, settings: &[&str]) {
    let Collapsed {
        shock,
        pressure,
        void,
        energy,
    } = collapsed(32.0 + place, settings);
    println!("{place}: shock {shock:.4}, pressure {pressure:.4e}, voids {void:.4e} K, {energy:e}");
    assert!((shock - 0.0347).abs() < 1.0 / 256.0, "{place}: {shock}");
    assert!((pressure / 4.948e-3 - 1.0).abs() < 0.02, "{pressure:e}");
    assert!((void / 4.821e-3 - 1.0).abs() < 0.01, "{void:e}");
    assert!(energy != 0.0 && energy.abs() < 5e-3, "{energy:e}");
}

/// The shock and the heat do not depend on the place of the plane within a cell, nor on a refined level.
#[test]
fn a_pancake_keeps_its_shock_and_its_cold_voids() {
    let level = [
        "domain.cells=[128, 8, 8]",
        "domain.right_edge=[\"64 Mpc/h\", \"4 Mpc/h\", \"4 Mpc/h\"]",
        "mesh.max_level=1",
        "mesh.refine=[{ criterion = \"formula\", when = \"abs(x - plane) < 5\" }]",
    ];
    for (place, settings) in [(0.0, &[][..]), (0.125, &[]), (0.0625, &level)] {
        collapses(place, settings);
    }
}

#[test]
#[ignore = "half a minute: a pancake on three levels"]
fn a_pancake_keeps_its_shock_on_three_levels() {
    let levels = [
        "domain.cells=[64, 8, 8]",
        "domain.right_edge=[\"64 Mpc/h\", \"8 Mpc/h\", \"8 Mpc/h\"]",
        "mesh.max_level=2",
        "mesh.refine=[{ criterion = \"formula\", when = \"abs(x - plane) < 5\" }]",
    ];
    collapses(0.0625, &levels);
}

/// Relative error of the amplitude of the wave of displacements at redshift 1.5.
fn displacement_error(settings: &[&str]) -> f64 {
    let mut stepper = Stepper::new(SHEET, settings);
    let all = particles(stepper.finish(), "dark");
    let (mut sum, k, growth) = (0.0, 2.0 * PI / 64.0, 0.8);
    for particle in &all {
        let q = ((particle.id % 256) as f64 + 0.5) * 0.25;
        let by = (particle.position[0] - q + 32.0).rem_euclid(64.0) - 32.0;
        sum -= 2.0 * by * (k * q).sin() / all.len() as f64;
    }
    sum * k / growth - 1.0
}

/// The error of the time steps is of second order; the mesh of 256 cells adds one of 1.3e-4.
#[test]
fn particles_follow_zeldovich_until_they_cross() {
    let [coarse, fine, finest] = ["0.02", "0.01", "0.0025"].map(|by| {
        displacement_error(&[&format!("cosmology.max_expansion={by}"), "gravity.order=4"])
    });
    println!("displacement: {coarse:e}, {fine:e}, {finest:e}");
    assert!(finest.abs() < 1.5e-4, "{finest:e}");
    assert!((coarse - finest).abs() < 2e-4, "{coarse:e}");
    assert!((fine - finest).abs() < 5e-5, "{fine:e}");
}

/// Growth of the amplitude of a plane wave of 16 cells from redshift 99 to 0, over the ratio of scale factors; `gas` or particles.
fn linear_growth(gas: bool) -> f64 {
    let text = match gas {
        true => GAS_WAVE.to_string(),
        false => PARTICLE_WAVE.to_string(),
    };
    let mut stepper = Stepper::new(&text, &["gravity.order=4"]);
    let amplitude = |stepper: &mut Stepper| {
        let state = stepper.state();
        let (mut sum, k) = (0.0, 2.0 * PI / 16.0);
        if gas {
            state.each_leaf_cell(|_, x, _, u| {
                sum += 2.0 / 1024.0 * (u[0] - 1.0) * (k * x[0]).cos();
            });
            return sum;
        }
        for particle in particles(stepper, "dark") {
            let q = ((particle.id % 32) as f64 + 0.5) * 0.5;
            let by = (particle.position[0] - q + 8.0).rem_euclid(16.0) - 8.0;
            sum -= 2.0 / 8192.0 * by * (k * q).sin();
        }
        sum
    };
    let first = amplitude(&mut stepper);
    stepper.finish();
    amplitude(&mut stepper) / first / 100.0
}

const GAS_WAVE: &str = r#"
scenario = "formula"
[cosmology]
preset = "eds"
[constants]
k = "2*pi/16"
size = 1e-5
[domain]
cells      = [16, 8, 8]
right_edge = ["16 Mpc/h", "8 Mpc/h", "8 Mpc/h"]
[initial]
samples       = 3
density       = "1 + size*cos(k*x)"
velocity_x    = "-0.1*size/k*sin(k*x)"
temperature_k = "1e-3"
[hydro]
dual_energy = true
[gravity]
"#;

const PARTICLE_WAVE: &str = r#"
scenario = "formula"
[cosmology]
preset = "eds"
[constants]
k = "2*pi/16"
size = 1e-5
[domain]
cells      = [16, 8, 8]
right_edge = ["16 Mpc/h", "8 Mpc/h", "8 Mpc/h"]
[initial]
density  = "1e-12"
pressure = "1e-12"
[hydro]
frozen = true
[gravity]
[particles.species.dark]
mass    = 0.125
initial = { kind = "lattice", points = [32, 16, 16], displacement = ["-size/k*sin(k*x)", "0", "0"], velocity = ["-0.1*size/k*sin(k*x)", "0", "0"] }
"#;

/// Growth of waves of particles and of gas from redshift 99 to 0 on the mesh, over that without a mesh. `k` is the wave number times the width of a
/// cell. Particles are at a quarter of a cell from the centres of cells; gas moves with the velocity that linear reconstruction gives at faces.
fn growth_on_the_mesh(k: f64) -> [f64; 2] {
    let deposit = ((k / 4.0).sin() + (0.75 * k).sin()) / k;
    let gather = 0.75 * (k / 4.0).cos() + 0.25 * (0.75 * k).cos();
    let at_faces = (k / 2.0).cos() + 0.5 * (k / 2.0).sin() * k.sin();
    let flow = at_faces * 2.0 * (k / 2.0).sin() / k;
    let laplacian = k * k / (2.0 - 2.0 * k.cos());
    let slope = (8.0 * k.sin() - (2.0 * k).sin()) / (6.0 * k);
    [deposit * gather, flow].map(|own| {
        // the growing mode is a^p; the initial velocity, that of p = 1, contains some of the decaying one
        let root = (0.25 + 6.0 * own * laplacian * slope).sqrt();
        let (growing, decaying) = (0.5 * (root - 0.5), -0.5 * (root + 0.5));
        let part = (1.0 - decaying) / (growing - decaying);
        part * 100.0_f64.powf(growing - 1.0)
    })
}

/// Growth as computed for the mesh: 3.4% less for particles and 6.2% more for gas than without a mesh.
#[test]
fn waves_of_sixteen_cells_grow_as_computed_for_the_mesh() {
    let [particles, gas] = growth_on_the_mesh(2.0 * PI / 16.0);
    let found = [linear_growth(false), linear_growth(true)];
    println!("particles {particles:.5}, gas {gas:.5}, found {found:.5?}");
    assert!((found[0] - particles).abs() < 1e-3, "{found:?}");
    assert!((found[1] - gas).abs() < 1e-2, "{found:?}");
}

/// Gas and dark matter on three levels that follow them.
const BOTH: &str = r#"
scenario = "formula"
[cosmology]
start_redshift = 9
[domain]
cells      = [16, 16, 16]
right_edge = ["16 Mpc/h", "16 Mpc/h", "16 Mpc/h"]
[initial]
density       = "0.2*(1 + 0.8*cos(2*pi*x/16)*cos(2*pi*y/16)*cos(2*pi*z/16))"
velocity_x    = "sin(2*pi*y/16)"
temperature_k = "1e4"
[mesh]
max_level = 2
refine = [{ criterion = "formula", when = "density > 0.3" }]
[hydro]
gamma       = 1.4
dual_energy = true
[gravity]
[particles.species.dark]
mass    = 0.8
initial = { kind = "lattice", points = [16, 16, 16], displacement = ["0.4*sin(2*pi*x/16)", "0.3*sin(2*pi*z/16)", "0"] }
[output]
derived = ["temperature_k", "number_density_cm3", "redshift"]
"#;

/// Random perturbations of gas and dark matter.
pub(super) const RANDOM: &str = r#"
scenario = "cosmological"
[cosmology]
[perturbations]
seed = 7
[domain]
cells      = [16, 16, 16]
right_edge = ["16 Mpc/h", "16 Mpc/h", "16 Mpc/h"]
[mesh]
max_level = 2
[hydro]
dual_energy = true
[gravity]
[particles.refine]
per_cell = [1.0, 3.0]
[particles.species.dark]
mass    = 0.8425
initial = { kind = "lattice", points = [16, 16, 16], perturbed = true }
"#;

/// Two root steps with a snapshot after each.
pub(super) const SETTINGS: [&str; 4] = [
    "time.max_steps=2",
    "output.initial=true",
    "output.final=true",
    "output.steps=1",
];

/// Levels open with the scale factor; no criterion refines beyond.
#[test]
fn levels_open_with_the_scale_factor() {
    let settings = [
        "cosmology.end_redshift=7.9",
        "mesh.regrid_interval=1",
        "mesh.open=\"1 + floor(ln(scale_factor/0.1001)/ln(1.05))\"",
        "mesh.refine=[{ criterion = \"formula\", when = \"density > 0.1\" }]",
    ];
    let mut stepper = Stepper::new(BOTH, &settings);
    let mut seen = vec![];
    loop {
        let [a] = stepper.columns(["scale_factor"]);
        let finest = stepper.state().counts().iter().rposition(|&n| n > 0);
        seen.push((a, finest.expect("patches")));
        if seen.len() == 5 {
            break;
        }
        stepper.steps(1);
    }
    println!("{seen:?}");
    assert_eq!(seen[0].1, 0, "no level is open at the start");
    assert!(seen.iter().any(|(_, finest)| *finest == 1));
    let most = |a: f64| (1.0 + ((a / 0.1001).ln() / 1.05_f64.ln()).floor()).max(0.0);
    assert!(seen.iter().all(|(a, finest)| *finest as f64 <= most(*a)));
    let refused = Simulation::with_ranks(
        deck(BOTH, &["mesh.open=\"floor(density)\""]),
        Ranks::new(SingleRank),
    );
    let why = match refused.and_then(Stepper::begin) {
        Ok(_) => panic!("a formula of the density is accepted"),
        Err(why) => why.to_string(),
    };
    assert!(
        why.contains("mesh.open") && why.contains("density"),
        "{why}"
    );
}

/// Returns the digests of the snapshots of a run on some ranks.
pub(super) fn digests_of(text: &str, settings: &[&str], ranks: usize) -> Vec<(String, String)> {
    let scratch = Scratch::new();
    let options = (0..ranks).map(|_| quietly_into(&scratch.run(), false));
    for result in run_on_ranks(text, settings, options.collect()) {
        result.unwrap_or_else(|why| panic!("{settings:?}, {ranks} ranks: {why}"));
    }
    digests(&scratch.run())
}

/// Requires that a deck has the same snapshots on other devices and numbers of ranks as on one rank of the CPU.
pub(super) fn require_equal_bits(text: &str, precision: &str, others: &[(&str, usize)]) {
    let run = |device: &str, ranks: usize| {
        let settings = [&SETTINGS[..], &[precision, device]].concat();
        digests_of(text, &settings, ranks)
    };
    let reference = run("run.device=cpu", 1);
    assert_eq!(reference.len(), 3);
    for (device, ranks) in others {
        let found = run(device, *ranks);
        assert_eq!(found, reference, "{device}, {ranks} ranks, {precision}");
    }
}

#[test]
fn devices_and_ranks_do_not_matter() {
    require_equal_bits(BOTH, "run.precision=single", &places(&[], &[2]));
    require_equal_bits(RANDOM, "run.precision=double", &places(&[3], &[1]));
}

/// A run that is resumed, with a later end, has the snapshots of a run to that end.
#[test]
fn a_resumed_run_continues_the_expansion() {
    let whole = Scratch::new();
    let outputs = "cosmology.redshifts=[8.9, 8.8]";
    let common = [
        outputs,
        "cosmology.max_expansion=0.003",
        "mesh.max_level=1",
        "output.initial=true",
        "output.final=true",
    ];
    let to = |end: &'static str| [&common[..], &[end]].concat();
    run_into(&whole.run(), false, BOTH, &to("cosmology.end_redshift=8.7")).expect("a run");
    let parts = Scratch::new();
    run_into(
        &parts.run(),
        false,
        BOTH,
        &[
            &common[1..],
            &["cosmology.redshifts=[8.9]", "cosmology.end_redshift=8.8"],
        ]
        .concat(),
    )
    .expect("a first part");
    run_into(&parts.run(), true, BOTH, &to("cosmology.end_redshift=8.7")).expect("a second part");
    let [whole, parts] = [whole, parts].map(|run| digests(&run.run()));
    assert_eq!(whole.len(), 4, "start, two redshifts, end");
    assert_eq!(whole, parts);
}

/// Halos and power spectra at listed redshifts and at the end.
#[test]
fn views_have_entries_at_listed_redshifts() {
    let scratch = Scratch::new();
    let views = "\n[[output.view]]\nname = \"halos\"\nkind = \"halos\"\noutput_times = true\n\
                 [[output.view]]\nname = \"power\"\nkind = \"spectrum\"\nspecies = [\"dark\", \"matter\"]\n\
                 output_times = true\nprecision = \"double\"\n";
    let text = format!("{RANDOM}{views}");
    let settings = [
        "mesh.max_level=0",
        "cosmology.redshifts=[95, 90]",
        "cosmology.end_redshift=80",
    ];
    run_into(&scratch.run(), false, &text, &settings).expect("a run");
    let read = |view: &str, name: &str| {
        let path = scratch.run().join(format!("views/{view}.zarr"));
        let read = read_array(&path, name);
        read.unwrap_or_else(|why| panic!("{view}: {why}")).values
    };
    let growth = |name: &str| {
        let power = read("power", name);
        let shells = power.len() / 4;
        assert_eq!(shells * 4, power.len(), "start, two redshifts, end");
        power[3 * shells] / power[0]
    };
    assert_eq!(read("halos", "count"), [0.0; 4]);
    assert_eq!(read("halos", "time").len(), 4);
    // the longest waves grow almost as the scale factor; those of particles on the mesh somewhat less
    let exact = (100.0_f64 / 81.0).powi(2);
    for name in ["power_dark", "power_matter"] {
        let found = growth(name) / exact;
        println!("{name}: growth {found} of the exact one");
        assert!((found - 1.0).abs() < 0.02, "{name}: {found}");
    }
}

/// Another universe would give the numbers of a snapshot another meaning.
#[test]
fn a_restart_in_another_universe_is_refused() {
    let scratch = Scratch::new();
    run_into(
        &scratch.run(),
        false,
        EMPTY,
        &["time.max_steps=1", "output.final=true"],
    )
    .expect("a run");
    let resumed = run_into(
        &scratch.run(),
        true,
        &EMPTY.replace("\"eds\"", "\"planck2018\""),
        &[],
    );
    let why = resumed.expect_err("refused").to_string();
    assert!(why.contains("cosmology.preset"), "{why}");
}

/// The snapshot holds the units at its time, and numbers of the expansion.
#[test]
fn snapshots_have_the_units_of_their_time() {
    let scratch = Scratch::new();
    run_into(
        &scratch.run(),
        false,
        EMPTY,
        &[
            "cosmology.end_redshift=1",
            "output.initial=true",
            "output.final=true",
        ],
    )
    .expect("a run");
    let megaparsec = 3.085_677_581_491_367e24 / 0.5;
    for (number, a) in [(0, 0.01), (1, 0.5)] {
        let path = scratch.run().join(format!("snapshots/{number:06}.zarr"));
        let snapshot = Snapshot::open(&path).unwrap_or_else(|why| panic!("{why}"));
        let (units, facts) = (&snapshot.attributes().units, &snapshot.attributes().facts);
        let length = units.length_cgs / (a * megaparsec);
        assert!((length - 1.0).abs() < 1e-12, "{length}");
        assert!((facts["scale_factor"] / a - 1.0).abs() < 1e-12, "{facts:?}");
        assert!(
            (facts["redshift"] - (1.0 / a - 1.0)).abs() < 1e-9,
            "{facts:?}"
        );
        // the Hubble time of h = 0.5 in seconds
        let time = units.time_cgs / (a * a * 6.171_355_162_982_735e17);
        assert!((time - 1.0).abs() < 1e-9, "{time}");
    }
}

/// What does not go with an expansion is refused by its key.
#[test]
fn what_does_not_fit_is_refused() {
    let cases: [(&str, &[&str]); 14] = [
        (
            "units={ length = \"kpc\", mass = \"Msun\", velocity = \"km/s\" }",
            &["units", "cosmology"],
        ),
        ("time.end=3", &["time.end", "cosmology.end_redshift"]),
        ("output.times=[3]", &["output.times"]),
        (
            "cosmology.redshifts=[1, 2]",
            &["cosmology.redshifts", "descend"],
        ),
        ("cosmology.start_redshift=0", &["cosmology.start_redshift"]),
        ("cosmology.omega_m=3", &["stops expanding"]),
        ("cosmology.length=\"km/s\"", &["cosmology.length", "length"]),
        ("cosmology.omega_x=1", &["omega_x"]),
        ("domain.boundary=\"outflow\"", &["periodic"]),
        (
            "hydro={ eos = \"isothermal\", sound_speed = 1 }",
            &["hydro.eos"],
        ),
        ("initial.velocity_x=\"3 km/s\"", &["km/s", "code units"]),
        ("external={ acceleration_x = \"1\" }", &["external"]),
        ("mhd={ method = \"glm\" }", &["mhd"]),
        ("gravity.force=\"stress\"", &["gravity.force"]),
    ];
    for (setting, words) in cases {
        let redshifts = if setting.starts_with("output") {
            "[3]"
        } else {
            "[]"
        };
        let redshifts = format!("cosmology.redshifts={redshifts}");
        let end = if setting.contains("omega_m") {
            "cosmology.end_redshift=-0.8"
        } else {
            "cosmology.end_redshift=0"
        };
        let settings = [&redshifts, end, setting];
        let built = Simulation::with_ranks(deck(EMPTY, &settings), Ranks::new(SingleRank));
        let why = match built.and_then(Stepper::begin) {
            Ok(_) => panic!("{setting} is accepted"),
            Err(why) => why.to_string(),
        };
        for word in words {
            assert!(why.contains(word), "{setting}: {why}");
        }
    }
}

/// A mode of the density of gas of mean 1: real and imaginary part.
pub(super) fn density_mode(stepper: &mut Stepper, cells: f64, wave: [f64; 3]) -> [f64; 2] {
    let mut sums = [0.0; 2];
    stepper.state().each_leaf_cell(|_, x, _, u| {
        let phase = 2.0 * PI * (wave[0] * x[0] + wave[1] * x[1] + wave[2] * x[2]) / 16.0;
        sums[0] += (u[0] - 1.0) * phase.cos() / cells;
        sums[1] -= (u[0] - 1.0) * phase.sin() / cells;
    });
    sums
}

/// The same modes on twice as many cells; with `paired` they have the opposite sign; the amplitude is that of the spectrum.
#[test]
fn modes_depend_on_the_box_alone() {
    let gas = [
        "cosmological.gas=1",
        "mesh.max_level=0",
        "hydro.frozen=true",
    ];
    let with = |more: &[&str]| Stepper::new(RANDOM, &[&gas[..], more].concat());
    let (mut coarse, mut fine) = (with(&[]), with(&["domain.cells=[32, 32, 32]"]));
    let mut paired = with(&["perturbations.paired=true"]);
    for wave in [
        [1.0, 0.0, 0.0],
        [0.0, 2.0, -1.0],
        [3.0, -2.0, 5.0],
        [0.0, 0.0, 7.0],
    ] {
        let found = density_mode(&mut coarse, 4096.0, wave);
        let same = density_mode(&mut fine, 32768.0, wave);
        let opposite = density_mode(&mut paired, 4096.0, wave);
        for n in 0..2 {
            assert!(
                (found[n] - same[n]).abs() < 1e-14,
                "{wave:?}: {found:?} {same:?}"
            );
            assert!(
                (found[n] + opposite[n]).abs() < 1e-14,
                "{wave:?}: {opposite:?}"
            );
        }
        assert!(found[0].abs() + found[1].abs() > 1e-6, "{wave:?}");
    }
    // a power law with sigma8 gives the amplitude in closed form only up to the window: compare two waves of fixed amplitude
    let law = ["perturbations={ spectrum = \"power-law\", n_s = -2, fixed = true, seed = 3 }"];
    let mut law = with(&law);
    let size = |[re, im]: [f64; 2]| re.hypot(im);
    let one = size(density_mode(&mut law, 4096.0, [1.0, 0.0, 0.0]));
    let two = size(density_mode(&mut law, 4096.0, [0.0, 2.0, 0.0]));
    assert!((one / two - 2.0).abs() < 1e-12, "{one:e} {two:e}");
}

#[test]
fn perturbations_need_their_tables() {
    for (text, settings, words) in [
        (
            RANDOM.replace("[perturbations]\nseed = 7", ""),
            "run.audit=true",
            ["perturbed", "[perturbations]"],
        ),
        (
            RANDOM.to_string(),
            "perturbations.omega_b=0.4",
            ["perturbations.omega_b", "0.3111"],
        ),
        (
            RANDOM.to_string(),
            "perturbations.sigma_8=0.4",
            ["sigma_8", "sigma8"],
        ),
    ] {
        let built = Simulation::with_ranks(deck(&text, &[settings]), Ranks::new(SingleRank));
        let why = built
            .and_then(Stepper::begin)
            .err()
            .expect("refused")
            .to_string();
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    }
}
