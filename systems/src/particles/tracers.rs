//! Velocity tracers: massless particles that are advected with the gas velocity.
//!
//! The drift uses the mean velocity of the step by Heun's method: half the gas velocity at the old position
//! before the step, plus half the velocity at the predicted position after the step.

use super::around::{BLOCK, REACH, VectorWindow};
use super::columns::ParticleReal;
use super::device::TracerStep;
use super::fluxes;
use super::moved_by::MovedBy;
use super::rows::ParticlePages;
use super::species::{PatchParticles, Species, SpeciesMap};
use crate::fields::Gas;
use crate::order::{Advance, Regrid};
use bevy_ecs::prelude::*;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::{FieldView, Read};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::prolong::between;
use nestar_kernels::particles::motion::moved;
use nestar_kernels::particles::tracers::cut_to_cell;
use rayon::prelude::*;

/// Width in cells of the cloud that interpolates velocities.
const CLOUD: usize = 2;

/// Registers the systems of tracers, if there are any: before the drift, and after refinement.
pub(super) fn register(sim: &mut Engine) {
    let mut all = sim.world.resource_mut::<SpeciesMap>();
    let [leads, draws] =
        [MovedBy::Gas, MovedBy::MassFluxes].map(|what| all.moved_by(what).next().is_some());
    if leads {
        sim.system_in(Advance::Predict, advect);
    }
    if draws {
        sim.system_in(Advance::Predict, fluxes::jump);
        sim.system_in(Regrid::Complete, fluxes::assign_children);
    }
}

/// Gas velocities around a patch before and after a step, or at one time.
struct GasVelocity<R>(Vec<(f64, VectorWindow<R>)>);

impl<R: ParticleReal> GasVelocity<R> {
    /// Computes the velocities of gas states.
    fn of(states: Vec<(f64, Vec<R>)>) -> Self {
        let velocities = |(time, gas): (f64, Vec<R>)| {
            let (density, momenta) = gas.split_at(BLOCK);
            let momenta = momenta[..3 * BLOCK].chunks_exact(BLOCK);
            let velocity = |along: &[R]| -> Vec<R> {
                along
                    .iter()
                    .zip(density)
                    .map(|(&m, &rho)| m / rho)
                    .collect()
            };
            let values = momenta.flat_map(velocity).collect();
            let ahead = R::lit(0.0);
            (time, VectorWindow { values, ahead })
        };
        Self(states.into_iter().map(velocities).collect())
    }

    /// Interpolates the velocity at a position and a time.
    #[inline(always)]
    fn at(&self, offset: [u64; 3], step: [i32; 3], time: f64) -> [R; 3] {
        let of = |around: &VectorWindow<R>| around.at::<CLOUD, REACH>((offset, step), false);
        match &self.0[..] {
            [(old, before), (new, after)] => {
                let weight = R::lit((time - old) / (new - old));
                let (before, after) = (of(before), of(after));
                [0, 1, 2].map(|a| between(before[a], after[a], weight))
            }
            states => of(&states[0].1),
        }
    }
}

/// Heun step of a level.
struct HeunStep<'a, R> {
    clock: &'a LevelClock,
    /// Step over patch width, by axis.
    rate: [R; 3],
}

impl<R: ParticleReal> HeunStep<'_, R> {
    /// Sets the velocities of the particles of a patch to their mean over the step.
    fn patch(&self, species: &Species, rows: &mut ParticlePages, flow: &GasVelocity<R>) {
        for (page, count) in rows.pages::<R>(species.pool.columns) {
            for n in 0..count {
                let velocity = self.mean(page.offset_of(n), flow);
                for axis in 0..3 {
                    page.velocity[axis][n] = velocity[axis];
                }
            }
        }
    }

    #[inline(always)]
    fn mean(&self, offset: [u64; 3], flow: &GasVelocity<R>) -> [R; 3] {
        let first = flow.at(offset, [0; 3], self.clock.time);
        let (mut there, mut step) = (offset, [0; 3]);
        for axis in 0..3 {
            let by = cut_to_cell(first[axis], self.rate[axis]);
            (there[axis], step[axis]) = moved(offset[axis], by, 64);
        }
        let second = flow.at(there, step, self.clock.end);
        [0, 1, 2].map(|a| R::lit(0.5) * (first[a] + second[a]))
    }
}

/// Sets the velocities of tracers that the current level moves.
fn advect(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut all: ResMut<SpeciesMap>,
    gas: Read<Gas, REACH>,
) -> Result<(), Error> {
    let gas = gas.get(REACH)?;
    let tables = gas.place().tables;
    for species in all.moved_by(MovedBy::Gas) {
        if let Some((lists, tables)) = species.upload(&topology, tables)?.zip(tables) {
            lists.advect(&TracerStep {
                context: (&topology, tables),
                clock: &clock,
                gas: &gas,
            })?;
            continue;
        }
        in_precision!(species.precision(), R => advect_species::<R>(&topology, &clock, species, &gas)?);
    }
    Ok(())
}

fn advect_species<R: ParticleReal>(
    topology: &Topology,
    clock: &LevelClock,
    species: &mut Species,
    gas: &FieldView<Gas>,
) -> Result<(), DeviceError> {
    let hosts = [Some(clock.level), clock.level.checked_sub(1)];
    for (list, host) in hosts.into_iter().enumerate() {
        let Some(host) = host else { continue };
        let width = topology.domain.cell_width(host);
        let lead = HeunStep {
            clock,
            rate: width.map(|width| R::lit(clock.dt / (PATCH as f64 * width))),
        };
        let mut detached = species.take_patches(topology.rows(host).iter().copied());
        let shared = &*species;
        let led = detached
            .par_iter_mut()
            .map(|(row, patch): &mut (u32, PatchParticles)| {
                // in own patches also deferred tracers: the finer level overwrites their velocities
                let lists = if list == 0 {
                    &mut patch[..]
                } else {
                    &mut patch[1..]
                };
                if lists.iter().all(|rows| rows.count() == 0) {
                    return Ok(());
                }
                let states = match list {
                    0 => gas.windows(*row, REACH)?,
                    _ => gas.coarser_windows(*row, REACH, clock.time)?,
                };
                let flow = GasVelocity::of(states);
                lists
                    .iter_mut()
                    .for_each(|rows| lead.patch(shared, rows, &flow));
                Ok(())
            });
        let led: Result<(), DeviceError> = led.collect();
        species.restore_patches(detached);
        led?;
    }
    Ok(())
}
