//! The flagging system: every criterion on every patch of a level.

use super::columns::{BLOCK, FieldFormula, GHOSTS, PatchView, Quantity, WIDTH};
use super::config::{Criterion, MeshConfig, PerLevel};
use super::device::DeviceCriteria;
use crate::fields::{Gas, GasModel};
use bevy_ecs::prelude::*;
use nestar_deck::{Deck, DeckError};
use nestar_engine::Error;
use nestar_engine::device::DeviceError;
use nestar_engine::device::parallel::{PerThread, SharedCells};
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::field::{Element, FaultBox, Precision};
use nestar_engine::mesh::{LevelClock, RefineRequests, Topology};
use nestar_engine::step::{Read, View};
use nestar_kernels::PATCH;
use nestar_kernels::criteria::region::{CellPlaces, meets_box, meets_sphere};
use nestar_kernels::criteria::{
    CellFlags, GhostedField, above, below, buffer_sectors, gradient, jeans, lohner, vorticity,
};
use nestar_kernels::mesh::gather::{GatherScratch, Target, gather};
use nestar_kernels::mesh::{Block, cell_centre};
use rayon::prelude::*;

/// A criterion with its field compiled.
pub(super) struct Compiled {
    pub criterion: Criterion,
    pub field: Option<FieldFormula>,
}

/// The criteria of a run, and the flagging system's working space.
#[derive(Resource)]
pub struct Criteria {
    list: Vec<Compiled>,
    buffer: Vec<usize>,
    scratch: Scratch,
    sectors: SharedCells<u32>,
    /// Compiled when a pool on a device is flagged first.
    device: Option<DeviceCriteria>,
    faults: FaultBox,
}

/// Working space in the run's precision.
enum Scratch {
    None,
    Single(PerThread<ThreadScratch<f32>>),
    Double(PerThread<ThreadScratch<f64>>),
}

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
            scratch: Scratch::None,
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
    criteria.make_space(&topology, view.components(), gas.precision());
    match &criteria.scratch {
        Scratch::Single(scratch) => {
            flag_rows::<f32>(&criteria, scratch, &clock, &topology, &model, &view)
        }
        Scratch::Double(scratch) => {
            flag_rows::<f64>(&criteria, scratch, &clock, &topology, &model, &view)
        }
        Scratch::None => {}
    }
    let sectors = criteria.sectors.as_mut_slice();
    for &row in rows {
        requests.add(row, sectors[row as usize]);
    }
    Ok(())
}

impl Criteria {
    /// Working space for flagging on the host.
    fn make_space(&mut self, topology: &Topology, components: usize, precision: Precision) {
        self.sectors.resize(topology.capacity(), 0);
        if matches!(self.scratch, Scratch::None) {
            self.scratch = match precision {
                Precision::Single => {
                    Scratch::Single(PerThread::new(|| ThreadScratch::new(components)))
                }
                Precision::Double => {
                    Scratch::Double(PerThread::new(|| ThreadScratch::new(components)))
                }
            };
        }
    }

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
}

fn flag_rows<R: Element>(
    criteria: &Criteria,
    scratch: &PerThread<ThreadScratch<R>>,
    clock: &LevelClock,
    topology: &Topology,
    model: &GasModel,
    gas: &View<Gas>,
) {
    let view = gas.ghosts::<R>();
    let components = gas.components();
    topology.rows(clock.level).par_iter().for_each(|&row| {
        let mut guard = scratch.get();
        let ThreadScratch {
            block,
            gather: space,
            fields,
        } = &mut *guard;
        let mut target = Target {
            values: block,
            stride: BLOCK,
            components,
            ghosts: GHOSTS,
        };
        gather(&view, row, &mut target, space);
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
        let mut flags = CellFlags::default();
        for compiled in &criteria.list {
            flags = flags | compiled.flags(&patch, fields, &criteria.faults);
        }
        let reach = if flags.any() {
            buffer_sectors(&flags, criteria.buffer[clock.level])
        } else {
            0
        };
        // SAFETY: the rows are distinct.
        unsafe { criteria.sectors.set(row as usize, reach) };
    });
}

