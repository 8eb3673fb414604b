//! Interpolates vectors on the faces of a coarse cell to its fine faces without changing their divergence.
//!
//! The fine faces on the surface of the coarse cell are given. Those inside follow from them, so that each of the eight fine cells gets an
//! eighth of the coarse cell's total flux (Toth & Roe 2002, J. Comput. Phys. 180, 736). The formulas hold for fluxes, which are face
//! values times areas. Divided by the area of the wanted face, only ratios of cell widths remain, so cells need not be cubes.

use nestar_device::{Lane, Real, device};

/// Returns the cell width along one axis over that along another, each from the size of the domain and its number of cells.
#[device]
pub fn width_ratio<R: Real>(size: f64, cells: i32, other_size: f64, other_cells: i32) -> R {
    R::from_f64((size / cells as f64) / (other_size / other_cells as f64))
}

/// Returns the share of the eight outer fine faces normal to one axis in a fine face inside the cell that is normal to another axis.
///
/// The bits of an index select the side along the axis that the outer faces are normal to, the side along the axis of the wanted face, and
/// 0 for the side of the third axis on which the wanted face lies, 1 for the other. Differences are formed along the outer faces' own axis
/// first, so that the result is exactly symmetric when axes are mirrored or exchanged.
#[device]
pub fn share_of_sides<R: Lane>(v: &[R; 8]) -> R {
    let near = (v[3] - v[2]) - (v[1] - v[0]);
    let far = (v[7] - v[6]) - (v[5] - v[4]);
    0.0625 * (3.0 * near + far)
}

/// Returns the value of a fine face inside a coarse cell.
///
/// `own` are the outer fine faces below and above it along its axis. `first` and `second` are those normal to the next two axes in cyclic
/// order, as in [`share_of_sides`]; `ratios` are the cell widths along the face's axis over those along these two axes.
#[device]
pub fn inner_face<R: Lane>(own: &[R; 2], first: &[R; 8], second: &[R; 8], ratios: &[R; 2]) -> R {
    let bend = ratios[0] * share_of_sides(first) + ratios[1] * share_of_sides(second);
    0.5 * (own[0] + own[1]) + bend
}

/// Positions of fine faces in a coarse cell: 0, 1 or 2 along the axis of the face, 0 or 1 along the others.
pub type FacePlace = [usize; 3];

/// Returns the fine face of component `c` at `at` inside a coarse cell, where `at` is 1 along the component's axis.
///
/// `outer` returns an outer fine face by component (0, 1, 2) and position. `ratios[a][b]` is the cell width along `a` over that along `b`.
pub fn inner_face_from<R: Real>(
    c: usize,
    at: FacePlace,
    ratios: &[[R; 3]; 3],
    outer: impl Fn(usize, FacePlace) -> R,
) -> R {
    let [b, e] = [(c + 1) % 3, (c + 2) % 3];
    let own = [0, 2].map(|plane| {
        let mut from = at;
        from[c] = plane;
        outer(c, from)
    });
    let sides = |normal: usize, third: usize| {
        std::array::from_fn(|n| {
            let mut from = at;
            from[normal] = 2 * (n & 1);
            from[c] = n >> 1 & 1;
            from[third] ^= n >> 2;
            outer(normal, from)
        })
    };
    inner_face(
        &own,
        &sides(b, e),
        &sides(e, b),
        &[ratios[c][b], ratios[c][e]],
    )
}

