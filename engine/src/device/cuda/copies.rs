//! Copies to the host on a queue of their own.

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
        let copying = Copying {
            context: self.context.clone(),
            done: stream::event(Mark::Sleep)?,
        };
        // SAFETY: who starts the copy holds so many bytes there for it alone
        let to = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
        let started = stream::copy_down(self.stream, from, to);
        started
            .and_then(|()| stream::record(copying.done, self.stream))
            .inspect_err(|_| {
                // the memory must not go while a copy that nobody can wait for is under way
                let _ = stream::wait(self.stream);
            })?;
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

/// A copy on such a queue.
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
