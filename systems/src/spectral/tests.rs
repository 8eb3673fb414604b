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
fn by_sums(x: &[[f64; 2]], k: usize) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for (n, [re, im]) in x.iter().enumerate() {
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

/// Lengths of every kind of plan: powers of two, small primes with and without a factor 2, and primes for Rader's algorithm.
const LENGTHS: [usize; 36] = [
    1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 17, 20, 24, 29, 40, 44, 49, 52, 54, 56, 60, 64, 72, 88, 96,
    104, 120, 128, 135, 144, 148, 216, 270, 296, 360, 512,
];

/// Rows that look random.
fn random_rows(length: usize, seed: u64) -> Batch {
    let numbers = numbers(2 * length * LANES, seed);
    let mut rows = Batch::new(length);
    for (at, pair) in numbers.chunks_exact(2).enumerate() {
        rows.set(at / LANES, at % LANES, [pair[0], pair[1]]);
    }
    rows
}

fn row(rows: &Batch, length: usize, lane: usize) -> Vec<[f64; 2]> {
    (0..length).map(|n| rows.get(n, lane)).collect()
}

fn forward(rows: &Batch, length: usize) -> Batch {
    let mut rows = rows.clone();
    Fft::new(length).forward(&mut rows, &mut Batch::new(length));
    rows
}

fn bits(rows: &Batch, length: usize) -> Vec<u64> {
    let rows = (0..LANES).flat_map(|lane| row(rows, length, lane));
    rows.flatten().map(f64::to_bits).collect()
}

#[test]
fn rows_of_any_length_are_transformed() {
    for length in LENGTHS {
        let before = random_rows(length, 1);
        let mut rows = forward(&before, length);
        for lane in [0, LANES - 1] {
            let x = row(&before, length, lane);
            for k in 0..length {
                let ([re, im], expected) = (rows.get(k, lane), by_sums(&x, k));
                let error = (re - expected.0).abs().max((im - expected.1).abs());
                assert!(
                    error < 1e-15 * (4.0 + length as f64),
                    "{length} {k}: {error}"
                );
            }
        }
        Fft::new(length).inverse(&mut rows, &mut Batch::new(length));
        for lane in 0..LANES {
            for (after, before) in row(&rows, length, lane)
                .iter()
                .zip(row(&before, length, lane))
            {
                for part in 0..2 {
                    let error = (after[part] / length as f64 - before[part]).abs();
                    assert!(error < 2e-15, "{length}: {error}");
                }
            }
        }
    }
}

/// A user may choose any multiple of 8 cells, also composite lengths whose primes need Rader's algorithm, such as 3 x 31.
#[test]
fn every_length_has_a_plan() {
    let multiples = (520..=4096).step_by(8);
    for length in (1..=512).chain(multiples) {
        let at = 3 % length;
        let mut rows = Batch::new(length);
        rows.set(at, 5, [1.0, 0.0]);
        let rows = forward(&rows, length);
        for k in 0..length {
            let ([re, im], (c, s)) = (rows.get(k, 5), root_of_unity(at * k, length));
            let error = (re - c).abs().max((im - s).abs());
            assert!(error < 2e-14, "{length} {k}: {error}");
        }
    }
}

#[test]
fn a_row_has_the_bits_that_it_has_alone() {
    for length in [24, 56, 120, 128, 296] {
        let all = random_rows(length, 3);
        let mut one = Batch::new(length);
        for n in 0..length {
            one.set(n, 2, all.get(n, 5));
        }
        let (all, one) = (forward(&all, length), forward(&one, length));
        let bits = |rows: &Batch, lane| {
            row(rows, length, lane)
                .into_iter()
                .flatten()
                .map(f64::to_bits)
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&all, 5), bits(&one, 2), "{length}");
    }
}

/// The bits of transforms are a part of every digest with gravity: a new version of rustfft or another plan may not change them unnoticed.
#[test]
fn transforms_keep_their_bits() {
    let digest = |length: usize| {
        let rows = forward(&random_rows(length, 9), length);
        let mix =
            |hash: u64, bits: u64| (hash ^ bits).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
        bits(&rows, length)
            .into_iter()
            .fold(0xcbf2_9ce4_8422_2325, mix)
    };
    let found: Vec<u64> = LENGTHS.into_iter().map(digest).collect();
    assert_eq!(found, GOLDEN, "{found:#x?}");
}

/// What [`transforms_keep_their_bits`] finds, for each of [`LENGTHS`].
const GOLDEN: [u64; LENGTHS.len()] = [
    0xac85_c130_06f5_0d4c,
    0xb04b_8aba_13dc_e32b,
    0xce3d_790d_2525_656c,
    0x2393_9af2_4aa1_8384,
    0xa4df_6fce_9607_8428,
    0x9463_c473_3e54_a345,
    0x1b1f_2bcb_41c3_da6d,
    0x6772_b0bd_630b_79c7,
    0x1cdd_9edf_987c_ef3b,
    0x546b_cb39_2ee2_aafd,
    0x5618_ae12_0d4c_76aa,
    0xb01f_dc80_3cd2_c9e3,
    0x8e33_7dc2_5455_5fdd,
    0x2023_9a7d_17ef_ae8e,
    0xb39a_dda8_c3d6_fc88,
    0x1388_59e5_7798_8385,
    0x1963_64b6_65db_8c65,
    0xe2e7_b867_1a67_b95b,
    0x5426_f7ee_46ef_841c,
    0xea07_8719_ab48_19a8,
    0x3643_fd83_94ee_40a2,
    0xd006_b2f6_968b_e502,
    0x4cd3_062d_c26b_a902,
    0x0226_b821_9f5c_9e24,
    0x4fb7_13f0_18a4_a8ed,
    0xd0a1_13ed_d6fb_c754,
    0x5352_5465_5c1e_f3d3,
    0x24f0_127e_3dd8_7bf4,
    0x9d24_aa14_5e56_dc1d,
    0x994d_7edf_6cfd_8e41,
    0x5de2_c5f6_11ea_2446,
    0x962c_cf44_6b48_cdd1,
    0x1a85_a785_dbe9_e685,
    0x12b0_9975_6beb_80ca,
    0x97d1_9ed8_b0d5_0710,
    0x0277_99bb_6edf_8c48,
];

/// Another machine's sine and cosine may differ in the last bit.
#[test]
fn bits_do_not_depend_on_the_sine_and_cosine_of_the_platform() {
    for length in LENGTHS {
        let rows = random_rows(length, 4);
        let expected = bits(&forward(&rows, length), length);
        for seed in 1..4 {
            roots::PERTURBATION.set(seed);
            let perturbed = bits(&forward(&rows, length), length);
            roots::PERTURBATION.set(0);
            assert!(perturbed == expected, "length {length}, seed {seed}");
        }
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
            rows.set(n, lane, [row[2 * n], row[2 * n + 1]]);
        }
        fft.forward(&mut rows, &mut modes);
        let complex: Vec<_> = row.iter().map(|&x| [x, 0.0]).collect();
        for k in 0..fft.modes() {
            let ([re, im], expected) = (modes.get(k, lane), by_sums(&complex, k));
            let error = (re - expected.0).abs().max((im - expected.1).abs());
            assert!(
                error < 1e-15 * (4.0 + length as f64),
                "{length} {k}: {error}"
            );
        }
        fft.inverse(&mut rows, &mut modes);
        for n in 0..length / 2 {
            for part in 0..2 {
                let error = (rows.get(n, lane)[part] / length as f64 - row[2 * n + part]).abs();
                assert!(error < 2e-15, "{length}");
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
