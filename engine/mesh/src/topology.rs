//! Topology tables of the hierarchy: rows, neighbours, parents and children in plain arrays.

use super::partition::{bits_for, hilbert_key};
use bevy_ecs::prelude::*;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::{COARSER, MISSING, OUTSIDE};
use shared_hierarchy::{LEAF, SharedHierarchy};

pub mod links;
pub mod shared_hierarchy;

/// The domain, a box filled by the root grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Domain {
    /// Number of root patches along each axis.
    pub root: [i32; 3],
    /// Lower edge, code length.
    pub left_edge: [f64; 3],
    /// Upper edge, code length.
    pub right_edge: [f64; 3],
    /// `true` for each periodic axis.
    pub periodic: [bool; 3],
}

impl Domain {
    /// Returns the number of cells of the domain on `level` along each axis.
    #[must_use]
    #[inline]
    pub fn cells(&self, level: usize) -> [i32; 3] {
        self.root.map(|n| (n * PATCH as i32) << level)
    }

    /// Returns the cell width of `level` along each axis, code length.
    #[must_use]
    pub fn cell_width(&self, level: usize) -> [f64; 3] {
        let cells = self.cells(level);
        std::array::from_fn(|a| (self.right_edge[a] - self.left_edge[a]) / f64::from(cells[a]))
    }

    /// Returns the cell volume of `level`, code length cubed.
    #[must_use]
    pub fn cell_volume(&self, level: usize) -> f64 {
        self.cell_width(level).iter().product()
    }
}

/// Changes of the hierarchy by a regrid of one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows to refine, in Hilbert order.
    pub refine: Vec<u32>,
    /// Rows whose children are removed, in Hilbert order.
    pub coarsen: Vec<u32>,
}

/// Rows created by the latest regrid, in Hilbert order; empty if nothing has changed.
#[derive(Resource, Default)]
pub struct NewRows {
    /// Level of the new patches.
    pub level: usize,
    /// New rows.
    pub rows: Vec<u32>,
    /// 1 for rows of new patches on any rank; filled only if a field is face-centred.
    pub marks: Vec<u8>,
}

/// Topology of the part of the hierarchy that is stored on this rank. Tables are indexed by row; a row holds one patch
/// of any level.
///
/// Memory: about 180 bytes per row.
#[derive(Resource)]
pub struct Topology {
    /// The domain.
    pub domain: Domain,
    /// Finest level allowed.
    pub max_level: usize,
    level: Vec<i8>,
    index: Vec<[i32; 3]>,
    parent: Vec<i32>,
    first_child: Vec<i32>,
    neighbours: Vec<[i32; 27]>,
    entity: Vec<Entity>,
    levels: Vec<Vec<u32>>,
    free_octets: Vec<u32>,
    sharing: SharedHierarchy,
}

impl Topology {
    /// Creates an empty hierarchy that belongs to one rank, until [`Topology::share_among_ranks`].
    #[must_use]
    pub fn new(domain: Domain, max_level: usize) -> Self {
        Self {
            domain,
            max_level,
            level: Vec::new(),
            index: Vec::new(),
            parent: Vec::new(),
            first_child: Vec::new(),
            neighbours: Vec::new(),
            entity: Vec::new(),
            levels: vec![Vec::new(); max_level + 1],
            free_octets: Vec::new(),
            sharing: SharedHierarchy::of_one_rank(domain.root, max_level),
        }
    }

