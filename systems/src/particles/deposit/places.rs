//! Where the sums of a level stand on a device: those of own patches, and those that other ranks' patches get.
//!
//! Patches around which all are this rank's own are found by the tables of the hierarchy. For what lies about the others the host makes tables of
//! places, since not every patch that gets something is held here.

use super::receivers::DestinationRanks;
use nestar_engine::device::{Device, DeviceError, ReusableBuffer};
use nestar_engine::mesh::{Topology, offset};
use nestar_kernels::mesh::{COARSER, OUTSIDE};
use std::collections::BTreeMap;

/// No place.
const NOWHERE: i32 = -1;

/// The places of a level's sums, and of those in cells of the next coarser one that the level covers.
#[derive(Default)]
pub struct SlotTable {
    /// By row of the level: where its sums stand; by row of the next coarser one: where those in it stand, if the children are own patches.
    pub slots: Vec<i32>,
    /// Own patches.
    pub own: usize,
    /// Patches of other ranks that may get something: their sums stand behind those of own ones.
    pub others: Vec<[i32; 3]>,
    /// Own octets.
    pub octets: usize,
    /// The first patch of each octet of the level that may get sums of its parent: own ones, then those of other ranks.
    pub families: Vec<[i32; 3]>,
    /// The ranks that have them.
    pub receivers: DestinationRanks,
    on_device: SlotBuffers,
}

/// What kernels read of them.
#[derive(Default)]
struct SlotBuffers {
    slots: ReusableBuffer<i32>,
    shared: [ReusableBuffer<i32>; 2],
    tables: ReusableBuffer<i32>,
}

impl SlotTable {
    /// Those of a level.
    ///
    /// # Errors
    /// The device's memory does not suffice.
    pub fn new(device: &Device, topology: &Topology, level: usize) -> Result<Self, DeviceError> {
        let mut maker = SlotTableBuilder::new(topology, level);
        let mut on_device = SlotBuffers::default();
        on_device.slots.set(device, &maker.places.slots)?;
        if topology.is_shared() {
            let shared = [maker.own_sums(), maker.coarser_sums()];
            for (kept, shared) in on_device.shared.iter_mut().zip(shared) {
                kept.set(device, &shared)?;
            }
            on_device.tables.set(device, maker.tables.as_flattened())?;
        }
        let mut places = maker.places;
        let owners = [&places.others, &places.families].map(|slots| {
            let owners = slots.iter().map(|&index| topology.owner_at(level, index));
            owners.collect()
        });
        places.receivers = DestinationRanks::new(device, topology.rank(), owners)?;
        places.on_device = on_device;
        Ok(places)
    }

    /// Addresses of the slots, of the numbers of tables for sums of the level and of the coarser one, and of the tables.
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

    /// Slots of the level's sums.
    pub fn count(&self) -> usize {
        self.own + self.others.len()
    }
}

/// Makes the places of a level.
struct SlotTableBuilder<'a> {
    topology: &'a Topology,
    level: usize,
    places: SlotTable,
    tables: Vec<[i32; 27]>,
    /// Places of other ranks' sums, by index: of the level, of its octets.
    foreign: [BTreeMap<[i32; 3], i32>; 2],
}

impl<'a> SlotTableBuilder<'a> {
    /// With the places of own patches.
    fn new(topology: &'a Topology, level: usize) -> Self {
        let mut places = SlotTable {
            slots: vec![NOWHERE; topology.capacity()],
            own: topology.rows(level).len(),
            ..SlotTable::default()
        };
        for (slot, &row) in topology.rows(level).iter().enumerate() {
            places.slots[row as usize] = slot as i32;
            if let Some(parent) = topology.parent(row)
                && places.slots[parent as usize] == NOWHERE
            {
                places.slots[parent as usize] = places.families.len() as i32;
                let first = topology.index(row).map(|i| i & !1);
                places.families.push(first);
            }
        }
        places.octets = places.families.len();
        Self {
            topology,
            level,
            places,
            tables: Vec::new(),
            foreign: Default::default(),
        }
    }

