//! Initial gas of the spheres in the table `[spheres]`.

use nestar_device::math::sum3;
use nestar_engine::{Engine, Error};
use nestar_systems::fields::GasModel;
use nestar_systems::hydro::{InitialState, Primitive, PrimitiveColumns};
use nestar_systems::spheres::{Ambient, Centre, HydrostaticGas, NamedSpheres};

/// Returns the gas of the deck's spheres in the ambient medium, or the medium alone.
pub(crate) fn gas(sim: &mut Engine, _: &str) -> Result<Box<dyn InitialState>, Error> {
    let ambient: Ambient = sim.deck.table("ambient")?;
    let scalars = &sim.world.resource::<GasModel>().scalars;
    let all = sim.world.get_resource::<NamedSpheres>();
    let all = all.map(|spheres| spheres.gas(&sim.deck, ambient.pressure));
    let sphere = |(name, gas, centre): (String, HydrostaticGas, Centre)| GasSphere {
        scalar: scalars.iter().position(|scalar| *scalar == name),
        gas,
        centre,
    };
    let spheres = all.transpose()?.into_iter().flatten().map(sphere).collect();
    Ok(Box::new(SpheresState { ambient, spheres }))
}

/// A hydrostatic sphere of gas.
struct GasSphere {
    gas: HydrostaticGas,
    centre: Centre,
    /// Number of the scalar that holds the mass fraction of the sphere's gas.
    scalar: Option<usize>,
}

struct SpheresState {
    ambient: Ambient,
    spheres: Vec<GasSphere>,
}

impl GasSphere {
    /// Returns the distance of a point from the centre, or `None` outside the sphere.
    fn radius_at(&self, x: [f64; 3]) -> Option<f64> {
        let d = [0, 1, 2].map(|a| x[a] - self.centre.position[a]);
        let r = sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]).sqrt();
        (r < self.gas.radius()).then_some(r)
    }
}

impl SpheresState {
    /// Returns the state at point `n`, and sets its scalars. `densities` is scratch memory.
    fn at(
        &self,
        columns: &mut PrimitiveColumns,
        n: usize,
        densities: &mut Vec<(usize, f64)>,
    ) -> Primitive {
        let x = columns.point(n);
        let (mut density, mut momentum) = (0.0, [0.0; 3]);
        let mut pressure = self.ambient.pressure;
        densities.clear();
        for sphere in &self.spheres {
            let Some(r) = sphere.radius_at(x) else {
                continue;
            };
            let own = sphere.gas.density(r);
            density += own;
            pressure += sphere.gas.pressure(r) - self.ambient.pressure;
            for axis in 0..3 {
                momentum[axis] += own * sphere.centre.velocity[axis];
            }
            densities.extend(sphere.scalar.map(|scalar| (scalar, own)));
        }
        if density == 0.0 {
            density = self.ambient.density;
        }
        for &mut (scalar, own) in densities {
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
        let mut densities = Vec::new();
        for n in 0..columns.len() {
            columns.states[n] = self.at(columns, n, &mut densities);
        }
    }

    fn samples(&self) -> usize {
        self.ambient.samples
    }
}
