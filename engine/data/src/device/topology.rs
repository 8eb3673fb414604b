//! Mirrors the topology tables on the device, for the kernels of all fields.

use bevy_ecs::prelude::*;
use bytemuck::Pod;
use nestar_device::{LAUNCH, program};
use nestar_engine_device::{Device, DeviceError, Growable, Kernel, LaunchShape};
use nestar_engine_mesh::{Domain, Topology};
use nestar_kernels::mesh::device::{PATCHES_PER_BLOCK, TOPOLOGY};
use nestar_kernels::mesh::parameters::{
    self, AdoptParameters, LinkParameters, ScatterParameters, SetParameters,
};
use nestar_kernels::mesh::{COARSER, OUTSIDE};
use rayon::prelude::*;

/// Entries per row of the neighbour table: 27 neighbours and a word of flags.
const AROUND: usize = 28;
/// Bytes per row of all tables.
const ROW_BYTES: u64 = 4 * WORDS as u64;
/// Largest number of rows written in one launch: 4.5 MB.
const ROWS_AT_ONCE: usize = 1 << 15;

/// Topology tables on a device. Per row: neighbours, parent, first child and index; per level: its rows in Hilbert
/// order.
///
/// They follow the host's [`Topology`]. While the rank owns all patches, only the list of the changed level is uploaded,
/// and the device computes the tables. With halo patches a change of one level affects others, and all modified rows
/// are uploaded.
///
/// Memory: 140 bytes per row; with halo patches, the same on the host.
#[derive(Resource)]
pub struct DeviceTopology {
    device: Device,
    domain: Domain,
    neighbours: Growable<i32>,
    parent: Growable<i32>,
    first_child: Growable<i32>,
    index: Growable<i32>,
    levels: Vec<PatchList>,
    new_rows: PatchList,
    parents: PatchList,
    children: PatchList,
    changed: PatchList,
    words: Growable<i32>,
    mirror: Mirror,
    revision: u64,
    scatter: Kernel,
    set: Kernel,
    adopt: Kernel,
    link: Kernel,
}

/// A list of patches on the device.
struct PatchList {
    memory: Growable<i32>,
    count: usize,
}

impl PatchList {
    fn new(device: &Device, most: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: device.growable(most)?,
            count: 0,
        })
    }

    fn upload<T: Pod>(&mut self, device: &Device, values: &[T]) -> Result<(), DeviceError> {
        self.count = values.len();
        self.memory.grow(values.len())?;
        device.upload(&self.memory, 0, bytemuck::cast_slice(values))
    }
}

impl DeviceTopology {
    /// Creates empty tables for `levels` levels.
    ///
    /// # Errors
    /// The kernels do not compile; the device refuses.
    pub fn new(device: &Device, domain: Domain, levels: usize) -> Result<Self, DeviceError> {
        let source = [&program(&parameters::topology_items()), LAUNCH, TOPOLOGY].concat();
        let module = device.compile("topology", &source)?;
        let most = (device.memory()?.total / ROW_BYTES).min(i32::MAX as u64 / 8) as usize;
        let list = || PatchList::new(device, most);
        Ok(Self {
            device: device.clone(),
            domain,
            neighbours: device.growable(AROUND * most)?,
            parent: device.growable(most)?,
            first_child: device.growable(most)?,
            index: device.growable(4 * most)?,
            levels: (0..levels).map(|_| list()).collect::<Result<_, _>>()?,
            new_rows: list()?,
            parents: list()?,
            children: list()?,
            changed: PatchList::new(device, ROWS_AT_ONCE)?,
            words: device.growable(WORDS * ROWS_AT_ONCE)?,
            mirror: Mirror::default(),
            revision: 0,
            scatter: module.kernel("topology_scatter")?,
            set: module.kernel("topology_set")?,
            adopt: module.kernel("topology_adopt")?,
            link: module.kernel("topology_link")?,
        })
    }

