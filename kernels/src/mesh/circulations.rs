//! Circulations along the edges of coarse-fine borders, for vectors on faces that change by a curl.
//!
//! A step changes a face by the circulation around it: minus the time step times the curl of values on edges. Beside a refined patch the
//! edges of the coarse level count as much as the fine ones on them, so that both levels see the same change of the divergence, none.

use super::Centring;
use super::means::mean2;
use crate::PATCH;
use nestar_device::{Lane, Real, device};

/// Values of a component on the edges of a patch's surface: 8 along the edge, 32 places around.
pub const SURFACE: usize = PATCH * 4 * PATCH;
/// Values of a component on the edges of a fine patch's surface at coarse resolution: 4 along the edge, 16 places around.
pub const FINE_SURFACE: usize = SURFACE / 4;

/// Returns the value of a face after a step: `u` minus the circulation around it.
///
/// `first` are the edges along the axis after the face's own, at the lower and the upper end of the third axis. `second` are those along
/// the third axis, at the lower and the upper end of the next one. `rate` are the time step over the cell widths along the next and the
/// third axis.
#[device]
pub fn circulated<R: Lane>(u: R, first: &[R; 2], second: &[R; 2], rate: &[R; 2]) -> R {
    u - (rate[0] * (second[1] - second[0]) - rate[1] * (first[1] - first[0]))
}

/// Returns the place of an edge around the surface of a block with `n` cells: 0 to `4 n - 1`; -1 inside.
///
/// `first` and `second` are its positions along the two axes after its own, in cyclic order, 0 to `n`.
#[device]
#[must_use]
pub fn place_around(n: i32, first: i32, second: i32) -> i32 {
    if second == 0 {
        first
    } else if second == n {
        n + 1 + first
    } else if first == 0 {
        2 * n + 1 + second
    } else if first == n {
        3 * n + second
    } else {
        -1
    }
}

/// Returns the index of an edge of component `c` among those on the surface of a block with `n` cells, by component, then place around, then
/// along the edge; -1 inside.
#[device]
#[must_use]
pub fn index_on_surface(n: i32, c: i32, at: [i32; 3]) -> i32 {
    let first = at[((c + 1) % 3) as usize];
    let second = at[((c + 2) % 3) as usize];
    let around = place_around(n, first, second);
    let index = (4 * n * c + around) * n + at[(c % 3) as usize];
    if around < 0 { -1i32 } else { index }
}

/// As [`index_on_surface`] for a patch, `None` inside.
#[must_use]
pub fn surface_index(c: usize, at: [usize; 3]) -> Option<usize> {
    let index = index_on_surface(PATCH as i32, c as i32, at.map(|i| i as i32));
    usize::try_from(index).ok()
}

/// As [`surface_index`] for coarse edges on the surface of a fine patch, with positions 0 to 4 in coarse cells.
#[must_use]
pub fn fine_surface_index(c: usize, at: [usize; 3]) -> Option<usize> {
    let index = index_on_surface(PATCH as i32 / 2, c as i32, at.map(|i| i as i32));
    usize::try_from(index).ok()
}

/// Returns `true` if the neighbour in direction `d` of a table of 27 shares a face or an edge with the patch.
#[device]
#[must_use]
pub fn touches_edges(d: i32) -> bool {
    let x = if d % 3 == 1 { 0 } else { 1 };
    let y = if d / 3 % 3 == 1 { 0 } else { 1 };
    let z = if d / 9 == 1 { 0 } else { 1 };
    let sides = x + y + z;
    sides == 1 || sides == 2
}

/// Returns -1 on the lower side of a patch, 1 on its upper side, else 0.
#[device]
fn side_at(place: i32) -> i32 {
    if place == 0 {
        -1
    } else if place == 8 {
        1
    } else {
        0
    }
}

