//! Assigns the sums of a deposit to slots on a device.
//!
//! Slots of own patches come first, then those of patches of other ranks. Where all neighbours are own patches,
//! kernels find the slots through the topology tables. Elsewhere the host builds explicit tables of 27 slots, because
//! not every receiving patch is stored on this rank.

use nestar_engine::device::{Device, DeviceError, ReusableBuffer};
use nestar_engine::mesh::{Topology, offset};
use nestar_kernels::mesh::{COARSER, OUTSIDE};
use std::collections::BTreeMap;

/// Marks a missing slot.
const NOWHERE: i32 = -1;

/// Slots of the sums of a level, and of coarse sums in the cells that the level covers.
#[derive(Default)]
pub struct SlotTable {
    /// By row of the level: slot of its sums. By row of the next coarser level: slot of its coarse sums, if
    /// its children are own patches.
    pub slots: Vec<i32>,
    /// Own patches.
    pub own: usize,
    /// Patches of other ranks that may receive mass; their slots follow those of own patches.
    pub others: Vec<[i32; 3]>,
    /// Own octets.
    pub own_octets: usize,
    /// First patch of each octet that may receive coarse sums: own octets, then those of other ranks.
    pub octets: Vec<[i32; 3]>,
    /// The ranks that own them.
    pub receivers: DestinationRanks,
    on_device: SlotBuffers,
}

/// Device copies of the tables.
#[derive(Default)]
struct SlotBuffers {
    slots: ReusableBuffer<i32>,
    shared: [ReusableBuffer<i32>; 2],
    tables: ReusableBuffer<i32>,
}

impl SlotTable {
    /// Builds the slot table of a level.
    ///
    /// # Errors
    /// Device memory does not suffice.
    pub fn new(device: &Device, topology: &Topology, level: usize) -> Result<Self, DeviceError> {
        let mut builder = SlotTableBuilder::new(topology, level);
        let mut on_device = SlotBuffers::default();
        on_device.slots.set(device, &builder.table.slots)?;
        if topology.is_shared() {
            let shared = [builder.own_sums(), builder.coarser_sums()];
            for (kept, shared) in on_device.shared.iter_mut().zip(shared) {
                kept.set(device, &shared)?;
            }
            on_device
                .tables
                .set(device, builder.tables.as_flattened())?;
        }
        let mut table = builder.table;
        let owners = [&table.others, &table.octets].map(|slots| {
            let owners = slots.iter().map(|&index| topology.owner_at(level, index));
            owners.collect()
        });
        table.receivers = DestinationRanks::new(device, topology.rank(), owners)?;
        table.on_device = on_device;
        Ok(table)
    }

    /// Returns the addresses of the slots, of the table indices for fine and coarse sums, and of the tables.
    pub fn addresses(&self) -> [u64; 4] {
        let SlotBuffers {
            slots,
            shared: [own, coarser],
            tables,
        } = &self.on_device;
        [
            slots.address(),
            own.address(),
            coarser.address(),
            tables.address(),
        ]
    }

    /// Number of slots of the level.
    pub fn count(&self) -> usize {
        self.own + self.others.len()
    }
}

/// Builds a slot table.
struct SlotTableBuilder<'a> {
    topology: &'a Topology,
    level: usize,
    table: SlotTable,
    tables: Vec<[i32; 27]>,
    /// Slots of other ranks by patch index: of the level, of its octets.
    foreign: [BTreeMap<[i32; 3], i32>; 2],
}

impl<'a> SlotTableBuilder<'a> {
    /// Starts with the slots of own patches.
    fn new(topology: &'a Topology, level: usize) -> Self {
        let mut table = SlotTable {
            slots: vec![NOWHERE; topology.capacity()],
            own: topology.rows(level).len(),
            ..SlotTable::default()
        };
        for (slot, &row) in topology.rows(level).iter().enumerate() {
            table.slots[row as usize] = slot as i32;
            if let Some(parent) = topology.parent(row)
                && table.slots[parent as usize] == NOWHERE
            {
                table.slots[parent as usize] = table.octets.len() as i32;
                let first = topology.index(row).map(|i| i & !1);
                table.octets.push(first);
            }
        }
        table.own_octets = table.octets.len();
        Self {
            topology,
            level,
            table,
            tables: Vec::new(),
            foreign: Default::default(),
        }
    }

