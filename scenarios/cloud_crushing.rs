//! The interaction of a shock with a cloud (Klein, McKee & Colella 1994, ApJ 420, 213).

use crate::exact::Shock;
use crate::state::AveragedState;
use crate::{Parameters, Setting};
use nestar_deck::{DeckError, deck};
use nestar_device::math::{sum3, tanh};
use nestar_systems::hydro::{InitialState, Primitive};

/// A dense cloud at rest in pressure balance, and a plane shock that moves along x towards it. The scalar `cloud`, if the
/// deck declares it, is the mass fraction of cloud material. The cloud-crushing time is sqrt(contrast) * radius / shock
/// speed.
#[deck]
pub struct CloudCrushing {
    /// Mach number of the shock.
    #[key(default = 10.0, min = 1.0)]
    pub mach: f64,
    /// Ratio of the cloud's density to the ambient density.
    #[key(default = 10.0, min = 1.0)]
    pub contrast: f64,
    /// Radius of the cloud.
    #[key(default = 1.0, unit = "length", above = 0.0)]
    pub radius: f64,
    /// Thickness of the cloud's edge, a tanh profile; 0: a discontinuity.
    #[key(default = 0.0, unit = "length", min = 0.0)]
    pub edge: f64,
    /// Centre of the cloud.
    #[key(default = [0.0; 3], unit = "length")]
    pub centre: [f64; 3],
    /// Initial position of the shock along x.
    #[key(default = -1.5, unit = "length")]
    pub shock: f64,
    /// Ambient density, upstream of the shock.
    #[key(default = 1.0, unit = "mass/length**3", above = 0.0)]
    pub density: f64,
    /// Ambient pressure, upstream of the shock.
    #[key(default = 0.6, unit = "mass/(length*time**2)", above = 0.0)]
    pub pressure: f64,
}

impl CloudCrushing {
    /// Returns the shock in a gas with ratio of specific heats `gamma`; the inflow has its postshock state.
    #[must_use]
    pub fn incoming(&self, gamma: f64) -> Shock {
        Shock {
            density: self.density,
            pressure: self.pressure,
            mach: self.mach,
            gamma,
        }
    }

    /// Returns the fraction of cloud material by volume at `x`, 0 to 1.
    fn filling(&self, x: [f64; 3]) -> f64 {
        let d: [f64; 3] = std::array::from_fn(|a| x[a] - self.centre[a]);
        // beyond, the profile is exactly 0: the hyperbolic tangent of 25 rounds to 1
        let reach = self.radius + 25.0 * self.edge;
        if d.iter().any(|d| d.abs() > reach) {
            return 0.0;
        }
        let r = sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]).sqrt();
        if self.edge > 0.0 {
            0.5 * (1.0 - tanh((r - self.radius) / self.edge))
        } else if r < self.radius {
            1.0
        } else {
            0.0
        }
    }

    /// Returns `true` if the state is known to be the same at all points between two corners.
    fn is_uniform(&self, low: [f64; 3], high: [f64; 3]) -> bool {
        if high[0] < self.shock {
            return true;
        }
        if low[0] < self.shock {
            return false;
        }
        // squares of the smallest and the largest distance from the centre
        let (mut near, mut far) = (0.0, 0.0);
        for axis in 0..3 {
            let [a, b] = [low[axis], high[axis]].map(|x| x - self.centre[axis]);
            let nearest = a.max(-b).max(0.0);
            let farthest = b.max(-a);
            near += nearest * nearest;
            far += farthest * farthest;
        }
        // the profile is exactly 0 or 1 there; the margin covers round-off
        let (margin, edge) = (1e-9, 25.0 * self.edge);
        let is_outside = near.sqrt() * (1.0 - margin) > self.radius + edge;
        let is_inside = far.sqrt() * (1.0 + margin) < self.radius - edge;
        is_outside || is_inside
    }
}

impl Parameters for CloudCrushing {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let cloud_edge = self.centre[0] - self.radius - 3.0 * self.edge;
        if self.shock > cloud_edge {
            let message =
                format!("the shock must start below the cloud, whose edge is at x = {cloud_edge}");
            return Err(setting.deck.error_at("cloud-crushing.shock", message));
        }
        let shock = self.incoming(setting.model.gamma);
        let (ambient, postshock) = (shock.ambient(), shock.postshock());
        let position = self.shock;
        let (cloud, whole) = (self.clone(), self.clone());
        let state = move |x: [f64; 3]| {
            if x[0] < position {
                return postshock;
            }
            Primitive {
                density: ambient.density * (1.0 + (self.contrast - 1.0) * self.filling(x)),
                ..ambient
            }
        };
        let fraction = move |x: [f64; 3]| {
            let filling = cloud.filling(x);
            filling * cloud.contrast / (1.0 + (cloud.contrast - 1.0) * filling)
        };
        Ok(Box::new(
            AveragedState::new(3, state)
                .with_scalar(setting, "cloud", fraction)
                .uniform_where(move |low, high| whole.is_uniform(low, high)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_systems::fields::GasModel;

    #[test]
    fn the_shipped_inflow_is_the_postshock_state() {
        let postshock = CloudCrushing::default().incoming(5.0 / 3.0).postshock();
        for text in [
            include_str!("cloud-crushing.toml"),
            include_str!("cloud-crushing-6.toml"),
        ] {
            let mut deck = nestar_deck::Deck::parse("cloud-crushing.toml", text).unwrap();
            let state = nestar_systems::hydro::formulas::StateFormulas::from_deck(
                &mut deck,
                "inflow.x_lower",
                &GasModel::plain(5.0 / 3.0, &["cloud"]),
            );
            let inflow = state.unwrap().at([-3.0, 0.0, 0.0], 0.0);
            assert!((inflow.density / postshock.density - 1.0).abs() < 1e-12);
            assert!((inflow.velocity[0] / postshock.velocity[0] - 1.0).abs() < 1e-12);
            assert!((inflow.pressure / postshock.pressure - 1.0).abs() < 1e-12);
        }
    }
}
