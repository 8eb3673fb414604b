//! Cooling gas against analytic solutions: thermal instability, ionisation equilibrium, a slab at constant pressure.

use nestar::systems::units::Units;
use nestar_tests::Stepper;
use std::f64::consts::PI;

const WAVE: &str = include_str!("../../../scenarios/thermal-instability.toml");
const IONS: &str = include_str!("../../../scenarios/equilibrium.toml");
const SLAB: &str = include_str!("../../../scenarios/cooling-slab.toml");

/// Amplitude of the density wave with the given numbers of wavelengths along the sides of the box.
fn amplitude(run: &mut Stepper, waves: [f64; 3]) -> f64 {
    let state = run.state();
    let (low, high) = (state.domain.left_edge, state.domain.right_edge);
    let (mut cos, mut sin, mut cells) = (0.0, 0.0, 0.0);
    state.each_leaf_cell(|_, x, _, u| {
        let turns: f64 = (0..3)
            .map(|a| waves[a] * (x[a] - low[a]) / (high[a] - low[a]))
            .sum();
        let (s, c) = (2.0 * PI * turns).sin_cos();
        cos += u[0] * c;
        sin += u[0] * s;
        cells += 1.0;
    });
    2.0 * f64::hypot(cos, sin) / cells
}

/// The rate at which the wave grows from one time to another.
fn growth(settings: &[&str], waves: [f64; 3], times: [f64; 2]) -> f64 {
    let end = format!("time.end={}", times[1]);
    let mut run = Stepper::new(WAVE, &[settings, &[&end]].concat());
    while run.time() < times[0] {
        run.steps(1);
    }
    let (begin, before) = (run.time(), amplitude(&mut run, waves));
    run.finish();
    let (end, after) = (run.time(), amplitude(&mut run, waves));
    (after / before).ln() / (end - begin)
}

/// Checks the rate in the last half of the time.
fn grows(settings: &[&str], waves: [f64; 3], rate: f64) {
    let error = growth(settings, waves, [3.0, 6.0]) / rate - 1.0;
    println!("{settings:?}: {error:+.2e} of the rate");
    assert!(error.abs() < 2e-3, "{settings:?}: {error:e}");
}

#[test]
fn a_short_wave_that_condenses_grows_at_the_rate_of_the_dispersion_relation() {
    grows(&[], [1.0, 0.0, 0.0], 0.28);
}

#[test]
fn a_long_wave_that_cools_at_constant_density_grows_at_its_rate() {
    let settings = ["constants.alpha=-0.5", "time.max_step=0.02"];
    grows(&settings, [1.0, 0.0, 0.0], 0.53);
}

#[test]
fn an_oblique_wave_that_condenses_grows_at_its_rate() {
    let settings = [
        "constants.y_waves=1",
        "constants.z_waves=1",
        "constants.flat=1",
        "domain.cells=[24,24,24]",
    ];
    grows(&settings, [1.0, 1.0, 1.0], 0.28);
}

#[test]
fn a_wave_grows_at_its_rate_while_its_temperatures_pass_a_node() {
    // 12288 K is one
    let settings = ["constants.T0=12290", "constants.small=1e-5"];
    let error = growth(&settings, [1.0, 0.0, 0.0], [6.0, 9.0]) / 0.28 - 1.0;
    println!("{error:+.2e} of the rate");
    assert!(error.abs() < 5e-3, "{error:e}");
}

#[test]
fn the_rate_of_growth_converges_with_the_cells() {
    // sound that the first step makes has died away by then
    let errors = [16, 32].map(|cells| {
        let flat = format!("constants.flat={}", 8.0 / f64::from(cells));
        let cells = format!("domain.cells=[{cells},8,8]");
        growth(&[&flat, &cells], [1.0, 0.0, 0.0], [10.0, 15.0]) / 0.28 - 1.0
    });
    let order = (errors[0] / errors[1]).abs().log2();
    println!("errors {errors:?}, order {order:.2}");
    assert!(order > 1.8 && errors[1].abs() < 5e-4, "{errors:?}");
}

