//! What ranks and levels tell each other of sums.

use nestar_engine::ranks::Letter;
use nestar_kernels::CELLS;
use std::collections::BTreeMap;

/// One letter of each kind to a patch: sums are added up before they are dealt, so that it does not matter who made which part of them.
pub fn joined(letters: Vec<Letter>) -> Vec<Letter> {
    let mut all: BTreeMap<([i32; 3], u8), Vec<u64>> = BTreeMap::new();
    for (index, bytes) in letters {
        let (cells, what) = bytes.split_at(8 * CELLS);
        let sums = all
            .entry((index, what[0]))
            .or_insert_with(|| vec![0; CELLS]);
        let cells: Vec<u64> = bytemuck::pod_collect_to_vec(cells);
        sums.iter_mut()
            .zip(cells)
            .for_each(|(sum, mass)| *sum += mass);
    }
    let letter = |((index, what), sums): (([i32; 3], u8), Vec<u64>)| {
        let mut bytes: Vec<u8> = bytemuck::cast_slice(&sums).to_vec();
        bytes.push(what);
        (index, bytes)
    };
    all.into_iter().map(letter).collect()
}
