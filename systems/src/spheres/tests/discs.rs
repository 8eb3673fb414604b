//! Tests of the force of discs, and of discs of particles.

use super::*;
use std::f64::consts::PI;
use std::sync::OnceLock;

const COUNT: u64 = 40_000;

/// A disc of 1/20 of the mass of its halo, and a bulge, in units of the disc.
pub(super) struct Galaxy {
    pub halo: Profile,
    pub bulge: Profile,
    pub shape: DiscShape,
    pub force: GalaxyForce,
    pub disc: Disc,
}

pub(super) fn galaxy() -> &'static Galaxy {
    static GALAXY: OnceLock<Galaxy> = OnceLock::new();
    GALAXY.get_or_init(|| {
        let halo = Profile::nfw(20.0, 60.0, 10.0, None).unwrap();
        let bulge = Profile::hernquist(0.1, 0.1).unwrap();
        let shape = DiscShape::new(1.0, 1.0, 0.1).unwrap();
        let force = GalaxyForce::new(&[halo.clone(), bulge.clone()], &[shape], 1.0).unwrap();
        let disc = Disc::new(shape, 1.5, &force, f64::INFINITY).unwrap();
        Galaxy {
            halo,
            bulge,
            shape,
            force,
            disc,
        }
    })
}

fn particles() -> &'static [([f64; 3], [f64; 3])] {
    static ALL: OnceLock<Vec<([f64; 3], [f64; 3])>> = OnceLock::new();
    ALL.get_or_init(|| draw_disc(&galaxy().disc, COUNT))
}

fn draw_disc(disc: &Disc, count: u64) -> Vec<([f64; 3], [f64; 3])> {
    let stream = Stream {
        seed: 3,
        purpose: 4,
        step: 0,
    };
    let one = |id: u64| {
        let [[a, b], [c, _]] = [0, 1].map(|n| uniforms::<f64>(of_id(&stream, id, n)));
        let [[u, v], [w, _]] = [2, 3].map(|n| normals::<f64>(of_id(&stream, id, n)));
        disc.sample([a, b, c], [u, v, w])
    };
    (0..count).map(one).collect()
}

/// Integrates over an interval by the trapezoidal rule.
fn trapezoid(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    const STEPS: usize = 400;
    let at = |n: usize| low + (high - low) * n as f64 / STEPS as f64;
    let inner: f64 = (1..STEPS).map(|n| f(at(n))).sum();
    (inner + 0.5 * (f(low) + f(high))) * (high - low) / STEPS as f64
}

/// Square of the circular speed of a thin disc of unit mass and radius (Freeman, ApJ 160, 811 (1970)), from the
/// integrals of the Bessel functions.
fn freeman(r: f64) -> f64 {
    let y = 0.5 * r;
    let first = |n: f64| trapezoid(0.0, PI, |t| (y * t.cos()).exp() * (n * t).cos()) / PI;
    let second = |n: f64| trapezoid(0.0, 12.0, |t| (-y * t.cosh()).exp() * (n * t).cosh());
    2.0 * y * y * (first(0.0) * second(0.0) - first(1.0) * second(1.0))
}

#[test]
fn thin_discs_have_the_circular_speed_of_freeman() {
    let mut largest: f64 = 0.0;
    for r in [0.01, 0.1, 0.3, 1.0, 2.2, 5.0, 12.0, 20.0] {
        let [across, up] = thin_force(r, 0.0);
        largest = largest.max((r * across / freeman(r) - 1.0).abs());
        if r < 10.0 {
            // half of the surface density attracts from each side
            largest = largest.max((up / (-r).exp() - 1.0).abs());
        }
    }
    println!("thin disc to {largest:.1e}");
    assert!(largest < 6e-5, "{largest}");
    let (mass, radius, gravity) = (3.0, 2.0, 0.7);
    let shape = DiscShape::new(mass, radius, 0.01 * radius).unwrap();
    let force = GalaxyForce::new(&[], &[shape], gravity).unwrap();
    for r in [1.0, 2.0, 4.4, 10.0, 30.0] {
        let exact = (gravity * mass / radius * freeman(r / radius)).sqrt();
        let ratio = force.circular_speed(r) / exact;
        println!("v/v_Freeman at {r}: {ratio:.5}");
        assert!((ratio - 1.0).abs() < 0.01, "{r}: {ratio}");
    }
}

