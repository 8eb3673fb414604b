//! Stars that form in a fixed time, and supernovae that give mass and heat to their own cell:
//! `cargo run --release --example star_rule -- run scenarios/programs/star_rule.toml`.

use nestar::births::*;
use nestar::prelude::*;

/// Dense gas becomes stars in a fixed time.
#[deck]
pub struct StarRule {
    /// Density above which stars form.
    #[key(unit = "mass/length**3", above = 0.0)]
    pub density: f64,
    /// Time in which all of this gas would become stars.
    #[key(unit = "time", above = 0.0)]
    pub time: f64,
    /// Least mass of a star.
    #[key(unit = "mass", above = 0.0)]
    pub least_mass: f64,
}

/// Parameters of the rule.
#[device]
#[derive(Clone, Copy)]
pub struct Rule<R> {
    density: R,
    time: R,
    masses: StarMasses<R>,
}

/// Returns the star that forms in a cell.
#[device]
fn slow_stars<R: Real>(u: Conserved<R>, at: &Place<R>, p: &Rule<R>) -> CellRecord<FormingStar<R>> {
    let mass = u.density * (at.width[0] * at.width[1] * at.width[2]);
    let mut expected = 0.0;
    if u.density > p.density {
        expected = mass * at.dt / p.time;
    }
    form_star(u, 0.0, expected, at, &p.masses)
}

/// Gives everything to the cell of the star.
fn bubble(event: &FeedbackEvent, _: &Surroundings) -> Injections {
    Injection::at_offsets(|offset| match offset {
        [0, 0, 0] => Injection {
            mass: event.mass,
            energy: event.energy,
            ..Injection::default()
        },
        _ => Injection::default(),
    })
}

impl Plugin for StarRule {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        let mut kinds = sim.world.get_resource_or_init::<FeedbackKinds>();
        kinds.0.push(("bubble", bubble));
        Ok(())
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.allow_births("stars")?;
        let rule = Rule {
            density: self.density,
            time: self.time,
            masses: StarMasses {
                least: self.least_mass,
                most_of_cell: 0.5,
                stream: sim.random_stream("slow stars", 0)?,
            },
        };
        let form = move |rows: LevelRows,
                         clock: Res<LevelClock>,
                         mut gas: Write<Gas>,
                         mut stars: StarBirths| {
            let mut rule = rule;
            rule.masses.stream = rule.masses.stream.at_step(clock.step);
            let found = gas.collect::<slow_stars>(&rows, (), &rule);
            stars.form(&rows, &mut gas, "stars", &found)
        };
        sim.system_in(Advance::Predict, form);
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<StarRule>("star_rule")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
