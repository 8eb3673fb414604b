//! Tests of circulation registers: a vector on faces that changes by a curl on all levels, each with steps of its own, keeps
//! its divergence.

use super::faces::{
    Flow, LEVELS, MAX_LEVEL, Mesh, ROW, VALUES, divergence_in, number, oblong, place_in_row, pool,
    round_off,
};
use super::{Index, Step, ThreadRank, random_changes, rounds};
use crate::Ranks;
use crate::exchange::{mark_new_patches, refresh_halo, send_averages_and_fluxes};
use crate::hierarchy::ExchangePlans;
use crate::regrid::{apply_changes, create_root};
use crate::shared_values::unequal_shared_values;
use bevy_ecs::prelude::*;
use nestar_device::{Address, Number, device};
use nestar_engine_data::device::DeviceTopology;
use nestar_engine_data::operators::{correct, restrict, unify_shared_values};
use nestar_engine_data::{
    Correct, Element, FaultBox, LevelView, MeshContext, ParticleKinds, Pool, PoolResource, Stores,
};
use nestar_engine_device::{ComputeDevice, Device, DeviceKind, Kernel, LaunchShape};
use nestar_engine_mesh::patch::PatchComponents;
use nestar_engine_mesh::{Clock, Domain, LevelClock, Levels, NewRows, RefineRequests, Topology};
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::circulations::circulated;
use nestar_kernels::mesh::device::CIRCULATIONS;
use nestar_kernels::mesh::parameters::CirculationRegisterView;
use std::collections::{BTreeMap, BTreeSet};

/// Steps of a level within one of the coarser level, as parts of its length.
const PARTS: [f64; 3] = [0.5, 0.3, 0.2];

/// A mesh on which circulations are random numbers of place, level and step.
struct Flowing {
    mesh: Mesh,
    /// `false` to leave out the correction: a control.
    corrects: bool,
    /// Records circulations on the device, if the values are there.
    recorder: Option<Recorder>,
}

/// Records the circulations of all patches of a level.
const RECORD: &str = "
KERNEL(record_edges, EDGES_OF_ROWS<mesh::REAL>) {
  constexpr int ROW = mesh::COMPONENTS * mesh::EDGES;
  const mesh::REAL* edges = p.edges + (rs::i64)launch::block() * ROW;
  mesh::store_circulations(p.registers, p.rows[launch::block()], edges, mesh::EDGES);
}
";

/// Parameters of the kernel.
#[device]
struct EdgesOfRows<R> {
    registers: CirculationRegisterView<R>,
    rows: Address<i32>,
    edges: Address<R>,
}

/// The kernel on its device.
struct Recorder {
    device: Device,
    kernel: Kernel,
}

impl Recorder {
    fn new(pool: &Pool<Flow>, device: &Device) -> Self {
        let kernel = RECORD.replace("EDGES_OF_ROWS", &EdgesOfRows.path());
        let text = pool
            .device()
            .program(&[EdgesOfRows], &[CIRCULATIONS, &kernel]);
        let module = device.compile("edges", &text).unwrap();
        Self {
            device: device.clone(),
            kernel: module.kernel("record_edges").unwrap(),
        }
    }

    /// Records circulations along the edges of all patches of a level, `[row][component][648]`.
    fn record<R: Element>(
        &self,
        pool: &Pool<Flow>,
        tables: &DeviceTopology,
        level: usize,
        edges: &[R],
    ) {
        let values = self.device.buffer(edges.len()).unwrap();
        self.device.upload(&values, 0, edges).unwrap();
        let parameters = EdgesOfRows::<Number> {
            registers: pool.device().circulation_view(level),
            rows: tables.rows(level).into(),
            edges: values.address().into(),
        };
        let shape = LaunchShape::of(tables.count(level), 64);
        self.device
            .launch(&self.kernel, shape, &parameters)
            .unwrap();
    }
}

/// Records circulations as [`Recorder::record`] on the host.
fn record_on_host<R: Element>(pool: &Pool<Flow>, rows: &[u32], level: usize, edges: &[R]) {
    for (edges, &row) in edges.chunks_exact(3 * Centring::Edge.values()).zip(rows) {
        // SAFETY: one thread records row after row.
        unsafe { pool.typed::<R>().circulations.record(level, row, edges) };
    }
}

