//! A species: what its particles have, and where they are.

use super::columns::Columns;
use super::device::{self, Kernels, OnDevice};
use super::rows::{Pool, Rows};
use nestar_engine::device::DeviceError;
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::field::{
    Component, DataType, ItemColumn, ItemGroup, Items, PatchPlace, Precision,
};
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::motion::{in_child, in_parent};
use std::mem::take;
use std::sync::Arc;

/// The particles of a patch by the level that moves them: that of the patch, and the next finer one, for those that are on their way to
/// or from a finer patch.
pub type Patch = [Rows; 2];

/// A kind of particle.
pub struct Species {
    /// Its name.
    pub name: String,
    /// The mass of each, where all have one.
    pub mass: f64,
    /// Whether gas takes its particles along.
    pub traces: bool,
    /// Names of the scalars.
    pub scalars: Vec<String>,
    /// Pages.
    pub pool: Pool,
    precision: Precision,
    patches: Vec<Patch>,
    /// Where kernels move the particles: those that are there, beside what stands in pages.
    lists: Option<OnDevice>,
    /// Whether pages may hold any that a device should have.
    in_pages: bool,
}

impl Species {
    /// A species without particles.
    #[must_use]
    pub fn new(name: &str, precision: Precision, mass: Option<f64>, scalars: Vec<String>) -> Self {
        let columns = Columns {
            number: precision.bytes(),
            masses: mass.is_none(),
            scalars: scalars.len(),
        };
        Self {
            name: name.into(),
            mass: mass.unwrap_or_default(),
            traces: false,
            scalars,
            pool: Pool::new(columns),
            precision,
            patches: Vec::new(),
            lists: None,
            in_pages: true,
        }
    }

    /// Lets kernels move the particles, on a hierarchy of so many levels.
    pub(super) fn go_to_device(&mut self, kernels: &Arc<Kernels>, levels: usize) {
        self.lists = Some(OnDevice::new(kernels.clone(), self.pool.columns, levels));
    }

    /// Whether kernels move the particles.
    #[must_use]
    pub fn is_on_device(&self) -> bool {
        self.lists.is_some()
    }

    /// The particles on a device, all of them, where kernels move them; `tables` is there if fields live on one.
    ///
    /// # Errors
    /// The device fails, or its memory does not suffice.
    pub(super) fn settled(
        &mut self,
        topology: &Topology,
        tables: Option<&DeviceTopology>,
    ) -> Result<Option<&mut OnDevice>, DeviceError> {
        let Some((lists, tables)) = self.lists.as_mut().zip(tables) else {
            return Ok(None);
        };
        if take(&mut self.in_pages) {
            let tables = device::tables(tables);
            for at in (0..=topology.finest()).flat_map(|level| [(level, 0), (level, 1)]) {
                lists.settle((topology, tables), at, (&mut self.patches, &self.pool))?;
            }
        }
        Ok(Some(lists))
    }

    /// Takes all particles to the host's pages, where systems that ask for them find them; kernels take them back.
    ///
    /// # Errors
    /// The device fails.
    pub fn fetch(&mut self) -> Result<(), DeviceError> {
        let Some(lists) = &mut self.lists else {
            return Ok(());
        };
        self.in_pages = true;
        let (patches, pool) = (&mut self.patches, &self.pool);
        lists.fetch(|row, list, records| {
            let records = records.chunks_exact(pool.columns.bytes() + 1);
            records.for_each(|record| patches[row][list].push(pool, &record[..record.len() - 1]));
        })
    }

    /// Precision of the numbers.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Whether its particles attract.
    #[must_use]
    pub fn has_mass(&self) -> bool {
        self.mass > 0.0 || self.pool.columns.masses
    }

    /// Calls `work` with each row that has particles in pages: all, after [`Species::fetch`].
    pub fn each(&mut self, mut work: impl FnMut(u32, &mut Patch)) {
        let patches = self.patches.iter_mut().enumerate();
        for (row, patch) in patches.filter(|(_, patch)| count(patch) > 0) {
            work(row as u32, patch);
        }
    }

    /// Lets particles change places in their patches.
    pub fn shuffle(&mut self) {
        for patch in &mut self.patches {
            patch.iter_mut().for_each(|rows| rows.shuffle(&self.pool));
        }
    }

