//! Gathers forces and applies the closing kick on a device.

use super::kernels::{BESIDE, BLOCK, LEAST, ListLaunch};
use super::lists::DeviceParticles;
use crate::particles::boundary_zone::{Kick, KickPart};
use crate::particles::deposit::DeepParticles;
use crate::particles::{Motion, wall_bits};
use nestar_device::Number;
use nestar_engine::data::Field;
use nestar_engine::data::device::{DeviceTopology, DeviceView};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::Topology;
use nestar_engine::step::FieldView;
use nestar_kernels::PATCH;
use nestar_kernels::particles::device::CloudShape;
use nestar_kernels::particles::field_kernels::KickParameters;

/// Input of the closing kick of a level.
pub struct KickContext<'a, F: Field> {
    /// Hierarchy.
    pub topology: &'a Topology,
    /// Topology tables on the device.
    pub tables: &'a DeviceTopology,
    /// Integration parameters.
    pub motion: &'a Motion,
    /// Width of the coarse-fine boundary zone in coarse cells.
    pub zone: usize,
    /// Particles to kick.
    pub part: KickPart,
    /// Acceleration on the level.
    pub field: &'a FieldView<'a, F>,
    /// Time of the kick.
    pub time: f64,
    /// Length of the kick.
    pub half: f64,
    /// What is applied.
    pub kick: Kick,
    /// Weights of particles at the end of a step of their level.
    pub deep: DeepParticles,
}

impl<F: Field> KickContext<'_, F> {
    /// Returns the inverse width of the patches of a level.
    fn per_width(&self, level: usize) -> [f64; 3] {
        let width = self.topology.domain.cell_width(level);
        width.map(|width| 1.0 / (PATCH as f64 * width))
    }

    /// Returns `true` if the coarser level is at another time and has nothing to correct.
    fn is_redundant(&self) -> bool {
        self.kick == Kick::Change && self.field.coarser_time() > self.time
    }

    fn args(&self, from: &ListLaunch, view: DeviceView) -> KickParameters<Number> {
        KickParameters {
            deep: self.part == KickPart::Deep,
            add: self.part == KickPart::Deep && matches!(self.kick, Kick::Start | Kick::End),
            sign: match (self.kick, self.part) {
                (Kick::Start, KickPart::Deep) => -1.0,
                (Kick::Start, _) => 0.0,
                _ => 1.0,
            },
            second: self.zone > 0,
            from: from.list,
            view,
            clouds: CloudShape {
                width: self.motion.cloud,
                zone: self.zone as i32,
                walls: wall_bits(self.motion.walls),
            },
            state: 0,
            parent: false,
            weight: 1.0,
            half: self.half,
            correct: self.kick == Kick::Change,
            time_offsets: [0.0; 2],
            per_width: self.per_width(self.field.level()),
            weighs: self.part == KickPart::Deep && self.kick == Kick::Level,
            most: 1.0 / PATCH as f64,
            zone_times: self.deep.states,
            newer: self.deep.newer,
        }
    }
}

impl DeviceParticles {
    /// Kicks the particles that a level moves and stores their accelerations.
    ///
    /// # Errors
    /// The device fails.
    pub fn kick<F: Field>(&mut self, context: &KickContext<F>) -> Result<(), DeviceError> {
        let level = context.field.level();
        let (topology, tables) = (context.topology, super::tables(context.tables));
        let part = context.part;
        if part == KickPart::Deep {
            return self.kick_deep(context);
        }
        if self.holds(level, 0) {
            let own = self.list(topology, tables, level, 0)?;
            if level == 0 || part == KickPart::All {
                let args = context.args(&own, context.field.on_device());
                self.launch_kick(context, &own, &args)?;
            }
            if level > 0 && context.zone > 0 {
                self.kick_from_coarser(context, &own, true)?;
            }
            self.buffers[level][0].largest = None;
        }
        if let Some(below) = level.checked_sub(1)
            && self.holds(below, 1)
        {
            let fine = self.list(topology, tables, below, 1)?;
            self.kick_from_coarser(context, &fine, false)?;
            self.buffers[below][1].largest = None;
        }
        Ok(())
    }

    /// Kicks particles outside the boundary zone of their level, first by the coarser level, then by their own.
    fn kick_deep<F: Field>(&mut self, context: &KickContext<F>) -> Result<(), DeviceError> {
        let level = context.field.level();
        if !self.holds(level, 0) {
            return Ok(());
        }
        let by_coarser = context.kick != Kick::Level && !context.is_redundant();
        let tables = super::tables(context.tables);
        let own = self.list(context.topology, tables, level, 0)?;
        if by_coarser {
            self.kick_from_coarser(context, &own, true)?;
        }
        if !matches!(context.kick, Kick::Start | Kick::End) {
            let args = KickParameters {
                add: by_coarser,
                second: false,
                ..context.args(&own, context.field.on_device())
            };
            self.launch_kick(context, &own, &args)?;
        }
        self.buffers[level][0].largest = None;
        Ok(())
    }

    /// Kicks by the states of the next coarser level: particles in the boundary zone of own patches, or
    /// particles in coarse patches.
    fn kick_from_coarser<F: Field>(
        &self,
        context: &KickContext<F>,
        from: &ListLaunch,
        parent: bool,
    ) -> Result<(), DeviceError> {
        if context.is_redundant() {
            return Ok(());
        }
        let states = context.field.coarser_on_device(context.time);
        let below = context.field.level() - 1;
        let (weight, time_offsets) = match states[..] {
            [(old, _), (new, _)] => {
                let weight = (context.time - old) / (new - old);
                (weight, [old - context.time, new - context.time])
            }
            _ => (1.0, [0.0; 2]),
        };
        let is_only_state = states.len() == 1;
        for (n, (_, view)) in states.into_iter().enumerate() {
            let args = KickParameters {
                state: if is_only_state { 3 } else { 1 + n as i32 },
                parent,
                weight,
                time_offsets,
                per_width: context.per_width(below),
                ..context.args(from, view)
            };
            self.launch_kick(context, from, &args)?;
        }
        Ok(())
    }

    fn launch_kick<F: Field>(
        &self,
        context: &KickContext<F>,
        from: &ListLaunch,
        args: &KickParameters<Number>,
    ) -> Result<(), DeviceError> {
        let mut from = *from;
        let cells = if args.state == 0 { BESIDE } else { BLOCK };
        from.shape.shared = cells * (context.field.components() * self.columns.number) as u32;
        from.shape.threads = from.shape.threads.max(LEAST);
        // offsets, velocities twice, accelerations
        let bytes = 12 * self.columns.number;
        self.kernels.work(&self.mover, &from, bytes, args)
    }
}
