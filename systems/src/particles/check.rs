//! Checks the configuration of species.

use super::MovedBy;
use super::config::{ParticlesConfig, SpeciesConfig};
use super::initial::{InitialParticlesConfig, LatticeInitial, RandomInitial, TableInitial, zeros};
use crate::fields::GasModel;
use nestar_engine::{Engine, Error};

impl InitialParticlesConfig {
    /// Returns the first key below `initial` that gives a mass.
    fn key_of_mass(&self) -> Option<String> {
        let says = match self {
            Self::Lattice(LatticeInitial { mass, .. }) => mass,
            Self::Random(RandomInitial { mass, .. }) => mass,
            Self::Table(TableInitial { mass, .. }) => mass,
            Self::Bodies { bodies } => {
                let n = bodies.iter().position(|body| body.mass.is_some())?;
                return Some(format!("bodies[{n}].mass"));
            }
            Self::None {} | Self::Sphere(_) => return None,
        };
        says.as_ref().map(|_| "mass".into())
    }

    /// Returns the first key below `initial` that gives a velocity other than 0.
    fn key_of_velocity(&self) -> Option<String> {
        let says = match self {
            Self::Lattice(LatticeInitial { velocity, .. })
            | Self::Random(RandomInitial { velocity, .. }) => *velocity != zeros(),
            Self::Table(TableInitial { velocity, .. }) => velocity.is_some(),
            Self::Bodies { bodies } => {
                let n = bodies.iter().position(|body| body.velocity != [0.0; 3])?;
                return Some(format!("bodies[{n}].velocity"));
            }
            Self::None {} | Self::Sphere(_) => false,
        };
        says.then(|| "velocity".into())
    }
}

/// Names of built-in particle attributes, which scalars must not use.
const TAKEN: [&str; 7] = [
    "id",
    "offset",
    "position",
    "velocity",
    "acceleration",
    "mass",
    "moved_by_finer",
];

/// Name that selects all species.
const ALL: &str = "all";
/// Rule for names, used in messages.
const PLAIN: &str = "use at most 100 letters a to z, digits and `_`";
/// Longest name; snapshots have files with these names.
const LONGEST: usize = 100;

/// Returns `true` if a word is a valid name in snapshots.
fn is_plain(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=LONGEST).contains(&word.len()) && word.chars().all(fits)
}

/// Returns a key that contradicts another one or has no effect, with the reason.
fn needless(own: &SpeciesConfig) -> Option<(String, &'static str)> {
    let traces = own.moved_by != MovedBy::Fall;
    let initial = |key: String| format!(".initial.{key}");
    if let Some(key) = own.initial.key_of_mass() {
        let why = match (traces, own.mass) {
            (true, _) => "a tracer of gas has no mass: remove it",
            (_, Some(_)) => "the species gives the `mass` of each particle: leave one of them out",
            (false, None) => return None,
        };
        return Some((initial(key), why));
    }
    let key = own.initial.key_of_velocity().filter(|_| traces)?;
    let why = "tracers move with the gas and have no velocity of their own: remove it";
    Some((initial(key), why))
}

/// Refuses a species with an invalid or duplicate name, an invalid mass, or keys without effect.
pub(super) fn check(
    sim: &Engine,
    config: &ParticlesConfig,
    (name, own): (&str, &SpeciesConfig),
) -> Result<(), Error> {
    let refuse = |key: &str, why: String| {
        let key = format!("particles.species.{name}{key}");
        Err(sim.deck.error_at(&key, why).into())
    };
    if !is_plain(name) {
        let why = format!("{name:?} is not a valid species name: {PLAIN}");
        let error = sim.deck.error_at_key("particles.species", name, why);
        return Err(error.into());
    }
    if name == ALL {
        let why = format!("{name:?} selects all species in plots: choose another name");
        return refuse("", why);
    }
    needless(own).map_or(Ok(()), |(key, why)| refuse(&key, why.into()))?;
    let others = config.species.keys();
    if let Some(other) = others
        .into_iter()
        .find(|other| format!("{other}_lost") == name)
    {
        let why = format!(
            "the diagnostics of {other:?} have columns with this name: choose another name"
        );
        return refuse("", why);
    }
    if own.mass.is_some_and(|mass| !mass.is_finite()) {
        return refuse(".mass", "must be a finite number".into());
    }
    if let Some((key, why)) = frozen(sim, own) {
        return refuse(key, why.into());
    }
    let mut before = (0..own.scalars.len()).map(|n| &own.scalars[..=n]);
    match before.find_map(refused) {
        Some(why) => refuse(".scalars", why),
        None => Ok(()),
    }
}

/// Returns the key that is not supported with frozen gas, with the reason.
fn frozen(sim: &Engine, own: &SpeciesConfig) -> Option<(&'static str, &'static str)> {
    let gas = sim.world.get_resource::<GasModel>()?;
    let why = match own.moved_by {
        _ if !gas.frozen => return None,
        MovedBy::MassFluxes => "frozen gas has no mass fluxes",
        MovedBy::Gas if sim.settings.time.max_step.is_infinite() => {
            "frozen gas does not limit the time step of these tracers: add `time.max_step`"
        }
        _ => return None,
    };
    Some((".moved_by", why))
}

/// Returns why the last of several scalar names is invalid.
fn refused(names: &[String]) -> Option<String> {
    let (scalar, before) = names.split_last()?;
    if !is_plain(scalar) {
        return Some(format!("{scalar:?} is not a valid name: {PLAIN}"));
    }
    // components of vectors are columns of tables as well, such as `position_x`
    let ends = ["_x", "_y", "_z"].iter();
    let vectors = ends.filter_map(|end| scalar.strip_suffix(end));
    let mut words = vectors.chain([&**scalar]);
    let taken = words.any(|word| TAKEN.contains(&word)) || before.contains(scalar);
    taken.then(|| format!("{scalar:?} is the name of another particle attribute"))
}
