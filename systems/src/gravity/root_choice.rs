//! Choice of the root solver for `gravity.root = "auto"`.

use super::config::RootMethod;
use nestar_engine::mesh::Domain;

/// Smallest number of root cells for which cycles are chosen: 128^3. Smaller root levels are solved faster by transforms
/// on a CPU, and take a small part of the time on a GPU.
const MANY_CELLS: f64 = 2_097_152.0;
/// Largest ratio of the root cell widths along two axes for which cycles converge as fast as on cubes.
const NEARLY_CUBES: f64 = 1.1;

/// Solver of the root level and the reason for it.
pub(super) struct RootChoice {
    pub method: RootMethod,
    /// A note to the user.
    pub reason: String,
}

impl RootChoice {
    /// Chooses the solver by the root level alone, so that results do not depend on the device.
    pub fn of(domain: &Domain, periodic: bool) -> Self {
        let cells = domain.cells(0);
        let width = domain.cell_width(0);
        let [least, most] = [f64::min, f64::max].map(|of| width.into_iter().fold(width[0], of));
        let count: f64 = cells.map(f64::from).iter().product();
        let [x, y, z] = cells;
        let (method, reason) = if !periodic {
            let reason = "\"fft\" is used, which is exact for matter anywhere in an isolated domain; on a GPU \"multigrid\" is faster, for matter that keeps away from the faces";
            (RootMethod::Fft, reason.into())
        } else if most > NEARLY_CUBES * least {
            let reason = "\"fft\" is used, because root cells are not cubes, on which multigrid cycles converge slowly";
            (RootMethod::Fft, reason.into())
        } else if count < MANY_CELLS {
            let reason =
                format!("\"fft\" is used for {x} x {y} x {z} root cells, fewer than 128^3");
            (RootMethod::Fft, reason)
        } else {
            let reason = format!(
                "\"multigrid\" is used for a periodic domain of {x} x {y} x {z} root cells, at least 128^3; on a CPU \"fft\" is faster"
            );
            (RootMethod::Multigrid, reason)
        };
        Self {
            method,
            reason: format!("gravity.root = \"auto\": {reason}"),
        }
    }
}
