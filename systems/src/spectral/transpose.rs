//! Transposes distributed rows: from a distribution over ranks by one index to a distribution by another index.

use nestar_engine::comm::{Communicator, Message, Messages, RanksError};
use std::ops::Range;

/// Distribution of a range of indices over ranks: each rank has a contiguous part, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Rank `r` has `starts[r]..starts[r + 1]`.
    starts: Vec<usize>,
}

impl Shares {
    /// Distributes `0..count` over `ranks` ranks as evenly as possible.
    pub fn even(count: usize, ranks: usize) -> Self {
        Self {
            starts: (0..=ranks).map(|rank| count * rank / ranks).collect(),
        }
    }

    /// Returns the distribution of `0..count + 2 margin`. The ranks with the first and the last index also get the margins.
    pub fn grown(&self, margin: usize) -> Self {
        let count = self.count();
        let moved = |&start: &usize| match start {
            0 => 0,
            start if start == count => start + 2 * margin,
            start => start + margin,
        };
        Self {
            starts: self.starts.iter().map(moved).collect(),
        }
    }

    /// Returns the number of indices of all ranks.
    pub fn count(&self) -> usize {
        self.starts[self.ranks()]
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the indices of a rank.
    pub fn of(&self, rank: usize) -> Range<usize> {
        self.starts[rank]..self.starts[rank + 1]
    }

    /// Returns the rank that has an index.
    pub fn owner(&self, number: usize) -> usize {
        self.starts.partition_point(|&start| start <= number) - 1
    }
}

/// Rows `[outer][inner][width]`. This rank has all outer indices and a part of the inner indices.
pub struct Rows {
    outer: Shares,
    inner: Range<usize>,
    width: usize,
    /// Rows by the rank that sent them: `[outer of that rank][inner][width]`.
    blocks: Vec<Vec<f64>>,
}

impl Rows {
    /// Returns one row.
    pub fn row(&self, outer: usize, inner: usize) -> &[f64] {
        let owner = self.outer.owner(outer);
        let n = (outer - self.outer.of(owner).start) * self.inner.len() + inner - self.inner.start;
        &self.blocks[owner][n * self.width..][..self.width]
    }
}

/// Transposes rows `[own outer][all inner][width]` to rows of all outer and the own inner indices. Collective.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub fn transposed(
    ranks: &dyn Communicator,
    values: Vec<f64>,
    width: usize,
    (outer, inner): (&Shares, &Shares),
) -> Result<Rows, RanksError> {
    let me = ranks.rank();
    let mut rows = Rows {
        outer: outer.clone(),
        inner: inner.of(me),
        width,
        blocks: vec![Vec::new(); ranks.size()],
    };
    if ranks.size() == 1 {
        rows.blocks[0] = values;
        return Ok(rows);
    }
    let part = |peer: usize| packed(&values, inner.count() * width, inner.of(peer), width);
    rows.blocks[me] = part(me);
    let messages = Messages {
        sends: others(ranks, |peer| bytemuck::cast_slice(&part(peer)).to_vec()),
        receives: others(ranks, |peer| {
            vec![0; outer.of(peer).len() * rows.inner.len() * width * size_of::<f64>()]
        }),
    };
    drop(values);
    for Message { peer, bytes } in ranks.start_messages(messages)?.finish()?.receives {
        rows.blocks[peer] = bytemuck::pod_collect_to_vec(&bytes);
    }
    Ok(rows)
}

/// Returns the rows of a range of inner indices. Each outer index has `line` values.
fn packed(values: &[f64], line: usize, inner: Range<usize>, width: usize) -> Vec<f64> {
    let lines = values.chunks_exact(line);
    let stretch = |line: &[f64]| line[inner.start * width..inner.end * width].to_vec();
    lines.flat_map(stretch).collect()
}

/// Returns the messages for all other ranks that are not empty.
fn others(ranks: &dyn Communicator, content: impl Fn(usize) -> Vec<u8>) -> Vec<Message> {
    let peers = (0..ranks.size()).filter(|&peer| peer != ranks.rank());
    let messages = peers.map(|peer| Message {
        peer,
        bytes: content(peer),
    });
    messages
        .filter(|message| !message.bytes.is_empty())
        .collect()
}
