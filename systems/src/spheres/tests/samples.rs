//! Tests of sampled particles.

use super::*;
use std::f64::consts::PI;

const COUNT: u64 = 100_000;

/// Virial theorem, Jeans equation and mass profile with 1e5 particles each. With 1e6 particles the virial
/// theorem holds within 2e-3, at a noise of 1e-3.
#[test]
fn samples_are_in_equilibrium() {
    for Case {
        name,
        others,
        profile,
        sphere,
    } in all()
    {
        let particles = draw(sphere, COUNT);
        let mass = |r: f64| profile.mass(r) + others.iter().map(|p| p.mass(r)).sum::<f64>();
        let ratio = virial(&particles, mass);
        println!("{name}: 2T/|W| = {ratio:.5}");
        assert!((ratio - 1.0).abs() < 6e-3, "{name}: {ratio}");
        jeans(name, profile, &particles, mass);
        masses(name, sphere, profile, &particles);
        for (x, v) in &particles {
            let potential = sphere.potential(dot(*x, *x).sqrt());
            assert!(0.5 * dot(*v, *v) <= -potential * (1.0 + 1e-12), "{name}");
        }
    }
}

/// Returns twice the kinetic energy over the virial of the forces.
fn virial(particles: &[([f64; 3], [f64; 3])], mass: impl Fn(f64) -> f64) -> f64 {
    let [mut twice_kinetic, mut virial] = [0.0; 2];
    for (x, v) in particles {
        let r = dot(*x, *x).sqrt();
        twice_kinetic += dot(*v, *v);
        virial += mass(r) / r;
    }
    twice_kinetic / virial
}

/// Compares the velocity variance along each spherical axis with the integral of `rho G M/r^2`, in shells.
fn jeans(
    name: &str,
    profile: &Profile,
    particles: &[([f64; 3], [f64; 3])],
    mass: impl Fn(f64) -> f64,
) {
    for r in [0.1_f64, 0.3, 1.0, 3.0] {
        // mass-weighted over the shell
        let pressure = |r: f64| integral(r, 1e3, |r| profile.density(r) * mass(r) / r);
        let (low, high) = (r / 1.1, r * 1.1);
        let shell = |r: f64| 4.0 * PI * r.powi(3);
        let mut exact = 0.0;
        // Simpson's rule with two intervals in ln r suffices for such a thin shell
        for (r, weight) in [(low, 1.0), (r, 4.0), (high, 1.0)] {
            exact += weight * shell(r) * pressure(r);
        }
        exact *= (high / low).ln() / 6.0 / (profile.mass(high) - profile.mass(low));
        // number, and the first two moments of the squares along and across the radius
        let mut sums = [0.0; 5];
        for (x, v) in particles {
            let distance = dot(*x, *x).sqrt();
            if distance > low && distance < high {
                let radial = (dot(*x, *v) / distance).powi(2);
                let across = (dot(*v, *v) - radial) / 2.0;
                let each = [1.0, radial, radial * radial, across, across * across];
                for (sum, one) in sums.iter_mut().zip(each) {
                    *sum += one;
                }
            }
        }
        let means = sums.map(|sum| sum / sums[0]);
        let error =
            |mean: f64, square: f64| (mean - exact) / ((square - mean * mean) / sums[0]).sqrt();
        let errors = [error(means[1], means[2]), error(means[3], means[4])];
        println!(
            "{name}: r = {r}, {} particles, variances off by {errors:.2?} sigma",
            sums[0]
        );
        assert!(errors.iter().all(|e| e.abs() < 3.2), "{name}: {errors:?}");
    }
}

/// Compares the fraction of particles within radii with the enclosed mass.
fn masses(name: &str, sphere: &Sphere, profile: &Profile, particles: &[([f64; 3], [f64; 3])]) {
    let mut radii: Vec<f64> = particles.iter().map(|(x, _)| dot(*x, *x).sqrt()).collect();
    radii.sort_by(f64::total_cmp);
    let off =
        |(n, &r): (usize, &f64)| (n as f64 / COUNT as f64 - profile.mass(r) / sphere.mass()).abs();
    let largest = radii.iter().enumerate().map(off).fold(0.0, f64::max);
    println!("{name}: mass profile off by {largest:.1e}");
    // Kolmogorov test at a significance of 0.001
    assert!(largest < 6.2e-3, "{name}: {largest}");
}

