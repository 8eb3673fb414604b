//! Initial states given by functions, with cell averages and passive scalars, and directions of plane problems.

use crate::Setting;
use nestar_deck::deck;
use nestar_systems::hydro::{InitialState, Primitive, PrimitiveColumns};

/// Mass fraction of a scalar at a point.
type Fraction = Box<dyn Fn([f64; 3]) -> f64 + Send + Sync>;

/// Tells whether a state is the same at all points between two corners.
type Uniformity = Box<dyn Fn([f64; 3], [f64; 3]) -> bool + Send + Sync>;

/// A state that is averaged over cells, with those of its passive scalars that the deck declares.
pub(crate) struct AveragedState<S> {
    samples: usize,
    state: S,
    scalars: Vec<(usize, Fraction)>,
    uniform: Option<Uniformity>,
}

impl<S: Fn([f64; 3]) -> Primitive + Send + Sync + 'static> AveragedState<S> {
    /// Creates the average of `state` over `samples` Gauss-Legendre points per axis and cell.
    pub fn new(samples: usize, state: S) -> Self {
        Self {
            samples,
            state,
            scalars: Vec::new(),
            uniform: None,
        }
    }

    /// Declares where the state and its scalars are uniform: between two corners for which `uniform` returns `true`.
    pub fn uniform_where(
        mut self,
        uniform: impl Fn([f64; 3], [f64; 3]) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.uniform = Some(Box::new(uniform));
        self
    }

    /// Sets the scalar `name` to the mass fraction `fraction`, if the deck declares it.
    pub fn with_scalar(
        mut self,
        setting: &Setting,
        name: &str,
        fraction: impl Fn([f64; 3]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let declared = &setting.model.scalars;
        if let Some(n) = declared.iter().position(|scalar| scalar == name) {
            self.scalars.push((n, Box::new(fraction)));
        }
        self
    }
}

impl<S: Fn([f64; 3]) -> Primitive + Send + Sync + 'static> InitialState for AveragedState<S> {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        for n in 0..columns.len() {
            let x = columns.point(n);
            columns.states[n] = (self.state)(x);
            for (scalar, fraction) in &self.scalars {
                columns.scalars[*scalar][n] = fraction(x);
            }
        }
    }

    fn scalars_given(&self) -> Option<Vec<usize>> {
        Some(self.scalars.iter().map(|(scalar, _)| *scalar).collect())
    }

    fn samples(&self) -> usize {
        self.samples
    }

    fn is_uniform(&self, low: [f64; 3], high: [f64; 3]) -> bool {
        (self.uniform.as_ref()).is_some_and(|uniform| uniform(low, high))
    }
}

/// Direction normal to the planes of a plane problem.
#[deck]
pub enum Direction {
    /// Along x.
    X,
    /// Along y.
    Y,
    /// Along z.
    Z,
    /// Along a diagonal.
    Diagonal,
}

impl Direction {
    /// Returns the axis, or `None` for the diagonal.
    #[must_use]
    pub fn axis(self) -> Option<usize> {
        match self {
            Self::X => Some(0),
            Self::Y => Some(1),
            Self::Z => Some(2),
            Self::Diagonal => None,
        }
    }

    /// Returns the unit vector of the direction; `diagonal` is a vector of any length along the diagonal.
    #[must_use]
    pub fn normal(self, diagonal: [f64; 3]) -> [f64; 3] {
        if let Some(axis) = self.axis() {
            return std::array::from_fn(|a| if a == axis { 1.0 } else { 0.0 });
        }
        let [a, b, c] = diagonal;
        let length = nestar_device::math::sum3(a * a, b * b, c * c).sqrt();
        diagonal.map(|d| d / length)
    }
}
