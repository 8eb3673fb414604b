//! Feedback: stars give mass, momentum, energy and metals back to the gas.
//!
//! `event_sources.rs` says when stars have events, and `kinds.rs` what each of the 27 cells around an event gets. `targets.rs` finds these
//! cells on all levels. Each rank changes its own cells, in the order of the events, so that results do not depend on ranks. `diagnostics.rs` does not exist: the columns are those
//! of a budget.

mod config;
mod event_sources;
mod kinds;
mod systems;
mod targets;

pub use config::{EventRateConfig, FeedbackConfig, WindConfig};
pub use kinds::{
    FeedbackEvent, FeedbackKinds, Injection, InjectionFn, Injections, Surroundings, kinetic,
    mechanical, shell_radius, terminal_momentum, thermal,
};

use crate::births::{ParticleSelection, ParticlesOnDemand};
use crate::fields::{Gas, GasModel};
use crate::order::{Advance, Limit};
use crate::units::Units;
use event_sources::{EventSource, blown_mass, random_events};
use nestar_engine::comm::DiagnosticColumns;
use nestar_engine::data::Field;
use nestar_engine::step::Catalogue;
use nestar_engine::{Engine, Error, Plugin};
use systems::{FeedbackRule, GIVEN, RootStep, SCALARS, explode_stars, limit_by_explosions};

/// Plugin for the table `[feedback]`.
pub struct Feedback;

impl Plugin for Feedback {
    fn name(&self) -> &str {
        "feedback"
    }

    fn after(&self) -> &[&str] {
        &["particles", "cooling", "chemistry", "star_formation"]
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.world.init_resource::<FeedbackKinds>();
        Ok(())
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("feedback") {
            return Ok(());
        }
        let config: FeedbackConfig = sim.deck.table("feedback")?;
        let kinds = sim.world.resource::<FeedbackKinds>().clone().0;
        let words: Vec<&str> = kinds.iter().map(|(word, _)| *word).collect();
        config.check(sim, &words)?;
        sim.allow_births(&config.species)?;
        // times of explosions are counted by these from the start of a run
        sim.keep_keys(&["feedback.delay", "feedback.interval"]);
        let model = sim.world.resource::<GasModel>();
        let metal = model.scalars.iter().position(|scalar| scalar == "metal");
        let metal = metal.map(|n| model.first_scalar() + n);
        let units = Units::of(sim, "feedback")?;
        let sources = sources(sim, &config, &kinds)?;
        let budget = sim.register_budget("feedback", &GIVEN)?;
        for (n, name) in GIVEN.into_iter().enumerate() {
            let unit = [
                "1",
                "mass",
                "mass",
                "mass*length**2/time**2",
                "mass*length**2/time**2",
            ][n];
            DiagnosticColumns::set_units(&mut sim.world, format!("feedback_{name}"), unit);
        }
        sim.world.insert_resource(FeedbackRule {
            interval: config
                .interval
                .or(config.delay.map(|delay| 0.1 * delay))
                .unwrap_or(f64::INFINITY),
            species: config.species,
            sources,
            budget,
            metal,
            units,
        });
        sim.world.init_resource::<RootStep>();
        sim.system_in(Limit::Propose, limit_by_explosions);
        sim.system_in(Advance::Sources, explode_stars);
        let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
        catalogue
            .add("source", "feedback", "Supernovae and winds of stars.")
            .of(Gas::NAME);
        Ok(())
    }
}

/// Returns the sources of events, in the order of their numbers, and prepares their functions.
fn sources(
    sim: &mut Engine,
    config: &FeedbackConfig,
    kinds: &[(&'static str, InjectionFn)],
) -> Result<Vec<EventSource>, Error> {
    let kind = |name: &str| {
        let found = kinds.iter().find(|(word, _)| *word == name);
        found.map_or(thermal as InjectionFn, |(_, kind)| *kind)
    };
    let own = kind(&config.kind);
    let mut sources: Vec<EventSource> = EventSource::at_age(config, own).into_iter().collect();
    for (n, rate) in config.rates.iter().enumerate() {
        let stream = sim.random_stream(&format!("feedback rate {n}"), config.seed)?;
        sources.push(EventSource::at_random(rate, stream, own));
    }
    let winds = config.winds.iter();
    sources.extend(winds.map(|wind| EventSource::wind(wind, kind(&wind.kind))));
    let species = &config.species;
    if !config.rates.is_empty() {
        ParticleSelection::of(sim, species, &SCALARS)?.prepare_collect::<random_events>()?;
    }
    if !config.winds.is_empty() {
        ParticleSelection::of(sim, species, &SCALARS)?.prepare_collect::<blown_mass>()?;
    }
    Ok(sources)
}
