//! Defines the table `[feedback]`.

use crate::births::SpeciesMap;
use crate::fields::GasModel;
use nestar_deck::deck;
use nestar_engine::mesh::Topology;
use nestar_engine::{Engine, Error};

/// Supernovae of the stars of a species: `delay` after the birth of a star, with one supernova per `mass_per_event` of its mass at
/// birth, or at random ages by `rates`, or both. The gas around the star gets mass, momentum, energy and metals. Needs a table
/// `[units]`. The species has the scalars `birth_time` and `birth_mass`, which `[star_formation]` fills in.
#[deck]
pub struct FeedbackConfig {
    /// Species of the stars.
    #[key(default = "stars".into())]
    pub species: String,
    /// What a supernova gives to the 27 cells around it. `thermal`: equal shares of heat, for resolved remnants. `mechanical`: momentum
    /// away from the star, at most that of a remnant that has radiated its heat; heat where cells resolve the remnant (Kimm & Cen
    /// 2014; Hopkins et al. 2018). `kinetic`: momentum that has the whole energy, at any resolution. Programs may add words.
    #[key(default = "mechanical".into())]
    pub kind: String,
    /// Age of a star at its supernovae; needs `mass_per_event` and `energy`. Default: only the events of `rates`.
    #[key(unit = "time", above = 0.0)]
    pub delay: Option<f64>,
    /// Stars explode at multiples of this time, at the first one at which they have reached the age of an event. All levels meet at these
    /// times, so that their next steps follow from the hot gas. Default: a tenth of `delay`.
    #[key(unit = "time", above = 0.0)]
    pub interval: Option<f64>,
    /// Mass of stars at birth per supernova.
    #[key(unit = "mass", above = 0.0)]
    pub mass_per_event: Option<f64>,
    /// Energy of a supernova.
    #[key(unit = "mass*length**2/time**2", min = 0.0)]
    pub energy: Option<f64>,
    /// Mass that a supernova returns to the gas.
    #[key(default = 0.0, unit = "mass", min = 0.0)]
    pub ejecta: f64,
    /// Mass of metals in `ejecta`, for the scalar `metal` of the gas.
    #[key(default = 0.0, unit = "mass", min = 0.0)]
    pub metals: f64,
    /// Events at random ages, such as supernovae of type Ia.
    #[key(default = Vec::new())]
    pub rates: Vec<EventRateConfig>,
    /// Seed of the random numbers of `rates`.
    #[key(default = 0)]
    pub seed: u32,
}

/// Events of stars at random ages. The number of events of a star in a time has a Poisson distribution.
#[deck]
pub struct EventRateConfig {
    /// Ages of stars for `rate`, ascending. A star has no events before the first and after the last one.
    #[key(unit = "time")]
    pub age: Vec<f64>,
    /// Events per mass of stars at birth and time, at each age; linear in between.
    #[key(unit = "1/(mass*time)")]
    pub rate: Vec<f64>,
    /// Energy of an event.
    #[key(unit = "mass*length**2/time**2", min = 0.0)]
    pub energy: f64,
    /// Mass that an event returns to the gas, at most the mass of the star.
    #[key(default = 0.0, unit = "mass", min = 0.0)]
    pub ejecta: f64,
    /// Mass of metals in `ejecta`, for the scalar `metal` of the gas.
    #[key(default = 0.0, unit = "mass", min = 0.0)]
    pub metals: f64,
}

impl EventRateConfig {
    /// Returns the key that is wrong, with the reason.
    fn fault(&self) -> Option<(&'static str, &'static str)> {
        let ascends = self.age.windows(2).all(|pair| pair[0] < pair[1]);
        let is_positive = |all: &[f64]| all.iter().all(|x| x.is_finite() && *x >= 0.0);
        match () {
            () if self.age.len() < 2 || !ascends || !is_positive(&self.age) => {
                Some(("age", "give at least two ascending ages, not negative"))
            }
            () if self.rate.len() != self.age.len() => Some(("rate", "give one rate for each age")),
            () if !is_positive(&self.rate) => Some(("rate", "rates must not be negative")),
            () if self.metals > self.ejecta => {
                Some(("metals", "an event cannot return more metals than `ejecta`"))
            }
            () => None,
        }
    }
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
        if matches!(&*self.kind, "mechanical" | "kinetic") && !are_cubic {
            let why = format!(
                "{} feedback needs cubic cells: choose `domain.cells` in proportion to the edges, or `feedback.kind = \"thermal\"`",
                self.kind
            );
            return refuse("domain.cells", why);
        }
        self.check_times(sim)?;
        self.check_yields(sim)?;
        self.check_species(sim)
    }

    /// Checks the times of events.
    ///
    /// # Errors
    /// There are none, or a key that they need is missing or wrong.
    fn check_times(&self, sim: &Engine) -> Result<(), Error> {
        let refuse = |key: &str, why: &str| Err(sim.deck.error_at(key, why).into());
        for (n, rate) in self.rates.iter().enumerate() {
            if let Some((key, why)) = rate.fault() {
                let key = format!("feedback.rates[{n}].{key}");
                return refuse(&key, &format!("`{key}`: {why}"));
            }
        }
        match (self.delay, self.mass_per_event, self.energy) {
            (None, None, None) if self.rates.is_empty() => refuse(
                "feedback",
                "stars need events: give `delay`, `mass_per_event` and `energy`, or `rates`",
            ),
            (None, None, None) if self.interval.is_none() => refuse(
                "feedback",
                "events at random ages need `interval`, the time between two times of explosions",
            ),
            (None, None, None) | (Some(_), Some(_), Some(_)) => Ok(()),
            _ => refuse(
                "feedback",
                "supernovae at one age need `delay`, `mass_per_event` and `energy`",
            ),
        }
    }

    /// Checks the ejecta.
    ///
    /// # Errors
    /// They exceed the mass of the stars, or have metals that the gas does not know.
    fn check_yields(&self, sim: &Engine) -> Result<(), Error> {
        let refuse = |key: &str, why: &str| Err(sim.deck.error_at(key, why).into());
        let model = sim.world.resource::<GasModel>();
        if self.mass_per_event.is_some_and(|mass| self.ejecta >= mass) {
            let why = "a supernova must return less than `mass_per_event`, so that the star keeps some mass";
            return refuse("feedback.ejecta", why);
        }
        if self.metals > self.ejecta {
            let why = "a supernova cannot return more metals than `ejecta`";
            return refuse("feedback.metals", why);
        }
        if self.delay.is_none() && self.ejecta > 0.0 {
            let why = "belongs to the supernovae after a `delay`, which the deck does not give: give the ejecta of each of the `rates`";
            return refuse("feedback.ejecta", why);
        }
        let of_rates = self.rates.iter().enumerate();
        let of_rates =
            of_rates.map(|(n, rate)| (format!("feedback.rates[{n}].metals"), rate.metals));
        let mut all = [("feedback.metals".to_string(), self.metals)]
            .into_iter()
            .chain(of_rates);
        let Some((key, _)) = all.find(|(_, metals)| *metals > 0.0) else {
            return Ok(());
        };
        let Some(metal) = model.scalars.iter().position(|scalar| scalar == "metal") else {
            let why = "the gas has no scalar `metal`: add it to `hydro.scalars`, or remove the key";
            return refuse(&key, why);
        };
        if model.sets.of(model.first_scalar() + metal) > 0 {
            let why = "the scalar `metal` belongs to a set whose fractions sum to 1, which ejecta do not keep: give it in `hydro.scalars` alone";
            return refuse(&key, why);
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
