//! Cells of this rank around an event.
//!
//! An event gives something to the 27 cells of its level around it, whether these exist or not. Where a coarser leaf covers such a
//! cell, the leaf takes it; where the cell has children, the eight children take equal parts.

use super::kinds::OFFSETS;
use nestar_engine::data::CellAddress;
use nestar_engine::mesh::Topology;

/// A cell of this rank that takes a part of what one of the 27 cells gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TargetCell {
    /// Its level.
    pub level: usize,
    pub at: CellAddress,
    /// Number of the event.
    pub event: usize,
    /// Number of the cell among the 27, x fastest.
    pub number: usize,
    /// Child, 0 to 7, if the cell has children.
    pub child: usize,
    /// Part of what the cell gets.
    pub part: f64,
    /// Axes along which a wall mirrors the cell.
    pub mirrored: [bool; 3],
}

/// Faces of the domain and the cells of a rank.
pub(super) struct CellsAround<'a> {
    pub topology: &'a Topology,
    /// Reflecting faces, `[axis][side]`.
    pub walls: [[bool; 2]; 3],
}

impl CellsAround<'_> {
    /// Returns the cells of this rank around event number `event` in a cell of a level.
    pub fn of(&self, event: usize, level: usize, cell: [i32; 3]) -> Vec<TargetCell> {
        let mut all = Vec::with_capacity(OFFSETS.len());
        for (number, offset) in OFFSETS.iter().enumerate() {
            let beside = [0, 1, 2].map(|axis| cell[axis] + offset[axis]);
            let Some((place, mirrored)) = self.inside(level, beside) else {
                continue;
            };
            let target = TargetCell {
                level,
                at: CellAddress { row: 0, cell: 0 },
                event,
                number,
                child: 0,
                part: 1.0,
                mirrored,
            };
            self.append_at(place, target, &mut all);
        }
        all
    }

    /// Returns the cell of the domain at an index that may be one beyond its faces, with the axes along which walls mirror it. `None`
    /// beyond an open face.
    fn inside(&self, level: usize, mut cell: [i32; 3]) -> Option<([i32; 3], [bool; 3])> {
        let domain = &self.topology.domain;
        let (cells, mut mirrored) = (domain.cells(level), [false; 3]);
        for axis in 0..3 {
            let side = usize::from(cell[axis] >= cells[axis]);
            if (0..cells[axis]).contains(&cell[axis]) {
                continue;
            }
            match (domain.periodic[axis], self.walls[axis][side]) {
                (true, _) => cell[axis] = cell[axis].rem_euclid(cells[axis]),
                (false, true) => {
                    cell[axis] = cell[axis].clamp(0, cells[axis] - 1);
                    mirrored[axis] = true;
                }
                (false, false) => return None,
            }
        }
        Some((cell, mirrored))
    }

    /// Appends the own leaf cell at an index of the level of `target`, its own children, or the own coarser leaf cell that covers it.
    fn append_at(&self, cell: [i32; 3], target: TargetCell, to: &mut Vec<TargetCell>) {
        let level = target.level;
        if let Some(at) = CellAddress::in_own_leaf(self.topology, level, cell) {
            to.push(TargetCell { at, ..target });
            return;
        }
        if let Some(coarser) = level.checked_sub(1)
            && let Some(at) = CellAddress::in_own_leaf(self.topology, coarser, cell.map(|i| i >> 1))
        {
            to.push(TargetCell {
                level: coarser,
                at,
                ..target
            });
            return;
        }
        if level == self.topology.finest() {
            return;
        }
        for child in 0..8 {
            let fine = [0, 1, 2].map(|axis| 2 * cell[axis] + (child >> axis & 1));
            if let Some(at) = CellAddress::in_own_leaf(self.topology, level + 1, fine) {
                to.push(TargetCell {
                    level: level + 1,
                    at,
                    child: child as usize,
                    part: 0.125,
                    ..target
                });
            }
        }
    }
}