/// Returns the step from a patch to neighbour `n` (0 to 2) beside the edge of component `c` at `at`; 0 along all axes if there is none.
///
/// Neighbours at faces come before the one across the edge.
#[device]
#[must_use]
pub fn step_beside(n: i32, c: i32, at: [i32; 3]) -> [i32; 3] {
    let b = (c + 1) % 3;
    let e = (c + 2) % 3;
    let first = side_at(at[b as usize]);
    let second = side_at(at[e as usize]);
    let mut step = [0, 0, 0];
    if n == 0 || (n == 2 && second != 0) {
        step[b as usize] = first;
    }
    if n == 1 || (n == 2 && first != 0) {
        step[e as usize] = second;
    }
    step
}

/// Place of a coarse edge in the children of a refined patch.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeInChild {
    /// The child, with its sides as bits z y x.
    pub child: i32,
    /// Position in the child, 0 to 4 in coarse cells.
    pub at: [i32; 3],
}

/// Finds the edge of component `c` at `at` of a patch in the children of the neighbour at `step`.
#[device]
#[must_use]
pub fn edge_in_child(c: i32, at: [i32; 3], step: [i32; 3]) -> EdgeInChild {
    let mut found = EdgeInChild {
        child: 0,
        at: [0, 0, 0],
    };
    let mut bit = 1i32;
    for axis in 0..3 {
        // the place in the neighbour, from 0 to 8; the plane between two children belongs to the lower one
        let place = at[axis as usize] - 8 * step[axis as usize];
        let last = if axis == c % 3 { 3 } else { 4 };
        if place > last {
            found.child += bit;
            found.at[axis as usize] = place - 4;
        } else {
            found.at[axis as usize] = place;
        }
        bit *= 2;
    }
    found
}

/// Iterates over the edges of component `c` of a block with `n` cells.
fn edges(c: usize, n: usize) -> impl Iterator<Item = [usize; 3]> {
    let [x, y, z] = Centring::Edge.lengths(c, [n; 3]);
    (0..x * y * z).map(move |i| [i % x, i / x % y, i / (x * y)])
}

/// Copies the edges on the surface of a patch from `[component][648]` to `[component][SURFACE]`.
pub fn copy_surface<R: Real>(surface: &mut [R], edges_of_patch: &[R]) {
    let values = Centring::Edge.values();
    for c in 0..edges_of_patch.len() / values {
        for at in edges(c, PATCH) {
            if let Some(to) = surface_index(c, at) {
                surface[to] = edges_of_patch[c * values + Centring::Edge.index(c, at)];
            }
        }
    }
}

/// Averages pairs of edges on the surface of a fine patch from `[component][648]` to coarse edges, `[component][FINE_SURFACE]`.
pub fn average_surface<R: Real>(surface: &mut [R], edges_of_patch: &[R]) {
    let values = Centring::Edge.values();
    for c in 0..edges_of_patch.len() / values {
        let value = |at: [usize; 3]| edges_of_patch[c * values + Centring::Edge.index(c, at)];
        for at in edges(c, PATCH / 2) {
            if let Some(to) = fine_surface_index(c, at) {
                let lower = at.map(|i| 2 * i);
                let mut upper = lower;
                upper[c % 3] += 1;
                surface[to] = mean2(value(lower), value(upper));
            }
        }
    }
}

