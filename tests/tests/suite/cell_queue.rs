//! The queue of cells that are called again: counts of calls and transfers, and no cell lost when many threads append.

use super::device_runs::emulation;
use nestar::engine::device::ComputeDevice;
use nestar::prelude::*;
use nestar::stiff::{Budgets, DONE, RETRY, Subcycle, Subcycling};
use nestar::testing::same_bits;
use nestar_tests::Stepper;
use nestar_tests::decks::{BLAST, HALF, deck};
use std::sync::{Arc, Mutex};

/// The gas and eleven species.
#[device]
#[derive(Clone, Copy)]
struct Mixed<R: Real> {
    gas: Conserved<R>,
    species: [R; 11],
}

/// The remaining part of a step, and the current value of the first species.
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

/// Converts the first species into the last in several calls; only the last call changes the cell.
#[device]
fn turn<R: Real>(
    all: (Mixed<R>, R, Waits<R>),
    at: &Place<R>,
    p: &Rates<R>,
) -> Subcycle<Mixed<R>, Waits<R>, R> {
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
        status = RETRY;
    }
    Subcycle::<Mixed<R>, Waits<R>, R> {
        state: v,
        carried: after,
        sums: v.species[10] - u.species[10],
        status,
        work: at.index[1] % 2,
    }
}

/// A second field that the function reads.
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

/// Converts species, and accumulates the results of the calls.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<Vec<Given>>>);

impl Plugin for Turns {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.scalars(&SPECIES.map(|name| (name, 0.05)))
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Beside>(FieldSpec::cells(&["beside"]))?;
        sim.initial::<Beside, fill>([]);
        let components = sim.with_scalars(&SPECIES)?.components;
        let account = sim.register_budget("turned", &["mass"])?;
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
                  mut accounts: ResMut<Budgets>| {
                rows.choose(components);
                let tally = gas.iterate::<turn>(&rows, &beside, 9, &p);
                accounts.add(account, &tally);
                let work = tally.work().iter().sum();
                given
                    .lock()
                    .expect("no panic")
                    .push((tally.cells_per_round().to_vec(), work));
            },
        );
        Ok(())
    }
}

#[test]
fn many_queued_species_beside_other_fields_are_identical() {
    let app = App::default().always(Turns::default());
    let small = [
        HALF,
        "mesh.max_level=1",
        "hydro.scalars=[]",
        "initial.scalars={}",
        "run.precision=single",
    ];
    same_bits(&app, BLAST, &small, 2).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn queue_lengths_and_work_are_counted_and_tables_are_uploaded_once() {
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

/// A field whose cells all ask for another call.
struct Patient;

impl Field for Patient {
    const NAME: &'static str = "patient";
}

/// Asks for five calls, then returns 1; the carried values are never 1 before.
#[device]
fn wait<R: Real>(both: (R, R)) -> Subcycle<R, R, R> {
    let (u, calls) = both;
    let mut status = RETRY;
    if calls >= 8.0 {
        status = DONE;
    }
    Subcycle::<R, R, R> {
        state: u + 1.0,
        carried: calls + 2.0,
        sums: 1.0,
        status,
        work: 1,
    }
}

#[derive(Clone)]
struct Crowd;

impl Plugin for Crowd {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Patient>(FieldSpec::cells(&["patient"]))?;
        let attempts = Subcycling::of(5).account("patient", &["cells"]);
        sim.subcycle::<Patient, wait>(attempts, [])
    }
}

/// Regression: counters of the queue were not atomic, and no test ran blocks side by side, because a test has one thread, which runs them one
/// after the other.
#[test]
fn no_cell_is_lost_when_many_blocks_append_to_the_queue() {
    if !emulation() {
        return;
    }
    let settings = [
        "domain.cells=[64,64,32]",
        "mesh.max_level=0",
        "hydro.frozen=true",
        "time.max_step=0.1",
        "run.device=emulated",
        "run.threads=4",
    ];
    let sim = App::default()
        .always(Crowd)
        .simulation(deck(BLAST, &settings));
    let mut run = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    for step in 1..=3 {
        run.steps(1);
        // one for each volume: all cells are done, and none of them twice
        assert_eq!(run.columns(["patient_cells"]), [f64::from(step)]);
    }
}
