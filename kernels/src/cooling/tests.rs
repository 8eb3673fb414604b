//! Exact solutions, equilibria and floors.

use super::integration::{integrate, net_rate, relaxation_rate};
use super::laws::{PowerLaws, koyama_inutsuka};
use super::table::{rate_slice, temperature_floor, temperature_of};
use super::tabulate::MolecularWeight;
use super::*;
use nestar_device::math::{exp, ln, pow};
use nestar_device::{Precise, Real};

/// A grid of one density and metallicity.
fn grid(per_octave: u32, temperatures: [f64; 2]) -> TableGrid {
    TableGrid {
        temperatures,
        nodes: TableNodes::Uniform,
        per_octave,
        densities: None,
        densities_per_octave: 1,
        metallicities: vec![1.0],
        richest: 1.0,
        gamma: 5.0 / 3.0,
        hydrogen: 1.0,
    }
}

fn curves(
    cooling: impl Fn(f64) -> f64 + Send + Sync + 'static,
    heating: f64,
    grid: &TableGrid,
) -> CoolingTable<f64> {
    let rates = RateFunctions {
        cooling: Box::new(move |_, t, _| cooling(t)),
        heating: Box::new(move |_, _, _| heating),
        weight: MolecularWeight::Fixed(1.0),
    };
    tabulate(&rates, grid).unwrap_or_else(|why| panic!("{why}"))
}

/// Integrates in one precision.
fn walked<R: Real>(curves: &CoolingTable<f64>, theta: f64, density: f64, time: f64) -> f64 {
    let p: CoolingTable<R> = curves.precise();
    let c = rate_slice(R::lit(density), R::lit(1.0), R::lit(0.0), &p);
    integrate(R::lit(theta), R::lit(time), p.floor_theta, &c, &p)
        .theta
        .to_f64()
}

/// Numbers from 0 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.next() * (high - low)
    }
}

#[test]
fn power_laws_are_exact_after_a_cooling_time_for_any_step() {
    for exponent in [-1.0, -0.5, 0.0, 0.5, 0.999, 1.0, 1.001, 2.0, 3.0] {
        let law = move |t: f64| 1e-22 * pow(t / 1e6, exponent);
        let curves = curves(law, 0.0, &grid(8, [1e3, 1e9]));
        let (start, density) = (3.3e7, 0.1);
        let c = rate_slice(density, 1.0, 0.0, &curves);
        let cooling_time = -start / net_rate(start, &c, &curves);
        // laws with faster cooling at lower temperature end within a cooling time
        let q = 1.0 - exponent;
        let times = if q > 0.9 { 0.9 / q } else { 1.0 };
        let time = times * cooling_time;
        let exact = match q == 0.0 {
            true => start * exp(-times),
            false => start * pow(1.0 - times * q, 1.0 / q),
        };
        for steps in [1, 3, 100, 3000] {
            let step = time / f64::from(steps);
            let (mut double, mut single) = (start, start);
            for _ in 0..steps {
                double = walked::<f64>(&curves, double, density, step);
                single = walked::<f32>(&curves, single, density, step);
            }
            let error = [double, single].map(|found| (found / exact - 1.0).abs());
            assert!(
                error[0] < 1e-10 && error[1] < 5e-5,
                "exponent {exponent}, {steps} steps: {error:?}"
            );
        }
    }
}

#[test]
fn a_long_step_ends_at_the_floor_or_in_equilibrium_and_never_beyond() {
    let cold = curves(|t| 1e-22 * t / 1e6, 0.0, &grid(8, [1.37e4, 1e9]));
    assert_eq!(walked::<f64>(&cold, 1e7, 1.0, 1e9), 1.37e4);
    assert_eq!(walked::<f32>(&cold, 1e7, 1.0, 1e9), f64::from(1.37e4f32));
    assert_eq!(walked::<f64>(&cold, 1.37e4, 1.0, 1e9), 1.37e4);
    let balanced = curves(koyama_inutsuka, 2e-26, &grid(8, [5.0, 1e5]));
    let mut random = Random(3);
    for _ in 0..300 {
        let density = pow(10.0, random.between(-2.0, 3.0));
        let start = pow(10.0, random.between(0.8, 4.9));
        let end = walked::<f64>(&balanced, start, density, 1e6);
        let c = rate_slice(density, 1.0, 0.0, &balanced);
        let rest = net_rate(end, &c, &balanced) * 1e-3;
        assert!(rest.abs() < 1e-9 * end, "{start} -> {end}: {rest:e}");
        assert_eq!(walked::<f64>(&balanced, end, density, 1e6), end, "{start}");
        // intermediate times do not overshoot
        for time in [1e-4, 1e-2, 1.0] {
            let now = walked::<f64>(&balanced, start, density, time);
            let (low, high) = (start.min(end), start.max(end));
            assert!(now >= low && now <= high, "{start}, {now}, {end}");
        }
    }
}

