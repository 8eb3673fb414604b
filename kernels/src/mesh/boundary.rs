//! Fills ghost cells outside the domain.

use super::rule::{CellRule, GhostCell, InnerStates};
use super::states::MAX_COMPONENTS;
use super::{CellBlock, cell_centre};
use nestar_device::math::sum3;
use nestar_device::{Real, device};
use std::ops::Range;
use std::sync::Arc;

/// Defines the boundary condition of one face of the domain.
pub enum FaceRule<R> {
    /// The domain continues at the opposite face.
    Periodic,
    /// Zero gradient: the state of the nearest cell.
    Outflow,
    /// Mirror image: components listed in [`Boundaries::normal`] change sign.
    Reflecting,
    /// A rule that is evaluated for every ghost cell (diode, inflow, user rules).
    Rule(Arc<dyn CellRule<R>>),
}

/// Holds the boundary conditions of the six faces and the components that change sign in mirror images.
pub struct Boundaries<R> {
    /// `[axis][side]`.
    pub faces: [[FaceRule<R>; 2]; 3],
    /// Per axis, a bit mask of the components that are normal to its faces.
    pub normal: [u64; 3],
}

/// Returns the mean of the values of two rules, or of three if `three` is set.
#[device]
pub fn mean_of_rules<R: Real>(a: R, b: R, c: R, three: bool) -> R {
    if three {
        sum3(a, b, c) / 3.0
    } else {
        0.5 * (a + b)
    }
}

impl<R: Real> Boundaries<R> {
    /// Fills the cells of `values` (`[component][n][n][n]`, components `stride` apart) that lie outside the domain.
    ///
    /// Results do not depend on the order of the axes:
    ///
    /// - Cells are first mirrored at reflecting walls; the mirror image includes the effect of all other faces.
    /// - Rules are then evaluated at the cell's own position, mirrored, and wrapped along periodic axes.
    /// - Each rule starts from the state of the nearest inner cell. If several rules apply, the result is their mean.
    ///
    /// `state` holds at least one cell.
    pub fn fill(
        &self,
        block: &CellBlock,
        time: f64,
        values: &mut [R],
        stride: usize,
        components: usize,
        state: &mut [R],
    ) {
        let (n, state) = (block.n, &mut state[..components]);
        let outside = [0, 1, 2].map(|axis| self.layers(block, axis));
        let inside = outside.map(|[below, above]| below..n - above);
        for line in 0..n * n {
            let (j, k) = (line % n, line / n);
            // inside the y and z faces only the ends of a line lie outside
            let within = inside[1].contains(&j) && inside[2].contains(&k);
            let middle = if within { inside[0].clone() } else { n..n };
            for i in (0..middle.start).chain(middle.end..n) {
                let ghost = OuterCell::new(block, time, &inside, [i, j, k]);
                let (asked, walls) = self.fold(&ghost);
                let (from, to) = (ghost.source(asked, walls), i + n * line);
                for (c, value) in state.iter_mut().enumerate() {
                    *value = values[c * stride + from];
                }
                let near = NearestInside {
                    values,
                    stride,
                    from,
                };
                self.apply(&ghost, asked, walls, &near, state);
                for (c, value) in state.iter().enumerate() {
                    values[c * stride + to] = *value;
                }
            }
        }
    }

    /// Returns the layers of a block below and above the domain, without periodic faces, where neighbours provide the cells.
    fn layers(&self, block: &CellBlock, axis: usize) -> [usize; 2] {
        let outside = block.outside(axis);
        [0, 1].map(|side| match self.faces[axis][side] {
            FaceRule::Periodic => 0,
            _ => outside[side],
        })
    }

    /// Mirrors a cell at the reflecting walls it lies outside of. Returns the position for the rules and the axes of walls as bits. A rule
    /// acts as a wall if it says so for the position left by the other walls.
    fn fold(&self, ghost: &OuterCell) -> ([i32; 3], u8) {
        let mut asked = ghost.wrapped();
        let mut walls = 0;
        let mut more =
            ghost.axes(|axis, side| matches!(self.faces[axis][side], FaceRule::Reflecting));
        loop {
            for axis in (0..3).filter(|axis| more >> axis & 1 == 1) {
                asked[axis] = ghost.mirrored(axis);
            }
            walls |= more;
            more = ghost.axes(|axis, side| match &self.faces[axis][side] {
                FaceRule::Rule(rule) if walls >> axis & 1 == 0 => {
                    rule.is_wall(&ghost.cell(asked, axis, side))
                }
                _ => false,
            });
            if more == 0 {
                return (asked, walls);
            }
        }
    }

