//! Sink particles: what they take from the gas, where they form, and how fast they grow.

use super::cosmology::digests_of;
use super::device_runs::places;
use super::particles::particles;
use nestar::Simulation;
use nestar::births::{FormingSink, SinkCell, SinkRule, SinkRules, SinkState};
use nestar::engine::comm::{Ranks, SingleRank};
use nestar::prelude::*;
use nestar::systems::particles::Particle;
use nestar_tests::decks::deck;
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, Stepper};

const SPHERE: &str = include_str!("../../../scenarios/isothermal-sphere.toml");
const BONDI: &str = include_str!("../../../scenarios/bondi.toml");

/// The table of the flow of Bondi, which the deck names without its folder.
const TABLE: &str = concat!(
    "tables.flow.file=",
    env!("CARGO_MANIFEST_DIR"),
    "/../scenarios/bondi.csv"
);

/// Two sinks in gas that flows and has metals, on a refined level across a face of the domain.
const FLOW: &str = r#"
scenario = "formula"

[constants]
apart = 0.06
dv    = 0.2

[initial]
density       = "1 + 0.8*sin(2*pi*x)*cos(2*pi*y)"
pressure      = "1"
velocity_x    = "0.3 + 0.2*sin(2*pi*z)"
velocity_y    = "-0.1*cos(2*pi*x)"
velocity_z    = "0.2"
scalars.metal = "0.02 + 0.01*sin(2*pi*y)"

[domain]
cells = [16, 16, 16]

[time]
end    = 1
levels = "shared"

[mesh]
max_level   = 1
flag_buffer = 0

[[mesh.refine]]
criterion = "formula"
when      = "max(min(x, 1 - x), max(abs(y - 0.5), abs(z - 0.5))) < 0.24"

[hydro]
scalars = ["metal"]

[gravity]
constant = 1e-6

[particles.species.sinks]
scalars = ["birth_time", "spin_x", "spin_y", "spin_z", "mass_remainder", "metal_mass"]
initial = { kind = "bodies", bodies = [
    { position = [0.01, 0.49, 0.52], velocity = [0.1, 0.0, -0.2], mass = 0.02, scalars = { spin_x = 1e-3, metal_mass = 1e-4 } },
    { position = ["0.01 + apart", 0.49, 0.52], velocity = ["0.1 - dv", "0.5*dv", -0.2], mass = 0.01, scalars = { spin_y = 2e-3 } },
] }

[sinks]
density          = 0.5
accretion_radius = 3.5
rule             = "greedy"

[run]
audit = true
"#;

/// A rule that takes everything above the threshold.
#[derive(Clone)]
struct Greedy;

fn never(_: &FormingSink) -> bool {
    false
}

fn everything(_: &SinkState, cell: &SinkCell) -> f64 {
    cell.excess
}

