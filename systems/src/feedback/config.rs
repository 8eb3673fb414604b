//! Defines the table `[feedback]`.

use crate::births::SpeciesMap;
use crate::fields::GasModel;
use nestar_deck::deck;
use nestar_engine::mesh::Topology;
use nestar_engine::{Engine, Error};

/// Supernovae of the stars of a species. A star explodes `delay` after its birth, with one supernova per `mass_per_event` of its
/// mass at birth: its gas gets mass, momentum, energy and metals. Needs a table `[units]`. The species has the scalars `birth_time`
/// and `birth_mass`, which `[star_formation]` fills in.
#[deck]
pub struct FeedbackConfig {
    /// Species of the stars.
    #[key(default = "stars".into())]
    pub species: String,
    /// What a supernova gives to the 27 cells around it. `thermal`: equal shares of heat, for resolved remnants. `mechanical`: momentum
    /// away from the star, at most that of a remnant that has radiated its heat; heat where cells resolve the remnant (Kimm & Cen
    /// 2014; Hopkins et al. 2018). Programs may add words.
    #[key(default = "mechanical".into())]
    pub kind: String,
    /// Age of a star at its supernovae.
    #[key(unit = "time", above = 0.0)]
    pub delay: f64,
    /// Stars explode at multiples of this time, at the first one at which they have reached the age `delay`. All levels meet at these times,
    /// so that their next steps follow from the hot gas. Default: a tenth of `delay`.
    #[key(unit = "time", above = 0.0)]
    pub interval: Option<f64>,
    /// Mass of stars at birth per supernova.
    #[key(unit = "mass", above = 0.0)]
    pub mass_per_event: f64,
    /// Energy of a supernova.
    #[key(unit = "mass*length**2/time**2", min = 0.0)]
    pub energy: f64,
    /// Mass that a supernova returns to the gas.
    #[key(default = 0.0, unit = "mass", min = 0.0)]
    pub ejecta: f64,
    /// Mass of metals in `ejecta`, for the scalar `metal` of the gas.
    #[key(default = 0.0, unit = "mass", min = 0.0)]
    pub metals: f64,
}

impl FeedbackConfig {
    /// Checks that other tables provide what feedback needs.
    ///
    /// # Errors
    /// A table, the species or a scalar is missing; yields exceed the mass of the stars; gas has no energy.
    pub(super) fn check(&self, sim: &Engine, kinds: &[&str]) -> Result<(), Error> {
        let deck = &sim.deck;
        let refuse = |key: &str, why: String| Err(deck.error_at(key, why).into());
        if deck.units()?.is_dimensionless() {
            let why = "feedback needs physical units: add a table [units]";
            return refuse("feedback", why.into());
        }
        if deck.has("cosmology") {
            let why = "feedback is not supported in an expanding universe: remove one of the tables [feedback] and [cosmology]";
            return refuse("feedback", why.into());
        }
        if !kinds.contains(&&*self.kind) {
            let why = format!(
                "there is no kind {:?} of feedback: choose one of {kinds:?}",
                self.kind
            );
            return refuse("feedback.kind", why);
        }
        let model = sim.world.resource::<GasModel>();
        if model.frozen || !model.equation.has_energy() {
            let (key, why) = match model.frozen {
                true => (
                    "hydro.frozen",
                    "supernovae move the gas: remove `hydro.frozen`, or the table [feedback]",
                ),
                false => (
                    "hydro.eos",
                    "supernovae heat the gas: choose an equation of state with an energy, or remove the table [feedback]",
                ),
            };
            return refuse(key, why.into());
        }
        let width = sim.world.resource::<Topology>().domain.cell_width(0);
        let are_cubic = width.iter().all(|w| (w / width[0] - 1.0).abs() < 1e-6);
        if self.kind == "mechanical" && !are_cubic {
            let why = "mechanical feedback needs cubic cells: choose `domain.cells` in proportion to the edges, or `feedback.kind = \"thermal\"`";
            return refuse("domain.cells", why.into());
        }
        self.check_yields(sim)?;
        self.check_species(sim)
    }

    /// Checks the ejecta.
    ///
    /// # Errors
    /// They exceed the mass of the stars, or have metals that the gas does not know.
    fn check_yields(&self, sim: &Engine) -> Result<(), Error> {
        let refuse = |key: &str, why: &str| Err(sim.deck.error_at(key, why).into());
        let model = sim.world.resource::<GasModel>();
        if self.ejecta >= self.mass_per_event {
            let why = "a supernova must return less than `mass_per_event`, so that the star keeps some mass";
            return refuse("feedback.ejecta", why);
        }
        if self.metals > self.ejecta {
            let why = "a supernova cannot return more metals than `ejecta`";
            return refuse("feedback.metals", why);
        }
        if self.metals > 0.0 && !model.scalars.iter().any(|scalar| scalar == "metal") {
            let why = "the gas has no scalar `metal`: add it to `hydro.scalars`, or remove the key";
            return refuse("feedback.metals", why);
        }
        let metal = model.scalars.iter().position(|scalar| scalar == "metal");
        if metal.is_some_and(|n| model.sets.of(model.first_scalar() + n) > 0) {
            let why = "the scalar `metal` belongs to a set whose fractions sum to 1, which ejecta do not keep: give it in `hydro.scalars` alone";
            return refuse("feedback.metals", why);
        }
        Ok(())
    }

    /// Checks that the species of the stars exists and has the scalars that feedback reads.
    ///
    /// # Errors
    /// It does not.
    fn check_species(&self, sim: &Engine) -> Result<(), Error> {
        let refuse = |key: &str, why: String| Err(sim.deck.error_at(key, why).into());
        let name = &self.species;
        let Some(species) = sim.world.get_resource::<SpeciesMap>() else {
            let why = "stars are particles: add a table [particles.species.stars] with scalars = [\"birth_time\", \"birth_mass\"]";
            return refuse("feedback", why.into());
        };
        let Ok(stars) = species.named(name) else {
            let known: Vec<&str> = species.0.iter().map(|own| &*own.name).collect();
            let why = format!(
                "there is no species {name:?} (there are {known:?}): name the species of the stars"
            );
            return refuse("feedback.species", why);
        };
        let missing = ["birth_time", "birth_mass"].iter().find(|scalar| {
            let mut own = stars.scalars.iter();
            own.all(|own| own != **scalar)
        });
        match missing {
            None => Ok(()),
            Some(scalar) => {
                let key = format!("particles.species.{name}.scalars");
                let why =
                    format!("feedback needs the scalar `{scalar}` of the stars: add it to `{key}`");
                refuse(&key, why)
            }
        }
    }
}
