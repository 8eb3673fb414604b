//! A snapshot with particles.

use super::{Folder, array, attributes, level, push};
use nestar_snapshot::{
    Blob, DataType, FieldHeader, LEAF, LevelPlan, ORIGIN, ParticlesHeader, ParticlesPlan, Result,
    Role, Snapshot, SnapshotPlan, SnapshotWriter, Values,
};
use std::ops::Range;

/// Number of particles: three shards.
pub const COUNT: u64 = 600_000;
pub const PATH: &str = "particles/stars";

pub fn levels() -> [LevelPlan; 2] {
    [level(0, 3, DataType::F64), level(1, 8, DataType::F64)]
}

pub fn items(count: u64) -> ParticlesPlan {
    let column = |name: &str, data_type| FieldHeader {
        dimensions: vec![],
        shape: vec![],
        ..FieldHeader::cells(name, data_type, "1", 1.0, &format!("the {name}"))
    };
    ParticlesPlan {
        header: ParticlesHeader {
            path: PATH.into(),
            count,
            version: 4,
        },
        dimension: "particle".into(),
        columns: vec![
            column("id", DataType::U64),
            FieldHeader {
                dimensions: vec!["axis".into()],
                shape: vec![3],
                ..column("position", DataType::F64)
            },
            column("mark", DataType::U8),
            column("place", DataType::U32),
        ],
    }
}

/// Values of a range of particles of an array.
pub fn column(name: &str, range: Range<u64>) -> Values {
    match name {
        "id" => Values::U64(range.map(|n| n * n + 5).collect()),
        "mark" => Values::U8(range.map(|n| (n % 2) as u8).collect()),
        "place" => Values::U32(range.map(|n| (n as u32).wrapping_mul(77_777)).collect()),
        _ => {
            let numbers = 3 * range.start..3 * range.end;
            Values::F64(numbers.map(|n| n as f64 / 7.0).collect())
        }
    }
}

/// Numbers of particles in the patches of a level.
pub fn counts(level: &LevelPlan, count: u64) -> Values {
    let patches = level.header.patches as usize;
    let mut counts = vec![0; patches];
    counts[patches - 1] = match level.header.level {
        0 => count as u32,
        _ => 0,
    };
    Values::U32(counts)
}

/// Writes a snapshot of two levels with particles.
pub fn write(folder: &Folder, number: u32, count: u64) -> Result<Snapshot> {
    let (levels, items) = (levels(), items(count));
    let mut plan = SnapshotPlan::new(&attributes(), &levels)?;
    plan.add_particles(&items)?;
    for (name, bytes) in [("one", vec![1, 2, 3]), ("other", vec![4])] {
        plan.add_blob(&Blob::new(format!("state/{name}"), 1, true, bytes))?;
    }
    let shard = Snapshot::shard_particles(count);
    let shards = [1, 1, count.div_ceil(shard)].map(|shards| std::iter::once(0..shards).collect());
    let mut writer =
        SnapshotWriter::begin_share(&folder.target(number), plan, Role::Only, &shards)?;
    for level in &levels {
        let fields = level.fields.iter().map(|field| field.name.as_str());
        for name in [ORIGIN, LEAF].into_iter().chain(fields) {
            push(&mut writer, level, name, &array(level, name))?;
        }
        let counts = counts(level, count);
        push(&mut writer, level, "particles_stars", &counts)?;
    }
    for name in items.columns.iter().map(|column| &column.name) {
        for first in (0..count).step_by(shard as usize) {
            let values = column(name, first..(first + shard).min(count));
            writer.push_particles(PATH, name, first, values)?;
        }
    }
    Snapshot::open(&writer.finish()?.wait()?.path)
}
