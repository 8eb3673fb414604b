//! Tests of parameters and messages.

use super::*;

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, toml::de::Error> {
    toml::from_str(text)
}

#[test]
fn decks_name_the_profiles() {
    let profile = |text: &str| read::<ProfileConfig>(text).unwrap().profile();
    let cut = profile("kind = 'hernquist'\nmass = 2.0\nradius = 0.5\ncut = 4.0").unwrap();
    let exact = Profile::hernquist(2.0, 0.5).unwrap();
    assert_eq!(cut.mass(4.0), exact.mass(4.0));
    assert!(cut.density(8.0) < exact.density(8.0));
    let nfw = profile("kind = 'nfw'\nm200 = 2.0\nr200 = 1.5\nconcentration = 5.0");
    assert_eq!(nfw, Profile::nfw(2.0, 1.5, 5.0, None));
    let table = "kind = 'table'\nradius = [1.0, 2.0, 3.0, 4.0]\ndensity = [1.0, 0.5, 0.1, 0.01]";
    assert!(profile(table).is_ok());
    let extra = read::<ProfileConfig>("kind = 'plummer'\nmass = 2.0\nradius = 0.5\ncut = 4.0");
    assert!(extra.unwrap_err().to_string().contains("cut"));
    let orbit: Orbit = read("separation = 3.0\nspeed = 1.0\nmass_ratio = 1.0").unwrap();
    assert_eq!(orbit.impact_parameter, 0.0);
}

/// Returns the key that an error names.
fn key<T>(result: Result<T, SphereError>) -> String {
    match result {
        Err(SphereError::Parameter { key, .. }) => key,
        Err(other) => other.to_string(),
        Ok(_) => "nothing".into(),
    }
}

#[test]
fn wrong_parameters_are_named() {
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(key(Profile::plummer(wrong, 1.0)), "mass");
        assert_eq!(key(Profile::hernquist(1.0, wrong)), "radius");
        assert_eq!(key(Profile::nfw(wrong, 1.0, 1.0, None)), "m200");
        assert_eq!(key(Profile::nfw(1.0, wrong, 1.0, None)), "r200");
        assert_eq!(key(Profile::nfw(1.0, 1.0, wrong, None)), "concentration");
        assert_eq!(key(Profile::nfw(1.0, 1.0, 1.0, Some(wrong))), "decay");
        let plummer = Profile::plummer(1.0, 1.0).unwrap();
        assert_eq!(key(Sphere::new(&plummer, &[], wrong, 1.0)), "gravity");
        assert_eq!(
            key(HydrostaticGas::new(&plummer, &[], wrong, 1.0, 1.0)),
            "gravity"
        );
        assert_eq!(
            key(HydrostaticGas::new(&plummer, &[], 1.0, wrong, 1.0)),
            "radius"
        );
        assert_eq!(
            key(HydrostaticGas::new(&plummer, &[], 1.0, 1.0, wrong)),
            "pressure"
        );
        assert_eq!(key(plummer.scaled(wrong)), "factor");
    }
    let plummer = Profile::plummer(1.0, 1.0).unwrap();
    for wrong in [0.0, -1.0, f64::NAN, 1e-9] {
        assert_eq!(key(Sphere::new(&plummer, &[], 1.0, wrong)), "truncation");
    }
    let lone = ProfileConfig::Hernquist {
        mass: 1.0,
        radius: 1.0,
        cut: None,
        decay: Some(1.0),
    };
    assert_eq!(key(lone.profile()), "decay");
}

/// Squares of 1e-300 underflow to 0; such a sphere was once refused with the radius NaN.
#[test]
fn numbers_beyond_double_precision_are_refused() {
    for wrong in [1e-300, 1e-61, 1e61, 1e300] {
        assert_eq!(key(Profile::plummer(1.0, wrong)), "radius");
        assert_eq!(key(Profile::hernquist(wrong, 1.0)), "mass");
        assert_eq!(key(Profile::nfw(1.0, wrong, 1.0, None)), "r200");
        let radius = [1.0, 2.0, 3.0, 4.0].map(|r| r * wrong);
        assert_eq!(
            key(Profile::table(&radius, &[1.0, 0.5, 0.1, 0.01])),
            "radius[0]"
        );
    }
    let told = Profile::plummer(1.0, 1e-300).unwrap_err().to_string();
    assert!(told.contains("from 1e-60 to 1e60, not 1e-300"), "{told}");
    // values in range may overflow in combination
    for [mass, radius] in [[1e60, 1e-60], [1e-60, 1e60]] {
        let profile = Profile::plummer(mass, radius).unwrap();
        let sphere = Sphere::new(&profile, &[], 1.0, f64::INFINITY);
        assert_eq!(sphere.unwrap_err(), SphereError::OutOfRange);
        let gas = HydrostaticGas::new(&profile, &[], 1.0, radius, 1.0);
        assert_eq!(gas.is_ok(), mass < 1.0, "{gas:?}");
    }
}

#[test]
fn spheres_scale_with_their_size() {
    for radius in [1e-60, 1e60] {
        let profile = Profile::plummer(1.0, radius).unwrap();
        let sphere = Sphere::new(&profile, &[], 1.0, f64::INFINITY).unwrap();
        let depth = -sphere.potential(radius) * radius * 2f64.sqrt();
        assert!((depth - 1.0).abs() < 1e-6, "{radius}: {depth}");
    }
}

#[test]
fn wrong_tables_are_named() {
    let radius = [1.0, 2.0, 3.0, 4.0];
    let density = [1.0, 0.5, 0.1, 0.01];
    assert_eq!(key(Profile::table(&radius, &density)), "nothing");
    assert_eq!(key(Profile::table(&radius[..3], &density)), "radius");
    assert_eq!(key(Profile::table(&radius, &density[..3])), "density");
    let same = [1.0, 2.0, 2.0, 4.0];
    assert_eq!(key(Profile::table(&same, &density)), "radius[2]");
    let negative = [1.0, 0.1, -0.01, 0.001];
    assert_eq!(key(Profile::table(&radius, &negative)), "density[2]");
    let nan = [1.0, f64::NAN, 3.0, 4.0];
    assert_eq!(key(Profile::table(&nan, &density)), "radius[1]");
    let shallow = [1.0, 0.9, 0.8, 0.7];
    assert_eq!(key(Profile::table(&radius, &shallow)), "density[3]");
    let steep = [1.0, 0.01, 0.001, 0.0001];
    assert_eq!(key(Profile::table(&radius, &steep)), "density[0]");
}

#[test]
fn wrong_orbits_are_named() {
    let orbit = Orbit {
        separation: 5.0,
        speed: 2.0,
        impact_parameter: 3.0,
        mass_ratio: 0.25,
    };
    let with = |change: fn(&mut Orbit)| {
        let mut orbit = orbit;
        change(&mut orbit);
        key(orbit.centres())
    };
    assert_eq!(with(|o| o.separation = 0.0), "separation");
    assert_eq!(with(|o| o.speed = -1.0), "speed");
    assert_eq!(with(|o| o.impact_parameter = 6.0), "impact_parameter");
    assert_eq!(with(|o| o.mass_ratio = f64::NAN), "mass_ratio");
    assert_eq!(with(|_| ()), "nothing");
}
