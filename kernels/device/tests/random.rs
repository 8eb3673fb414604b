//! Counter-based random numbers: known answers, moments, and streams that do not overlap. `host_text.rs` checks that the text for devices
//! gives the same bits.
#[path = "cases/random.rs"]
mod draws;

use nestar_device::random::{Purposes, Stream, in_cell, normals, of_id, philox, uniforms};
use nestar_device::{Place, Real};

/// Counter, key and result of `philox4x32 10` in the file `kat_vectors` of the Random123 distribution.
const KNOWN: [([u32; 4], [u32; 2], [u32; 4]); 3] = [
    (
        [0; 4],
        [0; 2],
        [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
    ),
    (
        [u32::MAX; 4],
        [u32::MAX; 2],
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
    ),
    (
        [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
        [0xa409_3822, 0x299f_31d0],
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
    ),
];

#[test]
fn philox_gives_the_known_answers_of_random123() {
    for (counter, key, known) in KNOWN {
        assert_eq!(philox(counter, key), known);
    }
    // the function that devices are compared with draws them too
    let words: Vec<f64> = KNOWN.iter().flat_map(|k| k.2.map(f64::from)).collect();
    assert_eq!(draws::known::<f64>(&[0.0]).to_vec(), words);
    let drawn = draws::deviates::<f32>(&[1.0, 2.0, 3.0, 4.0]);
    assert!(drawn.iter().all(|x| x.abs() < 5.8));
}

fn stream() -> Stream {
    Purposes::default().register("moments", 7).unwrap()
}

/// Mean, variance, and correlation of neighbours, of `count` pairs.
fn moments<R: Real>(draw: fn([u32; 4]) -> [R; 2], count: u64) -> [f64; 3] {
    let mut sums = [0.0; 3];
    let mut before = 0.0;
    for id in 0..count {
        for x in draw(of_id(&stream(), id, 0)).map(R::to_f64) {
            sums = [sums[0] + x, sums[1] + x * x, sums[2] + x * before];
            before = x;
        }
    }
    let [mean, square, product] = sums.map(|s| s / (2 * count) as f64);
    [mean, square - mean * mean, product - mean * mean]
}

#[test]
fn deviates_have_the_moments_of_their_distributions() {
    let near = |found: [f64; 3], mean: f64, variance: f64| {
        // five standard deviations of each, for 2e5 numbers
        let limit = 5.0 / (2e5f64).sqrt();
        assert!(
            (found[0] - mean).abs() < limit * variance.sqrt(),
            "{found:?}"
        );
        assert!(
            (found[1] - variance).abs() < 1.5 * limit * variance,
            "{found:?}"
        );
        assert!(found[2].abs() < limit * variance, "{found:?}");
    };
    near(moments(uniforms::<f64>, 100_000), 0.5, 1.0 / 12.0);
    near(moments(uniforms::<f32>, 100_000), 0.5, 1.0 / 12.0);
    near(moments(normals::<f64>, 100_000), 0.0, 1.0);
    near(moments(normals::<f32>, 100_000), 0.0, 1.0);
}

#[test]
fn uniform_numbers_keep_off_both_ends() {
    for words in [[0; 4], [u32::MAX; 4]] {
        assert!(uniforms::<f32>(words).iter().all(|x| *x > 0.0 && *x < 1.0));
        assert!(uniforms::<f64>(words).iter().all(|x| *x > 0.0 && *x < 1.0));
        assert!(normals::<f32>(words).iter().all(|x| x.abs() < 5.8));
        assert!(normals::<f64>(words).iter().all(|x| x.abs() < 8.6));
    }
}

fn place(level: i32, index: [i32; 3]) -> Place<f64> {
    Place {
        centre: [0.0; 3],
        width: [1.0; 3],
        index,
        level,
        time: 0.0,
        dt: 0.0,
        numbers: [1.0; 2],
    }
}

#[test]
fn whatever_differs_in_a_draw_gives_other_words() {
    let s = stream();
    let words = [
        in_cell(&s, &place(0, [1, 2, 3]), 0),
        in_cell(&s, &place(1, [1, 2, 3]), 0),
        in_cell(&s, &place(0, [2, 1, 3]), 0),
        in_cell(&s, &place(0, [1, 2, -3]), 0),
        in_cell(&s, &place(0, [1, 2, 3]), 1),
        in_cell(&s.at_step(1), &place(0, [1, 2, 3]), 0),
        in_cell(&Stream { seed: 8, ..s }, &place(0, [1, 2, 3]), 0),
        in_cell(
            &Stream {
                purpose: s.purpose ^ 1,
                ..s
            },
            &place(0, [1, 2, 3]),
            0,
        ),
        of_id(&s, 1 | 2 << 32, 0),
        of_id(&s, 2 << 32, 0),
    ];
    for (n, block) in words.iter().enumerate() {
        assert!(!words[..n].contains(block), "{n}");
    }
}

#[test]
fn two_users_never_share_a_stream() {
    let mut purposes = Purposes::default();
    let driving = purposes.register("driving", 1).unwrap();
    let births = purposes.register("births", 1).unwrap();
    assert_ne!(driving.purpose, births.purpose);
    assert!(driving.purpose < 65536 && births.purpose < 65536);
    let error = purposes.register("driving", 2).unwrap_err().to_string();
    assert!(
        error.contains("the purpose \"driving\" draws random numbers already"),
        "{error}"
    );
    // the number of a purpose does not depend on others
    assert_eq!(Purposes::default().register("births", 1).unwrap(), births);
    let mut many = Purposes::default();
    let shared = (0..2000).find_map(|n| many.register(&format!("user {n}"), 1).err());
    assert!(shared.unwrap().to_string().contains("rename one of them"));
    assert_eq!(purposes.names().collect::<Vec<_>>(), ["driving", "births"]);
}
