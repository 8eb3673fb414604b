//! Every fault has a clear error, and no partial or damaged snapshot is accepted.

use crate::common::{
    Folder, SmallDisk, array, attributes, level, names, push, random, write, write_edited,
};
use nestar_snapshot::{
    DataType, LEAF, LevelPlan, ORIGIN, Snapshot, SnapshotData, SnapshotError, SnapshotPlan,
    SnapshotTarget, SnapshotWriter, Values, WriterThreads, clean_partials, digest, latest,
    write_file,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One level of three shards.
fn levels() -> [LevelPlan; 1] {
    [level(0, 2500, DataType::F64)]
}

/// The text of the error; panics if there is none.
fn text<T>(result: Result<T, SnapshotError>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn an_unfinished_writer_leaves_nothing() {
    let folder = Folder::new();
    let levels = levels();
    let mut writer = SnapshotWriter::begin(&folder.target(0), &attributes(), &levels).unwrap();
    push(
        &mut writer,
        &levels[0],
        "density",
        &array(&levels[0], "density"),
    )
    .unwrap();
    drop(writer);
    assert!(folder.snapshots().is_empty(), "{:?}", folder.snapshots());
}

#[test]
fn a_shard_that_was_never_pushed_is_named_and_the_snapshot_dropped() {
    let folder = Folder::new();
    let levels = levels();
    let mut writer = SnapshotWriter::begin(&folder.target(0), &attributes(), &levels).unwrap();
    for name in [ORIGIN, LEAF, "density", "energy"] {
        push(&mut writer, &levels[0], name, &array(&levels[0], name)).unwrap();
    }
    let error = text(writer.finish());
    assert!(
        error.contains("magnetic_x_face") && error.contains("never pushed"),
        "{error}"
    );
    assert!(folder.snapshots().is_empty());
}

#[test]
fn values_that_are_not_one_shard_are_refused() {
    let folder = Folder::new();
    let levels = levels();
    let mut writer = SnapshotWriter::begin(&folder.target(0), &attributes(), &levels).unwrap();
    let shard = writer.shard_patches(0);
    let whole = || Values::F64(vec![1.0; shard * 512]);
    assert!(writer.push(0, "density", 1, whole()).is_err());
    assert!(
        writer
            .push(0, "density", 0, Values::F64(vec![1.0; 512]))
            .is_err()
    );
    assert!(
        writer
            .push(0, "density", 0, Values::F32(vec![1.0; shard * 512]))
            .is_err()
    );
    assert!(
        writer
            .push(0, "density", 9 * shard as u64, whole())
            .is_err()
    );
    assert!(writer.push(0, "entropy", 0, whole()).is_err());
    assert!(writer.push(1, "density", 0, whole()).is_err());
    writer.push(0, "density", 0, whole()).unwrap();
    assert!(text(writer.push(0, "density", 0, whole())).contains("before"));
}

#[test]
fn headers_without_a_place_in_the_format_are_refused() {
    let refused = |edit: &dyn Fn(&mut nestar_snapshot::Attributes, &mut LevelPlan)| {
        let (mut attributes, mut level) = (attributes(), level(0, 1, DataType::F64));
        edit(&mut attributes, &mut level);
        matches!(
            SnapshotPlan::new(&attributes, &[level]),
            Err(SnapshotError::Request(_))
        )
    };
    assert!(!refused(&|_, _| ()));
    assert!(refused(&|attributes, _| attributes.time = f64::NAN));
    assert!(refused(&|_, level| level.header.dt = f64::INFINITY));
    assert!(refused(&|_, level| level.fields[1].name = "density".into()));
    assert!(refused(&|_, level| level.fields[1].name = "leaf".into()));
    assert!(refused(&|_, level| level.fields[1].name = "a/b".into()));
    assert!(refused(&|_, level| level.fields[1].shape[0] = 0));
    let twice = [level(1, 1, DataType::F64), level(1, 1, DataType::F64)];
    assert!(SnapshotPlan::new(&attributes(), &twice).is_err());
}

/// Not a test by itself: the process that the next test kills.
#[test]
fn child_that_is_killed_while_writing() {
    let Some(directory) = std::env::var_os("NESTAR_SNAPSHOT_TEST_KILL") else {
        return;
    };
    let target = SnapshotTarget {
        directory: directory.into(),
        number: 4,
        replace: true,
        queue_bytes: 1,
        threads: WriterThreads::new(3).unwrap(),
    };
    let levels = levels();
    let mut writer = SnapshotWriter::begin(&target, &attributes(), &levels).unwrap();
    push(
        &mut writer,
        &levels[0],
        "density",
        &array(&levels[0], "density"),
    )
    .unwrap();
    std::process::abort();
}

#[test]
fn a_killed_run_leaves_the_last_complete_snapshot() {
    let folder = Folder::new();
    write(&folder.target(3), &attributes(), &[]);
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::child_that_is_killed_while_writing"])
        .env("NESTAR_SNAPSHOT_TEST_KILL", &folder.0)
        .output()
        .unwrap();
    assert!(!status.status.success());
    assert_eq!(folder.snapshots(), [".000004.zarr.partial", "000003.zarr"]);
    assert_eq!(latest(&folder.0).unwrap().unwrap().0, 3);
    assert_eq!(clean_partials(&folder.0).unwrap(), 1);
    assert_eq!(folder.snapshots(), ["000003.zarr"]);
}

#[test]
fn a_complete_snapshot_is_replaced_only_on_request() {
    let folder = Folder::new();
    write(&folder.target(0), &attributes(), &[]);
    let error = text(SnapshotWriter::begin(&folder.target(0), &attributes(), &[]));
    assert!(
        error.contains("000000.zarr") && error.contains("not overwritten"),
        "{error}"
    );
    let target = SnapshotTarget {
        replace: true,
        ..folder.target(0)
    };
    let snapshot = write(&target, &attributes(), &[level(0, 2, DataType::F32)]);
    assert_eq!(snapshot.levels().len(), 1);
    assert_eq!(folder.snapshots(), ["000000.zarr"]);
}

#[test]
fn a_replacement_cut_short_gives_the_old_snapshot_its_name_back() {
    let folder = Folder::new();
    write(&folder.target(0), &attributes(), &[]);
    let snapshots = folder.0.join("snapshots");
    std::fs::rename(
        snapshots.join("000000.zarr"),
        snapshots.join(".000000.zarr.replaced"),
    )
    .unwrap();
    std::fs::create_dir(snapshots.join(".000000.zarr.partial")).unwrap();
    assert_eq!(clean_partials(&folder.0).unwrap(), 1);
    assert_eq!(folder.snapshots(), ["000000.zarr"]);
    assert!(Snapshot::open(&snapshots.join("000000.zarr")).is_ok());
}

#[test]
fn a_missing_run_directory_is_named() {
    let folder = Folder::new();
    let directory = folder.0.join("nowhere");
    let target = SnapshotTarget {
        directory: directory.clone(),
        ..folder.target(0)
    };
    let error = text(SnapshotWriter::begin(&target, &attributes(), &[]));
    assert!(
        error.contains(directory.to_str().unwrap()) && error.contains("missing"),
        "{error}"
    );
}

#[test]
fn a_full_disk_is_reported_and_leaves_the_disk_usable() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mount(&folder) else {
        return;
    };
    let target = SnapshotTarget {
        directory: disk.0.clone(),
        ..folder.target(1)
    };
    let levels = [level(0, 512, DataType::F64)];
    let noise = |_: u8, _: &str, values: &mut Values| {
        if let Values::F64(v) = values {
            *v = random(v.len());
        }
    };
    // The thread may fail before the last push or after it.
    let error = text(
        write_edited(&target, &attributes(), &levels, noise).and_then(|finishing| finishing.wait()),
    );
    assert!(
        error.contains("disk is full") && error.contains(".000001.zarr.partial"),
        "{error}"
    );
    assert!(names(&disk.0.join("snapshots")).is_empty());
    write(&target, &attributes(), &[level(0, 1, DataType::F64)]);
    assert_eq!(names(&disk.0.join("snapshots")), ["000001.zarr"]);
}

#[test]
fn files_and_stores_of_views_leave_nothing_on_a_full_disk() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mount(&folder) else {
        return;
    };
    let data = |patches: u64| {
        let level = level(0, patches, DataType::F64);
        let fields = level.fields.iter().map(|field| field.name.as_str());
        let arrays = [ORIGIN, LEAF].into_iter().chain(fields).map(|name| {
            let values = match array(&level, name) {
                Values::F64(v) => Values::F64(random(v.len())),
                other => other,
            };
            (name.to_string(), values)
        });
        SnapshotData {
            attributes: attributes(),
            arrays: vec![arrays.collect()],
            levels: vec![level],
        }
    };
    let [store, file] = ["000003.zarr", "000003.png"].map(|name| disk.0.join(name));
    for error in [
        text(data(100).store(&store)),
        text(write_file(&file, &vec![7; 2 << 20])),
    ] {
        let told = ["000003.", "disk is full: free some space"];
        assert!(told.iter().all(|word| error.contains(word)), "{error}");
        assert!(names(&disk.0).is_empty(), "{:?}", names(&disk.0));
    }
    data(2).store(&store).unwrap();
    write_file(&file, b"whole").unwrap();
    assert_eq!(names(&disk.0), ["000003.png", "000003.zarr"]);
    digest(&Snapshot::open(&store).unwrap()).unwrap();
}