/// Returns theta after a time in gas of one nucleus per cubic centimetre, in both precisions, and the kelvin gained by heating.
fn hotter(rates: &RateFunctions, theta: f64, time: f64) -> ([f64; 2], f64) {
    let curves = tabulate(rates, &grid(8, [1e3, 1e9])).unwrap_or_else(|why| panic!("{why}"));
    let c = rate_slice(1.0, 1.0, 0.0, &curves);
    let heated = integrate(theta, time, 1e3, &c, &curves).heated;
    let [double, single] = [walked::<f64>, walked::<f32>].map(|f| f(&curves, theta, 1.0, time));
    ([double, single], heated)
}

/// The last node of the grid.
const TOP: f64 = 1.875 * 536_870_912.0;

#[test]
fn heating_goes_on_beyond_the_last_node_as_it_ends() {
    let rate = 1e-19 * grid(8, [1e3, 1e9]).scale();
    let starts = [0.5e9, 0.97e9, TOP, 1.2e9, 1e10, 3e11];
    let close = |found: ([f64; 2], f64), exact: f64, case: &str| {
        let error = found.0.map(|theta| (theta / exact - 1.0).abs());
        // a power law extrapolates far from its two nodes
        assert!(error[0] < 1e-11 && error[1] < 5e-5, "{case}: {error:?}");
    };
    for start in starts {
        for exponent in [-1.0, 0.0, 0.5, 1.0, 1.5] {
            let rates = RateFunctions {
                cooling: Box::new(|_, _, _| 0.0),
                heating: Box::new(move |_, t, _| 1e-19 * pow(t / 1e9, exponent)),
                weight: MolecularWeight::Fixed(1.0),
            };
            for times in [1e-3, 0.3, 1.5] {
                let time = times * start / (rate * pow(start / 1e9, exponent));
                let q = 1.0 - exponent;
                let exact = match q == 0.0 {
                    true => start * exp(times),
                    false => start * pow(1.0 + times * q, 1.0 / q),
                };
                let case = format!("from {start} by a power of {exponent}, {times}");
                close(hotter(&rates, start, time), exact, &case);
            }
        }
        // half of the heating remains, and all of it is counted
        let rates = RateFunctions {
            cooling: Box::new(|_, _, _| 0.5e-19),
            heating: Box::new(|_, _, _| 1e-19),
            weight: MolecularWeight::Fixed(1.0),
        };
        let time = start / rate;
        let found = hotter(&rates, start, time);
        assert!((found.1 / start - 1.0).abs() < 1e-12, "{}", found.1);
        close(found, 1.5 * start, "a line");
    }
}

#[test]
fn gas_beyond_a_table_that_ends_above_an_unstable_balance_grows_hotter() {
    let rates = RateFunctions {
        cooling: Box::new(|_, t, _| if t < TOP { 2e-19 } else { 0.0 }),
        heating: Box::new(|_, _, _| 1e-19),
        weight: MolecularWeight::Fixed(1.0),
    };
    let (low, scale) = (TOP * 14.0 / 15.0, grid(8, [1e3, 1e9]).scale());
    let (root, slope) = (0.5 * (low + TOP), 2e-19 * scale / (TOP - low));
    for start in [root + 1e6, TOP, 1e10] {
        let (found, _) = hotter(&rates, start, 1.0 / slope);
        let exact = root + (start - root) * exp(1.0);
        let error = found.map(|theta| (theta / exact - 1.0).abs());
        assert!(error[0] < 1e-12 && error[1] < 1e-5, "{start}: {error:?}");
    }
}

