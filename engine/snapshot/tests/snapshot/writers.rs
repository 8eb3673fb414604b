//! Several writers of one snapshot: the files equal those of one writer, and the final name appears only when all are done.

use crate::common;
use crate::common::{Folder, array, attributes, level, names, write};
use nestar_snapshot::{
    DataType, LEAF, LevelPlan, ORIGIN, Role, Snapshot, SnapshotError, SnapshotPlan, SnapshotWriter,
    digest,
};
use std::path::{Path, PathBuf};

/// One level of three shards.
fn levels() -> [LevelPlan; 1] {
    [level(0, 2500, DataType::F64)]
}

/// The text of the error; panics if there is none.
fn text<T>(result: Result<T, SnapshotError>) -> String {
    result.err().expect("an error").to_string()
}

/// Starts three writers of a snapshot of three shards: a leader with the first, a follower with the others, and one without
/// shards.
fn shares(folder: &Folder, levels: &[LevelPlan]) -> Vec<SnapshotWriter> {
    let shares = [
        (Role::Leader, 0..1),
        (Role::Follower, 1..3),
        (Role::Follower, 3..3),
    ];
    let begin = |(role, shards)| {
        let plan = SnapshotPlan::new(&attributes(), levels).unwrap();
        SnapshotWriter::begin_share(&folder.target(1), plan, role, &[vec![shards]]).unwrap()
    };
    shares.into_iter().map(begin).collect()
}

/// Pushes the shards of all arrays from `first` to `end`.
fn push_shards(writer: &mut SnapshotWriter, level: &LevelPlan, first: usize, end: usize) {
    let shard = writer.shard_patches(0);
    for name in [ORIGIN, LEAF, "density", "energy", "magnetic_x_face"] {
        let all = array(level, name);
        let row = all.len() / 2500;
        for first in (first * shard..(end * shard).min(2500)).step_by(shard) {
            let part = common::part(&all, first * row, (first + shard).min(2500) * row);
            writer.push(0, name, first as u64, part).unwrap();
        }
    }
}

/// Files below a directory with what is in them.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for name in names(directory) {
        let path = directory.join(&name);
        if path.is_dir() {
            let below = files(&path).into_iter();
            found.extend(below.map(|(file, bytes)| (Path::new(&name).join(file), bytes)));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.push((name.into(), bytes));
        }
    }
    found
}

#[test]
fn writers_of_shares_make_the_files_of_one_writer() {
    let folder = Folder::new();
    let levels = levels();
    let single = write(&folder.target(0), &attributes(), &levels);
    let mut writers = shares(&folder, &levels);
    push_shards(&mut writers[0], &levels[0], 0, 1);
    push_shards(&mut writers[1], &levels[0], 1, 3);
    let finishing = |writer: SnapshotWriter| writer.finish().unwrap();
    let mut finishing: Vec<_> = writers.into_iter().map(finishing).collect();
    for share in &finishing {
        share.wait_until_synced().unwrap();
    }
    assert_eq!(
        folder.snapshots(),
        [".000001.zarr.partial", "000000.zarr"],
        "no name before the leader is told"
    );
    finishing[0].publish();
    for share in finishing {
        share.wait().unwrap();
    }
    let complete = folder.0.join("snapshots/000001.zarr");
    assert!(files(&complete) == files(single.path()));
}

#[test]
fn a_leader_that_is_not_told_to_publish_removes_what_all_have_written() {
    let folder = Folder::new();
    let levels = levels();
    let mut writers = shares(&folder, &levels);
    let foreign = writers[2].push(0, LEAF, 0, common::part(&array(&levels[0], LEAF), 0, 864));
    assert!(text(foreign).contains("another writer's"));
    push_shards(&mut writers[0], &levels[0], 0, 1);
    push_shards(&mut writers[1], &levels[0], 1, 2);
    let abort_handle = writers[1].abort_handle();
    abort_handle.stop();
    assert!(text(writers.remove(1).finish()).contains("shard 2 was never pushed"));
    drop(writers.remove(0).finish().unwrap());
    assert!(folder.snapshots().is_empty());
}

#[test]
fn processes_that_write_disjoint_shards_make_the_same_snapshot() {
    let folder = Folder::new();
    let levels = levels();
    let single = write(&folder.target(0), &attributes(), &levels);
    let (partial, complete) = (folder.0.join("partial"), folder.0.join("000001.zarr"));
    let plan = || SnapshotPlan::new(&attributes(), &levels).unwrap();
    plan().create(&partial).unwrap();
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let (plan, partial, levels) = (plan(), &partial, &levels);
            scope.spawn(move || {
                let shard = plan.shard_patches(0);
                for name in [ORIGIN, LEAF, "density", "energy", "magnetic_x_face"] {
                    let all = array(&levels[0], name);
                    let row = all.len() / 2500;
                    for first in (rank * shard..2500).step_by(2 * shard) {
                        let part = common::part(&all, first * row, (first + shard).min(2500) * row);
                        plan.store_shard(partial, 0, name, first as u64, &part)
                            .unwrap();
                    }
                }
            });
        }
    });
    plan().publish(&partial, &complete, false).unwrap();
    let shared = Snapshot::open(&complete).unwrap();
    assert_eq!(digest(&shared).unwrap(), digest(&single).unwrap());
}
