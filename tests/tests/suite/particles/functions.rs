//! Functions of particles: the same bits on the CPU, the emulated device, any ranks and after a restart; exact decay; refusals; records.

use super::determinism::CLUMP;
use super::{bits, particles};
use crate::device_runs::{emulation, places};
use bevy_ecs::system::RunSystemOnce;
use nestar::engine::comm::Ranks;
use nestar::engine::device::ComputeDevice;
use nestar::engine::mesh::Topology;
use nestar::particles::*;
use nestar::prelude::*;
use nestar::testing::same_bits;
use nestar::{App, Simulation};
use nestar_tests::Stepper;
use nestar_tests::decks::deck;
use nestar_tests::ranks::on_ranks_of;

const SCALARS: &str = "particles.species.dark.scalars=[\"age\", \"heat\"]";

/// Parameters with a table, a number and random numbers.
#[device]
#[derive(Clone)]
struct Drift<R> {
    sizes: Table<R>,
    loss: R,
    stream: random::Stream,
}

/// Random kicks, which depend on the identity, and loss of mass.
#[device]
fn kick<R: Real>(
    state: (Body<R>, [R; 2]),
    at: &ParticlePlace<R>,
    p: &Drift<R>,
) -> (Body<R>, [R; 2]) {
    let (body, scalars) = state;
    let [a, b] = random::normals::<R>(random::of_id(&p.stream, at.id, 0));
    let size = p.sizes.at(at.level);
    let [vx, vy, vz] = body.velocity;
    let new = Body {
        mass: body.mass * exp(-p.loss * at.dt * (2.0 + sin(at.position[0]))),
        velocity: [vx + size * a, vy + size * b, vz],
    };
    (new, [scalars[0] + at.dt, scalars[1] + a * a])
}

/// Slows particles of one mass.
#[device]
fn drag<R: Real>(body: Body<R>, at: &ParticlePlace<R>, rate: R) -> Body<R> {
    let [x, y, z] = body.velocity;
    let keep = 1.0 - rate * at.dt;
    Body {
        mass: body.mass,
        velocity: [keep * x, keep * y, keep * z],
    }
}

/// Velocity along y times the mass: of both signs.
#[device]
fn momentum<R: Real>(body: Body<R>) -> R {
    body.mass * body.velocity[1]
}

/// Limit by the kicks.
#[device]
fn slow<R: Real>(state: (Body<R>, [R; 2]), at: &ParticlePlace<R>, most: R) -> R {
    let (_, scalars) = state;
    most * at.width[0] / (1.0 + scalars[1])
}

/// Particles that have been heated, with two numbers.
#[device]
fn hot<R: Real>(state: (Body<R>, [R; 2]), at: &ParticlePlace<R>, least: R) -> CellRecord<[R; 2]> {
    let (body, scalars) = state;
    CellRecord::<[R; 2]> {
        found: scalars[1] > least,
        record: [scalars[1] * body.mass, at.position[1]],
    }
}

/// Records of this rank: step, level, identity, row in Hilbert order, and numbers.
#[derive(Resource, Default)]
struct Found(Vec<[u64; 6]>);

#[derive(Clone)]
struct Processes;

impl Plugin for Processes {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let stream = sim.random_stream("kicks", 7)?;
        let drift = Drift {
            sizes: Table::new(&[1e-3, 2e-3, 3e-3][..]),
            loss: 1.5,
            stream,
        };
        sim.world.init_resource::<Found>();
        ParticleSelection::of(sim, "dark", &["age", "heat"])?.limit::<slow>("kicks", [2.0])?;
        for (name, reduce) in [
            ("momentum", Reduce::Integral),
            ("backward", Reduce::Smallest),
            ("forward", Reduce::Largest),
        ] {
            ParticleSelection::of(sim, "dark", &[])?.column::<momentum>(name, reduce, [])?;
        }
        let kick_all = move |clock: Res<LevelClock>, mut all: ParticleAccess| {
            let stream = drift.stream.at_step(clock.step);
            let drift = Drift {
                stream,
                ..drift.clone()
            };
            all.of("stars", &[])?.update::<drag>(&[0.5])?;
            all.of("dark", &["age", "heat"])?.update::<kick>(&drift)
        };
        sim.chain_in(Advance::Predict, (kick_all, find));
        Ok(())
    }
}

fn find(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    mut all: ParticleAccess,
    mut found: ResMut<Found>,
) -> Result<(), Error> {
    let hot = all.of("dark", &["age", "heat"])?.collect::<hot>(&[4.0])?;
    let place = |one: &RecordedParticle<[f64; 2]>| {
        let own = &one.particle;
        let place = topology
            .rows(own.level)
            .iter()
            .position(|row| *row == own.row);
        assert_eq!(own.patch, topology.index(own.row));
        (own.level, place, own.particle.id)
    };
    assert!(hot.is_sorted_by_key(place), "records are in order");
    found.0.extend(hot.iter().map(|one| {
        let [a, b] = one.record.map(f64::to_bits);
        let mass = one.particle.particle.mass.to_bits();
        [
            clock.step,
            clock.level as u64,
            one.particle.particle.id,
            mass,
            a,
            b,
        ]
    }));
    Ok(())
}

