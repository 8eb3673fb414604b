//! Gas states given by formulas of the deck.

use super::initial::{InitialState, Primitive, PrimitiveColumns};
use crate::fields::quantities::needs_units;
use crate::fields::{GAS_COMPONENTS, GasModel, PressureFormula};
use nestar_deck::{CELL_VARIABLES, Deck, DeckError, Formula, deck};
use nestar_kernels::choice::Choice;
use std::collections::BTreeMap;

/// Gas state by formulas of x, y, z and t: the table `[initial]`.
#[deck]
pub struct StateConfig {
    /// Gauss-Legendre points per axis and cell for the cell averages of the initial state; 1: the cell centre.
    #[key(default = 1, min = 1, max = 4)]
    pub samples: usize,
    /// Mass density, a formula of x, y, z, t and r (distance from the origin).
    #[key(unit = "mass/length**3")]
    pub density: Option<String>,
    /// Number density per cubic centimetre, instead of the density; needs a table `[units]`.
    #[key(unit = "1/cm3")]
    pub number_density_cm3: Option<String>,
    /// Pressure.
    #[key(unit = "mass/(length*time**2)")]
    pub pressure: Option<String>,
    /// Temperature in kelvin, instead of the pressure; needs a table `[units]` (see `hydro.mean_molecular_weight`).
    #[key(unit = "K")]
    pub temperature_k: Option<String>,
    /// Velocity along x.
    #[key(default = "0".into(), unit = "length/time")]
    pub velocity_x: String,
    /// Velocity along y.
    #[key(default = "0".into(), unit = "length/time")]
    pub velocity_y: String,
    /// Velocity along z.
    #[key(default = "0".into(), unit = "length/time")]
    pub velocity_z: String,
    /// Magnetic field along x, in units in which its pressure is `B^2 / 2`; needs a table `[mhd]`. Default: 0.
    #[key(unit = "(mass/length)**0.5/time")]
    pub magnetic_x: Option<String>,
    /// Magnetic field along y.
    #[key(unit = "(mass/length)**0.5/time")]
    pub magnetic_y: Option<String>,
    /// Magnetic field along z.
    #[key(unit = "(mass/length)**0.5/time")]
    pub magnetic_z: Option<String>,
    /// Vector potential along x, whose curl is added to the magnetic field; needs mhd.method = "ct". The field then has no divergence on any
    /// mesh. Default: 0.
    #[key(unit = "(mass*length)**0.5/time")]
    pub vector_potential_x: Option<String>,
    /// Vector potential along y.
    #[key(unit = "(mass*length)**0.5/time")]
    pub vector_potential_y: Option<String>,
    /// Vector potential along z.
    #[key(unit = "(mass*length)**0.5/time")]
    pub vector_potential_z: Option<String>,
    /// Mass fraction of each passive scalar, by name. Default: 0, or the value declared by a plugin.
    #[key(default = BTreeMap::new())]
    pub scalars: BTreeMap<String, String>,
}

/// Variables of the formulas.
pub(super) const VARIABLES: [&str; 5] = ["x", "y", "z", "t", "r"];

/// Variables of the formulas of an initial state, which is evaluated cell by cell.
const IN_CELLS: [&str; 9] = {
    let ([x, y, z, t, r], [level, i, j, k]) = (VARIABLES, CELL_VARIABLES);
    [x, y, z, t, r, level, i, j, k]
};

/// Compiled formulas of a gas state.
pub struct StateFormulas {
    samples: usize,
    /// Density, velocity x y z, pressure or temperature.
    gas: [Formula; GAS_COMPONENTS],
    /// Pressure from density, temperature and the fractions of all scalars, if `gas` has the temperature.
    pressure: Option<Formula>,
    /// Magnetic field, if the gas has one.
    field: Option<[Formula; 3]>,
    /// Components of the vector potential; `None` for those that the deck does not give.
    potential: [Option<Formula>; 3],
    scalars: Vec<Option<Formula>>,
    /// Indices of the scalars that the table names.
    given: Vec<usize>,
}

