//! What is written is read back, bit for bit, and has one digest.

use crate::common;
use crate::common::{Folder, array, attributes, level, part, write, write_edited};
use nestar_snapshot::{
    DataType, LEAF, LevelPlan, ORIGIN, Snapshot, SnapshotTarget, SnapshotWriter, Values,
    WriterThreads, digest, latest, summary,
};
use std::path::{Path, PathBuf};

fn assert_equal(snapshot: &Snapshot, levels: &[LevelPlan]) {
    assert!(
        snapshot
            .levels()
            .eq(levels.iter().map(|level| &level.header))
    );
    for level in levels {
        let number = level.header.level;
        let mut fields: Vec<_> = level.fields.iter().collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(snapshot.fields(number), fields);
        for name in [ORIGIN, LEAF]
            .into_iter()
            .chain(fields.iter().map(|field| field.name.as_str()))
        {
            let (read, written) = (snapshot.read(number, name).unwrap(), array(level, name));
            assert_eq!(read.data_type(), written.data_type());
            assert!(
                read.bytes() == written.bytes(),
                "level {number}, array {name}"
            );
        }
    }
}

#[test]
fn values_and_headers_round_trip_for_odd_patch_counts() {
    for data_type in [DataType::F32, DataType::F64] {
        for patches in [1, 7, 33, 1025] {
            let folder = Folder::new();
            let levels = [
                level(0, patches, data_type),
                level(1, 8, data_type),
                level(2, 0, data_type),
            ];
            let snapshot = write(&folder.target(3), &attributes(), &levels);
            assert_eq!(snapshot.attributes(), &attributes());
            assert_equal(&snapshot, &levels);
            assert_eq!(folder.snapshots(), ["000003.zarr"]);
        }
    }
}

#[test]
fn a_snapshot_without_levels_and_a_level_without_patches() {
    let folder = Folder::new();
    let none = write(&folder.target(0), &attributes(), &[]);
    assert_eq!(none.levels().len(), 0);
    let empty = write(
        &folder.target(1),
        &attributes(),
        &[level(0, 0, DataType::F64)],
    );
    assert!(empty.read(0, "density").unwrap().is_empty());
    assert_ne!(digest(&none).unwrap(), digest(&empty).unwrap());
    assert!(summary(&empty).unwrap().contains("density"));
}

#[test]
fn values_that_equal_the_fill_value_survive() {
    let folder = Folder::new();
    let levels = [level(0, 40, DataType::F64)];
    let odd_nan = f64::from_bits(0x7ff8_0000_0000_0001);
    let edit = |_: u8, name: &str, values: &mut Values| match values {
        Values::F64(v) if name == "density" => v.fill(f64::NAN),
        Values::F64(v) if name == "energy" => v.fill(odd_nan),
        Values::F64(v) => v.fill(-0.0),
        Values::U8(v) => v.fill(0),
        _ => (),
    };
    let done = write_edited(&folder.target(0), &attributes(), &levels, edit)
        .unwrap()
        .wait()
        .unwrap();
    let snapshot = Snapshot::open(&done.path).unwrap();
    let all_are = |name: &str, expected: f64| {
        let values = snapshot.read(0, name).unwrap().to_f64();
        values
            .iter()
            .all(|value| value.to_bits() == expected.to_bits())
    };
    assert!(all_are("density", f64::NAN));
    assert!(all_are("energy", odd_nan));
    assert!(all_are("magnetic_x_face", -0.0));
    assert!(all_are(LEAF, 0.0));
}

#[test]
fn parts_of_an_array_are_read_alone() {
    let folder = Folder::new();
    let levels = [level(1, 1100, DataType::F32)];
    let snapshot = write(&folder.target(0), &attributes(), &levels);
    let all = array(&levels[0], "energy");
    let range = snapshot.read_patches(1, "energy", 500..700).unwrap();
    assert_eq!(range, part(&all, 500 * 512, 700 * 512));
    let selected = snapshot
        .read_selected(1, "energy", &[0, 31, 32, 575, 576, 1099])
        .unwrap();
    let expected: Vec<f64> = [0, 31, 32, 575, 576, 1099]
        .into_iter()
        .flat_map(|p| part(&all, p * 512, (p + 1) * 512).to_f64())
        .collect();
    assert_eq!(selected.to_f64(), expected);
    assert!(snapshot.read_patches(1, "energy", 1000..1101).is_err());
    assert!(snapshot.read_selected(1, "energy", &[2, 1]).is_err());
}

#[test]
fn the_digest_is_of_the_content_alone() {
    let folder = Folder::new();
    let levels = [level(0, 7, DataType::F64), level(1, 1025, DataType::F32)];
    let first = digest(&write(&folder.target(0), &attributes(), &levels)).unwrap();
    let mut other = attributes();
    other.config.push_str("threads = 2\n");
    other.restart.clear();
    other.units.name = "other".into();
    let mut stepped = levels.clone();
    stepped[1].header.dt *= 2.0;
    let mut reversed = stepped.clone();
    reversed[0].fields.reverse();
    assert_eq!(
        digest(&write(&folder.target(1), &other, &reversed)).unwrap(),
        first
    );
}

