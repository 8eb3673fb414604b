//! Systems of star formation.

use super::cells::{FormingStar, SchmidtRule, gathering_gas, schmidt_stars};
use super::config::SCALARS;
use crate::births::{NewParticle, ParticleBirths};
use crate::fields::{Gas, GasLosses, GasModel};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::Error;
use nestar_engine::data::{
    CellAddress, CellSource, DerivedInputs, LevelRows, Parameters, RecordedCell,
};
use nestar_engine::mesh::{LevelClock, Topology, parallel};
use nestar_engine::step::{Read, Write};
use std::sync::Arc;

/// A cell in which a star forms.
pub(super) type StarCell = RecordedCell<FormingStar<f64>>;

/// The rule of star formation of a run.
#[derive(Resource)]
pub(super) struct StarFormationRule {
    pub species: String,
    pub parameters: Parameters<SchmidtRule<f64>>,
    pub numbers: Arc<DerivedInputs>,
}

impl StarFormationRule {
    /// Returns the parameters of a step of a level.
    fn in_step(&self, rows: &LevelRows, clock: &LevelClock) -> SchmidtRule<f64> {
        let mut rule = *self.parameters.at(rows.numbers_in_step());
        rule.masses.stream = rule.masses.stream.at_step(clock.step);
        rule
    }
}

/// Cells of the level in which gas is dense and moves as stars need it, in the order of rows and cells.
#[derive(Resource, Default)]
pub(super) struct GatheringCells(Vec<CellAddress>);

/// Finds the dense cells of the level in which the gas converges and is bound, as far as the deck asks for it.
pub(super) fn find_gathering_gas(
    rows: LevelRows,
    clock: Res<LevelClock>,
    gas: Read<Gas, 1>,
    rule: Res<StarFormationRule>,
    mut gathering: ResMut<GatheringCells>,
) {
    let velocity = rule.in_step(&rows, &clock).velocity;
    let found = gas.collect::<gathering_gas>(&rows, (), &velocity);
    gathering.0 = found.iter().map(|dense| dense.at).collect();
    gathering.0.sort_unstable();
}

/// Turns gas of the level into stars at the end of its step.
pub(super) fn form_stars(
    rows: LevelRows,
    clock: Res<LevelClock>,
    rule: Res<StarFormationRule>,
    gathering: Option<Res<GatheringCells>>,
    mut gas: Write<Gas>,
    mut stars: StarBirths,
) -> Result<(), Error> {
    let parameters = rule.in_step(&rows, &clock);
    let mut found = gas.collect::<schmidt_stars>(&rows, &*rule.numbers, &parameters);
    if let Some(gathering) = gathering {
        let is_there = |star: &StarCell| gathering.0.binary_search(&star.at).is_ok();
        found.retain(is_there);
    }
    stars.form(&rows, &mut gas, &rule.species, &found)
}

/// Turns gas into stars, for systems of [`Advance::Predict`](crate::order::Advance::Predict). All ranks make the same calls.
#[derive(SystemParam)]
pub struct StarBirths<'w> {
    clock: Res<'w, LevelClock>,
    topology: Res<'w, Topology>,
    model: Res<'w, GasModel>,
    losses: Option<ResMut<'w, GasLosses>>,
    births: ParticleBirths<'w>,
}

impl StarBirths<'_> {
    /// Forms stars of a species in cells of the current level, one in each: the gas keeps the part `kept` of all its conserved quantities.
    /// Collective, also without stars.
    ///
    /// # Errors
    /// A star is refused by [`ParticleBirths::add`]; the remaining gas is unphysical; the device or another rank has failed.
    pub fn form(
        &mut self,
        rows: &LevelRows,
        gas: &mut Write<Gas>,
        species: &str,
        found: &[RecordedCell<FormingStar<f64>>],
    ) -> Result<(), Error> {
        let (level, end) = (self.clock.level, self.clock.end);
        let volume = self.topology.domain.cell_volume(level);
        let scalars = self.births.species().named(species)?.scalars.iter();
        let scalars = scalars.map(|name| SCALARS.iter().position(|own| own == name));
        let scalars: Vec<Option<usize>> = scalars.collect();
        let stars: Vec<NewParticle> =
            parallel::map(found, |star| new_star(star, volume, end, &scalars));
        if self.births.add(species, &stars)?.is_empty() {
            return Ok(());
        }
        if let Some(losses) = &mut self.losses {
            losses.note(level);
        }
        let cells: Vec<CellAddress> = found.iter().map(|star| star.at).collect();
        let mut states = gas.cells(level, &cells)?;
        let count = CellSource::count(&*gas);
        let model = &self.model;
        parallel::for_each_chunk(&mut states, count, 256, |n, state| {
            model.reduce(state, found[n].record.kept);
        });
        match gas.set_cells(rows, level, &cells, &states) {
            None => Ok(()),
            Some(n) => Err(Error::Setup(format!(
                "the gas in cell {} of the patch {:?} on level {level} is unphysical after the formation of a star: reduce \
                 `star_formation.most_of_cell`, or use `hydro.dual_energy`",
                cells[n].cell,
                self.topology.index(cells[n].row),
            ))),
        }
    }
}

/// Returns the star of a cell. `scalars` are the places in [`SCALARS`] of the scalars of its species.
fn new_star(star: &StarCell, volume: f64, time: f64, scalars: &[Option<usize>]) -> NewParticle {
    let mass = star.record.taken * volume;
    let known = [time, mass, star.record.metallicity];
    NewParticle {
        row: star.at.row,
        offset: NewParticle::centre_of(star.at.cell),
        velocity: star.record.velocity,
        mass,
        scalars: scalars
            .iter()
            .map(|n| n.map_or(0.0, |n| known[n]))
            .collect(),
    }
}
