//! Fine flux registers on their way between ranks.

use super::DevicePool;
use super::staging::Staging;
use crate::device::{DeviceError, Kernel, Shape};
use crate::field::pieces::{OnDevice, REGISTER};
use crate::mesh::faces::{Face, face_number};
use nestar_device::Number;
use nestar_kernels::mesh::parameters::Faces;

impl DevicePool {
    /// Packs the fine-side registers of `faces` between `level` and the finer one: reference and change.
    pub(in crate::field) fn pack_faces(
        &self,
        level: usize,
        faces: &[Face],
        out: &mut [u8],
    ) -> Result<(), DeviceError> {
        let length = self.components * REGISTER * self.value_bytes();
        self.each_faces(level, faces, |staging, first, parameters| {
            let shape = Shape::of(parameters.count as usize, 64);
            self.device
                .launch(&self.kernels.pack_faces, shape, &parameters)?;
            let part = &mut out[first * length..][..parameters.count as usize * length];
            self.device.download(&staging.values, 0, part)
        })
    }

    /// Sets the fine-side registers of `faces` from what [`DevicePool::pack_faces`] gave.
    pub(in crate::field) fn unpack_faces(
        &self,
        level: usize,
        faces: &[Face],
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let length = self.components * REGISTER * self.value_bytes();
        self.each_faces(level, faces, |staging, first, parameters| {
            let part = &bytes[first * length..][..parameters.count as usize * length];
            self.device.upload(&staging.values, 0, part)?;
            let shape = Shape::of(parameters.count as usize, 64);
            self.device
                .launch(&self.kernels.unpack_faces, shape, &parameters)
        })
    }

    /// Starts to pack the fine-side registers of faces between `level` and the finer one.
    pub(in crate::field) fn pack_faces_on_device(
        &self,
        level: usize,
        faces: &OnDevice<Face>,
    ) -> Result<(), DeviceError> {
        self.start_listed(&self.kernels.pack_faces, level, faces)
    }

    /// Starts to set the fine-side registers of faces between `level` and the finer one.
    pub(in crate::field) fn unpack_faces_on_device(
        &mut self,
        level: usize,
        faces: &OnDevice<Face>,
    ) -> Result<(), DeviceError> {
        self.start_listed(&self.kernels.unpack_faces, level, faces)
    }

    fn start_listed(
        &self,
        kernel: &Kernel,
        level: usize,
        faces: &OnDevice<Face>,
    ) -> Result<(), DeviceError> {
        let Some(registers) = self.registers.as_ref().map(|r| r.faces(level)) else {
            return Ok(());
        };
        let parameters = Faces {
            faces: faces.list.into(),
            packed: faces.memory.into(),
            count: faces.entries.len() as i32,
            ..registers
        };
        self.device
            .launch(kernel, Shape::of(faces.entries.len(), 64), &parameters)
    }

    /// Calls `work` with the staging memory, in which the list of faces stands, for as many faces at a time as it holds.
    fn each_faces(
        &self,
        level: usize,
        faces: &[Face],
        mut work: impl FnMut(&Staging, usize, Faces<Number>) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let Some(registers) = self.registers.as_ref().map(|r| r.faces(level)) else {
            return Ok(());
        };
        let numbers: Vec<u32> = faces.iter().map(face_number).collect();
        let length = self.components * REGISTER;
        self.in_chunks(&numbers, length, |staging, first, numbers, transfer| {
            let parameters = Faces {
                faces: transfer.rows,
                packed: transfer.packed.number().into(),
                count: numbers.len() as i32,
                ..registers
            };
            work(staging, first, parameters)
        })
    }
}
