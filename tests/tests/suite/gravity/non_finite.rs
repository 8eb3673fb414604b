//! Values that are not finite in the sources of gravity are reported with their cell.

use super::{LUMP, OUTFLOW};
use crate::device_runs::places;
use nestar::prelude::*;
use nestar::systems::fields::Matter;
use nestar_tests::{Stepper, build};

/// Dark matter whose density is NaN in one cell of a level.
struct Hole {
    level: i32,
}

#[device]
fn hole<R: Real>(there: R, at: &Place<R>, level: R) -> R {
    let here = at.index[0] == 13 && at.index[1] == 18 && at.index[2] == 12;
    if here && R::from_i32(at.level) == level {
        R::NAN
    } else {
        there
    }
}

impl Plugin for Hole {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let level = f64::from(self.level);
        let source = move |In(of): In<usize>,
                           mut rows: LevelRows,
                           mut matter: Write<Matter>|
              -> Result<(), Error> {
            rows.visit(of);
            matter.update::<hole>(&rows, (), &[level]);
            Ok(())
        };
        sim.gravity_source(source);
        Ok(())
    }
}

/// The message of a run with a hole, from its beginning or its first steps.
fn message(level: i32, settings: &[&str]) -> String {
    let sim = build(LUMP, settings).add(Hole { level });
    let begun = Stepper::begin(sim.unwrap_or_else(|e| panic!("{e}")));
    let ended = begun.and_then(|mut stepper| stepper.try_step().map(|_| ()));
    ended.expect_err("a fault").to_string()
}

#[test]
fn a_nan_density_is_reported_with_its_cell() {
    let cases = [
        ["run.device=cpu", "run.precision=double"],
        ["run.device=cpu", "run.precision=single"],
    ];
    let devices = places(&[], &[1]).into_iter();
    let devices = devices.map(|(device, _)| [device, "run.precision=double"]);
    for [device, precision] in cases.into_iter().chain(devices) {
        let found = message(1, &[OUTFLOW, precision, device]);
        let words = "the total density of matter is NaN in cell [5, 2, 4] of patch [1, 2, 1] on level 1 at (x, y, z) = \
                     [0.421875, 0.578125, 0.390625], t = 0: check";
        assert!(found.contains(words), "{device}: {found}");
    }
}

/// Sums that overflow make the potential non-finite although every density is finite.
#[test]
fn a_nan_potential_is_reported_with_its_cell() {
    for (device, _) in places(&[1], &[1]) {
        let settings = ["gravity.constant=1e308", device];
        let begun = Stepper::begin(build(LUMP, &settings));
        let ended = begun.and_then(|mut stepper| stepper.try_step().map(|_| ()));
        let found = ended.expect_err("a fault").to_string();
        for words in [
            "the gravitational potential is ",
            "in cell [0, 0, 0] of patch [0, 0, 0] on level 0",
            "choose units in which",
        ] {
            assert!(found.contains(words), "{device}: {found}");
        }
    }
}
