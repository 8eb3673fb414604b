//! Blobs: versioned byte arrays besides the fields.

use crate::common::{Folder, attributes, names};
use nestar_snapshot::{
    Blob, Role, Snapshot, SnapshotError, SnapshotPlan, SnapshotWriter, digest, summary,
};

/// A snapshot without levels and with `parts`.
fn write(folder: &Folder, number: u32, parts: &[Blob]) -> Result<Snapshot, SnapshotError> {
    let target = folder.target(number);
    let mut plan = SnapshotPlan::new(&attributes(), &[])?;
    parts.iter().try_for_each(|part| plan.add_blob(part))?;
    let writer = SnapshotWriter::begin_share(&target, plan, Role::Only, &[])?;
    Snapshot::open(&writer.finish()?.wait()?.path)
}

fn part(path: &str, version: u32, in_digest: bool, bytes: &[u8]) -> Blob {
    Blob::new(path.into(), version, in_digest, bytes.to_vec())
}

#[test]
fn parts_round_trip_and_are_described() {
    let folder = Folder::new();
    let long: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    let parts = [
        part("state/turbulence", 3, true, &long),
        part("state/nothing", 1, true, &[]),
        part("state/zeros", 1, true, &[0; 20]),
        part("components/cost", 1, false, &[1, 2, 3]),
    ];
    let snapshot = write(&folder, 0, &parts).unwrap();
    let paths: Vec<&str> = snapshot.blobs().map(|part| part.path.as_str()).collect();
    let sorted = [
        "components/cost",
        "state/nothing",
        "state/turbulence",
        "state/zeros",
    ];
    assert_eq!(paths, sorted);
    for part in &parts {
        let found = snapshot.blobs().find(|p| p.path == part.header.path);
        assert_eq!(found, Some(&part.header));
        assert_eq!(snapshot.read_blob(&part.header.path).unwrap(), part.bytes);
    }
    let text = summary(&snapshot).unwrap();
    assert!(
        text.contains("state/turbulence: version 3, 100000 bytes"),
        "{text}"
    );
    let missing = snapshot.read_blob("state/cooling").unwrap_err().to_string();
    assert!(missing.contains("state/turbulence"), "{missing}");
}

#[test]
fn the_digest_covers_the_parts_that_are_results() {
    let folder = Folder::new();
    let mut number = 0;
    let mut of = |parts: &[Blob]| {
        number += 1;
        digest(&write(&folder, number, parts).unwrap()).unwrap()
    };
    let none = of(&[]);
    assert_eq!(of(&[part("components/cost", 1, false, &[1])]), none);
    let one = of(&[part("state/a", 1, true, &[1])]);
    assert_ne!(one, none);
    assert_ne!(of(&[part("state/a", 1, true, &[2])]), one);
    assert_ne!(of(&[part("state/a", 2, true, &[1])]), one);
    assert_ne!(of(&[part("state/b", 1, true, &[1])]), one);
    assert_eq!(of(&[part("state/a", 1, true, &[1])]), one);
}

#[test]
fn damaged_and_misplaced_parts_are_refused() {
    let folder = Folder::new();
    for path in [
        "turbulence",
        "level_0/density",
        "state/a b",
        "state/a/b",
        "state/",
    ] {
        assert!(
            write(&folder, 0, &[part(path, 1, true, &[1])]).is_err(),
            "{path}"
        );
    }
    let same = part("state/a", 1, true, &[1]);
    assert!(write(&folder, 0, &[same.clone(), same]).is_err());
    let random: Vec<u8> = (0..1000u32).map(|n| (n * n % 253) as u8).collect();
    let snapshot = write(&folder, 1, &[part("state/a", 1, true, &random)]).unwrap();
    let directory = snapshot.path().join("state/a");
    let shard = names(&directory)
        .into_iter()
        .find(|name| name != "zarr.json");
    let shard = directory.join(shard.expect("the part has a shard"));
    let mut bytes = std::fs::read(&shard).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    let error = snapshot.read_blob("state/a").unwrap_err();
    assert!(matches!(error, SnapshotError::Corrupt { .. }), "{error}");
}