/// Returns the values on the edges of a row, `[component][648]`.
fn edges<R: Element>(topology: &Topology, level: usize, row: u32, step: i32) -> Vec<R> {
    let values = Centring::Edge.values();
    let (origin, cells) = (topology.origin(row), topology.domain.cells(level));
    let value = |n: usize| {
        let c = n / values;
        let [x, y, _] = Centring::Edge.lengths(c, [8; 3]);
        let at = [n % values % x, n % values / x % y, n % values / (x * y)];
        let place = [0, 1, 2].map(|a| (origin[a] + at[a] as i32).rem_euclid(cells[a]));
        let words = [step, level as i32, c as i32, place[0], place[1], place[2]];
        R::lit(number(&words))
    };
    (0..3 * values).map(value).collect()
}

/// Returns the faces of a row after a step by the curl of `edges`.
fn after_step<R: Element>(values: &[R], edges: &[R], rate: [R; 3]) -> Vec<R> {
    let edge = |c: usize, at| edges[c * Centring::Edge.values() + Centring::Edge.index(c, at)];
    let face = |n: usize| {
        let (c, at) = place_in_row(n);
        let [b, e] = [(c + 1) % 3, (c + 2) % 3];
        let both = |along: usize, across: usize| {
            let mut above = at;
            above[across] += 1;
            [edge(along, at), edge(along, above)]
        };
        circulated(values[n], &both(b, e), &both(e, b), &[rate[b], rate[e]])
    };
    (0..ROW).map(face).collect()
}

/// A mesh whose levels are advanced.
trait Levelled<R> {
    /// Returns the time of `level`.
    fn time(&self, level: usize) -> f64;
    /// Returns `true` if there are patches of `level` on any rank.
    fn exists(&self, level: usize) -> bool;
    /// Makes a step of `level` to `time`.
    fn step(&mut self, level: usize, time: f64);
    /// Synchronises `level` with the finer one after a step of length `dt`.
    fn synchronise(&mut self, level: usize, dt: f64);
}

/// Advances `level` and all finer ones to `until`, in steps that are `parts` of the time.
fn advance<R>(mesh: &mut impl Levelled<R>, level: usize, until: f64, parts: &[f64]) {
    let begin = mesh.time(level);
    for (n, part) in parts.iter().enumerate() {
        let now = mesh.time(level);
        let time = match n + 1 == parts.len() {
            true => until,
            false => now + part * (until - begin),
        };
        mesh.step(level, time);
        if level < MAX_LEVEL && mesh.exists(level + 1) {
            advance(mesh, level + 1, time, &PARTS);
            mesh.synchronise(level, time - now);
        }
    }
}

/// Makes a step of `level` to `time` by the curl of [`edges`]; `record` stores them in the registers.
fn step<R: Element>(
    pool: &mut Pool<Flow>,
    topology: &Topology,
    levels: &mut Levels,
    (level, time): (usize, f64),
    record: impl FnOnce(&Pool<Flow>, &[R]),
) {
    let clock = levels.clock(level);
    let dt = time - clock.time;
    let rate = topology.domain.cell_width(level);
    let rate = rate.map(|w| R::lit(dt / w));
    let rows = topology.rows(level);
    let before = pool.host::<R>(level, rows).unwrap();
    let number = clock.steps as i32;
    let of_row = |&row: &u32| edges::<R>(topology, level, row, number);
    let edges: Vec<R> = rows.iter().flat_map(of_row).collect();
    record(pool, &edges);
    let edges = edges.chunks_exact(3 * Centring::Edge.values());
    let each = before.chunks_exact(ROW).zip(edges);
    let after = each.flat_map(|(values, edges)| after_step(values, edges, rate));
    let after: Vec<R> = after.collect();
    pool.commit(level, time, dt, rows).unwrap();
    pool.store(level, rows, &after).unwrap();
    let steps = clock.steps + 1;
    let clock = Clock {
        time,
        steps,
        ..clock
    };
    levels.set(level, clock);
}

impl Flowing {
    fn new<R: Element>() -> Self {
        Self::on::<R>(oblong([true; 3]), None)
    }

    fn on<R: Element>(domain: Domain, device: Option<&Device>) -> Self {
        let mut mesh = Mesh::of::<R>(domain, Correct::Circulations, device);
        mesh.stir::<R>(0, 1, true);
        Self {
            corrects: true,
            recorder: device.map(|device| Recorder::new(&mesh.pool, device)),
            mesh,
        }
    }

