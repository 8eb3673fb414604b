//! The flagging system: every criterion on every patch of a level.

use super::columns::{BLOCK, FieldFormula, GHOSTS, PatchView, WIDTH};
use super::compiled::Compiled;
use super::config::{Criterion, MeshConfig};
use super::device::DeviceCriteria;
use crate::fields::{Gas, GasModel};
use bevy_ecs::prelude::*;
use nestar_deck::{Deck, DeckError};
use nestar_engine::device::DeviceError;
use nestar_engine::device::parallel::{PerThread, SharedCells};
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::field::{Element, FaultBox};
use nestar_engine::mesh::{LevelClock, RefineRequests, Topology};
use nestar_engine::step::{Read, View};
use nestar_engine::{Error, in_precision};
use nestar_kernels::criteria::{CellFlags, buffer_sectors};
use nestar_kernels::mesh::gather::{GatherScratch, Target, gather};
use nestar_kernels::mesh::{Block, GhostView};
use rayon::prelude::*;
use std::any::Any;

/// The criteria of a run, and the flagging system's working space.
#[derive(Resource)]
pub struct Criteria {
    list: Vec<Compiled>,
    buffer: Vec<usize>,
    /// A [`PerThread`] of [`ThreadScratch`] in the run's precision, made when rows on the host are flagged first.
    scratch: Option<Box<dyn Any + Send + Sync>>,
    sectors: SharedCells<u32>,
    /// Compiled when a pool on a device is flagged first.
    device: Option<DeviceCriteria>,
    faults: FaultBox,
}

/// A thread's working space.
struct ThreadScratch<R> {
    block: Vec<R>,
    gather: GatherScratch<R>,
    fields: [Vec<R>; 3],
}

impl<R: Element> ThreadScratch<R> {
    fn new(components: usize) -> Self {
        Self {
            block: vec![R::lit(0.0); components * BLOCK],
            gather: GatherScratch::new(components),
            fields: [const { Vec::new() }; 3],
        }
    }

    /// The gas around a row, and space for what is derived from it.
    fn gathered(&mut self, view: &GhostView<R>, row: u32) -> (&[R], &mut [Vec<R>; 3]) {
        let mut target = Target {
            components: self.block.len() / BLOCK,
            values: &mut self.block,
            stride: BLOCK,
            ghosts: GHOSTS,
        };
        gather(view, row, &mut target, &mut self.gather);
        (&self.block, &mut self.fields)
    }
}

impl Criteria {
    #[cfg(test)]
    pub(super) fn list(&self) -> &[Compiled] {
        &self.list
    }

    #[cfg(test)]
    pub(super) fn in_global_memory(&self) -> bool {
        let device = self.device.as_ref();
        device.is_some_and(DeviceCriteria::in_global_memory)
    }

    /// What was found for the `rows` that were flagged last.
    #[cfg(test)]
    pub(super) fn found(&mut self, rows: &[u32]) -> Vec<u32> {
        if let Some(device) = &self.device {
            return device.found().to_vec();
        }
        let sectors = self.sectors.as_mut_slice();
        let of = |&row: &u32| sectors.get(row as usize).copied();
        rows.iter().map(|row| of(row).unwrap_or(0)).collect()
    }

    /// Compiles the criteria of `config`.
    ///
    /// # Errors
    /// A mistake in a field or formula.
    pub fn compile(
        config: &MeshConfig,
        deck: &Deck,
        model: &GasModel,
        faults: FaultBox,
    ) -> Result<Self, DeckError> {
        let compile = |(n, criterion): (usize, &Criterion)| {
            let text = match criterion {
                Criterion::Threshold { field, .. }
                | Criterion::Gradient { field, .. }
                | Criterion::Lohner { field, .. } => Some(("field", field)),
                Criterion::Formula { when } => Some(("when", when)),
                _ => None,
            };
            let field = text.map(|(key, text)| {
                FieldFormula::compile(deck, &format!("mesh.refine[{n}].{key}"), text, model)
            });
            Ok(Compiled {
                criterion: criterion.clone(),
                field: field.transpose()?,
            })
        };
        let list = config
            .refine
            .iter()
            .enumerate()
            .map(compile)
            .collect::<Result<_, DeckError>>()?;
        let buffer = (0..config.max_level as usize)
            .map(|l| config.flag_buffer.at(l).unwrap_or(0) as usize)
            .collect();
        Ok(Self {
            list,
            buffer,
            scratch: None,
            sectors: SharedCells::default(),
            device: None,
            faults,
        })
    }
}

