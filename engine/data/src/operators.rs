//! Generic operators on fields: allocation after a regrid, prolongation, restriction, flux correction, unique values
//! on shared faces and edges.

use super::field_spec::{Correct, Element, Prolong};
use super::level::LevelView;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use super::store::{MeshContext, Store};
use bevy_ecs::prelude::*;
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::{LevelClock, NewRows, Topology, parallel};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::circulations::{SURFACE, correct_faces};
use nestar_kernels::mesh::fluxes::{FACE, FineFlux, cell_behind, correction};
use nestar_kernels::mesh::gather::prolong_patch;
use nestar_kernels::mesh::parameters::RepairedCells;
use nestar_kernels::mesh::restrict::restrict_octet;
use nestar_kernels::mesh::shared_values::sync_shared_values;
use nestar_kernels::mesh::staggered::{NewFacesView, prolong_faces};
use nestar_kernels::mesh::{Centring, MAX_COMPONENTS, StateFunctions, keep_remainder};

/// Adapts storage, times and registers to a regrid of `level`; `rows` are the new ones.
///
/// # Errors
/// The memory of a device does not suffice.
pub(super) fn on_regrid<F: Field>(
    pool: &mut Pool<F>,
    around: &MeshContext,
    level: usize,
    rows: &[u32],
) -> Result<(), DeviceError> {
    let (topology, time) = (around.topology, around.levels.time(level));
    pool.grow(topology.capacity())?;
    pool.touch(level, rows);
    // the halo consists of other patches, and gathers read other coarse cells
    for level in level.saturating_sub(1)..=level {
        Store::invalidate_halos(pool, level);
    }
    if pool.time(level) != time || rows.len() == topology.rows(level).len() {
        pool.set_time(level, time);
    }
    let correct = pool.spec.correct;
    with_storage!(&mut pool.storage,
    typed => for pair in level.saturating_sub(1)..=level {
        match correct {
            Correct::Fluxes if !typed.is_partial() => typed.registers.rebuild(topology, pair),
            Correct::Circulations if !typed.is_partial() => {
                typed.circulations.rebuild(topology, pair);
            }
            _ => (),
        }
    },
    device => device.on_regrid(around.on_device(), topology, level)?);
    Ok(())
}

/// Fills new rows by prolongation or with zeros. Old memory contents are never used, as they depend on the history of
/// the rank.
///
/// # Errors
/// The device fails.
pub(super) fn fill<F: Field>(
    pool: &mut Pool<F>,
    around: &MeshContext,
    new: &NewRows,
) -> Result<(), DeviceError> {
    if let Prolong::None = pool.spec.prolong {
        return pool.clear(new.level, &new.rows);
    }
    with_storage!(&mut pool.storage,
    <R> => prolong_rows::<F, R>(pool, around.topology, new),
    _ => {
        let tables = around.on_device();
        let view = pool.view(tables, around.topology, new.level);
        let bank = pool.current(new.level);
        pool.device_mut().prolong(tables, view, bank, &new.marks)?;
    });
    pool.touch(new.level, &new.rows);
    Ok(())
}

fn prolong_rows<F: Field, R: Element>(pool: &Pool<F>, topology: &Topology, new: &NewRows) {
    if pool.spec.centring == Centring::Face {
        return prolong_face_rows::<F, R>(pool, topology, new);
    }
    let view = pool.ghosts::<R>(topology, new.level, 1);
    let components = pool.components();
    let scratch = &pool.typed::<R>().gather_scratch;
    parallel::for_each(&new.rows, |&row| {
        // SAFETY: the rows are distinct, and the interpolation reads only rows of the coarser level.
        unsafe { prolong_patch(&view, row, components, &mut scratch.get()) };
    });
}