/// Returns the cell width along each axis over that along each other one, `[axis][other axis]`.
#[must_use]
pub fn width_ratios<R: Real>(edges: &[[f64; 3]; 2], cells: [i32; 3]) -> [[R; 3]; 3] {
    let size = |a: usize| edges[1][a] - edges[0][a];
    std::array::from_fn(|a| {
        std::array::from_fn(|b| width_ratio(size(a), cells[a], size(b), cells[b]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fine faces of a coarse cell, `[component][12]`.
    type Faces = [[f64; 12]; 3];

    fn place(c: usize, at: FacePlace) -> usize {
        4 * at[c] + at[(c + 1) % 3] + 2 * at[(c + 2) % 3]
    }

    /// All positions of component `c` on plane `plane`.
    fn plane(c: usize, plane: usize) -> [FacePlace; 4] {
        std::array::from_fn(|n| {
            let mut at = [0; 3];
            at[c] = plane;
            at[(c + 1) % 3] = n & 1;
            at[(c + 2) % 3] = n >> 1;
            at
        })
    }

    fn fill(faces: &mut Faces, widths: [f64; 3]) {
        let edges = [[0.0; 3], widths];
        let ratios = width_ratios(&edges, [1; 3]);
        for c in 0..3 {
            for at in plane(c, 1) {
                let outer = |c: usize, at: FacePlace| faces[c][place(c, at)];
                faces[c][place(c, at)] = inner_face_from(c, at, &ratios, outer);
            }
        }
    }

    /// Random outer faces.
    fn scattered(seed: u64) -> Faces {
        let mut bits = seed;
        let mut faces = [[f64::NAN; 12]; 3];
        for (c, faces) in faces.iter_mut().enumerate() {
            for at in [0, 2].into_iter().flat_map(|p| plane(c, p)) {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                faces[place(c, at)] = (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
            }
        }
        faces
    }

    /// Total flux out of the box from `first` with `length` fine cells along each axis.
    fn flux(faces: &Faces, widths: [f64; 3], first: [usize; 3], length: usize) -> f64 {
        let mut sum = 0.0;
        for c in 0..3 {
            let area = 0.25 * widths[(c + 1) % 3] * widths[(c + 2) % 3];
            for (sign, side) in [(-1.0, first[c]), (1.0, first[c] + length)] {
                let on_box = plane(c, side).into_iter().filter(|at| {
                    let inside = |a: usize| (first[a]..first[a] + length).contains(&at[a]);
                    inside((c + 1) % 3) && inside((c + 2) % 3)
                });
                sum += sign * area * on_box.map(|at| faces[c][place(c, at)]).sum::<f64>();
            }
        }
        sum
    }

    #[test]
    fn each_fine_cell_gets_an_eighth_of_the_divergence_in_cells_of_any_shape() {
        for (seed, widths) in [(1, [1.0; 3]), (2, [1.0, 0.3, 2.7]), (3, [0.1, 5.0, 1.0])] {
            let mut faces = scattered(seed);
            fill(&mut faces, widths);
            let all = flux(&faces, widths, [0; 3], 2);
            assert!(all.abs() > 1e-3, "the outer faces have a divergence");
            for cell in 0..8 {
                let first = [0, 1, 2].map(|a| cell >> a & 1);
                let part = flux(&faces, widths, first, 1);
                let wrong = (part - all / 8.0).abs();
                assert!(wrong < 2e-15 * widths[1].max(1.0), "{cell}: {part} {all}");
            }
        }
    }

    #[test]
    fn a_uniform_vector_keeps_its_bits() {
        let mut faces = scattered(1);
        let third = [1.0 / 3.0, 0.1, -7.0 / 3.0];
        for c in 0..3 {
            for at in [0, 2].into_iter().flat_map(|p| plane(c, p)) {
                faces[c][place(c, at)] = third[c];
            }
        }
        fill(&mut faces, [0.3, 0.7, 1.9]);
        for c in 0..3 {
            assert!(faces[c].iter().all(|v| *v == third[c]), "{c}");
        }
    }

    /// The faces after axis `n` of the new frame is axis `order[n]` of the old one, mirrored if its bit is set in `mirrors`.
    fn turned(faces: &Faces, order: [usize; 3], mirrors: usize) -> Faces {
        let mut out = [[f64::NAN; 12]; 3];
        for c in 0..3 {
            for at in (0..3).flat_map(|p| plane(c, p)) {
                let mut from = [0; 3];
                for a in 0..3 {
                    let last = if a == c { 2 } else { 1 };
                    from[order[a]] = match mirrors >> a & 1 {
                        0 => at[a],
                        _ => last - at[a],
                    };
                }
                let sign = if mirrors >> c & 1 == 1 { -1.0 } else { 1.0 };
                out[c][place(c, at)] = sign * faces[order[c]][place(order[c], from)];
            }
        }
        out
    }

    #[test]
    fn the_result_is_exactly_symmetric_in_mirror_images_and_exchanged_axes() {
        let widths = [1.0, 0.3, 2.7];
        let outer = scattered(5);
        let mut filled = outer;
        fill(&mut filled, widths);
        let orders = [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ];
        for order in orders {
            for mirrors in 0..8 {
                let mut other = turned(&outer, order, mirrors);
                fill(&mut other, order.map(|a| widths[a]));
                assert_eq!(
                    other,
                    turned(&filled, order, mirrors),
                    "{order:?} {mirrors}"
                );
            }
        }
    }
}