#[test]
fn the_rate_of_growth_converges_with_steps_of_a_part_of_the_cooling_time() {
    // in balance the net rate, which set the limit once, is nearly 0; in cooling times steps halve with the cells
    let errors = [16, 32].map(|cells| {
        let flat = format!("constants.flat={}", 8.0 / f64::from(cells));
        let part = format!("cooling.courant={}", 0.8 / f64::from(cells));
        let cells = format!("domain.cells=[{cells},8,8]");
        let settings = [&*flat, &part, &cells, "time.end=0.5"];
        let mut run = Stepper::new(WAVE, &settings);
        while run.time() < 0.4 {
            let step = run.try_step().expect("a step");
            assert_eq!(step.limiter, "cooling", "at {}", run.time());
        }
        growth(&settings[..3], [1.0, 0.0, 0.0], [10.0, 15.0]) / 0.28 - 1.0
    });
    let order = (errors[0] / errors[1]).abs().log2();
    println!("errors {errors:?}, order {order:.2}");
    assert!(order > 1.8 && errors[1].abs() < 5e-4, "{errors:?}");
}

#[test]
fn halves_of_cooling_around_the_gas_are_of_second_order() {
    // since the beginning, of which the wave without halves has lost something by sound that its first step makes
    let [whole, halves] = ["false", "true"].map(|split| {
        let split = format!("cooling.split={split}");
        growth(&[&split], [1.0, 0.0, 0.0], [0.0, 6.0]) / 0.28 - 1.0
    });
    println!("whole {whole:+.2e}, halves {halves:+.2e}");
    assert!(halves.abs() < 1e-4 && whole.abs() > 5e-4, "{halves:e}");
}

/// Polynomial coefficients in ln(T/eV) of the logarithm of the ionisation rates of H, He, He+ (Abel et al. 1997).
const IONISATION: [[f64; 9]; 3] = [
    [
        -32.713_967_863_75,
        13.536_556_090_57,
        -5.739_328_757_388,
        1.563_154_982_022,
        -0.287_705_600_439_1,
        0.034_825_597_737_37,
        -0.002_631_976_175_59,
        0.000_111_954_395_386_1,
        -2.039_149_852_002e-6,
    ],
    [
        -44.098_648_865_61,
        23.915_965_634_69,
        -10.753_230_198_21,
        3.058_038_757_198,
        -0.568_511_890_988_4,
        0.067_953_912_337_9,
        -0.005_009_056_101_857,
        0.000_206_723_615_750_7,
        -3.649_161_410_833e-6,
    ],
    [
        -68.710_409_902_12,
        43.933_476_326_35,
        -18.480_669_935_68,
        4.701_626_486_759,
        -0.769_246_633_449_2,
        0.081_130_420_973_03,
        -0.005_324_020_628_287,
        0.000_197_570_531_222_1,
        -3.165_581_065_665e-6,
    ],
];

/// The ionisation rate of H by collisions with H and He, in cm^3/s and densities of hydrogen masses (Lenzuni, Chernoff & Salpeter 1991).
fn by_atoms(t: f64, u: &[f64]) -> f64 {
    let pairs = 1.2e-17 * t.powf(1.2) * u[5] + 1.75e-17 * t.powf(1.3) * 0.25 * u[7];
    pairs * (-157_800.0 / t).exp()
}

/// HII of H, HeII and HeIII of He in equilibrium of ionisation by collisions, and by other processes at rates of H, He, He+ over the electrons' density, with
/// recombination (Hui & Gnedin 1997; Aldrovandi & Péquignot 1973).
fn ionised(t: f64, photons: [f64; 3]) -> [f64; 3] {
    let log = (t / 11_604.518).ln();
    let [h, he, hep] = std::array::from_fn(|n| {
        let sum = |sum: f64, c: &f64| sum * log + c;
        IONISATION[n].iter().rev().fold(0.0, sum).exp() + photons[n]
    });
    let hydrogenic =
        |l: f64| 1.269e-13 * l.powf(1.503) / (1.0 + (l / 0.522).powf(0.470)).powf(1.923);
    let dielectronic =
        1.9e-3 * t.powf(-1.5) * (-4.7e5 / t).exp() * (1.0 + 0.3 * (-9.4e4 / t).exp());
    let to_he = 3e-14 * (570_670.0 / t).powf(0.654) + dielectronic;
    let (up, further) = (he / to_he, hep / (2.0 * hydrogenic(1_263_030.0 / t)));
    let sum = 1.0 + up * (1.0 + further);
    [
        h / (h + hydrogenic(315_614.0 / t)),
        up / sum,
        up * further / sum,
    ]
}

