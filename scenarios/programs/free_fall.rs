//! A one-zone model of a cloud in free fall, whose temperature is set by compression and chemistry:
//! `cargo run --release --example free_fall -- run scenarios/programs/free_fall.toml`.

use nestar::prelude::*;
use nestar::systems::chemistry::{ChemistryConfig, SPECIES};
use nestar::systems::units::Units;

/// Compression of gas at rest as in a cloud in free fall: the density grows on the free-fall time, (3 pi/(32 G density))^(1/2).
#[deck]
pub struct FreeFall {
    /// Maximum relative growth of the density per step.
    #[key(default = 0.02, unit = "1", above = 0.0)]
    pub growth: f64,
}

#[device]
#[derive(Clone, Copy)]
struct CompressionLaw<R> {
    /// Square of the free-fall time, times the density.
    free: R,
    growth: R,
    gamma: R,
}

/// Time in which the density grows by the fraction `growth`.
#[device]
fn growth_time<R: Real>(u: Conserved<R>, p: &CompressionLaw<R>) -> R {
    p.growth * sqrt(p.free / u.density)
}

/// Returns gas and species after a step of free fall; the energy, all internal, grows by adiabatic compression.
#[device]
fn fallen<R: Real, const N: usize>(u: &[R; N], dt: R, p: &CompressionLaw<R>) -> [R; N] {
    let grown = 1.0 + dt / sqrt(p.free / u[0]);
    let mut v = *u;
    for c in 0..N {
        v[c] = u[c] * grown;
    }
    v[4] = u[4] * pow(grown, p.gamma);
    v
}

#[device]
fn fall_9<R: Real>(u: [R; 13], at: &Place<R>, p: &CompressionLaw<R>) -> [R; 13] {
    fallen::<R, 13>(&u, at.dt, p)
}

#[device]
fn fall_12<R: Real>(u: [R; 16], at: &Place<R>, p: &CompressionLaw<R>) -> [R; 16] {
    fallen::<R, 16>(&u, at.dt, p)
}

impl Plugin for FreeFall {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let units = Units::of(sim, "[free_fall]")?;
        let count = sim.deck.table::<ChemistryConfig>("chemistry")?.species;
        if count == 6 {
            let why = "gas in free fall needs molecules: set `species` to 9 or 12";
            return Err(sim.deck.error_at("chemistry.species", why).into());
        }
        let p = CompressionLaw {
            free: 3.0 * std::f64::consts::PI / 32.0 / units.gravitational_constant(),
            growth: self.growth,
            gamma: sim.world.resource::<GasModel>().gamma,
        };
        sim.limit::<Gas, growth_time>("free fall", p);
        let species = &SPECIES[..count as usize - 1];
        let components = sim.with_scalars(species)?.components;
        let fall = move |mut rows: LevelRows, mut gas: Write<Gas>| {
            rows.choose(components);
            match count {
                12 => gas.update::<fall_12>(&rows, (), &p),
                _ => gas.update::<fall_9>(&rows, (), &p),
            }
        };
        // after hydrodynamics, before the reactions
        sim.system_in(Advance::Couple, fall);
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<FreeFall>("free_fall")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
