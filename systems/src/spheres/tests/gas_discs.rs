//! Tests of discs of gas.

use super::discs::{Galaxy, galaxy};
use super::*;
use std::f64::consts::PI;

const MEDIUM: Medium = Medium {
    density: 1e-7,
    pressure: 1e-9,
};

/// A disc of gas beside the disc of particles, and the force of both.
fn discs() -> (DiscShape, GalaxyForce, [GasDisc; 2]) {
    let Galaxy {
        halo, bulge, shape, ..
    } = galaxy();
    let gas = DiscShape::new(0.25, 1.2, 0.15).unwrap();
    let spheres = [halo.clone(), bulge.clone()];
    let force = GalaxyForce::new(&spheres, &[*shape, gas], 1.0).unwrap();
    let discs = [None, Some(1e-2)].map(|ratio| GasDisc::new(gas, ratio, &force, MEDIUM).unwrap());
    (gas, force, discs)
}

/// The pressure gradient and gravity give the centripetal acceleration. With pressure by the weight of the gas, they
/// also balance along z.
#[test]
fn rotation_and_pressure_balance_gravity() {
    let (_, force, [held, isothermal]) = discs();
    let mut largest: f64 = 0.0;
    for r in [0.3, 1.0, 2.5, 5.0] {
        for z in [0.0, 0.1, 0.25] {
            for disc in [&held, &isothermal] {
                let state = |r: f64, z: f64| disc.state(r, z).unwrap();
                let h = 5e-3 * r;
                let slope = (state(r + h, z).pressure - state(r - h, z).pressure) / (2.0 * h);
                let GasDiscState {
                    density, rotation, ..
                } = state(r, z);
                let pull = density * force.at(r, z)[0];
                let residual = slope - density * rotation * rotation / r + pull;
                largest = largest.max(residual.abs() / pull);
                // the term of the pressure matters
                assert!(slope.abs() > 4e-3 * pull, "{r} {z}: {}", slope / pull);
            }
            if z > 0.0 {
                let pressure = |z: f64| held.state(r, z).unwrap().pressure;
                let slope = (pressure(z + 1e-3) - pressure(z - 1e-3)) / 2e-3;
                let weight = held.state(r, z).unwrap().density * force.at(r, z)[1];
                let ratio = slope / -weight;
                assert!((ratio - 1.0).abs() < 5e-3, "{r} {z}: {ratio}");
            }
        }
    }
    println!("residual {largest:.1e} of gravity");
    assert!(largest < 1e-3, "{largest}");
}

#[test]
fn isothermal_gas_has_its_temperature_and_ends_in_balance() {
    let (gas, _, [held, isothermal]) = discs();
    for (r, z) in [(0.0, 0.0), (2.0, -0.3), (7.0, 0.1)] {
        let state = isothermal.state(r, z).unwrap();
        assert!((state.pressure / state.density / 1e-2 - 1.0).abs() < 1e-12);
        assert_eq!(isothermal.state(r, -z), Some(state));
        assert_eq!(state.density, gas.density(r, z));
    }
    // the last gas outwards
    let last = |disc: &GasDisc| {
        let states = (0..4000).map(|n| disc.state(5e-3 * f64::from(n), 0.0));
        states.flatten().last().unwrap()
    };
    let edge = last(&isothermal);
    assert!(
        (edge.pressure / MEDIUM.pressure - 1.0).abs() < 0.01,
        "{edge:?}"
    );
    let edge = last(&held);
    assert!(
        (edge.density / MEDIUM.density - 1.0).abs() < 0.01,
        "{edge:?}"
    );
    assert!(edge.pressure >= MEDIUM.pressure && edge.rotation > 0.0);
}

/// The integral of the density over the disc.
#[test]
fn discs_of_gas_have_their_mass() {
    let (gas, _, [held, _]) = discs();
    let density = |r: f64, z: f64| held.state(r, z).map_or(0.0, |state| state.density);
    let column = |r: f64| 2.0 * integral(1e-4, 3.0, |z| z * density(r, z)) + 2e-4 * density(r, 0.0);
    let steps = 60;
    let part = |n: i32| {
        let r = 12.0 * (f64::from(n) + 0.5) / f64::from(steps);
        2.0 * PI * r * column(r) * 12.0 / f64::from(steps)
    };
    let mass: f64 = (0..steps).map(part).sum();
    assert!((mass / gas.mass() - 1.0).abs() < 3e-3, "{mass}");
}

#[test]
fn gas_that_is_too_hot_is_refused() {
    let (gas, force, _) = discs();
    for (ratio, key) in [
        (3.0, "sound_speed"),
        (-1.0, "sound_speed"),
        (f64::NAN, "sound_speed"),
    ] {
        match GasDisc::new(gas, Some(ratio), &force, MEDIUM) {
            Err(SphereError::Parameter { key: found, .. }) => assert_eq!(found, key),
            other => panic!("{:?}", other.map(|_| ())),
        }
    }
}
