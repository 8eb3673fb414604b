//! Stars that form from gas, and particles that plugins create and remove in the middle of a run.

use super::cosmology::digests_of;
use super::device_runs::places;
use super::particles::{bits, particles};
use nestar::Simulation;
use nestar::engine::comm::{Ranks, SingleRank};
use nestar::engine::data::Pool;
use nestar::engine::mesh::Topology;
use nestar::prelude::*;
use nestar::systems::births::{NewParticle, ParticleBirths, ParticlesOnDemand};
use nestar::systems::fields::Acceleration;
use nestar::systems::order::Advance;
use nestar::systems::particles::Particle;
use nestar_tests::decks::deck;
use nestar_tests::norms::totals;
use nestar_tests::ranks::on_ranks_of;
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, Stepper};

/// A uniform box of gas at rest.
const BOX: &str = include_str!("../../../scenarios/star-box.toml");

/// Dense gas that flows through moving refined boxes.
const FLOW: &str = r#"
scenario = "formula"

[units]
length   = "pc"
mass     = "Msun"
velocity = "km/s"

[initial]
density       = "2*(1 + 0.8*sin(2*pi*x/160))"
temperature_k = "8000"
velocity_x    = "20*sin(2*pi*x/160)"
velocity_y    = "10"
scalars.metal = "0.01 + 1e-4*y"

[domain]
cells      = [16, 16, 16]
right_edge = [160.0, 160.0, 160.0]

[time]
end = "3 Myr"

[mesh]
max_level       = 2
regrid_interval = 1
flag_buffer     = 1

[[mesh.refine]]
criterion = "formula"
when      = "max(abs(x - 60 - 8*t), max(abs(y - 60), abs(z - 80))) < if(level > 0, 8, 20)"

[hydro]
scalars = ["metal"]

[cooling]
table   = { temperature_k = [1e4], lambda = [1e-40], exponent = [0.0] }
floor_k = 100.0

[gravity]
cycles = 1

[particles.species.stars]
initial = { kind = "none" }
scalars = ["birth_time", "birth_mass", "metallicity"]

[star_formation]
threshold_cm3 = 30.0
efficiency    = 0.1
least_mass    = 40.0

[run]
audit = true
"#;

/// The share of the gas that has become stars, without noise.
fn share(efficiency: f64, time: f64, density: f64, gravity: f64) -> f64 {
    let fall_time = (3.0 * std::f64::consts::PI / (32.0 * gravity * density)).sqrt();
    let left = 1.0 + 0.5 * efficiency * time / fall_time;
    1.0 - 1.0 / (left * left)
}

/// Stars of several least masses: above it and below it, to cells that are no heavier than a star.
#[test]
fn the_expected_mass_becomes_stars() {
    for (least, seeds, steps) in [("100", 0..4, 60), ("6", 0..1, 12), ("2000", 0..4, 30)] {
        let (mut excess, mut noise) = (0.0, 0.0);
        let mut wanted = 0.0;
        for seed in seeds {
            let least_mass = format!("star_formation.least_mass={least}");
            let seed = format!("star_formation.seed={seed}");
            let mut stepper = Stepper::new(BOX, &[&least_mass, &seed, "time.end=20"]);
            let gas = stepper.0.with(|sim| totals(sim))[0];
            stepper.steps(steps);
            let time = stepper.time();
            let stars = particles(&mut stepper, "stars");
            let found: f64 = stars.iter().map(|star| star.mass).sum();
            let (density, gravity) = (gas / 160f64.powi(3), 0.004_300_917_3);
            let expected = gas * share(0.02, time, density, gravity);
            (excess, wanted) = (excess + found - expected, wanted + expected);
            noise += stars.iter().map(|star| star.mass * star.mass).sum::<f64>();
            let [left, momentum, ..] = stepper.0.with(|sim| totals(sim))[..] else {
                panic!("gas has more components");
            };
            let error = (left + found) / gas - 1.0;
            assert!(error.abs() < 1e-13, "{least}: {error:e}");
            let of_stars: f64 = stars.iter().map(|star| star.mass * star.velocity[0]).sum();
            let sum = momentum + of_stars;
            assert!(sum.abs() < 1e-9 * gas, "{least}: {momentum:e} {of_stars:e}");
            let sound = |star: &Particle| star.scalars[1] == star.mass && star.scalars[0] <= time;
            assert!(stars.iter().all(sound));
        }
        let noise = noise.sqrt();
        println!(
            "least mass {least}: {:.4} of the expected mass, noise {:.4}",
            1.0 + excess / wanted,
            noise / wanted
        );
        assert!(
            excess.abs() < 3.0 * noise + 2e-3 * wanted,
            "{least}: {excess} {wanted} {noise}"
        );
    }
}

