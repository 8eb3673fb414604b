//! Audits the values that two patches share on a common face, for fields that change by circulations. Their divergence stays zero only if
//! both copies have the same bits.

use super::RanksError;
use super::exchange::refresh_halo;
use bevy_ecs::prelude::*;
use nestar_engine_data::store::{Piece, Store};
use nestar_engine_data::{Correct, Stores};
use nestar_engine_mesh::Topology;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::face_direction;

/// Pairs of patches that are compared together.
const PAIRS: usize = 256;

/// Two leaf patches with a common face.
struct Pair {
    /// The one below the face, owned by this rank.
    below: u32,
    above: u32,
    /// Axis of the face.
    axis: usize,
}

/// Returns the first place on this rank where two leaf patches of `level` hold different bits of a value that they share. Only fields with
/// corrected circulations are checked. Collective.
///
/// # Errors
/// Another rank, the transport or the device has failed.
pub fn unequal_shared_values(
    world: &mut World,
    level: usize,
) -> Result<Option<String>, RanksError> {
    let stores = Stores::of(world, |spec| spec.correct == Correct::Circulations);
    if stores.is_empty() {
        return Ok(None);
    }
    refresh_halo(world, level, &stores)?;
    let topology = world.resource::<Topology>();
    let pairs = leaf_pairs(topology, level);
    for store in stores {
        let store = store.of(world);
        for pairs in pairs.chunks(PAIRS) {
            let found = first_difference(store, topology, level, pairs)?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

/// Lists the pairs of leaf patches of `level` whose lower patch belongs to this rank.
fn leaf_pairs(topology: &Topology, level: usize) -> Vec<Pair> {
    let leaves = topology.rows(level).iter().copied();
    let leaves = leaves.filter(|&row| topology.is_leaf(row));
    let pairs = leaves.flat_map(|below| {
        (0..3).filter_map(move |axis| {
            let above = topology.neighbours(below)[face_direction(2 * axis + 1)];
            let above = u32::try_from(above).ok()?;
            topology
                .is_leaf(above)
                .then_some(Pair { below, above, axis })
        })
    });
    pairs.collect()
}

/// Returns the first place where both patches of a pair hold different bits.
fn first_difference(
    store: &dyn Store,
    topology: &Topology,
    level: usize,
    pairs: &[Pair],
) -> Result<Option<String>, RanksError> {
    let rows: Vec<u32> = pairs.iter().flat_map(|p| [p.below, p.above]).collect();
    let pieces: Vec<Piece> = Piece::whole_rows(&rows, store.shape()).collect();
    let size = store.row_bytes();
    let mut bytes = vec![0; rows.len() * size];
    store.pack(store.present_bank(level), &pieces, &mut bytes)?;
    let shared = [0, 1, 2].map(|axis| shared_by_axis(store, axis));
    let values = pairs.iter().zip(bytes.chunks_exact(2 * size));
    for (pair, both) in values {
        let (below, above) = both.split_at(size);
        let unequal = shared[pair.axis]
            .iter()
            .find(|at| below[at.below.clone()] != above[at.above.clone()]);
        if let Some(at) = unequal {
            let name = &store.spec().components[at.component].name;
            let [a, b] = [pair.below, pair.above].map(|row| topology.index(row));
            let axis = ["x", "y", "z"][pair.axis];
            let face = match topology.origin(pair.above)[pair.axis] {
                0 => "the periodic face of the domain",
                _ => "their common face",
            };
            return Ok(Some(format!(
                "the patches {a:?} and {b:?} of level {level} differ in the values of {name} on {face} normal to {axis}"
            )));
        }
    }
    Ok(None)
}

/// A value that two rows share: its bytes in the row below and in the row above the face.
struct Shared {
    component: usize,
    below: std::ops::Range<usize>,
    above: std::ops::Range<usize>,
}

/// Lists the values on the common face normal to `axis` of two patches.
fn shared_by_axis(store: &dyn Store, axis: usize) -> Vec<Shared> {
    let (centring, width) = (store.spec().centring, store.precision().bytes());
    let components = 0..store.spec().components.len();
    let staggered = components.filter(|&c| centring.lengths(c, [PATCH; 3])[axis] > PATCH);
    let shared = staggered.flat_map(|component| {
        let lengths = centring.lengths(component, [PATCH; 3]);
        let [b, c] = [(axis + 1) % 3, (axis + 2) % 3];
        (0..lengths[b] * lengths[c]).map(move |n| {
            let bytes = |plane: usize| {
                let mut at = [0; 3];
                (at[axis], at[b], at[c]) = (plane, n % lengths[b], n / lengths[b]);
                let value = component * centring.values() + centring.index(component, at);
                value * width..(value + 1) * width
            };
            Shared {
                component,
                below: bytes(PATCH),
                above: bytes(0),
            }
        })
    });
    shared.collect()
}
