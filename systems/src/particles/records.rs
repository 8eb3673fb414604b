//! Converts particles to and from records, the form in which the engine moves them between patches, ranks and
//! snapshots.

use super::initial::initial_positions;
use super::pages::PAGE;
use super::pages::PagePool;
use super::species::{PatchParticles, Species, count};
use nestar_engine::data::{
    Component, CoveringLeaf, DataType, ParticleColumn, ParticleSet, PatchPlace, Precision,
    RefinedPatch, RemapOnRegrid,
};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{Domain, Topology, parallel};
use nestar_kernels::particles::motion::{in_child, in_parent};

impl Species {
    /// Returns the columns of a record in order: meaning, type, and `true` for vectors.
    fn record_columns(&self) -> Vec<(Component, DataType, bool)> {
        let (number, offset) = match self.precision {
            Precision::Single => (DataType::F32, DataType::U32),
            Precision::Double => (DataType::F64, DataType::U64),
        };
        let id = describe("id", "1", [0; 3], "identity, unique in the species");
        let within =
            "offset in the patch, in units of 2^-32 (uint32) or 2^-64 (uint64) of its width";
        let within = describe("offset", "1", [0; 3], within);
        let velocity = describe("velocity", "length/time", [1, 0, -1], "velocity");
        let text = "acceleration at the last closing kick, used by the next opening kick";
        let acceleration = describe("acceleration", &self.acceleration_units, [1, 0, -2], text);
        let mut kept = vec![
            (id, DataType::U64, false),
            (within, offset, true),
            (velocity, number, true),
            (acceleration, number, true),
        ];
        kept.extend(self.pool.columns.masses.then(|| (mass(), number, false)));
        let scalars = self.scalars.iter();
        kept.extend(scalars.map(|name| (Component::scalar(name), number, false)));
        let mark = "1 if the next finer level moves the particle, else 0";
        let mark = describe("moved_by_finer", "1", [0; 3], mark);
        kept.push((mark, DataType::U8, false));
        kept
    }

    /// Changes the offset along an axis in a record, in units of 2^-64 patch widths.
    fn move_in(&self, record: &mut [u8], axis: usize, change: impl FnOnce(u64) -> u64) {
        let kept = &mut record[self.offset_in(axis)];
        let mut bytes = [0; 8];
        let (_, upper) = bytes.split_at_mut(8 - kept.len());
        upper.copy_from_slice(kept);
        let offset = change(u64::from_le_bytes(bytes)).to_le_bytes();
        kept.copy_from_slice(&offset[8 - kept.len()..]);
    }
}

/// Describes a column.
fn describe(name: &str, units: &str, dimension: [i32; 3], long_name: &str) -> Component {
    Component {
        units: units.into(),
        dimension,
        long_name: long_name.into(),
        ..Component::scalar(name)
    }
}

fn mass() -> Component {
    describe("mass", "mass", [0, 1, 0], "mass")
}

/// Appends the particles of records to a patch.
fn push_all(patch: &mut PatchParticles, pool: &PagePool, records: &[u8]) {
    let length = pool.columns.bytes();
    for record in records.chunks_exact(length + 1) {
        patch[usize::from(record[length] > 0)].push(pool, &record[..length]);
    }
}

/// A record holds the values of the columns and a byte: 1 if the next finer level moves the particle, else 0.
impl ParticleSet for Species {
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

    fn columns(&self) -> Vec<ParticleColumn> {
        let (mut columns, mut end) = (Vec::new(), 0);
        for (describe, data_type, is_vector) in self.record_columns() {
            let column = ParticleColumn::stored(describe, data_type, end);
            let column = if is_vector { column.vector() } else { column };
            end += column.bytes();
            columns.push(column);
        }
        if !self.pool.columns.masses {
            columns.push(ParticleColumn::derived(mass()));
        }
        let position = describe("position", "length", [1, 0, 0], "position");
        columns.push(ParticleColumn::derived(position).vector());
        columns
    }

    fn keys(&self) -> Vec<String> {
        self.keys.clone()
    }

    fn key_of(&self, column: &str) -> Option<String> {
        let key = match column {
            "mass" => "mass",
            _ if self.scalars.iter().any(|name| name == column) => "scalars",
            _ => return None,
        };
        Some(format!("particles.species.{}.{key}", self.name))
    }

    fn identity(&self, record: &[u8]) -> Option<u64> {
        record.first_chunk().map(|id| u64::from_le_bytes(*id))
    }

