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

/// Returns the place of an edge around the surface of a block with `n` cells: 0 to `4 n - 1`; `None` inside.
///
/// `first` and `second` are its positions along the two axes after its own, in cyclic order, 0 to `n`.
#[must_use]
pub fn place_around(n: usize, first: usize, second: usize) -> Option<usize> {
    match (first, second) {
        (_, 0) => Some(first),
        (_, last) if last == n => Some(n + 1 + first),
        (0, _) => Some(2 * n + 1 + second),
        (last, _) if last == n => Some(3 * n + second),
        _ => None,
    }
}

/// Returns the index of an edge of component `c` among those on the surface of a patch, by component, then place around, then along the
/// edge; `None` inside.
#[must_use]
pub fn surface_index(c: usize, at: [usize; 3]) -> Option<usize> {
    let around = place_around(PATCH, at[(c + 1) % 3], at[(c + 2) % 3])?;
    Some(c * SURFACE + around * PATCH + at[c % 3])
}

/// As [`surface_index`] for coarse edges on the surface of a fine patch, with positions 0 to 4 in coarse cells.
#[must_use]
pub fn fine_surface_index(c: usize, at: [usize; 3]) -> Option<usize> {
    let half = PATCH / 2;
    let around = place_around(half, at[(c + 1) % 3], at[(c + 2) % 3])?;
    Some(c * FINE_SURFACE + around * half + at[c % 3])
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
        for (n, values) in [(PATCH, SURFACE), (PATCH / 2, FINE_SURFACE)] {
            let mut places: Vec<usize> = (0..=n)
                .flat_map(|second| (0..=n).filter_map(move |first| place_around(n, first, second)))
                .collect();
            places.sort_unstable();
            assert_eq!(places, (0..4 * n).collect::<Vec<_>>());
            assert_eq!(4 * n * n, values);
            assert_eq!(place_around(n, 1, 1), None);
        }
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
