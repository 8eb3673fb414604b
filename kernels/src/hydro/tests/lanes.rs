//! Checks that all instruction sets give the same bits.
use super::sample::{
    Block, Random, Updated, all_methods, barotropic_methods, dual_magnetic_methods, dual_methods,
    law_of, magnetic_methods, update,
};
use crate::hydro::{CellMask10, HydroReal, LaneChoice, PatchSolver, RiemannSolver};
use nestar_device::Real;

fn same<R: Real>(a: &[R], b: &[R]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a.bits() == b.bits() || (a.is_nan() && b.is_nan()))
}

fn compare<R: HydroReal>(a: &Updated<R>, b: &Updated<R>, what: &str) {
    assert!(same(&a.out, &b.out), "states differ: {what}");
    assert!(
        a.faces.iter().zip(&b.faces).all(|(a, b)| same(a, b)),
        "fluxes differ: {what}"
    );
    assert!(same(&a.field, &b.field), "fields differ: {what}");
    assert!(same(&a.electric, &b.electric), "edges differ: {what}");
    assert_eq!(a.outcome.unphysical, b.outcome.unphysical, "{what}");
    assert!(
        a.outcome.any == b.outcome.any
            && a.outcome.signal_rate.bits() == b.outcome.signal_rate.bits(),
        "{what}"
    );
}

/// Inserts invalid values: zeros, infinities, NaN, denormals, negative densities and energies.
fn spoil<R: Real>(block: &mut Block<R>, random: &mut Random) {
    let bad = [0.0, -0.0, 1e30, 1e-30, -1.0, f64::INFINITY, f64::NAN, 1e-42];
    for values in &mut block.values {
        for value in values.iter_mut() {
            if random.next() < 0.003 {
                *value = R::lit(bad[(random.next() * bad.len() as f64) as usize]);
            }
        }
    }
}

fn all_lanes_agree<R: HydroReal>() {
    let mut random = Random(7);
    let mut mask = CellMask10::new();
    mask.set(-1, 3, 4);
    mask.set(5, 5, 7);
    let methods = all_methods().into_iter().chain(dual_methods());
    let methods = methods.chain(magnetic_methods());
    let methods = methods.chain(dual_magnetic_methods());
    for method in methods.chain(barotropic_methods()) {
        let law = law_of(&method);
        for (scalars, roughness) in [(0, 0.1), (2, 1.0), (1, 5.0)] {
            let reference = PatchSolver::<R>::new(method, law, scalars, LaneChoice::Scalar);
            let width = reference.scratch().width();
            let behind = reference.components() - method.equation.components();
            let block = Block::<R>::random(width, behind, roughness, &mut random);
            let mut block = block.of_law(&method);
            // the exact solver is scalar in all instruction sets
            if scalars > 0 && method.riemann != RiemannSolver::Exact {
                spoil(&mut block, &mut random);
            }
            let rates = [0.11, 0.07, 0.13];
            let expected = update(&reference, &block, rates, Some(&mask));
            for lanes in [LaneChoice::Avx2, LaneChoice::Avx512] {
                let solver = PatchSolver::<R>::new(method, law, scalars, lanes);
                let what = format!("{:?} {method:?} {scalars} {roughness}", solver.lanes());
                compare(
                    &expected,
                    &update(&solver, &block, rates, Some(&mask)),
                    &what,
                );
                let rate = solver.signal_rate(&expected.out, [R::lit(1.0); 3]);
                let scalar_rate = reference.signal_rate(&expected.out, [R::lit(1.0); 3]);
                assert!(rate.bits() == scalar_rate.bits(), "signal rate: {what}");
                assert!(!expected.outcome.any || scalars > 0 || rate == R::INFINITY);
            }
        }
    }
}

#[test]
fn lanes_agree_in_double_precision() {
    all_lanes_agree::<f64>();
}

#[test]
fn lanes_agree_in_single_precision() {
    all_lanes_agree::<f32>();
}

#[test]
fn unavailable_lanes_fall_back() {
    assert_eq!(LaneChoice::Scalar.available(), LaneChoice::Scalar);
    assert_ne!(LaneChoice::Auto.available(), LaneChoice::Auto);
    assert_eq!(LaneChoice::Auto.available(), LaneChoice::Avx512.available());
}
