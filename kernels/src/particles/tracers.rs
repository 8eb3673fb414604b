//! Motion of massless tracers: with the gas velocity, or at random with the mass flux.

use nestar_device::{Real, device};

/// Returns the displacement along an axis in patch widths, for a velocity and the step over patch width. It
/// is limited to one cell, the reach of ghost cells. NaN is kept.
#[device]
#[must_use]
pub fn cut_to_cell<R: Real>(velocity: R, rate: R) -> f64 {
    let by = (velocity * rate).to_f64();
    let below = if by > 0.125f64 { 0.125f64 } else { by };
    if below < -0.125f64 { -0.125f64 } else { below }
}

/// Returns the probabilities that a tracer leaves its cell through the faces x-, x+, y-, y+, z-, z+. `after`
/// is the density after the step; `through` is the mass that crosses each face in the positive direction, per
/// cell volume.
#[device]
#[must_use]
pub fn jump_probabilities(after: f64, through: [f64; 6]) -> [f64; 6] {
    let mut out = [0.0; 6];
    let mut before = after;
    for axis in 0..3 {
        let below = through[2 * axis];
        let above = through[2 * axis + 1];
        out[2 * axis] = (-below).max(0.0);
        out[2 * axis + 1] = above.max(0.0);
        before += above - below;
    }
    for face in 0..6 {
        out[face] = if before > 0.0 {
            out[face] / before
        } else {
            0.0
        };
    }
    out
}

/// Returns the face through which a tracer leaves for a random number between 0 and 1, or 6 for none.
#[device]
#[must_use]
pub fn draw_face(chances: [f64; 6], drawn: f64) -> i32 {
    let mut left = drawn;
    for face in 0..6 {
        left -= chances[face as usize];
        if left < 0.0 {
            return face;
        }
    }
    6
}

/// Returns the child cell (bits z y x) of a tracer for a random number between 0 and 1. The probabilities are
/// proportional to the masses.
#[device]
#[must_use]
pub fn draw_child(masses: [f64; 8], drawn: f64) -> i32 {
    let mut total = 0.0;
    for child in 0..8 {
        total += masses[child as usize];
    }
    let mut left = drawn * total;
    for child in 0..7 {
        left -= masses[child as usize];
        if left < 0.0 {
            return child;
        }
    }
    7
}

/// Moves an offset to the lower (0) or upper (1) of the two cells along an axis that replace a coarse cell.
#[device]
#[must_use]
pub fn in_half(offset: u64, upper: u32) -> u64 {
    offset & 0xdfff_ffff_ffff_ffffu64 | (upper as u64) << 61
}

/// Returns a random offset in the same cell, from two random words.
#[device]
#[must_use]
pub fn random_in_cell(offset: u64, high: u32, low: u32) -> u64 {
    let within = 0x1fff_ffff_ffff_ffffu64;
    let drawn = (high as u64) << 32 | low as u64;
    offset & (0xe000_0000_0000_0000u64) | drawn & within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displacements_are_limited_to_a_cell() {
        let cut = |velocity: f64| cut_to_cell(velocity, 0.5);
        assert_eq!([0.1, 0.3, 1e300].map(cut), [0.05, 0.125, 0.125]);
        assert_eq!([-0.1, -0.3, -1e300].map(cut), [-0.05, -0.125, -0.125]);
        assert!(cut(f64::NAN).is_nan());
    }

    #[test]
    fn probabilities_are_fractions_of_the_initial_mass() {
        // density 2 after the step; 1 left at x-, 0.5 left at y+, 0.5 entered at z-: 3 before
        let chances = jump_probabilities(2.0, [-1.0, 0.0, 0.0, 0.5, 0.5, 0.0]);
        assert_eq!(chances, [1.0 / 3.0, 0.0, 0.0, 0.5 / 3.0, 0.0, 0.0]);
        assert_eq!(super::jump_probabilities(-2.0, [0.0; 6]), [0.0; 6]);
        let faces = [0.0, 0.33, 0.34, 0.49, 0.51, 0.99].map(|drawn| draw_face(chances, drawn));
        assert_eq!(faces, [0, 0, 3, 3, 6, 6]);
    }

    #[test]
    fn children_are_drawn_by_mass() {
        let masses = [1.0, 0.0, 2.0, 1.0, 0.5, 0.5, 1.0, 2.0];
        let children = [0.0, 0.12, 0.13, 0.37, 0.38, 0.61, 0.63, 0.7, 1.0]
            .map(|drawn| draw_child(masses, drawn));
        assert_eq!(children, [0, 0, 2, 2, 3, 5, 6, 6, 7]);
        for cell in 0..8u64 {
            let halves = [0, 1].map(|upper| in_half(cell << 61 | 12345, upper));
            assert_eq!(halves, [0, 1].map(|upper| (cell & 6 | upper) << 61 | 12345));
        }
    }

    #[test]
    fn random_offsets_stay_in_their_cell() {
        for cell in 0..8u64 {
            let offset = cell << 61 | 12345;
            let drawn = random_in_cell(offset, u32::MAX, 7);
            assert_eq!((drawn >> 61, drawn as u32), (cell, 7));
            assert_eq!(random_in_cell(offset, 0, 0), cell << 61);
        }
    }
}
