//! Account of the dual-energy formalism: how often the internal energy replaces the total one, and the energy that the gas gains by this.

use super::stages::LevelStage;
use bevy_ecs::prelude::*;
use nestar_engine::comm::DiagnosticColumns;
use nestar_engine::mesh::Topology;
use nestar_engine::step::{BudgetId, Budgets};
use nestar_engine::{Engine, Error};
use nestar_kernels::CELLS;
use nestar_kernels::hydro::Replacements;
use nestar_kernels::mesh::exact_sum::ExactSum;

/// Name of the account.
const NAME: &str = "dual_energy";
/// Its numbers: the energy gained, and among all updates of leaf cells those in which the internal energy replaced the total one.
const NUMBERS: [&str; 3] = ["heat", "updates", "all_updates"];

/// The account of a run with the dual-energy formalism.
#[derive(Resource, Clone, Copy)]
pub(super) struct ReplacementAccount(BudgetId);

impl ReplacementAccount {
    /// Opens the account and adds its columns.
    ///
    /// # Errors
    /// Another plugin uses its name.
    pub fn register(sim: &mut Engine) -> Result<(), Error> {
        let id = sim.register_budget(NAME, &NUMBERS)?;
        let heat = format!("{NAME}_{}", NUMBERS[0]);
        DiagnosticColumns::set_units(&mut sim.world, heat, "mass*length**2/time**2");
        let share = move |world: &World| {
            let budgets = world.resource::<Budgets>();
            match budgets.total(id, 2) {
                0.0 => 0.0,
                all => budgets.total(id, 1) / all,
            }
        };
        DiagnosticColumns::add_number(&mut sim.world, "dual_energy_share", share);
        sim.world.insert_resource(Self(id));
        Ok(())
    }

    /// Adds an accepted step of a level on this rank.
    pub fn add(self, budgets: &mut Budgets, level: usize, step: LevelReplacements) {
        let LevelReplacements {
            heat,
            updates,
            all_updates,
        } = step;
        let count = |cells: u64| {
            let mut sum = ExactSum::default();
            sum.add(cells as f64);
            sum
        };
        budgets.add_sums(self.0, level, [heat, count(updates), count(all_updates)]);
    }
}

/// Replacements in the leaf cells of a level on this rank, in one step.
#[derive(Default)]
pub(super) struct LevelReplacements {
    /// Energy that these cells gained.
    heat: ExactSum,
    /// Cells in which the internal energy replaced the total one, in the last stage.
    updates: u64,
    /// All leaf cells.
    all_updates: u64,
}

impl LevelReplacements {
    /// Adds a stage of a step, whose replacements in a row `of_row` returns.
    pub fn add_stage<R: nestar_device::Real>(
        &mut self,
        (topology, level): (&Topology, usize),
        stage: LevelStage,
        of_row: impl Fn(u32) -> Replacements<R>,
    ) {
        // later stages keep this part of what an earlier one adds
        let part = topology.domain.cell_volume(level) * (stage.share.share / stage.weight);
        let is_last = stage.share.stage + 1 == stage.share.stages;
        for &row in topology
            .rows(level)
            .iter()
            .filter(|row| topology.is_leaf(**row))
        {
            let Replacements { cells, gain } = of_row(row);
            if cells > 0 {
                self.heat.add(part * gain.to_f64());
            }
            if is_last {
                self.updates += u64::from(cells);
                self.all_updates += CELLS as u64;
            }
        }
    }
}
