//! Hernquist spheres as initial gas.

use super::Hernquist;
use nestar::engine::Engine;
use nestar::engine::mesh::Topology;
use nestar::systems::hydro::initial::{InitialGas, InitialState, Primitive, PrimitiveColumns};

/// Gas at rest; each cell has the exact mean density of spheres around given centres.
#[derive(Clone, Debug)]
pub struct Gas {
    /// Spheres and their centres.
    pub spheres: Vec<(Hernquist, [f64; 3])>,
    /// Pressure everywhere.
    pub pressure: f64,
    /// Widths of a root cell.
    root_width: [f64; 3],
}

impl Gas {
    /// Begins a simulation with this gas, in place of its scenario's: before the hierarchy is made.
    pub fn put_into(sim: &mut Engine, spheres: Vec<(Hernquist, [f64; 3])>, pressure: f64) {
        let root_width = sim.world.resource::<Topology>().domain.cell_width(0);
        let gas = Self {
            spheres,
            pressure,
            root_width,
        };
        sim.world.insert_resource(InitialGas(Box::new(gas)));
    }
}

impl InitialState for Gas {
    /// A cell has one point, its centre; the level tells its width.
    fn fill(&self, columns: &mut PrimitiveColumns) {
        let half = self
            .root_width
            .map(|width| 0.5 * width / f64::from(1_u32 << columns.level));
        for n in 0..columns.len() {
            let x = columns.point(n);
            let mean = |(sphere, centre): &(Hernquist, [f64; 3])| {
                let corner = |sign: f64| std::array::from_fn(|a| x[a] - centre[a] + sign * half[a]);
                sphere.cell_mean(corner(-1.0), corner(1.0))
            };
            columns.states[n] = Primitive {
                density: self.spheres.iter().map(mean).sum(),
                velocity: [0.0; 3],
                pressure: self.pressure,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{State, Stepper};

    const NESTED: &str = r#"
scenario = "formula"
[initial]
density  = "1"
pressure = "1"
[domain]
cells      = [16, 16, 16]
left_edge  = [-50, -50, -50]
right_edge = [50, 50, 50]
boundary   = "outflow"
[mesh]
max_level = 3
refine    = [{ criterion = "box", left = [-10, -10, -10], right = [10, 10, 10] }]
[hydro]
"#;

    /// The mass in every cell is exact, on all levels, so that the sum is that in the domain whatever the levels.
    #[test]
    fn initial_states_are_exact_cell_means() {
        let begun = |settings: &[&str]| -> State {
            let mut sim = crate::build(NESTED, settings);
            let spheres = vec![
                (Hernquist::default(), [0.0; 3]),
                (Hernquist::default(), [1.0, 2.0, -0.5]),
            ];
            sim.with(|sim| Gas::put_into(sim, spheres, 1e-3));
            Stepper::of(sim).state()
        };
        let mass = |state: &State| {
            let mut sum = 0.0;
            state.each_leaf_cell(|_, _, volume, u| sum += volume * u[0]);
            sum
        };
        let (root, nested) = (begun(&["mesh.max_level=0"]), begun(&[]));
        assert!(nested.counts().len() > root.counts().len());
        let (a, b) = (mass(&root), mass(&nested));
        assert!((a / b - 1.0).abs() < 1e-10, "{a} {b}");
    }
}