/// Replaces covered cells of `level` by averages of the finer level. Returns the number of averages repaired on the
/// host. Collective.
///
/// # Errors
/// The device fails.
pub fn restrict<F: Field>(pool: &mut Pool<F>, around: &LevelView) -> Result<u64, DeviceError> {
    let level = around.clock.level;
    // collective, also without covered patches
    pool.invalidate_present_halo(level);
    with_storage!(&pool.storage,
    <R> => Ok(restrict_level::<F, R>(pool, around.topology, level)),
    device => {
        if level < around.topology.max_level {
            let banks = [pool.current(level), pool.current(level + 1)];
            if device.restrict(around.on_device(), level, banks)? {
                pool.mark_changed(level);
            }
        }
        Ok(0)
    })
}

fn restrict_level<F: Field, R: Element>(
    pool: &mut Pool<F>,
    topology: &Topology,
    level: usize,
) -> u64 {
    let (coarse, fine) = (pool.present::<R>(level), pool.present::<R>(level + 1));
    let (centring, rules) = (pool.spec.centring, pool.typed::<R>().states.as_ref());
    // a parent on another rank is averaged in its halo copy, which is sent afterwards
    let restrict = |&row: &u32| match topology.first_child(row) {
        // SAFETY: each coarse row is written by one task; fine rows are only read.
        Some(first) if topology.is_owned(first) => unsafe {
            restrict_octet(centring, &coarse, row, &fine, first, rules)
        },
        _ => 0,
    };
    let rows = [topology.rows(level), topology.copies(level)];
    let repaired = rows.map(|rows| parallel::sum(rows, restrict));
    let repaired = repaired.into_iter().sum();
    for &row in topology.rows(level) {
        if !topology.is_leaf(row) {
            pool.touch(level, &[row]);
        }
    }
    repaired
}

/// Number of cells repaired on the host since the start of the run, because round-off made them unphysical.
#[derive(Resource, Default)]
pub struct RepairedOnHost(pub RepairedCells);

/// Replaces coarse fluxes by the sum of fine fluxes at coarse-fine faces (refluxing), or coarse circulations by fine ones
/// along the edges of coarse-fine borders. Returns the number of cells repaired on the host. Collective.
///
/// # Errors
/// The device fails.
pub fn correct<F: Field>(pool: &mut Pool<F>, around: &LevelView) -> Result<u64, DeviceError> {
    let clock = &around.clock;
    // collective, also without coarse-fine faces
    pool.invalidate_present_halo(clock.level);
    with_storage!(&pool.storage,
    <R> => Ok(match pool.spec.correct {
        Correct::Circulations => {
            correct_circulations::<F, R>(pool, around.topology, clock);
            0
        }
        _ => correct_level::<F, R>(pool, around.topology, clock),
    }),
    device => {
        if device.correct(around.on_device(), clock, pool.current(clock.level))? {
            pool.mark_changed(clock.level);
        }
        Ok(0)
    })
}

fn correct_level<F: Field, R: Element>(
    pool: &mut Pool<F>,
    topology: &Topology,
    clock: &LevelClock,
) -> u64 {
    let typed = pool.typed::<R>();
    let rows = typed.registers.corrected(clock.level);
    let present = pool.present::<R>(clock.level);
    let inverse_width = clock.cell_width.map(|w| R::lit(1.0 / w));
    let (components, dt) = (pool.components(), R::lit(clock.dt));
    let repaired = parallel::sum(rows, |(row, slots)| {
        let mut change = typed.correct_scratch.get();
        change.fill(R::lit(0.0));
        for slot in slots.clone() {
            let (face, coarse) = typed.registers.coarse(clock.level, slot);
            let fine = typed.registers.fine(topology, clock.level, *row, face);
            let step = [dt, inverse_width[face / 2]];
            collect(&mut change, components, face, coarse, &fine, step);
        }
        // SAFETY: each row is written by one task.
        let values = unsafe { present.row_mut(*row) };
        apply(values, &change, components, typed.states.as_ref())
    });
    pool.touch_corrected(clock.level);
    repaired
}

