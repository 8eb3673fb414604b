//! Blocks of a patch with one layer of ghost cells, on the host and on a device.

use nestar::device_runtime::{Item, Parameter};
use nestar::engine::device::{DeviceError, Kernel, Shape};
use nestar::engine::field::device::DevicePool;
use nestar::engine::field::{Element, Field};
use nestar::engine::step::View;
use nestar::kernels::mesh::GatherScratch;
use nestar::kernels::mesh::gather::{Target, gather};

/// The cells of a patch, x running fastest.
pub fn cells() -> impl Iterator<Item = [usize; 3]> {
    (0..512).map(|n| [n % 8, n / 8 % 8, n / 64])
}

/// A row with a layer of ghost cells, `[component][10][10][10]`.
pub fn block<R: Element, F: Field>(
    view: &View<F>,
    row: u32,
    scratch: &mut GatherScratch<R>,
) -> Vec<R> {
    let components = view.components();
    let mut values = vec![R::lit(0.0); 1000 * components];
    let mut target = Target {
        values: &mut values,
        stride: 1000,
        components,
        ghosts: 1,
    };
    gather(&view.ghosts::<R>(), row, &mut target, scratch);
    values
}

/// Two kernels of a stencil: one gathers blocks of one component, the other updates rows from them.
pub struct Stencil {
    gather: Kernel,
    update: Kernel,
}

impl Stencil {
    /// The kernels `NAME_gather` and `NAME_update` of `text`, in which `PARAMETERS` stands for the structure `item`.
    pub fn compile(
        pool: &DevicePool,
        item: &'static Item,
        text: &str,
        name: &str,
    ) -> Result<Self, DeviceError> {
        let text = text.replace("PARAMETERS", &item.path());
        let source = pool.program(&[item], &[&text]);
        let module = pool.device().compile(name, &source)?;
        Ok(Self {
            gather: module.kernel(&format!("{name}_gather"))?,
            update: module.kernel(&format!("{name}_update"))?,
        })
    }

    /// Runs both with the parameters that `with` makes of the addresses of the list of rows and of the blocks.
    pub fn run<P: Parameter>(
        &self,
        pool: &DevicePool,
        rows: &[u32],
        with: impl FnOnce(u64, u64) -> P,
    ) -> Result<(), DeviceError> {
        let device = pool.device();
        let listed = device.buffer::<u32>(rows.len().max(1))?;
        device.upload(&listed, 0, rows)?;
        let blocks = device.buffer::<f64>(1000 * rows.len().max(1))?;
        let parameters = with(listed.address(), blocks.address());
        let shape = Shape {
            blocks: rows.len() as u32,
            threads: 64,
            shared: 0,
        };
        device.launch(&self.gather, shape, &parameters)?;
        device.launch(&self.update, shape, &parameters)?;
        // the memory must outlive the launches
        device.synchronise()
    }
}
