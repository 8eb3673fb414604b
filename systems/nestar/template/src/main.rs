//! NAME: gas with linear drag.

use nestar::prelude::*;

/// Linear drag: the momentum decays exponentially, and the lost kinetic energy is removed.
#[deck]
pub struct Drag {
    /// Decay rate of the momentum.
    #[key(default = 10.0, unit = "1/time", min = 0.0)]
    pub rate: f64,
}

/// Returns the state of a cell after a step of drag; gives the same bits on CPUs and GPUs.
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
        // a `#[device]` function is passed as a type, followed by its parameters in order (`[]` for none)
        sim.source::<Gas, drag>([self.rate]);
        Ok(())
    }
}

/// Adds the plugin to Nestar; a deck activates it by its table `[drag]`.
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

    /// On one and several ranks, on the CPU and an emulated GPU, and after a restart.
    #[test]
    fn runs_have_the_same_bits_everywhere() {
        let app = program(App::default());
        nestar::testing::same_bits(&app, DECK, &["domain.cells=[16,16,16]"], 3).unwrap();
    }
}
