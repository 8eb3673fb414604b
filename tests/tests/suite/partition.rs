//! The partition of a hierarchy: tables on devices, parts of the work, and the predictions of `nestar plan`.

use nestar::engine::comm::estimate::{
    DataSizes, LevelLoad, MessageCount, PartitionEstimate, TreeOutline,
};
use nestar::engine::comm::{Connection, ExchangePlans, Halos};
use nestar::engine::data::device::DeviceTopology;
use nestar::engine::mesh::{HilbertPartition, Topology};
use nestar::kernels::mesh::{COARSER, OUTSIDE};
use nestar_tests::Stepper;
use nestar_tests::ranks::on_ranks;

/// Gas at rest, refined in a ball that flies through the box: every regrid moves patches, and now and then their owners.
const FLYING: &str = r#"
scenario = "formula"
[initial]
density = "1"
pressure = "1"
[domain]
cells = [32, 32, 32]
[time]
end = 10.0
max_step = 0.002
[mesh]
max_level = 2
regrid_interval = 1
flag_buffer = 0
[[mesh.refine]]
criterion = "formula"
when = "(x - 0.2 - 20*t)^2 + (y - 0.4 - 10*t)^2 + (z - 0.5)^2 < 0.03"
"#;

/// The tables on the device are the host's, for every row held; how many there are.
fn same_tables(stepper: &mut Stepper) -> usize {
    let world = &stepper.0.engine().world;
    let topology = world.resource::<Topology>();
    let tables = world.resource::<DeviceTopology>();
    for level in 0..=topology.max_level {
        assert_eq!(tables.count(level), topology.rows(level).len());
    }
    let used = |row: &u32| topology.level(*row).is_some();
    let rows: Vec<u32> = (0..topology.capacity() as u32).filter(used).collect();
    for &row in &rows {
        let neighbours = topology.neighbours(row);
        let codes = i32::from(neighbours.contains(&COARSER))
            + 2 * i32::from(neighbours.contains(&OUTSIDE))
            + 4 * i32::from(!topology.is_owned(row));
        let [x, y, z] = topology.index(row);
        let level = topology.level(row).expect("the row is in use") as i32;
        let (around, parent, child, index) = tables.row(row).expect("the device gives its tables");
        assert_eq!(around[..27], neighbours[..], "row {row} of level {level}");
        assert_eq!(around[27], codes, "row {row} of level {level}");
        assert_eq!(parent, topology.parent_table()[row as usize]);
        assert_eq!(u32::try_from(child).ok(), topology.first_child(row));
        assert_eq!(child == -1, topology.is_leaf(row));
        assert_eq!(index, [x, y, z, level]);
    }
    rows.len()
}

#[test]
fn patch_tables_on_devices_match_those_of_the_ranks() {
    if !crate::device_runs::emulation() {
        return;
    }
    for (size, walls) in [
        (2, "domain.boundary=periodic"),
        (3, "domain.boundary=outflow"),
    ] {
        let settings = ["run.device=emulated", "run.imbalance=1.0", walls];
        let held = on_ranks(size, FLYING, &settings, |stepper| {
            let mut held = vec![same_tables(stepper)];
            for _ in 0..6 {
                stepper.steps(1);
                held.push(same_tables(stepper));
            }
            held
        });
        let changes = |held: &Vec<usize>| held.windows(2).any(|pair| pair[0] != pair[1]);
        assert!(held.iter().any(changes), "nothing has moved: {held:?}");
    }
}

/// Work of a patch without a cost of its own, in units of 1/64 of a cell.
const PATCH_WORK: u64 = 512 * 64;

/// Work of each level by the ranks' own patches, and as all ranks know it: of all, and of the busiest.
#[test]
fn all_ranks_know_the_largest_load() {
    let size = 5;
    let parts = on_ranks(size, FLYING, &[], |stepper| {
        let by_step = (0..6).map(|_| {
            stepper.steps(1);
            let topology = stepper.0.engine().world.resource::<Topology>();
            let level = |level| {
                let work = topology.work(level);
                (
                    topology.rows(level).len() as u64 * PATCH_WORK,
                    [work.all, work.busiest],
                )
            };
            [0, 1, 2].map(level)
        });
        by_step.collect::<Vec<_>>()
    });
    for step in 0..6 {
        for level in 0..3 {
            let own = || parts.iter().map(|part| part[step][level].0);
            let expected = [own().sum(), own().max().unwrap_or(0)];
            for part in &parts {
                assert_eq!(part[step][level].1, expected, "level {level}, step {step}");
            }
        }
    }
}

#[test]
fn the_imbalance_of_steps_counts_the_busiest_rank_of_each() {
    let uniform = ["mesh.max_level=0"];
    for (size, imbalance) in [(1, 0.0), (2, 0.0), (3, 22.0 * 3.0 / 64.0 - 1.0)] {
        let work = on_ranks(size, FLYING, &uniform, |stepper| {
            stepper.steps(2);
            stepper.counters().work
        });
        for work in work {
            assert_eq!(work.all, 2 * 64 * PATCH_WORK);
            assert_eq!(work.imbalance(size), imbalance, "{size} ranks");
        }
    }
}

