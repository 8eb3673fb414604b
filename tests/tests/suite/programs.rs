//! The programs of `scenarios/programs`: few lines each, the same bits everywhere and after a restart, and right.

#![allow(
    dead_code,
    reason = "the programs' own `main` functions are not called here"
)]

use nestar::engine::mesh::Topology;
use nestar::engine::ranks::Columns;
use nestar::prelude::*;
use nestar::testing::same_bits;
use nestar_tests::Stepper;
use nestar_tests::decks::deck;
use nestar_tests::norms::totals;

#[path = "../../../scenarios/programs/atmosphere.rs"]
mod atmosphere;
#[path = "../../../scenarios/programs/burning.rs"]
mod burning;
#[path = "../../../scenarios/programs/collision.rs"]
mod collision;
#[path = "../../../scenarios/programs/conduction.rs"]
mod conduction;
#[path = "../../../scenarios/programs/cooling.rs"]
mod cooling;
#[path = "../../../scenarios/programs/driving.rs"]
mod driving;
#[path = "../../../scenarios/programs/potential.rs"]
mod potential;

type Program = fn(App) -> App;

macro_rules! programs {
    ($($name:ident),*) => {
        /// Program, its text and its deck.
        const PROGRAMS: &[(&str, Program, &str, &str)] = &[$((
            stringify!($name),
            $name::program,
            include_str!(concat!("../../../scenarios/programs/", stringify!($name), ".rs")),
            include_str!(concat!("../../../scenarios/programs/", stringify!($name), ".toml")),
        )),*];
    };
}
programs!(
    atmosphere, burning, collision, conduction, cooling, driving, potential
);

/// A size that takes levels and ranks, and no time.
const SMALL: [&str; 2] = ["domain.cells=[16,16,8]", "output.initial=false"];

#[test]
fn programs_take_eighty_lines_without_cuda_or_unsafe() {
    for (name, _, text, _) in PROGRAMS {
        let product = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = text.lines().filter(product).count();
        assert!(lines <= 80, "{name}: {lines} lines");
        assert!(
            !text.contains("unsafe") && !text.contains("RS_FN"),
            "{name}"
        );
    }
}

