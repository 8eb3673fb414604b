//! Tests of circulation registers: a vector on faces that changes by a curl on all levels, each with steps of its own, keeps
//! its divergence.

use super::faces::{MAX_LEVEL, Mesh, ROW, VALUES, number, oblong, place_in_row, round_off};
use super::random_changes;
use nestar_engine_data::operators::{correct, restrict, unify_shared_values};
use nestar_engine_data::{Correct, Element, LevelView};
use nestar_engine_mesh::{Clock, Topology};
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::circulations::circulated;

/// Steps of a level within one of the coarser level, as parts of its length.
const PARTS: [f64; 3] = [0.5, 0.3, 0.2];

/// A mesh on which circulations are random numbers of place, level and step.
struct Flowing {
    mesh: Mesh,
    /// `false` to leave out the correction: a control.
    corrects: bool,
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

impl Flowing {
    fn new<R: Element>() -> Self {
        let mut mesh = Mesh::of::<R>(oblong([true; 3]), Correct::Circulations, None);
        mesh.stir::<R>(0, 1, true);
        Self {
            mesh,
            corrects: true,
        }
    }

    /// Makes a step of `level` to `time`.
    fn step<R: Element>(&mut self, level: usize, time: f64) {
        let mesh = &mut self.mesh;
        let clock = mesh.levels.clock(level);
        let dt = time - clock.time;
        let rate = mesh
            .topology
            .domain
            .cell_width(level)
            .map(|w| R::lit(dt / w));
        let rows = mesh.topology.rows(level).to_vec();
        let before = mesh.pool.host::<R>(level, &rows).unwrap();
        let mut after = Vec::new();
        let number = clock.steps as i32;
        for (values, &row) in before.chunks_exact(ROW).zip(&rows) {
            let edges = edges::<R>(&mesh.topology, level, row, number);
            // SAFETY: one thread records row after row.
            unsafe {
                mesh.pool
                    .typed::<R>()
                    .circulations
                    .record(level, row, &edges)
            };
            after.extend(after_step(values, &edges, rate));
        }
        mesh.pool.commit(level, time, dt, &rows).unwrap();
        mesh.pool.store(level, &rows, &after).unwrap();
        let steps = clock.steps + 1;
        let clock = Clock {
            time,
            steps,
            ..clock
        };
        mesh.levels.set(level, clock);
    }

    /// Advances `level` and all finer ones to `until`, in steps that are `parts` of the time.
    fn advance<R: Element>(&mut self, level: usize, until: f64, parts: &[f64]) {
        let begin = self.mesh.levels.time(level);
        for (n, part) in parts.iter().enumerate() {
            let now = self.mesh.levels.time(level);
            let time = match n + 1 == parts.len() {
                true => until,
                false => now + part * (until - begin),
            };
            self.step::<R>(level, time);
            if level < MAX_LEVEL && !self.mesh.topology.rows(level + 1).is_empty() {
                self.advance::<R>(level + 1, time, &PARTS);
                self.synchronise(level, time - now);
            }
        }
    }

    /// Synchronises `level` with the finer one after a step of length `dt`.
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
            self.advance::<R>(0, f64::from(step + 1) * 0.2 * width, &[1.0]);
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
        let one_third = vec![R::lit(1.0 / 3.0); 3 * Centring::Edge.values()];
        for &row in &rows {
            // SAFETY: one thread records row after row.
            unsafe {
                flowing
                    .mesh
                    .pool
                    .typed::<R>()
                    .circulations
                    .record(level, row, &one_third)
            };
        }
        let (time, values) = (
            flowing.mesh.levels.time(level) + dt,
            flowing.mesh.pool.host::<R>(level, &rows).unwrap(),
        );
        flowing.mesh.pool.commit(level, time, dt, &rows).unwrap();
        flowing.mesh.pool.store(level, &rows, &values).unwrap();
    }
    let mut flowing = Flowing::new::<f64>();
    flowing.regrid(0);
    flowing.synchronise(0, 0.0);
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
    flowing.synchronise(0, 0.3);
    let after = flowing.mesh.pool.host::<f64>(0, &rows).unwrap();
    assert!(before == after);
}
