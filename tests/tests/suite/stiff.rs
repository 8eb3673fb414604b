//! Stiff sources: functions that hand numbers on from call to call, whose numbers are summed, and that weigh patches.

use super::device_runs::emulation;
use nestar::engine::device::ComputeDevice;
use nestar::prelude::*;
use nestar::testing::same_bits;
use nestar_tests::Stepper;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::norms::totals;
use nestar_tests::ranks::on_ranks_of;
use std::sync::{Arc, Mutex};

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
) -> Attempt<Conserved<R>, Progress<R>, [R; 2]> {
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
        status = UNFINISHED;
    }
    Attempt::<Conserved<R>, Progress<R>, [R; 2]> {
        state: v,
        carried: after,
        sums: [after.lost, after.gained],
        status,
        work: 1,
    }
}

const ACCOUNT: Attempts = Attempts::of(1000).account("cooling", &["radiated", "heated"]);

/// Cooling with an account; as a source, with so much weight.
#[derive(Clone)]
struct Cools(f64);

impl Plugin for Cools {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.attempts::<Gas, cool>(ACCOUNT.weight(self.0), [20.0, 0.5])
    }
}

#[test]
fn accounts_have_the_same_bits_on_ranks_and_devices_and_across_a_restart() {
    let app = App::default().always(Cools(0.1));
    same_bits(&app, BLAST, &[HALF, "mesh.max_level=1"], 3).unwrap_or_else(|e| panic!("{e}"));
}

/// The totals of the account.
fn account(stepper: &mut Stepper) -> [f64; 2] {
    stepper.columns(["cooling_radiated", "cooling_heated"])
}

fn cooled(settings: &[&str]) -> Stepper {
    let sim = App::default()
        .always(Cools(0.0))
        .simulation(deck(BLAST, settings));
    Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn total_energy_and_what_the_account_says_stay_constant() {
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
    let left = energy(&mut run) + radiated - heated;
    assert!((left / before - 1.0).abs() < 1e-12, "{left}, {before}");
    // threads change nothing
    let mut alone = cooled(&[]);
    alone.steps(12);
    assert_eq!(account(&mut alone), [radiated, heated]);
}

/// The gas and eleven species.
#[device]
#[derive(Clone, Copy)]
struct Mixed<R: Real> {
    gas: Conserved<R>,
    species: [R; 11],
}

/// What is left of a step, and the first of the species meanwhile.
#[device]
#[derive(Clone, Copy)]
struct Waits<R: Real> {
    calls: R,
    first: R,
}

#[device]
#[derive(Clone)]
struct Rates<R> {
    table: Table<R>,
    calls: R,
}

/// Turns the first species into the last in several calls, of which only the last one changes the cell.
#[device]
fn turn<R: Real>(
    all: (Mixed<R>, R, Waits<R>),
    at: &Place<R>,
    p: &Rates<R>,
) -> Attempt<Mixed<R>, Waits<R>, R> {
    let (u, other, before) = all;
    let mut first = u.species[0];
    if before.calls > 0.0 {
        first = before.first;
    }
    let rate = p.table.at(p.table.len() - 1) + other;
    let after = Waits::<R> {
        calls: before.calls + 1.0,
        first: first - rate * at.dt * first,
    };
    let mut v = u;
    v.species[0] = after.first;
    v.species[10] = u.species[10] + (u.species[0] - after.first);
    let mut status = DONE;
    if after.calls < p.calls + R::from_i32(at.index[0] % 3) {
        status = WAITING;
    }
    Attempt::<Mixed<R>, Waits<R>, R> {
        state: v,
        carried: after,
        sums: v.species[10] - u.species[10],
        status,
        work: at.index[1] % 2,
    }
}

/// A field that the function reads beside.
struct Beside;

impl Field for Beside {
    const NAME: &'static str = "beside";
}

#[device]
fn fill<R: Real>(_old: R, at: &Place<R>) -> R {
    at.centre[1]
}

const SPECIES: [&str; 11] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];

/// Cells called in each round, and the work of all patches.
type Given = (Vec<u64>, u32);

/// Turns species, and keeps what the calls gave.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<Vec<Given>>>);

