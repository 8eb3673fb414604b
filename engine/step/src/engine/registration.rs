//! Registration of stores, derived fields, particles, budgets and boundary conditions.

use super::{Engine, KeptKeys};
use crate::config::BoundaryKind;
use crate::state::{StateOperations, require_name};
use crate::{BudgetId, Budgets, Catalogue, Error};
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use nestar_deck::{Deck, DeckError};
use nestar_engine_comm::DiagnosticColumns;
use nestar_engine_comm::estimate::{ExtraTraffic, HierarchyShape, TrafficEstimators};
use nestar_engine_data::boundary::{BoundaryFn, FunctionRule};
use nestar_engine_data::{
    BoundaryCondition, BoundaryRule, Correct, DerivedField, DerivedFields, FaultBox, Field,
    FieldSpec, ParticleEntityIndex, ParticleGroup, ParticleKinds, Pool, PoolResource, Prolong,
    Restrict, Store, Stores, check_columns, require_cell_values,
};
use nestar_engine_mesh::PATCH;
use nestar_kernels::mesh::Centring;
use std::sync::Arc;

impl Engine {
    /// Declares deck keys that must not change at a restart unless they are overridden explicitly.
    pub fn keep_keys(&mut self, keys: &[&'static str]) {
        self.world.resource_mut::<KeptKeys>().0.extend(keys);
    }

    /// Inserts `store` as a resource whose patch data the engine moves between ranks and stores in snapshots.
    /// `depth` is the width of its halo ([`Comm::refresh_halo`](nestar_engine_comm::Comm::refresh_halo)).
    ///
    /// # Errors
    /// Another store has the name; the declaration requests features of pools: averages, interpolation,
    /// totals or fluxes.
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
            return wrong("another store has that name");
        }
        if !fills || spec.restrict == Restrict::Mean {
            return wrong("a store of a plugin must fill and average its rows itself");
        }
        if spec.in_totals || spec.correct != Correct::None {
            return wrong("a store of a plugin has no totals and no fluxes");
        }
        if store.precision() != self.precision() {
            return wrong("its precision differs from that of the run");
        }
        if depth * spec.shape().width() > PATCH {
            return wrong("a halo has no more layers than a patch");
        }
        self.world.insert_resource(store);
        self.world.resource_mut::<Stores>().add::<S>(name, depth);
        Ok(())
    }

    /// Registers quantities derived from the state of field `F`; snapshots contain those that
    /// `output.derived` names.
    ///
    /// # Errors
    /// A name is used already; a quantity reads neighbouring cells, or components that the field does not
    /// have.
    pub fn register_derived<F: Field>(&mut self, derived: Vec<DerivedField>) -> Result<(), Error> {
        let spec = &Pool::<F>::of(&self.world).spec;
        for quantity in &derived {
            require_cell_values(&quantity.name, F::NAME, spec).map_err(Error::Setup)?;
        }
        let components = spec.components.clone();
        let mut fields = self.world.resource_mut::<DerivedFields>();
        let added = fields.add(F::NAME, &components, derived);
        added.map_err(Error::Setup)
    }

    /// Rejects unknown names in `output.derived`.
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
                let why = format!("`{path}`: \"{name}\" is listed twice");
                return Err(self.deck.error_at(&path, why).into());
            }
            if stored(name) {
                let why = format!("`{path}`: snapshots always contain \"{name}\"");
                return Err(self.deck.error_at(&path, why).into());
            }
            if !known.contains(&&**name) {
                return Err(self.deck.unknown_word_at(&path, name, &known).into());
            }
        }
        Ok(())
    }

    /// Declares the exchanges of systems that manage their own halo, for `nestar plan`. The function returns
    /// them per level for a root step of a hierarchy of that [`HierarchyShape`].
    pub fn declare_exchanges(
        &mut self,
        traffic: impl Fn(&HierarchyShape) -> Vec<ExtraTraffic> + Send + Sync + 'static,
    ) {
        let mut all = self
            .world
            .get_resource_or_insert_with(TrafficEstimators::default);
        all.add(traffic);
    }

    /// Inserts a set of particles as a resource that the engine moves between patches and ranks and stores in
    /// snapshots. A resource may hold several kinds ([`ParticleGroup`]).
    ///
    /// # Errors
    /// Other particles have the name or the type, the name is invalid, or the columns do not match the
    /// record.
    pub fn register_particle_set<G: ParticleGroup>(
        &mut self,
        mut particles: G,
    ) -> Result<(), Error> {
        let mut known: Vec<String> = Vec::new();
        known.extend(
            self.world
                .resource::<ParticleKinds>()
                .all()
                .into_iter()
                .map(|kind| kind.name),
        );
        for kind in (0..particles.kinds()).map(|n| particles.kind(n)) {
            let name = kind.name();
            require_name(name, "particles")?;
            let wrong = |why: &str| Err(Error::Setup(format!("particles `{name}`: {why}")));
            if known.iter().any(|known| known == name) {
                return wrong("other particles have that name");
            }
            if self.world.contains_resource::<G>() {
                return wrong("other particles have the same type; a run keeps one of each type");
            }
            if kind.record_bytes() == 0 {
                return wrong("a record has at least one byte");
            }
            check_columns(&kind.columns(), kind.record_bytes()).or_else(|why| wrong(&why))?;
            known.push(name.into());
            self.world.resource::<ParticleEntityIndex>().add(kind);
        }
        self.world
            .resource_mut::<ParticleKinds>()
            .add(&mut particles);
        self.world.insert_resource(particles);
        let resource = self.world.component_id::<G>();
        self.driver.schedules.add_particles(resource);
        Ok(())
    }

    /// Opens a budget: running totals of named numbers over all leaf cells and ranks since the start of the
    /// simulation. A system adds the result of [`iterate`](crate::Write::iterate)
    /// by `budgets.add(id, &totals)` with a parameter `mut budgets: ResMut<Budgets>`. The totals become the
    /// diagnostics columns `NAME_NUMBER` and, per level, `NAME_NUMBER_LEVEL`. Snapshots store them. Sums are
    /// exact, so they do not depend on the number of ranks.
    ///
    /// # Errors
    /// The name is used already, or has other characters than letters, digits and `_`.
    pub fn register_budget(&mut self, name: &str, numbers: &[&str]) -> Result<BudgetId, Error> {
        for name in numbers.iter().chain([&name]) {
            require_name(name, "budget")?;
        }
        let levels = self.levels();
        let mut accounts = self.world.resource_mut::<Budgets>();
        let account = accounts.open(name, numbers, levels);
        let columns = accounts.names(account);
        let state = StateOperations {
            version: 2,
            save: Arc::new(move |world| world.resource::<Budgets>().save(account)),
            load: Arc::new(move |world, bytes| {
                world.resource_mut::<Budgets>().load(account, bytes)
            }),
        };
        self.keep_state(&format!("account_{name}"), state)?;
        let catalogue = self.world.resource_mut::<Catalogue>().into_inner();
        for column in &columns[..numbers.len()] {
            let doc = format!("A running total of a budget; {column}_LEVEL: that of a level.");
            catalogue.add("column", column, &doc);
        }
        DiagnosticColumns::add_numbers(&mut self.world, columns, move |world| {
            Ok(world.resource::<Budgets>().values(account))
        });
        Ok(account)
    }
}

