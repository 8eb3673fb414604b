//! The topology tables on the device: what kernels of all fields read.

use super::parameters::{AdoptParameters, LinkParameters, SetParameters};
use super::shape;
use crate::device::{Device, DeviceError, Growable, Kernel};
use crate::mesh::{Domain, Topology};
use bevy_ecs::prelude::*;
use bytemuck::Pod;
use nestar_device::{LAUNCH, PRELUDE};
use nestar_kernels::mesh::device::{PATCHES_PER_BLOCK, TOPOLOGY};
use nestar_kernels::mesh::{COARSER, OUTSIDE};

/// Entries of a row of the neighbour table: 27 neighbours, then which codes occur among them.
const AROUND: usize = 28;
/// Bytes of a row of all tables.
const ROW_BYTES: u64 = 4 * (AROUND as u64 + 6);

/// Per row: neighbours, parent, first child and index; per level: its rows in Hilbert order. The host's [`Topology`] decides
/// them; of a change only the lists of the level concerned travel, the tables are made on the device.
///
/// Memory: 140 bytes a row.
#[derive(Resource)]
pub struct DeviceTopology {
    device: Device,
    domain: Domain,
    neighbours: Growable<i32>,
    parent: Growable<i32>,
    first_child: Growable<i32>,
    index: Growable<i32>,
    levels: Vec<List>,
    new_rows: List,
    parents: List,
    children: List,
    set: Kernel,
    adopt: Kernel,
    link: Kernel,
}

/// A list of patches on the device.
struct List {
    memory: Growable<i32>,
    count: usize,
}

impl List {
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
        let source = [PRELUDE, LAUNCH, TOPOLOGY].concat();
        let module = device.compile("topology", &source)?;
        let most = (device.memory()?.total / ROW_BYTES).min(i32::MAX as u64 / 8) as usize;
        let list = || List::new(device, most);
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

    /// Bytes reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let lists = self
            .levels
            .iter()
            .chain([&self.new_rows, &self.parents, &self.children]);
        let lists: usize = lists.map(|list| list.memory.bytes()).sum();
        let tables = [
            &self.neighbours,
            &self.parent,
            &self.first_child,
            &self.index,
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
        let capacity = topology.capacity();
        self.neighbours.grow(AROUND * capacity)?;
        self.parent.grow(capacity)?;
        self.first_child.grow(capacity)?;
        self.index.grow(4 * capacity)?;
        self.new_rows.upload(&self.device, new)?;
        if topology.is_shared() {
            return self.upload_all(topology);
        }
        self.levels[level].upload(&self.device, topology.rows(level))?;
        if level == 0 {
            self.upload_root(topology)
        } else {
            self.relink(topology, level)
        }
    }

    /// The root grid, whose rows are the first ones.
    fn upload_root(&self, topology: &Topology) -> Result<(), DeviceError> {
        let rows = topology.capacity() as u32;
        let neighbours: Vec<i32> = (0..rows).flat_map(|row| around(topology, row)).collect();
        let index = (0..rows).flat_map(|row| {
            let [x, y, z] = topology.index(row);
            [x, y, z, 0]
        });
        let index: Vec<i32> = index.collect();
        let none = vec![-1; rows as usize];
        self.device.upload(&self.neighbours, 0, &neighbours)?;
        self.device.upload(&self.index, 0, &index)?;
        self.device.upload(&self.parent, 0, &none)?;
        self.device.upload(&self.first_child, 0, &none)
    }

    /// A rank's part of a shared hierarchy, of which a change can touch several levels.
    fn upload_all(&mut self, topology: &Topology) -> Result<(), DeviceError> {
        for (level, list) in self.levels.iter_mut().enumerate() {
            list.upload(&self.device, topology.rows(level))?;
        }
        let rows = 0..topology.capacity() as u32;
        let neighbours: Vec<i32> = rows.clone().flat_map(|row| around(topology, row)).collect();
        let index = rows.flat_map(|row| {
            let [x, y, z] = topology.index(row);
            [x, y, z, topology.level(row).unwrap_or(0) as i32]
        });
        let index: Vec<i32> = index.collect();
        self.device.upload(&self.neighbours, 0, &neighbours)?;
        self.device.upload(&self.index, 0, &index)?;
        self.device
            .upload(&self.parent, 0, topology.parent_table())?;
        self.device
            .upload(&self.first_child, 0, topology.first_child_table())
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
            rows: self.rows(level - 1),
            values: self.children.memory.address(),
            table: self.first_child(),
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
            rows: self.rows(level),
            parents: self.parents.memory.address(),
            children: self.children.memory.address(),
            parent: self.parent(),
            index: self.index(),
            first_child: self.first_child(),
            level: level as i32,
            count: count as i32,
        };
        self.device.launch(&self.adopt, patches(count), &adopt)?;
        let link = LinkParameters {
            rows: self.rows(level),
            parent: self.parent(),
            index: self.index(),
            first_child: self.first_child(),
            neighbours: self.neighbours(),
            count: count as i32,
            reserved: 0,
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
fn patches(count: usize) -> crate::device::Shape {
    shape(count.div_ceil(PATCHES_PER_BLOCK), PATCHES_PER_BLOCK as u32)
}

/// A row of the device's neighbour table.
fn around(topology: &Topology, row: u32) -> [i32; AROUND] {
    let neighbours = topology.neighbours(row);
    let mut around = [0; AROUND];
    around[..27].copy_from_slice(neighbours);
    let has = |code, bit| if neighbours.contains(&code) { bit } else { 0 };
    around[27] = has(COARSER, 1) | has(OUTSIDE, 2);
    around
}
