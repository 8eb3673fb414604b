//! Functional forms of fits.
use nestar_device::math::{exp, ln, log10, pow};

/// A temperature in kelvin, with the temperature that selects the branch of a fit. Fits are continued smoothly past the end of a branch, so
/// that derivatives at a node belong to its own branch. Branches that do not meet are joined between two nodes.
#[derive(Clone, Copy, Debug)]
pub struct Temperature {
    /// The temperature.
    pub t: f64,
    /// Temperature that selects the branch.
    pub branch: f64,
}

impl Temperature {
    /// Returns the temperature of a node.
    #[must_use]
    pub const fn at(t: f64) -> Self {
        Self { t, branch: t }
    }

    /// Returns `true` if the branch below `limit` applies.
    pub(super) fn below(self, limit: f64) -> bool {
        self.branch < limit
    }

    /// Returns the temperature clamped to a range.
    pub(super) fn within(self, low: f64, high: f64) -> Self {
        if self.branch <= low {
            Self::at(low)
        } else if self.branch >= high {
            Self::at(high)
        } else {
            self
        }
    }

    /// Returns the temperature in electronvolts.
    pub(super) fn ev(self) -> f64 {
        self.t / super::KELVIN_PER_EV
    }

    /// Returns `T^p`.
    pub(super) fn pow(self, p: f64) -> f64 {
        pow(self.t, p)
    }

    /// Returns `exp(-a / T)`.
    pub(super) fn boltzmann(self, a: f64) -> f64 {
        exp(-a / self.t)
    }
}

/// Returns the sum of `c[k] x^k`.
pub(super) fn polynomial(c: &[f64], x: f64) -> f64 {
    c.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// Returns `exp` of a polynomial of `ln x`.
pub(super) fn exp_polynomial(c: &[f64], x: f64) -> f64 {
    exp(polynomial(c, ln(x)))
}

/// Returns 10 to the power of a polynomial of `log10 x`.
pub(super) fn decimal_polynomial(c: &[f64], x: f64) -> f64 {
    pow(10.0, polynomial(c, log10(x)))
}
