//! Golden error messages for each kind of error.

use crate::common::{Domain, Hydro, Initial, Mesh, Needy, Top};
use nestar_deck::{Deck, DeckError, TableSchema};

fn registered() -> Vec<TableSchema> {
    vec![
        TableSchema::of::<Top>(""),
        TableSchema::of::<Hydro>("hydro"),
        TableSchema::of::<Domain>("domain"),
        TableSchema::of::<Mesh>("mesh"),
        TableSchema::of::<Initial>("initial"),
    ]
}

/// Checks the whole message of a deck with one error.
#[track_caller]
fn golden(deck: &str, expected: &str) {
    let error = Deck::parse("d.toml", deck).and_then(|deck| deck.check(&registered()));
    assert_eq!(error.expect_err("a mistake").to_string(), expected);
}

#[track_caller]
fn message(error: DeckError) -> String {
    assert_eq!(error.faults().len(), 1, "{error}");
    error.faults()[0].message.clone()
}

#[test]
fn misspelt_names() {
    golden(
        "[hydro]\nlimitr = \"minmod\"\n",
        "d.toml:2:1: unknown key `limitr` in [hydro]; did you mean `limiter`?\n 2 | limitr = \"minmod\"\n   | ^^^^^^",
    );
    golden(
        "scenaro = 'sod'",
        "d.toml:1:1: unknown key `scenaro`; did you mean `scenario`?\n 1 | scenaro = 'sod'\n   | ^^^^^^^",
    );
    golden(
        "\n[hydr0]\na = 1\n",
        "d.toml:2:2: unknown table [hydr0]: no plugin of this program uses it; did you mean `hydro`?\n 2 | [hydr0]\n   |  ^^^^^",
    );
    golden(
        "[wind]\n",
        "d.toml:1:2: unknown table [wind]: no plugin of this program uses it; known are domain, hydro, initial, mesh\n 1 | [wind]\n   |  ^^^^",
    );
    golden(
        "hydro.limiter = \"minmd\"",
        "d.toml:1:17: `hydro.limiter` must be one of \"minmod\", \"van-leer\", \"monotonized-central\", found \"minmd\"; \
         did you mean \"minmod\"?\n 1 | hydro.limiter = \"minmd\"\n   |                 ^^^^^^^",
    );
    golden(
        "[domain]\nboundary = { x = ['outflow', 'reflectin'], y = 'outflow' }",
        "d.toml:2:30: `domain.boundary.x[1]` must be one of \"periodic\", \"outflow\", \"reflecting\", found \"reflectin\"; \
         did you mean \"reflecting\"?\n 2 | boundary = { x = ['outflow', 'reflectin'], y = 'outflow' }\n   \
         |                              ^^^^^^^^^^^",
    );
}

#[test]
fn misleading_characters_are_named() {
    golden(
        "[time]\nend =\u{a0}0.1 # \u{201c}end\u{201d}\n",
        "d.toml:2:6: the character U+00A0 (no-break space; write a blank) has no meaning here\n 2 | end =\u{a0}0.1 # \u{201c}end\u{201d}\n   |      ^",
    );
    for (deck, code, advice) in [
        ("en\u{200b}d = 0.1", "U+200B", "delete it"),
        ("end = \u{2212}0.1", "U+2212", "write -"),
        ("end = 0\u{2013}1", "U+2013", "write -"),
        ("name = \u{201c}sod\u{201d}", "U+201C", "write \""),
        ("end = \u{ff11}", "U+FF11", "write 1"),
        ("cells = [8,\u{3000}8]", "U+3000", "write a blank"),
        ("\u{2066}end = 1", "U+2066", "delete it"),
        ("end = \u{c}1", "U+000C", "delete it"),
    ] {
        let error = message(Deck::parse("d.toml", deck).expect_err(deck));
        assert!(error.contains(code) && error.contains(advice), "{error}");
    }
    // invisible characters in a text would become part of a name; visible ones may belong there
    for deck in ["a = 1\nb = \"out/run\u{200b}\"", "b = 'out/my\u{a0}run'"] {
        let error = message(Deck::parse("d.toml", deck).expect_err(deck));
        assert!(error.contains("has no meaning here"), "{error}");
        let mut plain = Deck::parse("d.toml", "").unwrap();
        let setting = deck.rsplit('\n').next().unwrap_or_default();
        let error = message(plain.set(setting).expect_err(deck));
        assert!(error.contains("has no meaning here"), "{error}");
    }
    let mut deck = Deck::parse("d.toml", "b = 'out/\u{645}\u{6cc}\u{200c}\u{62e}'").unwrap();
    deck.set("c=out/two\u{2013}three").expect("a visible dash");
    let deck = Deck::parse("d.toml", "hydro.limiter = \"min\u{2013}mod\" # \u{a0}").unwrap();
    let error = message(deck.check(&registered()).expect_err("an unknown word"));
    assert!(!error.contains("U+"), "{error}");
    let mut deck = Deck::parse("d.toml", "").unwrap();
    let error = message(deck.set("hydro.limiter=[\u{a0}1]").expect_err("no TOML"));
    assert!(error.contains("U+00A0"), "{error}");
    assert!(Deck::parse("d.toml", "\u{feff}end = 0.1").is_ok());
}

