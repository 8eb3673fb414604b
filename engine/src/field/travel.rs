//! Values on their way between ranks: rows of pools and fine flux registers, as bytes.

use super::Precision;
use super::pool::{Element, Field, Pool, Storage};
use crate::device::DeviceError;
use crate::ranks::faces::Face;
use bevy_ecs::prelude::*;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::fluxes::QUARTER;

fn value_bytes<F: Field>(pool: &Pool<F>) -> usize {
    match pool.precision() {
        Precision::Single => size_of::<f32>(),
        Precision::Double => size_of::<f64>(),
    }
}

/// Bytes of a row.
pub(super) fn row_bytes<F: Field>(world: &World) -> usize {
    let pool = world.resource::<Pool<F>>();
    pool.components() * CELLS * value_bytes(pool)
}

/// Adds the present state of `rows` of `level` to `out`.
pub(super) fn pack<F: Field>(
    world: &World,
    level: usize,
    rows: &[u32],
    out: &mut Vec<u8>,
) -> Result<(), DeviceError> {
    let pool = world.resource::<Pool<F>>();
    match pool.precision() {
        Precision::Single => pack_rows::<F, f32>(pool, level, rows, out),
        Precision::Double => pack_rows::<F, f64>(pool, level, rows, out),
    }
}

fn pack_rows<F: Field, R: Element>(
    pool: &Pool<F>,
    level: usize,
    rows: &[u32],
    out: &mut Vec<u8>,
) -> Result<(), DeviceError> {
    if let Storage::Device(device) = &pool.storage {
        let values = device.pack::<R>(pool.current(level), 0..pool.components(), rows)?;
        out.extend_from_slice(bytemuck::cast_slice(&values));
        return Ok(());
    }
    let present = pool.present::<R>(level);
    for &row in rows {
        out.extend_from_slice(bytemuck::cast_slice(present.row(row)));
    }
    Ok(())
}

/// Sets the present state of `rows` of `level`.
pub(super) fn unpack<F: Field>(
    world: &mut World,
    level: usize,
    rows: &[u32],
    bytes: &[u8],
) -> Result<(), DeviceError> {
    let mut pool = world.resource_mut::<Pool<F>>();
    match pool.precision() {
        Precision::Single => unpack_rows::<F, f32>(&mut pool, level, rows, bytes),
        Precision::Double => unpack_rows::<F, f64>(&mut pool, level, rows, bytes),
    }
}

fn unpack_rows<F: Field, R: Element>(
    pool: &mut Pool<F>,
    level: usize,
    rows: &[u32],
    bytes: &[u8],
) -> Result<(), DeviceError> {
    if matches!(pool.storage, Storage::Device(_)) {
        // a message need not lie at a multiple of the value's size
        return pool.store::<R>(level, rows, &bytemuck::pod_collect_to_vec(bytes));
    }
    let length = pool.components() * CELLS * size_of::<R>();
    let present = pool.present::<R>(level);
    for (&row, bytes) in rows.iter().zip(bytes.chunks_exact(length)) {
        // SAFETY: the pool is borrowed alone, and the slice of one row is gone before the next.
        let out = unsafe { present.row_mut(row) };
        bytemuck::cast_slice_mut(out).copy_from_slice(bytes);
    }
    pool.touch(rows);
    Ok(())
}

/// Bytes of the fine flux register of a face: reference and change.
pub(super) fn face_bytes<F: Field>(world: &World) -> usize {
    let pool = world.resource::<Pool<F>>();
    2 * pool.components() * QUARTER * value_bytes(pool)
}

/// Adds the fine flux registers of `faces` between `level` and the finer one.
pub(super) fn pack_faces<F: Field>(
    world: &World,
    level: usize,
    faces: &[Face],
    out: &mut Vec<u8>,
) -> Result<(), DeviceError> {
    match &world.resource::<Pool<F>>().storage {
        Storage::Single(typed) => typed.registers.pack(level, faces, out),
        Storage::Double(typed) => typed.registers.pack(level, faces, out),
        Storage::Device(device) => return device.pack_faces(level, faces, out),
    }
    Ok(())
}

/// Sets the fine flux registers of `faces` between `level` and the finer one.
pub(super) fn unpack_faces<F: Field>(
    world: &mut World,
    level: usize,
    faces: &[Face],
    bytes: &[u8],
) -> Result<(), DeviceError> {
    match &mut world.resource_mut::<Pool<F>>().storage {
        Storage::Single(typed) => typed.registers.unpack(level, faces, bytes),
        Storage::Double(typed) => typed.registers.unpack(level, faces, bytes),
        Storage::Device(device) => return device.unpack_faces(level, faces, bytes),
    }
    Ok(())
}