impl StateFormulas {
    /// Reads and compiles the table `path` of the deck, for cells of an initial state.
    ///
    /// # Errors
    /// A formula is missing or invalid; a scalar is not declared.
    pub fn from_deck(deck: &mut Deck, path: &str, model: &GasModel) -> Result<Self, DeckError> {
        let config: StateConfig = deck.table(path)?;
        Self::with_variables(deck, path, model, &config, &IN_CELLS)
    }

    /// Compiles the formulas of `config`, read from the table `path`, for points.
    ///
    /// # Errors
    /// A formula is invalid; a scalar is not declared.
    pub fn compile(
        deck: &Deck,
        path: &str,
        model: &GasModel,
        config: &StateConfig,
    ) -> Result<Self, DeckError> {
        Self::with_variables(deck, path, model, config, &VARIABLES)
    }

    fn with_variables(
        deck: &Deck,
        path: &str,
        model: &GasModel,
        config: &StateConfig,
        variables: &[&str],
    ) -> Result<Self, DeckError> {
        let names = &model.scalars;
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        for name in config.scalars.keys() {
            if !names.contains(name) {
                return Err(deck.unknown_key_at(&format!("{path}.scalars.{name}"), &known));
            }
        }
        let formula =
            |key: &str, text: &str| deck.formula(&format!("{path}.{key}"), text, variables);
        let field = field_of(deck, path, model, config, variables)?;
        let potential = potential_of(deck, path, model, config)?;
        let scalar = |(name, initial): (&String, &f64)| {
            let otherwise = (*initial != 0.0).then(|| format!("{initial:?}"));
            let text = config.scalars.get(name).or(otherwise.as_ref());
            text.map(|text| formula(&format!("scalars.{name}"), text))
                .transpose()
        };
        let scalars = names.iter().zip(&model.initial).map(scalar);
        let given = (0..names.len()).filter(|&n| config.scalars.contains_key(&names[n]));
        let [density, pressure] = amounts(deck, path, model, config, variables)?;
        let converted = config
            .temperature_k
            .is_some()
            .then_some(model)
            .and_then(pressure_of);
        Ok(Self {
            samples: config.samples,
            pressure: converted.transpose()?,
            gas: [
                density,
                formula("velocity_x", &config.velocity_x)?,
                formula("velocity_y", &config.velocity_y)?,
                formula("velocity_z", &config.velocity_z)?,
                pressure,
            ],
            field,
            potential,
            scalars: scalars.collect::<Result<_, _>>()?,
            given: given.collect(),
        })
    }

    /// Evaluates the state at a point and time; random numbers, which only cells have, are NaN.
    #[must_use]
    pub fn at(&self, x: [f64; 3], t: f64) -> Primitive {
        let mut w: [f64; GAS_COMPONENTS] =
            std::array::from_fn(|c| self.gas[c].eval(&at_point(x, t)));
        if let Some(pressure) = &self.pressure {
            let fractions = (0..self.scalars.len()).map(|n| self.scalar_at(n, x, t));
            let given: Vec<f64> = [w[0], w[4]].into_iter().chain(fractions).collect();
            w[4] = pressure.eval(&given);
        }
        Primitive {
            density: w[0],
            velocity: [w[1], w[2], w[3]],
            pressure: w[4],
        }
    }

    /// Evaluates the magnetic field at a point and time, if the gas has one.
    #[must_use]
    pub fn field_at(&self, x: [f64; 3], t: f64) -> Option<[f64; 3]> {
        let field = self.field.as_ref()?;
        Some(std::array::from_fn(|a| field[a].eval(&at_point(x, t))))
    }

    /// Evaluates the mass fraction of scalar `n` at a point and time.
    #[must_use]
    pub fn scalar_at(&self, n: usize, x: [f64; 3], t: f64) -> f64 {
        self.scalars[n]
            .as_ref()
            .map_or(0.0, |f| f.eval(&at_point(x, t)))
    }
}

impl StateFormulas {
    /// Formulas of density, velocity x y z and pressure, or temperature if there is a formula [`Self::pressure`], as functions of the
    /// [`VARIABLES`].
    pub(super) fn gas(&self) -> &[Formula; GAS_COMPONENTS] {
        &self.gas
    }

