//! Parameters of the particle kernels.
//!
//! Particles of one list of a level are stored in a [`PageArray`], ordered by patch. A step counts the
//! particles per destination patch and scatters them to new rows, in place: patches are processed in batches
//! that overwrite only rows already read. The order within a patch has no meaning.

use nestar_device::{Address, Item, device};

/// Largest number of particles per thread block.
pub const CHUNK: usize = 4096;

/// Source of the kernels that need no field.
pub const PARTICLES: &str = concat!(
    include_str!("pages.cuh"),
    include_str!("boundary_zone.cuh"),
    include_str!("drift.cu"),
    include_str!("records.cu"),
    include_str!("reductions.cu"),
    include_str!("deep_part.cuh"),
    include_str!("deposit.cu"),
    include_str!("refinement.cu")
);

/// Returns all structures and the functions that the kernels call.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    let mut items = super::device_items();
    items.extend([
        PageArray,
        HierarchyTables,
        ParticleList,
        DriftParameters,
        InsertPagesParameters,
        PackParameters,
        MaximumParameters,
        TermsParameters,
        CloudShape,
        DepositParameters,
        DepositListsParameters,
        DensityParameters,
        MarkParameters,
        UnpackParameters,
        PackSumsParameters,
        MergeSumsParameters,
        RemapParameters,
        PlaceStagedParameters,
    ]);
    items.extend([SCATTER::ITEM, SEND::ITEM, STAGE::ITEM]);
    items.extend([SAME_PATCH::ITEM, TO_CHILDREN::ITEM]);
    items
}

/// Pages of 32 particles. A page stores its columns one after the other, 32 values each. The columns are an
/// identity of 8 bytes, then numbers of the run's precision: offset, velocity and acceleration along x, y, z,
/// the mass if each particle has its own, and scalars. Offsets are as wide as numbers.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct PageArray {
    /// First page.
    pub words: Address<u8>,
    /// Bytes of a page; 0 if there are no pages.
    pub page: i64,
}

/// Topology tables by row, as in [`GatherView`](crate::mesh::parameters::GatherView).
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct HierarchyTables {
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// Parents.
    pub parent: Address<i32>,
    /// First children.
    pub first_child: Address<i32>,
    /// Patch index on the level, and the level, `[row][4]`.
    pub index: Address<i32>,
}

/// One list of a level, in chunks of at most [`CHUNK`] particles of one patch.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct ParticleList {
    /// Particles.
    pub page_array: PageArray,
    /// `[chunk][3]`: row, first particle, count.
    pub chunks: Address<u32>,
    /// Topology tables.
    pub tables: HierarchyTables,
    /// Columns besides the identity, at least 9.
    pub numbers: i32,
    /// `true` if each particle has its own mass.
    pub masses: bool,
}

/// Parameters of `particles_count`, `particles_scatter` and `particles_stage`: kick, drift and
/// redistribution.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct DriftParameters {
    /// Particles.
    pub from: ParticleList,
    /// Destinations in this order: lists 0 and 1 of the level that moves the particles, list 1 of the next
    /// coarser level, outgoing particles.
    pub to: [PageArray; 4],
    /// `[list][rows + 1]`: particles per row or first row of each patch. The last entry is for particles
    /// without a stored destination.
    pub cursors: Address<u32>,
    /// Outgoing particles without a stored destination: row * 64 + 32 * list + direction. Staged particles:
    /// page array * 2^32 + position there.
    pub tags: Address<u64>,
    /// First outgoing particle without a stored destination; those for stored patches of other ranks come
    /// before.
    pub tagged: i64,
    /// Particles that leave the domain: count, mass in quanta, and 1 + the identity of a particle without a
    /// finite position.
    pub lost: Address<u64>,
    /// Identities of particles that leave the domain, up to `room`.
    pub escaped: Address<u64>,
    /// Capacity for identities or staged particles.
    pub room: i64,
    /// Step over patch width along each axis.
    pub rate: [f64; 3],
    /// Half the step.
    pub half: f64,
    /// Mass quanta per unit mass.
    pub quanta_per_mass: f64,
    /// Mass of each particle, if all have the same.
    pub mass: f64,
    /// Rows of the hierarchy.
    pub rows: i64,
    /// Reflecting faces, as bits `2 * axis + side`.
    pub walls: u32,
    /// List and page array of particles that stay in their patch.
    pub stay: [i32; 2],
    /// `true` if the patches are on the level that moves the particles.
    pub own: bool,
    /// Particles to be scattered: [`SCATTER`] or [`SEND`].
    pub what: i32,
    /// As `cursors`: first batch in which the rows of a patch are free; null if all are free.
    pub free_from_batch: Address<u32>,
    /// Current batch; for `particles_stage`, the first batch of the list.
    pub batch: u32,
    /// List of the particles.
    pub list: i32,
    /// Number of staged particles.
    pub staged: Address<u64>,
    /// Destination key of each particle within its chunk.
    pub keys: Address<u8>,
    /// Position of each particle among those with the same destination patch.
    pub positions: Address<u32>,
}

