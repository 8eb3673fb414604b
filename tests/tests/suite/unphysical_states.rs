//! Plugin functions that return an unphysical state: the run ends with the position and the states before and after.

use super::device_runs::places;
use nestar::prelude::*;
use nestar_tests::decks::BLAST;
use nestar_tests::{Stepper, build};

#[device]
#[derive(Clone, Copy)]
struct Gas5<R: Real> {
    density: R,
    momentum: [R; 3],
    energy: R,
}

/// Takes more energy than there is in the cells beside one point.
#[device]
fn drain<R: Real>(u: Gas5<R>, at: &Place<R>) -> Gas5<R> {
    let mut v = u;
    if at.centre[0] > 0.9 && at.centre[1] < 0.1 && at.centre[2] > 0.6 {
        v.energy = -0.5 * u.energy;
    }
    v
}

/// The same for the neighbours of the cell.
#[device]
fn drain_around<R: Real>(u: &Stencil<R, Gas5<R>, 1>, at: &Place<R>) -> Gas5<R> {
    let mut v = u.at(0, 0, 0);
    if at.centre[0] > 0.9 && at.centre[1] < 0.1 && at.centre[2] > 0.6 {
        v.energy = -0.5 * u.at(0, 0, 0).energy;
    }
    v
}

/// Carries more energy away than there is.
#[device]
fn carry<R: Real>(u: &FaceStencil<R, Gas5<R>>, face: &Face<R>) -> Gas5<R> {
    let mut energy = R::lit(0.0);
    if face.axis == 0 && face.above.index[0] == 1 && face.above.index[1] == 2 {
        energy = 1e4 * u.at(0).energy;
    }
    Gas5::<R> {
        density: 0.0,
        momentum: [R::lit(0.0); 3],
        energy,
    }
}

/// Which of them.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Cell,
    Split,
    Around,
    Flux,
}

impl Plugin for Wrong {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        match self {
            Self::Cell => sim.source::<Gas, drain>([]),
            Self::Split => sim.split_source::<Gas, drain>([]),
            Self::Around => sim.source::<Gas, drain_around>([]),
            Self::Flux => sim.flux::<Gas, carry>([]),
        }
        Ok(())
    }
}

/// What a run says.
fn message(wrong: Wrong, device: &str, precision: &str) -> String {
    let sim = build(BLAST, &["mesh.max_level=0", device, precision]).add(wrong);
    let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    stepper.try_step().expect_err("a fault").to_string()
}

#[test]
fn unphysical_states_made_by_a_plugin_are_reported_with_their_cell() {
    for (wrong, words) in [
        (
            Wrong::Cell,
            [
                "`drain` leaves an unphysical state in cell [6, 0, 2] of patch [1, 0, 1]",
                "it gives [",
                ", -",
            ],
        ),
        (
            Wrong::Split,
            [
                "`drain` leaves an unphysical state in cell [6, 0, 2] of patch [1, 0, 1]",
                "it gives [",
                ", -",
            ],
        ),
        (
            Wrong::Around,
            [
                "`drain_around` leaves an unphysical state in cell [6, 0, 2]",
                "it gives [",
                ", -",
            ],
        ),
        (
            Wrong::Flux,
            [
                "`carry` leaves an unphysical state in cell [0, 2, 0] of patch [0, 0, 0]",
                "it gives [",
                ", -",
            ],
        ),
    ] {
        for precision in ["run.precision=double", "run.precision=single"] {
            let alone = message(wrong, "run.device=cpu", precision);
            for word in words
                .iter()
                .chain(&[" on level 0, where `gas` is [", "at (x, y, z) = ["])
            {
                assert!(alone.contains(word), "{word} is missing: {alone}");
            }
            for (device, _) in places(&[], &[1]) {
                assert_eq!(alone, message(wrong, device, precision), "{device}");
            }
        }
    }
}
