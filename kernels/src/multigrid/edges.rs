//! A patch with the values that fluxes of momentum through its faces read: those through its faces and those beyond its edges.
//!
//! The flux through a face is made of the two cells beside it and of the cells beside these across the normal. At a face between patches
//! such a cell may stand beyond an edge of either. Where the level has no patch there, it has the value that the Laplacian of the cell
//! beside the face sees: through that cell's own face (Martin & Cartwright 1996). So it belongs to a cell and a direction, and is the
//! same for the two patches that share the face; a cell beyond an edge has one value for each of the two faces there.

use super::ghost_values::{Below, PotentialSlopes, cell_at, global, is_lower, through};
use super::level::{Block, WIDE, first};
use super::stencil::{in_plane, quadratic, through_face};
use crate::mesh::{direction, face_direction};
use crate::{CELLS, PATCH};
use nestar_device::math::sum3;
use nestar_device::{Real, device};

/// Quadratic interpolation by the values in three coarse planes along an axis, to the lower (`upper` 0) or upper half of the middle one.
#[device]
pub fn across_planes<R: Real>(planes: &[R; 3], upper: i32) -> R {
    let weights = quadratic::<R>(upper);
    sum3(
        weights[0] * planes[0],
        weights[1] * planes[1],
        weights[2] * planes[2],
    )
}

/// One step through a face.
fn step(face: usize) -> [i32; 3] {
    let mut step = [0; 3];
    step[face / 2] = if is_lower(face) { -1 } else { 1 };
    step
}

/// A place through two faces.
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

/// Where the cell at a place stands in a block.
fn in_block([x, y, z]: [i32; 3]) -> usize {
    (x + 1) as usize + WIDE * ((y + 1) as usize + WIDE * (z + 1) as usize)
}

impl<R: Real> PotentialSlopes<'_, R> {
    /// A row with the values through its faces; beyond edges stands 0.
    pub(crate) fn faced(&self, row: u32) -> Block<R> {
        let mut block = [R::lit(0.0); WIDE * WIDE * WIDE];
        let own = &self.view.level.row(row)[..CELLS];
        for (line, own) in own.chunks_exact(PATCH).enumerate() {
            block[first(line)..][..PATCH].copy_from_slice(own);
        }
        for face in 0..6 {
            let (axis, beside) = (face / 2, self.beside(row, face_direction(face)));
            let missing = match beside {
                Some(_) => None,
                None => Some(through(&self.view, &self.exterior, row, face)),
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

    /// Sets the values beyond the edges of a row that fluxes along an axis read.
    pub(crate) fn edge(&self, row: u32, axis: usize, block: &mut Block<R>) {
        for face in [2 * axis, 2 * axis + 1] {
            for other in (0..6).filter(|other| other / 2 != axis) {
                let along = 3 - axis - other / 2;
                let mut at = across([face, other]);
                for n in 0..PATCH as i32 {
                    at[along] = n;
                    block[in_block(at)] = self.beyond_edge(row, [face, other], at);
                }
            }
        }
    }

    /// The value at a place beyond the edge of a row between two faces, seen across the normal from the plane through the first.
    fn beyond_edge(&self, row: u32, [face, other]: [usize; 2], at: [i32; 3]) -> R {
        let both = plus(step(face), step(other), 1);
        if let Some(beside) = self.beside(row, direction(both)) {
            return self.value_beside(row, beside, cell_at(at), self.width[other / 2]);
        }
        if self.view.number == 0 {
            return self.exterior.at(0, global(self.view.index, row, at));
        }
        if let Some(beside) = self.beside(row, face_direction(face)) {
            return self.through_another(row, beside, at, other);
        }
        match self.beside(row, face_direction(other)) {
            Some(beside) => self.through_another(row, beside, at, face),
            None => self.in_corner(row, at, 3 - face / 2 - other / 2),
        }
    }

    fn beside(&self, row: u32, direction: usize) -> Option<u32> {
        u32::try_from(self.view.neighbours[row as usize][direction]).ok()
    }

    /// The coarse cell around a place, as seen from the parent of a row.
    fn coarse(&self, row: u32, at: [i32; 3]) -> [i32; 3] {
        let index = self.view.index[row as usize];
        [0, 1, 2].map(|axis| (PATCH as i32 / 2) * (index[axis] & 1) + at[axis].div_euclid(2))
    }

    /// The value at a place beyond a face of the patch beside a row, beyond which the level has no patch.
    fn through_another(&self, row: u32, beside: u32, at: [i32; 3], face: usize) -> R {
        let (axis, below) = (face / 2, Below::of(&self.view, &self.exterior));
        let parent = self.view.parent[row as usize] as u32;
        let values = below.plane(parent, self.coarse(row, at), axis);
        let plane = in_plane(&values, at[(axis + 1) % 3] & 1, at[(axis + 2) % 3] & 1);
        let inner = [-1, -2].map(|times| {
            let inner = plus(at, step(face), times);
            self.view.level.get(beside, cell_at(inner))
        });
        through_face(plane, &inner)
    }

    /// The value at a place that no patch of the level touches but across an edge along an axis, by the coarser level alone.
    fn in_corner(&self, row: u32, at: [i32; 3], along: usize) -> R {
        let below = Below::of(&self.view, &self.exterior);
        let parent = self.view.parent[row as usize] as u32;
        let halves = [1, 2].map(|n| at[(along + n) % 3] & 1);
        let planes = [-1, 0, 1].map(|n| {
            let mut middle = self.coarse(row, at);
            middle[along] += n;
            in_plane(&below.plane(parent, middle, along), halves[0], halves[1])
        });
        across_planes(&planes, at[along] & 1)
    }
}
