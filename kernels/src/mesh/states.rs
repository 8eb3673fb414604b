//! State functions of a field: physical states, interpolated variables, repair of round-off.

use super::fluxes::with_kept_remainder;
use nestar_device::{Item, Real, device};

/// Largest number of components of a field (gas and its scalars).
#[device]
pub const MAX_COMPONENTS: usize = 64;

/// Defines the state functions that averages, corrections and interpolations need, on the leading `N` components of a field.
///
/// All of them are `#[device]` functions. Components after the leading ones are scalars: densities of a part of what component 0 counts,
/// such as a dye in a gas. They are interpolated as mass fractions, which stay within the range of their neighbourhood, and must be finite.
/// Scalars may form sets ([`ShareSets`]).
pub trait States<const N: usize>: 'static {
    /// The four functions on devices, in the order of the trait.
    const ITEMS: [&'static Item; 4];

    /// Returns `true` if a state is physical.
    fn physical<R: Real>(u: &[R; N]) -> bool;

    /// Returns the interpolated variables; the first one is component 0.
    fn primitive<R: Real>(u: &[R; N]) -> [R; N];

    /// Returns the state with the given primitive variables.
    fn conserved<R: Real>(w: &[R; N]) -> [R; N];

    /// Repairs a sum of physical states that round-off made unphysical. Exactly transported components do not change.
    ///
    /// `w` are the primitive variables of the previous state, or the mean of the averaged ones, from which missing information is taken.
    fn repaired<R: Real>(u: &[R; N], w: &[R; N]) -> [R; N];

    /// The function [`States::remainder`] on devices, if components do not contain all of a conserved quantity.
    const REMAINDER: Option<&'static Item> = None;

    /// Returns the part of each conserved quantity that its component does not contain, such as an energy that follows from other components.
    /// It must not depend on components that have a remainder. Averages and corrections conserve component and remainder together.
    fn remainder<R: Real>(u: &[R; N]) -> [R; N] {
        *u
    }

    /// The two functions below on devices, in this order, if there are dependent components.
    const DEPENDENTS: Option<[&'static Item; 2]> = None;

    /// Returns `after`, which a function made from `before` by changing some components, with dependent components updated.
    fn with_dependents<R: Real>(_before: &[R; N], after: &[R; N]) -> [R; N] {
        *after
    }

    /// Returns a consistent state from components that were averaged, corrected or interpolated one by one; `thresholds` as given to
    /// [`StateRules::with_thresholds`].
    fn reconciled<R: Real>(u: &[R; N], _thresholds: &[R; 2]) -> [R; N] {
        *u
    }
}

/// Assigns scalars to sets. The scalars of a set sum to component 0 in every cell, so their mass fractions sum to 1.
///
/// Sets are numbered from 1; 0 means no set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareSets {
    /// Set of each component.
    of: [u8; MAX_COMPONENTS],
    count: u8,
}

impl Default for ShareSets {
    fn default() -> Self {
        Self {
            of: [0; MAX_COMPONENTS],
            count: 0,
        }
    }
}

impl ShareSets {
    /// Adds a set of the given components.
    ///
    /// # Panics
    /// If there is no such component, or one of them is already in a set.
    #[must_use]
    pub fn with(mut self, components: &[usize]) -> Self {
        self.count += 1;
        for &c in components {
            assert!(self.of[c] == 0, "component {c} belongs to two sets");
            self.of[c] = self.count;
        }
        self
    }

    /// Returns the number of sets.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Returns the set of a component; 0 for none.
    #[must_use]
    pub fn of(&self, component: usize) -> usize {
        usize::from(self.of[component])
    }

    /// Iterates over the components of a set in ascending order.
    pub fn members(&self, set: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..MAX_COMPONENTS).filter(move |&c| self.of(c) == set)
    }
}

/// The functions of [`States`] in one precision. Blocks are `[component][cells]`.
#[derive(Clone, Copy, Debug)]
pub struct StateFunctions<R> {
    /// Number of leading components, before the scalars.
    pub leading: usize,
    /// Sets of scalars.
    pub sets: ShareSets,
    /// Returns `true` if all states of a block with this many cells are physical.
    pub physical: fn(&[R], usize) -> bool,
    /// Converts a block of this many states to primitive variables in place.
    pub primitive: fn(&mut [R], usize),
    /// Converts a block of this many primitive variables to states in place.
    pub conserved: fn(&mut [R], usize),
    /// Repairs a state with the given primitive variables.
    pub repair: fn(&mut [R], &[R]),
    /// Replaces the states of a block with this many cells by their remainders, if there are any; those of scalars are 0.
    pub remainder: Option<fn(&mut [R], usize)>,
    /// Functions for dependent components, if there are any.
    pub dependents: Option<DependentComponents<R>>,
}

/// [`States::with_dependents`] and [`States::reconciled`] in one precision, for single states.
#[derive(Clone, Copy, Debug)]
pub struct DependentComponents<R> {
    /// Updates the dependent components of the second state, which was made from the first.
    pub update: fn(&[R], &mut [R]),
    reconcile: fn(&mut [R], &[R; 2]),
    thresholds: [R; 2],
}

impl<R: Copy> DependentComponents<R> {
    /// Makes a state consistent whose components were averaged, corrected or interpolated one by one.
    pub fn reconcile(&self, u: &mut [R]) {
        (self.reconcile)(u, &self.thresholds);
    }
}

