//! A field's pool as a store: values into and out of packed memory, and what its declaration says else.

use super::device::DevicePool;
use super::element::Element;
use super::pieces::{OnDevice, Piece, RowShape};
use super::pool::{Field, Pool};
use super::storage::{TypedPool, with_storage};
use super::store::{BankOf, Store, Surroundings};
use super::{FieldSpec, Precision, operations, totals, transfer};
use crate::device::DeviceError;
use crate::mesh::NewRows;
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

    fn held_row_bytes(&self) -> usize {
        let results = usize::from(self.keeps_results) * Store::row_bytes(self);
        self.spec.row_bytes(self.precision()) + results
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

    fn save_on_device(
        &self,
        level: usize,
        component: usize,
        list: &OnDevice,
    ) -> Result<(), DeviceError> {
        let at = Store::present_bank(self, level);
        self.device()
            .start_packing(at, component..component + 1, list)
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
        with_storage!(&self.storage,
            typed => { typed.pack(at, self.spec.shape(), pieces, out); Ok(()) },
            device => device.fetch(at, 0..self.components(), pieces, out))
    }

    fn unpack(
        &mut self,
        at: BankOf,
        pieces: &[Piece],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError> {
        let (shape, components) = (self.spec.shape(), self.components());
        with_storage!(&mut self.storage,
            typed => typed.unpack(at, shape, pieces, bytes),
            device => device.put(at, 0..components, pieces, bytes)?);
        if owned {
            let rows: Vec<u32> = pieces.iter().map(|piece| piece.row).collect();
            self.touch(at.level, &rows);
        }
        Ok(())
    }

    fn pack_on_device(&self, at: BankOf, list: &OnDevice) -> Result<(), DeviceError> {
        self.device().start_packing(at, 0..self.components(), list)
    }

    fn unpack_on_device(
        &mut self,
        at: BankOf,
        list: &OnDevice,
        owned: bool,
    ) -> Result<(), DeviceError> {
        if owned {
            self.changed(at.level);
        }
        self.device()
            .start_unpacking(at, 0..self.components(), list)
    }
}

impl<R: Element> TypedPool<R> {
    /// As [`Store::pack`].
    fn pack(&self, at: BankOf, shape: RowShape, pieces: &[Piece], out: &mut [u8]) {
        if at.bank == BankOf::REGISTERS {
            return self.registers.pack(at.level, pieces, out);
        }
        let from = self.bank(at.bank);
        put_all(pieces, self.width(shape), out, &|piece, out| {
            put(from.row(piece.row), shape, piece, out);
        });
    }

    /// As [`Store::unpack`].
    fn unpack(&mut self, at: BankOf, shape: RowShape, pieces: &[Piece], bytes: &[u8]) {
        if at.bank == BankOf::REGISTERS {
            return self.registers.unpack(at.level, pieces, bytes);
        }
        let (to, width) = (self.bank(at.bank), self.width(shape));
        let base = pieces.first().map_or(0, |piece| piece.before);
        let values = |piece: &Piece| &bytes[(piece.before - base) as usize * width..];
        pieces.par_iter().with_min_len(GRAIN).for_each(|piece| {
            // SAFETY: the pool is borrowed alone, and the pieces are of distinct rows.
            let row = unsafe { to.row_mut(piece.row) };
            take(row, shape, piece, values(piece));
        });
    }

    /// Bytes of what a piece counts as one value.
    fn width(&self, shape: RowShape) -> usize {
        self.bank(0).row_length() / shape.row() * size_of::<R>()
    }
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
