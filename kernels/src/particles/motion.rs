//! Particle motion: offsets along an axis count 2^-64 patch widths; runs in single precision keep the upper
//! 32 bits. A change of patch is exact, except that the last bit is rounded when the new patch is coarser.

use nestar_device::{Real, device};

/// Moves an offset by `by` patch widths. Returns the new offset and the change of the patch, -1 to 1. The
/// displacement is rounded to 2^-`bits` widths (32 or 64 bits) and clamped below one width.
#[device]
#[must_use]
pub fn moved(offset: u64, by: f64, bits: u32) -> (u64, i32) {
    let shift = 64 - bits;
    let scale = if bits == 64 {
        1.844_674_407_370_955_2e19
    } else {
        4.294_967_296e9
    };
    let steps = ((by.abs() * scale + 0.5) as u64).min(0xffff_ffff_ffff_ffff >> shift) << shift;
    if by < 0.0 {
        let to = offset.wrapping_sub(steps);
        (to, if to > offset { -1 } else { 0 })
    } else {
        let to = offset.wrapping_add(steps);
        (to, if to < offset { 1 } else { 0 })
    }
}

/// Converts an offset to the child that contains it. Returns the child as well: 0 for the lower, 1 for the
/// upper.
#[device]
#[must_use]
pub fn in_child(offset: u64) -> (u64, u32) {
    (offset << 1, (offset >> 63) as u32)
}

/// Converts an offset in the lower (0) or upper (1) child to the parent.
#[device]
#[must_use]
pub fn in_parent(offset: u64, child: u32) -> u64 {
    offset >> 1 | (child as u64) << 63
}

/// Returns the velocity after an acceleration over a time `dt`.
#[device]
#[must_use]
pub fn kicked<R: Real>(velocity: R, acceleration: R, dt: R) -> R {
    velocity + acceleration * dt
}

/// Returns the displacement in a time `dt`, which may be negative, in units of a length. The error is of
/// third order in time.
#[device]
#[must_use]
pub fn displacement<R: Real>(velocity: R, acceleration: R, dt: R, per_length: R) -> R {
    (velocity + acceleration * (0.5 * dt)) * (dt * per_length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the absolute offset in units of 2^-64 widths, including patches.
    fn absolute((offset, patches): (u64, i32)) -> i128 {
        (i128::from(patches) << 64) + i128::from(offset)
    }

    #[test]
    fn offsets_move_by_whole_units() {
        let offsets = [
            0,
            1 << 32,
            1 << 63,
            0xffff_ffff_0000_0000u64,
            0x1234_5678_0000_0000,
        ];
        let ways = [
            0.0,
            1e-12,
            0.1,
            0.125,
            0.5,
            0.999_999,
            1e-20,
            0.3333333333333333,
        ];
        for (offset, way) in offsets.into_iter().flat_map(|p| ways.map(|w| (p, w))) {
            for bits in [32, 64] {
                let unit = 2f64.powi(bits as i32);
                let steps = ((way * unit + 0.5).floor() as i128) << (64 - bits);
                let there = absolute(moved(offset, way, bits)) - i128::from(offset);
                let back = absolute(moved(offset, -way, bits)) - i128::from(offset);
                assert_eq!(there, steps, "{offset:x} {way} {bits}");
                assert_eq!(back, -steps, "{offset:x} {way} {bits}");
            }
        }
    }

    #[test]
    fn moves_are_reversible() {
        for offset in [0u64, 77 << 32, u64::MAX << 32] {
            for way in [0.3, 1e-9, 0.99] {
                let (there, out) = moved(offset, way, 32);
                let (back, home) = moved(there, -way, 32);
                assert_eq!((back, out + home), (offset, 0));
            }
        }
    }

    #[test]
    fn displacements_are_clamped_to_one_patch() {
        for way in [1.0, 5.0, 1e300, f64::INFINITY] {
            for bits in [32, 64] {
                assert_eq!(moved(1 << 40, way, bits).1, 1);
                assert_eq!(moved(0, -way, bits).1, -1);
            }
        }
        assert_eq!(moved(1 << 40, f64::NAN, 32), (1 << 40, 0));
    }

    #[test]
    fn child_and_parent_offsets_agree() {
        for offset in [0u64, 1, 1 << 63, u64::MAX, 0x1234_5678_9abc_def0] {
            let (within, child) = in_child(offset);
            assert_eq!(in_parent(within, child), offset);
            let (up, up_child) = in_child(in_parent(offset, 1));
            assert_eq!((up | 1, up_child), (offset | 1, 1));
        }
    }

    #[test]
    fn constant_acceleration_is_exact() {
        assert_eq!(
            displacement(3.0f64, 2.0, 0.5, 4.0),
            4.0 * (3.0 * 0.5 + 2.0 * 0.125)
        );
        assert_eq!(
            displacement(3.0f64, 2.0, -0.5, 1.0),
            -3.0 * 0.5 + 2.0 * 0.125
        );
        assert_eq!(kicked(1.0f32, 2.0, 0.25), 1.5);
    }
}
