//! Defines the table `[feedback]`.

use crate::births::SpeciesMap;
use crate::fields::GasModel;
use nestar_deck::deck;
use nestar_engine::mesh::Topology;
use nestar_engine::{Engine, Error};

/// Supernovae of the stars of a species: `delay` after the birth of a star, with one supernova per `mass_per_event` of its mass at
/// birth, or at random ages by `rates`, or both. Stars may also lose mass by `winds`. The gas around the star gets mass, momentum, energy and metals. Needs a table
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
    /// Winds of stars, which blow at all multiples of `interval`.
    #[key(default = Vec::new())]
    pub winds: Vec<WindConfig>,
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

/// A wind of stars: mass that they lose all the time, with its kinetic energy.
#[deck]
pub struct WindConfig {
    /// Ages of stars for `loss`, ascending. A star has no wind before the first and after the last one.
    #[key(unit = "time")]
    pub age: Vec<f64>,
    /// Mass that a star loses per time, over its mass at birth, at each age; linear in between.
    #[key(unit = "1/time")]
    pub loss: Vec<f64>,
    /// Speed of the wind. Its kinetic energy is the energy of the wind.
    #[key(unit = "length/time", min = 0.0)]
    pub speed: f64,
    /// Mass fraction of metals in the wind, for the scalar `metal` of the gas.
    #[key(default = 0.0, min = 0.0, max = 1.0)]
    pub metals: f64,
    /// What the wind gives to the cells around the star, one of the words of `feedback.kind`. Default: `kinetic`, momentum away from the
    /// star that has the whole energy.
    #[key(default = "kinetic".into())]
    pub kind: String,
}

/// Returns the key of a rate that is wrong, with the reason. `name` is the key of the rates.
fn fault_of_rates(
    age: &[f64],
    rate: &[f64],
    name: &'static str,
) -> Option<(&'static str, &'static str)> {
    let ascends = age.windows(2).all(|pair| pair[0] < pair[1]);
    let is_positive = |all: &[f64]| all.iter().all(|x| x.is_finite() && *x >= 0.0);
    match () {
        () if age.len() < 2 || !ascends || !is_positive(age) => {
            Some(("age", "give at least two ascending ages, not negative"))
        }
        () if rate.len() != age.len() => Some((name, "give one rate for each age")),
        () if !is_positive(rate) => Some((name, "rates must not be negative")),
        () => None,
    }
}

impl EventRateConfig {
    /// Returns the key that is wrong, with the reason.
    fn fault(&self) -> Option<(&'static str, &'static str)> {
        let metals = "an event cannot return more metals than `ejecta`";
        let metals = (self.metals > self.ejecta).then_some(("metals", metals));
        fault_of_rates(&self.age, &self.rate, "rate").or(metals)
    }
}

impl WindConfig {
    /// Returns the key that is wrong, with the reason.
    fn fault(&self) -> Option<(&'static str, &'static str)> {
        let fault = fault_of_rates(&self.age, &self.loss, "loss");
        let pairs = self.age.windows(2).zip(self.loss.windows(2));
        let lost: f64 = pairs
            .map(|(age, loss)| 0.5 * (loss[0] + loss[1]) * (age[1] - age[0]))
            .sum();
        let whole = "the star would lose more than its mass at birth: the integral over `age` must be at most 1";
        fault.or((lost > 1.0).then_some(("loss", whole)))
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
        let all_kinds = self.kinds();
        if let Some((key, kind)) = all_kinds.iter().find(|(_, kind)| !kinds.contains(kind)) {
            let why = format!(
                "there is no kind {kind:?} of feedback: choose one of {kinds:?} for `{key}`"
            );
            return refuse(key, why);
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
        let is_radial = |(_, kind): &&(String, &str)| matches!(*kind, "mechanical" | "kinetic");
        if let Some((key, kind)) = all_kinds.iter().find(is_radial).filter(|_| !are_cubic) {
            let why = format!(
                "{kind} feedback needs cubic cells: choose `domain.cells` in proportion to the edges, or `{key} = \"thermal\"`"
            );
            return refuse("domain.cells", why);
        }
        self.check_times(sim)?;
        self.check_yields(sim)?;
        self.check_species(sim)
    }

    /// Returns the kinds of the events that there are, with their keys.
    fn kinds(&self) -> Vec<(String, &str)> {
        let mut all = Vec::new();
        if self.delay.is_some() || !self.rates.is_empty() || self.winds.is_empty() {
            all.push(("feedback.kind".into(), &*self.kind));
        }
        let winds = self.winds.iter().enumerate();
        all.extend(winds.map(|(n, wind)| (format!("feedback.winds[{n}].kind"), &*wind.kind)));
        all
    }

    /// Checks the times of events.
    ///
    /// # Errors
    /// There are none, or a key that they need is missing or wrong.
    fn check_times(&self, sim: &Engine) -> Result<(), Error> {
        let refuse = |key: &str, why: &str| Err(sim.deck.error_at(key, why).into());
        let rates = self.rates.iter().enumerate();
        let rates = rates.map(|(n, rate)| (format!("rates[{n}]"), rate.fault()));
        let winds = self.winds.iter().enumerate();
        let winds = winds.map(|(n, wind)| (format!("winds[{n}]"), wind.fault()));
        if let Some((table, (key, why))) = rates
            .chain(winds)
            .find_map(|(table, fault)| Some((table, fault?)))
        {
            let key = format!("feedback.{table}.{key}");
            return refuse(&key, &format!("`{key}`: {why}"));
        }
        match (self.delay, self.mass_per_event, self.energy) {
            (None, None, None) if self.rates.is_empty() && self.winds.is_empty() => refuse(
                "feedback",
                "stars need events: give `delay`, `mass_per_event` and `energy`, or `rates`, or `winds`",
            ),
            (None, None, None) if self.interval.is_none() => refuse(
                "feedback",
                "events at random ages and winds need `interval`, the time between two times of events",
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
        let of_winds = self.winds.iter().enumerate();
        let of_winds =
            of_winds.map(|(n, wind)| (format!("feedback.winds[{n}].metals"), wind.metals));
        let mut all = [("feedback.metals".to_string(), self.metals)]
            .into_iter()
            .chain(of_rates)
            .chain(of_winds);
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