/// Identities are distinct and go on, and each star has the metals and the velocity of its gas.
#[test]
fn stars_take_mass_momentum_and_metals_from_the_gas() {
    let mut stepper = Stepper::new(FLOW, &[]);
    let before = stepper.0.with(|sim| totals(sim));
    stepper.steps(6);
    let stars = particles(&mut stepper, "stars");
    assert!(
        stars.len() > 200 && stars.iter().any(|star| star.level == 2),
        "{}",
        stars.len()
    );
    assert!(
        stars
            .iter()
            .enumerate()
            .all(|(n, star)| star.id == n as u64)
    );
    let after = stepper.0.with(|sim| totals(sim));
    let sum = |of: &dyn Fn(&Particle) -> f64| stars.iter().map(of).sum::<f64>();
    let of_stars = [
        sum(&|star| star.mass),
        sum(&|star| star.mass * star.velocity[1]),
        sum(&|star| star.mass * star.scalars[2]),
    ];
    // of the density, the momentum along y and the metals
    for (n, component, tolerance) in [(0, 0, 1e-13), (1, 2, 1e-6), (2, 5, 1e-13)] {
        let error = (after[component] + of_stars[n]) / before[component] - 1.0;
        assert!(error.abs() < tolerance, "component {component}: {error:e}");
    }
    let [born, mass, ended] = stepper.columns(["stars_born", "stars_born_mass", "stars_ended"]);
    assert_eq!((born, ended), (stars.len() as f64, 0.0));
    assert!((mass / of_stars[0] - 1.0).abs() < 1e-9);
}

/// The acceleration of a star on one level is that of its cell.
#[test]
fn a_star_feels_the_force_of_its_cell_from_the_start() {
    let mut stepper = Stepper::new(FLOW, &["mesh.max_level=0"]);
    stepper.steps(2);
    let time = stepper.time();
    let stars = particles(&mut stepper, "stars");
    let newborn: Vec<&Particle> = stars
        .iter()
        .filter(|star| star.scalars[0] == time)
        .collect();
    assert!(newborn.len() > 10);
    let world = &stepper.0.engine().world;
    let (topology, pool) = (
        world.resource::<Topology>(),
        Pool::<Acceleration>::of(world),
    );
    for star in newborn {
        let cell = star.position.map(|x| (x / 10.0) as usize);
        let row = topology
            .find(0, cell.map(|i| (i / 8) as i32))
            .expect("a patch");
        let values = pool.host::<f64>(0, &[row]).expect("values");
        let [i, j, k] = cell.map(|i| i % 8);
        let own = [0, 1, 2].map(|axis| values[axis * 512 + i + 8 * (j + 8 * k)]);
        assert_eq!(star.acceleration, own);
    }
}

/// Settings of the comparisons: short, with snapshots.
const SHORT: [&str; 3] = ["time.max_steps=3", "output.steps=2", "output.final=true"];

#[test]
fn ranks_and_devices_do_not_matter() {
    for (precision, others) in [
        ("run.precision=double", places(&[3], &[])),
        ("run.precision=single", places(&[], &[2])),
    ] {
        let of = |device: &str, ranks: usize| {
            digests_of(FLOW, &[&SHORT[..], &[precision, device]].concat(), ranks)
        };
        let reference = of("run.device=cpu", 1);
        assert_eq!(reference.len(), 2);
        for (device, ranks) in others {
            assert_eq!(
                of(device, ranks),
                reference,
                "{device}, {ranks} ranks, {precision}"
            );
        }
    }
}

