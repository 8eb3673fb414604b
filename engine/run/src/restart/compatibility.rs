//! Compatibility of a snapshot with a run: settings that give values their meaning, added and dropped
//! components.

use crate::deck_differences::{SettingChange, setting_changes};
use nestar_deck::Formula;
use nestar_engine_data::{ParticleKinds, ParticleSetRef, Stores};
use nestar_engine_step::config::AddedComponent;
use nestar_engine_step::{Engine, Error, KeptKeys};
use nestar_snapshot::Snapshot;
use std::collections::BTreeMap;
use toml::Value;

/// Initial value of a component that the snapshot lacks.
pub(crate) enum InitialValue {
    /// The result of the phase `Initialise`.
    Initial,
    /// A formula of [`COORDINATES`] and the components in the snapshot.
    Formula(Formula),
}

/// Coordinates as variables of formulas.
pub(crate) const COORDINATES: [&str; 3] = ["x", "y", "z"];

/// Word of [`InitialValue::Initial`] in decks.
const INITIAL: &str = "initial";

/// Describes how the state of a snapshot becomes that of the run.
pub(crate) struct Fit {
    /// Components that the snapshot lacks.
    pub added: BTreeMap<String, InitialValue>,
    /// Settings that differ, as text.
    pub changes: Vec<String>,
    /// `true` if values have a changed meaning, or components are added or dropped.
    pub is_changed: bool,
}

impl Fit {
    /// Returns `true` if components start from the initial condition.
    pub fn uses_initial_state(&self) -> bool {
        let mut added = self.added.values();
        added.any(|beginning| matches!(beginning, InitialValue::Initial))
    }
}

/// Compares the run with `snapshot`.
///
/// # Errors
/// Settings or components differ without consent of the deck; a request names nothing.
pub(crate) fn fit(sim: &Engine, snapshot: &Snapshot) -> Result<Fit, Error> {
    let all = setting_changes(&snapshot.attributes().config, &sim.deck.resolved());
    let names = ComponentNames::of(sim, snapshot);
    names.check_requests(sim, &all)?;
    let keys = kept_keys(sim, snapshot);
    let is_kept = |change: &&SettingChange| keys.iter().any(|key| is_within(key, &change.key));
    let kept: Vec<&SettingChange> = all.iter().filter(is_kept).collect();
    check_consent(sim, snapshot, &kept, &names)?;
    let beginnings = names.missing().map(|(field, name)| {
        let beginning = names.initial_value(sim, field, name)?;
        Ok((name.to_string(), beginning))
    });
    let added: BTreeMap<_, _> = beginnings.collect::<Result<_, Error>>()?;
    Ok(Fit {
        is_changed: !(kept.is_empty() && added.is_empty() && names.extra().next().is_none()),
        added,
        changes: all.iter().map(|change| change.text.clone()).collect(),
    })
}

/// Rejects differences to which the deck does not consent.
fn check_consent(
    sim: &Engine,
    snapshot: &Snapshot,
    kept: &[&SettingChange],
    names: &ComponentNames,
) -> Result<(), Error> {
    let run = &sim.settings.run;
    let requested: Vec<&str> = run.added.keys().chain(&run.dropped).map(|n| &**n).collect();
    let is_accepted = |change: &SettingChange| {
        sim.deck.is_overridden(&change.key) || equal_without(&requested, &change.values)
    };
    let mut refusal = Refusal::default();
    for change in kept.iter().filter(|change| !is_accepted(change)) {
        refusal.add(&change.text, format!("--set {}=…", change.key));
    }
    for (field, name) in names.missing() {
        if !run.added.contains_key(name) {
            let what = format!("it lacks `{name}` of the field `{field}`");
            refusal.add(&what, format!("--set run.added.{name}=0"));
        }
    }
    let is_left = |name: &&str| !run.dropped.iter().any(|dropped| dropped == name);
    let left: Vec<&str> = names.extra().filter(is_left).collect();
    if !left.is_empty() {
        let what = format!("it holds {}, which this run does not have", left.join(", "));
        let all: Vec<&str> = run.dropped.iter().map(|n| &**n).chain(left).collect();
        refusal.add(&what, format!("--set 'run.dropped={all:?}'"));
    }
    refusal.check(snapshot)
}

