//! Memory of the GPU: allocations, and addresses that stay while memory is mapped to them.

use super::Context;
use super::driver::{Code, Gpu, answer, driver, sys};
use crate::device::DeviceError;
use crate::device::backend::AddressRange;
use std::ffi::c_void;
use std::sync::Arc;

/// Smallest slab, bytes.
const LEAST_SLAB: usize = 2 << 20;
/// Largest slab that is more than what was asked for, bytes.
const MOST_SLAB: usize = 1 << 30;

/// Largest part of a slab, which is freed as a whole, bytes.
const MOST_PART: usize = 256 << 20;

/// Reserved addresses of the GPU, with memory mapped to them from the front.
pub(super) struct SlabRange {
    context: Arc<Context>,
    address: u64,
    reserved: usize,
    mapped: usize,
    /// Bytes of what is mapped, part by part.
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

    /// Maps so much more, in parts; whether there was enough.
    fn map(&mut self, bytes: usize) -> Result<bool, DeviceError> {
        let before = self.mapped;
        while self.mapped < before + bytes {
            let part = MOST_PART.min(before + bytes - self.mapped);
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

    /// Unmaps the last parts as long as so many bytes are left.
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
        let least = (bytes - self.mapped).next_multiple_of(self.granularity);
        // slabs grow with what is there, so that many small steps are few slabs
        let ample = (self.mapped / 8).clamp(LEAST_SLAB, MOST_SLAB).max(least);
        let ample = ample.next_multiple_of(self.granularity).min(left);
        let before = self.mapped;
        if !self.map(ample)? && (ample == least || !self.map(least)?) {
            return Err(self.context.out_of_memory(least));
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
        // work that uses the memory may still be under way; of failures there is nobody to tell
        let _ = self.context.gpu.bind();
        let _ = self.context.wait();
        self.unmap_to(0);
        let _ = driver!("", cuMemAddressFree(self.address, self.reserved));
    }
}

impl Gpu {
    /// Smallest unit of mapped memory, bytes.
    pub(super) fn granularity(&self) -> Result<usize, DeviceError> {
        let (mut bytes, properties) = (0, self.slab_properties());
        let least = sys::CUmemAllocationGranularity_flags_enum::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        driver!(
            "cannot read the GPU's page size",
            cuMemGetAllocationGranularity(&mut bytes, &properties, least)
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

    /// Maps new memory to reserved addresses; whether there was enough.
    pub(super) fn map(&self, address: u64, bytes: usize) -> Result<bool, DeviceError> {
        let doing = "cannot map the GPU's memory";
        let (mut slab, properties) = (0, self.slab_properties());
        // SAFETY: the properties are the driver's structure, the handle goes to a live variable
        let code = unsafe { sys::cuMemCreate(&mut slab, bytes, &properties, 0) };
        if code == Code::CUDA_ERROR_OUT_OF_MEMORY {
            return Ok(false);
        }
        answer(doing, code)?;
        let mapped = driver!(doing, cuMemMap(address, bytes, 0, slab, 0));
        // the mapping alone keeps the memory from here on
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

/// Takes all memory from reserved addresses.
pub(super) fn unmap(address: u64, bytes: usize) {
    // there is nobody to tell
    let _ = driver!("", cuMemUnmap(address, bytes));
}

/// Memory of the GPU; nothing if there is not enough.
pub(super) fn allocate(bytes: usize) -> Result<Option<u64>, DeviceError> {
    let mut address = 0;
    // SAFETY: the address goes to a live variable
    match unsafe { sys::cuMemAlloc_v2(&mut address, bytes) } {
        Code::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
        code => answer("cannot allocate memory of the GPU", code).map(|()| Some(address)),
    }
}

/// Frees what [`allocate`] gave, after all work.
pub(super) fn free(address: u64) {
    // there is nobody to tell
    let _ = driver!("", cuMemFree_v2(address));
}

/// Zeroed page-locked memory of the host.
pub(super) fn allocate_host(bytes: usize) -> Result<*mut u8, DeviceError> {
    let mut pointer: *mut c_void = std::ptr::null_mut();
    let doing = "cannot lock memory of the host";
    driver!(doing, cuMemHostAlloc(&mut pointer, bytes, 0))?;
    let first: *mut u8 = pointer.cast();
    // SAFETY: `bytes` writable bytes stand there
    unsafe { first.write_bytes(0, bytes) };
    Ok(first)
}

/// Frees what [`allocate_host`] gave.
pub(super) fn free_host(pointer: *mut u8) {
    // there is nobody to tell
    let _ = driver!("", cuMemFreeHost(pointer.cast()));
}
