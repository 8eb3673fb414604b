//! Moves massless tracers with the gas: by its velocity, or at random with its mass flux.
//!
//! Velocity tracers are advected with the gas velocity by Heun's method. The drift uses the mean of two gas
//! velocities: at the old position before the step, and at the predicted position after it.
//!
//! Monte Carlo tracers jump between cells with the mass flux of the gas. A tracer leaves its cell through a
//! face with the probability that a mass element of the cell does (Genel et al. 2013, MNRAS 435, 1426,
//! section 2.2; Cadiou, Dubois & Pichon 2019, A&A 621, A96). Tracers therefore follow the gas mass up to
//! Poisson noise, whereas velocity tracers accumulate in dense gas. Positions within a cell have no meaning
//! and are drawn at random in each step. A tracer that enters a finer patch through a coarse flux does so in
//! steps of the finer level. One that leaves a finer patch waits for the next step of the coarser level. When
//! a patch is refined, each tracer draws one of the eight new cells with a probability proportional to their
//! masses.

use super::device::TracerStep;
use super::pages::{ParticlePages, ParticleReal};
use super::species::{MovedBy, PatchParticles, Species, SpeciesMap};
use super::vector_window::{BLOCK, REACH, VectorWindow};
use crate::fields::{Gas, MassFlux};
use crate::order::{Advance, Regrid};
use bevy_ecs::prelude::*;
use nestar_device::random::{Stream, of_id, uniforms};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{LevelClock, NewRows, Topology, parallel};
use nestar_engine::step::{FieldView, Read};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::mesh::direction;
use nestar_kernels::mesh::fluxes::{FACES, face_index};
use nestar_kernels::mesh::prolong::between;
use nestar_kernels::particles::motion::moved;
use nestar_kernels::particles::tracers::{self, cut_to_cell};
use nestar_kernels::{CELLS, PATCH};

/// Width in cells of the cloud that interpolates velocities.
const CLOUD: usize = 2;

