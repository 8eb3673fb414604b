//! Transforms against sums, and the same bits on any number of ranks.

use super::*;
use nestar_engine::comm::{Communicator, SingleRank, ThreadRank};
use std::f64::consts::PI;

/// Numbers between -0.5 and 0.5 that look random.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

/// One lane's transform by its definition.
fn by_sums(x: &[(f64, f64)], k: usize) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for (n, (re, im)) in x.iter().enumerate() {
        let (s, c) = (-2.0 * PI * (n * k % x.len()) as f64 / x.len() as f64).sin_cos();
        sum.0 += re * c - im * s;
        sum.1 += re * s + im * c;
    }
    sum
}

#[test]
fn roots_of_unity_mirror_each_other() {
    for n in [1, 2, 3, 8, 12, 40, 135] {
        for k in 0..2 * n {
            let (c, s) = root_of_unity(k, n);
            let angle = -2.0 * PI * k as f64 / n as f64;
            assert!((c - angle.cos()).abs() < 3e-15 && (s - angle.sin()).abs() < 3e-15);
            let (c_back, s_back) = root_of_unity(2 * n - k, n);
            assert_eq!((c, s), (c_back, -s_back));
        }
    }
    assert_eq!(root_of_unity(3, 4), (0.0, 1.0));
    assert_eq!(root_of_unity(1, 8).0, -root_of_unity(1, 8).1);
}

#[test]
fn rows_of_any_length_are_transformed() {
    for length in [
        1, 2, 3, 4, 5, 7, 8, 11, 12, 24, 49, 60, 64, 88, 104, 135, 144,
    ] {
        let (fft, mut work) = (Fft::new(length), Batch::new(length));
        let mut rows = Batch {
            re: numbers(length * LANES, 1),
            im: numbers(length * LANES, 2),
        };
        let before = rows.clone();
        fft.forward(&mut rows, &mut work);
        for lane in [0, LANES - 1] {
            let at = |n: usize| n * LANES + lane;
            let row: Vec<_> = (0..length)
                .map(|n| (before.re[at(n)], before.im[at(n)]))
                .collect();
            for k in 0..length {
                let (re, im) = by_sums(&row, k);
                let error = (rows.re[at(k)] - re).abs().max((rows.im[at(k)] - im).abs());
                assert!(
                    error < 1e-15 * (4.0 + length as f64),
                    "{length} {k}: {error}"
                );
            }
        }
        fft.inverse(&mut rows, &mut work);
        for (after, before) in rows
            .re
            .iter()
            .chain(&rows.im)
            .zip(before.re.iter().chain(&before.im))
        {
            assert!((after / length as f64 - before).abs() < 2e-15, "{length}");
        }
    }
}

#[test]
fn a_row_has_the_bits_that_it_has_alone() {
    let (fft, mut work) = (Fft::new(120), Batch::new(120));
    let mut all = Batch {
        re: numbers(120 * LANES, 3),
        im: numbers(120 * LANES, 4),
    };
    let mut one = Batch::new(120);
    for n in 0..120 {
        one.re[n * LANES + 2] = all.re[n * LANES + 5];
        one.im[n * LANES + 2] = all.im[n * LANES + 5];
    }
    fft.forward(&mut all, &mut work);
    fft.forward(&mut one, &mut work);
    for n in 0..120 {
        let bits = |batch: &Batch, at: usize| (batch.re[at].to_bits(), batch.im[at].to_bits());
        assert_eq!(bits(&all, n * LANES + 5), bits(&one, n * LANES + 2));
    }
}

#[test]
fn real_rows_have_the_modes_of_complex_ones() {
    for length in [2, 8, 24, 56, 144] {
        let fft = RealFft::new(length);
        assert_eq!(fft.modes(), length / 2 + 1);
        let (mut rows, mut modes) = (Batch::new(fft.modes()), Batch::new(fft.modes()));
        let row = numbers(length, 5);
        let lane = 3;
        for n in 0..length / 2 {
            rows.re[n * LANES + lane] = row[2 * n];
            rows.im[n * LANES + lane] = row[2 * n + 1];
        }
        fft.forward(&mut rows, &mut modes);
        let complex: Vec<_> = row.iter().map(|&x| (x, 0.0)).collect();
        for k in 0..fft.modes() {
            let (re, im) = by_sums(&complex, k);
            let at = k * LANES + lane;
            let error = (modes.re[at] - re).abs().max((modes.im[at] - im).abs());
            assert!(
                error < 1e-15 * (4.0 + length as f64),
                "{length} {k}: {error}"
            );
        }
        fft.inverse(&mut rows, &mut modes);
        for n in 0..length / 2 {
            let at = n * LANES + lane;
            for (after, before) in [(rows.re[at], row[2 * n]), (rows.im[at], row[2 * n + 1])] {
                assert!((after / length as f64 - before).abs() < 2e-15, "{length}");
            }
        }
    }
}

