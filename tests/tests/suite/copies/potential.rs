//! A second field of a user's own: one component, relaxed in place by red-black sweeps, on the host or on a device.

use super::stencil::{Stencil, block, cells};
use bevy_ecs::prelude::*;
use nestar::device_runtime::Address;
use nestar::engine::field::{Element, Field, FieldSpec, Precision};
use nestar::engine::mesh::NewRows;
use nestar::kernels::mesh::parameters;
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
        cells().map(move |at| {
            (0..3)
                .map(|a| f64::from(origin[a] + at[a] as i32))
                .sum::<f64>()
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

impl Plugin for Gravity {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        register(sim)?;
        let sweeps = self.sweeps;
        let solve = move |mut potential: Write<Potential, 1>,
                          gas: Read<Gas>,
                          mut kernels: Local<Option<Stencil>>,
                          mut ranks: OtherRanks|
              -> Result<(), Error> {
            for sweep in 0..sweeps {
                potential.refresh(&mut ranks)?;
                let (colour, gas) = (sweep % 2, gas.own());
                if gas.is_on_device() {
                    relax_on_device(&mut kernels, &mut potential, &gas, colour)?;
                } else if potential.precision() == Precision::Single {
                    relax::<f32>(&mut potential, &gas, colour)?;
                } else {
                    relax::<f64>(&mut potential, &gas, colour)?;
                }
            }
            Ok(())
        };
        sim.system_in(Advance::Potential, solve);
        Ok(())
    }
}

/// Cells of one colour move towards the mean of their neighbours.
fn relax<R: Element>(
    potential: &mut Write<Potential, 1>,
    gas: &View<Gas>,
    colour: usize,
) -> Result<(), Error> {
    let view = potential.get(1)?;
    let mut values = Vec::with_capacity(512 * view.rows().len());
    let mut scratch = nestar::kernels::mesh::GatherScratch::new(1);
    for &row in view.rows() {
        let (block, density) = (
            block::<R, Potential>(&view, row, &mut scratch),
            gas.row::<R>(row),
        );
        for (cell, at) in cells().enumerate() {
            let u = |x: usize, y: usize, z: usize| block[(z * 10 + y) * 10 + x];
            let [i, j, k] = at.map(|i| i + 1);
            let own = u(i, j, k);
            // a patch begins at even coordinates
            if at.iter().sum::<usize>() % 2 != colour {
                values.push(own);
                continue;
            }
            let sum = ((((u(i - 1, j, k) + u(i + 1, j, k)) + u(i, j - 1, k)) + u(i, j + 1, k))
                + u(i, j, k - 1))
                + u(i, j, k + 1);
            let mean = sum * R::lit(0.125) + own * R::lit(0.25);
            values.push(mean - density[cell] * R::lit(0.0625));
        }
    }
    let rows = view.rows().to_vec();
    Ok(potential.store(&rows, &values)?)
}

const KERNELS: &str = "
typedef PARAMETERS<mesh::REAL> Relax;
KERNEL(relax_gather, Relax) {
  mesh::gather<1>(p.blocks + (rs::i64)launch::block() * 1000, p.view, p.rows[launch::block()], mesh::Store<10>(), nullptr);
}
KERNEL(relax_update, Relax) {
  const mesh::REAL* u = p.blocks + (rs::i64)launch::block() * 1000;
  const int row = p.rows[launch::block()];
  mesh::REAL* out = p.level + (rs::i64)row * 512;
  const mesh::REAL* density = p.gas + (rs::i64)row * p.stride;
  EACH(cell, 512) {
    const int i = cell % 8, j = cell / 8 % 8, k = cell / 64, at = ((k + 1) * 10 + j + 1) * 10 + i + 1;
    if ((i + j + k) % 2 != (int)p.colour) continue;
    const mesh::REAL sum = ((((u[at - 1] + u[at + 1]) + u[at - 10]) + u[at + 10]) + u[at - 100]) + u[at + 100];
    const mesh::REAL mean = sum * mesh::REAL(0.125) + u[at] * mesh::REAL(0.25);
    out[cell] = mean - density[cell] * mesh::REAL(0.0625);
  }
}
";

#[device]
struct Relax<R> {
    view: parameters::View<R>,
    rows: Address<i32>,
    blocks: Address<R>,
    level: Address<R>,
    gas: Address<R>,
    stride: i64,
    colour: i64,
}

fn relax_on_device(
    kernels: &mut Option<Stencil>,
    potential: &mut Write<Potential, 1>,
    gas: &View<Gas>,
    colour: usize,
) -> Result<(), Error> {
    let view = potential.get(1)?;
    let kernels = match kernels {
        Some(kernels) => kernels,
        none => none.insert(Stencil::compile(view.device(), Relax, KERNELS, "relax")?),
    };
    kernels.run(view.device(), view.rows(), |rows, blocks| Relax {
        view: view.on_device(),
        rows: rows.into(),
        blocks: blocks.into(),
        level: view.device().bank(view.banks()[0]).into(),
        gas: gas.device().bank(gas.banks()[0]).into(),
        stride: 512 * gas.components() as i64,
        colour: colour as i64,
    })?;
    potential.change();
    Ok(())
}
