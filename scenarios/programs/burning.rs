//! Reactions of three species that release heat, fuel -> ash -> dust:
//! `cargo run --release --example burning -- run scenarios/programs/burning.toml`.

use nestar::prelude::*;

/// Two exothermic reactions, fuel -> ash -> dust, with Arrhenius rates; the temperature is pressure/density.
#[deck]
pub struct Burning {
    /// Rates of the two reactions in the limit of high temperature.
    #[key(default = [40.0, 4.0], unit = "1/time", min = 0.0)]
    pub rates: [f64; 2],
    /// Activation temperatures of the two reactions.
    #[key(default = [2.0, 4.0], unit = "(length/time)**2", min = 0.0)]
    pub activation: [f64; 2],
    /// Heat per mass released by each reaction.
    #[key(default = [3.0, 1.0], unit = "(length/time)**2")]
    pub heat: [f64; 2],
}

const SPECIES: [&str; 3] = ["fuel", "ash", "dust"];

/// Conserved state of the gas and densities of its species.
#[device]
#[derive(Clone, Copy)]
struct Mixture<R: Real> {
    gas: Conserved<R>,
    species: [R; 3],
}

#[device]
#[derive(Clone, Copy)]
struct Reactions<R> {
    rates: [R; 2],
    activation: [R; 2],
    heat: [R; 2],
    gamma: R,
}

/// Returns the fraction of a species that reacts in a step, exact for constant temperature.
#[device]
fn reacted<R: Real>(temperature: R, rate: R, activation: R, dt: R) -> R {
    1.0 - exp(-rate * dt * exp(-activation / temperature))
}

/// Advances both reactions by a step, and adds the released heat.
#[device]
fn react<R: Real>(u: Mixture<R>, at: &Place<R>, p: &Reactions<R>) -> Mixture<R> {
    let internal = u.gas.energy - kinetic_energy(u.gas);
    let temperature = (p.gamma - 1.0) * internal / u.gas.density;
    let burnt = u.species[0] * reacted(temperature, p.rates[0], p.activation[0], at.dt);
    let dust = u.species[1] * reacted(temperature, p.rates[1], p.activation[1], at.dt);
    let mut v = u;
    v.species = [
        u.species[0] - burnt,
        u.species[1] + (burnt - dust),
        u.species[2] + dust,
    ];
    v.gas.energy = u.gas.energy + (p.heat[0] * burnt + p.heat[1] * dust);
    v
}

/// Mass of unburnt fuel.
#[device]
fn fuel<R: Real>(u: Mixture<R>) -> R {
    u.species[0]
}

/// Heat per mass that can still be released.
#[device]
fn heat_left<R: Real>(u: Mixture<R>, of_fuel: R, of_ash: R) -> R {
    (u.species[0] * (of_fuel + of_ash) + u.species[1] * of_ash) / u.gas.density
}

impl Plugin for Burning {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.scalar_set(&[("fuel", 1.0), ("ash", 0.0), ("dust", 0.0)])?;
        let (name, units) = ("heat_left", "length**2/time**2");
        sim.derived::<heat_left>(name, units, GasFrame::Grid, &SPECIES, &self.heat)
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let p = Reactions {
            rates: self.rates,
            activation: self.activation,
            heat: self.heat,
            gamma: sim.world.resource::<GasModel>().gamma,
        };
        let mut sim = sim.with_scalars(&SPECIES)?;
        sim.split_source::<Gas, react>(p);
        sim.column::<Gas, fuel>("fuel", Reduce::Integral, [])
            .unit("mass");
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<Burning>("burning")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
