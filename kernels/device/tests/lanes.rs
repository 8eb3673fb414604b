//! SIMD types give each lane the bits of the scalar operation.
#![cfg(target_arch = "x86_64")]
mod numbers;

use nestar_device::simd::Simd;
use nestar_device::simd::x86::{D4, D8, S8, S16};
use nestar_device::{Lane, Mask, Num, Pick, Real, device, math};

const INPUTS: usize = 20_000;

/// Arithmetic of a lane type on two numbers.
fn arithmetic<R: Lane>(a: R, b: R) -> Vec<R> {
    let (mut plus, mut minus, mut times, mut over) = (a, a, a, a);
    plus += b;
    minus -= b;
    times *= b;
    over /= b;
    let powers = [a.powi(5), a.powi(-3), a.powi(0)];
    let signs = [
        -a,
        Num::abs(a),
        a.copysign(b),
        a.signum(),
        a.recip(),
        a.sqrt(),
        math::sqrt(b),
    ];
    let mut all = vec![
        a + b,
        a - b,
        a * b,
        a / b,
        plus,
        minus,
        times,
        over,
        R::lit(0.1),
    ];
    all.extend(powers.iter().chain(&signs));
    all
}

/// All operations of a lane type on three numbers; masks count as 1 and 0 by selection.
fn operations<R: Lane>(a: R, b: R, c: R) -> Vec<R> {
    let flag = |m: R::Mask| R::select(m, R::lit(1.0), R::lit(0.0));
    let (less, greater) = (Num::lt(a, b), Num::gt(b, c));
    let mut all = arithmetic(a, b);
    all.extend([less, greater, !less, less & greater, less | greater].map(flag));
    all.extend(
        [
            Num::le(a, b),
            Num::ge(a, b),
            Num::eq(a, b),
            Num::ne(a, b),
            a.is_nan(),
        ]
        .map(flag),
    );
    all.extend([
        Num::min(a, b),
        Num::max(a, b),
        Num::clamp(a, b, c),
        R::select(less, a, b),
    ]);
    all.extend([math::sum3(a, b, c), math::sum4(a, b, c, a)]);
    all
}

fn assert_same<E: Real>(lane: E, scalar: E, what: &str) {
    let same = lane.bits() == scalar.bits() || lane.is_nan() && scalar.is_nan();
    assert!(same, "{what}: {lane:e} for {scalar:e}");
}

fn row<S: Simd>(x: &[S::E]) -> S {
    assert_eq!(x.len(), S::N);
    // SAFETY: the slice has the length of the register
    unsafe { S::load(x.as_ptr()) }
}

fn lanes<S: Simd>(x: S) -> Vec<S::E> {
    let mut lanes = vec![S::E::lit(0.0); S::N];
    // SAFETY: the vector has the length of the register
    unsafe { x.store(lanes.as_mut_ptr()) }
    lanes
}

fn agree<S: Simd>() {
    let x = numbers::mixed::<S::E>(3 * INPUTS, 11);
    for x in x.chunks_exact(3 * S::N) {
        let [a, b, c] = [0, 1, 2].map(|k| &x[k * S::N..(k + 1) * S::N]);
        let vector: Vec<_> = operations::<S>(row(a), row(b), row(c))
            .into_iter()
            .map(lanes)
            .collect();
        let (mut any, mut all) = (false, true);
        for k in 0..S::N {
            for (n, scalar) in operations(a[k], b[k], c[k]).into_iter().enumerate() {
                let what = format!("operation {n} of {:e}, {:e}, {:e}", a[k], b[k], c[k]);
                assert_same(vector[n][k], scalar, &what);
            }
            any |= a[k] < b[k];
            all &= a[k] < b[k];
        }
        let mask = Num::lt(row::<S>(a), row(b));
        assert_eq!((mask.any(), mask.all()), (any, all), "{a:?} < {b:?}");
        let largest = a[1..].iter().fold(a[0], |m, x| Num::max(m, *x));
        assert_same(row::<S>(a).hmax(), largest, "largest lane");
    }
}