/// Returns the keys of settings that give the values in a snapshot their meaning.
fn kept_keys(sim: &Engine, snapshot: &Snapshot) -> Vec<String> {
    let keys = sim.world.resource::<KeptKeys>().0.iter();
    let is_held = |kind: &ParticleSetRef| {
        snapshot
            .particles()
            .any(|particles| particles.path == kind.path)
    };
    let kinds = sim.world.resource::<ParticleKinds>().all().into_iter();
    let of_items = kinds
        .filter(is_held)
        .flat_map(|kind| kind.of(&sim.world).keys());
    keys.map(|key| key.to_string()).chain(of_items).collect()
}

/// Returns `true` if `key` is the setting `kept` or inside its table.
fn is_within(kept: &str, key: &str) -> bool {
    let rest = key.strip_prefix(kept);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns `true` if two lists are equal without the names of added or dropped components. A name also
/// matches its last part: `smoke` matches `scalar_smoke`.
fn equal_without(names: &[&str], values: &[Option<Value>; 2]) -> bool {
    fn without(names: &[&str], value: &Value) -> Value {
        let is_named = |word: &str| {
            let ends = |name: &str| {
                name.strip_suffix(word)
                    .is_some_and(|rest| rest.ends_with('_'))
            };
            names.iter().any(|name| *name == word || ends(name))
        };
        match value {
            Value::Array(items) => {
                let others = items.iter().filter(|i| !i.as_str().is_some_and(is_named));
                Value::Array(others.map(|item| without(names, item)).collect())
            }
            other => other.clone(),
        }
    }
    let [before, now] = values.each_ref().map(Option::as_ref);
    before.map(|value| without(names, value)) == now.map(|value| without(names, value))
}

/// Collects differences and the options that consent to them.
#[derive(Default)]
struct Refusal {
    what: Vec<String>,
    options: Vec<String>,
}

impl Refusal {
    fn add(&mut self, what: &str, way: String) {
        self.what.push(what.into());
        self.options.push(way);
    }

    fn check(self, snapshot: &Snapshot) -> Result<(), Error> {
        if self.what.is_empty() {
            return Ok(());
        }
        Err(Error::Setup(format!(
            "{}: the snapshot was written by another run: {}; continue with the deck of the run (its run.toml) and its \
             plugins, or accept the differences by {}",
            snapshot.path().display(),
            self.what.join(", "),
            self.options.join(" ")
        )))
    }
}

/// Returns the particle columns of the run and of the snapshot. Particles that lack a required column are
/// omitted; reading them reports the column.
fn columns(sim: &Engine, snapshot: &Snapshot) -> [Vec<String>; 2] {
    let mut columns = [Vec::new(), Vec::new()];
    for kind in sim.world.resource::<ParticleKinds>().all() {
        let (own, held) = (kind.of(&sim.world).columns(), snapshot.columns(&kind.path));
        let is_held = |name: &str| held.iter().any(|header| header.name == name);
        let mut kept = own.iter().filter(|column| column.at.is_some());
        if kept.all(|column| is_held(&column.what.name)) {
            let path = |name: &str| format!("{}/{name}", kind.path);
            columns[0].extend(own.iter().map(|column| path(&column.what.name)));
            columns[1].extend(held.iter().map(|header| path(&header.name)));
        }
    }
    columns
}

/// Holds the names of components in the run and in the snapshot.
struct ComponentNames<'a> {
    /// Stored components of the run, with their fields.
    own: Vec<(&'static str, &'a str)>,
    /// Components in the snapshot, without derived ones.
    stored: Vec<&'a str>,
    /// Particle columns such as `particles/stars/age`: of the run, and in the snapshot.
    columns: [Vec<String>; 2],
}

