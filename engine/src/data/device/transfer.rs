//! Pieces of rows and of flux registers into and out of packed memory of the device, and over the bus: the only ways by which a
//! field leaves the device.

use super::DevicePool;
use super::staging::Staging;
use crate::data::pieces::{DevicePieces, Piece, RowShape};
use crate::data::store::LevelBank;
use crate::device::parallel::lock;
use crate::device::{Buffer, DeviceError, Kernel, LaunchShape};
use crate::in_precision;
use nestar_device::{Number, Real};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::parameters::TransferParameters;
use std::ops::Range;

impl DevicePool {
    /// Starts to pack components of pieces; what comes next on the device's stream finds them there.
    pub(in crate::data) fn start_packing(
        &self,
        at: LevelBank,
        components: Range<usize>,
        list: &DevicePieces,
    ) -> Result<(), DeviceError> {
        let kernels = &self.kernels;
        self.move_pieces([&kernels.pack, &kernels.pack_faces], at, components, list)
    }

    /// Starts to set components of pieces.
    pub(in crate::data) fn start_unpacking(
        &self,
        at: LevelBank,
        components: Range<usize>,
        list: &DevicePieces,
    ) -> Result<(), DeviceError> {
        let kernels = &self.kernels;
        self.move_pieces(
            [&kernels.unpack, &kernels.unpack_faces],
            at,
            components,
            list,
        )
    }

    /// Launches a kernel on pieces of rows, or the other on registers.
    fn move_pieces(
        &self,
        [of_rows, of_registers]: [&Kernel; 2],
        at: LevelBank,
        components: Range<usize>,
        list: &DevicePieces,
    ) -> Result<(), DeviceError> {
        let count = list.entries.len();
        if at.bank == LevelBank::REGISTERS {
            let Some(registers) = &self.registers else {
                return Ok(());
            };
            let parameters = registers.faces(at.level, list);
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

    /// Packs components of pieces into memory of the host, which begins with the first.
    pub(in crate::data) fn fetch(
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

    /// The inverse of [`DevicePool::fetch`].
    pub(in crate::data) fn put(
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
    pub(in crate::data) fn clear(
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

    /// Calls `work` with as many pieces at a time as the staging memory holds, that memory, and the bytes of all that stand there.
    fn in_chunks(
        &self,
        components: usize,
        pieces: &[Piece],
        mut work: impl FnMut(&DevicePieces, &Buffer<u8>, Range<usize>) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        assert!(
            pieces.iter().all(|piece| (piece.row as usize) < self.rows),
            "a row beyond the pool's {}",
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

    /// The state of one cell of a row of bank `bank`, for messages.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn cell(&self, bank: usize, row: u32, cell: usize) -> Result<Vec<f64>, DeviceError> {
        // rows of all levels stand in one stretch of memory
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
