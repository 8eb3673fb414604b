//! Streams of the GPU: copies, fills, events and waits. The context must be current on the calling thread.

use super::Context;
use super::driver::{Code, Event, Stream, answer, driver, sys};
use crate::DeviceError;
use crate::backend::{CopyStream, Fence};
use std::sync::Arc;

/// Purpose of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    /// Orders streams; the host waits actively.
    Order,
    /// The waiting host thread sleeps.
    Sleep,
    /// Measures times.
    Time,
}

/// Creates a stream.
pub(super) fn open() -> Result<Stream, DeviceError> {
    let mut stream = std::ptr::null_mut();
    let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
    driver!(
        "cannot create a stream of the GPU",
        cuStreamCreate(&mut stream, flags)
    )?;
    Ok(Stream(stream))
}

/// Creates a stream of high priority.
pub(super) fn open_urgent() -> Result<Stream, DeviceError> {
    let doing = "cannot create a stream of the GPU";
    let (mut least, mut most) = (0, 0);
    driver!(doing, cuCtxGetStreamPriorityRange(&mut least, &mut most))?;
    let mut stream = std::ptr::null_mut();
    let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
    driver!(doing, cuStreamCreateWithPriority(&mut stream, flags, most))?;
    Ok(Stream(stream))
}

/// Destroys a stream.
pub(super) fn close(stream: Stream) {
    // Errors cannot be reported here.
    let _ = driver!("", cuStreamDestroy_v2(stream.0));
}

/// Waits for all work of a stream.
pub(super) fn wait(stream: Stream) -> Result<(), DeviceError> {
    driver!("work of the GPU failed", cuStreamSynchronize(stream.0))
}

/// Returns `true` if a stream has no pending work.
pub(super) fn is_idle(stream: Stream) -> Result<bool, DeviceError> {
    // SAFETY: the driver created the stream
    match unsafe { sys::cuStreamQuery(stream.0) } {
        Code::CUDA_ERROR_NOT_READY => Ok(false),
        code => answer("work of the GPU failed", code).map(|()| true),
    }
}

/// Copies to the GPU from page-locked memory, which must not change until the copy has ended.
pub(super) fn copy_up(stream: Stream, to: u64, from: &[u8]) -> Result<(), DeviceError> {
    let bytes = from.len();
    driver!(
        "cannot copy to the GPU",
        cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), bytes, stream.0)
    )
}

/// Copies from the GPU to page-locked memory, which must not be used until the copy has ended.
pub(super) fn copy_down(stream: Stream, from: u64, to: &mut [u8]) -> Result<(), DeviceError> {
    let bytes = to.len();
    if bytes == 0 {
        return Ok(());
    }
    driver!(
        "cannot copy from the GPU",
        cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from, bytes, stream.0)
    )
}

/// Copies on the GPU.
pub(super) fn copy_within(
    stream: Stream,
    from: u64,
    to: u64,
    bytes: usize,
) -> Result<(), DeviceError> {
    driver!(
        "cannot copy on the GPU",
        cuMemcpyDtoDAsync_v2(to, from, bytes, stream.0)
    )
}

/// Sets bytes to zero.
pub(super) fn zero(stream: Stream, to: u64, bytes: usize) -> Result<(), DeviceError> {
    driver!(
        "cannot clear memory of the GPU",
        cuMemsetD8Async(to, 0, bytes, stream.0)
    )
}

/// Creates an event.
pub(super) fn event(kind: EventKind) -> Result<Event, DeviceError> {
    let mut event = std::ptr::null_mut();
    use sys::CUevent_flags_enum as Flags;
    let untimed = Flags::CU_EVENT_DISABLE_TIMING as u32;
    let flags = match kind {
        EventKind::Order => untimed,
        EventKind::Sleep => untimed | Flags::CU_EVENT_BLOCKING_SYNC as u32,
        EventKind::Time => Flags::CU_EVENT_DEFAULT as u32,
    };
    driver!(
        "cannot create an event of the GPU",
        cuEventCreate(&mut event, flags)
    )?;
    Ok(Event(event))
}