/// Changes the faces of leaf patches beside refined ones by the fine minus coarse circulations along their edges.
fn correct_circulations<F: Field, R: Element>(
    pool: &mut Pool<F>,
    topology: &Topology,
    clock: &LevelClock,
) {
    let typed = pool.typed::<R>();
    let (level, dt) = (clock.level, R::lit(clock.dt));
    let present = pool.present::<R>(level);
    let inverse_width = clock.cell_width.map(|w| R::lit(1.0 / w));
    let values = pool.components() * SURFACE;
    parallel::for_each(typed.circulations.corrected(level), |&row| {
        let mut scratch = typed.correct_scratch.get();
        let surface = &mut scratch[..values];
        typed
            .circulations
            .mismatch(topology, level, row, dt, surface);
        // SAFETY: each row is written by one task.
        correct_faces(unsafe { present.row_mut(row) }, surface, &inverse_width);
    });
    pool.touch_corrected(level);
}

/// Adds the corrections of one face to `change`, `[axis][component][512]`.
fn collect<R: Element>(
    change: &mut [R],
    components: usize,
    face: usize,
    coarse: &[R],
    fine: &[FineFlux<R>; 4],
    step: [R; 2],
) {
    for c in 0..components {
        let out = &mut change[(face / 2 * components + c) * CELLS..][..CELLS];
        for place in 0..FACE {
            let (slow, fast) = (place / 8, place % 8);
            out[cell_behind(face, slow, fast)] =
                correction(face, coarse, fine, c, [slow, fast], step);
        }
    }
}

/// Corrections of the cells of a patch, `[axis][component][512]`.
struct CellCorrections<'a, R> {
    change: &'a [R],
    components: usize,
    rules: Option<&'a StateFunctions<R>>,
}

/// Values of the components in a cell; the rest of the array is unused.
type State<R> = [R; MAX_COMPONENTS];

/// Adds the corrections of the three axes in a sum that does not depend on their order. Returns the number of repaired
/// cells. A state made unphysical by round-off is repaired with the state before.
///
/// A correction may take more of component 0 than a cell has, because the coarser level has moved too little of it. The cell then keeps a
/// tenth, and the whole patch gives the rest.
fn apply<R: Element>(
    values: &mut [R],
    change: &[R],
    components: usize,
    rules: Option<&StateFunctions<R>>,
) -> u64 {
    let all = CellCorrections {
        change,
        components,
        rules,
    };
    let (mut repaired, mut emptied) = (0, Vec::new());
    for cell in 0..CELLS {
        let (before, change) = (all.state(values, cell), all.sums(cell));
        let mut changed = false;
        let mut state = before;
        for c in 0..components {
            changed |= change[c] != R::lit(0.0);
            state[c] = before[c] + change[c];
        }
        if !changed {
            continue;
        }
        if rules.is_some() && before[0] > R::lit(0.0) && state[0] <= R::lit(0.0) {
            emptied.push(cell);
        } else {
            repaired += all.store(values, cell, state, before);
        }
    }
    match emptied.is_empty() {
        true => repaired,
        false => repaired + all.share_deficit(values, &emptied),
    }
}

