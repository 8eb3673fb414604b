//! The energy that gas gains as it falls, by its mass fluxes: kicks before and after a step change the kinetic energy, and at the last of them
//! what the fluxes have done takes the place of what the kicks gave.

use super::beyond::ExteriorPotential;
use super::grids::{Due, Solver, each};
use super::kick::Kick;
use super::working;
use crate::fields::{MassFlux, Potential};
use crate::order::{Advance, Split};
use bevy_ecs::prelude::*;
use nestar_device::Lane;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::{Read, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::gravity::{self, Fallen, Part};

/// Per level: whether the kicks of the step at hand act over its length and no longer. Those of a step that was rejected reach beyond the
/// end of the shorter one.
#[derive(Resource)]
struct Whole(Vec<bool>);

/// Enters the field and the systems.
pub(super) fn register(sim: &mut Engine) -> Result<(), Error> {
    let levels = sim.levels();
    sim.world.insert_resource(Whole(vec![false; levels]));
    sim.system_in(Split::Sources, kick);
    register_work(sim)
}

/// As [`register`], for kicks of others, who settle what is due in each step.
pub(super) fn register_work(sim: &mut Engine) -> Result<(), Error> {
    sim.register_field::<Due>(working("gravity_due", 8, 1))?;
    // the potential before the step, then the one after it
    sim.system_in(Advance::Deposit, work);
    sim.system_in(Advance::Couple, work);
    Ok(())
}

/// Kicks the gas: before a step, and after it with what is due.
fn kick(
    mut kick: Kick,
    levels: Res<Levels>,
    mut whole: ResMut<Whole>,
    mut due: Write<Due>,
) -> Result<(), Error> {
    let (level, begin) = (kick.clock.level, kick.clock.time);
    if begin == levels.time(level) {
        whole.0[level] = true;
        return kick.act(Part::First(&due.change()));
    }
    match std::mem::take(&mut whole.0[level]) {
        true => kick.act(Part::Last(&due.change())),
        false => kick.act(Part::Any),
    }
}

/// Adds what gas is due for half a step at the present potential.
fn work(
    clock: Res<LevelClock>,
    levels: Res<Levels>,
    whole: Option<ResMut<Whole>>,
    solver: Res<Solver>,
    beyond: Res<ExteriorPotential>,
    potential: Read<Potential, 1>,
    mass: Read<MassFlux>,
    mut due: Write<Due>,
) -> Result<(), Error> {
    let level = clock.level;
    if let Some(mut whole) = whole {
        if levels.clock(level).split >= clock.end {
            // no kick follows
            whole.0[level] = false;
        }
        if !whole.0[level] {
            return Ok(());
        }
    }
    let (potential, mass, due) = (potential.get(1)?, mass.own(), due.change());
    let (weight, rates) = (
        potential.weights_on(0)[1],
        clock.cell_width.map(|w| 0.5 * clock.dt / w),
    );
    if let Some(kernels) = &solver.kernels {
        let rows = due.rows().len();
        let given = gravity::Work {
            view: potential.on_device(),
            exterior: beyond.on_device(weight),
            rows: potential.place().on_device().rows(level).into(),
            mass: mass.device().bank(0).into(),
            due: due.device().bank(0).into(),
            rates,
            count: rows as i32,
        };
        kernels.work.count_work(rows * CELLS, rows * CELLS * 8 * 6);
        return kernels.launch(&kernels.work, rows, &given);
    }
    in_precision!(due.precision(), R => {
        let fallen = Fallen {
            view: potential.ghosts::<R>(),
            exterior: beyond.on_host(weight),
            mass: mass.present::<R>(),
            rates: rates.map(R::lit),
        };
        let to = due.present::<R>();
        // SAFETY: distinct rows.
        each(due.rows(), |row| unsafe { gravity::add_work(&fallen, row, &to) });
    });
    Ok(())
}
