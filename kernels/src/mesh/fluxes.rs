//! Flux registers at coarse-fine faces (Berger & Colella 1989, J. Comput. Phys. 82, 64).

use crate::PATCH;
use nestar_device::{Lane, Real, device};

/// Values of one face of a patch: 8 x 8.
pub const FACE: usize = PATCH * PATCH;
/// Values of one face of a fine patch seen from the coarse side: 4 x 4.
pub const QUARTER: usize = FACE / 4;

/// Mean of four fine face values, the same under every symmetry of the square: `v` = (0,0), (1,0), (0,1), (1,1).
#[device]
pub fn mean4<R: Lane>(v: &[R; 4]) -> R {
    0.25 * ((v[0] + v[3]) + (v[1] + v[2]))
}

/// Adds `dt` times the 2x2-averaged fluxes of a fine face (`[component][8][8]`) to a register `[component][4][4]`.
pub fn accumulate_fine<R: Real>(register: &mut [R], flux: &[R], dt: R) {
    for (quarter, face) in register.chunks_exact_mut(QUARTER).zip(flux.chunks_exact(FACE)) {
        for (n, value) in quarter.iter_mut().enumerate() {
            let at = 2 * (n % 4) + 2 * PATCH * (n / 4);
            *value += dt * mean4(&[face[at], face[at + 1], face[at + PATCH], face[at + PATCH + 1]]);
        }
    }
}

/// Sets a register `[component][8][8]` to `dt` times the fluxes of a coarse face.
pub fn store_coarse<R: Real>(register: &mut [R], flux: &[R], dt: R) {
    for (value, f) in register.iter_mut().zip(flux) {
        *value = dt * *f;
    }
}

/// Offset in a component's 512 cells of the cell behind face `f` at transverse place (`fast`, `slow`).
///
/// Transverse axes (slow, fast): x faces (z, y), y faces (z, x), z faces (y, x).
#[must_use]
pub fn cell_behind(f: usize, slow: usize, fast: usize) -> usize {
    let edge = if f.is_multiple_of(2) { 0 } else { PATCH - 1 };
    match f / 2 {
        0 => edge + PATCH * (fast + PATCH * slow),
        1 => fast + PATCH * (edge + PATCH * slow),
        _ => fast + PATCH * (slow + PATCH * edge),
    }
}

/// The change of component `c` in the coarse cell behind face `f` at (`slow`, `fast`): fine minus coarse time-integrated
/// flux over the cell width. `fine` are the registers of the four fine patches on that face, by quarter (`2*slow + fast`).
#[must_use]
pub fn correction<R: Real>(
    f: usize,
    coarse: &[R],
    fine: &[&[R]; 4],
    c: usize,
    place: [usize; 2],
    inverse_width: R,
) -> R {
    let [slow, fast] = place;
    let quarter = 2 * (slow / 4) + fast / 4;
    let within = fast % 4 + 4 * (slow % 4);
    let difference = fine[quarter][c * QUARTER + within] - coarse[c * FACE + fast + PATCH * slow];
    // a larger flux through an upper face takes away, through a lower face brings in
    if f % 2 == 0 { difference * inverse_width } else { -(difference * inverse_width) }
}
