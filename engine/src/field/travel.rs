//! Values on their way between ranks: pieces of rows and fine flux registers, packed in the memory of the host or of the device.

use super::Precision;
use super::pieces::{Delivery, OnDevice, Packed, Piece};
use super::pool::{Element, Field, Pool, Storage};
use crate::device::DeviceError;
use crate::mesh::faces::Face;
use bevy_ecs::prelude::*;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::fluxes::QUARTER;
use rayon::prelude::*;

/// Values of a component in the fine flux register of a face: reference and change.
pub(crate) const REGISTER: usize = 2 * QUARTER;

/// Bytes of a cell.
pub(super) fn cell_bytes<F: Field>(world: &World) -> usize {
    width(world.resource::<Pool<F>>())
}

fn width<F: Field>(pool: &Pool<F>) -> usize {
    pool.components() * pool.precision().bytes()
}

/// Packs the present state of pieces of rows of `level` that follow each other into `out`, which begins with the first.
pub(super) fn pack<F: Field>(
    world: &World,
    level: usize,
    pieces: &[Piece],
    packed: Packed,
    out: &mut [u8],
) -> Result<(), DeviceError> {
    let pool = world.resource::<Pool<F>>();
    match pool.precision() {
        Precision::Single => pack_of::<F, f32>(pool, level, pieces, packed, out),
        Precision::Double => pack_of::<F, f64>(pool, level, pieces, packed, out),
    }
}

fn pack_of<F: Field, R: Element>(
    pool: &Pool<F>,
    level: usize,
    pieces: &[Piece],
    packed: Packed,
    out: &mut [u8],
) -> Result<(), DeviceError> {
    if let Storage::Device(device) = &pool.storage {
        let base = pieces.first().map_or(0, |piece| piece.before);
        let values: Vec<R> =
            device.pack(pool.current(level), 0..pool.components(), &rows(pieces))?;
        let length = pool.components() * CELLS;
        for (piece, row) in pieces.iter().zip(values.chunks_exact(length)) {
            put(row, piece, &mut out[start(piece, base, packed)..]);
        }
        return Ok(());
    }
    let present = pool.present::<R>(level);
    put_all(pieces, packed, out, &|piece, out| {
        put(present.row(piece.row), piece, out);
    });
    Ok(())
}

/// Pieces that are worth a thread of their own.
const GRAIN: usize = 32;

/// Calls `put` with each piece and the memory from its place on; `out` begins with the first.
fn put_all(
    pieces: &[Piece],
    packed: Packed,
    out: &mut [u8],
    put: &(impl Fn(&Piece, &mut [u8]) + Sync),
) {
    let Some(first) = pieces.first() else {
        return;
    };
    if pieces.len() <= GRAIN {
        let place = |piece| start(piece, first.before, packed);
        return pieces
            .iter()
            .for_each(|piece| put(piece, &mut out[place(piece)..]));
    }
    let (low, high) = pieces.split_at(pieces.len() / 2);
    let half = (high[0].before - first.before) as usize * packed.width;
    let (low_out, high_out) = out.split_at_mut(half);
    rayon::join(
        || put_all(low, packed, low_out, put),
        || put_all(high, packed, high_out, put),
    );
}

/// Where a piece's values of a field begin, in bytes behind those of the piece before which `base` cells stand.
fn start(piece: &Piece, base: u64, packed: Packed) -> usize {
    (piece.before - base) as usize * packed.width + piece.cells() * packed.first
}

fn rows(pieces: &[Piece]) -> Vec<u32> {
    pieces.iter().map(|piece| piece.row).collect()
}

/// Packs the cells of a piece of `row` at the front of `out`.
fn put<R: Element>(row: &[R], piece: &Piece, out: &mut [u8]) {
    let mut to = 0;
    for component in row.chunks_exact(CELLS) {
        for (first, length) in piece.stretches() {
            let bytes: &[u8] = bytemuck::cast_slice(&component[first..first + length]);
            out[to..to + bytes.len()].copy_from_slice(bytes);
            to += bytes.len();
        }
    }
}

/// The inverse of [`put`].
fn take<R: Element>(row: &mut [R], piece: &Piece, bytes: &[u8]) {
    let mut from = 0;
    for component in row.chunks_exact_mut(CELLS) {
        for (first, length) in piece.stretches() {
            let to = bytemuck::cast_slice_mut::<R, u8>(&mut component[first..first + length]);
            to.copy_from_slice(&bytes[from..from + to.len()]);
            from += to.len();
        }
    }
}

