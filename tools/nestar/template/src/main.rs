//! NAME: gas with drag, and whatever you make of it.

use nestar::prelude::*;

/// Linear drag: the gas comes to rest, and what it had of kinetic energy is lost.
#[deck]
pub struct Drag {
    /// Inverse of the time in which the momentum falls to 1/e.
    #[key(default = 10.0, unit = "1/time", min = 0.0)]
    pub rate: f64,
}

/// The gas of a cell after a step: runs on CPUs and GPUs with the same bits.
#[device]
fn drag<R: Real>(u: Conserved<R>, at: &Place<R>, rate: R) -> Conserved<R> {
    let keep = exp(-rate * at.dt);
    let [x, y, z] = u.momentum;
    let mut v = u;
    v.momentum = [keep * x, keep * y, keep * z];
    v.energy = u.energy - kinetic_energy(u) * (1.0 - keep * keep);
    v
}

impl Plugin for Drag {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        // functions of `#[device]` stand here as types; their numbers follow in order, `[]` for none
        sim.source::<Gas, drag>([self.rate]);
        Ok(())
    }
}

/// What the program has beside Nestar's own physics: a deck switches a plugin on by its table, here `[drag]`.
fn program(app: App) -> App {
    app.program(nestar::program!()).plugin::<Drag>("drag")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECK: &str = include_str!("../NAME.toml");

    /// On one rank and on two, on the CPU and as a GPU computes it, and after a restart.
    #[test]
    fn runs_have_the_same_bits_everywhere() {
        let app = program(App::default());
        nestar::testing::same_bits(&app, DECK, &["domain.cells=[16,16,16]"], 3).unwrap();
    }
}
