//! What the engine does with any field, derived from its declaration: growth, prolongation, restriction, flux correction.

use super::copies::Exchanged;
use super::device::{DeviceTopology, Packing};
use super::pool::{Element, Field, Held, Pool, Storage};
use super::{Component, Correct, FieldSpec, Precision, Prolong, faces};
use crate::device::DeviceError;
use crate::field::FaultBox;
use crate::mesh::{LevelClock, NewRows, Topology};
use crate::with_storage;
use bevy_ecs::prelude::*;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::fluxes::{FACE, FineFlux, cell_behind, correction};
use nestar_kernels::mesh::gather::prolong_patch;
use nestar_kernels::mesh::restrict::restrict_octet;
use nestar_snapshot::Values;
use rayon::prelude::*;
use std::ops::Range;

/// Sets the values of one component in some rows of a level: world, level, component, rows, values.
pub type Load = fn(&mut World, usize, usize, &[u32], &Values) -> Result<(), String>;

/// Sums over stretches of the rows of a level: world, level, stretches.
pub type NodeSums = fn(&World, usize, &[Range<usize>]) -> Result<Vec<f64>, DeviceError>;

/// The engine's operations on one registered field.
#[derive(Clone, Copy)]
pub struct FieldOperations {
    /// Name of the field.
    pub name: &'static str,
    /// Follows a change of `level`'s patches, of which the given rows are new: storage, times, registers.
    pub follow: fn(&mut World, usize, &[u32]),
    /// Fills the rows of [`NewRows`] from the coarser level.
    pub prolong: fn(&mut World),
    /// The field's declaration.
    pub spec: fn(&World) -> &FieldSpec,
    /// Sums of the leaf cells of stretches of a level's own patches, `[stretch][component]`.
    pub node_sums: NodeSums,
    /// Bytes reserved.
    pub bytes: fn(&World) -> usize,
    /// Bytes of the flux registers, on a device as on the host.
    pub register_bytes: fn(&World) -> usize,
    /// Values of one component in some rows of a level, `[row][8][8][8]`.
    pub extract: fn(&World, usize, usize, &[u32]) -> Result<Values, DeviceError>,
    /// Where the field lives on a device: starts to pack the present state of rows of a level there.
    pub pack: fn(&World, usize, &Packing) -> Result<(), DeviceError>,
    /// Flux corrections that a device has left out since the run began here.
    pub skipped_on_device: fn(&World) -> Result<u64, DeviceError>,
    /// Sets the values of one component in some rows of a level, and the level's time.
    pub load: Load,
    /// The most layers of the copies of other ranks' patches that anything reads.
    pub depth: usize,
    /// The field as exchanges between ranks see it.
    pub exchanged: fn(&World) -> &dyn Exchanged,
    /// The same, for changing.
    pub exchanged_mut: fn(&mut World) -> &mut dyn Exchanged,
}

/// What is read of copies: so many layers of cells, with the values on their sides where a field is staggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// How many.
    pub depth: usize,
    /// Where values lie.
    pub centring: Centring,
}

/// The registered fields.
#[derive(Resource, Default)]
pub struct FieldRegistry(Vec<FieldOperations>);

impl FieldRegistry {
    /// Adds field `F`.
    pub fn register<F: Field>(&mut self) {
        self.0.push(FieldOperations {
            name: F::NAME,
            follow: follow::<F>,
            prolong: prolong::<F>,
            spec: |world| &Pool::<F>::of(world).spec,
            node_sums: super::totals::node_sums::<F>,
            bytes: |world| Pool::<F>::of(world).bytes(),
            register_bytes: |world| Pool::<F>::of(world).register_bytes(),
            extract: super::transfer::extract::<F>,
            pack: super::transfer::pack::<F>,
            load: super::transfer::load::<F>,
            // restriction and interpolation into new patches read that many
            depth: 1,
            exchanged: |world| Pool::<F>::of(world),
            exchanged_mut: |world| Pool::<F>::of_mut(world),
            skipped_on_device: |world| match &Pool::<F>::of(world).storage {
                Storage::Device(pool) => pool.skipped(),
                _ => Ok(0),
            },
        });
    }

    /// Whether there is a field `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|field| field.name == name)
    }

    /// Declares that up to `depth` layers of the copies of the field `name` are read.
    pub(crate) fn reads(&mut self, name: &str, depth: usize) {
        for field in self.0.iter_mut().filter(|field| field.name == name) {
            field.depth = field.depth.max(depth);
        }
    }

    /// The layers of copies that are read, ascending.
    #[must_use]
    pub fn layers(&self, world: &World) -> Vec<Layers> {
        let layers = |field: &FieldOperations| Layers {
            depth: field.depth,
            centring: (field.spec)(world).centring,
        };
        let mut layers: Vec<Layers> = self.0.iter().map(layers).collect();
        layers.sort_unstable_by_key(|layers| (layers.depth, layers.centring as u8));
        layers.dedup();
        layers
    }

    /// The operations of all fields, in the order of registration.
    #[must_use]
    pub fn operations(&self) -> Vec<FieldOperations> {
        self.0.clone()
    }

    /// The operations of the fields of `world` whose declaration is `wanted`, in the order of registration.
    #[must_use]
    pub fn of(world: &World, wanted: impl Fn(&FieldSpec) -> bool) -> Vec<FieldOperations> {
        let fields = world.resource::<Self>().0.iter();
        let fields = fields.filter(|field| wanted((field.spec)(world)));
        fields.copied().collect()
    }

    /// The components that have totals, in the order of registration.
    #[must_use]
    pub fn totalled(world: &World) -> Vec<&Component> {
        let fields = Self::of(world, |spec| spec.in_totals).into_iter();
        let components = fields.flat_map(|field| &(field.spec)(world).components);
        components.collect()
    }
}

