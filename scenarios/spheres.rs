//! The gas of the spheres of the table `[spheres]`.

use nestar_device::math::sum3;
use nestar_engine::{Engine, Error};
use nestar_systems::fields::GasModel;
use nestar_systems::hydro::{InitialState, Primitive, PrimitiveColumns};
use nestar_systems::spheres::{Ambient, Centre, HydrostaticGas, NamedSpheres};

/// The gas of the spheres of a deck, or the medium alone.
pub(crate) fn gas(sim: &mut Engine, _: &str) -> Result<Box<dyn InitialState>, Error> {
    let ambient: Ambient = sim.deck.table("ambient")?;
    let scalars = &sim.world.resource::<GasModel>().scalars;
    let all = sim.world.get_resource::<NamedSpheres>();
    let all = all.map(|spheres| spheres.gas(&sim.deck, ambient.pressure));
    let sphere = |(name, gas, centre): (String, HydrostaticGas, Centre)| GasSphere {
        dye: scalars.iter().position(|scalar| *scalar == name),
        gas,
        centre,
    };
    let spheres = all.transpose()?.into_iter().flatten().map(sphere).collect();
    Ok(Box::new(SpheresState { ambient, spheres }))
}

/// A sphere of gas.
struct GasSphere {
    gas: HydrostaticGas,
    centre: Centre,
    /// The scalar that is its mass fraction.
    dye: Option<usize>,
}

struct SpheresState {
    ambient: Ambient,
    spheres: Vec<GasSphere>,
}

impl GasSphere {
    /// The distance of a point from the centre, if the gas reaches so far.
    fn holds(&self, x: [f64; 3]) -> Option<f64> {
        let d = [0, 1, 2].map(|a| x[a] - self.centre.position[a]);
        let r = sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]).sqrt();
        (r < self.gas.radius()).then_some(r)
    }
}

impl SpheresState {
    /// The state at point `n`.
    fn at(&self, columns: &mut PrimitiveColumns, n: usize) -> Primitive {
        let x = columns.point(n);
        let (mut density, mut momentum) = (0.0, [0.0; 3]);
        let mut pressure = self.ambient.pressure;
        let mut shares = Vec::new();
        for sphere in &self.spheres {
            let Some(r) = sphere.holds(x) else {
                continue;
            };
            let own = sphere.gas.density(r);
            density += own;
            pressure += sphere.gas.pressure(r) - self.ambient.pressure;
            for axis in 0..3 {
                momentum[axis] += own * sphere.centre.velocity[axis];
            }
            shares.extend(sphere.dye.map(|scalar| (scalar, own)));
        }
        if density == 0.0 {
            density = self.ambient.density;
        }
        for (scalar, own) in shares {
            columns.scalars[scalar][n] = own / density;
        }
        Primitive {
            density,
            velocity: momentum.map(|m| m / density),
            pressure,
        }
    }
}

impl InitialState for SpheresState {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        for n in 0..columns.len() {
            columns.states[n] = self.at(columns, n);
        }
    }

    fn samples(&self) -> usize {
        self.ambient.samples
    }
}