    /// Turns the state of the nearest inner cell into that of the ghost cell.
    fn apply(
        &self,
        ghost: &OuterCell,
        asked: [i32; 3],
        walls: u8,
        near: &NearestInside<R>,
        state: &mut [R],
    ) {
        let ask = |rule: &dyn CellRule<R>, axis, side, state: &mut [R]| {
            let cell = ghost.cell(asked, axis, side);
            rule.apply(&cell, &near.inner(ghost.block.n, axis, side), state);
        };
        let rule = |(axis, side): (usize, usize)| match &self.faces[axis][side] {
            FaceRule::Rule(rule) if walls >> axis & 1 == 0 => Some((rule, axis, side)),
            _ => None,
        };
        let mut rules = ghost.faces().filter_map(rule);
        match [rules.next(), rules.next(), rules.next()] {
            [None, ..] => {}
            [Some((rule, axis, side)), None, _] => ask(&**rule, axis, side, state),
            all => {
                let mut given = [[R::lit(0.0); MAX_COMPONENTS]; 3];
                for ((rule, axis, side), given) in all.iter().flatten().zip(&mut given) {
                    let given = &mut given[..state.len()];
                    given.copy_from_slice(state);
                    ask(&***rule, *axis, *side, given);
                }
                let [a, b, third] = &given;
                for (c, value) in state.iter_mut().enumerate() {
                    *value = mean_of_rules(a[c], b[c], third[c], all[2].is_some());
                }
            }
        }
        for axis in (0..3).filter(|axis| walls >> axis & 1 == 1) {
            for (c, value) in state.iter_mut().enumerate() {
                if self.normal[axis] >> c & 1 == 1 {
                    *value = -*value;
                }
            }
        }
    }
}

/// The nearest inner cell, as a position in the values of a block.
struct NearestInside<'a, R> {
    values: &'a [R],
    stride: usize,
    from: usize,
}

impl<'a, R> NearestInside<'a, R> {
    /// Returns the inner cells of a block of `n`^3 cells along `axis`, starting here.
    fn inner(&self, n: usize, axis: usize, side: usize) -> InnerStates<'a, R> {
        let step = n.pow(axis as u32) as isize;
        InnerStates {
            values: self.values,
            stride: self.stride,
            first: self.from,
            step: if side == 0 { step } else { -step },
        }
    }
}

/// A cell of a block that lies outside the domain.
struct OuterCell<'a> {
    block: &'a CellBlock,
    time: f64,
    /// Index on the level.
    at: [i32; 3],
    /// Per axis, the side on which the cell lies outside.
    outer_sides: [Option<usize>; 3],
}

impl<'a> OuterCell<'a> {
    /// Describes cell `cell` of a block; `inside` is the range of its cells within the domain.
    fn new(block: &'a CellBlock, time: f64, inside: &[Range<usize>; 3], cell: [usize; 3]) -> Self {
        let side = |a: usize| {
            let outside = !inside[a].contains(&cell[a]);
            outside.then_some(usize::from(cell[a] >= inside[a].end))
        };
        Self {
            block,
            time,
            at: std::array::from_fn(|a| block.origin[a] + cell[a] as i32),
            outer_sides: [0, 1, 2].map(side),
        }
    }

    /// Iterates over axis and side of the faces that the cell lies outside of.
    fn faces(&self) -> impl Iterator<Item = (usize, usize)> {
        let outer_sides = self.outer_sides.into_iter().enumerate();
        outer_sides.filter_map(|(axis, side)| Some((axis, side?)))
    }

    /// Returns the axes of those faces for which `holds` is true, as bits.
    fn axes(&self, holds: impl Fn(usize, usize) -> bool) -> u8 {
        let of = |(axis, side)| u8::from(holds(axis, side)) << axis;
        self.faces().map(of).sum()
    }

    /// Returns the cell's index, wrapped along the axes on which it does not lie outside.
    fn wrapped(&self) -> [i32; 3] {
        std::array::from_fn(|a| match self.outer_sides[a] {
            Some(_) => self.at[a],
            None => self.at[a].rem_euclid(self.block.domain_cells[a]),
        })
    }

    /// Returns the mirror image of an index. If the ghost region is wider than the part of the domain in the block, its last layer is
    /// reused.
    fn mirrored(&self, axis: usize) -> i32 {
        let i = self.at[axis];
        let (cells, first) = (self.block.domain_cells[axis], self.block.origin[axis]);
        let mirror = if i < 0 { -1 - i } else { 2 * cells - 1 - i };
        mirror.clamp(first.max(0), (first + self.block.n as i32).min(cells) - 1)
    }

    /// Returns the position in the block of the cell that provides the state.
    fn source(&self, asked: [i32; 3], walls: u8) -> usize {
        let b = self.block;
        let index = |a: usize| {
            let inside = match self.outer_sides[a] {
                None => self.at[a],
                Some(_) if walls >> a & 1 == 1 => asked[a],
                Some(side) => side as i32 * (b.domain_cells[a] - 1),
            };
            (inside - b.origin[a]) as usize
        };
        index(0) + b.n * (index(1) + b.n * index(2))
    }

    /// Returns the ghost cell as rules see it.
    fn cell(&self, asked: [i32; 3], axis: usize, side: usize) -> GhostCell {
        let b = self.block;
        let centre =
            |a: usize| cell_centre(asked[a], b.domain_cells[a], b.left_edge[a], b.right_edge[a]);
        let layers = [-1 - asked[axis], asked[axis] - b.domain_cells[axis]];
        GhostCell {
            axis,
            side,
            layer: layers[side],
            index: asked,
            centre: [0, 1, 2].map(centre),
            time: self.time,
            level: b.geometry(self.time),
        }
    }
}