/// Particles, records and columns after some steps.
fn state(size: usize, settings: &[&str]) -> (Vec<Vec<u64>>, Vec<[u64; 6]>, [u64; 3]) {
    let build = |ranks: Ranks| {
        let sim = Simulation::with_ranks(deck(CLUMP, settings), ranks)?;
        sim.add(Processes)
    };
    let ended = on_ranks_of(size, build, |stepper| {
        stepper.steps(3);
        let columns = stepper.columns(["momentum", "backward", "forward"]);
        let all = ["dark", "stars"]
            .map(|name| particles(stepper, name))
            .concat();
        let found = &stepper.0.engine().world.resource::<Found>().0;
        (all, found.clone(), columns)
    });
    let columns = ended[0].2;
    assert!(columns[0].is_finite() && columns[1] < 0.0 && columns[2] > 0.0);
    let mut all: Vec<Vec<u64>> = ended.iter().flat_map(|of| &of.0).map(bits).collect();
    all.sort_unstable();
    let mut found: Vec<[u64; 6]> = ended.iter().flat_map(|of| of.1.clone()).collect();
    if size > 1 || settings.contains(&SORTED) {
        found.sort_unstable();
    }
    (all, found, columns.map(f64::to_bits))
}

/// A setting without an effect, for a reference with sorted records.
const SORTED: &str = "run.threads=1";

#[test]
fn ranks_and_devices_do_not_matter_to_functions() {
    for (precision, others) in [
        ("run.precision=double", places(&[3], &[])),
        ("run.precision=single", places(&[], &[1, 2])),
    ] {
        let reference = state(1, &[SCALARS, precision, "run.device=cpu"]);
        let sorted = state(1, &[SCALARS, precision, "run.device=cpu", SORTED]);
        assert!(reference.1.len() > 50, "{}", reference.1.len());
        for (device, ranks) in others {
            let settings = [SCALARS, precision, device, "run.imbalance=1.01"];
            let wanted = if ranks > 1 { &sorted } else { &reference };
            let found = state(ranks, &settings);
            assert!(found.0 == wanted.0, "{device}, {ranks} ranks, {precision}");
            assert_eq!(found.2, wanted.2, "{device}, {ranks} ranks, {precision}");
            assert!(found.1 == wanted.1, "{device}, {ranks} ranks, {precision}");
        }
    }
}

#[test]
fn a_restart_does_not_matter_to_functions() {
    let app = App::default().always(Processes);
    let same = same_bits(&app, CLUMP, &[SCALARS], 3);
    same.unwrap_or_else(|e| panic!("{e}"));
}

/// Columns are sums, minima and maxima over all particles.
#[test]
fn columns_reduce_all_particles() {
    let sim = Simulation::new(deck(CLUMP, &[SCALARS])).and_then(|sim| sim.add(Processes));
    let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    stepper.steps(2);
    let columns = stepper.columns(["momentum", "backward", "forward"]);
    let all = particles(&mut stepper, "dark");
    let momenta: Vec<f64> = all.iter().map(|own| own.mass * own.velocity[1]).collect();
    let sum: f64 = momenta.iter().sum();
    let sizes: f64 = momenta.iter().map(|momentum| momentum.abs()).sum();
    assert!(
        (columns[0] - sum).abs() < 1e-13 * sizes,
        "{columns:?} {sum}"
    );
    let extremes = [f64::min, f64::max].map(|of| momenta.iter().copied().fold(momenta[0], of));
    assert_eq!(columns[1..], extremes);
}

/// A plugin with one process, which a closure adds.
struct Adds(fn(&mut Engine) -> Result<(), Error>);

impl Plugin for Adds {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        (self.0)(sim)
    }
}

/// The error of a run with a process, before or in the first step.
fn refusal(size: usize, settings: &[&str], add: fn(&mut Engine) -> Result<(), Error>) -> String {
    let build = |ranks: Ranks| Simulation::with_ranks(deck(CLUMP, settings), ranks)?.add(Adds(add));
    let sim = match size {
        1 => Simulation::new(deck(CLUMP, settings)).and_then(|sim| sim.add(Adds(add))),
        _ => {
            let work = |stepper: &mut Stepper| stepper.try_step().map(|_| ()).expect_err("refused");
            let errors = on_ranks_of(size, build, work);
            assert!(
                errors
                    .windows(2)
                    .all(|two| two[0].to_string() == two[1].to_string())
            );
            return errors[0].to_string();
        }
    };
    let begun = sim.and_then(Stepper::begin);
    let ended = begun.and_then(|mut stepper| {
        stepper.try_step()?;
        let columns = |sim: &mut Engine| {
            use nestar::engine::comm::DiagnosticColumns;
            DiagnosticColumns::values(&mut sim.world).map(|_| ())
        };
        Ok(stepper.0.with(columns)?)
    });
    ended.expect_err("refused").to_string()
}

