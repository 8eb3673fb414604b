//! Divergence of the field: its column.

use super::cells::{ROW, ROWS_AT_A_TIME, faces_of};
use crate::fields::MagneticFaces;
use crate::hydro::device::GasDevice;
use crate::hydro::solver::HydroSolver;
use bevy_ecs::prelude::*;
use nestar_device::Real;
use nestar_engine::comm::{Ranks, RanksError, Reduction};
use nestar_engine::data::{Element, Pool};
use nestar_engine::device::DeviceError;
use nestar_engine::in_precision;
use nestar_engine::mesh::{Topology, parallel};
use nestar_kernels::CELLS;

/// Returns the largest divergence times the smallest cell width in leaf cells of this rank, and the largest field on faces; infinity for what is
/// not a number. `solver` is that of the device with the field, if it is given.
pub(super) fn extremes(
    world: &World,
    mut solver: Option<&mut GasDevice>,
) -> Result<[f64; 2], RanksError> {
    let topology = world.resource::<Topology>();
    let field = Pool::<MagneticFaces>::of(world);
    let mut extremes = [0.0f64; 2];
    for level in 0..=topology.finest() {
        let part = parts_of(topology.domain.cell_width(level));
        let rows = topology.rows(level).iter().copied();
        let leaves: Vec<u32> = rows.filter(|&row| topology.is_leaf(row)).collect();
        let of_level = match &mut solver {
            Some(solver) => {
                let bank = field.device().bank(field.current(level));
                solver.face_extremes(&leaves, bank, part)?
            }
            None => in_precision!(field.precision(), R =>
                extremes_on_host::<R>(field, level, &leaves, part))?,
        };
        extremes = [0, 1].map(|n| extremes[n].max(of_level[n]));
    }
    Ok(extremes)
}

/// Returns the smallest cell width over that along each axis.
fn parts_of(width: [f64; 3]) -> [f64; 3] {
    let smallest = width[0].min(width[1]).min(width[2]);
    width.map(|w| smallest / w)
}

/// Returns [`extremes`] of some rows, computed on the host.
fn extremes_on_host<R: Element>(
    field: &Pool<MagneticFaces>,
    level: usize,
    rows: &[u32],
    part: [f64; 3],
) -> Result<[f64; 2], DeviceError> {
    let mut extremes = [0.0f64; 2];
    for rows in rows.chunks(ROWS_AT_A_TIME) {
        let values = field.host::<R>(level, rows)?;
        let faces: Vec<&[R]> = values.chunks_exact(ROW).collect();
        let each = parallel::map(&faces, |faces| extremes_of(faces, part));
        extremes = [0, 1].map(|n| {
            each.iter()
                .fold(extremes[n], |most, found| most.max(found[n]))
        });
    }
    Ok(extremes)
}

/// Returns the largest divergence times the smallest cell width in the cells of a row, and the largest field; `part` is [`parts_of`] the widths.
fn extremes_of<R: Real>(faces: &[R], part: [f64; 3]) -> [f64; 2] {
    let divergence = (0..CELLS).map(|cell| {
        let through = |c: usize| {
            let [below, above] = faces_of(c, cell).map(|n| faces[n].to_f64());
            (above - below) * part[c]
        };
        ((through(0) + through(1)) + through(2)).abs()
    });
    let strength = faces.iter().map(|b| b.to_f64().abs());
    [divergence.fold(0.0, larger), strength.fold(0.0, larger)]
}

/// Returns the larger number, or infinity if the second is not a finite number.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    match b {
        _ if b <= a => a,
        _ if b < f64::INFINITY => b,
        _ => f64::INFINITY,
    }
}

/// Returns the largest divergence times the cell width over the largest field on faces, among all ranks; 0 without a field. Collective.
fn divergence_error(world: &World, solver: Option<&mut GasDevice>) -> Result<f64, RanksError> {
    let [divergence, field] = of_all_ranks(world, extremes(world, solver)?)?;
    Ok(match field {
        0.0 => 0.0,
        _ => divergence / field,
    })
}

/// Returns the largest of numbers of all ranks, which are not negative. Collective.
pub(super) fn of_all_ranks<const N: usize>(
    world: &World,
    own: [f64; N],
) -> Result<[f64; N], RanksError> {
    // such numbers are in the order of their bits
    let mut keys = own.map(f64::to_bits);
    let ranks = world.resource::<Ranks>().communicator();
    ranks.reduce(Reduction::Max, &mut keys)?;
    Ok(keys.map(f64::from_bits))
}

/// Returns the column of [`divergence_error`], which a device computes for the field that it holds.
pub(super) fn column(world: &mut World) -> Result<Vec<f64>, RanksError> {
    world.resource_scope(|world, mut solver: Mut<HydroSolver>| {
        let device = match &mut *solver {
            HydroSolver::Device(device) => Some(&mut **device),
            _ => None,
        };
        Ok(vec![divergence_error(world, device)?])
    })
}
