//! The second half of a step on a device.

use super::kernels::{BESIDE, BLOCK, LEAST, Listed};
use super::lists::OnDevice;
use crate::fields::Acceleration;
use crate::particles::Motion;
use nestar_device::Number;
use nestar_engine::device::DeviceError;
use nestar_engine::field::device::{DeviceTopology, DeviceView};
use nestar_engine::mesh::Topology;
use nestar_engine::step::View;
use nestar_kernels::PATCH;
use nestar_kernels::particles::device::Clouds;
use nestar_kernels::particles::movers::Pull;

/// What the closing kick of a level is made of.
pub struct Pulled<'a> {
    /// The hierarchy.
    pub topology: &'a Topology,
    /// The same on the device.
    pub tables: &'a DeviceTopology,
    /// How particles move.
    pub motion: &'a Motion,
    /// Accelerations on the level.
    pub field: &'a View<'a, Acceleration>,
    /// Time of the kick.
    pub time: f64,
    /// Length of the kick.
    pub half: f64,
    /// Whether it has been made by the accelerations that the particles have, and these are found anew.
    pub again: bool,
}

impl Pulled<'_> {
    fn given(&self, from: &Listed, view: DeviceView) -> Pull<Number> {
        Pull {
            from: from.list,
            view,
            clouds: Clouds {
                width: self.motion.cloud,
                zone: self.motion.zone as i32,
            },
            state: 0,
            parent: false,
            weight: 1.0,
            half: self.half,
            again: self.again,
            ahead: [0.0; 2],
            per_width: [0.0; 3],
        }
    }
}

impl OnDevice {
    /// Kicks the particles that a level moves, and leaves their accelerations with them.
    ///
    /// # Errors
    /// The device fails.
    pub fn pull(&mut self, pulled: &Pulled) -> Result<(), DeviceError> {
        let level = pulled.field.level();
        let place = (pulled.topology, super::tables(pulled.tables));
        if self.holds(level, 0) {
            let own = self.list(place, level, 0)?;
            self.start_pull(pulled, &own, &pulled.given(&own, pulled.field.on_device()))?;
            if level > 0 && pulled.motion.zone > 0 {
                self.pull_by_coarser(pulled, &own, true)?;
            }
            self.held[level][0].largest = None;
        }
        if let Some(below) = level.checked_sub(1)
            && self.holds(below, 1)
        {
            let ahead = self.list(place, below, 1)?;
            self.pull_by_coarser(pulled, &ahead, false)?;
            self.held[below][1].largest = None;
        }
        Ok(())
    }

    /// By the states of the next coarser level: those beside borders in the level's own patches, or all that it moves in patches of that one.
    fn pull_by_coarser(
        &self,
        pulled: &Pulled,
        from: &Listed,
        parent: bool,
    ) -> Result<(), DeviceError> {
        let states = pulled.field.coarser_on_device(pulled.time);
        if pulled.again && states.len() > 1 {
            // the coarser level is at another time: it knows nothing new
            return Ok(());
        }
        let below = pulled.field.level() - 1;
        let width = pulled.topology.domain.cell_width(below);
        let (weight, ahead) = match states[..] {
            [(old, _), (new, _)] => {
                let weight = (pulled.time - old) / (new - old);
                (weight, [old - pulled.time, new - pulled.time])
            }
            _ => (1.0, [0.0; 2]),
        };
        let alone = states.len() == 1;
        for (n, (_, view)) in states.into_iter().enumerate() {
            let given = Pull {
                state: if alone { 3 } else { 1 + n as i32 },
                parent,
                weight,
                ahead,
                per_width: width.map(|width| 1.0 / (PATCH as f64 * width)),
                ..pulled.given(from, view)
            };
            self.start_pull(pulled, from, &given)?;
        }
        Ok(())
    }

    fn start_pull(
        &self,
        pulled: &Pulled,
        from: &Listed,
        given: &Pull<Number>,
    ) -> Result<(), DeviceError> {
        let mut from = *from;
        let cells = if given.state == 0 { BESIDE } else { BLOCK };
        from.shape.shared = cells * (pulled.field.components() * self.columns.number) as u32;
        from.shape.threads = from.shape.threads.max(LEAST);
        // places, velocities twice, accelerations
        let bytes = 12 * self.columns.number;
        self.kernels.work(&self.mover, (&from, bytes), given)
    }
}