    /// Returns, by row of the level and finer ones, the table of the surrounding slots where neighbours are
    /// not all own patches.
    fn own_sums(&mut self) -> Vec<i32> {
        let topology = self.topology;
        let (mut numbers, mut known) = (vec![NOWHERE; topology.capacity()], BTreeMap::new());
        for host in self.level..=topology.finest() {
            for &row in topology.rows(host) {
                let index = topology.index(row).map(|i| i >> (host - self.level));
                let parent = topology.parent(row).filter(|&p| topology.is_owned(p));
                numbers[row as usize] = match parent.filter(|_| host > self.level) {
                    Some(parent) => numbers[parent as usize],
                    None if host == self.level && self.is_interior(row) => NOWHERE,
                    None => *known.entry(index).or_insert_with(|| {
                        let centre = (host == self.level).then_some(row);
                        let refined = centre.is_none_or(|row| !topology.is_leaf(row));
                        self.table(self.level, index, centre, |builder, index, row| {
                            builder.own_slot(index, row, refined)
                        })
                    }),
                };
            }
        }
        numbers
    }

    /// Returns, by row of the level and the next coarser one, the table of the surrounding slots of coarse
    /// sums.
    fn coarser_sums(&mut self) -> Vec<i32> {
        let topology = self.topology;
        let (mut numbers, mut known) = (vec![NOWHERE; topology.capacity()], BTreeMap::new());
        let Some(below) = self.level.checked_sub(1) else {
            return numbers;
        };
        for &row in topology.rows(below) {
            if !self.is_interior_below(row) {
                let index = topology.index(row);
                numbers[row as usize] = self.table(below, index, Some(row), Self::octet_slot);
            }
        }
        for &row in topology.rows(self.level) {
            let index = topology.index(row).map(|i| i >> 1);
            let parent = topology.parent(row).filter(|&p| topology.is_owned(p));
            numbers[row as usize] = match parent {
                Some(parent) => numbers[parent as usize],
                None => *known
                    .entry(index)
                    .or_insert_with(|| self.table(below, index, None, Self::octet_slot)),
            };
        }
        numbers
    }

    /// Returns `true` if all neighbours of an own patch are own patches.
    fn is_interior(&self, row: u32) -> bool {
        let around = self.topology.neighbours(row).iter();
        let mut around = around.map(|&beside| (beside, u32::try_from(beside)));
        around.all(|(code, beside)| match beside {
            Ok(beside) => self.topology.is_owned(beside),
            Err(_) => code == OUTSIDE || code == COARSER,
        })
    }

    /// Returns `true` if all refined neighbours of an own coarse patch have own children.
    fn is_interior_below(&self, row: u32) -> bool {
        let topology = self.topology;
        let is_own = |row: u32| {
            let child = topology.first_child(row);
            topology.is_leaf(row) || child.is_some_and(|child| topology.is_owned(child))
        };
        let mut around = topology.neighbours(row).iter();
        around.all(|&code| match u32::try_from(code) {
            Ok(beside) => is_own(beside),
            Err(_) => code == OUTSIDE || code == COARSER,
        })
    }

    /// Builds the table of slots around a patch and returns its index. `row` is the patch's row if it is
    /// stored on this rank.
    fn table(
        &mut self,
        level: usize,
        index: [i32; 3],
        row: Option<u32>,
        slot: impl Fn(&mut Self, [i32; 3], Option<u32>) -> i32,
    ) -> i32 {
        let topology = self.topology;
        let table = std::array::from_fn(|d| {
            let Some(there) = topology.place_beside(level, index, offset(d)) else {
                return OUTSIDE;
            };
            let beside = row.and_then(|row| u32::try_from(topology.neighbours(row)[d]).ok());
            slot(self, there, beside.or_else(|| topology.find(level, there)))
        });
        self.tables.push(table);
        self.tables.len() as i32 - 1
    }

