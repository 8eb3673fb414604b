//! A blast wave in a medium with linear drag: a user-defined source term in one file.

use nestar::prelude::*;

/// Returns the conserved state of a cell after drag at `rate` (1/time) over the time `dt`, in code units.
#[device]
fn drag<R: Real>(u: Conserved<R>, rate: R, dt: R) -> Conserved<R> {
    let keep = exp(-rate * dt);
    let kinetic = kinetic_energy(u);
    let mut v = u;
    v.momentum = [
        keep * u.momentum[0],
        keep * u.momentum[1],
        keep * u.momentum[2],
    ];
    v.energy = u.energy - kinetic * (1.0 - keep * keep);
    v
}

struct Drag {
    rate: f64,
}

impl Plugin for Drag {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let rate = self.rate;
        sim.system_in(
            Advance::Sources,
            move |clock: Res<LevelClock>, rows: LevelRows, mut gas: Write<Gas>| {
                gas.update::<drag>(&rows, (), &[rate, clock.dt]); // runs on the CPU or GPU that holds the data
            },
        );
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let summary = Simulation::from_deck("scenarios/sedov.toml")?
        .add(Drag { rate: 10.0 })?
        .run()?;
    println!(
        "{} root steps to time {}: {}",
        summary.step,
        summary.time,
        summary.directory.display()
    );
    Ok(())
}
