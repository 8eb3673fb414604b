//! Counter-based random numbers, type-dependent functions and tables from files in a plugin: bitwise equal on ranks and devices.

use super::device_runs::places;
use nestar::device_runtime::random::Stream;
use nestar::prelude::*;
use nestar_tests::State;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::{joined, on_ranks_of};

/// How a kick grows with a number.
trait Growth {
    fn of<R: Real>(x: R) -> R;
}

struct Square;

#[device]
impl Growth for Square {
    fn of<R: Real>(x: R) -> R {
        x * x
    }
}

#[device]
#[derive(Clone, Copy)]
enum Deviate {
    Uniform,
    Normal,
}

#[device]
#[derive(Clone)]
struct Kicks<R> {
    deviate: Deviate,
    random: Stream,
    places: Table<R>,
    sizes: Table<R>,
}

#[device]
fn kicked<R: Real, G: Growth>(u: Conserved<R>, at: &Place<R>, p: &Kicks<R>) -> Conserved<R> {
    let block = random::in_cell(&p.random, at, 0);
    let [a, b] = match p.deviate {
        Deviate::Uniform => random::uniforms::<R>(block),
        Deviate::Normal => random::normals::<R>(block),
    };
    let size = interpolate(&p.places, &p.sizes, at.centre[0]);
    Conserved {
        energy: u.energy * (1.0 + size * (G::of(a) + G::of(b))),
        ..u
    }
}

#[device]
fn kick<R: Real>(u: Conserved<R>, at: &Place<R>, p: &Kicks<R>) -> Conserved<R> {
    kicked::<R, Square>(u, at, p)
}

struct Kicking(Deviate);

impl Plugin for Kicking {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let file = TableFile::parse("sizes.csv", "x size\n0 0.01\n0.3 0.02 # peak\n1.0 0\n")?;
        let random = sim.random_stream("kicks", 5)?;
        let kicks = Kicks {
            deviate: self.0,
            random,
            places: Table::new(file.ascending("x")?),
            sizes: Table::new(file.column("size")?),
        };
        let system = move |clock: Res<LevelClock>, rows: LevelRows, mut gas: Write<Gas>| {
            let random = random.at_step(clock.step);
            gas.update::<kick>(
                &rows,
                (),
                &Kicks {
                    random,
                    ..kicks.clone()
                },
            );
        };
        sim.system_in(Advance::Sources, system);
        let again = sim.random_stream("kicks", 6).map(|_| ()).unwrap_err();
        assert!(again.to_string().contains("draws random numbers already"));
        Ok(())
    }
}

fn run(settings: &[&str], size: usize, deviate: Deviate) -> State {
    let build = |ranks| Simulation::with_ranks(deck(BLAST, settings), ranks)?.add(Kicking(deviate));
    joined(on_ranks_of(size, build, |stepper| stepper.steps(2).state()))
}

#[test]
fn counter_based_random_kicks_are_identical_on_ranks_and_devices() {
    for (precision, deviate) in [
        ("run.precision=double", Deviate::Normal),
        ("run.precision=single", Deviate::Uniform),
    ] {
        let alone = run(&[HALF, precision], 1, deviate);
        for (device, size) in places(&[2], &[1, 2]) {
            let other = run(&[HALF, precision, device], size, deviate);
            assert_eq!(
                alone.difference(&other),
                None,
                "{precision}, {device}, {size} ranks"
            );
        }
    }
    let [normal, uniform] = [Deviate::Normal, Deviate::Uniform].map(|d| run(&[HALF], 1, d));
    assert!(normal.difference(&uniform).is_some());
}
