//! What a system's signature says about fields: [`Read`] and [`Write`] state which field and how many layers of the copies of
//! other ranks' patches. The order puts an exchange in front of who needs one; a read of copies that are out of date is a fault.

mod cells;

use super::view::FieldView;
use super::{AccessError, Error};
use crate::comm::Comm;
use crate::comm::halo::LevelSplit;
use crate::data::PoolResource;
use crate::data::store::{self, LevelBank, Store};
use crate::data::{Element, Field, LevelRows, Pool, operators, staggered};
use crate::device::DeviceError;
use bevy_ecs::prelude::*;
use bevy_ecs::system::{SystemName, SystemParam};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// One field in the signature of a system.
pub(super) struct FieldAccess {
    pub field: &'static str,
    pub writes: bool,
    /// Layers of copies that the system reads.
    pub depth: AtomicUsize,
    /// Whether the system exchanges them itself.
    pub itself: AtomicBool,
}

/// Declarations of the system that is being registered.
#[derive(Resource, Default)]
pub(super) struct FieldAccesses(pub Vec<Arc<FieldAccess>>);

/// The state of a handle: what it declares.
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
            itself: AtomicBool::new(false),
        });
        let mut declarations = world.get_resource_or_init::<FieldAccesses>();
        declarations.0.push(declaration.clone());
        Self(declaration, PhantomData)
    }
}

/// Where a system works.
#[derive(SystemParam)]
struct LevelContext<'w, 's> {
    rows: LevelRows<'w, 's>,
    name: SystemName,
}

/// Reads field `F` on the level at hand: own rows, and `DEPTH` layers of the copies of other ranks' patches, those of the level
/// below included that ghost cells are interpolated from. With a `DEPTH` above 0 the copies are brought up to date before the
/// system runs.
#[derive(SystemParam)]
pub struct Read<'w, 's, F: Field, const DEPTH: usize = 0> {
    pool: Res<'w, PoolResource<F>>,
    place: LevelContext<'w, 's>,
    declared: Local<'s, HandleState<F, DEPTH, false>>,
}

/// As [`Read`], and writes own rows. A system that changes the field and reads copies again calls [`Write::refresh`] in between,
/// as often as it needs.
#[derive(SystemParam)]
pub struct Write<'w, 's, F: Field, const DEPTH: usize = 0> {
    pool: ResMut<'w, PoolResource<F>>,
    place: LevelContext<'w, 's>,
    declared: Local<'s, HandleState<F, DEPTH, true>>,
}

/// A view that reaches `reach` layers.
fn view<'a, F: Field>(
    pool: &'a Pool<F>,
    place: &'a LevelContext,
    reach: usize,
) -> FieldView<'a, F> {
    view_on(pool, place, place.rows.level(), reach)
}

/// As [`view`], on any level.
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

/// A view that reaches `reach` layers, if so many are declared and up to date.
fn checked<'a, F: Field>(
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

/// The fault of a system that reads copies which are out of date.
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

/// Whether `reach` layers of copies are up to date in the bank that fluxes of the level at hand are made of.
fn fresh_before<F: Field>(pool: &Pool<F>, place: &LevelContext, reach: usize) -> Result<(), Error> {
    let bank = pool.flux_source_bank(&place.rows);
    match pool.valid_layers(bank) < reach {
        true => Err(stale(pool, place, bank, reach)),
        false => Ok(()),
    }
}

impl<F: Field, const DEPTH: usize> Write<'_, '_, F, DEPTH> {
    /// Brings the declared layers of copies up to date, if they are not. All ranks call it alike.
    ///
    /// # Errors
    /// Another rank has failed, or the transport or the device has.
    pub fn refresh(&mut self, ranks: &mut Comm) -> Result<(), Error> {
        self.refresh_on(ranks, self.place.rows.level())
    }

