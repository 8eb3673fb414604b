//! Checks of the field before the first step: of an initial field, and of a restored one to which components were added.

use super::cells::{NAMES, ROW, ROWS_AT_A_TIME, faces_of, mean};
use super::divergence::{extremes, larger, of_all_ranks};
use super::initial::FaceFill;
use crate::fields::{GAS_COMPONENTS, Gas, GasModel, MagneticFaces};
use crate::hydro::initial::InitialGas;
use bevy_ecs::prelude::*;
use nestar_engine::data::{Element, Pool, Precision};
use nestar_engine::mesh::{Topology, parallel};
use nestar_engine::step::Settings;
use nestar_engine::step::config::{AddedComponent, BoundaryKind};
use nestar_engine::{Error, in_precision};
use nestar_kernels::mesh::Centring;
use nestar_kernels::{CELLS, PATCH};

/// Returns the largest deviation, over the largest field, that is round-off.
fn round_off(precision: Precision) -> f64 {
    match precision {
        Precision::Single => 1e-5,
        Precision::Double => 1e-10,
    }
}

/// Rejects an initial field that has a divergence, passes a wall or differs between periodic faces, except in previews, which do not hold all
/// patches. Collective.
///
/// # Errors
/// One of these is more than round-off; another rank has failed.
pub(super) fn require_initial_field(world: &World) -> Result<(), Error> {
    let field = Pool::<MagneticFaces>::of(world);
    if field.is_partial() {
        return Ok(());
    }
    let most = round_off(field.precision());
    let [divergence, strength] = extremes(world, None)?;
    let through = through_walls(world)?;
    let [jump_x, jump_y, jump_z] = [0, 1, 2].map(|axis| jump(world, axis));
    let own = [divergence, strength, through, jump_x, jump_y, jump_z];
    let [divergence, strength, through, jumps @ ..] = of_all_ranks(world, own)?;
    if !strength.is_finite() {
        return Err(Error::Setup(
            "the initial magnetic field is not finite on a face: its formulas must be finite on the faces of all cells, too".into(),
        ));
    }
    // these two may be the cause of a divergence
    require_no_flux(through, most * strength)?;
    for (axis, jump) in ["x", "y", "z"].into_iter().zip(jumps) {
        if jump > most * strength {
            return Err(Error::Setup(format!(
                "the initial field magnetic_{axis} differs by up to {jump:.1e} between both faces of the domain along {axis}, which are the same \
                 because `domain.boundary` is periodic: give a vector potential and a field with the period of the box, and the uniform part of the field by \
                 `initial.magnetic_x`, `_y` and `_z`; or choose other boundaries"
            )));
        }
    }
    if divergence > most * strength {
        let relative = divergence / strength;
        return Err(Error::Setup(format!(
            "the divergence of the initial magnetic field, times the cell width and over the largest field, is up to {relative:.1e}, but \
             mhd.method = \"ct\" keeps it as it is: give the part of the field that varies by `initial.vector_potential_x`, `_y` and `_z`, and \
             only constants, or functions of the other two coordinates, by `initial.magnetic_x`, `_y` and `_z`"
        )));
    }
    Ok(())
}

/// Rejects a field through reflecting faces of the domain that is larger than `most`.
fn require_no_flux(through: f64, most: f64) -> Result<(), Error> {
    if through <= most {
        return Ok(());
    }
    Err(Error::Setup(format!(
        "the magnetic field normal to reflecting faces of the domain is up to {through:.1e}, but these faces are perfect conductors: choose a field \
         parallel to them, such as one by a vector potential that is constant along them, or another `domain.boundary`"
    )))
}

/// Largest difference between the restored field in cells and on faces, over the largest field: runs in single precision may continue in double.
const RESTORED: f64 = 1e-4;

/// Rejects a field that was added to a restored state by a formula or differs from that in cells, and one that passes a wall. Collective.
///
/// # Errors
/// The field is one of these; another rank has failed.
pub(super) fn require_restored_field(world: &World) -> Result<(), Error> {
    let added = &world.resource::<Settings>().run.added;
    for name in NAMES {
        if let Some(AddedComponent::Formula(text)) = added.get(name) {
            return Err(Error::Setup(format!(
                "run.added.{name} = \"{text}\": a field on faces is added by a number only, because one by a formula may have a divergence; \
                 give a number, or begin a new run"
            )));
        }
    }
    let [_, strength] = extremes(world, None)?;
    let own = [strength, through_walls(world)?, difference_to_cells(world)?];
    let [strength, through, difference] = of_all_ranks(world, own)?;
    let most = RESTORED * strength.max(difference);
    if difference > most {
        return Err(Error::Setup(format!(
            "the means of the restored magnetic field over faces differ by up to {difference:.1e} from the field in cells; add the same number to both, \
             such as run.added.magnetic_x = 1 and run.added.magnetic_x_face = 1, or begin a new run"
        )));
    }
    require_no_flux(through, most)
}

