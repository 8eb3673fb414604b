//! Radiative cooling from a table of rates, with a step limit, a refinement criterion and a column of the diagnostics: `cargo run --release --example cooling -- run scenarios/programs/cooling.toml`.

use nestar::prelude::*;

/// Radiative cooling from a table of rates; the energy loss per volume and time is density^2 times the rate.
#[deck]
pub struct TableCooling {
    /// Rates at specific internal energies in steps of a factor of two, interpolated linearly.
    #[key(default = vec![0.0, 0.06, 0.3, 1.0, 1.2, 0.6, 0.3, 0.5], least = 2, unit = "length**5/(mass*time**3)")]
    pub rates: Vec<f64>,
    /// Specific internal energy of the first rate; no cell cools below it.
    #[key(default = 0.05, unit = "(length/time)**2", above = 0.0)]
    pub coldest: f64,
}

#[device]
#[derive(Clone)]
struct Law<R> {
    rates: Table<R>,
    last: R,
    coldest: R,
}

/// Returns the energy loss per volume and time.
#[device]
fn loss<R: Real>(density: R, internal: R, p: &Law<R>) -> R {
    // mantissa in [1/2, 1) times a power of two
    let (mantissa, power) = (internal / (density * p.coldest)).frexp();
    let index = (2.0 * mantissa + R::from_i32(power - 2))
        .max(0.0)
        .min(p.last);
    let n = index.min(p.last - 1.0).to_i32();
    let (low, high) = (p.rates.at(n), p.rates.at(n + 1));
    density * density * (low + (index - R::from_i32(n)) * (high - low))
}

/// Returns the energy loss in a step by the midpoint rule, of second order.
#[device]
fn lost<R: Real>(u: Conserved<R>, dt: R, p: &Law<R>) -> R {
    let (energy, least) = (internal_energy(u), p.coldest * u.density);
    let middle = energy - 0.5 * dt * loss(u.density, energy, p);
    (dt * loss(u.density, middle.max(least), p)).min((energy - least).max(0.0))
}

#[device]
fn radiate<R: Real>(both: (R, Conserved<R>), at: &Place<R>, p: &Law<R>) -> R {
    both.0 + lost(both.1, at.dt, p)
}

#[device]
fn cool<R: Real>(u: Conserved<R>, at: &Place<R>, p: &Law<R>) -> Conserved<R> {
    let mut v = u;
    v.energy = u.energy - lost(u, at.dt, p);
    v
}

/// A fraction of the cooling time.
#[device]
fn cooling_time<R: Real>(u: Conserved<R>, p: &Law<R>) -> R {
    0.3 * internal_energy(u) / (loss(u.density, internal_energy(u), p) + 1e-30)
}

/// Refines cells whose cooling time is shorter than the sound-crossing time of about eight cells.
#[device]
fn cools_fast<R: Real>(u: Conserved<R>, at: &Place<R>, p: &Law<R>) -> bool {
    (internal_energy(u) / u.density).sqrt() * cooling_time(u, p) < 2.5 * at.width[0]
}

/// Radiated energy per volume; its total is a column of the diagnostics.
struct Radiated;

impl Field for Radiated {
    const NAME: &'static str = "radiated";
}

impl Plugin for TableCooling {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let p = Law {
            rates: Table::new(&self.rates[..]),
            last: self.rates.len() as f64 - 1.0,
            coldest: self.coldest,
        };
        sim.register_field::<Radiated>(FieldSpec::cells(&["radiated"]).in_totals())?;
        sim.initial::<Radiated, nothing>([]);
        sim.limit::<Gas, cooling_time>("cooling", p.clone());
        sim.criterion::<Gas, cools_fast>(p.clone());
        let cool = move |rows: LevelRows, mut gas: Write<Gas>, mut radiated: Write<Radiated>| {
            radiated.update::<radiate>(&rows, &gas, &p);
            gas.update::<cool>(&rows, (), &p);
        };
        sim.system_in(Split::Sources, cool);
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<TableCooling>("radiation")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
