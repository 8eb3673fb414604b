//! Boundary conditions that plugins register for words of `domain.boundary`.

use super::Engine;
use crate::config::BoundaryKind;
use crate::{Catalogue, Error};
use bevy_ecs::prelude::*;
use nestar_deck::{Deck, DeckError};
use nestar_engine_data::PoolResource;
use nestar_engine_data::boundary::{BoundaryFn, FunctionRule};
use nestar_engine_data::{BoundaryCondition, BoundaryRule, FaultBox, Field, FieldSpec};
use nestar_kernels::mesh::Centring;
use std::sync::Arc;

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
            let rule = FunctionRule::<M>::new(&name, parameters.clone(), spec, faults.clone());
            let rule: Arc<dyn BoundaryRule> = Arc::new(rule.map_err(Error::Setup)?);
            Ok(rule)
        };
        self.register_boundary_rule::<F>(word, M::DOC, make)
    }

    /// Registers `word` as [`Engine::register_boundary`] with a custom rule per face; `make` creates it from
    /// the deck, the face (axis, side) and the field's declaration.
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
                (Some(_), _) if spec.centring != Centring::Cell => {
                    let why = "boundary rules work on cell-centred values only";
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