/// The topology tables on the device.
fn tables(world: &World) -> &DeviceTopology {
    world.resource::<DeviceTopology>()
}

fn follow<F: Field>(world: &mut World, level: usize, rows: &[u32]) {
    world.resource_scope(|world, mut pool: Mut<Held<F>>| {
        let pool = &mut pool.0;
        let topology = world.resource::<Topology>();
        let time = world.resource::<crate::mesh::Levels>().time(level);
        let faults = world.resource::<FaultBox>();
        if !faults.check(pool.grow(topology.capacity())) {
            return;
        }
        pool.touch(level, rows);
        // other copies are held than before, and other cells of those that the new patches stand on are read
        for level in level.saturating_sub(1)..=level {
            Exchanged::expire(pool, level);
        }
        if pool.time(level) != time || rows.len() == topology.rows(level).len() {
            pool.set_time(level, time);
        }
        let corrected = pool.spec.correct == Correct::Fluxes;
        with_storage!(&mut pool.storage,
            typed => if corrected {
                for pair in level.saturating_sub(1)..=level {
                    typed.registers.rebuild(topology, pair);
                }
            },
            device => _ = faults.check(device.follow(tables(world), topology, level)));
    });
}

fn prolong<F: Field>(world: &mut World) {
    match Pool::<F>::of(world).spec.prolong {
        Prolong::None => clear::<F>(world),
        Prolong::Own(fill) => fill(world),
        _ => interpolate::<F>(world),
    }
}

/// New rows begin with zeros: what their memory held before depends on the history of this rank.
fn clear<F: Field>(world: &mut World) {
    world.resource_scope(|world, mut pool: Mut<Held<F>>| {
        let pool = &mut pool.0;
        let new = world.resource::<NewRows>();
        let values = new.rows.len() * pool.spec.row_values();
        let cleared = match pool.precision() {
            Precision::Single => pool.store(new.level, &new.rows, &vec![0.0f32; values]),
            Precision::Double => pool.store(new.level, &new.rows, &vec![0.0f64; values]),
        };
        world.resource::<FaultBox>().check(cleared);
    });
}

fn interpolate<F: Field>(world: &mut World) {
    world.resource_scope(|world, mut pool: Mut<Held<F>>| {
        let pool = &mut pool.0;
        let new = world.resource::<NewRows>();
        match pool.storage {
            Storage::Single(_) => prolong_rows::<F, f32>(pool, world, new),
            Storage::Double(_) => prolong_rows::<F, f64>(pool, world, new),
            Storage::Device(_) => prolong_on_device(pool, world, new.level),
        }
        pool.touch(new.level, &new.rows);
    });
}

fn prolong_on_device<F: Field>(pool: &mut Pool<F>, world: &World, level: usize) {
    let faults = world.resource::<FaultBox>();
    if !faults.is_full() {
        let view = pool.view(tables(world), world.resource::<Topology>(), level);
        let bank = pool.current(level);
        let marks = &world.resource::<NewRows>().marks;
        let device = pool.device_mut();
        faults.check(device.prolong(tables(world), view, bank, marks));
    }
}

fn prolong_rows<F: Field, R: Element>(pool: &Pool<F>, world: &World, new: &NewRows) {
    let topology = world.resource::<Topology>();
    if pool.spec.centring == Centring::Face {
        return faces::prolong_rows::<F, R>(pool, topology, new);
    }
    let view = pool.ghosts::<R>(topology, new.level, 1);
    let components = pool.components();
    let scratch = &pool.typed::<R>().gather_scratch;
    new.rows.par_iter().for_each(|&row| {
        // SAFETY: the rows are distinct, and the interpolation reads rows of the coarser level only.
        unsafe { prolong_patch(&view, row, components, &mut scratch.get()) };
    });
}

/// Covered cells of `level` take the averages of their children. All ranks call it.
///
/// # Errors
/// The device fails.
pub(crate) fn restrict<F: Field>(
    pool: &mut Pool<F>,
    topology: &Topology,
    tables: Option<&DeviceTopology>,
    level: usize,
) -> Result<(), DeviceError> {
    // on all ranks, whether they have covered patches or not
    pool.expire_present(level);
    match (&pool.storage, tables) {
        (Storage::Single(_), _) => restrict_level::<F, f32>(pool, topology, level),
        (Storage::Double(_), _) => restrict_level::<F, f64>(pool, topology, level),
        (Storage::Device(device), Some(tables)) if level < topology.max_level => {
            let banks = [pool.current(level), pool.current(level + 1)];
            if device.restrict(tables, level, banks)? {
                pool.changed(level);
            }
        }
        (Storage::Device(_), _) => {}
    }
    Ok(())
}

