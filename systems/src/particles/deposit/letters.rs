//! Encodes sparse patch sums, which ranks and levels exchange.
//!
//! A message holds 512 bits that mark the non-zero cells, the sums of these cells, and a byte with the kind
//! of the sums.

use nestar_engine::comm::PatchMessage;
use nestar_kernels::CELLS;
use std::collections::BTreeMap;

/// Kind of sums: those of the patch itself.
pub const OWN: u8 = 0;
/// Kind of sums: those of the parent, whose first child is the patch.
pub const OF_PARENT: u8 = 1;
/// Words of the bit mask.
pub const BITS: usize = CELLS / 64;

/// Encodes the sums of a patch.
pub fn encode(index: [i32; 3], what: u8, cells: &[u64]) -> PatchMessage {
    let (mut bits, mut sums) = ([0u64; BITS], Vec::with_capacity(CELLS));
    for (cell, &sum) in cells.iter().enumerate().filter(|(_, sum)| **sum > 0) {
        bits[cell / 64] |= 1 << (cell % 64);
        sums.push(sum);
    }
    from_words(index, what, &[&bits[..], &sums].concat())
}

/// Builds a message from a bit mask and sums.
pub fn from_words(index: [i32; 3], what: u8, words: &[u64]) -> PatchMessage {
    let mut bytes = Vec::with_capacity(8 * words.len() + 1);
    bytes.extend_from_slice(bytemuck::cast_slice(words));
    bytes.push(what);
    (index, bytes)
}

/// Decodes a message: the kind, then bit mask and sums.
pub fn decode(bytes: &[u8]) -> (u8, Vec<u64>) {
    let (what, words) = bytes.split_last().unwrap_or((&OWN, &[]));
    (*what, bytemuck::pod_collect_to_vec(words))
}

/// Returns the number of words of a message that begins with these words.
pub fn word_count(words: &[u64]) -> usize {
    let bits = words.iter().take(BITS);
    BITS + bits.map(|bits| bits.count_ones() as usize).sum::<usize>()
}

/// Adds decoded sums to the cells of a patch.
pub fn add(words: &[u64], cells: &mut [u64]) {
    let (bits, sums) = words.split_at(BITS.min(words.len()));
    let is_set = |cell: &usize| {
        bits.get(cell / 64)
            .is_some_and(|b| b >> (cell % 64) & 1 == 1)
    };
    let set = (0..CELLS).filter(is_set);
    set.zip(sums).for_each(|(cell, sum)| cells[cell] += sum);
}

/// Merges messages with the same patch and kind. Sums are merged before they are distributed to children, so
/// that rounding does not depend on their origin.
pub fn merge(letters: Vec<PatchMessage>) -> Vec<PatchMessage> {
    let mut all: BTreeMap<([i32; 3], u8), Vec<u64>> = BTreeMap::new();
    for (index, bytes) in letters {
        let (what, words) = decode(&bytes);
        let cells = all.entry((index, what)).or_insert_with(|| vec![0; CELLS]);
        add(&words, cells);
    }
    let all = all.into_iter();
    all.map(|((index, what), cells)| encode(index, what, &cells))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_hold_what_cells_have() {
        let mut cells = vec![0; CELLS];
        for cell in [0, 63, 64, 200, 511] {
            cells[cell] = 7 + cell as u64;
        }
        let (index, bytes) = encode([1, 2, 3], OF_PARENT, &cells);
        let (what, words) = decode(&bytes);
        assert_eq!((index, what), ([1, 2, 3], OF_PARENT));
        assert_eq!((words.len(), word_count(&words)), (BITS + 5, BITS + 5));
        let mut twice = vec![0; CELLS];
        add(&words, &mut twice);
        assert_eq!(twice, cells);
        add(&words, &mut twice);
        let both = [1, 1, 2].map(|x| encode([x, 0, 0], OWN, &cells)).to_vec();
        let joined = merge(both);
        assert_eq!(joined.len(), 2);
        let mut sums = vec![0; CELLS];
        add(&decode(&joined[0].1).1, &mut sums);
        assert_eq!(sums, twice);
    }
}