#[test]
fn a_resumed_run_forms_the_same_stars() {
    let [whole, parts] = [Scratch::new(), Scratch::new()];
    run_into(&whole.run(), false, FLOW, &SHORT).expect("a run");
    let first = [&SHORT[..], &["time.max_steps=2"]].concat();
    run_into(&parts.run(), false, FLOW, &first).expect("a first part");
    run_into(&parts.run(), true, FLOW, &SHORT).expect("a second part");
    assert_eq!(digests(&whole.run()).last(), digests(&parts.run()).last());
}

/// With the scalar `mass_remainder`, gas and stars keep the mass to 1e-14 in both precisions.
#[test]
fn a_birth_keeps_the_mass_in_both_precisions() {
    let text = BOX.replace("\"birth_mass\"]", "\"birth_mass\", \"mass_remainder\"]");
    assert_ne!(text, BOX);
    for precision in ["double", "single"] {
        let precision = format!("run.precision={precision}");
        // a volume that is no power of two
        let edges = "domain.right_edge=[143, 143, 143]";
        let settings = [&*precision, edges, "star_formation.least_mass=123.4"];
        let mut stepper = Stepper::new(&text, &settings);
        let before = stepper.0.with(|sim| totals(sim))[0];
        stepper.steps(1);
        let after = stepper.0.with(|sim| totals(sim))[0];
        let stars = particles(&mut stepper, "stars");
        let stored: f64 = stars.iter().map(|star| star.mass).sum();
        let rest: f64 = stars.iter().map(|star| star.scalars[2]).sum();
        let error = (after + (stored + rest) - before) / before;
        println!(
            "{precision}: {} stars, {error:e}, remainder {rest:e}",
            stars.len()
        );
        assert!(stars.len() > 20 && error.abs() < 1e-14, "{error:e}");
        assert_eq!(rest == 0.0, precision.ends_with("double"));
    }
}

/// Temperature, a formula, converging gas, the Jeans mass and the coarsest level select cells.
#[test]
fn conditions_select_the_gas() {
    let stars = |settings: &[&str]| {
        let mut stepper = Stepper::new(FLOW, settings);
        stepper.steps(3);
        particles(&mut stepper, "stars")
    };
    let all = stars(&[]).len();
    let places = stars(&["star_formation.where=z < 80 && fraction_metal > 0.02"]);
    assert!(
        places
            .iter()
            .all(|star| star.position[2] < 90.0 && star.scalars[2] > 0.0199)
    );
    assert!(!places.is_empty() && places.len() < all);
    assert_eq!(stars(&["star_formation.temperature_k=100"]).len(), 0);
    assert_eq!(stars(&["star_formation.temperature_k=1e6"]).len(), all);
    // the velocity along x converges from a quarter of the box to three quarters
    let converging = stars(&["star_formation.converging=true", "mesh.max_level=0"]);
    assert!(!converging.is_empty());
    assert!(
        converging
            .iter()
            .all(|star| (38.0..122.0).contains(&star.position[0]))
    );
    assert_eq!(stars(&["star_formation.jeans_mass=true"]).len(), 0);
    // uniform shear of 0.5 km/s in a parsec, in gas of 1 Msun/pc^3: 0.25/(2 G rho) = 29
    let shear = |limit: &str| {
        let limit = format!("star_formation.virial_parameter={limit}");
        let settings = [
            &*limit,
            "mesh.max_level=0",
            "initial.velocity_x=0",
            "initial.velocity_y=0.5*x",
            "initial.density=1",
        ];
        let inside = |star: &Particle| (20.0..140.0).contains(&star.position[0]);
        stars(&settings).iter().filter(|star| inside(star)).count()
    };
    assert_eq!(shear("28.5"), 0);
    assert!(shear("29.6") > 0);
    let fine = stars(&["star_formation.min_level=2"]).len();
    assert!(fine > 0 && fine < all, "{fine} of {all}");
}

/// Creates a particle in each leaf in each step of its level; once, those of odd identity end.
struct Fireflies;

