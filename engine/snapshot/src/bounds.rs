//! Bounds on metadata: no number in a snapshot makes the reader allocate more memory than its files justify.

use crate::files::open;
use crate::header::{Attributes, LevelHeader};
use crate::{PATCH_SIZE, Result, SnapshotError};
use std::path::{Path, PathBuf};

/// Largest number of bytes that a stored byte can expand to. zstd stores 2^15 equal bytes as one, and an
/// empty chunk has 16 bytes for a few dozen rows.
const EXPANSION: u64 = 1 << 16;
/// Number of bytes that need no justification: zeros are stored as almost nothing.
const FREE: u64 = 1 << 28;
/// Largest number of root cells along an axis, and the finest level: the Hilbert curve has 21 bits per axis.
const MOST_CELLS: u64 = PATCH_SIZE << 21;
const FINEST: u8 = 21;
/// Largest number of patches of a level: rows are counted in 32 bits.
const MOST_PATCHES: u64 = 1 << 32;
/// Largest number of bytes of a patch in an array.
const MOST_ROW: u64 = 1 << 40;

/// Returns the bytes of an array; `None` on overflow.
pub(crate) fn bytes(shape: &[u64], element: usize) -> Option<u64> {
    let factors = shape.iter().copied().chain([element as u64]);
    factors.into_iter().try_fold(1u64, u64::checked_mul)
}

/// Returns the bytes of a patch; `None` if the shape is too large.
pub(crate) fn row_bytes(shape: &[u64], element: usize) -> Option<usize> {
    let row = bytes(shape, element).filter(|row| (1..=MOST_ROW).contains(row));
    row.map(|row| row as usize)
}

/// Returns `true` if `stored` bytes on disk may expand to `asked` bytes; `false` for an overflow.
pub(crate) fn may_hold(stored: u64, asked: Option<u64>) -> bool {
    let most = stored.saturating_mul(EXPANSION).saturating_add(FREE);
    asked.is_some_and(|asked| asked <= most)
}

/// Rejects a number of rows of `row` bytes that the files cannot contain.
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

/// Rejects attributes of a snapshot that no run can have.
pub(crate) fn check_attributes(path: &Path, attributes: &Attributes) -> Result<()> {
    let (left, right) = (attributes.domain_left_edge, attributes.domain_right_edge);
    for axis in 0..3 {
        let cells = attributes.root_cells[axis];
        let fits = (1..=MOST_CELLS).contains(&cells) && cells.is_multiple_of(PATCH_SIZE);
        if !fits {
            let why = format!(
                "root_cells[{axis}] is {cells}: it must be a multiple of 8 up to {MOST_CELLS}"
            );
            return Err(SnapshotError::corrupt(&path.join("zarr.json"), why));
        }
        let (left, right) = (left[axis], right[axis]);
        if !(left < right && (right - left).is_finite()) {
            let why = format!(
                "domain_right_edge[{axis}] is {right} and domain_left_edge[{axis}] {left}: the right edge must be larger"
            );
            return Err(SnapshotError::corrupt(&path.join("zarr.json"), why));
        }
    }
    Ok(())
}

/// Rejects a header of the group of level `number` that no level can have.
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
            &format!("it must be the number of the group, at most {FINEST}"),
        );
    }
    if *patches > MOST_PATCHES {
        let most = format!("{MOST_PATCHES} are possible");
        return refuse("patches", patches, &most);
    }
    if !cell_width.iter().all(|w| *w > 0.0 && w.is_finite()) {
        return refuse("cell_width", cell_width, "lengths must be positive");
    }
    Ok(())
}
