//! Halo patches read by user physics: always up to date, or an error.

mod potential;

use crate::device_runs::emulation;
use nestar::device_runtime::{Address, Number};
use nestar::engine::comm::Ranks;
use nestar::engine::data::device::DeviceTopology;
use nestar::engine::data::{Field, Stores};
use nestar::engine::device::LaunchShape;
use nestar::engine::step::StatelessSystem;
use nestar::engine::step::memory::needed;
use nestar::entities::Topology;
use nestar::kernels::mesh::GatherScratch;
use nestar::kernels::mesh::gather::{GatherTarget, gather};
use nestar::prelude::*;
use nestar::systems::order::Ready;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::{joined, on_ranks_of, run_on_ranks_of};
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, State, Stepper, build};
use potential::{Gravity, Potential};

const STEPS: usize = 2;

/// Checks that the state after some steps is bitwise equal on one rank and on the numbers of ranks in `sizes`.
fn same_on_ranks<P: Plugin + Send>(
    plugin: impl Fn() -> P + Sync,
    settings: &[&str],
    sizes: &[usize],
) -> State {
    let sim = build(BLAST, settings).add(plugin());
    let alone = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")))
        .steps(STEPS)
        .state();
    for &size in sizes {
        let build =
            |ranks: Ranks| Simulation::with_ranks(deck(BLAST, settings), ranks)?.add(plugin());
        let states = on_ranks_of(size, build, |stepper| stepper.steps(STEPS).state());
        if let Some(difference) = alone.difference(&joined(states)) {
            panic!("{size} ranks, {settings:?}: {difference}");
        }
    }
    alone
}

/// A user field with several sweeps per step and ghost cells between levels.
#[test]
fn sweeps_of_a_user_field_are_identical_on_ranks_and_devices() {
    for precision in ["run.precision=double", "run.precision=single"] {
        let gravity = || Gravity { sweeps: 2 };
        let cpu = same_on_ranks(gravity, &[HALF, precision, "run.device=cpu"], &[4]);
        assert!(cpu.counts()[2] > 0, "the case has no levels");
        if emulation() {
            let device = same_on_ranks(gravity, &[HALF, precision, "run.device=emulated"], &[3]);
            assert_eq!(cpu.difference(&device), None, "{precision}");
        }
        let fewer = build(BLAST, &[HALF, precision]).add(Gravity { sweeps: 1 });
        let fewer = Stepper::of(fewer.unwrap_or_else(|e| panic!("{e}")));
        let fewer = { fewer }.steps(STEPS).state();
        assert!(cpu.difference(&fewer).is_some(), "the sweeps do nothing");
    }
}

#[test]
fn a_user_field_is_identical_after_a_restart() {
    let run = |scratch: &Scratch, steps: usize, resume: bool| {
        let steps = format!("time.max_steps={steps}");
        let settings = [HALF, "output.final=true", "output.steps=2", &steps];
        let sim = build(BLAST, &settings).add(Gravity { sweeps: 2 });
        let run = sim.and_then(|mut sim| sim.run_with(quietly_into(&scratch.run(), resume)));
        run.unwrap_or_else(|e| panic!("{e}"));
        digests(&scratch.run())
            .pop()
            .expect("there is a snapshot")
            .1
    };
    let (whole, parts) = (Scratch::new(), Scratch::new());
    let expected = run(&whole, 4, false);
    run(&parts, 2, false);
    assert_eq!(run(&parts, 4, true), expected);
}

/// Spreads the scalar after the step of the gas, from neighbour to neighbour.
struct Spread;

/// Gas with the scalar of the deck.
#[device]
#[derive(Clone, Copy)]
struct Dyed<R: Real> {
    gas: Conserved<R>,
    dye: R,
}

#[device]
fn diffuse<R: Real>(u: &Stencil<R, Dyed<R>>) -> Dyed<R> {
    let mut v = u.at(0, 0, 0);
    let across =
        (u.at(-1, 0, 0).dye + u.at(1, 0, 0).dye) + (u.at(0, -1, 0).dye + u.at(0, 1, 0).dye);
    let sum = across + (u.at(0, 0, -1).dye + u.at(0, 0, 1).dye);
    v.dye = v.dye + (sum - v.dye * 6.0) * 0.0625;
    v
}

fn spread(rows: LevelRows, mut gas: Write<Gas, 1>) {
    gas.update::<diffuse>(&rows, (), &[]);
}

impl Plugin for Spread {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.system_in(Advance::Sources, spread);
        Ok(())
    }
}