/// Changes the faces of a patch, `[component][576]`, by time-integrated circulations along the edges of its surface,
/// `[component][SURFACE]`; those inside are 0. `inverse_width` is 1 over the cell width along each axis.
pub fn correct_faces<R: Real>(faces: &mut [R], surface: &[R], inverse_width: &[R; 3]) {
    let values = Centring::Face.values();
    for (c, faces) in faces.chunks_exact_mut(values).enumerate() {
        let [axis, b, e] = [c % 3, (c + 1) % 3, (c + 2) % 3];
        let vector = c - axis;
        let edge = |along: usize, at: [usize; 3]| {
            surface_index(vector + along, at).map_or(R::lit(0.0), |from| surface[from])
        };
        let [x, y, z] = Centring::Face.lengths(c, [PATCH; 3]);
        for (n, face) in faces.iter_mut().enumerate() {
            debug_assert!(n < x * y * z);
            let at = [n % x, n / x % y, n / (x * y)];
            let both = |along: usize, across: usize| {
                let mut above = at;
                above[across] += 1;
                [edge(along, at), edge(along, above)]
            };
            let rate = [inverse_width[b], inverse_width[e]];
            *face = circulated(*face, &both(b, e), &both(e, b), &rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edge_of_the_surface_has_a_place_of_its_own() {
        for (n, values) in [(8, SURFACE), (4, FINE_SURFACE)] {
            let mut places: Vec<i32> = (0..=n)
                .flat_map(|second| (0..=n).map(move |first| place_around(n, first, second)))
                .filter(|&place| place >= 0)
                .collect();
            places.sort_unstable();
            assert_eq!(places, (0..4 * n).collect::<Vec<_>>());
            assert_eq!(4 * n * n, values as i32);
            assert_eq!(place_around(n, 1, 1), -1);
        }
    }

    #[test]
    fn an_edge_is_sought_at_faces_before_the_patch_across_it() {
        let steps = |c, at| [0, 1, 2].map(|n| step_beside(n, c, at));
        assert_eq!(steps(0, [3, 8, 0]), [[0, 1, 0], [0, 0, -1], [0, 1, -1]]);
        assert_eq!(steps(2, [5, 2, 7]), [[0; 3]; 3]);
        assert_eq!(steps(1, [8, 5, 4]), [[0; 3], [1, 0, 0], [0; 3]]);
        // the last coarse edge along x, in the upper child along x of the patch above along y
        let EdgeInChild { child, at } = edge_in_child(3, [7, 8, 4], [0, 1, 0]);
        assert_eq!((child, at), (1, [3, 0, 4]));
        let EdgeInChild { child, at } = edge_in_child(1, [0, 4, 5], [-1, 0, 0]);
        assert_eq!((child, at), (7, [4, 0, 1]));
    }

    #[test]
    fn eighteen_neighbours_share_a_face_or_an_edge() {
        let beside = (0..27).filter(|&d| touches_edges(d));
        assert_eq!(beside.count(), 18);
        assert!(touches_edges(12) && touches_edges(3) && !touches_edges(13) && !touches_edges(0));
    }

    #[test]
    fn a_circulation_leaves_no_divergence_and_turns_by_the_right_hand() {
        let width = [0.5, 2.0, 1.0];
        let number = |n: usize| (n * 37 % 101) as f64 / 101.0;
        let surface: Vec<f64> = (0..3 * SURFACE).map(number).collect();
        let values = Centring::Face.values();
        let mut faces = vec![0.0; 3 * values];
        correct_faces(&mut faces, &surface, &width.map(|w| 1.0 / w));
        for cell in 0..512 {
            let at = [cell % 8, cell / 8 % 8, cell / 64];
            let through = |c: usize| {
                let mut above = at;
                above[c] += 1;
                let value = |at| faces[c * values + Centring::Face.index(c, at)];
                (value(above) - value(at)) / width[c]
            };
            let divergence: f64 = through(0) + through(1) + through(2);
            assert!(divergence.abs() < 1e-14, "{at:?}: {divergence:e}");
        }
        // the z component changes by minus d(y edge)/dx plus d(x edge)/dy
        let edge = |c: usize, at| surface_index(c, at).map_or(0.0, |from| surface[from]);
        let curl = (edge(1, [1, 3, 0]) - edge(1, [0, 3, 0])) / width[0]
            - (edge(0, [0, 4, 0]) - edge(0, [0, 3, 0])) / width[1];
        let face = faces[2 * values + Centring::Face.index(2, [0, 3, 0])];
        assert!((face + curl).abs() < 1e-15, "{face} {curl}");
    }
}
