//! Tests of vectors on faces: a field without divergence keeps none through refinement, removal and gathers of ghost cells.

use super::{change_on_one_rank, domain, random_changes, root_of_one_rank};
use crate::hierarchy::ExchangePlans;
use nestar_engine_data::device::DeviceTopology;
use nestar_engine_data::operators::{restrict, unify_shared_values};
use nestar_engine_data::{
    BoundaryCondition, Correct, Element, Field, FieldSpec, LevelView, MeshContext, Pool, Precision,
    Store,
};
use nestar_engine_device::{Device, DeviceKind};
use nestar_engine_mesh::{Changes, Clock, Domain, Levels, NewRows, Topology};
use nestar_kernels::mesh::{Centring, OUTSIDE};
use std::collections::BTreeMap;

/// A vector on faces.
pub(super) struct Flow;

impl Field for Flow {
    const NAME: &'static str = "flow";
}

/// Finest level, and number of levels.
pub(super) const MAX_LEVEL: usize = 2;
pub(super) const LEVELS: usize = MAX_LEVEL + 1;
/// Values of a component, and of a row.
pub(super) const VALUES: usize = Centring::Face.values();
pub(super) const ROW: usize = 3 * VALUES;

/// A hierarchy with a field on it.
pub(super) struct Mesh {
    pub topology: Topology,
    plans: ExchangePlans,
    pub levels: Levels,
    pub pool: Pool<Flow>,
    pub tables: Option<DeviceTopology>,
}

/// The kinds of the domain's faces: walls along y and open ends along z where it is not periodic.
fn beyond(domain: Domain) -> [[BoundaryCondition; 2]; 3] {
    use BoundaryCondition::{Outflow, Periodic, Reflecting};
    let kind = |axis: usize| match (domain.periodic[axis], axis) {
        (true, _) => Periodic,
        (_, 1) => Reflecting,
        _ => Outflow,
    };
    [0, 1, 2].map(|axis| [kind(axis), kind(axis)])
}

/// Returns an empty pool with two time levels.
pub(super) fn pool<R: Element>(
    domain: Domain,
    correct: Correct,
    device: Option<&Device>,
) -> Pool<Flow> {
    let spec = FieldSpec {
        banks: 2,
        time_levels: 2,
        correct,
        ..FieldSpec::faces(["x", "y", "z"])
    };
    Pool::new(spec, &beyond(domain), R::PRECISION, device, LEVELS).unwrap()
}

/// Cells that are not cubes.
pub(super) fn oblong(periodic: [bool; 3]) -> Domain {
    Domain {
        right_edge: [1.0, 1.5, 0.75],
        ..domain([4, 3, 4], periodic)
    }
}