/// Registers the systems of tracers, if there are any: before the drift, and after refinement.
pub(super) fn register(sim: &mut Engine) {
    let mut all = sim.world.resource_mut::<SpeciesMap>();
    let [advects, draws] =
        [MovedBy::Gas, MovedBy::MassFluxes].map(|what| all.moved_by(what).next().is_some());
    if advects {
        sim.system_in(Advance::Predict, advect_tracers)
            .keeps_particles();
    }
    if draws {
        sim.system_in(Advance::Predict, jump_with_mass_fluxes)
            .after(advect_tracers)
            .keeps_particles();
        sim.system_in(Regrid::Complete, assign_tracers_to_children)
            .keeps_particles();
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
            let time_offset = R::lit(0.0);
            (
                time,
                VectorWindow {
                    values,
                    time_offset,
                },
            )
        };
        Self(states.into_iter().map(velocities).collect())
    }

    /// Interpolates the velocity at a position and a time.
    #[inline(always)]
    fn at(&self, offset: [u64; 3], step: [i32; 3], time: f64) -> [R; 3] {
        let of = |around: &VectorWindow<R>| around.at::<CLOUD, REACH>(offset, step, false);
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
pub(super) fn advect_tracers(
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
        let advected = parallel::map_mut(&mut detached, |_, (row, patch)| {
            // in own patches also deferred tracers: the finer level overwrites their velocities
            let lists = &mut patch[list..];
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
        let advected: Result<(), DeviceError> = advected.into_iter().collect();
        species.restore_patches(detached);
        advected?;
    }
    Ok(())
}

/// Step of a level.
struct Jumps<'a> {
    topology: &'a Topology,
    clock: &'a LevelClock,
}

/// Returns the probabilities that a tracer in a cell leaves through the faces x-, x+, y-, y+, z-, z+. `mass`
/// holds the fluxes through the faces of the patch, `density` the density after the step, and `rates` the
/// step over the cell widths.
fn jump_probabilities<R: ParticleReal>(
    cell: usize,
    density: &[R],
    mass: &[R],
    rates: [f64; 3],
) -> [f64; 6] {
    let at = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
    let mut through = [0.0; 6];
    for axis in 0..3 {
        let mut upper = at;
        upper[axis] += 1;
        let face = |cell| mass[axis * FACES + face_index(axis, cell)].to_f64() * rates[axis];
        (through[2 * axis], through[2 * axis + 1]) = (face(at), face(upper));
    }
    tracers::jump_probabilities(density[cell].to_f64(), through)
}

impl Jumps<'_> {
    /// Draws the jumps of tracers in an own patch of the level.
    fn draw_jumps<R: ParticleReal>(
        &self,
        species: &Species,
        rows: &mut ParticlePages,
        density: &[R],
        mass: &[R],
        width: [f64; 3],
    ) {
        let rates = width.map(|width| self.clock.dt / width);
        let stream = species.stream.at_step(self.clock.step);
        let level = 2 * self.clock.level as u32;
        for (mut page, count) in rows.pages::<R>(species.pool.columns) {
            for n in 0..count {
                let mut cell = 0;
                let within = of_id(&stream, page.id[n], level + 1);
                for axis in (0..3).rev() {
                    let offset = R::widen(page.offset[axis][n]);
                    cell = PATCH * cell + (offset >> 61) as usize;
                    page.offset[axis][n] =
                        R::narrow(tracers::random_in_cell(offset, within[axis], within[3]));
                    page.velocity[axis][n] = R::lit(0.0);
                }
                let [drawn, _] = uniforms::<f64>(of_id(&stream, page.id[n], level));
                let face =
                    tracers::draw_face(jump_probabilities(cell, density, mass, rates), drawn);
                if let Some(velocity) = page.velocity.get_mut(face as usize / 2) {
                    let speed = width[face as usize / 2] / self.clock.dt;
                    velocity[n] = R::lit(if face % 2 == 0 { -speed } else { speed });
                }
            }
        }
    }

    /// Stops tracers in a patch of the next coarser level, except those that enter a finer neighbour patch.
    fn stop_in_coarser_patch<R: ParticleReal>(
        &self,
        species: &Species,
        row: u32,
        rows: &mut ParticlePages,
    ) {
        let finer = |way: [i32; 3]| {
            let beside = u32::try_from(self.topology.neighbours(row)[direction(way)]);
            beside.is_ok_and(|beside| !self.topology.is_leaf(beside))
        };
        for (page, count) in rows.pages::<R>(species.pool.columns) {
            for n in 0..count {
                for axis in 0..3 {
                    let (v, mut way) = (page.velocity[axis][n].to_f64(), [0; 3]);
                    way[axis] = if v < 0.0 { -1 } else { 1 };
                    let last = if v < 0.0 { 0 } else { PATCH as u64 - 1 };
                    if R::widen(page.offset[axis][n]) >> 61 != last || !finer(way) {
                        page.velocity[axis][n] = R::lit(0.0);
                    }
                }
            }
        }
    }

    fn species<R: ParticleReal>(
        &self,
        species: &mut Species,
        gas: &FieldView<Gas>,
        mass: &FieldView<MassFlux>,
    ) -> Result<(), DeviceError> {
        let level = self.clock.level;
        let mut detached = species.take_patches(self.topology.rows(level).iter().copied());
        let shared = &*species;
        let width = self.topology.domain.cell_width(level);
        let jump = |_, (row, patch): &mut (u32, PatchParticles)| {
            let (gas, mass) = (gas.host::<R>(&[*row])?, mass.host::<R>(&[*row])?);
            for rows in patch {
                self.draw_jumps(shared, rows, &gas[..CELLS], &mass, width);
            }
            Ok(())
        };
        let jumped: Result<(), DeviceError> =
            parallel::map_mut(&mut detached, jump).into_iter().collect();
        species.restore_patches(detached);
        jumped?;
        let Some(below) = level.checked_sub(1) else {
            return Ok(());
        };
        let mut detached = species.take_patches(self.topology.rows(below).iter().copied());
        let shared = &*species;
        parallel::for_each_mut(&mut detached, |_, (row, [_, fine])| {
            self.stop_in_coarser_patch::<R>(shared, *row, fine);
        });
        species.restore_patches(detached);
        Ok(())
    }
}

