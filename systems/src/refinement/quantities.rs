//! Fields of a ghosted patch by name: stored components, derived quantities, places, and formulas of them.

use crate::fields::{GAS_COMPONENTS, GasModel};
use nestar_deck::{Deck, DeckError, Formula};
use nestar_device::math::sum3;
use nestar_device::{Lane, Real, device};
use nestar_engine::field::FaultBox;
use nestar_kernels::hydro::eos;
use nestar_kernels::mesh::Block;
use nestar_kernels::{CELLS, PATCH};

/// Ghost layers that criteria see.
pub const GHOSTS: usize = 2;
/// Cells of a ghosted patch along an axis.
pub const WIDTH: usize = PATCH + 2 * GHOSTS;
/// Cells of a ghosted patch.
pub const BLOCK: usize = WIDTH * WIDTH * WIDTH;

/// A quantity with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A stored component.
    Component(usize),
    /// Gas pressure.
    Pressure,
    /// Pressure over density.
    Temperature,
    /// Pressure over density to the power gamma.
    Entropy,
    /// Sound speed.
    SoundSpeed,
    /// Velocity along an axis.
    Velocity(usize),
    /// Magnitude of the velocity.
    Speed,
    /// Speed over sound speed.
    Mach,
    /// Mass fraction of the scalar in a component.
    Fraction(usize),
    /// Coordinate of the cell's centre along an axis.
    Place(usize),
    /// Distance from the origin.
    Radius,
    /// Simulation time.
    Time,
    /// Refinement level.
    Level,
    /// Smallest width of a cell of the level.
    CellWidth,
}

/// All names and what they mean.
#[must_use]
pub fn vocabulary(model: &GasModel) -> Vec<(String, Quantity)> {
    use Quantity as Q;
    let fixed: [(&str, Quantity); 22] = [
        ("density", Q::Component(0)),
        ("momentum_x", Q::Component(1)),
        ("momentum_y", Q::Component(2)),
        ("momentum_z", Q::Component(3)),
        ("energy", Q::Component(4)),
        ("pressure", Q::Pressure),
        ("temperature", Q::Temperature),
        ("entropy", Q::Entropy),
        ("sound_speed", Q::SoundSpeed),
        ("velocity_x", Q::Velocity(0)),
        ("velocity_y", Q::Velocity(1)),
        ("velocity_z", Q::Velocity(2)),
        ("speed", Q::Speed),
        ("mach", Q::Mach),
        ("x", Q::Place(0)),
        ("y", Q::Place(1)),
        ("z", Q::Place(2)),
        ("r", Q::Radius),
        ("t", Q::Time),
        ("level", Q::Level),
        ("width", Q::CellWidth),
        ("cell_width", Q::CellWidth),
    ];
    let mut names: Vec<(String, Quantity)> =
        fixed.iter().map(|(n, q)| ((*n).to_string(), *q)).collect();
    for (n, scalar) in model.scalars.iter().enumerate() {
        names.push((format!("scalar_{scalar}"), Q::Component(GAS_COMPONENTS + n)));
        names.push((
            format!("fraction_{scalar}"),
            Q::Fraction(GAS_COMPONENTS + n),
        ));
    }
    names
}

/// A field of the deck: a quantity, or a formula of quantities.
pub struct FieldFormula {
    formula: Formula,
    /// The formula's arguments, in its order of variables.
    arguments: Vec<Quantity>,
    /// The quantity, where the formula is a bare name.
    plain: Option<Quantity>,
}

impl FieldFormula {
    /// Compiles the text at `path` of the deck.
    ///
    /// # Errors
    /// A mistake in the formula or an unknown name, at its place.
    pub fn compile(
        deck: &Deck,
        path: &str,
        text: &str,
        model: &GasModel,
    ) -> Result<Self, DeckError> {
        let names = vocabulary(model);
        let words: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        let formula = deck.formula(path, text, &words)?;
        let plain = names
            .iter()
            .find(|(name, _)| name == text.trim())
            .map(|(_, quantity)| *quantity);
        let used: Vec<(&str, Quantity)> = names
            .iter()
            .filter(|(name, _)| formula.uses(name))
            .map(|(name, q)| (name.as_str(), *q))
            .collect();
        let words: Vec<&str> = used.iter().map(|(name, _)| *name).collect();
        let formula = deck.formula(path, text, &words)?;
        Ok(Self {
            formula,
            arguments: used.into_iter().map(|(_, q)| q).collect(),
            plain,
        })
    }

