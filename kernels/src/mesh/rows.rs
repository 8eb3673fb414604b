//! Views of patch rows that are stored in slabs.

use std::marker::PhantomData;

/// Gives access to the rows of one bank of a pool: row `r` is in slab `r >> shift`.
#[derive(Clone, Copy)]
pub struct Rows<'a, R> {
    slabs: &'a [*mut R],
    shift: u32,
    length: usize,
    lifetime: PhantomData<&'a [R]>,
}

// SAFETY: the pointers come from slabs that outlive `'a`; `R` is plain data that may be shared and written from any thread
// under the contract of `row_mut`.
unsafe impl<R: Send + Sync> Send for Rows<'_, R> {}
// SAFETY: as above.
unsafe impl<R: Send + Sync> Sync for Rows<'_, R> {}

/// Panic payload of a read of a row that this rank does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingRow {
    /// The row.
    pub row: u32,
}

#[cold]
fn missing_row(row: u32) -> ! {
    std::panic::resume_unwind(Box::new(MissingRow { row }))
}

impl<'a, R> Rows<'a, R> {
    /// Creates a view of `slabs`, each holding `1 << shift` rows of `length` values.
    ///
    /// # Safety
    /// Every pointer must be valid for reads (and for writes if `row_mut` is used) of `length << shift` values for `'a`, or null. Rows of
    /// null slabs must not be accessed.
    #[must_use]
    pub unsafe fn new(slabs: &'a [*mut R], shift: u32, length: usize) -> Self {
        Self {
            slabs,
            shift,
            length,
            lifetime: PhantomData,
        }
    }

    /// Returns the number of values in one row: components times 512.
    #[must_use]
    pub fn row_length(&self) -> usize {
        self.length
    }

    fn pointer(&self, row: u32) -> *mut R {
        let slab = self.slabs[(row >> self.shift) as usize];
        if slab.is_null() {
            missing_row(row);
        }
        let within = (row & ((1 << self.shift) - 1)) as usize;
        // SAFETY: `within < 1 << shift`, so the offset stays inside the slab.
        unsafe { slab.add(within * self.length) }
    }

    /// Returns the values of row `row`, `[component][k][j][i]`.
    #[must_use]
    #[inline]
    pub fn row(&self, row: u32) -> &'a [R] {
        // SAFETY: the slab is valid for `'a` (contract of `new`); writers of the same row are excluded by `row_mut`'s contract.
        unsafe { std::slice::from_raw_parts(self.pointer(row), self.length) }
    }

    /// Returns the values of row `row` for writing.
    ///
    /// # Safety
    /// While the slice lives nobody else may read or write this row of this bank.
    #[must_use]
    #[inline]
    #[allow(
        clippy::mut_from_ref,
        reason = "disjoint rows are written from several threads; exclusivity is the caller's contract"
    )]
    pub unsafe fn row_mut(&self, row: u32) -> &'a mut [R] {
        // SAFETY: as `row`; exclusivity is the caller's.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(row), self.length) }
    }
}

impl<R: Copy> Rows<'_, R> {
    /// Returns value `n` of row `row`. Other threads may write other values of the row meanwhile, but not this one.
    ///
    /// # Panics
    /// If the row has no such value.
    #[must_use]
    #[inline]
    pub fn get(&self, row: u32, n: usize) -> R {
        assert!(n < self.length);
        // SAFETY: inside the row; the contract of `set` keeps writers away from this value.
        unsafe { *self.pointer(row).add(n) }
    }

    /// Sets value `n` of row `row`.
    ///
    /// # Safety
    /// Nobody else may read or write this value meanwhile, or hold a slice of the row.
    ///
    /// # Panics
    /// If the row has no such value.
    #[inline]
    pub unsafe fn set(&self, row: u32, n: usize, value: R) {
        assert!(n < self.length);
        // SAFETY: inside the row; the caller's contract.
        unsafe { *self.pointer(row).add(n) = value };
    }
}
