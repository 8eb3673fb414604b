//! System parameters for fields. [`Read`] and [`Write`] declare a field and a halo width in the signature of
//! a system. The schedule inserts halo exchanges before systems that need them; reading a stale halo is an
//! error.

mod cells;

pub use cells::{Around, FunctionFields, OtherFields, OtherHandles, UpdateInputs};

use super::view::FieldView;
use super::{AccessError, Error};
use bevy_ecs::prelude::*;
use bevy_ecs::system::{SystemName, SystemParam};
use nestar_engine_comm::Comm;
use nestar_engine_comm::halo::LevelSplit;
use nestar_engine_data::PoolResource;
use nestar_engine_data::store::{self, LevelBank, Store};
use nestar_engine_data::{Element, Field, LevelRows, Pool, operators};
use nestar_engine_device::DeviceError;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Describes how a system accesses one field.
pub(super) struct FieldAccess {
    pub field: &'static str,
    pub writes: bool,
    /// Halo width that the system reads.
    pub depth: AtomicUsize,
    /// `true` if the system exchanges the halo itself.
    pub manages_itself: AtomicBool,
}

/// Collects the field accesses of the system that is being registered.
#[derive(Resource, Default)]
pub(super) struct FieldAccesses(pub Vec<Arc<FieldAccess>>);

/// Holds the declared access of a handle as its system state.
#[doc(hidden)]
pub struct HandleState<F, const DEPTH: usize, const WRITES: bool>(
    Arc<FieldAccess>,
    PhantomData<fn(F)>,
);

impl<F: Field, const DEPTH: usize, const WRITES: bool> FromWorld for HandleState<F, DEPTH, WRITES> {
    fn from_world(world: &mut World) -> Self {
        let declaration = Arc::new(FieldAccess {
            field: F::NAME,
            writes: WRITES,
            depth: AtomicUsize::new(DEPTH),
            manages_itself: AtomicBool::new(false),
        });
        let mut declarations = world.get_resource_or_init::<FieldAccesses>();
        declarations.0.push(declaration.clone());
        Self(declaration, PhantomData)
    }
}

/// Gives a handle the level and the clocks of its system.
#[derive(SystemParam)]
struct LevelContext<'w, 's> {
    rows: LevelRows<'w, 's>,
    name: SystemName,
}

/// Reads field `F` on the current level: own rows and `DEPTH` halo layers. The halo includes the coarser
/// level as far as ghost cells are interpolated from it. With `DEPTH` above 0 the halo is exchanged before
/// the system runs.
#[derive(SystemParam)]
pub struct Read<'w, 's, F: Field, const DEPTH: usize = 0> {
    pool: Res<'w, PoolResource<F>>,
    place: LevelContext<'w, 's>,
    declared: Local<'s, HandleState<F, DEPTH, false>>,
}

/// Reads and writes field `F`, as [`Read`] and for own rows. A system that changes the field and then reads
/// the halo again calls [`Write::refresh`] in between.
#[derive(SystemParam)]
pub struct Write<'w, 's, F: Field, const DEPTH: usize = 0> {
    pool: ResMut<'w, PoolResource<F>>,
    place: LevelContext<'w, 's>,
    declared: Local<'s, HandleState<F, DEPTH, true>>,
}

/// Returns a view that reads `reach` halo layers of the current level.
fn view<'a, F: Field>(
    pool: &'a Pool<F>,
    place: &'a LevelContext,
    reach: usize,
) -> FieldView<'a, F> {
    view_on(pool, place, place.rows.level(), reach)
}

/// Returns a view that reads `reach` halo layers of any level.
fn view_on<'a, F: Field>(
    pool: &'a Pool<F>,
    place: &'a LevelContext,
    level: usize,
    reach: usize,
) -> FieldView<'a, F> {
    FieldView {
        pool,
        level: place.rows.view_of(level),
        reach,
    }
}

/// Returns a view if the system declares `reach` halo layers and they are up to date.
fn checked_view<'a, F: Field>(
    pool: &'a Pool<F>,
    place: &'a LevelContext,
    level: usize,
    declared: &FieldAccess,
    reach: usize,
) -> Result<FieldView<'a, F>, Error> {
    let (field, system) = (F::NAME, || place.name.as_str().to_string());
    let depth = declared.depth.load(Relaxed);
    if reach > depth {
        return Err(Error::Access(AccessError::Undeclared {
            field,
            system: system(),
            declared: depth,
            reach,
        }));
    }
    match store::stale_banks(pool, level, reach).next() {
        Some(at) => Err(stale(pool, place, at, reach)),
        None => Ok(view_on(pool, place, level, reach)),
    }
}

/// Builds the error of a system that reads a stale halo.
fn stale<F: Field>(pool: &Pool<F>, place: &LevelContext, at: LevelBank, reach: usize) -> Error {
    Error::Access(AccessError::Stale {
        field: F::NAME,
        level: at.level,
        present: at == Store::present_bank(pool, at.level),
        system: place.name.as_str().to_string(),
        reach,
        fresh: pool.valid_layers(at),
    })
}

