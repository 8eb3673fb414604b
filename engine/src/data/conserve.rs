//! Fluxes: a field changes by what flows through the faces of its cells, so that the levels together conserve it.

use super::Correct;
use super::components::Components;
use super::element::Element;
use super::level::{LevelRows, LevelView};
use super::pool::{Field, Pool};
use super::storage::{TypedPool, with_storage};
use super::store::LevelBank;
use super::window::gather_block;
use nestar_device::{CellState, Face, FaceFn, Precise};
use nestar_kernels::mesh::FaceRule;
use nestar_kernels::mesh::block::{LevelGeometry, place_of};
use nestar_kernels::mesh::fluxes::{FACE, FACES, advanced, cell_behind, face_index};
use nestar_kernels::{CELLS, PATCH};

/// A function of a face that gives fluxes.
pub trait FaceMap:
    FaceFn<Result<f32>: CellState<f32>> + FaceFn<Result<f64>: CellState<f64>>
{
}

impl<M> FaceMap for M where
    M: FaceFn<Result<f32>: CellState<f32>> + FaceFn<Result<f64>: CellState<f64>>
{
}

/// A function of a face at work on a level.
pub(super) struct FluxJob<'a, M: FaceFn> {
    pub level: LevelView<'a>,
    /// Whether the field has had fluxes in this step, to which these are added.
    pub adds: bool,
    pub given: &'a M::Parameters,
}

impl<F: Field> Pool<F> {
    /// Every cell of the level at hand changes by the fluxes `M` through its faces over the level's step, where the pool lives. Of a
    /// field with two time levels they are made of the states at the begin of the step, with ghost cells at that time; else of those
    /// that stand. The flux registers get them, so that coarse cells take the fine fluxes when the levels
    /// synchronise. At the upper end of a periodic axis a face is that of the first cell.
    ///
    /// The first fluxes in a step of a field with one time level commit it; others are added, as to a field that has been advanced
    /// by its own kernel. What goes wrong stops the run after the schedule, with the place and the states before and after of a cell
    /// whose state would not be sound. All ranks call it, also without rows; the copies that the function reads must be up to date.
    ///
    /// # Panics
    /// If the field is not corrected by fluxes; if the function reads or gives more components than the field has, or gives fewer
    /// and is the first; if the field has two time levels and has not been advanced.
    pub fn fluxes<M: FaceMap>(&mut self, rows: &LevelRows, parameters: &M::Parameters) {
        let level = rows.view();
        let flow = FluxJob::<M> {
            level,
            adds: self.time(level.clock.level) == level.clock.end,
            given: parameters,
        };
        self.check_fluxes(&flow);
        rows.checked(self.provide_results(&level), ());
        let flown = with_storage!(&self.storage,
            typed => Ok(typed.flow(self, &flow)),
            _ => self.flow_on_device(&flow));
        if let Some(item) = rows.checked(flown, None) {
            self.report_pending_result(rows, M::ITEM.name, M::Result::<f64>::COUNT, item);
        }
        rows.check_gathered(&self.storage);
        let clock = &level.clock;
        if flow.adds {
            self.touch(clock.level, level.rows());
        } else {
            rows.checked(
                self.commit(clock.level, clock.end, clock.dt, level.rows()),
                (),
            );
        }
    }

    /// The bank of the level at hand that its fluxes are made of.
    pub(crate) fn flux_source_bank(&self, rows: &LevelRows) -> LevelBank {
        let level = rows.level();
        let (bank, _) = self.flux_state(level, self.time(level) == rows.view().clock.end);
        LevelBank { level, bank }
    }

    fn check_fluxes<M: FaceMap>(&self, flow: &FluxJob<M>) {
        let fits = self.fits_fluxes::<M>(&flow.level.components);
        fits.unwrap_or_else(|why| panic!("{why}"));
        let (given, there, name) = (M::Result::<f64>::COUNT, self.components(), M::ITEM.name);
        assert!(
            flow.adds || given == there,
            "`{name}` gives {given} components of `{}`, which has {there}",
            F::NAME
        );
        assert!(
            flow.adds || self.spec.time_levels == 1,
            "`{name}` gives fluxes of `{}` before its step",
            F::NAME
        );
    }

    /// Whether a function can give fluxes of this field.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn fits_fluxes<M: FaceMap>(&self, chosen: &Components) -> Result<(), String> {
        let (there, name) = (self.components(), M::ITEM.name);
        let (read, given) = (M::State::<f64>::COUNT, M::Result::<f64>::COUNT);
        let why = if self.spec.correct != Correct::Fluxes {
            "which has no flux registers: declare `correct: Correct::Fluxes`".into()
        } else if !chosen.lead() {
            "but reads the states beside a face: they are the leading components".into()
        } else if read.max(given) > there {
            format!("which has {there} components: it reads {read} and gives {given}")
        } else {
            return Ok(());
        };
        Err(format!("`{name}` gives fluxes of `{}`, {why}", F::NAME))
    }
}

/// What the places of a level's faces are made of.
struct FacePlace {
    geometry: LevelGeometry,
    /// Whether the domain goes on beyond the faces of each axis.
    periodic: [bool; 3],
}