/// Flags the patches of the level.
pub fn flag(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    model: Res<GasModel>,
    gas: Read<Gas, GHOSTS>,
    mut criteria: ResMut<Criteria>,
    mut requests: ResMut<RefineRequests>,
    tables: Option<Res<DeviceTopology>>,
) -> Result<(), Error> {
    let rows = topology.rows(clock.level);
    let view = gas.get(GHOSTS)?;
    if let (true, Some(tables)) = (view.is_on_device(), &tables) {
        let sectors = criteria.flag_on_device(&clock, &topology, tables, &model, &view)?;
        for (&row, &sectors) in rows.iter().zip(sectors) {
            requests.add(row, sectors);
        }
        return Ok(());
    }
    in_precision!(gas.precision(), R => criteria.flag_rows::<R>(&clock, &topology, &model, &view));
    let sectors = criteria.sectors.as_mut_slice();
    for &row in rows {
        requests.add(row, sectors[row as usize]);
    }
    Ok(())
}

impl Criteria {
    /// The sectors of each patch of the level, in the order of its rows.
    fn flag_on_device(
        &mut self,
        clock: &LevelClock,
        topology: &Topology,
        tables: &DeviceTopology,
        model: &GasModel,
        gas: &View<Gas>,
    ) -> Result<&[u32], DeviceError> {
        if self.list.is_empty() {
            return Ok(&[]);
        }
        let device = match &mut self.device {
            Some(device) => device,
            none => none.insert(DeviceCriteria::new(
                &self.list,
                model,
                gas.device(),
                topology,
            )?),
        };
        let buffer = self.buffer[clock.level];
        let (sectors, fault) = device.sectors(&self.list, buffer, clock, topology, tables, gas)?;
        if let Some(message) = fault {
            self.faults.report(|| message);
        }
        Ok(sectors)
    }

    /// Leaves the sectors of each patch of the level at its row.
    fn flag_rows<R: Element>(
        &mut self,
        clock: &LevelClock,
        topology: &Topology,
        model: &GasModel,
        gas: &View<Gas>,
    ) {
        let components = gas.components();
        self.sectors.resize(topology.capacity(), 0);
        self.scratch.get_or_insert_with(|| {
            Box::new(PerThread::new(|| ThreadScratch::<R>::new(components)))
        });
        let scratch = self
            .scratch
            .as_deref()
            .and_then(<dyn Any + Send + Sync>::downcast_ref);
        let scratch: &PerThread<ThreadScratch<R>> = scratch.expect("a run has one precision");
        let view = gas.ghosts::<R>();
        topology.rows(clock.level).par_iter().for_each(|&row| {
            let mut scratch = scratch.get();
            let (block, fields) = scratch.gathered(&view, row);
            let patch = PatchView {
                values: block,
                gamma: R::lit(model.gamma),
                block: Block {
                    n: WIDTH,
                    origin: topology.origin(row).map(|o| o - GHOSTS as i32),
                    domain_cells: view.domain_cells,
                    left_edge: view.edges[0],
                    right_edge: view.edges[1],
                },
                time: view.time,
                level: clock.level,
                cell_width: clock.cell_width,
            };
            // SAFETY: the rows are distinct.
            unsafe { self.sectors.set(row as usize, self.reach(&patch, fields)) };
        });
    }

    /// The sectors that the flags of a patch reach.
    fn reach<R: Element>(&self, patch: &PatchView<R>, fields: &mut [Vec<R>; 3]) -> u32 {
        let mut flags = CellFlags::default();
        for compiled in &self.list {
            flags = flags | compiled.flags(patch, fields, &self.faults);
        }
        if flags.any() {
            buffer_sectors(&flags, self.buffer[patch.level])
        } else {
            0
        }
    }
}