    /// Changes the patches of all levels at random.
    fn regrid(&mut self, round: i32) {
        for level in (0..MAX_LEVEL).rev().chain(0..MAX_LEVEL) {
            let changes = random_changes(&self.mesh.topology, level, 5 + 17 * round);
            self.mesh.levels.align_with_parent(level + 1);
            self.mesh.regrid(level, &changes);
        }
    }

    /// Advances some steps of the root level with changes of all levels between them; returns the largest divergence.
    fn live<R: Element>(&mut self, steps: i32) -> f64 {
        let mut worst = 0.0f64;
        for step in 0..steps {
            self.regrid(step);
            let width = self.mesh.topology.domain.cell_width(0)[2];
            advance::<R>(self, 0, f64::from(step + 1) * 0.2 * width, &[1.0]);
            let [divergence, size] = self.mesh.divergence::<R>();
            worst = worst.max(divergence / size);
        }
        worst
    }

    /// Sums of the root level's faces normal to x, plane by plane.
    fn plane_fluxes(&self) -> Vec<f64> {
        let rows = self.mesh.topology.rows(0);
        let values = self.mesh.pool.host::<f64>(0, rows).unwrap();
        let mut sums = vec![0.0; 32];
        for (values, &row) in values.chunks_exact(ROW).zip(rows) {
            let first = 8 * self.mesh.topology.index(row)[0] as usize;
            for (n, value) in values[..VALUES].iter().enumerate() {
                let (_, at) = place_in_row(n);
                if at[0] < 8 {
                    sums[first + at[0]] += value;
                }
            }
        }
        sums
    }
}

impl<R: Element> Levelled<R> for Flowing {
    fn time(&self, level: usize) -> f64 {
        self.mesh.levels.time(level)
    }

    fn exists(&self, level: usize) -> bool {
        !self.mesh.topology.rows(level).is_empty()
    }

    fn step(&mut self, level: usize, time: f64) {
        let Mesh {
            topology,
            levels,
            pool,
            tables,
            ..
        } = &mut self.mesh;
        let record = |pool: &Pool<Flow>, edges: &[R]| match (&self.recorder, tables) {
            (Some(recorder), Some(tables)) => recorder.record(pool, tables, level, edges),
            _ => record_on_host(pool, topology.rows(level), level, edges),
        };
        step::<R>(pool, topology, levels, (level, time), record);
    }

    fn synchronise(&mut self, level: usize, dt: f64) {
        let (corrects, mesh) = (self.corrects, &mut self.mesh);
        mesh.with_pool(|pool, around| {
            let mut view = LevelView::between_steps(around, level);
            view.clock.dt = dt;
            restrict(pool, &view).unwrap();
            if corrects {
                correct(pool, &view).unwrap();
            }
            unify_shared_values(pool, &view).unwrap();
        });
    }
}

#[test]
fn corrected_circulations_leave_no_divergence_and_conserve_the_flux_through_planes() {
    fn check<R: Element>() {
        let mut flowing = Flowing::new::<R>();
        let before = (R::PRECISION.bytes() == 8).then(|| flowing.plane_fluxes());
        let worst = flowing.live::<R>(2);
        assert!(worst < 10.0 * round_off::<R>(), "{worst:e}");
        assert_eq!(flowing.mesh.unequal_copies::<R>(), 0);
        assert!(!flowing.mesh.topology.rows(2).is_empty());
        for (before, after) in before
            .into_iter()
            .flat_map(|b| b.into_iter().zip(flowing.plane_fluxes()))
        {
            assert!((after - before).abs() < 1e-11, "{before} {after}");
        }
    }
    check::<f64>();
    check::<f32>();
}

#[test]
fn uncorrected_circulations_make_divergence() {
    let mut flowing = Flowing::new::<f64>();
    flowing.corrects = false;
    let worst = flowing.live::<f64>(2);
    assert!(worst > 1e-3, "{worst:e}");
}

