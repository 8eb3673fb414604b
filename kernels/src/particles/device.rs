//! What kernels of particles take: columns on a device, and what happens to them.
//!
//! The particles of the patches of a level that one level moves stand in a [`PageArray`], patch by patch. Whoever moves them deals them to new
//! places: a first kernel counts how many each patch gets, a second one puts them there. New places may be those of particles that have been dealt
//! before, for the patches take their turns. Nothing is sorted, and the order in a patch means nothing.

use nestar_device::{Address, Item, device};

/// Most particles that a block of threads looks after.
pub const CHUNK: usize = 4096;

/// The kernels that all particles share, whatever moves them: they read no field.
pub const PARTICLES: &str = concat!(
    include_str!("stacks.cuh"),
    include_str!("move.cu"),
    include_str!("records.cu"),
    include_str!("sums.cu"),
    include_str!("cells.cuh"),
    include_str!("deposit.cu"),
    include_str!("marks.cu")
);

/// Every structure, and what the kernels call.
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

/// Pages of 32 particles. The columns of a page follow each other, 32 values each: identities of 8 bytes, then numbers of the run's precision, which
/// are the place, the velocity and the acceleration along x, y, z, the mass if each has its own, scalars. A place along an axis takes as many bytes
/// as a number.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct PageArray {
    /// The first page.
    pub words: Address<u8>,
    /// Bytes of a page; 0: there is none.
    pub page: i64,
}

/// The hierarchy, by row, as [`GatherView`](crate::mesh::parameters::GatherView) has it.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct HierarchyTables {
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// Parents.
    pub parent: Address<i32>,
    /// First children.
    pub first_child: Address<i32>,
    /// Index on the level in patches, and the level, `[row][4]`.
    pub index: Address<i32>,
}

/// Particles of the patches of a level that one level moves, in pieces of at most [`CHUNK`] that lie in one patch each.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct ParticleList {
    /// Their columns.
    pub page_array: PageArray,
    /// `[chunk][3]`: the row, the first particle, how many.
    pub chunks: Address<u32>,
    /// The hierarchy.
    pub tables: HierarchyTables,
    /// PageView of numbers: 9 and more.
    pub numbers: i32,
    /// Whether each has a mass of its own.
    pub masses: bool,
}

/// Of the kernels `particles_count`, `particles_scatter` and `particles_stage`: the first half of a step of particles.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct DriftParameters {
    /// The particles.
    pub from: ParticleList,
    /// Where they go: in patches of the level that moves them; those that wait there for the next finer level; in patches of the next coarser
    /// level; those that go to other ranks' patches, and elsewhere.
    pub to: [PageArray; 4],
    /// `[list][rows + 1]`: how many a row gets, or where the next one goes; behind the rows, those that go elsewhere.
    pub cursors: Address<u32>,
    /// Of those that go elsewhere: row * 64 + 32 * list + direction. Of those that are set aside: their stack * 2^32 + their place there.
    pub tags: Address<u64>,
    /// Where those begin in their stack: before them stands what goes to held patches of other ranks.
    pub tagged: i64,
    /// What leaves the box: how many, their mass in units; and the identity, plus 1, of one that has no finite place.
    pub lost: Address<u64>,
    /// The identities of what leaves the box, as far as there is room.
    pub escaped: Address<u64>,
    /// Room for identities, or for those that are set aside.
    pub room: i64,
    /// The step over the width of a patch along each axis.
    pub rate: [f64; 3],
    /// Half of the step.
    pub half: f64,
    /// Units of a mass of 1.
    pub scale: f64,
    /// The mass of each, where all have one.
    pub mass: f64,
    /// Rows of the hierarchy.
    pub rows: i64,
    /// Faces that reflect, as bits `2 * axis + side`.
    pub walls: u32,
    /// The list of those that stay in their patch, and the stack.
    pub stay: [i32; 2],
    /// Whether the patches are of the level that moves the particles.
    pub own: bool,
    /// Which particles are dealt: [`DEAL`] or [`LEAVE`].
    pub what: i32,
    /// As `cursors`: the first turn in which the places of a row are free, or nothing: all are.
    pub free_from_batch: Address<u32>,
    /// The turn that it is; of the kernel `particles_stage`, which works on all turns of a list, the first of them.
    pub batch: u32,
    /// The list that the particles stand on.
    pub list: i32,
    /// How many have been set aside.
    pub staged: Address<u64>,
    /// Of each particle, which of the homes of its piece it goes to.
    pub keys: Address<u8>,
    /// Its place among those that go to the same patch.
    pub places: Address<u32>,
}

