//! Derived inputs of a cell by the formulas of the table `[external]`.

use super::config::ExternalConfig;
use crate::fields::quantities::{compile, vocabulary_of_places};
use nestar_deck::{Deck, DeckError, Formula};
use nestar_device::math::sum3;
use nestar_device::{Place, Real, device};
use nestar_engine::data::DerivedInputs;
use nestar_engine::data::criteria::{CellQuantity, NamedQuantity, QuantityFn};

/// Key of the potential.
const POTENTIAL: &str = "external.potential";

/// x coordinate at an offset in cell widths.
#[device]
fn x_at_offset<R: Real>(at: &Place<R>, steps: R) -> R {
    at.centre[0] + steps * at.width[0]
}

/// y coordinate at an offset in cell widths.
#[device]
fn y_at_offset<R: Real>(at: &Place<R>, steps: R) -> R {
    at.centre[1] + steps * at.width[1]
}

/// z coordinate at an offset in cell widths.
#[device]
fn z_at_offset<R: Real>(at: &Place<R>, steps: R) -> R {
    at.centre[2] + steps * at.width[2]
}

/// Distance from the origin at an offset in cell widths along x, y, z.
#[device]
fn radius_at_offset<R: Real>(at: &Place<R>, i: R, j: R, k: R) -> R {
    let (x, y, z) = (x_at_offset(at, i), y_at_offset(at, j), z_at_offset(at, k));
    sum3(x * x, y * y, z * z).sqrt()
}

/// Simulation time.
#[device]
fn time<R: Real>(at: &Place<R>) -> R {
    R::from_f64(at.time)
}

/// Returns the variable `name` at an offset in cell widths.
fn variable_at_offset(name: &str, steps: [f64; 3]) -> NamedQuantity {
    let (function, parameters) = match name {
        "x" => (QuantityFn::of::<x_at_offset>(), &steps[..1]),
        "y" => (QuantityFn::of::<y_at_offset>(), &steps[1..2]),
        "z" => (QuantityFn::of::<z_at_offset>(), &steps[2..]),
        "r" => (QuantityFn::of::<radius_at_offset>(), &steps[..]),
        _ => (QuantityFn::of::<time>(), &steps[..0]),
    };
    NamedQuantity {
        function,
        components: Vec::new(),
        parameters: parameters.to_vec(),
    }
}

/// Inputs of a cell: the potential, its differences over a cell width along x, y, z, and additional accelerations.
pub(super) struct ExternalInputs {
    pub numbers: DerivedInputs,
    /// `true` if an input depends on time.
    pub depends_on_time: bool,
    /// `true` if an input is not 0.
    pub is_nonzero: bool,
}

impl ExternalInputs {
    /// Compiles the formulas.
    ///
    /// # Errors
    /// A formula is invalid (the error has the position); the order of differences is invalid.
    pub fn of(config: &ExternalConfig, deck: &Deck) -> Result<Self, DeckError> {
        let fourth = match config.order {
            2 | 4 => config.order == 4,
            order => {
                let message = format!("`external.order` must be 2 or 4, found {order}");
                return Err(deck.error_at("external.order", message));
            }
        };
        let potential = deck.formula(POTENTIAL, &config.potential, &["x", "y", "z", "r", "t"])?;
        // compile again with the variables in use only: these are computed in each cell
        let used: Vec<&str> = ["x", "y", "z", "r", "t"]
            .into_iter()
            .filter(|name| potential.uses(name))
            .collect();
        let potential = deck.formula(POTENTIAL, &config.potential, &used)?;
        let mut list = vec![at_points(&potential, &used, &[[0.0; 3]])];
        for axis in 0..3 {
            list.push(difference(&potential, &used, axis, fourth, deck)?);
        }
        let further = [
            ("x", &config.acceleration_x),
            ("y", &config.acceleration_y),
            ("z", &config.acceleration_z),
        ];
        let mut depends_on_time = used.contains(&"t");
        let mut is_nonzero = potential.constant() != Some(0.0);
        for (axis, text) in further {
            let key = format!("external.acceleration_{axis}");
            let number = compile(deck, &key, text, vocabulary_of_places())?;
            depends_on_time |= changes(&number, text);
            is_nonzero |= !is_zero(&number);
            list.push(number);
        }
        let numbers = DerivedInputs::new(list);
        Ok(Self {
            numbers,
            depends_on_time,
            is_nonzero,
        })
    }
}

/// Returns `true` if an input depends on time.
fn changes(number: &CellQuantity, text: &str) -> bool {
    match number {
        CellQuantity::Formula(formula, ..) => formula.uses("t"),
        _ => text.trim() == "t",
    }
}

/// Returns `true` if an input is 0 in all cells.
fn is_zero(number: &CellQuantity) -> bool {
    matches!(number, CellQuantity::Formula(formula, ..) if formula.constant() == Some(0.0))
}

/// Evaluates a formula of the `used` variables at points given in cell widths.
fn at_points(formula: &Formula, used: &[&str], points: &[[f64; 3]]) -> CellQuantity {
    let at = |point: &[f64; 3]| {
        used.iter()
            .map(|name| variable_at_offset(name, *point))
            .collect::<Vec<_>>()
    };
    let arguments = points.iter().flat_map(at).collect();
    CellQuantity::Formula(formula.clone(), arguments, POTENTIAL.into())
}

/// Returns the difference over a cell width along an axis.
fn difference(
    potential: &Formula,
    used: &[&str],
    axis: usize,
    fourth: bool,
    deck: &Deck,
) -> Result<CellQuantity, DeckError> {
    if !used.contains(&["x", "y", "z"][axis]) && !used.contains(&"r") {
        let none = deck.formula(POTENTIAL, "0", &[])?;
        return Ok(at_points(&none, &[], &[]));
    }
    let difference = potential
        .difference(fourth)
        .map_err(|error| deck.error_at(POTENTIAL, format!("`{POTENTIAL}`: {}", error.message())))?;
    let point = |steps: f64| {
        let mut point = [0.0; 3];
        point[axis] = steps;
        point
    };
    let points = [1.0, -1.0, 2.0, -2.0].map(point);
    let count = if fourth { 4 } else { 2 };
    Ok(at_points(&difference, used, &points[..count]))
}
