//! Values of the coarser level on faces, interpolated to fine faces within the plane of a coarse face.

use super::gather::GhostView;
use super::prolong::{between, fine_offsets, fine_value};
use super::{Centring, direction};
use crate::PATCH;
use nestar_device::Real;

/// The faces of a patch and of the patches around it, on the coarser level of a view.
#[derive(Clone, Copy)]
pub struct CoarseFaces<'a, 'b, R> {
    view: &'a GhostView<'b, R>,
    around: &'a [i32; 27],
}

impl<'a, 'b, R: Real> CoarseFaces<'a, 'b, R> {
    /// Returns the faces around the parent of `row`.
    #[must_use]
    pub fn around_parent(view: &'a GhostView<'b, R>, row: u32) -> Self {
        let parent = view.parent[row as usize] as usize;
        let around = &view.neighbours[parent];
        Self { view, around }
    }

    /// Returns the first cell of `row` on the coarser level, counted from the parent's first cell: 0 or 4 along each axis.
    #[must_use]
    pub fn corner(view: &GhostView<R>, row: u32) -> [i32; 3] {
        view.index[row as usize].map(|i| (PATCH / 2) as i32 * (i & 1))
    }

    /// Returns component `c` at `at`, interpolated in time; `None` outside the domain. `at` counts planes along the component's axis and
    /// cells along the others, from the parent's first. Each axis extends over the parent and one patch on either side.
    fn value(&self, c: usize, at: [i32; 3]) -> Option<R> {
        let size = PATCH as i32;
        let step = std::array::from_fn(|a| {
            // the planes on both sides of the parent are its own
            let beyond = size + i32::from(a == c % 3);
            i32::from(at[a] >= beyond) - i32::from(at[a] < 0)
        });
        let row = u32::try_from(self.around[direction(step)]).ok()?;
        let within = std::array::from_fn(|a| (at[a] - size * step[a]) as usize);
        let place = c * Centring::Face.values() + Centring::Face.index(c, within);
        let banks = [self.view.coarse_old, self.view.coarse_new];
        let [old, new] = banks.map(|bank| bank.row(row)[place]);
        Some(between(old, new, self.view.weight))
    }

    /// Returns the four fine faces of the coarse face `at` of component `c`, interpolated with limited slopes in its plane. The axis after
    /// the face's own is fastest. Outside the domain, faces have the value of the nearest one inside.
    ///
    /// # Panics
    /// If `at` lies outside the domain.
    #[must_use]
    pub fn fine(&self, c: usize, at: [i32; 3]) -> [R; 4] {
        let u = self.value(c, at).expect("a coarse patch covers the face");
        let near = |a: usize, step: i32| {
            let mut at = at;
            at[a] += step;
            self.value(c, at).unwrap_or(u)
        };
        let [b, e] = [(c + 1) % 3, (c + 2) % 3];
        let around = [near(b, -1), near(b, 1), near(e, -1), near(e, 1), u, u];
        let offsets = fine_offsets(u, &around, self.view.limiter.code());
        std::array::from_fn(|n| fine_value(u, &offsets, n as u32 & 1, n as u32 >> 1, 0))
    }
}
