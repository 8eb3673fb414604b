//! Functions of a cell, or of the states around it, as limits of the step, refinement criteria and columns of the diagnostics.

use crate::order::{Flag, Limit};
use bevy_ecs::prelude::*;
use nestar_engine::Engine;
use nestar_engine::field::{CellMark, CellValue, Field, LevelRows};
use nestar_engine::mesh::RefineRequests;
use nestar_engine::ranks::{Columns, Reduce};
use nestar_engine::step::{Read, Settings, StepLimits};

/// What a plugin adds with a `#[device]` function of a cell. The functions read field `F` where it lives; their parameters stay
/// the same for the whole run (place, time and width come with the cell).
pub trait Register {
    /// A limit of the time step: the smallest value of `M` in a level's cells, in units of time. `name` is what the run log
    /// shows.
    fn limit<F: Field, M: CellValue>(&mut self, name: &'static str, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync;

    /// A refinement criterion: cells where `M` holds want a finer mesh, with the flag buffer of the deck.
    fn criterion<F: Field, M: CellMark>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync;

    /// A column of the diagnostics: `M` in all leaf cells, reduced.
    fn column<F: Field, M: CellValue>(
        &mut self,
        name: &'static str,
        reduce: Reduce,
        parameters: M::Parameters,
    ) where
        M::Parameters: Send + Sync;
}

impl Register for Engine {
    fn limit<F: Field, M: CellValue>(&mut self, name: &'static str, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        let limit = move |rows: LevelRows, field: Read<F>, mut limits: ResMut<StepLimits>| {
            limits.propose(name, field.smallest::<M>(&rows, &parameters));
        };
        self.system_in(Limit::Propose, limit).depth::<F>(M::REACH);
    }

    fn criterion<F: Field, M: CellMark>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        let flag = move |rows: LevelRows,
                         field: Read<F>,
                         settings: Res<Settings>,
                         mut requests: ResMut<RefineRequests>| {
            let buffer = settings.mesh.flag_buffer[rows.level()] as usize;
            let marked = field.marked::<M>(&rows, buffer, &parameters);
            for (&row, sectors) in rows.rows().iter().zip(marked) {
                requests.add(row, sectors);
            }
        };
        self.system_in(Flag::Criteria, flag).depth::<F>(M::REACH);
    }

    fn column<F: Field, M: CellValue>(
        &mut self,
        name: &'static str,
        reduce: Reduce,
        parameters: M::Parameters,
    ) where
        M::Parameters: Send + Sync,
    {
        Columns::add::<F, M>(&mut self.world, name, reduce, parameters);
    }
}
