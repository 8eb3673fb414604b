//! Fluxes of a user plugin on an adaptive mesh: they conserve, and are bitwise equal on all ranks and devices.

use super::device_runs::places;
use nestar::prelude::*;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::norms::totals;
use nestar_tests::ranks::{joined, on_ranks_of};
use nestar_tests::{State, Stepper};

struct Heat;

impl Field for Heat {
    const NAME: &'static str = "heat";
}

/// Conductivities at temperatures 0, 1/4, …
#[device]
#[derive(Clone)]
struct Conductivity<R> {
    table: Table<R>,
    most: R,
}

#[device]
fn hot<R: Real>(_old: R, at: &Place<R>) -> R {
    let [x, y, z] = [at.centre[0] - 0.4, at.centre[1] - 0.55, at.centre[2] - 0.5];
    exp(-30.0 * sum3(x * x, y * y, z * z))
}

#[device]
fn conduct<R: Real>(u: &FaceStencil<R>, face: &Face<R>, p: &Conductivity<R>) -> R {
    let mean = 0.5 * (u.at(-1) + u.at(0));
    let k = p.table.at((4.0 * mean.min(p.most)).to_i32()) * (1.0 + face.above.centre[2]);
    k * (u.at(-1) - u.at(0)) / face.width
}

/// Flux of energy down the gradient, by a monotonised difference over four cells.
#[device]
fn conduct_gas<R: Real>(
    u: &FaceStencil<R, Conserved<R>, 2>,
    face: &Face<R>,
    rate: R,
) -> Conserved<R> {
    let near = u.at(-1).energy - u.at(0).energy;
    let far = (u.at(-2).energy - u.at(1).energy) / 3.0;
    let less = if near.abs() < far.abs() { near } else { far };
    let zero = 0.0 * near;
    Conserved {
        density: zero,
        momentum: [zero, zero, zero],
        energy: rate * less / face.width,
    }
}

struct Conduction;

impl Plugin for Conduction {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Heat>(FieldSpec {
            correct: Correct::Fluxes,
            in_totals: true,
            ..FieldSpec::cells(&["heat"])
        })?;
        sim.system_in(
            Initialise::State,
            |rows: LevelRows, mut heat: Write<Heat>| {
                heat.update::<hot>(&rows, (), &[]);
            },
        );
        let conductivity = Conductivity {
            table: Table::new([1e-3, 2e-3, 1.5e-3, 4e-3]),
            most: 0.99,
        };
        let heat = move |rows: LevelRows, mut heat: Write<Heat, 1>, mut ranks: Comm| {
            heat.flux::<conduct>(&rows, &conductivity);
            // what comes second in a step is added
            heat.refresh(&mut ranks)?;
            heat.flux::<conduct>(&rows, &conductivity);
            Ok::<(), Error>(())
        };
        sim.system_in(Advance::Sources, heat);
        let gas = |rows: LevelRows, mut gas: Write<Gas, 2>| gas.flux::<conduct_gas>(&rows, &[1e-4]);
        sim.system_in(Advance::Sources, gas);
        Ok(())
    }
}

fn end(stepper: &mut Stepper) -> (State, Vec<f64>, Vec<f64>) {
    let before = stepper.0.with(|sim| totals(sim));
    stepper.steps(2);
    let after = stepper.0.with(|sim| totals(sim));
    (stepper.state(), before, after)
}

fn run(settings: &[&str], size: usize) -> (State, Vec<f64>, Vec<f64>) {
    let build = |ranks| Simulation::with_ranks(deck(BLAST, settings), ranks)?.add(Conduction);
    let mut ends = on_ranks_of(size, build, end);
    let states = ends.iter().map(|end| end.0.clone()).collect();
    let (_, before, after) = ends.swap_remove(size - 1);
    (joined(states), before, after)
}

#[test]
fn plugin_fluxes_conserve_and_are_identical_on_ranks_and_devices() {
    // ranks in one precision, devices in the other
    let cases = [
        ("double", 2e-14, places(&[3], &[])),
        ("single", 2e-6, places(&[], &[2])),
    ];
    for (precision, most, others) in cases {
        let precision = format!("run.precision={precision}");
        let alone = run(&[HALF, &precision], 1);
        assert!(alone.0.counts()[2] > 0, "the case has no levels");
        // density, energy, heat; momenta are not of one sign
        for component in [0, 4, 6] {
            let (before, after) = (alone.1[component], alone.2[component]);
            let drift = ((after - before) / before).abs();
            assert!(
                drift <= most,
                "{precision}: component {component} drifts by {drift}"
            );
        }
        for (device, size) in others {
            let other = run(&[HALF, &precision, device], size);
            assert_eq!(alone.0.difference(&other.0), None, "{device}, {size} ranks");
            assert_eq!(alone.2, other.2, "{device}, {size} ranks");
        }
    }
}
