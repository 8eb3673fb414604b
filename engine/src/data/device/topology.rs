//! The topology tables on the device: what kernels of all fields read.

mod mirror;

use crate::device::{Device, DeviceError, Growable, Kernel, LaunchShape};
use crate::mesh::{Domain, Topology};
use bevy_ecs::prelude::*;
use bytemuck::Pod;
use mirror::{Mirror, WORDS};
use nestar_device::{LAUNCH, program};
use nestar_kernels::mesh::device::{PATCHES_PER_BLOCK, TOPOLOGY};
use nestar_kernels::mesh::topology_parameters::{
    self, AdoptParameters, LinkParameters, ScatterParameters, SetParameters,
};

/// Entries of a row of the neighbour table: 27 neighbours, then which codes occur among them, and whether another rank owns the patch.
const AROUND: usize = 28;
/// Bytes of a row of all tables.
const ROW_BYTES: u64 = 4 * WORDS as u64;
/// Most rows that are written at once: 4.5 MB.
const ROWS_AT_ONCE: usize = 1 << 15;

/// Per row: neighbours, parent, first child and index; per level: its rows in Hilbert order. The host's [`Topology`] decides
/// them. On one rank only the lists of the level that changed travel, and the device makes the tables; of a hierarchy that
/// ranks share, where a change of one level reaches others, just the rows travel that differ.
///
/// Memory: 140 bytes a row; where ranks share the hierarchy, as much on the host.
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
    /// Empty tables for `levels` levels.
    ///
    /// # Errors
    /// The kernels do not compile; the device refuses.
    pub fn new(device: &Device, domain: Domain, levels: usize) -> Result<Self, DeviceError> {
        let source = [&program(&topology_parameters::items()), LAUNCH, TOPOLOGY].concat();
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

    /// The box that the root grid fills.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Rows that the tables hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.parent.len()
    }

    /// How often they have changed: what was derived from them is good for as long as this stays.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Bytes reserved.
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

    /// Address of the rows of `level` in Hilbert order.
    #[must_use]
    pub fn rows(&self, level: usize) -> u64 {
        self.levels[level].memory.address()
    }

    /// Number of patches of `level`; 0 beyond the finest.
    #[must_use]
    pub fn count(&self, level: usize) -> usize {
        self.levels.get(level).map_or(0, |list| list.count)
    }

    /// Address of the rows that the latest change created, in Hilbert order.
    #[must_use]
    pub fn new_rows(&self) -> u64 {
        self.new_rows.memory.address()
    }

    /// Number of those rows.
    #[must_use]
    pub fn new_count(&self) -> usize {
        self.new_rows.count
    }

    /// Address of the neighbour tables, `[row][28]`.
    #[must_use]
    pub fn neighbours(&self) -> u64 {
        self.neighbours.address()
    }

    /// Address of the parents, `[row]`.
    #[must_use]
    pub fn parent(&self) -> u64 {
        self.parent.address()
    }

    /// Address of the first children, `[row]`.
    #[must_use]
    pub fn first_child(&self) -> u64 {
        self.first_child.address()
    }

    /// Address of the indices, `[row][4]`.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index.address()
    }

    /// Follows a change of `level`'s patches, of which the rows `new` are new.
    ///
    /// # Errors
    /// The device's memory does not suffice, or it fails.
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
        if topology.is_shared() || level == 0 {
            return self.synchronise(topology);
        }
        self.levels[level].upload(&self.device, topology.rows(level))?;
        self.relink(topology, level)
    }

    /// Writes all that differs from what was written last.
    fn synchronise(&mut self, topology: &Topology) -> Result<(), DeviceError> {
        for (level, list) in self.levels.iter_mut().enumerate() {
            let rows = topology.rows(level);
            if self.mirror.update_list(level, rows) {
                list.upload(&self.device, rows)?;
            }
        }
        let changed = self.mirror.update(topology);
        for rows in changed.chunks(ROWS_AT_ONCE) {
            self.write(rows)?;
        }
        if !topology.is_shared() {
            // from here on the device makes the tables
            self.mirror = Mirror::default();
        }
        Ok(())
    }

    /// Writes the tables of some rows.
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

    /// Tells the parents their children and the children everything else.
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

    /// The tables of one row as they stand on the device, for checks: neighbours with codes, parent, first child, index with
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

/// A launch over `count` patches.
fn patches(count: usize) -> crate::device::LaunchShape {
    LaunchShape::of(count.div_ceil(PATCHES_PER_BLOCK), PATCHES_PER_BLOCK as u32)
}
