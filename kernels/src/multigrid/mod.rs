//! Multigrid for Poisson's equation on the levels of the hierarchy: red-black relaxation, residuals, restriction and
//! prolongation.
//!
//! The potential has 8^3 cells per row. Ghost values at coarse-fine faces are interpolated from coarse and fine values
//! for each face separately (Martin & Cartwright 1996). Concave corners of a level therefore need no special treatment.
//! Corrections of a level have 4^3, 2^3 and 1 cells per row; outside the level they are mirrored with a factor. Values
//! outside an isolated domain come from the solver of the root level ([`exterior`]); beyond mirrored faces they are those
//! of the mirrored cells ([`mirrors`]). All operations gather, and a
//! relaxation changes one colour while it reads the other. Results therefore do not depend on the order of patches,
//! threads or blocks. Each operation exists as a loop on the host and as a kernel (`*.cu`); both use the functions of
//! [`stencil`].

pub mod coarse;
pub mod composite;
pub mod device;
pub mod edges;
pub mod expansion;
pub mod exterior;
pub mod ghost_values;
pub mod level;
pub mod mirrors;
pub mod moments;
pub mod stencil;

use nestar_device::Item;

/// Returns all device items of the solver.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    let mut items = device::parameters();
    items.extend([
        mirrors::mirrors_beside::ITEM,
        mirrors::reflected::ITEM,
        stencil::source_of::ITEM,
        stencil::laplacian::ITEM,
        stencil::diagonal::ITEM,
        stencil::relaxed::ITEM,
        stencil::weighted_sum_3x3::ITEM,
        stencil::interpolate_in_plane::ITEM,
        stencil::spline::ITEM,
        stencil::offset_in_root_cell::ITEM,
        stencil::table_index::ITEM,
        stencil::laplacian_ghost::ITEM,
        stencil::mean_in_plane::ITEM,
        stencil::flux_mismatch::ITEM,
        stencil::difference::ITEM,
        stencil::slope_ghosts::ITEM,
        stencil::trilinear::ITEM,
        stencil::slope::ITEM,
        stencil::average_excess::ITEM,
        moments::first_moment::ITEM,
        moments::coordinate::ITEM,
        moments::sum_of_line::ITEM,
        expansion::across::ITEM,
        expansion::place_of::ITEM,
        expansion::exterior_cell::ITEM,
        expansion::place_of_entry::ITEM,
        expansion::spline_coefficient::ITEM,
        expansion::next_derivative::ITEM,
        crate::mesh::means::mean8::ITEM,
        nestar_device::math::sum4::ITEM,
    ]);
    items
}
