//! What a snapshot takes from a device, and in which order.

use crate::data::{DevicePieces, Piece};
use crate::data::{Precision, RowShape, StoreRef};
use crate::device::Device;
use crate::mesh::Topology;
use crate::run::layout::ShardRange;
use crate::run::sink::{SnapshotSink, structure};
use crate::step::{Engine, Error};
use bevy_ecs::prelude::World;
use nestar_snapshot::Values;

/// Everything that leaves with a snapshot, as it stood when the snapshot was taken, except the fields' values themselves.
pub(super) struct Contents {
    /// The rows of all blocks, in the order of the snapshot, but for those of other ranks' shards; places count within a block.
    pub rows: Vec<Piece>,
    /// Every field on every level.
    pub blocks: Vec<LevelBlock>,
    /// Names of the arrays, `[field][component]`.
    pub names: Vec<Vec<String>>,
    /// How rows are cut, by field.
    shapes: Vec<RowShape>,
    /// Precision of all fields.
    pub precision: Precision,
    /// Bytes of the values of all fields.
    pub bytes: usize,
    /// Shards of the arrays that describe the patches: level, name, first patch, values.
    structure: Vec<(usize, String, usize, Values)>,
}

/// A field on a level; in a copy on the device its values stand as `[component][patch][k][j][i]`.
pub(super) struct LevelBlock {
    pub level: usize,
    pub field: usize,
    /// Where its rows begin in [`Contents::rows`].
    pub row: usize,
    /// The first of its patches, counted on the level.
    pub first: usize,
    pub patches: usize,
    /// Patches of a whole shard.
    pub shard: usize,
    /// Where the block begins in the copy, bytes.
    pub offset: usize,
}

/// One shard of one component.
pub(super) struct TransferShard {
    pub level: usize,
    pub field: usize,
    pub component: usize,
    /// First patch, counted on the level.
    pub first: usize,
    pub patches: usize,
    /// Where its rows begin in [`Contents::rows`].
    pub row: usize,
    /// Where it begins in the copy, bytes.
    pub offset: usize,
}

impl Contents {
    /// The present state of all levels.
    pub fn of(sim: &Engine, fields: &[StoreRef], sink: &impl SnapshotSink) -> Self {
        let topology = sim.world.resource::<Topology>();
        let names = |field: &StoreRef| {
            let components = field.of(&sim.world).spec().components.iter();
            components.map(|component| component.name.clone()).collect()
        };
        let shape = |field: &StoreRef| field.of(&sim.world).shape();
        let mut contents = Self {
            rows: Vec::with_capacity(fields.len() * topology.patches()),
            blocks: Vec::new(),
            names: fields.iter().map(names).collect(),
            shapes: fields.iter().map(shape).collect(),
            precision: sim.precision(),
            bytes: 0,
            structure: Vec::new(),
        };
        for level in 0..=topology.finest() {
            contents.add(&sim.world, level, sink.part(level));
        }
        contents
    }

    fn add(&mut self, world: &World, level: usize, part: ShardRange) {
        let rows = &world.resource::<Topology>().rows(level)[part.sent..];
        for (n, rows) in rows.chunks(part.shard).enumerate() {
            let first = part.first + n * part.shard;
            for (name, values) in structure(world, rows) {
                self.structure.push((level, name, first, values));
            }
        }
        for (field, names) in self.names.iter().enumerate() {
            self.blocks.push(LevelBlock {
                level,
                field,
                row: self.rows.len(),
                first: part.first,
                patches: rows.len(),
                shard: part.shard,
                offset: self.bytes,
            });
            self.bytes += rows.len() * names.len() * self.patch_bytes(field);
            self.rows
                .extend(Piece::whole_rows(rows, self.shapes[field]));
        }
    }

    /// Bytes of a component of a patch of a field.
    fn patch_bytes(&self, field: usize) -> usize {
        self.shapes[field].values() * self.precision.bytes()
    }

    /// Bytes of a shard.
    pub fn bytes_of(&self, shard: &TransferShard) -> usize {
        shard.patches * self.patch_bytes(shard.field)
    }

    /// Bytes of the largest shard.
    pub fn largest(&self) -> usize {
        let bytes =
            |block: &LevelBlock| block.patches.min(block.shard) * self.patch_bytes(block.field);
        self.blocks.iter().map(bytes).max().unwrap_or(0)
    }

    /// The list of [`Contents::rows`] on a device, of a whole block in memory at `memory`.
    pub fn of_block<'a>(
        &'a self,
        block: &LevelBlock,
        device: &'a Device,
        [list, memory]: [u64; 2],
    ) -> DevicePieces<'a> {
        DevicePieces {
            entries: &self.rows[block.row..][..block.patches],
            device,
            list: list + (block.row * size_of::<Piece>()) as u64,
            memory,
            stride: block.patches * self.shapes[block.field].values(),
        }
    }

    /// The rows with places that count within a shard.
    pub fn rows_by_shard(&self) -> Vec<Piece> {
        let mut rows = self.rows.clone();
        for block in &self.blocks {
            let rows = &mut rows[block.row..][..block.patches];
            for shard in rows.chunks_mut(block.shard) {
                let first = shard[0].before;
                shard.iter_mut().for_each(|piece| piece.before -= first);
            }
        }
        rows
    }

    /// All shards, in the order in which they leave.
    pub fn shards(&self) -> impl Iterator<Item = TransferShard> + '_ {
        self.blocks.iter().flat_map(move |block| {
            let patch = self.patch_bytes(block.field);
            let components = self.names[block.field].len();
            let shards = (0..block.patches).step_by(block.shard);
            shards.flat_map(move |begin| {
                let patches = block.shard.min(block.patches - begin);
                (0..components).map(move |component| TransferShard {
                    level: block.level,
                    field: block.field,
                    component,
                    first: block.first + begin,
                    patches,
                    row: block.row + begin,
                    offset: block.offset + (component * block.patches + begin) * patch,
                })
            })
        })
    }

    /// Hands over what describes the patches.
    pub fn push_structure(&mut self, sink: &mut impl SnapshotSink) -> Result<(), Error> {
        for (level, name, first, values) in self.structure.drain(..) {
            sink.push(level, &name, first, values)?;
        }
        Ok(())
    }
}
