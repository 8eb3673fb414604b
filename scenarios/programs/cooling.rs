//! Radiative cooling by a table of rates, with a limit of the step, a criterion and an audited column; the program has the whole
//! command line: `cargo run --release --example cooling -- run scenarios/programs/cooling.toml`.

use nestar::prelude::*;

/// Radiative cooling: the energy lost per volume and time is density^2 times a rate.
#[deck]
pub struct TableCooling {
    /// Rates at specific internal energies that double from one to the next, linear in between.
    #[key(default = vec![0.0, 0.06, 0.3, 1.0, 1.2, 0.6, 0.3, 0.5], least = 2, unit = "length**5/(mass*time**3)")]
    pub rates: Vec<f64>,
    /// Specific internal energy of the first rate: no cell is cooled below it.
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

/// Energy lost per volume and time.
#[device]
fn loss<R: Real>(density: R, internal: R, p: &Law<R>) -> R {
    // a part from 1/2 to 1 of a power of two
    let (part, power) = (internal / (density * p.coldest)).frexp();
    let place = (2.0 * part + R::from_i32(power - 2)).max(0.0).min(p.last);
    let n = place.min(p.last - 1.0).to_i32();
    let (low, high) = (p.rates.at(n), p.rates.at(n + 1));
    density * density * (low + (place - R::from_i32(n)) * (high - low))
}

/// Energy lost in a step, by the rate in the middle of it: of second order.
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

/// A part of the time in which gas would lose its energy.
#[device]
fn cooling_time<R: Real>(u: Conserved<R>, p: &Law<R>) -> R {
    0.3 * internal_energy(u) / (loss(u.density, internal_energy(u), p) + 1e-30)
}

/// Whether gas cools before sound has crossed some eight cells.
#[device]
fn cools_fast<R: Real>(u: Conserved<R>, at: &Place<R>, p: &Law<R>) -> bool {
    (internal_energy(u) / u.density).sqrt() * cooling_time(u, p) < 2.5 * at.width[0]
}

/// Energy per volume that has been radiated; its total is a column of the diagnostics.
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
            radiated.map_with::<radiate>(&rows, &[&gas], &p);
            gas.map_cells::<cool>(&rows, &p);
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
