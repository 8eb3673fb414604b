//! Copies parts of rows and of registers between pools and packed buffers, on the host or on a device.

use super::field_spec::Element;
use super::pool::{Field, Pool};
use super::storage::{TypedPool, with_storage};
use super::store::{LevelBank, Piece, RowShape};
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::parallel;
use std::ops::Range;

impl<F: Field> Pool<F> {
    /// Copies the present state of rows of `level` to the host, `[row][component][8][8][8]`. Device counters include
    /// the transfer.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the pool has the other precision.
    pub fn host<R: Element>(&self, level: usize, rows: &[u32]) -> Result<Vec<R>, DeviceError> {
        self.values(level, 0..self.components(), rows)
    }

    /// Sets the present state of distinct rows of `level` from `[row][component][8][8][8]` and marks them as changed.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the pool has the other precision, or the number of values does not fit the rows.
    pub fn store<R: Element>(
        &mut self,
        level: usize,
        rows: &[u32],
        values: &[R],
    ) -> Result<(), DeviceError> {
        assert_eq!(
            values.len(),
            rows.len() * self.spec.row_values(),
            "values of the rows"
        );
        self.set_values(level, 0..self.components(), rows, values)?;
        self.touch(level, rows);
        Ok(())
    }

    /// Sets the present state of distinct rows of `level` to zero and marks them as changed.
    ///
    /// # Errors
    /// The device fails.
    pub(super) fn clear(&mut self, level: usize, rows: &[u32]) -> Result<(), DeviceError> {
        let (at, all, shape) = (
            self.present_state(level),
            0..self.components(),
            self.spec.shape(),
        );
        let zeros = rows.len() * self.spec.row_values() * self.precision().bytes();
        let pieces: Vec<Piece> = Piece::whole_rows(rows, shape).collect();
        with_storage!(&mut self.storage,
            typed => typed.put(at, shape, &all, &pieces, &vec![0; zeros]),
            device => device.clear(at, all, &pieces)?);
        self.touch(level, rows);
        Ok(())
    }

    /// As [`Pool::host`] for some components.
    pub(super) fn values<R: Element>(
        &self,
        level: usize,
        components: Range<usize>,
        rows: &[u32],
    ) -> Result<Vec<R>, DeviceError> {
        let mut out = vec![R::lit(0.0); rows.len() * components.len() * self.spec.shape().values()];
        let bytes = bytemuck::cast_slice_mut(&mut out);
        let pieces = self.whole::<R>(rows);
        self.fetch(self.present_state(level), components, &pieces, bytes)?;
        Ok(out)
    }

    fn set_values<R: Element>(
        &mut self,
        level: usize,
        components: Range<usize>,
        rows: &[u32],
        values: &[R],
    ) -> Result<(), DeviceError> {
        let bytes = bytemuck::cast_slice(values);
        let pieces = self.whole::<R>(rows);
        self.put(self.present_state(level), components, &pieces, bytes)
    }

    /// Sets component `c` in rows of a level, `[row][k][j][i]`.
    pub(super) fn load_as<R: Element>(
        &mut self,
        level: usize,
        c: usize,
        rows: &[u32],
        values: &[R],
    ) -> Result<(), String> {
        let length = self.spec.shape().values();
        if values.len() != rows.len() * length {
            let (values, rows) = (values.len(), rows.len());
            return Err(format!("{values} values for {rows} patches of {length}"));
        }
        let set = self.set_values(level, c..c + 1, rows, values);
        set.map_err(|error| error.to_string())
    }

    fn present_state(&self, level: usize) -> LevelBank {
        let bank = self.current(level);
        LevelBank { level, bank }
    }

    /// Returns pieces for whole rows, after checking the precision.
    fn whole<R: Element>(&self, rows: &[u32]) -> Vec<Piece> {
        assert_eq!(R::PRECISION, self.precision(), "precision of `{}`", F::NAME);
        Piece::whole_rows(rows, self.spec.shape()).collect()
    }

    /// Packs components of pieces into `out`, `[piece][component][value]`; partial rows need all components. `out`
    /// starts with the first piece.
    pub(super) fn fetch(
        &self,
        at: LevelBank,
        components: Range<usize>,
        pieces: &[Piece],
        out: &mut [u8],
    ) -> Result<(), DeviceError> {
        with_storage!(&self.storage,
            typed => { typed.fetch(at, self.spec.shape(), &components, pieces, out); Ok(()) },
            device => device.fetch(at, components, pieces, out))
    }