/// [`DriftParameters::what`]: those whose places are free.
#[device]
pub const SCATTER: i32 = 0;
/// Those that go to other ranks' patches, and elsewhere.
#[device]
pub const SEND: i32 = 1;
/// Those whose places are not free yet, which the kernel `particles_stage` deals: all stacks stand for one in which they wait.
#[device]
pub const STAGE: i32 = 2;

/// Of the kernel `particles_place_staged`: puts those to their places that were set aside.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct PlaceStagedParameters {
    /// The particles.
    pub from: PageArray,
    /// As [`DriftParameters::tags`].
    pub tags: Address<u64>,
    /// Where they go.
    pub to: [PageArray; 4],
    /// How many.
    pub count: i64,
    /// PageView of numbers.
    pub numbers: i32,
}

/// The way of particles that stay in their patch; ways from 0 to 7 lead to the parent, from that child.
#[device]
pub const SAME_PATCH: i32 = 8;
/// The way to the children.
#[device]
pub const TO_CHILDREN: i32 = 9;

/// Of the kernel `particles_remap`: a way of particles to another stack as they are, in their patch, its parent or its children.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct RemapParameters {
    /// Their columns.
    pub from: PageArray,
    /// `[piece][4]`: the row that they go to, or the first of the eight children's; the way, [`STAY`] and others; the first particle; how many.
    pub pieces: Address<u32>,
    /// Where they go; without pages: they are counted alone.
    pub to: PageArray,
    /// `[row]`: where the next one of a row goes, or how many come.
    pub cursors: Address<u32>,
    /// PageView of numbers.
    pub numbers: i32,
}

/// Of the kernel `particles_unpack`: particles that come as records.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct UnpackParameters {
    /// The records.
    pub records: Address<u8>,
    /// Where the records of a piece begin, in bytes, `[piece]`.
    pub firsts: Address<u64>,
    /// `[piece][4]`: row, list, the number of the stack, how many.
    pub pieces: Address<u32>,
    /// Where they go.
    pub to: [PageArray; 4],
    /// As [`DriftParameters::cursors`].
    pub cursors: Address<u32>,
    /// Rows of the hierarchy.
    pub rows: i64,
    /// PageView of numbers.
    pub numbers: i32,
}

/// Of the kernel `particles_insert_pages`: particles that come in pages of the host.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct InsertPagesParameters {
    /// Pages one after the other, 32 particles each.
    pub pages: Address<u64>,
    /// `[page][2]`: row, how many.
    pub homes: Address<u32>,
    /// Where they go.
    pub to: PageArray,
    /// Where the next one of a row goes, `[row]`.
    pub cursors: Address<u32>,
    /// Words of a page.
    pub page_words: i32,
    /// PageView of numbers.
    pub numbers: i32,
}

/// Of the kernel `particles_pack`: records of a patch for the host, the values of the columns one after the other and a mark.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct PackParameters {
    /// The columns.
    pub page_array: PageArray,
    /// The records.
    pub out: Address<u8>,
    /// The first particle.
    pub first: i64,
    /// How many.
    pub count: i64,
    /// PageView of numbers.
    pub numbers: i32,
    /// The last byte of each record.
    pub mark: i32,
}

/// Of the kernel `particles_maximum`.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct MaximumParameters {
    /// The particles.
    pub from: ParticleList,
    /// Bits of the largest velocity along x, y, z, then of the largest acceleration.
    pub largest: Address<u64>,
}

/// Of the kernel `particles_terms`: what particles add to sums over all of them.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct TermsParameters {
    /// The particles.
    pub from: ParticleList,
    /// Bits of the largest sizes of the terms, or the sums of whole numbers; and of masses in units.
    pub out: Address<u64>,
    /// Lower edge of the domain.
    pub left: [f64; 3],
    /// Width of a patch.
    pub width: [f64; 3],
    /// What a term of 1 counts in sums.
    pub scales: [f64; 7],
    /// Units of a mass of 1.
    pub scale: f64,
    /// The mass of each, where all have one.
    pub mass: f64,
    /// Whether the largest sizes of terms are wanted, and not their sums.
    pub sizes: bool,
}

/// How wide clouds are, and where they are wider.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct CloudShape {
    /// Cells that they cover along an axis.
    pub width: i32,
    /// Cells of the coarser level beside borders between levels.
    pub zone: i32,
}

