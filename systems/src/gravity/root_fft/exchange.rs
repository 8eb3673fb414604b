//! Redistributes patches to planes for Fourier transforms, and back.

use crate::spectral::Filter;
use nestar_engine::Error;
use nestar_engine::comm::{Communicator, Message, RanksError};
use nestar_engine::mesh::parallel;
use nestar_kernels::{CELLS, PATCH};
use std::ops::Range;

/// Cells of one plane of a patch.
const PLANE: usize = PATCH * PATCH;

/// Patches of one solve.
pub struct PlaneExchange<'a> {
    filter: &'a Filter,
    ranks: &'a dyn Communicator,
    /// Patches of the domain along each axis.
    domain: [usize; 3],
    /// Patches of this rank.
    own: Vec<[usize; 3]>,
    /// Patches of each other rank with planes on this one, in the order of that rank.
    remote_patches: Vec<Vec<[usize; 3]>>,
}

/// Consecutive planes of a patch, `[k][j][i]`.
struct PatchPlanes<'a> {
    patch: [usize; 3],
    planes: Range<usize>,
    values: &'a [f64],
}

/// Planes of a padded patch on a rank, and their position in its message.
struct PlaneSpan {
    rank: usize,
    start: usize,
    planes: Range<usize>,
}

impl<'a> PlaneExchange<'a> {
    /// Creates an exchange for the patches of this rank, in units of patches.
    pub fn new(
        filter: &'a Filter,
        ranks: &'a dyn Communicator,
        patches: &[[i32; 3]],
    ) -> Result<Self, Error> {
        let domain = filter.shape().cells.map(|cells| cells / PATCH);
        let inside = |patch: &[i32; 3]| {
            let index = patch.map(|n| n as usize);
            let fits = (0..3).all(|axis| patch[axis] >= 0 && index[axis] < domain[axis]);
            let refusal =
                || invalid_patches(format!("there is no patch {patch:?} among {domain:?}"));
            fits.then_some(index).ok_or_else(refusal)
        };
        Ok(Self {
            filter,
            ranks,
            domain,
            own: patches.iter().map(inside).collect::<Result<_, _>>()?,
            remote_patches: vec![Vec::new(); ranks.size()],
        })
    }

    /// Sends values of the own patches to planes. Returns the own planes. Collective over all ranks.
    pub fn planes(&mut self, source: &[f64]) -> Result<Vec<f64>, Error> {
        let received = self.exchange(|peer| {
            let mut message = Vec::new();
            for (&patch, values) in self.own.iter().zip(source.chunks_exact(CELLS)) {
                if let Some(piece) = self.piece_for(peer, patch, values) {
                    message.push(self.number(patch) as f64);
                    message.extend_from_slice(piece.values);
                }
            }
            message
        })?;
        let mut pieces: Vec<PatchPlanes> = Vec::new();
        for (&patch, values) in self.own.iter().zip(source.chunks_exact(CELLS)) {
            pieces.extend(self.piece_for(self.ranks.rank(), patch, values));
        }
        let mut remote_patches = vec![Vec::new(); self.ranks.size()];
        for (peer, message) in received.iter().enumerate() {
            let mut rest = &message[..];
            while let Some((&number, values)) = rest.split_first() {
                let patch = self.patch(number as usize);
                let planes = self.planes_of(self.ranks.rank(), patch);
                let (values, behind) = values.split_at(planes.len() * PLANE);
                pieces.push(PatchPlanes {
                    patch,
                    planes,
                    values,
                });
                remote_patches[peer].push(patch);
                rest = behind;
            }
        }
        let planes = self.assemble_planes(&pieces)?;
        self.remote_patches = remote_patches;
        Ok(planes)
    }

    /// Sends padded planes to the cells of patches. Returns the own patches at the faces of the domain with their
    /// padding. Collective over all ranks.
    pub fn patches(
        &self,
        planes: &[f64],
        potential: &mut [f64],
    ) -> Result<Vec<PaddedPatch>, Error> {
        let me = self.ranks.rank();
        let received = self.exchange(|peer| {
            let mut message = Vec::new();
            for &patch in &self.remote_patches[peer] {
                let place = self.place(patch);
                let some = place.planes_in(&self.filter.grown_planes(me));
                self.extract(planes, &place, some, &mut message);
            }
            message
        })?;
        let places: Vec<PaddedBox> = self.own.iter().map(|&patch| self.place(patch)).collect();
        let plane_spans = self.plane_spans(&places);
        let one = |(patch, potential): (usize, &mut [f64])| {
            let place = &places[patch];
            let mut values = Vec::with_capacity(place.size().iter().product());
            for span in &plane_spans[patch] {
                if span.rank == me {
                    self.extract(planes, place, span.planes.clone(), &mut values);
                } else {
                    let message = &received[span.rank][span.start..];
                    values.extend_from_slice(&message[..place.area() * span.planes.len()]);
                }
            }
            copy_interior(place, &values, potential);
            place.has_outside().then(|| PaddedPatch {
                patch,
                below: place.below,
                size: place.size(),
                values,
            })
        };
        let mut patches: Vec<_> = potential.chunks_mut(CELLS).collect();
        let padded = parallel::map_mut(&mut patches, |n, values| one((n, values)));
        Ok(padded.into_iter().flatten().collect())
    }

