//! The CUDA text, compiled for the host without contraction, gives the bits of the Rust functions.
mod cases;
mod host;
mod numbers;

use nestar_device::{Real, instantiate, instantiate_with, interpolate};

const INPUTS: usize = 100_000;

fn agree<R: Real>(program: &host::Program) {
    for case in cases::all::<R>() {
        let x = numbers::mixed::<R>(INPUTS * case.inputs, case.inputs as u64);
        let cpp = program.run(case.name, &x);
        let mut rust = vec![R::lit(0.0); INPUTS * case.outputs];
        for (x, y) in x.chunks(case.inputs).zip(rust.chunks_mut(case.outputs)) {
            (case.call)(x, y);
        }
        assert_eq!(rust.len(), cpp.len(), "{}", case.name);
        let same = |a: &R, b: &R| a.bits() == b.bits() || (a.is_nan() && b.is_nan());
        let wrong = rust.iter().zip(&cpp).position(|(a, b)| !same(a, b));
        if let Some(at) = wrong {
            let row = at / case.outputs;
            let x = &x[row * case.inputs..(row + 1) * case.inputs];
            let (name, output, rust, cpp) = (case.name, at % case.outputs, rust[at], cpp[at]);
            panic!("{name}, output {output} of {x:?}: Rust {rust:e}, C++ {cpp:e}");
        }
        let finite = rust.iter().filter(|y| y.is_finite()).count();
        assert!(
            finite * 4 > rust.len(),
            "{}: hardly any number in the results",
            case.name
        );
    }
}

fn probes_compile(program: &host::Program) {
    let mut items: Vec<_> = cases::all::<f64>().iter().map(|c| c.item).collect();
    items.push(interpolate::ITEM);
    for real in ["float", "double"] {
        let text = instantiate(&items, real);
        program.build(&text, &["-c", "-o", "probes.o"]);
        assert!(text.contains(&format!("operators<{real}>>::go(m)")));
    }
    // a function with a const parameter needs its value
    let sum = cases::syntax::sum_of::ITEM;
    assert!(!instantiate(&[sum], "double").contains("void probe_0"));
    let text = instantiate_with(&[(sum, &["3"])], "double");
    assert!(text.contains("sum_of<double, 3>>::go(m)"));
    program.build(&text, &["-c", "-o", "probes.o"]);
}

#[test]
fn host_text_has_the_bits_of_rust() {
    if let Some(program) = host::Program::compile() {
        agree::<f64>(&program);
        agree::<f32>(&program);
        probes_compile(&program);
    }
}
