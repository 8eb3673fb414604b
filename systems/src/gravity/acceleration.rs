//! Adds the gravitational acceleration to the shared field of accelerations, on every level.

use super::exterior_potential::ExteriorPotential;
use super::gas_kick::{REACH, device_slopes, host_slopes};
use super::level_solver::{DeviceSolver, PoissonEquation, PotentialField, for_each_row};
use super::particle_potentials::{
    solve_initial_particle_potentials, solve_particle_potentials_of_aligned_levels,
};
use super::surroundings::{FaceCondition, Surroundings};
use super::systems::{Gravity, solve_aligned_levels, solve_initial_potential};
use crate::fields::{
    Acceleration, InnerPotential, Matter, OuterPotential, OwnPotential, PairAcceleration, Potential,
};
use crate::order::{Advance, Aligned, Ready};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::Lane;
use nestar_engine::comm::Comm;
use nestar_engine::data::{Field, LevelRows, Patches};
use nestar_engine::mesh::{LevelClock, PatchIndex};
use nestar_engine::step::{AlignedLevels, Remarks, SystemOptions, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::gravity::{self, AccelerationParameters};
use std::ops::RangeInclusive;

/// Registers the systems, after those that solve for the potentials.
pub(super) fn register(sim: &mut Engine) {
    exchanges_own_halos(
        sim.system_in(Ready::Recompute, add_initial_acceleration)
            .after(solve_initial_potential)
            .after(solve_initial_particle_potentials),
    );
    exchanges_own_halos(&mut sim.system_in(Advance::Couple, add_acceleration));
    exchanges_own_halos(
        sim.system_in(Aligned::Solve, add_acceleration_on_aligned_levels)
            .after(solve_aligned_levels)
            .after(solve_particle_potentials_of_aligned_levels),
    );
}

/// Declares that a system with [`AccelerationsByGravity`] exchanges the halos of its fields itself.
fn exchanges_own_halos(system: &mut SystemOptions) {
    system
        .manages_own_halo::<Matter>()
        .manages_own_halo::<Potential>()
        .manages_own_halo::<OwnPotential>()
        .manages_own_halo::<InnerPotential>()
        .manages_own_halo::<OuterPotential>()
        .optional::<OwnPotential>()
        .optional::<InnerPotential>()
        .optional::<OuterPotential>()
        .optional::<PairAcceleration>();
}

/// A field of accelerations to which that by the potential `P` is added.
pub(super) trait FieldOf<P: PotentialField>: Field {
    /// First of the three components.
    const FIRST: usize;
    /// Factor of the acceleration.
    const FACTOR: f64;

    /// Returns `true` if the potential exists on a level.
    fn exists_on(_level: usize, _finest: usize) -> bool {
        true
    }
}

impl FieldOf<Potential> for Acceleration {
    const FIRST: usize = 0;
    const FACTOR: f64 = 1.0;
}

impl FieldOf<OwnPotential> for Acceleration {
    const FIRST: usize = 3;
    const FACTOR: f64 = 1.0;
}

impl FieldOf<InnerPotential> for PairAcceleration {
    const FIRST: usize = 0;
    const FACTOR: f64 = 1.0;

    fn exists_on(level: usize, _: usize) -> bool {
        level > 0
    }
}

impl FieldOf<OwnPotential> for PairAcceleration {
    const FIRST: usize = 3;
    const FACTOR: f64 = 1.0;

    fn exists_on(level: usize, finest: usize) -> bool {
        level < finest
    }
}

impl FieldOf<OuterPotential> for PairAcceleration {
    const FIRST: usize = 3;
    const FACTOR: f64 = -1.0;

    fn exists_on(level: usize, finest: usize) -> bool {
        level < finest
    }
}

/// The acceleration by a potential, and the field to which it is added.
#[derive(SystemParam)]
pub(super) struct AccelerationBy<'w, 's, P: PotentialField, F: Field> {
    rows: LevelRows<'w, 's>,
    gravity: Res<'w, Gravity>,
    equation: Res<'w, PoissonEquation>,
    exterior_potential: Res<'w, ExteriorPotential<<P as PotentialField>::Exterior>>,
    solver: Res<'w, DeviceSolver>,
    potential: Write<'w, 's, P, REACH>,
    matter: Write<'w, 's, Matter, REACH>,
    acceleration: Write<'w, 's, F>,
    ranks: Comm<'w>,
}

impl<P: PotentialField, F: FieldOf<P>> AccelerationBy<'_, '_, P, F> {
    /// Returns the equation that slopes use beside finer levels; the own potential of a level has no finer levels.
    fn equation(&self) -> PoissonEquation {
        match P::USES_TAU {
            true => *self.equation,
            false => PoissonEquation {
                coefficient: 0.0,
                mean: 0.0,
                outer_mean: 0.0,
            },
        }
    }

    /// Adds the acceleration on a level by its present potential.
    fn add(&mut self, level: usize) -> Result<(), Error> {
        if !F::exists_on(level, self.rows.finest()) {
            return Ok(());
        }
        self.potential.refresh_on(&mut self.ranks, level)?;
        self.matter.refresh_on(&mut self.ranks, level)?;
        let equation = self.equation();
        let potential = self.potential.get_on(level, REACH)?;
        let matter = self.matter.get_on(level, REACH)?;
        let out = self.acceleration.change_on(level);
        let (first, fourth) = (F::FIRST, self.gravity.config.order == 4);
        if let Some(kernels) = &self.solver.kernels {
            let parameters = AccelerationParameters {
                slope: device_slopes(
                    &potential,
                    &matter,
                    &self.gravity,
                    &self.exterior_potential,
                    equation,
                    kernels.words(),
                ),
                out: out.device().bank(out.banks()[0]).into(),
                components: out.components() as i32,
                first: first as i32,
                factor: F::FACTOR,
            };
            let rows = parameters.slope.count as usize;
            kernels
                .accelerate
                .count_work(rows * CELLS, rows * CELLS * 8 * 4);
            return kernels.launch(&kernels.accelerate, rows, &parameters);
        }
        in_precision!(out.precision(), R => {
            let slopes = host_slopes::<R, P, P::Exterior>(&potential, &matter, &self.exterior_potential, equation);
            let rows = out.present::<R>();
            // SAFETY: distinct rows.
            for_each_row(out.rows(), |row| unsafe { gravity::accelerate(&slopes, &rows, row, first, R::lit(F::FACTOR), fourth) });
        });
        Ok(())
    }

    fn add_on(&mut self, mut levels: RangeInclusive<usize>) -> Result<(), Error> {
        levels.try_for_each(|level| self.add(level))
    }
}

/// Accelerations by all potentials, which are added one after the other.
type AccelerationsByGravity<'w, 's> = ParamSet<
    'w,
    's,
    (
        AccelerationBy<'static, 'static, Potential, Acceleration>,
        Option<AccelerationBy<'static, 'static, OwnPotential, Acceleration>>,
        Option<AccelerationBy<'static, 'static, InnerPotential, PairAcceleration>>,
        Option<AccelerationBy<'static, 'static, OwnPotential, PairAcceleration>>,
        Option<AccelerationBy<'static, 'static, OuterPotential, PairAcceleration>>,
    ),
>;

/// Adds the accelerations by all potentials on some levels.
fn add_on(
    potentials: &mut AccelerationsByGravity,
    levels: RangeInclusive<usize>,
) -> Result<(), Error> {
    potentials.p0().add_on(levels.clone())?;
    if let Some(mut own) = potentials.p1() {
        own.add_on(levels.clone())?;
    }
    if let Some(mut inner) = potentials.p2() {
        inner.add_on(levels.clone())?;
    }
    if let Some(mut own) = potentials.p3() {
        own.add_on(levels.clone())?;
    }
    match potentials.p4() {
        Some(mut outer) => outer.add_on(levels),
        None => Ok(()),
    }
}

/// Adds the acceleration at the end of the step of a level.
pub(super) fn add_acceleration(
    mut potentials: AccelerationsByGravity,
    clock: Res<LevelClock>,
) -> Result<(), Error> {
    add_on(&mut potentials, clock.level..=clock.level)
}

/// Adds the acceleration on all aligned levels, which may have new patches.
fn add_acceleration_on_aligned_levels(
    mut potentials: AccelerationsByGravity,
    aligned: Res<AlignedLevels>,
) -> Result<(), Error> {
    let levels = aligned.coarsest..=aligned.finest.max(aligned.coarsest);
    add_on(&mut potentials, levels)
}

/// Adds the acceleration on all levels before the first step, once their potentials are known.
fn add_initial_acceleration(
    mut potentials: AccelerationsByGravity,
    clock: Res<LevelClock>,
) -> Result<(), Error> {
    let rows = potentials.p0().rows;
    let finest = rows.finest();
    match rows.is_estimate() || clock.level < finest {
        true => Ok(()),
        false => add_on(&mut potentials, 0..=finest),
    }
}

/// Warning of finer levels at the faces of an isolated domain that contains particles.
///
/// Outside the domain all levels use the potential of the root level, where a body near a face is as wide as a root
/// cell. On a finer level the body is narrower, and the difference exerts a force on it. At coarse-fine faces bodies
/// use the representation of the coarser level; here that would have to be the root level.
const REMARK: &str = "[gravity] finer levels touch the boundary of an isolated domain: bodies within two root cells of it exert a force on themselves, up to a few tenths \
     of that of an equal neighbour at two of their cells. To avoid it, keep finer levels away from the boundary: a larger domain, a smaller `mesh.flag_buffer`";

/// Registers the check of the initial hierarchy for finer levels at the isolated faces of the domain.
pub(super) fn register_boundary_check(sim: &mut Engine, surroundings: Surroundings) {
    sim.world.insert_resource(surroundings);
    sim.system_in(Ready::Recompute, warn_of_levels_at_boundary)
        .after(add_initial_acceleration);
}

/// Warns if level 1 touches an isolated face; otherwise no finer level does.
fn warn_of_levels_at_boundary(
    rows: LevelRows,
    patches: Patches<&PatchIndex>,
    others: Comm,
    surroundings: Res<Surroundings>,
    mut remarks: ResMut<Remarks>,
) -> Result<(), Error> {
    if rows.is_estimate() || rows.level() != 1 {
        return Ok(());
    }
    let domain = rows.view().topology.domain;
    let last = domain.root.map(|patches| 2 * patches - 1);
    let touches = patches.iter().any(|(_, index)| {
        let isolated =
            |axis: usize| surroundings.faces()[axis].map(|face| face == FaceCondition::Isolated);
        (0..3).any(|axis| {
            let [lower, upper] = isolated(axis);
            lower && index.0[axis] == 0 || upper && index.0[axis] == last[axis]
        })
    });
    if others.max(u64::from(touches))? > 0 {
        remarks.0.push(REMARK.into());
    }
    Ok(())
}