    /// By row of the level and finer ones: the table for what particles there add to the level's sums, if the patches around are not all own.
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
                        self.table(self.level, (index, centre), |maker, index, row| {
                            maker.own_place(index, row, refined)
                        })
                    }),
                };
            }
        }
        numbers
    }

    /// By row of the level and the next coarser one: the same for sums in cells of that one which the level covers.
    fn coarser_sums(&mut self) -> Vec<i32> {
        let topology = self.topology;
        let (mut numbers, mut known) = (vec![NOWHERE; topology.capacity()], BTreeMap::new());
        let Some(below) = self.level.checked_sub(1) else {
            return numbers;
        };
        for &row in topology.rows(below) {
            if !self.is_interior_below(row) {
                let centre = (topology.index(row), Some(row));
                numbers[row as usize] = self.table(below, centre, Self::family_place);
            }
        }
        for &row in topology.rows(self.level) {
            let index = topology.index(row).map(|i| i >> 1);
            let parent = topology.parent(row).filter(|&p| topology.is_owned(p));
            numbers[row as usize] = match parent {
                Some(parent) => numbers[parent as usize],
                None => *known
                    .entry(index)
                    .or_insert_with(|| self.table(below, (index, None), Self::family_place)),
            };
        }
        numbers
    }

    /// Whether all patches around an own one of the level are own ones.
    fn is_interior(&self, row: u32) -> bool {
        let around = self.topology.neighbours(row).iter();
        let mut around = around.map(|&beside| (beside, u32::try_from(beside)));
        around.all(|(code, beside)| match beside {
            Ok(beside) => self.topology.is_owned(beside),
            Err(_) => code == OUTSIDE || code == COARSER,
        })
    }

    /// Whether all patches around an own one of the coarser level have own children, if any.
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

    /// Makes the table of the places around a patch, given with its row if that is this rank's; its number.
    fn table(
        &mut self,
        level: usize,
        (index, row): ([i32; 3], Option<u32>),
        place: impl Fn(&mut Self, [i32; 3], Option<u32>) -> i32,
    ) -> i32 {
        let topology = self.topology;
        let table = std::array::from_fn(|d| {
            let Some(there) = topology.place_beside(level, index, offset(d)) else {
                return OUTSIDE;
            };
            let beside = row.and_then(|row| u32::try_from(topology.neighbours(row)[d]).ok());
            place(self, there, beside.or_else(|| topology.find(level, there)))
        });
        self.tables.push(table);
        self.tables.len() as i32 - 1
    }

    /// Where the sums of a patch of the level stand; around one that is `refined` there are all.
    fn own_place(&mut self, index: [i32; 3], row: Option<u32>, refined: bool) -> i32 {
        if self.topology.owner_at(self.level, index) == self.topology.rank() {
            return row.map_or(NOWHERE, |row| self.places.slots[row as usize]);
        }
        if !refined && row.is_none() {
            return NOWHERE;
        }
        let (foreign, others) = (&mut self.foreign[0], &mut self.places.others);
        *foreign.entry(index).or_insert_with(|| {
            others.push(index);
            (self.places.own + others.len()) as i32 - 1
        })
    }

    /// Where the sums in a patch of the coarser level stand, which has children.
    fn family_place(&mut self, index: [i32; 3], row: Option<u32>) -> i32 {
        let Some(row) = row.filter(|&row| !self.topology.is_leaf(row)) else {
            return NOWHERE;
        };
        let first = index.map(|i| 2 * i);
        if self.topology.owner_at(self.level, first) == self.topology.rank() {
            return self.places.slots[row as usize];
        }
        let families = &mut self.places.families;
        *self.foreign[1].entry(first).or_insert_with(|| {
            families.push(first);
            families.len() as i32 - 1
        })
    }
}