#[test]
fn numbers_of_other_notations_are_corrected() {
    golden(
        "[time]\nend = 1d-1\n",
        "d.toml:2:7: `1d-1` is not a number of a deck; write 1e-1\n 2 | end = 1d-1\n   |       ^^^^",
    );
    for (found, right) in [
        ("1.5D+03", "1.5e03"),
        ("-1.d0", "-1.0e0"),
        (".5", "0.5"),
        ("5.", "5.0"),
        ("-.5e3", "-0.5e3"),
        ("007", "7"),
    ] {
        for deck in [format!("end = {found}"), format!("a = [1, {found} ]")] {
            let error = message(Deck::parse("d.toml", &deck).expect_err(&deck));
            let expected = format!("`{found}` is not a number of a deck; write {right}");
            assert_eq!(error, expected);
        }
    }
    let mut deck = Deck::parse("d.toml", "").unwrap();
    let error = message(deck.set("a=[.5]").expect_err("no TOML"));
    assert!(error.contains("write 0.5"), "{error}");
}

const WRONG_KINDS: &[(&str, &str)] = &[
    (
        "hydro.gamma = 'abc'",
        "`hydro.gamma` must be a number, found the text \"abc\": unknown name `abc`; known are pi, e",
    ),
    (
        "hydro.verbose = 1",
        "`hydro.verbose` must be true or false, found 1",
    ),
    (
        "hydro.quiet_steps = 2.0",
        "`hydro.quiet_steps` must be an integer, found 2.0",
    ),
    (
        "hydro.gamma = 1979-05-27",
        "`hydro.gamma` must be a number, found the date 1979-05-27",
    ),
    (
        "hydro = 3",
        "`hydro` must be a table, written [hydro], found 3",
    ),
    (
        "[[hydro]]\ngamma = 2",
        "`hydro` must be a table, written [hydro], found a list of 1",
    ),
    (
        "scenario = { a = 1 }",
        "`scenario` must be a text, found a table",
    ),
    (
        "initial.density = 3",
        "`initial.density` must be a text, found 3; write \"3\"",
    ),
    (
        "initial.scalar_dye = true",
        "`initial.scalar_dye` must be a text, found true",
    ),
    (
        "domain.boundary = 3",
        "`domain.boundary` must be a word or a table, found 3",
    ),
    (
        "domain.cells = [64, 4.5, 64]",
        "`domain.cells[1]` must be an integer, found 4.5",
    ),
    (
        "domain.cells = 64",
        "`domain.cells` must be 3 integers, x y z, found 64",
    ),
    (
        "domain.right_edge = [1, 2]",
        "`domain.right_edge` must be 3 numbers, x y z, found a list of 2",
    ),
    (
        "mesh.refine = { criterion = 'always' }",
        "`mesh.refine` must be a list of tables, found a table",
    ),
];

