//! `nestar check` and `nestar order`.

use super::{DeckArgs, Failure, memory, print};
use nestar::engine::Error;
use nestar::engine::field::Stores;
use nestar::engine::mesh::{CELLS, Topology};
use nestar::{Simulation, engine, order};
use std::fmt::Write as _;

/// Prints the resolved deck, and what a run of it would do as comments, so that the whole is a deck again.
pub fn check(arguments: &DeckArgs) -> Result<(), Failure> {
    let mut sim = Simulation::new(arguments.read(&[])?)?;
    let text = sim.with(|sim| {
        let order = order::describe(sim)?;
        let hierarchy = hierarchy(sim)?;
        let notes = format!("\n{hierarchy}\norder of a step\n\n{order}");
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

/// The initial hierarchy with the memory of its fields: built, as far as it fits.
fn hierarchy(sim: &mut engine::Engine) -> Result<String, Error> {
    let patch = memory::patch_bytes(sim);
    let unfinished = match sim.initialise() {
        Err(Error::Memory(shortage)) => {
            format!("the hierarchy was not built to its end: {shortage}\n")
        }
        other => other.map(|()| String::new())?,
    };
    let topology = sim.world.resource::<Topology>();
    let mut text = format!(
        "{unfinished}initial hierarchy: {} a patch for all fields in two banks, {} precision\n\nlevel   patches        cells      memory\n",
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
    let fields = sim.world.resource::<Stores>().all();
    let reserved: usize = fields
        .iter()
        .map(|field| field.of(&sim.world).bytes())
        .sum();
    let _ = writeln!(
        text,
        "\nreserved by the pools: {}; resident with all else: {}",
        memory::shown(reserved as u64),
        memory::shown(engine::run::diagnostics::resident_bytes())
    );
    Ok(text)
}