/// First random number for the choice of a child cell, plus the level; follows those of the jumps.
const CHILDREN: u32 = 128;

/// Assigns the tracers of a new patch to the child cells.
fn assign_rows<R: ParticleReal>(
    species: &Species,
    rows: &mut ParticlePages,
    density: &[R],
    stream: Stream,
    number: u32,
) {
    for (page, count) in rows.pages::<R>(species.pool.columns) {
        for n in 0..count {
            let offset = page.offset_of(n);
            let masses = std::array::from_fn(|child| {
                let along = |axis: usize| 2 * (offset[axis] >> 62) as usize + (child >> axis & 1);
                density[along(0) + PATCH * (along(1) + PATCH * along(2))].to_f64()
            });
            let [drawn, _] = uniforms::<f64>(of_id(&stream, page.id[n], number));
            let child = tracers::draw_child(masses, drawn);
            for axis in 0..3 {
                let upper = (child >> axis & 1) as u32;
                page.offset[axis][n] = R::narrow(tracers::in_half(offset[axis], upper));
            }
        }
    }
}

fn assign_species<R: ParticleReal>(
    species: &mut Species,
    gas: &FieldView<Gas>,
    rows: &[u32],
    stream: Stream,
    number: u32,
) -> Result<(), DeviceError> {
    let mut detached = species.take_patches(rows.iter().copied());
    let shared = &*species;
    let assign = |_, (row, [here, _]): &mut (u32, PatchParticles)| {
        let gas = gas.host::<R>(&[*row])?;
        assign_rows(shared, here, &gas[..CELLS], stream, number);
        Ok(())
    };
    let assigned: Result<(), DeviceError> = parallel::map_mut(&mut detached, assign)
        .into_iter()
        .collect();
    species.restore_patches(detached);
    assigned
}

/// Assigns tracers in new patches to child cells by mass; the refinement has placed them by their positions,
/// which have no meaning.
pub(super) fn assign_tracers_to_children(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    new: Res<NewRows>,
    mut all: ResMut<SpeciesMap>,
    gas: Read<Gas>,
) -> Result<(), Error> {
    if new.rows.is_empty() {
        return Ok(());
    }
    let gas = gas.own_on(new.level);
    let tables = gas.place().tables;
    for species in all.moved_by(MovedBy::MassFluxes) {
        let stream = species.stream.at_step(clock.step);
        let number = CHILDREN + new.level as u32;
        if let Some((lists, tables)) = species.upload(&topology, tables)?.zip(tables) {
            lists.assign_children(&topology, tables, &gas, &new.rows, stream, number)?;
            continue;
        }
        in_precision!(species.precision(), R => assign_species::<R>(species, &gas, &new.rows, stream, number)?);
    }
    Ok(())
}

/// Draws the jumps of the tracers that the current level moves.
pub(super) fn jump_with_mass_fluxes(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut all: ResMut<SpeciesMap>,
    gas: Read<Gas>,
    mass: Read<MassFlux>,
) -> Result<(), Error> {
    let (gas, mass) = (gas.own(), mass.own());
    let jumps = Jumps {
        topology: &topology,
        clock: &clock,
    };
    let tables = gas.place().tables;
    for species in all.moved_by(MovedBy::MassFluxes) {
        let stream = species.stream;
        if let Some((lists, tables)) = species.upload(&topology, tables)?.zip(tables) {
            let step = TracerStep {
                context: (&topology, tables),
                clock: &clock,
                gas: &gas,
            };
            lists.jump(&step, mass.on_device().level, stream)?;
            continue;
        }
        in_precision!(species.precision(), R => jumps.species::<R>(species, &gas, &mass)?);
    }
    Ok(())
}
