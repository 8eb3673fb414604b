//! Row storage in slabs that never move.

use crate::device::{DeviceError, shown};
use nestar_kernels::mesh::Rows;
use std::alloc::{Layout, alloc_zeroed, dealloc};

/// Rows in one slab, as a power of two.
const SHIFT: u32 = 7;

/// Rows of fixed length, grown by whole slabs of 128 rows; a slab's address never changes.
///
/// A fresh slab is zero and takes no memory until it is written.
pub struct Slabs<R> {
    slabs: Vec<*mut R>,
    length: usize,
}

// SAFETY: the slabs are owned by this value alone; access follows the borrow of `self` or the contract of `Rows::row_mut`.
unsafe impl<R: Send> Send for Slabs<R> {}
// SAFETY: as above.
unsafe impl<R: Sync> Sync for Slabs<R> {}

impl<R: bytemuck::Zeroable + Copy> Slabs<R> {
    /// Storage for rows of `length` values; no rows yet.
    #[must_use]
    pub fn new(length: usize) -> Self {
        assert!(length > 0, "a row has at least one value");
        Self {
            slabs: Vec::new(),
            length,
        }
    }

    fn layout(length: usize) -> Layout {
        // 64 bytes: a cache line and the widest vector
        Layout::array::<R>(length << SHIFT)
            .and_then(|l| l.align_to(64))
            .expect("a slab fits the address space")
    }

    /// Grows to at least `rows` rows.
    ///
    /// # Errors
    /// The system gives no memory; the rows that there are stay.
    pub fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        while self.slabs.len() << SHIFT < rows {
            let layout = Self::layout(self.length);
            // SAFETY: the layout has a non-zero size; zero bytes are valid values (`Zeroable`).
            let slab = unsafe { alloc_zeroed(layout) }.cast::<R>();
            if slab.is_null() {
                return Err(DeviceError::Failed {
                    doing: "cannot take memory for patches".into(),
                    why: format!(
                        "the system refuses {}: look at the limits of the process (ulimit -v) and set run.memory_limit",
                        shown(layout.size() as u64)
                    ),
                });
            }
            self.slabs.push(slab);
        }
        Ok(())
    }

    /// Bytes reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slabs.len() * (self.length << SHIFT) * size_of::<R>()
    }

    /// A view of all rows.
    #[must_use]
    pub fn rows(&self) -> Rows<'_, R> {
        // SAFETY: each slab holds `length << SHIFT` values and lives as long as `self`.
        unsafe { Rows::new(&self.slabs, SHIFT, self.length) }
    }
}

impl<R> Drop for Slabs<R> {
    fn drop(&mut self) {
        for &slab in &self.slabs {
            let layout = Layout::array::<R>(self.length << SHIFT).and_then(|l| l.align_to(64));
            // SAFETY: allocated in `grow` with this very layout.
            unsafe {
                dealloc(
                    slab.cast(),
                    layout.expect("the layout was valid when allocated"),
                )
            };
        }
    }
}
