//! A second user field: one component, relaxed in place by red-black sweeps.

use bevy_ecs::prelude::*;
use nestar::engine::data::{Field, FieldSpec, Precision};
use nestar::engine::mesh::NewRows;
use nestar::entities::Topology;
use nestar::prelude::*;

/// The field.
pub struct Potential;

impl Field for Potential {
    const NAME: &'static str = "potential";
}

/// Registers the field and fills new patches.
pub fn register(sim: &mut Engine) -> Result<(), Error> {
    sim.register_field::<Potential>(FieldSpec::cells(&["potential"]))?;
    sim.system_in(Initialise::State, fill);
    Ok(())
}

fn fill(
    new: Res<NewRows>,
    topology: Res<Topology>,
    mut potential: Write<Potential>,
) -> Result<(), Error> {
    let place = |&row: &u32| {
        let origin = topology.origin(row);
        (0..512).map(move |n: i32| {
            let at = [n % 8, n / 8 % 8, n / 64];
            (0..3).map(|a| f64::from(origin[a] + at[a])).sum::<f64>()
        })
    };
    let values: Vec<f64> = new.rows.iter().flat_map(place).collect();
    let values = values.into_iter().map(|x| (x * 0.37).fract());
    match potential.precision() {
        Precision::Single => {
            let values: Vec<f32> = values.map(|v| v as f32).collect();
            potential.store(&new.rows, &values)?;
        }
        Precision::Double => potential.store(&new.rows, &values.collect::<Vec<f64>>())?,
    }
    Ok(())
}

/// Red-black sweeps in each step of a level, with the density of the gas as the source.
pub struct Gravity {
    /// Sweeps in a step.
    pub sweeps: usize,
}

/// A cell moves towards the mean of its neighbours.
#[device]
fn relax<R: Real>(u: &Stencil<R>, gas: Conserved<R>) -> R {
    let across = (u.at(-1, 0, 0) + u.at(1, 0, 0)) + (u.at(0, -1, 0) + u.at(0, 1, 0));
    let sum = across + (u.at(0, 0, -1) + u.at(0, 0, 1));
    sum * 0.125 + u.at(0, 0, 0) * 0.25 - gas.density * 0.0625
}

impl Plugin for Gravity {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        register(sim)?;
        let sweeps = self.sweeps;
        let solve = move |rows: LevelRows,
                          mut potential: Write<Potential, 1>,
                          gas: Read<Gas>,
                          mut ranks: Comm|
              -> Result<(), Error> {
            potential.sweep::<relax>(&rows, &gas, sweeps, &mut ranks, &[])
        };
        sim.system_in(Advance::Potential, solve);
        Ok(())
    }
}
