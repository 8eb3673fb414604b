//! Stores that plugins make.

use super::{Engine, KeptKeys};
use crate::comm::estimate::{ExtraTraffic, HierarchyShape, TrafficEstimators};
use crate::data::{
    Correct, DerivedField, DerivedFields, Field, ParticleEntityIndex, ParticleGroup, ParticleKinds,
    Pool, Prolong, Restrict, Store, Stores, check_columns,
};
use crate::mesh::PATCH;
use crate::step::Error;
use crate::step::state::require_name;
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;

impl Engine {
    /// Declares keys of the deck that a continued run keeps as they were, unless an override says otherwise.
    pub fn keep_keys(&mut self, keys: &[&'static str]) {
        self.world.resource_mut::<KeptKeys>().0.extend(keys);
    }

    /// Makes `store` a resource that the engine carries for every patch: to other ranks, `depth` layers of copies where it asks
    /// for them ([`Comm::refresh_halo`](crate::comm::Comm::refresh_halo)), into snapshots and back at a restart.
    ///
    /// # Errors
    /// Another store has the name; its declaration asks for what pools alone do: averages, interpolation, totals, fluxes.
    pub fn register_store<S: Store + Resource<Mutability = Mutable>>(
        &mut self,
        store: S,
        depth: usize,
    ) -> Result<(), Error> {
        let (name, spec) = (store.name(), store.spec());
        let wrong = |why: &str| Err(Error::Setup(format!("store `{name}`: {why}")));
        spec.check(name).map_err(Error::Setup)?;
        let fills = matches!(spec.prolong, Prolong::Own(_) | Prolong::None);
        if self.world.resource::<Stores>().has(name) {
            return wrong("there is another one of that name");
        }
        if !fills || spec.restrict == Restrict::Mean {
            return wrong("a plugin's own store fills and averages its rows itself");
        }
        if spec.in_totals || spec.correct == Correct::Fluxes {
            return wrong("a plugin's own store has no totals and no fluxes");
        }
        if store.precision() != self.precision() {
            return wrong("its values have another precision than the run's");
        }
        if depth * spec.shape().width() > PATCH {
            return wrong("copies have no more layers than a patch");
        }
        self.world.insert_resource(store);
        self.world.resource_mut::<Stores>().add::<S>(name, depth);
        Ok(())
    }

    /// Offers numbers that follow from the state of field `F`, which is registered: snapshots hold those that the deck names in
    /// `output.derived`.
    ///
    /// # Errors
    /// A name is taken; a number reads cells around, no component of the field, or none that it has.
    pub fn register_derived<F: Field>(&mut self, derived: Vec<DerivedField>) -> Result<(), Error> {
        let components = Pool::<F>::of(&self.world).spec.components.clone();
        let mut fields = self.world.resource_mut::<DerivedFields>();
        let added = fields.add(F::NAME, &components, derived);
        added.map_err(Error::Setup)
    }

    /// Refuses what the deck asks snapshots to hold and nobody offers.
    pub(super) fn check_derived(&self) -> Result<(), Error> {
        let stores = Stores::of(&self.world, |spec| spec.stored);
        let stored = |name: &str| {
            let mut specs = stores.iter().map(|store| store.of(&self.world).spec());
            specs.any(|spec| spec.components.iter().any(|own| own.name == name))
        };
        let all = self.world.resource::<DerivedFields>().all();
        let mut known: Vec<&str> = all.map(|(_, own)| &*own.name).collect();
        known.retain(|name| !stored(name));
        known.sort_unstable();
        let asked = &self.settings.output.derived;
        for (n, name) in asked.iter().enumerate() {
            let path = format!("output.derived[{n}]");
            if asked[..n].contains(name) {
                let why = format!("`{path}`: \"{name}\" stands there already");
                return Err(self.deck.error_at(&path, why).into());
            }
            if stored(name) {
                let why = format!("`{path}`: snapshots hold \"{name}\" in any case");
                return Err(self.deck.error_at(&path, why).into());
            }
            if !known.contains(&&**name) {
                return Err(self.deck.unknown_word_at(&path, name, &known).into());
            }
        }
        Ok(())
    }
}

impl Engine {
    /// Says what a plugin's systems exchange themselves, for `nestar plan`: by level, in a root step of a hierarchy of that [`Shape`].
    pub fn declare_exchanges(
        &mut self,
        foretell: impl Fn(&HierarchyShape) -> Vec<ExtraTraffic> + Send + Sync + 'static,
    ) {
        let mut all = self
            .world
            .get_resource_or_insert_with(TrafficEstimators::default);
        all.add(foretell);
    }

    /// Makes `items` a resource that the engine carries: to the patches that contain them, to other ranks, into snapshots and back
    /// at a restart. A resource may hold several kinds ([`ParticleGroup`]).
    ///
    /// # Errors
    /// Other items have the name or the type, the name does not fit, or a record has no bytes or other ones than the columns.
    pub fn register_items<G: ParticleGroup>(&mut self, mut items: G) -> Result<(), Error> {
        let mut known: Vec<String> = Vec::new();
        known.extend(
            self.world
                .resource::<ParticleKinds>()
                .all()
                .into_iter()
                .map(|kind| kind.name),
        );
        for kind in (0..items.kinds()).map(|n| items.kind(n)) {
            let name = kind.name();
            require_name(name, "items")?;
            let wrong = |why: &str| Err(Error::Setup(format!("items `{name}`: {why}")));
            if known.iter().any(|known| known == name) {
                return wrong("there are others of that name");
            }
            if self.world.contains_resource::<G>() {
                return wrong("others have the same type, of which a run keeps one");
            }
            if kind.record_bytes() == 0 {
                return wrong("a record has at least one byte");
            }
            check_columns(&kind.columns(), kind.record_bytes()).or_else(|why| wrong(&why))?;
            known.push(name.into());
            self.world.resource::<ParticleEntityIndex>().add(kind);
        }
        self.world.resource_mut::<ParticleKinds>().add(&mut items);
        self.world.insert_resource(items);
        Ok(())
    }
}
