//! Directions of plane problems.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Direction normal to the planes of a plane problem.
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