#[test]
fn fine_circulations_that_agree_with_the_coarse_ones_change_nothing() {
    /// The same vector on all edges of all levels, in all steps.
    fn uniform<R: Element>(flowing: &mut Flowing, level: usize, dt: f64) {
        let rows = flowing.mesh.topology.rows(level).to_vec();
        let one_third = vec![R::lit(1.0 / 3.0); rows.len() * 3 * Centring::Edge.values()];
        record_on_host(&flowing.mesh.pool, &rows, level, &one_third);
        let (time, values) = (
            flowing.mesh.levels.time(level) + dt,
            flowing.mesh.pool.host::<R>(level, &rows).unwrap(),
        );
        flowing.mesh.pool.commit(level, time, dt, &rows).unwrap();
        flowing.mesh.pool.store(level, &rows, &values).unwrap();
    }
    let mut flowing = Flowing::new::<f64>();
    flowing.regrid(0);
    Levelled::<f64>::synchronise(&mut flowing, 0, 0.0);
    let rows = flowing.mesh.topology.rows(0).to_vec();
    let before = flowing.mesh.pool.host::<f64>(0, &rows).unwrap();
    uniform::<f64>(&mut flowing, 0, 0.3);
    for _ in 0..3 {
        uniform::<f64>(&mut flowing, 1, 0.1);
    }
    assert!(
        !flowing
            .mesh
            .pool
            .typed::<f64>()
            .circulations
            .corrected(0)
            .is_empty()
    );
    Levelled::<f64>::synchronise(&mut flowing, 0, 0.3);
    let after = flowing.mesh.pool.host::<f64>(0, &rows).unwrap();
    assert!(before == after);
}

/// One rank's part of such a mesh.
struct FlowingPart {
    world: World,
    /// Records circulations on the device, if the values are there.
    recorder: Option<Recorder>,
    /// Number of registers received, and of those from patches that touch leaves of this rank along edges only.
    received: [usize; 2],
}

/// Stops the other ranks if this one panics.
impl Drop for FlowingPart {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let ranks = self.world.resource::<Ranks>();
            ranks.communicator().abort("a check failed");
        }
    }
}

impl FlowingPart {
    /// Creates a root grid with zeros.
    fn new(domain: Domain, ranks: ThreadRank, device: Option<&Device>) -> Self {
        let mut world = World::new();
        if let Some(device) = device {
            let tables = DeviceTopology::new(device, domain, LEVELS).unwrap();
            world.insert_resource(tables);
            world.insert_resource(ComputeDevice {
                device: Some(device.clone()),
                note: None,
            });
        }
        world.insert_resource(Ranks::new(ranks));
        world.insert_resource(Topology::new(domain, MAX_LEVEL));
        world.insert_resource(Levels::new(LEVELS, 0.0));
        let fields = pool::<f64>(domain, Correct::Circulations, device);
        let recorder = device.map(|device| Recorder::new(&fields, device));
        world.insert_resource(PoolResource(fields));
        world.init_resource::<ExchangePlans>();
        world.init_resource::<LevelClock>();
        world.init_resource::<RefineRequests>();
        world.init_resource::<NewRows>();
        world.init_resource::<Stores>();
        world.init_resource::<ParticleKinds>();
        world.init_resource::<PatchComponents>();
        world.init_resource::<FaultBox>();
        world.resource_mut::<Stores>().add_field::<Flow>();
        create_root(&mut world).unwrap();
        let rows = world.resource::<Topology>().rows(0).to_vec();
        let zeros = vec![0.0; rows.len() * ROW];
        let pool = &mut world.resource_mut::<PoolResource<Flow>>().0;
        pool.store(0, &rows, &zeros).unwrap();
        Self {
            world,
            recorder,
            received: [0; 2],
        }
    }

    /// Changes the patches of a level and fills the new ones.
    fn regrid(&mut self, step: &Step) {
        let (world, level) = (&mut self.world, step.level);
        world.resource_mut::<Levels>().align_with_parent(level + 1);
        let changes = step.changes(world.resource::<Topology>());
        apply_changes(world, level, &changes, 1.05).unwrap();
        let fields = world.resource::<Stores>().all();
        refresh_halo(world, level, &fields).unwrap();
        mark_new_patches(world).unwrap();
        for field in fields {
            field.fill(world);
        }
        assert!(!world.resource::<FaultBox>().has_fault());
    }

    /// Calls `work` with the pool and a level after a step of length `dt`.
    fn on_level<T>(
        &mut self,
        (level, dt): (usize, f64),
        work: impl FnOnce(&mut Pool<Flow>, &LevelView) -> T,
    ) -> T {
        let scope = |world: &mut World, mut held: Mut<PoolResource<Flow>>| {
            let around = MeshContext::of(world);
            let mut view = LevelView::between_steps(&around, level);
            view.clock.dt = dt;
            work(&mut held.0, &view)
        };
        self.world.resource_scope(scope)
    }

    /// Returns where copies of shared values of `level` differ.
    fn unequal_values(&mut self, level: usize) -> Option<String> {
        unequal_shared_values(&mut self.world, level).unwrap()
    }

