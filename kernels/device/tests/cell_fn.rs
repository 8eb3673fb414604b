//! Checks that cell functions can be launched: `CellFn` on the CPU and as CUDA text.
use nestar_device::{
    BlockFace, CellFn, CellInputs, CellState, Face, FaceFn, FaceStencil, Parameter, Place, Precise,
    Real, Stencil, Table, device, interpolate, program,
};

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

/// A species in addition to the gas.
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

/// A function of two fields.
#[device]
fn hot<R: Real>(u: (Gas<R>, [R; 2]), at: &Place<R>, threshold: R) -> bool {
    u.0.density * u.1[1] > threshold * at.centre[2]
}

// not a cell function; the test is that it compiles
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

/// A function of the place only.
#[device]
fn beyond<R: Real>(at: &Place<R>, x: R) -> bool {
    at.centre[0] > x
}

/// A stencil around the middle of a patch, linear in the place.
#[device]
fn bend<R: Real>(u: &Stencil<R>, other: [R; 2], at: &Place<R>, rate: R) -> R {
    u.at(1, 0, 0) + 10.0 * u.at(0, -1, 0) + rate * other[1] * at.dt
}

/// Reads momenta two cells away.
#[device]
fn far<R: Real>(u: &Stencil<R, Gas<R>, 2>) -> R {
    u.at(0, 0, 2).momentum[0] - u.at(-2, 0, 0).momentum[1]
}

/// Flux through a face, from a table.
#[device]
struct Flow<R> {
    rates: Table<R>,
    scale: R,
}

#[device]
fn flow<R: Real>(u: &FaceStencil<R, [R; 2], 2>, face: &Face<R>, p: &Flow<R>) -> R {
    p.scale * (u.at(1)[0] - u.at(-2)[0]) / face.width + p.rates.at(face.axis)
}

/// Difference of a component across the normal of a face: along the next axis below it, along the last one above it.
#[device]
fn twist<R: Real>(u: &FaceStencil<R, [R; 2]>) -> R {
    let next = u.around(-1, 1, 0)[1] - u.around(-1, -1, 0)[1];
    next + 1000.0 * (u.around(0, 0, 1)[0] - u.around(0, 0, -1)[0])
}

#[test]
fn functions_read_across_the_normal_of_a_face() {
    let block: Vec<f64> = (0..2000).map(f64::from).collect();
    let face = Face {
        above: At(&[], &[0.0f64]).place(),
        axis: 0,
        width: 0.5,
    };
    // offsets along the axes are 1, 10 and 100
    for (axis, next, last) in [(0, 10.0, 100.0), (1, 100.0, 1.0), (2, 1.0, 10.0)] {
        let beside = BlockFace {
            block: &block[..],
            above: [3, 4, 5],
            axis,
        };
        let found = <twist as FaceFn>::call(beside, &face, &[]);
        assert_eq!(found, 2.0 * next + 2000.0 * last, "axis {axis}");
    }
    let text = program(&[<twist as FaceFn>::ITEM]);
    assert!(text.contains("u.around("), "{text}");
}

