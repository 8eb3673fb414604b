//! A user-defined scenario with the complete command line: two streams of gas collide.
//! `cargo run --release --example collision -- run scenarios/programs/collision.toml`.

use nestar::prelude::*;

/// Two streams of gas that collide in the middle of the box, with a Gaussian bump in their interface.
#[deck]
pub struct Collision {
    /// Speed of each stream towards the middle.
    #[key(default = 2.0, unit = "length/time")]
    pub speed: f64,
    /// Densities of the left and right streams.
    #[key(default = [1.0, 1.0], unit = "mass/length**3", above = 0.0)]
    pub densities: [f64; 2],
    /// Pressure of both streams.
    #[key(default = 0.1, unit = "mass/(length*time**2)", above = 0.0)]
    pub pressure: f64,
    /// Height of the bump: displacement of the interface along x on the axis.
    #[key(default = 0.1, unit = "length")]
    pub bump: f64,
}

impl Parameters for Collision {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let centre: [f64; 3] = setting.centre(None);
        let length = setting.edges[1][0] - setting.edges[0][0];
        if self.bump.abs() > 0.5 * length {
            let message = format!("the bump must not exceed half the length of the box, {length}");
            return Err(setting.deck.error_at("collision.bump", message));
        }
        Ok(Box::new(move |x: [f64; 3]| {
            let [y, z] = [x[1] - centre[1], x[2] - centre[2]];
            let front = centre[0] + self.bump * exp(-50.0 * (y * y + z * z));
            let left = x[0] < front;
            Primitive {
                density: self.densities[usize::from(!left)],
                velocity: [if left { self.speed } else { -self.speed }, 0.0, 0.0],
                pressure: self.pressure,
            }
        }))
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.scenario::<Collision>("collision")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