    /// Returns the slot of a patch of the level. All neighbours exist around a `refined` patch.
    fn own_slot(&mut self, index: [i32; 3], row: Option<u32>, refined: bool) -> i32 {
        if self.topology.owner_at(self.level, index) == self.topology.rank() {
            return row.map_or(NOWHERE, |row| self.table.slots[row as usize]);
        }
        if !refined && row.is_none() {
            return NOWHERE;
        }
        let (foreign, others) = (&mut self.foreign[0], &mut self.table.others);
        *foreign.entry(index).or_insert_with(|| {
            others.push(index);
            (self.table.own + others.len()) as i32 - 1
        })
    }

    /// Returns the slot of the coarse sums of a refined coarse patch.
    fn octet_slot(&mut self, index: [i32; 3], row: Option<u32>) -> i32 {
        let Some(row) = row.filter(|&row| !self.topology.is_leaf(row)) else {
            return NOWHERE;
        };
        let first = index.map(|i| 2 * i);
        if self.topology.owner_at(self.level, first) == self.topology.rank() {
            return self.table.slots[row as usize];
        }
        let octets = &mut self.table.octets;
        *self.foreign[1].entry(first).or_insert_with(|| {
            octets.push(first);
            octets.len() as i32 - 1
        })
    }
}

/// Ranks that receive sums of a level or coarse sums; this rank comes last, if it is one of them.
#[derive(Default)]
pub struct DestinationRanks {
    /// The ranks.
    pub ranks: Vec<usize>,
    /// Prefix sum of the slots of each rank.
    pub firsts: Vec<u64>,
    /// Slots of other ranks.
    pub foreign: usize,
    on_device: ReceiverBuffers,
}

/// Device copies.
#[derive(Default)]
struct ReceiverBuffers {
    /// Index of the receiving rank by slot: of patches of other ranks, of octets.
    numbers: [ReusableBuffer<u32>; 2],
    firsts: ReusableBuffer<u64>,
}

impl DestinationRanks {
    /// Finds the ranks that own the patches and octets of a slot table; `own` is this rank.
    ///
    /// # Errors
    /// Device memory does not suffice.
    pub fn new(device: &Device, own: usize, owners: [Vec<usize>; 2]) -> Result<Self, DeviceError> {
        let mut ranks = owners.concat();
        ranks.sort_unstable_by_key(|&rank| (rank == own, rank));
        let foreign = ranks.partition_point(|&rank| rank != own);
        let counts: Vec<u64> = ranks
            .chunk_by(|a, b| a == b)
            .map(|of| of.len() as u64)
            .collect();
        ranks.dedup();
        let sum = |sum: &mut u64, count: &u64| {
            *sum += count;
            Some(*sum)
        };
        let firsts: Vec<u64> = std::iter::once(0)
            .chain(counts.iter().scan(0, sum))
            .collect();
        let mut on_device = ReceiverBuffers::default();
        for (kept, owners) in on_device.numbers.iter_mut().zip(owners) {
            let number = |owner: usize| ranks.iter().position(|&rank| rank == owner);
            let numbers = owners
                .into_iter()
                .map(|owner| number(owner).unwrap_or_default() as u32);
            kept.set(device, &numbers.collect::<Vec<u32>>())?;
        }
        on_device.firsts.set(device, &firsts)?;
        Ok(Self {
            ranks,
            firsts,
            foreign,
            on_device,
        })
    }

    /// Returns the addresses of the rank indices of patches and octets, and of the prefix sum.
    pub fn addresses(&self) -> [u64; 3] {
        let ReceiverBuffers { numbers, firsts } = &self.on_device;
        [numbers[0].address(), numbers[1].address(), firsts.address()]
    }
}
