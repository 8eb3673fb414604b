//! An isothermal atmosphere at rest in uniform gravity, with a hydrostatic boundary below and above:
//! `cargo run --release --example atmosphere -- run scenarios/programs/atmosphere.toml`.

use nestar::prelude::*;

/// Hydrostatic boundary along z, used by `boundary.z = "hydrostatic"`.
#[deck]
pub struct Atmosphere {
    /// Gravitational acceleration in the direction -z.
    #[key(default = 1.0, unit = "length/time**2", min = 0.0)]
    pub gravity: f64,
    /// Ratio of specific heats of the gas.
    #[key(default = 1.4, min = 1.0)]
    pub gamma: f64,
}

/// Gas in hydrostatic balance with the nearest cell of the domain, with the same temperature and velocity.
#[device]
fn hydrostatic<R: Real>(
    ghost: Ghost<R, Conserved<R>, 1>,
    at: &Place<R>,
    gravity: R,
    gamma: R,
) -> Conserved<R> {
    let inner = ghost.at(0);
    let away = at.width[2] * R::from_i32(ghost.layer + 1);
    let depth = if ghost.side == 0 { away } else { -away };
    let temperature = pressure(inner, gamma) / inner.density;
    let factor = exp(gravity * depth / temperature);
    let m = inner.momentum;
    Conserved {
        density: factor * inner.density,
        momentum: [factor * m[0], factor * m[1], factor * m[2]],
        energy: factor * inner.energy,
    }
}

impl Plugin for Atmosphere {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_boundary::<Gas, hydrostatic>("hydrostatic", [self.gravity, self.gamma])
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<Atmosphere>("atmosphere")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
