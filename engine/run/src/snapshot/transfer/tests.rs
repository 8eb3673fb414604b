//! Tests of snapshots that are transferred from a device while the run continues.

use super::{Contents, Pipeline, SnapshotSink, TransferState, TransferThread, start_transfer};
use crate::snapshot::ShardRange;
use nestar_deck::Deck;
use nestar_engine_data::{Element, Field, FieldSpec, Pool, Precision, Stores};
use nestar_engine_device::{ComputeDevice, Device, DeviceKind, buffer_bytes};
use nestar_engine_mesh::{Changes, Topology};
use nestar_engine_step::config::MeshSettings;
use nestar_engine_step::{Engine, Error, regrid};
use nestar_kernels::CELLS;
use nestar_snapshot::{LEAF, ORIGIN, Snapshot, Values};
use std::sync::{Arc, Mutex};

const NAMES: [&str; 3] = ["a", "b", "c"];

struct Dust;

impl Field for Dust {
    const NAME: &'static str = "dust";
}

/// Returns values that identify a level and a time.
fn values<R: Element>(rows: usize, level: usize, time: usize) -> Vec<R> {
    let seed = 0.125 * (level + 7 * time) as f64;
    let numbers = 0..rows * NAMES.len() * CELLS;
    numbers
        .map(|n| R::lit(seed + (n % 100_003) as f64))
        .collect()
}