impl<R: Element> CellCorrections<'_, R> {
    fn state(&self, values: &[R], cell: usize) -> State<R> {
        let mut state = [R::lit(0.0); MAX_COMPONENTS];
        for c in 0..self.components {
            state[c] = values[c * CELLS + cell];
        }
        state
    }

    /// Returns the corrections of a cell, summed over the axes.
    fn sums(&self, cell: usize) -> State<R> {
        let axis = self.components * CELLS;
        let mut sums = [R::lit(0.0); MAX_COMPONENTS];
        for c in 0..self.components {
            let along = |n: usize| self.change[n * axis + c * CELLS + cell];
            sums[c] = nestar_device::math::sum3(along(0), along(1), along(2));
        }
        sums
    }

    /// Stores the state of a cell, which was `before` until it was corrected. Returns the number of repaired cells, 0 or 1.
    fn store(
        &self,
        values: &mut [R],
        cell: usize,
        mut state: State<R>,
        mut before: State<R>,
    ) -> u64 {
        let (components, rules) = (self.components, self.rules);
        let state = &mut state[..components];
        if let Some(remainder) = rules.and_then(|rules| rules.remainder) {
            let mut kept = before;
            remainder(&mut kept[..components], 1);
            keep_remainder(state, &kept[..components], remainder);
        }
        let mut repaired = 0;
        if let Some(rules) = rules.filter(|rules| !(rules.physical)(state, 1)) {
            (rules.primitive)(&mut before[..components], 1);
            (rules.repair)(state, &before[..components]);
            repaired = 1;
        }
        if let Some(dependents) = rules.and_then(|rules| rules.dependents) {
            dependents.reconcile(state);
        }
        for c in 0..components {
            values[c * CELLS + cell] = state[c];
        }
        repaired
    }

    /// Corrects cells that would lose all of component 0 and more: they keep a tenth, and the rest comes from all cells of the patch in
    /// proportion to what they have. Leading components are conserved; scalars leave the cells of the patch in their own proportions. If
    /// the patch does not have twice the rest, the states become unphysical, and the limit of the next step reports them.
    fn share_deficit(&self, values: &mut [R], emptied: &[usize]) -> u64 {
        let leading = self.rules.map_or(0, |rules| rules.leading);
        let mut deficit = [R::lit(0.0); MAX_COMPONENTS];
        let mut repaired = 0;
        for &cell in emptied {
            let (before, change) = (self.state(values, cell), self.sums(cell));
            let part = (R::lit(0.1) * before[0] - before[0]) / change[0];
            let mut state = before;
            for c in 0..self.components {
                let given = part * change[c];
                state[c] = before[c] + given;
                if c < leading {
                    deficit[c] += change[c] - given;
                }
            }
            repaired += self.store(values, cell, state, before);
        }
        let mut total = R::lit(0.0);
        for value in &values[..CELLS] {
            total += *value;
        }
        if total + R::lit(2.0) * deficit[0] <= R::lit(0.0) {
            let before = self.state(values, emptied[0]);
            let mut state = before;
            state[0] = before[0] + deficit[0];
            return repaired + self.store(values, emptied[0], state, before);
        }
        for cell in 0..CELLS {
            let before = self.state(values, cell);
            let share = before[0] / total;
            let mut state = before;
            for c in 0..leading {
                state[c] = before[c] + share * deficit[c];
            }
            let kept = state[0] / before[0];
            for c in leading..self.components {
                state[c] = before[c] * kept;
            }
            repaired += self.store(values, cell, state, before);
        }
        repaired
    }
}

/// Fills new rows of a face-centred field from the coarser level and from adjacent patches that are not new.
fn prolong_face_rows<F: Field, R: Element>(pool: &Pool<F>, topology: &Topology, new: &NewRows) {
    let view = NewFacesView {
        view: pool.ghosts::<R>(topology, new.level, 1),
        fresh: &new.marks,
    };
    parallel::for_each(&new.rows, |&row| {
        // SAFETY: the rows are distinct, and the interpolation reads only rows of the level that are not new.
        unsafe { prolong_faces(&view, row) };
    });
}

/// Makes values on faces or edges shared by patches of `level` equal. Collective; the halo must be valid.
/// The value of a refined patch wins; among equals, the patch that is lowest along z, then y, then x.
///
/// # Errors
/// The device fails.
pub fn unify_shared_values<F: Field>(
    pool: &mut Pool<F>,
    around: &LevelView,
) -> Result<(), DeviceError> {
    let level = around.clock.level;
    // collective, also without shared values
    pool.mark_changed(level);
    with_storage!(&pool.storage,
        <R> => { share_rows::<F, R>(pool, around.topology, level); Ok(()) },
        device => device.share(around.on_device(), level, pool.current(level)))
}

fn share_rows<F: Field, R: Element>(pool: &mut Pool<F>, topology: &Topology, level: usize) {
    let (centring, neighbours) = (pool.spec.centring, topology.neighbour_table());
    let refined = |row| !topology.is_leaf(row);
    for &row in topology.rows(level) {
        let present = pool.present::<R>(level);
        // SAFETY: the pool is borrowed exclusively, and rows are written one by one.
        if unsafe { sync_shared_values(centring, &present, neighbours, row, refined) } {
            pool.touch(level, &[row]);
        }
    }
}
