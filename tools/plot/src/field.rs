//! Fields to draw: arrays of the snapshot and what follows from them.

use crate::error::{PlotError, Result, nearest};
use crate::particles;
use nestar_snapshot::Snapshot;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What makes a value of those of some arrays in a cell.
pub type CellFunction = Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// A field that the caller can make of some arrays.
#[derive(Clone)]
pub struct CustomField {
    /// Its name.
    pub name: String,
    /// Its unit as the format writes it, `1` for a pure number.
    pub units: String,
    /// The arrays of the snapshot that it is made of.
    pub arrays: Vec<String>,
    /// The value for those of the arrays, in their order.
    pub value: CellFunction,
}

/// How a field follows from its arrays.
#[derive(Clone)]
enum FieldFormula {
    /// The array itself.
    Array,
    /// The refinement level.
    Level,
    /// One array over the density: a velocity or a mass fraction.
    Specific,
    /// Momentum over density.
    Speed,
    /// One of the fields that need the whole gas and its adiabatic index.
    Gas(GasQuantity),
    /// As the caller makes it.
    Own(CellFunction),
    /// The density of particles, of mass if they have any and else of their number.
    Particles { massive: bool },
}

/// Fields of an ideal gas.
#[derive(Clone, Copy, Debug, PartialEq)]
enum GasQuantity {
    Pressure,
    Temperature,
    SoundSpeed,
    Mach,
    Entropy,
}

/// A field that can be drawn.
pub(crate) struct PlotField {
    /// Its name, as in the options.
    pub name: String,
    /// Its unit for people, with exponents marked as `^{3}`; empty for a pure number.
    pub unit: String,
    /// The arrays to read, in the order that [`Field::evaluate`] takes.
    pub arrays: Vec<String>,
    /// Whether both signs mean the same, as in a velocity.
    pub signed: bool,
    formula: FieldFormula,
    gamma: f64,
}

/// Momentum components, in order.
const MOMENTUM: [&str; 3] = ["momentum_x", "momentum_y", "momentum_z"];
/// Velocity components, in order.
const VELOCITY: [&str; 3] = ["velocity_x", "velocity_y", "velocity_z"];
/// The unit of a velocity.
const SPEED: &str = "length/time";
/// Cell-centred magnetic field, in order.
const MAGNETIC: [&str; 3] = ["magnetic_x", "magnetic_y", "magnetic_z"];
/// The derived fields of a gas with their formula and unit.
const GAS: [(&str, GasQuantity, &str); 5] = [
    ("pressure", GasQuantity::Pressure, "mass/(length*time**2)"),
    ("temperature", GasQuantity::Temperature, "length**2/time**2"),
    ("sound_speed", GasQuantity::SoundSpeed, "length/time"),
    ("mach", GasQuantity::Mach, "1"),
    ("entropy", GasQuantity::Entropy, "code units"),
];

/// The unit of the format, e.g. `mass/length**3`, for people.
fn readable(unit: &str) -> String {
    if unit == "1" {
        return String::new();
    }
    let mut text = String::new();
    let mut rest = unit;
    while let Some(start) = rest.find("**") {
        let (head, tail) = (&rest[..start], &rest[start + 2..]);
        let digits = tail.len()
            - tail
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '-')
                .len();
        text += &format!("{head}^{{{}}}", &tail[..digits]);
        rest = &tail[digits..];
    }
    (text + rest).replace('*', " ").replace('/', " / ")
}

/// Names and units of the arrays with one value a cell, on any level.
fn cell_arrays(snapshot: &Snapshot) -> Vec<(String, String)> {
    let levels = snapshot.levels().map(|level| level.level);
    let fields = levels.flat_map(|level| snapshot.fields(level));
    let cells = fields.filter(|field| field.is_per_cell());
    let named: BTreeSet<_> = cells
        .map(|field| (field.name.clone(), field.units.clone()))
        .collect();
    named.into_iter().collect()
}

/// Fields collected so far.
struct Candidates {
    fields: Vec<PlotField>,
    gamma: f64,
}

impl Candidates {
    fn add(&mut self, name: &str, unit: &str, formula: FieldFormula, needs: &[&str]) {
        let signed = ["velocity_", "momentum_", "magnetic_"];
        self.fields.push(PlotField {
            name: name.to_string(),
            unit: readable(unit),
            arrays: needs.iter().map(|array| array.to_string()).collect(),
            signed: signed.iter().any(|prefix| name.starts_with(prefix)),
            formula,
            gamma: self.gamma,
        });
    }
}

/// Every field that can be drawn from these arrays, given with their units; arrays before derived fields.
fn candidates(arrays: &[(String, String)], gamma: Option<f64>) -> Vec<PlotField> {
    let has = |name: &str| arrays.iter().any(|(array, _)| array == name);
    let mut found = Candidates {
        fields: vec![],
        gamma: gamma.unwrap_or(f64::NAN),
    };
    for (name, unit) in arrays {
        found.add(name, unit, FieldFormula::Array, &[name]);
    }
    found.add("level", "1", FieldFormula::Level, &[]);
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
        if has("energy") && gamma.is_some() {
            let magnetic = MAGNETIC.into_iter().filter(|name| has(name));
            let needs = ["density", x, y, z, "energy"].into_iter().chain(magnetic);
            let needs: Vec<&str> = needs.collect();
            for (name, gas, unit) in GAS {
                found.add(name, unit, FieldFormula::Gas(gas), &needs);
            }
        }
    }
    found.fields
}

