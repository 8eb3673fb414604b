//! Supernovae of stars: what the gas gets, on all levels, ranks and devices; remnants against theory.

use super::cosmology::digests_of;
use super::device_runs::places;
use super::particles::particles;
use nestar::Simulation;
use nestar::engine::comm::{Ranks, SingleRank};
use nestar_tests::decks::deck;
use nestar_tests::norms::totals;
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, Stepper};
use std::collections::BTreeMap;

/// Gas that does not cool, with a star in the middle of a cell; three levels beside each other.
const STAR: &str = r#"
scenario = "formula"

[units]
length   = "pc"
mass     = "Msun"
velocity = "km/s"

[constants]
x0 = 2.5
y0 = 2.5
z0 = 2.5
wind = 0.0
fine = -1.0                   # the refined corner ends here

[initial]
density       = "1.041"       # 30 hydrogen nuclei per cm^3
temperature_k = "1e4"
velocity_x    = "wind"
scalars.metal = "0.001"

[domain]
cells      = [32, 32, 32]
left_edge  = [-80.0, -80.0, -80.0]
right_edge = [80.0, 80.0, 80.0]

[time]
end = "0.1 Myr"

[mesh]
max_level   = 2
flag_buffer = 0

[[mesh.refine]]
criterion = "formula"
when      = "max(x, max(y, z)) < if(level > 0, fine - 40, fine)"

[hydro]
scalars = ["metal"]

[particles.species.stars]
scalars = ["birth_time", "birth_mass"]
initial = { kind = "bodies", bodies = [{ position = ["x0", "y0", "z0"], velocity = ["wind", 0, 0], mass = 100.0, scalars = { birth_mass = 100.0 } }] }

[feedback]
kind           = "thermal"
delay          = "0.001 Myr"
interval       = "0.002 Myr"
mass_per_event = "50 Msun"
energy         = "1e51 erg"
ejecta         = "14.8 Msun"
metals         = "2.63 Msun"

[run]
audit = true
"#;

/// An energy of 1e51 erg in solar masses and km/s.
const ENERGY: f64 = 1e51 / 1.988_409_870_698_051e33 / 1e10;

/// Gains of the gas in the step in which the star explodes.
fn gains(settings: &[&str]) -> ([f64; 6], Stepper) {
    let mut stepper = Stepper::new(STAR, settings);
    let before = stepper.0.with(|sim| totals(sim));
    stepper.steps(1);
    let after = stepper.0.with(|sim| totals(sim));
    assert_eq!(stepper.columns(["feedback_events"]), [2.0]);
    (std::array::from_fn(|n| after[n] - before[n]), stepper)
}

/// Places in the middle of a patch, and beside coarse-fine faces, edges and corners of the levels.
const PLACES: [[&str; 3]; 6] = [
    [
        "constants.x0=22.5",
        "constants.y0=22.5",
        "constants.z0=22.5",
    ],
    [
        "constants.x0=-77.5",
        "constants.y0=37.5",
        "constants.z0=37.5",
    ],
    ["constants.x0=2.5", "constants.y0=-20", "constants.z0=-20"],
    ["constants.x0=2.5", "constants.y0=2.5", "constants.z0=2.5"],
    [
        "constants.x0=-1.25",
        "constants.y0=-1.25",
        "constants.z0=-1.25",
    ],
    [
        "constants.x0=-41.25",
        "constants.y0=-41.25",
        "constants.z0=-41.25",
    ],
];

#[test]
fn gas_gets_what_the_star_gives_at_any_place() {
    for place in PLACES {
        for kind in ["thermal", "mechanical", "kinetic"] {
            let kind = format!("feedback.kind={kind}");
            let settings = [&place[..], &[&kind]].concat();
            let (gain, mut stepper) = gains(&settings);
            let wanted = [2.0 * 14.8, 0.0, 0.0, 0.0, 2.0 * ENERGY, 2.0 * 2.63];
            for (n, tolerance) in [(0, 1e-10), (5, 1e-10)] {
                assert!(
                    (gain[n] / wanted[n] - 1.0).abs() < tolerance,
                    "{settings:?} {n}: {gain:?}"
                );
            }
            let speed = 2.0 * ENERGY.sqrt();
            assert!(
                (1..4).all(|n| gain[n].abs() < 1e-9 * speed),
                "{settings:?}: {gain:?}"
            );
            let [energy, radiated] = stepper.columns(["feedback_energy", "feedback_radiated"]);
            assert!(
                (gain[4] / energy - 1.0).abs() < 1e-9,
                "{settings:?}: {gain:?} {energy}"
            );
            assert!(
                ((energy + radiated) / wanted[4] - 1.0).abs() < 1e-7,
                "{settings:?}: {energy} {radiated}"
            );
            let star = particles(&mut stepper, "stars").remove(0);
            assert!((star.mass - (100.0 - 29.6)).abs() < 1e-12);
        }
    }
}

