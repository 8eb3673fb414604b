//! Counter-based random numbers, type-dependent functions and tables from files in a plugin: bitwise equal on ranks and devices.

use super::device_runs::places;
use nestar::deck::{CELL_VARIABLES, Formula};
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
        for (device, size) in places(&[2], &[2]) {
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

/// Random numbers in all variables of an initial state, with several samples in each cell of three levels.
const NOISE: &str = r#"
scenario = "formula"
[initial]
samples    = 2
density    = "1 + 0.5*random(1)"
pressure   = "exp(0.1*gaussian(2))"
velocity_x = "random(3) - 0.5"
scalars    = { dye = "random(1)" }
[domain]
cells = [32, 16, 16]
right_edge = [4.0, 2.0, 2.0]
[time]
end = 1.0
[mesh]
max_level = 2
flag_buffer = 0
refine = [{ criterion = "sphere", centre = [1.1, 0.7, 0.4], radius = 0.2 }]
[hydro]
scalars = ["dye"]
"#;

fn noise(settings: &[&str], size: usize) -> State {
    let build = |ranks| Simulation::with_ranks(deck(NOISE, settings), ranks);
    joined(on_ranks_of(size, build, |stepper| stepper.state()))
}

#[test]
fn random_initial_states_are_identical_on_ranks_and_devices() {
    for precision in ["run.precision=double", "run.precision=single"] {
        let alone = noise(&[precision], 1);
        for (device, size) in places(&[3], &[2]) {
            let other = noise(&[precision, device], size);
            let difference = alone.difference(&other);
            assert_eq!(difference, None, "{precision}, {device}, {size} ranks");
        }
    }
}

#[test]
fn random_initial_states_follow_from_seed_level_and_index() {
    let formula = Formula::parse("random(1)", &CELL_VARIABLES).expect("a formula");
    for (precision, tolerance) in [
        ("run.precision=double", 1e-14),
        ("run.precision=single", 1e-6),
    ] {
        let state = noise(&[precision], 1);
        let (mut cells, mut sum) = ([0; 3], 0.0);
        state.each_leaf_cell(|level, centre, _, u| {
            let width = 0.125 / f64::from(1 << level);
            let [i, j, k] = centre.map(|x| (x / width).floor());
            let wanted = formula.eval(&[level as f64, i, j, k]);
            assert!(
                (u[0] / (1.0 + 0.5 * wanted) - 1.0).abs() < tolerance,
                "{centre:?}"
            );
            assert!(
                (u[5] / u[0] / wanted - 1.0).abs() < 2.0 * tolerance,
                "{centre:?}"
            );
            cells[level] += 1;
            sum += wanted;
        });
        assert!(cells.iter().all(|&count| count > 1000), "{cells:?}");
        let count = f64::from(cells.iter().sum::<i32>());
        assert!((sum / count - 0.5).abs() < 5.0 / (12.0 * count).sqrt());
    }
}

#[test]
fn random_numbers_are_refused_where_no_cell_is() {
    for (setting, key) in [
        ("sources.heating=\"random(1)\"", "sources.heating"),
        ("external.potential=\"random(1)\"", "external.potential"),
        (
            "mesh.refine=[{criterion=\"threshold\", field=\"random(1)\", threshold=1}]",
            "mesh.refine",
        ),
        ("time.end=\"random(1)\"", "time.end"),
        (
            "inflow.x_lower={density=\"random(1)\", pressure=\"1\"}",
            "inflow.x_lower.density",
        ),
    ] {
        let boundary =
            "domain.boundary={x=[\"inflow\", \"outflow\"], y=\"periodic\", z=\"periodic\"}";
        let settings = match key.starts_with("inflow") {
            true => vec![setting, boundary],
            false => vec![setting],
        };
        let made = std::panic::catch_unwind(|| Simulation::new(deck(NOISE, &settings)));
        let why = match made {
            Ok(made) => made.err().expect(key).to_string(),
            Err(panic) => panic.downcast_ref::<String>().expect(key).clone(),
        };
        assert!(why.contains("[initial]") && why.contains(key), "{why}");
    }
}
