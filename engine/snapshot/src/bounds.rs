//! What metadata may say: no number in them takes memory that the files beside them do not account for.

use crate::files::open;
use crate::header::{Attributes, LevelHeader};
use crate::{PATCH_SIZE, Result, SnapshotError};
use std::path::{Path, PathBuf};

/// Most bytes that a stored byte stands for: zstd writes 2^15 equal bytes as one, and the entry of a chunk of nothing but the fill
/// value, 16 bytes, stands for a few dozen rows.
const EXPANSION: u64 = 1 << 16;
/// Bytes that need no account: a part of zeros is stored as next to nothing.
const FREE: u64 = 1 << 28;
/// Most cells of level 0 along an axis, and the finest level: a space-filling curve has 21 bits an axis.
const MOST_CELLS: u64 = PATCH_SIZE << 21;
const FINEST: u8 = 21;
/// Most patches of a level: rows are counted in 32 bits.
const MOST_PATCHES: u64 = 1 << 32;
/// Most bytes of a patch in an array.
const MOST_ROW: u64 = 1 << 40;

/// Bytes of an array, if they can be counted.
pub(crate) fn bytes(shape: &[u64], element: usize) -> Option<u64> {
    let factors = shape.iter().copied().chain([element as u64]);
    factors.into_iter().try_fold(1u64, u64::checked_mul)
}

/// Bytes of a patch, if one can be of such a shape.
pub(crate) fn row_bytes(shape: &[u64], element: usize) -> Option<usize> {
    let row = bytes(shape, element).filter(|row| (1..=MOST_ROW).contains(row));
    row.map(|row| row as usize)
}

/// Whether `stored` bytes on the disk may hold `asked` bytes; what cannot be counted they do not.
pub(crate) fn may_hold(stored: u64, asked: Option<u64>) -> bool {
    let most = stored.saturating_mul(EXPANSION).saturating_add(FREE);
    asked.is_some_and(|asked| asked <= most)
}

/// Refuses numbers of rows of `row` bytes that the files cannot hold.
pub(crate) fn require_stored(
    files: impl Iterator<Item = PathBuf>,
    rows: [u64; 2],
    row: usize,
) -> Result<()> {
    let (mut stored, mut last) = (0, PathBuf::new());
    for file in files {
        let length = open(&file)?.metadata();
        stored += length
            .map_err(|error| SnapshotError::io("read", &file, &error))?
            .len();
        last = file;
    }
    match rows
        .iter()
        .find(|rows| !may_hold(stored, bytes(&[**rows], row)))
    {
        None => Ok(()),
        Some(rows) => {
            let why = format!("{rows} patches of {row} bytes each cannot be in {stored} bytes");
            Err(SnapshotError::corrupt(&last, why))
        }
    }
}

/// Refuses attributes of the whole snapshot that no run has.
pub(crate) fn check_attributes(path: &Path, attributes: &Attributes) -> Result<()> {
    let (left, right) = (attributes.domain_left_edge, attributes.domain_right_edge);
    for axis in 0..3 {
        let cells = attributes.root_cells[axis];
        let fits = (1..=MOST_CELLS).contains(&cells) && cells.is_multiple_of(PATCH_SIZE);
        if !fits {
            let why = format!(
                "root_cells[{axis}] is {cells}: a multiple of 8 up to {MOST_CELLS} is needed"
            );
            return Err(SnapshotError::corrupt(&path.join("zarr.json"), why));
        }
        let (left, right) = (left[axis], right[axis]);
        if !(left < right && (right - left).is_finite()) {
            let why = format!(
                "domain_right_edge[{axis}] is {right} and domain_left_edge[{axis}] {left}: no domain has such edges"
            );
            return Err(SnapshotError::corrupt(&path.join("zarr.json"), why));
        }
    }
    Ok(())
}

/// Refuses a header of the group of level `number` that no level has.
pub(crate) fn check_level(group: &Path, number: u64, header: &LevelHeader) -> Result<()> {
    let refuse = |key: &str, found: &dyn std::fmt::Debug, needed: &str| {
        let why = format!("{key} is {found:?}: {needed}");
        Err(SnapshotError::corrupt(&group.join("zarr.json"), why))
    };
    let LevelHeader {
        level,
        patches,
        cell_width,
        ..
    } = header;
    if u64::from(*level) != number || *level > FINEST {
        return refuse(
            "level",
            level,
            &format!("it must be that of the group, at most {FINEST}"),
        );
    }
    if *patches > MOST_PATCHES {
        let most = format!("{MOST_PATCHES} are possible");
        return refuse("patches", patches, &most);
    }
    if !cell_width.iter().all(|w| *w > 0.0 && w.is_finite()) {
        return refuse("cell_width", cell_width, "lengths above 0 are needed");
    }
    Ok(())
}