    fn are_entities(&self) -> bool {
        self.entities
    }

    fn identities(&self, rows: &[u32]) -> Result<Vec<Vec<u64>>, DeviceError> {
        let mut all = match &self.on_device {
            Some(lists) => lists.identities(rows)?,
            None => vec![Vec::new(); rows.len()],
        };
        for (identities, &row) in all.iter_mut().zip(rows) {
            let lists = self.patches[row as usize].iter();
            identities.extend(lists.flat_map(|pages| pages.identities()));
        }
        Ok(all)
    }

    fn row_of(&self, topology: &Topology, id: u64) -> Result<Option<u32>, DeviceError> {
        self.find(topology, id)
    }

    fn take_removed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.escaped)
    }

    fn expected_count(&self) -> u64 {
        self.expected
    }

    /// The last page of a patch is half full on average.
    fn memory(&self, count: u64, patches: u64) -> u64 {
        let pages = count
            .div_ceil(PAGE as u64)
            .saturating_add(patches.min(count).div_ceil(2));
        let page = 8 * self.pool.columns.page_words() + size_of::<Box<[u64]>>();
        let lists = patches * size_of::<PatchParticles>() as u64;
        pages.saturating_mul(page as u64).saturating_add(lists)
    }

    fn derive(&self, column: &str, record: &[u8], patch: &PatchPlace) -> [f64; 3] {
        match column {
            "position" => self.position(record, patch),
            _ => [self.mass; 3],
        }
    }

    fn initial_positions(&self, domain: &Domain, most: u64) -> Option<Vec<[f64; 3]>> {
        let source = self.source.as_deref()?;
        Some(initial_positions(source, domain, most))
    }

    fn weight(&self) -> f64 {
        self.weight
    }

    fn count(&self, row: u32) -> usize {
        let on_device = self.on_device.as_ref().map_or(0, |lists| lists.count(row));
        count(&self.patches[row as usize]) + on_device
    }

    fn resize_rows(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.patches.resize_with(rows, PatchParticles::default);
        self.on_device
            .iter_mut()
            .for_each(|lists| lists.resize_rows(rows));
        Ok(())
    }

    fn copy(&self, row: u32) -> Result<Vec<u8>, DeviceError> {
        Ok(self.copy_all(&[row])?.pop().unwrap_or_default())
    }

    fn copy_all(&self, rows: &[u32]) -> Result<Vec<Vec<u8>>, DeviceError> {
        let mut all = match &self.on_device {
            Some(lists) => lists.records(rows)?,
            None => vec![Vec::new(); rows.len()],
        };
        parallel::for_each_mut(&mut all, |n, records| {
            for (mark, pages) in self.patches[rows[n] as usize].iter().enumerate() {
                for n in 0..pages.count() {
                    pages.read(self.pool.columns, n, records);
                    records.push(mark as u8);
                }
            }
            let mut sorted: Vec<&[u8]> = records.chunks_exact(self.record_bytes()).collect();
            // the identity comes first
            sorted.sort_unstable_by_key(|record| {
                record.first_chunk().map(|id| u64::from_le_bytes(*id))
            });
            *records = sorted.concat();
        });
        Ok(all)
    }

    fn take(&mut self, row: u32) -> Result<Vec<u8>, DeviceError> {
        Ok(self.take_all(&[row])?.pop().unwrap_or_default())
    }

    fn take_all(&mut self, rows: &[u32]) -> Result<Vec<Vec<u8>>, DeviceError> {
        self.forget_rows();
        let mut all = vec![Vec::new(); rows.len()];
        if let Some(lists) = &mut self.on_device {
            all = lists.records(rows)?;
            rows.iter().for_each(|&row| lists.forget(row));
        }
        let (mut detached, pool) = (self.take_all_patches(rows.iter().copied()), &self.pool);
        let mut patches: Vec<_> = all.iter_mut().zip(&mut detached).collect();
        parallel::for_each_mut(&mut patches, |_, (records, (_, patch))| {
            let lists = patch.iter_mut().enumerate();
            lists.for_each(|(mark, rows)| rows.drain_records(pool, mark as u8, records));
        });
        self.restore_patches(detached);
        Ok(all)
    }

    fn put(&mut self, row: u32, records: &[u8]) -> Result<(), DeviceError> {
        let length = self.record_bytes();
        self.forget_rows();
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.put(row, records, length);
            return Ok(());
        }
        self.needs_upload = true;
        push_all(&mut self.patches[row as usize], &self.pool, records);
        Ok(())
    }

    fn put_all(&mut self, mut records: Vec<(u32, Vec<u8>)>) -> Result<(), DeviceError> {
        if self.arrivals.is_some() {
            let mut each = records.iter();
            return each.try_for_each(|(row, records)| self.put(*row, records));
        }
        self.forget_rows();
        self.needs_upload = true;
        records.sort_by_key(|(row, _)| *row);
        let of_row: Vec<_> = records.chunk_by(|a, b| a.0 == b.0).collect();
        let mut detached = self.take_all_patches(of_row.iter().map(|records| records[0].0));
        let pool = &self.pool;
        parallel::for_each_mut(&mut detached, |n, (_, patch)| {
            let records = of_row[n].iter();
            records.for_each(|(_, records)| push_all(patch, pool, records));
        });
        self.restore_patches(detached);
        Ok(())
    }

    fn remap_on_regrid(&mut self) -> Option<&mut dyn RemapOnRegrid> {
        match self.on_device.is_some() {
            true => Some(self),
            false => None,
        }
    }

    fn to_child(&self, record: &mut [u8]) -> usize {
        let mut child = 0;
        for axis in 0..3 {
            self.move_in(record, axis, |offset| {
                let (within, upper) = in_child(offset);
                child |= (upper as usize) << axis;
                within
            });
        }
        // levels are synchronised when a patch is refined: the finer one now moves the particle
        record[self.record_bytes() - 1] = 0;
        child
    }

    fn to_parent(&self, child: usize, record: &mut [u8]) {
        for axis in 0..3 {
            let side = (child >> axis & 1) as u32;
            self.move_in(record, axis, |offset| in_parent(offset, side));
        }
        // the finer level moves a particle that leaves its patch until levels are synchronised
        record[self.record_bytes() - 1] = 1;
    }
}

