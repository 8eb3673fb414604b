//! What a level takes over from the coarser one: changes of the potential there, interpolated.

use super::border::Unknowns;
use super::grids::{Grids, KEPT, each};
use nestar_device::{Address, Number};
use nestar_engine::data::{Element, Field};
use nestar_engine::step::FieldView;
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Rows;
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::level::Change;

/// What is added to the unknowns of a level.
pub(super) enum Added {
    /// To those before its step: so much of what the coarser level has changed in its own.
    Step(f64),
    /// To the present ones: what the coarser level has changed since [`Grids::tell`].
    Correction,
}

impl Added {
    fn in_step(&self) -> bool {
        matches!(self, Self::Step(_))
    }

    fn factor(&self) -> f64 {
        match *self {
            Self::Step(factor) => factor,
            Self::Correction => 1.0,
        }
    }
}

/// A level after and before its change on the host.
fn states<'a, R: Element, F: Field>(view: &FieldView<'a, F>, added: &Added) -> [Rows<'a, R>; 2] {
    let before = match added.in_step() {
        true => view.next::<R>(),
        false => view.scratch::<R>(0),
    };
    [view.present::<R>(), before]
}

/// The same on a device.
fn states_on_device<F: Field>(view: &FieldView<F>, added: &Added) -> [Address<Number>; 2] {
    let [after, before] = view.banks();
    let before = if added.in_step() { before } else { KEPT };
    [after, before].map(|n| view.device().bank(n).into())
}

impl<P: Unknowns> Grids<'_, '_, P> {
    /// Adds to the unknowns of a level what the coarser one has changed, interpolated.
    pub(super) fn add_change(&mut self, level: usize, added: &Added) -> Result<(), Error> {
        self.potential.refresh_on(&mut self.ranks, level)?;
        if let Some(kernels) = &self.solver.kernels {
            let given = self.device_change(level, added)?;
            let rows = given.count as usize;
            kernels
                .add_change
                .count_work(rows * CELLS, rows * CELLS * 24);
            kernels.launch(&kernels.add_change, rows, &given)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let view = self.potential.get_on(level, 1)?;
                let change = self.host_change::<R>(level, added);
                let to = view.present::<R>();
                let from = if added.in_step() { view.next::<R>() } else { to };
                // SAFETY: distinct rows, each read by its own task alone.
                each(view.rows(), |row| unsafe { change.add(row, &from, &to) });
            });
        }
        self.potential.change_on(level);
        Ok(())
    }

    fn host_change<R: Element>(&self, level: usize, added: &Added) -> Change<'_, R> {
        let topology = self.rows.view_of(level).topology;
        let [after, before] = self.changed(level - 1, added);
        Change {
            neighbours: topology.neighbour_table(),
            parent: topology.parent_table(),
            index: topology.index_table(),
            after,
            before,
            exterior: match added.in_step() {
                true => {
                    (self.weights_of_step(level - 1)).map(|weight| self.exterior(level, weight))
                }
                false => [self.beyond.kept_on_host(), self.beyond.on_host(1.0)],
            },
            number: level as i32 - 1,
            factor: R::lit(added.factor()),
        }
    }

    /// Weights of the newer state of the root level before and after the latest step of a level.
    fn weights_of_step(&self, level: usize) -> [f64; 2] {
        self.potential.own_on(level).weights_on(0)
    }

    fn device_change(
        &self,
        level: usize,
        added: &Added,
    ) -> Result<device::CoarseChangeParameters<Number>, Error> {
        let view = self.potential.get_on(level, 1)?;
        let [present, old] = view.banks();
        let [after, before] = self.changed_on_device(level - 1, added);
        let bank = |n| Address::<Number>::from(view.device().bank(n));
        let [beyond_before, beyond_after] = match added.in_step() {
            true => (self.weights_of_step(level - 1))
                .map(|weight| self.exterior_on_device(level, weight)),
            false => [self.beyond.kept_on_device(), self.beyond.on_device(1.0)],
        };
        Ok(device::CoarseChangeParameters {
            beyond_after,
            beyond_before,
            view: view.on_device(),
            from: bank(if added.in_step() { old } else { present }),
            to: bank(present),
            after,
            before,
            rows: view.place().on_device().rows(level).into(),
            count: view.rows().len() as i32,
            factor: added.factor(),
        })
    }

    /// The coarser level, numbered `level`, after and before its change.
    fn changed<R: Element>(&self, level: usize, added: &Added) -> [Rows<'_, R>; 2] {
        match P::coarser(&self.coarser) {
            Some(coarser) => states(&coarser.potential.own_on(level), added),
            None => states(&self.potential.own_on(level), added),
        }
    }

    fn changed_on_device(&self, level: usize, added: &Added) -> [Address<Number>; 2] {
        match P::coarser(&self.coarser) {
            Some(coarser) => states_on_device(&coarser.potential.own_on(level), added),
            None => states_on_device(&self.potential.own_on(level), added),
        }
    }
}
