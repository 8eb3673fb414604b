//! Parallel loops over patches. All share one compiled loop that calls a function once per item, so that each use adds
//! little code. Loops over cells use rayon's iterators, which the compiler can vectorise.

use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Calls `work` with each index below `count`. Tasks have at least `grain` indices.
pub fn for_each_index(count: usize, grain: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count)
        .into_par_iter()
        .with_min_len(grain)
        .for_each(work);
}

/// Calls `work` with each item.
pub fn for_each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    for_each_index(items.len(), 1, &|n| work(&items[n]));
}

/// Calls `work` with each item and its index.
pub fn for_each_mut<T: Send>(items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    let slots = Slots::of(items);
    for_each_index(slots.length, 1, &|n| {
        // SAFETY: each index occurs once.
        work(n, &mut unsafe { slots.range(n..n + 1) }[0]);
    });
}

/// Calls `work` with each chunk of `length` items and its index; the last chunk may be shorter. Tasks have at least
/// `grain` chunks.
///
/// # Panics
/// `length` is 0.
pub fn for_each_chunk<T: Send>(
    items: &mut [T],
    length: usize,
    grain: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let slots = Slots::of(items);
    for_each_index(slots.length.div_ceil(length), grain, &|n| {
        let end = slots.length.min((n + 1) * length);
        // SAFETY: the ranges are disjoint, and each index occurs once.
        work(n, unsafe { slots.range(n * length..end) });
    });
}

/// Returns the sum of the values of `work` over the items, without memory for them.
pub fn sum<T: Sync>(items: &[T], work: impl Fn(&T) -> u64 + Sync) -> u64 {
    let sum = AtomicU64::new(0);
    for_each(items, |item| {
        sum.fetch_add(work(item), Relaxed);
    });
    sum.into_inner()
}

/// Returns the largest value of `work` for the indices below `count`, or 0 if `count` is 0, without memory for them.
pub fn max_of_indices(count: usize, work: impl Fn(usize) -> u64 + Sync) -> u64 {
    let largest = AtomicU64::new(0);
    for_each_index(count, 1, &|n| {
        largest.fetch_max(work(n), Relaxed);
    });
    largest.into_inner()
}

/// Returns the first index below `count` for which `test` is true.
pub fn first_index(count: usize, test: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    let first = AtomicU64::new(u64::MAX);
    // tests are short
    for_each_index(count, 1024, &|n| {
        if test(n) {
            first.fetch_min(n as u64, Relaxed);
        }
    });
    let first = first.into_inner();
    (first < u64::MAX).then_some(first as usize)
}

/// Returns the values of `work` for each index below `count`, in order.
pub fn map_indices<U: Send>(count: usize, work: impl Fn(usize) -> U + Sync) -> Vec<U> {
    let mut values = Vec::with_capacity(count);
    let slots = Slots::of(&mut values.spare_capacity_mut()[..count]);
    for_each_index(count, 1, &|n| {
        // SAFETY: each index occurs once.
        let slot: &mut [MaybeUninit<U>] = unsafe { slots.range(n..n + 1) };
        slot[0].write(work(n));
    });
    // SAFETY: the loop has written all values; if `work` panics, it does not return.
    unsafe { values.set_len(count) };
    values
}

/// Returns the values of `work` for each item, in order.
pub fn map<T: Sync, U: Send>(items: &[T], work: impl Fn(&T) -> U + Sync) -> Vec<U> {
    map_indices(items.len(), |n| work(&items[n]))
}

/// Returns the values of `work` for each item and its index, in order.
pub fn map_mut<T: Send, U: Send>(
    items: &mut [T],
    work: impl Fn(usize, &mut T) -> U + Sync,
) -> Vec<U> {
    let slots = Slots::of(items);
    map_indices(slots.length, |n| {
        // SAFETY: each index occurs once.
        work(n, &mut unsafe { slots.range(n..n + 1) }[0])
    })
}

/// A borrowed slice whose disjoint ranges are used by different threads.
struct Slots<T> {
    first: *mut T,
    length: usize,
}

// SAFETY: a range is used by one thread at a time, as `range` demands, which takes a value to another thread at most.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    fn of(items: &mut [T]) -> Self {
        Self {
            first: items.as_mut_ptr(),
            length: items.len(),
        }
    }

    /// Returns the items of a range.
    ///
    /// # Safety
    /// The range lies within the slice, which outlives the items; nobody else uses it meanwhile.
    #[allow(
        clippy::mut_from_ref,
        reason = "several threads write disjoint ranges; exclusivity is the caller's contract"
    )]
    unsafe fn range<'a>(&self, range: Range<usize>) -> &'a mut [T] {
        // SAFETY: the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(range.start), range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_visit_each_item_once_in_order_of_results() {
        let squares = map_indices(1000, |n| n * n);
        assert!(
            squares
                .iter()
                .enumerate()
                .all(|(n, square)| *square == n * n)
        );
        let mut items = map(&squares, |square| vec![*square]);
        for_each_mut(&mut items, |n, item| item.push(n));
        let sums = map_mut(&mut items, |n, item| item.iter().sum::<usize>() - n);
        assert_eq!(sums, squares);
        assert_eq!(sum(&squares, |square| *square as u64), 332_833_500);
        assert_eq!(max_of_indices(1000, |n| (n * 7 % 1000) as u64), 999);
        assert_eq!(max_of_indices(0, |_| 1), 0);
        let mut chunks = vec![0; 10];
        for_each_chunk(&mut chunks, 4, 1, |n, chunk| {
            chunk.fill(10 * n + chunk.len())
        });
        assert_eq!(chunks, [4, 4, 4, 4, 14, 14, 14, 14, 22, 22]);
        assert!(map(&[] as &[u8], |_| ()).is_empty());
    }

    #[test]
    fn a_panic_of_a_task_reaches_the_caller() {
        let run = || for_each(&[1, 2, 3], |n| assert!(*n < 3, "the third fails"));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
