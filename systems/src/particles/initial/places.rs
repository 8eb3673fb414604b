//! Where particles begin: root patches, and places in them.

use super::super::columns::ParticleReal;
use super::ParticleSource;
use nestar_engine::mesh::Domain;
use nestar_kernels::PATCH;
use rayon::prelude::*;

/// Units of a place in the width of a patch: 2^64.
const WIDTH: f64 = 18_446_744_073_709_551_616.0;

/// The index of a root patch, and a place there in units of 2^-64 of its width.
pub(super) type PatchPosition = ([i32; 3], [u64; 3]);

/// Widths of a periodic domain beyond which nothing that matters is left of a place within it.
const FARTHEST: f64 = 1e6;

/// The root patch that contains a point and its place there; none outside the domain, where that is not periodic, and none too far from a
/// periodic one.
pub(super) fn place<R: ParticleReal>(domain: &Domain, position: [f64; 3]) -> Option<PatchPosition> {
    let (mut index, mut place) = ([0; 3], [0; 3]);
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
        // also where that rounds up
        if along >= patches && (domain.periodic[axis] || position[axis] <= right) {
            along = patches.next_down();
        }
        if !(0.0..patches).contains(&along) {
            return None;
        }
        let whole = along.floor();
        index[axis] = whole as i32;
        place[axis] = R::whole(R::kept(((along - whole) * WIDTH) as u64));
    }
    Some((index, place))
}

/// Where those are that there are of `most` of the particles of a source, evenly chosen among them: see [`ParticleSet::initial_positions`].
///
/// [`ParticleSet::initial_positions`]: nestar_engine::data::ParticleSet::initial_positions
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
        let (index, place) = place::<f64>(domain, made.position)?;
        Some([0, 1, 2].map(|axis| {
            let along = f64::from(index[axis]) + place[axis] as f64 / WIDTH;
            domain.left_edge[axis] + along * width[axis]
        }))
    });
    found.collect()
}