/// Returns theta after a time by a Runge-Kutta method whose steps do not cross nodes.
fn integrated(curves: &CoolingTable<f64>, theta: f64, density: f64, time: f64) -> f64 {
    let c = rate_slice(density, 1.0, 0.0, curves);
    let slope = |y: f64| net_rate(exp(y), &c, curves) * exp(-y);
    let stepped = |y: f64, step: f64| {
        let a = slope(y);
        let b = slope(y + 0.5 * step * a);
        let d = slope(y + 0.5 * step * b);
        let e = slope(y + step * d);
        y + step * (a + 2.0 * b + 2.0 * d + e) / 6.0
    };
    let nodes: Vec<f64> = (0..curves.nodes.len())
        .map(|k| ln(curves.nodes.at(k)))
        .collect();
    let (mut y, mut left) = (ln(theta), time);
    while left > 0.0 {
        let mut step = left
            .min(2e-3 / slope(y).abs().max(1e-300))
            .min(time / 300.0);
        let to = stepped(y, step);
        let crossed = |&&node: &&f64| (node - y) * (node - to) < 0.0 && (node - y).abs() > 1e-14;
        let mut end = to;
        if let Some(&node) = nodes.iter().find(crossed) {
            let (mut low, mut high) = (0.0, step);
            for _ in 0..60 {
                step = 0.5 * (low + high);
                match (stepped(y, step) - node) * (y - node) > 0.0 {
                    true => low = step,
                    false => high = step,
                }
            }
            end = node;
        }
        y = end;
        left -= step;
    }
    exp(y)
}

#[test]
fn the_walk_solves_the_curve_between_nodes() {
    let bumps = PowerLaws::through(
        &[1e1, 1e2, 1e3, 1e4, 2e4, 1e5, 2.5e5, 1e6, 3e6, 1.6e7, 1e9],
        &[
            3e-28, 6e-27, 1.2e-26, 3e-26, 5e-23, 4e-22, 5e-22, 1e-22, 3e-23, 1.2e-23, 8e-23,
        ],
    );
    let bumps = bumps.unwrap_or_else(|why| panic!("{why}"));
    let hot = curves(move |t| bumps.at(t), 0.0, &grid(8, [10.0, 1e9]));
    let balanced = curves(koyama_inutsuka, 2e-26, &grid(8, [5.0, 1e5]));
    let mut random = Random(5);
    let mut worst = [0.0f64; 2];
    for n in 0..120 {
        let (curves, range, most) = match n % 2 == 0 {
            true => (&hot, [4.5, 8.0], 0.0),
            false => (&balanced, [1.3, 4.2], 1.0),
        };
        let density = pow(10.0, random.between(-2.0, 2.0));
        let start = pow(10.0, random.between(range[0], range[1]));
        let c = rate_slice(density, 1.0, 0.0, curves);
        let time =
            (start / net_rate(start, &c, curves)).abs() * pow(10.0, random.between(-2.0, most));
        let exact = integrated(curves, start, density, time);
        let found = walked::<f64>(curves, start, density, time);
        worst[0] = worst[0].max((found / exact - 1.0).abs());
        let single = walked::<f32>(curves, start, density, time);
        worst[1] = worst[1].max((single / found - 1.0).abs());
    }
    println!("largest errors of the walk: {worst:?}");
    assert!(worst[0] < 1e-8 && worst[1] < 1e-4, "{worst:?}");
}

#[test]
fn eight_nodes_an_octave_give_the_smooth_curve() {
    let [coarse, fine] =
        [8, 1024].map(|nodes| curves(koyama_inutsuka, 2e-26, &grid(nodes, [5.0, 1e5])));
    let mut random = Random(2);
    let mut errors = Vec::new();
    for _ in 0..4000 {
        let density = pow(10.0, random.between(-2.0, 2.0));
        let start = pow(10.0, random.between(1.3, 4.2));
        let c = rate_slice(density, 1.0, 0.0, &fine);
        let time =
            (start / net_rate(start, &c, &fine)).abs() * pow(10.0, random.between(-2.0, 1.0));
        let [a, b] = [&coarse, &fine].map(|curves| walked::<f64>(curves, start, density, time));
        errors.push((a / b - 1.0).abs());
    }
    errors.sort_by(f64::total_cmp);
    println!("median {:e}, 99% {:e}", errors[2000], errors[3960]);
    assert!(errors[2000] < 4e-5 && errors[3960] < 2e-2);
}