/// Sets all cells to the values of a time.
fn fill<R: Element>(sim: &mut Engine, time: usize) {
    for level in 0..2 {
        let rows = sim.world.resource::<Topology>().rows(level).to_vec();
        let values = values::<R>(rows.len(), level, time);
        let pool = Pool::<Dust>::of_mut(&mut sim.world);
        let stored = pool.store(level, &rows, &values);
        stored.unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Creates a simulation on the device `kind` with two levels of more than one shard each, at time 1; `None`
/// without such a device.
fn run<R: Element>(kind: DeviceKind, settings: &str) -> Option<(Engine, Device)> {
    if let Err(why) = Device::open(kind) {
        println!("skipped: {why}");
        return None;
    }
    let single = R::PRECISION == Precision::Single;
    let text = format!(
        "[domain]\ncells = [88, 80, 80]\n[run]\ndevice = \"{}\"\nprecision = \"{}\"\n{settings}",
        if kind == DeviceKind::Cuda {
            "cuda"
        } else {
            "emulated"
        },
        if single { "single" } else { "double" },
    );
    let deck = Deck::parse("transfer", &text).unwrap_or_else(|e| panic!("{e}"));
    let mesh = MeshSettings {
        max_level: 1,
        regrid_interval: vec![1; 2],
        flag_buffer: vec![0],
    };
    let mut sim = Engine::new(deck, mesh).unwrap_or_else(|e| panic!("{e}"));
    let device = sim.world.resource::<ComputeDevice>().device.clone()?;
    let registered = sim.register_field::<Dust>(FieldSpec {
        banks: 2,
        ..FieldSpec::cells(&NAMES)
    });
    registered.unwrap_or_else(|e| panic!("{e}"));
    regrid::create_root(&mut sim.world);
    let changes = Changes {
        refine: sim.world.resource::<Topology>().rows(0)[..140].to_vec(),
        coarsen: Vec::new(),
    };
    regrid::apply(&mut sim.world, 0, &changes);
    fill::<R>(&mut sim, 1);
    Some((sim, device))
}

/// A shard: level, array, first patch, values.
type Shard = (usize, String, usize, Values);

/// Collects what is pushed; blocks while its gate is locked.
struct Store {
    shards: [usize; 2],
    gate: Arc<Mutex<()>>,
    got: Arc<Mutex<Vec<Shard>>>,
    /// Number of shards after which it fails.
    most: usize,
}

impl Store {
    fn of(sim: &Engine) -> Self {
        let topology = sim.world.resource::<Topology>();
        Self {
            shards: [0, 1].map(|level| Snapshot::shard_patches(topology.rows(level).len())),
            gate: Arc::default(),
            got: Arc::default(),
            most: usize::MAX,
        }
    }
}

impl SnapshotSink for Store {
    type Stored = ();

    fn range(&self, level: usize) -> ShardRange {
        ShardRange {
            sent: 0,
            receiver: 0,
            first: 0,
            end: usize::MAX,
            shard: self.shards[level],
        }
    }

    fn push(
        &mut self,
        level: usize,
        array: &str,
        first: usize,
        values: Values,
    ) -> Result<(), Error> {
        drop(self.gate.lock());
        let mut got = self.got.lock().expect("no panic");
        if got.len() >= self.most {
            return Err(Error::Snapshot("the disk is full".into()));
        }
        got.push((level, array.into(), first, values));
        Ok(())
    }

    fn complete(self) -> Result<(), Error> {
        Ok(())
    }
}

/// Starts the transfer of the present state.
fn send(sim: &Engine, device: &Device, store: Store) -> TransferState<Store> {
    let fields = sim.world.resource::<Stores>().all();
    start_transfer(sim, device, &fields, store).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the transfer in progress, if the device has memory for a copy.
fn in_progress(state: TransferState<Store>) -> TransferThread<()> {
    match state {
        TransferState::InProgress(transfer) => transfer,
        TransferState::Done(_) => panic!("there is memory for a copy"),
    }
}

/// Checks that the received shards are the whole state of `time`, with `patches` patches per level.
fn check<R: Element>(got: &[Shard], patches: [usize; 2], time: usize) {
    let shard = patches.map(Snapshot::shard_patches);
    let mut expected = 0;
    for level in 0..2 {
        let values = values::<R>(patches[level], level, time);
        for first in (0..patches[level]).step_by(shard[level]) {
            let rows = first..patches[level].min(first + shard[level]);
            for (c, name) in NAMES.into_iter().chain([ORIGIN, LEAF]).enumerate() {
                let mut found = got
                    .iter()
                    .filter(|s| (s.0, &*s.1, s.2) == (level, name, first));
                let (Some(found), None) = (found.next(), found.next()) else {
                    panic!("level {level}, {name}, {first}: not there, or more than once")
                };
                expected += 1;
                if c < NAMES.len() {
                    let cells = |row: usize| (row * NAMES.len() + c) * CELLS..;
                    let wanted = rows.clone().flat_map(|row| &values[cells(row)][..CELLS]);
                    let bytes: Vec<u8> = wanted.flat_map(bytemuck::bytes_of).copied().collect();
                    assert!(found.3.bytes() == bytes, "level {level}, {name}, {first}");
                }
            }
        }
    }
    assert_eq!(got.len(), expected);
}

fn patches(sim: &Engine) -> [usize; 2] {
    [0, 1].map(|level| sim.world.resource::<Topology>().rows(level).len())
}

const KINDS: [DeviceKind; 2] = [DeviceKind::Emulated, DeviceKind::Cuda];

fn state_of_its_own_time<R: Element>() {
    for kind in KINDS {
        let Some((mut sim, device)) = run::<R>(kind, "") else {
            continue;
        };
        let store = Store::of(&sim);
        let (gate, got, before) = (store.gate.clone(), store.got.clone(), patches(&sim));
        let closed = gate.lock().expect("no panic");
        let transfer = in_progress(send(&sim, &device, store));
        let taken = sim.world.resource::<Topology>().rows(0)[..140].to_vec();
        let changes = Changes {
            refine: Vec::new(),
            coarsen: taken,
        };
        // the run continues before any value of the snapshot has arrived
        for time in 2..5 {
            fill::<R>(&mut sim, time);
        }
        regrid::apply(&mut sim.world, 0, &changes);
        fill::<R>(&mut sim, 5);
        assert!(got.lock().expect("no panic").is_empty() && !transfer.is_over());
        drop(closed);
        transfer.wait().unwrap_or_else(|e| panic!("{e}"));
        check::<R>(&got.lock().expect("no panic"), before, 1);
        // the next snapshot reuses the page-locked memory
        let (store, locked) = (Store::of(&sim), device.staging_bytes());
        let got = store.got.clone();
        let result = in_progress(send(&sim, &device, store)).wait();
        result.unwrap_or_else(|e| panic!("{e}"));
        check::<R>(&got.lock().expect("no panic"), patches(&sim), 5);
        assert_eq!(device.staging_bytes(), locked);
    }
}

#[test]
fn a_snapshot_holds_the_state_of_its_own_time_while_the_run_goes_on() {
    state_of_its_own_time::<f64>();
    state_of_its_own_time::<f32>();
}

#[test]
fn without_memory_for_a_copy_the_state_is_transferred_by_shard() {
    for kind in KINDS {
        for (buffer, depth) in [(64, 4), (1, 2)] {
            // the fields take 55 MiB, a copy of the present state 27 MiB
            let settings = format!("memory_limit = 60\n[output]\nbuffer = {buffer}\n");
            let Some((mut sim, device)) = run::<f64>(kind, &settings) else {
                continue;
            };
            let fields = sim.world.resource::<Stores>().all();
            let contents = Contents::of(&sim, &fields, &Store::of(&sim));
            let pipeline = Pipeline::new(&sim, &device, contents.largest());
            assert_eq!(pipeline.map(|one| one.depth()).ok(), Some(depth));
            let locked = device.staging_bytes();
            for time in 1..3 {
                fill::<f64>(&mut sim, time);
                let TransferState::Done(store) = send(&sim, &device, Store::of(&sim)) else {
                    panic!("there is no memory for a copy");
                };
                check::<f64>(&store.got.lock().expect("no panic"), patches(&sim), time);
                assert!(
                    device.staging_bytes() <= locked + depth * buffer_bytes(contents.largest())
                );
            }
        }
    }
}

#[test]
fn a_failing_sink_ends_the_transfer_and_frees_the_device() {
    for kind in KINDS {
        let Some((sim, device)) = run::<f64>(kind, "") else {
            continue;
        };
        for most in [0, 5, 9] {
            let store = Store {
                most,
                ..Store::of(&sim)
            };
            let result = in_progress(send(&sim, &device, store)).wait();
            let error = result.expect_err("the sink is full").to_string();
            assert!(error.contains("disk is full"), "{error}");
            let free = |device: &Device| device.memory().expect("numbers").free;
            assert!(device.transient_buffer::<u8>(1 << 20).is_ok() && free(&device) > 0);
        }
        let limited = run::<f64>(kind, "memory_limit = 60\n");
        let Some((sim, device)) = limited else {
            continue;
        };
        let store = Store {
            most: 9,
            ..Store::of(&sim)
        };
        let fields = sim.world.resource::<Stores>().all();
        let failed = start_transfer(&sim, &device, &fields, store).map(|_| ());
        assert!(failed.is_err_and(|e| e.to_string().contains("disk is full")));
    }
}

#[test]
fn dropping_a_transfer_waits_for_it() {
    let Some((sim, device)) = run::<f64>(DeviceKind::Emulated, "") else {
        return;
    };
    let store = Store::of(&sim);
    let (got, patches) = (store.got.clone(), patches(&sim));
    let transfer = in_progress(send(&sim, &device, store));
    // the fields and the rest of the run may be dropped first
    drop((sim, device));
    drop(transfer);
    check::<f64>(&got.lock().expect("no panic"), patches, 1);
}
