//! Values out of and into pools, for snapshots.

use super::Precision;
use super::element::Element;
use super::pool::{Field, Pool};
use crate::device::DeviceError;
use nestar_snapshot::Values;
use rayon::prelude::*;

/// Values of component `c` in some rows of a level, `[row][k][j][i]`.
pub(super) fn save<F: Field>(
    pool: &Pool<F>,
    level: usize,
    c: usize,
    rows: &[u32],
) -> Result<Values, DeviceError> {
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
    if let Some(device) = pool.on_device() {
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

/// Sets component `c` in some rows of a level, whose time is `time`, from `[row][k][j][i]`; values in the other precision are converted.
pub(super) fn load<F: Field>(
    pool: &mut Pool<F>,
    time: f64,
    level: usize,
    c: usize,
    rows: &[u32],
    values: &Values,
) -> Result<(), String> {
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
    if let Some(device) = pool.on_device() {
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