    /// Returns the source of the planes of each patch, in order.
    fn plane_spans(&self, places: &[PaddedBox]) -> Vec<Vec<PlaneSpan>> {
        let mut ends = vec![0; self.ranks.size()];
        let mut of_rank = |place: &PaddedBox, rank: usize| {
            let planes = place.planes_in(&self.filter.grown_planes(rank));
            let start = ends[rank];
            ends[rank] += place.area() * planes.len();
            let span = PlaneSpan {
                rank,
                start,
                planes,
            };
            (!span.planes.is_empty()).then_some(span)
        };
        let mut of_place = |place: &PaddedBox| -> Vec<PlaneSpan> {
            let ranks = 0..self.ranks.size();
            ranks.filter_map(|rank| of_rank(place, rank)).collect()
        };
        places.iter().map(&mut of_place).collect()
    }

    /// Exchanges one message with each other rank.
    fn exchange(&self, content: impl Fn(usize) -> Vec<f64>) -> Result<Vec<Vec<f64>>, RanksError> {
        let mut received = vec![Vec::new(); self.ranks.size()];
        if self.ranks.size() == 1 {
            return Ok(received);
        }
        let peers = (0..self.ranks.size()).filter(|&peer| peer != self.ranks.rank());
        let messages = peers.map(|peer| Message {
            peer,
            bytes: bytemuck::cast_slice(&content(peer)).to_vec(),
        });
        let sends = messages.filter(|message| !message.bytes.is_empty());
        for Message { peer, bytes } in self.ranks.exchange(sends.collect())? {
            received[peer] = bytemuck::pod_collect_to_vec(&bytes);
        }
        Ok(received)
    }

    /// Returns the part of a patch that lies in the planes of a rank.
    fn piece_for<'v>(
        &self,
        rank: usize,
        patch: [usize; 3],
        values: &'v [f64],
    ) -> Option<PatchPlanes<'v>> {
        let planes = self.planes_of(rank, patch);
        let first = patch[2] * PATCH;
        let (start, end) = (planes.start - first, planes.end - first);
        (start < end).then(|| PatchPlanes {
            patch,
            planes,
            values: &values[start * PLANE..end * PLANE],
        })
    }

    /// Returns the planes of a patch on a rank.
    fn planes_of(&self, rank: usize, patch: [usize; 3]) -> Range<usize> {
        PaddedBox::of(patch, self.domain, 0).planes_in(&self.filter.planes(rank))
    }

    /// Assembles the own planes, `[plane][y][x]`, from parts of patches.
    fn assemble_planes(&self, pieces: &[PatchPlanes]) -> Result<Vec<f64>, Error> {
        let [nx, ny, _] = self.filter.shape().cells;
        let own = self.filter.planes(self.ranks.rank());
        let mut of_planes: Vec<Vec<&PatchPlanes>> = vec![Vec::new(); own.len()];
        for piece in pieces {
            for plane in piece.planes.clone() {
                of_planes[plane - own.start].push(piece);
            }
        }
        for pieces in &of_planes {
            self.check_once(pieces)?;
        }
        let mut values = vec![0.0; own.len() * nx * ny];
        parallel::for_each_chunk(&mut values, nx * ny, 1, |n, values| {
            let plane = own.start + n;
            for piece in &of_planes[n] {
                let [x, y, _] = piece.patch.map(|n| n * PATCH);
                let cells = &piece.values[(plane - piece.planes.start) * PLANE..][..PLANE];
                for (j, row) in cells.chunks_exact(PATCH).enumerate() {
                    values[(y + j) * nx + x..][..PATCH].copy_from_slice(row);
                }
            }
        });
        Ok(values)
    }

    /// Checks that a plane has one part of each patch.
    fn check_once(&self, pieces: &[&PatchPlanes]) -> Result<(), Error> {
        let [nx, ny, _] = self.domain;
        let mut there = vec![false; nx * ny];
        for piece in pieces {
            let [x, y, _] = piece.patch;
            if std::mem::replace(&mut there[y * nx + x], true) {
                return Err(invalid_patches(format!(
                    "the patch {:?} was sent twice",
                    piece.patch
                )));
            }
        }
        let missing = there.iter().filter(|there| !**there).count();
        if missing > 0 {
            return Err(invalid_patches(format!(
                "{missing} of {} patches are missing",
                nx * ny
            )));
        }
        Ok(())
    }

    /// Appends the values of a padded patch in some of the own padded planes to `values`.
    fn extract(
        &self,
        planes: &[f64],
        place: &PaddedBox,
        some: Range<usize>,
        values: &mut Vec<f64>,
    ) {
        let [nx, ny, _] = self.filter.shape().grown();
        let first = self.filter.grown_planes(self.ranks.rank()).start;
        let [x, y, _] = &place.cells;
        values.reserve(place.area() * some.len());
        for plane in some {
            for j in y.clone() {
                let row = ((plane - first) * ny + j) * nx;
                values.extend_from_slice(&planes[row + x.start..row + x.end]);
            }
        }
    }

    fn place(&self, patch: [usize; 3]) -> PaddedBox {
        PaddedBox::of(patch, self.domain, self.filter.shape().margin)
    }

    /// Returns the index of a patch in the domain.
    fn number(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * self.domain[1] + y) * self.domain[0] + x
    }

    fn patch(&self, number: usize) -> [usize; 3] {
        let [nx, ny, _] = self.domain;
        [number % nx, number / nx % ny, number / nx / ny]
    }
}

