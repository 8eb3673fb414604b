//! Initial gas of the spheres in the table `[spheres]`.

use nestar_device::math::sum3;
use nestar_engine::{Engine, Error};
use nestar_systems::fields::GasModel;
use nestar_systems::hydro::formulas::pressure_at;
use nestar_systems::hydro::{InitialState, Primitive, PrimitiveColumns};
use nestar_systems::spheres::{Ambient, Centre, GasDisc, HydrostaticGas, Medium, NamedSpheres};

/// Returns the gas of the deck's spheres in the ambient medium, or the medium alone.
pub(crate) fn gas(sim: &mut Engine, _: &str) -> Result<Box<dyn InitialState>, Error> {
    let ambient: Ambient = sim.deck.table("ambient")?;
    let mut bodies = Vec::new();
    if let Some(all) = sim.world.get_resource::<NamedSpheres>() {
        let model = sim.world.resource::<GasModel>();
        let body = |name: String, shape, centre| GasBody {
            scalar: model.scalars.iter().position(|scalar| *scalar == name),
            shape,
            centre,
        };
        for (name, gas, centre) in all.gas(&sim.deck, ambient.pressure)? {
            bodies.push(body(name, GasShape::Sphere(gas), centre));
        }
        let medium = Medium {
            density: ambient.density,
            pressure: ambient.pressure,
        };
        let pressure = |density, kelvin| pressure_at(model, density, kelvin);
        for (name, disc, centre) in all.gas_discs(&sim.deck, medium, pressure)? {
            bodies.push(body(name, GasShape::Disc(disc), centre));
        }
    }
    Ok(Box::new(SpheresState { ambient, bodies }))
}

/// Gas of a sphere.
struct GasBody {
    shape: GasShape,
    centre: Centre,
    /// Number of the scalar that holds the mass fraction of the sphere's gas.
    scalar: Option<usize>,
}

enum GasShape {
    /// Hydrostatic gas.
    Sphere(HydrostaticGas),
    /// A rotating disc.
    Disc(GasDisc),
}

struct SpheresState {
    ambient: Ambient,
    bodies: Vec<GasBody>,
}

/// Gas of a body at the points within it.
#[derive(Default)]
struct PointsInside {
    /// Numbers of the points.
    points: Vec<usize>,
    densities: Vec<f64>,
    pressures: Vec<f64>,
    /// Velocities relative to the centre; empty for gas at rest.
    velocities: Vec<[f64; 3]>,
}

impl GasBody {
    /// Evaluates the gas at those points that are within the body.
    fn inside(&self, points: &[Vec<f64>; 3]) -> PointsInside {
        match &self.shape {
            GasShape::Sphere(gas) => self.inside_sphere(gas, points),
            GasShape::Disc(disc) => self.inside_disc(disc, points),
        }
    }

    fn inside_sphere(&self, gas: &HydrostaticGas, [x, y, z]: &[Vec<f64>; 3]) -> PointsInside {
        let centre = self.centre.position;
        let radius = |((x, y), z): ((&f64, &f64), &f64)| {
            let d = [x - centre[0], y - centre[1], z - centre[2]];
            sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]).sqrt()
        };
        // a loop of its own, which becomes vector instructions
        let mut radii: Vec<f64> = x.iter().zip(y).zip(z).map(radius).collect();
        let is_inside = |&n: &usize| radii[n] < gas.radius();
        let points: Vec<usize> = (0..radii.len()).filter(is_inside).collect();
        if points.len() < radii.len() {
            radii = points.iter().map(|&n| radii[n]).collect();
        }
        let [densities, pressures] = gas.states(&radii);
        PointsInside {
            points,
            densities,
            pressures,
            velocities: Vec::new(),
        }
    }

    fn inside_disc(&self, disc: &GasDisc, [x, y, z]: &[Vec<f64>; 3]) -> PointsInside {
        let centre = self.centre.position;
        let mut inside = PointsInside::default();
        for n in 0..x.len() {
            let [x, y, z] = [x[n] - centre[0], y[n] - centre[1], z[n] - centre[2]];
            let r = (x * x + y * y).sqrt();
            let Some(state) = disc.state(r, z) else {
                continue;
            };
            let turning = if r > 0.0 { state.rotation / r } else { 0.0 };
            inside.points.push(n);
            inside.densities.push(state.density);
            inside.pressures.push(state.pressure);
            inside.velocities.push([-turning * y, turning * x, 0.0]);
        }
        inside
    }
}