    /// Counts the registers that arrive for `level`.
    fn count_received(&mut self, level: usize) {
        let plans = self.world.resource::<ExchangePlans>();
        let faces = plans.faces[level].receives.iter();
        let faces: BTreeSet<u32> = faces
            .flat_map(|(_, faces)| faces)
            .map(|face| face.0)
            .collect();
        let rows = plans.edges[level]
            .receives
            .iter()
            .flat_map(|from| &from.rows);
        for row in rows {
            self.received[0] += 1;
            self.received[1] += usize::from(!faces.contains(row));
        }
    }

    /// Returns the bits of all values by level and index of the patch.
    fn values(&self) -> Faces {
        let topology = self.world.resource::<Topology>();
        let pool = &self.world.resource::<PoolResource<Flow>>().0;
        let rows = (0..=MAX_LEVEL).flat_map(|l| topology.rows(l).iter().map(move |&row| (l, row)));
        let values = rows.map(|(level, row)| {
            let values = pool.host::<f64>(level, &[row]).unwrap();
            let bits = values.into_iter().map(f64::to_bits).collect();
            ((level, topology.index(row)), bits)
        });
        values.collect()
    }
}

/// Bits of the values of patches.
type Faces = BTreeMap<(usize, Index), Vec<u64>>;

impl Levelled<f64> for FlowingPart {
    fn time(&self, level: usize) -> f64 {
        self.world.resource::<Levels>().time(level)
    }

    fn exists(&self, level: usize) -> bool {
        self.world.resource::<Topology>().count(level) > 0
    }

    fn step(&mut self, level: usize, time: f64) {
        self.world
            .resource_scope(|world, mut held: Mut<PoolResource<Flow>>| {
                world.resource_scope(|world, mut levels: Mut<Levels>| {
                    let topology = world.resource::<Topology>();
                    let tables = world.get_resource::<DeviceTopology>();
                    let record = |pool: &Pool<Flow>, edges: &[f64]| match (&self.recorder, tables) {
                        (Some(recorder), Some(tables)) => {
                            recorder.record(pool, tables, level, edges);
                        }
                        _ => record_on_host(pool, topology.rows(level), level, edges),
                    };
                    step(&mut held.0, topology, &mut levels, (level, time), record);
                });
            });
    }

    fn synchronise(&mut self, level: usize, dt: f64) {
        let at = (level, dt);
        self.on_level(at, restrict).unwrap();
        send_averages_and_fluxes(&mut self.world, level).unwrap();
        self.count_received(level);
        self.on_level(at, correct).unwrap();
        let fields = self.world.resource::<Stores>().all();
        refresh_halo(&mut self.world, level, &fields).unwrap();
        self.on_level(at, unify_shared_values).unwrap();
    }
}

/// What is left of a run.
#[derive(Default)]
struct Outcome {
    values: Faces,
    /// Largest divergence and largest value.
    largest: [f64; 2],
    /// As [`FlowingPart::received`].
    received: [usize; 2],
}

impl Outcome {
    fn add(&mut self, part: Self) {
        self.values.extend(part.values);
        for n in 0..2 {
            self.largest[n] = self.largest[n].max(part.largest[n]);
            self.received[n] += part.received[n];
        }
    }
}

/// Makes a root step after each round of changes, on `size` ranks, each with a device of `kind` if there is one; returns the outcome of all.
fn run_on(size: usize, domain: Domain, rounds: &[Vec<Step>], kind: Option<DeviceKind>) -> Outcome {
    let run = |ranks: ThreadRank| {
        let device = kind.map(|kind| Device::open(kind).unwrap());
        let mut part = FlowingPart::new(domain, ranks, device.as_ref());
        for (n, steps) in rounds.iter().enumerate() {
            steps.iter().for_each(|step| part.regrid(step));
            advance(&mut part, 0, 0.04 * (n + 1) as f64, &[1.0]);
            (0..=MAX_LEVEL).for_each(|level| assert_eq!(part.unequal_values(level), None));
        }
        let topology = part.world.resource::<Topology>();
        let pool = &part.world.resource::<PoolResource<Flow>>().0;
        Outcome {
            values: part.values(),
            largest: divergence_in::<f64>(topology, pool),
            received: part.received,
        }
    };
    let mut all = Outcome::default();
    std::thread::scope(|scope| {
        let ranks = ThreadRank::connect(size).into_iter();
        let threads: Vec<_> = ranks.map(|rank| scope.spawn(|| run(rank))).collect();
        for thread in threads {
            all.add(thread.join().unwrap());
        }
    });
    all
}

