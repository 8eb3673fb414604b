//! Rows of a level that are copied from bank to bank.

use super::border::Unknowns;
use super::grids::{Grids, each};
use nestar_device::{Address, Number};
use nestar_engine::data::Field;
use nestar_engine::step::FieldView;
use nestar_engine::{Error, in_precision};
use nestar_kernels::multigrid::device;

/// Which state of a level.
#[derive(Clone, Copy)]
pub(super) enum When {
    /// The present one.
    Present,
    /// That before its step.
    Before,
}

impl<P: Unknowns> Grids<'_, '_, P> {
    /// Copies own rows of a level to the present unknowns; the caller says that these have changed.
    pub(super) fn copy<F: Field>(&self, from: &FieldView<F>, when: When) -> Result<(), Error> {
        let (level, to) = (from.level(), self.potential.own_on(from.level()));
        if let Some(kernels) = &self.solver.kernels {
            let bank = from.banks()[when as usize];
            let banks = [from.device().bank(bank), to.device().bank(to.banks()[0])];
            let (rows, count) = (to.place().on_device().rows(level), to.rows().len());
            let given = self.copied(level, banks.map(Address::from), (rows, count));
            return kernels.launch(&kernels.keep, count, &given);
        }
        in_precision!(to.precision(), R => {
            let from = match when {
                When::Present => from.present::<R>(),
                When::Before => from.next::<R>(),
            };
            let values = to.present::<R>();
            // SAFETY: distinct rows.
            each(to.rows(), |row| unsafe { values.row_mut(row) }.copy_from_slice(from.row(row)));
        });
        Ok(())
    }

    /// What the kernel is told that copies rows of a level.
    pub(super) fn copied(
        &self,
        level: usize,
        [from, to]: [Address<Number>; 2],
        (rows, count): (u64, usize),
    ) -> device::CoarseChangeParameters<Number> {
        device::CoarseChangeParameters {
            view: self.potential.own_on(level).on_device(),
            from,
            to,
            after: Address::NONE,
            before: Address::NONE,
            beyond_after: self.beyond.on_device(1.0),
            beyond_before: self.beyond.on_device(1.0),
            rows: rows.into(),
            count: count as i32,
            factor: 0.0,
        }
    }
}
