//! Working space of the threads, and values that threads write side by side.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The content of a mutex, also after a thread that had it panicked: what is kept in one is whole between its changes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One value per thread of the pool, made once, so that nothing is allocated inside a step.
pub struct PerThread<T>(Vec<Mutex<T>>);

impl<T> PerThread<T> {
    /// Makes a value for every thread of the current pool.
    #[must_use]
    pub fn new(make: impl Fn() -> T) -> Self {
        Self(
            (0..rayon::current_num_threads())
                .map(|_| Mutex::new(make()))
                .collect(),
        )
    }

    /// The calling thread's value; must be released before the thread takes other work.
    ///
    /// # Panics
    /// If the value is in use already.
    pub fn get(&self) -> MutexGuard<'_, T> {
        let thread = rayon::current_thread_index().unwrap_or(0);
        // a poisoned lock means that another task panicked; its scratch values carry no state
        match self.0[thread].try_lock() {
            Ok(guard) => guard,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(std::sync::TryLockError::WouldBlock) => panic!("a thread's scratch is taken twice"),
        }
    }
}

/// Values that several threads write side by side, each its own.
pub struct SharedCells<T>(Vec<UnsafeCell<T>>);

// SAFETY: shared access happens through `slice_mut` only, whose contract excludes two users of one value.
unsafe impl<T: Send + Sync> Sync for SharedCells<T> {}

impl<T> Default for SharedCells<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> SharedCells<T> {
    /// Makes all values `value`, `length` of them; keeps the memory it has.
    pub fn reset(&mut self, length: usize, value: T) {
        self.0.clear();
        self.resize(length, value);
    }

    /// Grows or shrinks to `length` values; new ones are `value`.
    pub fn resize(&mut self, length: usize, value: T) {
        self.0
            .resize_with(length, || UnsafeCell::new(value.clone()));
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All values, for one user.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: `UnsafeCell<T>` has the layout of `T`, and `&mut self` excludes other users.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len()) }
    }

    /// The values of `range` for writing.
    ///
    /// # Safety
    /// While the slice lives nobody else may use these values.
    ///
    /// # Panics
    /// If the range lies outside.
    #[must_use]
    #[allow(
        clippy::mut_from_ref,
        reason = "disjoint values are written from several threads; exclusivity is the caller's contract"
    )]
    pub unsafe fn slice_mut(&self, range: std::ops::Range<usize>) -> &mut [T] {
        let cells = &self.0[range];
        // SAFETY: the cells allow writing through a shared reference; exclusivity is the caller's.
        unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }

    /// Writes value `index`.
    ///
    /// # Safety
    /// Nobody else may use this value meanwhile.
    pub unsafe fn set(&self, index: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe { *self.0[index].get() = value };
    }

    /// The values of `range`.
    ///
    /// # Safety
    /// While the slice lives nobody may write these values.
    ///
    /// # Panics
    /// If the range lies outside.
    #[must_use]
    pub unsafe fn slice(&self, range: std::ops::Range<usize>) -> &[T] {
        let cells = &self.0[range];
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }
}
