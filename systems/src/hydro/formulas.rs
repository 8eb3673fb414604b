//! States given by formulas of the deck.

use super::initial::{InitialState, Primitive, PrimitiveColumns};
use crate::fields::{GAS_COMPONENTS, GasModel};
use nestar_deck::{Deck, DeckError, Formula};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A state by formulas of x, y, z and t: the table `[initial]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateConfig {
    /// Gauss-Legendre points per axis and cell for the initial state (cell averages); 1: the cell centre.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4))]
    pub samples: usize,
    /// Mass density, a formula of x y z t (and r, the distance from the origin).
    pub density: String,
    /// Pressure.
    pub pressure: String,
    /// Velocity along x.
    #[serde(default = "zero")]
    pub velocity_x: String,
    /// Velocity along y.
    #[serde(default = "zero")]
    pub velocity_y: String,
    /// Velocity along z.
    #[serde(default = "zero")]
    pub velocity_z: String,
    /// Mass fraction of each passive scalar, by name; where absent 0, or what the plugin says that declares it.
    #[serde(default)]
    pub scalars: BTreeMap<String, String>,
}

fn one() -> usize {
    1
}

fn zero() -> String {
    "0".into()
}

/// Variables of state formulas.
pub(super) const VARIABLES: [&str; 5] = ["x", "y", "z", "t", "r"];

/// The compiled formulas of a state.
pub struct StateFormulas {
    samples: usize,
    /// Density, velocity x y z, pressure.
    gas: [Formula; GAS_COMPONENTS],
    scalars: Vec<Option<Formula>>,
}

impl StateFormulas {
    /// Takes the table `path` of the deck.
    ///
    /// # Errors
    /// A missing or wrong formula, a scalar that is not declared.
    pub fn take(deck: &mut Deck, path: &str, model: &GasModel) -> Result<Self, DeckError> {
        let config: StateConfig = deck.table(path)?;
        Self::compile(deck, path, model, &config)
    }

    /// Compiles the formulas of `config`, which stand in the table `path`.
    ///
    /// # Errors
    /// A wrong formula, a scalar that is not declared.
    pub fn compile(
        deck: &Deck,
        path: &str,
        model: &GasModel,
        config: &StateConfig,
    ) -> Result<Self, DeckError> {
        let names = &model.scalars;
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        for name in config.scalars.keys() {
            if !names.contains(name) {
                return Err(deck.unknown_key_at(&format!("{path}.scalars.{name}"), &known));
            }
        }
        let formula =
            |key: &str, text: &str| deck.formula(&format!("{path}.{key}"), text, &VARIABLES);
        let scalar = |(name, initial): (&String, &f64)| {
            let otherwise = (*initial != 0.0).then(|| format!("{initial:?}"));
            let text = config.scalars.get(name).or(otherwise.as_ref());
            text.map(|text| formula(&format!("scalars.{name}"), text))
                .transpose()
        };
        let scalars = names.iter().zip(&model.initial).map(scalar);
        Ok(Self {
            samples: config.samples,
            gas: [
                formula("density", &config.density)?,
                formula("velocity_x", &config.velocity_x)?,
                formula("velocity_y", &config.velocity_y)?,
                formula("velocity_z", &config.velocity_z)?,
                formula("pressure", &config.pressure)?,
            ],
            scalars: scalars.collect::<Result<_, _>>()?,
        })
    }

    /// The state at a point and time.
    #[must_use]
    pub fn at(&self, x: [f64; 3], t: f64) -> Primitive {
        let w: [f64; GAS_COMPONENTS] = std::array::from_fn(|c| self.gas[c].eval(&arguments(x, t)));
        Primitive {
            density: w[0],
            velocity: [w[1], w[2], w[3]],
            pressure: w[4],
        }
    }

    /// Mass fraction of scalar `n` at a point and time.
    #[must_use]
    pub fn scalar_at(&self, n: usize, x: [f64; 3], t: f64) -> f64 {
        self.scalars[n]
            .as_ref()
            .map_or(0.0, |f| f.eval(&arguments(x, t)))
    }
}

impl StateFormulas {
    /// Formulas of density, velocity x y z and pressure, of the [`VARIABLES`].
    pub(super) fn gas(&self) -> &[Formula; GAS_COMPONENTS] {
        &self.gas
    }

    /// Formulas of the scalars' mass fractions; absent where they are 0.
    pub(super) fn scalars(&self) -> &[Option<Formula>] {
        &self.scalars
    }
}

/// Values of the [`VARIABLES`].
pub(super) fn arguments(x: [f64; 3], t: f64) -> [f64; 5] {
    let r = nestar_device::math::sum3(x[0] * x[0], x[1] * x[1], x[2] * x[2]).sqrt();
    [x[0], x[1], x[2], t, r]
}

impl InitialState for StateFormulas {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        let n = columns.len();
        let time = vec![0.0; n];
        let radius: Vec<f64> = (0..n)
            .map(|i| arguments(columns.point(i), 0.0)[4])
            .collect();
        let [x, y, z] = &columns.points;
        let arguments: [&[f64]; 5] = [x, y, z, &time, &radius];
        let mut column = vec![0.0; n];
        for (c, formula) in self.gas.iter().enumerate() {
            formula.eval_many(&arguments, &mut column);
            for (state, &value) in columns.states.iter_mut().zip(&column) {
                match c {
                    0 => state.density = value,
                    4 => state.pressure = value,
                    _ => state.velocity[c - 1] = value,
                }
            }
        }
        for (formula, out) in self.scalars.iter().zip(&mut columns.scalars) {
            if let Some(formula) = formula {
                formula.eval_many(&arguments, out);
            }
        }
    }

    fn samples(&self) -> usize {
        self.samples
    }
}