/// Returns the largest field through reflecting faces of the domain in patches of this rank; infinity for what is not a number.
fn through_walls(world: &World) -> Result<f64, Error> {
    let (topology, field) = (
        world.resource::<Topology>(),
        Pool::<MagneticFaces>::of(world),
    );
    let kinds = world.resource::<Settings>().domain.boundary.faces();
    let mut most = 0.0f64;
    for (axis, side) in (0..3).flat_map(|axis| [0, 1].map(|side| (axis, side))) {
        if kinds[axis][side] != BoundaryKind::Reflecting {
            continue;
        }
        for level in 0..=topology.finest() {
            let rows = rows_at(topology, level, axis, side);
            most = most.max(in_precision!(field.precision(), R =>
                through_rows::<R>(field, level, &rows, [axis, side]))?);
        }
    }
    Ok(most)
}

/// Returns the largest field through the lower (`side` 0) or the upper ends of rows along `axis`.
fn through_rows<R: Element>(
    field: &Pool<MagneticFaces>,
    level: usize,
    rows: &[u32],
    [axis, side]: [usize; 2],
) -> Result<f64, Error> {
    let mut most = 0.0f64;
    for rows in rows.chunks(ROWS_AT_A_TIME) {
        let values = field.host::<R>(level, rows)?;
        for faces in values.chunks_exact(ROW) {
            let through = layer(axis, side).map(|n| faces[n].to_f64().abs());
            most = through.fold(most, larger);
        }
    }
    Ok(most)
}

/// Returns the rows of a level at the lower (`side` 0) or the upper face of the domain along `axis`.
fn rows_at(topology: &Topology, level: usize, axis: usize, side: usize) -> Vec<u32> {
    let patch = PATCH as i32;
    let place = [0, topology.domain.cells(level)[axis] - patch][side];
    let rows = topology.rows(level).iter().copied();
    rows.filter(|&row| topology.origin(row)[axis] == place)
        .collect()
}

/// Returns the indices in a row of the faces on its lower (`side` 0) or its upper end along `axis`.
fn layer(axis: usize, side: usize) -> impl Iterator<Item = usize> {
    let ends = (0..CELLS).filter(move |cell| {
        let at = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
        at[axis] == side * (PATCH - 1)
    });
    ends.map(move |cell| faces_of(axis, cell)[side])
}

/// Returns the largest difference between the initial fields along `axis` on both faces of the domain, if they are periodic, in patches of
/// this rank.
fn jump(world: &World, axis: usize) -> f64 {
    let (topology, initial) = (world.resource::<Topology>(), world.resource::<InitialGas>());
    if !topology.domain.periodic[axis] {
        return 0.0;
    }
    let mut most = 0.0f64;
    for level in 0..=topology.finest() {
        let here = FaceFill::new(&*initial.0, world.resource::<GasModel>(), topology, level);
        let beyond = here.one_period_above(axis);
        let rows = rows_at(topology, level, axis, 0);
        let jump_of = |row: &u32| {
            let faces = |fill: &FaceFill| {
                let potential = fill.potential(*row);
                potential.map(|potential| fill.component(*row, axis, &potential))
            };
            let (Ok(here), Ok(beyond)) = (faces(&here), faces(&beyond)) else {
                return f64::INFINITY;
            };
            let first = axis * Centring::Face.values();
            let jumps = layer(axis, 0).map(|n| (here[n - first] - beyond[n - first]).abs());
            jumps.fold(0.0, larger)
        };
        most = parallel::map(&rows, jump_of)
            .into_iter()
            .fold(most, f64::max);
    }
    most
}

/// Returns the largest difference between the field in leaf cells and its means over their faces in patches of this rank.
fn difference_to_cells(world: &World) -> Result<f64, Error> {
    let topology = world.resource::<Topology>();
    let (gas, field) = (Pool::<Gas>::of(world), Pool::<MagneticFaces>::of(world));
    let mut most = 0.0f64;
    for level in 0..=topology.finest() {
        let rows = topology.rows(level).iter().copied();
        let leaves: Vec<u32> = rows.filter(|&row| topology.is_leaf(row)).collect();
        most = most.max(in_precision!(gas.precision(), R =>
            difference_in_rows::<R>((gas, field), level, &leaves))?);
    }
    Ok(most)
}

/// Returns the largest difference between the field in cells and its means over their faces in some rows.
fn difference_in_rows<R: Element>(
    (gas, field): (&Pool<Gas>, &Pool<MagneticFaces>),
    level: usize,
    rows: &[u32],
) -> Result<f64, Error> {
    let mut most = 0.0f64;
    let length = gas.components() * CELLS;
    for rows in rows.chunks(ROWS_AT_A_TIME) {
        let (gas, faces) = (gas.host::<R>(level, rows)?, field.host::<R>(level, rows)?);
        for (gas, faces) in gas.chunks_exact(length).zip(faces.chunks_exact(ROW)) {
            for (c, cell) in (0..3).flat_map(|c| (0..CELLS).map(move |cell| (c, cell))) {
                let in_cell = gas[(GAS_COMPONENTS + c) * CELLS + cell].to_f64();
                most = larger(most, (in_cell - mean(faces, c, cell).to_f64()).abs());
            }
        }
    }
    Ok(most)
}
