//! `nestar replay`: repeats the step of a captured patch, or the calls of a cell function.

use super::{CommandError, FAILED, positive, print};
use clap::Args;
use nestar::App;
use nestar::engine::data::{CellCallResult, CellCase};
use nestar::engine::step::{Capture, Replays};
use nestar::systems::hydro::HydroConfig;
use nestar::systems::hydro::replay::{ReplayPass, primitive, replay as passes_of};
use nestar_deck::Deck;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Arguments of `nestar replay`.
#[derive(Args)]
pub struct ReplayArgs {
    /// File `capture.toml` of a run that stopped at an unphysical cell, or `unfinished-cell.toml` of one that stopped in a function
    capture: PathBuf,
    /// Set a value of the run's deck (for a capture: of its table [hydro]), to test a remedy; may be repeated
    #[arg(long = "set", value_name = "TABLE.KEY=VALUE")]
    overrides: Vec<String>,
    /// Time step; default: that of the run's last attempt
    #[arg(long, value_parser = positive)]
    dt: Option<f64>,
}

/// Repeats the step or the calls on the CPU and prints the cell after each pass or call.
///
/// # Errors
/// The file cannot be read, or an unchanged step does not reproduce the bits of the run.
pub fn replay(app: &App, arguments: &ReplayArgs) -> Result<(), CommandError> {
    let text = std::fs::read_to_string(&arguments.capture).unwrap_or_default();
    match text.starts_with("cell_case") {
        true => replay_cell(app, arguments),
        false => replay_patch(arguments),
    }
}

/// Returns `true` if the numbers are bitwise equal.
fn same_bits(a: &[f64], b: &[f64]) -> bool {
    a.iter()
        .map(|x| x.to_bits())
        .eq(b.iter().map(|x| x.to_bits()))
}

/// Repeats the calls of a cell function with the settings of the run and the overrides.
fn replay_cell(app: &App, arguments: &ReplayArgs) -> Result<(), CommandError> {
    let case = Replays::read(&arguments.capture)?;
    let name = arguments.capture.file_name().unwrap_or_default();
    let name = Path::new(&case.folder).join(name);
    let mut deck = Deck::parse(&name.display().to_string(), &case.deck)?;
    deck.set(&format!("run.precision={}", case.precision))?;
    deck.set("run.device=cpu")?;
    for change in &arguments.overrides {
        deck.set(change)?;
    }
    let case = CellCase {
        dt: arguments.dt.unwrap_or(case.dt),
        ..case
    };
    let mut sim = app.simulation(deck)?;
    let calls = sim.with(|sim| Replays::replay(&sim.world, &case))?;
    print(&calls_text(&case, &calls))?;
    if !arguments.overrides.is_empty() || arguments.dt.is_some() {
        return Ok(());
    }
    match same_bits(&calls[0].given, &case.given) {
        true => print("the first call has the bits of the run\n"),
        false => Err(CommandError::new(
            FAILED,
            format!(
                "the run got {:?}, which differs in its bits: was the file written by another version?",
                case.given
            ),
        )),
    }
}

/// Formats the cell before the calls and after each call.
fn calls_text(case: &CellCase, calls: &[CellCallResult]) -> String {
    let mut text = format!(
        "{}\n\n`{}` on level {}: step of `{}` from t = {} with dt = {:e}, {} precision, after {} calls\n\n{:<16} {:>5}",
        case.why,
        case.function,
        case.level,
        case.field,
        case.time,
        case.dt,
        case.precision,
        case.calls,
        "",
        "work"
    );
    for name in &case.components {
        let _ = write!(text, " {name:>14}");
    }
    let mut row = |name: &str, work: &str, state: &[f64]| {
        let _ = write!(text, "\n{name:<16} {work:>5}");
        for value in state {
            let _ = write!(text, " {value:>14.6e}");
        }
    };
    row("before", "", &case.state);
    for (n, call) in calls.iter().enumerate() {
        let name = format!("{} {}", case.calls + n + 1, call.status);
        row(&name, &call.work.to_string(), &call.state);
    }
    if let Some(last) = calls.last() {
        let (given, carried, sums) = (&last.given, &last.carried, &last.sums);
        let _ = write!(
            text,
            "\n\nresult of the last call: {given:?}; carried state: {carried:?}; sums: {sums:?}\n"
        );
    }
    text
}

/// Repeats the step of a captured patch.
fn replay_patch(arguments: &ReplayArgs) -> Result<(), CommandError> {
    let capture = Capture::read(&arguments.capture)?;
    let mut deck = Deck::parse(&arguments.capture.display().to_string(), &capture.deck)?;
    for change in &arguments.overrides {
        deck.set(change)?;
    }
    let config = HydroConfig::of(&mut deck)?;
    let dt = arguments.dt.unwrap_or(capture.dt);
    let passes = passes_of(&capture, &config, dt)?;
    print(&head(&capture, dt))?;
    print(&table(&capture, &config, &passes))?;
    if !arguments.overrides.is_empty() || arguments.dt.is_some() {
        return Ok(());
    }
    let last = passes.last().map_or(&[][..], |pass| &pass.state);
    match same_bits(last, &capture.after) {
        true => print("the last pass has the bits of the run\n"),
        false => Err(CommandError::new(
            FAILED,
            format!(
                "the run found {:?}, which differs in its bits: was the file written by another version?",
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
    format!(
        "{why}\n\n\
         cell {cell:?} of patch {patch:?} on level {level}: step of `{field}` from t = {time} with dt = {dt:e}, {precision} \
         precision\n\
         cell width {width:?}; {layers} layers of ghost cells\n\n"
    )
}

/// Formats the cell after each pass.
fn table(capture: &Capture, config: &HydroConfig, passes: &[ReplayPass]) -> String {
    let names = [
        "density",
        "velocity_x",
        "velocity_y",
        "velocity_z",
        "pressure",
    ];
    let names = names.into_iter().map(String::from);
    // behind density, momentum and energy, which becomes the pressure
    let first = config.eos.0.components();
    let scalars = capture.components[first..].iter().cloned();
    let mut text = format!("{:<34}", "");
    for name in names.chain(scalars) {
        let _ = write!(text, " {name:>14}");
    }
    text.push('\n');
    let mut row = |name: &str, state: &[f64]| {
        let _ = write!(text, "{name:<34}");
        let own = primitive(state, config);
        for value in own.iter().chain(&state[first..]) {
            let _ = write!(text, " {value:>14.6e}");
        }
        text.push('\n');
    };
    row("before the step", &capture.before());
    for (n, pass) in passes.iter().enumerate() {
        let fluxes = match n {
            0 => "fluxes of the scheme".into(),
            _ => format!("pass {n}: {} cells first order", pass.first_order),
        };
        row(
            &format!("{fluxes}, {} unphysical", pass.unphysical),
            &pass.state,
        );
    }
    text
}