/// Virial theorem without noise: lattice points in radius and speed instead of random numbers.
#[test]
fn samples_have_no_bias() {
    const SIDE: u32 = 400;
    for Case {
        name,
        others,
        profile,
        sphere,
    } in all()
    {
        let at = |n: u32| (f64::from(n) + 0.5) / f64::from(SIDE);
        let mut particles = Vec::new();
        for n in 0..SIDE * SIDE {
            let [share, slower] = [n % SIDE, n / SIDE].map(at);
            particles.push(sphere.sample([share, 0.5, 0.5, slower, 0.5, 0.5]));
        }
        let mass = |r: f64| profile.mass(r) + others.iter().map(|p| p.mass(r)).sum::<f64>();
        let ratio = virial(&particles, mass);
        println!("{name}: 2T/|W| = {ratio:.6} on a lattice");
        assert!((ratio - 1.0).abs() < 3e-4, "{name}: {ratio}");
    }
}

#[test]
fn directions_are_isotropic_and_independent() {
    let profile = Profile::hernquist(1.0, 1.0).unwrap();
    let sphere = Sphere::new(&profile, &[], 1.0, 30.0).unwrap();
    let particles = draw(&sphere, 300_000);
    let mut sums = [[0.0; 6]; 2];
    for (x, v) in &particles {
        assert!(dot(*x, *x).sqrt() <= 30.0);
        for (sums, a) in sums.iter_mut().zip([x, v]) {
            let size = dot(*a, *a).sqrt();
            let a = a.map(|a| a / size);
            let six = [a[0], a[1], a[2], a[0] * a[1], a[1] * a[2], a[2] * a[0]];
            for (sum, one) in sums.iter_mut().zip(six) {
                *sum += one / particles.len() as f64;
            }
        }
    }
    // variances 1/3 and 1/15
    for sum in sums.as_flattened() {
        assert!(sum.abs() < 4.0 / (3.0 * 3e5_f64).sqrt(), "{sums:?}");
    }
}

/// A truncation removes particles and changes nothing else.
#[test]
fn truncations_leave_out_the_particles_beyond() {
    let profile = Profile::hernquist(1.0, 1.0).unwrap();
    let whole = Sphere::new(&profile, &[], 1.0, f64::INFINITY).unwrap();
    let part = Sphere::new(&profile, &[], 1.0, 9.0).unwrap();
    assert!((part.mass() - 0.81).abs() < 1e-12);
    let at = |share: f64| [share, 0.2, 0.3, 0.4, 0.5, 0.6];
    let half = 0.4 / whole.mass();
    let (a, b) = (whole.sample(at(half)), part.sample(at(0.4 / 0.81)));
    for axis in 0..3 {
        assert!((a.0[axis] - b.0[axis]).abs() < 1e-9 && (a.1[axis] - b.1[axis]).abs() < 1e-9);
    }
}

/// Extreme uniform numbers give finite particles within the truncation.
#[test]
fn extremes_are_finite() {
    let least = [0.0, f64::MIN_POSITIVE, 1e-17];
    let most = [1.0 - f64::EPSILON / 2.0, 1.0];
    for Case { name, sphere, .. } in all() {
        for share in least.into_iter().chain(most).chain([0.5]) {
            for slower in least.into_iter().chain(most) {
                let (x, v) = sphere.sample([share, 0.0, 0.0, slower, 1.0, 1.0]);
                let finite = x.iter().chain(&v).all(|n| n.is_finite());
                assert!(finite, "{name}: {x:?}, {v:?}");
            }
        }
    }
    let profile = Profile::hernquist(1.0, 1.0).unwrap();
    let part = Sphere::new(&profile, &[], 1.0, 50.0).unwrap();
    for share in most {
        let (x, _) = part.sample([share, 0.0, 0.0, 0.5, 1.0, 1.0]);
        assert!(dot(x, x) <= 2500.0 * (1.0 + 1e-15), "{x:?}");
    }
}

/// The same bits on every machine.
#[test]
fn samples_are_bitwise_reproducible() {
    let mut digest: u64 = 0;
    // the table of this module uses functions of the platform
    for case in all().iter().filter(|case| case.name != "table") {
        for (x, v) in draw(&case.sphere, 1000) {
            for number in x.into_iter().chain(v) {
                let mixed = digest.wrapping_mul(0x5851_f42d_4c95_7f2d);
                digest = mixed.rotate_left(23) ^ number.to_bits();
            }
        }
    }
    assert_eq!(digest, 0x04d4_a199_7be8_25fb, "{digest:#018x}");
}