    /// Returns the domain.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Returns the number of rows in the tables.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.parent.len()
    }

    /// Returns the number of changes; data derived from the tables is valid while it is constant.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the reserved memory, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let others = [&self.new_rows, &self.parents, &self.children, &self.changed];
        let lists = self.levels.iter().chain(others);
        let lists: usize = lists.map(|list| list.memory.bytes()).sum();
        let tables = [
            &self.neighbours,
            &self.parent,
            &self.first_child,
            &self.index,
            &self.words,
        ];
        lists + tables.iter().map(|table| table.bytes()).sum::<usize>()
    }

    /// Returns the address of the rows of `level` in Hilbert order.
    #[must_use]
    pub fn rows(&self, level: usize) -> u64 {
        self.levels[level].memory.address()
    }

    /// Returns the number of patches of `level`; 0 for levels that do not exist.
    #[must_use]
    pub fn count(&self, level: usize) -> usize {
        self.levels.get(level).map_or(0, |list| list.count)
    }

    /// Returns the address of the rows created by the latest change, in Hilbert order.
    #[must_use]
    pub fn new_rows(&self) -> u64 {
        self.new_rows.memory.address()
    }

    /// Returns the number of rows created by the latest change.
    #[must_use]
    pub fn new_count(&self) -> usize {
        self.new_rows.count
    }

    /// Returns the address of the neighbour tables, `[row][28]`.
    #[must_use]
    pub fn neighbours(&self) -> u64 {
        self.neighbours.address()
    }

    /// Returns the address of the parents, `[row]`.
    #[must_use]
    pub fn parent(&self) -> u64 {
        self.parent.address()
    }

    /// Returns the address of the first children, `[row]`.
    #[must_use]
    pub fn first_child(&self) -> u64 {
        self.first_child.address()
    }

    /// Returns the address of the indices, `[row][4]`.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index.address()
    }

    /// Updates the tables after a regrid of `level` with new rows `new`.
    ///
    /// # Errors
    /// The device fails, or its memory does not suffice.
    pub fn update(
        &mut self,
        topology: &Topology,
        level: usize,
        new: &[u32],
    ) -> Result<(), DeviceError> {
        self.revision += 1;
        let capacity = topology.capacity();
        self.neighbours.grow(AROUND * capacity)?;
        self.parent.grow(capacity)?;
        self.first_child.grow(capacity)?;
        self.index.grow(4 * capacity)?;
        self.new_rows.upload(&self.device, new)?;
        if level == 0 || !self.mirror.is_empty() || !topology.owns_all() {
            return self.synchronise(topology);
        }
        self.levels[level].upload(&self.device, topology.rows(level))?;
        self.relink(topology, level)
    }

    /// Uploads all lists and rows that differ from those last written.
    fn synchronise(&mut self, topology: &Topology) -> Result<(), DeviceError> {
        for (level, list) in self.levels.iter_mut().enumerate() {
            let rows = topology.rows(level);
            if self.mirror.update_list(level, rows) || list.count != rows.len() {
                list.upload(&self.device, rows)?;
            }
        }
        let changed = self.mirror.update(topology);
        for rows in changed.chunks(ROWS_AT_ONCE) {
            self.write(rows)?;
        }
        if topology.owns_all() {
            // later changes are computed on the device
            self.mirror = Mirror::default();
        }
        Ok(())
    }

    /// Uploads the tables of some rows.
    fn write(&mut self, rows: &[u32]) -> Result<(), DeviceError> {
        let words = self.mirror.words(rows);
        self.changed.upload(&self.device, rows)?;
        self.words.grow(WORDS * rows.len())?;
        self.device.upload(&self.words, 0, words.as_flattened())?;
        let scatter = ScatterParameters {
            rows: self.changed.memory.address().into(),
            words: self.words.address().into(),
            neighbours: self.neighbours().into(),
            parent: self.parent().into(),
            first_child: self.first_child().into(),
            index: self.index().into(),
            count: rows.len() as i32,
        };
        self.device
            .launch(&self.scatter, patches(rows.len()), &scatter)
    }

    /// Links parents to their children, and computes all tables of the children.
    fn relink(&mut self, topology: &Topology, level: usize) -> Result<(), DeviceError> {
        let children = |level| {
            let rows = topology.rows(level).iter();
            rows.map(|&row| topology.first_child(row).map_or(-1, |first| first as i32))
                .collect::<Vec<_>>()
        };
        self.children.upload(&self.device, &children(level - 1))?;
        let set = SetParameters {
            rows: self.rows(level - 1).into(),
            values: self.children.memory.address().into(),
            table: self.first_child().into(),
            width: 1,
            count: self.children.count as i32,
        };
        self.device
            .launch(&self.set, patches(self.children.count), &set)?;
        let octets = topology.rows(level).chunks_exact(8);
        let parents: Vec<i32> = octets
            .map(|octet| topology.parent(octet[0]).map_or(-1, |parent| parent as i32))
            .collect();
        self.parents.upload(&self.device, &parents)?;
        self.children.upload(&self.device, &children(level))?;
        self.link(level)
    }

    fn link(&self, level: usize) -> Result<(), DeviceError> {
        let count = self.count(level);
        let adopt = AdoptParameters {
            rows: self.rows(level).into(),
            parents: self.parents.memory.address().into(),
            children: self.children.memory.address().into(),
            parent: self.parent().into(),
            index: self.index().into(),
            first_child: self.first_child().into(),
            level: level as i32,
            count: count as i32,
        };
        self.device.launch(&self.adopt, patches(count), &adopt)?;
        let link = LinkParameters {
            rows: self.rows(level).into(),
            parent: self.parent().into(),
            index: self.index().into(),
            first_child: self.first_child().into(),
            neighbours: self.neighbours().into(),
            count: count as i32,
        };
        self.device.launch(&self.link, patches(count), &link)
    }

    /// Reads the tables of one row from the device, for tests: neighbours with flags, parent, first child, index with
    /// level.
    ///
    /// # Errors
    /// The device fails.
    pub fn row(&self, row: u32) -> Result<([i32; AROUND], i32, i32, [i32; 4]), DeviceError> {
        let at = row as usize;
        let (mut around, mut index) = ([0; AROUND], [0; 4]);
        let (mut parent, mut child) = ([0], [0]);
        self.device
            .download(&self.neighbours, AROUND * at, &mut around)?;
        self.device.download(&self.parent, at, &mut parent)?;
        self.device.download(&self.first_child, at, &mut child)?;
        self.device.download(&self.index, 4 * at, &mut index)?;
        Ok((around, parent[0], child[0], index))
    }
}

