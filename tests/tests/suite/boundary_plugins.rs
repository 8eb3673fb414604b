//! Boundaries registered by plugins: names in decks, rules of fields, bitwise equality, messages.

use super::device_runs::places;
use nestar::prelude::*;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::norms::totals;
use nestar_tests::ranks::{joined, on_ranks_of};
use nestar_tests::{State, Stepper};

/// Blends towards the gas further inside by distance, position and time; reverses the velocity across the face.
#[device]
#[derive(Clone, Copy)]
struct Lean<R> {
    part: R,
    growth: f64,
}

#[device]
fn leaning<R: Real>(ghost: Ghost<R, Conserved<R>>, at: &Place<R>, p: &Lean<R>) -> Conserved<R> {
    let (near, far) = (ghost.at(ghost.layer), ghost.at(3));
    let w = p.part * at.width[ghost.axis] * R::from_i32(ghost.layer + 1);
    let x = at.centre[ghost.axis];
    let scale = 1.0 + 0.1 * x * x + R::from_f64(p.growth * at.time);
    let mut u = near;
    u.density = scale * (near.density + w * (far.density - near.density));
    u.energy = scale * (near.energy + w * (far.energy - near.energy));
    for a in 0..3 {
        u.momentum[a] = scale * (near.momentum[a] + w * (far.momentum[a] - near.momentum[a]));
    }
    u.momentum[ghost.axis] = -u.momentum[ghost.axis];
    u
}

/// Returns zero energy where the gas is dense.
#[device]
fn cold<R: Real>(ghost: Ghost<R, Conserved<R>, 1>, most: R) -> Conserved<R> {
    let mut u = ghost.at(0);
    if u.density > most {
        u.energy = -1.0 * u.density;
    }
    u
}

/// Dust that diffuses; zero outside faces with the boundary `clean`.
struct Dust;

impl Field for Dust {
    const NAME: &'static str = "dust";
}

#[device]
fn clean<R: Real>(ghost: Ghost<R>) -> R {
    -ghost.at(ghost.layer)
}

#[device]
fn even<R: Real>(old: R) -> R {
    0.0 * old + 1.0
}

#[device]
fn spread<R: Real>(u: &FaceStencil<R>, face: &Face<R>) -> R {
    0.01 * (u.at(-1) - u.at(0)) / face.width
}

/// Registers the boundaries of the gas, for use in decks.
#[derive(Clone)]
struct GasWords;

/// The dust and its boundary.
#[derive(Clone)]
struct DustWords;

impl Plugin for GasWords {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        let lean = Lean {
            part: 0.7,
            growth: 0.05,
        };
        sim.register_boundary::<Gas, leaning>("leaning", lean)?;
        sim.register_boundary::<Gas, cold>("cold", [1.1])
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

impl Plugin for DustWords {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_boundary::<Dust, clean>("clean", [])
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Dust>(FieldSpec {
            correct: Correct::Fluxes,
            in_totals: true,
            ..FieldSpec::cells(&["dust"])
        })?;
        sim.system_in(
            Initialise::State,
            |rows: LevelRows, mut dust: Write<Dust>| {
                dust.update::<even>(&rows, (), &[]);
            },
        );
        sim.system_in(
            Advance::Sources,
            |rows: LevelRows, mut dust: Write<Dust, 1>| {
                dust.flux::<spread>(&rows, &[]);
            },
        );
        Ok(())
    }
}

/// A program with the boundaries of the gas.
pub fn program() -> App {
    App::default().always(GasWords)
}

/// A program with dust as well.
fn with_dust() -> App {
    program().always(DustWords)
}

const FACES: &str =
    "domain.boundary={ x = [\"leaning\", \"clean\"], y = [\"clean\", \"diode\"], z = \"leaning\" }";

fn end(settings: &[&str], size: usize) -> State {
    let app = with_dust();
    let build = |ranks| app.simulation_on(deck(BLAST, settings), ranks);
    joined(on_ranks_of(size, build, |stepper| stepper.steps(3).state()))
}