/// Particles on a device.
impl RemapOnRegrid for Species {
    fn detach(&mut self, rows: &[u32]) {
        self.forget_rows();
        self.on_device
            .iter_mut()
            .for_each(|lists| lists.detach(rows));
    }

    fn reinsert(
        &mut self,
        topology: &Topology,
        detached: &[Option<CoveringLeaf>],
        refined: &[RefinedPatch],
    ) -> Result<Vec<Vec<u8>>, DeviceError> {
        self.forget_rows();
        match &mut self.on_device {
            Some(lists) => lists.reinsert_detached(topology, detached, refined),
            None => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ParticleSet, Precision, Species};

    #[test]
    fn many_patches_are_filled_and_emptied_in_parallel() {
        let mut species = Species::new("dark", Precision::Double, None, vec![]);
        species.resize_rows(8).expect("there is memory");
        let bytes = species.record_bytes();
        let record = |n: u64, mark: u8| {
            let mut record = [n, n * n, n, 7 * n]
                .repeat(4)
                .into_iter()
                .flat_map(u64::to_le_bytes);
            let mut record: Vec<u8> = record.by_ref().take(bytes - 1).collect();
            record.push(mark);
            record
        };
        let of = |row: u64| 0..[0, 3, 70, 9000][row as usize % 4];
        let all = |row: u64| of(row).map(move |n| record(1000 * row + n, (n % 2) as u8));
        // a part of each row, one after the other, then the other part
        let part = |row: u64, part: usize| {
            (
                row as u32,
                all(row).skip(part).step_by(2).collect::<Vec<_>>().concat(),
            )
        };
        let parts = (0..8).flat_map(|row| [part(7 - row, 0), part(row, 1)]);
        species.put_all(parts.collect()).expect("they fit");
        assert_eq!(species.count(3), 9000);
        let rows: Vec<u32> = (0..8).rev().collect();
        let taken = species.take_all(&rows).expect("they are there");
        for (row, records) in rows.iter().zip(taken) {
            let mut records: Vec<&[u8]> = records.chunks_exact(bytes).collect();
            records.sort_unstable_by_key(|record| {
                record[..8].iter().rev().copied().collect::<Vec<u8>>()
            });
            assert!(
                records.concat() == all(u64::from(*row)).collect::<Vec<_>>().concat(),
                "row {row}"
            );
            assert_eq!(species.count(*row), 0);
        }
    }
}
