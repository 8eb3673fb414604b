//! Fields to plot: arrays of the snapshot and fields derived from them.

use crate::error::{PlotError, Result, nearest};
use crate::particles::{self, PlottedSpecies};
use crate::texts::raised_powers;
use nestar_deck::{Deck, Formula, formula_units};
use nestar_snapshot::{PATCH_SIZE, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Function that computes the value in a cell from the values of some arrays.
pub type FieldFunction = Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// A field that the caller derives from arrays of the snapshot.
#[derive(Clone)]
pub struct CustomField {
    /// Name of the field.
    pub name: String,
    /// Unit in the notation of snapshots; `1` for a dimensionless field.
    pub units: String,
    /// Names of the arrays that the field is derived from.
    pub arrays: Vec<String>,
    /// Computes the value from those of the arrays, in the same order.
    pub value: FieldFunction,
}

/// Formula of a field in terms of its arrays.
#[derive(Clone)]
enum FieldFormula {
    /// The array itself.
    Array,
    /// The refinement level.
    Level,
    /// 1 everywhere.
    One,
    /// The coordinate of the cell's centre along an axis.
    Coordinate(usize),
    /// An array divided by the density: a velocity or a mass fraction.
    Specific,
    /// Magnitude of momentum divided by density.
    Speed,
    /// A quantity that needs the complete state of the gas and its adiabatic index.
    Gas(GasQuantity),
    /// A gas quantity from density and momentum; the pressure is this constant times `density^gamma`.
    Polytrope(GasQuantity, f64),
    /// A function of the caller.
    Custom(FieldFunction),
    /// A formula of other fields.
    Text(Arc<TextFormula>),
    /// Mass density of particles, or their number density if they have no mass.
    Particles { massive: bool },
}

/// A formula of fields, given as a text.
struct TextFormula {
    formula: Formula,
    /// The fields that it uses, in the order of its variables.
    parts: Vec<PlotField>,
    /// For each part, the place of its arrays among those of the formula.
    places: Vec<Vec<usize>>,
}

/// Derived quantities of an ideal gas.
#[derive(Clone, Copy, Debug, PartialEq)]
enum GasQuantity {
    Pressure,
    Temperature,
    SoundSpeed,
    Mach,
    Entropy,
}

/// A field that can be plotted.
#[derive(Clone)]
pub(crate) struct PlotField {
    /// Name, as in the options.
    pub name: String,
    /// Unit in the notation of snapshots; `1` if dimensionless.
    pub units: String,
    /// Names of the arrays to read, in the order of [`PlotField::evaluate`].
    pub arrays: Vec<String>,
    /// `true` for fields with values of both signs, such as a velocity.
    pub signed: bool,
    formula: FieldFormula,
    gamma: f64,
}

/// A field that a snapshot offers for plots.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldInfo {
    /// Name, as in the options.
    pub name: String,
    /// Name for display.
    pub label: String,
    /// Unit in the notation of snapshots; `1` if dimensionless.
    pub units: String,
    /// `true` for the density of a particle species.
    pub of_particles: bool,
}

/// Name of the weight that is 1 everywhere.
pub(crate) const VOLUME: &str = "volume";
/// Cells in which a field is computed, patch by patch, `[z][y][x]`.
#[derive(Clone, Copy)]
pub(crate) struct CellPlaces<'a> {
    /// Refinement level.
    pub level: u8,
    /// Lower corner of the domain.
    pub low: [f64; 3],
    /// Width of a cell.
    pub width: [f64; 3],
    /// First cell of each patch.
    pub origins: &'a [[i32; 3]],
}

impl CellPlaces<'_> {
    /// Returns the coordinate of the centre of a cell along an axis.
    fn coordinate(&self, axis: usize, cell: usize) -> f64 {
        let side = PATCH_SIZE as usize;
        let (patch, inside) = (cell / side.pow(3), cell % side.pow(3));
        let index = inside / side.pow(axis as u32) % side;
        let first = f64::from(self.origins[patch][axis]);
        self.low[axis] + (first + index as f64 + 0.5) * self.width[axis]
    }
}

