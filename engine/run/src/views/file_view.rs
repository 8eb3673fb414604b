//! Views whose entries are files, made of cells that the first rank receives.

use super::Quantity;
use super::inputs::Inputs;
use crate::snapshot::headers;
use nestar_engine_comm::{Message, Ranks, RanksError};
use nestar_engine_data::level::geometry;
use nestar_engine_mesh::{Levels, Topology};
use nestar_engine_step::error::agreed;
use nestar_engine_step::{Engine, Error};
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_kernels::{CELLS, PATCH};
use nestar_snapshot::{
    DataType, FieldHeader, LEAF, LevelHeader, LevelPlan, ORIGIN, SnapshotData, StoredPrecision,
    Values,
};
use rayon::prelude::*;

/// Patches whose components are read together.
const BATCH: usize = 4096;
/// Unit of quantities whose unit is not known.
const NO_UNIT: &str = "code units";

/// A configured view that makes a file of each entry.
pub trait FileView: Send + Sync {
    /// Returns the quantities that it needs: the fields of a snapshot.
    fn quantities(&self) -> &[Quantity];

    /// Returns the finest level that the view reads.
    fn finest(&self) -> usize;

    /// Returns `true` if the view uses the patch with this index on a level.
    fn uses(&self, level: usize, patch: [i32; 3]) -> bool;

    /// Returns `true` if the view uses patches with finer ones inside as well.
    fn uses_parents(&self) -> bool {
        true
    }

    /// Returns the precision of the fields.
    fn precision(&self) -> StoredPrecision;

    /// Returns the ending of the names of files, such as `png`.
    fn ending(&self) -> &'static str;

    /// Makes the content of a file from the patches of all ranks, in the order of a snapshot. It is called on the first rank, on a
    /// thread in the background.
    ///
    /// # Errors
    /// The content cannot be made; the run ends with this message.
    fn content(&self, data: SnapshotData) -> Result<FileContent, String>;
}

/// Content of a file of a view.
pub enum FileContent {
    /// A directory with a snapshot.
    Snapshot(Box<SnapshotData>),
    /// A file.
    Bytes(Vec<u8>),
}

/// Patches that have cells in common with a part of the box.
#[derive(Clone, Copy, Debug)]
pub struct PatchRange {
    /// Finest level.
    pub level: usize,
    /// Cells of that level: the first and the end along each axis.
    cells: [[i64; 2]; 3],
}

impl PatchRange {
    /// Creates the range of the patches that contain some of these cells of `level`.
    #[must_use]
    pub fn new(level: usize, cells: [[i64; 2]; 3]) -> Self {
        Self { level, cells }
    }

    /// Returns `true` if the patch with this index on a level, at most the finest one, is in the range.
    #[must_use]
    pub fn overlaps(&self, level: usize, patch: [i32; 3]) -> bool {
        let side = (PATCH << (self.level - level)) as i64;
        let mut axes = self.cells.iter().zip(patch);
        axes.all(|([left, right], patch)| {
            let first = i64::from(patch) * side;
            first < *right && first + side > *left
        })
    }
}

/// A view with files and the components that it reads.
pub(super) struct FileReader {
    /// The view.
    pub view: Box<dyn FileView>,
    inputs: Inputs,
}

/// Patches of a level on a rank: origins, leaves and quantities.
type LevelValues = Vec<Values>;

impl FileReader {
    /// Finds the components that a view reads.
    ///
    /// # Errors
    /// A store is not registered.
    pub fn new(sim: &Engine, view: Box<dyn FileView>) -> Result<Self, Error> {
        let inputs = Inputs::new(sim, view.quantities())?;
        Ok(Self { view, inputs })
    }

    fn data_type(&self) -> DataType {
        match self.view.precision() {
            StoredPrecision::Single => DataType::F32,
            StoredPrecision::Double => DataType::F64,
        }
    }

    /// Returns the rows of a level of this rank that the view uses.
    fn rows(&self, sim: &Engine, level: usize) -> Vec<u32> {
        let (topology, view) = (sim.world.resource::<Topology>(), &self.view);
        let used = |&row: &u32| {
            let whole = view.uses_parents() || level == view.finest() || topology.is_leaf(row);
            whole && view.uses(level, topology.index(row))
        };
        topology.rows(level).iter().copied().filter(used).collect()
    }