/// Poisson's equation within a disc, and the force of a point far away.
#[test]
fn forces_of_discs_follow_from_their_density() {
    let mut largest: f64 = 0.0;
    for height in [0.02, 0.1, 0.5] {
        let shape = DiscShape::new(1.0, 1.0, height).unwrap();
        let force = GalaxyForce::new(&[], &[shape], 1.0).unwrap();
        for r in [0.3_f64, 1.0, 2.5, 6.0] {
            for z in [0.3, 1.0, 2.0].map(|z| z * height) {
                let h = 0.05 * height;
                let across = |r: f64| r * force.at(r, z)[0];
                let up = |z: f64| force.at(r, z)[1];
                let sum = (across(r + h) - across(r - h)) / (2.0 * h * r)
                    + (up(z + h) - up(z - h)) / (2.0 * h);
                let ratio = sum / (4.0 * PI * shape.density(r, z));
                largest = largest.max((ratio - 1.0).abs());
            }
        }
        for (r, z) in [(23.0, 1.0), (25.0, 1.0), (1.0, 23.0)] {
            let pull = force.at(r, z);
            let size = (pull[0] * pull[0] + pull[1] * pull[1]).sqrt() * (r * r + z * z);
            assert!((size - 1.0).abs() < 0.02, "{r} {z}: {size}");
        }
    }
    println!("Poisson's equation to {largest:.1e} of the density");
    assert!(largest < 6e-3, "{largest}");
}

/// A thin disc alone is the isothermal sheet of Spitzer: the vertical dispersion is `sqrt(pi G Sigma height)`.
#[test]
fn the_vertical_dispersion_is_that_of_the_isothermal_sheet() {
    let shape = DiscShape::new(1.0, 1.0, 0.01).unwrap();
    let force = GalaxyForce::new(&[], &[shape], 1.0).unwrap();
    let disc = Disc::new(shape, 0.5, &force, f64::INFINITY).unwrap();
    for z in [0.0, 0.01, -0.02] {
        let sheet = (PI * shape.surface_density(1.5) * 0.01).sqrt();
        let ratio = disc.motion(1.5, z).vertical / sheet;
        assert!((ratio - 1.0).abs() < 0.02, "{z}: {ratio}");
    }
}

#[test]
fn toomres_number_sets_the_radial_dispersion() {
    let Galaxy {
        shape, force, disc, ..
    } = galaxy();
    let (r, h) = (2.5, 1e-2);
    let square = |r: f64| (force.circular_speed(r) / r).powi(2);
    let epicyclic = (4.0 * square(r) + r * (square(r + h) - square(r - h)) / (2.0 * h)).sqrt();
    let motion = disc.motion(r, 0.0);
    let toomre = motion.radial * epicyclic / (3.36 * shape.surface_density(r));
    assert!((toomre - 1.5).abs() < 1e-3, "{toomre}");
    let ratio = motion.azimuthal / motion.radial;
    let epicycle = epicyclic / (2.0 * square(r).sqrt());
    assert!((ratio - epicycle).abs() < 1e-3, "{ratio} {epicycle}");
    // asymmetric drift (Binney & Tremaine 2008, equation 4.228) at constant orientation of the velocity ellipsoid
    let drift = motion.radial.powi(2) * (ratio.powi(2) - 1.0 + 2.0 * r);
    let exact = (force.circular_speed(r).powi(2) - drift).sqrt();
    assert!((motion.rotation / exact - 1.0).abs() < 1e-6, "{motion:?}");
    assert!(
        motion.rotation < 0.99 * force.circular_speed(r),
        "{motion:?}"
    );
}

/// Fractions of the mass within radii and below heights.
#[test]
fn particles_of_discs_have_the_density() {
    let shape = galaxy().shape;
    let mut radii: Vec<f64> = particles().iter().map(|(x, _)| x[0].hypot(x[1])).collect();
    let mut heights: Vec<f64> = particles().iter().map(|(x, _)| x[2]).collect();
    let below = |z: f64| 0.5 * (1.0 + (z / 0.1).tanh());
    let within = |r: f64| shape.mass_within(r);
    let largest = [
        kolmogorov(&mut radii, &within),
        kolmogorov(&mut heights, &below),
    ];
    println!("off by {largest:.1?}");
    // at a significance of 0.001 both deviate by less than 1.95/sqrt(N)
    assert!(largest.iter().all(|d| *d < 1.95), "{largest:?}");
    let averaged = shape.averaged().unwrap();
    let mut radii: Vec<f64> = particles()
        .iter()
        .map(|(x, _)| dot(*x, *x).sqrt())
        .collect();
    let off = kolmogorov(&mut radii, &|r| averaged.mass(r));
    assert!(off < 1.95, "{off}");
    assert!((averaged.mass(15.0) / shape.mass_within(15.0) - 1.0).abs() < 1e-4);
}

/// Returns the largest deviation of a distribution in units of 1/sqrt(N).
fn kolmogorov(values: &mut [f64], share: &dyn Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let off = |(n, x): (usize, &f64)| (n as f64 / count - share(*x)).abs();
    values.iter().enumerate().map(off).fold(0.0, f64::max) * count.sqrt()
}