/// Temperature in kelvin, HII of H, HeII and HeIII of He, and the electrons' density in hydrogen masses, in a cell; `kelvin` is a code unit of
/// pressure over density in hydrogen masses.
fn ions(u: &[f64], kelvin: f64) -> (f64, [f64; 3], f64) {
    let (hydrogen, helium) = (u[5] + u[6], u[7] + u[8] + u[9]);
    let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
    let electrons = u[6] + 0.25 * (u[8] + 2.0 * u[9]);
    let particles = hydrogen + 0.25 * helium + electrons;
    let temperature = (u[4] - kinetic) / (1.5 * particles) * kelvin;
    let ions = [u[6] / hydrogen, u[8] / helium, u[9] / helium];
    (temperature, ions, electrons)
}

/// The coldest and hottest gas, and the largest difference of its ions to those of equilibrium with such rates of photo-ionisation, 1/s.
fn from_equilibrium(run: &mut Stepper, photons: [f64; 3]) -> ([f64; 2], f64) {
    let units = Units::find(run.0.engine()).expect("units");
    let (mut range, mut worst) = ([f64::INFINITY, 0.0f64], 0.0f64);
    run.state().each_leaf_cell(|_, _, _, u| {
        let (t, found, electrons) = ions(u, units.temperature());
        let mut rates = photons.map(|rate| rate / (electrons * units.number_density()));
        rates[0] += by_atoms(t, u) / electrons;
        range = [range[0].min(t), range[1].max(t)];
        for (a, b) in found.iter().zip(ionised(t, rates)) {
            worst = worst.max((a - b).abs());
        }
    });
    (range, worst)
}

#[test]
fn gas_begins_in_equilibrium_of_ionisation_at_every_temperature() {
    let ([coldest, hottest], worst) = from_equilibrium(&mut Stepper::new(IONS, &[]), [0.0; 3]);
    let step = 100f64.powf(0.5 / 128.0);
    let errors = [coldest / 1e4 / step - 1.0, hottest / 1e6 * step - 1.0];
    assert!(errors.iter().all(|error| error.abs() < 1e-6), "{errors:?}");
    println!("largest difference of a fraction: {worst:.1e}");
    assert!(worst < 5e-6, "{worst:e}");
}

#[test]
fn ions_go_to_the_equilibrium_of_the_temperature_that_gas_is_held_at() {
    for (floor, initial) in [
        (1.5e4, "equilibrium"),
        (2e4, "given"),
        (4e4, "given"),
        (8e4, "equilibrium"),
        (3e5, "given"),
    ] {
        let at = format!("chemistry.floor_k={floor}");
        let initial = format!("chemistry.initial={initial}");
        let mut run = Stepper::new(IONS, &["domain.cells=[16,8,8]", &at, &initial]);
        let (_, before) = from_equilibrium(&mut run, [0.0; 3]);
        assert!(initial.ends_with("equilibrium") || before > 0.3);
        let ([coldest, hottest], worst) = from_equilibrium(run.finish(), [0.0; 3]);
        println!("{floor} K: {coldest} K to {hottest} K, {worst:.1e}");
        assert!(coldest > floor * (1.0 - 1e-9) && hottest < floor * (1.0 + 5e-5));
        assert!(worst < 1e-4, "{floor} K: {worst:e}");
    }
}

