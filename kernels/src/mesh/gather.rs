//! Gathers a patch and its ghost cells into one block.

use super::prolong::{CoarseBlock, FineCells, SlopeLimiter, between};
use super::states::{MAX_COMPONENTS, StateFunctions};
use super::{Boundaries, COARSER, CellBlock, Centring, Rows, SELF};
use crate::{CELLS, PATCH};
use nestar_device::Real;

/// Holds everything a gather reads; shared by all patches of a level.
pub struct GhostView<'a, R> {
    /// This level's rows, in the bank to read.
    pub level: Rows<'a, R>,
    /// The next coarser level's rows before its step; equal to `coarse_new` if no interpolation in time is wanted.
    pub coarse_old: Rows<'a, R>,
    /// The next coarser level's rows after its step.
    pub coarse_new: Rows<'a, R>,
    /// Weight of `coarse_new`, 0 to 1.
    pub weight: R,
    /// Per row: 27 neighbours (rows, [`COARSER`] or [`super::OUTSIDE`]), the row itself in the middle.
    pub neighbours: &'a [[i32; 27]],
    /// Per row: its parent's row, -1 on level 0.
    pub parent: &'a [i32],
    /// Per row: the patch's index on its level, in patches.
    pub index: &'a [[i32; 3]],
    /// This level's number.
    pub number: i32,
    /// Cells of the domain on this level.
    pub domain_cells: [i32; 3],
    /// Domain edges, code length.
    pub edges: [[f64; 3]; 2],
    /// Boundary conditions of the domain.
    pub boundaries: &'a Boundaries<R>,
    /// Simulation time of the values gathered.
    pub time: f64,
    /// Limiter of the interpolation.
    pub limiter: SlopeLimiter,
    /// State functions for the interpolation.
    pub states: Option<StateFunctions<R>>,
    /// Largest number of ghost layers that may be gathered: halo patches hold no further valid cells.
    pub reach: usize,
    /// Where the values lie: in cells for [`gather`], on faces for [`gather_faces`](super::face_ghosts::gather_faces).
    pub centring: Centring,
}

/// Work space of [`gather`]: a coarse block of up to 10^3 cells, its primitive variables and the state of one cell.
pub struct GatherScratch<R> {
    coarse: Vec<R>,
    primitive: Vec<R>,
    state: Vec<R>,
}

impl<R: Real> GatherScratch<R> {
    /// Allocates space for `components` components.
    #[must_use]
    pub fn new(components: usize) -> Self {
        assert!(
            components <= MAX_COMPONENTS,
            "a field has at most {MAX_COMPONENTS} components"
        );
        Self {
            coarse: vec![R::lit(0.0); components * 1000],
            primitive: vec![R::lit(0.0); components * 1000],
            state: vec![R::lit(0.0); components],
        }
    }
}

/// Largest number of ghost layers of a block.
pub const MAX_GHOSTS: usize = 4;

/// Describes a block to fill: `[component][n][n][n]` with `n = 8 + 2*ghosts`, components `stride` values apart. Values on faces have one
/// more along the axis of the component.
pub struct GatherTarget<'a, R> {
    /// The values.
    pub values: &'a mut [R],
    /// Values between two components.
    pub stride: usize,
    /// Number of components.
    pub components: usize,
    /// Ghost layers, 0 to [`MAX_GHOSTS`].
    pub ghosts: usize,
}

/// Gathers row `row` with its ghost cells.
///
/// Ghost cells come from neighbours of the level, from interpolation in space and time if the neighbour is coarser, or from the boundary
/// conditions outside the domain.
pub fn gather<R: Real>(
    view: &GhostView<R>,
    row: u32,
    target: &mut GatherTarget<R>,
    scratch: &mut GatherScratch<R>,
) {
    gather_sectors(view, row, (target, u32::MAX), scratch);
}

/// Gathers, like [`gather`], only those of the 27 patches whose bits are set in `wanted`. Other cells may be overwritten.
pub fn gather_sectors<R: Real>(
    view: &GhostView<R>,
    row: u32,
    (target, wanted): (&mut GatherTarget<R>, u32),
    scratch: &mut GatherScratch<R>,
) {
    let (ghosts, reach) = (target.ghosts, view.reach);
    assert!(
        ghosts <= reach,
        "a gather of {ghosts} ghost layers, but only {reach} may be read"
    );
    assert_eq!(view.centring, Centring::Cell, "a gather of cells");
    let around = &view.neighbours[row as usize];
    match ghosts {
        0 => copy_neighbours::<R, 0>(view, around, wanted, target),
        1 => copy_neighbours::<R, 1>(view, around, wanted, target),
        2 => copy_neighbours::<R, 2>(view, around, wanted, target),
        3 => copy_neighbours::<R, 3>(view, around, wanted, target),
        _ => copy_neighbours::<R, 4>(view, around, wanted, target),
    }
    if around.contains(&COARSER) {
        let block = coarse_block(view, row, target.ghosts);
        let coarse = coarse_cells(view, row, &block, target.components, scratch);
        debug_assert_eq!(around[SELF], row as i32);
        let missing = (0..27).filter(|&d| around[d] == COARSER && wanted >> d & 1 == 1);
        missing.for_each(|d| interpolate_sector(&coarse, sector_at(d), target));
    }
    if around.contains(&super::OUTSIDE) {
        let n = PATCH + 2 * target.ghosts;
        let origin = view.index[row as usize].map(|i| i * PATCH as i32 - target.ghosts as i32);
        let block = CellBlock {
            n,
            level: view.number,
            origin,
            domain_cells: view.domain_cells,
            left_edge: view.edges[0],
            right_edge: view.edges[1],
        };
        view.boundaries.fill(
            &block,
            view.time,
            target.values,
            target.stride,
            target.components,
            &mut scratch.state,
        );
    }
}

