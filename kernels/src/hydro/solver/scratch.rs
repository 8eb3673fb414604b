//! Work space of one thread: the gathered block of a patch and the planes that the passes march through.
use crate::hydro::{FluidMethod, Scheme};
use crate::{CELLS, PATCH};
use nestar_device::Real;
use std::ops::Range;

/// Elements after each array that vector loops may read or write past its end.
const PADDING: usize = 32;
/// Alignment of every array in elements: one cache line for both precisions.
const ALIGNMENT: usize = 16;

/// Offsets of the arrays in the arena, in elements. Block arrays are `[component][k][j][i]` with `width` cells per axis, plane arrays
/// `[component][j][i]` with the same row pitch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScratchLayout {
    /// Ghost layers.
    pub ghosts: usize,
    /// Cells of the gathered block along an axis.
    pub width: usize,
    /// Components of the gas plus the number of scalars.
    pub components: usize,
    /// Components before the scalars.
    pub gas: usize,
    /// Primitive variables of the gas.
    pub variables: usize,
    /// The component whose fluxes are not corrected between levels.
    pub uncorrected: Option<usize>,
    /// Components of a plane array; with dual energy two more, for velocity and internal energy density at faces.
    pub in_planes: usize,
    /// Elements between components of a block.
    pub block: usize,
    /// Elements between components of a plane.
    pub plane: usize,
    /// Primitive variables (block); the conserved input starts at 0.
    pub primitive: usize,
    /// Distances from the average to the lower edges, `[axis]` planes.
    pub lower: usize,
    /// Distances to the upper edges, `[axis]` planes; same as `lower` if the two are equal (PLM).
    pub upper: usize,
    /// States at the lower faces, see [`ScratchLayout::low_plane`].
    pub low: usize,
    /// States at the upper faces, see [`ScratchLayout::high_plane`].
    pub high: usize,
    /// Fluxes through the lower faces: x, y, and z of even and odd planes; with a field on faces x and y of even and odd planes, too.
    pub flux: usize,
    /// First fluxes of corner transport upwind through the lower faces, in even and odd planes of each axis; `None` with other schemes.
    pub first: Option<usize>,
    /// Shocks along each axis in each cell (block of three components), if shocks are detected.
    pub shocks: usize,
    /// Energy that each cell of the patch gains where the internal energy replaces the total one, with dual energy.
    pub gains: usize,
    /// Arrays of a field on faces, if there is one.
    pub transport: Option<TransportLayout>,
    /// Elements of the arena.
    pub total: usize,
}

/// Offsets of the arrays of a field on faces. All but the input have the layout of a block, with three components: a face or edge has the
/// index of the cell above it along each axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TransportLayout {
    /// The gathered faces, `[component][k][j][i]`, one more along the axis of a component.
    pub input: usize,
    /// Fields on faces before the step.
    pub faces: usize,
    /// Fields on faces after half a step.
    pub half: usize,
    /// Fields on faces after the step.
    pub next: usize,
    /// Electric fields on edges.
    pub electric: usize,
    /// Electric fields in cells, in even and odd planes of three components.
    pub in_cells: usize,
    /// Elements after the last array.
    pub end: usize,
}

impl TransportLayout {
    /// Returns the arrays from `start` on, for blocks of `width` cells along an axis, with `block` and `plane` elements between components.
    fn new(start: usize, width: usize, block: usize, plane: usize) -> Self {
        let faces = start + (3 * face_block(width)).next_multiple_of(ALIGNMENT);
        let [half, next, electric, in_cells] = [3, 6, 9, 12].map(|n| faces + n * block);
        Self {
            input: start,
            faces,
            half,
            next,
            electric,
            in_cells,
            end: in_cells + 6 * plane,
        }
    }
}

/// Returns the number of gathered faces of a component of a field on faces.
fn face_block(width: usize) -> usize {
    (width + 1) * width * width
}

impl ScratchLayout {
    /// Computes the layout for a method and a number of scalars.
    pub fn new(method: &FluidMethod, scalars: usize) -> Self {
        let (ghosts, gas) = (method.ghosts(), method.gas_components());
        let parabolic = method.is_parabolic();
        let components = gas + scalars;
        let in_planes = components + 2 * usize::from(method.dual.is_some());
        // an odd number of cache lines, so that components do not share cache sets
        let aligned = |n: usize| ALIGNMENT * ((n + PADDING).div_ceil(ALIGNMENT) | 1);
        let width = PATCH + 2 * ghosts;
        let (block, plane) = (aligned(width * width * width), aligned(width * width));
        let planes = in_planes * plane;
        let primitive = components * block;
        let lower = 2 * components * block;
        let upper = if parabolic { lower + 3 * planes } else { lower };
        let low = upper + 3 * planes;
        let corrects = method.scheme == Scheme::Ctu;
        let [of_low, of_high, of_first] = if corrects { [6, 9, 6] } else { [3, 4, 0] };
        let high = low + of_low * planes;
        let flux = high + of_high * planes;
        let of_fluxes = if method.has_face_field() { 6 } else { 4 };
        let after_fluxes = flux + of_fluxes * planes;
        let first = corrects.then_some(after_fluxes);
        let shocks = after_fluxes + of_first * planes;
        let gains = shocks + if method.cures_shocks() { 3 * block } else { 0 };
        let after = gains + CELLS * usize::from(method.dual.is_some());
        let transport = method
            .has_face_field()
            .then(|| TransportLayout::new(after, width, block, plane));
        let total = transport.map_or(after, |arrays| arrays.end);
        ScratchLayout {
            ghosts,
            width,
            components,
            gas,
            variables: method.variables_of_law(),
            uncorrected: method.cleaning_component(),
            in_planes,
            block,
            plane,
            primitive,
            lower,
            upper,
            low,
            high,
            flux,
            first,
            shocks,
            gains,
            transport,
            total,
        }
    }