/// A moving star gives its momentum, and the same energy in its frame.
#[test]
fn a_moving_star_gives_its_momentum() {
    let (gain, _) = gains(&[
        "constants.wind=50",
        "constants.x0=22.5",
        "constants.y0=22.5",
        "constants.z0=22.5",
    ]);
    assert!((gain[1] / (29.6 * 50.0) - 1.0).abs() < 1e-9, "{gain:?}");
    let wanted = 2.0 * ENERGY + 0.5 * 29.6 * 2500.0;
    assert!((gain[4] / wanted - 1.0).abs() < 1e-7, "{gain:?} {wanted}");
}

/// A star that moves through the gas gives the energy of its supernovae and of its ejecta, and no more.
#[test]
fn a_star_in_a_wind_gives_its_energy() {
    let text = STAR.replace("velocity = [\"wind\", 0, 0]", "velocity = [-200, 100, 0]");
    for kind in ["mechanical", "kinetic"] {
        let kind = format!("feedback.kind={kind}");
        let settings = [
            &kind,
            "constants.wind=300",
            "initial.density=0.01",
            "mesh.max_level=0",
        ];
        let mut stepper = Stepper::new(&text, &settings);
        let before = stepper.0.with(|sim| totals(sim));
        stepper.steps(1);
        let after = stepper.0.with(|sim| totals(sim));
        let wanted = 2.0 * ENERGY + 0.5 * 29.6 * 50_000.0;
        let [energy, radiated] = stepper.columns(["feedback_energy", "feedback_radiated"]);
        println!("{kind}: {} of the energy", energy / wanted);
        assert!(((after[4] - before[4]) / energy - 1.0).abs() < 1e-9);
        assert!(((energy + radiated) / wanted - 1.0).abs() < 1e-9);
        assert!(radiated > -1e-9 * wanted, "{kind}: {radiated:e}");
        let along = (after[1] - before[1]) / (29.6 * -200.0);
        assert!((along - 1.0).abs() < 1e-6, "{along}");
    }
}

/// In uniform gas at rest on one level, opposite momenta are equal to the bit.
#[test]
fn momentum_is_symmetric() {
    let settings = [
        "mesh.max_level=0",
        "feedback.kind=mechanical",
        "feedback.interval=1e-6",
        "time.max_step=1e-6",
        "feedback.delay=5e-7",
    ];
    let (_, mut stepper) = gains(&settings);
    let mut momenta = BTreeMap::new();
    stepper.state().each_leaf_cell(|_, x, _, u| {
        let place: [i64; 3] = std::array::from_fn(|axis| ((x[axis] - 2.5) / 5.0).round() as i64);
        momenta.insert(place, [u[1], u[2], u[3]]);
    });
    for (place, momentum) in &momenta {
        if let Some(opposite) = momenta.get(&place.map(|i| -i)) {
            assert_eq!(momentum.map(|p| -p), *opposite, "{place:?}");
        }
    }
    let radial = radial_momentum(&mut stepper, [2.5; 3]);
    assert!(radial > 1e5, "{radial}");
}

#[test]
fn ranks_and_devices_do_not_matter() {
    let short = [
        "time.max_steps=3",
        "output.steps=1",
        "constants.x0=-1.25",
        "constants.y0=-1.25",
        "constants.z0=-41.25",
    ];
    for (precision, kind, others) in [
        (
            "run.precision=double",
            "feedback.kind=mechanical",
            places(&[3], &[]),
        ),
        (
            "run.precision=single",
            "feedback.kind=thermal",
            places(&[], &[2]),
        ),
    ] {
        let of = |device: &str, ranks: usize| {
            digests_of(
                STAR,
                &[&short[..], &[precision, kind, device]].concat(),
                ranks,
            )
        };
        let reference = of("run.device=cpu", 1);
        assert_eq!(reference.len(), 3);
        for (device, ranks) in others {
            assert_eq!(
                of(device, ranks),
                reference,
                "{device}, {ranks} ranks, {precision}"
            );
        }
    }
}

