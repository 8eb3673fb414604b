//! Destination ranks of device sums.

use nestar_engine::device::{Device, DeviceError, ReusableBuffer};

/// Ranks that receive sums of a level or coarse sums; this rank comes last, if it is one of them.
#[derive(Default)]
pub struct DestinationRanks {
    /// The ranks.
    pub ranks: Vec<usize>,
    /// Prefix sum of the slots of each rank.
    pub firsts: Vec<u64>,
    /// Slots of other ranks.
    pub foreign: usize,
    on_device: ReceiverBuffers,
}

/// Device copies.
#[derive(Default)]
struct ReceiverBuffers {
    /// Index of the receiving rank by slot: of patches of other ranks, of octets.
    numbers: [ReusableBuffer<u32>; 2],
    firsts: ReusableBuffer<u64>,
}

impl DestinationRanks {
    /// Finds the ranks that own the patches and octets of a slot table; `own` is this rank.
    ///
    /// # Errors
    /// Device memory does not suffice.
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

    /// Returns the addresses of the rank indices of patches and octets, and of the prefix sum.
    pub fn addresses(&self) -> [u64; 3] {
        let ReceiverBuffers { numbers, firsts } = &self.on_device;
        [numbers[0].address(), numbers[1].address(), firsts.address()]
    }
}
