//! Adaptive mesh refinement criteria.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the only system flags patches and is in this file, and the engine
//! counts patches.

pub mod config;
mod open;

use crate::fields::quantities::{compile, vocabulary};
use crate::fields::{Gas, GasModel, GravitationalConstant};
use crate::order::Flag;
use bevy_ecs::prelude::*;
pub use config::{Criterion, MeshConfig};
use nestar_deck::{Deck, DeckError};
use nestar_engine::data::criteria::{CellCriterion, CellQuantity, CriteriaList, CriterionFn};
use nestar_engine::data::{LevelRows, Patches};
use nestar_engine::mesh::RefinementFlags;
use nestar_engine::step::{Read, Settings};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::criteria::cell;
use std::sync::Arc;

/// Plugin that compiles the criteria of the table `[mesh]` and flags patches.
pub struct Refinement {
    /// The table `[mesh]`.
    pub config: MeshConfig,
}

impl Plugin for Refinement {
    fn name(&self) -> &str {
        "refinement"
    }

    fn after(&self) -> &[&str] {
        &["hydro"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let model = sim.world.resource::<GasModel>().clone();
        let criteria = Criteria::compile(&self.with_gravity(sim)?, &sim.deck, &model)?;
        let reach = criteria.0.reach();
        if self.config.max_level > 0 {
            let list = criteria.0.clone();
            sim.check_fields::<Gas>("criteria", move |gas, _| {
                gas.prepare_criteria(&list);
                Ok(())
            });
        }
        sim.world.insert_resource(criteria);
        if let Some(text) = &self.config.open {
            open::register(sim, text, &model)?;
        }
        sim.system_in(Flag::Criteria, flag_by_criteria)
            .halo_width::<Gas>(reach);
        Ok(())
    }
}

impl Refinement {
    /// Returns the configuration with Newton's constant of the table `[gravity]` where a criterion needs it and gives none.
    ///
    /// # Errors
    /// The deck has no such table.
    fn with_gravity(&self, sim: &Engine) -> Result<MeshConfig, DeckError> {
        let newton = sim.world.get_resource::<GravitationalConstant>();
        let mut config = self.config.clone();
        for (n, criterion) in config.refine.iter_mut().enumerate() {
            if let Criterion::Jeans {
                gravity: gravity @ None,
                ..
            } = criterion
            {
                let missing = || {
                    let why = "the criterion `jeans` needs Newton's constant: add a table [gravity], or give `gravity` here";
                    sim.deck.error_at(&format!("mesh.refine[{n}]"), why)
                };
                *gravity = Some(newton.ok_or_else(missing)?.0);
            }
        }
        Ok(config)
    }
}

/// Criteria of a run.
#[derive(Resource)]
struct Criteria(Arc<CriteriaList>);

impl Criteria {
    /// Compiles the criteria of `config`.
    ///
    /// # Errors
    /// A field or formula is invalid.
    pub fn compile(config: &MeshConfig, deck: &Deck, model: &GasModel) -> Result<Self, DeckError> {
        let levels = config.max_level as usize;
        let list = config.refine.iter().enumerate();
        let marks = list.map(|(n, criterion)| {
            let of = match criterion.text() {
                Some((key, text)) => {
                    vec![compile(
                        deck,
                        &format!("mesh.refine[{n}].{key}"),
                        text,
                        vocabulary(model),
                    )?]
                }
                None => {
                    if matches!(criterion, Criterion::Current { .. }) && model.magnetic.is_none() {
                        let why = "the criterion `current` needs a magnetic field: add a table [mhd], or remove it";
                        return Err(deck.error_at(&format!("mesh.refine[{n}]"), why));
                    }
                    named(model, criterion.names())
                }
            };
            Ok(CellCriterion {
                function: criterion.function(),
                of,
                levels: (0..levels).map(|l| criterion.parameters(l)).collect(),
            })
        });
        let marks = marks.collect::<Result<_, DeckError>>()?;
        Ok(Self(Arc::new(CriteriaList::new(marks))))
    }
}

/// Returns quantities by name.
fn named(model: &GasModel, names: &[&str]) -> Vec<CellQuantity> {
    let all = vocabulary(model);
    let find = |name: &&str| all.iter().find(|(n, _)| n == name);
    let found = names.iter().filter_map(find);
    found.map(|(_, n)| CellQuantity::Named(n.clone())).collect()
}

impl Criterion {
    /// Returns the function that marks a cell.
    fn function(&self) -> CriterionFn {
        match self {
            Self::Threshold { below: true, .. } => CriterionFn::of::<cell::below>(),
            Self::Threshold { .. } => CriterionFn::of::<cell::above>(),
            Self::Gradient { .. } => CriterionFn::of::<cell::gradient>(),
            Self::Lohner { .. } => CriterionFn::of::<cell::lohner>(),
            Self::Vorticity { .. } => CriterionFn::of::<cell::vorticity>(),
            Self::Current { .. } => CriterionFn::of::<cell::current>(),
            Self::Jeans { .. } => CriterionFn::of::<cell::jeans>(),
            Self::Box { .. } => CriterionFn::of::<cell::overlaps_box>(),
            Self::Sphere { .. } => CriterionFn::of::<cell::overlaps_sphere>(),
            Self::Formula { .. } => CriterionFn::of::<cell::is_nonzero>(),
        }
    }