/// The blast of a star without cooling has the radial momentum of Sedov's solution (Kim & Ostriker 2015, eq. 3).
#[test]
fn a_resolved_blast_has_the_momentum_of_sedov() {
    let settings = [
        "mesh.max_level=0",
        "initial.density=0.0347",
        "initial.temperature_k=10",
        "time.end=0.35",
        "feedback.delay=1e-5",
        "feedback.interval=2e-5",
        "feedback.ejecta=0",
        "feedback.metals=0",
    ];
    let mut stepper = Stepper::new(STAR, &settings);
    stepper.finish();
    let kiloyears = (stepper.time() - 2e-5) * 977.79;
    let radial = radial_momentum(&mut stepper, [2.5; 3]);
    let wanted = 2.21e4 * 2f64.powf(0.8) * kiloyears.powf(0.6);
    println!("momentum {radial:.4e} of {wanted:.4e} Msun km/s");
    assert!((radial / wanted - 1.0).abs() < 0.04, "{radial} {wanted}");
}

/// The momentum of all gas away from a point.
fn radial_momentum(stepper: &mut Stepper, centre: [f64; 3]) -> f64 {
    let mut radial = 0.0;
    stepper.state().each_leaf_cell(|_, x, volume, u| {
        let from: [f64; 3] = std::array::from_fn(|axis| x[axis] - centre[axis]);
        let r = from.iter().map(|x| x * x).sum::<f64>().sqrt();
        let along = u[1] * from[0] + u[2] * from[1] + u[3] * from[2];
        radial += volume * along / r.max(1e-9);
    });
    radial
}

