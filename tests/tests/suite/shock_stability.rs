//! Strong shocks that are aligned with the mesh do not break up (Quirk 1994, Int. J. Numer. Methods Fluids 18, 555).

use nestar_tests::Stepper;
use std::collections::BTreeMap;

/// Returns the tables of a box that is long along one axis, with an open end there and two periodic axes.
fn domain(along: usize, cells: usize, end: f64) -> String {
    let row = [0, 1, 2].map(|axis| if axis == along { cells } else { 8 });
    let right = row.map(|n| n as f64 / 40.0);
    let [a, b, c] = [0, 1, 2].map(|axis| match axis == along {
        true => "\"outflow\"",
        false => "\"periodic\"",
    });
    format!(
        r#"
        [domain]
        cells = {row:?}
        right_edge = {right:?}
        boundary = {{ x = {a}, y = {b}, z = {c} }}
        [time]
        end = {end}
        [mesh]
        [hydro]
        gamma = 1.4
        "#
    )
}

/// A Mach 6 shock along the axis `along`, with the density disturbed by 1e-6 in the middle rows.
fn deck(along: usize) -> String {
    let across = (along + 1) % 3;
    let (x, y) = (["x", "y", "z"][along], ["x", "y", "z"][across]);
    let domain = domain(along, 160, 0.6);
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
        {domain}
        "#
    )
}

/// A shock of the given Mach number along the axis `along`, at a face between cells, that moves with `speed` (in sound speeds of the gas
/// ahead of it). Around it, the density differs from cell to cell, and in a wave along the front.
fn slow_shock(along: usize, mach: f64, speed: f64) -> String {
    let across = (along + 1) % 3;
    let (x, y) = (["x", "y", "z"][along], ["x", "y", "z"][across]);
    let domain = domain(along, 40, 8.0 / mach);
    format!(
        r#"
        scenario = "formula"
        [constants]
        g = 1.4
        M = {mach:?}
        v = {speed:?}
        [initial]
        density = "if({x}<0.5, 1, (g+1)*M^2/((g-1)*M^2+2))*(1+1e-6*if(abs({x}-0.5)<0.3, sin(10*pi*{y})+if(sin(pi*({x}+{y})*40+1)>0,1,-1), 0))"
        pressure = "if({x}<0.5, 1, (2*g*M^2-(g-1))/(g+1))/1.4"
        velocity_{x} = "if({x}<0.5, M, ((g-1)*M^2+2)/((g+1)*M))+v"
        {domain}
        "#
    )
}

/// Returns the largest difference of density among the cells of a plane across the shock, relative to their mean.
fn unevenness(deck: &str, along: usize, settings: &[&str]) -> f64 {
    let state = Stepper::new(deck, settings).finish().state();
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
    assert!(unevenness(&deck(0), 0, &["hydro.shock_cure=none"]) > 1e-2);
    let at_rest = slow_shock(0, 6.0, 0.0);
    assert!(unevenness(&at_rest, 0, &["hydro.shock_cure=none"]) > 1e-2);
}

#[test]
fn rows_stay_equal_behind_an_aligned_shock() {
    for (along, scheme, reconstruction, riemann) in [
        (0, "muscl-hancock", "plm", "hllc"),
        (1, "vl", "plm", "hllc"),
        (2, "muscl-hancock", "ppm", "hllc"),
        (0, "muscl-hancock", "plm", "exact"),
        (1, "ctu", "plm", "hllc"),
    ] {
        rows_stay_equal(&deck(along), along, [scheme, reconstruction, riemann]);
    }
}

#[test]
fn rows_stay_equal_behind_a_shock_at_rest() {
    for (along, mach, scheme, reconstruction, riemann) in [
        (0, 6.0, "muscl-hancock", "plm", "hllc"),
        (1, 20.0, "muscl-hancock", "plm", "hllc"),
        (2, 6.0, "muscl-hancock", "ppm", "exact"),
        (0, 20.0, "vl", "plm", "hllc"),
        (1, 20.0, "vl", "ppm", "hllc"),
        (2, 6.0, "muscl-hancock", "plm", "hlle"),
        (0, 20.0, "ctu", "plm", "hllc"),
    ] {
        let deck = slow_shock(along, mach, 0.0);
        rows_stay_equal(&deck, along, [scheme, reconstruction, riemann]);
    }
}

#[test]
fn rows_stay_equal_behind_a_slow_shock() {
    for (along, mach, speed, scheme) in [
        (0, 20.0, 0.02, "vl"),
        (1, 6.0, 0.1, "vl"),
        (2, 20.0, -0.1, "muscl-hancock"),
        (0, 6.0, -0.3, "vl"),
        (1, 20.0, 0.02, "ctu"),
    ] {
        let deck = slow_shock(along, mach, speed);
        rows_stay_equal(&deck, along, [scheme, "plm", "hllc"]);
    }
}

fn rows_stay_equal(deck: &str, along: usize, [scheme, reconstruction, riemann]: [&str; 3]) {
    let settings = [
        "hydro.shock_cure=hlle".to_owned(),
        format!("hydro.scheme={scheme}"),
        format!("hydro.reconstruction={reconstruction}"),
        format!("hydro.riemann={riemann}"),
    ];
    let found = unevenness(deck, along, &settings.each_ref().map(String::as_str));
    assert!(found < 1e-3, "{deck} {settings:?}: {found:e}");
}
