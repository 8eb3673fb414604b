//! `nestar check` and `nestar order`.

use super::estimate::{Steps, measured_rate, output};
use super::{CommandError, DeckArgs, list, memory, patches_found, positive, print, throttled};
use clap::Args;
use nestar::engine::Error;
use nestar::engine::mesh::{CELLS, Topology};
use nestar::engine::step::memory::{
    MemoryGuard, needed, needed_per_rank, particle_demand, shortage,
};
use nestar::engine::step::{Catalogue, CatalogueEntry, HierarchyPreview};
use nestar::systems::units::Units;
use nestar::{App, engine, order};
use nestar_deck::Deck;
use std::fmt::Write as _;

/// Numbers of ranks of which the memory is told.
const RANKS: [usize; 4] = [2, 8, 64, 512];

/// Patches of a beginning that is made for limits of whole levels.
const MADE: usize = 1024;
/// Items that are made for them, and to measure how fast the deck runs.
const MADE_ITEMS: u64 = 1 << 24;

/// What to check.
#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    deck: DeckArgs,
    /// Cells that the run updates in a second, for its duration; without it: as measured here in half a second
    #[arg(long, value_name = "CELLS/S", value_parser = positive)]
    rate: Option<f64>,
}

/// Prints the resolved deck, and what a run of it would do as comments, so that the whole is a deck again. No field of the run is
/// made.
pub fn check(app: &App, arguments: &CheckArgs) -> Result<(), CommandError> {
    let deck = arguments.deck.read(app, &[])?;
    let mut sim = app.simulation(deck.clone())?;
    let order = sim.with(order::describe)?;
    let outlook = outlook(app, sim.engine(), &deck, arguments.rate)?;
    let plugins = plugins(sim.engine());
    let units = units(sim.engine());
    let notes = format!("\n{units}{outlook}\n{plugins}order of a step\n\n{order}");
    let notes: String = notes
        .lines()
        .map(|line| format!("# {line}").trim_end().to_string() + "\n")
        .collect();
    print(&format!("{}{notes}", sim.engine().deck.resolved()))
}

/// What the units are, if the deck says so.
fn units(sim: &engine::Engine) -> String {
    let lines = Units::find(sim).map_or_else(Vec::new, |units| units.described());
    match lines.is_empty() {
        true => String::new(),
        false => lines.join("\n") + "\n\n",
    }
}

/// What the plugins of the run have registered.
fn plugins(sim: &engine::Engine) -> String {
    let entries = sim.world.resource::<Catalogue>().entries().iter();
    let mut own: Vec<&CatalogueEntry> = entries.filter(|entry| !entry.owner.is_empty()).collect();
    own.sort_by_key(|entry| &entry.owner);
    let mut text = String::new();
    for (n, entry) in own.iter().enumerate() {
        if n == 0 || own[n - 1].owner != entry.owner {
            let _ = writeln!(text, "registered by {}", entry.owner);
        }
        list::registered(&mut text, entry);
    }
    match text.is_empty() {
        true => text,
        false => text + "\n",
    }
}

/// Prints the order of a step.
pub fn order(app: &App, arguments: &DeckArgs) -> Result<(), CommandError> {
    let mut sim = app.simulation(arguments.read(app, &[])?)?;
    print(&sim.with(order::describe)?)
}

/// What a run would begin with, take, write and last.
fn outlook(
    app: &App,
    sim: &engine::Engine,
    deck: &Deck,
    rate: Option<f64>,
) -> Result<String, CommandError> {
    let from = &sim.settings.run.start_from;
    if !from.is_empty() {
        return Ok(format!(
            "the run begins with the state of {from}: `nestar info` describes it, `nestar plan --snapshot` its hierarchy\n"
        ));
    }
    // no field is computed with: a device would only be in the way
    let mut on_host = deck.clone();
    on_host.set("run.device=cpu")?;
    let mut foreseen = app.simulation(on_host.clone())?;
    let found = foreseen.with(|sim| sim.preview_hierarchy(throttled(patches_found)))?;
    let foreseen = foreseen.engine();
    let misfit = fits(sim, foreseen)?;
    let mut text = hierarchy(foreseen) + &memory_of(foreseen) + &misfit;
    if found.is_truncated {
        text += "no more is foreseen: there are more patches than can be looked at, of finer levels or of the root grid\n";
        return Ok(text);
    }
    let items = particle_demand(&foreseen.world, 1, 1).into_iter();
    let items: u64 = items.map(|kind| kind.count).sum();
    let few = items == 0 || (items <= MADE_ITEMS && misfit.is_empty());
    let (own, note) = first_steps(app, on_host, foreseen, (found, few))?;
    let steps = Steps::new(foreseen, own);
    text += &output(foreseen, &steps);
    let measured = || {
        let rate = few.then(|| measured_rate(app, deck))??;
        Some((rate, "measured here with 32^3 cells of this deck"))
    };
    let rate = rate.map(|rate| (rate, "--rate"));
    Ok(text + &steps.described(rate.or_else(measured)) + &note)
}