/// Names of the momentum components.
const MOMENTUM: [&str; 3] = ["momentum_x", "momentum_y", "momentum_z"];
/// Names of the velocity components.
const VELOCITY: [&str; 3] = ["velocity_x", "velocity_y", "velocity_z"];
/// Unit of velocity.
const SPEED: &str = "length/time";
/// Derived fields of a gas with their quantity and unit.
const GAS: [(&str, GasQuantity, &str); 5] = [
    ("pressure", GasQuantity::Pressure, "mass/(length*time**2)"),
    ("temperature", GasQuantity::Temperature, "length**2/time**2"),
    ("sound_speed", GasQuantity::SoundSpeed, "length/time"),
    ("mach", GasQuantity::Mach, "1"),
    ("entropy", GasQuantity::Entropy, "code units"),
];

/// Returns names and units of the arrays with one value per cell, on any level.
fn cell_arrays(snapshot: &Snapshot) -> Vec<(String, String)> {
    let levels = snapshot.levels().map(|level| level.level);
    let fields = levels.flat_map(|level| snapshot.fields(level));
    let cells = fields.filter(|field| field.is_per_cell());
    let named: BTreeSet<_> = cells
        .map(|field| (field.name.clone(), field.units.clone()))
        .collect();
    named.into_iter().collect()
}

/// Fields that can be plotted.
struct Candidates {
    fields: Vec<PlotField>,
    gamma: f64,
}

impl Candidates {
    fn add(&mut self, name: &str, unit: &str, formula: FieldFormula, needs: &[&str]) {
        let signed = ["velocity_", "momentum_", "magnetic_"];
        self.fields.push(PlotField {
            name: name.to_string(),
            units: unit.to_string(),
            arrays: needs.iter().map(|array| array.to_string()).collect(),
            signed: signed.iter().any(|prefix| name.starts_with(prefix)),
            formula,
            gamma: self.gamma,
        });
    }
}

/// Returns all fields that can be plotted from these arrays (name, unit): the arrays, then derived fields.
fn candidates(arrays: &[(String, String)], fact: impl Fn(&str) -> Option<f64>) -> Vec<PlotField> {
    let (gamma, constant) = (fact("gamma"), fact("polytropic_constant"));
    let has = |name: &str| arrays.iter().any(|(array, _)| array == name);
    let mut found = Candidates {
        fields: vec![],
        gamma: gamma.unwrap_or(f64::NAN),
    };
    for (name, unit) in arrays {
        found.add(name, unit, FieldFormula::Array, &[name]);
    }
    found.add("level", "1", FieldFormula::Level, &[]);
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        found.add(name, "length", FieldFormula::Coordinate(axis), &[]);
    }
    let density = has("density");
    for (array, _) in arrays.iter().filter(|_| density) {
        if let Some(name) = array.strip_prefix("scalar_") {
            let fraction = format!("fraction_{name}");
            found.add(&fraction, "1", FieldFormula::Specific, &[array, "density"]);
        }
    }
    if density && MOMENTUM.into_iter().all(has) {
        let [x, y, z] = MOMENTUM;
        for (name, array) in VELOCITY.into_iter().zip(MOMENTUM) {
            found.add(name, SPEED, FieldFormula::Specific, &[array, "density"]);
        }
        found.add("speed", SPEED, FieldFormula::Speed, &["density", x, y, z]);
        if let (Some(constant), Some(_)) = (constant, gamma) {
            // gas without energy has no entropy of its own
            for (name, gas, unit) in &GAS[..4] {
                let formula = FieldFormula::Polytrope(*gas, constant);
                found.add(name, unit, formula, &["density", x, y, z]);
            }
        } else if has("energy") && gamma.is_some() {
            let needs = ["density", x, y, z, "energy"];
            for (name, gas, unit) in GAS {
                found.add(name, unit, FieldFormula::Gas(gas), &needs);
            }
        }
    }
    found.fields
}

/// Returns the fields of the snapshot and those of `custom`, with fields derived from them.
fn known_fields(snapshot: &Snapshot, custom: &[CustomField]) -> Vec<PlotField> {
    let arrays = cell_arrays(snapshot);
    let facts = &snapshot.attributes().facts;
    let mut fields = candidates(&arrays, |name| facts.get(name).copied());
    let custom = custom.iter();
    fields.extend(custom.filter_map(|field| custom_field(field, &arrays)));
    fields
}