/// A field of the caller's, if its arrays are there.
fn own_field(own: &CustomField, arrays: &[(String, String)]) -> Option<PlotField> {
    let there = |name: &String| arrays.iter().any(|(array, _)| array == name);
    own.arrays.iter().all(there).then(|| PlotField {
        name: own.name.clone(),
        unit: readable(&own.units),
        arrays: own.arrays.clone(),
        signed: false,
        formula: FieldFormula::Own(own.value.clone()),
        gamma: f64::NAN,
    })
}

impl PlotField {
    /// The field `name` of the snapshot, or of those that the caller can make.
    pub fn new(snapshot: &Snapshot, name: &str, own: &[CustomField]) -> Result<Self> {
        let arrays = cell_arrays(snapshot);
        let mut fields = candidates(&arrays, snapshot.attributes().facts.get("gamma").copied());
        fields.extend(own.iter().filter_map(|own| own_field(own, &arrays)));
        let species = particles::species(snapshot);
        if species.iter().any(|path| path == name) {
            return Self::of_particles(snapshot, name);
        }
        let mut known: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        known.extend(species);
        fields
            .into_iter()
            .find(|field| field.name == name)
            .ok_or_else(|| {
                known.sort();
                known.dedup();
                let nearest = nearest(name, &known).cloned();
                PlotError::UnknownField {
                    name: name.to_string(),
                    nearest,
                    known,
                }
            })
    }

    /// The density of a species.
    fn of_particles(snapshot: &Snapshot, path: &str) -> Result<Self> {
        let massive = particles::have_mass(snapshot, path)?;
        let mass = if massive { "mass" } else { "1" };
        Ok(Self {
            name: path.to_string(),
            unit: readable(&format!("{mass}/length**3")),
            arrays: vec![],
            signed: false,
            formula: FieldFormula::Particles { massive },
            gamma: f64::NAN,
        })
    }

    /// The group of the particles whose density this is, and whether they have mass.
    pub fn species(&self) -> Option<(&str, bool)> {
        match self.formula {
            FieldFormula::Particles { massive } => Some((&self.name, massive)),
            _ => None,
        }
    }

    /// Its name for people.
    pub fn label(&self) -> String {
        match self.species() {
            Some((path, true)) => format!("density of {}", particles::name(path)),
            Some((path, false)) => format!("number density of {}", particles::name(path)),
            None => self.name.replace('_', " "),
        }
    }

    /// Its unit times a length.
    pub fn unit_along(&self) -> String {
        match self.unit.strip_suffix("length^{3}") {
            Some(head) => format!("{head}length^{{2}}"),
            None if self.unit.is_empty() => "length".to_string(),
            None => format!("{} · length", self.unit),
        }
    }

    /// Whether the values are refinement levels.
    pub fn is_level(&self) -> bool {
        matches!(self.formula, FieldFormula::Level)
    }

    /// The field's values from those of its arrays, `cells` of each.
    pub fn evaluate(&self, level: u8, mut arrays: Vec<Vec<f64>>, cells: usize) -> Vec<f64> {
        let at = |array: usize, cell: usize| arrays[array][cell];
        match &self.formula {
            FieldFormula::Array => arrays.swap_remove(0),
            FieldFormula::Particles { .. } => vec![],
            FieldFormula::Level => vec![f64::from(level); cells],
            FieldFormula::Specific => (0..cells).map(|i| at(0, i) / at(1, i)).collect(),
            FieldFormula::Speed => (0..cells)
                .map(|i| square(&arrays[1..4], i).sqrt() / at(0, i))
                .collect(),
            FieldFormula::Gas(gas) => (0..cells).map(|i| self.gas(*gas, &arrays, i)).collect(),
            FieldFormula::Own(value) => {
                let state = |i: usize| -> Vec<f64> { arrays.iter().map(|a| a[i]).collect() };
                (0..cells).map(|i| value(&state(i))).collect()
            }
        }
    }

    /// One value of a gas field; arrays: density, momentum, energy, magnetic field (absent or whole).
    fn gas(&self, gas: GasQuantity, arrays: &[Vec<f64>], i: usize) -> f64 {
        let (density, momentum) = (arrays[0][i], square(&arrays[1..4], i));
        let magnetic = square(&arrays[5..], i);
        let inner = arrays[4][i] - 0.5 * momentum / density - 0.5 * magnetic;
        let pressure = (self.gamma - 1.0) * inner;
        match gas {
            GasQuantity::Pressure => pressure,
            GasQuantity::Temperature => pressure / density,
            GasQuantity::SoundSpeed => (self.gamma * pressure / density).sqrt(),
            GasQuantity::Mach => (momentum / (self.gamma * pressure * density)).sqrt(),
            GasQuantity::Entropy => pressure / density.powf(self.gamma),
        }
    }
}

/// The sum of the squares of some arrays at one cell.
fn square(arrays: &[Vec<f64>], i: usize) -> f64 {
    arrays.iter().map(|array| array[i] * array[i]).sum()
}

#[cfg(test)]
mod tests {
    use super::{candidates, readable};

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
        let field = candidates(&known, Some(1.5))
            .into_iter()
            .find(|field| field.name == name);
        let values = arrays.iter().map(|&value| vec![value]).collect();
        field.expect("a field").evaluate(3, values, 1)[0]
    }

    #[test]
    fn derived_fields_follow_from_the_conserved_state() {
        // Density 2, velocity (1, 2, 2), kinetic energy 9, inner energy 16: pressure 8.
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
    }

    #[test]
    fn units_are_made_readable() {
        assert_eq!(readable("1"), "");
        assert_eq!(readable("mass/length**3"), "mass / length^{3}");
        assert_eq!(readable("cm**-3"), "cm^{-3}");
        assert_eq!(
            readable("mass/(length*time**2)"),
            "mass / (length time^{2})"
        );
    }
}
