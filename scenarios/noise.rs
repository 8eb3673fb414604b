//! White noise from a hash of a seed and a cell.

/// Returns a number that is uniform in [-1, 1) and depends on the arguments only, so it has the same bits on every machine,
/// thread and rank. The hash is the mixing function of SplitMix64 (Steele, Lea & Flood 2014, OOPSLA, fig. 15).
#[must_use]
pub fn noise(seed: u64, cell: [i64; 3], component: u64) -> f64 {
    let mut state = mix(seed ^ 0x9E37_79B9_7F4A_7C15);
    for part in cell.map(|c| c as u64).into_iter().chain([component]) {
        state = mix(state.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ part);
    }
    (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_white() {
        let n = 24;
        let values: Vec<f64> = (0..n * n * n)
            .map(|i| noise(7, [i % n, i / n % n, i / (n * n)], 0))
            .collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / count;
        assert!(mean.abs() < 4.0 / (3.0 * count).sqrt(), "{mean}");
        assert!((variance - 1.0 / 3.0).abs() < 0.01, "{variance}");
        for lag in [1, n as usize, (n * n) as usize] {
            let pairs = values.iter().zip(&values[lag..]);
            let correlation = pairs.map(|(a, b)| a * b).sum::<f64>() / count;
            assert!(correlation.abs() < 0.012, "{lag}: {correlation}");
        }
        assert!(values.iter().all(|v| (-1.0..1.0).contains(v)));
        assert_ne!(noise(7, [1, 2, 3], 0), noise(8, [1, 2, 3], 0));
        assert_ne!(noise(7, [1, 2, 3], 0), noise(7, [1, 2, 3], 1));
        assert_ne!(noise(7, [1, 2, 3], 0), noise(7, [2, 1, 3], 0));
    }
}