/// What all ranks get, joined.
fn filtered(shape: Shape, size: usize, factor: impl Fn([usize; 3]) -> f64 + Sync) -> Vec<f64> {
    let [nx, ny, nz] = shape.cells;
    let all = numbers(nx * ny * nz, 6);
    let work = |ranks: &dyn Communicator| {
        let filter = Filter::new(shape, ranks).unwrap();
        let own = filter.planes(ranks.rank());
        let values = all[own.start * nx * ny..own.end * nx * ny].to_vec();
        filter.apply(ranks, values, &factor).unwrap()
    };
    std::thread::scope(|scope| {
        let work = &work;
        let start = |ranks: ThreadRank| scope.spawn(move || work(&ranks));
        let started: Vec<_> = ThreadRank::connect(size).into_iter().map(start).collect();
        started
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    })
}

#[test]
fn modes_times_one_give_the_box_and_zeros_around_it() {
    for (shape, margin) in [
        (Shape::periodic([8, 14, 3]), 0),
        (Shape::padded([6, 5, 9], 0), 0),
        (Shape::padded([8, 3, 4], 2), 2),
    ] {
        let [nx, ny, nz] = shape.cells;
        let all = numbers(nx * ny * nz, 6);
        let [gx, gy, gz] = shape.grown();
        let out = filtered(shape, 1, |_| 1.0);
        assert_eq!(out.len(), gx * gy * gz);
        for (n, value) in out.iter().enumerate() {
            let place = [n % gx, n / gx % gy, n / gx / gy].map(|i| i.wrapping_sub(margin));
            let inside = place.iter().zip(shape.cells).all(|(&i, cells)| i < cells);
            let [i, j, k] = place;
            let expected = if inside {
                all[(k * ny + j) * nx + i]
            } else {
                0.0
            };
            assert!((value - expected).abs() < 2e-15, "{shape:?} {place:?}");
        }
    }
}

#[test]
fn a_factor_meets_the_modes_of_its_wave_number() {
    let shape = Shape::periodic([16, 6, 10]);
    // one mode and its opposite
    let kept = |[kx, ky, kz]: [usize; 3]| {
        let mode = [kx, ky, kz] == [3, 5, 2] || [kx, ky, kz] == [3, 1, 8];
        f64::from(u8::from(mode))
    };
    let out = filtered(shape, 1, kept);
    let all = numbers(16 * 6 * 10, 6);
    let angle = |n: usize, wave: [usize; 3]| {
        let [i, j, k] = [n % 16, n / 16 % 6, n / 96];
        let turns =
            (wave[0] * i) as f64 / 16.0 + (wave[1] * j) as f64 / 6.0 + (wave[2] * k) as f64 / 10.0;
        2.0 * PI * turns
    };
    for (n, value) in out.iter().enumerate() {
        let mut expected = 0.0;
        for wave in [[3, 5, 2], [3, 1, 8]] {
            let cosines = all
                .iter()
                .enumerate()
                .map(|(m, x)| x * (angle(n, wave) - angle(m, wave)).cos());
            expected += 2.0 * cosines.sum::<f64>() / 960.0;
        }
        assert!((value - expected).abs() < 1e-14, "{n}: {value} {expected}");
    }
}

#[test]
fn ranks_share_planes_and_get_the_same_bits() {
    for shape in [
        Shape::periodic([8, 14, 8]),
        Shape::padded([8, 24, 8], 2),
        Shape::padded([40, 8, 2], 1),
    ] {
        let [_, ly, lz] = shape.lengths;
        let factor = |[kx, ky, kz]: [usize; 3]| {
            let across = ky.min(ly - ky) * kz.min(lz - kz);
            1.0 / (1.0 + kx as f64 + across as f64)
        };
        let one = filtered(shape, 1, factor);
        for size in [2, 3, 4, 11] {
            let many = filtered(shape, size, factor);
            let same = one
                .iter()
                .zip(&many)
                .all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same && one.len() == many.len(), "{shape:?} on {size} ranks");
        }
    }
}

#[test]
fn shapes_without_room_are_refused() {
    let odd = Shape::periodic([7, 8, 8]);
    let narrow = Shape {
        margin: 1,
        ..Shape::periodic([8; 3])
    };
    for shape in [odd, narrow, Shape::periodic([0, 8, 8])] {
        let error = Filter::new(shape, &SingleRank)
            .err()
            .expect("it is refused");
        assert!(
            error.to_string().contains("no transform of lengths"),
            "{error}"
        );
    }
}

#[test]
fn smooth_lengths_have_small_factors() {
    assert_eq!(smooth_length(130, true), 144);
    assert_eq!(smooth_length(130, false), 135);
    assert_eq!(smooth_length(256, true), 256);
}
