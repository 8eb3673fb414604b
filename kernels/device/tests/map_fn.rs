//! The companions of cell-wise maps are launchable: `MapFn` on the CPU and as CUDA text.
use nestar_device::{MapFn, Real, device, math::sum3, program};

/// A state to map.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gas<R: Real> {
    density: R,
    momentum: [R; 3],
}

#[device]
fn drag<R: Real>(u: Gas<R>, rate: R, dt: R) -> Gas<R> {
    let keep = 1.0 - rate * dt;
    let m = u.momentum;
    Gas {
        momentum: [m[0] * keep, m[1] * keep, m[2] * keep],
        ..u
    }
}

#[device]
fn halve<Q: Real>(x: Q) -> Q {
    0.5 * x
}

// none of these is a cell-wise map; that they compile is the test
#[device]
#[expect(
    dead_code,
    reason = "only the absence of a MapFn implementation matters"
)]
fn total<R: Real>(u: Gas<R>) -> R {
    sum3(u.momentum[0], u.momentum[1], u.momentum[2])
}
#[device]
#[expect(
    dead_code,
    reason = "only the absence of a MapFn implementation matters"
)]
fn scaled<R: Real, const N: usize>(x: [R; N], by: R) -> [R; N] {
    let mut y = x;
    for i in 0..N {
        y[i] = x[i] * by;
    }
    y
}

fn map<M: MapFn, R: Real>(cells: Vec<M::State<R>>, parameters: &[f64]) -> Vec<M::State<R>> {
    let p: Vec<R> = parameters.iter().map(|x| R::from_f64(*x)).collect();
    cells.into_iter().map(|cell| M::call(cell, &p)).collect()
}

#[test]
fn maps_run_by_their_companion_type() {
    let cell = Gas {
        density: 2.0f32,
        momentum: [1.0, -2.0, 4.0],
    };
    let mapped = map::<drag, f32>(vec![cell], &[0.5, 1.0]);
    assert_eq!(
        mapped,
        [Gas {
            density: 2.0,
            momentum: [0.5, -1.0, 2.0]
        }]
    );
    assert_eq!(<drag as MapFn>::PARAMETERS, 2);
    assert_eq!(map::<halve, f64>(vec![3.0], &[]), [1.5]);
    assert_eq!(<halve as MapFn>::PARAMETERS, 0);
}

#[test]
fn the_item_of_a_map_is_its_text() {
    let text = program(&[<drag as MapFn>::ITEM]);
    assert!(
        text.contains("struct Gas {") && text.contains("Gas<R> drag(const ::map_fn::Gas<R> u, "),
        "{text}"
    );
}
