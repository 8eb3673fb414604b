//! Cloud shapes: the cells that a particle covers along an axis, and the fraction in each (Hockney & Eastwood
//! 1988, section 5-3).
//!
//! An offset counts 2^-64 patch widths, so that the upper three bits are the cell. Clouds are 1, 2 or 3 cells
//! wide: nearest grid point (NGP), cloud in cell (CIC), triangular-shaped cloud (TSC).

use nestar_device::{Real, device};

/// Half a cell as an offset.
#[device]
pub const HALF_CELL: u64 = 1 << 60;

/// Returns the first cell along an axis that a cloud covers, from -1 to 7.
#[device]
#[must_use]
pub fn first_cell(offset: u64, width: i32) -> i32 {
    let cell = (offset >> 61) as i32;
    let upper = offset & HALF_CELL != 0;
    if width == 1 || (width == 2 && upper) {
        cell
    } else {
        cell - 1
    }
}

/// Returns the position of a particle within its cell, in units of 2^-32 cells. For clouds 2 cells wide it
/// counts from the centre of the first covered cell.
#[device]
#[must_use]
pub fn share(offset: u64, width: i32) -> u32 {
    let shifted = if width == 2 {
        offset.wrapping_sub(HALF_CELL)
    } else {
        offset
    };
    ((shifted << 3) >> 32) as u32
}

/// Returns the centre of the interval of 2^bits that contains an offset.
#[device]
#[must_use]
pub fn centre(offset: u64, bits: i32) -> u64 {
    ((offset >> bits) << bits) | (HALF_CELL >> (61 - bits))
}

/// Returns floor(mass * share / 2^32) exactly, for masses below 2^63.
#[device]
#[must_use]
pub fn split(mass: u64, share: u32) -> u64 {
    let share = share as u64;
    (mass >> 32) * share + (((mass & 0xffff_ffff) * share) >> 32)
}

/// Splits a mass among the cells that a cloud covers along an axis. The parts add up to the mass exactly.
#[device]
#[must_use]
pub fn parts(mass: u64, share: u32, width: i32) -> [u64; 3] {
    if width == 1 {
        return [mass, 0, 0];
    }
    if width == 2 {
        let upper = split(mass, share);
        return [mass - upper, upper, 0];
    }
    let lower = split(mass, half_of_square(!share));
    let upper = split(mass, half_of_square(share));
    [lower, mass - lower - upper, upper]
}

/// Returns half the square of a share.
#[device]
#[must_use]
pub fn half_of_square(share: u32) -> u32 {
    ((share as u64 * share as u64) >> 33) as u32
}

/// Returns the fractions of [`parts`] as floating-point weights that sum to 1. They agree to the last bit of
/// a share, so that a particle on a uniform level has no self-force.
#[device]
#[must_use]
pub fn weights<R: Real>(share: u32, width: i32) -> [R; 3] {
    if width == 1 {
        return [1.0, 0.0, 0.0];
    }
    let unit = R::lit(2.328_306_436_538_696_3e-10);
    if width == 2 {
        let up = R::from_u32(share) * unit;
        return [1.0 - up, up, 0.0];
    }
    let lower = R::from_u32(half_of_square(!share)) * unit;
    let upper = R::from_u32(half_of_square(share)) * unit;
    [lower, 1.0 - lower - upper, upper]
}

/// Converts a mass to quanta, rounded down; `quanta_per_mass` is the number of quanta per unit mass.
#[device]
#[must_use]
pub fn quanta_of<R: Real>(mass: R, quanta_per_mass: f64) -> u64 {
    (mass.to_f64() * quanta_per_mass) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets at which something changes: faces, centres, one unit before and after each.
    fn edges() -> impl Iterator<Item = u64> {
        let marks = (0..16).map(|half| half << 60);
        marks.flat_map(|mark: u64| [mark.wrapping_sub(1), mark, mark + 1, mark + (1 << 31)])
    }

    fn masses() -> [u64; 8] {
        [
            0,
            1,
            2,
            7,
            (1 << 32) - 1,
            1 << 32,
            0x1234_5678_9abc_def0,
            (1 << 62) + 12345,
        ]
    }

    #[test]
    fn centres_are_those_of_cells_of_a_level_and_the_next_finer_one() {
        for (offset, cells) in edges().flat_map(|p| [(p, 8.0), (p, 16.0)]) {
            let unit = 2.0_f64.powi(-64);
            let cell = ((offset >> 12) as f64 * 4096.0 * unit * cells).floor();
            let found = centre(offset, if cells == 8.0 { 61 } else { 60 });
            assert_eq!(found as f64 * unit * cells, cell + 0.5, "{offset:x}");
        }
    }

    #[test]
    fn parts_add_up_to_the_mass() {
        for (offset, mass) in edges().flat_map(|p| masses().map(|m| (p, m))) {
            for width in 1..=3 {
                let parts = parts(mass, share(offset, width), width);
                assert_eq!(parts.iter().sum::<u64>(), mass, "{offset:x} {mass} {width}");
            }
        }
    }

    /// Compares with the definition in 128-bit arithmetic.
    #[test]
    fn clouds_match_their_definition() {
        for offset in edges() {
            let wide = i128::from(offset);
            // CIC: the lower cell is the last one whose centre is at or below the offset
            let below = (wide - (1 << 60)).div_euclid(1 << 61);
            assert_eq!(i128::from(first_cell(offset, 2)), below, "{offset:x}");
            let past = (wide - (1 << 60)).rem_euclid(1 << 61);
            assert_eq!(i128::from(share(offset, 2)), past >> 29, "{offset:x}");
            assert_eq!(first_cell(offset, 1), (offset >> 61) as i32);
            assert_eq!(first_cell(offset, 3), (offset >> 61) as i32 - 1);
            assert_eq!(i128::from(share(offset, 3)), wide.rem_euclid(1 << 61) >> 29);
        }
    }

    #[test]
    fn a_split_is_rounded_down_exactly() {
        for mass in masses() {
            for share in [0, 1, 2, 3, 1 << 31, u32::MAX - 1, u32::MAX, 0x9e37_79b9] {
                let exact = (u128::from(mass) * u128::from(share)) >> 32;
                assert_eq!(u128::from(split(mass, share)), exact, "{mass} {share}");
            }
        }
    }

    #[test]
    fn weights_are_the_parts_of_a_mass() {
        for offset in edges() {
            for width in 1..=3 {
                let share = share(offset, width);
                let parts = parts(1 << 62, share, width).map(|part| part as f64 / 2f64.powi(62));
                let weights = weights::<f64>(share, width);
                for (part, weight) in parts.iter().zip(weights) {
                    assert!(
                        (part - weight).abs() < 1e-15,
                        "{offset:x}: {parts:?} {weights:?}"
                    );
                }
                assert!((parts[0] - weights[0]).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn a_mirrored_place_has_a_mirrored_cloud() {
        for offset in edges() {
            for width in [1, 3] {
                assert_eq!(
                    first_cell(!offset, width),
                    8 - width - first_cell(offset, width)
                );
                let [a, b, c] = parts(1 << 60, share(offset, width), width);
                let mut mirrored = parts(1 << 60, share(!offset, width), width);
                mirrored[..width as usize].reverse();
                assert_eq!([a, b, c], mirrored);
            }
        }
    }

    #[test]
    fn masses_are_rounded_down_to_quanta() {
        assert_eq!(quanta_of(1.5f32, 4.0), 6);
        assert_eq!(quanta_of(0.9999f64, 1.0), 0);
        assert_eq!(quanta_of(f64::NAN, 1.0), 0);
    }
}
