//! The magnetic field on faces on a device: gathers for the gas step, and means in cells.

use super::StepKernelParameters;
use crate::fields::{Gas, MagneticFaces};
use nestar_device::{Address, Number};
use nestar_engine::data::device::{DevicePool, DeviceView};
use nestar_engine::device::{Buffer, Device, DeviceError, Growable, Kernel, LaunchShape, Module};
use nestar_engine::step::FieldView;
use nestar_kernels::PATCH;
use nestar_kernels::hydro::solver::device::{
    CellFieldParameters, ExtremesParameters, FaceFieldParameters,
};
use nestar_kernels::mesh::device::gathered_faces;
use nestar_kernels::mesh::parameters::GatherFacesParameters;

/// Largest number of rows that are gathered and advanced together.
const ROWS: usize = 4096;
/// Threads per block.
const THREADS: u32 = 256;

/// The kernel that gathers the faces of rows, and its result.
pub(super) struct FaceGather {
    device: Device,
    kernel: Kernel,
    /// Faces of [`FaceGather::rows`] rows.
    gathered: Buffer<u64>,
    rows: usize,
}

impl FaceGather {
    /// Compiles the kernel for `ghosts` ghost layers.
    ///
    /// # Errors
    /// Compiler messages; not enough memory.
    pub fn new(faces: &DevicePool, ghosts: usize) -> Result<Self, DeviceError> {
        let device = faces.device().clone();
        let source = faces.program(&[GatherFacesParameters], &[&gathered_faces(ghosts)]);
        let kernel = device
            .compile("gather_faces", &source)?
            .kernel("mesh_gather_faces")?;
        let rows = ROWS.min(faces.most_rows());
        let width = PATCH + 2 * ghosts;
        let bytes = 3 * (width + 1) * width * width * faces.precision().bytes();
        Ok(Self {
            gathered: device.buffer((rows * bytes).div_ceil(size_of::<u64>()))?,
            device,
            kernel,
            rows,
        })
    }

    /// Gathers the faces of the rows in `parameters` part by part, and calls `advance` for each part.
    ///
    /// # Errors
    /// The device fails, or `advance` does.
    pub fn in_parts(
        &self,
        parameters: &StepKernelParameters,
        advance: impl Fn(&StepKernelParameters) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let count = parameters.count as usize;
        for first in (0..count).step_by(self.rows) {
            let part = (count - first).min(self.rows);
            let rows = parameters.rows.number() + (first * size_of::<i32>()) as u64;
            let mut of_part = StepKernelParameters {
                rows: rows.into(),
                count: part as i32,
                ..*parameters
            };
            of_part.field.gathered = self.gathered.address().into();
            let gather = GatherFacesParameters::<Number> {
                view: parameters.field.view,
                rows: of_part.rows,
                out: of_part.field.gathered,
                count: of_part.count,
            };
            let shape = LaunchShape::of(part, THREADS);
            self.device.launch(&self.kernel, shape, &gather)?;
            advance(&of_part)?;
        }
        Ok(())
    }
}

/// Kernels on faces and cells, and their buffers.
pub(super) struct FieldKernels {
    update: Kernel,
    extremes: Kernel,
    rows: Growable<i32>,
    left: Growable<i32>,
    largest: Buffer<u64>,
}

impl FieldKernels {
    /// Takes the kernels of the program of the gas, for up to `rows` rows.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn new(device: &Device, module: &Module, rows: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            update: module.kernel("update_cell_fields")?,
            extremes: module.kernel("face_extremes")?,
            rows: device.growable(rows)?,
            left: device.growable(rows)?,
            largest: device.buffer(2)?,
        })
    }

    /// Copies a list of rows to the device.
    fn list(&mut self, device: &Device, rows: &[u32]) -> Result<(), DeviceError> {
        self.rows.grow(rows.len())?;
        let numbers: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        device.upload(&self.rows, 0, &numbers)
    }

    /// Returns the largest divergence times the smallest cell width, and the largest field, in some rows of a bank of the field; `part` is the
    /// smallest cell width over that along each axis.
    ///
    /// # Errors
    /// The device fails.
    pub fn extremes(
        &mut self,
        device: &Device,
        rows: &[u32],
        bank: u64,
        part: [f64; 3],
    ) -> Result<[f64; 2], DeviceError> {
        if rows.is_empty() {
            return Ok([0.0; 2]);
        }
        self.list(device, rows)?;
        device.fill_zero(&self.largest, 0..2)?;
        let parameters = ExtremesParameters::<Number> {
            rows: self.rows.address().into(),
            faces: bank.into(),
            largest: self.largest.address().into(),
            part,
        };
        let shape = LaunchShape::of(rows.len(), THREADS);
        device.launch(&self.extremes, shape, &parameters)?;
        let mut largest = [0; 2];
        device.download(&self.largest, 0, &mut largest)?;
        Ok(largest.map(f64::from_bits))
    }

    /// Gives the cells of `rows` the means over their faces, see `update_cell_fields`. Returns the rows that are left as they are.
    ///
    /// # Errors
    /// The device fails.
    pub fn apply(
        &mut self,
        device: &Device,
        rows: &[u32],
        gas: &FieldView<Gas>,
        field: &FieldView<MagneticFaces>,
    ) -> Result<Vec<u32>, DeviceError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        self.list(device, rows)?;
        self.left.grow(rows.len())?;
        let parameters = CellFieldParameters::<Number> {
            rows: self.rows.address().into(),
            gas: gas.device().bank(gas.banks()[0]).into(),
            faces: field.device().bank(field.banks()[0]).into(),
            stale: gas.device().stale().into(),
            left: self.left.address().into(),
        };
        let shape = LaunchShape::of(rows.len(), THREADS);
        device.launch(&self.update, shape, &parameters)?;
        let mut left = vec![0; rows.len()];
        device.download(&self.left, 0, &mut left)?;
        let each = rows.iter().zip(left);
        Ok(each
            .filter(|(_, left)| *left != 0)
            .map(|(row, _)| *row)
            .collect())
    }
}

/// Returns what a step of a level needs of the field, if there is one; `unused` is any view.
pub(super) fn parameters(
    field: Option<&FieldView<MagneticFaces>>,
    level: usize,
    unused: DeviceView,
) -> FaceFieldParameters<Number> {
    let Some(field) = field else {
        return FaceFieldParameters {
            view: unused,
            registers: Default::default(),
            gathered: Address::NONE,
            next: Address::NONE,
        };
    };
    let pool = field.device();
    FaceFieldParameters {
        view: field.on_device(),
        registers: pool.circulation_view(level),
        gathered: Address::NONE,
        next: pool.bank(field.banks()[1]).into(),
    }
}
