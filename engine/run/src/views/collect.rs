//! Collects the values of a view from all ranks.

use super::Accumulator;
use super::reader::{PatchBatch, ReadValues, ViewReader};
use nestar_engine_comm::{Message, Ranks, RanksError};
use nestar_engine_device::ComputeDevice;
use nestar_engine_step::error::agreed;
use nestar_engine_step::{Engine, Error};
use rayon::prelude::*;

/// Largest number of bytes that are read from a device for a view in the background.
const BACKGROUND: usize = 256 << 20;

/// An entry of a view.
pub(super) enum Collected {
    /// Values of its arrays.
    Values(Vec<Vec<f64>>),
    /// What they are computed from.
    Batches(Vec<(PatchBatch, ReadValues)>),
}

impl Collected {
    /// Returns the values of the arrays.
    pub fn values(self, reader: &ViewReader) -> Vec<Vec<f64>> {
        match self {
            Self::Values(values) => values,
            Self::Batches(batches) => {
                let mut parts = accumulators(reader);
                for (batch, read) in batches {
                    reader.add(&batch, &read, &mut parts);
                    reader.reuse(read);
                }
                joined(parts).values()
            }
        }
    }
}

/// Collects an entry of a view at the present time for the first rank. Collective.
///
/// # Errors
/// The device or another rank has failed.
pub(super) fn collect(sim: &Engine, reader: &ViewReader) -> Result<Option<Collected>, Error> {
    let ranks = sim.world.resource::<Ranks>();
    let batches = reader.batches(sim);
    let patches: usize = batches.iter().map(|batch| batch.patches.len()).sum();
    let on_device = sim.world.resource::<ComputeDevice>().device.is_some();
    if ranks.is_single() && on_device && patches * reader.patch_bytes() <= BACKGROUND {
        // the cores of the host are idle while the device goes on
        let read = |batch: PatchBatch| {
            let mut values = reader.memory();
            reader.read(sim, &batch, &mut values)?;
            Ok((batch, values))
        };
        let read: Result<_, Error> = batches.into_iter().map(read).collect();
        return read.map(|read| Some(Collected::Batches(read)));
    }
    let mut parts = accumulators(reader);
    let mut read = reader.memory();
    let added = batches.iter().try_for_each(|batch| {
        reader.read(sim, batch, &mut read)?;
        reader.add(batch, &read, &mut parts);
        Ok(())
    });
    reader.reuse(read);
    agreed(ranks, added)?;
    let mut accumulator = joined(parts);
    if !ranks.is_single() && !receive(ranks, &mut *accumulator)? {
        return Ok(None);
    }
    Ok(Some(Collected::Values(accumulator.values())))
}

/// Returns an empty accumulator for each thread.
fn accumulators(reader: &ViewReader) -> Vec<Box<dyn Accumulator + '_>> {
    let threads = 0..rayon::current_num_threads();
    threads.map(|_| reader.view.accumulator()).collect()
}

/// Joins the accumulators of all threads.
fn joined<'a>(parts: Vec<Box<dyn Accumulator + 'a>>) -> Box<dyn Accumulator + 'a> {
    let joined = parts.into_par_iter().reduce_with(|mut one, other| {
        one.join(&other.pack()).expect("bytes as they were packed");
        one
    });
    joined.expect("a pool has a thread")
}

/// Joins the accumulators of all ranks on the first rank, where it returns `true`. Collective.
fn receive(ranks: &Ranks, accumulator: &mut dyn Accumulator) -> Result<bool, Error> {
    let own = match ranks.rank() {
        0 => Vec::new(),
        _ => vec![Message {
            peer: 0,
            bytes: accumulator.pack(),
        }],
    };
    for message in ranks.communicator().exchange(own)? {
        accumulator.join(&message.bytes).ok_or_else(|| {
            let peer = message.peer;
            RanksError::Transport(format!("the part of a view from rank {peer} is damaged"))
        })?;
    }
    Ok(ranks.rank() == 0)
}
