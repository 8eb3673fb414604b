//! Ghost values for momentum fluxes through the faces of a patch: outside its faces and outside its edges.
//!
//! The flux through a face depends on the two cells beside it and on their neighbours across the normal. At a face
//! between patches such a neighbour may be outside an edge. If the level has no patch there, it gets the ghost value
//! that the Laplacian uses for the cell beside the face (Martin & Cartwright 1996). The value therefore belongs to a
//! cell and a direction and is the same for the two patches that share the face; a cell outside an edge has one value
//! for each of the two faces there.

use super::ghost_values::{CoarserLevel, PotentialSlopes, cell_at, face_ghosts, global, is_lower};
use super::level::{PaddedBlock, WIDE, first};
use super::mirrors::reflected;
use super::stencil::{interpolate_in_plane, laplacian_ghost, quadratic};
use crate::mesh::{direction, face_direction};
use crate::{CELLS, PATCH};
use nestar_device::math::sum3;
use nestar_device::{Real, device};

/// Interpolates quadratically between values in three coarse planes along an axis, to the lower (`upper` 0) or upper
/// half of the middle one.
#[device]
pub fn across_planes<R: Real>(planes: &[R; 3], upper: i32) -> R {
    let weights = quadratic::<R>(upper);
    sum3(
        weights[0] * planes[0],
        weights[1] * planes[1],
        weights[2] * planes[2],
    )
}

/// Returns the unit step through a face.
fn step(face: usize) -> [i32; 3] {
    let mut step = [0; 3];
    step[face / 2] = if is_lower(face) { -1 } else { 1 };
    step
}

/// Returns a position outside two faces.
fn across(faces: [usize; 2]) -> [i32; 3] {
    let mut at = [0; 3];
    for face in faces {
        at[face / 2] = if is_lower(face) { -1 } else { PATCH as i32 };
    }
    at
}

fn plus(a: [i32; 3], b: [i32; 3], times: i32) -> [i32; 3] {
    [0, 1, 2].map(|axis| a[axis] + times * b[axis])
}

/// Returns the index of a position in a block.
fn in_block([x, y, z]: [i32; 3]) -> usize {
    (x + 1) as usize + WIDE * ((y + 1) as usize + WIDE * (z + 1) as usize)
}

impl<R: Real> PotentialSlopes<'_, R> {
    /// Returns a row with the ghost values outside its faces; values outside edges are 0.
    pub(crate) fn with_face_ghosts(&self, row: u32) -> PaddedBlock<R> {
        let mut block = [R::lit(0.0); WIDE * WIDE * WIDE];
        let own = &self.view.level.row(row)[..CELLS];
        for (line, own) in own.chunks_exact(PATCH).enumerate() {
            block[first(line)..][..PATCH].copy_from_slice(own);
        }
        for face in 0..6 {
            let (axis, beside) = (face / 2, self.beside(row, face_direction(face)));
            let missing = match beside {
                Some(_) => None,
                None => Some(face_ghosts(&self.view, &self.exterior, row, face)),
            };
            for n in 0..PATCH * PATCH {
                let mut at = [if is_lower(face) { -1 } else { PATCH as i32 }; 3];
                at[(axis + 1) % 3] = (n % PATCH) as i32;
                at[(axis + 2) % 3] = (n / PATCH) as i32;
                block[in_block(at)] = match (beside, &missing) {
                    (Some(beside), _) => {
                        self.value_beside(row, beside, cell_at(at), self.width[axis])
                    }
                    (None, Some(values)) => values[n],
                    (None, None) => R::lit(f64::NAN),
                };
            }
        }
        block
    }

    /// Sets the values outside the edges of a row that fluxes along an axis read.
    pub(crate) fn fill_edge_ghosts(&self, row: u32, axis: usize, block: &mut PaddedBlock<R>) {
        for face in [2 * axis, 2 * axis + 1] {
            for other in (0..6).filter(|other| other / 2 != axis) {
                let along = 3 - axis - other / 2;
                let mut at = across([face, other]);
                for n in 0..PATCH as i32 {
                    at[along] = n;
                    let found = self.mirrored(row, at).map(|to| block[in_block(to)]);
                    block[in_block(at)] =
                        found.unwrap_or_else(|| self.edge_ghost(row, [face, other], at));
                }
            }
        }
    }

    /// Reflects a position beyond mirrored faces back into the domain; returns others unchanged.
    fn mirrored(&self, row: u32, at: [i32; 3]) -> Option<[i32; 3]> {
        let index = &self.view.index[row as usize];
        let mirrors = self.exterior.mirrors_beside(self.view.number, index);
        let to = reflected(mirrors, &at, PATCH as i32);
        (to != at).then_some(to)
    }

    /// Returns the value outside the edge of a row between two faces, as a neighbour in the plane outside the first.
    fn edge_ghost(&self, row: u32, [face, other]: [usize; 2], at: [i32; 3]) -> R {
        let both = plus(step(face), step(other), 1);
        if let Some(beside) = self.beside(row, direction(both)) {
            return self.value_beside(row, beside, cell_at(at), self.width[other / 2]);
        }
        if self.view.number == 0 {
            return self.exterior.at(0, global(self.view.index, row, at));
        }
        if let Some(beside) = self.beside(row, face_direction(face)) {
            return self.ghost_beside_patch(row, beside, at, other);
        }
        match self.beside(row, face_direction(other)) {
            Some(beside) => self.ghost_beside_patch(row, beside, at, face),
            None => self.corner_ghost(row, at, 3 - face / 2 - other / 2),
        }
    }

    fn beside(&self, row: u32, direction: usize) -> Option<u32> {
        u32::try_from(self.view.neighbours[row as usize][direction]).ok()
    }

    /// Returns the coarse cell that contains a position, relative to the parent of a row.
    fn coarse(&self, row: u32, at: [i32; 3]) -> [i32; 3] {
        let index = self.view.index[row as usize];
        [0, 1, 2].map(|axis| (PATCH as i32 / 2) * (index[axis] & 1) + at[axis].div_euclid(2))
    }

    /// Returns the ghost value outside a face of the patch beside a row, where the level has no patch.
    fn ghost_beside_patch(&self, row: u32, beside: u32, at: [i32; 3], face: usize) -> R {
        let (axis, below) = (face / 2, CoarserLevel::of(&self.view, &self.exterior));
        let parent = self.view.parent[row as usize] as u32;
        let values = below.plane(parent, self.coarse(row, at), axis);
        let plane = interpolate_in_plane(&values, at[(axis + 1) % 3] & 1, at[(axis + 2) % 3] & 1);
        let inner = [-1, -2].map(|times| {
            let inner = plus(at, step(face), times);
            self.view.level.get(beside, cell_at(inner))
        });
        laplacian_ghost(plane, &inner)
    }

    /// Returns the value at a position that a patch of the level touches only across an edge, from the coarser level
    /// only.
    fn corner_ghost(&self, row: u32, at: [i32; 3], along: usize) -> R {
        let below = CoarserLevel::of(&self.view, &self.exterior);
        let parent = self.view.parent[row as usize] as u32;
        let halves = [1, 2].map(|n| at[(along + n) % 3] & 1);
        let planes = [-1, 0, 1].map(|n| {
            let mut middle = self.coarse(row, at);
            middle[along] += n;
            interpolate_in_plane(&below.plane(parent, middle, along), halves[0], halves[1])
        });
        across_planes(&planes, at[along] & 1)
    }
}
