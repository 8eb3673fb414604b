//! Tests of discs in decks.

use super::decks::{of, refused};
use super::*;
use nestar_deck::Deck;

const GALAXY: &str = r#"
[spheres.galaxy]
particles.halo  = { kind = "nfw", m200 = 20.0, r200 = 60.0, concentration = 10 }
particles.bulge = { kind = "hernquist", mass = 0.1, radius = 0.1 }
discs.stars     = { mass = 0.8, radius = 1.0, height = 0.1, toomre = 1.3 }
gas_disc        = { mass = 0.2, radius = 1.5, height = 0.15, sound_speed = 0.05 }
truncation      = 60.0
"#;

const MEDIUM: Medium = Medium {
    density: 1e-9,
    pressure: 1e-9,
};

fn deck() -> Deck {
    Deck::parse("deck.toml", GALAXY).unwrap()
}

#[test]
fn discs_are_components_in_the_gravity_of_all_mass() {
    let (deck, spheres) = (deck(), of(GALAXY).unwrap());
    let found = |name| {
        spheres
            .particles(&deck, "here", ["galaxy", name])
            .unwrap()
            .0
    };
    let Component::Disc(disc) = found("stars") else {
        panic!("a disc");
    };
    let halo = Profile::nfw(20.0, 60.0, 10.0, None).unwrap();
    let bulge = Profile::hernquist(0.1, 0.1).unwrap();
    let stars = DiscShape::new(0.8, 1.0, 0.1).unwrap();
    let gas = DiscShape::new(0.2, 1.5, 0.15).unwrap();
    let force = GalaxyForce::new(&[bulge.clone(), halo.clone()], &[stars, gas], 1.0).unwrap();
    assert_eq!(*disc, Disc::new(stars, 1.3, &force, 60.0).unwrap());
    assert_eq!(found("stars").mass(), stars.mass_within(16.0));
    // the halo is in equilibrium with the averaged mass of the discs
    let others = [bulge, stars.averaged().unwrap(), gas.averaged().unwrap()];
    let whole = Sphere::new(&halo, &others, 1.0, 60.0).unwrap();
    let Component::Sphere(sphere) = found("halo") else {
        panic!("a sphere");
    };
    assert_eq!(*sphere, whole);
    let alone = Sphere::new(&halo, &others[..1], 1.0, 60.0).unwrap();
    assert!(whole.dispersion(1.0) > 1.05 * alone.dispersion(1.0));
}

#[test]
fn discs_of_gas_know_their_temperature() {
    let deck = deck();
    let none = |_: f64, _: f64| Ok(None);
    let per_kelvin = |density: f64, kelvin: f64| Ok(Some(density * kelvin));
    let given = of(GALAXY).unwrap().gas_discs(&deck, MEDIUM, none).unwrap();
    let hot = GALAXY.replace("sound_speed = 0.05", "temperature_k = 0.0025");
    let converted = of(&hot)
        .unwrap()
        .gas_discs(&deck, MEDIUM, per_kelvin)
        .unwrap();
    let state = |discs: &[(String, GasDisc, Centre)]| discs[0].1.state(2.0, 0.0).unwrap();
    let ratio = state(&given).pressure / state(&converted).pressure;
    assert!((ratio - 1.0).abs() < 1e-12, "{ratio}");
    let held = of(&GALAXY.replace(", sound_speed = 0.05", "")).unwrap();
    let held = held.gas_discs(&deck, MEDIUM, none).unwrap();
    assert!(state(&held).pressure > 2.0 * state(&given).pressure);
    refused(
        of(&hot).unwrap().gas_discs(&deck, MEDIUM, none),
        &[
            "spheres.galaxy.gas_disc.temperature_k",
            "[units]",
            "sound_speed",
        ],
    );
    let both = GALAXY.replace("sound_speed", "temperature_k = 1.0, sound_speed");
    refused(
        of(&both).unwrap().gas_discs(&deck, MEDIUM, per_kelvin),
        &[
            "spheres.galaxy.gas_disc.temperature_k",
            "contradicts `sound_speed`",
        ],
    );
    let boiling = GALAXY.replace("sound_speed = 0.05", "temperature_k = 10.0");
    refused(
        of(&boiling).unwrap().gas_discs(&deck, MEDIUM, per_kelvin),
        &["spheres.galaxy.gas_disc.temperature_k", "rotation"],
    );
}

#[test]
fn wrong_discs_are_refused_with_their_places() {
    let with = |from: &str, to: &str| {
        assert!(GALAXY.contains(from));
        of(&GALAXY.replace(from, to))
    };
    refused(
        with("mass = 0.8", "mass = -0.8"),
        &["spheres.galaxy.discs.stars.mass", "deck.toml:5"],
    );
    refused(
        with("height = 0.1,", "height = 2.0,"),
        &[
            "spheres.galaxy.discs.stars.height",
            "0.01 to 1",
            "deck.toml:5",
        ],
    );
    refused(
        with("height = 0.15", "height = 1e-3"),
        &["spheres.galaxy.gas_disc.height", "deck.toml:6"],
    );
    refused(
        with("discs.stars ", "discs.halo "),
        &["spheres.galaxy.discs.halo", "rename"],
    );
    refused(with("toomre", "tomre"), &["tomre", "toomre"]);
    let hot = with("toomre = 1.3", "toomre = 40.0").unwrap();
    refused(
        hot.particles(&deck(), "here", ["galaxy", "stars"]),
        &["spheres.galaxy.discs.stars.toomre", "rotation"],
    );
    refused(
        of(GALAXY)
            .unwrap()
            .particles(&deck(), "here", ["galaxy", "star"]),
        &["here.component", "stars", "bulge"],
    );
}