/// Rates of photo-ionisation of H, He, He+ by redshift, 1/s; the last is as in no background: 0 at an end.
const BACKGROUND: [(f64, [f64; 3]); 3] = [
    (0.0, [4e-14, 2e-14, 6e-16]),
    (2.0, [1e-12, 5e-13, 0.0]),
    (6.0, [3e-13, 2e-13, 1e-18]),
];

/// The rates at a redshift: power laws of 1 + z between rows, or lines in its logarithm where a rate is 0.
fn background(z: f64) -> [f64; 3] {
    let above = BACKGROUND.iter().position(|row| row.0 >= z).expect("a row");
    let [(low, from), (high, to)] = [BACKGROUND[above.max(1) - 1], BACKGROUND[above.max(1)]];
    let part = ((1.0 + z) / (1.0 + low)).ln() / ((1.0 + high) / (1.0 + low)).ln();
    std::array::from_fn(|n| match from[n] * to[n] > 0.0 {
        true => from[n].powf(1.0 - part) * to[n].powf(part),
        false => from[n] + part * (to[n] - from[n]),
    })
}

#[test]
fn ions_are_in_equilibrium_with_the_radiation_of_a_redshift() {
    let column = |n: usize| BACKGROUND.map(|row| row.1[n]);
    let rates = format!(
        "chemistry.radiation={{redshift={:?},HI={:?},HeI={:?},HeII={:?}}}",
        BACKGROUND.map(|row| row.0),
        column(0),
        column(1),
        column(2)
    );
    let small = "domain.cells=[16,8,8]";
    for z in [0.0, 2.0, 1.0, 4.5] {
        let redshift = format!("chemistry.redshift={z}");
        let settings = [small, &rates, &redshift];
        let (_, begun) = from_equilibrium(&mut Stepper::new(IONS, &settings), background(z));
        let settings = [&settings[..], &["chemistry.initial=given"]].concat();
        let mut run = Stepper::new(IONS, &settings);
        let (_, reached) = from_equilibrium(run.finish(), background(z));
        let (_, without) = from_equilibrium(&mut run, [0.0; 3]);
        println!("z = {z}: {begun:.1e}, {reached:.1e}; without photons {without:.1e}");
        assert!(begun < 5e-6 && reached < 1e-4 && without > 0.05);
    }
}

#[test]
fn a_thin_slab_cools_at_constant_pressure_and_a_thick_one_at_constant_density() {
    let thin = ["constants.across=8", "domain.cells=[16,8,8]"];
    let thick = [&thin[..], &["constants.thick=10"]].concat();
    for (settings, tolerance, exact) in [
        (&thin[..], 1.5e-2, pressure_stays as fn(f64) -> f64),
        (&thick[..], 1e-6, density_stays as fn(f64) -> f64),
    ] {
        let mut run = Stepper::new(SLAB, settings);
        let before = at_the_wall(&mut run);
        while run.time() < 0.8 {
            run.steps(1);
            let t = run.time();
            // in the first sound crossings the hot gas begins to move
            if t > 0.2 || tolerance < 1e-5 {
                let error = at_the_wall(&mut run) / before / exact(t) - 1.0;
                assert!(error.abs() < tolerance, "{settings:?}, {t}: {error:e}");
            }
        }
    }
}

/// Temperature of the slab at constant pressure and with Lambda as T^(1/2), in that at the beginning.
fn pressure_stays(t: f64) -> f64 {
    (1.0 - 0.9 * t).powf(2.0 / 3.0)
}

/// At constant density.
fn density_stays(t: f64) -> f64 {
    (1.0 - 0.5 * t).powi(2)
}

/// Energy by mass of gas at rest in the first cell.
fn at_the_wall(run: &mut Stepper) -> f64 {
    let (mut nearest, mut energy) = (f64::INFINITY, 0.0);
    run.state().each_leaf_cell(|_, x, _, u| {
        if x[0] < nearest {
            nearest = x[0];
            energy = (u[4] - 0.5 * u[1] * u[1] / u[0]) / u[0];
        }
    });
    energy
}