/// Applies `damage` to a shard of a fresh snapshot and returns the error of reading it.
fn damaged(damage: impl Fn(&Path)) -> String {
    let folder = Folder::new();
    let snapshot = write(&folder.target(0), &attributes(), &levels());
    let shard = snapshot.path().join("level_0/energy/c.1.0.0.0");
    damage(&shard);
    assert!(
        snapshot.read_patches(0, "energy", 0..10).is_ok(),
        "the first shard is whole"
    );
    assert!(
        snapshot.read(0, "density").is_ok(),
        "the other arrays are whole"
    );
    let error = text(snapshot.read(0, "energy"));
    assert_eq!(text(digest(&snapshot)), error);
    assert!(
        error.contains(shard.to_str().unwrap()) && error.contains("damaged"),
        "{error}"
    );
    error
}

/// Flips one bit of a file; a negative position counts from the end.
fn flip(path: &Path, position: i64) {
    let mut bytes = std::fs::read(path).unwrap();
    let index = position.rem_euclid(bytes.len() as i64) as usize;
    bytes[index] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_shard_is_detected() {
    assert!(damaged(|shard| flip(shard, 1000)).contains("checksum"));
    assert!(damaged(|shard| flip(shard, -1)).contains("checksum"));
    assert!(damaged(|shard| flip(shard, -100)).contains("checksum"));
    assert!(damaged(|shard| std::fs::remove_file(shard).unwrap()).contains("missing"));
    damaged(|shard| {
        std::fs::write(shard, std::fs::read(shard).unwrap().split_last().unwrap().1).unwrap()
    });
    assert!(damaged(|shard| std::fs::write(shard, b"").unwrap()).contains("truncated"));
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in names(directory) {
        let path = directory.join(name);
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Flips bits in every file; in metadata each flip changes a number or a name.
#[test]
fn no_flipped_bit_passes_in_silence() {
    let folder = Folder::new();
    let levels = [level(0, 40, DataType::F32), level(1, 3, DataType::F32)];
    let path = write(&folder.target(0), &attributes(), &levels)
        .path()
        .to_path_buf();
    let whole = || Snapshot::open(&path)?.verify(|_| ());
    assert_eq!(whole(), Ok(()));
    let (mut state, mut root) = (7u64, 0);
    for file in files(&path) {
        let bytes = std::fs::read(&file).unwrap();
        let is_metadata = file.ends_with("zarr.json") || file.ends_with("checksums");
        for _ in 0..if is_metadata { 60 } else { 12 } {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let bit = (state >> 20) as usize % (8 * bytes.len());
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&file, flipped).unwrap();
            let error = text(whole());
            assert!(
                error.contains("damaged"),
                "{}, bit {bit}: {error}",
                file.display()
            );
            // what every command reads is checked by every command
            if file == path.join("zarr.json") {
                assert!(Snapshot::open(&path).is_err(), "bit {bit}");
                root += 1;
            }
        }
        std::fs::write(&file, bytes).unwrap();
    }
    assert_eq!((whole(), root), (Ok(()), 60));
}

#[test]
fn what_is_no_snapshot_is_refused_with_the_reason() {
    let folder = Folder::new();
    let snapshot = write(
        &folder.target(0),
        &attributes(),
        &[level(0, 1, DataType::F64)],
    );
    let error = |path: &Path| text(Snapshot::open(path));
    assert!(error(&folder.0.join("nothing")).contains("nothing with this name"));
    assert!(error(&snapshot.path().join("zarr.json")).contains("it is a file"));
    assert!(error(&folder.0).contains("name one of its snapshots"));
    assert!(error(&snapshot.path().join("level_0")).contains("without the attribute format"));
    let root = snapshot.path().join("zarr.json");
    let document = std::fs::read_to_string(&root).unwrap();
    // as snapshots without checksums are
    std::fs::remove_file(snapshot.path().join("checksums")).unwrap();
    assert!(error(snapshot.path()).contains("checksums"));
    let document = document.replace("\"checksums\":\"blake3\",", "");
    let edited = |from: &str, to: &str| {
        assert!(document.contains(from));
        std::fs::write(&root, document.replace(from, to)).unwrap();
        error(snapshot.path())
    };
    assert!(edited("\"format_version\":1", "\"format_version\":3").contains("use a newer program"));
    assert!(edited("\"time\":", "\"Time\":").contains("missing field `time`"));
    assert!(edited("level_0/leaf", "level_0/fel").contains("level_0/leaf"));
    std::fs::write(&root, &document[..document.len() / 2]).unwrap();
    assert!(error(snapshot.path()).contains("damaged"));
}

#[test]
fn a_missing_array_or_level_lists_what_is_there() {
    let folder = Folder::new();
    let snapshot = write(
        &folder.target(0),
        &attributes(),
        &[level(0, 1, DataType::F64)],
    );
    assert!(text(snapshot.read(0, "denisty")).contains("density, energy"));
    assert!(text(snapshot.read(1, "density")).contains("it has level 0"));
}
