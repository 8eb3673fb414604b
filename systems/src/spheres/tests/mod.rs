//! Compares spheres with closed forms, equations of equilibrium and their own samples.

mod decks;
mod disc_decks;
mod discs;
mod distributions;
mod entropies;
mod gas_and_orbits;
mod gas_discs;
mod parameters;
mod samples;

use super::discs::thin_force;
use super::*;
use nestar_device::random::{Stream, normals, of_id, uniforms};
use std::sync::OnceLock;

/// Samples positions and velocities of particles.
fn draw(sphere: &Sphere, count: u64) -> Vec<([f64; 3], [f64; 3])> {
    let stream = Stream {
        seed: 1,
        purpose: 2,
        step: 0,
    };
    let one = |id: u64| {
        let [[a, b], [c, d], [e, f]] = [0, 1, 2].map(|n| uniforms::<f64>(of_id(&stream, id, n)));
        sphere.sample([a, b, c, d, e, f])
    };
    (0..count).map(one).collect()
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// A test sphere with gravity 1, mass about 1 and radius 1.
struct Case {
    name: &'static str,
    profile: Profile,
    others: Vec<Profile>,
    sphere: Sphere,
}

fn all() -> &'static [Case] {
    static ALL: OnceLock<Vec<Case>> = OnceLock::new();
    ALL.get_or_init(|| {
        let plummer = Profile::plummer(1.0, 1.0).unwrap();
        let hernquist = Profile::hernquist(1.0, 1.0).unwrap();
        let cut = hernquist.clone().cut("cut", 10.0, None).unwrap();
        let nfw = Profile::nfw(1.0, 10.0, 10.0, None).unwrap();
        let gas = Profile::plummer(0.3, 2.0).unwrap();
        let table = tabulated(&plummer, 400, 1e-3, 1e3);
        let case = |(name, profile, others): (_, Profile, Vec<Profile>)| Case {
            name,
            sphere: Sphere::new(&profile, &others, 1.0, f64::INFINITY).unwrap(),
            profile,
            others,
        };
        [
            ("Plummer", plummer, vec![]),
            ("Hernquist", hernquist, vec![]),
            ("Hernquist, cut", cut, vec![]),
            ("NFW", nfw.clone(), vec![]),
            ("NFW and gas", nfw, vec![gas]),
            ("table", table, vec![]),
        ]
        .map(case)
        .into()
    })
}

/// Tabulates a profile.
fn tabulated(profile: &Profile, points: usize, low: f64, high: f64) -> Profile {
    let share = |n: usize| n as f64 / (points - 1) as f64;
    let radius: Vec<f64> = (0..points)
        .map(|n| low * (high / low).powf(share(n)))
        .collect();
    let density: Vec<f64> = radius.iter().map(|&r| profile.density(r)).collect();
    Profile::table(&radius, &density).unwrap()
}

/// Integrates over the logarithm of radius by Simpson's rule.
fn integral(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    const STEPS: usize = 4000;
    let h = (high / low).ln() / STEPS as f64;
    let weight = |n: usize| match n {
        0 | STEPS => 1.0,
        n if n % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let part = |n: usize| weight(n) * f(low * (h * n as f64).exp());
    (0..=STEPS).map(part).sum::<f64>() * h / 3.0
}
