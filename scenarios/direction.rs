//! Directions of plane problems.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Direction across the planes of a plane problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
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
    /// The axis, unless it is the diagonal.
    #[must_use]
    pub fn axis(self) -> Option<usize> {
        match self {
            Self::X => Some(0),
            Self::Y => Some(1),
            Self::Z => Some(2),
            Self::Diagonal => None,
        }
    }

    /// The unit vector along it; `diagonal` is the vector along the diagonal, of any length.
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
