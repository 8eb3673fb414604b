//! The cosmic energy equation of Layzer (1963) and Irvine (1961), as a measure of the error of a run.
//!
//! In code units, which follow the expansion, the kinetic energy `K`, the thermal energy `U` and the gravitational energy `W` (of the potential
//! without the factor `a`) obey `d(K + U + a W) = W da + (5 - 3 gamma) U d(ln a)`: the sum minus the integral of the right-hand side is
//! constant. It knows no energy that is radiated or injected.

use crate::fields::GasModel;
use bevy_ecs::prelude::*;
use nestar_device::math::ln;
use nestar_engine::comm::DiagnosticColumns;
use nestar_engine::mesh::Levels;
use nestar_engine::step::PluginState;
use nestar_engine::{Engine, Error};

/// Columns of the gas and of particles: kinetic, thermal and gravitational energies.
const ENERGIES: [&str; 5] = [
    "energy_kinetic",
    "particles_energy_kinetic",
    "energy_thermal",
    "energy_potential",
    "particles_energy_potential",
];

/// The terms of the cosmic energy equation up to the latest row of the diagnostics.
#[derive(Resource, Clone, Copy, Debug, Default)]
struct CosmicEnergy {
    /// `true` after the first row.
    has_begun: bool,
    /// The sum of energies in the first row.
    first: f64,
    /// Integral of the right-hand side.
    integral: f64,
    latest: Latest,
}

/// Scale factor, gravitational energy and thermal energy times `5 - 3 gamma` in the latest row.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    scale_factor: f64,
    gravitational: f64,
    thermal: f64,
}

impl CosmicEnergy {
    /// Adds a row with the sum of energies; returns the error of the sum over the gravitational energy.
    fn add(&mut self, now: Latest, sum: f64) -> f64 {
        if self.has_begun {
            let Latest {
                scale_factor,
                gravitational,
                thermal,
            } = self.latest;
            let growth = now.scale_factor - scale_factor;
            self.integral += 0.5 * (gravitational + now.gravitational) * growth;
            let growth = ln(now.scale_factor) - ln(scale_factor);
            self.integral += 0.5 * (thermal + now.thermal) * growth;
        } else {
            *self = Self {
                has_begun: true,
                first: sum,
                ..Self::default()
            };
        }
        self.latest = now;
        let scale = (now.scale_factor * now.gravitational).abs();
        let error = sum - self.first - self.integral;
        if scale > 0.0 { error / scale } else { 0.0 }
    }
}

impl PluginState for CosmicEnergy {
    const VERSION: u32 = 1;

    fn save(&self) -> Vec<u8> {
        let begun = f64::from(u8::from(self.has_begun));
        let Latest {
            scale_factor,
            gravitational,
            thermal,
        } = self.latest;
        let all = [
            begun,
            self.first,
            self.integral,
            scale_factor,
            gravitational,
            thermal,
        ];
        all.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let all: Vec<f64> = numbers.iter().map(|b| f64::from_le_bytes(*b)).collect();
        let ([begun, first, integral, scale_factor, gravitational, thermal], []) = (&all[..], rest)
        else {
            return Err(format!("it has {} bytes instead of 48", bytes.len()));
        };
        *self = Self {
            has_begun: *begun > 0.0,
            first: *first,
            integral: *integral,
            latest: Latest {
                scale_factor: *scale_factor,
                gravitational: *gravitational,
                thermal: *thermal,
            },
        };
        Ok(())
    }
}

/// Adds the column `layzer_irvine`, after those of all plugins.
///
/// # Errors
/// Another plugin has a state of this name.
pub(super) fn register(sim: &mut Engine) -> Result<(), Error> {
    sim.register_state("cosmic_energy", CosmicEnergy::default())?;
    let model = sim.world.resource::<GasModel>();
    let (is_frozen, exponent) = (model.frozen, 5.0 - 3.0 * model.gamma);
    sim.defer_setup(move |sim| {
        let value = move |world: &mut World, of: [f64; 5]| {
            let [gas, particles, thermal, gas_potential, particle_potential] = of;
            // the energies of frozen gas are constant, and it feels no force
            let [gas, thermal, gas_potential] = match is_frozen {
                true => [0.0; 3],
                false => [gas, thermal, gas_potential],
            };
            let levels = world.resource::<Levels>();
            let [scale_factor, _] = levels.numbers_at(levels.time(0));
            let now = Latest {
                scale_factor,
                gravitational: gas_potential + particle_potential,
                thermal: exponent * thermal,
            };
            let sum = gas + particles + thermal + scale_factor * now.gravitational;
            world.resource_mut::<CosmicEnergy>().add(now, sum)
        };
        DiagnosticColumns::add_of_columns(&mut sim.world, "layzer_irvine", ENERGIES, value);
        Ok(())
    });
    Ok(())
}
