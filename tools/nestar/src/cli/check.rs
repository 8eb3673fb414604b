//! `nestar check` and `nestar order`.

use super::estimate::{Steps, measured_rate, output};
use super::{DeckArgs, Failure, memory, positive, print};
use clap::Args;
use nestar::engine::Error;
use nestar::engine::mesh::{CELLS, Topology};
use nestar::engine::step::memory::{needed, of_ranks};
use nestar::{Simulation, engine, order};
use nestar_deck::Deck;
use std::fmt::Write as _;

/// Numbers of ranks of which the memory is told.
const RANKS: [usize; 4] = [2, 8, 64, 512];

/// What to check.
#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    deck: DeckArgs,
    /// Cells that the run updates in a second, for its duration; without it: as measured here in half a second
    #[arg(long, value_name = "CELLS/S", value_parser = positive)]
    rate: Option<f64>,
}

/// Prints the resolved deck, and what a run of it would do as comments, so that the whole is a deck again.
pub fn check(arguments: &CheckArgs) -> Result<(), Failure> {
    let deck = arguments.deck.read(&[])?;
    let mut sim = Simulation::new(deck.clone())?;
    let text = sim.with(|sim| {
        let order = order::describe(sim)?;
        let outlook = outlook(sim, &deck, arguments.rate)?;
        let notes = format!("\n{outlook}\norder of a step\n\n{order}");
        let notes: String = notes
            .lines()
            .map(|line| format!("# {line}").trim_end().to_string() + "\n")
            .collect();
        Ok::<_, Error>(format!("{}{notes}", sim.deck.resolved()))
    })?;
    print(&text)
}

/// Prints the order of a step.
pub fn order(arguments: &DeckArgs) -> Result<(), Failure> {
    let mut sim = Simulation::new(arguments.read(&[])?)?;
    print(&sim.with(order::describe)?)
}

/// What a run would begin with, take, write and last: the initial hierarchy is built, as far as it fits.
fn outlook(sim: &mut engine::Engine, deck: &Deck, rate: Option<f64>) -> Result<String, Error> {
    let (unfinished, whole) = match sim.initialise() {
        Err(Error::Memory(shortage)) => {
            let text = format!("the hierarchy was not built to its end: {shortage}\n");
            (text, false)
        }
        other => other.map(|()| (String::new(), true))?,
    };
    let mut text = unfinished + &hierarchy(sim) + &memory_of(sim);
    if whole {
        let steps = Steps::new(sim)?;
        text += &output(sim, &steps);
        let measured = || {
            let rate = measured_rate(deck)?;
            Some((rate, "measured here with 32^3 cells of this deck"))
        };
        let rate = rate.map(|rate| (rate, "--rate"));
        text += &steps.described(rate.or_else(measured));
    }
    Ok(text)
}

/// The initial hierarchy with the memory of its fields.
fn hierarchy(sim: &engine::Engine) -> String {
    let (patch, topology) = (memory::patch_bytes(sim), sim.world.resource::<Topology>());
    let mut text = format!(
        "initial hierarchy: {} a patch for all fields in all banks, {} precision\n\nlevel   patches        cells      memory\n",
        memory::shown(patch),
        format!("{:?}", sim.precision()).to_lowercase()
    );
    let mut row = |name: &str, patches: usize| {
        // writing to a string cannot fail
        let _ = writeln!(
            text,
            "{name:>5} {patches:>9} {:>12} {:>11}",
            patches * CELLS,
            memory::shown(patches as u64 * patch)
        );
    };
    for level in 0..=topology.max_level {
        row(&level.to_string(), topology.rows(level).len());
    }
    row("all", topology.patches());
    text
}

/// What the run takes of memory, on one rank and with the copies that ranks keep of each other's patches.
fn memory_of(sim: &engine::Engine) -> String {
    let (world, rows) = (&sim.world, sim.world.resource::<Topology>().patches());
    let mut text = format!(
        "\nmemory of fields and tables: {} on one rank, which is what run.memory_limit counts on any number of them; with the copies \
         that ranks keep of others' patches about\n",
        memory::shown(needed(world, rows))
    );
    for ranks in RANKS.into_iter().filter(|ranks| 8 * ranks <= rows) {
        let part = of_ranks(world, rows, ranks);
        let (all, part) = (memory::shown(part * ranks as u64), memory::shown(part));
        let _ = writeln!(
            text,
            "  {ranks:>4} ranks: {part:>11} on each, {all:>11} in all"
        );
    }
    text
}