/// Sets pieces of rows of `level`, of each row at most one, in the present state.
pub(crate) fn unpack<F: Field>(
    pool: &mut Pool<F>,
    level: usize,
    delivery: &Delivery,
) -> Result<(), DeviceError> {
    match *delivery {
        Delivery::There { pieces, owned } => {
            let bank = pool.current(level);
            pool.device_mut().unpack_pieces(level, bank, &pieces, owned)
        }
        Delivery::Here {
            pieces,
            packed,
            bytes,
        } => match pool.precision() {
            Precision::Single => unpack_of::<F, f32>(pool, level, pieces, packed, bytes),
            Precision::Double => unpack_of::<F, f64>(pool, level, pieces, packed, bytes),
        },
    }
}

fn unpack_of<F: Field, R: Element>(
    pool: &mut Pool<F>,
    level: usize,
    pieces: &[Piece],
    packed: Packed,
    bytes: &[u8],
) -> Result<(), DeviceError> {
    let base = pieces.first().map_or(0, |piece| piece.before);
    let values = |piece: &Piece| &bytes[start(piece, base, packed)..];
    if matches!(pool.storage, Storage::Device(_)) {
        let (rows, length) = (rows(pieces), pool.components() * CELLS);
        // what is not of the piece stays as it is
        let mut state = pool.host::<R>(level, &rows)?;
        for (piece, row) in pieces.iter().zip(state.chunks_exact_mut(length)) {
            take(row, piece, values(piece));
        }
        return pool.store(level, &rows, &state);
    }
    let present = pool.present::<R>(level);
    pieces.par_iter().with_min_len(GRAIN).for_each(|piece| {
        // SAFETY: the pool is borrowed alone, and the pieces are of distinct rows.
        take(unsafe { present.row_mut(piece.row) }, piece, values(piece));
    });
    pool.touch(&rows(pieces));
    Ok(())
}

/// Starts to pack pieces of rows of `level` in memory of the device on which the field lives.
pub(super) fn pack_there<F: Field>(
    world: &World,
    level: usize,
    pieces: &OnDevice,
) -> Result<(), DeviceError> {
    let pool = world.resource::<Pool<F>>();
    pool.device().pack_pieces(pool.current(level), pieces)
}

/// Packs the fine flux registers of `faces` between `level` and the finer one into `out`, `[face][field][2][component][4][4]`.
pub(super) fn pack_faces<F: Field>(
    world: &World,
    level: usize,
    faces: &[Face],
    packed: Packed,
    out: &mut [u8],
) -> Result<(), DeviceError> {
    let pool = world.resource::<Pool<F>>();
    let own = width(pool) * REGISTER;
    let mut values = Vec::with_capacity(faces.len() * own);
    match &pool.storage {
        Storage::Single(typed) => typed.registers.pack(level, faces, &mut values),
        Storage::Double(typed) => typed.registers.pack(level, faces, &mut values),
        Storage::Device(device) => device.pack_faces(level, faces, &mut values)?,
    }
    let places = out.chunks_exact_mut(packed.width * REGISTER);
    for (out, values) in places.zip(values.chunks_exact(own)) {
        out[packed.first * REGISTER..][..own].copy_from_slice(values);
    }
    Ok(())
}

/// Sets the fine flux registers of `faces` between `level` and the finer one from what [`pack_faces`] gave.
pub(super) fn unpack_faces<F: Field>(
    world: &mut World,
    level: usize,
    faces: &[Face],
    packed: Packed,
    bytes: &[u8],
) -> Result<(), DeviceError> {
    let mut pool = world.resource_mut::<Pool<F>>();
    let own = width(&pool) * REGISTER;
    let parts = bytes.chunks_exact(packed.width * REGISTER);
    let parts = parts.flat_map(|part| &part[packed.first * REGISTER..][..own]);
    let bytes: Vec<u8> = parts.copied().collect();
    match &mut pool.storage {
        Storage::Single(typed) => typed.registers.unpack(level, faces, &bytes),
        Storage::Double(typed) => typed.registers.unpack(level, faces, &bytes),
        Storage::Device(device) => return device.unpack_faces(level, faces, &bytes),
    }
    Ok(())
}

/// Starts to pack the fine flux registers of faces between `level` and the finer one in memory of the device.
pub(super) fn pack_faces_there<F: Field>(
    world: &World,
    level: usize,
    faces: &OnDevice,
) -> Result<(), DeviceError> {
    let pool = world.resource::<Pool<F>>();
    pool.device().pack_faces_there(level, faces)
}

/// Sets the fine flux registers of faces between `level` and the finer one from memory of the device.
pub(super) fn unpack_faces_there<F: Field>(
    world: &mut World,
    level: usize,
    faces: &OnDevice,
) -> Result<(), DeviceError> {
    let mut pool = world.resource_mut::<Pool<F>>();
    pool.device_mut().unpack_faces_there(level, faces)
}
