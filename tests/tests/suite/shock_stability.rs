//! Strong shocks that are aligned with the mesh do not break up (Quirk 1994, Int. J. Numer. Methods Fluids 18, 555).

use nestar_tests::Stepper;
use std::collections::BTreeMap;

/// A Mach 6 shock along the axis `along`, with the density disturbed by 1e-6 in the middle rows.
fn deck(along: usize) -> String {
    let across = (along + 1) % 3;
    let (x, y) = (["x", "y", "z"][along], ["x", "y", "z"][across]);
    let cells = [0, 1, 2].map(|axis| if axis == along { 160 } else { 8 });
    let right = [0, 1, 2].map(|axis| if axis == along { 4.0 } else { 0.2 });
    let ends = |axis| match axis == along {
        true => "\"outflow\"",
        false => "\"periodic\"",
    };
    let (a, b, c) = (ends(0), ends(1), ends(2));
    format!(
        r#"
        scenario = "formula"
        [constants]
        g = 1.4
        M = 6.0
        [initial]
        density = "if({x}<0.1, (g+1)*M^2/((g-1)*M^2+2), 1)*(1+1e-6*if(abs({y}-0.1)<1/40, if(sin(pi*{x}*160)>0,1,-1), 0))"
        pressure = "if({x}<0.1, (2*g*M^2-(g-1))/(g+1), 1)/1.4"
        velocity_{x} = "if({x}<0.1, M*(1-((g-1)*M^2+2)/((g+1)*M^2)), 0)"
        [domain]
        cells = {cells:?}
        right_edge = {right:?}
        boundary = {{ x = {a}, y = {b}, z = {c} }}
        [time]
        end = 0.6
        [mesh]
        [hydro]
        gamma = 1.4
        "#
    )
}

/// Returns the largest difference of density among the cells of a plane across the shock, relative to their mean.
fn unevenness(along: usize, settings: &[&str]) -> f64 {
    let state = Stepper::new(&deck(along), settings).finish().state();
    let mut planes: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    state.each_leaf_cell(|_, centre, _, u| {
        planes
            .entry(centre[along].to_bits())
            .or_default()
            .push(u[0]);
    });
    let uneven = |plane: &Vec<f64>| {
        let most = plane.iter().copied().fold(f64::MIN, f64::max);
        let least = plane.iter().copied().fold(f64::MAX, f64::min);
        (most - least) * plane.len() as f64 / plane.iter().sum::<f64>()
    };
    planes.values().map(uneven).fold(0.0, f64::max)
}

#[test]
fn an_aligned_shock_breaks_up_without_a_cure() {
    assert!(unevenness(0, &["hydro.shock_cure=none"]) > 1e-2);
}

#[test]
fn rows_stay_equal_behind_an_aligned_shock() {
    for (along, scheme, reconstruction, riemann) in [
        (0, "muscl-hancock", "plm", "hllc"),
        (1, "vl", "plm", "hllc"),
        (2, "muscl-hancock", "ppm", "hllc"),
        (0, "muscl-hancock", "plm", "exact"),
    ] {
        let settings = [
            "hydro.shock_cure=hlle".to_owned(),
            format!("hydro.scheme={scheme}"),
            format!("hydro.reconstruction={reconstruction}"),
            format!("hydro.riemann={riemann}"),
        ];
        let found = unevenness(along, &settings.each_ref().map(String::as_str));
        assert!(found < 1e-3, "{settings:?}: {found:e}");
    }
}