#[test]
fn programs_have_the_same_bits_everywhere_and_after_a_restart() {
    for (name, program, _, text) in PROGRAMS {
        let same = same_bits(&program(App::default()), text, &SMALL, 2);
        same.unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

fn stepper(program: Program, text: &str, settings: &[&str]) -> Stepper {
    let sim = program(App::default()).simulation(deck(text, settings));
    Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")))
}

const COOLING: &str = include_str!("../../../scenarios/programs/cooling.toml");

#[test]
fn energy_that_is_radiated_is_counted() {
    let mut run = stepper(cooling::program, COOLING, &["domain.cells=[16,16,16]"]);
    let before = run.0.with(|sim| totals(sim));
    run.steps(10);
    assert!(run.state().counts()[1] > 0, "nothing is refined");
    let after = run.0.with(|sim| totals(sim));
    let radiated = after[5];
    assert!(radiated > 1e-3 * before[4], "{radiated} of {}", before[4]);
    let drift = (after[4] + radiated) / before[4] - 1.0;
    assert!(drift.abs() < 1e-12, "{drift:e}");
}

/// Energy that a uniform gas is left with after a time, in steps of a given length.
fn left(step: f64) -> f64 {
    let settings = [
        "domain.cells=[8,8,8]",
        "mesh.max_level=0",
        "initial.density=1",
        "initial.pressure=2",
        "time.end=0.05",
        "cooling.rates=[0,0,0,0,0,4,16,16]",
        &format!("time.max_step={step}"),
    ];
    let mut run = stepper(cooling::program, COOLING, &settings);
    run.finish();
    run.0.with(|sim| totals(sim))[4]
}

#[test]
fn cooling_is_of_second_order_in_time() {
    let [a, b, c] = [0.01, 0.005, 0.0025].map(left);
    let ratio = (a - b) / (b - c);
    assert!((3.6..4.4).contains(&ratio), "{ratio} of {a}, {b}, {c}");
}

#[device]
fn wave<R: Real>(u: Conserved<R>, at: &Place<R>) -> R {
    let specific = (u.energy - kinetic_energy(u)) / u.density;
    (specific - 1.5) * sin(6.283_185_307_179_586 * at.centre[0])
}

/// Writes the share of a wave in the diagnostics.
#[derive(Clone)]
struct Watch;

impl Plugin for Watch {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.column::<Gas, wave>("wave", Reduce::Integral, []);
        Ok(())
    }
}

const HEAT: &str = r#"
scenario = "formula"
[conduction]
diffusivity = 100
[initial]
samples  = 3
density  = "1"
pressure = "1 + 0.01*sin(2*pi*x)"
[domain]
cells = [32, 8, 8]
right_edge = [1, 0.25, 0.25]
[time]
end = 2e-5
[mesh]
max_level = 2
refine = [
    { criterion = "box", left = [0.1, 0, 0], right = [0.6, 0.1, 0.25], level = 1 },
    { criterion = "box", left = [0.25, 0, 0], right = [0.45, 0.05, 0.25], level = 2 },
]
"#;

/// How far a wave of heat is from where it should be after a while, in which the gas has no time to move; and the
/// change of the energy.
fn decay(settings: &[&str]) -> [f64; 2] {
    let sim = conduction::program(App::default()).always(Watch);
    let sim = sim.simulation(deck(HEAT, settings));
    let mut run = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    let amplitude = |run: &mut Stepper| {
        let values = run.0.with(|sim| Columns::values(&mut sim.world));
        values.unwrap_or_else(|e| panic!("{e}"))[0]
    };
    let (first, before) = (amplitude(&mut run), run.0.with(|sim| totals(sim)));
    run.finish();
    let (last, after) = (amplitude(&mut run), run.0.with(|sim| totals(sim)));
    let exponent = -100.0 * std::f64::consts::TAU.powi(2) * run.time();
    [
        (last / first).ln() / exponent - 1.0,
        after[4] / before[4] - 1.0,
    ]
}

#[test]
fn a_wave_of_heat_decays_as_it_should_over_three_levels() {
    let [error, drift] = decay(&[]);
    assert!(error.abs() < 1e-3, "{error}");
    assert!(drift.abs() < 1e-13, "{drift:e}");
}

/// Over many steps the amplitudes have the size and the memory that the deck asks for.
#[test]
fn waves_that_drive_forget_as_they_should() {
    let driving = driving::Driving {
        strength: 2.0,
        memory: 0.3,
        length: 1.0,
        seed: 1,
    };
    let stream = random::Purposes::default().register("driving", driving.seed);
    let stream = stream.unwrap_or_else(|e| panic!("{e}"));
    let mut waves = driving::Waves::default();
    let [mut square, mut product] = [0.0; 2];
    for step in 0..4100 {
        let before = waves.0;
        waves.wander(stream.at_step(step), 0.15, &driving);
        if step >= 100 {
            square += waves.0.iter().map(|a| a * a).sum::<f64>();
            product += waves.0.iter().zip(before).map(|(a, b)| a * b).sum::<f64>();
        }
    }
    // five standard errors of 48000 numbers that depend on each other
    let mean = square / 48000.0;
    assert!((mean / 4.0 - 1.0).abs() < 0.05, "{mean}");
    let correlation = product / square;
    assert!((correlation - exp(-0.5)).abs() < 0.02, "{correlation}");
}

/// Weak waves stir uniform gas: it has the velocities that they have given it, wave by wave, and none along a wave; the energy
/// that comes in is that of the motion.
#[test]
fn weak_waves_stir_without_divergence() {
    let text = include_str!("../../../scenarios/programs/driving.toml");
    let settings = ["mesh.max_level=0", "driving.strength=1e-3"];
    let mut run = stepper(driving::program, text, &settings);
    let before = run.0.with(|sim| totals(sim));
    let mut given = [0.0; 12];
    for _ in 0..20 {
        let start = run.time();
        run.steps(1);
        let dt = run.time() - start;
        let waves = run.0.engine().world.resource::<driving::Waves>().0;
        given = std::array::from_fn(|n| given[n] + dt * waves[n]);
    }
    let (mut across, mut along) = ([0.0; 12], [0.0; 6]);
    run.state().each_leaf_cell(|_, x, volume, u| {
        for axis in 0..3 {
            let phase = std::f64::consts::TAU * x[axis];
            for (side, wave) in [cos(phase), sin(phase)]
                .map(|w| 2.0 * volume * w)
                .iter()
                .enumerate()
            {
                along[2 * axis + side] += wave * u[1 + axis];
                across[4 * axis + side] += wave * u[1 + (axis + 1) % 3];
                across[4 * axis + 2 + side] += wave * u[1 + (axis + 2) % 3];
            }
        }
    });
    let largest = given.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    assert!(largest > 1e-4, "{given:?}");
    for (found, given) in across.iter().zip(given) {
        assert!((found - given).abs() < 2e-3 * largest, "{found} {given}");
    }
    assert!(along.iter().all(|v| v.abs() < 1e-3 * largest), "{along:?}");
    let energy = 0.25 * given.iter().map(|v| v * v).sum::<f64>();
    let gained = run.0.with(|sim| totals(sim))[4] - before[4];
    assert!((gained / energy - 1.0).abs() < 0.01, "{gained} {energy}");
}

#[test]
fn species_sum_to_one_and_their_heat_goes_to_the_gas() {
    let text = include_str!("../../../scenarios/programs/burning.toml");
    let periodic = ["domain.cells=[32,32,8]", "domain.boundary=periodic"];
    let mut run = stepper(burning::program, text, &periodic);
    let heat = |u: &[f64]| u[4] + 3.0 * u[5] + 1.0 * (u[5] + u[6]);
    let before = run.0.with(|sim| totals(sim));
    run.steps(20);
    let after = run.0.with(|sim| totals(sim));
    assert!(after[5] < 0.99 * before[5], "nothing burns");
    let drift = heat(&after) / heat(&before) - 1.0;
    assert!(drift.abs() < 1e-12, "{drift:e}");
    run.state().each_leaf_cell(|_, _, _, u| {
        let shares = [5, 6, 7].map(|c| u[c] / u[0]);
        let sum: f64 = shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{shares:?}");
        assert!(
            shares.iter().all(|x| (-1e-12..1.0 + 1e-12).contains(x)),
            "{shares:?}"
        );
    });
}

/// The sweeps come to the solution of the discrete equation.
#[test]
fn sweeps_solve_for_the_potential() {
    let text = include_str!("../../../scenarios/programs/potential.toml");
    let settings = [
        "domain.cells=[16,8,8]",
        "domain.right_edge=[1,0.5,0.5]",
        "sweeps.strength=1e-9",
    ];
    let mut run = stepper(
        potential::program,
        text,
        &[&settings[..], &["sweeps.sweeps=600"]].concat(),
    );
    run.steps(1);
    let width: f64 = 1.0 / 16.0;
    let (half, phase) = (std::f64::consts::PI * width, std::f64::consts::TAU);
    // the cell means of the density, over the eigenvalue of the discrete Laplacian
    let eigenvalue = (2.0 * half.sin() / width).powi(2);
    let amplitude = -1e-9 * 0.1 / eigenvalue;
    run.state().each_leaf_cell(|_, x, _, u| {
        let exact = amplitude * (phase * x[0]).sin();
        assert!(
            (u[5] - exact).abs() < 1e-6 * amplitude.abs(),
            "{} {exact} at {x:?}",
            u[5]
        );
    });
}

#[test]
fn a_scenario_of_ones_own_refuses_what_does_not_fit_with_its_place() {
    let text = include_str!("../../../scenarios/programs/collision.toml");
    let build = |setting: &str| {
        let sim = collision::program(App::default()).simulation(deck(text, &[setting]));
        sim.map(|_| ()).expect_err("refused").to_string()
    };
    let bump = build("collision.bump=3");
    assert!(
        bump.contains("the bump must not leave the box, which is 2 long"),
        "{bump}"
    );
    let pressure = build("collision.pressure=0");
    assert!(
        pressure.contains("`collision.pressure` must be above 0"),
        "{pressure}"
    );
    let stock = App::default()
        .simulation(deck(text, &[]))
        .map(|_| ())
        .expect_err("refused");
    assert!(stock.to_string().contains("\"collision\""), "{stock}");
}

#[test]
fn a_plugin_that_the_program_lacks_is_refused_with_that_word() {
    let stock = App::default()
        .check(&deck(COOLING, &[]))
        .expect_err("refused")
        .to_string();
    assert!(
        stock.contains("unknown table [cooling]: no plugin of this program has it"),
        "{stock}"
    );
    assert!(
        cooling::program(App::default())
            .check(&deck(COOLING, &[]))
            .is_ok()
    );
    // a plugin takes part where its table stands alone
    let off = COOLING.replace("[cooling]\ncoldest = 0.05", "");
    let mut run = stepper(cooling::program, &off, &["domain.cells=[8,8,8]"]);
    run.steps(1);
    assert_eq!(run.state().components, 5);
}

#[device]
fn dilution<R: Real>(u: [R; 6], of: R) -> R {
    of * u[0] / u[5]
}

/// Gives a number a name.
#[derive(Clone)]
struct Names(&'static str);

impl Plugin for Names {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.scalars(&[("dye", 0.5), ("ink", 0.25)])?;
        sim.derived::<dilution>(self.0, "1", &["ink"], &[2.0])
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn numbers_that_plugins_name_stand_in_criteria_and_formulas() {
    let run = |name: &'static str, settings: &[&str]| {
        let start = [
            "initial={density='1 + x*x',pressure='1'}",
            "domain.cells=[16,8,8]",
        ];
        let settings = [&start[..], settings].concat();
        let plain = deck(COOLING.split("[cooling]").next().unwrap_or(""), &settings);
        let sim = App::default().always(Names(name)).simulation(plain)?;
        Stepper::begin(sim)
    };
    // gas over ink is 4 everywhere, twice that 8
    let refined = |criterion: &str| {
        let criterion = format!("mesh.refine=[{{criterion='formula',when='{criterion}'}}]");
        let mut stepper = run("dilution", &["mesh.max_level=1", &criterion]).expect("a run");
        stepper.0.engine().world.resource::<Topology>().count(1)
    };
    assert_eq!(refined("dilution > 8.01 or dilution < 7.99"), 0);
    assert_eq!(refined("dilution > 7.99 and dilution < 8.01"), 16);
    let mut heated = run("dilution", &["sources.heating=dilution"]).expect("a run");
    let energy = |state: &nestar_tests::State| {
        let mut sum = 0.0;
        state.each_leaf_cell(|_, _, _, u| sum += u[4]);
        sum / 1024.0
    };
    let before = energy(&heated.state());
    let dt = heated.try_step().expect("a step").dt;
    let gained = energy(&heated.state()) - before;
    assert!((gained / (8.0 * dt) - 1.0).abs() < 1e-12, "{gained}");
    for taken in ["density", "pressure", "scalar_dye", "x", "1st", "a b", ""] {
        let message = run(taken, &[])
            .map(|_| ())
            .expect_err("refused")
            .to_string();
        assert!(
            message.contains("a derived field cannot have the name"),
            "{message}"
        );
    }
}

#[test]
fn scalars_are_declared_in_time_and_once() {
    #[derive(Clone)]
    struct Declares(&'static str, f64);
    impl Plugin for Declares {
        fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
            sim.scalars(&[(self.0, self.1)])
        }
        fn build(&self, _: &mut Engine) -> Result<(), Error> {
            Ok(())
        }
    }
    let plain = |settings: &[&str]| deck(COOLING.split("[cooling]").next().unwrap_or(""), settings);
    let start = "initial={density='1',pressure='1'}";
    let late = Simulation::new(plain(&[start])).and_then(|sim| sim.add(Declares("dye", 0.5)));
    let late = late.map(|_| ()).expect_err("refused").to_string();
    assert!(late.contains("takes no more scalars"), "{late}");
    let two = App::default()
        .always(Declares("dye", 0.5))
        .always(Declares("dye", 0.25));
    let two = two
        .simulation(plain(&[start]))
        .map(|_| ())
        .expect_err("refused")
        .to_string();
    assert!(
        two.contains("\"dye\" is 0.5 for one plugin and 0.25 for another"),
        "{two}"
    );
    // what the deck declares too is one and the same, and where it says nothing the plugin does
    let app = App::default()
        .always(Declares("dye", 0.5))
        .always(Declares("ink", 0.25));
    let settings = [start, "domain.cells=[8,8,8]", "hydro.scalars=[\"ink\"]"];
    let sim = app
        .simulation(plain(&settings))
        .unwrap_or_else(|e| panic!("{e}"));
    let mut run = Stepper::of(sim);
    run.steps(1);
    run.state()
        .each_leaf_cell(|_, _, _, u| assert_eq!(&u[5..], [0.25, 0.5]));
}

/// Without a boundary that continues it the gas falls out; with one its own truncation error is all that moves it.
#[test]
fn an_atmosphere_at_rest_stays_below_a_thousandth_of_the_speed_of_sound() {
    let text = include_str!("../../../scenarios/programs/atmosphere.toml");
    let fastest = |settings: &[&str]| {
        let mut run = stepper(atmosphere::program, text, settings);
        let mut most = 0.0f64;
        run.finish().state().each_leaf_cell(|_, _, _, u| {
            let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
            let sound = (1.4 * 0.4 * (u[4] - kinetic) / u[0]).sqrt();
            most = most.max((2.0 * kinetic / u[0]).sqrt() / sound);
        });
        most
    };
    let rest = fastest(&[]);
    assert!(rest < 3e-4, "{rest:e}");
    let open = "domain.boundary={ x = \"periodic\", y = \"periodic\", z = \"outflow\" }";
    let falling = fastest(&[
        open,
        "domain.cells=[8,8,16]",
        "domain.right_edge=[0.5,0.5,1.0]",
    ]);
    assert!(falling > 1e-2, "{falling:e}");
}
