//! Slopes for piecewise cubic Hermite interpolation.

/// Widths of the intervals between points, and difference quotients over them.
struct Intervals {
    widths: Vec<f64>,
    rises: Vec<f64>,
}

impl Intervals {
    fn of(points: &[f64], values: &[f64]) -> Self {
        let widths: Vec<f64> = points.windows(2).map(|x| x[1] - x[0]).collect();
        let rises = values.windows(2).zip(&widths);
        let rises = rises.map(|(y, width)| (y[1] - y[0]) / width).collect();
        Self { widths, rises }
    }

    /// Returns the intervals in reverse order.
    fn reversed(&self) -> Self {
        Self {
            widths: self.widths.iter().rev().copied().collect(),
            rises: self.rises.iter().rev().copied().collect(),
        }
    }

    /// Returns the slope at the first point of the polynomial through up to four points, by divided differences.
    fn first(&self) -> f64 {
        let (h, d) = (&self.widths, &self.rises);
        let Some(&next) = d.get(1) else {
            return d[0];
        };
        let bend = (next - d[0]) / (h[0] + h[1]);
        let parabola = d[0] - h[0] * bend;
        let Some(&third) = d.get(2) else {
            return parabola;
        };
        let twist = ((third - next) / (h[1] + h[2]) - bend) / (h[0] + h[1] + h[2]);
        parabola + h[0] * (h[0] + h[1]) * twist
    }
}

/// Returns the slopes of a cubic spline (continuous second derivative); end slopes are those of polynomials through four points.
pub fn spline(points: &[f64], values: &[f64]) -> Vec<f64> {
    let all = Intervals::of(points, values);
    let (h, d) = (&all.widths, &all.rises);
    let (last, mut slopes) = (points.len() - 1, vec![0.0; points.len()]);
    (slopes[0], slopes[last]) = (all.first(), all.reversed().first());
    // Thomas algorithm for h1 m[i-1] + 2 (h0 + h1) m[i] + h0 m[i+1] = 3 (h1 d0 + h0 d1)
    let mut factors = vec![0.0; points.len()];
    for i in 1..last {
        let (before, after) = (h[i - 1], h[i]);
        let right = 3.0 * (after * d[i - 1] + before * d[i]);
        let pivot = 2.0 * (before + after) - after * factors[i - 1];
        factors[i] = before / pivot;
        slopes[i] = (right - after * slopes[i - 1]) / pivot;
    }
    for i in (1..last).rev() {
        slopes[i] -= factors[i] * slopes[i + 1];
    }
    slopes
}

/// Returns slopes that keep the interpolant monotone between points (Fritsch & Butland 1984).
pub fn monotone(points: &[f64], values: &[f64]) -> Vec<f64> {
    let all = Intervals::of(points, values);
    let last = points.len() - 1;
    let slope = |i: usize| {
        if i == 0 {
            return end_slope(&all);
        } else if i == last {
            return end_slope(&all.reversed());
        }
        let (before, after) = (all.rises[i - 1], all.rises[i]);
        // the product of both could underflow
        if before == 0.0 || after == 0.0 || (before < 0.0) != (after < 0.0) {
            return 0.0;
        }
        let [first, second] = [all.widths[i - 1], all.widths[i]];
        let weights = [2.0 * second + first, second + 2.0 * first];
        (weights[0] + weights[1]) / (weights[0] / before + weights[1] / after)
    };
    (0..=last).map(slope).collect()
}

/// Returns the slope at the first point: that of the parabola through three points, limited to keep the cubic monotone.
fn end_slope(all: &Intervals) -> f64 {
    let (h, d) = (&all.widths, &all.rises);
    let Some(&next) = d.get(1) else {
        return d[0];
    };
    let slope = d[0] - h[0] * (next - d[0]) / (h[0] + h[1]);
    if slope * d[0] <= 0.0 {
        0.0
    } else if d[0] * next < 0.0 && slope.abs() > 3.0 * d[0].abs() {
        3.0 * d[0]
    } else {
        slope
    }
}

/// Returns the integrals of the piecewise cubic from the first point to each point.
pub fn integrals(points: &[f64], values: &[f64], slopes: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums = vec![0.0];
    for i in 1..points.len() {
        let width = points[i] - points[i - 1];
        let mean = 0.5 * (values[i - 1] + values[i]);
        let bend = (slopes[i - 1] - slopes[i]) / 12.0;
        sum += width * (mean + width * bend);
        sums.push(sum);
    }
    sums
}
