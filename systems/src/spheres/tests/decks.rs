//! Tests of spheres in decks.

use super::*;
use nestar_deck::{Deck, DeckError};

const PAIR: &str = r#"
[spheres.main]
particles.dark  = { kind = "nfw", m200 = 3.0, r200 = 1.0, concentration = 4.0 }
particles.stars = { kind = "hernquist", mass = 0.1, radius = 0.1 }
gas             = { profile = { kind = "plummer", mass = 0.4, radius = 0.5 }, radius = 2.0 }
truncation      = 2.0

[spheres.other]
particles.dark = { kind = "plummer", mass = "2*0.5", radius = 0.3 }

[encounter]
spheres          = ["main", "other"]
separation       = 5.0
speed            = 2.0
impact_parameter = 3.0
"#;

/// Ratio of specific heats.
const GAMMA: f64 = 5.0 / 3.0;

pub(super) fn of(text: &str) -> Result<NamedSpheres, DeckError> {
    NamedSpheres::of(&mut Deck::parse("deck.toml", text).unwrap(), 1.0, GAMMA)
}

/// Returns a component with isotropic velocities.
fn sphere_of(spheres: &NamedSpheres, deck: &Deck, names: [&str; 2]) -> (Sphere, Centre) {
    match spheres.particles(deck, "here", names).unwrap() {
        (Component::Sphere(sphere), centre) => (*sphere, centre),
        (Component::Disc(disc), _) => panic!("{disc:?}"),
    }
}

pub(super) fn refused<T>(found: Result<T, DeckError>, words: &[&str]) {
    let Err(error) = found else {
        panic!("no word of {words:?}");
    };
    for word in words {
        assert!(error.to_string().contains(word), "no {word} in {error}");
    }
}

#[test]
fn components_are_in_equilibrium_with_the_total_mass() {
    let deck = Deck::parse("deck.toml", PAIR).unwrap();
    let spheres = of(PAIR).unwrap();
    let (stars, centre) = sphere_of(&spheres, &deck, ["main", "stars"]);
    let halo = Profile::nfw(3.0, 1.0, 4.0, None).unwrap();
    let gas = Profile::plummer(0.4, 0.5).unwrap();
    let alone = Profile::hernquist(0.1, 0.1).unwrap();
    let whole = Sphere::new(&alone, &[halo, gas], 1.0, 2.0).unwrap();
    assert_eq!(stars.mass(), whole.mass());
    for r in [0.1, 1.0] {
        assert!((stars.potential(r) / whole.potential(r) - 1.0).abs() < 1e-12);
        assert!((stars.dispersion(r) / whole.dispersion(r) - 1.0).abs() < 1e-12);
    }
    assert!(centre.position[0] < 0.0 && centre.position[1] < 0.0);
    let all = spheres.gas(&deck, 1e-3).unwrap();
    let [(name, held, place)] = &all[..] else {
        panic!("{all:?}");
    };
    assert_eq!(
        (name.as_str(), held.radius(), *place),
        ("main", 2.0, centre)
    );
    assert!((held.pressure(2.0) - 1e-3).abs() < 1e-12 && held.pressure(0.1) > 0.1);
}

/// The centre of mass is at rest at the origin.
#[test]
fn pairs_share_their_motion_by_mass() {
    let deck = Deck::parse("deck.toml", PAIR).unwrap();
    let spheres = of(PAIR).unwrap();
    let sphere = |name| spheres.particles(&deck, "here", [name, "dark"]).unwrap();
    let gas = Profile::plummer(0.4, 0.5).unwrap().mass(2.0);
    let stars = Profile::hernquist(0.1, 0.1).unwrap().mass(2.0);
    let (main, first) = sphere("main");
    let (other, second) = sphere("other");
    let masses = [main.mass() + stars + gas, other.mass()];
    assert!((other.mass() - 1.0).abs() < 1e-6);
    for axis in 0..3 {
        let sum = masses[0] * first.position[axis] + masses[1] * second.position[axis];
        let momentum = masses[0] * first.velocity[axis] + masses[1] * second.velocity[axis];
        assert!(
            sum.abs() < 1e-5 && momentum.abs() < 1e-5,
            "{sum} {momentum}"
        );
    }
    assert!((second.position[0] - first.position[0] - 4.0).abs() < 1e-12);
    assert!((first.velocity[0] - second.velocity[0] - 2.0).abs() < 1e-12);
}

