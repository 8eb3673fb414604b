//! Copies to and from the host on a queue of their own.

use super::Context;
use super::driver::{Event, Stream};
use super::stream::{self, Mark};
use crate::device::DeviceError;
use crate::device::backend::{Copies, Pending};
use std::sync::Arc;

/// A queue beside the one that works.
pub(super) struct Beside {
    context: Arc<Context>,
    stream: Stream,
}

impl Beside {
    pub(super) fn open(context: &Arc<Context>) -> Result<Self, DeviceError> {
        context.gpu.bind()?;
        Ok(Self {
            context: context.clone(),
            stream: stream::open()?,
        })
    }

    /// A mark to be put behind copies.
    fn mark(&self) -> Result<Copying, DeviceError> {
        Ok(Copying {
            context: self.context.clone(),
            done: stream::event(Mark::Sleep)?,
        })
    }

    /// After a failure: the memory must not go while copies that nobody can wait for are under way.
    fn settle(&self) {
        // of further failures there is nobody to tell
        let _ = stream::wait(self.stream);
    }
}

impl Copies for Beside {
    fn follow(&self) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        let mark = stream::event(Mark::Order)?;
        let recorded = stream::record(mark, self.context.stream);
        let followed = recorded.and_then(|()| stream::follow(self.stream, mark));
        // the driver keeps the event for as long as a queue waits for it
        stream::drop_event(mark);
        followed
    }

    fn start(&self, from: u64, to: *mut u8, bytes: usize) -> Result<Box<dyn Pending>, DeviceError> {
        self.context.gpu.bind()?;
        let copying = self.mark()?;
        // SAFETY: who starts the copy holds so many bytes there for it alone
        let to = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
        let started = stream::copy_down(self.stream, from, to);
        started
            .and_then(|()| stream::record(copying.done, self.stream))
            .inspect_err(|_| self.settle())?;
        Ok(Box::new(copying))
    }

    fn upload(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        // SAFETY: who starts the copy holds so many bytes there, which nobody changes
        let from = unsafe { std::slice::from_raw_parts(from, bytes) };
        stream::copy_up(self.stream, to, from).inspect_err(|_| self.settle())
    }

    fn precede(&self) -> Result<Box<dyn Pending>, DeviceError> {
        self.context.gpu.bind()?;
        let copying = self.mark()?;
        let recorded = stream::record(copying.done, self.stream);
        recorded
            .and_then(|()| stream::follow(self.context.stream, copying.done))
            .inspect_err(|_| self.settle())?;
        Ok(Box::new(copying))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // of failures there is nobody to tell
        let _ = self.context.gpu.bind();
        let _ = stream::wait(self.stream);
        stream::close(self.stream);
    }
}

/// Copies on such a queue, up to a mark.
struct Copying {
    context: Arc<Context>,
    done: Event,
}

impl Pending for Copying {
    fn is_done(&self) -> Result<bool, DeviceError> {
        self.context.gpu.bind()?;
        stream::has_passed(self.done)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        stream::wait_for(self.done)
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        // of failures there is nobody to tell
        let _ = self.context.gpu.bind();
        stream::drop_event(self.done);
    }
}
