//! Scratch values of threads, and arrays that threads write concurrently.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a thread that held it has panicked: the content is valid between any two changes.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One value per thread of the pool, created once, so that steps allocate nothing.
pub struct PerThread<T>(Vec<Mutex<T>>);

impl<T> PerThread<T> {
    /// Creates a value for each thread of the current pool.
    #[must_use]
    pub fn new(make: impl Fn() -> T) -> Self {
        Self(
            (0..rayon::current_num_threads())
                .map(|_| Mutex::new(make()))
                .collect(),
        )
    }

    /// Returns the value of the calling thread. It must be released before the thread takes other work.
    ///
    /// # Panics
    /// The value is in use already.
    pub fn get(&self) -> MutexGuard<'_, T> {
        let thread = rayon::current_thread_index().unwrap_or(0);
        // A poisoned lock means that another task panicked; scratch values carry no state.
        match self.0[thread].try_lock() {
            Ok(guard) => guard,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(std::sync::TryLockError::WouldBlock) => {
                panic!("the scratch value of a thread is in use already")
            }
        }
    }
}

/// Array whose elements several threads write concurrently, each its own.
pub struct SharedCells<T>(Vec<UnsafeCell<T>>);

// SAFETY: shared access happens through `slice_mut` only, whose contract excludes two users of one value.
unsafe impl<T: Send + Sync> Sync for SharedCells<T> {}

impl<T> Default for SharedCells<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> SharedCells<T> {
    /// Sets the length to `length` and all elements to `value`; keeps the allocation.
    pub fn reset(&mut self, length: usize, value: T) {
        self.0.clear();
        self.resize(length, value);
    }

    /// Changes the length to `length`; new elements are `value`.
    pub fn resize(&mut self, length: usize, value: T) {
        self.0
            .resize_with(length, || UnsafeCell::new(value.clone()));
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all elements for exclusive use.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: `UnsafeCell<T>` has the layout of `T`, and `&mut self` excludes other users.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len()) }
    }

    /// Returns the elements of `range` for writing.
    ///
    /// # Safety
    /// While the slice lives nobody else uses these elements.
    ///
    /// # Panics
    /// The range is out of bounds.
    #[must_use]
    #[allow(
        clippy::mut_from_ref,
        reason = "several threads write disjoint elements; exclusivity is the caller's contract"
    )]
    pub unsafe fn slice_mut(&self, range: std::ops::Range<usize>) -> &mut [T] {
        let cells = &self.0[range];
        // SAFETY: the cells allow writing through a shared reference; exclusivity is the caller's.
        unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// Nobody else uses this element meanwhile.
    pub unsafe fn set(&self, index: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe { *self.0[index].get() = value };
    }

    /// Returns the elements of `range`.
    ///
    /// # Safety
    /// While the slice lives nobody writes these elements.
    ///
    /// # Panics
    /// The range is out of bounds.
    #[must_use]
    pub unsafe fn slice(&self, range: std::ops::Range<usize>) -> &[T] {
        let cells = &self.0[range];
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }
}
