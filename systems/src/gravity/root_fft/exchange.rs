//! From patches to planes and back: who has which patch says nothing about who transforms its cells.

use super::grown::{Grown, Place};
use crate::spectral::Filter;
use nestar_engine::Error;
use nestar_engine::comm::{Communicator, Message, RanksError};
use nestar_kernels::{CELLS, PATCH};
use rayon::prelude::*;
use std::ops::Range;

/// Cells of one plane of a patch.
const PLANE: usize = PATCH * PATCH;

/// One solve's patches.
pub struct Exchange<'a> {
    filter: &'a Filter,
    ranks: &'a dyn Communicator,
    /// Patches of the domain along each axis.
    domain: [usize; 3],
    /// This rank's patches.
    own: Vec<[usize; 3]>,
    /// Patches of each other rank of which this one has planes, in the order in which that one has them.
    guests: Vec<Vec<[usize; 3]>>,
}

/// Consecutive planes of a patch, `[k][j][i]`.
struct Piece<'a> {
    patch: [usize; 3],
    planes: Range<usize>,
    values: &'a [f64],
}

/// Planes of a patch with its outside that a rank has, and where they begin in its message.
struct Stretch {
    rank: usize,
    start: usize,
    planes: Range<usize>,
}

impl<'a> Exchange<'a> {
    /// The patches of this rank, in units of patches.
    pub fn new(
        filter: &'a Filter,
        ranks: &'a dyn Communicator,
        patches: &[[i32; 3]],
    ) -> Result<Self, Error> {
        let domain = filter.shape().cells.map(|cells| cells / PATCH);
        let inside = |patch: &[i32; 3]| {
            let index = patch.map(|n| n as usize);
            let fits = (0..3).all(|axis| patch[axis] >= 0 && index[axis] < domain[axis]);
            let refusal = || wrong(format!("there is no patch {patch:?} among {domain:?}"));
            fits.then_some(index).ok_or_else(refusal)
        };
        Ok(Self {
            filter,
            ranks,
            domain,
            own: patches.iter().map(inside).collect::<Result<_, _>>()?,
            guests: vec![Vec::new(); ranks.size()],
        })
    }

