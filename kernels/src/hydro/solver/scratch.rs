//! The work space of one thread: the ghosted block of a patch and the planes that march through it.
use crate::PATCH;
use crate::hydro::{FluidMethod, Reconstruction};
use nestar_device::Real;
use std::ops::Range;

/// Elements behind each array that vector loops may read or write past its end.
const PADDING: usize = 32;
/// Alignment of every array in elements: one cache line for both precisions.
const ALIGNMENT: usize = 16;

/// Where the arrays lie in the arena, in elements. Block arrays are `[component][k][j][i]` with `width` cells an axis, plane
/// arrays `[component][j][i]` with the same row pitch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScratchLayout {
    /// Ghost layers.
    pub ghosts: usize,
    /// Cells of the ghosted block along an axis.
    pub width: usize,
    /// Five or six plus the number of scalars.
    pub components: usize,
    /// Components before the scalars.
    pub gas: usize,
    /// Components of a plane array: with the internal energy two more, for its velocity and density at faces.
    pub in_planes: usize,
    /// Elements from a component of a block to the next.
    pub block: usize,
    /// Elements from a component of a plane to the next.
    pub plane: usize,
    /// Primitive variables (block); the conserved input starts at 0.
    pub primitive: usize,
    /// Distances from the average to the lower edges, `[axis]` planes.
    pub lower: usize,
    /// Distances to the upper edges, `[axis]` planes; the same place as `lower` where the two are equal (PLM).
    pub upper: usize,
    /// States at the lower faces, `[axis]` planes.
    pub low: usize,
    /// States at the upper faces: x, y, and z of even and odd planes.
    pub high: usize,
    /// Fluxes through the lower faces: x, y, and z of even and odd planes.
    pub flux: usize,
    /// Elements of the arena.
    pub total: usize,
}

impl ScratchLayout {
    /// The layout for a method and so many scalars.
    pub fn new(method: &FluidMethod, scalars: usize) -> Self {
        let (ghosts, gas) = (method.ghosts(), method.gas_components());
        let parabolic = method.reconstruction == Reconstruction::Ppm;
        let components = gas + scalars;
        let in_planes = components + 2 * usize::from(method.dual.is_some());
        // an odd number of cache lines, or the components would share cache sets
        let aligned = |n: usize| ALIGNMENT * ((n + PADDING).div_ceil(ALIGNMENT) | 1);
        let width = PATCH + 2 * ghosts;
        let (block, plane) = (aligned(width * width * width), aligned(width * width));
        let planes = in_planes * plane;
        let primitive = components * block;
        let lower = 2 * components * block;
        let upper = if parabolic { lower + 3 * planes } else { lower };
        let low = upper + 3 * planes;
        let high = low + 3 * planes;
        let flux = high + 4 * planes;
        let total = flux + 4 * planes;
        ScratchLayout {
            ghosts,
            width,
            components,
            gas,
            in_planes,
            block,
            plane,
            primitive,
            lower,
            upper,
            low,
            high,
            flux,
            total,
        }
    }

    /// Elements of all components of one plane array.
    pub fn planes(&self) -> usize {
        self.in_planes * self.plane
    }

    /// Elements from a cell to the next along each axis of a block.
    pub fn steps(&self) -> [usize; 3] {
        [1, self.width, self.width * self.width]
    }

    /// Place, in a plane array, of the first cell of the patch.
    pub fn corner(&self) -> usize {
        self.ghosts * self.width + self.ghosts
    }

    /// Index among the four planes of `high` and `flux` that belongs to `axis` in the block's plane `k`.
    pub fn slot(&self, axis: usize, k: usize) -> usize {
        if axis < 2 { axis } else { 2 + k % 2 }
    }
}

/// Work space of one thread for patches of one method: allocated once, used for every patch.
///
/// A solver accepts only a scratch that it (or one with the same method and scalars) has made.
#[derive(Clone, Debug)]
pub struct PatchScratch<R> {
    pub(super) layout: ScratchLayout,
    data: Vec<R>,
    start: usize,
}

impl<R: Real> PatchScratch<R> {
    pub(super) fn new(layout: ScratchLayout) -> Self {
        // one: a harmless density and pressure in the cells that vector loops touch but nobody reads
        let data = vec![R::lit(1.0); layout.total + 2 * ALIGNMENT];
        let start = data
            .as_ptr()
            .align_offset(ALIGNMENT * size_of::<R>())
            .min(ALIGNMENT);
        PatchScratch {
            layout,
            data,
            start,
        }
    }

    /// The ghosted conserved state, `[component][k][j][i]`: rows of [`width`](Self::width) cells, components
    /// [`component_stride`](Self::component_stride) elements apart. Components: density, momentum x, y, z, energy, the
    /// internal energy if the method carries it, then the mass densities of the scalars. To be filled before each update.
    pub fn input(&mut self) -> &mut [R] {
        let range = self.arena(0..self.layout.components * self.layout.block);
        &mut self.data[range]
    }

    /// Elements from a component of the input to the next.
    pub fn component_stride(&self) -> usize {
        self.layout.block
    }

    /// Cells of the ghosted block along an axis: 8 and twice the ghost layers.
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.data.len() * size_of::<R>()
    }

    /// Values of an array of the arena.
    pub(super) fn values(&self, range: Range<usize>) -> &[R] {
        &self.data[self.arena(range)]
    }

    /// The same, to write.
    pub(super) fn values_mut(&mut self, range: Range<usize>) -> &mut [R] {
        let range = self.arena(range);
        &mut self.data[range]
    }

    /// Start of the arena; `layout.total` elements may be accessed.
    pub(super) fn pointer(&mut self) -> *mut R {
        self.data[self.start..].as_mut_ptr()
    }

    fn arena(&self, range: Range<usize>) -> Range<usize> {
        debug_assert!(range.end <= self.layout.total);
        self.start + range.start..self.start + range.end
    }
}
