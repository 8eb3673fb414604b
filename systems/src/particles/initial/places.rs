//! Converts initial positions to root patches and offsets.

use super::super::columns::ParticleReal;
use super::ParticleSource;
use nestar_engine::mesh::Domain;
use nestar_kernels::PATCH;
use rayon::prelude::*;

/// Units of an offset per patch width: 2^64.
const WIDTH: f64 = 18_446_744_073_709_551_616.0;

/// Index of a root patch, and the offset in units of 2^-64 of its width.
pub(super) type PatchPosition = ([i32; 3], [u64; 3]);

/// Largest distance from a periodic domain in domain widths; beyond it a position has no significant digits.
const FARTHEST: f64 = 1e6;

/// Returns the root patch of a position and the offset in it. Returns `None` outside a domain that is not
/// periodic, or too far from a periodic one.
pub(super) fn locate<R: ParticleReal>(
    domain: &Domain,
    position: [f64; 3],
) -> Option<PatchPosition> {
    let (mut index, mut offset) = ([0; 3], [0; 3]);
    for axis in 0..3 {
        let (left, right) = (domain.left_edge[axis], domain.right_edge[axis]);
        let patches = f64::from(domain.root[axis]);
        let mut along = (position[axis] - left) / (right - left) * patches;
        if domain.periodic[axis] {
            if along.abs() > FARTHEST * patches {
                return None;
            }
            along -= patches * (along / patches).floor();
        }
        // also if the division rounds up
        if along >= patches && (domain.periodic[axis] || position[axis] <= right) {
            along = patches.next_down();
        }
        if !(0.0..patches).contains(&along) {
            return None;
        }
        let whole = along.floor();
        index[axis] = whole as i32;
        offset[axis] = R::widen(R::narrow(((along - whole) * WIDTH) as u64));
    }
    Some((index, offset))
}

/// Returns the positions of at most `most` particles, evenly sampled from a source, for the cost estimate.
pub(in crate::particles) fn initial_positions(
    source: &dyn ParticleSource,
    domain: &Domain,
    most: u64,
) -> Vec<[f64; 3]> {
    let (count, most) = (source.count(), most.min(source.count()));
    let id = |n: u64| (u128::from(count) * u128::from(n) / u128::from(most)) as u64;
    let width = domain.cell_width(0).map(|width| width * PATCH as f64);
    let found = (0..most).into_par_iter().filter_map(|n| {
        let made = source.make(id(n)).ok()??;
        let (index, offset) = locate::<f64>(domain, made.position)?;
        Some([0, 1, 2].map(|axis| {
            let along = f64::from(index[axis]) + offset[axis] as f64 / WIDTH;
            domain.left_edge[axis] + along * width[axis]
        }))
    });
    found.collect()
}