#[test]
fn near_an_equilibrium_eight_nodes_an_octave_follow_the_smooth_curve() {
    let [coarse, fine] =
        [8, 1024].map(|nodes| curves(koyama_inutsuka, 2e-26, &grid(nodes, [5.0, 1e5])));
    let mut random = Random(7);
    let mut errors = Vec::new();
    for _ in 0..1000 {
        let density = pow(10.0, random.between(1.0, 3.0));
        let rest = walked::<f64>(&fine, 10.0, density, 1e6);
        let c = rate_slice(density, 1.0, 0.0, &fine);
        let [below, above] = [0.99, 1.01].map(|part| net_rate(part * rest, &c, &fine));
        let time = pow(10.0, random.between(-2.0, 0.5)) * 0.02 * rest / (above - below).abs();
        let start = rest * random.between(0.8, 1.2);
        let [a, b] = [&coarse, &fine].map(|curves| walked::<f64>(curves, start, density, time));
        errors.push(((a - b) / (b - start)).abs());
    }
    errors.sort_by(f64::total_cmp);
    println!(
        "of the change: median {:e}, 90% {:e}",
        errors[500], errors[900]
    );
    assert!(errors[500] < 1e-2 && errors[900] < 5e-2);
}

#[test]
fn density_metallicity_and_weight_are_between_their_nodes() {
    let weights = |_: f64, n: usize| [1.2, 1.2, 0.6, 0.6][n];
    let temperatures = vec![10.0, 5e3, 2e4, 1e8];
    let rates = RateFunctions {
        cooling: Box::new(|n, t, z| 1e-23 * (1.0 + z) * (1.0 + n) * t / 1e4),
        heating: Box::new(|n, _, _| 1e-26 * n),
        weight: MolecularWeight::At(temperatures, Box::new(weights)),
    };
    let grid = TableGrid {
        densities: Some([0.1, 100.0]),
        metallicities: vec![0.0, 1.0],
        richest: 3.0,
        ..grid(64, [20.0, 1e7])
    };
    let curves = tabulate(&rates, &grid).unwrap_or_else(|why| panic!("{why}"));
    for (density, metallicity, theta, temperature) in [
        (3.3, 0.4, 2e6, 1.2e6),
        (70.0, 2.5, 100.0, 120.0),
        (0.11, 0.0, 2e4 / 0.6, 2e4),
    ] {
        let c = rate_slice(density, metallicity, 0.0, &curves);
        let found = net_rate(theta, &c, &curves);
        let [cooling, heating] =
            [&rates.cooling, &rates.heating].map(|f| f(density, temperature, metallicity));
        let exact = (heating - density * cooling) * grid.scale();
        assert!((found / exact - 1.0).abs() < 1e-3, "{found} for {exact}");
    }
    assert!((curves.floor_theta - 20.0 / 1.2).abs() < 1e-12);
    // an error is reported where theta falls with temperature
    let falling = RateFunctions {
        weight: MolecularWeight::At(vec![10.0, 20.0, 30.0], Box::new(|_, n| [0.5, 1.5, 1.0][n])),
        ..rates
    };
    let why = tabulate(&falling, &grid).expect_err("it falls");
    assert!(why.contains("from 10 K to 20 K"), "{why}");
}

#[test]
fn the_pace_of_gas_in_balance_is_that_of_cooling_and_heating_or_of_the_slope() {
    let rest = 1.3e4;
    for (exponent, wanted) in [(-0.5, 2.0), (0.0, 2.0), (0.5, 2.0), (3.0, 3.0), (8.0, 8.0)] {
        let law = move |t: f64| 1e-24 * pow(t / rest, exponent);
        let curves = curves(law, 1e-24, &grid(64, [1e3, 1e6]));
        let cooling = 1e-24 * grid(64, [1e3, 1e6]).scale() / rest;
        let c = rate_slice(1.0, 1.0, 0.0, &curves);
        let net = net_rate(rest, &c, &curves) / rest / cooling;
        let found = relaxation_rate(rest, &c, &curves) / cooling;
        assert!(net.abs() < 2e-3, "{net}");
        assert!((found / wanted - 1.0).abs() < 3e-2, "{exponent}: {found}");
    }
}

