//! A cloud that a shock runs over (Klein, McKee & Colella 1994, ApJ 420, 213).

use crate::exact::Shock;
use crate::state::AveragedState;
use crate::{Parameters, Setting};
use nestar_deck::DeckError;
use nestar_device::math::{sum3, tanh};
use nestar_systems::hydro::{InitialState, Primitive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A dense cloud at rest in pressure balance, and a plane shock that runs along x towards it: a blast wave from far away.
/// The cloud's mass carries the scalar `cloud`, if the deck declares one. It is crushed in the time
/// sqrt(contrast) * radius / shock speed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CloudCrushing {
    /// Speed of the shock in sound speeds of the gas ahead of it.
    #[schemars(range(min = 1.0))]
    pub mach: f64,
    /// Density of the cloud over that of the gas around it.
    #[schemars(range(min = 1.0))]
    pub contrast: f64,
    /// Radius of the cloud.
    #[schemars(extend("unit" = "length", "exclusiveMinimum" = 0.0))]
    pub radius: f64,
    /// Thickness of the cloud's edge, over which the density falls as a tanh; 0: a jump.
    #[schemars(range(min = 0.0), extend("unit" = "length"))]
    pub edge: f64,
    /// Centre of the cloud.
    #[schemars(extend("unit" = "length"))]
    pub centre: [f64; 3],
    /// Place of the shock along x at the start.
    #[schemars(extend("unit" = "length"))]
    pub shock: f64,
    /// Density around the cloud, ahead of the shock.
    #[schemars(extend("unit" = "mass/length**3", "exclusiveMinimum" = 0.0))]
    pub density: f64,
    /// Pressure ahead of the shock.
    #[schemars(extend("unit" = "mass/(length*time**2)", "exclusiveMinimum" = 0.0))]
    pub pressure: f64,
}

impl Default for CloudCrushing {
    fn default() -> Self {
        Self {
            mach: 10.0,
            contrast: 10.0,
            radius: 1.0,
            edge: 0.0,
            centre: [0.0; 3],
            shock: -1.5,
            density: 1.0,
            pressure: 0.6,
        }
    }
}

impl CloudCrushing {
    /// The shock in a gas with ratio of specific heats `gamma`; the state behind it is what flows in.
    #[must_use]
    pub fn incoming(&self, gamma: f64) -> Shock {
        Shock {
            density: self.density,
            pressure: self.pressure,
            mach: self.mach,
            gamma,
        }
    }

    /// Part of a place that the cloud fills.
    fn share(&self, x: [f64; 3]) -> f64 {
        let d: [f64; 3] = std::array::from_fn(|a| x[a] - self.centre[a]);
        let r = sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]).sqrt();
        if self.edge > 0.0 {
            0.5 * (1.0 - tanh((r - self.radius) / self.edge))
        } else if r < self.radius {
            1.0
        } else {
            0.0
        }
    }
}

impl Parameters for CloudCrushing {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let reach = self.centre[0] - self.radius - 3.0 * self.edge;
        if self.shock > reach {
            let message =
                format!("the shock starts in the cloud, which reaches to {reach} along x");
            return Err(setting.deck.error_at("cloud-crushing.shock", message));
        }
        let shock = self.incoming(setting.model.gamma);
        let (ahead, behind) = (shock.ahead(), shock.behind());
        let place = self.shock;
        let dyed = self.clone();
        let state = move |x: [f64; 3]| {
            if x[0] < place {
                return behind;
            }
            Primitive {
                density: ahead.density * (1.0 + (self.contrast - 1.0) * self.share(x)),
                ..ahead
            }
        };
        let fraction = move |x: [f64; 3]| {
            let share = dyed.share(x);
            share * dyed.contrast / (1.0 + (dyed.contrast - 1.0) * share)
        };
        Ok(Box::new(
            AveragedState::new(3, state).dye(setting, "cloud", fraction),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_systems::fields::GasModel;

    #[test]
    fn the_shipped_inflow_is_the_gas_behind_the_shock() {
        let behind = CloudCrushing::default().incoming(5.0 / 3.0).behind();
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
            assert!((inflow.density / behind.density - 1.0).abs() < 1e-12);
            assert!((inflow.velocity[0] / behind.velocity[0] - 1.0).abs() < 1e-12);
            assert!((inflow.pressure / behind.pressure - 1.0).abs() < 1e-12);
        }
    }
}
