//! Tests of hydrostatic gas and of orbits.

use super::*;
use std::f64::consts::PI;

/// A Plummer density in its own potential has the pressure `gravity mass^2/(8 pi radius^4) (1 +
/// r^2/radius^2)^(-3)`, the polytrope of index 5.
#[test]
fn the_pressure_of_plummers_sphere_is_exact() {
    let (gravity, mass, radius) = (4.3, 2.0, 0.7);
    let profile = Profile::plummer(mass, radius).unwrap();
    let exact = |r: f64| {
        gravity * mass * mass / (8.0 * PI * radius.powi(4)) / (1.0 + (r / radius).powi(2)).powi(3)
    };
    let gas = HydrostaticGas::new(&profile, &[], gravity, 20.0, exact(20.0)).unwrap();
    let mut largest: f64 = 0.0;
    for n in 0..=400 {
        let r = 1e-5 * 2e6_f64.powf(f64::from(n) / 400.0);
        largest = largest.max((gas.pressure(r) / exact(r) - 1.0).abs());
        assert!((gas.density(r) / profile.density(r) - 1.0).abs() < 5e-8);
    }
    println!("pressure to {largest:.1e}");
    // constant within 1e-4 radii
    assert!(largest < 5e-8, "{largest}");
    assert!((gas.pressure(0.0) / exact(0.0) - 1.0).abs() < 1e-7);
    // the surrounding medium
    assert_eq!(gas.density(50.0), profile.density(20.0));
    assert!((gas.pressure(50.0) / exact(20.0) - 1.0).abs() < 1e-12);
}

#[test]
fn the_gas_at_several_radii_has_the_bits_of_each_alone() {
    let total = Profile::nfw(6.0, 1.55, 4.5, None).unwrap();
    let plummer = Profile::plummer(2.0, 0.7).unwrap();
    for profile in [total, plummer] {
        let gas = HydrostaticGas::new(&profile, &[], 0.45, 2.0, 1e-4).unwrap();
        let radii: Vec<f64> = (0..67).map(|n| 0.04 * f64::from(n)).collect();
        let [densities, pressures] = gas.states(&radii);
        for (n, &r) in radii.iter().enumerate() {
            assert_eq!(densities[n].to_bits(), gas.density(r).to_bits(), "{r}");
            assert_eq!(pressures[n].to_bits(), gas.pressure(r).to_bits(), "{r}");
        }
    }
}

/// The pressure gradient balances the weight of the gas in the total potential, for every profile.
#[test]
fn the_pressure_holds_the_gas() {
    let halo = Profile::nfw(0.9, 10.0, 10.0, None).unwrap();
    let gas = Profile::nfw(0.9, 10.0, 10.0, None)
        .unwrap()
        .scaled(0.1 / 0.9)
        .unwrap();
    let held = HydrostaticGas::new(&gas, std::slice::from_ref(&halo), 1.0, 20.0, 1e-9).unwrap();
    for r in [0.01_f64, 0.1, 1.0, 5.0, 9.0, 15.0] {
        let h = 1e-4 * r;
        let slope = (held.pressure(r + h) - held.pressure(r - h)) / (2.0 * h);
        let weight = held.density(r) * (halo.mass(r) + gas.mass(r)) / (r * r);
        assert!(
            (slope / -weight - 1.0).abs() < 1e-6,
            "{r}: {slope}, {weight}"
        );
    }
}

#[test]
fn pairs_have_the_orbit_in_the_frame_of_their_centre_of_mass() {
    let orbit = Orbit {
        separation: 5.0,
        speed: 2.0,
        impact_parameter: 3.0,
        mass_ratio: 0.25,
    };
    let [first, second] = orbit.centres().unwrap();
    for axis in 0..3 {
        let place = 4.0 * first.position[axis] + second.position[axis];
        let momentum = 4.0 * first.velocity[axis] + second.velocity[axis];
        assert!(place.abs() < 1e-14 && momentum.abs() < 1e-14);
    }
    let apart = [0, 1, 2].map(|a| second.position[a] - first.position[a]);
    let relative = [0, 1, 2].map(|a| second.velocity[a] - first.velocity[a]);
    for (value, exact) in apart.into_iter().zip([4.0, 3.0, 0.0]) {
        assert!((value - exact).abs() < 1e-14, "{apart:?}");
    }
    assert_eq!(relative, [-2.0, 0.0, 0.0]);
}