/// Returns the shape of a launch over `count` patches.
fn patches(count: usize) -> nestar_engine_device::LaunchShape {
    LaunchShape::of(count.div_ceil(PATCHES_PER_BLOCK), PATCHES_PER_BLOCK as u32)
}

/// Entries per row of all tables: neighbours with flags, parent, first child, index with level.
pub(super) const WORDS: usize = AROUND + 6;
/// Flag of a row: another rank owns the patch.
const COPY: i32 = 4;
/// Number of rows that a task compares.
const TASK: usize = 1024;

/// Tables and lists as last written to the device. Memory: 136 bytes per row, and 4 bytes per patch of this rank.
#[derive(Default)]
pub(super) struct Mirror {
    rows: Vec<[i32; WORDS]>,
    lists: Vec<Vec<u32>>,
}

impl Mirror {
    /// Returns `true` if nothing is known of what the device has.
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Copies the tables of `topology`. Returns the used rows that have changed, ascending.
    pub(super) fn update(&mut self, topology: &Topology) -> Vec<u32> {
        // the tables of a device are initially zero
        self.rows.resize(topology.capacity(), [0; WORDS]);
        let tasks = self.rows.par_chunks_mut(TASK).enumerate();
        let changed = tasks.map(|(task, rows)| {
            let first = (task * TASK) as u32;
            let differs = |(row, words): (u32, &mut [i32; WORDS])| {
                (topology.level(row).is_some() && take(topology, row, words)).then_some(row)
            };
            (first..)
                .zip(rows)
                .filter_map(differs)
                .collect::<Vec<u32>>()
        });
        changed.collect::<Vec<_>>().concat()
    }

    /// Copies the list of `level`. Returns `true` if it has changed.
    pub(super) fn update_list(&mut self, level: usize, rows: &[u32]) -> bool {
        if self.lists.len() <= level {
            self.lists.resize(level + 1, Vec::new());
        }
        let differs = self.lists[level] != rows;
        if differs {
            self.lists[level].clear();
            self.lists[level].extend_from_slice(rows);
        }
        differs
    }

    /// Returns the words of some rows.
    pub(super) fn words(&self, rows: &[u32]) -> Vec<[i32; WORDS]> {
        let rows = rows.par_iter().with_min_len(TASK);
        rows.map(|&row| self.rows[row as usize]).collect()
    }
}

/// Sets `words` to the tables of a used row. Returns `true` if they have changed.
fn take(topology: &Topology, row: u32, words: &mut [i32; WORDS]) -> bool {
    let neighbours = topology.neighbours(row);
    let [x, y, z] = topology.index(row);
    let level = topology.level(row).map_or(0, |level| level as i32);
    let parent = topology.parent_table()[row as usize];
    let child = topology.first_child_table()[row as usize];
    let rest = [parent, child, x, y, z, level];
    let copy = if topology.is_owned(row) { 0 } else { COPY };
    if words[..27] == neighbours[..] && words[27] & COPY == copy && words[AROUND..] == rest {
        return false;
    }
    let has = |code, bit| if neighbours.contains(&code) { bit } else { 0 };
    words[..27].copy_from_slice(neighbours);
    words[27] = has(COARSER, 1) | has(OUTSIDE, 2) | copy;
    words[AROUND..].copy_from_slice(&rest);
    true
}