#[test]
fn a_stencil_on_the_gas_after_its_step_is_identical_on_ranks_and_devices() {
    for precision in ["run.precision=double", "run.precision=single"] {
        let cpu = same_on_ranks(|| Spread, &[HALF, precision, "run.device=cpu"], &[4]);
        if emulation() {
            let device = same_on_ranks(|| Spread, &[HALF, precision, "run.device=emulated"], &[3]);
            assert_eq!(cpu.difference(&device), None, "{precision}");
        }
        let without = Stepper::of(build(BLAST, &[HALF, precision]))
            .steps(STEPS)
            .state();
        assert!(
            cpu.difference(&without).is_some(),
            "the stencil does nothing"
        );
    }
}

/// The results of an in-place stencil are stored in a separate bank, whose memory is predicted from its first use on.
#[test]
fn the_memory_of_an_in_place_stencil_is_predicted() {
    const ROWS: usize = 1 << 10;
    let stepped = |sim: Simulation| {
        let mut stepper = Stepper::of(sim);
        stepper.steps(1);
        needed(&stepper.0.engine().world, ROWS)
    };
    let with = build(BLAST, &[HALF]).add(Spread);
    let with = stepped(with.unwrap_or_else(|e| panic!("{e}")));
    let mut without = build(BLAST, &[HALF]);
    let world = &without.engine().world;
    let bank = Stores::of(world, |_| true)[0].of(world).row_bytes();
    assert_eq!(with - stepped(without), (ROWS * bank) as u64);
}

/// Heats the gas: on a device by a kernel that does not report the rows it has changed.
struct Heat;

const HEAT: &str = "
KERNEL(heat, PARAMETERS<mesh::REAL>) {
  mesh::REAL* u = mesh::row_of(p.level, p.rows[launch::block()]);
  EACH(cell, 512) u[4 * 512 + cell] = u[4 * 512 + cell] * mesh::REAL(1.5);
}
";

#[device]
struct Heating<R> {
    level: Address<R>,
    rows: Address<i32>,
}

fn heat(mut gas: Write<Gas>, tables: Option<Res<DeviceTopology>>) -> Result<(), Error> {
    let view = gas.own();
    let (Some(tables), true) = (tables, view.is_on_device()) else {
        let mut values = Vec::new();
        for &row in view.rows() {
            values.extend_from_slice(view.row::<f64>(row));
            let energy = values.len() - 2 * 512..values.len() - 512;
            values[energy].iter_mut().for_each(|e| *e *= 1.5);
        }
        let rows = view.rows().to_vec();
        return Ok(gas.store(&rows, &values)?);
    };
    let view = gas.change();
    let pool = view.device();
    let text = HEAT.replace("PARAMETERS", &Heating.path());
    let source = pool.program(&[Heating], &[&text]);
    let module = pool.device().compile("heat", &source)?;
    let parameters = Heating::<Number> {
        level: pool.bank(view.banks()[0]).into(),
        rows: tables.rows(view.level()).into(),
    };
    let shape = LaunchShape::of(view.rows().len(), 64);
    let launched = pool
        .device()
        .launch(&module.kernel("heat")?, shape, &parameters);
    Ok(launched?)
}

impl Plugin for Heat {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.system_in(Advance::Sources, heat);
        Ok(())
    }
}

#[test]
fn a_user_kernel_that_changes_the_gas_changes_the_next_step() {
    if !emulation() {
        return;
    }
    let [cpu, device] = ["run.device=cpu", "run.device=emulated"].map(|device| {
        let sim = build(BLAST, &["mesh.max_level=1", device]).add(Heat);
        let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
        let mut step = || stepper.try_step().unwrap_or_else(|e| panic!("{e}")).dt;
        let steps = [0; 3].map(|_| step());
        (steps, stepper.state())
    });
    assert_eq!(cpu.0, device.0);
    assert_eq!(cpu.1.difference(&device.1), None);
}

/// A system of the potential that is registered directly.
struct Adds<F>(F);

impl<F: Fn(&mut Engine)> Plugin for Adds<F> {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        potential::register(sim)?;
        (self.0)(sim);
        Ok(())
    }
}

/// Sweeps twice without a halo exchange after the first sweep.
fn forgetful(mut potential: Write<Potential, 1>) -> Result<(), Error> {
    for _ in 0..2 {
        potential.get(1)?;
        potential.change();
    }
    Ok(())
}

/// Reads two layers, but declares one.
fn reaching(potential: Read<Potential, 1>) -> Result<(), Error> {
    potential.get(2).map(|_| ())
}

fn message(add: impl Fn(&mut Engine) + Sync) -> String {
    let sim = build(BLAST, &["mesh.max_level=0"]).add(Adds(&add));
    let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    let error = stepper.try_step().expect_err("a fault");
    let settings = ["mesh.max_level=0"];
    let build =
        |ranks: Ranks| Simulation::with_ranks(deck(BLAST, &settings), ranks)?.add(Adds(&add));
    let shared = on_ranks_of(2, build, |stepper| stepper.try_step().err());
    let shared = shared
        .into_iter()
        .map(|error| error.expect("a fault").to_string());
    shared.for_each(|found| assert_eq!(found, error.to_string()));
    error.to_string()
}