    /// Formula of the pressure as a function of density, temperature and the fractions of all scalars; `None`: `gas` has the pressure.
    pub(super) fn pressure(&self) -> Option<&Formula> {
        self.pressure.as_ref()
    }

    /// Formulas of the magnetic field, if the gas has one.
    pub(super) fn field(&self) -> Option<&[Formula; 3]> {
        self.field.as_ref()
    }

    /// Formulas of the mass fractions of the scalars; `None`: 0.
    pub(super) fn scalars(&self) -> &[Option<Formula>] {
        &self.scalars
    }
}

/// Compiles the formulas of the magnetic field, if the gas has one.
fn field_of(
    deck: &Deck,
    path: &str,
    model: &GasModel,
    config: &StateConfig,
    variables: &[&str],
) -> Result<Option<[Formula; 3]>, DeckError> {
    let given = [
        ("magnetic_x", &config.magnetic_x),
        ("magnetic_y", &config.magnetic_y),
        ("magnetic_z", &config.magnetic_z),
    ];
    if model.magnetic.is_none() {
        return match given.iter().find(|(_, text)| text.is_some()) {
            None => Ok(None),
            Some((key, _)) => {
                let key = format!("{path}.{key}");
                let why = format!(
                    "`{key}` needs a table [mhd], such as [mhd] with method = \"glm\": add it, or remove this key"
                );
                Err(deck.error_at(&key, why))
            }
        };
    }
    let formula = |(key, text): (&str, &Option<String>)| {
        let (key, text) = (format!("{path}.{key}"), text.as_deref().unwrap_or("0"));
        let formula = deck.formula(&key, text, variables)?;
        if model.has_face_field() && formula.uses_cell() {
            let why = format!(
                "`{key}` uses numbers of cells or random ones, but fields of mhd.method = \"ct\" are on faces: use a vector potential of x, y and z"
            );
            return Err(deck.error_at(&key, why));
        }
        Ok(formula)
    };
    let [x, y, z] = given.map(formula);
    Ok(Some([x?, y?, z?]))
}

/// Compiles the formulas of the vector potential.
fn potential_of(
    deck: &Deck,
    path: &str,
    model: &GasModel,
    config: &StateConfig,
) -> Result<[Option<Formula>; 3], DeckError> {
    let formula = |(axis, text): (&str, &Option<String>)| {
        let key = format!("{path}.vector_potential_{axis}");
        let Some(text) = text else { return Ok(None) };
        if !model.has_face_field() {
            let why = format!(
                "`{key}` needs a field on faces: add a table [mhd] with method = \"ct\", or give the field by `{path}.magnetic_{axis}`"
            );
            return Err(deck.error_at(&key, why));
        }
        deck.formula(&key, text, &VARIABLES).map(Some)
    };
    let [x, y, z] = [
        ("x", &config.vector_potential_x),
        ("y", &config.vector_potential_y),
        ("z", &config.vector_potential_z),
    ]
    .map(formula);
    Ok([x?, y?, z?])
}

/// Compiles the formula of a plugin for the pressure at a temperature.
fn pressure_of(model: &GasModel) -> Option<Result<Formula, DeckError>> {
    let PressureFormula { text, curves } = model.pressure_formula.as_ref()?;
    let fractions = model.scalars.iter().map(|name| format!("fraction_{name}"));
    let names = ["density".to_string(), "temperature_k".into()];
    let names: Vec<String> = names.into_iter().chain(fractions).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let scale_factor = model.physical.map_or(1.0, |p| p.first_scale_factor);
    let given = [("scale_factor".to_string(), scale_factor)];
    let formula = Formula::with_curves(text, &names, &given, curves);
    let name = "the pressure at a temperature, of a plugin";
    Some(formula.map_err(|error| DeckError::new(name, error.to_string())))
}

/// Returns the pressure at a density and a temperature in kelvin, with the default fractions of the scalars; `None` without units.
///
/// # Errors
/// The formula of a plugin for the pressure at a temperature is invalid.
pub fn pressure_at(model: &GasModel, density: f64, kelvin: f64) -> Result<Option<f64>, DeckError> {
    let values = [density, kelvin].into_iter().chain(model.initial.clone());
    let values: Vec<f64> = values.collect();
    match pressure_of(model) {
        Some(formula) => Ok(Some(formula?.eval(&values))),
        None => Ok(model
            .physical
            .map(|p| density * kelvin / p.initial_kelvin())),
    }
}