/// What a rank has: where the levels are cut, and by level what a forecast tells, with the flux faces that come in.
fn held(stepper: &mut Stepper) -> (HilbertPartition, Vec<LevelLoad>) {
    let world = &stepper.0.engine().world;
    let (topology, shares) = (
        world.resource::<Topology>(),
        world.resource::<ExchangePlans>(),
    );
    let flow = |messages: usize, items: usize| MessageCount {
        messages: messages as u64,
        items: items as u64,
        cells: 0,
    };
    let load = |level: usize| {
        let mut load = LevelLoad {
            patches: topology.rows(level).len() as u64,
            work: topology.rows(level).len() as u64 * PATCH_WORK,
            stored_rows: 8 * topology.octets(level).len() as u64,
            ..LevelLoad::default()
        };
        let plans = [&shares.halo[level], &shares.averages[level]];
        for (traffic, plan) in [&mut load.halo, &mut load.averages].into_iter().zip(plans) {
            traffic.sent = flow(plan.sends.len(), plan.sent());
            traffic.received = flow(plan.receives.len(), plan.received());
        }
        let faces = &shares.faces[level];
        let count = |lists: &[(usize, Vec<_>)]| lists.iter().map(|(_, faces)| faces.len()).sum();
        load.fluxes.sent = flow(faces.sends.len(), count(&faces.sends));
        load.fluxes.received = flow(faces.receives.len(), count(&faces.receives));
        load
    };
    let loads = (0..=topology.finest()).map(load).collect();
    (topology.partition().clone(), loads)
}

/// Counts of rows and faces, without the cells that are needed of them.
fn counted(load: &LevelLoad) -> LevelLoad {
    let mut load = *load;
    for traffic in [&mut load.halo, &mut load.averages, &mut load.fluxes] {
        (traffic.sent.cells, traffic.received.cells) = (0, 0);
    }
    load
}

#[test]
fn a_plan_predicts_the_patches_of_all_ranks() {
    let mut alone = Stepper::new(FLYING, &[]);
    alone.steps(5);
    let outline = TreeOutline::of(alone.0.engine().world.resource::<Topology>());
    assert_eq!(outline.levels(), 3);
    for size in [2, 3, 7] {
        let ranks = on_ranks(size, FLYING, &[], |stepper| held(stepper.steps(5)));
        let estimate = PartitionEstimate::with_cuts(&outline, ranks[0].0.clone(), 3);
        for (rank, (cuts, loads)) in ranks.iter().enumerate() {
            assert_eq!(cuts, &ranks[0].0, "all ranks have the same cuts");
            let foretold: Vec<LevelLoad> = estimate.rank(rank).iter().map(counted).collect();
            assert_eq!(&foretold, loads, "rank {rank} of {size}");
        }
        // the ranks are as busy as the run says
        let imbalance = estimate.imbalance();
        assert!(
            (0.0..0.3).contains(&imbalance),
            "{imbalance} on {size} ranks"
        );
    }
}

/// Bytes that a rank has sent and received so far.
fn travelled(stepper: &mut Stepper) -> [u64; 2] {
    let world = &stepper.0.engine().world;
    let counters = world
        .resource::<Halos>()
        .counters(world.get_resource::<Connection>());
    [counters.bytes_sent, counters.bytes_received]
}

#[test]
fn a_plan_predicts_the_bytes_sent() {
    let (steady, halved) = ("mesh.regrid_interval=100", "time.levels=halved");
    let mut alone = Stepper::new(FLYING, &[steady, halved]);
    alone.steps(1);
    let world = &alone.0.engine().world;
    let (sizes, layers) = DataSizes::of(world);
    let outline = TreeOutline::of(world.resource::<Topology>());
    assert_eq!(outline.levels(), 3);
    for (size, device) in [(2, "cpu"), (3, "cpu"), (7, "cpu"), (3, "emulated")] {
        if device == "emulated" && !crate::device_runs::emulation() {
            continue;
        }
        let device = format!("run.device={device}");
        let ranks = on_ranks(size, FLYING, &[steady, halved, &device], |stepper| {
            let before = travelled(stepper.steps(2));
            let after = travelled(stepper.steps(1));
            assert_eq!(stepper.counters().level_steps, 3 * (1 + 2 + 4));
            (held(stepper).0, [0, 1].map(|way| after[way] - before[way]))
        });
        let estimate = PartitionEstimate::with_cuts(&outline, ranks[0].0.clone(), layers);
        for (rank, (_, found)) in ranks.iter().enumerate() {
            let levels = (0..estimate.levels).map(|level| {
                let traffic = estimate.traffic(rank, level, &sizes);
                traffic.map(|way| way.bytes << level)
            });
            let foretold = levels.fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
            assert_eq!(&foretold, found, "rank {rank} of {size}, {device}");
        }
    }
}
