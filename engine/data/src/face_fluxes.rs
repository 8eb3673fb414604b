//! Finite-volume updates by face fluxes, with flux registers for conservation across levels.

use super::field_spec::{Components, Element};
use super::pool::{Field, Pool, gather_block};
use super::storage::TypedPool;
use super::update::{FluxJob, RowTarget};
use nestar_device::{BlockFace, CellState, Face, FaceFn, Precise};
use nestar_kernels::mesh::FaceRule;
use nestar_kernels::mesh::block::{LevelGeometry, place_of};
use nestar_kernels::mesh::fluxes::{FACE, FACES, advanced, cell_behind, face_index};
use nestar_kernels::{CELLS, PATCH};

/// Geometry of the faces of a level.
struct FacePlace {
    geometry: LevelGeometry,
    /// `true` for each periodic axis.
    periodic: [bool; 3],
}

impl FacePlace {
    /// Returns the lower face along `axis` of cell `at`, which may be one past the upper end of the patch.
    fn of<R: Element>(&self, patch: [i32; 3], axis: usize, at: [usize; 3]) -> Face<R> {
        let g = &self.geometry;
        let mut above = std::array::from_fn(|a| patch[a] * PATCH as i32 + at[a] as i32);
        // both sides of a periodic boundary see the same face
        if self.periodic[axis] && above[axis] == g.cells[axis] {
            above[axis] = 0;
        }
        Face {
            above: place_of(g, above),
            axis: axis as i32,
            width: R::lit(g.width[axis]),
        }
    }
}

/// Fluxes through the faces of a patch.
struct PatchFluxes<'a, R> {
    /// Fluxes, `[axis][component][FACES]`.
    values: &'a [R],
    components: usize,
}

impl<R: Element> PatchFluxes<'_, R> {
    /// Returns the fluxes of a component through the faces normal to `axis`.
    fn of(&self, axis: usize, component: usize) -> &[R] {
        &self.values[(axis * self.components + component) * FACES..][..FACES]
    }

    /// Returns value number `value` of `[component][512]` after the step; `u` is the old value.
    fn advance(&self, u: R, value: usize, rate: &[R; 3]) -> R {
        let (component, at) = (value / CELLS, place(value % CELLS));
        let side = |upper: usize| {
            std::array::from_fn(|axis| {
                let mut face = at;
                face[axis] += upper;
                self.of(axis, component)[face_index(axis, face)]
            })
        };
        advanced(u, &side(0), &side(1), rate)
    }

    /// Returns the fluxes through face `face` of the patch, `[component][8][8]`.
    fn through(&self, face: usize) -> Vec<R> {
        let value = |n: usize| {
            let mut at = place(cell_behind(face, n % FACE / PATCH, n % PATCH));
            at[face / 2] += face % 2;
            self.of(face / 2, n / FACE)[face_index(face / 2, at)]
        };
        (0..self.components * FACE).map(value).collect()
    }
}

/// Returns the indices of a cell in its patch.
fn place(cell: usize) -> [usize; 3] {
    [cell % PATCH, cell / PATCH % PATCH, cell / FACE]
}

impl<R: Element> TypedPool<R> {
    /// Updates all rows; returns the first cell whose state would be unphysical.
    pub(super) fn update_by_fluxes<F: Field, M: FaceFn<Result<R>: CellState<R>>>(
        &self,
        pool: &Pool<F>,
        job: &FluxJob<M>,
    ) -> Option<u32> {
        let (topology, clock) = (job.level.topology, &job.level.clock);
        let before = pool.flux_state(clock.level, job.adds);
        let view = pool.ghosts_at::<R>(topology, clock.level, M::REACH, before);
        let present = pool.present::<R>(clock.level);
        let rate = clock.cell_width.map(|width| R::lit(clock.dt / width));
        let place = FacePlace {
            geometry: job.level.geometry(),
            periodic: self.periodic(),
        };
        let parameters = job.parameters.precise::<R>();
        let (components, count) = (pool.components(), M::Result::<R>::COUNT);
        let (adds, level, dt) = (job.adds, clock.level, clock.dt);
        self.fill(
            job.level.rows(),
            RowTarget {
                to: self.results.rows(),
                chosen: &Components::default(),
                states: None,
            },
            |row, block, values| {
                gather_block(
                    &view,
                    row,
                    u32::MAX,
                    [components, M::REACH],
                    block,
                    &mut self.gather_scratch.get(),
                );
                let gathered = block.len();
                let index = topology.index(row);
                fluxes_of_patch::<M, R>(block, index, &place, &parameters);
                let fluxes = PatchFluxes {
                    values: &block[gathered..],
                    components: count,
                };
                let own = present.row(row)[..count * CELLS].iter().enumerate();
                values.extend(own.map(|(value, u)| fluxes.advance(*u, value, &rate)));
                self.register(&fluxes, level, row, adds.then_some(dt));
            },
        );
        self.apply_results(job.level.rows(), present, count)
    }

    /// Returns `true` for each periodic axis.
    fn periodic(&self) -> [bool; 3] {
        let faces = self.boundaries.faces.each_ref();
        faces.map(|faces| matches!(faces[1], FaceRule::Periodic))
    }

    /// Records the fluxes through the faces of the patch in its registers. With a step length `adds`, they are added.
    fn register(&self, fluxes: &PatchFluxes<R>, level: usize, row: u32, adds: Option<f64>) {
        for face in (0..6).filter(|&face| self.registers.has_register(row, face)) {
            let through = fluxes.through(face);
            // SAFETY: the tasks work on distinct rows.
            unsafe { self.registers.record(level, row, face, &through, adds) };
        }
    }
}

/// Appends the fluxes through all faces, `[axis][component][FACES]`, to the block of a patch with ghost cells.
fn fluxes_of_patch<M: FaceFn<Result<R>: CellState<R>>, R: Element>(
    block: &mut Vec<R>,
    patch: [i32; 3],
    place: &FacePlace,
    parameters: &<M::Parameters as Precise>::In<R>,
) {
    let (gathered, count) = (block.len(), M::Result::<R>::COUNT);
    block.resize(gathered + 3 * count * FACES, R::lit(0.0));
    let (cells, fluxes) = block.split_at_mut(gathered);
    for (axis, fluxes) in fluxes.chunks_exact_mut(count * FACES).enumerate() {
        let lengths: [usize; 3] = std::array::from_fn(|a| PATCH + usize::from(a == axis));
        let mut at = [0; 3];
        for n in 0..FACES {
            let face = place.of(patch, axis, at);
            let beside = BlockFace {
                block: &*cells,
                above: at,
                axis,
            };
            let flux = M::call(beside, &face, parameters);
            flux.write(&mut |_, c, value| fluxes[c * FACES + n] = value, 0, 0);
            at = following(at, &lengths);
        }
    }
}

/// Returns the indices that follow `at` in a block of these lengths, whose first index changes fastest.
fn following(at: [usize; 3], lengths: &[usize; 3]) -> [usize; 3] {
    match at {
        [i, j, k] if i + 1 < lengths[0] => [i + 1, j, k],
        [_, j, k] if j + 1 < lengths[1] => [0, j + 1, k],
        [_, _, k] => [0, 0, k + 1],
    }
}
