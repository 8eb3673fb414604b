//! Particles that decay, and end when little is left of them: functions of particles.
//! `cargo run --release --example decay -- run scenarios/programs/decay.toml`.

use nestar::births::*;
use nestar::particles::*;
use nestar::prelude::*;

/// Decay of the species `relics`, which has the scalar `lost`.
#[deck]
pub struct Decay {
    /// Time in which the mass of a particle falls to 1/e.
    #[key(default = 0.5, unit = "time", above = 0.0)]
    pub lifetime: f64,
    /// Part of the original mass below which a particle ends.
    #[key(default = 0.2, unit = "1", above = 0.0, below = 1.0)]
    pub least: f64,
}

/// Reads mass, velocity and the scalar `lost`: the mass that the particle has lost.
#[device]
#[derive(Clone, Copy)]
pub struct Relic<R> {
    body: Body<R>,
    lost: R,
}

/// Exponential decay of particles.
#[device]
fn decay<R: Real>(relic: Relic<R>, at: &ParticlePlace<R>, lifetime: R) -> Relic<R> {
    let left = relic.body.mass * exp(-at.dt / lifetime);
    let mut new = relic;
    new.body.mass = left;
    new.lost = relic.lost + (relic.body.mass - left);
    new
}

/// Mass that a particle loses per time.
#[device]
fn rate<R: Real>(body: Body<R>, lifetime: R) -> R {
    body.mass / lifetime
}

/// A quarter of the lifetime, while there are particles.
#[device]
fn quarter<R: Real>(_at: &ParticlePlace<R>, lifetime: R) -> R {
    0.25 * lifetime
}

/// Particles that have lost almost all of their mass, with the remaining mass.
#[device]
fn faint<R: Real>(relic: Relic<R>, least: R) -> CellRecord<R> {
    let mass = relic.body.mass;
    CellRecord::<R> {
        found: mass < least * (mass + relic.lost),
        record: mass,
    }
}

impl Plugin for Decay {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let (lifetime, least) = (self.lifetime, self.least);
        sim.allow_births("relics")?;
        let relics = ParticleSelection::of(sim, "relics", &["lost"])?;
        relics.source::<decay>([lifetime])?;
        let relics = ParticleSelection::of(sim, "relics", &[])?;
        relics.limit::<quarter>("decay", [lifetime])?;
        let relics = ParticleSelection::of(sim, "relics", &[])?;
        let column = relics.column::<rate>("decay_rate", Reduce::Integral, [lifetime])?;
        column.unit("mass/time");
        let end = move |mut births: ParticleBirths| -> Result<(), Error> {
            let found = births.of("relics", &["lost"])?.collect::<faint>(&[least])?;
            let faint: Vec<u64> = found
                .iter()
                .map(|found| found.particle.particle.id)
                .collect();
            births.end("relics", &faint).map(|_| ())
        };
        sim.system_in(Advance::Predict, end)
            .after(nestar::engine::step::SystemNamed(
                "particle source decay".into(),
            ));
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<Decay>("decay")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
