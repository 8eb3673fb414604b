//! `nestar check` and `nestar order`.

use super::estimate::{Rate, Steps, output, views};
use super::rates::{self, RunSize};
use super::{CommandError, DeckArgs, list, memory, patches_found, positive, print, throttled};
use clap::Args;
use nestar::engine::Error;
use nestar::engine::mesh::{CELLS, Topology};
use nestar::engine::step::memory::{
    MemoryGuard, needed, needed_per_rank, particle_demand, shortage,
};
use nestar::engine::step::{Catalogue, CatalogueEntry, HierarchyPreview, Remarks};
use nestar::systems::units::Units;
use nestar::{App, Simulation, engine, order};
use nestar_deck::Deck;
use std::fmt::Write as _;

/// Numbers of ranks for which memory is estimated.
const RANKS: [usize; 4] = [2, 8, 64, 512];

/// Maximum number of patches of an initial state that is created to evaluate limits of whole levels.
const MAX_CREATED_PATCHES: usize = 1024;

/// Arguments of `nestar check`.
#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    deck: DeckArgs,
    /// Speed for the estimated duration; default: that of earlier runs on this device, or measured once in half a second
    #[arg(long, value_name = "CELLS/S", value_parser = positive)]
    rate: Option<f64>,
}

/// Prints the resolved deck, with estimates for the run as comments, so that the output is again a deck. Creates no fields.
pub fn check(app: &App, arguments: &CheckArgs) -> Result<(), CommandError> {
    let deck = arguments.deck.read(app, &[])?;
    let mut sim = app.simulation(deck.clone())?;
    let order = sim.with(order::describe)?;
    let estimates = estimates(app, &mut sim, &deck, arguments.rate)?;
    let plugins = plugins(sim.engine());
    let (units, remarks) = (units(sim.engine()), remarks(sim.engine()));
    let notes = format!("\n{units}{remarks}{estimates}\n{plugins}order of a step\n\n{order}");
    let notes: String = notes
        .lines()
        .map(|line| format!("# {line}").trim_end().to_string() + "\n")
        .collect();
    print(&format!("{}{notes}", sim.engine().deck.resolved()))
}

/// Describes the units, if the deck defines them.
fn units(sim: &engine::Engine) -> String {
    let lines = Units::find(sim).map_or_else(Vec::new, |units| units.described());
    match lines.is_empty() {
        true => String::new(),
        false => lines.join("\n") + "\n\n",
    }
}

/// Lists the notes of the plugins on the settings of the deck.
fn remarks(sim: &engine::Engine) -> String {
    let remarks = &sim.world.resource::<Remarks>().0;
    let lines = remarks.iter().map(|remark| format!("{remark}\n\n"));
    lines.collect()
}

/// Lists what the plugins of the run have registered.
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

/// Prints the order of systems in a step.
pub fn order(app: &App, arguments: &DeckArgs) -> Result<(), CommandError> {
    let mut sim = app.simulation(arguments.read(app, &[])?)?;
    print(&sim.with(order::describe)?)
}