/// Returns all fields that can be plotted: arrays, derived fields, those of `custom`, and densities of particles.
///
/// # Errors
/// The snapshot is damaged.
pub fn list_fields(snapshot: &Snapshot, custom: &[CustomField]) -> Result<Vec<FieldInfo>> {
    let mut seen = BTreeSet::new();
    let mut fields = known_fields(snapshot, custom);
    // the first field of a name is used
    fields.retain(|field| seen.insert(field.name.clone()));
    for species in particles::species(snapshot) {
        fields.push(PlotField::of_particles(snapshot, &species)?);
    }
    let info = |field: PlotField| FieldInfo {
        label: field.label(),
        of_particles: field.species().is_some(),
        name: field.name,
        units: field.units,
    };
    Ok(fields.into_iter().map(info).collect())
}

/// Returns a field of the caller, or `None` if one of its arrays is missing.
fn custom_field(custom: &CustomField, arrays: &[(String, String)]) -> Option<PlotField> {
    let exists = |name: &String| arrays.iter().any(|(array, _)| array == name);
    custom.arrays.iter().all(exists).then(|| PlotField {
        name: custom.name.clone(),
        units: custom.units.clone(),
        arrays: custom.arrays.clone(),
        signed: false,
        formula: FieldFormula::Custom(custom.value.clone()),
        gamma: f64::NAN,
    })
}

impl PlotField {
    /// Returns the field `name` of the snapshot, or of the caller's fields, or the formula `name` of them.
    pub fn new(snapshot: &Snapshot, name: &str, custom: &[CustomField]) -> Result<Self> {
        let mut fields = known_fields(snapshot, custom);
        let species = particles::species(snapshot);
        if species.iter().any(|path| path == name) {
            return Self::of_particles(snapshot, name);
        }
        if let Some(place) = fields.iter().position(|field| field.name == name) {
            return Ok(fields.swap_remove(place));
        }
        let is_formula = !name.starts_with(particles::GROUP)
            && name.contains(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        if is_formula {
            return Self::of_text(snapshot, name, fields);
        }
        let mut known: Vec<String> = fields.into_iter().map(|field| field.name).collect();
        known.extend(species);
        known.sort();
        known.dedup();
        Err(PlotError::UnknownField {
            name: name.to_string(),
            nearest: nearest(name, &known).cloned(),
            known,
        })
    }

    /// Returns a formula of `fields`, which may use the constants of the deck.
    fn of_text(snapshot: &Snapshot, text: &str, fields: Vec<PlotField>) -> Result<Self> {
        let mut fields = fields;
        let mut seen = BTreeSet::new();
        // the first field of a name is used
        fields.retain(|field| seen.insert(field.name.clone()));
        let deck = Deck::parse("the snapshot's deck", &snapshot.attributes().config);
        let constants = deck.map_or_else(|_| vec![], |deck| deck.constants().to_vec());
        let fault = |error: nestar_deck::FormulaError| {
            PlotError::Option(format!("the formula {text:?}: {error}"))
        };
        let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        let all = Formula::with_constants(text, &names, &constants).map_err(fault)?;
        let quantities: Vec<(&str, &str)> = fields.iter().map(|f| (&*f.name, &*f.units)).collect();
        // without a known unit, the formula has none
        let units = formula_units(text, &quantities).unwrap_or_default();
        let parts: Vec<PlotField> = fields
            .iter()
            .filter(|field| all.uses(&field.name))
            .cloned()
            .collect();
        let used: Vec<&str> = parts.iter().map(|field| &*field.name).collect();
        let formula = Formula::with_constants(text, &used, &constants).map_err(fault)?;
        let mut arrays: Vec<String> = vec![];
        let places = parts.iter().map(|part| part.places_among(&mut arrays));
        let places = places.collect();
        Ok(Self {
            name: text.to_string(),
            units,
            arrays,
            signed: false,
            gamma: f64::NAN,
            formula: FieldFormula::Text(Arc::new(TextFormula {
                formula,
                parts,
                places,
            })),
        })
    }

    /// Returns the places of the field's arrays in a list, to which missing ones are added.
    pub fn places_among(&self, all: &mut Vec<String>) -> Vec<usize> {
        let place = |name: &String| {
            all.iter()
                .position(|other| other == name)
                .unwrap_or_else(|| {
                    all.push(name.clone());
                    all.len() - 1
                })
        };
        self.arrays.iter().map(place).collect()
    }

    /// Returns the field of the weight `name`, `volume` or a field.
    pub fn weight(snapshot: &Snapshot, name: &str, custom: &[CustomField]) -> Result<Self> {
        if name == VOLUME {
            return Ok(Self {
                name: VOLUME.to_string(),
                units: "1".into(),
                arrays: vec![],
                signed: false,
                formula: FieldFormula::One,
                gamma: f64::NAN,
            });
        }
        let field = Self::new(snapshot, name, custom)?;
        match field.species() {
            None => Ok(field),
            Some(_) => {
                let text = format!("--weight {name}: must be a field of cells, or {VOLUME}");
                Err(PlotError::Option(text))
            }
        }
    }

    /// Returns the name of the weight as a quantity of a cell: its volume, its mass, or the field times the volume.
    pub fn weight_label(&self) -> String {
        match &*self.name {
            VOLUME => "Volume".into(),
            "density" => "Mass".into(),
            _ => format!("{} times volume", self.label()),
        }
    }

    /// Returns the density of a particle species.
    fn of_particles(snapshot: &Snapshot, path: &str) -> Result<Self> {
        let massive = particles::have_mass(snapshot, path)?;
        let mass = if massive { "mass" } else { "1" };
        Ok(Self {
            name: path.to_string(),
            units: format!("{mass}/length**3"),
            arrays: vec![],
            signed: false,
            formula: FieldFormula::Particles { massive },
            gamma: f64::NAN,
        })
    }

    /// Returns the particles whose density this is, or `None` for other fields.
    pub fn species(&self) -> Option<PlottedSpecies<'_>> {
        match self.formula {
            FieldFormula::Particles { massive } => Some(PlottedSpecies {
                path: &self.name,
                massive,
            }),
            _ => None,
        }
    }