/// Checks the halo of the bank from which fluxes of the current level are computed.
fn fresh_before<F: Field>(pool: &Pool<F>, place: &LevelContext, reach: usize) -> Result<(), Error> {
    let bank = pool.flux_source_bank(&place.rows);
    match pool.valid_layers(bank) < reach {
        true => Err(stale(pool, place, bank, reach)),
        false => Ok(()),
    }
}

impl<F: Field, const DEPTH: usize> Write<'_, '_, F, DEPTH> {
    /// Exchanges the declared halo layers if they are stale. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or the transport or the device has.
    pub fn refresh(&mut self, ranks: &mut Comm) -> Result<(), Error> {
        self.refresh_on(ranks, self.place.rows.level())
    }

    /// Exchanges the halo as [`Write::refresh`], on any level.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn refresh_on(&mut self, ranks: &mut Comm, level: usize) -> Result<(), Error> {
        self.begin_refresh(ranks, level)?;
        self.finish_refresh(ranks, level)
    }

    /// Sends averages from halo copies of covered patches to the owners of these patches. For systems that
    /// restrict the field themselves. Collective.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn send_averages(&mut self, ranks: &mut Comm, level: usize) -> Result<(), Error> {
        Ok(ranks.send_averages(&mut self.pool.0, level)?)
    }

    /// Returns a view for writing as [`Write::change`], on any level.
    pub fn change_on(&mut self, level: usize) -> FieldView<'_, F> {
        self.pool.0.mark_all_changed(level);
        view_on(&self.pool.0, &self.place, level, 0)
    }

    /// Starts a halo exchange on any level, in a system registered with
    /// [`manages_own_halo`](super::SystemOptions::manages_own_halo). If it returns a split, the rows of
    /// `LevelSplit::interior` can be advanced until [`Write::finish_refresh`].
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn begin_refresh(
        &mut self,
        ranks: &mut Comm,
        level: usize,
    ) -> Result<Option<Arc<LevelSplit>>, Error> {
        Ok(ranks.start_halo(&self.pool.0, level, self.halo_width())?)
    }

    /// Completes the exchange that [`Write::begin_refresh`] started.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn finish_refresh(&mut self, ranks: &mut Comm, level: usize) -> Result<(), Error> {
        let depth = self.halo_width();
        Ok(ranks.finish_halo(&mut self.pool.0, level, depth)?)
    }

    /// Returns the field during a halo exchange of a level; only rows of `LevelSplit::interior` may be used
    /// because they read no halo.
    #[must_use]
    pub fn interior(&self, level: usize, _: &LevelSplit) -> FieldView<'_, F> {
        view_on(&self.pool.0, &self.place, level, self.halo_width())
    }

    /// Sets the present state of distinct own rows from `[row][component][8][8][8]`, on the host or the
    /// device. Collective, also without rows.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`Pool::store`].
    pub fn store<R: Element>(&mut self, rows: &[u32], values: &[R]) -> Result<(), DeviceError> {
        self.store_on(self.place.rows.level(), rows, values)
    }

    /// Sets own rows as [`Write::store`], on any level.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`Write::store`].
    pub fn store_on<R: Element>(
        &mut self,
        level: usize,
        rows: &[u32],
        values: &[R],
    ) -> Result<(), DeviceError> {
        self.pool.0.store(level, rows, values)
    }

    /// Returns a view for kernels that change the present state of own rows. It marks the halo and all data
    /// derived from the level as stale. Collective.
    pub fn change(&mut self) -> FieldView<'_, F> {
        self.pool.0.mark_all_changed(self.place.rows.level());
        view(&self.pool.0, &self.place, 0)
    }

    /// Restricts children to covered cells by averaging; returns the number of cells corrected on the host.
    pub(super) fn restrict(&mut self) -> Result<u64, DeviceError> {
        operators::restrict(&mut self.pool.0, &self.place.rows.view())
    }

    /// Makes values shared by several patches equal to those of one of them.
    pub(super) fn share(&mut self) -> Result<(), Error> {
        self.get(1)?;
        Ok(operators::unify_shared_values(
            &mut self.pool.0,
            &self.place.rows.view(),
        )?)
    }

    /// Applies flux correction at coarse-fine faces; returns the number of cells corrected on the host.
    pub(super) fn correct(&mut self) -> Result<u64, DeviceError> {
        operators::correct(&mut self.pool.0, &self.place.rows.view())
    }

    /// Accepts the step of the current level: its results become the present state and its fluxes are
    /// recorded.
    ///
    /// # Errors
    /// The device fails.
    pub fn commit(&mut self) -> Result<(), DeviceError> {
        let place = self.place.rows.view();
        let (clock, rows) = (place.clock, place.rows());
        self.pool.0.commit(clock.level, clock.end, clock.dt, rows)
    }
}
