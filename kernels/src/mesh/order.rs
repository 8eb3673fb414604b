//! Reductions whose result does not depend on threads, ranks or devices.
use nestar_device::device;

/// Maps a value to an integer that grows with the value, for maxima in any order. NaN maps to the largest integer.
#[device]
#[must_use]
pub fn order_key(value: f64) -> u64 {
    let bits = value.to_bits();
    if value.is_nan() {
        !0u64
    } else if bits >> 63u64 == 0u64 {
        bits | (1u64 << 63u64)
    } else {
        !bits
    }
}

/// Inverts [`order_key`].
#[must_use]
pub fn value_of_key(key: u64) -> f64 {
    match key >> 63 {
        _ if key == !0 => f64::NAN,
        0 => f64::from_bits(!key),
        _ => f64::from_bits(key & !(1 << 63)),
    }
}

/// Returns the sum of eight lanes; lane `n` is the sum of every eighth cell of a patch from cell `n` on.
#[device]
#[must_use]
pub fn sum_of_lanes(lanes: [f64; 8]) -> f64 {
    ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))
        + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
}

#[cfg(test)]
mod tests {
    use super::{order_key, value_of_key};

    #[test]
    fn keys_have_the_order_of_their_values() {
        let values = [
            f64::NEG_INFINITY,
            -3.0,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            1e-300,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ];
        let keys = values.map(order_key);
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
        for (value, key) in values.into_iter().zip(keys) {
            let same = value_of_key(key).to_bits() == value.to_bits() || value.is_nan();
            assert!(
                same && value_of_key(key).is_nan() == value.is_nan(),
                "{value}"
            );
        }
    }
}
