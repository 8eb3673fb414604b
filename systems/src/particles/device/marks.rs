//! Marks cells for refinement on a device.

use super::super::deposit::Deposit;
use super::super::refine::Limits;
use super::super::species::SpeciesMap;
use super::kernels::ParticleKernels;
use nestar_device::{Address, Number};
use nestar_engine::Error;
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::LaunchShape;
use nestar_kernels::particles::device::MarkParameters;

/// Threads per block.
const THREADS: u32 = 128;

impl ParticleKernels {
    /// Marks cells of a level by the deposit of all species; `marks` is the address of the marks. Returns the
    /// rows whose children must be kept.
    ///
    /// # Errors
    /// The device fails; another rank or the transport has failed.
    pub fn mark(
        &self,
        (deposit, limits): (&Deposit, &Limits),
        (all, tables, others): (&mut SpeciesMap, &DeviceTopology, &Comm),
        marks: u64,
    ) -> Result<Vec<u32>, Error> {
        deposit.add_on_device(all, (self, tables), (None, others))?;
        let rows = deposit.topology.rows(deposit.level);
        let mut memory = self.memory();
        let slot_table = memory.slot_tables.get(&deposit.level);
        let slots = slot_table.map_or(0, |(_, slot_table)| slot_table.addresses()[0]);
        let asks = limits.per_octant < f64::INFINITY;
        let kept = match asks {
            true => memory.kept.provide(&self.device, rows.len())?.address(),
            false => 0,
        };
        let mark = MarkParameters::<Number> {
            rows: tables.rows(deposit.level).into(),
            slots: slots.into(),
            sums: memory.sums.address().into(),
            per_cell: limits.per_cell,
            per_patch: limits.per_patch,
            marks: marks.into(),
            kept: if asks { kept.into() } else { Address::NONE },
            per_octant: limits.per_octant,
        };
        self.device
            .launch(&self.mark, LaunchShape::of(rows.len(), THREADS), &mark)?;
        let mut keeps = vec![0; if asks { rows.len() } else { 0 }];
        if let Some(buffer) = memory.kept.buffer().filter(|_| asks) {
            self.device.download(buffer, 0, &mut keeps)?;
        }
        let keeps = rows.iter().zip(keeps).filter(|(_, keeps)| *keeps > 0);
        Ok(keeps.map(|(&row, _)| row).collect())
    }
}
