//! Contents of a snapshot that are transferred from a device, and their order.

use crate::data::{DevicePieces, Piece};
use crate::data::{Precision, RowShape, StoreRef};
use crate::device::Device;
use crate::mesh::Topology;
use crate::run::layout::ShardRange;
use crate::run::sink::{SnapshotSink, structure};
use crate::step::{Engine, Error};
use bevy_ecs::prelude::World;
use nestar_snapshot::Values;

/// Describes the snapshot at the time it was taken, except the field values.
pub(super) struct Contents {
    /// Rows of all blocks in snapshot order, without those of other ranks' shards; offsets count within a
    /// block.
    pub rows: Vec<Piece>,
    /// All fields on all levels.
    pub blocks: Vec<LevelBlock>,
    /// Names of the arrays, `[field][component]`.
    pub names: Vec<Vec<String>>,
    /// Shapes of rows, by field.
    shapes: Vec<RowShape>,
    /// Precision of all fields.
    pub precision: Precision,
    /// Bytes of all field values.
    pub bytes: usize,
    /// Shards of the structure arrays: level, name, first patch, values.
    structure: Vec<(usize, String, usize, Values)>,
}

/// A field on a level; its copy on the device has the order `[component][patch][k][j][i]`.
pub(super) struct LevelBlock {
    pub level: usize,
    pub field: usize,
    /// Start of its rows in [`Contents::rows`].
    pub row: usize,
    /// Number of its first patch on the level.
    pub first: usize,
    pub patches: usize,
    /// Patches per shard.
    pub shard: usize,
    /// Byte offset of the block in the copy.
    pub offset: usize,
}

/// One shard of one component.
pub(super) struct TransferShard {
    pub level: usize,
    pub field: usize,
    pub component: usize,
    /// Number of the first patch on the level.
    pub first: usize,
    pub patches: usize,
    /// Start of its rows in [`Contents::rows`].
    pub row: usize,
    /// Byte offset in the copy.
    pub offset: usize,
}

impl Contents {
    /// Describes the present state of all levels.
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

    /// Returns the bytes of one component of a patch.
    fn patch_bytes(&self, field: usize) -> usize {
        self.shapes[field].values() * self.precision.bytes()
    }

    /// Returns the bytes of a shard.
    pub fn bytes_of(&self, shard: &TransferShard) -> usize {
        shard.patches * self.patch_bytes(shard.field)
    }

    /// Returns the bytes of the largest shard.
    pub fn largest(&self) -> usize {
        let bytes =
            |block: &LevelBlock| block.patches.min(block.shard) * self.patch_bytes(block.field);
        self.blocks.iter().map(bytes).max().unwrap_or(0)
    }

    /// Returns the device list of a block's rows for a copy to address `memory`.
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

    /// Returns the rows with offsets that count within a shard.
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

    /// Returns all shards in the order of transfer.
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

    /// Pushes the arrays that describe the patches.
    pub fn push_structure(&mut self, sink: &mut impl SnapshotSink) -> Result<(), Error> {
        for (level, name, first, values) in self.structure.drain(..) {
            sink.push(level, &name, first, values)?;
        }
        Ok(())
    }
}