/// Copies the cells of wanted neighbours of the same level, one neighbour after another to access memory sequentially.
fn copy_neighbours<R: Real, const G: usize>(
    view: &GhostView<R>,
    around: &[i32; 27],
    wanted: u32,
    target: &mut GatherTarget<R>,
) {
    for d in (0..27).filter(|d| wanted >> d & 1 == 1) {
        let Ok(row) = u32::try_from(around[d]) else {
            continue;
        };
        let source = view.level.row(row);
        // the length of runs is a constant, so each compiles to a few moves
        match d % 3 {
            1 => copy_sector::<R, G, PATCH>(source, sector_at(d), target),
            _ => copy_sector::<R, G, G>(source, sector_at(d), target),
        }
    }
}

/// Copies the cells that the neighbour in direction `d` provides to a block with `G` ghost layers, in runs of `N` cells.
fn copy_sector<R: Real, const G: usize, const N: usize>(
    source: &[R],
    d: [i32; 3],
    target: &mut GatherTarget<R>,
) {
    let n = PATCH + 2 * G;
    // first cell in the neighbour, first cell in the block, number of cells
    let [x, y, z] = d.map(|d| match d {
        -1 => (PATCH - G, 0, G),
        0 => (0, G, PATCH),
        _ => (0, PATCH + G, G),
    });
    for c in 0..target.components {
        let source = &source[c * CELLS..][..CELLS];
        let out = &mut target.values[c * target.stride..][..n * n * n];
        for (k, j) in (0..z.2).flat_map(|k| (0..y.2).map(move |j| (k, j))) {
            let from = x.0 + PATCH * (y.0 + j + PATCH * (z.0 + k));
            copy_run::<R, N>(
                &mut out[x.1 + n * (y.1 + j + n * (z.1 + k))..],
                &source[from..],
            );
        }
    }
}

#[inline(always)]
fn copy_run<R: Real, const N: usize>(to: &mut [R], from: &[R]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
}

/// Describes the coarse cells for the ghosts of a patch: its own 4^3 coarse cells, those of the ghosts, and one layer for slopes.
fn coarse_block<R>(view: &GhostView<R>, row: u32, ghosts: usize) -> CellBlock {
    let margin = ghosts.div_ceil(2) + 1;
    CellBlock {
        n: PATCH / 2 + 2 * margin,
        level: view.number - 1,
        origin: view.index[row as usize].map(|i| i * (PATCH / 2) as i32 - margin as i32),
        domain_cells: view.domain_cells.map(|c| c / 2),
        left_edge: view.edges[0],
        right_edge: view.edges[1],
    }
}

/// Fills the coarse block from the parent's neighbourhood, interpolated in time.
fn fill_coarse<R: Real>(
    view: &GhostView<R>,
    row: u32,
    block: &CellBlock,
    components: usize,
    scratch: &mut GatherScratch<R>,
) {
    let parent = view.parent[row as usize] as usize;
    let around = &view.neighbours[parent];
    // position of the block in the parent's neighbourhood, whose own cells start at 8
    let start: [usize; 3] = std::array::from_fn(|a| {
        (block.origin[a] - view.index[parent][a] * PATCH as i32 + PATCH as i32) as usize
    });
    let n = block.n;
    for k in 0..n {
        for j in 0..n {
            let (z, y) = (start[2] + k, start[1] + j);
            let mut i = 0;
            while i < n {
                let x = start[0] + i;
                let length = (PATCH - x % PATCH).min(n - i);
                let source = around[9 * (z / PATCH) + 3 * (y / PATCH) + x / PATCH];
                let cell = x % PATCH + PATCH * (y % PATCH + PATCH * (z % PATCH));
                if source >= 0 {
                    blend_run(
                        view,
                        source as u32,
                        cell,
                        length,
                        &mut scratch.coarse[i + n * (j + n * k)..],
                        n,
                        components,
                    );
                }
                i += length;
            }
        }
    }
    if around.contains(&super::OUTSIDE) {
        let (coarse, state) = (&mut scratch.coarse, &mut scratch.state);
        view.boundaries
            .fill(block, view.time, coarse, n * n * n, components, state);
    }
}