/// [`DriftParameters::what`]: particles whose rows are free.
#[device]
pub const SCATTER: i32 = 0;
/// [`DriftParameters::what`]: particles that leave this rank's lists.
#[device]
pub const SEND: i32 = 1;
/// Particles whose rows are not free yet; `particles_stage` writes them to the side buffer, which all page
/// arrays then refer to.
#[device]
pub const STAGE: i32 = 2;

/// Parameters of `particles_place_staged`: moves staged particles to their rows.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct PlaceStagedParameters {
    /// Staged particles.
    pub from: PageArray,
    /// As [`DriftParameters::tags`].
    pub tags: Address<u64>,
    /// Destinations.
    pub to: [PageArray; 4],
    /// Number of particles.
    pub count: i64,
    /// Columns besides the identity.
    pub numbers: i32,
}

/// Relation of particles that stay in their patch; relations 0 to 7 move from that child to the parent.
#[device]
pub const SAME_PATCH: i32 = 8;
/// Relation of particles that move to the children.
#[device]
pub const TO_CHILDREN: i32 = 9;

/// Parameters of `particles_remap`: moves particles unchanged to their patch, its parent or its children in
/// another page array.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct RemapParameters {
    /// Particles.
    pub from: PageArray,
    /// `[piece][4]`: destination row (or the first child), relation ([`SAME_PATCH`] and others), first
    /// particle, count.
    pub pieces: Address<u32>,
    /// Destination; without pages the particles are only counted.
    pub to: PageArray,
    /// `[row]`: next position, or number of particles.
    pub cursors: Address<u32>,
    /// Columns besides the identity.
    pub numbers: i32,
}

/// Parameters of `particles_unpack`: inserts records.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct UnpackParameters {
    /// Records.
    pub records: Address<u8>,
    /// First byte of each segment, `[piece]`.
    pub firsts: Address<u64>,
    /// `[piece][4]`: row, list, page array, count.
    pub pieces: Address<u32>,
    /// Destinations.
    pub to: [PageArray; 4],
    /// As [`DriftParameters::cursors`].
    pub cursors: Address<u32>,
    /// Rows of the hierarchy.
    pub rows: i64,
    /// Columns besides the identity.
    pub numbers: i32,
}

/// Parameters of `particles_insert_pages`: inserts host pages.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct InsertPagesParameters {
    /// Consecutive pages of 32 particles.
    pub pages: Address<u64>,
    /// `[page][2]`: row, count.
    pub page_rows: Address<u32>,
    /// Destination.
    pub to: PageArray,
    /// Next position of each row, `[row]`.
    pub cursors: Address<u32>,
    /// Words of a page.
    pub page_words: i32,
    /// Columns besides the identity.
    pub numbers: i32,
}

/// Parameters of `particles_pack`: packs records for the host, each with the values of the columns and a
/// mark.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct PackParameters {
    /// Particles.
    pub page_array: PageArray,
    /// Records.
    pub out: Address<u8>,
    /// First particle.
    pub first: i64,
    /// Number of particles.
    pub count: i64,
    /// Columns besides the identity.
    pub numbers: i32,
    /// Last byte of each record.
    pub mark: i32,
}

/// Parameters of `particles_maximum`.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct MaximumParameters {
    /// Particles.
    pub from: ParticleList,
    /// Bits of the largest velocity along x, y, z, then of the largest acceleration.
    pub largest: Address<u64>,
}

/// Parameters of `particles_terms`: reduces the conserved quantities of particles.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct TermsParameters {
    /// Particles.
    pub from: ParticleList,
    /// Bits of the largest magnitudes or integer sums of the terms; then the mass in quanta.
    pub out: Address<u64>,
    /// Lower edge of the domain.
    pub left: [f64; 3],
    /// Width of a patch.
    pub width: [f64; 3],
    /// Fixed-point units per unit of each term.
    pub scales: [f64; 7],
    /// Mass quanta per unit mass.
    pub quanta_per_mass: f64,
    /// Mass of each particle, if all have the same.
    pub mass: f64,
    /// `true` to return the largest magnitudes instead of sums.
    pub sizes: bool,
}

/// Cloud width, width of the boundary zone, and reflecting faces of the domain.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct CloudShape {
    /// Cells that a cloud covers along an axis.
    pub width: i32,
    /// Width of the boundary zone in coarse cells.
    pub zone: i32,
    /// Reflecting faces of the domain, as bits `2 * axis + side`. At all other faces clouds are extrapolated.
    pub walls: u32,
}

