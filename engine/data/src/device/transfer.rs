//! Packs and unpacks pieces of rows and registers in device memory, and transfers them to and from the host.

use super::DevicePool;
use crate::in_precision;
use crate::store::{DevicePieces, LevelBank, Piece, RowShape};
use nestar_device::{Number, Real};
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{Buffer, Device, DeviceError, Kernel, LaunchShape};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::parameters::TransferParameters;
use std::ops::Range;

impl DevicePool {
    /// Starts packing components of pieces; later work on the stream of the device sees the result.
    pub(crate) fn start_packing(
        &self,
        at: LevelBank,
        components: Range<usize>,
        list: &DevicePieces,
    ) -> Result<(), DeviceError> {
        let kernels = &self.kernels;
        self.move_pieces(
            [&kernels.pack, &kernels.pack_registers],
            at,
            components,
            list,
        )
    }

    /// Starts unpacking components of pieces.
    pub(crate) fn start_unpacking(
        &self,
        at: LevelBank,
        components: Range<usize>,
        list: &DevicePieces,
    ) -> Result<(), DeviceError> {
        let kernels = &self.kernels;
        self.move_pieces(
            [&kernels.unpack, &kernels.unpack_registers],
            at,
            components,
            list,
        )
    }

    /// Launches the first kernel on pieces of rows, or the second on registers.
    fn move_pieces(
        &self,
        [of_rows, of_registers]: [&Kernel; 2],
        at: LevelBank,
        components: Range<usize>,
        list: &DevicePieces,
    ) -> Result<(), DeviceError> {
        let count = list.entries.len();
        if at.bank == LevelBank::REGISTERS || at.bank == LevelBank::CIRCULATIONS {
            let Some(registers) = &self.registers else {
                return Ok(());
            };
            let parameters = registers.transfer(at.level, list);
            return self
                .device
                .launch(of_registers, LaunchShape::of(count, 64), &parameters);
        }
        let parameters = TransferParameters::<Number> {
            level: self.bank(at.bank).into(),
            packed: list.memory.into(),
            pieces: list.list.into(),
            stale: self.stale().into(),
            first: components.start as i32,
            count: components.len() as i32,
            stride: list.stride as i64,
        };
        self.device
            .launch(of_rows, LaunchShape::of(count, 256), &parameters)
    }

    /// Packs components of pieces into host memory, which starts with the first.
    pub(crate) fn fetch(
        &self,
        at: LevelBank,
        components: Range<usize>,
        pieces: &[Piece],
        out: &mut [u8],
    ) -> Result<(), DeviceError> {
        self.in_chunks(components.len(), pieces, |list, values, bytes| {
            self.start_packing(at, components.clone(), list)?;
            self.device.download(values, 0, &mut out[bytes])
        })
    }

    /// Unpacks components of pieces from host memory: the inverse of [`DevicePool::fetch`].
    pub(crate) fn put(
        &self,
        at: LevelBank,
        components: Range<usize>,
        pieces: &[Piece],
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        self.in_chunks(components.len(), pieces, |list, values, range| {
            self.device.upload(values, 0, &bytes[range])?;
            self.start_unpacking(at, components.clone(), list)
        })
    }

    /// Sets components of pieces to zero.
    pub(crate) fn clear(
        &self,
        at: LevelBank,
        components: Range<usize>,
        pieces: &[Piece],
    ) -> Result<(), DeviceError> {
        self.in_chunks(components.len(), pieces, |list, values, range| {
            self.device.fill_zero(values, 0..range.len())?;
            self.start_unpacking(at, components.clone(), list)
        })
    }

    /// Calls `work` for batches of pieces that fit in the staging buffer.
    /// Its arguments are the list, the buffer, and the byte range of the batch.
    fn in_chunks(
        &self,
        components: usize,
        pieces: &[Piece],
        mut work: impl FnMut(&DevicePieces, &Buffer<u8>, Range<usize>) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        assert!(
            pieces.iter().all(|piece| (piece.row as usize) < self.rows),
            "a row is outside the {} rows of the pool",
            self.rows
        );
        let groups = self.text.shape.centring.groups();
        let bytes = |values: u64| values as usize * components / groups * self.value_bytes();
        let base = pieces.first().map_or(0, |piece| piece.before);
        let end = |piece: &Piece| piece.before + piece.values(self.shape()) as u64;
        let mut staging = lock(&self.staging);
        let staging = Staging::provide(&mut staging, &self.device, self.row_bytes())?;
        let mut left = pieces;
        while let Some(&Piece { before, .. }) = left.first() {
            let fits = |piece: &&Piece| bytes(end(piece) - before) <= staging.values.len();
            let count = left
                .iter()
                .take(staging.list.len())
                .take_while(fits)
                .count();
            let (now, later) = left.split_at(count);
            let mut entries = now.to_vec();
            entries.iter_mut().for_each(|piece| piece.before -= before);
            self.device.upload(&staging.list, 0, &entries)?;
            let list = DevicePieces {
                entries: &entries,
                device: &self.device,
                list: staging.list.address(),
                memory: staging.values.address(),
                stride: 0,
            };
            let last = now.last().map_or(before, end);
            work(
                &list,
                &staging.values,
                bytes(before - base)..bytes(last - base),
            )?;
            left = later;
        }
        Ok(())
    }

    /// Returns the state of one cell of a row in a bank, for messages.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn cell(&self, bank: usize, row: u32, cell: usize) -> Result<Vec<f64>, DeviceError> {
        // all levels share the memory of a bank
        let at = LevelBank { level: 0, bank };
        let whole = [Piece::whole(row, 0, self.shape())];
        in_precision!(self.precision, R => {
            let mut state: Vec<R> = vec![0.0; self.row_values()];
            let bytes = bytemuck::cast_slice_mut(&mut state);
            self.fetch(at, 0..self.components, &whole, bytes)?;
            Ok(state.into_iter().skip(cell).step_by(CELLS).map(Real::to_f64).collect())
        })
    }

    fn shape(&self) -> RowShape {
        self.text.shape
    }
}

/// Bytes per transfer.
const CHUNK: usize = 16 << 20;

/// A list of pieces and their packed values.
pub(super) struct Staging {
    pub(super) list: Buffer<Piece>,
    pub(super) values: Buffer<u8>,
}

impl Staging {
    /// Returns the buffer, allocated at the first use with space for at least one row of `row_bytes`.
    pub(super) fn provide<'a>(
        kept: &'a mut Option<Self>,
        device: &Device,
        row_bytes: usize,
    ) -> Result<&'a Self, DeviceError> {
        let staging = match kept.take() {
            Some(staging) => staging,
            None => Self {
                list: device.buffer(CHUNK / (4 * CELLS))?,
                values: device.buffer(CHUNK.max(row_bytes))?,
            },
        };
        Ok(kept.insert(staging))
    }
}