impl Plugin for Turns {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.scalars(&SPECIES.map(|name| (name, 0.05)))
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Beside>(FieldSpec::cells(&["beside"]))?;
        sim.initial::<Beside, fill>([]);
        let (_, components) = sim.with_scalars(&SPECIES)?.parts();
        let account = sim.account("turned", &["mass"])?;
        let (given, table) = (self.0.clone(), vec![2.0; 125_000]);
        let p = Rates {
            table: Table::new(table),
            calls: 3.0,
        };
        sim.system_in(
            Advance::Sources,
            move |mut rows: LevelRows,
                  mut gas: Write<Gas>,
                  beside: Read<Beside>,
                  mut accounts: ResMut<Accounts>| {
                rows.choose(components);
                let tally = gas.map_attempts_with::<turn>(&rows, &[&beside], 9, &p);
                accounts.add(account, &tally);
                let work = tally.work().iter().sum();
                given
                    .lock()
                    .expect("no panic")
                    .push((tally.called().to_vec(), work));
            },
        );
        Ok(())
    }
}

#[test]
fn many_species_wait_beside_other_fields_with_the_same_bits() {
    let app = App::default().always(Turns::default());
    let small = [
        HALF,
        "mesh.max_level=1",
        "hydro.scalars=[]",
        "initial.scalars={}",
    ];
    same_bits(&app, BLAST, &small, 2).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn queues_and_work_are_counted_and_tables_travel_once() {
    let mut accounts = Vec::new();
    for (device, queue) in [
        ("run.device=cpu", "run.queue=true"),
        ("run.device=emulated", "run.queue=true"),
        ("run.device=emulated", "run.queue=false"),
    ] {
        if device.ends_with("emulated") && !emulation() {
            return;
        }
        let turns = Turns::default();
        let small = [
            HALF,
            "mesh.max_level=0",
            "hydro.scalars=[]",
            "initial.scalars={}",
            device,
            queue,
        ];
        let sim = App::default()
            .always(turns.clone())
            .simulation(deck(BLAST, &small));
        let mut run = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
        let mut bytes = Vec::new();
        for _ in 0..3 {
            run.steps(1);
            let device = run.0.engine().world.resource::<ComputeDevice>();
            bytes.push(device.device.as_ref().map_or(0, |d| d.counters().bytes_up));
        }
        // columns of 3, 4 and 5 calls, of 6, 5 and 5 columns
        let mut expected = vec![2048, 2048, 2048, 10 * 128, 5 * 128];
        if queue.ends_with("false") {
            expected.truncate(1);
        }
        let given = turns.0.lock().expect("no panic").clone();
        assert_eq!(given.len(), 3);
        for (called, work) in given {
            assert_eq!(called, expected);
            // every second plane of cells tells each of its calls
            assert_eq!(work, 1024 * 3 + 15 * 64);
        }
        let more = bytes[2] - bytes[1];
        assert!(more < 100_000, "{more} bytes go to the device in a step");
        let [mass] = run.columns(["turned_mass"]);
        accounts.push((mass.to_bits(), run.state()));
        let last = accounts.len() - 1;
        assert_eq!(accounts[last].0, accounts[0].0);
        assert_eq!(
            accounts[0].1.difference(&accounts[last].1),
            None,
            "{device} {queue}"
        );
    }
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
fn patches_weigh_what_their_cells_are_called() {
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
) -> Attempt<Conserved<R>, R, R> {
    let (u, calls) = both;
    let (mut status, mut sum) = (WAITING, calls);
    if at.index[0] + at.index[1] == 11 && calls >= 2.0 {
        status = DONE;
        sum = 1.0 / (calls - 2.0);
        if fails > 0.0 {
            status = FAILED;
        }
    } else if calls >= 4.0 {
        status = DONE;
    }
    Attempt::<Conserved<R>, R, R> {
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
        let attempts = Attempts::of(self.0).account("broken", &["sum"]);
        sim.attempts::<Gas, breaks>(attempts, [self.1])
    }
}

#[test]
fn cells_that_fail_later_or_give_no_sum_are_named_on_both_devices() {
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
            "`breaks` gives numbers to be summed that are not finite in cell [7, 4, 0] of patch [0, 0, 0]",
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
fn accounts_that_do_not_fit_are_refused() {
    struct Wrong(Attempts);
    impl Plugin for Wrong {
        fn build(&self, sim: &mut Engine) -> Result<(), Error> {
            sim.attempts::<Gas, cool>(self.0, [1.0, 1.0])
        }
    }
    let refused = |attempts| {
        let sim = nestar_tests::build(BLAST, &[]).add(Wrong(attempts));
        sim.map(|_| ()).expect_err("refused").to_string()
    };
    let why = refused(Attempts::of(3).account("cooling", &["radiated"]));
    assert!(
        why.contains("`cool` gives 2 numbers to be summed, its account names 1"),
        "{why}"
    );
    let why = refused(Attempts::of(3).account("cool/ing", &["a", "b"]));
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