    /// Returns key and text of the field or formula that it reads, if any.
    fn text(&self) -> Option<(&str, &str)> {
        match self {
            Self::Threshold { field, .. }
            | Self::Gradient { field, .. }
            | Self::Lohner { field, .. } => Some(("field", field)),
            Self::Formula { when } => Some(("when", when)),
            _ => None,
        }
    }

    /// Returns the names of the built-in quantities that it reads.
    fn names(&self) -> &[&str] {
        match self {
            Self::Vorticity { .. } => &["velocity_x", "velocity_y", "velocity_z"],
            Self::Current { .. } => &["magnetic_x", "magnetic_y", "magnetic_z"],
            Self::Jeans { .. } => &["density", "sound_speed"],
            _ => &[],
        }
    }

    /// Returns the parameters on a level; `None`: the criterion does not apply there.
    fn parameters(&self, level: usize) -> Option<Vec<f64>> {
        let up_to = |finest: Option<u32>| finest.is_none_or(|finest| level < finest as usize);
        Some(match self {
            Self::Threshold { threshold, .. }
            | Self::Gradient { threshold, .. }
            | Self::Vorticity { threshold } => vec![threshold.at(level)?],
            Self::Current { threshold, least } => vec![threshold.at(level)?, *least],
            Self::Lohner {
                threshold, filter, ..
            } => vec![threshold.at(level)?, *filter],
            Self::Jeans { threshold, gravity } => {
                // `with_gravity` gives the default
                vec![threshold.at(level)?, gravity.unwrap_or(1.0)]
            }
            Self::Box { left, right, level } if up_to(*level) => [*left, *right].concat(),
            Self::Sphere {
                centre: [x, y, z],
                radius,
                level,
            } if up_to(*level) => vec![*x, *y, *z, *radius],
            Self::Box { .. } | Self::Sphere { .. } => return None,
            Self::Formula { .. } => Vec::new(),
        })
    }
}

/// Flags the patches of the level.
fn flag_by_criteria(
    rows: LevelRows,
    gas: Read<Gas>,
    criteria: Res<Criteria>,
    settings: Res<Settings>,
    mut patches: Patches<&mut RefinementFlags>,
) -> Result<(), Error> {
    let buffer = settings.mesh.flag_buffer[rows.level()] as usize;
    let gas = gas.get(criteria.0.reach())?;
    let marked = gas.mark_by_list(&rows, buffer, &criteria.0);
    for ((_, mut flags), sectors) in patches.iter_mut().zip(marked) {
        flags.refine_sectors(sectors);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
