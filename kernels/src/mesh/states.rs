//! States of a field: which are sound, in which variables they are interpolated, and how round-off is mended.

use nestar_device::{Item, Real, device};

/// Most components a field may have (gas and its scalars).
#[device]
pub const MAX_COMPONENTS: usize = 64;

/// What averages, corrections and interpolations must know of a field's states: four functions of their leading `N`
/// components, all `#[device]` functions, so that they hold on devices too.
///
/// Components behind those are amounts of what component 0 is the density of (a dye in a gas): they are interpolated as shares
/// of it, which stay between those around, and must be finite. Some may belong together ([`ShareSets`]).
pub trait States<const N: usize>: 'static {
    /// The four functions on devices, in the order of the trait.
    const ITEMS: [&'static Item; 4];

    /// Whether a state is sound.
    fn physical<R: Real>(u: &[R; N]) -> bool;

    /// The variables that are interpolated, the first of them component 0 itself.
    fn primitive<R: Real>(u: &[R; N]) -> [R; N];

    /// The state with the given primitive variables.
    fn conserved<R: Real>(w: &[R; N]) -> [R; N];

    /// What round-off left of a sum of sound states, made sound without a change of what is transported exactly: it takes from
    /// the primitive variables `w`, of the state before or the mean of those averaged, what it cannot tell itself.
    fn mended<R: Real>(u: &[R; N], w: &[R; N]) -> [R; N];

    /// The two functions below on devices, in this order, if they do anything.
    const DEPENDENTS: Option<[&'static Item; 2]> = None;

    /// The state `after` a function has changed some components of `before`, with those that follow from them.
    fn followed<R: Real>(_before: &[R; N], after: &[R; N]) -> [R; N] {
        *after
    }

    /// An average, a correction or an interpolation of states, by component, made one state where components tell of each other;
    /// `threshold`: as given to [`StateRules::with_threshold`].
    fn settled<R: Real>(u: &[R; N], _threshold: R) -> [R; N] {
        *u
    }
}

/// Which shares belong together: the amounts of a set sum to component 0 in every cell, so that its shares sum to 1.
///
/// Sets are numbered from 1; 0 stands for the shares that are on their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareSets {
    /// The set of each component.
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
    /// One more set, of the given components.
    ///
    /// # Panics
    /// If there is no such component, or one of them belongs to a set already.
    #[must_use]
    pub fn with(mut self, components: &[usize]) -> Self {
        self.count += 1;
        for &c in components {
            assert!(self.of[c] == 0, "component {c} belongs to two sets");
            self.of[c] = self.count;
        }
        self
    }

    /// Number of sets.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// The set of a component; 0: none.
    #[must_use]
    pub fn of(&self, component: usize) -> usize {
        usize::from(self.of[component])
    }

    /// The components of a set, in ascending order.
    pub fn members(&self, set: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..MAX_COMPONENTS).filter(move |&c| self.of(c) == set)
    }
}

/// The functions of [`States`] in one precision. Blocks are `[component][cells]`.
#[derive(Clone, Copy, Debug)]
pub struct StateFunctions<R> {
    /// Leading components, that are no shares.
    pub leading: usize,
    /// The shares that belong together.
    pub sets: ShareSets,
    /// Whether all states of a block of so many cells are sound.
    pub physical: fn(&[R], usize) -> bool,
    /// Puts the primitive variables in place of a block of so many states.
    pub primitive: fn(&mut [R], usize),
    /// Puts the states in place of a block of so many primitive variables.
    pub conserved: fn(&mut [R], usize),
    /// Mends a state by the given primitive variables.
    pub repair: fn(&mut [R], &[R]),
    /// Where components follow from others.
    pub dependents: Option<DependentComponents<R>>,
}

/// [`States::followed`] and [`States::settled`] in one precision, of single states.
#[derive(Clone, Copy, Debug)]
pub struct DependentComponents<R> {
    /// Lets the second state, which the first has become, follow.
    pub update: fn(&[R], &mut [R]),
    reconcile: fn(&mut [R], R),
    threshold: R,
}

impl<R: Copy> DependentComponents<R> {
    /// Makes one state of what an average, a correction or an interpolation has made of each component.
    pub fn reconcile(&self, u: &mut [R]) {
        (self.reconcile)(u, self.threshold);
    }
}

/// The functions of [`States`] on devices, and how many components they look at.
#[derive(Clone, Copy, Debug)]
pub struct StateItems {
    /// As [`States::ITEMS`].
    pub items: [&'static Item; 4],
    /// As [`States::DEPENDENTS`].
    pub dependents: Option<[&'static Item; 2]>,
    /// Of the second of them.
    pub threshold: f64,
    /// Leading components.
    pub leading: usize,
    /// The shares that belong together.
    pub sets: ShareSets,
}

/// What a field declares of its states.
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
    /// The rules `S`.
    #[must_use]
    pub fn of<S: States<N>, const N: usize>() -> Self {
        Self {
            single: StateFunctions::of::<S, N>(),
            double: StateFunctions::of::<S, N>(),
            items: StateItems {
                items: S::ITEMS,
                dependents: S::DEPENDENTS,
                threshold: 0.0,
                leading: N,
                sets: ShareSets::default(),
            },
        }
    }

    /// The same rules with the threshold of [`States::settled`].
    #[must_use]
    pub fn with_threshold(mut self, threshold: f64) -> Self {
        if let Some(follow) = &mut self.single.dependents {
            follow.threshold = threshold as f32;
        }
        if let Some(follow) = &mut self.double.dependents {
            follow.threshold = threshold;
        }
        self.items.threshold = threshold;
        self
    }

    /// The same rules for shares of which some belong together.
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
            dependents: S::DEPENDENTS.map(|_| DependentComponents {
                update: follow::<S, R, N>,
                reconcile: reconcile::<S, R, N>,
                threshold: R::lit(0.0),
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

fn repair<S: States<N>, R: Real, const N: usize>(u: &mut [R], w: &[R]) {
    let mended = S::mended(&leading(u, 1, 0), &leading(w, 1, 0));
    u[..N].copy_from_slice(&mended);
}

fn follow<S: States<N>, R: Real, const N: usize>(before: &[R], after: &mut [R]) {
    let followed = S::followed(&leading(before, 1, 0), &leading(after, 1, 0));
    after[..N].copy_from_slice(&followed);
}

fn reconcile<S: States<N>, R: Real, const N: usize>(u: &mut [R], threshold: R) {
    let settled = S::settled(&leading(u, 1, 0), threshold);
    u[..N].copy_from_slice(&settled);
}