    /// Takes the particles of some patches out, to work on them side by side; patches without any are left out.
    pub fn lift(&mut self, rows: impl Iterator<Item = u32>) -> Vec<(u32, Patch)> {
        let mut lifted = self.lift_all(rows);
        lifted.retain(|(_, patch)| count(patch) > 0);
        lifted
    }

    /// The same of patches with or without any.
    pub fn lift_all(&mut self, rows: impl Iterator<Item = u32>) -> Vec<(u32, Patch)> {
        rows.map(|row| (row, take(&mut self.patches[row as usize])))
            .collect()
    }

    /// Puts them back.
    pub fn lower(&mut self, lifted: Vec<(u32, Patch)>) {
        for (row, patch) in lifted {
            self.patches[row as usize] = patch;
        }
    }

    /// What stands in a record, one behind the other: meaning, type, and whether it is a vector.
    fn kept(&self) -> Vec<(Component, DataType, bool)> {
        let (number, offset) = match self.precision {
            Precision::Single => (DataType::F32, DataType::U32),
            Precision::Double => (DataType::F64, DataType::U64),
        };
        let id = what("id", "1", [0; 3], "identity, unique in the species");
        let within = "place in the patch, whose width is 2^32 (uint32) or 2^64 (uint64)";
        let within = what("offset", "1", [0; 3], within);
        let velocity = what("velocity", "length/time", [1, 0, -1], "velocity");
        let text = "acceleration that the next kick begins with";
        let acceleration = what("acceleration", "length/time**2", [1, 0, -2], text);
        let mut kept = vec![
            (id, DataType::U64, false),
            (within, offset, true),
            (velocity, number, true),
            (acceleration, number, true),
        ];
        kept.extend(self.pool.columns.masses.then(|| (mass(), number, false)));
        let scalars = self.scalars.iter();
        kept.extend(scalars.map(|name| (Component::scalar(name), number, false)));
        let mark = "1 where the next finer level moves the particle, else 0";
        let mark = what("moved_by_finer", "1", [0; 3], mark);
        kept.push((mark, DataType::U8, false));
        kept
    }

    /// Where the places stand in a record, by axis.
    pub(super) fn place_in(&self, axis: usize) -> std::ops::Range<usize> {
        let number = self.pool.columns.number;
        8 + axis * number..8 + (axis + 1) * number
    }

    /// Changes the place along an axis in a record, in units of 2^-64.
    fn change(&self, record: &mut [u8], axis: usize, change: impl FnOnce(u64) -> u64) {
        let kept = &mut record[self.place_in(axis)];
        let mut bytes = [0; 8];
        let (_, upper) = bytes.split_at_mut(8 - kept.len());
        upper.copy_from_slice(kept);
        let place = change(u64::from_le_bytes(bytes)).to_le_bytes();
        kept.copy_from_slice(&place[8 - kept.len()..]);
    }
}

/// What a column means.
fn what(name: &str, units: &str, dimension: [i32; 3], long_name: &str) -> Component {
    Component {
        units: units.into(),
        dimension,
        long_name: long_name.into(),
        ..Component::scalar(name)
    }
}

fn mass() -> Component {
    what("mass", "mass", [0, 1, 0], "mass")
}

/// Particles of a patch.
#[must_use]
pub fn count(patch: &Patch) -> usize {
    patch[0].count() + patch[1].count()
}

/// A record is the values of the columns and a byte: 1 where the next finer level moves the particle, else 0.
impl Items for Species {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn record_bytes(&self) -> usize {
        self.pool.columns.bytes() + 1
    }

    fn group(&self) -> [&str; 2] {
        ["particles", "particle"]
    }

    fn columns(&self) -> Vec<ItemColumn> {
        let (mut columns, mut end) = (Vec::new(), 0);
        for (what, data_type, is_vector) in self.kept() {
            let column = ItemColumn::kept(what, data_type, end);
            let column = if is_vector { column.vector() } else { column };
            end += column.bytes();
            columns.push(column);
        }
        if !self.pool.columns.masses {
            columns.push(ItemColumn::derived(mass()));
        }
        let position = what("position", "length", [1, 0, 0], "position");
        columns.push(ItemColumn::derived(position).vector());
        columns
    }

    fn derive(&self, column: &str, record: &[u8], patch: &PatchPlace) -> [f64; 3] {
        match column {
            "position" => self.position(record, patch),
            _ => [self.mass; 3],
        }
    }

