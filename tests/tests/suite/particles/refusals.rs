//! Invalid particle decks.

use super::particles;
use nestar::Simulation;
use nestar::engine::comm::{Ranks, SingleRank};
use nestar_tests::Stepper;
use nestar_tests::decks::deck;

const PLAIN: &str = r#"
scenario = "formula"
[initial]
density  = "1"
pressure = "1"
[domain]
cells    = [8, 8, 8]
boundary = "periodic"
[time]
end = 1.0
[hydro]
"#;

/// Returns the error of a species, with or before its particles.
fn refusal(species: &str) -> String {
    refusal_of(&format!("{PLAIN}{species}"))
}

/// Returns the error of a deck.
fn refusal_of(text: &str) -> String {
    let built = Simulation::with_ranks(deck(text, &[]), Ranks::new(SingleRank));
    let begun = built.and_then(Stepper::begin);
    begun.err().expect("refused").to_string()
}

#[test]
fn meaningless_keys_are_refused_with_their_line() {
    let random = r#"kind = "random", count = 1, position = ["0.5", "0.5", "0.5"]"#;
    let body = "kind = \"bodies\", bodies = [{ position = [0.5, 0.5, 0.5]";
    let cases = [
        (
            "a",
            "moved_by = \"gas\"",
            format!("{random}, mass = \"1\""),
            "has no mass",
        ),
        (
            "a",
            "mass = 1.0",
            format!("{random}, mass = \"1\""),
            "leave one of them out",
        ),
        (
            "a",
            "mass = 1.0",
            format!("{body}, mass = 1.0 }}]"),
            "leave one of them out",
        ),
        (
            "a",
            "moved_by = \"mass-fluxes\"",
            format!("{random}, velocity = [\"1\", \"0\", \"0\"]"),
            "velocity of their own",
        ),
        (
            "a",
            "mass = 1.0",
            format!("{body}, scalars = {{ age = 1.0 }} }}]"),
            "`age` in [particles.species.a.initial.bodies[0].scalars]",
        ),
        ("all", "mass = 1.0", random.into(), "selects all species"),
        (
            "\"a b\"",
            "mass = 1.0",
            random.into(),
            "test:12:20: \"a b\" is not a valid species name",
        ),
        (
            "\"a.b\"",
            "mass = 1.0",
            random.into(),
            "test:12:20: \"a.b\" is not a valid species name",
        ),
        (
            "a",
            "mass = 1.0\nscalars = [\"position_x\"]",
            random.into(),
            "position_x",
        ),
        (
            "a",
            "mass = 1.0",
            "kind = \"random\", count = 1, position = [\"1e300\", \"0.5\", \"0.5\"]".into(),
            "a million widths",
        ),
        (
            "a",
            "mass = 1.0",
            format!("{random}, velocity = [\"1e160\", \"0\", \"0\"]"),
            "square of the velocity",
        ),
    ];
    for (name, keys, initial, told) in cases {
        let species = format!("[particles.species.{name}]\n{keys}\ninitial = {{ {initial} }}\n");
        let why = refusal(&species);
        assert!(why.contains(told), "{species}\n{why}");
    }
}

#[test]
fn a_sphere_larger_than_the_box_is_reported_with_its_edge() {
    let text = r#"
scenario = "spheres"
[spheres.ball]
particles.stars = { kind = "plummer", mass = 1.0, radius = 1.0 }
truncation      = 20.0
[ambient]
density  = 1e-10
pressure = 1e-10
[domain]
cells      = [8, 8, 8]
left_edge  = [-2.0, -2.0, -2.0]
right_edge = [2.0, 2.0, 2.0]
boundary   = "outflow"
[time]
end = 1.0
[hydro]
frozen = true
[gravity]
[particles.species.star]
initial = { kind = "sphere", sphere = "ball", component = "stars", count = 100 }
"#;
    let why = refusal_of(text);
    let told = "up to the radius 20.000000; reduce `spheres.ball.truncation`";
    assert!(why.contains(told), "{why}");
}

#[test]
fn particles_carry_scalars() {
    let text = format!(
        "{PLAIN}[particles.species.a]\nmass = 0.0\nscalars = [\"age\", \"size\"]\n\
         initial = {{ kind = \"bodies\", bodies = [{{ position = [0.5, 0.5, 0.5], scalars = {{ size = 3.0 }} }}] }}\n"
    );
    let mut stepper = Stepper::new(&text, &[]);
    assert_eq!(particles(&mut stepper, "a")[0].scalars, [0.0, 3.0]);
}