/// The length of the step that each level would take by itself. What limits it by whole levels is known if the run's beginning is small
/// enough to be made; else a note says that it is left out.
fn first_steps(
    app: &App,
    deck: Deck,
    foreseen: &engine::Engine,
    (found, few): (HierarchyPreview, bool),
) -> Result<(Vec<f64>, String), CommandError> {
    if found.unknown_limits.is_empty() {
        return Ok((found.steps, String::new()));
    }
    let topology = foreseen.world.resource::<Topology>();
    let all: usize = (0..=topology.finest())
        .map(|level| patches(topology, level))
        .sum();
    if all > MADE || !few {
        let names = found.unknown_limits.join(", ");
        let note = format!(
            "these steps do not include the limit by {names}, which needs whole levels; a run with time.max_steps = 1 shows it\n"
        );
        return Ok((found.steps, note));
    }
    let mut sim = app.simulation(deck)?;
    let steps = sim.with(|sim| {
        sim.finish_setup()?;
        sim.initialise()?;
        sim.step_lengths()
    })?;
    Ok((steps, String::new()))
}

/// The patches of a level; those of the root grid are known without a look.
fn patches(topology: &Topology, level: usize) -> usize {
    match level {
        0 => topology.domain.root.iter().map(|&n| n as usize).product(),
        level => topology.rows(level).len(),
    }
}

/// Whether a run as `sim` would be fits into memory with the hierarchy that was foreseen; nothing where it does.
fn fits(sim: &engine::Engine, foreseen: &engine::Engine) -> Result<String, Error> {
    let world = &foreseen.world;
    if let Some(shortage) = &world.resource::<MemoryGuard>().first_cap {
        let capped = world.resource::<MemoryGuard>().capped;
        return Ok(format!(
            "{capped} patches are not refined, as memory does not suffice: {}\n",
            shortage.description()
        ));
    }
    let topology = world.resource::<Topology>();
    let mut rows = topology.root_rows();
    for level in 0..=topology.finest() {
        rows += if level > 0 {
            patches(topology, level)
        } else {
            0
        };
        if let Some(mut shortage) = shortage(&sim.world, rows, level)? {
            shortage.patches = patches(topology, level) as u64;
            let coarser = match level {
                0 => "no level fits".into(),
                1 => "the root grid fits".into(),
                level => format!("levels up to {} fit", level - 1),
            };
            return Ok(format!(
                "a run would not begin here ({coarser}): {shortage}\n"
            ));
        }
    }
    Ok(String::new())
}

/// The initial hierarchy with the memory of its fields.
fn hierarchy(sim: &engine::Engine) -> String {
    let (patch, topology) = (memory::patch_bytes(sim), sim.world.resource::<Topology>());
    let mut text = format!(
        "initial hierarchy: {} a patch for all fields in all banks, {} precision\n\nlevel   patches        cells      memory\n",
        memory::format_bytes(patch),
        format!("{:?}", sim.precision()).to_lowercase()
    );
    let mut row = |name: &str, patches: usize| {
        // writing to a string cannot fail
        let _ = writeln!(
            text,
            "{name:>5} {patches:>9} {:>12} {:>11}",
            patches * CELLS,
            memory::format_bytes(patches as u64 * patch)
        );
    };
    let levels = 0..=topology.max_level;
    for level in levels.clone() {
        row(&level.to_string(), patches(topology, level));
    }
    row("all", levels.map(|level| patches(topology, level)).sum());
    text
}

/// What the run takes of memory, on one rank and with the copies that ranks keep of each other's patches.
fn memory_of(sim: &engine::Engine) -> String {
    let (world, topology) = (&sim.world, sim.world.resource::<Topology>());
    let levels = 0..=topology.max_level;
    let rows = levels.map(|level| patches(topology, level)).sum();
    let items = memory::items(sim, rows);
    let consumers = match items.is_empty() {
        true => "fields and tables",
        false => "fields, tables and items",
    };
    let mut text = items.iter().fold("\n".to_string(), |text, line| {
        format!("{text}memory of {line}\n")
    });
    let _ = writeln!(
        text,
        "memory of {consumers}: {} on one rank, which is what run.memory_limit counts on any number of them; with the copies \
         that ranks keep of others' patches about",
        memory::format_bytes(needed(world, rows))
    );
    for ranks in RANKS.into_iter().filter(|ranks| 8 * ranks <= rows) {
        let part = needed_per_rank(world, rows, ranks);
        let (all, part) = (
            memory::format_bytes(part * ranks as u64),
            memory::format_bytes(part),
        );
        let _ = writeln!(
            text,
            "  {ranks:>4} ranks: {part:>11} on each, {all:>11} in all"
        );
    }
    text
}
