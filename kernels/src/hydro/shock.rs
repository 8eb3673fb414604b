//! Detection of shocks, whose transverse faces take the HLLE flux (Quirk 1994, Int. J. Numer. Methods Fluids 18, 555).
//!
//! Solvers that resolve contacts do not damp differences along the front of a shock that is aligned with the mesh. The front then breaks up
//! (odd-even decoupling, carbuncle). HLLE fluxes through the faces that are normal to the front damp these differences.
use nestar_device::{Lane, device};

/// Returns 1 if a shock along an axis passes through a cell, else 0.
///
/// `density` and `velocity` (along the axis) belong to the two neighbours, `pressure` to the three cells. The pressure varies by more than
/// half of its smallest value, and the flow converges. The squared velocity difference is related to the pressure difference as in a shock
/// (Rankine-Hugoniot), in contrast to a steep atmosphere.
#[device]
pub fn shock_along<R: Lane>(density: &[R; 2], velocity: &[R; 2], pressure: &[R; 3]) -> R {
    let low = pressure[0].min(pressure[2]).min(pressure[1]);
    let jump = pressure[0].max(pressure[2]).max(pressure[1]) - low;
    let near = velocity[0] - velocity[1];
    let strong = (near > 0.0) & (jump > 0.5 * low);
    let heavier = density[0].max(density[1]);
    // in this order, the products stay in the range of the momentum and of the pressure
    if strong & (near * heavier * near > 0.25 * jump) {
        1.0
    } else {
        0.0
    }
}

/// Returns the axes of the shocks in a cell as one number: the sum of 1, 2 and 4 for x, y and z; arguments are results of [`shock_along`].
#[device]
pub fn shock_axes<R: Lane>(x: R, y: R, z: R) -> R {
    x + 2.0 * y + 4.0 * z
}

/// Returns the larger of `below` and `above` after removing shocks along the normal axis, whose number is `normal` (1, 2 or 4).
///
/// The arguments are [`shock_axes`] of the cells on both sides of a face. The result is positive if the face is transverse to a shock.
#[device]
pub fn transverse<R: Lane>(below: R, above: R, normal: R) -> R {
    let first = if below == normal { 0.0 } else { below };
    let second = if above == normal { 0.0 } else { above };
    first.max(second)
}
