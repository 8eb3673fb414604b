//! Lists of criteria on the device.

use super::cells::LaunchOptions;
use crate::data::criteria::CriteriaList;
use crate::data::level::LevelView;
use crate::data::list_text::FAULT;
use crate::data::pool::{Field, Pool};
use crate::device::DeviceError;
use crate::device::parallel::lock;
use crate::in_precision;
use nestar_kernels::mesh::device::SkeletonFunction;
use nestar_kernels::mesh::parameters::CellParameters;
use nestar_kernels::mesh::{self, fault_place};

/// Words of memory before the sectors: those of a fault.
const FAULT_WORDS: usize = mesh::FAULT_WORDS.div_ceil(2);

impl<F: Field> Pool<F> {
    /// As `marked_by`: the sectors, and the message of a fault in the user's formulas.
    pub(in crate::data) fn sectors_by_on_device(
        &self,
        level: &LevelView,
        buffer: usize,
        marks: &CriteriaList,
    ) -> Result<(Vec<u32>, Option<String>), DeviceError> {
        let (pool, count) = (self.device(), level.rows().len());
        let function = SkeletonFunction::List(marks.text());
        let mut words = lock(&pool.words);
        let sectors = FAULT_WORDS + count.div_ceil(2);
        let words = pool.zeroed(&mut words, function, [sectors, count], FAULT_WORDS)?;
        let order = LaunchOptions {
            buffer: buffer as i32,
            ..LaunchOptions::default()
        };
        let mut input = self.cell_input(level, &[], order);
        let address = |word: usize| words.address() + 8 * word as u64;
        // faults of rules and of formulas come down with the sectors
        input.view.fault = address(0).into();
        input.sectors = address(FAULT_WORDS).into();
        input.blocks = address(sectors).into();
        input.given = pool.structures(&marks.written.structures)?.into();
        let kernel = pool.kernel_for(function, super::cells::MARKS, 0)?;
        in_precision!(pool.precision(), R => {
            let given: [R; 0] = [];
            pool.start(&kernel, function, count, &mut CellParameters { input, given })?;
        });
        let mut found = vec![0u64; sectors];
        pool.device.download(words, 0, &mut found)?;
        let found: &[u32] = bytemuck::cast_slice(&found);
        let fault = found
            .first_chunk()
            .and_then(|fault| self.explain(marks, fault));
        Ok((found[2 * FAULT_WORDS..][..count].to_vec(), fault))
    }

    /// The message of a fault: of a number of the list or of a rule beyond a face.
    fn explain(&self, marks: &CriteriaList, fault: &[u32; mesh::FAULT_WORDS]) -> Option<String> {
        let Some(n) = fault[0].checked_sub(FAULT) else {
            return self.device().explain(fault);
        };
        let mut numbers = marks.list.iter().flat_map(|mark| &mark.of);
        let (place, time) = fault_place(fault);
        numbers.nth(n as usize)?.fault(place, time)
    }
}
