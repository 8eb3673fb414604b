//! Ghost cells.

use super::host_and_device::{COMPONENTS, Case, Element, LEVELS, Twins, compare};
use super::on_all;
use nestar::device_runtime::{Address, device};
use nestar::engine::device::{Buffer, Device, LaunchShape};
use nestar::kernels::mesh::gather::{GatherTarget, gather};
use nestar::kernels::mesh::parameters::GatherView;
use nestar::kernels::mesh::{GatherScratch, GhostView};

/// Gathers patches with 1 to 4 layers of ghosts into global memory.
const KERNELS: &str = "
typedef GATHERED<mesh::REAL> Gathered;
template<int G> RS_FN void gather_to(const Gathered& p) {
  constexpr int N = 8 + 2 * G;
  mesh::REAL* block = p.blocks + (rs::i64)launch::block() * (mesh::COMPONENTS * N * N * N);
  mesh::REAL* work = p.work ? p.work + (rs::i64)launch::block() * mesh::INTERPOLATION_WORK<G> : nullptr;
  mesh::gather<G>(block, p.view, p.rows[launch::block()], mesh::Store<N>(), work);
}
KERNEL(gather_1, Gathered) { gather_to<1>(p); }
KERNEL(gather_2, Gathered) { gather_to<2>(p); }
KERNEL(gather_3, Gathered) { gather_to<3>(p); }
KERNEL(gather_4, Gathered) { gather_to<4>(p); }
";

#[device]
struct Gathered<R> {
    view: GatherView<R>,
    rows: Address<i32>,
    blocks: Address<R>,
    work: Address<R>,
}

fn on_host<R: Element>(view: &GhostView<R>, rows: &[u32], ghosts: usize) -> Vec<R> {
    let stride = (8 + 2 * ghosts).pow(3);
    let mut blocks = vec![R::lit(0.0); rows.len() * COMPONENTS * stride];
    let mut scratch = GatherScratch::new(COMPONENTS);
    for (&row, values) in rows
        .iter()
        .zip(blocks.chunks_exact_mut(COMPONENTS * stride))
    {
        let mut target = GatherTarget {
            values,
            stride,
            components: COMPONENTS,
            ghosts,
        };
        gather(view, row, &mut target, &mut scratch);
    }
    blocks
}

/// With work space the threads divide the interpolation by components.
fn on_device<R: Element>(twins: &Twins, level: usize, ghosts: usize, shared: bool) -> Vec<R> {
    let (pool, tables) = (twins.pools()[1], twins.tables());
    let kernels = KERNELS.replace("GATHERED", &Gathered.path());
    let source = pool.device().program(&[Gathered], &[&kernels]);
    let module = twins.device.compile("gather", &source);
    let kernel = module.and_then(|m| m.kernel(&format!("gather_{ghosts}")));
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    let count = tables.count(level);
    let length = count * COMPONENTS * (8 + 2 * ghosts).pow(3);
    let blocks: Buffer<R> = twins.device.buffer(length).expect("memory");
    let coarse = 4 + 2 * ghosts.div_ceil(2);
    let work = COMPONENTS * (3 * coarse.pow(3) + (coarse + 2).pow(3));
    let work = usize::from(shared) * work * count;
    let work: Buffer<R> = twins.device.buffer(work).expect("memory");
    let parameters = Gathered {
        view: pool.view(tables, twins.topology(), level),
        rows: tables.rows(level).into(),
        blocks: blocks.address().into(),
        work: work.address().into(),
    };
    let shape = LaunchShape::of(count, 1);
    twins
        .device
        .launch(&kernel, shape, &parameters)
        .expect("a launch");
    let mut values = vec![R::lit(0.0); length];
    twins
        .device
        .download(&blocks, 0, &mut values)
        .expect("a download");
    values
}

/// Between two steps of the coarser level, so that its ghosts are interpolated in time.
fn gathering<R: Element>(case: &Case, device: &Device) {
    let mut twins = Twins::refined::<R>(case, device);
    for level in 0..LEVELS {
        twins.step::<R>(level, 0.3 / f64::from(1 << level));
    }
    for level in 0..LEVELS {
        let rows = twins.topology().rows(level);
        for ghosts in 1..=4 {
            let view = twins.pools()[0].ghosts::<R>(twins.topology(), level, ghosts);
            let host = on_host(&view, rows, ghosts);
            let n = 8 + 2 * ghosts;
            let place = |at: usize| {
                let (block, cell) = (at / (COMPONENTS * n * n * n), at % (n * n * n));
                let (row, place) = (rows[block], [cell % n, cell / n % n, cell / (n * n)]);
                let c = at / (n * n * n) % COMPONENTS;
                let index = twins.topology().index(row);
                format!(
                    "{:?}, level {level}, {ghosts} ghosts, patch {index:?}, component {c}, cell {place:?}",
                    case.faces
                )
            };
            let shared = (level + ghosts) % 2 == 1;
            compare(&host, &on_device(&twins, level, ghosts, shared), place);
        }
    }
}

#[test]
fn ghost_cells_are_the_same() {
    on_all(&gathering::<f64>, &gathering::<f32>);
}