    /// Unpacks components of pieces of distinct rows: the inverse of [`Pool::fetch`].
    pub(super) fn put(
        &mut self,
        at: LevelBank,
        components: Range<usize>,
        pieces: &[Piece],
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let shape = self.spec.shape();
        with_storage!(&mut self.storage,
            typed => { typed.put(at, shape, &components, pieces, bytes); Ok(()) },
            device => device.put(at, components, pieces, bytes))
    }
}

/// Smallest number of pieces per task.
const GRAIN: usize = 32;

impl<R: Element> TypedPool<R> {
    /// As [`Pool::fetch`].
    fn fetch(
        &self,
        at: LevelBank,
        shape: RowShape,
        components: &Range<usize>,
        pieces: &[Piece],
        out: &mut [u8],
    ) {
        match at.bank {
            LevelBank::REGISTERS => return self.registers.pack(at.level, pieces, out),
            LevelBank::CIRCULATIONS => return self.circulations.pack(at.level, pieces, out),
            _ => (),
        }
        let from = self.bank(at.bank);
        let bytes = |values| bytes::<R>(values, shape, components);
        pack_all(pieces, &bytes, out, &|piece, out| {
            pack(from.row(piece.row), shape, components, piece, out);
        });
    }

    /// As [`Pool::put`].
    fn put(
        &mut self,
        at: LevelBank,
        shape: RowShape,
        components: &Range<usize>,
        pieces: &[Piece],
        bytes: &[u8],
    ) {
        match at.bank {
            LevelBank::REGISTERS => return self.registers.unpack(at.level, pieces, bytes),
            LevelBank::CIRCULATIONS => return self.circulations.unpack(at.level, pieces, bytes),
            _ => (),
        }
        let to = self.bank(at.bank);
        let base = pieces.first().map_or(0, |piece| piece.before);
        parallel::for_each_index(pieces.len(), GRAIN, &|n| {
            let piece = &pieces[n];
            // SAFETY: the pool is borrowed exclusively, and the pieces belong to distinct rows.
            let row = unsafe { to.row_mut(piece.row) };
            let begin = self::bytes::<R>(piece.before - base, shape, components);
            unpack(row, shape, components, piece, &bytes[begin..]);
        });
    }
}

/// Returns the bytes of `values` values as counted by pieces.
fn bytes<R>(values: u64, shape: RowShape, components: &Range<usize>) -> usize {
    values as usize * components.len() / shape.centring.groups() * size_of::<R>()
}

/// Calls `pack` for each piece with `out` from its place on, in parallel.
fn pack_all(
    pieces: &[Piece],
    bytes: &(dyn Fn(u64) -> usize + Sync),
    out: &mut [u8],
    pack: &(dyn Fn(&Piece, &mut [u8]) + Sync),
) {
    let Some(first) = pieces.first() else {
        return;
    };
    let place = |piece: &Piece| bytes(piece.before - first.before);
    if pieces.len() <= GRAIN {
        return pieces
            .iter()
            .for_each(|piece| pack(piece, &mut out[place(piece)..]));
    }
    let (low, high) = pieces.split_at(pieces.len() / 2);
    let (low_out, high_out) = out.split_at_mut(place(&high[0]));
    rayon::join(
        || pack_all(low, bytes, low_out, pack),
        || pack_all(high, bytes, high_out, pack),
    );
}

/// Packs components of a piece of `row` at the front of `out`.
fn pack<R: Element>(
    row: &[R],
    shape: RowShape,
    components: &Range<usize>,
    piece: &Piece,
    out: &mut [u8],
) {
    let mut to = 0;
    for c in components.clone() {
        let component = &row[c * shape.values()..][..shape.values()];
        for (first, length) in piece.stretches(shape, c) {
            let bytes: &[u8] = bytemuck::cast_slice(&component[first..first + length]);
            out[to..to + bytes.len()].copy_from_slice(bytes);
            to += bytes.len();
        }
    }
}

/// Unpacks a piece: the inverse of [`pack`].
fn unpack<R: Element>(
    row: &mut [R],
    shape: RowShape,
    components: &Range<usize>,
    piece: &Piece,
    bytes: &[u8],
) {
    let mut from = 0;
    for c in components.clone() {
        let component = &mut row[c * shape.values()..][..shape.values()];
        for (first, length) in piece.stretches(shape, c) {
            let to = bytemuck::cast_slice_mut::<R, u8>(&mut component[first..first + length]);
            to.copy_from_slice(&bytes[from..from + to.len()]);
            from += to.len();
        }
    }
}
