//! A field's pool as a store.

use super::device::DevicePool;
use super::pieces::{DevicePieces, Piece};
use super::pool::{Field, Pool};
use super::storage::with_storage;
use super::store::{LevelBank, MeshContext, Store};
use super::{FieldSpec, Precision, operators, totals};
use crate::device::DeviceError;
use crate::mesh::NewRows;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::parameters::RepairedCells;
use nestar_snapshot::Values;
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

    fn total_row_bytes(&self) -> usize {
        let results = usize::from(self.keeps_results) * Store::row_bytes(self);
        self.spec.row_bytes(self.precision()) + results
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn register_bytes(&self) -> usize {
        Self::register_bytes(self)
    }

    fn on_regrid(
        &mut self,
        around: &MeshContext,
        level: usize,
        new: &[u32],
    ) -> Result<(), DeviceError> {
        operators::on_regrid(self, around, level, new)
    }

    fn allocate_octets(&mut self, octets: &[u32]) -> Result<(), DeviceError> {
        with_storage!(&mut self.storage, typed => typed.allocate_octets(octets), _ => Ok(()))
    }

    fn fill(&mut self, around: &MeshContext, new: &NewRows) -> Result<(), DeviceError> {
        operators::fill(self, around, new)
    }

    fn node_sums(
        &self,
        around: &MeshContext,
        level: usize,
        nodes: &[Range<usize>],
    ) -> Result<Vec<f64>, DeviceError> {
        totals::node_sums(self, around, level, nodes)
    }

    fn mended_on_device(&self) -> Result<RepairedCells, DeviceError> {
        let mended = self.on_device().map(DevicePool::mended);
        mended.unwrap_or(Ok(RepairedCells::default()))
    }

    fn save(&self, level: usize, component: usize, rows: &[u32]) -> Result<Values, DeviceError> {
        Ok(match self.precision() {
            Precision::Single => Values::F32(self.values(level, component..component + 1, rows)?),
            Precision::Double => Values::F64(self.values(level, component..component + 1, rows)?),
        })
    }

    fn load(
        &mut self,
        around: &MeshContext,
        level: usize,
        component: usize,
        rows: &[u32],
        values: &Values,
    ) -> Result<(), String> {
        let stored = match (self.precision(), values) {
            (Precision::Single, Values::F32(values)) => {
                self.load_as(level, component, rows, values)
            }
            (Precision::Double, Values::F64(values)) => {
                self.load_as(level, component, rows, values)
            }
            (Precision::Single, Values::F64(values)) => {
                let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
                self.load_as(level, component, rows, &values)
            }
            (Precision::Double, Values::F32(values)) => {
                let values: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
                self.load_as(level, component, rows, &values)
            }
            _ => return Err("the array holds integers".into()),
        };
        stored?;
        self.set_time(level, around.levels.time(level));
        self.touch(level, rows);
        Ok(())
    }

    fn save_on_device(
        &self,
        level: usize,
        components: Range<usize>,
        list: &DevicePieces,
    ) -> Result<(), DeviceError> {
        let at = Store::present_bank(self, level);
        self.device().start_packing(at, components, list)
    }

    fn present_bank(&self, level: usize) -> LevelBank {
        let bank = self.current(level);
        LevelBank { level, bank }
    }

    fn read_by_gather(&self, level: usize) -> [Option<LevelBank>; 3] {
        // coarser rows are not interpolated from
        let below = level.checked_sub(1).filter(|_| self.spec.side == PATCH);
        let (old, new, _) = self.coarse_clock(level, self.time(level));
        let coarse = |bank| below.map(|level| LevelBank { level, bank });
        let older = coarse(old).filter(|_| old != new);
        [Some(self.present_bank(level)), coarse(new), older]
    }

    fn valid_layers(&self, at: LevelBank) -> usize {
        self.clocks[at.level].valid_layers[at.bank]
    }

    fn set_valid_layers(&mut self, at: LevelBank, layers: usize) {
        self.clocks[at.level].valid_layers[at.bank] = layers;
    }

    fn invalidate_halos(&mut self, level: usize) {
        self.clocks[level].valid_layers.fill(0);
    }

    fn pack(&self, at: LevelBank, pieces: &[Piece], out: &mut [u8]) -> Result<(), DeviceError> {
        self.fetch(at, 0..self.components(), pieces, out)
    }

    fn unpack(
        &mut self,
        at: LevelBank,
        pieces: &[Piece],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError> {
        self.put(at, 0..self.components(), pieces, bytes)?;
        if owned {
            let rows: Vec<u32> = pieces.iter().map(|piece| piece.row).collect();
            self.touch(at.level, &rows);
        }
        Ok(())
    }

    fn pack_on_device(&self, at: LevelBank, list: &DevicePieces) -> Result<(), DeviceError> {
        self.device().start_packing(at, 0..self.components(), list)
    }

    fn unpack_on_device(
        &mut self,
        at: LevelBank,
        list: &DevicePieces,
        owned: bool,
    ) -> Result<(), DeviceError> {
        if owned {
            self.mark_changed(at.level);
        }
        self.device()
            .start_unpacking(at, 0..self.components(), list)
    }
}
