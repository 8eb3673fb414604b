//! Tests of gas with a power law of entropy, and of the remainder of the total mass.

use super::*;

const GAMMA: f64 = 5.0 / 3.0;
const GRAVITY: f64 = 0.45;
const END: f64 = 1.8;
const PRESSURE: f64 = 2e-4;

fn total() -> Profile {
    Profile::nfw(6.0, 1.55, 4.5, None).unwrap()
}

fn law(core: f64, slope: f64) -> Entropy {
    Entropy {
        radius: 1.55,
        slope,
        core,
        share: 0.1056,
        gamma: GAMMA,
    }
}

fn gas(law: Entropy) -> Profile {
    Profile::entropy(&total(), law, GRAVITY, [END, PRESSURE]).unwrap()
}

const LAWS: [[f64; 2]; 4] = [[0.0, 1.1], [0.05, 1.1], [0.2, 2.0], [0.0, 0.0]];

/// The pressure, integrated from the weight of the density, has the given entropy, and its slope is that
/// weight.
#[test]
fn the_gas_is_hydrostatic_and_has_the_entropy() {
    for [core, slope] in LAWS {
        let total = total();
        let gas = gas(law(core, slope));
        let dark = Profile::rest(&total, std::slice::from_ref(&gas)).unwrap();
        let held = HydrostaticGas::new(&gas, &[dark], GRAVITY, END, PRESSURE).unwrap();
        let entropy = |r: f64| held.pressure(r) / held.density(r).powf(GAMMA);
        let exact = |r: f64| core + (r / 1.55).powf(slope);
        let [mut off, mut residual, mut table] = [0.0f64; 3];
        for n in 0..200 {
            // further in the pressure is nearly constant
            let r = 1e-2 * 170f64.powf(f64::from(n) / 199.0);
            table = table.max((held.density(r) / gas.density(r) - 1.0).abs());
            off = off.max((entropy(r) / exact(r) / (entropy(1.5) / exact(1.5)) - 1.0).abs());
            // of fourth order
            let h = 3e-3 * r;
            let p = |n: f64| held.pressure(r + n * h);
            let slope = (8.0 * (p(1.0) - p(-1.0)) - (p(2.0) - p(-2.0))) / (12.0 * h);
            let weight = held.density(r) * GRAVITY * total.mass(r) / (r * r);
            residual = residual.max((slope / -weight - 1.0).abs());
        }
        println!(
            "core {core}, slope {slope}: entropy to {off:.1e}, equilibrium to {residual:.1e}, table to {table:.1e}"
        );
        assert!(off < 1e-6 && residual < 1e-6, "{off} {residual}");
        assert!(table < 3e-9, "{table}");
        assert!((held.pressure(END) / PRESSURE - 1.0).abs() < 1e-12);
    }
}

#[test]
fn gas_masses_match_the_fractions() {
    for [core, slope] in LAWS {
        let (total, gas) = (total(), gas(law(core, slope)));
        let share = gas.mass(1.55) / total.mass(1.55);
        assert!((share / 0.1056 - 1.0).abs() < 1e-9, "{share}");
        let dark = Profile::rest(&total, std::slice::from_ref(&gas)).unwrap();
        let mut largest = 0.0f64;
        for n in 0..300 {
            let r = 1e-4 * 1e5f64.powf(f64::from(n) / 299.0);
            let sum = dark.density(r) + gas.density(r);
            assert!((sum / total.density(r) - 1.0).abs() < 1e-14);
            assert!(dark.density(r) > 0.0);
            let sum = dark.mass(r) + gas.mass(r);
            assert!((sum / total.mass(r) - 1.0).abs() < 1e-14);
            let shell = |r: f64| 4.0 * std::f64::consts::PI * r.powi(3) * gas.density(r);
            let mass = gas.mass(0.1 * r) + integral(0.1 * r, r, shell);
            largest = largest.max((mass / gas.mass(r) - 1.0).abs());
        }
        println!("core {core}, slope {slope}: mass to {largest:.1e}");
        assert!(largest < 1e-7, "{largest}");
    }
}

#[test]
fn slopes_belong_to_the_density() {
    for [core, slope] in LAWS {
        let gas = gas(law(core, slope));
        let dark = Profile::rest(&total(), std::slice::from_ref(&gas)).unwrap();
        for (name, profile) in [("gas", gas), ("dark", dark)] {
            for r in [0.001_f64, 0.1, 0.5, 1.4, 1.6, 2.0, 4.0] {
                let h = 1e-3 * r;
                let [low, middle, high] = [r - h, r, r + h].map(|r| profile.density(r));
                let [_, first, second] = profile.derivatives(r);
                let differences = [
                    (high - low) / (2.0 * h),
                    (high - 2.0 * middle + low) / (h * h),
                ];
                for (exact, difference) in [first, second].into_iter().zip(differences) {
                    let scale = middle / (r * r);
                    assert!(
                        (exact - difference).abs() < 1e-3 * (exact.abs() + scale),
                        "{name} at {r}: {exact}, {difference}"
                    );
                }
            }
        }
    }
}

/// Particles of the remainder are in equilibrium in the total potential: virial theorem without noise.
#[test]
fn the_remainder_has_an_equilibrium() {
    const SIDE: u32 = 200;
    let (total, gas) = (total(), gas(law(0.0, 1.1)));
    let dark = Profile::rest(&total, std::slice::from_ref(&gas)).unwrap();
    let sphere = Sphere::new(&dark, &[gas], GRAVITY, f64::INFINITY).unwrap();
    let at = |n: u32| (f64::from(n) + 0.5) / f64::from(SIDE);
    let [mut kinetic, mut virial] = [0.0; 2];
    for n in 0..SIDE * SIDE {
        let [share, slower] = [n % SIDE, n / SIDE].map(at);
        let (x, v) = sphere.sample([share, 0.5, 0.5, slower, 0.5, 0.5]);
        let r = dot(x, x).sqrt();
        kinetic += dot(v, v);
        virial += GRAVITY * total.mass(r) / r;
    }
    let ratio = kinetic / virial;
    println!("2T/|W| = {ratio:.6}");
    assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
}

#[test]
fn laws_out_of_range_are_named() {
    let key = |law: Entropy, end: f64| match Profile::entropy(&total(), law, 1.0, [end, 1e-4]) {
        Err(SphereError::Parameter { key, .. }) => key,
        other => format!("{other:?}"),
    };
    let own = law(0.0, 1.1);
    assert_eq!(key(Entropy { radius: 0.0, ..own }, 2.0), "entropy.radius");
    assert_eq!(key(Entropy { slope: -1.0, ..own }, 2.0), "entropy.slope");
    assert_eq!(key(Entropy { slope: 2.0, ..own }, 2.0), "entropy.slope");
    assert_eq!(key(Entropy { core: -1.0, ..own }, 2.0), "entropy.core");
    assert_eq!(key(Entropy { share: 1.0, ..own }, 2.0), "entropy.share");
    assert_eq!(key(Entropy { gamma: 1.0, ..own }, 2.0), "entropy.slope");
    let flat = Entropy {
        gamma: 1.0,
        core: 0.1,
        ..own
    };
    assert_eq!(key(flat, 2.0), "gamma");
    assert_eq!(key(own, 1.5), "radius");
    assert_eq!(key(own, f64::NAN), "radius");
}
