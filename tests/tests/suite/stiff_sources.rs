//! Stiff sources: cell functions that carry values from call to call, accumulate totals and set patch weights. Their queue is
//! tested in `cell_queue`.

use super::device_runs::emulation;
use nestar::entities::{Cost, Level};
use nestar::prelude::*;
use nestar::stiff::{CONTINUE, DONE, FAILED, RETRY, Subcycle, Subcycling};
use nestar::testing::same_bits;
use nestar_tests::Stepper;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::norms::totals;
use nestar_tests::ranks::on_ranks_of;

/// How far a cell has come in a step.
#[device]
#[derive(Clone, Copy)]
struct Progress<R: Real> {
    elapsed: R,
    lost: R,
    gained: R,
}

/// Heats and cools for a part of the step in which the gas loses a tenth of its heat; hot gas takes many of them.
#[device]
fn cool<R: Real>(
    both: (Conserved<R>, Progress<R>),
    at: &Place<R>,
    cooling: R,
    heating: R,
) -> Subcycle<Conserved<R>, Progress<R>, [R; 2]> {
    let (u, before) = both;
    let heat = internal_energy(u);
    let left = at.dt - before.elapsed;
    let part = (0.1 / (cooling * heat)).min(left);
    let (lost, gained) = (part * cooling * heat * heat, part * heating);
    let mut v = u;
    v.energy = u.energy - lost + gained;
    let after = Progress::<R> {
        elapsed: before.elapsed + part,
        lost: before.lost + lost,
        gained: before.gained + gained,
    };
    let mut status = DONE;
    if part < left {
        status = CONTINUE;
    }
    Subcycle::<Conserved<R>, Progress<R>, [R; 2]> {
        state: v,
        carried: after,
        sums: [after.lost, after.gained],
        status,
        work: 1,
    }
}

const ACCOUNT: Subcycling = Subcycling::of(1000).account("cooling", &["radiated", "heated"]);

/// Cooling with an account; as a source, with so much weight.
#[derive(Clone)]
struct Cools(f64);

impl Plugin for Cools {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.subcycle::<Gas, cool>(ACCOUNT.weight(self.0), [20.0, 0.5])
    }
}

#[test]
fn accumulators_are_identical_on_ranks_and_devices_and_after_a_restart() {
    let app = App::default().always(Cools(0.1));
    same_bits(&app, BLAST, &[HALF, "mesh.max_level=1"], 3).unwrap_or_else(|e| panic!("{e}"));
}

/// The totals of the account.
fn account(stepper: &mut Stepper) -> [f64; 2] {
    stepper.columns(["cooling_radiated", "cooling_heated"])
}

/// Whether the finer two levels, which have all leaves, have parts of a column, and these are the whole.
fn is_shared_by_levels(stepper: &mut Stepper, whole: f64, parts: [&str; 3]) -> bool {
    let parts @ [root, ..] = stepper.columns(parts);
    let sum: f64 = parts.iter().sum();
    root == 0.0 && parts[1..].iter().all(|part| *part > 0.0) && (sum / whole - 1.0).abs() < 1e-15
}