fn flicker(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    mut births: ParticleBirths,
) -> Result<(), Error> {
    let fly = |&row: &u32| {
        // numbers that do not depend on ranks
        let [i, j, k] = topology.index(row);
        let n = (i + 3 * j + 5 * k) as usize;
        NewParticle {
            row,
            offset: [0.3, 0.6, (n % 7) as f64 / 7.0],
            velocity: [0.1, -0.2, 0.05],
            mass: 1e-4 * (1 + n % 3) as f64,
            scalars: vec![clock.step as f64],
        }
    };
    let leaves = topology.rows(clock.level).iter();
    let leaves = leaves.filter(|&&row| topology.is_leaf(row));
    let made: Vec<NewParticle> = leaves.map(fly).collect();
    births.add("flies", &made)?;
    let ends = clock.level == 0 && clock.step == 2;
    let odd: Vec<u64> = (1..if ends { 20_000 } else { 1 }).step_by(2).collect();
    births.end("flies", &odd)?;
    Ok(())
}

impl Plugin for Fireflies {
    fn name(&self) -> &str {
        "fireflies"
    }

    fn after(&self) -> &[&str] {
        &["particles"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.allow_births("flies")?;
        sim.system_in(Advance::Predict, flicker);
        Ok(())
    }
}

/// No particle at first; refined boxes move.
const FLIES: &str = r#"
scenario = "formula"

[initial]
density  = "1"
pressure = "1"

[domain]
cells = [16, 16, 16]

[time]
end = 1

[mesh]
max_level       = 2
regrid_interval = 1
flag_buffer     = 1

[[mesh.refine]]
criterion = "formula"
when      = "max(abs(x - 0.3 - t), max(abs(y - 0.4), abs(z - 0.5))) < if(level > 0, 0.06, 0.14)"

[gravity]
cycles = 1

[particles.species.flies]
initial = { kind = "none" }
scalars = ["step"]

[run]
audit = true
"#;

/// Particles of a plugin after four steps, in the order of their identities.
fn flies(ranks: usize, settings: &[&str]) -> Vec<Vec<u64>> {
    let build = |ranks: Ranks| Simulation::with_ranks(deck(FLIES, settings), ranks)?.add(Fireflies);
    let found = on_ranks_of(ranks, build, |stepper| {
        stepper.steps(4);
        particles(stepper, "flies")
    });
    let mut all: Vec<Vec<u64>> = found.iter().flatten().map(bits).collect();
    all.sort_unstable();
    all
}

#[test]
fn plugins_create_and_remove_particles_from_none_on() {
    let reference = flies(1, &[]);
    assert!(reference.len() > 500, "{}", reference.len());
    let odd = |step: &dyn Fn(f64) -> bool| {
        let all = reference.iter().filter(|fly| fly[0] % 2 == 1);
        all.filter(|fly| step(f64::from_bits(fly[12]))).count()
    };
    assert!(odd(&|step| step > 3.0) > 0);
    for (device, ranks) in places(&[3], &[1]) {
        assert!(
            flies(ranks, &[device]) == reference,
            "{device}, {ranks} ranks"
        );
    }
}

/// Gas at rest with three stars, two of them beside patches of other ranks.
const NURSERY: &str = r#"
scenario = "formula"

[initial]
density  = "1"
pressure = "1"

[domain]
cells = [24, 24, 24]

[time]
end      = 1
max_step = 0.01

[mesh]
max_level       = 2
regrid_interval = 1
flag_buffer     = 0

[gravity]
constant       = 1e-9
cycles         = 1
initial_cycles = 1

[[particles.refine.near]]
species = "stars"
younger = 0.025
cells   = 2

[particles.species.stars]
scalars = ["birth_time"]
initial = { kind = "bodies", bodies = [
    { position = [0.21, 0.21, 0.21], velocity = [0.0, 0.0, 0.0], mass = 1e-3 },
    { position = [0.26, 0.51, 0.6], velocity = [0.0, 0.0, 0.0], mass = 1e-3, scalars = { birth_time = 0.02 } },
    { position = [0.99, 0.7, 0.3], velocity = [0.0, 0.0, 0.0], mass = 1e-3, scalars = { birth_time = -1.0 } },
] }
"#;

#[test]
fn surroundings_of_young_stars_are_refined() {
    // the finest level at a point
    let level_at = |stepper: &mut Stepper, point: [f64; 3]| {
        let mut found = 0;
        stepper.state().each_leaf_cell(|level, x, _, _| {
            let width = 1.0 / f64::from(24 << level);
            if (0..3).all(|axis| (x[axis] - point[axis]).abs() <= 0.5 * width) {
                found = level;
            }
        });
        found
    };
    let stars = [[0.21, 0.21, 0.21], [0.26, 0.51, 0.6], [0.99, 0.7, 0.3]];
    let mut stepper = Stepper::new(NURSERY, &[]);
    let levels = stars.map(|star| level_at(&mut stepper, star));
    assert_eq!(levels, [2, 2, 0]);
    // two cells beside the second star lie in the next patch
    assert!(level_at(&mut stepper, [0.35, 0.51, 0.6]) >= 1);
    while stepper.time() < 0.0351 {
        stepper.steps(1);
    }
    let levels = stars.map(|star| level_at(&mut stepper, star));
    assert_eq!(levels, [0, 2, 0]);
    let mut coarse = Stepper::new(
        NURSERY,
        &["particles.refine.near=[{ species = \"stars\", level = 1 }]"],
    );
    let levels = stars.map(|star| level_at(&mut coarse, star));
    assert_eq!(levels, [1; 3]);
    let short = [&SHORT[..], &["time.max_steps=2", "output.steps=1"]].concat();
    let reference = digests_of(NURSERY, &short, 1);
    for (device, ranks) in places(&[3], &[1]) {
        let found = digests_of(NURSERY, &[&short[..], &[device]].concat(), ranks);
        assert_eq!(found, reference, "{device}, {ranks} ranks");
    }
    let why = Simulation::with_ranks(
        deck(NURSERY, &["particles.refine.near=[{ species = \"suns\" }]"]),
        Ranks::new(SingleRank),
    );
    let why = why.map(|_| ()).expect_err("no such species").to_string();
    assert!(
        why.contains("particles.refine.near[0].species") && why.contains("stars"),
        "{why}"
    );
}

#[test]
fn star_formation_without_what_it_needs_is_refused() {
    let without = |table: &str| {
        let start = FLOW.find(table).expect("a table");
        let rest = FLOW[start + 1..]
            .find("\n[")
            .map_or(FLOW.len(), |end| start + 1 + end);
        format!("{}{}", &FLOW[..start], &FLOW[rest..])
    };
    let whole = FLOW.to_string();
    for (text, setting, words) in [
        (without("[gravity]"), None, ["star_formation", "[gravity]"]),
        (without("[cooling]"), None, ["star_formation", "[cooling]"]),
        (
            whole.clone(),
            Some("star_formation.species=sun"),
            ["star_formation.species", "stars"],
        ),
        (
            whole.clone(),
            Some("star_formation.most_of_cell=0.6"),
            ["most_of_cell", "0.5"],
        ),
        (
            whole.clone(),
            Some("star_formation.least_mass=0"),
            ["least_mass", "0"],
        ),
        (
            whole.clone(),
            Some("particles.species.stars.mass=1"),
            ["particles.species.stars.mass", "their own"],
        ),
        (
            whole.clone(),
            Some("star_formation.where=colour > 1"),
            ["star_formation.where", "colour"],
        ),
        (
            whole,
            Some("hydro.frozen=true"),
            ["hydro.frozen", "not frozen"],
        ),
    ] {
        let settings: Vec<&str> = setting.into_iter().collect();
        let built = Simulation::with_ranks(deck(&text, &settings), Ranks::new(SingleRank));
        let why = match built.and_then(Stepper::begin) {
            Ok(_) => panic!("{setting:?} is accepted"),
            Err(why) => why.to_string(),
        };
        assert!(
            words.iter().all(|word| why.contains(word)),
            "{setting:?}: {why}"
        );
    }
}