impl SpheresState {
    /// Adds the gas of a body to the states, whose velocities are momenta.
    fn add(&self, body: &GasBody, inside: &PointsInside, states: &mut [Primitive]) {
        let gas = inside.densities.iter().zip(&inside.pressures);
        for (n, (&point, (density, pressure))) in inside.points.iter().zip(gas).enumerate() {
            let state = &mut states[point];
            state.density += density;
            state.pressure += pressure - self.ambient.pressure;
            let own = inside.velocities.get(n).copied().unwrap_or_default();
            for (axis, momentum) in state.velocity.iter_mut().enumerate() {
                *momentum += density * (body.centre.velocity[axis] + own[axis]);
            }
        }
    }
}

impl InitialState for SpheresState {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        let inside = |body: &GasBody| body.inside(&columns.points);
        let inside: Vec<_> = self.bodies.iter().map(inside).collect();
        columns.states.fill(Primitive {
            density: 0.0,
            velocity: [0.0; 3],
            pressure: self.ambient.pressure,
        });
        for (body, inside) in self.bodies.iter().zip(&inside) {
            self.add(body, inside, &mut columns.states);
        }
        for state in &mut columns.states {
            if state.density == 0.0 {
                state.density = self.ambient.density;
            }
            state.velocity = state.velocity.map(|momentum| momentum / state.density);
        }
        // a sphere and its disc have the same scalar
        for is_first in [true, false] {
            for (body, inside) in self.bodies.iter().zip(&inside) {
                let Some(scalar) = body.scalar else {
                    continue;
                };
                for (&n, own) in inside.points.iter().zip(&inside.densities) {
                    let fraction = &mut columns.scalars[scalar][n];
                    match is_first {
                        true => *fraction = 0.0,
                        false => *fraction += own / columns.states[n].density,
                    }
                }
            }
        }
    }

    fn samples(&self) -> usize {
        self.ambient.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_systems::spheres::{DiscShape, GalaxyForce};

    #[test]
    fn discs_of_gas_turn_counterclockwise_in_the_medium() {
        let shape = DiscShape::new(1.0, 1.0, 0.1).expect("a disc");
        let force = GalaxyForce::new(&[], &[shape], 1.0).expect("a force");
        let ambient = Ambient {
            density: 1e-6,
            pressure: 1e-6,
            samples: 1,
        };
        let medium = Medium {
            density: ambient.density,
            pressure: ambient.pressure,
        };
        let disc = GasDisc::new(shape, Some(1e-3), &force, medium).expect("a disc of gas");
        let wanted = disc.state(1.0, 0.05).expect("gas");
        let centre = Centre {
            position: [2.0, 3.0, 4.0],
            velocity: [0.0, 0.0, 7.0],
        };
        let state = SpheresState {
            ambient,
            bodies: vec![GasBody {
                shape: GasShape::Disc(disc),
                centre,
                scalar: Some(0),
            }],
        };
        let mut columns = PrimitiveColumns {
            points: [
                vec![3.0, 2.0, 2.0],
                vec![3.0, 2.0, 3.0],
                vec![4.05, 3.95, 7.0],
            ],
            states: vec![
                Primitive {
                    density: 0.0,
                    velocity: [0.0; 3],
                    pressure: 0.0
                };
                3
            ],
            scalars: vec![vec![0.0; 3]],
            ..PrimitiveColumns::default()
        };
        state.fill(&mut columns);
        let [right, below, outside] = [0, 1, 2].map(|n| columns.states[n]);
        let near = |a: [f64; 3], b: [f64; 3]| (0..3).all(|n| (a[n] - b[n]).abs() < 1e-12);
        let speed = wanted.rotation;
        assert!(speed > 0.3 && near(right.velocity, [0.0, speed, 7.0]));
        assert!(near(below.velocity, [speed, 0.0, 7.0]));
        assert!((right.density / wanted.density - 1.0).abs() < 1e-12);
        assert!((right.pressure / wanted.pressure - 1.0).abs() < 1e-9);
        assert!(near(outside.velocity, [0.0; 3]));
        assert_eq!([outside.density, outside.pressure], [1e-6, 1e-6]);
        assert_eq!(columns.scalars[0], [1.0, 1.0, 0.0]);
    }
}
