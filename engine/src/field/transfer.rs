//! Values out of and into pools, for snapshots.

use super::Precision;
use super::device::Packing;
use super::pool::{Element, Field, Pool, Storage};
use crate::device::DeviceError;
use crate::mesh::Levels;
use bevy_ecs::prelude::*;
use nestar_snapshot::Values;
use rayon::prelude::*;

/// Values of component `c` in some rows of a level, `[row][k][j][i]`.
pub(super) fn extract<F: Field>(
    world: &World,
    level: usize,
    c: usize,
    rows: &[u32],
) -> Result<Values, DeviceError> {
    let pool = Pool::<F>::of(world);
    Ok(match pool.precision() {
        Precision::Single => Values::F32(copy::<F, f32>(pool, level, c, rows)?),
        Precision::Double => Values::F64(copy::<F, f64>(pool, level, c, rows)?),
    })
}

fn copy<F: Field, R: Element>(
    pool: &Pool<F>,
    level: usize,
    c: usize,
    rows: &[u32],
) -> Result<Vec<R>, DeviceError> {
    if let Storage::Device(device) = &pool.storage {
        return device.pack(pool.current(level), c..c + 1, rows);
    }
    let (present, length) = (pool.present::<R>(level), pool.spec.centring.values());
    let mut out = vec![R::lit(0.0); rows.len() * length];
    out.par_chunks_mut(length)
        .zip(rows)
        .for_each(|(out, &row)| {
            out.copy_from_slice(&present.row(row)[c * length..][..length]);
        });
    Ok(out)
}

/// Starts to pack the present state of rows of a level on the device.
pub(super) fn pack<F: Field>(
    world: &World,
    level: usize,
    packing: &Packing,
) -> Result<(), DeviceError> {
    let pool = Pool::<F>::of(world);
    pool.device().pack_groups(pool.current(level), packing)
}

/// Sets component `c` in some rows of a level from `[row][k][j][i]`; values in the other precision are converted.
pub(super) fn load<F: Field>(
    world: &mut World,
    level: usize,
    c: usize,
    rows: &[u32],
    values: &Values,
) -> Result<(), String> {
    let time = world.resource::<Levels>().time(level);
    let pool = Pool::<F>::of_mut(world);
    let length = pool.spec.centring.values();
    if values.len() != rows.len() * length {
        return Err(format!(
            "{} values for {} patches of {length}",
            values.len(),
            rows.len()
        ));
    }
    let stored = match (pool.precision(), values) {
        (Precision::Single, Values::F32(values)) => put(pool, level, c, rows, values),
        (Precision::Double, Values::F64(values)) => put(pool, level, c, rows, values),
        (Precision::Single, Values::F64(values)) => {
            let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            put(pool, level, c, rows, &values)
        }
        (Precision::Double, Values::F32(values)) => {
            let values: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
            put(pool, level, c, rows, &values)
        }
        _ => return Err("the array holds integers".into()),
    };
    stored.map_err(|error| error.to_string())?;
    pool.set_time(level, time);
    pool.touch(level, rows);
    Ok(())
}

fn put<F: Field, R: Element>(
    pool: &mut Pool<F>,
    level: usize,
    c: usize,
    rows: &[u32],
    values: &[R],
) -> Result<(), DeviceError> {
    let bank = pool.current(level);
    if let Storage::Device(device) = &pool.storage {
        return device.unpack(bank, c..c + 1, rows, values);
    }
    let (present, length) = (pool.present::<R>(level), pool.spec.centring.values());
    rows.par_iter()
        .zip(values.par_chunks(length))
        .for_each(|(&row, values)| {
            // SAFETY: the rows are distinct.
            let out = unsafe { present.row_mut(row) };
            out[c * length..][..length].copy_from_slice(values);
        });
    Ok(())
}