    fn count(&self, row: u32) -> usize {
        let on_device = self.lists.as_ref().map_or(0, |lists| lists.count(row));
        count(&self.patches[row as usize]) + on_device
    }

    fn follow(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.patches.resize_with(rows, Patch::default);
        self.lists.iter_mut().for_each(|lists| lists.follow(rows));
        Ok(())
    }

    fn copy(&self, row: u32) -> Result<Vec<u8>, DeviceError> {
        let patch = &self.patches[row as usize];
        let on_device = self.lists.as_ref().map(|lists| lists.records(row));
        let mut records = on_device.transpose()?.unwrap_or_default();
        for (mark, rows) in patch.iter().enumerate() {
            for n in 0..rows.count() {
                rows.read(self.pool.columns, n, &mut records);
                records.push(mark as u8);
            }
        }
        let mut sorted: Vec<&[u8]> = records.chunks_exact(self.record_bytes()).collect();
        // the identity comes first
        sorted
            .sort_unstable_by_key(|record| record.first_chunk().map(|id| u64::from_le_bytes(*id)));
        Ok(sorted.concat())
    }

    fn take(&mut self, row: u32) -> Result<Vec<u8>, DeviceError> {
        let mut records = Vec::new();
        if let Some(lists) = &mut self.lists {
            records = lists.records(row)?;
            lists.forget(row);
        }
        for (mark, rows) in self.patches[row as usize].iter_mut().enumerate() {
            rows.take_all(&self.pool, mark as u8, &mut records);
        }
        Ok(records)
    }

    fn put(&mut self, row: u32, records: &[u8]) -> Result<(), DeviceError> {
        let length = self.record_bytes();
        self.in_pages = true;
        for record in records.chunks_exact(length) {
            let (values, mark) = record.split_at(length - 1);
            let rows = &mut self.patches[row as usize][usize::from(mark[0] > 0)];
            rows.push(&self.pool, values);
        }
        Ok(())
    }

    fn to_child(&self, record: &mut [u8]) -> usize {
        let mut child = 0;
        for axis in 0..3 {
            self.change(record, axis, |place| {
                let (within, upper) = in_child(place);
                child |= (upper as usize) << axis;
                within
            });
        }
        // levels stand at one time where a patch is refined: the finer one moves its particles from then on
        record[self.record_bytes() - 1] = 0;
        child
    }

    fn to_parent(&self, child: usize, record: &mut [u8]) {
        for axis in 0..3 {
            let side = (child >> axis & 1) as u32;
            self.change(record, axis, |place| in_parent(place, side));
        }
        // whoever leaves a finer patch is moved by its level until levels meet
        record[self.record_bytes() - 1] = 1;
    }
}

/// All species, by number.
#[derive(bevy_ecs::prelude::Resource, Default)]
pub struct AllSpecies(pub Vec<Species>);

impl AllSpecies {
    /// What kernels move particles, if any.
    pub(super) fn kernels(&self) -> Option<Arc<Kernels>> {
        let mut lists = self.0.iter().filter_map(|species| species.lists.as_ref());
        lists.next().map(|lists| lists.kernels().clone())
    }

    /// Whether all that attract are where kernels move them.
    pub(super) fn attract_on_device(&self) -> bool {
        let mut all = self.0.iter().filter(|species| species.has_mass());
        all.all(Species::is_on_device)
    }

    /// Takes all particles to the host's pages.
    ///
    /// # Errors
    /// The device fails.
    pub fn fetch(&mut self) -> Result<(), DeviceError> {
        self.0.iter_mut().try_for_each(Species::fetch)
    }

    /// Those that gravity moves.
    pub fn falling(&mut self) -> impl Iterator<Item = &mut Species> {
        self.0.iter_mut().filter(|species| !species.traces)
    }

    /// Those that gas takes along.
    pub fn tracing(&mut self) -> impl Iterator<Item = &mut Species> {
        self.0.iter_mut().filter(|species| species.traces)
    }
}

impl ItemGroup for AllSpecies {
    fn kinds(&self) -> usize {
        self.0.len()
    }

    fn kind(&self, n: usize) -> &dyn Items {
        &self.0[n]
    }

    fn kind_mut(&mut self, n: usize) -> &mut dyn Items {
        &mut self.0[n]
    }
}
