//! Particles: groups of arrays with any number of rows per patch.

use crate::common;
use crate::common::stars::{COUNT, PATH, column, counts, items, levels, write};
use crate::common::{Folder, attributes};
use nestar_snapshot::{Result, Snapshot, SnapshotPlan, Values, digest, summary};
use serde_json::Value;

#[test]
fn items_round_trip_and_are_described() {
    let folder = Folder::new();
    for (number, count) in [COUNT, 3, 0].into_iter().enumerate() {
        let snapshot = write(&folder, number as u32, count).unwrap();
        let headers: Vec<_> = snapshot.particles().collect();
        assert_eq!(headers, [&items(count).header]);
        let names: Vec<&str> = snapshot.columns(PATH).iter().map(|c| &*c.name).collect();
        assert_eq!(names, ["id", "mark", "place", "position"]);
        for name in names {
            for range in [0..count, count / 3..count / 2] {
                let read = snapshot.read_particles(PATH, name, range.clone()).unwrap();
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
    assert_eq!(without.particles().len(), 0);
}

#[test]
fn items_that_are_not_there_and_places_that_are_none_are_refused() {
    let folder = Folder::new();
    let snapshot = write(&folder, 0, 10).unwrap();
    let text = |read: Result<Values>| read.expect_err("refused").to_string();
    let other = text(snapshot.read_particles("particles/dark", "id", 0..1));
    assert!(
        other.contains("particles/dark") && other.contains(PATH),
        "{other}"
    );
    let array = text(snapshot.read_particles(PATH, "mass", 0..1));
    assert!(
        array.contains("\"mass\"") && array.contains("position"),
        "{array}"
    );
    assert!(text(snapshot.read_particles(PATH, "id", 0..11)).contains("10 particles"));
    for path in [
        "stars",
        "state/stars",
        "level_0/stars",
        "a/b/c",
        "a/",
        "/b",
        "a/b c",
    ] {
        let mut plan = SnapshotPlan::new(&attributes(), &levels()).unwrap();
        let mut items = items(1);
        items.header.path = path.into();
        assert!(plan.add_particles(&items).is_err(), "{path}");
    }
    let mut plan = SnapshotPlan::new(&attributes(), &levels()).unwrap();
    plan.add_particles(&items(1)).unwrap();
    assert!(plan.add_particles(&items(1)).is_err());
    std::fs::remove_dir_all(snapshot.path().join("particles/stars/id")).unwrap();
    let lost = text(snapshot.read_particles(PATH, "id", 0..10));
    assert!(lost.contains("particles/stars/id"), "{lost}");
}