impl Plugin for Greedy {
    fn name(&self) -> &str {
        "greedy"
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        let rule = SinkRule {
            forms: never,
            accretes: everything,
        };
        let mut rules = sim.world.get_resource_or_init::<SinkRules>();
        rules.0.push(("greedy", rule));
        Ok(())
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

/// Mass, momentum, angular momentum about the centre of the region, and metals, of gas and of sinks.
fn conserved(stepper: &mut Stepper) -> [[f64; 8]; 2] {
    let mut gas = [0.0; 8];
    // the region lies around the face x = 0
    let from_centre = |x: [f64; 3]| [x[0] - x[0].round(), x[1] - 0.5, x[2] - 0.5];
    let cross = |x: [f64; 3], p: [f64; 3]| {
        [0, 1, 2].map(|a| x[(a + 1) % 3] * p[(a + 2) % 3] - x[(a + 2) % 3] * p[(a + 1) % 3])
    };
    stepper.state().each_leaf_cell(|_, x, volume, u| {
        let p = [u[1] * volume, u[2] * volume, u[3] * volume];
        let turning = cross(from_centre(x), p);
        let all = [u[0] * volume].into_iter().chain(p).chain(turning);
        for (sum, more) in gas.iter_mut().zip(all.chain([u[5] * volume])) {
            *sum += more;
        }
    });
    let mut sinks = [0.0; 8];
    for sink in particles(stepper, "sinks") {
        let [_, sx, sy, sz, remainder, metals] = sink.scalars[..] else {
            panic!("{:?}", sink.scalars)
        };
        let mass = sink.mass + remainder;
        let p = sink.velocity.map(|v| mass * v);
        let turning = cross(from_centre(sink.position), p);
        let spin = [sx, sy, sz];
        let all = [mass].into_iter().chain(p);
        let all = all.chain((0..3).map(|a| turning[a] + spin[a]));
        for (sum, more) in sinks.iter_mut().zip(all.chain([metals])) {
            *sum += more;
        }
    }
    [gas, sinks]
}

/// Gains of gas and sinks in a step, compared with a step without accretion. Sinks accrete at its end, so that the gas flows alike.
fn gains(settings: &[&str]) -> ([[f64; 8]; 2], Vec<Particle>) {
    let after = |more: &[&str]| {
        let app = App::default().always(Greedy);
        let sim = app.simulation(deck(FLOW, &[settings, more].concat()));
        let mut stepper = Stepper::of(sim.expect("a deck"));
        stepper.steps(1);
        let [accreted, merged] = stepper.columns(["sinks_accreted_mass", "sinks_merged"]);
        (
            conserved(&mut stepper),
            particles(&mut stepper, "sinks"),
            accreted,
            merged,
        )
    };
    let (without, ..) = after(&["sinks.density=1e9", "sinks.merge=false"]);
    let (with, sinks, accreted, merged) = after(&[]);
    let gains = [0, 1].map(|n| std::array::from_fn(|c| with[n][c] - without[n][c]));
    let [gas, own]: [[f64; 8]; 2] = gains;
    assert!((accreted / own[0] - 1.0).abs() < 1e-6, "{accreted} {gas:?}");
    assert_eq!(merged as usize, 2 - sinks.len());
    (gains, sinks)
}

#[test]
fn what_sinks_take_is_conserved() {
    // gravity that only binds the sinks
    let merging = [
        "sinks.merge=true",
        "gravity.constant=1e-12",
        "constants.dv=3e-7",
    ];
    let single = [&merging[..], &["run.precision=single"]].concat();
    for (settings, tolerance) in [
        (&[][..], 1e-14),
        (&merging, 1e-14),
        (&["run.precision=single"], 1e-8),
        (&single, 1e-8),
    ] {
        let ([gas, sinks], left) = gains(settings);
        assert!(sinks[0] > 1e-3, "{sinks:?}");
        for n in 0..8 {
            let error = gas[n] + sinks[n];
            println!("{settings:?} {n}: gas {:e}, error {error:e}", gas[n]);
            assert!(
                error.abs() < tolerance,
                "{settings:?} {n}: {gas:?} {sinks:?}"
            );
        }
        let merge = settings.contains(&"sinks.merge=true");
        assert_eq!(left.len(), if merge { 1 } else { 2 });
    }
}

/// Many gains that are smaller than the precision of the mass, in single precision.
#[test]
fn small_gains_are_not_lost_by_rounding() {
    let settings = [TABLE, "run.precision=single", "time.end=0.1"];
    let mut stepper = Stepper::new(BONDI, &settings);
    stepper.finish();
    let sinks = particles(&mut stepper, "sinks");
    let [accreted] = stepper.columns(["sinks_accreted_mass"]);
    let found = (sinks[0].mass - 1.0) + sinks[0].scalars[4];
    assert!(accreted > 1e-6 && accreted < 1e-5, "{accreted:e}");
    assert!(
        (found / accreted - 1.0).abs() < 1e-6,
        "{found:e} {accreted:e}"
    );
}

/// Mass of the sinks of a deck at two times, per time.
fn rate_between(text: &str, table: &[&str], times: [&str; 2]) -> f64 {
    let [early, late] = times.map(|end| format!("time.end={end}"));
    let mut stepper = Stepper::new(text, &[table, &["constants.n=16", &late]].concat());
    let end = early["time.end=".len()..].parse::<f64>().expect("a time");
    while stepper.time() < end {
        stepper.steps(1);
    }
    let accreted = |stepper: &mut Stepper| {
        let [mass] = stepper.columns(["sinks_accreted_mass"]);
        [mass, stepper.time()]
    };
    let first = accreted(&mut stepper);
    let last = accreted(stepper.finish());
    (last[0] - first[0]) / (last[1] - first[1])
}

/// Gas falls onto a point mass at the rate of Bondi (1952).
#[test]
fn a_point_mass_accretes_the_flow_of_bondi() {
    let wanted = 1.5f64.exp() * std::f64::consts::PI * 1e-6;
    let ratio = rate_between(BONDI, &[TABLE], ["0.12", "0.3"]) / wanted;
    println!("{ratio:.5} of the rate of Bondi");
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
}

/// A sphere of twice the density of equilibrium collapses at the rate that follows from the equations of Shu (1977).
#[test]
fn an_isothermal_sphere_feeds_its_sink() {
    let ratio = rate_between(SPHERE, &[], ["0.1", "0.2"]) / 5.615;
    println!("{ratio:.5} of the rate of Shu");
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
}

/// Two cold clumps that contract and move across patches.
const CLUMPS: &str = r#"
scenario = "formula"

[constants]
pull  = 1.0
sound = 0.2

[initial]
density    = "1 + 60*exp(-((x - if(x < 0.5, 0.26, 0.74))^2 + (y - 0.49)^2 + (z - 0.5)^2)/0.003)"
velocity_x = "-pull*(x - if(x < 0.5, 0.26, 0.74))"
velocity_y = "0.3 - pull*(y - 0.49)"
velocity_z = "-pull*(z - 0.5)"

[domain]
cells = [16, 16, 16]

[time]
end = 1

[mesh]
max_level       = 1
flag_buffer     = 1
regrid_interval = 1

[[mesh.refine]]
criterion = "formula"
when      = "density > 3"

[hydro]
eos         = "isothermal"
sound_speed = "sound"
riemann     = "hll"

[gravity]

[particles.species.sinks]
initial = { kind = "none" }
scalars = ["birth_time", "birth_mass", "spin_x", "spin_y", "spin_z", "mass_remainder"]

[sinks]
jeans_cells = 4.0

[run]
audit = true
"#;

#[test]
fn sinks_form_where_gas_collapses() {
    let found = |settings: &[&str]| {
        let mut stepper = Stepper::new(CLUMPS, settings);
        stepper.steps(3);
        let [born, mass] = stepper.columns(["sinks_born", "sinks_born_mass"]);
        let sinks = particles(&mut stepper, "sinks");
        assert_eq!(sinks.len() as f64, born);
        let at_birth: f64 = sinks.iter().map(|sink| sink.scalars[1]).sum();
        assert!((mass - at_birth).abs() <= 1e-9 * at_birth);
        sinks
    };
    let sinks = found(&[]);
    assert_eq!(sinks.len(), 2);
    for (sink, x) in sinks.iter().zip([0.26, 0.74]) {
        assert!((sink.position[0] - x).abs() < 1.0 / 16.0, "{sink:?}");
        assert!(sink.mass > sink.scalars[1] && sink.scalars[1] > 0.0);
        assert!((sink.velocity[1] - 0.3).abs() < 0.05, "{sink:?}");
    }
    for settings in [
        "constants.pull=-15", // the flow diverges
        "constants.sound=2",  // no Jeans mass
        "sinks.density=1e3",  // below the threshold
        "sinks.form=false",
        "mesh.max_level=2", // the finest level does not exist
    ] {
        let more = [
            "sinks.jeans_cells=1e-3",
            "mesh.refine=[{ criterion = \"formula\", when = \"density > 3 && level < 1\" }]",
        ];
        let settings = match settings.contains("sound") || settings.contains("max_level") {
            true => [&[settings][..], &more].concat(),
            false => vec![settings],
        };
        assert_eq!(found(&settings).len(), 0, "{settings:?}");
    }
}

/// Gas that sinks do not take keeps its temperature, also with an internal energy of its own.
#[test]
fn gas_that_sinks_leave_keeps_its_temperature() {
    let text = CLUMPS.replace(
        "eos         = \"isothermal\"\nsound_speed = \"sound\"\nriemann     = \"hll\"",
        "gamma = 1.0001",
    );
    let text = text.replacen(
        "velocity_x =",
        "pressure   = \"sound^2*(1 + 60*exp(-((x - if(x < 0.5, 0.26, 0.74))^2 + (y - 0.49)^2 + (z - 0.5)^2)/0.003))\"\nvelocity_x =",
        1,
    );
    for dual in ["hydro.dual_energy=false", "hydro.dual_energy=true"] {
        let mut stepper = Stepper::new(&text, &[dual]);
        stepper.steps(4);
        let [sinks, mass] = stepper.columns(["sinks_born", "sinks_accreted_mass"]);
        assert!(sinks == 2.0 && mass > 1e-3, "{sinks} {mass}");
        let mut hottest: f64 = 0.0;
        stepper.state().each_leaf_cell(|_, _, _, u| {
            let kinetic = (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / (2.0 * u[0]);
            hottest = hottest.max(1e-4 * (u[4] - kinetic) / u[0]);
        });
        println!("{dual}: sound speed at most {}", hottest.sqrt());
        assert!(hottest < 1.02 * 0.04, "{hottest}");
    }
}

#[test]
fn ranks_and_devices_do_not_matter() {
    let short = [
        "time.max_steps=3",
        "output.steps=2",
        "output.final=true",
        "gravity.cycles=1",
    ];
    for (precision, others) in [
        ("run.precision=double", places(&[3], &[])),
        ("run.precision=single", places(&[], &[2])),
    ] {
        let of = |device: &str, ranks: usize| {
            digests_of(CLUMPS, &[&short[..], &[precision, device]].concat(), ranks)
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
fn a_resumed_run_has_the_same_sinks() {
    let short = ["time.max_steps=4", "output.steps=2", "output.final=true"];
    let [whole, parts] = [Scratch::new(), Scratch::new()];
    run_into(&whole.run(), false, CLUMPS, &short).expect("a run");
    let first = [&short[..], &["time.max_steps=2"]].concat();
    run_into(&parts.run(), false, CLUMPS, &first).expect("a first part");
    run_into(&parts.run(), true, CLUMPS, &short).expect("a second part");
    assert_eq!(digests(&whole.run()).last(), digests(&parts.run()).last());
}

#[test]
fn sinks_without_what_they_need_are_refused() {
    let without_gravity = CLUMPS.replace("[gravity]\n", "");
    let without_spin = CLUMPS.replace("\"spin_x\", ", "");
    let without_remainder = CLUMPS.replace(", \"mass_remainder\"", "");
    for (text, setting, words) in [
        (&*without_gravity, None, ["sinks", "[gravity]"]),
        (&*without_spin, None, ["sinks.scalars", "spin_x"]),
        (
            &*without_remainder,
            Some("run.precision=single"),
            ["sinks.scalars", "mass_remainder"],
        ),
        (
            CLUMPS,
            Some("sinks.species=suns"),
            ["sinks.species", "suns"],
        ),
        (CLUMPS, Some("sinks.rule=fast"), ["sinks.rule", "federrath"]),
        (
            CLUMPS,
            Some("sinks.accretion_radius=0.5"),
            ["accretion_radius", "1"],
        ),
        (
            CLUMPS,
            Some("sinks.accretion_radius=9"),
            ["accretion_radius", "8"],
        ),
        (CLUMPS, Some("sinks.jeans_cells=0"), ["jeans_cells", "0"]),
        (
            CLUMPS,
            Some("gravity.force=stress"),
            ["gravity.force", "gradient"],
        ),
        (
            CLUMPS,
            Some("particles.species.sinks.mass=1"),
            ["particles.species.sinks.mass", "their own"],
        ),
        (
            CLUMPS,
            Some("hydro.frozen=true"),
            ["hydro.frozen", "frozen"],
        ),
    ] {
        let settings: Vec<&str> = setting.into_iter().collect();
        let built = Simulation::with_ranks(deck(text, &settings), Ranks::new(SingleRank));
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
