//! Sources of the gas by formulas of the deck.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the plugin has one system, which `build` contains, and no columns.

mod config;

pub use config::SourcesConfig;

use crate::fields::quantities::{compile, vocabulary_of_rates};
use crate::fields::{Gas, GasModel};
use crate::order::{Advance, Split};
use crate::register::Register;
use bevy_ecs::prelude::*;
use nestar_deck::{Deck, DeckError};
use nestar_device::{Place, Real, device};
use nestar_engine::data::criteria::CellQuantity;
use nestar_engine::data::{CellSubcycle, Components, DerivedInputs, LevelRows, Pool};
use nestar_engine::step::{Replays, Write};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::hydro::eos::{apply_kick, is_physical};
use nestar_kernels::hydro::{Conserved, barotropic};
use nestar_kernels::mesh::subcycle::{DONE, FAILED, Outcome};
use std::sync::Arc;

/// Plugin for the table `[sources]`.
pub struct Sources;

/// Accelerations along x, y, z and heating per volume over a step; only heating changes the internal energy. Fails if
/// the gas is unphysical afterwards.
#[device]
fn sources<R: Real>(u: (Conserved<R>, [R; 4]), at: &Place<R>) -> Outcome<Conserved<R>> {
    let (before, rates) = u;
    let kick = [rates[0] * at.dt, rates[1] * at.dt, rates[2] * at.dt];
    let mut after = apply_kick(before, kick);
    after.energy += rates[3] * at.dt;
    let v = after.momentum;
    let sound = is_physical(&[after.density, v[0], v[1], v[2], after.energy]);
    let status = if sound { DONE } else { FAILED };
    Outcome::<Conserved<R>> {
        state: after,
        status,
    }
}

/// Accelerations along x, y, z over a step of gas without energy, and a heating of 0. Fails if the gas is unphysical afterwards.
#[device]
fn accelerations<R: Real>(u: ([R; 4], [R; 4]), at: &Place<R>) -> Outcome<[R; 4]> {
    let (before, rates) = u;
    let mut after = before;
    for axis in 0..3 {
        after[1 + axis] = before[1 + axis] + before[0] * (rates[axis] * at.dt);
    }
    let sound = barotropic::is_physical(&after);
    let status = if sound { DONE } else { FAILED };
    Outcome::<[R; 4]> {
        state: after,
        status,
    }
}

/// Time in which gas at rest is accelerated across half a cell width along an axis, times the square root of `limit`;
/// infinite without acceleration or if it is not a number, which [`sources`] reports.
#[device]
fn fall_time<R: Real>(u: (R, [R; 4]), at: &Place<R>, limit: R) -> R {
    let (_, rates) = u;
    let mut slowest = R::INFINITY;
    for axis in 0..3 {
        let a = rates[axis].abs();
        if a > 0.0 {
            slowest = slowest.min(limit * at.width[axis] / a);
        }
    }
    slowest.sqrt()
}

impl SourcesConfig {
    /// Compiles the accelerations and the heating.
    fn numbers(&self, deck: &Deck, model: &GasModel) -> Result<DerivedInputs, DeckError> {
        let texts = [
            ("acceleration_x", &self.acceleration_x),
            ("acceleration_y", &self.acceleration_y),
            ("acceleration_z", &self.acceleration_z),
            ("heating", &self.heating),
        ];
        let compiled = texts.map(|(key, text)| {
            let names = vocabulary_of_rates(model);
            compile(deck, &format!("sources.{key}"), text, names)
        });
        let list: Result<Vec<CellQuantity>, DeckError> = compiled.into_iter().collect();
        list.map(DerivedInputs::new)
    }

    /// Returns `true` if an acceleration may be different from 0.
    fn accelerates(&self) -> bool {
        let texts = [
            &self.acceleration_x,
            &self.acceleration_y,
            &self.acceleration_z,
        ];
        texts.iter().any(|text| text.trim() != "0")
    }
}

impl Plugin for Sources {
    fn name(&self) -> &str {
        "sources"
    }

    fn after(&self) -> &[&str] {
        &["hydro"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("sources") {
            return Ok(());
        }
        let config: SourcesConfig = sim.deck.table("sources")?;
        let model = sim.world.resource::<GasModel>();
        let numbers = Arc::new(config.numbers(&sim.deck, model)?);
        if config.limit > 0.0 && config.accelerates() {
            sim.with_numbers(&numbers)
                .limit::<Gas, fall_time>("acceleration", [config.limit]);
        }
        match sim.world.resource::<GasModel>().equation.has_energy() {
            true => register::<sources>(sim, numbers, config.split),
            false => register::<accelerations>(sim, numbers, config.split),
        }
        Ok(())
    }
}

/// Registers the system that applies `M`.
fn register<M: CellSubcycle<Parameters = [f64; 0]>>(
    sim: &mut Engine,
    numbers: Arc<DerivedInputs>,
    split: bool,
) {
    let read = Some(numbers.clone());
    Replays::add::<Gas, M>(&mut sim.world, Components::default(), read, 1, [].into());
    (sim.with_numbers(&numbers)).prepare::<Gas>(M::ITEM.name, Pool::prepare_subcycle::<M>);
    let act = move |rows: LevelRows, mut gas: Write<Gas>| {
        gas.iterate::<M>(&rows, &*numbers, 1, &[]);
    };
    let act = IntoSystem::into_system(act).with_name("formulas of [sources]");
    if split {
        sim.system_in(Split::Sources, act);
    } else {
        sim.system_in(Advance::Sources, act);
    }
}
