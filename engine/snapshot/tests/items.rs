//! Items: arrays of things that lie in patches in any number.

mod common;

use common::{Folder, attributes, level, push};
use nestar_snapshot::{
    DataType, FieldHeader, Items, ItemsHeader, LEAF, Level, ORIGIN, Plan, Result, Role, Snapshot,
    SnapshotWriter, Values, digest, summary,
};
use serde_json::Value;
use std::ops::Range;

/// Items of three shards.
const COUNT: u64 = 600_000;
const PATH: &str = "particles/stars";

fn levels() -> [Level; 2] {
    [level(0, 3, DataType::F64), level(1, 8, DataType::F64)]
}

fn items(count: u64) -> Items {
    let column = |name: &str, data_type| FieldHeader {
        dimensions: vec![],
        shape: vec![],
        ..FieldHeader::cells(name, data_type, "1", 1.0, &format!("the {name}"))
    };
    Items {
        header: ItemsHeader {
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

/// Values of some items of an array.
fn column(name: &str, range: Range<u64>) -> Values {
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

/// How many items lie in the patches of a level.
fn counts(level: &Level, count: u64) -> Values {
    let patches = level.header.patches as usize;
    let mut counts = vec![0; patches];
    counts[patches - 1] = match level.header.level {
        0 => count as u32,
        _ => 0,
    };
    Values::U32(counts)
}

/// Writes a snapshot of two levels with items.
fn write(folder: &Folder, number: u32, count: u64) -> Result<Snapshot> {
    let (levels, items) = (levels(), items(count));
    let mut plan = Plan::new(&attributes(), &levels)?;
    plan.add_items(&items)?;
    let shard = Snapshot::shard_items(count);
    let shards = [vec![0..1], vec![0..1], vec![0..count.div_ceil(shard)]];
    let mut writer =
        SnapshotWriter::begin_share(&folder.target(number), plan, Role::Only, &shards)?;
    for level in &levels {
        let fields = level.fields.iter().map(|field| field.name.as_str());
        for name in [ORIGIN, LEAF].into_iter().chain(fields) {
            push(&mut writer, level, name, &common::array(level, name))?;
        }
        let counts = counts(level, count);
        push(&mut writer, level, "particles_stars", &counts)?;
    }
    for name in items.columns.iter().map(|column| &column.name) {
        for first in (0..count).step_by(shard as usize) {
            let values = column(name, first..(first + shard).min(count));
            writer.push_items(PATH, name, first, values)?;
        }
    }
    Snapshot::open(&writer.finish()?.wait()?.path)
}

#[test]
fn items_round_trip_and_are_described() {
    let folder = Folder::new();
    for (number, count) in [COUNT, 3, 0].into_iter().enumerate() {
        let snapshot = write(&folder, number as u32, count).unwrap();
        let headers: Vec<_> = snapshot.items().collect();
        assert_eq!(headers, [&items(count).header]);
        let names: Vec<&str> = snapshot.columns(PATH).iter().map(|c| &*c.name).collect();
        assert_eq!(names, ["id", "mark", "place", "position"]);
        for name in names {
            for range in [0..count, count / 3..count / 2] {
                let read = snapshot.read_items(PATH, name, range.clone()).unwrap();
                assert!(read == column(name, range), "{name}");
            }
        }
        let read = snapshot.read(0, "particles_stars").unwrap();
        assert_eq!(read, counts(&levels()[0], count));
        assert_eq!(snapshot.fields(0).len(), 3, "counts are no field");
        snapshot.verify(|_| ()).unwrap();
        let text = summary(&snapshot).unwrap();
        let line = format!("{PATH}: version 4, {count} with id, mark, place, position\n");
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn the_digest_covers_items() {
    let folder = Folder::new();
    let of = |number, count| digest(&write(&folder, number, count).unwrap()).unwrap();
    assert_eq!(of(0, 30), of(1, 30));
    assert_ne!(of(2, 31), of(3, 30));
}

#[test]
fn only_snapshots_with_items_need_a_newer_program() {
    let folder = Folder::new();
    let version = |snapshot: &Snapshot| {
        let text = std::fs::read(snapshot.path().join("zarr.json")).unwrap();
        let root: Value = serde_json::from_slice(&text).unwrap();
        root["attributes"]["format_version"].as_u64()
    };
    assert_eq!(version(&write(&folder, 0, 1).unwrap()), Some(2));
    let without = common::write(&folder.target(1), &attributes(), &levels());
    assert_eq!(version(&without), Some(1));
    assert_eq!(without.items().len(), 0);
}

#[test]
fn items_that_are_not_there_and_places_that_are_none_are_refused() {
    let folder = Folder::new();
    let snapshot = write(&folder, 0, 10).unwrap();
    let text = |read: Result<Values>| read.expect_err("refused").to_string();
    let other = text(snapshot.read_items("particles/dark", "id", 0..1));
    assert!(
        other.contains("particles/dark") && other.contains(PATH),
        "{other}"
    );
    let array = text(snapshot.read_items(PATH, "mass", 0..1));
    assert!(
        array.contains("\"mass\"") && array.contains("position"),
        "{array}"
    );
    assert!(text(snapshot.read_items(PATH, "id", 0..11)).contains("10 items"));
    for path in [
        "stars",
        "state/stars",
        "level_0/stars",
        "a/b/c",
        "a/",
        "/b",
        "a/b c",
    ] {
        let mut plan = Plan::new(&attributes(), &levels()).unwrap();
        let mut items = items(1);
        items.header.path = path.into();
        assert!(plan.add_items(&items).is_err(), "{path}");
    }
    let mut plan = Plan::new(&attributes(), &levels()).unwrap();
    plan.add_items(&items(1)).unwrap();
    assert!(plan.add_items(&items(1)).is_err());
    std::fs::remove_dir_all(snapshot.path().join("particles/stars/id")).unwrap();
    let lost = text(snapshot.read_items(PATH, "id", 0..10));
    assert!(lost.contains("particles/stars/id"), "{lost}");
}