impl FacePlace {
    /// The lower face along `axis` of cell `at` of the patch with index `patch`; the cell may stand one beyond the patch.
    fn of<R: Element>(&self, patch: [i32; 3], axis: usize, at: [usize; 3]) -> Face<R> {
        let g = &self.geometry;
        let mut above = std::array::from_fn(|a| patch[a] * PATCH as i32 + at[a] as i32);
        // the patches on both sides see the same face
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

/// The faces of a patch's cells and what flows through them.
struct PatchFluxes<'a, R> {
    /// `[axis][component][FACES]`.
    values: &'a [R],
    components: usize,
}

impl<R: Element> PatchFluxes<'_, R> {
    /// What flows through the faces of `axis` of a component.
    fn of(&self, axis: usize, component: usize) -> &[R] {
        &self.values[(axis * self.components + component) * FACES..][..FACES]
    }

    /// Value `value` of `[component][512]` after the step, from `u`.
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

    /// What flows through face `face` of the patch, `[component][8][8]`.
    fn through(&self, face: usize) -> Vec<R> {
        let value = |n: usize| {
            let mut at = place(cell_behind(face, n % FACE / PATCH, n % PATCH));
            at[face / 2] += face % 2;
            self.of(face / 2, n / FACE)[face_index(face / 2, at)]
        };
        (0..self.components * FACE).map(value).collect()
    }
}

/// The indices of a cell of a patch.
fn place(cell: usize) -> [usize; 3] {
    [cell % PATCH, cell / PATCH % PATCH, cell / FACE]
}

impl<R: Element> TypedPool<R> {
    /// The first cell that would not be sound.
    fn flow<F: Field, M: FaceFn<Result<R>: CellState<R>>>(
        &self,
        pool: &Pool<F>,
        flow: &FluxJob<M>,
    ) -> Option<u32> {
        let (topology, clock) = (flow.level.topology, &flow.level.clock);
        let before = pool.flux_state(clock.level, flow.adds);
        let view = pool.ghosts_at::<R>(topology, clock.level, M::REACH, before);
        let present = pool.present::<R>(clock.level);
        let rate = clock.cell_width.map(|width| R::lit(clock.dt / width));
        let place = FacePlace {
            geometry: flow.level.geometry(),
            periodic: self.periodic(),
        };
        let given = flow.given.precise::<R>();
        let (components, count) = (pool.components(), M::Result::<R>::COUNT);
        let (adds, level, dt) = (flow.adds, clock.level, clock.dt);
        self.fill(
            flow.level.rows(),
            (self.results.rows(), &Components::default(), None),
            |row, block, values| {
                gather_block(
                    &view,
                    (row, u32::MAX),
                    [components, M::REACH],
                    block,
                    &mut self.gather_scratch.get(),
                );
                let gathered = block.len();
                let index = topology.index(row);
                fluxes_of_patch::<M, R>(block, index, &place, &given);
                let fluxes = PatchFluxes {
                    values: &block[gathered..],
                    components: count,
                };
                let own = present.row(row)[..count * CELLS].iter().enumerate();
                values.extend(own.map(|(value, u)| fluxes.advance(*u, value, &rate)));
                self.register(&fluxes, level, row, adds.then_some(dt));
            },
        );
        self.take(flow.level.rows(), present, count)
    }

    /// Whether the domain goes on beyond the faces of each axis.
    fn periodic(&self) -> [bool; 3] {
        let faces = self.boundaries.faces.each_ref();
        faces.map(|faces| matches!(faces[1], FaceRule::Periodic))
    }

    /// Hands the fluxes through a patch's own faces to its registers; or adds them, if a length of the step is given.
    fn register(&self, fluxes: &PatchFluxes<R>, level: usize, row: u32, adds: Option<f64>) {
        for face in (0..6).filter(|&face| self.registers.has_register(row, face)) {
            let through = fluxes.through(face);
            // SAFETY: the rows that are worked on are distinct.
            unsafe { self.registers.record(level, row, face, &through, adds) };
        }
    }
}

/// Appends the fluxes through all faces of a patch, `[axis][component][FACES]`, to its block with ghost cells.
fn fluxes_of_patch<M: FaceFn<Result<R>: CellState<R>>, R: Element>(
    block: &mut Vec<R>,
    patch: [i32; 3],
    place: &FacePlace,
    given: &<M::Parameters as Precise>::In<R>,
) {
    let (gathered, count) = (block.len(), M::Result::<R>::COUNT);
    block.resize(gathered + 3 * count * FACES, R::lit(0.0));
    let (cells, fluxes) = block.split_at_mut(gathered);
    for (axis, fluxes) in fluxes.chunks_exact_mut(count * FACES).enumerate() {
        let lengths: [usize; 3] = std::array::from_fn(|a| PATCH + usize::from(a == axis));
        for n in 0..FACES {
            let [i, j] = [n % lengths[0], n / lengths[0] % lengths[1]];
            let at = [i, j, n / (lengths[0] * lengths[1])];
            let face = place.of(patch, axis, at);
            let flux = M::call((&*cells, at, axis), &face, given);
            flux.write(&mut |_, c, value| fluxes[c * FACES + n] = value, 0, 0);
        }
    }
}
