//! Cell functions that ask to be called again, or that fail, in single cells.

use super::device_runs::{emulation, places};
use nestar::prelude::*;
use nestar::stiff::{CONTINUE, DONE, FAILED, Outcome};
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::{joined, on_ranks_of};
use nestar_tests::{Stepper, build};

/// Fuel, and how much of the step is left to burn it in.
struct Fuel;

impl Field for Fuel {
    const NAME: &'static str = "fuel";
}

#[device]
#[derive(Clone, Copy)]
struct Burning<R: Real> {
    fuel: R,
    left: R,
}

#[device]
fn fill<R: Real>(_old: Burning<R>, at: &Place<R>) -> Burning<R> {
    Burning {
        fuel: 1.0 + at.centre[0] * at.centre[1],
        left: 0.0,
    }
}

#[device]
fn begin<R: Real>(u: Burning<R>) -> Burning<R> {
    Burning {
        fuel: u.fuel,
        left: 1.0,
    }
}

/// A part of the step that depends on the cell; hotter cells take more of them. Fails where there is too much fuel.
#[device]
fn burn<R: Real>(u: Burning<R>, at: &Place<R>, most: R) -> Outcome<Burning<R>> {
    let part = (0.2 / u.fuel).min(u.left);
    let v = Burning {
        fuel: u.fuel - part * at.dt * u.fuel * u.fuel,
        left: u.left - part,
    };
    let mut status = DONE;
    if v.left > 0.0 {
        status = CONTINUE;
    }
    if u.fuel > most && at.index[2] >= 5 {
        status = FAILED;
    }
    Outcome::<Burning<R>> { state: v, status }
}

/// Burns in the given number of calls, and fails above the given amount of fuel.
struct Burns(usize, f64);

impl Plugin for Burns {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let Self(calls, most) = *self;
        sim.register_field::<Fuel>(FieldSpec::cells(&["fuel", "left"]))?;
        sim.system_in(
            Initialise::State,
            |rows: LevelRows, mut fuel: Write<Fuel>| {
                fuel.update::<fill>(&rows, (), &[]);
            },
        );
        let step = move |rows: LevelRows, mut fuel: Write<Fuel>| {
            fuel.update::<begin>(&rows, (), &[]);
            fuel.iterate::<burn>(&rows, (), calls, &[most]);
        };
        sim.system_in(Advance::Sources, step);
        Ok(())
    }
}

fn devices() -> Vec<&'static str> {
    let mut devices = vec!["run.device=cpu"];
    if emulation() {
        devices.push("run.device=emulated");
    }
    devices
}

#[test]
fn subcycled_cells_are_identical_on_ranks_and_devices() {
    let run = |precision, device, size, queue| {
        let build = |ranks| {
            let deck = deck(BLAST, &[HALF, "mesh.max_level=1", precision, device, queue]);
            Simulation::with_ranks(deck, ranks)?.add(Burns(40, 9.0))
        };
        joined(on_ranks_of(size, build, |stepper| stepper.steps(2).state()))
    };
    let [double, single] = ["run.precision=double", "run.precision=single"];
    let [queue, none] = ["run.queue=true", "run.queue=false"];
    let [first, second] = [double, single].map(|p| run(p, "run.device=cpu", 1, queue));
    // with and without a queue, each in another precision on the device than on the CPU
    let cases = [
        (places(&[2], &[]), double, none),
        (places(&[2], &[]), single, queue),
        (places(&[], &[2]), double, queue),
        (places(&[], &[1]), single, none),
    ];
    for (places, precision, queue) in cases {
        let alone = if precision == double { &first } else { &second };
        for (device, size) in places {
            let difference = alone.difference(&run(precision, device, size, queue));
            assert_eq!(
                difference, None,
                "{device}, {size} ranks, {precision}, {queue}"
            );
        }
    }
}

/// The message of the run with the given number of calls and amount of fuel.
fn message(device: &str, burns: Burns) -> String {
    let sim = build(BLAST, &["mesh.max_level=0", device]).add(burns);
    let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    stepper.try_step().expect_err("a fault").to_string()
}

#[test]
fn cells_that_fail_or_never_finish_are_reported() {
    let failed = devices()
        .into_iter()
        .map(|device| message(device, Burns(40, 1.7)));
    let failed: Vec<String> = failed.collect();
    for word in [
        "`burn` has failed in cell [",
        " of patch [1, 1, ",
        " on level 0, where `fuel` is [1.",
    ] {
        assert!(failed[0].contains(word), "{}", failed[0]);
    }
    let endless = devices()
        .into_iter()
        .map(|device| message(device, Burns(3, 9.0)));
    let endless: Vec<String> = endless.collect();
    let named = "`burn` is not done after 3 calls in cell [0, 0, 0] of patch [0, 0, 0]";
    assert!(endless[0].contains(named), "{}", endless[0]);
    assert!(
        [failed, endless]
            .iter()
            .all(|found| found.iter().all(|f| *f == found[0]))
    );
}
