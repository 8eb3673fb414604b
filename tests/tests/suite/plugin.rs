//! User physics written with cell functions alone: bitwise equal on ranks and on a device.

use nestar::engine::comm::DiagnosticColumns;
use nestar::prelude::*;
use nestar_tests::decks::{BLAST, deck};
use nestar_tests::ranks::{joined, on_ranks_of};
use nestar_tests::{State, Stepper};

/// Dust that cools hot gas.
#[device]
#[derive(Clone, Copy)]
struct Dust<R> {
    rate: R,
    /// Cells of the run that are wanted where it is dense.
    threshold: R,
    fraction: f64,
}

/// Gas with the scalar of the deck.
#[device]
#[derive(Clone, Copy)]
struct Dusty<R: Real> {
    gas: Conserved<R>,
    dust: R,
}

/// Time in which a cell would lose all its internal energy.
#[device]
fn cooling_time<R: Real>(u: Dusty<R>, p: &Dust<R>) -> R {
    let internal = u.gas.energy - kinetic_energy(u.gas);
    R::from_f64(p.fraction) * internal / (p.rate * u.dust * internal * internal + 1e-6)
}

#[device]
fn cool<R: Real>(u: Dusty<R>, at: &Place<R>, p: &Dust<R>) -> Dusty<R> {
    let kinetic = kinetic_energy(u.gas);
    let internal = u.gas.energy - kinetic;
    let lost = 1.0 + p.rate * u.dust * internal * at.dt * (1.5 + at.centre[0]);
    let mut v = u;
    v.gas.energy = kinetic + internal / lost;
    v
}

#[device]
fn dusty<R: Real>(u: Dusty<R>, p: &Dust<R>) -> bool {
    u.dust > p.threshold
}

#[device]
fn internal_energy<R: Real>(u: Conserved<R>) -> R {
    u.energy - kinetic_energy(u)
}

struct Cooling;

impl Plugin for Cooling {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let dust = Dust {
            rate: 0.4,
            threshold: 1.15,
            fraction: 1e-3,
        };
        sim.limit::<Gas, cooling_time>("cooling", dust);
        sim.criterion::<Gas, dusty>(dust);
        sim.column::<Gas, internal_energy>("internal_energy", Reduce::Integral, []);
        sim.column::<Gas, cooling_time>("cooling_time", Reduce::Smallest, dust);
        let source = move |rows: LevelRows, mut gas: Write<Gas>| {
            gas.update::<cool>(&rows, (), &dust);
        };
        sim.system_in(Advance::Sources, source);
        Ok(())
    }
}

/// State and columns after three steps, and what limited them.
fn end(stepper: &mut Stepper) -> (State, Vec<u64>, Vec<&'static str>) {
    let step = |_| stepper.try_step().unwrap_or_else(|e| panic!("{e}")).limiter;
    let limiters = (0..3).map(step).collect();
    let columns = stepper
        .0
        .with(|sim| DiagnosticColumns::values(&mut sim.world).unwrap_or_else(|e| panic!("{e}")));
    let columns = columns.into_iter().map(f64::to_bits).collect();
    (stepper.state(), columns, limiters)
}

#[test]
fn cell_functions_are_identical_on_ranks_and_devices() {
    let mut devices = vec!["run.device=cpu"];
    if super::device_runs::emulation() {
        devices.push("run.device=emulated");
    }
    for precision in ["run.precision=double", "run.precision=single"] {
        let run = |device, size| {
            let build = |ranks| {
                // no step is cut to suit the finer level, so that a step's limit is its own
                let settings = [device, precision, "time.decrease=0"];
                Simulation::with_ranks(deck(BLAST, &settings), ranks)?.add(Cooling)
            };
            let mut ends = on_ranks_of(size, build, end);
            let states = ends.iter().map(|end| end.0.clone()).collect();
            let (_, columns, limiters) = ends.swap_remove(size - 1);
            (joined(states), columns, limiters)
        };
        let alone = run("run.device=cpu", 1);
        assert!(alone.2.contains(&"cooling"), "{:?}", alone.2);
        for &device in &devices {
            for size in [1, 2] {
                let other = run(device, size);
                let difference = alone.0.difference(&other.0);
                assert_eq!(difference, None, "{device}, {size} ranks");
                assert_eq!(
                    (&alone.1, &alone.2),
                    (&other.1, &other.2),
                    "{device}, {size} ranks"
                );
            }
        }
    }
}