fn restrict_level<F: Field, R: Element>(pool: &mut Pool<F>, topology: &Topology, level: usize) {
    let (coarse, fine) = (pool.present::<R>(level), pool.present::<R>(level + 1));
    let (centring, physical) = (pool.spec.centring, pool.typed::<R>().physical());
    // where another rank has the parent its copy takes the averages, and travels afterwards
    let rows = topology
        .rows(level)
        .par_iter()
        .chain(topology.copies(level));
    rows.for_each(|&row| {
        if let Some(first) = topology.first_child(row)
            && topology.is_owned(first)
        {
            // SAFETY: each coarse row is written by one task; fine rows are only read.
            unsafe { restrict_octet(centring, &coarse, row, &fine, first, physical) };
        }
    });
    for &row in topology.rows(level) {
        if !topology.is_leaf(row) {
            pool.touch(level, &[row]);
        }
    }
}

/// Corrections left out on the host because they would have made a cell unphysical, since the start of the run.
#[derive(Resource, Default)]
pub struct SkippedCorrections(pub u64);

/// Cells beside a coarse-fine face take the fine fluxes in place of the coarse one; returns how many cells on the host had to
/// go without. All ranks call it.
///
/// # Errors
/// The device fails.
pub(crate) fn correct<F: Field>(
    pool: &mut Pool<F>,
    topology: &Topology,
    tables: Option<&DeviceTopology>,
    clock: &LevelClock,
) -> Result<u64, DeviceError> {
    // on all ranks, whether they have such cells or not
    pool.expire_present(clock.level);
    match (&pool.storage, tables) {
        (Storage::Single(_), _) => Ok(correct_level::<F, f32>(pool, topology, clock)),
        (Storage::Double(_), _) => Ok(correct_level::<F, f64>(pool, topology, clock)),
        (Storage::Device(device), Some(tables)) => {
            if device.correct(tables, clock, pool.current(clock.level))? {
                pool.changed(clock.level);
            }
            Ok(0)
        }
        (Storage::Device(_), None) => Ok(0),
    }
}

fn correct_level<F: Field, R: Element>(
    pool: &mut Pool<F>,
    topology: &Topology,
    clock: &LevelClock,
) -> u64 {
    let typed = pool.typed::<R>();
    let rows = typed.registers.corrected(clock.level);
    let present = pool.present::<R>(clock.level);
    let inverse_width = clock.cell_width.map(|w| R::lit(1.0 / w));
    let (components, dt) = (pool.components(), R::lit(clock.dt));
    let skipped = rows
        .par_iter()
        .map(|(row, slots)| {
            let mut change = typed.correct_scratch.get();
            change.fill(R::lit(0.0));
            for slot in slots.clone() {
                let (face, coarse) = typed.registers.coarse(clock.level, slot);
                let fine = typed.registers.fine(topology, clock.level, *row, face);
                let step = [dt, inverse_width[face / 2]];
                collect(&mut change, components, face, coarse, &fine, step);
            }
            // SAFETY: each row is written by one task.
            let values = unsafe { present.row_mut(*row) };
            apply(values, &change, components, typed.physical())
        })
        .sum();
    pool.touch_corrected(clock.level);
    skipped
}

/// Enters the corrections of one face into `change`, `[axis][component][512]`.
fn collect<R: Element>(
    change: &mut [R],
    components: usize,
    face: usize,
    coarse: &[R],
    fine: &[FineFlux<R>; 4],
    step: [R; 2],
) {
    for c in 0..components {
        let out = &mut change[(face / 2 * components + c) * CELLS..][..CELLS];
        for place in 0..FACE {
            let (slow, fast) = (place / 8, place % 8);
            out[cell_behind(face, slow, fast)] =
                correction(face, coarse, fine, c, [slow, fast], step);
        }
    }
}

/// Adds the corrections of the three axes, in an order-independent sum, where the result is physical; returns how many
/// cells had to go without.
fn apply<R: Element>(
    values: &mut [R],
    change: &[R],
    components: usize,
    physical: fn(&[R]) -> bool,
) -> u64 {
    let axis = components * CELLS;
    let mut state = [R::lit(0.0); nestar_kernels::mesh::prolong::MAX_COMPONENTS];
    let mut skipped = 0;
    for cell in 0..CELLS {
        let mut changed = false;
        for c in 0..components {
            let at = c * CELLS + cell;
            let sum =
                nestar_device::math::sum3(change[at], change[axis + at], change[2 * axis + at]);
            changed |= sum != R::lit(0.0);
            state[c] = values[at] + sum;
        }
        if !changed {
            continue;
        }
        if !physical(&state[..components]) {
            skipped += 1;
            continue;
        }
        for c in 0..components {
            values[c * CELLS + cell] = state[c];
        }
    }
    skipped
}
