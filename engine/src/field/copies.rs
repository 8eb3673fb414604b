//! A field's pool as a store.

use super::device::DevicePool;
use super::pieces::{OnDevice, Piece};
use super::pool::{Field, Pool};
use super::storage::with_storage;
use super::store::{BankOf, Store, Surroundings};
use super::{FieldSpec, Precision, operations, totals};
use crate::device::DeviceError;
use crate::mesh::NewRows;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::parameters::Mended;
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

    fn hold(&mut self, octets: &[u32]) -> Result<(), DeviceError> {
        with_storage!(&mut self.storage, typed => typed.hold(octets), _ => Ok(()))
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

    fn mended_on_device(&self) -> Result<Mended, DeviceError> {
        let mended = self.on_device().map(DevicePool::mended);
        mended.unwrap_or(Ok(Mended::default()))
    }

    fn save(&self, level: usize, component: usize, rows: &[u32]) -> Result<Values, DeviceError> {
        Ok(match self.precision() {
            Precision::Single => Values::F32(self.values(level, component..component + 1, rows)?),
            Precision::Double => Values::F64(self.values(level, component..component + 1, rows)?),
        })
    }

    fn load(
        &mut self,
        around: &Surroundings,
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
        list: &OnDevice,
    ) -> Result<(), DeviceError> {
        let at = Store::present_bank(self, level);
        self.device().start_packing(at, components, list)
    }

    fn present_bank(&self, level: usize) -> BankOf {
        let bank = self.current(level);
        BankOf { level, bank }
    }

    fn read_by_gather(&self, level: usize) -> [Option<BankOf>; 3] {
        // coarser rows are not interpolated from
        let below = level.checked_sub(1).filter(|_| self.spec.side == PATCH);
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
        self.fetch(at, 0..self.components(), pieces, out)
    }

    fn unpack(
        &mut self,
        at: BankOf,
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