/// The functions of [`States`] on devices, with their parameters.
#[derive(Clone, Copy, Debug)]
pub struct StateItems {
    /// See [`States::ITEMS`].
    pub items: [&'static Item; 4],
    /// See [`States::REMAINDER`].
    pub remainder: Option<&'static Item>,
    /// See [`States::DEPENDENTS`].
    pub dependents: Option<[&'static Item; 2]>,
    /// Thresholds of [`States::reconciled`].
    pub thresholds: [f64; 2],
    /// Number of leading components.
    pub leading: usize,
    /// Sets of scalars.
    pub sets: ShareSets,
}

/// State functions that a field declares.
#[derive(Clone, Copy, Debug)]
pub struct StateRules {
    /// The functions for `f32`.
    pub single: StateFunctions<f32>,
    /// The functions for `f64`.
    pub double: StateFunctions<f64>,
    /// The functions for devices.
    pub items: StateItems,
}

impl StateRules {
    /// Creates the rules of `S`.
    #[must_use]
    pub fn of<S: States<N>, const N: usize>() -> Self {
        Self {
            single: StateFunctions::of::<S, N>(),
            double: StateFunctions::of::<S, N>(),
            items: StateItems {
                items: S::ITEMS,
                remainder: S::REMAINDER,
                dependents: S::DEPENDENTS,
                thresholds: [0.0; 2],
                leading: N,
                sets: ShareSets::default(),
            },
        }
    }

    /// Sets the thresholds of [`States::reconciled`].
    #[must_use]
    pub fn with_thresholds(mut self, thresholds: [f64; 2]) -> Self {
        if let Some(dependents) = &mut self.single.dependents {
            dependents.thresholds = thresholds.map(|threshold| threshold as f32);
        }
        if let Some(dependents) = &mut self.double.dependents {
            dependents.thresholds = thresholds;
        }
        self.items.thresholds = thresholds;
        self
    }

    /// Sets the sets of scalars.
    #[must_use]
    pub fn with_sets(mut self, sets: ShareSets) -> Self {
        self.single.sets = sets;
        self.double.sets = sets;
        self.items.sets = sets;
        self
    }
}

impl<R: Real> StateFunctions<R> {
    fn of<S: States<N>, const N: usize>() -> Self {
        Self {
            leading: N,
            sets: ShareSets::default(),
            physical: all_physical::<S, R, N>,
            primitive: all_primitive::<S, R, N>,
            conserved: all_conserved::<S, R, N>,
            repair: repair::<S, R, N>,
            remainder: S::REMAINDER.map(|_| all_remainders::<S, R, N> as fn(&mut [R], usize)),
            dependents: S::DEPENDENTS.map(|_| DependentComponents {
                update: update_dependents::<S, R, N>,
                reconcile: reconcile::<S, R, N>,
                thresholds: [R::lit(0.0); 2],
            }),
        }
    }
}

fn leading<R: Real, const N: usize>(block: &[R], cells: usize, cell: usize) -> [R; N] {
    std::array::from_fn(|c| block[c * cells + cell])
}

fn all_physical<S: States<N>, R: Real, const N: usize>(block: &[R], cells: usize) -> bool {
    let leading = (0..cells).all(|cell| S::physical(&leading(block, cells, cell)));
    leading && block[N * cells..].iter().all(|v| Real::is_finite(*v))
}

fn all_primitive<S: States<N>, R: Real, const N: usize>(block: &mut [R], cells: usize) {
    let (state, shares) = block.split_at_mut(N * cells);
    for share in shares.chunks_exact_mut(cells) {
        for (share, density) in share.iter_mut().zip(&*state) {
            *share /= *density;
        }
    }
    for cell in 0..cells {
        let w = S::primitive::<R>(&leading(state, cells, cell));
        (0..N).for_each(|c| state[c * cells + cell] = w[c]);
    }
}

fn all_conserved<S: States<N>, R: Real, const N: usize>(block: &mut [R], cells: usize) {
    let (state, shares) = block.split_at_mut(N * cells);
    for cell in 0..cells {
        let u = S::conserved::<R>(&leading(state, cells, cell));
        (0..N).for_each(|c| state[c * cells + cell] = u[c]);
    }
    for share in shares.chunks_exact_mut(cells) {
        for (share, density) in share.iter_mut().zip(&*state) {
            *share *= *density;
        }
    }
}

fn all_remainders<S: States<N>, R: Real, const N: usize>(block: &mut [R], cells: usize) {
    let (state, scalars) = block.split_at_mut(N * cells);
    for cell in 0..cells {
        let remainder = S::remainder::<R>(&leading(state, cells, cell));
        (0..N).for_each(|c| state[c * cells + cell] = remainder[c]);
    }
    scalars.fill(R::lit(0.0));
}

/// Changes a state so that component and remainder together are those before the operation that made it; `kept` is the result of the same
/// operation on the remainders.
pub fn keep_remainder<R: Real>(state: &mut [R], kept: &[R], remainder: fn(&mut [R], usize)) {
    let mut own = [R::lit(0.0); MAX_COMPONENTS];
    let own = &mut own[..state.len()];
    own.copy_from_slice(state);
    remainder(own, 1);
    for ((value, kept), own) in state.iter_mut().zip(kept).zip(own) {
        *value = with_kept_remainder(*value, *kept, *own);
    }
}

fn repair<S: States<N>, R: Real, const N: usize>(u: &mut [R], w: &[R]) {
    let repaired = S::repaired(&leading(u, 1, 0), &leading(w, 1, 0));
    u[..N].copy_from_slice(&repaired);
}

fn update_dependents<S: States<N>, R: Real, const N: usize>(before: &[R], after: &mut [R]) {
    let updated = S::with_dependents(&leading(before, 1, 0), &leading(after, 1, 0));
    after[..N].copy_from_slice(&updated);
}

fn reconcile<S: States<N>, R: Real, const N: usize>(u: &mut [R], thresholds: &[R; 2]) {
    let reconciled = S::reconciled(&leading(u, 1, 0), thresholds);
    u[..N].copy_from_slice(&reconciled);
}