#[test]
fn wrong_kinds() {
    for &(deck, expected) in WRONG_KINDS {
        let error = Deck::parse("d.toml", deck).and_then(|deck| deck.check(&registered()));
        assert_eq!(message(error.expect_err(deck)), expected, "{deck}");
    }
}

const OUT_OF_RANGE: &[(&str, &str)] = &[
    (
        "hydro.gamma = 1.0",
        "`hydro.gamma` must be above 1 and at most 3, found 1.0",
    ),
    (
        "hydro.gamma = 3.5",
        "`hydro.gamma` must be above 1 and at most 3, found 3.5",
    ),
    (
        "hydro.gamma = nan",
        "`hydro.gamma` must be a finite number, found NaN",
    ),
    (
        "domain.right_edge = [1, 1, -inf]",
        "`domain.right_edge[2]` must be a finite number, found -inf",
    ),
    (
        "domain.cells = [64, 64, 4]",
        "`domain.cells[2]` must be at least 8, found 4",
    ),
    (
        "hydro.quiet_steps = -1",
        "`hydro.quiet_steps` must be at least 0, found -1",
    ),
    (
        "hydro.quiet_steps = 5_000_000_000",
        "`hydro.quiet_steps` must be at least 0 and at most 4294967295, found 5000000000",
    ),
    (
        "hydro.scalars = ['a', '']",
        "`hydro.scalars[1]` must not be empty",
    ),
    (
        "hydro.scalars = ['a', 'b', 'c', 'd']",
        "`hydro.scalars` must be up to 3 texts, found a list of 4",
    ),
    (
        "mesh.max_level = 99999999999999999999",
        "the integer 99999999999999999999 does not fit 64 bits",
    ),
    (
        "hydro.gamma = 1e999",
        "the number 1e999 is too large for double precision (1.8e308)",
    ),
];

#[test]
fn out_of_range() {
    golden(
        "[hydro]\ncooling = -1\n",
        "d.toml:2:11: `hydro.cooling` must be at least 0 (1/time), found -1\n 2 | cooling = -1\n   |           ^^",
    );
    golden(
        "[[mesh.refine]]\ncriterion = \"gradient\"\nfield = \"p\"\nthreshold = [0.5, -1.5]\n",
        "d.toml:4:19: `mesh.refine[0].threshold[1]` must be at least 0 (1/length), found -1.5\n \
         4 | threshold = [0.5, -1.5]\n   |                   ^^^^",
    );
    for &(deck, expected) in OUT_OF_RANGE {
        let error = Deck::parse("d.toml", deck).and_then(|deck| deck.check(&registered()));
        assert_eq!(message(error.expect_err(deck)), expected, "{deck}");
    }
}

#[test]
fn lists_of_tagged_tables() {
    for (deck, expected) in [
        (
            "criterion = 'regon'",
            "`mesh.refine[0].criterion` must be one of \"gradient\", \"region\", \"always\", found \"regon\"; did you mean \
             \"region\"?",
        ),
        (
            "field = 'p'",
            "`mesh.refine[0]`: missing key `criterion` (one of gradient, region, always)",
        ),
        (
            "criterion = 3",
            "`mesh.refine[0].criterion` must be a word, found 3",
        ),
        (
            "criterion = 'region'",
            "`mesh.refine[0]`: missing key `left` (3 numbers, x y z)",
        ),
        (
            "criterion = 'always'\nfield = 'p'",
            "unknown key `field` in [mesh.refine[0]]; known are criterion",
        ),
    ] {
        let error = Deck::parse("d.toml", &format!("[[mesh.refine]]\n{deck}"))
            .and_then(|d| d.check(&registered()));
        assert_eq!(message(error.expect_err(deck)), expected, "{deck}");
    }
}

#[test]
fn toml_itself() {
    golden(
        "a = 1\na = 2\n",
        "d.toml:2:1: the key `a` is given twice\n 2 | a = 2\n   | ^",
    );
    golden(
        "[a]\nb=1\n[a]\n",
        "d.toml:3:2: the key `a` is given twice\n 3 | [a]\n   |  ^",
    );
    golden(
        "a = [1, 2\n",
        "d.toml:1:10: unclosed array, expected `]`\n 1 | a = [1, 2\n   |          ^",
    );
    golden(
        "é = tru\n",
        "d.toml:1:1: invalid unquoted key, expected letters, numbers, `-`, `_`\n 1 | é = tru\n   | ^",
    );
    golden(
        "a = 'é' x\n",
        "d.toml:1:9: unexpected key or value, expected newline, `#`\n 1 | a = 'é' x\n   |         ^",
    );
}