    /// Returns the bytes of the values of an entry of the present state, without compression, on this rank.
    pub fn bytes(&self, sim: &Engine) -> usize {
        let finest = sim.world.resource::<Topology>().finest();
        let levels = 0..=finest.min(self.view.finest());
        let patches: usize = levels.map(|level| self.rows(sim, level).len()).sum();
        patches * CELLS * self.view.quantities().len() * self.data_type().size()
    }

    /// Reads the patches of a level.
    fn level(&self, sim: &Engine, level: usize) -> Result<LevelValues, Error> {
        let (topology, rows) = (sim.world.resource::<Topology>(), self.rows(sim, level));
        let levels = sim.world.resource::<Levels>();
        let time = levels.time(level);
        let numbers = levels.numbers_at(time);
        let geometry = geometry(&topology.domain, level, [time, 0.0], numbers);
        let origins = rows.iter().flat_map(|&row| topology.origin(row)).collect();
        let is_last = level == self.view.finest();
        let leaf = |&row: &u32| u8::from(is_last || topology.is_leaf(row));
        let mut values = vec![
            Values::I32(origins),
            Values::U8(rows.iter().map(leaf).collect()),
        ];
        let fields = self.view.quantities().len();
        values.extend((0..fields).map(|_| Values::zeros(self.data_type(), 0)));
        for rows in rows.chunks(BATCH) {
            let read = self.inputs.read(sim, level, rows)?;
            let patches: Vec<[i32; 3]> = rows.iter().map(|&row| topology.index(row)).collect();
            for (n, values) in values[2..].iter_mut().enumerate() {
                let computed = self.quantity(n, &read, &patches, &geometry);
                append(values, computed);
            }
        }
        Ok(values)
    }

    /// Computes quantity `n` in some patches.
    fn quantity(
        &self,
        n: usize,
        read: &[Vec<f64>],
        patches: &[[i32; 3]],
        geometry: &LevelGeometry,
    ) -> Vec<f64> {
        let number = &self.view.quantities()[n].number;
        let mut values = vec![0.0; patches.len() * CELLS];
        let parts = values.par_chunks_mut(CELLS).zip(patches).enumerate();
        parts.for_each_init(Vec::new, |state, (place, (out, patch))| {
            self.inputs.gather(n, read, place, state);
            number.fill_patch(state, *patch, geometry, out);
        });
        values
    }

    /// Returns the names of the arrays of a level.
    fn names(&self) -> impl Iterator<Item = String> {
        let fields = self.view.quantities().iter();
        let fields = fields.map(|own| own.name.clone());
        [ORIGIN, LEAF].map(String::from).into_iter().chain(fields)
    }

    /// Returns the headers of the fields.
    fn headers(&self, sim: &Engine) -> Vec<FieldHeader> {
        let code = &sim.present_units();
        let header = |own: &Quantity| {
            let units = own.units.as_deref().unwrap_or(NO_UNIT);
            let factor = code.cgs_factor(units);
            let (kind, about) = (self.data_type(), &own.long_name);
            let header = FieldHeader::cells(&own.name, kind, units, factor, about);
            headers::in_cgs(header, code)
        };
        self.view.quantities().iter().map(header).collect()
    }

    /// Collects the patches of all ranks at the present time for the first rank, in the order of a snapshot; `name` is that of the view.
    /// Collective.
    ///
    /// # Errors
    /// The device or another rank has failed.
    pub fn collect(&self, sim: &Engine, name: &str) -> Result<Option<SnapshotData>, Error> {
        let ranks = sim.world.resource::<Ranks>();
        let finest = sim.world.resource::<Topology>().finest();
        let levels = 0..=finest.min(self.view.finest());
        let own = levels.map(|level| self.level(sim, level)).collect();
        let own: Result<Vec<LevelValues>, Error> = own;
        let mut own = agreed(ranks, own)?;
        let message = |own: &[LevelValues]| Message {
            peer: 0,
            bytes: pack(own),
        };
        let sent = match ranks.rank() {
            0 => Vec::new(),
            _ => vec![message(&own)],
        };
        // messages arrive in the order of ranks, which is that of the patches
        for Message { peer, bytes } in ranks.communicator().exchange(sent)? {
            unpack(&bytes, &mut own).ok_or_else(|| {
                RanksError::Transport(format!("the part of a view from rank {peer} is damaged"))
            })?;
        }
        Ok((ranks.rank() == 0).then(|| self.data(sim, own, name)))
    }