/// Adds particles of a list to the sums of a level.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct DepositParameters {
    /// Particles of the level, a finer one, or the next coarser one.
    pub from: ParticleList,
    /// Clouds.
    pub clouds: CloudShape,
    /// Slot of each row among the sums of its own level; negative if there is none.
    pub slots: Address<i32>,
    /// By row: table of slots for the fine sums. If negative or null, the slots of the surrounding rows are
    /// used.
    pub shared: Address<i32>,
    /// The same for sums of the next coarser level.
    pub shared_wide: Address<i32>,
    /// `[table][27]`: slots around the patch of the sums; -2 outside the domain, otherwise negative if there
    /// is none.
    pub slot_tables: Address<i32>,
    /// Sums of the level, `[slot][512]`.
    pub sums: Address<u64>,
    /// Coarse sums in covered cells, to be distributed to this level; null if clouds cannot be wide.
    pub wide: Address<u64>,
    /// Inverse width of the particles' patches.
    pub per_width: [f64; 3],
    /// Deposit time minus particle time.
    pub dt: f64,
    /// Longest displacement in patch widths.
    pub most: f64,
    /// Mass quanta per unit mass; 0 counts particles.
    pub quanta_per_mass: f64,
    /// Weight of a particle, if all have the same mass.
    pub one: u64,
    /// Number of levels by which the particles' patches are finer.
    pub finer: i32,
    /// `true` if they are patches of the next coarser level.
    pub beside: bool,
    /// `true` to deposit only what is not outside the boundary zone.
    pub only_zone: bool,
    /// Times of the two states of the next coarser level, minus particle time. A particle is outside the zone in proportion to
    /// the weights of those states in which it is.
    pub zone_times: [f64; 2],
    /// Weight of the newer state in 2^-32.
    pub newer: u32,
}

/// Number of lists that one launch of `particles_deposit` takes.
pub const DEPOSIT_LISTS: usize = 8;

/// Parameters of `particles_deposit`: adds the particles of several lists to the sums of a level.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct DepositListsParameters {
    /// Lists.
    pub lists: [DepositParameters; 8],
    /// End of the blocks of each list, ascending.
    pub ends: [i32; 8],
}

/// Parameters of `particles_pack_sums`: packs sums for other ranks.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct PackSumsParameters {
    /// Sums of the level, `[slot][512]`, from the first packed slot on.
    pub sums: Address<u64>,
    /// Coarse sums.
    pub wide: Address<u64>,
    /// Slots of the level; those of coarse sums follow.
    pub count: i64,
    /// Index of the receiving rank, by slot of the level.
    pub receivers: Address<u32>,
    /// The same for coarse sums.
    pub wide_receivers: Address<u32>,
    /// Prefix sum of slots by receiving rank.
    pub firsts: Address<u64>,
    /// Number of receiving ranks.
    pub ranks: i32,
    /// Records by receiving rank, with capacity for all of its slots: 512 bits, then the sums of the marked
    /// cells.
    pub out: Address<u64>,
    /// By receiving rank: number of records + 2^32 * words. Then by slot: slot + 2^32 * first word of its
    /// record.
    pub report: Address<u64>,
}

/// Parameters of `particles_merge_sums`: adds sums of other ranks.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct MergeSumsParameters {
    /// Records, as [`PackSumsParameters::out`].
    pub words: Address<u64>,
    /// First word and slot of each record, `[record][2]`.
    pub records: Address<u64>,
    /// Sums of the level, `[slot][512]`.
    pub sums: Address<u64>,
    /// Coarse sums.
    pub wide: Address<u64>,
    /// Slots of the level; larger numbers are coarse sums.
    pub count: i64,
}

/// Parameters of `particles_density`: distributes coarse sums to children and converts sums to densities.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct DensityParameters<R> {
    /// Rows of the level.
    pub rows: Address<i32>,
    /// Topology tables.
    pub tables: HierarchyTables,
    /// As [`DepositParameters::slots`].
    pub slots: Address<i32>,
    /// As [`DepositParameters::sums`].
    pub sums: Address<u64>,
    /// As [`DepositParameters::wide`]; null on the root level.
    pub wide: Address<u64>,
    /// Density of one quantum in a cell.
    pub per_unit: f64,
    /// Densities, `[row][512]`, or null.
    pub density: Address<R>,
}

/// Parameters of `particles_mark`: flags cells by the sums of the level.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct MarkParameters<R> {
    /// Rows of the level.
    pub rows: Address<i32>,
    /// As [`DepositParameters::slots`].
    pub slots: Address<i32>,
    /// As [`DepositParameters::sums`].
    pub sums: Address<u64>,
    /// Limit per cell.
    pub per_cell: f64,
    /// Limit per patch; above it all cells are flagged.
    pub per_patch: f64,
    /// Flags, `[row][512]`: 1 in flagged cells, else unchanged.
    pub marks: Address<R>,
    /// `[row]`: 1 if an octant exceeds `per_octant`, else 0; or null.
    pub kept: Address<u32>,
    /// Limit per octant, above which children are kept.
    pub per_octant: f64,
}
