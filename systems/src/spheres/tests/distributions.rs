//! Tests of distribution functions and profiles.

use super::*;
use std::f64::consts::PI;

/// Returns the largest relative error of a distribution function for energies from 0.01 to 0.98 of the
/// maximum.
fn error(name: &str, sphere: &Sphere, most: f64, exact: impl Fn(f64) -> f64) -> f64 {
    let one = |n: u32| {
        let energy = 0.01 + 0.97 * f64::from(n) / 2000.0;
        (sphere.distribution(energy * most) / exact(energy) - 1.0).abs()
    };
    let largest = (0..=2000).map(one).fold(0.0, f64::max);
    println!("{name}: f to {largest:.1e}");
    largest
}

/// Binney & Tremaine 2008, equation 4.83: gravity, mass and radius 1.
fn plummer(e: f64) -> f64 {
    24.0 * 2f64.sqrt() / (7.0 * PI.powi(3)) * e.powf(3.5)
}

/// Hernquist 1990, equation 17: gravity, mass and radius 1.
fn hernquist(e: f64) -> f64 {
    let q = e.sqrt();
    let rest = 1.0 - e;
    let polynomial = q * rest.sqrt() * (1.0 - 2.0 * e) * (8.0 * e * e - 8.0 * e - 3.0);
    (3.0 * q.asin() + polynomial) / (8.0 * 2f64.sqrt() * PI.powi(3) * rest.powf(2.5))
}

#[test]
fn distributions_are_the_closed_forms() {
    let of = |name: &str| {
        let case = all().iter().find(|case| case.name == name);
        &case.unwrap().sphere
    };
    assert!(error("Plummer", of("Plummer"), 1.0, plummer) < 1e-6);
    assert!(error("Plummer from a table", of("table"), 1.0, plummer) < 1e-4);
    assert!(error("Hernquist", of("Hernquist"), 1.0, hernquist) < 1e-6);
}

/// Scales as gravity^(-3/2) mass^(-1/2) radius^(-3/2) at fixed energy over gravity mass/radius.
#[test]
fn distributions_scale_with_the_units() {
    let (gravity, mass, radius) = (43.0, 6e14, 0.3);
    let profile = Profile::plummer(mass, radius).unwrap();
    let sphere = Sphere::new(&profile, &[], gravity, f64::INFINITY).unwrap();
    let scale = (gravity * radius).powf(-1.5) * mass.powf(-0.5);
    let exact = |e: f64| scale * plummer(e);
    assert!(
        error(
            "Plummer in other units",
            &sphere,
            gravity * mass / radius,
            exact
        ) < 1e-5
    );
}

/// The integral over velocities is the density, independent of closed forms and with other mass.
#[test]
fn distributions_integrate_to_the_density() {
    for Case {
        name,
        profile,
        sphere,
        ..
    } in all()
    {
        let mut largest: f64 = 0.0;
        for r in [0.001, 0.01, 0.1, 1.0, 3.0, 9.0, 11.0, 15.0] {
            let depth = -sphere.potential(r);
            let speed = (2.0 * depth).sqrt();
            let shell = |v: f64| 4.0 * PI * v.powi(3) * sphere.distribution(depth - 0.5 * v * v);
            let sum = integral(1e-5 * speed, speed, shell);
            largest = largest.max((sum / profile.density(r) - 1.0).abs());
        }
        println!("{name}: density of f to {largest:.1e}");
        assert!(largest < 2e-3, "{name}: {largest}");
    }
}

#[test]
fn derivatives_and_masses_belong_to_the_density() {
    for Case { name, profile, .. } in all() {
        for r in [0.01_f64, 0.3, 1.0, 5.0, 12.0, 20.0] {
            let h = 1e-3 * r;
            let [low, _, high] = [-h, 0.0, h].map(|h| profile.density(r + h));
            let [density, first, second] = profile.derivatives(r);
            assert_eq!(density, profile.density(r));
            let by_difference = [
                (high - low) / (2.0 * h),
                (high - 2.0 * density + low) / (h * h),
            ];
            for (exact, difference) in [first, second].into_iter().zip(by_difference) {
                let scale = density / (r * r);
                assert!(
                    (exact - difference).abs() < 1e-3 * (exact.abs() + scale),
                    "{name}, r = {r}: {exact}, by difference {difference}"
                );
            }
            let shell = |r: f64| 4.0 * PI * r.powi(3) * profile.density(r);
            let mass = profile.mass(0.1 * r) + integral(0.1 * r, r, shell);
            assert!((mass / profile.mass(r) - 1.0).abs() < 1e-9, "{name}, {r}");
        }
    }
    let nfw = Profile::nfw(3.0, 10.0, 4.0, None).unwrap();
    assert!((nfw.mass(10.0) / 3.0 - 1.0).abs() < 1e-12);
    // value and slope are continuous at the cut, and both ways to compute the central mass agree
    let [inner, outer] = [10.0 - 1e-9, 10.0 + 1e-9].map(|r| nfw.derivatives(r));
    assert!((inner[0] / outer[0] - 1.0).abs() < 1e-8 && (inner[1] / outer[1] - 1.0).abs() < 1e-8);
    let [low, high] = [0.05 * (1.0 - 1e-9), 0.05 * (1.0 + 1e-9)].map(|r| nfw.mass(r));
    assert!((high / low - 1.0).abs() < 1e-8);
}

/// A core around a compact heavy mass would need a negative distribution function.
#[test]
fn densities_without_equilibrium_are_refused() {
    let core = Profile::plummer(1.0, 1.0).unwrap();
    let heavy = Profile::plummer(10.0, 0.01).unwrap();
    let error = Sphere::new(&core, &[heavy], 1.0, f64::INFINITY).unwrap_err();
    let SphereError::Negative { radius } = error else {
        panic!("{error}")
    };
    assert!(radius < 1.0, "{radius}");
    assert!(error.to_string().contains("out to the radius"), "{error}");
    let shell = Profile::table(
        &[0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0],
        &[0.1, 0.1, 0.1, 0.1, 0.2, 1.0, 0.01, 1e-4, 1e-6],
    );
    let error = Sphere::new(&shell.unwrap(), &[], 1.0, f64::INFINITY).unwrap_err();
    println!("{error}");
    assert!(matches!(error, SphereError::Negative { .. }));
    let sharp = Profile::nfw(1.0, 10.0, 10.0, Some(0.05)).unwrap();
    let error = Sphere::new(&sharp, &[], 1.0, f64::INFINITY).unwrap_err();
    println!("{error}");
    assert!(matches!(error, SphereError::Negative { radius } if radius > 2.0));
}
