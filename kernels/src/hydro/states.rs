//! What averages, corrections and interpolations know of gas.

use super::eos;
use crate::mesh::States;
use nestar_device::{Item, Real};

/// Gas: density and pressure are positive; density, velocity and pressure are interpolated; an average or a correction whose
/// pressure round-off spoils keeps density and momentum, and takes the internal energy from before.
pub struct GasStates;

impl States<5> for GasStates {
    const ITEMS: [&'static Item; 4] = [
        eos::is_physical::ITEM,
        eos::interpolated::ITEM,
        eos::from_interpolated::ITEM,
        eos::mended::ITEM,
    ];

    fn physical<R: Real>(u: &[R; 5]) -> bool {
        eos::is_physical(u)
    }

    fn primitive<R: Real>(u: &[R; 5]) -> [R; 5] {
        eos::interpolated(u)
    }

    fn conserved<R: Real>(w: &[R; 5]) -> [R; 5] {
        eos::from_interpolated(w)
    }

    fn mended<R: Real>(u: &[R; 5], w: &[R; 5]) -> [R; 5] {
        eos::mended(u, w)
    }
}