/// Estimates initial hierarchy, memory, output and duration of a run.
fn estimates(
    app: &App,
    simulation: &mut Simulation,
    deck: &Deck,
    rate: Option<f64>,
) -> Result<String, CommandError> {
    let sim = simulation.engine();
    let from = &sim.settings.run.start_from;
    if !from.is_empty() {
        return Ok(format!(
            "the run starts from the state of {from}; `nestar info` describes it, `nestar plan --snapshot` analyses its hierarchy\n"
        ));
    }
    sim.settings.check_intervals(&sim.deck, 0.0)?;
    // no fields are computed, so no device is needed
    let mut on_host = deck.clone();
    on_host.set("run.device=cpu")?;
    let mut preview = app.simulation(on_host.clone())?;
    let found = preview.with(|sim| {
        let found = sim.preview_hierarchy(throttled(patches_found))?;
        // creates the views
        sim.finish_setup()?;
        Ok::<_, Error>(found)
    })?;
    let preview = preview.engine();
    let shortage_note = check_memory(sim, preview)?;
    let mut text = hierarchy(preview) + &memory_of(preview) + &shortage_note;
    if found.is_truncated {
        text += "no further estimate: the finer levels or the root grid have too many patches\n";
        return Ok(text);
    }
    let particles = particle_demand(&preview.world, 1, 1).into_iter();
    let particles: u64 = particles.map(|kind| kind.count).sum();
    let is_small =
        particles == 0 || (particles <= rates::MAX_CREATED_PARTICLES && shortage_note.is_empty());
    let sample = found.finest_sample;
    let (own, mut note) = first_steps(app, on_host, preview, found, is_small)?;
    if sample > 1 {
        note += &format!(
            "the step of the finest level is that of one in {sample} octets of its patches; the state of the others was not evaluated\n"
        );
    }
    let steps = Steps::new(preview, own);
    text += &output(preview, &steps);
    text += &views(preview, &steps);
    let size = RunSize::of(preview);
    let rate = match rate {
        Some(cells_per_second) => Some(Rate {
            cells_per_second,
            origin: "--rate".into(),
        }),
        None => rates::expected(app, deck, simulation, size, is_small),
    };
    Ok(text + &steps.described(rate) + &note)
}

/// Returns the time step that each level allows. Limits that need whole levels are evaluated if the initial state is small enough to be
/// created; otherwise a note names the missing limits.
fn first_steps(
    app: &App,
    deck: Deck,
    preview: &engine::Engine,
    found: HierarchyPreview,
    is_small: bool,
) -> Result<(Vec<f64>, String), CommandError> {
    if found.unknown_limits.is_empty() {
        return Ok((found.steps, String::new()));
    }
    let topology = preview.world.resource::<Topology>();
    let all: usize = (0..=topology.finest())
        .map(|level| patches(topology, level))
        .sum();
    if all > MAX_CREATED_PATCHES || !is_small {
        let names = found.unknown_limits.join(", ");
        let note = format!(
            "these steps do not include the limit by {names}, which needs whole levels; run with time.max_steps = 1 to see it\n"
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

/// Returns the number of patches of a level.
fn patches(topology: &Topology, level: usize) -> usize {
    match level {
        0 => topology.domain.root.iter().map(|&n| n as usize).product(),
        level => topology.rows(level).len(),
    }
}

/// Reports whether the estimated hierarchy fits into memory; returns an empty text if it does.
fn check_memory(sim: &engine::Engine, preview: &engine::Engine) -> Result<String, Error> {
    let world = &preview.world;
    if let Some(shortage) = &world.resource::<MemoryGuard>().first_cap {
        let capped = world.resource::<MemoryGuard>().capped;
        return Ok(format!(
            "{capped} patches are not refined because memory is too small: {}\n",
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
            return Ok(format!("a run would not start ({coarser}): {shortage}\n"));
        }
    }
    Ok(String::new())
}

/// Describes the initial hierarchy and the memory of its fields.
fn hierarchy(sim: &engine::Engine) -> String {
    let (patch, topology) = (memory::patch_bytes(sim), sim.world.resource::<Topology>());
    let mut text = format!(
        "initial hierarchy: {} per patch for all fields and banks, {} precision\n\nlevel   patches        cells      memory\n",
        memory::format_bytes(patch),
        sim.precision()
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

/// Estimates the memory of the run on one rank, and on several ranks with halo patches.
fn memory_of(sim: &engine::Engine) -> String {
    let (world, topology) = (&sim.world, sim.world.resource::<Topology>());
    let levels = 0..=topology.max_level;
    let rows = levels.map(|level| patches(topology, level)).sum();
    let particles = memory::particle_memory(sim, rows);
    let consumers = match particles.is_empty() {
        true => "fields and tables",
        false => "fields, tables and particles",
    };
    let mut text = particles.iter().fold("\n".to_string(), |text, line| {
        format!("{text}memory of {line}\n")
    });
    let _ = writeln!(
        text,
        "memory of {consumers}: {} on one rank, which run.memory_limit counts for any number of ranks; with halo patches \
         about",
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
            "  {ranks:>4} ranks: {part:>11} per rank, {all:>11} in total"
        );
    }
    text
}
