//! First-order fallback on a device; the same rounds as in `hydro/fallback.rs`.

use super::super::capture::{
    FallbackLog, FoundCell, StageContext, StepFailure, StepResult, UnphysicalCell,
};
use super::super::fallback::{ROUNDS, describe};
use super::{GasDevice, StepKernel, StepKernelParameters, placement};
use crate::fields::Gas;
use nestar_engine::comm::Comm;
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_engine::mesh::Topology;
use nestar_engine::step::FieldView;
use nestar_kernels::hydro::solver::device::{CollectParameters, FluidProgram, STEP, Status};
use std::collections::BTreeMap;

/// Number of words in the cell mask of a patch.
const WORDS: usize = 16;

impl GasDevice {
    /// Repeats the update with first-order fluxes at unphysical cells until there are none. Returns the number of
    /// corrected cells.
    pub(super) fn first_order_fallback(
        &mut self,
        parameters: StepKernelParameters,
        StageContext { clock, stage, .. }: StageContext,
        topology: &Topology,
        gas: &FieldView<Gas>,
        others: &Comm,
        log: &mut FallbackLog,
    ) -> StepResult<u64> {
        if self.fallback.is_none() {
            self.fallback = Some(self.compile_fallback(gas)?);
        }
        let parameters = StepKernelParameters {
            first_order: self.first_order.address().into(),
            ..parameters
        };
        for round in 0..=ROUNDS {
            let found = self.collect(&parameters, round == 0)?;
            if !others.any(found.unphysical > 0)? {
                return Ok(others.sum(u64::from(found.first_order))?);
            }
            self.exchange_masks(clock.level, others)?;
            if log.row.is_some() && round < ROUNDS {
                let masks = self.masks(topology)?;
                log.note(topology, |row| masks[row as usize]);
            }
            if round < ROUNDS
                && let Some(fallback) = &self.fallback
            {
                self.launch(fallback, &parameters)?;
            }
        }
        let report = self.report(clock.level, topology, gas, stage)?;
        let cell = UnphysicalCell::agreed(report, others)?;
        Err(StepFailure::Rejected(cell))
    }

    /// Downloads the first-order cells of each row.
    fn masks(&self, topology: &Topology) -> Result<Vec<[u64; 8]>, DeviceError> {
        let mut words = vec![0u32; WORDS * topology.capacity()];
        self.device.download(&self.first_order, 0, &mut words)?;
        let mask = |words: &[u32]| {
            std::array::from_fn(|k| u64::from(words[2 * k]) | u64::from(words[2 * k + 1]) << 32)
        };
        Ok(words.chunks_exact(WORDS).map(mask).collect())
    }

    /// Sends the masks of first-order cells to ranks with adjacent patches.
    fn exchange_masks(&self, level: usize, others: &Comm) -> StepResult<()> {
        let mut sent = BTreeMap::new();
        for row in others.sent_rows(level) {
            let mut words = [0u32; WORDS];
            self.device
                .download(&self.first_order, WORDS * row as usize, &mut words)?;
            sent.insert(row, words);
        }
        let mut received = Vec::new();
        let words = |row: u32| sent[&row];
        others.update_halo_values(level, words, |row, words: [u32; WORDS]| {
            received.push((row, words))
        })?;
        for (row, words) in received {
            self.device
                .upload(&self.first_order, WORDS * row as usize, &words)?;
        }
        Ok(())
    }

    fn compile_fallback(&self, gas: &FieldView<Gas>) -> Result<StepKernel, DeviceError> {
        let mut program = FluidProgram {
            first_order_fallback: true,
            blocks: 1,
            ..self.program
        };
        program.placement = placement(&program, &self.device.limits());
        let source = gas
            .device()
            .program(&program.items(), &[&program.text(), STEP]);
        let module = self.device.compile("first_order_fallback", &source)?;
        StepKernel::new(&self.device, module.kernel("fluid_step")?, &program)
    }

    /// Adds unphysical cells to the first-order cells.
    fn collect(&self, step: &StepKernelParameters, fresh: bool) -> Result<Status, DeviceError> {
        self.device.fill_zero(&self.status, 0..1)?;
        let parameters = CollectParameters {
            rows: step.rows,
            unphysical: step.unphysical,
            first_order: step.first_order,
            status: step.status,
            count: step.count,
            fresh,
        };
        let shape = LaunchShape::of(step.count as usize, 32);
        self.device.launch(&self.collect, shape, &parameters)?;
        self.status()
    }

    /// Finds the first cell that could not be corrected.
    fn report(
        &self,
        level: usize,
        topology: &Topology,
        gas: &FieldView<Gas>,
        stage: usize,
    ) -> Result<Option<FoundCell>, DeviceError> {
        let mut words = vec![0u32; WORDS * topology.capacity()];
        self.device.download(&self.unphysical, 0, &mut words)?;
        let found = topology.rows(level).iter().find_map(|&row| {
            let words = &words[WORDS * row as usize..][..WORDS];
            let n = words.iter().position(|&word| word != 0)?;
            Some((row, n * 32 + words[n].trailing_zeros() as usize))
        });
        let Some((row, cell)) = found else {
            return Ok(None);
        };
        let (before, after) = (gas.banks()[0], gas.stage_bank(stage));
        let before = gas.device().cell(before, row, cell)?;
        let after = gas.device().cell(after, row, cell)?;
        let why = describe(topology, row, cell, &before, &after);
        Ok(Some(FoundCell {
            why,
            place: (row, cell),
            after,
        }))
    }
}