    /// As [`Write::refresh`] on any level, for systems that work on several.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn refresh_on(&mut self, ranks: &mut Comm, level: usize) -> Result<(), Error> {
        self.begin_refresh_on(ranks, level)?;
        self.finish_refresh_on(ranks, level)
    }

    /// Sends what copies of covered patches of a level have taken from own children to the owners of the patches, for systems that
    /// average by themselves. All ranks call it alike.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn send_averages(&mut self, ranks: &mut Comm, level: usize) -> Result<(), Error> {
        Ok(ranks.send_averages(&mut self.pool.0, level)?)
    }

    /// As [`Write::change`] on any level.
    pub fn change_on(&mut self, level: usize) -> FieldView<'_, F> {
        self.pool.0.mark_all_changed(level);
        view_on(&self.pool.0, &self.place, level, 0)
    }

    /// Starts what [`Write::refresh`] does, for a system that was registered with
    /// [`manages_own_halo`](super::SystemOptions::manages_own_halo); until [`Write::finish_refresh`] it may advance the rows of
    /// `LevelSplit::interior`, if something is under way and that is worth while.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn begin_refresh(&mut self, ranks: &mut Comm) -> Result<Option<Arc<LevelSplit>>, Error> {
        self.begin_refresh_on(ranks, self.place.rows.level())
    }

    /// As [`Write::begin_refresh`] on any level.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn begin_refresh_on(
        &mut self,
        ranks: &mut Comm,
        level: usize,
    ) -> Result<Option<Arc<LevelSplit>>, Error> {
        Ok(ranks.start_halo(&self.pool.0, level, self.halo_width())?)
    }

    /// Ends what [`Write::begin_refresh`] began.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn finish_refresh(&mut self, ranks: &mut Comm) -> Result<(), Error> {
        self.finish_refresh_on(ranks, self.place.rows.level())
    }

    /// Ends what [`Write::begin_refresh_on`] began.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn finish_refresh_on(&mut self, ranks: &mut Comm, level: usize) -> Result<(), Error> {
        let depth = self.halo_width();
        Ok(ranks.finish_halo(&mut self.pool.0, level, depth)?)
    }

    /// The field while copies are under way: good for the rows of `LevelSplit::interior` alone, which read none.
    #[must_use]
    pub fn interior(&self, split: &LevelSplit) -> FieldView<'_, F> {
        self.interior_on(self.place.rows.level(), split)
    }

    /// As [`Write::interior`] on any level.
    #[must_use]
    pub fn interior_on(&self, level: usize, _: &LevelSplit) -> FieldView<'_, F> {
        view_on(&self.pool.0, &self.place, level, self.halo_width())
    }

    /// Sets the present state of some distinct own rows from `[row][component][8][8][8]`, wherever the field lives. All ranks
    /// call it, also without rows.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`Pool::store`].
    pub fn store<R: Element>(&mut self, rows: &[u32], values: &[R]) -> Result<(), DeviceError> {
        self.store_on(self.place.rows.level(), rows, values)
    }

    /// As [`Write::store`] on any level.
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

    /// A view for a kernel of one's own that changes the present state of any own rows: what is derived from the level is out
    /// of date from now on, as are its copies. All ranks call it alike.
    pub fn change(&mut self) -> FieldView<'_, F> {
        self.pool.0.mark_all_changed(self.place.rows.level());
        view(&self.pool.0, &self.place, 0)
    }

    /// Covered cells take the averages of their children; how many were mended on the host.
    pub(super) fn restrict(&mut self) -> Result<u64, DeviceError> {
        operators::restrict(&mut self.pool.0, &self.place.rows.view())
    }

    /// Values that patches share go to one of them.
    pub(super) fn share(&mut self) -> Result<(), Error> {
        self.get(1)?;
        Ok(staggered::unify_shared_values(
            &mut self.pool.0,
            &self.place.rows.view(),
        )?)
    }

    /// Cells beside coarse-fine faces take the fine fluxes; how many were mended on the host.
    pub(super) fn correct(&mut self) -> Result<u64, DeviceError> {
        operators::correct(&mut self.pool.0, &self.place.rows.view())
    }

    /// The step of the level at hand stands: what it wrote becomes the present state, and its fluxes count.
    ///
    /// # Errors
    /// The device fails.
    pub fn commit(&mut self) -> Result<(), DeviceError> {
        let place = self.place.rows.view();
        let (clock, rows) = (place.clock, place.rows());
        self.pool.0.commit(clock.level, clock.end, clock.dt, rows)
    }
}