#[test]
fn independent_mistakes_come_together_and_in_order() {
    let deck = "[mesh]\nmax_level = 99\n[hydro]\ngama = 1\ngamma = 0\n[wind]\n";
    let error = Deck::parse("d.toml", deck)
        .and_then(|deck| deck.check(&registered()))
        .expect_err("four mistakes");
    let lines: Vec<_> = error.faults().iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [Some(2), Some(4), Some(5), Some(6)]);
}

#[test]
fn a_required_table_is_asked_for() {
    let mut deck = Deck::parse("d.toml", "").expect("an empty deck");
    let error = deck.table::<Needy>("needy").expect_err("mass is missing");
    assert_eq!(
        error.to_string(),
        "d.toml: the table [needy] is missing; it needs mass"
    );
    let mut deck = Deck::parse("d.toml", "\n[needy]\n").expect("a deck");
    let error = deck.table::<Needy>("needy").expect_err("mass is missing");
    assert_eq!(
        error.to_string(),
        "d.toml:2:2: `needy`: missing key `mass` (a number)\n 2 | [needy]\n   |  ^^^^^"
    );
}

#[test]
fn a_misspelt_required_key_is_reported_once() {
    let mut deck = Deck::parse("d.toml", "[needy]\nmas = 1.0\n").expect("a deck");
    let error = deck.table::<Needy>("needy").expect_err("a misspelt key");
    let why = message(error);
    assert!(
        why.contains("unknown key `mas`") && why.contains("did you mean `mass`?"),
        "{why}"
    );
}

#[test]
fn files() {
    let folder = std::env::temp_dir().join(format!("nestar-deck-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (missing, latin) = (folder.join("no.toml"), folder.join("latin.toml"));
    std::fs::write(&latin, b"a = 1\nb = '\xe9'\n").expect("a file");
    let read = |path: &std::path::Path| Deck::read(path).expect_err("unreadable").to_string();
    let absent = "no such file";
    assert_eq!(read(&missing), format!("{}: {absent}", missing.display()));
    let (near, deep) = (folder.join("latn.toml"), folder.join("no/d.toml"));
    let expected = format!(
        "{}: {absent}; did you mean {}?",
        near.display(),
        latin.display()
    );
    assert_eq!(read(&near), expected);
    let expected = format!(
        "{}: {absent}, and no folder {}",
        deep.display(),
        folder.join("no").display()
    );
    assert_eq!(read(&deep), expected);
    assert_eq!(
        read(&folder),
        format!(
            "{}: is a directory; give the path of a deck file",
            folder.display()
        )
    );
    let expected = format!(
        "{}: is not UTF-8 text (line 2); a deck is a TOML text file",
        latin.display()
    );
    assert_eq!(read(&latin), expected);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn long_lines_are_cut_and_tabs_keep_the_caret() {
    let deck = format!("[hydro]\nscalars = [{}7]\n", "'a', ".repeat(60));
    let error = Deck::parse("d.toml", &deck)
        .and_then(|deck| deck.check(&registered()))
        .expect_err("not a text");
    let fault = error.faults().last().expect("a fault");
    assert_eq!((fault.line, fault.column), (Some(2), Some(312)));
    let lines: Vec<Vec<char>> = fault
        .excerpt
        .lines()
        .map(|line| line.chars().collect())
        .collect();
    let caret = lines[1].iter().position(|c| *c == '^').expect("a caret");
    assert_eq!(lines[0][caret], '7');
    assert!(lines[0].len() < 110);
    golden(
        "[hydro]\n\tgamma\t= 0",
        "d.toml:2:10: `hydro.gamma` must be above 1 and at most 3, found 0\n 2 |  gamma = 0\n   |          ^",
    );
}