/// Means and dispersions in a ring are those of the Jeans equations, and particles turn counterclockwise.
#[test]
fn particles_of_discs_rotate_with_dispersion() {
    let disc = &galaxy().disc;
    for r in [0.7, 1.5, 3.0] {
        let ring = particles().iter().filter(|(x, _)| {
            let distance = x[0].hypot(x[1]);
            (distance / r - 1.0).abs() < 0.02
        });
        let velocities: Vec<[f64; 3]> = ring
            .map(|(x, v)| {
                let distance = x[0].hypot(x[1]);
                let out = (x[0] * v[0] + x[1] * v[1]) / distance;
                // relative to the mean at the height of the particle
                let mean = disc.motion(distance, x[2]).rotation;
                [out, (x[0] * v[1] - x[1] * v[0]) / distance - mean, v[2]]
            })
            .collect();
        let count = velocities.len() as f64;
        let motion = disc.motion(r, 0.05);
        let sigmas = [motion.radial, motion.azimuthal, motion.vertical];
        for axis in 0..3 {
            let mean = velocities.iter().map(|v| v[axis]).sum::<f64>() / count;
            let square = velocities.iter().map(|v| v[axis] * v[axis]).sum::<f64>() / count;
            let ratio = square.sqrt() / sigmas[axis];
            println!("{r} {axis}: {count} particles, {mean:.4}, {ratio:.4}");
            assert!(mean.abs() < 3.5 * sigmas[axis] / count.sqrt(), "{mean}");
            assert!(
                (ratio - 1.0).abs() < 0.02 + 2.5 / count.sqrt(),
                "{r} {axis}: {ratio}"
            );
        }
    }
    let spin = |(x, v): &([f64; 3], [f64; 3])| x[0] * v[1] - x[1] * v[0];
    let along = particles().iter().filter(|p| spin(p) > 0.0).count();
    assert!(along as f64 > 0.98 * COUNT as f64, "{along}");
}

/// The virial theorem along the plane and across it: the mean square of the velocity is the mean of the position
/// times the acceleration.
#[test]
fn particles_of_discs_obey_the_virial_theorem() {
    let force = &galaxy().force;
    let [mut motion, mut pull] = [[0.0; 2]; 2];
    for (x, v) in particles() {
        let r = x[0].hypot(x[1]);
        let [across, up] = force.at(r, x[2].abs());
        for (sum, one) in motion
            .iter_mut()
            .zip([v[0] * v[0] + v[1] * v[1], v[2] * v[2]])
        {
            *sum += one;
        }
        for (sum, one) in pull.iter_mut().zip([r * across, x[2].abs() * up]) {
            *sum += one;
        }
    }
    let ratios = [motion[0] / pull[0], motion[1] / pull[1]];
    println!("virial ratios {ratios:.4?}");
    assert!((ratios[0] - 1.0).abs() < 5e-3, "{ratios:?}");
    assert!((ratios[1] - 1.0).abs() < 2e-2, "{ratios:?}");
}

#[test]
fn particles_of_discs_end_at_the_truncation() {
    let Galaxy { shape, force, .. } = galaxy();
    let disc = Disc::new(*shape, 1.5, force, 3.0).unwrap();
    assert_eq!(disc.mass(), shape.mass_within(3.0));
    for [a, b, c] in [
        [0.0; 3],
        [1.0 - 1e-16, 0.3, 1.0 - 1e-16],
        [0.5, 0.999, 1e-300],
    ] {
        let (x, v) = disc.sample([a, b, c], [1.0, -2.0, 8.0]);
        assert!(
            x[0].hypot(x[1]) <= 3.0 * (1.0 + 1e-15) && x[2].abs() <= 1.2,
            "{x:?}"
        );
        assert!(
            dot(x, x).sqrt() <= disc.edge() && v.iter().all(|v| v.is_finite()),
            "{v:?}"
        );
    }
}

#[test]
fn wrong_discs_are_refused_with_their_keys() {
    let key = |found: Result<(), SphereError>| match found {
        Err(SphereError::Parameter { key, .. }) => key,
        other => panic!("{other:?}"),
    };
    let shape = |mass, radius, height| DiscShape::new(mass, radius, height).map(|_| ());
    assert_eq!(key(shape(-1.0, 1.0, 0.1)), "mass");
    assert_eq!(key(shape(1.0, f64::NAN, 0.1)), "radius");
    assert_eq!(key(shape(1.0, 1.0, 1e-3)), "height");
    assert_eq!(key(shape(1.0, 1.0, 1.5)), "height");
    let Galaxy { shape, force, .. } = galaxy();
    let disc = |toomre, end| Disc::new(*shape, toomre, force, end).map(|_| ());
    assert_eq!(key(disc(30.0, 9.0)), "toomre");
    assert_eq!(key(disc(1.0, 0.0)), "truncation");
}

/// The same bits on every machine.
#[test]
fn particles_of_discs_are_bitwise_reproducible() {
    let mut digest: u64 = 0;
    for (x, v) in &particles()[..1000] {
        for number in x.iter().chain(v) {
            let mixed = digest.wrapping_mul(0x5851_f42d_4c95_7f2d);
            digest = mixed.rotate_left(23) ^ number.to_bits();
        }
    }
    assert_eq!(digest, 0xedef_bc75_d93e_080c, "{digest:#018x}");
}