fn blend_run<R: Real>(
    view: &GhostView<R>,
    row: u32,
    cell: usize,
    length: usize,
    out: &mut [R],
    n: usize,
    components: usize,
) {
    let (old, new) = (view.coarse_old.row(row), view.coarse_new.row(row));
    for c in 0..components {
        let from = c * CELLS + cell;
        let to = c * n * n * n;
        let pairs = old[from..from + length]
            .iter()
            .zip(&new[from..from + length]);
        for (value, (a, b)) in out[to..to + length].iter_mut().zip(pairs) {
            *value = between(*a, *b, view.weight);
        }
    }
}

/// Fills and returns the coarse cells around a row.
fn coarse_cells<'a, R: Real>(
    view: &GhostView<R>,
    row: u32,
    block: &CellBlock,
    components: usize,
    scratch: &'a mut GatherScratch<R>,
) -> CoarseBlock<'a, R> {
    fill_coarse(view, row, block, components, scratch);
    let stride = block.n * block.n * block.n;
    let states = &scratch.coarse[..components * stride];
    let mut primitive = states;
    if let Some(rules) = &view.states {
        scratch.primitive[..states.len()].copy_from_slice(states);
        (rules.primitive)(&mut scratch.primitive[..states.len()], stride);
        primitive = &scratch.primitive[..states.len()];
    }
    CoarseBlock {
        states,
        primitive,
        n: block.n,
        stride,
        components,
        limiter: view.limiter,
        rules: view.states,
        preserves_means: false,
    }
}

/// Returns the direction of neighbour `d` in a table of 27.
fn sector_at(d: usize) -> [i32; 3] {
    [d % 3, d / 3 % 3, d / 9].map(|d| d as i32 - 1)
}

/// Returns the coarse cells of the block along one axis that cover the ghost sector in direction `d`.
fn sector(d: i32, ghosts: usize) -> std::ops::Range<usize> {
    let reach = ghosts.div_ceil(2);
    let own = reach + 1;
    match d {
        -1 => own - reach..own,
        0 => own..own + PATCH / 2,
        _ => own + PATCH / 2..own + PATCH / 2 + reach,
    }
}

fn interpolate_sector<R: Real>(coarse: &CoarseBlock<R>, d: [i32; 3], target: &mut GatherTarget<R>) {
    let g = target.ghosts;
    let mut fine = [[R::lit(0.0); 8]; MAX_COMPONENTS];
    for k in sector(d[2], g) {
        for j in sector(d[1], g) {
            for i in sector(d[0], g) {
                coarse.refine(i + coarse.n * (j + coarse.n * k), &mut fine);
                for side in 0..8 {
                    put_fine([i, j, k], side, &fine, d, target);
                }
            }
        }
    }
}

/// Writes one fine cell of a coarse cell. With an odd number of ghost layers only half of the outermost coarse cell is used.
fn put_fine<R: Real>(
    cell: [usize; 3],
    side: usize,
    fine: &FineCells<R>,
    d: [i32; 3],
    target: &mut GatherTarget<R>,
) {
    let g = target.ghosts as i32;
    let margin = target.ghosts.div_ceil(2) as i32 + 1;
    let n = PATCH as i32 + 2 * g;
    let mut at = 0;
    for a in (0..3).rev() {
        let place = 2 * (cell[a] as i32 - margin) + (side >> a & 1) as i32 + g;
        let inside = match d[a] {
            -1 => (0..g).contains(&place),
            0 => (g..g + PATCH as i32).contains(&place),
            _ => (g + PATCH as i32..n).contains(&place),
        };
        if !inside {
            return;
        }
        at = at * n as usize + place as usize;
    }
    for (c, fine) in fine[..target.components].iter().enumerate() {
        target.values[c * target.stride + at] = fine[side];
    }
}

/// Fills a new fine row by conservative interpolation from the coarser level at one time.
///
/// # Safety
/// Nobody else may access row `row` of `view.level` meanwhile.
pub unsafe fn prolong_patch<R: Real>(
    view: &GhostView<R>,
    row: u32,
    components: usize,
    scratch: &mut GatherScratch<R>,
) {
    // SAFETY: exclusivity is the caller's contract.
    let out = unsafe { view.level.row_mut(row) };
    let block = coarse_block(view, row, 0);
    let coarse = CoarseBlock {
        preserves_means: true,
        ..coarse_cells(view, row, &block, components, scratch)
    };
    let mut target = GatherTarget {
        values: out,
        stride: CELLS,
        components,
        ghosts: 0,
    };
    interpolate_sector(&coarse, [0, 0, 0], &mut target);
}
