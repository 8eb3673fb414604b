//! A species: what its particles have, and where they are.

use super::columns::{Columns, PAGE};
use super::rows::{Pool, Rows};
use nestar_engine::device::DeviceError;
use nestar_engine::field::{
    Component, DataType, ItemColumn, ItemGroup, Items, PatchPlace, Precision,
};
use nestar_kernels::particles::motion::{in_child, in_parent};
use std::mem::take;

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
    /// How many the run begins with at most.
    pub expected: u64,
    /// Pages.
    pub pool: Pool,
    precision: Precision,
    patches: Vec<Patch>,
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
            expected: 0,
            pool: Pool::new(columns),
            precision,
            patches: Vec::new(),
        }
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

    /// The particles of a patch.
    #[must_use]
    pub fn patch(&self, row: u32) -> &Patch {
        &self.patches[row as usize]
    }

    /// Calls `work` with each row that has particles.
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

    /// Takes the particles of some patches out, to work on them side by side.
    pub fn lift(&mut self, rows: impl Iterator<Item = u32>) -> Vec<(u32, Patch)> {
        let lifted = rows.map(|row| (row, take(&mut self.patches[row as usize])));
        lifted.filter(|(_, patch)| count(patch) > 0).collect()
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

    fn expected(&self) -> u64 {
        self.expected
    }

    /// The last page of a patch is half full on average.
    fn memory(&self, count: u64, patches: u64) -> u64 {
        let pages = count.div_ceil(PAGE as u64) + patches.min(count).div_ceil(2);
        let page = 8 * self.pool.columns.page_words() + size_of::<Box<[u64]>>();
        pages * page as u64 + patches * size_of::<Patch>() as u64
    }

    fn derive(&self, column: &str, record: &[u8], patch: &PatchPlace) -> [f64; 3] {
        match column {
            "position" => self.position(record, patch),
            _ => [self.mass; 3],
        }
    }

    fn count(&self, row: u32) -> usize {
        count(&self.patches[row as usize])
    }

    fn follow(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.patches.resize_with(rows, Patch::default);
        Ok(())
    }

    fn copy(&self, row: u32) -> Result<Vec<u8>, DeviceError> {
        let patch = &self.patches[row as usize];
        let mut records = Vec::with_capacity(count(patch) * self.record_bytes());
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
        for (mark, rows) in self.patches[row as usize].iter_mut().enumerate() {
            rows.take_all(&self.pool, mark as u8, &mut records);
        }
        Ok(records)
    }

    fn put(&mut self, row: u32, records: &[u8]) -> Result<(), DeviceError> {
        let length = self.record_bytes();
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

#[cfg(test)]
mod tests {
    use super::{Items, PAGE, Precision, Species};

    #[test]
    fn the_memory_of_particles_is_foreseen() {
        for (precision, patches, most) in
            [(Precision::Double, 300, 700), (Precision::Single, 2000, 9)]
        {
            let mut species = Species::new("dark", precision, None, vec![]);
            species.follow(patches).unwrap();
            let (mut count, mut pages) = (0, 0);
            for row in 0..patches {
                // numbers of all kinds, by a multiplication without common factors
                let particles = row * 7919 % (most + 1);
                let records = vec![0; particles * species.record_bytes()];
                species.put(row as u32, &records).unwrap();
                (count, pages) = (count + particles, pages + particles.div_ceil(PAGE));
            }
            let page = 8 * species.pool.columns.page_words() + 16;
            let taken = (pages * page + patches * 64) as f64;
            let foreseen = species.memory(count as u64, patches as u64) as f64;
            assert!(
                (0.6..1.4).contains(&(foreseen / taken)),
                "{foreseen} {taken}"
            );
        }
        assert_eq!(
            Species::new("dark", Precision::Double, None, vec![]).memory(0, 0),
            0
        );
    }
}
