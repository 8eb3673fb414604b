//! Memory of the GPU: allocations, and reserved address ranges with mapped memory.

use super::Context;
use super::driver::{Code, Gpu, answer, driver, sys};
use crate::DeviceError;
use crate::backend::AddressRange;
use std::ffi::c_void;
use std::sync::Arc;

/// Smallest slab, bytes.
const MIN_SLAB: usize = 2 << 20;
/// Largest slab beyond the requested size, bytes.
const MAX_SLAB: usize = 1 << 30;

/// Largest part of a slab; parts are freed as a whole; bytes.
const MAX_PART: usize = 256 << 20;

/// Reserved addresses of the GPU with memory mapped from the front.
pub(super) struct SlabRange {
    context: Arc<Context>,
    address: u64,
    reserved: usize,
    mapped: usize,
    /// Sizes of the mapped parts, bytes.
    parts: Vec<usize>,
    granularity: usize,
}

impl SlabRange {
    /// Reserves addresses for `bytes`.
    pub(super) fn reserve(context: &Arc<Context>, bytes: usize) -> Result<Self, DeviceError> {
        context.gpu.bind()?;
        let granularity = context.gpu.granularity()?;
        let reserved = bytes.next_multiple_of(granularity);
        let mut address = 0;
        driver!(
            "cannot reserve addresses of the GPU",
            cuMemAddressReserve(&mut address, reserved, 0, 0, 0)
        )?;
        Ok(Self {
            context: context.clone(),
            address,
            reserved,
            mapped: 0,
            parts: Vec::new(),
            granularity,
        })
    }

    /// Maps `bytes` more in parts; returns `false` if the memory does not suffice.
    fn map(&mut self, bytes: usize) -> Result<bool, DeviceError> {
        let before = self.mapped;
        while self.mapped < before + bytes {
            let part = MAX_PART.min(before + bytes - self.mapped);
            let next = self.address + self.mapped as u64;
            if !self.context.gpu.map(next, part)? {
                self.unmap_to(before);
                return Ok(false);
            }
            self.mapped += part;
            self.parts.push(part);
        }
        Ok(true)
    }

    /// Unmaps the last parts while at least `bytes` remain mapped.
    fn unmap_to(&mut self, bytes: usize) {
        while let Some(&part) = self.parts.last()
            && self.mapped - part >= bytes
        {
            self.parts.pop();
            self.mapped -= part;
            unmap(self.address + self.mapped as u64, part);
        }
    }
}

impl AddressRange for SlabRange {
    fn address(&self) -> u64 {
        self.address
    }

    fn mapped(&self) -> usize {
        self.mapped
    }

    fn grow(&mut self, bytes: usize) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        let left = self.reserved - self.mapped;
        let minimum = (bytes - self.mapped).next_multiple_of(self.granularity);
        // Slabs grow with the mapped memory, so that many small steps make few slabs.
        let preferred = (self.mapped / 8).clamp(MIN_SLAB, MAX_SLAB).max(minimum);
        let preferred = preferred.next_multiple_of(self.granularity).min(left);
        let before = self.mapped;
        if !self.map(preferred)? && (preferred == minimum || !self.map(minimum)?) {
            return Err(self.context.out_of_memory(minimum));
        }
        let new = self.address + before as u64;
        self.context.zero(new, self.mapped - before)
    }

    fn shrink(&mut self, bytes: usize) -> Result<(), DeviceError> {
        let last = self.parts.last();
        if last.is_none_or(|part| self.mapped - part < bytes) {
            return Ok(());
        }
        self.context.gpu.bind()?;
        self.context.wait()?;
        self.unmap_to(bytes);
        Ok(())
    }
}

impl Drop for SlabRange {
    fn drop(&mut self) {
        // Work that uses the memory may still be running. Errors cannot be reported here.
        let _ = self.context.gpu.bind();
        let _ = self.context.wait();
        self.unmap_to(0);
        let _ = driver!("", cuMemAddressFree(self.address, self.reserved));
    }
}

impl Gpu {
    /// Returns the smallest unit of mapped memory, bytes.
    pub(super) fn granularity(&self) -> Result<usize, DeviceError> {
        let (mut bytes, properties) = (0, self.slab_properties());
        let minimum = sys::CUmemAllocationGranularity_flags_enum::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        driver!(
            "cannot read the GPU's page size",
            cuMemGetAllocationGranularity(&mut bytes, &properties, minimum)
        )?;
        Ok(bytes)
    }

    fn slab_properties(&self) -> sys::CUmemAllocationProp {
        sys::CUmemAllocationProp {
            type_: sys::CUmemAllocationType_enum::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: sys::CUmemAllocationHandleType_enum::CU_MEM_HANDLE_TYPE_NONE,
            location: self.location(),
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: 0,
                usage: 0,
                reserved: [0; 4],
            },
        }
    }

    fn location(&self) -> sys::CUmemLocation {
        sys::CUmemLocation {
            type_: sys::CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.device,
        }
    }

    /// Maps new memory to reserved addresses; returns `false` if the memory does not suffice.
    pub(super) fn map(&self, address: u64, bytes: usize) -> Result<bool, DeviceError> {
        let doing = "cannot map the GPU's memory";
        let (mut slab, properties) = (0, self.slab_properties());
        // SAFETY: the structure is the driver's; the handle is stored in a live variable
        let code = unsafe { sys::cuMemCreate(&mut slab, bytes, &properties, 0) };
        if code == Code::CUDA_ERROR_OUT_OF_MEMORY {
            return Ok(false);
        }
        answer(doing, code)?;
        let mapped = driver!(doing, cuMemMap(address, bytes, 0, slab, 0));
        // From here on the mapping alone keeps the memory.
        let released = driver!(doing, cuMemRelease(slab));
        mapped.and(released)?;
        let access = sys::CUmemAccessDesc {
            location: self.location(),
            flags: sys::CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        driver!(doing, cuMemSetAccess(address, bytes, &access, 1))
            .inspect_err(|_| unmap(address, bytes))?;
        Ok(true)
    }
}

/// Unmaps memory from reserved addresses.
pub(super) fn unmap(address: u64, bytes: usize) {
    // Errors cannot be reported here.
    let _ = driver!("", cuMemUnmap(address, bytes));
}

/// Allocates memory of the GPU, or returns `None` if it does not suffice.
pub(super) fn allocate(bytes: usize) -> Result<Option<u64>, DeviceError> {
    let mut address = 0;
    // SAFETY: the address is stored in a live variable
    match unsafe { sys::cuMemAlloc_v2(&mut address, bytes) } {
        Code::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
        code => answer("cannot allocate memory of the GPU", code).map(|()| Some(address)),
    }
}

/// Frees memory of [`allocate`] after all work.
pub(super) fn free(address: u64) {
    // Errors cannot be reported here.
    let _ = driver!("", cuMemFree_v2(address));
}

/// Allocates page-locked host memory, set to zero.
pub(super) fn allocate_host(bytes: usize) -> Result<*mut u8, DeviceError> {
    let mut pointer: *mut c_void = std::ptr::null_mut();
    let doing = "cannot allocate page-locked host memory";
    driver!(doing, cuMemHostAlloc(&mut pointer, bytes, 0))?;
    let first: *mut u8 = pointer.cast();
    // SAFETY: the memory has `bytes` writable bytes
    unsafe { first.write_bytes(0, bytes) };
    Ok(first)
}

/// Frees memory of [`allocate_host`].
pub(super) fn free_host(pointer: *mut u8) {
    // Errors cannot be reported here.
    let _ = driver!("", cuMemFreeHost(pointer.cast()));
}