    /// The field in all cells of the ghosted patch, `[k][j][i]`, 12 cells an axis. A formula that is not a number in one of
    /// the patch's own cells is a fault.
    pub fn evaluate<R: Real>(&self, patch: &PatchView<R>, out: &mut Vec<R>, faults: &FaultBox) {
        out.clear();
        if let Some(quantity) = self.plain {
            out.extend((0..BLOCK).map(|cell| patch.quantity(quantity, cell)));
            return;
        }
        let columns: Vec<Vec<f64>> = self
            .arguments
            .iter()
            .map(|&quantity| (0..BLOCK).map(|cell| patch.exact(quantity, cell)).collect())
            .collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let mut values = vec![0.0; BLOCK];
        self.formula.eval_many(&columns, &mut values);
        let inner =
            (0..CELLS).map(|c| inner_cell([c % PATCH, c / PATCH % PATCH, c / (PATCH * PATCH)]));
        if let Some(cell) = inner.into_iter().find(|&cell| values[cell].is_nan()) {
            let place =
                patch
                    .block
                    .centre([cell % WIDTH, cell / WIDTH % WIDTH, cell / (WIDTH * WIDTH)]);
            faults.report(|| self.not_a_number(place, patch.time));
        }
        out.extend(values.into_iter().map(R::lit));
    }

    /// The message of a formula that is not a number in a cell.
    pub(super) fn not_a_number(&self, place: [f64; 3], time: f64) -> String {
        let text = self.formula.text();
        format!(
            "the formula \"{text}\" of a refinement criterion is not a number at (x, y, z) = {place:?}, t = {time}"
        )
    }

    /// The quantity, where the field is a bare name.
    pub(super) fn plain(&self) -> Option<Quantity> {
        self.plain
    }

    /// The formula, and the quantities that are its arguments.
    pub(super) fn formula(&self) -> (&Formula, &[Quantity]) {
        (&self.formula, &self.arguments)
    }
}

/// Place in the ghosted block of a patch's own cell.
fn inner_cell(c: [usize; 3]) -> usize {
    let [i, j, k] = c.map(|i| i + GHOSTS);
    i + WIDTH * (j + WIDTH * k)
}

/// Magnitude of the velocity of a primitive state.
#[device]
pub(super) fn speed<R: Lane>(w: &[R; 5]) -> R {
    sum3(w[1] * w[1], w[2] * w[2], w[3] * w[3]).sqrt()
}

/// A patch with its ghost cells, as criteria see it.
pub struct PatchView<'a, R> {
    /// Conserved state `[component][k][j][i]`, 12 cells an axis.
    pub values: &'a [R],
    /// Ratio of specific heats.
    pub gamma: R,
    /// Where the block lies.
    pub block: Block,
    /// Simulation time.
    pub time: f64,
    /// Refinement level.
    pub level: usize,
    /// Widths of a cell.
    pub cell_width: [f64; 3],
}

impl<R: Real> PatchView<'_, R> {
    /// A quantity in one cell, in the run's precision.
    #[must_use]
    pub fn quantity(&self, quantity: Quantity, cell: usize) -> R {
        let u = |c: usize| self.values[c * BLOCK + cell];
        let w = || eos::primitive_from_conserved(&[u(0), u(1), u(2), u(3), u(4)], self.gamma);
        let sound = |w: &[R; 5]| eos::sound_speed(w[0], w[4], self.gamma);
        match quantity {
            Quantity::Component(c) => u(c),
            Quantity::Pressure => w()[4],
            Quantity::Temperature => eos::temperature(u(0), w()[4]),
            Quantity::Entropy => eos::entropy(u(0), w()[4], self.gamma),
            Quantity::SoundSpeed => sound(&w()),
            Quantity::Velocity(axis) => w()[1 + axis],
            Quantity::Speed => speed(&w()),
            Quantity::Mach => speed(&w()) / sound(&w()),
            Quantity::Fraction(c) => u(c) / u(0),
            other => R::lit(self.exact(other, cell)),
        }
    }

    /// A quantity in one cell, in double precision.
    fn exact(&self, quantity: Quantity, cell: usize) -> f64 {
        let centre = || {
            self.block
                .centre([cell % WIDTH, cell / WIDTH % WIDTH, cell / (WIDTH * WIDTH)])
        };
        match quantity {
            Quantity::Place(axis) => centre()[axis],
            Quantity::Radius => {
                let x = centre();
                sum3(x[0] * x[0], x[1] * x[1], x[2] * x[2]).sqrt()
            }
            Quantity::Time => self.time,
            Quantity::Level => self.level as f64,
            Quantity::CellWidth => self
                .cell_width
                .iter()
                .copied()
                .fold(f64::INFINITY, f64::min),
            other => self.quantity(other, cell).to_f64(),
        }
    }
}