#[test]
fn functions_read_beside_a_face_and_in_tables() {
    let block: Vec<f32> = (0..2 * 1728).map(|n| n as f32).collect();
    let given = Flow {
        rates: Table::new(vec![0.0, 0.1]),
        scale: 2.0,
    };
    let above = At(&[], &[0.0f32]).place();
    let face = Face {
        above,
        axis: 1,
        width: 0.5,
    };
    let mut single = given.precise::<f32>();
    let beside = BlockFace {
        block: &block[..],
        above: [8, 8, 8],
        axis: 1,
    };
    let flown = <flow as FaceFn>::call(beside, &face, &single);
    assert_eq!(flown, 2.0 * 36.0 / 0.5 + 0.1f32);
    assert_eq!(<flow as FaceFn>::REACH, 2);
    single.bind(&mut |values| values.len() as u64 + 40);
    let mut bytes = [0; Flow::<f32>::BYTES];
    single.write(&mut bytes);
    assert_eq!(bytes[..12], [42, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
    let text = program(&[<flow as FaceFn>::ITEM]);
    assert!(
        text.contains("FaceStencil<R, rs::arr<R, 2>, 2>& u"),
        "{text}"
    );
}

/// A cell whose fields have the values `[field][component]`, inside the block `around`.
struct At<'a, R>(&'a [&'a [f64]], &'a [R]);

impl<R: Real> CellInputs<R> for At<'_, R> {
    fn value(&self, field: usize, component: usize) -> R {
        R::lit(self.0[field][component])
    }

    fn around(&self) -> (&[R], usize) {
        (self.1, 0)
    }

    fn place(&self) -> Place<R> {
        Place {
            centre: [1.0, 2.0, 3.0].map(R::lit),
            width: [0.25; 3].map(R::lit),
            index: [0; 3],
            level: 0,
            time: 0.0,
            dt: R::lit(0.5),
            numbers: [1.0; 2],
        }
    }
}

/// Returns the result of a function in a cell with the values `[field][component]`.
fn call<M: CellFn, R: Real>(values: &[&[f64]], parameters: &M::Parameters) -> M::Result<R> {
    M::call(&At(values, &[]), &parameters.precise::<R>())
}

#[test]
fn functions_read_around_a_cell() {
    let block = |n: usize, count: usize| -> Vec<f64> { (0..n * count).map(|i| i as f64).collect() };
    let one = block(1000, 1);
    // the first cell is one layer from each side
    let first = 111.0;
    let bent = bend::call::<f64>(&At(&[&[], &[7.0, 4.0]], &one), &[3.0]);
    assert_eq!(bent, first + 1.0 + 10.0 * (first - 10.0) + 3.0 * 4.0 * 0.5);
    let four = block(12 * 12 * 12, 4);
    let first = 2.0 + 12.0 * (2.0 + 12.0 * 2.0);
    let away = far::call::<f64>(&At(&[], &four), &[]);
    assert_eq!(
        away,
        (1728.0 + first + 288.0) - (2.0 * 1728.0 + first - 2.0)
    );
    assert_eq!((bend::REACH, far::REACH, halve::REACH), (1, 2, 0));
    assert_eq!(<bend as CellFn>::State::<f64>::COMPONENTS, [1, 2, 0, 0]);
    let text = program(&[<bend as CellFn>::ITEM]);
    assert!(text.contains("(u.at(1, 0, 0) + "), "{text}");
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
    assert!(call::<beyond, f32>(&[], &[0.5]) && !call::<beyond, f32>(&[], &[1.5]));
    assert_eq!(<beyond as CellFn>::State::<f32>::COMPONENTS, [0; 4]);
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

/// Used by its text only, which is not dead code.
#[device]
struct ByName<R> {
    value: R,
}

#[device]
fn by_type<R: Real, const N: usize>(x: &[R; N], s: &ByName<R>) -> R {
    x[N - 1] * s.value
}

#[test]
fn what_only_the_text_uses_is_no_dead_code() {
    let text = program(&[by_type::ITEM]);
    assert!(text.contains("R by_type(const rs::arr<R, N>& x, const ::cell_fn::ByName<R>& s)"));
    assert!(program(&[ByName]).contains("struct ByName {"));
}

#[test]
fn tables_are_interpolated() {
    let table = |values: &[f64]| Table::new(values);
    let (xs, ys) = (
        table(&[1.0, 2.0, 4.0, 8.0]),
        table(&[0.0, 10.0, 30.0, 20.0]),
    );
    for (x, y) in [
        (0.5, 0.0),
        (1.0, 0.0),
        (1.25, 2.5),
        (2.0, 10.0),
        (3.0, 20.0),
        (6.0, 25.0),
        (8.0, 20.0),
        (99.0, 20.0),
    ] {
        assert_eq!(interpolate(&xs, &ys, x), y);
        assert_eq!(
            interpolate(&xs.precise::<f32>(), &ys.precise::<f32>(), x as f32),
            y as f32
        );
    }
    assert_eq!(xs.len(), 4);
}
