//! The finest level that is open at a time: the key `mesh.open`.

use crate::fields::GasModel;
use crate::fields::quantities::{compile, vocabulary};
use crate::order::Flag;
use bevy_ecs::prelude::*;
use nestar_engine::data::criteria::{CellQuantity, NamedQuantity};
use nestar_engine::data::level::geometry;
use nestar_engine::data::{LevelRows, Patches};
use nestar_engine::mesh::{CELLS, RefinementFlags};
use nestar_engine::{Engine, Error};

/// The key.
const KEY: &str = "mesh.open";
/// Names that depend on the cell.
const OF_CELL: [&str; 6] = ["x", "y", "z", "r", "level", "width"];

/// The finest level that is open, as a function of the clock.
#[derive(Resource)]
struct OpenLevel {
    formula: CellQuantity,
    text: String,
}

/// Adds the system that removes flags.
///
/// # Errors
/// The formula is invalid, or depends on more than the time.
pub(super) fn register(sim: &mut Engine, text: &str, model: &GasModel) -> Result<(), Error> {
    let of_time = |(name, number): &(String, NamedQuantity)| {
        number.function.is_of_place() && !OF_CELL.contains(&&**name)
    };
    let names = vocabulary(model).into_iter().filter(of_time).collect();
    let formula = compile(&sim.deck, KEY, text, names)?;
    sim.world.insert_resource(OpenLevel {
        formula,
        text: text.into(),
    });
    sim.system_in(Flag::Close, close_levels);
    Ok(())
}

impl OpenLevel {
    /// Returns the finest level that is open at the time of the level.
    ///
    /// # Errors
    /// The formula is not a number.
    fn at(&self, rows: &LevelRows) -> Result<f64, Error> {
        let view = rows.view();
        let clock = view.clock;
        let domain = &view.topology.domain;
        let geometry = geometry(domain, clock.level, [clock.time, 0.0], clock.numbers);
        let mut values = [0.0; CELLS];
        self.formula.fill_patch(&[], [0; 3], &geometry, &mut values);
        match values[0].is_nan() {
            false => Ok(values[0].floor()),
            true => Err(Error::Setup(format!(
                "the formula {KEY} = {:?} is not a number at t = {}",
                self.text, clock.time
            ))),
        }
    }
}

/// Removes the flags of a level if the next one is not open.
fn close_levels(
    rows: LevelRows,
    open: Res<OpenLevel>,
    mut patches: Patches<&mut RefinementFlags>,
) -> Result<(), Error> {
    if (rows.level() as f64) < open.at(&rows)? {
        return Ok(());
    }
    for (_, mut flags) in patches.iter_mut() {
        *flags = RefinementFlags::default();
    }
    Ok(())
}