#[test]
fn wrong_tables_are_refused_with_their_places() {
    let with = |from: &str, to: &str| {
        assert!(PAIR.contains(from));
        of(&PAIR.replace(from, to))
    };
    refused(
        with("radius = 0.1 }", "radius = -1 }"),
        &["spheres.main.particles.stars.radius", "deck.toml:4"],
    );
    refused(
        with("radius = 0.1 }", "radius = 1e-300 }"),
        &[
            "spheres.main.particles.stars.radius",
            "deck.toml:4",
            "1e-60 to 1e60",
        ],
    );
    refused(with("\"nfw\"", "\"nwf\""), &["nfw", "deck.toml:3"]);
    refused(with("m200 = 3.0, ", ""), &["m200", "deck.toml:3"]);
    refused(
        with("[\"main\", \"other\"]", "[\"main\", \"othr\"]"),
        &["othr", "encounter"],
    );
    refused(
        with("[\"main\", \"other\"]", "[\"main\", \"main\"]"),
        &["two spheres"],
    );
    refused(
        with("= 3.0\n", "= 6.0\n"),
        &["encounter.impact_parameter", "separation"],
    );
    refused(
        with("[spheres.other]", "[spheres.other]\nvelocity = [1, 0, 0]"),
        &["spheres.other.velocity", "leave it out"],
    );
    refused(
        of("[spheres.empty]\ntruncation = 1.0"),
        &["spheres.empty", "particles"],
    );
    let (deck, spheres) = (Deck::parse("deck.toml", PAIR).unwrap(), of(PAIR).unwrap());
    refused(
        spheres.particles(&deck, "here", ["man", "dark"]),
        &["here.sphere", "main"],
    );
    refused(
        spheres.particles(&deck, "here", ["main", "drak"]),
        &["here.component", "dark"],
    );
    let short = with("truncation      = 2.0", "truncation      = 1e-9").unwrap();
    refused(
        short.particles(&deck, "here", ["main", "dark"]),
        &["`spheres.main.truncation`"],
    );
    // a core in the potential of a cusp
    let core = with("\"hernquist\"", "\"plummer\"").unwrap();
    refused(
        core.particles(&deck, "here", ["main", "stars"]),
        &["spheres.main.particles.stars", "equilibrium"],
    );
    // masses that cannot be compared are reported with existing keys
    refused(
        of(&PAIR
            .replace("gas  ", "#")
            .replace("truncation      = 2.0", "truncation = 1e-300")),
        &["encounter.spheres", "truncation"],
    );
}

/// A cluster whose gas has a power law of entropy.
const CLUSTER: &str = r#"
[spheres.a]
total           = { kind = "nfw", m200 = 6.0, r200 = 1.55, concentration = 4.5 }
particles.stars = { kind = "hernquist", mass = 0.05, radius = 0.05, cut = 0.5 }
particles.dark  = { kind = "rest" }
gas             = { entropy = { share = 0.1, radius = 1.55 }, radius = 1.8 }
[ambient]
pressure = 1e-4
"#;

#[test]
fn the_remainder_of_a_total_is_a_component() {
    let deck = Deck::parse("deck.toml", CLUSTER).unwrap();
    let spheres = of(CLUSTER).unwrap();
    let total = Profile::nfw(6.0, 1.55, 4.5, None).unwrap();
    let (dark, _) = spheres.particles(&deck, "here", ["a", "dark"]).unwrap();
    let (stars, _) = spheres.particles(&deck, "here", ["a", "stars"]).unwrap();
    let (gas, _) = spheres.spheres["a"].gas.as_ref().unwrap();
    let sum = dark.mass() + stars.mass() + gas.mass(1e3);
    assert!((sum / total.mass(1e3) - 1.0).abs() < 1e-8, "{sum}");
    assert!((gas.mass(1.55) / 0.6 - 1.0).abs() < 1e-9);
    let [(_, held, _)] = &spheres.gas(&deck, 1e-4).unwrap()[..] else {
        panic!("one gas");
    };
    // the pressure that supports the density must have the entropy of the law
    let factor = |r: f64| held.pressure(r) / held.density(r).powf(GAMMA) / r.powf(1.1);
    assert!((factor(0.1) / factor(1.5) - 1.0).abs() < 1e-7);
}

#[test]
fn wrong_totals_are_refused_with_their_keys() {
    let with = |from: &str, to: &str| {
        assert!(CLUSTER.contains(from));
        of(&CLUSTER.replace(from, to))
    };
    refused(
        with("\"rest\"", "\"plummer\", mass = 1, radius = 1"),
        &["spheres.a.total", "rest"],
    );
    refused(with("total  ", "#"), &["spheres.a.gas.entropy", "total"]);
    refused(
        with("entropy = { share = 0.1, radius = 1.55 }, ", ""),
        &["spheres.a.gas", "`profile` and `entropy`"],
    );
    refused(
        with("radius = 1.8", "radius = 1.5"),
        &["spheres.a.gas.radius", "entropy.radius"],
    );
    refused(
        with("share = 0.1", "share = 0.9"),
        &["spheres.a.particles.dark", "at the radius", "share"],
    );
    refused(
        with("mass = 0.05", "mass = 50"),
        &["spheres.a.particles.dark", "at the radius"],
    );
    let no_total = CLUSTER.replace("total  ", "#").replace("gas  ", "#");
    refused(of(&no_total), &["spheres.a.particles.dark.kind", "total"]);
    refused(
        with("pressure = 1e-4", "pressure = 0.0"),
        &["ambient.pressure"],
    );
}