/// Returns a periodic domain of twelve root patches.
fn small() -> Domain {
    Domain {
        root: [3, 2, 2],
        ..oblong([true; 3])
    }
}

#[test]
fn circulations_are_corrected_alike_on_one_and_several_ranks() {
    let domain = small();
    let rounds = rounds(domain, 2, [2, MAX_LEVEL]);
    let alone = run_on(1, domain, &rounds, None);
    assert!(alone.values.keys().any(|(level, _)| *level == MAX_LEVEL));
    assert_eq!(alone.received, [0, 0]);
    let mut along_edges_only = 0;
    for size in [2, 3] {
        let together = run_on(size, domain, &rounds, None);
        assert!(together.received[0] > 0, "{size} ranks");
        along_edges_only += together.received[1];
        let [divergence, value] = together.largest;
        assert!(
            divergence < 10.0 * value * round_off::<f64>(),
            "{divergence:e} of {value}"
        );
        assert!(together.values == alone.values, "{size} ranks");
    }
    assert!(along_edges_only > 0);
}

#[test]
fn host_and_device_correct_circulations_to_the_same_bits() {
    fn check<R: Element>(device: &Device) {
        let mut both = [None, Some(device)].map(|device| Flowing::on::<R>(small(), device));
        for flowing in &mut both {
            flowing.live::<R>(2);
        }
        let [host, device] = both.map(|flowing| flowing.mesh);
        for level in 0..=MAX_LEVEL {
            let rows = host.topology.rows(level);
            assert_eq!(rows, device.topology.rows(level));
            assert!(!rows.is_empty(), "level {level}");
            let [a, b] = [&host, &device].map(|mesh| mesh.pool.host::<R>(level, rows).unwrap());
            let differs = |(a, b): (&R, &R)| a.bits() != b.bits();
            let first = a.iter().zip(&b).position(differs);
            assert_eq!(first.map(|n| place_in_row(n % ROW)), None, "level {level}");
        }
        let registers = &host.pool.typed::<R>().circulations;
        let corrected = [0, 1].map(|level| registers.corrected(level).len());
        assert!(corrected.iter().sum::<usize>() > 20, "{corrected:?}");
    }
    match Device::open(DeviceKind::Emulated) {
        Err(why) => println!("skipped: {why}"),
        Ok(device) => {
            check::<f64>(&device);
            check::<f32>(&device);
        }
    }
}

#[test]
fn the_audit_finds_a_shared_value_with_other_bits() {
    let ranks = ThreadRank::connect(1).remove(0);
    let mut part = FlowingPart::new(small(), ranks, None);
    assert_eq!(part.unequal_values(0), None);
    let row = part.world.resource::<Topology>().rows(0)[1];
    let index = part.world.resource::<Topology>().index(row);
    for (component, at) in [(0, [8, 3, 5]), (1, [2, 0, 7]), (2, [4, 4, 8])] {
        let pool = &mut part.world.resource_mut::<PoolResource<Flow>>().0;
        let before = pool.host::<f64>(0, &[row]).unwrap();
        let mut after = before.clone();
        // a value that compares equal to zero
        after[component * VALUES + Centring::Face.index(component, at)] = -0.0;
        pool.store(0, &[row], &after).unwrap();
        let why = part.unequal_values(0).unwrap();
        assert!(why.contains(&format!("{index:?}")), "{why}");
        let axis = ["x", "y", "z"][component];
        let wanted = format!("values of {axis} on their common face normal to {axis}");
        assert!(why.contains(&wanted), "{why}");
        let pool = &mut part.world.resource_mut::<PoolResource<Flow>>().0;
        pool.store(0, &[row], &before).unwrap();
    }
}

#[test]
fn circulations_are_corrected_alike_on_the_devices_of_several_ranks() {
    if let Err(why) = Device::open(DeviceKind::Emulated) {
        return println!("skipped: {why}");
    }
    let domain = small();
    let rounds = rounds(domain, 2, [2, MAX_LEVEL]);
    let alone = run_on(1, domain, &rounds, None);
    for size in [1, 3] {
        let together = run_on(size, domain, &rounds, Some(DeviceKind::Emulated));
        assert_eq!(together.received[1] > 0, size > 1, "{size} ranks");
        assert!(together.values == alone.values, "{size} ranks");
    }
}
