//! Sums whose result does not depend on the order of their terms.
use crate::{Lane, device};

/// `a + b + c`, independent of the order of the arguments: `(min + max) + median`.
///
/// It is bitwise invariant under permutations, and odd under negation of all three (up to the sign of a zero result). A scheme built on it
/// preserves the mirror and rotation symmetries of its data exactly. A NaN gives NaN.
#[device]
pub fn sum3<R: Lane>(a: R, b: R, c: R) -> R {
    // `a.min(b)` with `b.max(a)` exchanges a pair whole, also where either may return either zero and pass on a NaN or not:
    // equal zeros are neither lost nor doubled, a NaN stays
    let low = a.lesser(b);
    let high = b.greater(a);
    let middle = high.lesser(c);
    let largest = c.greater(high);
    let smallest = low.lesser(middle);
    let median = middle.greater(low);
    (smallest + largest) + median
}

/// `a + b + c + d`, independent of the order of the arguments: `(min + max) + (lower middle + upper middle)`.
///
/// It is symmetric and odd like [`sum3`]. The two middle values need not be told apart, because they are only added.
#[device]
pub fn sum4<R: Lane>(a: R, b: R, c: R, d: R) -> R {
    let low_1 = a.lesser(b);
    let high_1 = b.greater(a);
    let low_2 = c.lesser(d);
    let high_2 = d.greater(c);
    let smallest = low_1.lesser(low_2);
    let middle_1 = low_2.greater(low_1);
    let middle_2 = high_1.lesser(high_2);
    let largest = high_2.greater(high_1);
    (smallest + largest) + (middle_1 + middle_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check3(v: [f64; 3]) {
        let sum = |p: [usize; 3]| sum3(v[p[0]], v[p[1]], v[p[2]]);
        let first = sum([0, 1, 2]);
        for p in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let other = sum(p);
            assert!(
                other.to_bits() == first.to_bits() || (other.is_nan() && first.is_nan()),
                "{v:?} {p:?}: {first} {other}"
            );
        }
        let mirror = sum3(-v[0], -v[1], -v[2]);
        assert!(
            mirror == -first || (mirror.is_nan() && first.is_nan()),
            "{v:?}: {first} {mirror}"
        );
        assert_eq!(first.is_nan(), (v[0] + v[1] + v[2]).is_nan(), "{v:?}");
    }

    fn check4(v: [f64; 4]) {
        let first = sum4(v[0], v[1], v[2], v[3]);
        for k in 0..24 {
            let mut left: Vec<f64> = v.to_vec();
            let mut pick = |n: usize| left.remove(n);
            let (a, b, c, d) = (pick(k / 6), pick(k % 6 / 2), pick(k % 2), pick(0));
            let other = sum4(a, b, c, d);
            assert!(
                other.to_bits() == first.to_bits() || (other.is_nan() && first.is_nan()),
                "{v:?} {k}: {first} {other}"
            );
        }
        let mirror = sum4(-v[0], -v[1], -v[2], -v[3]);
        assert!(
            mirror == -first || (mirror.is_nan() && first.is_nan()),
            "{v:?}: {first} {mirror}"
        );
    }

    #[test]
    fn sums_are_symmetric_and_odd() {
        let special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            1e-310,
            1e300,
            -1e300,
            f64::INFINITY,
            f64::NAN,
            0.1,
            1.0 / 3.0,
            1e-17,
        ];
        for &a in &special {
            for &b in &special {
                for &c in &special {
                    check3([a, b, c]);
                    for &d in &special {
                        check4([a, b, c, d]);
                    }
                }
            }
        }
    }

    #[test]
    fn sums_are_sums() {
        assert_eq!(sum3(1.0, 2.0, 4.0), 7.0);
        assert_eq!(sum4(1.0f32, 8.0, 2.0, 4.0), 15.0);
        // (min + max) + median: the large pair cancels first
        assert_eq!(sum3(1e300, 1.0, -1e300), 1.0);
        assert_eq!(sum4(1.0, 1e300, 1e-20, -1e300), 1.0 + 1e-20);
    }
}
