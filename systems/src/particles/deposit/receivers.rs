//! The ranks that sums on a device go to.

use nestar_engine::device::{Device, DeviceError, ReusableBuffer};

/// Ranks that get sums of a level, and of cells of the next coarser one: this one is the last, if it gets any by letter.
#[derive(Default)]
pub struct DestinationRanks {
    /// The ranks.
    pub ranks: Vec<usize>,
    /// How many slots those before each have, then all.
    pub firsts: Vec<u64>,
    /// Slots of other ranks.
    pub foreign: usize,
    on_device: ReceiverBuffers,
}

/// What a kernel reads of them.
#[derive(Default)]
struct ReceiverBuffers {
    /// Numbers of the receivers by slot, of other ranks' patches and of octets.
    numbers: [ReusableBuffer<u32>; 2],
    firsts: ReusableBuffer<u64>,
}

impl DestinationRanks {
    /// The ranks that have the patches and the octets of the places of rank `own`.
    ///
    /// # Errors
    /// The device's memory does not suffice.
    pub fn new(device: &Device, own: usize, owners: [Vec<usize>; 2]) -> Result<Self, DeviceError> {
        let mut ranks = owners.concat();
        ranks.sort_unstable_by_key(|&rank| (rank == own, rank));
        let foreign = ranks.partition_point(|&rank| rank != own);
        let counts: Vec<u64> = ranks
            .chunk_by(|a, b| a == b)
            .map(|of| of.len() as u64)
            .collect();
        ranks.dedup();
        let sum = |sum: &mut u64, count: &u64| {
            *sum += count;
            Some(*sum)
        };
        let firsts: Vec<u64> = std::iter::once(0)
            .chain(counts.iter().scan(0, sum))
            .collect();
        let mut on_device = ReceiverBuffers::default();
        for (kept, owners) in on_device.numbers.iter_mut().zip(owners) {
            let number = |owner: usize| ranks.iter().position(|&rank| rank == owner);
            let numbers = owners
                .into_iter()
                .map(|owner| number(owner).unwrap_or_default() as u32);
            kept.set(device, &numbers.collect::<Vec<u32>>())?;
        }
        on_device.firsts.set(device, &firsts)?;
        Ok(Self {
            ranks,
            firsts,
            foreign,
            on_device,
        })
    }

    /// Addresses of the numbers by slot of other ranks' patches and of octets, and of how many slots those before have.
    pub fn addresses(&self) -> [u64; 3] {
        let ReceiverBuffers { numbers, firsts } = &self.on_device;
        [numbers[0].address(), numbers[1].address(), firsts.address()]
    }
}
