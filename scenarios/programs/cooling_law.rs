//! A user-defined cooling law for the table `[cooling]`, a function of density, temperature and metallicity:
//! `cargo run --release --example cooling_law -- run scenarios/programs/cooling_law.toml`.

use nestar::prelude::*;
use nestar::systems::cooling::CoolingRates;

/// Cooling of gas that is opaque above a density; a law of the table `[cooling]`.
#[deck]
pub struct Opaque {
    /// Density above which the gas is opaque.
    #[key(default = 30.0, unit = "hydrogen nuclei/cm**3", above = 0.0)]
    pub density: f64,
}

/// Returns cooling by bremsstrahlung and lines, suppressed in opaque gas, and heating by cosmic rays.
fn rates(n: f64, temperature: f64, metallicity: f64, opaque: f64) -> CoolingRates {
    let lines = 1e-23 * metallicity * exp(-1e4 / temperature);
    let thermal = 2e-27 * sqrt(temperature);
    CoolingRates {
        cooling: (lines + thermal) / (1.0 + n / opaque),
        heating: 1e-27,
    }
}

impl Plugin for Opaque {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        let opaque = self.density;
        sim.scalars(&[("metal", 0.01295)])?;
        sim.cooling_law("opaque", move |n, t, z| rates(n, t, z, opaque))
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<Opaque>("opaque")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