#[test]
fn plugin_boundaries_are_identical_on_ranks_and_devices() {
    // each scheme, which takes ghost cells of its own, in one place
    let cases = [
        (
            ["run.precision=double", "hydro.scheme=muscl-hancock"],
            places(&[], &[2]),
        ),
        (
            ["run.precision=single", "hydro.reconstruction=ppm"],
            places(&[], &[1]),
        ),
        (
            ["run.precision=double", "hydro.scheme=vl"],
            places(&[2], &[]),
        ),
    ];
    for (scheme, places) in cases {
        let settings = [&[HALF, "mesh.max_level=1", FACES][..], &scheme].concat();
        let alone = end(&settings, 1);
        for (device, size) in places {
            let there = end(&[&settings[..], &[device]].concat(), size);
            assert_eq!(
                alone.difference(&there),
                None,
                "{scheme:?}, {device}, {size} ranks"
            );
        }
    }
}

/// Dust is lost through faces that are clean for it; the gas flows out there as usual.
#[test]
fn a_plugin_boundary_applies_to_fields_that_have_its_rule() {
    let state = |boundary: &str| {
        let app = with_dust();
        let sim = app.simulation(deck(BLAST, &["mesh.max_level=0", boundary]));
        let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
        stepper.steps(3);
        (stepper.0.with(|sim| totals(sim)), stepper.state())
    };
    let (clean, clean_state) = state("domain.boundary=clean");
    let (open, open_state) = state("domain.boundary=outflow");
    let gas = clean.len() - 1;
    assert_eq!(clean[..gas], open[..gas]);
    assert!(
        clean[gas] < 0.999 && (open[gas] - 1.0).abs() < 1e-12,
        "{} {}",
        clean[gas],
        open[gas]
    );
    assert!(clean_state.difference(&open_state).is_some());
}

#[test]
fn unknown_boundaries_are_refused_with_a_list_of_all() {
    let words = |boundary: &str| {
        let sim = with_dust().simulation(deck(BLAST, &[boundary]));
        let begun = sim.and_then(Stepper::begin);
        begun.err().expect("refused").to_string()
    };
    let found = words(
        "domain.boundary={ x = \"periodic\", y = \"leaning\", z = [\"outflow\", \"leening\"] }",
    );
    for part in [
        "`domain.boundary.z[1]` must be one of ",
        "\"periodic\", \"outflow\", \"reflecting\", \"leaning\", \"cold\", \"clean\", \"diode\", \"inflow\", found \"leening\"",
        "did you mean \"leaning\"?",
    ] {
        assert!(found.contains(part), "{found}");
    }
    let found = words("domain.boundary=outflwo");
    assert!(
        found.contains("`domain.boundary` must be") && found.contains("\"outflow\"?"),
        "{found}"
    );
}

#[test]
fn plugin_boundaries_are_registered_before_fields_and_only_once() {
    struct Late;
    impl Plugin for Late {
        fn build(&self, sim: &mut Engine) -> Result<(), Error> {
            sim.register_boundary::<Gas, cold>("late", [1.0])
        }
    }
    let late = Simulation::new(deck(BLAST, &[])).and_then(|sim| sim.add(Late));
    let found = late.err().expect("refused").to_string();
    assert!(
        found.contains("the boundary `late`: the field `gas` exists already"),
        "{found}"
    );
    let twice = program().always(GasWords).simulation(deck(BLAST, &[]));
    let found = twice.err().expect("refused").to_string();
    assert!(
        found.contains("the boundary `leaning`: the word is used already"),
        "{found}"
    );
}

#[test]
fn unphysical_ghost_values_are_reported() {
    for (device, _) in places(&[1], &[1]) {
        let boundary =
            "domain.boundary={ x = \"periodic\", y = [\"outflow\", \"cold\"], z = \"periodic\" }";
        let sim = program().simulation(deck(BLAST, &[HALF, boundary, device]));
        let begun = sim.and_then(Stepper::begin);
        let stepped = begun.and_then(|mut stepper| stepper.try_step());
        let found = stepped.expect_err("a fault").to_string();
        for part in [
            "the boundary `cold` gives an unphysical state beyond the upper y face at (x, y, z) = [",
            ", 1.0",
            "t = 0: [1.1",
            ", -1.1",
        ] {
            assert!(found.contains(part), "{device}: {found}");
        }
    }
}
