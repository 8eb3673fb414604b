//! Forms that fits have.
use nestar_device::math::{exp, ln, log10, pow};

/// A temperature in kelvin, and where the branch of a fit is looked up: fits are continued smoothly beyond the end of a branch, so that
/// derivatives at a node are those of its own branch, and branches that do not meet are joined between two nodes.
#[derive(Clone, Copy, Debug)]
pub struct Temperature {
    /// The temperature.
    pub t: f64,
    /// The temperature that decides about branches.
    pub branch: f64,
}

impl Temperature {
    /// At a node.
    #[must_use]
    pub const fn at(t: f64) -> Self {
        Self { t, branch: t }
    }

    /// Whether the branch below `limit` holds.
    pub(super) fn below(self, limit: f64) -> bool {
        self.branch < limit
    }

    /// The temperature held to a range.
    pub(super) fn within(self, low: f64, high: f64) -> Self {
        if self.branch <= low {
            Self::at(low)
        } else if self.branch >= high {
            Self::at(high)
        } else {
            self
        }
    }

    /// In electronvolts.
    pub(super) fn ev(self) -> f64 {
        self.t / super::KELVIN_PER_EV
    }

    /// `T^p`.
    pub(super) fn pow(self, p: f64) -> f64 {
        pow(self.t, p)
    }

    /// `exp(-a / T)`.
    pub(super) fn boltzmann(self, a: f64) -> f64 {
        exp(-a / self.t)
    }
}

/// Sum of `c[k] x^k`.
pub(super) fn polynomial(c: &[f64], x: f64) -> f64 {
    c.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// `exp` of a polynomial of `ln x`.
pub(super) fn exp_polynomial(c: &[f64], x: f64) -> f64 {
    exp(polynomial(c, ln(x)))
}

/// 10 to a polynomial of `log10 x`.
pub(super) fn decimal_polynomial(c: &[f64], x: f64) -> f64 {
    pow(10.0, polynomial(c, log10(x)))
}