#[test]
fn the_digest_sees_one_bit() {
    let folder = Folder::new();
    let levels = [level(0, 7, DataType::F64), level(1, 40, DataType::F64)];
    let mut digests = vec![digest(&write(&folder.target(0), &attributes(), &levels)).unwrap()];
    let flip = |_: u8, name: &str, values: &mut Values| match values {
        Values::F64(v) if name == "energy" => v[777] = f64::from_bits(v[777].to_bits() ^ 1),
        _ => (),
    };
    let done = write_edited(&folder.target(1), &attributes(), &levels, flip)
        .unwrap()
        .wait()
        .unwrap();
    digests.push(digest(&Snapshot::open(&done.path).unwrap()).unwrap());
    let mut time = attributes();
    time.time = time.time.next_up();
    digests.push(digest(&write(&folder.target(2), &time, &levels)).unwrap());
    let mut boundary = attributes();
    boundary.boundary["y"] = "outflow".into();
    digests.push(digest(&write(&folder.target(3), &boundary, &levels)).unwrap());
    let mut gamma = attributes();
    gamma.facts.clear();
    digests.push(digest(&write(&folder.target(4), &gamma, &levels)).unwrap());
    let mut width = levels.clone();
    width[1].header.cell_width[2] *= 1.0 + f64::EPSILON;
    digests.push(digest(&write(&folder.target(5), &attributes(), &width)).unwrap());
    let count = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), count);
}

#[test]
fn the_newest_snapshot_is_found() {
    let folder = Folder::new();
    assert_eq!(latest(&folder.0).unwrap(), None);
    for number in [9, 10, 2] {
        write(&folder.target(number), &attributes(), &[]);
    }
    std::fs::create_dir(folder.0.join("snapshots/.000011.zarr.partial")).unwrap();
    let (number, path) = latest(&folder.0).unwrap().unwrap();
    assert_eq!((number, path), (10, folder.0.join("snapshots/000010.zarr")));
}

#[test]
fn the_summary_integrates_leaf_cells() {
    let folder = Folder::new();
    let levels = [level(0, 6, DataType::F64)];
    let constant = |_: u8, name: &str, values: &mut Values| match values {
        Values::F64(v) if name == "density" => v.fill(3.0),
        Values::F64(v) if name == "energy" => {
            v.iter_mut().enumerate().for_each(|(i, x)| *x = i as f64)
        }
        _ => (),
    };
    let done = write_edited(&folder.target(0), &attributes(), &levels, constant)
        .unwrap()
        .wait()
        .unwrap();
    let text = summary(&Snapshot::open(&done.path).unwrap()).unwrap();
    let width = levels[0].header.cell_width;
    // Patches 0 and 3 of 6 have children.
    let total = 3.0 * 4.0 * 512.0 * width[0] * width[1] * width[2];
    assert!(text.contains(&format!("{total:.15e}")), "{text}");
    assert!(
        text.contains("5.120000e2") && text.contains(&format!("{:.6e}", 6.0 * 512.0 - 1.0)),
        "{text}"
    );
}

#[test]
fn a_small_snapshot_is_quick_and_pushes_do_not_wait_for_the_disk() {
    let folder = Folder::new();
    let mut levels = [level(0, 512, DataType::F64)];
    levels[0].fields.truncate(2);
    let mut target = folder.target(0);
    target.queue_bytes = 1 << 30;
    let begun = std::time::Instant::now();
    let mut writer = SnapshotWriter::begin(&target, &attributes(), &levels).unwrap();
    for name in [ORIGIN, LEAF, "density", "energy"] {
        common::push(&mut writer, &levels[0], name, &array(&levels[0], name)).unwrap();
    }
    let done = writer.finish().unwrap().wait().unwrap();
    assert!(begun.elapsed().as_secs_f64() < 2.0, "{done:?}");
}

/// All files below `folder` with their contents, sorted by path.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn any_number_of_threads_writes_the_same_files() {
    let levels = [level(0, 3000, DataType::F32), level(1, 24, DataType::F32)];
    let written = |threads: usize| {
        let folder = Folder::new();
        let target = SnapshotTarget {
            threads: WriterThreads::new(threads).unwrap(),
            queue_bytes: 1 << 30,
            ..folder.target(0)
        };
        write(&target, &attributes(), &levels);
        let strip = |(path, bytes): (PathBuf, Vec<u8>)| {
            (path.strip_prefix(&folder.0).unwrap().to_path_buf(), bytes)
        };
        files(&folder.0).into_iter().map(strip).collect::<Vec<_>>()
    };
    let alone = written(1);
    assert!(alone.len() > 10);
    assert!(alone == written(2) && alone == written(5));
}