    /// Returns the name for display, such as `Number density`.
    pub fn label(&self) -> String {
        if matches!(self.formula, FieldFormula::Text(_)) {
            return raised_powers(&self.name);
        }
        let name = match self.species() {
            Some(species) => {
                let number = if species.massive { "" } else { "number " };
                format!("{number}density of {}", particles::name(species.path))
            }
            None => {
                // the unit is beside the label
                let unit = ["_k", "_cm3"]
                    .iter()
                    .find_map(|unit| self.name.strip_suffix(unit));
                let has_unit = ["K", "cm**-3"].contains(&self.units.as_str());
                let name = unit.filter(|_| has_unit).unwrap_or(&self.name);
                name.replace('_', " ")
            }
        };
        let mut letters = name.chars();
        let first = letters
            .next()
            .map(|letter| letter.to_uppercase().to_string());
        format!("{}{}", first.unwrap_or_default(), letters.as_str())
    }

    /// Returns the unit of the field times length.
    pub fn units_along(&self) -> String {
        match self.units.strip_suffix("/length**3") {
            Some(head) => format!("{head}/length**2"),
            None if self.units == "1" => "length".to_string(),
            None if self.units.is_empty() => String::new(),
            None => format!("{}*length", self.units),
        }
    }

    /// Returns `true` if the values are refinement levels.
    pub fn is_level(&self) -> bool {
        matches!(self.formula, FieldFormula::Level)
    }

    /// Computes the field in the cells of `out` from the values of its arrays.
    pub fn evaluate(&self, cells: CellPlaces, arrays: &[&[f64]], out: &mut [f64]) {
        let at = |array: usize, cell: usize| arrays[array][cell];
        match &self.formula {
            FieldFormula::Array => out.copy_from_slice(&arrays[0][..out.len()]),
            FieldFormula::Particles { .. } => {}
            FieldFormula::Level => out.fill(f64::from(cells.level)),
            FieldFormula::One => out.fill(1.0),
            FieldFormula::Coordinate(axis) => each(out, |i| cells.coordinate(*axis, i)),
            FieldFormula::Specific => each(out, |i| at(0, i) / at(1, i)),
            FieldFormula::Speed => each(out, |i| square(&arrays[1..4], i).sqrt() / at(0, i)),
            FieldFormula::Gas(gas) => each(out, |i| self.gas(*gas, arrays, i)),
            FieldFormula::Polytrope(gas, constant) => each(out, |i| {
                let (density, momentum) = (at(0, i), square(&arrays[1..4], i));
                let pressure = constant * density.powf(self.gamma);
                self.of_pressure(*gas, density, momentum, pressure)
            }),
            FieldFormula::Custom(value) => {
                let mut state = vec![0.0; arrays.len()];
                for (i, out) in out.iter_mut().enumerate() {
                    state
                        .iter_mut()
                        .zip(arrays)
                        .for_each(|(to, array)| *to = array[i]);
                    *out = value(&state);
                }
            }
            FieldFormula::Text(text) => text.evaluate(cells, arrays, out),
        }
    }

