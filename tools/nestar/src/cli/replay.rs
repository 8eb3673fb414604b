//! `nestar replay`: the step of a captured patch once more.

use super::{FAILED, Failure, positive, print};
use clap::Args;
use nestar::engine::step::Capture;
use nestar::systems::hydro::HydroConfig;
use nestar::systems::hydro::replay::{Pass, primitive, replay as passes_of};
use nestar_deck::Deck;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What to repeat.
#[derive(Args)]
pub struct ReplayArgs {
    /// The file `capture.toml` of a run that an unphysical cell has ended
    capture: PathBuf,
    /// Replace a value of the run's table [hydro], to see what helps; may be given several times
    #[arg(long = "set", value_name = "TABLE.KEY=VALUE")]
    overrides: Vec<String>,
    /// Length of the step in place of that of the run's last attempt
    #[arg(long, value_parser = positive)]
    dt: Option<f64>,
}

/// Repeats the step on the CPU and prints what each pass makes of the cell.
///
/// # Errors
/// The file cannot be read; without changes, the step does not give the bits that the run found.
pub fn replay(arguments: &ReplayArgs) -> Result<(), Failure> {
    let capture = Capture::read(&arguments.capture)?;
    let mut deck = Deck::parse(&arguments.capture.display().to_string(), &capture.deck)?;
    for change in &arguments.overrides {
        deck.set(change)?;
    }
    let config: HydroConfig = deck.table("hydro")?;
    let dt = arguments.dt.unwrap_or(capture.dt);
    let passes = passes_of(&capture, &config, dt)?;
    print(&head(&capture, dt))?;
    print(&table(&capture, &config, &passes))?;
    if !arguments.overrides.is_empty() || arguments.dt.is_some() {
        return Ok(());
    }
    let last = passes.last().map_or(&[][..], |pass| &pass.state);
    let bits = |state: &[f64]| state.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    match bits(last) == bits(&capture.after) {
        true => print("the last pass has the bits of the run\n"),
        false => Err(Failure::new(
            FAILED,
            format!(
                "the run found {:?}, in other bits: was the file written by another version?",
                capture.after
            ),
        )),
    }
}

fn head(capture: &Capture, dt: f64) -> String {
    let Capture {
        why,
        field,
        precision,
        level,
        time,
        width,
        patch,
        cell,
        layers,
        ..
    } = capture;
    let precision = format!("{precision:?}").to_lowercase();
    format!(
        "{why}\n\n\
         cell {cell:?} of patch {patch:?} on level {level}: a step of `{field}` from t = {time} by {dt:e}, in {precision} \
         precision\n\
         cells are {width:?} wide; {layers} layers of ghost cells were kept\n\n"
    )
}

/// What each pass makes of the cell.
fn table(capture: &Capture, config: &HydroConfig, passes: &[Pass]) -> String {
    let names = [
        "density",
        "velocity_x",
        "velocity_y",
        "velocity_z",
        "pressure",
    ];
    let names = names.into_iter().map(String::from);
    let scalars = capture.components[names.len()..].iter().cloned();
    let mut text = format!("{:<34}", "");
    for name in names.chain(scalars) {
        let _ = write!(text, " {name:>14}");
    }
    text.push('\n');
    let mut row = |name: &str, state: &[f64]| {
        let _ = write!(text, "{name:<34}");
        let own = primitive(state, config.gamma);
        for value in own.iter().chain(&state[own.len()..]) {
            let _ = write!(text, " {value:>14.6e}");
        }
        text.push('\n');
    };
    row("before the step", &capture.before());
    for (n, pass) in passes.iter().enumerate() {
        let fluxes = match n {
            0 => "the scheme's fluxes".into(),
            _ => format!("round {n}: {} cells first order", pass.first_order),
        };
        row(&format!("{fluxes}, {} bad", pass.unphysical), &pass.state);
    }
    text
}
