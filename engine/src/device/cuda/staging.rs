//! Copies between the host and the GPU through page-locked memory, in which the GPU reads and writes at bus speed while
//! the host fills or empties the next piece.

use super::driver::{Event, Stream};
use super::slabs::{allocate_host, free_host};
use super::stream::{self, Mark};
use crate::device::DeviceError;

/// Bytes of a block.
const BLOCK: usize = 32 << 20;
/// Largest piece of a copy, so that the bus starts early.
const PIECE: usize = 8 << 20;
/// Copies up to this size go through a small block.
const SMALL: usize = 64 << 10;
/// Pieces of this size are worth several threads of the host.
const LARGE: usize = 4 << 20;

/// A page-locked block and the event after which the host may use it again.
struct Block {
    memory: *mut u8,
    free: Event,
}

// SAFETY: the memory belongs to the block alone
unsafe impl Send for Block {}

impl Block {
    fn new(bytes: usize) -> Result<Self, DeviceError> {
        let free = stream::event(Mark::Order)?;
        let memory = allocate_host(bytes).inspect_err(|_| stream::drop_event(free))?;
        Ok(Self { memory, free })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        free_host(self.memory);
        stream::drop_event(self.free);
    }
}

/// Blocks for both directions, made when they are first needed. The context must be current, also on drop.
#[derive(Default)]
pub(super) struct Staging {
    up: Vec<Block>,
    /// The block being filled, and how far.
    filling: (usize, usize),
    down: Vec<Block>,
    small: Option<Block>,
}

impl Staging {
    /// Copies to the GPU; on return `from` may be reused.
    pub(super) fn upload(
        &mut self,
        stream: Stream,
        to: u64,
        from: &[u8],
    ) -> Result<(), DeviceError> {
        while self.up.len() < 2 {
            self.up.push(Block::new(BLOCK)?);
        }
        let mut done = 0;
        while done < from.len() {
            if self.filling.1 == BLOCK {
                stream::record(self.up[self.filling.0].free, stream)?;
                self.filling = (1 - self.filling.0, 0);
                stream::wait_for(self.up[self.filling.0].free)?;
            }
            let (block, used) = self.filling;
            let piece = (from.len() - done).min(BLOCK - used).min(PIECE);
            // SAFETY: the block holds the piece behind what is used, and the copies that read there have ended
            let place = unsafe {
                let place = self.up[block].memory.add(used);
                std::slice::from_raw_parts_mut(place, piece)
            };
            copy(&from[done..done + piece], place);
            stream::copy_up(stream, to + done as u64, place)?;
            self.filling.1 = (used + piece).next_multiple_of(256).min(BLOCK);
            done += piece;
        }
        Ok(())
    }

    /// Copies to the host, after all work before.
    pub(super) fn download(
        &mut self,
        stream: Stream,
        from: u64,
        to: &mut [u8],
    ) -> Result<(), DeviceError> {
        if to.len() > SMALL {
            return self.download_pieces(stream, from, to);
        }
        let block = match &mut self.small {
            Some(block) => block,
            none => none.insert(Block::new(SMALL)?),
        };
        // SAFETY: the block holds so much, and no copy is under way there: each is waited for before this returns
        let place = unsafe { std::slice::from_raw_parts_mut(block.memory, to.len()) };
        stream::copy_down(stream, from, place)?;
        stream::wait(stream)?;
        to.copy_from_slice(place);
        Ok(())
    }

    /// The GPU fills one block while the host empties the other.
    fn download_pieces(
        &mut self,
        stream: Stream,
        from: u64,
        to: &mut [u8],
    ) -> Result<(), DeviceError> {
        while self.down.len() < 2 {
            self.down.push(Block::new(BLOCK)?);
        }
        let ask = |down: &[Block], piece: usize, bytes: usize| {
            let block = &down[piece % 2];
            // SAFETY: the block holds a piece, and what the last copy left there is taken
            let place = unsafe { std::slice::from_raw_parts_mut(block.memory, bytes) };
            stream::copy_down(stream, from + (piece * PIECE) as u64, place)?;
            stream::record(block.free, stream)
        };
        let total = to.len();
        let length = |piece: usize| total.saturating_sub(piece * PIECE).min(PIECE);
        ask(&self.down, 0, length(0))?;
        ask(&self.down, 1, length(1))?;
        for (piece, place) in to.chunks_mut(PIECE).enumerate() {
            let block = &self.down[piece % 2];
            stream::wait_for(block.free)?;
            // SAFETY: the copy to the block has ended, and the next is not asked for yet
            let bytes = unsafe { std::slice::from_raw_parts(block.memory, place.len()) };
            copy(bytes, place);
            if length(piece + 2) > 0 {
                ask(&self.down, piece + 2, length(piece + 2))?;
            }
        }
        Ok(())
    }
}

/// Copies in the host's memory, large pieces by several threads. Threads of their own: a task of the pool could be one
/// that waits for this very copy.
fn copy(from: &[u8], to: &mut [u8]) {
    if from.len() < LARGE {
        to.copy_from_slice(from);
        return;
    }
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let share = from.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (from, to) in from.chunks(share).zip(to.chunks_mut(share)) {
            scope.spawn(|| to.copy_from_slice(from));
        }
    });
}