/// Unresolved remnants get the momentum of a remnant that has radiated its heat.
#[test]
fn an_unresolved_remnant_has_the_terminal_momentum() {
    const DECK: &str = include_str!("../../../scenarios/supernova.toml");
    let table = concat!(
        "cooling.table=",
        env!("CARGO_MANIFEST_DIR"),
        "/../scenarios/solar-cooling.zarr"
    );
    for (n0, cell) in [("1", 30.0), ("1", 100.0), ("100", 20.0), ("0.01", 400.0)] {
        let settings = [
            table.to_string(),
            format!("constants.n0={n0}"),
            format!("constants.cell={cell}"),
            "domain.cells=[16, 16, 16]".into(),
            "constants.half=8*cell".into(),
            "time.end=100".into(),
            "feedback.interval=0.0105".into(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let mut stepper = Stepper::new(DECK, &settings);
        stepper.steps(1);
        assert_eq!(stepper.columns(["feedback_events"]), [1.0]);
        let radial = radial_momentum(&mut stepper, [0.5 * cell; 3]);
        let wanted = 3e5 * n0.parse::<f64>().expect("a number").powf(-2.0 / 17.0);
        println!("n0 = {n0}, cells of {cell} pc: {radial:e} of {wanted:e} Msun km/s");
        assert!(
            (radial / wanted - 1.0).abs() < 0.15,
            "{n0} {cell}: {radial} {wanted}"
        );
    }
}

/// Beside gas that is much thinner than the mean, the gas gets no more energy than the supernovae have.
#[test]
fn thin_gas_gets_no_more_energy_than_there_is() {
    let settings = [
        "mesh.max_level=0",
        "feedback.kind=mechanical",
        "initial.density=if(x > 0, 1.041, 1e-4)",
        "feedback.interval=1e-6",
        "time.max_step=1e-6",
        "feedback.delay=5e-7",
    ];
    let (_, mut stepper) = gains(&settings);
    let [energy, radiated] = stepper.columns(["feedback_energy", "feedback_radiated"]);
    assert!(
        energy > 0.1 * ENERGY && energy < 2.0001 * ENERGY,
        "{energy:e} {radiated:e}"
    );
    assert!(radiated > -1e-5 * ENERGY, "{radiated:e}");
}

/// Walls mirror what falls behind them, and open faces let it leave.
#[test]
fn walls_keep_what_a_star_gives_and_open_faces_do_not() {
    let place = [
        "constants.x0=77.5",
        "constants.y0=2.5",
        "constants.z0=2.5",
        "mesh.max_level=0",
    ];
    for (boundary, kept) in [("reflecting", 1.0), ("outflow", 18.0 / 27.0)] {
        let boundary = format!("domain.boundary={boundary}");
        let (gain, _) = gains(&[&place[..], &[&boundary]].concat());
        let share = gain[0] / (2.0 * 14.8);
        assert!((share - kept).abs() < 1e-6, "{boundary}: {share}");
    }
}

/// The explosion follows after a restart, also on other ranks.
#[test]
fn a_resumed_run_has_the_same_explosions() {
    let with = |delay: &str, interval: &str| {
        let text = STAR.replace("\"0.001 Myr\"", delay);
        text.replace("\"0.002 Myr\"", interval)
    };
    let text = with("0.02", "0.01");
    let settings = ["time.max_steps=6", "time.max_step=0.006", "output.steps=1"];
    let [whole, parts] = [Scratch::new(), Scratch::new()];
    run_into(&whole.run(), false, &text, &settings).expect("a run");
    let first = [&settings[..], &["time.max_steps=2"]].concat();
    run_into(&parts.run(), false, &text, &first).expect("a first part");
    for (other, key) in [
        (with("0.03", "0.01"), "feedback.delay"),
        (with("0.02", "0.005"), "feedback.interval"),
    ] {
        let resumed = run_into(&parts.run(), true, &other, &settings);
        let why = resumed.expect_err("other times of explosions").to_string();
        assert!(why.contains(key), "{why}");
    }
    run_into(&parts.run(), true, &text, &settings).expect("a second part");
    let [whole, parts] = [whole, parts].map(|run| digests(&run.run()));
    assert_eq!(whole.last(), parts.last());
    assert_ne!(
        whole.last().map(|(_, digest)| digest),
        whole.first().map(|(_, digest)| digest)
    );
}

/// The star with two kinds of events at random ages.
fn with_rates() -> String {
    let start = STAR.find("[feedback]").expect("a table");
    let end = STAR.find("[run]").expect("a table");
    let feedback = r#"
[feedback]
kind     = "kinetic"
interval = "0.002 Myr"
rates    = [
    { age = [0.0, 1.0], rate = [50.0, 50.0], energy = "1e48 erg", ejecta = 0.05, metals = 0.01 },
    { age = ["0.002 Myr", "0.01 Myr"], rate = [0.0, 200.0], energy = "1e48 erg", ejecta = 0.02 },
]
"#;
    format!("{}{feedback}{}", &STAR[..start], &STAR[end..])
}

#[test]
fn events_at_random_ages_have_the_expected_number() {
    let text = with_rates();
    let settings = ["mesh.max_level=0", "time.max_steps=6", "output.steps=3"];
    let mut stepper = Stepper::new(&text, &settings);
    let before = stepper.0.with(|sim| totals(sim));
    stepper.steps(6);
    let after = stepper.0.with(|sim| totals(sim));
    let time = stepper.time();
    let names = ["events", "mass", "metal_mass", "energy", "radiated"];
    let names = names.map(|name| format!("feedback_{name}"));
    let [events, mass, metals, energy, radiated] =
        stepper.columns(std::array::from_fn(|n| &*names[n]));
    // intervals of 0.002 Myr; the second rate begins after one of them and reaches its end at the fifth
    let interval = 0.002 * 1.022_712_165;
    let passed = (time / interval + 0.01).floor();
    let late = (passed.min(5.0) - 1.0) * interval;
    let expected =
        100.0 * (50.0 * passed * interval + 0.5 * 200.0 / (4.0 * interval) * late * late);
    println!("{events} events, {expected} expected in {passed} intervals");
    assert!(passed >= 3.0 && (events - expected).abs() < 4.0 * expected.sqrt());
    let gain: Vec<f64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
    let star = particles(&mut stepper, "stars").remove(0);
    assert!((gain[0] / mass - 1.0).abs() < 1e-9 && (gain[5] / metals - 1.0).abs() < 1e-9);
    assert!((star.mass - (100.0 - mass)).abs() < 1e-10, "{star:?}");
    let given = events * ENERGY * 1e-3;
    assert!(((energy + radiated) / given - 1.0).abs() < 1e-7);
    assert!((energy / given - 1.0).abs() < 1e-7, "{energy} {given}");
    let reference = digests_of(&text, &settings, 1);
    for (device, ranks) in places(&[2], &[1]) {
        assert_eq!(
            digests_of(&text, &[&settings[..], &[device]].concat(), ranks),
            reference
        );
    }
    let [whole, parts] = [Scratch::new(), Scratch::new()];
    run_into(&whole.run(), false, &text, &settings).expect("a run");
    let first = [&settings[..], &["time.max_steps=3"]].concat();
    run_into(&parts.run(), false, &text, &first).expect("a first part");
    run_into(&parts.run(), true, &text, &settings).expect("a second part");
    let [whole, parts] = [whole, parts].map(|run| digests(&run.run()));
    assert_eq!(whole.last(), parts.last());
}

/// A star with a constant wind, and one whose supernovae lie in the same cell.
fn with_wind() -> String {
    let text = STAR.replace(
        "scalars = [\"birth_time\", \"birth_mass\"]",
        "scalars = [\"birth_time\", \"birth_mass\", \"mass_remainder\"]",
    );
    let wind = r#"
[[feedback.winds]]
age    = [0.0, 0.004, 0.02]
loss   = [10.0, 20.0, 20.0]
speed  = 1500.0
metals = 0.1

[run]"#;
    text.replace("[run]", wind)
}

/// The gas gets the mass, the metals and the energy of the wind, which the star loses also where each loss is below its rounding.
#[test]
fn a_wind_gives_mass_and_energy() {
    let text = with_wind();
    for precision in ["double", "single"] {
        let precision = format!("run.precision={precision}");
        // on one level: where cells have children, the means of their velocities are an approximation
        let settings = [
            &*precision,
            "feedback.delay=1",
            "hydro.dual_energy=true",
            "mesh.max_level=0",
        ];
        let mut stepper = Stepper::new(&text, &settings);
        let before = stepper.0.with(|sim| totals(sim));
        stepper.steps(4);
        let after = stepper.0.with(|sim| totals(sim));
        let interval = 0.002 * 1.022_712_165;
        let passed = (stepper.time() / interval + 0.01).floor() * interval;
        // the integral of the loss, for a mass at birth of 100
        let lost = 100.0 * (20.0 * passed - 5.0 * 0.004);
        let names = ["events", "mass", "metal_mass", "energy", "radiated"];
        let names = names.map(|name| format!("feedback_{name}"));
        let [events, mass, metals, energy, radiated] =
            stepper.columns(std::array::from_fn(|n| &*names[n]));
        println!("{precision}: wind of {mass} of {lost}");
        assert!(passed > 0.004 && events == 0.0);
        assert!((mass / lost - 1.0).abs() < 1e-6, "{mass} {lost}");
        assert!((metals / (0.1 * mass) - 1.0).abs() < 1e-12);
        let wanted = 0.5 * 1500.0f64.powi(2) * mass;
        assert!(((energy + radiated) / wanted - 1.0).abs() < 1e-6);
        assert!((energy / wanted - 1.0).abs() < 1e-6, "{energy} {wanted}");
        let star = particles(&mut stepper, "stars").remove(0);
        let left = star.mass + star.scalars[2];
        assert!((left + mass - 100.0).abs() < 1e-10, "{left} {mass}");
        let gained = after[0] - before[0];
        let rounding = if precision.ends_with("single") {
            1e-4
        } else {
            1e-9
        };
        assert!((gained / mass - 1.0).abs() < rounding, "{gained} {mass}");
    }
}

/// Winds and supernovae in one cell are given one after the other, the same everywhere and after a restart.
#[test]
fn winds_do_not_depend_on_ranks_devices_or_restarts() {
    let text = with_wind();
    let settings = [
        "time.max_steps=4",
        "output.steps=2",
        "feedback.delay=0.003",
        "constants.x0=-1.25",
        "constants.y0=-1.25",
        "constants.z0=-41.25",
    ];
    let reference = digests_of(&text, &settings, 1);
    for (device, ranks) in places(&[3], &[1]) {
        let settings = [&settings[..], &[device]].concat();
        assert_eq!(digests_of(&text, &settings, ranks), reference, "{device}");
    }
    let [whole, parts] = [Scratch::new(), Scratch::new()];
    run_into(&whole.run(), false, &text, &settings).expect("a run");
    let first = [&settings[..], &["time.max_steps=2"]].concat();
    run_into(&parts.run(), false, &text, &first).expect("a first part");
    run_into(&parts.run(), true, &text, &settings).expect("a second part");
    let [whole, parts] = [whole, parts].map(|run| digests(&run.run()));
    assert_eq!(whole.last(), parts.last());
}

/// The bubble of a wind grows as in the solution for gas that does not cool (Weaver et al. 1977, sect. II): its shock has the radius
/// 0.88 (L t^3/rho)^(1/5).
#[test]
fn a_wind_bubble_has_the_radius_of_weaver() {
    const DECK: &str = include_str!("../../../scenarios/wind-patch.toml");
    let mut stepper = Stepper::new(DECK, &[]);
    stepper.finish();
    let (mut shocked, mut ambient) = (0.0, 0.0f64);
    stepper.state().each_leaf_cell(|_, x, volume, u| {
        let radius = x.iter().map(|x| (x - 2.0) * (x - 2.0)).sum::<f64>().sqrt();
        let motion = u[1..4].iter().map(|p| p * p).sum::<f64>().sqrt() / u[0];
        if radius > 60.0 {
            ambient = ambient.max(u[0]);
        }
        // half of the speed behind the shock, which is 0.75*0.6 R/t
        shocked += if motion > 8.7 { volume } else { 0.0 };
    });
    let radius = (3.0 * shocked / (4.0 * std::f64::consts::PI)).cbrt();
    let power = 0.5 * 1000.0f64.powi(2) * 1e4 * 0.012 / 1.022_712_165;
    let wanted = 0.88 * (power * 1.022_712_165f64.powi(3) / ambient).powf(0.2);
    println!("radius {radius} of {wanted} pc");
    assert!((radius / wanted - 1.0).abs() < 0.05, "{radius} {wanted}");
}

#[test]
fn feedback_that_does_not_fit_is_refused() {
    for (setting, words) in [
        ("feedback.kind=nova", ["feedback.kind", "thermal"]),
        ("feedback.ejecta=60", ["feedback.ejecta", "mass_per_event"]),
        ("feedback.metals=20", ["feedback.metals", "ejecta"]),
        ("feedback.species=suns", ["feedback.species", "stars"]),
        ("hydro.frozen=true", ["hydro.frozen", "move the gas"]),
        ("domain.cells=[32,32,16]", ["domain.cells", "cubic"]),
        (
            "feedback.rates=[{ age = [1, 0], rate = [1, 1], energy = 1 }]",
            ["feedback.rates[0].age", "ascending"],
        ),
        (
            "feedback.rates=[{ age = [0, 1], rate = [1], energy = 1 }]",
            ["feedback.rates[0].rate", "each age"],
        ),
        (
            "feedback.rates=[{ age = [0, 1], rate = [1, -1], energy = 1 }]",
            ["feedback.rates[0].rate", "negative"],
        ),
        (
            "feedback.winds=[{ age = [0, 1], loss = [2, 1], speed = 1 }]",
            ["feedback.winds[0].loss", "at most 1"],
        ),
        (
            "feedback.winds=[{ age = [0, 1], loss = [1, 0], speed = 1, kind = \"breeze\" }]",
            ["feedback.winds[0].kind", "breeze"],
        ),
        (
            "feedback.winds=[{ age = [0, 1], loss = [1, 0], speed = 1, metals = 1.1 }]",
            ["feedback.winds[0].metals", "1.1"],
        ),
        (
            "particles.species.stars.scalars=[\"birth_mass\"]",
            ["scalars", "birth_time"],
        ),
    ] {
        let settings = ["feedback.kind=mechanical", setting];
        let built = Simulation::with_ranks(deck(STAR, &settings), Ranks::new(SingleRank));
        let why = match built.and_then(Stepper::begin) {
            Ok(_) => panic!("{setting} is accepted"),
            Err(why) => why.to_string(),
        };
        assert!(
            words.iter().all(|word| why.contains(word)),
            "{setting}: {why}"
        );
    }
    for (key, words) in [
        ("energy         = ", ["feedback", "mass_per_event"]),
        ("interval = ", ["feedback", "interval"]),
    ] {
        let rates = with_rates();
        let text = if key.starts_with('e') { STAR } else { &rates };
        let lines = text.lines().filter(|line| !line.starts_with(key));
        let text = lines.collect::<Vec<_>>().join("\n");
        let built = Simulation::with_ranks(deck(&text, &[]), Ranks::new(SingleRank));
        let why = built
            .and_then(Stepper::begin)
            .map(|_| ())
            .expect_err(key)
            .to_string();
        assert!(words.iter().all(|word| why.contains(word)), "{key}: {why}");
    }
}