fn cooled(settings: &[&str]) -> Stepper {
    let sim = App::default()
        .always(Cools(0.0))
        .simulation(deck(BLAST, settings));
    Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn gas_energy_and_accumulated_losses_sum_to_a_constant() {
    let mut run = cooled(&["run.threads=3"]);
    let energy = |run: &mut Stepper| run.0.with(|sim| totals(sim))[4];
    let before = energy(&mut run);
    assert_eq!(account(&mut run), [0.0; 2]);
    run.steps(12);
    assert!(run.state().counts()[2] > 0, "nothing is refined twice");
    let [radiated, heated] = account(&mut run);
    assert!(
        radiated > 0.1 * before && heated > 0.0,
        "{radiated}, {heated} of {before}"
    );
    let of_levels = [
        "cooling_radiated_0",
        "cooling_radiated_1",
        "cooling_radiated_2",
    ];
    assert!(is_shared_by_levels(&mut run, radiated, of_levels));
    let of_levels = ["cooling_heated_0", "cooling_heated_1", "cooling_heated_2"];
    assert!(is_shared_by_levels(&mut run, heated, of_levels));
    let left = energy(&mut run) + radiated - heated;
    assert!((left / before - 1.0).abs() < 1e-12, "{left}, {before}");
    // threads change nothing
    let mut alone = cooled(&[]);
    alone.steps(12);
    assert_eq!(account(&mut alone), [radiated, heated]);
}

/// Costs of the patches of a level, and how many there are.
fn costs(stepper: &mut Stepper, of_level: u8) -> (Vec<f64>, usize) {
    let world = &mut stepper.0.engine().world;
    let mut patches = world.query::<(&Level, Option<&Cost>)>();
    let found = patches.iter(world).filter(|(level, _)| level.0 == of_level);
    let costs: Vec<Option<f64>> = found.map(|(_, cost)| cost.map(|cost| cost.0)).collect();
    (costs.iter().copied().flatten().collect(), costs.len())
}

#[test]
fn patch_weights_count_the_calls_of_their_cells() {
    let cool = |weight| {
        let build = |ranks| {
            let settings = ["mesh.max_level=1"];
            Simulation::with_ranks(deck(BLAST, &settings), ranks)?.add(Cools(weight))
        };
        on_ranks_of(2, build, |stepper| costs(stepper.steps(1), 1))
    };
    let ranks = cool(0.5);
    // one call a cell at least, and where it is hot more
    let mut all = ranks.iter().flat_map(|(costs, _)| costs);
    assert!(all.any(|cost| *cost > 1.6), "{ranks:?}");
    for (costs, patches) in ranks {
        assert!(
            patches > 0 && costs.len() == patches,
            "{} of {patches}",
            costs.len()
        );
        assert!(costs.iter().all(|cost| *cost >= 1.5), "{costs:?}");
        // a whole number of calls
        assert!(costs.iter().all(|cost| (cost - 1.0) * 1024.0 % 1.0 == 0.0));
    }
    assert!(cool(0.0).iter().all(|(costs, _)| costs.is_empty()));
}

/// Fails where the third call begins with what two have handed on, or gives what cannot be summed.
#[device]
fn breaks<R: Real>(
    both: (Conserved<R>, R),
    at: &Place<R>,
    fails: R,
) -> Subcycle<Conserved<R>, R, R> {
    let (u, calls) = both;
    let (mut status, mut sum) = (RETRY, calls);
    if at.index[0] + at.index[1] == 11 && calls >= 2.0 {
        status = DONE;
        sum = 1.0 / (calls - 2.0);
        if fails > 0.0 {
            status = FAILED;
        }
    } else if calls >= 4.0 {
        status = DONE;
    }
    Subcycle::<Conserved<R>, R, R> {
        state: u,
        carried: calls + 1.0,
        sums: sum,
        status,
        work: 0,
    }
}

struct Breaks(usize, f64);

impl Plugin for Breaks {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let attempts = Subcycling::of(self.0).account("broken", &["sum"]);
        sim.subcycle::<Gas, breaks>(attempts, [self.1])
    }
}

#[test]
fn cells_that_fail_late_or_return_nan_are_reported_on_host_and_device() {
    let message = |device, breaks| {
        let sim = nestar_tests::build(BLAST, &["mesh.max_level=0", device]).add(breaks);
        let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
        stepper.try_step().expect_err("a fault").to_string()
    };
    let cases = [
        (
            9,
            1.0,
            "`breaks` has failed in cell [7, 4, 0] of patch [0, 0, 0]",
        ),
        (
            9,
            0.0,
            "`breaks` gives inf to be summed as `broken_sum` in cell [7, 4, 0] of patch [0, 0, 0]",
        ),
        (
            2,
            1.0,
            "`breaks` is not done after 2 calls in cell [0, 0, 0] of patch [0, 0, 0]",
        ),
    ];
    for (calls, fails, expected) in cases {
        let found = message("run.device=cpu", Breaks(calls, fails));
        assert!(found.contains(expected), "{found}");
        assert!(found.contains(", with [2.0] from earlier calls"), "{found}");
        if emulation() {
            assert_eq!(found, message("run.device=emulated", Breaks(calls, fails)));
        }
    }
}

#[test]
fn mismatched_accumulators_are_refused() {
    struct Wrong(Subcycling);
    impl Plugin for Wrong {
        fn build(&self, sim: &mut Engine) -> Result<(), Error> {
            sim.subcycle::<Gas, cool>(self.0, [1.0, 1.0])
        }
    }
    let refused = |attempts| {
        let sim = nestar_tests::build(BLAST, &[]).add(Wrong(attempts));
        sim.map(|_| ()).expect_err("refused").to_string()
    };
    let why = refused(Subcycling::of(3).account("cooling", &["radiated"]));
    assert!(
        why.contains("`cool` returns 2 sums, but its account has 1"),
        "{why}"
    );
    let why = refused(Subcycling::of(3).account("cool/ing", &["a", "b"]));
    assert!(
        why.contains("a name has letters, digits and `_` only"),
        "{why}"
    );
    let twice = nestar_tests::build(BLAST, &[])
        .add(Cools(0.0))
        .and_then(|sim| sim.add(Cools(0.0)));
    let why = twice.map(|_| ()).expect_err("refused").to_string();
    assert!(why.contains("account_cooling"), "{why}");
}