/// Destroys an event.
pub(super) fn drop_event(event: Event) {
    // Errors cannot be reported here.
    let _ = driver!("", cuEventDestroy_v2(event.0));
}

/// Records an event after all work of a stream so far.
pub(super) fn record(event: Event, stream: Stream) -> Result<(), DeviceError> {
    driver!(
        "cannot record an event of the GPU",
        cuEventRecord(event.0, stream.0)
    )
}

/// Waits for all work before an event; returns at once if it was never recorded.
fn wait_for(event: Event) -> Result<(), DeviceError> {
    driver!("work of the GPU failed", cuEventSynchronize(event.0))
}

/// Returns `true` if all work before an event has ended.
fn has_passed(event: Event) -> Result<bool, DeviceError> {
    // SAFETY: the driver created the event
    match unsafe { sys::cuEventQuery(event.0) } {
        Code::CUDA_ERROR_NOT_READY => Ok(false),
        code => answer("work of the GPU failed", code).map(|()| true),
    }
}

/// Orders work queued from now on after an event of another stream.
pub(super) fn order_after(stream: Stream, event: Event) -> Result<(), DeviceError> {
    driver!(
        "cannot order the work of the GPU",
        cuStreamWaitEvent(stream.0, event.0, 0)
    )
}

/// Returns the time between two completed events in nanoseconds.
pub(super) fn between(start: Event, end: Event) -> Result<u64, DeviceError> {
    let mut milliseconds = 0.0;
    driver!(
        "cannot measure a time of the GPU",
        cuEventElapsedTime_v2(&mut milliseconds, start.0, end.0)
    )?;
    Ok((f64::from(milliseconds) * 1e6) as u64)
}

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
                true => open()?,
                false => context.stream,
            },
            beside,
        })
    }

    /// Waits after a failure: memory must not be freed while copies in flight use it.
    fn drain(&self) {
        // Errors cannot be reported here.
        let _ = wait(self.stream);
    }
}

impl CopyStream for CudaCopyStream {
    fn wait_for_main_stream(&self) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        let mark = event(EventKind::Order)?;
        let recorded = record(mark, self.context.stream);
        let followed = recorded.and_then(|()| order_after(self.stream, mark));
        // The driver keeps the event as long as a stream waits for it.
        drop_event(mark);
        followed
    }

    fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        // SAFETY: the caller owns this memory for the copy
        let to = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
        copy_down(self.stream, from, to).inspect_err(|_| self.drain())
    }

    fn upload(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        // SAFETY: the caller keeps this memory valid and unchanged
        let from = unsafe { std::slice::from_raw_parts(from, bytes) };
        copy_up(self.stream, to, from).inspect_err(|_| self.drain())
    }

    fn record_fence(&self) -> Result<Box<dyn Fence>, DeviceError> {
        self.context.gpu.bind()?;
        // Waits for copies on the main stream are short.
        let kind = if self.beside {
            EventKind::Sleep
        } else {
            EventKind::Order
        };
        let copying = event(kind).map(|done| Copying {
            context: self.context.clone(),
            done,
        });
        let copying = copying.inspect_err(|_| self.drain())?;
        record(copying.done, self.stream).inspect_err(|_| self.drain())?;
        Ok(Box::new(copying))
    }

    fn block_main_stream(&self) -> Result<Box<dyn Fence>, DeviceError> {
        self.context.gpu.bind()?;
        if self.beside {
            let mark = event(EventKind::Order).inspect_err(|_| self.drain())?;
            let recorded = record(mark, self.stream);
            let followed = recorded.and_then(|()| order_after(self.context.stream, mark));
            // As in `wait_for_main_stream`.
            drop_event(mark);
            followed.inspect_err(|_| self.drain())?;
        }
        self.record_fence()
    }

    fn wait(&self) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        wait(self.stream)
    }
}

impl Drop for CudaCopyStream {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = self.context.gpu.bind();
        let _ = wait(self.stream);
        if self.beside {
            close(self.stream);
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
        has_passed(self.done)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        wait_for(self.done)
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = self.context.gpu.bind();
        drop_event(self.done);
    }
}
