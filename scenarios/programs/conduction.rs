//! Heat conduction by fluxes through faces, conservative on all levels:
//! `cargo run --release --example conduction -- run scenarios/programs/conduction.toml`.

use nestar::prelude::*;

/// Heat conduction as in the table `[conduction]`. The energy flux is -diffusivity * density * gradient of the specific internal energy.
#[deck]
pub struct Conduction {
    /// Diffusivity of the specific internal energy.
    #[key(default = 0.01, unit = "length**2/time", above = 0.0)]
    pub diffusivity: f64,
}

/// Returns the specific internal energy.
#[device]
fn specific<R: Real>(u: Conserved<R>) -> R {
    (u.energy - kinetic_energy(u)) / u.density
}

#[device]
fn conduct<R: Real>(
    u: &FaceStencil<R, Conserved<R>>,
    face: &Face<R>,
    diffusivity: R,
) -> Conserved<R> {
    let (below, above) = (u.at(-1), u.at(0));
    let density = 0.5 * (below.density + above.density);
    let zero = 0.0 * density;
    Conserved {
        density: zero,
        momentum: [zero, zero, zero],
        energy: diffusivity * density * (specific(below) - specific(above)) / face.width,
    }
}

/// Three quarters of the maximum stable step of the explicit scheme in three dimensions.
#[device]
fn longest_step<R: Real>(_u: Conserved<R>, at: &Place<R>, diffusivity: R) -> R {
    let w = at.width;
    let rate = sum3(
        1.0 / (w[0] * w[0]),
        1.0 / (w[1] * w[1]),
        1.0 / (w[2] * w[2]),
    );
    0.375 / (diffusivity * rate)
}

impl Plugin for Conduction {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.flux::<Gas, conduct>([self.diffusivity]);
        sim.limit::<Gas, longest_step>("conduction", [self.diffusivity]);
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<Conduction>("heat_flow")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
