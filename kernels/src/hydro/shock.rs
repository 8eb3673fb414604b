//! Detection of shocks, near which faces take more dissipative fluxes.
//!
//! Solvers that resolve contacts do not damp differences along the front of a shock that is aligned with the mesh. The front then breaks up
//! (odd-even decoupling, carbuncle). HLLE fluxes through the faces that are transverse to the front damp these differences (Quirk 1994, Int.
//! J. Numer. Methods Fluids 18, 555).
//!
//! If the shock is slow relative to the mesh, this does not suffice. Where the speed of the shock changes sign along the front, the one-sided
//! flux through the front has a kink, which amplifies differences of any wavelength. Faces normal to slow shocks take a flux without the
//! kink, see [`flux_smoothed`](super::riemann::hlle::flux_smoothed), and states of first order.
use nestar_device::{Lane, device};

/// Returns 0 if no shock along an axis passes through a cell, 1 if one does, 2 if that is slow relative to the mesh.
///
/// `density` and `velocity` (along the axis) belong to the two neighbours, `pressure` to the three cells. The pressure varies by more than
/// half of its smallest value, and the flow converges. The squared velocity difference is related to the pressure difference as in a shock
/// (Rankine-Hugoniot), in contrast to a steep atmosphere. The shock is slow if the fluxes of momentum on both sides differ by less than a
/// tenth of the pressure difference. They are equal for a shock at rest. If the gas on the side of lower pressure is at rest, they differ by
/// more than the pressures of the neighbours.
#[device]
pub fn shock_along<R: Lane>(density: &[R; 2], velocity: &[R; 2], pressure: &[R; 3]) -> R {
    let low = pressure[0].min(pressure[2]).min(pressure[1]);
    let jump = pressure[0].max(pressure[2]).max(pressure[1]) - low;
    let near = velocity[0] - velocity[1];
    let strong = (near > 0.0) & (jump > 0.5 * low);
    let heavier = density[0].max(density[1]);
    // in this order, the products stay in the range of the momentum and of the pressure
    if strong & (near * heavier * near > 0.25 * jump) {
        let below = density[0] * velocity[0] * velocity[0] + pressure[0];
        let above = density[1] * velocity[1] * velocity[1] + pressure[2];
        if (below - above).abs() < 0.1 * jump {
            2.0
        } else {
            1.0
        }
    } else {
        0.0
    }
}

/// Returns a positive number if the faces of a cell that are normal to one axis take HLLE fluxes: if they are transverse to a shock or
/// normal to a slow one.
///
/// The arguments are results of [`shock_along`], for the normal axis and for the two others.
#[device]
pub fn damped<R: Lane>(normal: R, first: R, second: R) -> R {
    (normal - 1.0).max(first.max(second))
}