    /// From values of the own patches to the own planes. All ranks call it.
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
        let mut pieces: Vec<Piece> = Vec::new();
        for (&patch, values) in self.own.iter().zip(source.chunks_exact(CELLS)) {
            pieces.extend(self.piece_for(self.ranks.rank(), patch, values));
        }
        let mut guests = vec![Vec::new(); self.ranks.size()];
        for (peer, message) in received.iter().enumerate() {
            let mut rest = &message[..];
            while let Some((&number, values)) = rest.split_first() {
                let patch = self.patch(number as usize);
                let planes = self.planes_of(self.ranks.rank(), patch);
                let (values, behind) = values.split_at(planes.len() * PLANE);
                pieces.push(Piece {
                    patch,
                    planes,
                    values,
                });
                guests[peer].push(patch);
                rest = behind;
            }
        }
        let planes = self.laid_out(&pieces)?;
        self.guests = guests;
        Ok(planes)
    }

    /// From the own grown planes to the cells of the own patches; the patches that touch the domain's faces also with what
    /// lies outside. All ranks call it.
    pub fn patches(&self, planes: &[f64], potential: &mut [f64]) -> Result<Vec<Grown>, Error> {
        let me = self.ranks.rank();
        let received = self.exchange(|peer| {
            let mut message = Vec::new();
            for &patch in &self.guests[peer] {
                let place = self.place(patch);
                let some = place.planes_in(&self.filter.grown_planes(me));
                self.cut(planes, &place, some, &mut message);
            }
            message
        })?;
        let places: Vec<Place> = self.own.iter().map(|&patch| self.place(patch)).collect();
        let stretches = self.stretches(&places);
        let one = |(patch, potential): (usize, &mut [f64])| {
            let place = &places[patch];
            let mut values = Vec::with_capacity(place.size().iter().product());
            for stretch in &stretches[patch] {
                if stretch.rank == me {
                    self.cut(planes, place, stretch.planes.clone(), &mut values);
                } else {
                    let message = &received[stretch.rank][stretch.start..];
                    values.extend_from_slice(&message[..place.area() * stretch.planes.len()]);
                }
            }
            inner(place, &values, potential);
            place.has_outside().then(|| Grown {
                patch,
                below: place.below,
                size: place.size(),
                values,
            })
        };
        let patches = potential.par_chunks_mut(CELLS).enumerate();
        Ok(patches.filter_map(one).collect())
    }

    /// Where the planes of each patch come from, in their order.
    fn stretches(&self, places: &[Place]) -> Vec<Vec<Stretch>> {
        let mut ends = vec![0; self.ranks.size()];
        let mut of_rank = |place: &Place, rank: usize| {
            let planes = place.planes_in(&self.filter.grown_planes(rank));
            let start = ends[rank];
            ends[rank] += place.area() * planes.len();
            let stretch = Stretch {
                rank,
                start,
                planes,
            };
            (!stretch.planes.is_empty()).then_some(stretch)
        };
        let mut of_place = |place: &Place| -> Vec<Stretch> {
            let ranks = 0..self.ranks.size();
            ranks.filter_map(|rank| of_rank(place, rank)).collect()
        };
        places.iter().map(&mut of_place).collect()
    }

    /// What each rank sends to this one, by rank; nothing from itself.
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

    /// The part of a patch that lies in the planes of a rank.
    fn piece_for<'v>(
        &self,
        rank: usize,
        patch: [usize; 3],
        values: &'v [f64],
    ) -> Option<Piece<'v>> {
        let planes = self.planes_of(rank, patch);
        let first = patch[2] * PATCH;
        let (start, end) = (planes.start - first, planes.end - first);
        (start < end).then(|| Piece {
            patch,
            planes,
            values: &values[start * PLANE..end * PLANE],
        })
    }

    /// The planes of a patch that a rank has.
    fn planes_of(&self, rank: usize, patch: [usize; 3]) -> Range<usize> {
        Place::of(patch, self.domain, 0).planes_in(&self.filter.planes(rank))
    }

    /// The own planes, `[plane][y][x]`, from pieces of patches.
    fn laid_out(&self, pieces: &[Piece]) -> Result<Vec<f64>, Error> {
        let [nx, ny, _] = self.filter.shape().cells;
        let own = self.filter.planes(self.ranks.rank());
        let mut of_planes: Vec<Vec<&Piece>> = vec![Vec::new(); own.len()];
        for piece in pieces {
            for plane in piece.planes.clone() {
                of_planes[plane - own.start].push(piece);
            }
        }
        for pieces in &of_planes {
            self.check_once(pieces)?;
        }
        let mut values = vec![0.0; own.len() * nx * ny];
        let planes = values.par_chunks_mut(nx * ny).zip(own).zip(of_planes);
        planes.for_each(|((values, plane), pieces)| {
            for piece in pieces {
                let [x, y, _] = piece.patch.map(|n| n * PATCH);
                let cells = &piece.values[(plane - piece.planes.start) * PLANE..][..PLANE];
                for (j, row) in cells.chunks_exact(PATCH).enumerate() {
                    values[(y + j) * nx + x..][..PATCH].copy_from_slice(row);
                }
            }
        });
        Ok(values)
    }

    /// Refuses a plane that has not a piece of each patch once.
    fn check_once(&self, pieces: &[&Piece]) -> Result<(), Error> {
        let [nx, ny, _] = self.domain;
        let mut there = vec![false; nx * ny];
        for piece in pieces {
            let [x, y, _] = piece.patch;
            if std::mem::replace(&mut there[y * nx + x], true) {
                return Err(wrong(format!("the patch {:?} came twice", piece.patch)));
            }
        }
        let missing = there.iter().filter(|there| !**there).count();
        if missing > 0 {
            return Err(wrong(format!("{missing} of {} patches miss", nx * ny)));
        }
        Ok(())
    }

    /// The values of a patch with its outside in some of the own grown planes, behind `values`.
    fn cut(&self, planes: &[f64], place: &Place, some: Range<usize>, values: &mut Vec<f64>) {
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

    fn place(&self, patch: [usize; 3]) -> Place {
        Place::of(patch, self.domain, self.filter.shape().margin)
    }

    /// Number of a patch in the domain, and back.
    fn number(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * self.domain[1] + y) * self.domain[0] + x
    }

    fn patch(&self, number: usize) -> [usize; 3] {
        let [nx, ny, _] = self.domain;
        [number % nx, number / nx % ny, number / nx / ny]
    }
}

/// The cells of the patch itself.
fn inner(place: &Place, values: &[f64], cells: &mut [f64]) {
    let [nx, ny, _] = place.size();
    let [x, y, z] = place.below;
    for (n, row) in cells.chunks_exact_mut(PATCH).enumerate() {
        let (j, k) = (y + n % PATCH, z + n / PATCH);
        row.copy_from_slice(&values[(k * ny + j) * nx + x..][..PATCH]);
    }
}

fn wrong(why: String) -> Error {
    Error::Setup(format!("the patches are not the root level: {why}"))
}
