//! Radiation by redshift from a deck, a text file and a Zarr group; invalid tables.

use crate::cooling::write_array;
use nestar::App;
use nestar_tests::Stepper;
use nestar_tests::decks::deck;

const IONS: &str = include_str!("../../../scenarios/equilibrium.toml");
const COLUMNS: &str = "{redshift=[0,3],HI=[1e-13,1e-12],heat_HI=[4e-13,5e-12],HM=[1e-8,0]}";

#[test]
fn radiation_from_a_file_equals_radiation_from_the_deck() {
    let scratch = nestar_tests::Scratch::new();
    let (text, group) = (
        scratch.path().join("uv.csv"),
        scratch.path().join("uv.zarr"),
    );
    let rows = "redshift, HI, heat_HI, HM\n0, 1e-13, 4e-13, 1e-8\n3, 1e-12, 5e-12, 0\n";
    std::fs::write(&text, rows).expect("a file");
    std::fs::create_dir_all(&group).expect("a folder");
    std::fs::write(group.join(".zgroup"), r#"{"zarr_format":2}"#).expect("a header");
    for (name, values) in [
        ("redshift", [0.0, 3.0]),
        ("HI", [1e-13, 1e-12]),
        ("heat_HI", [4e-13, 5e-12]),
        ("HM", [1e-8, 0.0]),
    ] {
        write_array(&group, name, &[2], &values);
    }
    let files = [&text, &group].map(|path| path.display().to_string());
    let ends = [COLUMNS, &files[0], &files[1]].map(|radiation| {
        let radiation = format!("chemistry.radiation={radiation}");
        let settings = [
            "domain.cells=[16,8,8]",
            "time.end=10",
            "chemistry.species=9",
        ];
        let more = ["chemistry.redshift=1.5", &radiation];
        let mut run = Stepper::new(IONS, &[&settings[..], &more].concat());
        let mut sum = 0.0;
        let state = run.finish().state();
        state.each_leaf_cell(|_, _, _, u| sum += u[4] + u[6] + 1e6 * u[10]);
        sum
    });
    assert_eq!([ends[0]; 3], ends);
}

/// Returns the error of a deck.
fn refused(settings: &[&str]) -> String {
    let sim = App::default().simulation(deck(IONS, settings));
    sim.map(|_| ()).expect_err("refused").to_string()
}

#[test]
fn errors_in_radiation_tables_are_reported_with_their_line() {
    let scratch = nestar_tests::Scratch::new();
    let text = scratch.path().join("uv.csv");
    std::fs::write(&text, "redshift, HI\n0, 1e-13\n0, 1e-12\n").expect("a file");
    let radiation = format!("chemistry.radiation={}", text.display());
    let falls = refused(&[&radiation, "chemistry.redshift=0"]);
    assert!(
        falls.contains("uv.csv:3:1") && falls.contains("must ascend"),
        "{falls}"
    );
    for (radiation, redshift, words) in [
        (COLUMNS, "4", "covers redshifts 0 to 3"),
        (
            "{redshift=[0,3],HI=[1e-13]}",
            "1",
            "`HI` must have a value for each of 2 redshifts, found 1",
        ),
        (
            "{redshift=[0,3],heat_HI=[0,1]}",
            "1",
            "the photo-ionisation rate `HI` is 0 there",
        ),
        ("uv.txd", "1", "does not end in .csv or .zarr"),
        ("none.csv", "1", "file not found: none.csv"),
    ] {
        let radiation = format!("chemistry.radiation={radiation}");
        let why = refused(&[&radiation, &format!("chemistry.redshift={redshift}")]);
        assert!(
            why.contains(words) && why.contains("chemistry.radiation"),
            "{why}"
        );
    }
    let without = refused(&["chemistry.radiation={redshift=[0,1]}"]);
    assert!(without.contains("set `chemistry.redshift`"), "{without}");
}
