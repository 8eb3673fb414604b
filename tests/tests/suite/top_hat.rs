//! Collapse of a homogeneous sphere in an expanding universe, against the exact solution (Peebles 1980, section 19).

use nestar_tests::Stepper;
use std::f64::consts::PI;

const TOP_HAT: &str = include_str!("../../../scenarios/top-hat.toml");

/// Scale factor at the turnaround of the sphere in the deck.
const TURNAROUND: f64 = 0.5;

/// Radius of the sphere over that of its matter before it was compressed, both comoving, at the parameter `angle` of the cycloid.
fn ratio(angle: f64) -> f64 {
    let (across, along) = (1.0 - angle.cos(), angle - angle.sin());
    (2.0 / 9.0 * across.powi(3) / along.powi(2)).cbrt()
}

/// Parameter of the cycloid at a scale factor.
fn angle(a: f64) -> f64 {
    let phase = PI * (a / TURNAROUND).powf(1.5);
    let [mut least, mut most] = [0.0, 2.0 * PI];
    for _ in 0..80 {
        let middle = 0.5 * (least + most);
        match middle - middle.sin() < phase {
            true => least = middle,
            false => most = middle,
        }
    }
    0.5 * (least + most)
}

/// Density in the eight cells around the centre.
fn central_density(stepper: &mut Stepper, width: f64) -> f64 {
    let (mut sum, mut cells) = (0.0, 0);
    stepper.state().each_leaf_cell(|_, x, _, u| {
        if x.iter().all(|x| x.abs() < width) {
            sum += u[0];
            cells += 1;
        }
    });
    assert_eq!(cells, 8);
    sum / f64::from(cells)
}

/// The deck starts on the exact solution: its constants are those of the cycloid.
#[test]
fn a_top_hat_starts_on_the_exact_solution() {
    let constant = |name: &str| -> f64 {
        let line = TOP_HAT.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split(['=', '#']).nth(1));
        let number = value.map(|text| text.trim().trim_matches('"').trim_end_matches(" Mpc/h"));
        number.and_then(|text| text.parse().ok()).expect(name)
    };
    let (a, step) = (0.02, 1e-7);
    let change = ratio(angle(a + step)) - ratio(angle(a - step));
    let start = ratio(angle(a));
    // the comoving time changes by `a^(-3/2) da`
    let rate = change / (2.0 * step) * a.powf(1.5) / start;
    for (name, exact) in [
        ("contrast", start.powi(-3) - 1.0),
        ("edge", 20.0 * start),
        ("rate", rate),
    ] {
        let found = constant(name);
        assert!(
            (found / exact - 1.0).abs() < 1e-6,
            "{name}: {found} {exact}"
        );
    }
}

/// Radius and time of the turnaround follow the exact solution.
#[test]
fn a_top_hat_has_the_turnaround_of_the_exact_solution() {
    let settings = [
        "domain.cells=[40, 40, 40]",
        "cosmology.end_redshift=0.85",
        "cosmology.redshifts=[]",
    ];
    let mut stepper = Stepper::new(TOP_HAT, &settings);
    let mut radii = Vec::new();
    loop {
        let [a] = stepper.columns(["scale_factor"]);
        let density = central_density(&mut stepper, 64.0 / 40.0);
        radii.push((a, a / density.cbrt()));
        if a > 0.54 {
            break;
        }
        stepper.steps(1);
    }
    let largest = (1..radii.len() - 1).max_by(|m, n| radii[*m].1.total_cmp(&radii[*n].1));
    let largest = largest.expect("steps");
    // the parabola through the largest radius and its neighbours
    let [(a0, r0), (a1, r1), (a2, r2)] = [largest - 1, largest, largest + 1].map(|n| radii[n]);
    let [first, second] = [(r1 - r0) / (a1 - a0), (r2 - r1) / (a2 - a1)];
    let bend = (second - first) / (a2 - a0);
    let at = 0.5 * (a0 + a1) - 0.5 * first / bend;
    let radius = r0 + (at - a0) * (first + bend * (at - a1));
    let exact = TURNAROUND * ratio(PI);
    let time = (at / TURNAROUND).powf(1.5);
    println!(
        "turnaround: radius {radius:.5} (exact {exact:.5}), time over the exact one {time:.5}"
    );
    assert!((radius / exact - 1.0).abs() < 0.01, "{radius} {exact}");
    assert!((time - 1.0).abs() < 0.01, "{time}");
}