/// Returns the temperature after a time of cooling at `factor` times a curve, by the integral of 1 / rate over each power law.
fn cooled(places: &[f64], values: &[f64], start: f64, factor: f64, time: f64) -> f64 {
    let (mut t, mut left) = (start, time);
    for k in (0..places.len() - 1).rev() {
        let (low, high) = (places[k], places[k + 1]);
        if t <= low && k > 0 {
            continue;
        }
        let q = 1.0 - ln(values[k + 1] / values[k]) / ln(high / low);
        let unit = low / (factor * values[k]) / q;
        let needed = unit * (pow(t / low, q) - 1.0);
        if needed > left {
            return low * pow(pow(t / low, q) - left / unit, 1.0 / q);
        }
        (t, left) = (low, left - needed);
    }
    t
}

#[test]
fn a_curve_with_irregular_nodes_is_integrated_exactly() {
    // a step by 1e4 within 2 per cent, many nodes within one octave, and nodes three decades apart
    let mut places = vec![1e3, 9.9e3, 1e4, 1.02e4, 1.7e4];
    let mut values = vec![3e-28, 1e-26, 1.1e-26, 1.1e-22, 2e-22];
    let mut random = Random(11);
    for n in 0..300 {
        places.push(2e4 * (1.0 + f64::from(n) / 300.0 + 2e-3 * random.next()));
        values.push(2e-22 * pow(10.0, random.between(-0.2, 0.2)));
    }
    places.extend([5e4, 2e5, 2e8, 1e9]);
    values.extend([6e-22, 4e-22, 2e-23, 4e-23]);
    let law = PowerLaws::through(&places, &values).unwrap_or_else(|why| panic!("{why}"));
    let own = TableGrid {
        nodes: TableNodes::Own(law.nodes()),
        ..grid(8, [1e3, 1e9])
    };
    let curves = curves(move |t| law.at(t), 0.0, &own);
    let factor = own.scale() * 0.3;
    let mut worst = [0.0f64; 2];
    for _ in 0..400 {
        let start = pow(10.0, random.between(3.9, 9.0));
        let c = rate_slice(0.3, 1.0, 0.0, &curves);
        let times = pow(10.0, random.between(-2.0, 1.0));
        let time = -times * start / net_rate(start, &c, &curves);
        let exact = cooled(&places, &values, start, factor, time);
        let error = |found: f64| (found / exact - 1.0).abs();
        worst[0] = worst[0].max(error(walked::<f64>(&curves, start, 0.3, time)));
        worst[1] = worst[1].max(error(walked::<f32>(&curves, start, 0.3, time)));
    }
    println!("largest errors: {worst:?}");
    assert!(worst[0] < 1e-10 && worst[1] < 1e-3, "{worst:?}");
}

#[test]
fn gas_crosses_a_jump_between_power_laws_in_both_directions() {
    let law = PowerLaws::pieces(&[1e3, 1e5, 1e6], &[1e-23, 1e-21, 3e-23], &[0.0, 0.0, 0.0]);
    let law = law.unwrap_or_else(|why| panic!("{why}"));
    let own = TableGrid {
        nodes: TableNodes::Own(law.nodes()),
        ..grid(8, [1e3, 1e9])
    };
    let cold = law.clone();
    let cools = curves(move |t| law.at(t), 0.0, &own);
    let rates = RateFunctions {
        cooling: Box::new(|_, _, _| 0.0),
        heating: Box::new(move |_, t, _| cold.at(t)),
        weight: MolecularWeight::Fixed(1.0),
    };
    let heats = tabulate(&rates, &own).unwrap_or_else(|why| panic!("{why}"));
    let rate = [1e-23, 1e-21, 3e-23].map(|lambda| lambda * own.scale());
    let through = 9e5 / rate[1];
    for (table, start, end, time) in [
        (&cools, 2e6, 5e4, 1e6 / rate[2] + through + 5e4 / rate[0]),
        (&cools, 2e6, 1e6, 1e6 / rate[2]),
        (&cools, 1e6, 1e5, through),
        (&heats, 5e4, 2e6, 1e6 / rate[2] + through + 5e4 / rate[0]),
        (&heats, 1e5, 1e6, through),
    ] {
        let [double, single] = [walked::<f64>, walked::<f32>].map(|f| f(table, start, 1.0, time));
        let error = [double, single].map(|found| (found / end - 1.0).abs());
        assert!(error[0] < 1e-10 && error[1] < 1e-5, "{start}: {error:?}");
    }
}

