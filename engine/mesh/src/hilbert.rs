//! The Hilbert curve through the patches of a level.

/// Returns the position of the point `index` on the three-dimensional Hilbert curve with `2^bits` points per axis.
///
/// The curve with one more bit visits the eight children of each point consecutively, so that patches of a level are
/// ordered by their parents. J. Skilling, AIP Conf. Proc. 707, 381 (2004).
#[must_use]
#[inline]
pub fn hilbert_key(index: [u32; 3], bits: u32) -> u64 {
    let mut x = index;
    untangle(&mut x, bits);
    // Gray encode
    x[1] ^= x[0];
    x[2] ^= x[1];
    let mut t = 0;
    for b in (1..bits).rev() {
        if x[2] >> b & 1 == 1 {
            t ^= (1 << b) - 1;
        }
    }
    let x = x.map(|v| v ^ t);
    (0..bits).rev().fold(0u64, |key, b| {
        key << 3
            | u64::from(x[0] >> b & 1) << 2
            | u64::from(x[1] >> b & 1) << 1
            | u64::from(x[2] >> b & 1)
    })
}

/// Returns the point at position `key` of the curve with `2^bits` points per axis: the inverse of [`hilbert_key`].
#[must_use]
#[inline]
pub fn hilbert_index(key: u64, bits: u32) -> [u32; 3] {
    let mut x = [0u32; 3];
    for b in 0..bits {
        for (a, coordinate) in x.iter_mut().enumerate() {
            *coordinate |= ((key >> (3 * b + 2 - a as u32) & 1) as u32) << b;
        }
    }
    // Gray decode
    let t = x[2] >> 1;
    x[2] ^= x[1];
    x[1] ^= x[0];
    x[0] ^= t;
    entangle(&mut x, bits);
    x
}

/// Redoes the excess rotations, from the lowest bit up: the inverse of [`untangle`].
fn entangle(x: &mut [u32; 3], bits: u32) {
    for b in 1..bits {
        let low = (1u32 << b) - 1;
        for i in (0..3).rev() {
            if x[i] >> b & 1 == 1 {
                x[0] ^= low;
            } else {
                let t = (x[0] ^ x[i]) & low;
                x[0] ^= t;
                x[i] ^= t;
            }
        }
    }
}

/// Undoes the excess rotations, from the highest bit down.
fn untangle(x: &mut [u32; 3], bits: u32) {
    for b in (1..bits).rev() {
        let low = (1u32 << b) - 1;
        for i in 0..3 {
            if x[i] >> b & 1 == 1 {
                x[0] ^= low;
            } else {
                let t = (x[0] ^ x[i]) & low;
                x[0] ^= t;
                x[i] ^= t;
            }
        }
    }
}

/// Returns the number of bits per axis of the keys of level `level`, for a root grid of `root` patches.
#[must_use]
#[inline]
pub fn bits_for(root: [i32; 3], level: usize) -> u32 {
    let widest = root.iter().copied().max().unwrap_or(1).max(1) as u32;
    // at least one bit, so that a single root patch has a curve
    (u32::BITS - (widest - 1).leading_zeros()).max(1) + level as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_points_are_neighbours_and_all_points_are_met() {
        for bits in 1..=4 {
            let n = 1u32 << bits;
            let mut at = vec![None; (n * n * n) as usize];
            for z in 0..n {
                for y in 0..n {
                    for x in 0..n {
                        let key = hilbert_key([x, y, z], bits) as usize;
                        assert!(
                            at[key].replace([x, y, z]).is_none(),
                            "two points share key {key}"
                        );
                    }
                }
            }
            for pair in at.windows(2) {
                let (a, b) = (pair[0].unwrap(), pair[1].unwrap());
                let distance: u32 = (0..3).map(|d| a[d].abs_diff(b[d])).sum();
                assert_eq!(distance, 1, "{a:?} and {b:?} are consecutive");
            }
        }
    }

    #[test]
    fn points_are_found_from_their_keys() {
        for bits in 0..=4u32 {
            for key in 0..1u64 << (3 * bits) {
                assert_eq!(hilbert_key(hilbert_index(key, bits), bits), key);
            }
        }
        let point = [1_234_567, 7, 2_000_001];
        assert_eq!(hilbert_index(hilbert_key(point, 21), 21), point);
    }

    #[test]
    fn children_follow_their_parents() {
        for z in 0..8u32 {
            for y in 0..8 {
                for x in 0..8 {
                    let child = hilbert_key([x, y, z], 5);
                    assert_eq!(child >> 3, hilbert_key([x / 2, y / 2, z / 2], 4));
                }
            }
        }
    }
}
