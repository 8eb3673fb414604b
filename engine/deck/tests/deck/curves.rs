//! Tabulated functions of the table `[tables]`.

use nestar_deck::{Deck, TableSchema, TablesConfig, schema};
use std::path::{Path, PathBuf};

/// Evaluates a formula of x in a deck with these tables.
fn value(tables: &str, formula: &str, x: f64) -> f64 {
    let deck = Deck::parse("deck", tables).unwrap_or_else(|e| panic!("{e}"));
    let formula = deck.formula("a.b", formula, &["x"]);
    formula.unwrap_or_else(|e| panic!("{e}")).eval(&[x])
}

/// Returns a table `f` with values of a function at `count` uneven points from 1 to 3.
fn table(count: usize, of: impl Fn(f64) -> f64, more: &str) -> String {
    let location = |n: usize| {
        let part = n as f64 / (count - 1) as f64;
        1.0 + 2.0 * part * (0.7 + 0.3 * part)
    };
    let points: Vec<f64> = (0..count).map(location).collect();
    let values: Vec<f64> = points.iter().map(|&x| of(x)).collect();
    format!("[tables.f]\nx = {points:?}\ny = {values:?}\n{more}")
}

/// Returns the largest error of a function between its points.
fn error(count: usize, of: impl Fn(f64) -> f64, exact: impl Fn(f64) -> f64, more: &str) -> f64 {
    let deck = Deck::parse("deck", &table(count, of, more)).unwrap_or_else(|e| panic!("{e}"));
    let formula = deck.formula("a.b", "f(x)", &["x"]);
    let formula = formula.unwrap_or_else(|e| panic!("{e}"));
    let points = (0..=1000).map(|n| 1.0 + 0.002 * f64::from(n));
    let errors = points.map(|x| (formula.eval(&[x]) - exact(x)).abs());
    errors.fold(0.0, f64::max)
}

#[test]
fn cubics_have_the_expected_order_of_accuracy() {
    let f = |x: f64| (3.0 * x).sin() + x;
    let order = |more: &str| {
        let [coarse, fine] = [20, 39].map(|n| error(n, f, f, more));
        (coarse / fine).log2()
    };
    let spline = order("interpolation = \"spline\"");
    assert!(spline > 3.7, "spline: {spline}");
    // flattened at extrema
    let monotone = order("");
    assert!(monotone > 1.8, "monotone: {monotone}");
    let slope = |n: usize| {
        let text = table(n, |x| 3.0 * (3.0 * x).cos() + 1.0, "");
        let slopes = text.lines().nth(2).map(|y| y.replace("y =", "slope ="));
        error(n, f, f, &slopes.unwrap_or_default())
    };
    let given = (slope(20) / slope(39)).log2();
    assert!(given > 3.7, "slopes given: {given}");
    let integral = |n: usize| {
        let exact = |x: f64| ((3.0f64).cos() - (3.0 * x).cos()) / 3.0 + 0.5 * (x * x - 1.0);
        error(n, f, exact, "integral = true\ninterpolation = \"spline\"")
    };
    let order = (integral(20) / integral(39)).log2();
    assert!(order > 3.7, "integral: {order}");
}

#[test]
fn monotone_functions_do_not_overshoot() {
    let text = "[tables]\nf = { x = [0, 1, 2, 3, 4], y = [0, 0, 1, 1, 0.5] }";
    let values: Vec<f64> = (0..=400)
        .map(|n| value(text, "f(x)", 0.01 * f64::from(n)))
        .collect();
    assert!(values[..300].is_sorted(), "{values:?}");
    assert!(values[300..].is_sorted_by(|a, b| a >= b), "{values:?}");
    assert_eq!([values[0], values[100], values[300]], [0.0, 0.0, 1.0]);
    let spline = text.replace(" }", ", interpolation = \"spline\" }");
    assert!(value(&spline, "f(x)", 2.6) > 1.01);
    // a line is reproduced
    let line = "tables = { f = { x = [1, 3], y = [5, 1] } }";
    assert_eq!(value(line, "2*f(x)", 1.5), 8.0);
}

