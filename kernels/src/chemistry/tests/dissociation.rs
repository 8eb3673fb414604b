//! Dissociation of H2: rates, equilibrium with three-body formation, energy.
use super::super::dissociation::dissociation_rates;
use super::super::rates::{Dissociation, MYR, Temperature, ThreeBody, saha};
use super::super::species::{HEI, HI};
use super::super::table::table_position;
use super::*;
use nestar_device::Table;
use nestar_device::math::{exp, ln, log10, pow};

/// Returns neutral gas with this fraction of its hydrogen in H2.
fn molecular(fraction: f64, t: f64) -> Abundances<f64> {
    let mut s = Abundances {
        y: [0.0; 11],
        energy: 0.0,
    };
    (s.y[HI], s.y[H2], s.y[HEI]) = (1.0 - fraction, fraction / 2.0, HELIUM);
    let mut s = super::super::renormalised::<f64, 6>(&s, HELIUM, 0.0);
    s.energy = t * heat_capacity::<f64, 6>(&s, charge::<6>(&s));
    s
}

#[test]
fn saha_constant_follows_the_tables_of_janaf() {
    // 2 log10 of the equilibrium constant of formation of H, at 1 bar (Chase 1998)
    for (t, formation) in [
        (1500.0, -4.755),
        (2000.0, -2.788),
        (3000.0, -0.803),
        (4000.0, 0.203),
        (5000.0, 0.810),
    ] {
        let exact = 2.0 * formation + log10(1e6 / (1.380_649e-16 * t));
        let found = saha(Temperature::at(t)) / ln(10.0);
        println!("{t} K: {:e}, {:e}", pow(10.0, found), found - exact);
        assert!((found - exact).abs() < 8e-3, "{t} {found} {exact}");
    }
}

#[test]
fn dissociation_goes_from_low_density_to_equilibrium() {
    let at = |t| Dissociation::at(Temperature::at(t), ThreeBody::Glover08);
    for (t, low, dense) in [(2000.0, 1.93e-23, 2.18e-19), (4000.0, 2.35e-17, 7.57e-14)] {
        let cgs = |rates: [f64; 2]| rates[0] / MYR;
        assert!((cgs(at(t).rates(1e-6)) / low - 1.0).abs() < 1e-2);
        assert!((cgs(at(t).dense()) / dense - 1.0).abs() < 1e-2);
        assert!((at(t).rates(1e10)[0] / at(t).dense()[0] - 1.0).abs() < 1e-3);
    }
}

/// Returns the largest errors of the rates by H and by H2.
fn table_errors<R: Real>(p: &Network<f64>) -> [f64; 2] {
    let (mut worst, mut r) = ([0.0f64; 2], super::sample::Numbers(3));
    let table: Table<R> = p.dissociation.precise();
    for _ in 0..2000 {
        let (t, n) = (r.decades(3.1, 4.7), r.decades(0.0, 9.9));
        let exact = Dissociation::at(Temperature::at(t), ThreeBody::Glover08).rates(n);
        let found = dissociation_rates(&table, R::lit(n), &table_position(R::lit(t), 31));
        for (k, found) in [found.by_h, found.by_h2].into_iter().enumerate() {
            worst[k] = worst[k].max((found.to_f64() / exact[k] - 1.0).abs());
        }
    }
    worst
}

#[test]
fn dissociation_table_follows_the_fits() {
    let p = network(9, 1e-2, 1e-8);
    for [by_h, by_h2] in [table_errors::<f64>(&p), table_errors::<f32>(&p)] {
        println!("dissociation table: {by_h:.1e} {by_h2:.1e}");
        assert!(by_h < 2e-2 && by_h2 < 0.13);
    }
}

/// Returns n(H)^2/n(H2) over Saha's constant after 1000 dissociation times at a temperature.
fn over_saha<R: Real>(p: &Network<f64>, n: f64, t: f64, fraction: f64) -> f64 {
    let p = Network {
        floor: t,
        ..p.clone()
    };
    let rate = Dissociation::at(Temperature::at(t), ThreeBody::Glover08).rates(n)[0];
    let p = p.precise::<R>();
    let (end, substeps) = through::<R, 6, 7>(&p, n, to(&molecular(fraction, t)), 1e3 / (rate * n));
    let s = double(&end);
    let t = kelvin::<6>(&s);
    let found = n * s.y[HI] * s.y[HI] / s.y[H2] / exp(saha(Temperature::at(t)));
    println!(
        "n {n:e} T {t}: H2 {:e}, {found} of Saha, {substeps}",
        s.y[H2]
    );
    found
}

#[test]
fn dense_gas_reaches_the_equilibrium_of_saha() {
    let p = network(9, 1e-2, 1e-8);
    for t in [1500.0, 2000.0, 3000.0, 4000.0, 5000.0] {
        for n in [1e8, 1e9, 1e10, 1e11, 1e12, 1e14] {
            let (double, single) = (over_saha::<f64>, over_saha::<f32>);
            for found in [double(&p, n, t, 0.9), single(&p, n, t, 0.9)] {
                assert!((found - 1.0).abs() < 0.05);
            }
        }
    }
}

#[test]
fn a_molecule_takes_its_binding_energy() {
    let p = network(9, 1e-3, 1e-12);
    let start = molecular(0.02, 4000.0);
    let (end, _) = through::<f64, 6, 7>(&p, 1e12, start, 300.0 / MYR);
    let split = start.y[H2] - end.y[H2];
    let lost = start.energy - end.energy;
    println!(
        "{} K, H2 {:e}, {} K a molecule",
        kelvin::<6>(&end),
        end.y[H2],
        lost / split
    );
    assert!(split > 0.009 && (lost / split / (4.48 * 11_604.518) - 1.0).abs() < 2e-3);
}

/// Gas that forms molecules warms until three-body formation and dissociation balance.
#[test]
fn collapsing_core_keeps_the_temperature_of_dissociation() {
    let p = network(9, 1e-2, 1e-8);
    let mut start = molecular(1e-3, 1200.0);
    start.y[super::super::species::HII] = 1.3e-4;
    let (end, substeps) = through::<f64, 6, 7>(&p, 1e12, start, 1e-6);
    let t = kelvin::<6>(&end);
    let found = 1e12 * end.y[HI] * end.y[HI] / end.y[H2] / exp(saha(Temperature::at(t)));
    println!(
        "core: {t} K, H2 {:e}, {found} of Saha, {substeps}",
        end.y[H2]
    );
    assert!(t < 2100.0 && (found - 1.0).abs() < 0.05);
}