    /// Describes the collected patches.
    fn data(&self, sim: &Engine, mut values: Vec<LevelValues>, name: &str) -> SnapshotData {
        let domain = &sim.world.resource::<Topology>().domain;
        // regions need not have patches of all levels
        let some = |values: &LevelValues| !values[1].is_empty();
        values.truncate(values.iter().rposition(some).map_or(1, |last| last + 1));
        let level = |(level, values): (usize, &LevelValues)| {
            let clock = sim.world.resource::<Levels>().clock(level);
            LevelPlan {
                header: LevelHeader {
                    level: level as u8,
                    time: clock.time,
                    dt: clock.dt,
                    cell_width: domain.cell_width(level),
                    patches: values[1].len() as u64,
                },
                fields: self.headers(sim),
            }
        };
        SnapshotData {
            levels: values.iter().enumerate().map(level).collect(),
            arrays: values
                .into_iter()
                .map(|own| self.names().zip(own).collect())
                .collect(),
            attributes: nestar_snapshot::Attributes {
                precision: self.view.precision(),
                view: Some(name.into()),
                ..headers::described(sim)
            },
        }
    }
}

/// Appends values in the precision of an array.
fn append(to: &mut Values, values: Vec<f64>) {
    match to {
        Values::F32(to) => to.extend(values.into_iter().map(|x| x as f32)),
        Values::F64(to) => to.extend(values),
        _ => {}
    }
}

/// Packs the patches of all levels: their number and the arrays, level by level.
fn pack(levels: &[LevelValues]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for values in levels {
        bytes.extend((values[1].len() as u64).to_le_bytes());
        for own in values {
            bytes.extend_from_slice(own.bytes());
        }
    }
    bytes
}

/// Appends packed patches; `None` if the bytes are damaged.
fn unpack(mut bytes: &[u8], levels: &mut [LevelValues]) -> Option<()> {
    for values in levels {
        let (patches, rest) = bytes.split_first_chunk()?;
        let patches = usize::try_from(u64::from_le_bytes(*patches)).ok()?;
        bytes = rest;
        for (n, own) in values.iter_mut().enumerate() {
            let row = [3, 1].get(n).copied().unwrap_or(CELLS);
            let size = patches.checked_mul(row * own.data_type().size())?;
            own.append_bytes(bytes.split_off(..size)?);
        }
    }
    bytes.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::{CELLS, PatchRange, Values, pack, unpack};

    #[test]
    fn packed_patches_are_appended() {
        let level = |n: usize| {
            let (cells, leaves) = (vec![n as f32; n * CELLS], vec![1; n]);
            vec![
                Values::I32(vec![8; 3 * n]),
                Values::U8(leaves),
                Values::F32(cells),
            ]
        };
        let sent = pack(&[level(2), level(0)]);
        let mut own = vec![level(1), level(3)];
        assert_eq!(unpack(&sent, &mut own), Some(()));
        assert_eq!(own[0][1].len(), 3);
        assert_eq!(own[0][2].to_f64()[CELLS - 1..=CELLS], [1.0, 2.0]);
        assert_eq!(own[1], level(3));
        assert_eq!(unpack(&sent[1..], &mut own), None);
    }

    #[test]
    fn ranges_contain_the_patches_that_overlap() {
        // cells 10 to 16 of level 1 along x
        let range = PatchRange::new(1, [[10, 17], [0, 16], [0, 16]]);
        let of = |level: usize| {
            (0..4)
                .filter(|&x| range.overlaps(level, [x, 0, 0]))
                .collect()
        };
        let levels: [Vec<i32>; 2] = [of(0), of(1)];
        assert_eq!(levels, [vec![0, 1], vec![1, 2]]);
    }
}