/// Copies the cells of the patch without padding.
fn copy_interior(place: &PaddedBox, values: &[f64], cells: &mut [f64]) {
    let [nx, ny, _] = place.size();
    let [x, y, z] = place.below;
    for (n, row) in cells.chunks_exact_mut(PATCH).enumerate() {
        let (j, k) = (y + n % PATCH, z + n / PATCH);
        row.copy_from_slice(&values[(k * ny + j) * nx + x..][..PATCH]);
    }
}

fn invalid_patches(why: String) -> Error {
    Error::Setup(format!("the patches are not the root level: {why}"))
}

/// Potential of a root patch at the faces of the domain, with ghost layers outside faces, edges and corners.
#[derive(Clone, Debug, PartialEq)]
pub struct PaddedPatch {
    /// Index among the given patches.
    pub patch: usize,
    /// Number of layers before the patch along each axis: the margin at a face of the domain, otherwise 0.
    pub below: [usize; 3],
    /// Number of cells along each axis, layers included.
    pub size: [usize; 3],
    /// `[k][j][i]`, layers included.
    pub values: Vec<f64>,
}

impl PaddedPatch {
    /// Returns the potential in a cell, whose index counts from the first cell of the patch (-margin to 7 + margin).
    /// Returns `None` if the cell is neither in the patch nor outside the domain.
    #[must_use]
    pub fn at(&self, cell: [i32; 3]) -> Option<f64> {
        let mut place = 0;
        for axis in [2, 1, 0] {
            let n = usize::try_from(cell[axis] + self.below[axis] as i32).ok()?;
            place = place * self.size[axis] + (n < self.size[axis]).then_some(n)?;
        }
        Some(self.values[place])
    }
}

/// Cells of a patch and of the ghost layers beside it, in a box with a margin.
#[derive(Clone, Debug)]
pub(super) struct PaddedBox {
    /// Range along each axis.
    pub cells: [Range<usize>; 3],
    /// Number of layers before the patch.
    pub below: [usize; 3],
}

impl PaddedBox {
    /// Returns the box of the patch at `index` in a domain of `patches` patches.
    pub fn of(index: [usize; 3], patches: [usize; 3], margin: usize) -> Self {
        let cells = |axis: usize| {
            let first = index[axis] == 0;
            let last = index[axis] + 1 == patches[axis];
            let start = index[axis] * PATCH + if first { 0 } else { margin };
            let end = (index[axis] + 1) * PATCH + if last { 2 * margin } else { margin };
            start..end
        };
        Self {
            cells: std::array::from_fn(cells),
            below: index.map(|index| if index == 0 { margin } else { 0 }),
        }
    }

    /// Returns the number of cells along each axis.
    pub fn size(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.cells[axis].len())
    }

    /// Returns its cells, counted from the first cell of the patch, in the order `[k][j][i]`.
    pub fn relative_cells(&self) -> impl Iterator<Item = [i32; 3]> {
        let [nx, ny, nz] = self.size();
        let below = self.below;
        (0..nx * ny * nz).map(move |n| {
            let at = [n % nx, n / nx % ny, n / (nx * ny)];
            std::array::from_fn(|axis| at[axis] as i32 - below[axis] as i32)
        })
    }

    /// Returns the number of cells of one plane.
    pub fn area(&self) -> usize {
        self.cells[0].len() * self.cells[1].len()
    }

    /// Returns `true` if there are cells outside the domain.
    pub fn has_outside(&self) -> bool {
        self.size() != [PATCH; 3]
    }

    /// Returns its planes within `planes`.
    pub fn planes_in(&self, planes: &Range<usize>) -> Range<usize> {
        let start = self.cells[2].start.max(planes.start);
        start..self.cells[2].end.min(planes.end).max(start)
    }
}