#[test]
fn reading_a_stale_halo_reports_field_level_and_system() {
    let found = message(|sim| {
        sim.system_in(Advance::Potential, forgetful);
    });
    let words = [
        "::forgetful`",
        "1 halo layers",
        "`potential`",
        "level 0, present bank",
        "0 are up to date",
        "`field.refresh(&mut ranks)?`",
    ];
    for word in words {
        assert!(found.contains(word), "{found}");
    }
}

#[test]
fn reading_beyond_the_declared_halo_width_reports_the_width_needed() {
    let found = message(|sim| {
        sim.system_in(Advance::Potential, reaching);
    });
    for word in ["::reaching`", "declares 1", "`potential`", "`Read<_, 2>`"] {
        assert!(found.contains(word), "{found}");
    }
    // registered with as many, it is in order
    let sim = build(BLAST, &[HALF]).add(Adds(|sim: &mut Engine| {
        sim.system_in(Advance::Potential, reaching)
            .halo_width::<Potential>(2);
    }));
    Stepper::of(sim.unwrap_or_else(|e| panic!("{e}"))).steps(1);
}

/// Returns the error of a simulation before its first step.
fn refused(add: impl Fn(&mut Engine) + Send) -> String {
    let sim = build(BLAST, &[]).add(Adds(add));
    let mut sim = sim.unwrap_or_else(|e| panic!("{e}"));
    sim.with(|sim| sim.finish_setup())
        .expect_err("refused")
        .to_string()
}

/// A field that is not registered.
struct Ether;

impl Field for Ether {
    const NAME: &'static str = "ether";
}

#[test]
fn reads_that_no_halo_holds_are_refused_before_the_run() {
    let deep = refused(|sim| {
        sim.system_in(Advance::Potential, |_: Read<Potential, 9>| ());
    });
    assert!(
        deep.contains("9 halo layers of the field `potential`"),
        "{deep}"
    );
    let unknown = refused(|sim| {
        sim.system_in(Advance::Potential, |_: Read<Ether>| ());
    });
    assert!(
        unknown.contains("`ether`, which no plugin registers"),
        "{unknown}"
    );
}

#[test]
#[should_panic(expected = "a gather of 1 ghost layers, but only 0 may be read")]
fn a_gather_reaches_no_further_than_was_asked_for() {
    fn reach(potential: Read<Potential, 1>) -> Result<(), Error> {
        let view = potential.get(0)?;
        let mut target = GatherTarget {
            values: &mut [0.0; 1000],
            stride: 1000,
            components: 1,
            ghosts: 1,
        };
        let (row, mut scratch) = (view.rows()[0], GatherScratch::new(1));
        gather(&view.ghosts::<f64>(), row, &mut target, &mut scratch);
        Ok(())
    }
    let sim = build(BLAST, &["mesh.max_level=0"]).add(Adds(|sim: &mut Engine| {
        sim.system_in(Advance::Potential, reach);
    }));
    Stepper::of(sim.unwrap_or_else(|e| panic!("{e}"))).steps(1);
}

/// Messages of the ranks of a run in which one fails during preparation and the others wait for it in `system`.
fn told_by_waiting<M>(
    system: impl StatelessSystem<Result<(), Error>, M> + Clone + Send + Sync + 'static,
) -> Vec<String>
where
    M: 'static,
{
    let fail = |topology: Res<Topology>| match topology.rank() {
        1 => Err(Error::Setup("the lamp is out".into())),
        _ => Ok(()),
    };
    let scratch = Scratch::new();
    let build = |ranks: Ranks| {
        let system = system.clone();
        Simulation::with_ranks(deck(BLAST, &[]), ranks)?.add(Adds(move |sim: &mut Engine| {
            sim.system_in(Ready::Recompute, fail);
            sim.system_in(Ready::Recompute, system.clone());
        }))
    };
    let options = (0..3).map(|_| quietly_into(&scratch.run(), false));
    let ended = run_on_ranks_of(build, options.collect());
    let told = ended
        .into_iter()
        .map(|e| e.expect_err("a fault").to_string());
    told.collect()
}

/// A rank that fails during preparation stops the others, which wait for its halo patches or inside a system.
#[test]
fn an_error_before_a_collective_stops_all_ranks() {
    let stopped = "rank 1 failed: the lamp is out";
    let told = [stopped, "the lamp is out", stopped];
    let read = |potential: Read<Potential, 1>| potential.get(1).map(|_| ());
    assert_eq!(told_by_waiting(read), told);
    let sum = |ranks: Comm| ranks.sum(1).map(|_| ()).map_err(Error::from);
    assert_eq!(told_by_waiting(sum), told);
}
