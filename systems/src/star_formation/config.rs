//! Defines the table `[star_formation]`.

use crate::births::SpeciesMap;
use crate::fields::GasModel;
use nestar_deck::{Deck, deck};
use nestar_engine::{Engine, Error};

/// Stars that form from dense gas, as particles of a species. In a free-fall time, sqrt(3 pi/(32 G rho)), the share `efficiency`
/// of the gas becomes stars (Schmidt 1959). Needs tables `[units]`, `[gravity]`, `[particles]`, and `[cooling]` or `[chemistry]`.
#[deck]
pub struct StarFormationConfig {
    /// Species of the stars. Its particles have masses of their own (no key `mass`); `initial = { kind = "none" }` begins
    /// without stars. Scalars named `birth_time`, `birth_mass` and `metallicity` are filled in.
    #[key(default = "stars".into())]
    pub species: String,
    /// Smallest number of hydrogen nuclei per volume at which stars form.
    #[key(default = 20.0, unit = "cm**-3", above = 0.0)]
    pub threshold_cm3: f64,
    /// Mass fraction of hydrogen, for `threshold_cm3`.
    #[key(default = 0.76, above = 0.0, max = 1.0)]
    pub hydrogen_fraction: f64,
    /// Stars form below this temperature only.
    #[key(unit = "K", above = 0.0)]
    pub temperature_k: Option<f64>,
    /// Condition for the formation of stars, a formula of the gas such as `"fraction_metal > 1e-4"`.
    #[key(default = "1".into())]
    #[serde(rename = "where")]
    pub condition: String,
    /// Stars form where gas converges only: the divergence of the velocity is negative.
    #[key(default = false)]
    pub converging: bool,
    /// Largest virial parameter of the gas from which stars form, (|div v|^2 + |curl v|^2)/(2 G rho) (Hopkins et al. 2013). Gas that
    /// is bound by its gravity against its motion has values below 1.
    #[key(above = 0.0)]
    pub virial_parameter: Option<f64>,
    /// Stars form in cells with more gas than a Jeans mass only, pi^(5/2) c^3/(6 G^(3/2) rho^(1/2)).
    #[key(default = false)]
    pub jeans_mass: bool,
    /// Coarsest level on which stars form.
    #[key(default = 0)]
    pub min_level: u32,
    /// Share of the gas that becomes stars in a free-fall time.
    #[key(default = 0.01, min = 0.0)]
    pub efficiency: f64,
    /// Least mass of a star. Where less is expected to form in a step, stars of this mass form at random with the matching
    /// probability, so that the mean is right.
    #[key(unit = "mass", above = 0.0)]
    pub least_mass: f64,
    /// Largest share of the gas of a cell that becomes a star in a step. It also limits the stars of `least_mass`.
    #[key(default = 0.5, above = 0.0, max = 0.5)]
    pub most_of_cell: f64,
    /// Seed of the random numbers.
    #[key(default = 0)]
    pub seed: u32,
}

/// Names of the scalars of stars that are filled in.
pub(super) const SCALARS: [&str; 3] = ["birth_time", "birth_mass", "metallicity"];

impl StarFormationConfig {
    /// Checks that other tables provide what star formation needs.
    ///
    /// # Errors
    /// A table or the species is missing; the gas is frozen; a key contradicts another one.
    pub(super) fn check(&self, sim: &Engine) -> Result<(), Error> {
        let refuse = |key: &str, why: String| Err(sim.deck.error_at(key, why).into());
        if let Some((key, why)) = missing_table(&sim.deck)? {
            return refuse(key, why.into());
        }
        let model = sim.world.resource::<GasModel>();
        if model.frozen {
            let why = "stars form from gas that moves: remove `hydro.frozen`";
            return refuse("hydro.frozen", why.into());
        }
        let name = &self.species;
        let species = sim.world.resource::<SpeciesMap>();
        let key = format!("particles.species.{name}");
        let Ok(stars) = species.named(name) else {
            let known: Vec<&str> = species.0.iter().map(|own| &*own.name).collect();
            let why = format!(
                "there is no species {name:?} for the stars (there are {known:?}): add a table [{key}] with \
                 initial = {{ kind = \"none\" }}"
            );
            return refuse("star_formation.species", why);
        };
        if stars.moved_by != crate::births::MovedBy::Fall {
            let why = format!("stars move by gravity: remove `{key}.moved_by`");
            return refuse(&format!("{key}.moved_by"), why);
        }
        let metals = model.scalars.iter().any(|scalar| scalar == "metal");
        if stars.scalars.iter().any(|scalar| scalar == SCALARS[2]) && !metals {
            let why = "stars have the scalar `metallicity`, but the gas has no scalar `metal`: add it to `hydro.scalars`, or remove \
                       the scalar of the stars";
            return refuse(&format!("{key}.scalars"), why.into());
        }
        match self.least_mass.is_finite() {
            true => Ok(()),
            false => refuse(
                "star_formation.least_mass",
                "must be a finite number".into(),
            ),
        }
    }
}

/// Returns the first table that star formation lacks, with what to do.
fn missing_table(deck: &Deck) -> Result<Option<(&'static str, &'static str)>, Error> {
    const TABLE: &str = "star_formation";
    let why = match () {
        () if deck.units()?.is_dimensionless() => {
            "star formation needs physical units: add a table [units]"
        }
        () if !deck.has("gravity") => "star formation needs self-gravity: add a table [gravity]",
        () if !deck.has("cooling") && !deck.has("chemistry") => {
            "stars form from gas that cools: add a table [cooling] or [chemistry]"
        }
        () if !deck.has("particles") => {
            "stars are particles: add a table [particles.species.stars] with initial = { kind = \"none\" }"
        }
        () => return Ok(None),
    };
    Ok(Some((TABLE, why)))
}
