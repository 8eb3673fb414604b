//! Copies between a GPU and the host.

use super::Context;
use super::driver::{Event, Stream};
use super::stream::{self, EventKind};
use crate::DeviceError;
use crate::backend::{CopyStream, Fence};
use std::sync::Arc;

/// Copies on the main stream, or on a separate stream.
pub(super) struct CudaCopyStream {
    context: Arc<Context>,
    stream: Stream,
    beside: bool,
}

impl CudaCopyStream {
    pub(super) fn open(context: &Arc<Context>, beside: bool) -> Result<Self, DeviceError> {
        context.gpu.bind()?;
        Ok(Self {
            context: context.clone(),
            stream: match beside {
                true => stream::open()?,
                false => context.stream,
            },
            beside,
        })
    }

    /// Waits after a failure: memory must not be freed while copies in flight use it.
    fn drain(&self) {
        // Errors cannot be reported here.
        let _ = stream::wait(self.stream);
    }
}

impl CopyStream for CudaCopyStream {
    fn wait_for_main_stream(&self) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        let mark = stream::event(EventKind::Order)?;
        let recorded = stream::record(mark, self.context.stream);
        let followed = recorded.and_then(|()| stream::order_after(self.stream, mark));
        // The driver keeps the event as long as a stream waits for it.
        stream::drop_event(mark);
        followed
    }

    fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        // SAFETY: the caller owns this memory for the copy
        let to = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
        stream::copy_down(self.stream, from, to).inspect_err(|_| self.drain())
    }

    fn upload(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        // SAFETY: the caller keeps this memory valid and unchanged
        let from = unsafe { std::slice::from_raw_parts(from, bytes) };
        stream::copy_up(self.stream, to, from).inspect_err(|_| self.drain())
    }

    fn record_fence(&self) -> Result<Box<dyn Fence>, DeviceError> {
        self.context.gpu.bind()?;
        // Waits for copies on the main stream are short.
        let kind = if self.beside {
            EventKind::Sleep
        } else {
            EventKind::Order
        };
        let copying = stream::event(kind).map(|done| Copying {
            context: self.context.clone(),
            done,
        });
        let copying = copying.inspect_err(|_| self.drain())?;
        stream::record(copying.done, self.stream).inspect_err(|_| self.drain())?;
        Ok(Box::new(copying))
    }

    fn block_main_stream(&self) -> Result<Box<dyn Fence>, DeviceError> {
        self.context.gpu.bind()?;
        if self.beside {
            let mark = stream::event(EventKind::Order).inspect_err(|_| self.drain())?;
            let recorded = stream::record(mark, self.stream);
            let followed = recorded.and_then(|()| stream::order_after(self.context.stream, mark));
            // As in `wait_for_main_stream`.
            stream::drop_event(mark);
            followed.inspect_err(|_| self.drain())?;
        }
        self.record_fence()
    }

    fn wait(&self) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        stream::wait(self.stream)
    }
}

impl Drop for CudaCopyStream {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = self.context.gpu.bind();
        let _ = stream::wait(self.stream);
        if self.beside {
            stream::close(self.stream);
        }
    }
}

/// Copies in flight up to a fence.
struct Copying {
    context: Arc<Context>,
    done: Event,
}

impl Fence for Copying {
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
        // Errors cannot be reported here.
        let _ = self.context.gpu.bind();
        stream::drop_event(self.done);
    }
}
