//! Ghost cells beyond the physical faces of the domain.

use super::rule::{CellRule, GhostCell, InnerStates};
use super::states::MAX_COMPONENTS;
use super::{CellBlock, cell_centre};
use nestar_device::math::sum3;
use nestar_device::{Real, device};
use std::ops::Range;
use std::sync::Arc;

/// What stands beyond one face of the domain.
pub enum FaceRule<R> {
    /// The domain continues at the opposite face.
    Periodic,
    /// Zero gradient: the nearest cell's state.
    Outflow,
    /// Mirror image; components listed in [`Boundaries::normal`] change sign.
    Reflecting,
    /// A rule for every ghost cell (diode, inflow and users' own).
    Rule(Arc<dyn CellRule<R>>),
}

/// The rules of the six faces and what they need to know of the components.
pub struct Boundaries<R> {
    /// `[axis][side]`.
    pub faces: [[FaceRule<R>; 2]; 3],
    /// Per axis: the components that are normal to that axis' faces (a vector's own component), as a bit mask.
    pub normal: [u64; 3],
}

/// The mean of what two or three rules give for a value; the third counts if there are three.
#[device]
pub fn mean_of_rules<R: Real>(a: R, b: R, c: R, three: bool) -> R {
    if three {
        sum3(a, b, c) / 3.0
    } else {
        0.5 * (a + b)
    }
}

impl<R: Real> Boundaries<R> {
    /// Fills the cells of `values` (`[component][n][n][n]`, components `stride` apart) outside the domain.
    ///
    /// Where a cell lies beyond several faces, the outcome does not depend on the order of the axes. Mirrors fold first, and the
    /// mirror image is that of all that the other faces say; then the rules are asked, each about the cell's own place (folded, and
    /// within the domain where that is periodic) with the state of the nearest cell inside, and where several are, their mean
    /// holds. `state` has room for a cell.
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
            // between the faces of y and z only the ends of a line lie outside
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
                self.apply(&ghost, (asked, walls), &near, state);
                for (c, value) in state.iter().enumerate() {
                    values[c * stride + to] = *value;
                }
            }
        }
    }

    /// Layers of a block below and above the domain, but for periodic faces: there the neighbours' own cells were gathered.
    fn layers(&self, block: &CellBlock, axis: usize) -> [usize; 2] {
        let outside = block.outside(axis);
        [0, 1].map(|side| match self.faces[axis][side] {
            FaceRule::Periodic => 0,
            _ => outside[side],
        })
    }

    /// Folds a cell at the walls that it lies beyond, as bits of their axes: where rules are asked about it. A rule's wall is one
    /// where the rule says so of the place that other walls leave.
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

    /// Turns the state of the nearest cell inside the domain into that beyond it.
    fn apply(
        &self,
        ghost: &OuterCell,
        (asked, walls): ([i32; 3], u8),
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

/// The nearest cell inside the domain, among the values of a block.
struct NearestInside<'a, R> {
    values: &'a [R],
    stride: usize,
    from: usize,
}

impl<'a, R> NearestInside<'a, R> {
    /// The inner cells of a block of `n`^3 cells along an axis from there.
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

/// A cell of a block beyond faces of the domain.
struct OuterCell<'a> {
    block: &'a CellBlock,
    time: f64,
    /// Index on the level.
    at: [i32; 3],
    /// Per axis the side.
    beyond: [Option<usize>; 3],
}

impl<'a> OuterCell<'a> {
    /// The cell of a block, of which `inside` lies within the domain.
    fn new(block: &'a CellBlock, time: f64, inside: &[Range<usize>; 3], cell: [usize; 3]) -> Self {
        let side = |a: usize| {
            let outside = !inside[a].contains(&cell[a]);
            outside.then_some(usize::from(cell[a] >= inside[a].end))
        };
        Self {
            block,
            time,
            at: std::array::from_fn(|a| block.origin[a] + cell[a] as i32),
            beyond: [0, 1, 2].map(side),
        }
    }

    /// Axes and sides of the faces.
    fn faces(&self) -> impl Iterator<Item = (usize, usize)> {
        let beyond = self.beyond.into_iter().enumerate();
        beyond.filter_map(|(axis, side)| Some((axis, side?)))
    }

    /// The axes of the faces for which something holds, as bits.
    fn axes(&self, holds: impl Fn(usize, usize) -> bool) -> u8 {
        let of = |(axis, side)| u8::from(holds(axis, side)) << axis;
        self.faces().map(of).sum()
    }

    /// The cell, along axes with no such face within the domain, which is periodic there.
    fn wrapped(&self) -> [i32; 3] {
        std::array::from_fn(|a| match self.beyond[a] {
            Some(_) => self.at[a],
            None => self.at[a].rem_euclid(self.block.domain_cells[a]),
        })
    }

    /// The mirror image of an index beyond a face; a ghost region wider than what the block holds of the domain reuses its last
    /// layer.
    fn mirrored(&self, axis: usize) -> i32 {
        let i = self.at[axis];
        let (cells, first) = (self.block.domain_cells[axis], self.block.origin[axis]);
        let mirror = if i < 0 { -1 - i } else { 2 * cells - 1 - i };
        mirror.clamp(first.max(0), (first + self.block.n as i32).min(cells) - 1)
    }

    /// Where in the block the state comes from.
    fn source(&self, asked: [i32; 3], walls: u8) -> usize {
        let b = self.block;
        let index = |a: usize| {
            let inside = match self.beyond[a] {
                None => self.at[a],
                Some(_) if walls >> a & 1 == 1 => asked[a],
                Some(side) => side as i32 * (b.domain_cells[a] - 1),
            };
            (inside - b.origin[a]) as usize
        };
        index(0) + b.n * (index(1) + b.n * index(2))
    }

    /// What a rule is asked about.
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