/// Compiles density and pressure, from code units or from physical units. With a [`PressureFormula`], a temperature is not converted.
fn amounts(
    deck: &Deck,
    path: &str,
    model: &GasModel,
    config: &StateConfig,
    variables: &[&str],
) -> Result<[Formula; 2], DeckError> {
    let physical = model.physical;
    if let Some(polytrope) = model.polytrope() {
        return density_alone(deck, path, model, config, variables, polytrope);
    }
    let amount = |plain, other, per| Amount::of(deck, path, [plain, other], per, variables);
    let number = ("number_density_cm3", &config.number_density_cm3);
    let factor = physical.map(|p| 1.0 / p.initial_number_density());
    let density = amount(("density", &config.density), number, factor)?;
    let kelvins = ("temperature_k", &config.temperature_k);
    let factor = physical.map(|p| 1.0 / p.initial_kelvin());
    let pressure = amount(("pressure", &config.pressure), kelvins, factor)?;
    let text = match (pressure.factor, &model.pressure_formula) {
        (Some(_), Some(_)) => pressure.said.into(),
        (Some(_), None) => format!("({})*({})", density.text(), pressure.text()),
        (None, _) => pressure.text(),
    };
    let compile = |key: &str, text: &str| deck.formula(&format!("{path}.{key}"), text, variables);
    Ok([
        compile(density.key, &density.text())?,
        compile(pressure.key, &text)?,
    ])
}

/// Compiles the density, and the pressure of gas whose pressure is `constant * density^exponent`.
fn density_alone(
    deck: &Deck,
    path: &str,
    model: &GasModel,
    config: &StateConfig,
    variables: &[&str],
    [constant, exponent]: [f64; 2],
) -> Result<[Formula; 2], DeckError> {
    let word = model.equation.word();
    for (key, is_given) in [
        ("pressure", config.pressure.is_some()),
        ("temperature_k", config.temperature_k.is_some()),
    ] {
        if is_given {
            let why = format!(
                "with hydro.eos = {word:?} the pressure follows from the density: remove `{path}.{key}`"
            );
            return Err(deck.error_at(&format!("{path}.{key}"), why));
        }
    }
    let number = ("number_density_cm3", &config.number_density_cm3);
    let factor = model.physical.map(|p| 1.0 / p.initial_number_density());
    let given = [("density", &config.density), number];
    let density = Amount::of(deck, path, given, factor, variables)?;
    let text = density.text();
    let compile = |text: &str| deck.formula(&format!("{path}.{}", density.key), text, variables);
    Ok([
        compile(&text)?,
        compile(&format!("{constant:?}*({text})^{exponent:?}"))?,
    ])
}

/// Returns the error for a table that has neither of two keys.
fn missing(deck: &Deck, path: &str, [plain, other]: [&str; 2]) -> DeckError {
    let begin = match deck.has(path) {
        true => format!("`{path}`: missing key `{plain}` (a formula)"),
        false => format!("the table [{path}] is missing; it needs {plain} and others"),
    };
    let instead = format!("in a deck with a table [units] `{other}` may be given instead");
    deck.error_at(path, format!("{begin}; {instead}"))
}

/// A formula for the density or the pressure.
struct Amount<'a> {
    key: &'static str,
    said: &'a str,
    /// Conversion factor to code units, if the key has a physical unit.
    factor: Option<f64>,
}

/// A key and its text in the deck.
type Said<'a> = (&'static str, &'a Option<String>);

