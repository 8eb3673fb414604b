//! A field's pool as a store: values into and out of packed memory, and what its declaration says else.

use super::device::{DevicePool, Packing};
use super::element::Element;
use super::pieces::{OnDevice, Piece, RowShape};
use super::pool::{Field, Pool};
use super::storage::with_storage;
use super::store::{BankOf, Store, Surroundings};
use super::{FieldSpec, Precision, operations, totals, transfer};
use crate::device::DeviceError;
use crate::in_precision;
use crate::mesh::NewRows;
use crate::mesh::faces::Face;
use nestar_snapshot::Values;
use rayon::prelude::*;
use std::ops::Range;

impl<F: Field> Store for Pool<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }

    fn spec(&self) -> &FieldSpec {
        &self.spec
    }

    fn precision(&self) -> Precision {
        Self::precision(self)
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn register_bytes(&self) -> usize {
        Self::register_bytes(self)
    }

    fn follow(
        &mut self,
        around: &Surroundings,
        level: usize,
        new: &[u32],
    ) -> Result<(), DeviceError> {
        operations::follow(self, around, level, new)
    }

    fn fill(&mut self, around: &Surroundings, new: &NewRows) -> Result<(), DeviceError> {
        operations::fill(self, around, new)
    }

    fn node_sums(
        &self,
        around: &Surroundings,
        level: usize,
        nodes: &[Range<usize>],
    ) -> Result<Vec<f64>, DeviceError> {
        totals::node_sums(self, around, level, nodes)
    }

    fn skipped_on_device(&self) -> Result<u64, DeviceError> {
        self.on_device().map_or(Ok(0), DevicePool::skipped)
    }

    fn save(&self, level: usize, component: usize, rows: &[u32]) -> Result<Values, DeviceError> {
        transfer::save(self, level, component, rows)
    }

    fn load(
        &mut self,
        around: &Surroundings,
        level: usize,
        component: usize,
        rows: &[u32],
        values: &Values,
    ) -> Result<(), String> {
        transfer::load(
            self,
            around.levels.time(level),
            level,
            component,
            rows,
            values,
        )
    }

    fn save_on_device(&self, level: usize, packing: &Packing) -> Result<(), DeviceError> {
        self.device().pack_groups(self.current(level), packing)
    }

    fn present_bank(&self, level: usize) -> BankOf {
        let bank = self.current(level);
        BankOf { level, bank }
    }

    fn read_by_gather(&self, level: usize) -> [Option<BankOf>; 3] {
        let below = level.checked_sub(1);
        let (old, new, _) = self.coarse_clock(level, self.time(level));
        let coarse = |bank| below.map(|level| BankOf { level, bank });
        let older = coarse(old).filter(|_| old != new);
        [Some(self.present_bank(level)), coarse(new), older]
    }

    fn fresh(&self, at: BankOf) -> usize {
        self.clocks[at.level].fresh[at.bank]
    }

    fn set_fresh(&mut self, at: BankOf, layers: usize) {
        self.clocks[at.level].fresh[at.bank] = layers;
    }

    fn expire(&mut self, level: usize) {
        self.clocks[level].fresh.fill(0);
    }

    fn pack(&self, at: BankOf, pieces: &[Piece], out: &mut [u8]) -> Result<(), DeviceError> {
        in_precision!(self.precision(), R => pack::<F, R>(self, at, pieces, out))
    }

    fn unpack(
        &mut self,
        at: BankOf,
        pieces: &[Piece],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError> {
        let rows = rows(pieces);
        in_precision!(self.precision(), R => unpack::<F, R>(self, at, pieces, &rows, bytes)?);
        if owned {
            self.touch(at.level, &rows);
        }
        Ok(())
    }

    fn pack_on_device(&self, at: BankOf, list: &OnDevice<Piece>) -> Result<(), DeviceError> {
        self.device().pack_pieces(at.bank, list)
    }

    fn unpack_on_device(
        &mut self,
        at: BankOf,
        list: &OnDevice<Piece>,
        owned: bool,
    ) -> Result<(), DeviceError> {
        if owned {
            self.changed(at.level);
        }
        self.device_mut().unpack_pieces(at.bank, list)
    }

    fn pack_faces(&self, level: usize, faces: &[Face], out: &mut [u8]) -> Result<(), DeviceError> {
        with_storage!(&self.storage,
            typed => { typed.registers.pack(level, faces, out); Ok(()) },
            device => device.pack_faces(level, faces, out))
    }

    fn unpack_faces(
        &mut self,
        level: usize,
        faces: &[Face],
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        with_storage!(&mut self.storage,
            typed => { typed.registers.unpack(level, faces, bytes); Ok(()) },
            device => device.unpack_faces(level, faces, bytes))
    }

    fn pack_faces_on_device(
        &self,
        level: usize,
        faces: &OnDevice<Face>,
    ) -> Result<(), DeviceError> {
        self.device().pack_faces_on_device(level, faces)
    }

    fn unpack_faces_on_device(
        &mut self,
        level: usize,
        faces: &OnDevice<Face>,
    ) -> Result<(), DeviceError> {
        self.device_mut().unpack_faces_on_device(level, faces)
    }
}

fn pack<F: Field, R: Element>(
    pool: &Pool<F>,
    at: BankOf,
    pieces: &[Piece],
    out: &mut [u8],
) -> Result<(), DeviceError> {
    let (width, shape) = (pool.value_bytes(), pool.spec.shape());
    if let Some(device) = pool.on_device() {
        let values: Vec<R> = device.pack(at.bank, 0..pool.components(), &rows(pieces))?;
        let mut out = out;
        for (piece, row) in pieces
            .iter()
            .zip(values.chunks_exact(pool.spec.row_values()))
        {
            let (own, rest) = out.split_at_mut(piece.values(shape) * width);
            put(row, shape, piece, own);
            out = rest;
        }
        return Ok(());
    }
    let from = pool.typed::<R>().bank(at.bank);
    put_all(pieces, width, out, &|piece, out| {
        put(from.row(piece.row), shape, piece, out);
    });
    Ok(())
}

/// Pieces that are worth a thread of their own.
const GRAIN: usize = 32;

/// Calls `put` with each piece and the memory from its place on; `out` begins with the first.
fn put_all(
    pieces: &[Piece],
    width: usize,
    out: &mut [u8],
    put: &(impl Fn(&Piece, &mut [u8]) + Sync),
) {
    let Some(first) = pieces.first() else {
        return;
    };
    let place = |piece: &Piece| (piece.before - first.before) as usize * width;
    if pieces.len() <= GRAIN {
        return pieces
            .iter()
            .for_each(|piece| put(piece, &mut out[place(piece)..]));
    }
    let (low, high) = pieces.split_at(pieces.len() / 2);
    let (low_out, high_out) = out.split_at_mut(place(&high[0]));
    rayon::join(
        || put_all(low, width, low_out, put),
        || put_all(high, width, high_out, put),
    );
}

fn rows(pieces: &[Piece]) -> Vec<u32> {
    pieces.iter().map(|piece| piece.row).collect()
}

/// Packs the values of a piece of `row` at the front of `out`.
fn put<R: Element>(row: &[R], shape: RowShape, piece: &Piece, out: &mut [u8]) {
    let mut to = 0;
    for (c, component) in row.chunks_exact(shape.values()).enumerate() {
        for (first, length) in piece.stretches(shape, c) {
            let bytes: &[u8] = bytemuck::cast_slice(&component[first..first + length]);
            out[to..to + bytes.len()].copy_from_slice(bytes);
            to += bytes.len();
        }
    }
}

/// The inverse of [`put`].
fn take<R: Element>(row: &mut [R], shape: RowShape, piece: &Piece, bytes: &[u8]) {
    let mut from = 0;
    for (c, component) in row.chunks_exact_mut(shape.values()).enumerate() {
        for (first, length) in piece.stretches(shape, c) {
            let to = bytemuck::cast_slice_mut::<R, u8>(&mut component[first..first + length]);
            to.copy_from_slice(&bytes[from..from + to.len()]);
            from += to.len();
        }
    }
}

fn unpack<F: Field, R: Element>(
    pool: &mut Pool<F>,
    at: BankOf,
    pieces: &[Piece],
    rows: &[u32],
    bytes: &[u8],
) -> Result<(), DeviceError> {
    let (width, shape) = (pool.value_bytes(), pool.spec.shape());
    let base = pieces.first().map_or(0, |piece| piece.before);
    let values = |piece: &Piece| &bytes[(piece.before - base) as usize * width..];
    if let Some(device) = pool.on_device() {
        // what is not of the piece stays as it is
        let all = 0..device.components();
        let mut state: Vec<R> = device.pack(at.bank, all.clone(), rows)?;
        let length = pool.spec.row_values();
        for (piece, row) in pieces.iter().zip(state.chunks_exact_mut(length)) {
            take(row, shape, piece, values(piece));
        }
        return device.unpack(at.bank, all, rows, &state);
    }
    let to = pool.typed::<R>().bank(at.bank);
    pieces.par_iter().with_min_len(GRAIN).for_each(|piece| {
        // SAFETY: the pool is borrowed alone, and the pieces are of distinct rows.
        take(
            unsafe { to.row_mut(piece.row) },
            shape,
            piece,
            values(piece),
        );
    });
    Ok(())
}