    /// Returns the number of elements of all components of a plane array.
    pub fn planes(&self) -> usize {
        self.in_planes * self.plane
    }

    /// Returns the offsets between cells along each axis of a block.
    pub fn steps(&self) -> [usize; 3] {
        [1, self.width, self.width * self.width]
    }

    /// Returns the offset of the patch's first cell in a plane array.
    pub fn corner(&self) -> usize {
        self.ghosts * self.width + self.ghosts
    }

    /// Returns the index among the four planes of `high` for `axis` in the block's plane `k`.
    pub fn slot(&self, axis: usize, k: usize) -> usize {
        if axis < 2 { axis } else { 2 + k % 2 }
    }

    /// Returns the offset of the states of the cells in plane `k` at their lower faces normal to `axis`. States that are corrected are kept for
    /// two planes.
    pub fn low_plane(&self, axis: usize, k: usize) -> usize {
        let slot = match self.first {
            Some(_) => 2 * axis + k % 2,
            None => axis,
        };
        self.low + slot * self.planes()
    }

    /// Returns the offset of the states of the cells in plane `k` at their upper faces normal to `axis`. Those along z are kept for two planes,
    /// states that are corrected for three.
    pub fn high_plane(&self, axis: usize, k: usize) -> usize {
        let slot = match self.first {
            Some(_) => 3 * axis + k % 3,
            None => self.slot(axis, k),
        };
        self.high + slot * self.planes()
    }

    /// Returns the offset of the fluxes through the lower faces of plane `k` normal to `axis`.
    pub fn flux_plane(&self, axis: usize, k: usize) -> usize {
        let slot = match self.transport {
            Some(_) => 2 * axis + k % 2,
            None => self.slot(axis, k),
        };
        self.flux + slot * self.planes()
    }

    /// Returns the number of cells across a face beyond the patch that have fluxes: one with a field on faces.
    pub fn across(&self) -> usize {
        usize::from(self.transport.is_some())
    }
}

/// Work space of one thread for patches of one method; allocated once and used for every patch.
///
/// A solver accepts only a scratch that was made by it or by one with the same method and number of scalars.
#[derive(Clone, Debug)]
pub struct PatchScratch<R> {
    pub(super) layout: ScratchLayout,
    data: Vec<R>,
    start: usize,
}

impl<R: Real> PatchScratch<R> {
    pub(super) fn new(layout: ScratchLayout) -> Self {
        // 1 is a valid density and pressure for cells that vector loops touch but do not use
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

    /// Returns the gathered conserved state, `[component][k][j][i]`, to be filled before each update.
    ///
    /// Rows have [`width`](Self::width) cells, and components are [`component_stride`](Self::component_stride) elements apart: density,
    /// momentum x, y, z, the energy if the gas has one, the internal energy with dual energy, then the mass densities of the scalars.
    pub fn input(&mut self) -> &mut [R] {
        let range = self.arena(0..self.layout.components * self.layout.block);
        &mut self.data[range]
    }

    /// Returns the gathered field on faces, `[component][k][j][i]` with one more value along the axis of a component, to be filled before each
    /// update, and the elements between its components. It is empty without such a field.
    pub fn face_input(&mut self) -> (&mut [R], usize) {
        let Some(arrays) = self.layout.transport else {
            return (&mut [], 0);
        };
        let stride = face_block(self.layout.width);
        let range = self.arena(arrays.input..arrays.input + 3 * stride);
        (&mut self.data[range], stride)
    }

    /// Returns the number of elements between components of the input.
    pub fn component_stride(&self) -> usize {
        self.layout.block
    }

    /// Returns the number of cells of the gathered block along an axis: 8 plus twice the ghost layers.
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// Returns the memory used, in bytes.
    pub fn bytes(&self) -> usize {
        self.data.len() * size_of::<R>()
    }

    /// Returns the values of an array of the arena.
    pub(super) fn values(&self, range: Range<usize>) -> &[R] {
        &self.data[self.arena(range)]
    }

    /// Returns the values of an array of the arena for writing.
    pub(super) fn values_mut(&mut self, range: Range<usize>) -> &mut [R] {
        let range = self.arena(range);
        &mut self.data[range]
    }

    /// Returns the start of the arena; `layout.total` elements may be accessed.
    pub(super) fn pointer(&mut self) -> *mut R {
        self.data[self.start..].as_mut_ptr()
    }

    fn arena(&self, range: Range<usize>) -> Range<usize> {
        debug_assert!(range.end <= self.layout.total);
        self.start + range.start..self.start + range.end
    }
}
