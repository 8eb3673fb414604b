//! Multigrid for a Poisson equation on the levels of the hierarchy: red-black relaxation, residuals, and what passes between grids.
//!
//! Unknowns live in rows of 8^3 cells. Beyond a coarse-fine face a value follows from coarse and fine ones, for each face by itself
//! (Martin & Cartwright 1996), so that concave corners of a level are no question. A level's corrections live in rows of 4^3, 2^3 and 1
//! cells; beyond the level's border they are mirrored with a factor. Beyond an isolated domain values are those of who solves the root level
//! ([`exterior`]). All operations are gathers, relaxations change one colour and
//! read the other: the results do not depend on the order of patches, threads or blocks. Each operation exists as a loop over rows and
//! as a kernel (`*.cu`), both with the numbers of [`stencil`].

pub mod coarse;
pub mod composite;
pub mod device;
pub mod edges;
pub mod expansion;
pub mod exterior;
pub mod ghost_values;
pub mod level;
pub mod moments;
pub mod source;
pub mod stencil;
mod wide;

use nestar_device::Item;

/// Every device item of the solver.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    let mut items = device::parameters();
    items.extend([
        stencil::source_of::ITEM,
        stencil::laplacian::ITEM,
        stencil::diagonal::ITEM,
        stencil::relaxed::ITEM,
        stencil::weighted::ITEM,
        stencil::in_plane::ITEM,
        stencil::spline::ITEM,
        stencil::within::ITEM,
        stencil::tabled::ITEM,
        stencil::through_face::ITEM,
        stencil::mean_in_plane::ITEM,
        stencil::mismatch::ITEM,
        stencil::difference::ITEM,
        stencil::beyond_face::ITEM,
        stencil::trilinear::ITEM,
        stencil::slope::ITEM,
        stencil::lift::ITEM,
        moments::first_moment::ITEM,
        moments::coordinate::ITEM,
        moments::sum_of_line::ITEM,
        expansion::across::ITEM,
        expansion::place_of::ITEM,
        expansion::cell_around::ITEM,
        expansion::place_of_entry::ITEM,
        expansion::spline_of::ITEM,
        expansion::next_derivative::ITEM,
        crate::mesh::means::mean8::ITEM,
        nestar_device::math::sum4::ITEM,
    ]);
    items
}
