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

/// Gas of a sphere at the points within it.
struct PointsInside {
    /// Numbers of the points.
    points: Vec<usize>,
    densities: Vec<f64>,
    pressures: Vec<f64>,
}

impl GasSphere {
    /// Evaluates the gas at those points that are within the sphere.
    fn inside(&self, [x, y, z]: &[Vec<f64>; 3]) -> PointsInside {
        let centre = self.centre.position;
        let radius = |((x, y), z): ((&f64, &f64), &f64)| {
            let d = [x - centre[0], y - centre[1], z - centre[2]];
            sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]).sqrt()
        };
        // a loop of its own, which becomes vector instructions
        let mut radii: Vec<f64> = x.iter().zip(y).zip(z).map(radius).collect();
        let is_inside = |&n: &usize| radii[n] < self.gas.radius();
        let points: Vec<usize> = (0..radii.len()).filter(is_inside).collect();
        if points.len() < radii.len() {
            radii = points.iter().map(|&n| radii[n]).collect();
        }
        let [densities, pressures] = self.gas.states(&radii);
        PointsInside {
            points,
            densities,
            pressures,
        }
    }
}

impl SpheresState {
    /// Adds the gas of a sphere to the states, whose velocities are momenta.
    fn add(&self, sphere: &GasSphere, inside: &PointsInside, states: &mut [Primitive]) {
        let gas = inside.densities.iter().zip(&inside.pressures);
        for (&n, (density, pressure)) in inside.points.iter().zip(gas) {
            let state = &mut states[n];
            state.density += density;
            state.pressure += pressure - self.ambient.pressure;
            for (momentum, velocity) in state.velocity.iter_mut().zip(sphere.centre.velocity) {
                *momentum += density * velocity;
            }
        }
    }
}

impl InitialState for SpheresState {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        let inside = |sphere: &GasSphere| sphere.inside(&columns.points);
        let inside: Vec<_> = self.spheres.iter().map(inside).collect();
        columns.states.fill(Primitive {
            density: 0.0,
            velocity: [0.0; 3],
            pressure: self.ambient.pressure,
        });
        for (sphere, inside) in self.spheres.iter().zip(&inside) {
            self.add(sphere, inside, &mut columns.states);
        }
        for state in &mut columns.states {
            if state.density == 0.0 {
                state.density = self.ambient.density;
            }
            state.velocity = state.velocity.map(|momentum| momentum / state.density);
        }
        for (sphere, inside) in self.spheres.iter().zip(&inside) {
            let Some(scalar) = sphere.scalar else {
                continue;
            };
            for (&n, own) in inside.points.iter().zip(&inside.densities) {
                columns.scalars[scalar][n] = own / columns.states[n].density;
            }
        }
    }

    fn samples(&self) -> usize {
        self.ambient.samples
    }
}
