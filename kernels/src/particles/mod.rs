//! Particle kernels: fixed-point offsets, exact mass splitting and motion, with the same bits on every
//! machine.

pub mod cloud;
pub mod device;
pub mod field_kernels;
pub mod functions;
pub mod motion;
pub mod terms;
pub mod tracers;

use nestar_device::Item;

/// Returns all device items.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    vec![
        cloud::HALF_CELL::ITEM,
        cloud::first_cell::ITEM,
        cloud::share::ITEM,
        cloud::centre::ITEM,
        cloud::split::ITEM,
        cloud::half_of_square::ITEM,
        cloud::parts::ITEM,
        cloud::weights::ITEM,
        cloud::quanta_of::ITEM,
        motion::moved::ITEM,
        motion::in_child::ITEM,
        motion::in_parent::ITEM,
        motion::kicked::ITEM,
        motion::displacement::ITEM,
        tracers::cut_to_cell::ITEM,
        tracers::jump_probabilities::ITEM,
        tracers::draw_face::ITEM,
        tracers::draw_child::ITEM,
        tracers::in_half::ITEM,
        tracers::random_in_cell::ITEM,
        terms::terms::ITEM,
        terms::position::ITEM,
        terms::round_to_integer::ITEM,
    ]
}