impl Compiled {
    /// The cells of a patch that this criterion flags.
    fn flags<R: Element>(
        &self,
        patch: &PatchView<R>,
        fields: &mut [Vec<R>; 3],
        faults: &FaultBox,
    ) -> CellFlags {
        let level = patch.level;
        match &self.criterion {
            Criterion::Box {
                left,
                right,
                level: finest,
            } => with(below_finest(*finest, level), |()| {
                meets_box(&places(patch), *left, *right)
            }),
            Criterion::Sphere {
                centre,
                radius,
                level: finest,
            } => with(below_finest(*finest, level), |()| {
                meets_sphere(&places(patch), *centre, *radius)
            }),
            Criterion::Vorticity { threshold } => {
                with(threshold.at(level), |t| vortical(patch, fields, t))
            }
            Criterion::Jeans { threshold, gravity } => with(threshold.at(level), |t| {
                unresolved_jeans(patch, fields, *gravity, t)
            }),
            _ => self.field_flags(patch, &mut fields[0], faults),
        }
    }

    /// The cells that a criterion on one field flags.
    fn field_flags<R: Element>(
        &self,
        patch: &PatchView<R>,
        values: &mut Vec<R>,
        faults: &FaultBox,
    ) -> CellFlags {
        let Some(field) = &self.field else {
            return CellFlags::default();
        };
        field.evaluate(patch, values, faults);
        let field = GhostedField::new(values, GHOSTS);
        let at = |threshold: &PerLevel<f64>| threshold.at(patch.level);
        match &self.criterion {
            Criterion::Threshold {
                threshold,
                below: true,
                ..
            } => with(at(threshold), |t| below(&field, R::lit(t))),
            Criterion::Threshold { threshold, .. } => {
                with(at(threshold), |t| above(&field, R::lit(t)))
            }
            Criterion::Gradient { threshold, .. } => {
                with(at(threshold), |t| gradient(&field, R::lit(t)))
            }
            Criterion::Lohner {
                threshold, filter, ..
            } => with(at(threshold), |t| {
                lohner(&field, R::lit(t), R::lit(*filter))
            }),
            // a formula of its own: any value but 0
            _ => above(&field, R::lit(0.0)) | below(&field, R::lit(0.0)),
        }
    }
}

/// Cells with much vorticity.
fn vortical<R: Element>(
    patch: &PatchView<R>,
    fields: &mut [Vec<R>; 3],
    threshold: f64,
) -> CellFlags {
    derive(patch, [0, 1, 2].map(Quantity::Velocity), fields);
    let [x, y, z] = &*fields;
    let velocity = [x, y, z].map(|v| GhostedField::new(v, GHOSTS));
    vorticity(
        [&velocity[0], &velocity[1], &velocity[2]],
        patch.cell_width.map(R::lit),
        R::lit(threshold),
    )
}

/// Cells too wide for their Jeans length.
fn unresolved_jeans<R: Element>(
    patch: &PatchView<R>,
    fields: &mut [Vec<R>; 3],
    gravity: f64,
    cells: f64,
) -> CellFlags {
    let density = Quantity::Component(0);
    derive(patch, [density, Quantity::SoundSpeed, density], fields);
    let width = patch.cell_width.iter().copied().fold(0.0, f64::max);
    let [rho, c_s] = [0, 1].map(|n| GhostedField::new(&fields[n], GHOSTS));
    jeans(&rho, &c_s, R::lit(gravity), R::lit(width), R::lit(cells))
}

/// No flags on levels for which the criterion gives no threshold.
fn with<T>(threshold: Option<T>, flags: impl FnOnce(T) -> CellFlags) -> CellFlags {
    threshold.map_or_else(CellFlags::default, flags)
}

fn below_finest(finest: Option<u32>, level: usize) -> Option<()> {
    finest
        .is_none_or(|finest| level < finest as usize)
        .then_some(())
}

fn derive<R: Element>(patch: &PatchView<R>, quantities: [Quantity; 3], fields: &mut [Vec<R>; 3]) {
    for (field, quantity) in fields.iter_mut().zip(quantities) {
        field.clear();
        field.extend((0..BLOCK).map(|cell| patch.quantity(quantity, cell)));
    }
}

fn places<R>(patch: &PatchView<R>) -> CellPlaces {
    let b = &patch.block;
    let centres = std::array::from_fn(|a| {
        std::array::from_fn::<f64, PATCH, _>(|c| {
            let i = b.origin[a] + (GHOSTS + c) as i32;
            cell_centre(i, b.domain_cells[a], b.left_edge[a], b.right_edge[a])
        })
    });
    CellPlaces {
        centres,
        widths: patch.cell_width,
    }
}