    /// Returns the number of rows of the tables, used or free: the size of all pools.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> usize {
        self.level.len()
    }

    /// Returns the number of rows of the root grid.
    #[must_use]
    pub fn root_rows(&self) -> usize {
        let patches: usize = self.domain.root.iter().map(|&n| n as usize).product();
        patches.next_multiple_of(8)
    }

    /// Returns the rows of `level` on this rank in Hilbert order; empty for levels that do not exist.
    #[must_use]
    #[inline]
    pub fn rows(&self, level: usize) -> &[u32] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Returns the finest level with patches on any rank.
    #[must_use]
    pub fn finest(&self) -> usize {
        let used = |&level: &usize| self.count(level) > 0;
        (0..=self.max_level).rev().find(used).unwrap_or(0)
    }

    /// Returns the number of patches on all levels and ranks.
    #[must_use]
    pub fn patches(&self) -> usize {
        (0..=self.max_level).map(|level| self.count(level)).sum()
    }

    /// Returns the level of a row; `None` for a free row.
    #[must_use]
    #[inline]
    pub fn level(&self, row: u32) -> Option<usize> {
        usize::try_from(self.level[row as usize]).ok()
    }

    /// Returns the position of a patch on its level, in patches.
    #[must_use]
    #[inline]
    pub fn index(&self, row: u32) -> [i32; 3] {
        self.index[row as usize]
    }

    /// Returns the row of the parent, if it is stored here.
    #[must_use]
    #[inline]
    pub fn parent(&self, row: u32) -> Option<u32> {
        u32::try_from(self.parent[row as usize]).ok()
    }

    /// Returns the first of the eight consecutive rows of the children, if they are stored here.
    /// The children are ordered by octant, bits z y x.
    #[must_use]
    #[inline]
    pub fn first_child(&self, row: u32) -> Option<u32> {
        u32::try_from(self.first_child[row as usize]).ok()
    }

    /// Returns `true` if a patch has no children.
    #[must_use]
    #[inline]
    pub fn is_leaf(&self, row: u32) -> bool {
        self.first_child[row as usize] == LEAF
    }

    /// Returns the 27 neighbours (rows or codes) with the patch itself in the middle; see `nestar_kernels::mesh`.
    #[must_use]
    #[inline]
    pub fn neighbours(&self, row: u32) -> &[i32; 27] {
        &self.neighbours[row as usize]
    }

    /// Returns the entity of a patch.
    #[must_use]
    #[inline]
    pub fn entity(&self, row: u32) -> Entity {
        self.entity[row as usize]
    }

    /// Returns all neighbour tables, by row.
    #[must_use]
    pub fn neighbour_table(&self) -> &[[i32; 27]] {
        &self.neighbours
    }

    /// Returns all parents, by row; -1 on level 0, [`MISSING`] if not stored here.
    #[must_use]
    pub fn parent_table(&self) -> &[i32] {
        &self.parent
    }

    /// Returns all patch indices, by row.
    #[must_use]
    pub fn index_table(&self) -> &[[i32; 3]] {
        &self.index
    }

    /// Returns the position of a patch on the Hilbert curve of its level.
    #[must_use]
    #[inline]
    pub fn key(&self, row: u32) -> u64 {
        let level = self.level[row as usize].max(0) as usize;
        hilbert_key(
            self.index(row).map(|i| i as u32),
            bits_for(self.domain.root, level),
        )
    }

    /// Returns the first cell of a patch in the global index space of its level.
    #[must_use]
    #[inline]
    pub fn origin(&self, row: u32) -> [i32; 3] {
        self.index(row).map(|i| i * PATCH as i32)
    }

    /// Sets the entity of patch `row`.
    #[inline]
    pub fn set_entity(&mut self, row: u32, entity: Entity) {
        self.entity[row as usize] = entity;
    }

    /// Allocates eight consecutive rows, recycled if possible.
    fn allocate_octet(&mut self) -> u32 {
        if let Some(octet) = self.free_octets.pop() {
            return octet * 8;
        }
        let first = self.level.len();
        let rows = first + 8;
        self.level.resize(rows, -1);
        self.index.resize(rows, [0; 3]);
        self.parent.resize(rows, -1);
        self.first_child.resize(rows, -1);
        self.neighbours.resize(rows, [OUTSIDE; 27]);
        self.entity.resize(rows, Entity::PLACEHOLDER);
        first as u32
    }

    fn init_row(&mut self, row: u32, level: usize, index: [i32; 3]) {
        let r = row as usize;
        self.level[r] = level as i8;
        self.index[r] = index;
        self.parent[r] = MISSING;
        self.first_child[r] = LEAF;
    }

    /// Returns the eight rows from `first` in Hilbert order.
    fn ordered_octet(&self, first: u32, bits: u32) -> [u32; 8] {
        let mut octet: [(u64, u32); 8] = std::array::from_fn(|c| {
            let row = first + c as u32;
            (hilbert_key(self.index(row).map(|i| i as u32), bits), row)
        });
        octet.sort_unstable();
        octet.map(|(_, row)| row)
    }
}

/// Returns the direction of entry `d` of a table of 27.
#[must_use]
pub const fn offset(d: usize) -> [i32; 3] {
    [
        (d % 3) as i32 - 1,
        (d / 3 % 3) as i32 - 1,
        (d / 9) as i32 - 1,
    ]
}

impl Topology {
    /// Replaces the rows of `level` by a part of them. Returns the old rows, to be put back later.
    pub fn replace_rows(&mut self, level: usize, rows: Vec<u32>) -> Vec<u32> {
        std::mem::replace(&mut self.levels[level], rows)
    }

    /// Returns the rows read by a gather for `rows` of a level, ascending.
    /// First those of the coarser level, then those of the level including `rows`.
    pub fn gather_rows(&self, rows: &[u32]) -> [Vec<u32>; 2] {
        let meets_coarser = |row: &&u32| self.neighbours(**row).contains(&COARSER);
        let coarse = rows.iter().filter(meets_coarser);
        let parents: Vec<u32> = coarse.filter_map(|&row| self.parent(row)).collect();
        [&parents[..], rows].map(|rows| {
            let around = rows.iter().flat_map(|&row| self.neighbours(row));
            let mut around: Vec<u32> = around.filter_map(|&n| u32::try_from(n).ok()).collect();
            around.sort_unstable();
            around.dedup();
            around
        })
    }

    /// Returns a bit mask of the patches of its level among the 27 around a row.
    pub fn present_around(&self, row: u32) -> u32 {
        let around = self.neighbours(row).iter().enumerate();
        around.map(|(d, &n)| u32::from(n >= 0) << d).sum()
    }
}