#[test]
fn heating_adds_nodes_where_a_curve_is_steep() {
    let [places, values] = [[1e3, 1e4, 1.02e4, 1e9], [1e-26, 1e-26, 1e-22, 1e-22]];
    let law = PowerLaws::through(&places, &values).unwrap_or_else(|why| panic!("{why}"));
    let filled = TableGrid {
        nodes: TableNodes::Filled(law.nodes()),
        ..grid(8, [1e3, 1e9])
    };
    let curves = curves(move |t| law.at(t), 1e-24, &filled);
    // heating equals cooling in the middle of the steep interval
    for start in [2e3, 1e6] {
        let end = walked::<f64>(&curves, start, 1.0, 1e9);
        assert!((end / (1e4 * 1.02f64.sqrt()) - 1.0).abs() < 1e-5, "{end}");
    }
    // from the cold, rates are nearly constant up to the steep interval
    let rate = (1e-24 - 1e-26) * filled.scale();
    let half = walked::<f64>(&curves, 2e3, 1.0, 6e3 / rate);
    assert!((half / 8e3 - 1.0).abs() < 1e-10, "{half}");
    // a smooth curve between nodes that are far apart, T^2, to infinity
    let law =
        PowerLaws::through(&[1e3, 1e9], &[1e-28, 1e-16]).unwrap_or_else(|why| panic!("{why}"));
    let sparse = TableGrid {
        nodes: TableNodes::Filled(law.nodes()),
        ..filled
    };
    let curves = self::curves(move |t| law.at(t), 1e-22, &sparse);
    // theta = tanh(time) in units of the equilibrium, 1e6 K
    let unit = 1e6 / (1e-22 * sparse.scale());
    for times in [0.1f64, 0.5, 1.0, 2.0] {
        let grown = exp(2.0 * times);
        let exact = 1e6 * (grown - 1.0) / (grown + 1.0);
        let start = 1e6 * (exp(0.02) - 1.0) / (exp(0.02) + 1.0);
        let found = walked::<f64>(&curves, start, 1.0, (times - 0.01) * unit);
        assert!(
            (found / exact - 1.0).abs() < 2e-3,
            "{times}: {}",
            found / exact - 1.0
        );
    }
}

#[test]
fn temperatures_of_a_table_are_those_of_its_mean_molecular_weight() {
    let temperatures = vec![10.0, 5e3, 2e4, 1e8];
    for (by_density, tolerance) in [(0.0, 1e-12), (0.01, 2e-3)] {
        let weight = move |n: f64, k: usize| [1.22, 1.22, 0.59, 0.59][k] * pow(n, by_density);
        let rates = RateFunctions {
            cooling: Box::new(|_, _, _| 1e-23),
            heating: Box::new(|_, _, _| 0.0),
            weight: MolecularWeight::At(temperatures.clone(), Box::new(weight)),
        };
        let own = TableGrid {
            nodes: TableNodes::Own(temperatures.clone()),
            densities: Some([0.1, 100.0]),
            ..grid(8, [20.0, 1e7])
        };
        let curves = tabulate(&rates, &own).unwrap_or_else(|why| panic!("{why}"));
        for (density, t, mu) in [
            (0.5, 300.0, 1.22),
            (64.0, 5e3, 1.22),
            (1.0, 2e4, 0.59),
            (2.0, 1e6, 0.59),
            (1.0, 1e4, (1.22f64 * 0.59).sqrt()),
        ] {
            let theta = t / (mu * pow(density, by_density));
            let c = rate_slice(density, 1.0, 0.0, &curves);
            let found = temperature_of(theta, &c, &curves);
            assert!((found / t - 1.0).abs() < tolerance, "{found} for {t}");
        }
        for density in [0.01, 0.3, 7.0, 1e3] {
            let c = rate_slice(density, 1.0, 0.0, &curves);
            let floor = temperature_of(temperature_floor(&c, &curves), &c, &curves);
            assert!((floor / 20.0 - 1.0).abs() < 1e-12, "{floor}");
        }
    }
}