/// Creates the rule of a field for a face (axis, side).
type MakeRule = Arc<
    dyn Fn(&mut Deck, [usize; 2], &FieldSpec) -> Result<Arc<dyn BoundaryRule>, Error> + Send + Sync,
>;

/// Holds the registered boundary rules.
#[derive(Resource, Default)]
pub(super) struct BoundaryRules(Vec<RegisteredBoundary>);

struct RegisteredBoundary {
    word: String,
    field: &'static str,
    make: MakeRule,
}

impl Engine {
    /// Registers `word` as a boundary condition of decks. Function `M` computes ghost values of field `F`
    /// from their position and the cells inside, see [`BoundaryFn`]. Fields without a rule for the word use
    /// zero gradient. Call it in [`Plugin::declare`](super::Plugin::declare).
    ///
    /// # Errors
    /// The field exists already; the word is used already.
    pub fn register_boundary<F: Field, M: BoundaryFn>(
        &mut self,
        word: &str,
        parameters: M::Parameters,
    ) -> Result<(), Error>
    where
        M::Parameters: Clone,
    {
        let (faults, name) = (self.world.resource::<FaultBox>().clone(), word.to_string());
        let make = move |_: &mut Deck, _: [usize; 2], spec: &FieldSpec| {
            let (parameters, faults) = (parameters.clone(), faults.clone());
            if spec.centring != Centring::Cell {
                let why = "boundary functions work on cell-centred values only";
                return Err(Error::Setup(format!("field `{}`: {why}", F::NAME)));
            }
            let rule = FunctionRule::<M>::new::<F>(&name, parameters, spec, faults);
            let rule: Arc<dyn BoundaryRule> = Arc::new(rule.map_err(Error::Setup)?);
            Ok(rule)
        };
        self.register_boundary_rule::<F>(word, M::DOC, make)
    }

