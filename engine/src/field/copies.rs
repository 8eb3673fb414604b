//! A field as exchanges between ranks see it: how many layers of the copies of other ranks' patches are up to date, and
//! values into and out of packed memory.

use super::Precision;
use super::pieces::{OnDevice, Piece};
use super::pool::{Element, Field, Pool, Storage};
use crate::device::DeviceError;
use crate::mesh::faces::Face;
use nestar_kernels::mesh::Centring;
use rayon::prelude::*;

/// A bank of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankOf {
    /// The level.
    pub level: usize,
    /// The bank.
    pub bank: usize,
}

/// A field as exchanges between ranks see it.
pub trait Exchanged: Send + Sync {
    /// Where the values of a row lie.
    fn centring(&self) -> Centring;
    /// Bytes of what a piece counts as one value: of a cell, or of a value of each vector.
    fn value_bytes(&self) -> usize;
    /// Bytes of a row in one bank.
    fn row_bytes(&self) -> usize {
        self.row_values() * self.value_bytes()
    }
    /// Values of a row as pieces count them.
    fn row_values(&self) -> usize {
        Piece::whole(0, 0).values(self.centring())
    }
    /// The present bank of `level`.
    fn present_bank(&self, level: usize) -> BankOf;
    /// What a gather of ghost cells on `level` reads: its present bank, and of the level below those that it interpolates.
    fn read_by_gather(&self, level: usize) -> [Option<BankOf>; 3];
    /// Layers of the copies in a bank that are up to date.
    fn fresh(&self, at: BankOf) -> usize;
    /// Declares so many layers up to date.
    fn set_fresh(&mut self, at: BankOf, layers: usize);
    /// Declares all copies of `level` out of date: there are other ones, or other cells of them are read.
    fn expire(&mut self, level: usize);

    /// Packs pieces of rows that follow each other into `out`, which begins with the first:
    /// `[piece][component][value]`.
    ///
    /// # Errors
    /// The device fails.
    fn pack(&self, at: BankOf, pieces: &[Piece], out: &mut [u8]) -> Result<(), DeviceError>;
    /// Sets pieces of rows, of each row at most one, from what [`Exchanged::pack`] gave; `owned` rows count as a change of the
    /// level.
    ///
    /// # Errors
    /// The device fails.
    fn unpack(
        &mut self,
        at: BankOf,
        pieces: &[Piece],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError>;
    /// Where the field lives on a device: starts to pack pieces there.
    ///
    /// # Errors
    /// The device fails.
    fn pack_on_device(&self, at: BankOf, pieces: &OnDevice) -> Result<(), DeviceError>;
    /// As [`Exchanged::unpack`] on the device where the field lives: starts to set pieces there.
    ///
    /// # Errors
    /// The device fails.
    fn unpack_on_device(
        &mut self,
        at: BankOf,
        pieces: &OnDevice,
        owned: bool,
    ) -> Result<(), DeviceError>;

    /// Packs the fine flux registers of `faces` between `level` and the finer one, `[face][2][component][4][4]`.
    ///
    /// # Errors
    /// The device fails.
    fn pack_faces(&self, level: usize, faces: &[Face], out: &mut [u8]) -> Result<(), DeviceError>;
    /// Sets the fine flux registers of `faces` from what [`Exchanged::pack_faces`] gave.
    ///
    /// # Errors
    /// The device fails.
    fn unpack_faces(
        &mut self,
        level: usize,
        faces: &[Face],
        bytes: &[u8],
    ) -> Result<(), DeviceError>;
    /// As [`Exchanged::pack_faces`] in memory of the device.
    ///
    /// # Errors
    /// The device fails.
    fn pack_faces_on_device(&self, level: usize, faces: &OnDevice) -> Result<(), DeviceError>;
    /// As [`Exchanged::unpack_faces`] from memory of the device.
    ///
    /// # Errors
    /// The device fails.
    fn unpack_faces_on_device(&mut self, level: usize, faces: &OnDevice)
    -> Result<(), DeviceError>;
}

/// The banks that a gather on `level` reads and of which fewer than `depth` layers of copies are up to date.
pub fn stale(
    field: &dyn Exchanged,
    level: usize,
    depth: usize,
) -> impl Iterator<Item = BankOf> + use<'_> {
    let read = field.read_by_gather(level).into_iter().flatten();
    read.filter(move |&at| field.fresh(at) < depth)
}

/// Declares `depth` layers of all copies that a gather on `level` reads up to date, where not more of them are.
pub fn refreshed(field: &mut dyn Exchanged, level: usize, depth: usize) {
    for at in field.read_by_gather(level).into_iter().flatten() {
        if field.fresh(at) < depth {
            field.set_fresh(at, depth);
        }
    }
}

impl<F: Field> Exchanged for Pool<F> {
    fn centring(&self) -> Centring {
        self.spec.centring
    }