/// A pseudo-random number from -0.5 to 0.5.
pub(super) fn number(words: &[i32]) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for &word in words {
        state = (state ^ word as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 29;
    }
    (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

impl Mesh {
    fn new<R: Element>(device: Option<&Device>) -> Self {
        Self::of::<R>(oblong([true, false, false]), Correct::None, device)
    }

    /// Returns the root grid of a domain.
    pub fn of<R: Element>(domain: Domain, correct: Correct, device: Option<&Device>) -> Self {
        let (topology, plans) = root_of_one_rank(domain, MAX_LEVEL);
        let pool = pool::<R>(domain, correct, device);
        let tables = device.map(|device| DeviceTopology::new(device, domain, LEVELS).unwrap());
        let mut mesh = Self {
            topology,
            plans,
            levels: Levels::new(LEVELS, 0.0),
            pool,
            tables,
        };
        let rows = mesh.topology.rows(0).to_vec();
        mesh.adapt(0, rows);
        mesh
    }

    /// Calls `work` with the pool and the hierarchy.
    pub fn with_pool<T>(&mut self, work: impl FnOnce(&mut Pool<Flow>, &MeshContext) -> T) -> T {
        let around = MeshContext {
            topology: &self.topology,
            levels: &self.levels,
            tables: self.tables.as_ref(),
        };
        work(&mut self.pool, &around)
    }

    /// Adapts tables and pool to new rows of `level`.
    fn adapt(&mut self, level: usize, rows: Vec<u32>) -> NewRows {
        if let Some(tables) = &mut self.tables {
            tables.update(&self.topology, level, &rows).unwrap();
        }
        let mut marks = vec![0; self.topology.capacity()];
        rows.iter().for_each(|&row| marks[row as usize] = 1);
        self.with_pool(|pool, around| pool.on_regrid(around, level, &rows).unwrap());
        NewRows { level, rows, marks }
    }

    /// Refines and coarsens patches of `level`, and fills new ones.
    pub fn regrid(&mut self, level: usize, changes: &Changes) {
        let Self {
            topology, plans, ..
        } = self;
        change_on_one_rank(topology, plans, level, changes);
        let parents = changes.refine.iter();
        let first = parents.map(|&row| self.topology.first_child(row).unwrap());
        let new: Vec<u32> = first.flat_map(|first| first..first + 8).collect();
        let new = self.adapt(level + 1, new);
        if !new.rows.is_empty() {
            self.with_pool(|pool, around| pool.fill(around, &new).unwrap());
        }
    }

    /// Changes the rows of `level` by `change` of row and its values.
    fn each<R: Element>(&mut self, level: usize, change: impl Fn(&Topology, u32, &mut [R])) {
        let rows = self.topology.rows(level).to_vec();
        let mut values = self.pool.host::<R>(level, &rows).unwrap();
        for (values, &row) in values.chunks_exact_mut(ROW).zip(&rows) {
            change(&self.topology, row, values);
        }
        self.pool.store(level, &rows, &values).unwrap();
    }

    /// Adds the curl of a random vector on edges: on all edges of `level` if `whole`, else on those inside leaves, so
    /// that values on the sides of patches stay.
    pub fn stir<R: Element>(&mut self, level: usize, seed: i32, whole: bool) {
        let width = self.topology.domain.cell_width(level);
        self.each::<R>(level, |topology, row, values| {
            if !whole && !topology.is_leaf(row) {
                return;
            }
            let (origin, cells) = (topology.origin(row), topology.domain.cells(level));
            let periodic = topology.domain.periodic;
            let edges = Centring::Edge.values();
            let on_edge = |n: usize| {
                let c = n / edges;
                let [x, y, _] = Centring::Edge.lengths(c, [8; 3]);
                let at = [n % edges % x, n % edges / x % y, n % edges / (x * y)];
                if !whole && (0..3).any(|a| a != c && at[a].is_multiple_of(8)) {
                    return 0.0;
                }
                let place = [0, 1, 2].map(|a| match origin[a] + at[a] as i32 {
                    i if periodic[a] => i.rem_euclid(cells[a]),
                    i => i,
                });
                let words = [seed, level as i32, c as i32, place[0], place[1], place[2]];
                number(&words) * width[0]
            };
            let on_edges: Vec<f64> = (0..3 * edges).map(on_edge).collect();
            let edge = |c: usize, at| on_edges[c * edges + Centring::Edge.index(c, at)];
            for (n, value) in values.iter_mut().enumerate() {
                let (c, at) = place_in_row(n);
                let [b, e] = [(c + 1) % 3, (c + 2) % 3];
                let slope = |along: usize, axis: usize| {
                    let mut above = at;
                    above[axis] += 1;
                    (edge(along, above) - edge(along, at)) / width[axis]
                };
                *value += R::lit(slope(e, b) - slope(b, e));
            }
        });
    }

    /// Averages onto coarser levels, and makes shared faces equal.
    fn synchronise(&mut self) {
        for level in (0..MAX_LEVEL).rev() {
            self.with_pool(|pool, around| {
                let view = LevelView::between_steps(around, level);
                restrict(pool, &view).unwrap();
                unify_shared_values(pool, &view).unwrap();
            });
        }
    }

    /// Makes a random history with changes of all levels; `watch` sees the mesh after each.
    fn live<R: Element>(&mut self, rounds: i32, mut watch: impl FnMut(&Self)) {
        self.stir::<R>(0, 1, true);
        for round in 0..rounds {
            for level in (0..MAX_LEVEL).rev().chain(0..MAX_LEVEL) {
                for level in 0..=MAX_LEVEL {
                    self.stir::<R>(level, 100 + round, false);
                }
                self.synchronise();
                let changes = random_changes(&self.topology, level, 5 + 17 * round);
                self.regrid(level, &changes);
                watch(self);
            }
        }
    }

    /// Returns the largest divergence as [`divergence_in`].
    pub fn divergence<R: Element>(&self) -> [f64; 2] {
        divergence_in::<R>(&self.topology, &self.pool)
    }

    /// Counts the faces whose two copies differ.
    pub fn unequal_copies<R: Element>(&self) -> usize {
        let mut unequal = 0;
        for level in 0..=MAX_LEVEL {
            for &row in self.topology.rows(level) {
                for axis in 0..3 {
                    let above = self.topology.neighbours(row)[[14, 16, 22][axis]];
                    let Ok(above) = u32::try_from(above) else {
                        continue;
                    };
                    let values = self.pool.host::<R>(level, &[row, above]).unwrap();
                    for n in 0..64 {
                        let mut at = [n % 8; 3];
                        at[(axis + 1) % 3] = n / 8;
                        let place = |plane: usize| {
                            let mut at = at;
                            at[axis] = plane;
                            axis * VALUES + Centring::Face.index(axis, at)
                        };
                        let pair = [values[place(8)], values[ROW + place(0)]];
                        unequal += usize::from(pair[0].bits() != pair[1].bits());
                    }
                }
            }
        }
        unequal
    }

    /// Advances `level` to `time`; its values change by a field without divergence.
    fn step<R: Element>(&mut self, level: usize, time: f64) {
        let rows = self.topology.rows(level).to_vec();
        let values = self.pool.host::<R>(level, &rows).unwrap();
        let dt = time - self.levels.time(level);
        self.pool.commit(level, time, dt, &rows).unwrap();
        self.pool.store(level, &rows, &values).unwrap();
        let clock = Clock {
            time,
            ..self.levels.clock(level)
        };
        self.levels.set(level, clock);
        self.stir::<R>(level, 1000 + level as i32, level == 0);
    }

    /// Returns the faces of a row with `layers` ghost layers.
    fn window<R: Element>(&self, level: usize, row: u32, layers: usize) -> Vec<R> {
        let around = MeshContext {
            topology: &self.topology,
            levels: &self.levels,
            tables: self.tables.as_ref(),
        };
        let view = LevelView::between_steps(&around, level);
        let mut values = Vec::new();
        let wanted = (layers, u32::MAX);
        self.pool.window(&view, row, wanted, &mut values).unwrap();
        values
    }
}

/// Component and position of value `n` of a row.
pub(super) fn place_in_row(n: usize) -> (usize, [usize; 3]) {
    let c = n / VALUES;
    let [x, y, _] = Centring::Face.lengths(c, [8; 3]);
    let n = n % VALUES;
    (c, [n % x, n / x % y, n / (x * y)])
}

/// Returns the largest divergence times the cell width, and the largest value, of all patches.
pub(super) fn divergence_in<R: Element>(topology: &Topology, pool: &Pool<Flow>) -> [f64; 2] {
    let mut largest = [0.0f64; 2];
    for level in 0..=MAX_LEVEL {
        let rows = topology.rows(level);
        let values = pool.host::<R>(level, rows).unwrap();
        for row in values.chunks_exact(ROW) {
            let face = |c: usize, at| row[c * VALUES + Centring::Face.index(c, at)].to_f64();
            for n in 0..512 {
                let at = [n % 8, n / 8 % 8, n / 64];
                let d = divergence_at(&topology.domain, at, face);
                largest[0] = largest[0].max(d.abs());
            }
            let size = row.iter().map(|value| value.to_f64().abs());
            largest[1] = size.fold(largest[1], f64::max);
        }
    }
    largest
}

/// Returns the divergence times the width along x of the cell at `at`; cells have the shape of the domain's.
fn divergence_at(domain: &Domain, at: [usize; 3], face: impl Fn(usize, [usize; 3]) -> f64) -> f64 {
    let width = domain.cell_width(0);
    let along = |c: usize| {
        let mut above = at;
        above[c] += 1;
        (face(c, above) - face(c, at)) * width[0] / width[c]
    };
    along(0) + along(1) + along(2)
}

/// Round-off of sums of a few numbers of size 1.
pub(super) fn round_off<R: Element>() -> f64 {
    match R::PRECISION {
        Precision::Single => 1e-5,
        Precision::Double => 1e-14,
    }
}

#[test]
fn refinement_and_removal_leave_no_divergence_and_equal_copies() {
    fn check<R: Element>() {
        let mut mesh = Mesh::new::<R>(None);
        let (mut made, mut removed, mut before) = (0, 0, 0);
        mesh.live::<R>(6, |mesh| {
            let now: usize = (0..=MAX_LEVEL).map(|l| mesh.topology.rows(l).len()).sum();
            (made, removed) = match now > before {
                true => (made + 1, removed),
                false => (made, removed + usize::from(now < before)),
            };
            before = now;
            let [divergence, size] = mesh.divergence::<R>();
            assert!(size > 0.5, "{size}");
            assert!(
                divergence < 4.0 * size * round_off::<R>(),
                "{divergence:e} of {size}"
            );
            assert_eq!(mesh.unequal_copies::<R>(), 0);
        });
        assert!(!mesh.topology.rows(2).is_empty() && made > 1 && removed > 1);
    }
    check::<f64>();
    check::<f32>();
}

/// A mesh whose coarse levels are ahead in time of the finer ones.
fn staggered_in_time<R: Element>(device: Option<&Device>) -> Mesh {
    let mut mesh = Mesh::new::<R>(device);
    mesh.live::<R>(2, |_| ());
    mesh.synchronise();
    for (level, time) in [(0, 1.0), (1, 0.25), (2, 0.125)] {
        mesh.step::<R>(level, time);
    }
    mesh
}

#[test]
fn a_ghost_face_depends_on_its_place_only() {
    let mesh = staggered_in_time::<f64>(None);
    for (level, layers) in
        (0..=2).flat_map(|level| [(level, 1), (level, 2), (level, 3), (level, 4)])
    {
        let mut known: BTreeMap<(usize, [i32; 3]), u64> = BTreeMap::new();
        let (n, cells) = (8 + 2 * layers, mesh.topology.domain.cells(level));
        let mut again = 0;
        for &row in mesh.topology.rows(level) {
            let values = mesh.window::<f64>(level, row, layers);
            let first = mesh.topology.origin(row).map(|i| i - layers as i32);
            for (at, value) in values.iter().enumerate() {
                let (c, at) = (at / (n * n * (n + 1)), at % (n * n * (n + 1)));
                let [x, y, _] = Centring::Face.lengths(c, [n; 3]);
                let mut place =
                    [0, 1, 2].map(|a| first[a] + [at % x, at / x % y, at / (x * y)][a] as i32);
                place[0] = place[0].rem_euclid(cells[0]);
                assert!(
                    value.is_finite(),
                    "level {level}, {layers} layers: {c} {place:?}"
                );
                let before = known.insert((c, place), value.to_bits());
                let same = before.is_none_or(|before| before == value.to_bits());
                assert!(same, "level {level}, {layers} layers: {c} {place:?}");
                again += usize::from(before.is_some());
            }
        }
        assert!(again > 1000, "{again}");
    }
}

#[test]
fn faces_outside_the_domain_are_mirrored_at_walls_and_repeated_elsewhere() {
    let mut mesh = Mesh::new::<f64>(None);
    mesh.stir::<f64>(0, 1, true);
    let (layers, n) = (2, 12);
    let mut checked = 0;
    for &row in mesh.topology.rows(0) {
        let values = mesh.window::<f64>(0, row, layers);
        let face = |c: usize, [i, j, k]: [usize; 3]| {
            let [x, y, _] = Centring::Face.lengths(c, [n; 3]);
            values[c * n * n * (n + 1) + i + x * (j + y * k)]
        };
        if mesh.topology.neighbours(row)[10] == OUTSIDE {
            for (c, i, k) in
                (0..3).flat_map(|c| (2..10).flat_map(move |i| (2..10).map(move |k| (c, i, k))))
            {
                // the wall is at face 2 and between cells 1 and 2
                let (ghost, inner) = if c == 1 { (1, 3) } else { (1, 2) };
                let sign = if c == 1 { -1.0 } else { 1.0 };
                assert_eq!(face(c, [i, ghost, k]), sign * face(c, [i, inner, k]));
                checked += 1;
            }
        }
        if mesh.topology.neighbours(row)[22] == OUTSIDE {
            for (c, i, j) in
                (0..3).flat_map(|c| (2..10).flat_map(move |i| (2..10).map(move |j| (c, i, j))))
            {
                let last = if c == 2 { 10 } else { 9 };
                for beyond in 1..=2 {
                    assert_eq!(face(c, [i, j, last + beyond]), face(c, [i, j, last]));
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 3000, "{checked}");
}

#[test]
fn host_and_device_fill_and_gather_the_same_bits() {
    fn check<R: Element>(device: &Device) {
        let meshes = [None, Some(device)].map(staggered_in_time::<R>);
        for level in 0..=MAX_LEVEL {
            let rows = meshes[0].topology.rows(level);
            assert_eq!(rows, meshes[1].topology.rows(level));
            let [host, device] = [0, 1].map(|n| meshes[n].pool.host::<R>(level, rows).unwrap());
            let differs = |(a, b): (&R, &R)| a.bits() != b.bits();
            assert_eq!(
                host.iter().zip(&device).position(differs),
                None,
                "level {level}"
            );
            for (n, &row) in rows.iter().enumerate() {
                let layers = 1 + n % 4;
                let [host, device] = [0, 1].map(|n| meshes[n].window::<R>(level, row, layers));
                assert_eq!(host.len(), device.len());
                let first = host.iter().zip(&device).position(differs);
                assert_eq!(first, None, "level {level}, row {row}, {layers} layers");
            }
        }
    }
    match Device::open(DeviceKind::Emulated) {
        Err(why) => println!("skipped: {why}"),
        Ok(device) => {
            check::<f64>(&device);
            check::<f32>(&device);
        }
    }
}
