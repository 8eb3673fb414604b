//! The numbers of a cell that formulas of the table `[external]` give.

use super::config::ExternalConfig;
use crate::fields::quantities::{compile, vocabulary_of_places};
use nestar_deck::{Deck, DeckError, Formula};
use nestar_device::math::sum3;
use nestar_device::{Place, Real, device};
use nestar_engine::data::DerivedInputs;
use nestar_engine::data::criteria::{CellQuantity, NamedQuantity, QuantityFn};

/// The key of the potential.
const POTENTIAL: &str = "external.potential";

/// Coordinate x so many widths of the cell away.
#[device]
fn x_away<R: Real>(at: &Place<R>, steps: R) -> R {
    at.centre[0] + steps * at.width[0]
}

/// Coordinate y so many widths of the cell away.
#[device]
fn y_away<R: Real>(at: &Place<R>, steps: R) -> R {
    at.centre[1] + steps * at.width[1]
}

/// Coordinate z so many widths of the cell away.
#[device]
fn z_away<R: Real>(at: &Place<R>, steps: R) -> R {
    at.centre[2] + steps * at.width[2]
}

/// Distance from the origin so many widths of the cell away along x, y, z.
#[device]
fn radius_away<R: Real>(at: &Place<R>, i: R, j: R, k: R) -> R {
    let (x, y, z) = (x_away(at, i), y_away(at, j), z_away(at, k));
    sum3(x * x, y * y, z * z).sqrt()
}

/// Simulation time.
#[device]
fn time<R: Real>(at: &Place<R>) -> R {
    R::from_f64(at.time)
}

/// What the variable `name` is so many widths of the cell away.
fn away(name: &str, steps: [f64; 3]) -> NamedQuantity {
    let (function, parameters) = match name {
        "x" => (QuantityFn::of::<x_away>(), &steps[..1]),
        "y" => (QuantityFn::of::<y_away>(), &steps[1..2]),
        "z" => (QuantityFn::of::<z_away>(), &steps[2..]),
        "r" => (QuantityFn::of::<radius_away>(), &steps[..]),
        _ => (QuantityFn::of::<time>(), &steps[..0]),
    };
    NamedQuantity {
        function,
        components: Vec::new(),
        parameters: parameters.to_vec(),
    }
}

/// The numbers of a cell: the potential, its differences over a cell along x, y, z, and the further accelerations.
pub(super) struct CellNumbers {
    pub numbers: DerivedInputs,
    /// Whether any of them changes with time.
    pub moves: bool,
    /// Whether any of them is not 0.
    pub acts: bool,
}

impl CellNumbers {
    /// Compiles the formulas.
    ///
    /// # Errors
    /// What is wrong with one, at its place; an order of differences that there is not.
    pub fn of(config: &ExternalConfig, deck: &Deck) -> Result<Self, DeckError> {
        let fourth = match config.order {
            2 | 4 => config.order == 4,
            order => {
                let message = format!("`external.order` must be 2 or 4, found {order}");
                return Err(deck.error_at("external.order", message));
            }
        };
        let potential = deck.formula(POTENTIAL, &config.potential, &["x", "y", "z", "r", "t"])?;
        // again with what it uses alone, which is what is computed in a cell
        let used: Vec<&str> = ["x", "y", "z", "r", "t"]
            .into_iter()
            .filter(|name| potential.uses(name))
            .collect();
        let potential = deck.formula(POTENTIAL, &config.potential, &used)?;
        let mut list = vec![at_points(&potential, &used, &[[0.0; 3]])];
        for axis in 0..3 {
            list.push(difference(&potential, &used, axis, (fourth, deck))?);
        }
        let further = [
            ("x", &config.acceleration_x),
            ("y", &config.acceleration_y),
            ("z", &config.acceleration_z),
        ];
        let mut moves = used.contains(&"t");
        let mut acts = potential.constant() != Some(0.0);
        for (axis, text) in further {
            let key = format!("external.acceleration_{axis}");
            let number = compile(deck, &key, text, vocabulary_of_places())?;
            moves |= changes(&number, text);
            acts |= !is_zero(&number);
            list.push(number);
        }
        let numbers = DerivedInputs::new(list);
        Ok(Self {
            numbers,
            moves,
            acts,
        })
    }
}

/// Whether a number of a cell changes with time.
fn changes(number: &CellQuantity, text: &str) -> bool {
    match number {
        CellQuantity::Formula(formula, ..) => formula.uses("t"),
        _ => text.trim() == "t",
    }
}

/// Whether a number is 0 in all cells.
fn is_zero(number: &CellQuantity) -> bool {
    matches!(number, CellQuantity::Formula(formula, ..) if formula.constant() == Some(0.0))
}

/// A formula of the `used` variables at some points, so many widths of the cell away.
fn at_points(formula: &Formula, used: &[&str], points: &[[f64; 3]]) -> CellQuantity {
    let at = |point: &[f64; 3]| {
        used.iter()
            .map(|name| away(name, *point))
            .collect::<Vec<_>>()
    };
    let arguments = points.iter().flat_map(at).collect();
    CellQuantity::Formula(formula.clone(), arguments, POTENTIAL.into())
}

/// The difference over a cell along an axis.
fn difference(
    potential: &Formula,
    used: &[&str],
    axis: usize,
    (fourth, deck): (bool, &Deck),
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