/// Extrapolates as the potential of a homogeneous sphere and of a point mass, from two and three rows.
#[test]
fn functions_are_extrapolated_as_declared() {
    let text = |more: &str| format!("[tables.f]\nx = [1, 2]\ny = [3, 5]\n{more}");
    let at = |more: &str, x| value(&text(more), "f(x)", x);
    assert!(at("", 0.5).is_nan() && at("", 2.5).is_nan());
    assert_eq!(at("below = \"constant\"", -4.0), 3.0);
    assert_eq!(at("above = \"constant\"", 4.0), 5.0);
    assert_eq!(at("below = \"linear\"", 0.0), 1.0);
    assert_eq!(at("above = \"linear\"", 3.0), 7.0);
    assert_eq!(at("below = \"core\"", 0.0), 2.0);
    assert_eq!(at("below = \"core\"", 0.5), 2.25);
    assert_eq!(at("above = \"kepler\"", 4.0), 7.0);
    // mass 7 M inside the last point: its potential outside, and 0 at infinity
    let mass = "[constants]\nG = 2\n[tables.f]\nx = [1, 1.5, 2]\ny = [14, \"14/2.25\", 3.5]\nintegral = true\nabove = \"kepler\"";
    for (x, wanted) in [(2.0, -7.0), (4.0, -3.5), (1e9, -1.4e-8)] {
        let found = value(mass, "f(x)", x);
        assert!((found - wanted).abs() < 1e-14, "{x}: {found}");
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str, files: &[(&str, &str)]) -> Folder {
    let path = std::env::temp_dir().join(format!("nestar-curves-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a folder");
    for (name, text) in files {
        std::fs::write(path.join(name), text).expect("a file");
    }
    Folder(path)
}

fn read(folder: &Path, tables: &str) -> Result<Deck, String> {
    let path = folder.join("deck.toml");
    std::fs::write(&path, tables).expect("a file");
    let deck = Deck::read(&path).map_err(|e| e.to_string())?;
    deck.finish().map_err(|e| e.to_string())?;
    Ok(deck)
}

const HALO: &str = "radius, mass # kpc, 1e10 Msun\n1, 2\n2, 6\n4, 10\n";

#[test]
fn columns_of_files_are_numbers_and_run_toml_has_them() {
    let folder = folder(
        "columns",
        &[("halo.csv", HALO), ("plain.txt", "0 1\n1 3\n")],
    );
    let text = "[constants]\nG = 0.5\n[tables.halo]\nfile = \"halo.csv\"\nx = \"ln(radius)\"\ny = \"G*mass/radius^2\"\n\
                [tables.plain]\nfile = \"plain.txt\"\nx = \"column_1\"\ny = \"column_2\"\n";
    let deck = read(&folder.0, text).unwrap_or_else(|e| panic!("{e}"));
    let at = |deck: &Deck, x: f64| {
        let formula = deck.formula("a.b", "halo(ln(x)) + plain(x/4)", &["x"]);
        formula.unwrap_or_else(|e| panic!("{e}")).eval(&[x])
    };
    assert_eq!(at(&deck, 2.0), 0.75 + 2.0);
    let resolved = deck.resolved();
    assert!(!resolved.contains("file"), "{resolved}");
    let again = Deck::parse("run.toml", &resolved).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.resolved(), resolved);
    for x in [1.0, 1.7, 3.2] {
        assert_eq!(at(&again, x).to_bits(), at(&deck, x).to_bits());
    }
}

#[test]
fn invalid_tables_are_errors_with_their_location() {
    let folder = folder(
        "wrong",
        &[
            ("halo.csv", HALO),
            ("back.csv", "r, m\n1, 2\n1, 3\n"),
            ("twice.csv", "r, m, m\n1, 2, 3\n2, 3, 4\n"),
        ],
    );
    let cases = [
        (
            "x = [1, 2]\ny = [1]",
            "`tables.f.y` must have as many numbers as x (2), found 1",
        ),
        (
            "x = [1]\ny = [1]",
            "`tables.f.x` must have 2 to 10000 numbers, found 1",
        ),
        (
            "x = [2, 1]\ny = [1, 1]",
            "`tables.f.x` must ascend from row to row, found 1.0 after 2.0 in row 2",
        ),
        (
            "x = [0, 1]\ny = [1, 1]\nbelow = \"core\"",
            "`tables.f.below` needs positive x",
        ),
        (
            "x = [1, 2]\ny = [1, 1]\nabove = \"core\"",
            "`tables.f.above` must be",
        ),
        (
            "x = \"radius\"\ny = [1, 1]",
            "give `tables.f.file`, or a list of numbers",
        ),
        ("x = [1, 2]", "y"),
        ("x = [1, 2]\ny = [1, 1]\nz = [1, 1]", "unknown key `z`"),
        (
            "file = \"hallo.csv\"\nx = \"radius\"\ny = \"mass\"",
            "hallo.csv: cannot be read",
        ),
        (
            "file = \"halo.csv\"\nx = \"radius\"\ny = \"maas\"",
            "did you mean `mass`?",
        ),
        (
            "file = \"halo.csv\"\nx = \"radius\"\ny = \"1/(mass - 6)\"",
            "`tables.f.y` is inf in row 2",
        ),
        (
            "file = \"back.csv\"\nx = \"r\"\ny = \"m\"",
            "back.csv:3:1: \"r\" must ascend",
        ),
        (
            "file = \"twice.csv\"\nx = \"r\"\ny = \"m\"",
            "twice.csv:1:7: two columns have the name \"m\"",
        ),
        (
            "x = [0, 1e-310, 1]\ny = [0, 1, 1]",
            "`tables.f.x` has no finite slope or integral in row 1",
        ),
        (
            "x = [-1.7e308, 1.7e308]\ny = [1, 1]\nslope = [0, 0]",
            "`tables.f.x` has no finite slope or integral in row 1",
        ),
        (
            "x = [0, 1, 2]\ny = [1e308, 1e308, 1e308]\nintegral = true",
            "`tables.f.x` has no finite slope or integral in row 2",
        ),
    ];
    for (keys, wanted) in cases {
        let found = read(&folder.0, &format!("[tables.f]\n{keys}\n")).expect_err(keys);
        assert!(found.contains(wanted), "{keys}:\n{found}");
    }
    for (text, wanted) in [
        (
            "[tables]\nsin = { x = [1, 2], y = [1, 1] }",
            "must differ from all functions and constants",
        ),
        (
            "[constants]\nf = 1\n[tables]\nf = { x = [1, 2], y = [1, 1] }",
            "must differ from all functions and constants",
        ),
        ("tables = 3", "tables"),
    ] {
        let found = read(&folder.0, text).expect_err(text);
        assert!(found.contains(wanted), "{text}:\n{found}");
    }
}

/// A column hides a constant or a function of the same name.
#[test]
fn columns_have_any_names() {
    let folder = folder("named", &[("named.csv", "r, e, min\n1, 5, 7\n2, 6, 8\n")]);
    for (y, wanted) in [("e", 5.5), ("min + pi", 7.5 + std::f64::consts::PI)] {
        let text = format!("[tables.f]\nfile = \"named.csv\"\nx = \"r\"\ny = \"{y}\"\n");
        let deck = read(&folder.0, &text).unwrap_or_else(|e| panic!("{e}"));
        let formula = deck.formula("a.b", "f(x)", &["x"]);
        let found = formula.unwrap_or_else(|e| panic!("{e}")).eval(&[1.5]);
        assert!((found - wanted).abs() < 1e-14, "{y}: {found}");
    }
}

#[test]
fn formulas_say_which_functions_there_are() {
    let deck = Deck::parse("deck", "tables = { halo = { x = [1, 2], y = [1, 1] } }");
    let deck = deck.unwrap_or_else(|e| panic!("{e}"));
    let why = |text| {
        deck.formula("a.b", text, &["x"])
            .expect_err(text)
            .to_string()
    };
    assert!(why("hallo(x)").contains("did you mean `halo`?"));
    assert!(why("halo").contains("write halo(…)"));
    assert!(why("halo(x, x)").contains("`halo` takes 1 argument, found 2"));
    let formula = deck.formula("a.b", "halo(x) + halo(1.5)", &["x"]);
    let formula = formula.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(formula.ranges(), " (`halo` is defined from 1.0 to 2.0)");
    let folded = deck.formula("a.b", "halo(1.5)", &[]);
    assert_eq!(folded.map(|f| f.constant()).ok().flatten(), Some(1.0));
}

#[test]
fn differences_are_of_their_order_and_turn_with_their_axis() {
    let deck = Deck::parse("deck", "").unwrap_or_else(|e| panic!("{e}"));
    let formula = deck.formula("a.b", "sin(x) + y", &["x", "y"]);
    let formula = formula.unwrap_or_else(|e| panic!("{e}"));
    let slope = |h: f64, fourth: bool, sign: f64| {
        let steps = [1.0, -1.0, 2.0, -2.0].map(|n| sign * n * h);
        let points = if fourth { &steps[..] } else { &steps[..2] };
        let values: Vec<f64> = points.iter().flat_map(|dx| [0.7 + dx, 3.0]).collect();
        let difference = formula.difference(fourth).unwrap_or_else(|e| panic!("{e}"));
        difference.eval(&values) / h
    };
    for (fourth, order) in [(false, 2.0), (true, 4.0)] {
        let error = |h| (slope(h, fourth, 1.0) - 0.7f64.cos()).abs();
        let found: f64 = (error(0.04) / error(0.02)).log2();
        assert!((found - order).abs() < 0.02, "{found}");
        let (there, back) = (slope(0.1, fourth, 1.0), slope(0.1, fourth, -1.0));
        assert_eq!(there.to_bits(), (-back).to_bits());
    }
}

#[test]
fn editors_know_the_keys_of_functions() {
    let tables = TableSchema::of::<TablesConfig>("tables");
    let json = schema(std::slice::from_ref(&tables));
    let own = &json["properties"]["tables"]["additionalProperties"]["properties"];
    assert!(
        own["above"].is_object() && own["file"].is_object(),
        "{json}"
    );
    let keys: Vec<String> = nestar_deck::describe_table(&tables)
        .into_iter()
        .map(|parameter| parameter.key)
        .collect();
    assert!(keys.contains(&"<name>.integral".to_string()), "{keys:?}");
}