#[test]
fn functions_that_do_not_fit_are_refused() {
    type Add = fn(&mut Engine) -> Result<(), Error>;
    let cases: [(Add, &str); 5] = [
        (
            |sim| ParticleSelection::of(sim, "planets", &[])?.source::<drag>([0.5]),
            "unknown species \"planets\"; the deck has [\"dark\", \"stars\"]",
        ),
        (
            |sim| ParticleSelection::of(sim, "dark", &["age"])?.source::<drag>([0.5]),
            "reads the scalar \"age\", which the species does not have",
        ),
        (
            |sim| ParticleSelection::of(sim, "dark", &[])?.limit::<slow>("kicks", [1.0]),
            "`slow` reads 6 numbers of each particle of particles.species.dark",
        ),
        (
            |sim| ParticleSelection::of(sim, "dark", &[])?.source::<momentum>([]),
            "`momentum` returns 1 numbers, but changes particles of particles.species.dark",
        ),
        (
            |sim| ParticleSelection::of(sim, "dark", &["age"])?.limit::<momentum>("p", []),
            "particles.species.dark.scalars",
        ),
    ];
    for (add, told) in cases {
        let why = refusal(1, &[], add);
        assert!(why.contains(told), "{why}");
    }
}

/// Gives particle 40 a wrong number, which depends on the case.
#[device]
fn spoil<R: Real>(body: Body<R>, at: &ParticlePlace<R>, case: R) -> Body<R> {
    let mut new = body;
    if at.id == 40 || at.id == 41 {
        if case == 0.0 {
            new.velocity = [body.velocity[0], 0.0 / (case * body.mass), 0.0];
        } else if case == 1.0 {
            new.mass = -body.mass;
        } else {
            new.mass = 1e-30;
        }
    }
    new
}

/// A number that is not finite for particle 40.
#[device]
fn undefined<R: Real>(body: Body<R>, at: &ParticlePlace<R>) -> R {
    if at.id == 40 {
        (0.0 - body.mass).sqrt()
    } else {
        1.0
    }
}

#[test]
fn invalid_results_name_the_particle() {
    type Add = fn(&mut Engine) -> Result<(), Error>;
    let cases: [(Add, &[&str]); 6] = [
        (
            |sim| ParticleSelection::of(sim, "dark", &[])?.source::<spoil>([0.0]),
            &[
                "`spoil` gives particle 40 of particles.species.dark at [",
                "NaN",
                "must be finite",
            ],
        ),
        (
            |sim| ParticleSelection::of(sim, "dark", &[])?.source::<spoil>([1.0]),
            &[
                "`spoil` gives particle 40 of particles.species.dark at [",
                ": the mass -",
            ],
        ),
        (
            |sim| ParticleSelection::of(sim, "dark", &[])?.source::<spoil>([2.0]),
            &["particle 40", "the mass 1e-30", "at least the mass quantum"],
        ),
        (
            |sim| ParticleSelection::of(sim, "stars", &[])?.source::<spoil>([2.0]),
            &[
                "particle 40 of particles.species.stars",
                "cannot change: remove `particles.species.stars.mass`",
            ],
        ),
        (
            |sim| ParticleSelection::of(sim, "dark", &[])?.limit::<undefined>("odd", []),
            &["odd", "particle 40 of particles.species.dark"],
        ),
        (
            |sim| {
                let dark = ParticleSelection::of(sim, "dark", &[])?;
                dark.column::<undefined>("odd", Reduce::Integral, [])
                    .map(|_| ())
            },
            &["column odd: `undefined` gives a value that is not finite for particle 40"],
        ),
    ];
    for (n, (add, told)) in cases.into_iter().enumerate() {
        let cpu = refusal(1, &["run.device=cpu"], add);
        for part in told {
            assert!(cpu.contains(part), "{part}: {cpu}");
        }
        if emulation() {
            assert_eq!(cpu, refusal(1, &["run.device=emulated"], add));
        }
        if n == 1 {
            assert_eq!(cpu, refusal(3, &[], add));
        }
    }
}

/// No particle has a record.
#[device]
fn never<R: Real>(body: Body<R>) -> CellRecord<R> {
    CellRecord::<R> {
        found: false,
        record: body.mass,
    }
}

#[test]
fn few_bytes_come_from_a_device_without_records() {
    if !emulation() {
        return;
    }
    let mut stepper = Stepper::new(CLUMP, &["run.device=emulated", "run.audit=false"]);
    stepper.steps(1);
    let world = &mut stepper.0.engine().world;
    let device = world.resource::<ComputeDevice>().device.clone();
    let device = device.expect("the deck asks for it");
    let call = |mut all: ParticleAccess| {
        let mut dark = all.of("dark", &[]).unwrap_or_else(|e| panic!("{e}"));
        let found = dark.collect::<never>(&[]);
        assert!(found.unwrap_or_else(|e| panic!("{e}")).is_empty());
    };
    let mut bytes = || {
        let before = device.counters().bytes_down;
        world.run_system_once(call).expect("it runs");
        device.counters().bytes_down - before
    };
    // one count for each of two lists
    assert!(bytes() <= 16 && bytes() <= 16);
}
