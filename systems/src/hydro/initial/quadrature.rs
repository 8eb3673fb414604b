//! Gauss-Legendre averages over cells.

/// Sums terms independently of their order, so that symmetric states stay exactly symmetric.
pub(super) fn symmetric_sum(terms: &mut [f64]) -> f64 {
    if terms.len() == 1 {
        return terms[0];
    }
    terms.sort_unstable_by(f64::total_cmp);
    let (low, high) = terms.split_at(terms.len() / 2);
    let middle = if terms.len() % 2 == 1 { high[0] } else { 0.0 };
    low.iter()
        .zip(high.iter().rev())
        .map(|(a, b)| a + b)
        .sum::<f64>()
        + middle
}

/// Gauss-Legendre quadrature over a cell of width 1 around 0.
pub(super) struct Rule {
    /// Coordinates of the points along an axis.
    pub places: Vec<f64>,
    /// Weights of the points of a cell, x fastest.
    pub weights: Vec<f64>,
}

impl Rule {
    /// Builds the rule with `samples` points per axis, at most 4.
    pub fn new(samples: usize) -> Self {
        let (places, weights): (Vec<f64>, Vec<f64>) = match samples {
            0 | 1 => (vec![0.0], vec![1.0]),
            2 => (half(&[0.577_350_269_189_625_8]), vec![0.5; 2]),
            3 => (
                vec![-0.387_298_334_620_741_7, 0.0, 0.387_298_334_620_741_7],
                vec![5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0],
            ),
            _ => {
                let (inner, outer) = (0.339_981_043_584_856_26, 0.861_136_311_594_052_6);
                let (w_inner, w_outer) = (0.326_072_577_431_273_07, 0.173_927_422_568_726_93);
                (
                    half(&[inner, outer]),
                    vec![w_outer, w_inner, w_inner, w_outer],
                )
            }
        };
        let s = places.len();
        let weight = |n: usize| {
            let mut w = [weights[n % s], weights[n / s % s], weights[n / (s * s)]];
            w.sort_unstable_by(f64::total_cmp);
            w[0] * w[1] * w[2]
        };
        Self {
            weights: (0..s * s * s).map(weight).collect(),
            places,
        }
    }
}

/// Returns the points ±p/2 in ascending order.
fn half(positive: &[f64]) -> Vec<f64> {
    let below = positive.iter().rev().map(|p| -0.5 * p);
    below.chain(positive.iter().map(|p| 0.5 * p)).collect()
}