/// Of the kernel `particles_deposit`: adds particles to sums of a level.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct DepositParameters {
    /// The particles: of the level, a finer one, or the next coarser one.
    pub from: ParticleList,
    /// Their clouds.
    pub clouds: CloudShape,
    /// Where the sums of a row stand, in its own level's; below 0: nowhere.
    pub slots: Address<i32>,
    /// By row: the number of a table of places for what particles of the row add to the sums; below 0, or without this: the slots of the
    /// rows around are good.
    pub shared: Address<i32>,
    /// The same for sums of the next coarser level.
    pub shared_wide: Address<i32>,
    /// `[table][27]`: slots of what lies around the patch of the sums; -2 beyond the domain, else below 0 where nothing is.
    pub places: Address<i32>,
    /// Sums of the level, `[slot][512]`.
    pub sums: Address<u64>,
    /// Sums in covered cells of the next coarser level, to be dealt to this one; none where no cloud is so wide.
    pub wide: Address<u64>,
    /// Over the width of the particles' patches.
    pub per_width: [f64; 3],
    /// From the time of the particles to that of the sums.
    pub dt: f64,
    /// The farthest way in widths of the patch.
    pub most: f64,
    /// Units of a mass of 1; 0: each counts 1.
    pub scale: f64,
    /// Where all have one mass, what that counts.
    pub one: u64,
    /// How many levels finer the particles' patches are.
    pub finer: i32,
    /// Whether they are those of the next coarser level.
    pub beside: bool,
}

/// Of the kernel `particles_pack_sums`: takes sums out for other ranks.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct PackSumsParameters {
    /// Sums of the level, `[slot][512]`, from the first slot that is taken out.
    pub sums: Address<u64>,
    /// The same of the coarser level.
    pub wide: Address<u64>,
    /// Slots of the level; behind them are those of the coarser level.
    pub count: i64,
    /// The number of the rank that gets them among the receivers, by slot of the level.
    pub receivers: Address<u32>,
    /// The same of the coarser level.
    pub wide_receivers: Address<u32>,
    /// How many slots receivers before have, by receiver.
    pub firsts: Address<u64>,
    /// Receivers.
    pub ranks: i32,
    /// Records of a receiver one after the other, with room for all of its slots: 512 bits, the sums of the cells whose bits are set.
    pub out: Address<u64>,
    /// By receiver, how many records it gets and 2^32 times their words; then by slot as receivers have them, of each record the slot and 2^32
    /// times where it begins among the receiver's words.
    pub told: Address<u64>,
}

/// Of the kernel `particles_merge_sums`: adds sums of other ranks.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct MergeSumsParameters {
    /// Records, as [`PackSumsParameters::out`].
    pub words: Address<u64>,
    /// Where a record begins, in words, and the slot, `[record][2]`.
    pub records: Address<u64>,
    /// Sums of the level, `[slot][512]`.
    pub sums: Address<u64>,
    /// Those of the coarser level.
    pub wide: Address<u64>,
    /// Slots of the level: larger numbers are of the coarser one.
    pub count: i64,
}

/// Of the kernel `particles_density`: deals sums of the coarser level, and makes densities of the sums.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct DensityParameters<R> {
    /// Rows of the level.
    pub rows: Address<i32>,
    /// The hierarchy.
    pub tables: HierarchyTables,
    /// As [`DepositParameters::slots`].
    pub slots: Address<i32>,
    /// As [`DepositParameters::sums`].
    pub sums: Address<u64>,
    /// As [`DepositParameters::wide`]; none on the root level.
    pub wide: Address<u64>,
    /// Density of a unit in a cell.
    pub per_unit: f64,
    /// The densities, `[row][512]`, or nothing.
    pub density: Address<R>,
}

/// Of the kernel `particles_mark`: marks cells by sums of the level.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct MarkParameters<R> {
    /// Rows of the level.
    pub rows: Address<i32>,
    /// As [`DepositParameters::slots`].
    pub slots: Address<i32>,
    /// As [`DepositParameters::sums`].
    pub sums: Address<u64>,
    /// Cells with a larger sum are marked.
    pub per_cell: f64,
    /// All cells of patches with a larger sum are.
    pub per_patch: f64,
    /// The marks, `[row][512]`: 1 where one is set, else as it was.
    pub marks: Address<R>,
    /// For each of the rows 1 if one of its octants has a larger sum than `per_octant`, else 0; or nothing.
    pub kept: Address<u32>,
    /// See `kept`.
    pub per_octant: f64,
}
