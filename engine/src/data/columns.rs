//! What snapshots hold of items: arrays, whatever the records are.

use super::Component;
use crate::mesh::Domain;
use nestar_snapshot::DataType;

/// An array of snapshots that has a value, or a few, of every item: a stretch of the record's bytes, which a restart reads, or numbers that
/// follow from it, for whoever reads the snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticleColumn {
    /// Name, unit and meaning.
    pub what: Component,
    /// Type of the values, which stand in the record as they do in memory, little-endian.
    pub data_type: DataType,
    /// Name and length of the second dimension; none: one value an item.
    pub along: Option<(&'static str, usize)>,
    /// Where the values stand in the record, bytes; `None`: [`ParticleSet::derive`](super::ParticleSet::derive) gives them.
    pub at: Option<usize>,
}

impl ParticleColumn {
    /// A value of each item that stands in the record from byte `at` on.
    #[must_use]
    pub fn stored(what: Component, data_type: DataType, at: usize) -> Self {
        Self {
            what,
            data_type,
            along: None,
            at: Some(at),
        }
    }

    /// An f64 of each item that follows from the record.
    #[must_use]
    pub fn derived(what: Component) -> Self {
        Self {
            at: None,
            ..Self::stored(what, DataType::F64, 0)
        }
    }

    /// As this, with three values of each item, along x, y and z.
    #[must_use]
    pub fn vector(self) -> Self {
        Self {
            along: Some(("axis", 3)),
            ..self
        }
    }

    /// The bytes of records of such a length.
    #[must_use]
    pub fn record(length: usize) -> Self {
        let what = Component {
            long_name: "record of an item, as its plugin encodes it".into(),
            ..Component::scalar("record")
        };
        Self {
            along: Some(("byte", length)),
            ..Self::stored(what, DataType::U8, 0)
        }
    }

    /// Values of an item.
    #[must_use]
    pub fn values(&self) -> usize {
        self.along.map_or(1, |(_, length)| length)
    }

    /// Bytes of the values of an item.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.values() * self.data_type.size()
    }
}

/// Refuses columns that do not hold every byte of records of `length` bytes once.
pub(crate) fn check(columns: &[ParticleColumn], length: usize) -> Result<(), String> {
    for (n, column) in columns.iter().enumerate() {
        let name = &column.what.name;
        if columns[..n].iter().any(|other| other.what.name == *name) {
            return Err(format!("two columns have the name `{name}`"));
        }
        let others = columns[..n].iter().filter_map(|other| other.along);
        if let Some((along, length)) = column.along
            && others
                .into_iter()
                .any(|(other, n)| other == along && n != length)
        {
            return Err(format!(
                "the dimension `{along}` has another length in column `{name}` than in others"
            ));
        }
        let fits = column.data_type == DataType::F64 && column.values() <= 3;
        if column.at.is_none() && !fits {
            return Err(format!(
                "what is derived is up to three f64: column `{name}`"
            ));
        }
    }
    let mut kept: Vec<_> = columns.iter().filter_map(|c| Some((c.at?, c))).collect();
    kept.sort_unstable_by_key(|(at, _)| *at);
    let mut end = 0;
    for (at, column) in kept {
        if at != end {
            let name = &column.what.name;
            return Err(format!(
                "column `{name}` begins at byte {at} of the record: those before it end at {end}"
            ));
        }
        end += column.bytes();
    }
    match end == length {
        true => Ok(()),
        false => Err(format!(
            "columns hold {end} bytes of a record, which has {length}"
        )),
    }
}

/// Where a patch is.
#[derive(Clone, Copy, Debug)]
pub struct PatchPlace<'a> {
    /// The domain.
    pub domain: &'a Domain,
    /// The patch's level.
    pub level: usize,
    /// Its index on the level, in patches.
    pub index: [i32; 3],
}

impl PatchPlace<'_> {
    /// A place in the patch, given in shares of its width, in code length.
    #[must_use]
    pub fn at(&self, shares: [f64; 3]) -> [f64; 3] {
        let width = self.domain.cell_width(self.level);
        [0, 1, 2].map(|axis| {
            let patches = f64::from(self.index[axis]) + shares[axis];
            self.domain.left_edge[axis] + patches * (crate::mesh::PATCH as f64 * width[axis])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ParticleColumn, check};
    use crate::data::Component;
    use nestar_snapshot::DataType;

    #[test]
    fn columns_hold_records_once() {
        let id = || ParticleColumn::stored(Component::scalar("id"), DataType::U64, 0);
        let speed =
            |at| ParticleColumn::stored(Component::scalar("speed"), DataType::F32, at).vector();
        let place = || ParticleColumn::derived(Component::scalar("place")).vector();
        assert_eq!(check(&[speed(8), place(), id()], 20), Ok(()));
        assert_eq!(check(&[ParticleColumn::record(7)], 7), Ok(()));
        let why = |columns: &[ParticleColumn]| check(columns, 20).expect_err("refused");
        assert!(why(&[id(), speed(4)]).contains("begins at byte 4"));
        assert!(why(&[id(), speed(9)]).contains("end at 8"));
        assert!(why(&[id()]).contains("8 bytes of a record, which has 20"));
        assert!(why(&[id(), speed(8), id()]).contains("the name `id`"));
        let wide = |along| ParticleColumn {
            along: Some((along, 4)),
            ..place()
        };
        assert!(why(&[id(), speed(8), wide("axis")]).contains("another length"));
        assert!(why(&[id(), speed(8), wide("corner")]).contains("up to three"));
    }
}
