//! A scenario of one's own, with the whole command line: two streams of gas collide.
//! `cargo run --release --example collision -- run scenarios/programs/collision.toml`.

use nestar::prelude::*;

/// Two streams of gas that collide in the middle of the box, one of them with a bump in its front.
#[deck]
pub struct Collision {
    /// Velocity of each stream towards the middle.
    #[key(default = 2.0, unit = "length/time")]
    pub speed: f64,
    /// Densities of the left and the right stream.
    #[key(default = [1.0, 1.0], unit = "mass/length**3", above = 0.0)]
    pub densities: [f64; 2],
    /// Pressure of both.
    #[key(default = 0.1, unit = "mass/(length*time**2)", above = 0.0)]
    pub pressure: f64,
    /// How far the left stream reaches into the right one along the axis.
    #[key(default = 0.1, unit = "length")]
    pub bump: f64,
}

impl Parameters for Collision {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let centre: [f64; 3] = setting.centre(None);
        let length = setting.edges[1][0] - setting.edges[0][0];
        if self.bump.abs() > 0.5 * length {
            let message = format!("the bump must not leave the box, which is {length} long");
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