    /// Registers `word` as [`Engine::register_boundary`] with a custom rule per face; `make` creates it from
    /// the deck, the face (axis, side) and the field's declaration. For a field on faces, the rule is
    /// evaluated at the middle of each face outside the domain. It gets no states of cells inside and returns all components;
    /// the one normal to the face is used. It cannot reflect the field.
    ///
    /// # Errors
    /// As [`Engine::register_boundary`].
    pub fn register_boundary_rule<F: Field>(
        &mut self,
        word: &str,
        doc: &str,
        make: impl Fn(&mut Deck, [usize; 2], &FieldSpec) -> Result<Arc<dyn BoundaryRule>, Error>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), Error> {
        let refused = |why: &str| Err(Error::Setup(format!("the boundary `{word}`: {why}")));
        if self.world.contains_resource::<PoolResource<F>>() {
            return refused(&format!(
                "the field `{}` exists already; register it in `Plugin::declare`",
                F::NAME
            ));
        }
        let mut catalogue = self.world.resource_mut::<Catalogue>();
        catalogue.add("boundary", word, doc).of(F::NAME);
        let mut rules = self.world.resource_mut::<BoundaryRules>();
        let known = |rule: &RegisteredBoundary| rule.word == word && rule.field == F::NAME;
        if rules.0.iter().any(known) || BoundaryKind::of(word).is_built_in() {
            return refused("the word is used already");
        }
        rules.0.push(RegisteredBoundary {
            word: word.into(),
            field: F::NAME,
            make: Arc::new(make),
        });
        Ok(())
    }

    /// Returns all words for faces: built-in ones, then registered ones.
    fn boundary_words(&self) -> Vec<&str> {
        let mut words = BoundaryKind::BUILT_IN.map(|(word, _)| word).to_vec();
        for rule in &self.world.resource::<BoundaryRules>().0 {
            if !words.contains(&&*rule.word) {
                words.push(&rule.word);
            }
        }
        words
    }

    /// Returns the boundary conditions of field `F`; reports the errors of all faces at once.
    pub(super) fn beyond<F: Field>(
        &mut self,
        spec: &FieldSpec,
    ) -> Result<[[BoundaryCondition; 2]; 3], Error> {
        let kinds = self.settings.domain.boundary.faces();
        let mut faces = [const { [const { BoundaryCondition::Periodic }; 2] }; 3];
        let mut wrong: Option<DeckError> = None;
        for (axis, side) in (0..6).map(|n| (n / 2, n % 2)) {
            match self.beyond_face::<F>(spec, &kinds[axis][side], [axis, side]) {
                Ok(beyond) => faces[axis][side] = beyond,
                Err(Error::Deck(error)) => {
                    wrong = Some(match wrong {
                        Some(others) => others.and(error),
                        None => error,
                    });
                }
                Err(other) => return Err(other),
            }
        }
        wrong.map_or(Ok(faces), |wrong| Err(wrong.into()))
    }

    /// Returns the boundary condition of one face with the word `kind`.
    fn beyond_face<F: Field>(
        &mut self,
        spec: &FieldSpec,
        kind: &BoundaryKind,
        [axis, side]: [usize; 2],
    ) -> Result<BoundaryCondition, Error> {
        let mut rules = self.world.resource::<BoundaryRules>().0.iter();
        let own = rules.find(|rule| rule.field == F::NAME && rule.word == kind.word());
        Ok(
            match (own.map(|rule| rule.make.clone()), &spec.boundary_conditions) {
                (Some(_), _) if spec.centring == Centring::Edge => {
                    let why = "boundary rules work on values in cells and on faces only";
                    return Err(Error::Setup(format!("field `{}`: {why}", F::NAME)));
                }
                (Some(make), _) => {
                    BoundaryCondition::Rule(make(&mut self.deck, [axis, side], spec)?)
                }
                (None, Some(own)) => own[axis][side].clone(),
                (None, None) => BoundaryCondition::from(kind),
            },
        )
    }

    /// Rejects unknown boundary words.
    pub(super) fn check_boundary_words(&self) -> Result<(), DeckError> {
        let words = self.boundary_words();
        let (boundary, mut paths) = (&self.settings.domain.boundary, Vec::new());
        let mut wrong = Ok(());
        for (n, kind) in boundary.faces().as_flattened().iter().enumerate() {
            let path = boundary.path(n / 2, n % 2);
            if words.contains(&kind.word()) || paths.contains(&path) {
                continue;
            }
            let error = self.deck.unknown_word_at(&path, kind.word(), &words);
            wrong = Err(match wrong {
                Ok(()) => error,
                Err(others) => DeckError::and(others, error),
            });
            paths.push(path);
        }
        wrong
    }
}