    /// Computes a gas quantity in cell `i`; the arrays are density, momentum and energy, which contains no magnetic energy.
    fn gas(&self, gas: GasQuantity, arrays: &[&[f64]], i: usize) -> f64 {
        let (density, momentum) = (arrays[0][i], square(&arrays[1..4], i));
        let internal = arrays[4][i] - 0.5 * momentum / density;
        self.of_pressure(gas, density, momentum, (self.gamma - 1.0) * internal)
    }

    /// Computes a gas quantity from density, squared momentum and pressure.
    fn of_pressure(&self, gas: GasQuantity, density: f64, momentum: f64, pressure: f64) -> f64 {
        match gas {
            GasQuantity::Pressure => pressure,
            GasQuantity::Temperature => pressure / density,
            GasQuantity::SoundSpeed => (self.gamma * pressure / density).sqrt(),
            GasQuantity::Mach => (momentum / (self.gamma * pressure * density)).sqrt(),
            GasQuantity::Entropy => pressure / density.powf(self.gamma),
        }
    }
}

impl TextFormula {
    /// Computes the formula in the cells of `out`.
    fn evaluate(&self, cells: CellPlaces, arrays: &[&[f64]], out: &mut [f64]) {
        let part = |(part, places): (&PlotField, &Vec<usize>)| {
            let own: Vec<&[f64]> = places.iter().map(|&place| arrays[place]).collect();
            let mut values = vec![0.0; out.len()];
            part.evaluate(cells, &own, &mut values);
            values
        };
        let parts: Vec<Vec<f64>> = self.parts.iter().zip(&self.places).map(part).collect();
        let columns: Vec<&[f64]> = parts.iter().map(|values| &values[..]).collect();
        self.formula.eval_many(&columns, out);
    }
}

/// Sets each value to that of its place.
fn each(out: &mut [f64], value: impl Fn(usize) -> f64) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = value(i);
    }
}

/// Returns the sum of squares of the arrays in cell `i`.
fn square(arrays: &[&[f64]], i: usize) -> f64 {
    arrays.iter().map(|array| array[i] * array[i]).sum()
}

#[cfg(test)]
mod tests {
    use super::{CellPlaces, candidates};

    fn evaluate(name: &str, arrays: &[f64]) -> f64 {
        let known = [
            "density",
            "energy",
            "momentum_x",
            "momentum_y",
            "momentum_z",
            "scalar_dye",
        ];
        let known: Vec<_> = known
            .iter()
            .map(|name| (name.to_string(), "1".to_string()))
            .collect();
        let field = candidates(&known, |name| (name == "gamma").then_some(1.5))
            .into_iter()
            .find(|field| field.name == name);
        let values: Vec<&[f64]> = arrays.chunks(1).collect();
        let mut out = [0.0];
        let cells = CellPlaces {
            level: 3,
            low: [10.0; 3],
            width: [1.0, 2.0, 4.0],
            origins: &[[8, 16, 24]],
        };
        field.expect("a field").evaluate(cells, &values, &mut out);
        out[0]
    }

    #[test]
    fn derived_fields_follow_from_the_conserved_state() {
        // density 2, velocity (1, 2, 2), kinetic energy 9, internal energy 16: pressure 8
        let gas = [2.0, 2.0, 4.0, 4.0, 25.0];
        assert_eq!(evaluate("pressure", &gas), 8.0);
        assert_eq!(evaluate("temperature", &gas), 4.0);
        assert_eq!(evaluate("sound_speed", &gas), 6f64.sqrt());
        assert!((evaluate("mach", &gas) - 3.0 / 6f64.sqrt()).abs() < 1e-15);
        assert!((evaluate("entropy", &gas) - 8.0 / 2f64.powf(1.5)).abs() < 1e-15);
        assert_eq!(evaluate("speed", &gas[..4]), 3.0);
        assert_eq!(evaluate("velocity_y", &[4.0, 2.0]), 2.0);
        assert_eq!(evaluate("fraction_dye", &[0.5, 2.0]), 0.25);
        assert_eq!(evaluate("level", &[]), 3.0);
        assert_eq!(evaluate("x", &[]), 18.5);
        assert_eq!(evaluate("z", &[]), 108.0);
    }
}
