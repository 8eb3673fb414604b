//! Exchanged and mirrored axes.
use super::*;

/// Where cell (x, y, z) comes from after the axes have been permuted and some of them mirrored.
fn source(permutation: [usize; 3], mirror: [bool; 3], c: [i64; 3]) -> [i64; 3] {
    std::array::from_fn(|a| {
        if mirror[a] {
            7 - c[permutation[a]]
        } else {
            c[permutation[a]]
        }
    })
}

const PERMUTATIONS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

/// Asserts that `estimate` commutes with permutations and mirrorings of three fields, bit for bit. The fields are the
/// components of a vector.
fn assert_equivariant(estimate: impl Fn(&[Vec<f64>; 3]) -> Vec<f64>) {
    let mut noise = random(7);
    let q: [Vec<f64>; 3] = std::array::from_fn(|_| (0..N * N * N).map(|_| noise() - 0.3).collect());
    let at = |q: &[f64], c: [i64; 3]| q[c.iter().rev().fold(0, |n, c| n * N + (c + 2) as usize)];
    for permutation in PERMUTATIONS {
        for mirror in (0..8).map(|m| [m & 1 == 1, m & 2 == 2, m & 4 == 4]) {
            let moved: [Vec<f64>; 3] = std::array::from_fn(|a| {
                let from = permutation.iter().position(|p| *p == a).unwrap_or(0);
                let sign = if mirror[from] { -1.0 } else { 1.0 };
                field(|x, y, z| sign * at(&q[from], source(permutation, mirror, [x, y, z])))
            });
            let (found, expected) = (estimate(&moved), estimate(&q));
            for c in 0..512 {
                let [x, y, z] = [c % 8, c / 8 % 8, c / 64];
                let from =
                    source(permutation, mirror, [x as i64, y as i64, z as i64]).map(|c| c as usize);
                assert_eq!(
                    found[c].to_bits(),
                    expected[from[0] + 8 * (from[1] + 8 * from[2])].to_bits(),
                    "{permutation:?} {mirror:?} {x} {y} {z}"
                );
            }
        }
    }
}

#[test]
fn estimates_follow_permutations_and_mirrors_bit_for_bit() {
    // one scalar made of the three components, so that it has no preferred axis and no sign
    let scalar = |q: &[Vec<f64>; 3]| -> Vec<f64> {
        (0..N * N * N)
            .map(|c| nestar_device::math::sum3(q[0][c].abs(), q[1][c].abs(), q[2][c].abs()))
            .collect()
    };
    let all = |n: &Numbers<f64>, f: fn(&Stencil<f64, f64, 2>) -> f64| -> Vec<f64> {
        (0..CELLS).map(|c| f(&n.at(c))).collect()
    };
    assert_equivariant(|q| all(&view(&scalar(q)), cell::relative_gradient));
    assert_equivariant(|q| all(&view(&scalar(q)), |q| cell::lohner_error(q, 0.01)));
    assert_equivariant(|q| {
        let v = vector([&q[0], &q[1], &q[2]]);
        v.each::<cell::relative_vorticity, f64, 0>([0.0; 3], [0.5; 3], [])
    });
}