/// Two rows of 8, apart, and nothing written between them.
fn two_rows<S: Simd>() {
    let stride = 11;
    let x: Vec<S::E> = (0..32).map(S::E::from_i32).collect();
    let mut y = vec![S::E::lit(-1.0); 32];
    // SAFETY: both rows of 8 lie inside the vectors
    unsafe { S::load2(x.as_ptr(), stride).store2(y.as_mut_ptr(), stride) };
    for (k, y) in y.iter().enumerate() {
        let second = S::N == 16 && (stride..stride + 8).contains(&k);
        let expected = if k < Ord::min(S::N, 8) || second {
            x[k]
        } else {
            S::E::lit(-1.0)
        };
        assert_same(*y, expected, &format!("number {k}"));
    }
}

/// States as a solver selects them: a structure of arrays and tuples.
#[device]
#[derive(Clone, Copy)]
struct State<R: Lane> {
    density: R,
    momentum: [R; 2],
    waves: (R, R),
}

#[device]
fn upwind<R: Lane>(left: State<R>, right: State<R>, n: i32) -> State<R> {
    let speed = left.waves.0 + right.waves.1;
    let chosen = if speed > 0.0 && !(speed > 1e30) || left.density == 0.0 {
        left
    } else {
        right
    };
    let scaled = State {
        density: 2.0 * chosen.density,
        ..chosen
    };
    // a condition on an integer is one for all lanes
    if n > 2 { scaled } else { chosen }
}

fn state<R: Lane>(x: [R; 5]) -> State<R> {
    State {
        density: x[0],
        momentum: [x[1], x[2]],
        waves: (x[3], x[4]),
    }
}

fn flat<R: Lane>(s: State<R>) -> [R; 5] {
    [
        s.density,
        s.momentum[0],
        s.momentum[1],
        s.waves.0,
        s.waves.1,
    ]
}

fn structures<S: Simd>() {
    let x = numbers::mixed::<S::E>(10 * INPUTS, 5);
    for (n, x) in x.chunks_exact(10 * S::N).enumerate() {
        let part = |k: usize| &x[k * S::N..(k + 1) * S::N];
        let vector = |from: usize| state(std::array::from_fn(|k| row::<S>(part(from + k))));
        let chosen = flat(upwind(vector(0), vector(5), n as i32 % 4)).map(lanes);
        for lane in 0..S::N {
            let scalar = |from: usize| state(std::array::from_fn(|k| part(from + k)[lane]));
            let expected = flat(upwind(scalar(0), scalar(5), n as i32 % 4));
            for (chosen, expected) in chosen.iter().zip(expected) {
                assert_same(chosen[lane], expected, &format!("lane {lane}"));
            }
        }
    }
}

fn all<S: Simd>(name: &str) {
    if S::available() {
        agree::<S>();
        two_rows::<S>();
        structures::<S>();
    } else {
        println!("skipped: this processor has no instructions for {name}");
    }
}

#[test]
fn avx2_lanes_have_the_bits_of_scalars() {
    all::<D4>("D4");
    all::<S8>("S8");
}

#[test]
fn avx512_lanes_have_the_bits_of_scalars() {
    all::<D8>("D8");
    all::<S16>("S16");
}

#[test]
fn scalars_are_single_lanes() {
    all::<f64>("f64");
    all::<f32>("f32");
}

#[test]
fn tuples_are_picked_field_by_field() {
    let (a, b) = (
        (1.0, 2.0, [3.0, 4.0], 5.0),
        (-1.0, -2.0, [-3.0, -4.0], -5.0),
    );
    assert_eq!(Pick::<f64>::pick(true, a, b), a);
    assert_eq!(Pick::<f64>::pick(false, a, b), b);
}