impl<'a> ComponentNames<'a> {
    fn of(sim: &'a Engine, snapshot: &'a Snapshot) -> Self {
        let stores = Stores::of(&sim.world, |spec| spec.stored).into_iter();
        let own = stores.flat_map(|store| {
            let components = store.of(&sim.world).spec().components.iter();
            components.map(move |component| (store.name, &*component.name))
        });
        let held = snapshot.fields(0).into_iter().filter(|f| !f.derived);
        Self {
            own: own.collect(),
            stored: held.map(|f| &*f.name).collect(),
            columns: columns(sim, snapshot),
        }
    }

    fn has(&self, name: &str) -> bool {
        let mut own = self.own.iter().map(|(_, own)| *own);
        own.any(|own| own == name) || self.columns[0].iter().any(|own| own == name)
    }

    /// Returns `true` if the snapshot has the component.
    fn in_snapshot(&self, name: &str) -> bool {
        self.stored.contains(&name) || self.columns[1].iter().any(|held| held == name)
    }

    /// Returns the components that the snapshot lacks.
    fn missing(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let own = self.own.iter().copied();
        own.filter(|(_, name)| !self.stored.contains(name))
    }

    /// Returns the components that the run lacks.
    fn extra(&self) -> impl Iterator<Item = &str> {
        let columns = self.columns[1].iter().map(String::as_str);
        let held = self.stored.iter().copied().chain(columns);
        held.filter(|name| !self.has(name))
    }

    /// Rejects requests without effect, unless the run that wrote the snapshot had them.
    fn check_requests(&self, sim: &Engine, changes: &[SettingChange]) -> Result<(), Error> {
        let (deck, run) = (&sim.deck, &sim.settings.run);
        let is_new = |key: &str| changes.iter().any(|change| change.key == key);
        for name in run.added.keys() {
            let key = format!("run.added.{name}");
            if !self.own.iter().any(|(_, own)| own == name) {
                let lacking: Vec<&str> = self.missing().map(|(_, name)| name).collect();
                return Err(deck.unknown_key_at(&key, &lacking).into());
            }
            if self.stored.contains(&&**name) && is_new(&key) {
                let why = format!("`{key}`: the snapshot has `{name}` already");
                return Err(deck.error_at(&key, why).into());
            }
        }
        for (n, name) in run.dropped.iter().enumerate() {
            let key = format!("run.dropped[{n}]");
            if self.has(name) {
                let why = format!("`{key}`: this run has `{name}`; it cannot be dropped");
                return Err(deck.error_at(&key, why).into());
            }
            if !self.in_snapshot(name) && is_new("run.dropped") {
                let left: Vec<&str> = self.extra().collect();
                if left.is_empty() {
                    let why = format!(
                        "`{key}`: the snapshot has no `{name}`, and nothing else that could be dropped"
                    );
                    return Err(deck.error_at(&key, why).into());
                }
                return Err(deck.unknown_word_at(&key, name, &left).into());
            }
        }
        Ok(())
    }

    /// Returns the deck's initial value of component `name` of `field`.
    fn initial_value(&self, sim: &Engine, field: &str, name: &str) -> Result<InitialValue, Error> {
        let key = format!("run.added.{name}");
        let text = match sim.settings.run.added.get(name) {
            Some(AddedComponent::Formula(text)) => text.clone(),
            Some(AddedComponent::Number(number)) => number.to_string(),
            None => return Err(sim.deck.error_at(&key, "is missing").into()),
        };
        if text != INITIAL {
            let variables = [&COORDINATES[..], &self.stored].concat();
            let formula = sim.deck.formula(&key, &text, &variables)?;
            return Ok(InitialValue::Formula(formula));
        }
        let mut siblings = self.own.iter().filter(|(of, _)| *of == field);
        if let Some((_, held)) = siblings.find(|(_, own)| self.stored.contains(own)) {
            let why = format!(
                "`{key}`: the snapshot holds `{held}` of the same field `{field}`, which may be inconsistent with the initial `{name}`; \
                 give a number or a formula"
            );
            return Err(sim.deck.error_at(&key, why).into());
        }
        Ok(InitialValue::Initial)
    }
}