    fn value_bytes(&self) -> usize {
        self.components() / self.spec.centring.groups() * self.precision().bytes()
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
        match self.precision() {
            Precision::Single => pack::<F, f32>(self, at, pieces, out),
            Precision::Double => pack::<F, f64>(self, at, pieces, out),
        }
    }

    fn unpack(
        &mut self,
        at: BankOf,
        pieces: &[Piece],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError> {
        let rows = rows(pieces);
        match self.precision() {
            Precision::Single => unpack::<F, f32>(self, at, pieces, &rows, bytes)?,
            Precision::Double => unpack::<F, f64>(self, at, pieces, &rows, bytes)?,
        }
        if owned {
            self.touch(at.level, &rows);
        }
        Ok(())
    }

    fn pack_on_device(&self, at: BankOf, pieces: &OnDevice) -> Result<(), DeviceError> {
        self.device().pack_pieces(at.bank, pieces)
    }

    fn unpack_on_device(
        &mut self,
        at: BankOf,
        pieces: &OnDevice,
        owned: bool,
    ) -> Result<(), DeviceError> {
        if owned {
            self.changed(at.level);
        }
        self.device_mut().unpack_pieces(at.bank, pieces)
    }

    fn pack_faces(&self, level: usize, faces: &[Face], out: &mut [u8]) -> Result<(), DeviceError> {
        match &self.storage {
            Storage::Single(typed) => typed.registers.pack(level, faces, out),
            Storage::Double(typed) => typed.registers.pack(level, faces, out),
            Storage::Device(device) => device.pack_faces(level, faces, out)?,
        }
        Ok(())
    }

    fn unpack_faces(
        &mut self,
        level: usize,
        faces: &[Face],
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        match &mut self.storage {
            Storage::Single(typed) => typed.registers.unpack(level, faces, bytes),
            Storage::Double(typed) => typed.registers.unpack(level, faces, bytes),
            Storage::Device(device) => return device.unpack_faces(level, faces, bytes),
        }
        Ok(())
    }

    fn pack_faces_on_device(&self, level: usize, faces: &OnDevice) -> Result<(), DeviceError> {
        self.device().pack_faces_on_device(level, faces)
    }

    fn unpack_faces_on_device(
        &mut self,
        level: usize,
        faces: &OnDevice,
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
    let (width, centring) = (pool.value_bytes(), pool.spec.centring);
    if let Storage::Device(device) = &pool.storage {
        let values: Vec<R> = device.pack(at.bank, 0..pool.components(), &rows(pieces))?;
        let mut out = out;
        for (piece, row) in pieces
            .iter()
            .zip(values.chunks_exact(pool.spec.row_values()))
        {
            let (own, rest) = out.split_at_mut(piece.values(centring) * width);
            put(row, centring, piece, own);
            out = rest;
        }
        return Ok(());
    }
    let from = pool.typed::<R>().bank(at.bank);
    put_all(pieces, width, out, &|piece, out| {
        put(from.row(piece.row), centring, piece, out);
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
fn put<R: Element>(row: &[R], centring: Centring, piece: &Piece, out: &mut [u8]) {
    let mut to = 0;
    for (c, component) in row.chunks_exact(centring.values()).enumerate() {
        for (first, length) in piece.stretches(centring, c) {
            let bytes: &[u8] = bytemuck::cast_slice(&component[first..first + length]);
            out[to..to + bytes.len()].copy_from_slice(bytes);
            to += bytes.len();
        }
    }
}

/// The inverse of [`put`].
fn take<R: Element>(row: &mut [R], centring: Centring, piece: &Piece, bytes: &[u8]) {
    let mut from = 0;
    for (c, component) in row.chunks_exact_mut(centring.values()).enumerate() {
        for (first, length) in piece.stretches(centring, c) {
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
    let (width, centring) = (pool.value_bytes(), pool.spec.centring);
    let base = pieces.first().map_or(0, |piece| piece.before);
    let values = |piece: &Piece| &bytes[(piece.before - base) as usize * width..];
    if let Storage::Device(device) = &pool.storage {
        // what is not of the piece stays as it is
        let all = 0..device.components();
        let mut state: Vec<R> = device.pack(at.bank, all.clone(), rows)?;
        let length = pool.spec.row_values();
        for (piece, row) in pieces.iter().zip(state.chunks_exact_mut(length)) {
            take(row, centring, piece, values(piece));
        }
        return device.unpack(at.bank, all, rows, &state);
    }
    let to = pool.typed::<R>().bank(at.bank);
    pieces.par_iter().with_min_len(GRAIN).for_each(|piece| {
        // SAFETY: the pool is borrowed alone, and the pieces are of distinct rows.
        take(
            unsafe { to.row_mut(piece.row) },
            centring,
            piece,
            values(piece),
        );
    });
    Ok(())
}
