//! The choice of the root solver for `gravity.root = "auto"`.

use crate::decks::shipped;
use crate::device_runs::emulation;
use nestar::Simulation;
use nestar::engine::step::Remarks;
use nestar_deck::Deck;
use nestar_tests::build;

const DECK: &str = r#"
scenario = "formula"
[initial]
density  = "1"
pressure = "1"
[time]
end = 1.0
[gravity]
"#;

/// Returns the notes on the choice.
fn notes(mut sim: Simulation) -> Vec<String> {
    let remarks = &sim.engine().world.resource::<Remarks>().0;
    let notes = remarks.iter().filter(|note| note.contains("gravity.root"));
    notes.cloned().collect()
}

fn choice(settings: &[&str]) -> String {
    notes(build(DECK, settings)).join("\n")
}

const FFT: &str = "\"fft\" is used";
const MULTIGRID: &str = "\"multigrid\" is used";

#[test]
fn the_root_solver_follows_from_boundary_and_cells_alone() {
    let large = "domain.cells=[128,128,128]";
    let cases: [(&[&str], [&str; 2]); 7] = [
        (&[large], [MULTIGRID, "periodic"]),
        (
            &["domain.cells=[512,64,64]", "domain.right_edge=[8,1,1]"],
            [MULTIGRID, "512 x 64 x 64"],
        ),
        (
            &["domain.cells=[120,128,128]", "domain.right_edge=[15,16,16]"],
            [FFT, "120 x 128 x 128"],
        ),
        (&["domain.cells=[64,64,64]"], [FFT, "fewer than 128^3"]),
        (&[large, "domain.right_edge=[1,1,2]"], [FFT, "not cubes"]),
        (&[large, "domain.boundary=\"outflow\""], [FFT, "isolated"]),
        (
            &["domain.cells=[16,16,16]", "domain.boundary=\"outflow\""],
            [FFT, "isolated"],
        ),
    ];
    for (settings, words) in cases {
        let found = choice(settings);
        let right = words.iter().all(|word| found.contains(word));
        assert!(right, "{settings:?}: {found}");
        let single = [settings, &["run.precision=single"]].concat();
        assert_eq!(choice(&single), found, "{settings:?}");
    }
    if emulation() {
        let on = |settings: &[&str]| choice(&[settings, &["run.device=emulated"]].concat());
        assert_eq!(on(&[large]), choice(&[large]));
        assert_eq!(on(&[]), choice(&[]));
    }
}

#[test]
fn a_deck_that_names_the_root_solver_gets_it_without_a_note() {
    for root in ["fft", "multigrid"] {
        let found = choice(&[&format!("gravity.root=\"{root}\"")]);
        assert_eq!(found, "", "{root}");
    }
}

/// On a CPU transforms are faster: shipped decks choose them, except for the one that is made for GPUs.
#[test]
fn shipped_decks_choose_transforms() {
    let mut count = 0;
    for path in shipped() {
        let deck = Deck::read(&path).unwrap_or_else(|e| panic!("{e}"));
        if !deck.has("gravity") {
            continue;
        }
        let sim = Simulation::new(deck).unwrap_or_else(|e| panic!("{e}"));
        let notes = notes(sim).join("\n");
        let is_large = path.ends_with("lss-baryons.toml");
        let wanted = if is_large { MULTIGRID } else { FFT };
        assert!(notes.contains(wanted), "{}: {notes}", path.display());
        count += 1;
    }
    assert!(count > 8, "{count} decks have gravity");
}
