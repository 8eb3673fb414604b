//! The companions of functions of a cell are launchable: `CellFn` on the CPU and as CUDA text.
use nestar_device::{CellFn, CellState, Place, Precise, Real, device, program};

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

/// Parameters of two kinds.
#[device]
struct Cooling<R> {
    rate: R,
    floors: [R; 2],
    steps: i32,
}

/// A species behind the gas.
#[device]
#[derive(Clone, Copy)]
struct Reacting<R: Real> {
    gas: Gas<R>,
    dye: R,
}

#[device]
fn cool<R: Real>(u: Reacting<R>, at: &Place<R>, p: &Cooling<R>) -> Reacting<R> {
    let mut v = u;
    for n in 0..p.steps {
        v.dye = v.dye - p.rate * at.width[0] + p.floors[(n % 2) as usize];
    }
    v
}

/// Of two fields.
#[device]
fn hot<R: Real>(u: (Gas<R>, [R; 2]), at: &Place<R>, threshold: R) -> bool {
    u.0.density * u.1[1] > threshold * at.centre[2]
}

// this is none; that it compiles is the test
#[device]
#[expect(
    dead_code,
    reason = "only the absence of an implementation of CellFn matters"
)]
fn scaled<R: Real, const N: usize>(x: [R; N], by: R) -> [R; N] {
    let mut y = x;
    for i in 0..N {
        y[i] = x[i] * by;
    }
    y
}

/// The result of a function for the state with the numbers `values`, `[field][component]`.
fn call<M: CellFn, R: Real>(values: &[&[f64]], parameters: &M::Parameters) -> M::Result<R> {
    let state = M::State::<R>::read(&mut |field, c| R::lit(values[field][c]), 0, 0);
    let at = Place {
        centre: [1.0, 2.0, 3.0].map(R::lit),
        width: [0.25; 3].map(R::lit),
        index: [0; 3],
        level: 0,
        time: 0.0,
        dt: R::lit(0.5),
    };
    M::call(state, &at, &parameters.precise::<R>())
}

fn numbers<S: CellState<R>, R: Real>(state: &S) -> Vec<f64> {
    let mut numbers = vec![0.0; S::COUNT];
    state.write(&mut |_, c, value| numbers[c] = value.to_f64(), 0, 0);
    numbers
}

#[test]
fn functions_run_by_their_companion_type() {
    let slowed = call::<drag, f32>(&[&[2.0, 1.0, -2.0, 4.0]], &[0.5, 1.0]);
    assert_eq!(numbers(&slowed), [2.0, 0.5, -1.0, 2.0]);
    assert_eq!(call::<halve, f64>(&[&[3.0]], &[]), 1.5);
    let cooling = Cooling {
        rate: 2.0,
        floors: [0.125, 0.0],
        steps: 2,
    };
    let cooled = call::<cool, f32>(&[&[1.0, 2.0, 3.0, 4.0, 5.0]], &cooling);
    assert_eq!(numbers(&cooled), [1.0, 2.0, 3.0, 4.0, 4.125]);
    let fields: [&[f64]; 2] = [&[2.0, 0.0, 0.0, 0.0], &[0.0, 4.0]];
    assert!(call::<hot, f64>(&fields, &[2.5]) && !call::<hot, f64>(&fields, &[3.0]));
    let counts = |state: [usize; 4]| state;
    assert_eq!(counts(<(Gas<f64>, [f64; 2])>::COMPONENTS), [4, 2, 0, 0]);
}

#[test]
fn the_item_of_a_function_is_its_text() {
    let text = program(&[<drag as CellFn>::ITEM]);
    assert!(
        text.contains("struct Gas {") && text.contains("Gas<R> drag(const ::cell_fn::Gas<R> u, "),
        "{text}"
    );
}
