//! Row storage in slabs that never move.

use crate::device::{DeviceError, format_bytes};
use nestar_kernels::mesh::Rows;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::null_mut;

/// Rows in one slab, as a power of two: of those that grow, and of those that are held in part, octet by octet.
const SHIFT: u32 = 7;
const OCTET: u32 = 3;

/// Rows of fixed length, grown by whole slabs of 128 rows; a slab's address never changes.
///
/// A fresh slab is zero and takes no memory until it is written.
pub struct RowSlabs<R> {
    slabs: Vec<*mut R>,
    length: usize,
    shift: u32,
    /// Where not all rows are held: the octets that are.
    held: Option<Vec<u32>>,
}

// SAFETY: the slabs are owned by this value alone; access follows the borrow of `self` or the contract of `Rows::row_mut`.
unsafe impl<R: Send> Send for RowSlabs<R> {}
// SAFETY: as above.
unsafe impl<R: Sync> Sync for RowSlabs<R> {}

impl<R: bytemuck::Zeroable + Copy> RowSlabs<R> {
    /// Storage for rows of `length` values; no rows yet.
    #[must_use]
    pub fn new(length: usize) -> Self {
        assert!(length > 0, "a row has at least one value");
        Self {
            slabs: Vec::new(),
            length,
            shift: SHIFT,
            held: None,
        }
    }

    /// A slab of zeros.
    fn take(&self) -> Result<*mut R, DeviceError> {
        let layout = layout::<R>(self.length << self.shift);
        // SAFETY: the layout has a non-zero size; zero bytes are valid values (`Zeroable`).
        let slab = unsafe { alloc_zeroed(layout) }.cast::<R>();
        if slab.is_null() {
            return Err(DeviceError::Failed {
                doing: "cannot take memory for patches".into(),
                why: format!(
                    "the system refuses {}: look at the limits of the process (ulimit -v) and set run.memory_limit",
                    format_bytes(layout.size() as u64)
                ),
            });
        }
        Ok(slab)
    }

    /// Grows to at least `rows` rows; those of which a part is held stay as they are.
    ///
    /// # Errors
    /// The system gives no memory; the rows that there are stay.
    pub fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        while self.held.is_none() && self.slabs.len() << SHIFT < rows {
            let slab = self.take()?;
            self.slabs.push(slab);
        }
        Ok(())
    }

    /// Holds the rows of `octets` alone from now on, as zeros; octet `n` has the rows from 8 n on.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn allocate_octets(&mut self, octets: &[u32]) -> Result<(), DeviceError> {
        self.free();
        self.shift = OCTET;
        let length = octets.iter().max().map_or(0, |&last| last as usize + 1);
        self.slabs.resize(length, null_mut());
        self.held = Some(octets.to_vec());
        for &octet in octets {
            self.slabs[octet as usize] = self.take()?;
        }
        Ok(())
    }

    /// The octets that are held, where not all are.
    #[must_use]
    pub fn allocated_octets(&self) -> Option<&[u32]> {
        self.held.as_deref()
    }

    /// Bytes reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let slabs = self.slabs.iter().filter(|slab| !slab.is_null());
        slabs.count() * (self.length << self.shift) * size_of::<R>()
    }

    /// A view of all rows.
    #[must_use]
    pub fn rows(&self) -> Rows<'_, R> {
        // SAFETY: each slab is null or holds `length << shift` values, and lives until `self` changes.
        unsafe { Rows::new(&self.slabs, self.shift, self.length) }
    }
}

impl<R> RowSlabs<R> {
    /// Gives all slabs back.
    fn free(&mut self) {
        let layout = layout::<R>(self.length << self.shift);
        for slab in self.slabs.drain(..).filter(|slab| !slab.is_null()) {
            // SAFETY: allocated in `take` with this very layout: who changes the shift frees before.
            unsafe { dealloc(slab.cast(), layout) };
        }
    }
}

impl<R> Drop for RowSlabs<R> {
    fn drop(&mut self) {
        self.free();
    }
}

/// The layout of a slab of so many values.
fn layout<R>(values: usize) -> Layout {
    // 64 bytes: a cache line and the widest vector
    Layout::array::<R>(values)
        .and_then(|l| l.align_to(64))
        .expect("a slab fits the address space")
}