impl<'a> Amount<'a> {
    /// Takes the first key (code units) or the second (physical units, needs `[units]`).
    fn of(
        deck: &Deck,
        path: &str,
        [plain, other]: [Said<'a>; 2],
        factor: Option<f64>,
        variables: &[&str],
    ) -> Result<Self, DeckError> {
        let own = |key: &str| format!("{path}.{key}");
        let (key, said, factor) = match (plain.1, other.1) {
            (Some(text), None) => (plain.0, text, None),
            (None, Some(text)) if factor.is_some() => (other.0, text, factor),
            (None, Some(_)) => return Err(needs_units(deck, &own(other.0), other.0)),
            (Some(_), Some(_)) => {
                let why = format!("`{}` or `{}`, not both", own(plain.0), own(other.0));
                return Err(deck.error_at(&own(other.0), format!("give {why}")));
            }
            (None, None) => return Err(missing(deck, path, [plain.0, other.0])),
        };
        // by itself, so that an error has its column
        deck.formula(&own(key), said, variables)?;
        Ok(Self { key, said, factor })
    }

    /// The formula in code units.
    fn text(&self) -> String {
        match self.factor {
            Some(factor) => format!("({})*{factor:?}", self.said),
            None => self.said.into(),
        }
    }
}

/// Values of the [`VARIABLES`].
pub(super) fn arguments(x: [f64; 3], t: f64) -> [f64; 5] {
    let r = nestar_device::math::sum3(x[0] * x[0], x[1] * x[1], x[2] * x[2]).sqrt();
    [x[0], x[1], x[2], t, r]
}

/// Values of the variables of cells at a point.
fn at_point(x: [f64; 3], t: f64) -> [f64; IN_CELLS.len()] {
    let mut values = [f64::NAN; IN_CELLS.len()];
    values[..VARIABLES.len()].copy_from_slice(&arguments(x, t));
    values
}

impl StateFormulas {
    /// Returns the level and the index of the cells that contain the points; 0 if no formula depends on them.
    fn cells(&self, columns: &PrimitiveColumns) -> [Vec<f64>; 4] {
        let of_field = self.field.iter().flatten();
        let mut formulas = (self.gas.iter().chain(of_field)).chain(self.scalars.iter().flatten());
        let n = columns.len();
        if !formulas.any(Formula::uses_cell) {
            return std::array::from_fn(|_| vec![0.0; n]);
        }
        let along = |axis: usize| (0..n).map(|n| f64::from(columns.cell(n)[axis])).collect();
        [vec![columns.level as f64; n], along(0), along(1), along(2)]
    }
}

impl InitialState for StateFormulas {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        let n = columns.len();
        let time = vec![0.0; n];
        let radius: Vec<f64> = (0..n)
            .map(|i| arguments(columns.point(i), 0.0)[4])
            .collect();
        let [x, y, z] = &columns.points;
        let [level, i, j, k] = &self.cells(columns);
        let arguments: [&[f64]; IN_CELLS.len()] = [x, y, z, &time, &radius, level, i, j, k];
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
        for (formula, out) in self.field.iter().flatten().zip(&mut columns.magnetic) {
            formula.eval_many(&arguments, out);
        }
        for (formula, out) in self.scalars.iter().zip(&mut columns.scalars) {
            if let Some(formula) = formula {
                formula.eval_many(&arguments, out);
            }
        }
        if let Some(pressure) = &self.pressure {
            let density: Vec<f64> = columns.states.iter().map(|w| w.density).collect();
            let kelvins: Vec<f64> = columns.states.iter().map(|w| w.pressure).collect();
            let fractions = columns.scalars.iter().map(Vec::as_slice);
            let given: Vec<&[f64]> = [&*density, &*kelvins]
                .into_iter()
                .chain(fractions)
                .collect();
            pressure.eval_many(&given, &mut column);
            for (state, &value) in columns.states.iter_mut().zip(&column) {
                state.pressure = value;
            }
        }
    }

    fn vector_potential(&self, axis: usize, points: &[Vec<f64>; 3]) -> Option<Vec<f64>> {
        let formula = self.potential[axis].as_ref()?;
        let [x, y, z] = points;
        let (time, mut values) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        let radius = |n: usize| arguments([x[n], y[n], z[n]], 0.0)[4];
        let radius: Vec<f64> = (0..x.len()).map(radius).collect();
        let arguments: [&[f64]; VARIABLES.len()] = [x, y, z, &time, &radius];
        formula.eval_many(&arguments, &mut values);
        Some(values)
    }

    fn scalars_given(&self) -> Option<Vec<usize>> {
        Some(self.given.clone())
    }

    fn samples(&self) -> usize {
        self.samples
    }
}
