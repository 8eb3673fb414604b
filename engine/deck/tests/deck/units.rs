//! The table `[units]`: words, numbers, derived units, and constants in code units.

use nestar_deck::{CodeUnits, Deck, DeckError, TableSchema, UnitsConfig, units::cgs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A box.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Part {
    /// A number.
    #[schemars(extend("unit" = "length"))]
    width: f64,
    /// A formula.
    law: String,
}

fn deck(units: &str) -> Deck {
    let text = format!("[units]\n{units}\n");
    Deck::parse("d.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

fn units(text: &str) -> CodeUnits {
    let deck = deck(text);
    let units = deck.units().unwrap_or_else(|e| panic!("{text}: {e}"));
    units.clone()
}

fn wrong(text: &str) -> String {
    let error = deck(text).units().map(|_| ()).expect_err(text);
    error.to_string()
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-14
}

const KPC: f64 = 1e3 * cgs::PARSEC;

#[test]
fn words_numbers_and_products_say_the_same() {
    let of = |text: &str| {
        let CodeUnits {
            length_cgs,
            mass_cgs,
            time_cgs,
            ..
        } = units(text);
        [length_cgs, mass_cgs, time_cgs]
    };
    let sun = cgs::SOLAR_MASS;
    let words = of("length = \"kpc\"\nmass = \"Msun\"\ntime = \"s\"");
    assert_eq!(words, [KPC, sun, 1.0]);
    let mixed = format!("length = \"1000 pc\"\nmass_cgs = {sun:?}\ntime = 1");
    assert!(close(of(&mixed)[0], KPC) && of(&mixed)[1..] == [sun, 1.0]);
    let named = units("length = \"10 kpc\"\nmass = 1e43\nvelocity = \"km/s\"");
    assert_eq!(
        named.name,
        "10 kpc, 10000000000000000000000000000000000000000000 g, km/s"
    );
    assert!(close(named.time_cgs, 10.0 * KPC / 1e5));
    let [length, mass, time] = of("density = \"mH/cm3\"\nvelocity = \"km/s\"\nmass = \"Msun\"");
    assert!(close(mass / (length * length * length), cgs::HYDROGEN_MASS));
    assert!(close(length / time, 1e5) && mass == sun);
}

#[test]
fn newtons_constant_is_one_if_the_deck_sets_it() {
    for pair in [
        "length = \"kpc\"\nmass = \"1e10 Msun\"",
        "length = \"kpc\"\nvelocity = \"100 km/s\"",
        "length = \"pc\"\ntime = \"Myr\"",
        "mass = \"Msun\"\ntime = \"yr\"",
        "mass = \"Msun\"\nvelocity = \"km/s\"",
        "mass = \"Msun\"\ndensity = \"Msun/pc3\"",
        "length = \"kpc\"\ndensity = \"mH/cm3\"",
        "density = \"mH/cm3\"\nvelocity = \"km/s\"",
    ] {
        let found = units(&format!("{pair}\ngravity = 1"));
        assert_eq!(found.newton_constant(), 1.0, "{pair}");
    }
    // 4.30091e-6 kpc (km/s)^2 / Msun
    let galaxy = units("length = \"kpc\"\nmass = \"Msun\"\nvelocity = \"km/s\"");
    assert!((galaxy.newton_constant() / 4.30091e-6 - 1.0).abs() < 1e-5);
}

#[test]
fn too_few_and_too_many_units_are_errors_with_keys_and_lines() {
    let little = wrong("length = \"kpc\"\nmass = \"Msun\"");
    assert!(
        little.starts_with("d.toml:1")
            && little
                .contains("found length, mass; give one more of time, velocity, density, gravity"),
        "{little}"
    );
    let much = wrong("length = \"kpc\"\nmass = \"Msun\"\ntime = \"Myr\"\nvelocity = \"km/s\"");
    assert!(
        much.starts_with("d.toml:5") && much.contains("`units.velocity`: is redundant"),
        "{much}"
    );
    let twice = wrong("length = \"kpc\"\nlength_cgs = 1.0\nmass = 1.0\ntime = 1.0");
    assert!(
        twice.contains("`units.length_cgs`: defines the same unit as `units.length`"),
        "{twice}"
    );
    let dependent = wrong("length = \"kpc\"\ntime = \"Myr\"\nvelocity = \"km/s\"");
    assert!(
        dependent.contains("length, time, velocity are not independent"),
        "{dependent}"
    );
    let kind = wrong("length = \"Msun\"\nmass = 1\ntime = 1");
    assert!(
        kind.starts_with("d.toml:2")
            && kind.contains("must be a length such as cm, but \"Msun\" is a mass"),
        "{kind}"
    );
    let word = wrong("length = \"kcp\"\nmass = 1\ntime = 1");
    assert!(word.contains("did you mean `kpc`?"), "{word}");
    let key = wrong("lenght = \"kpc\"\nmass = 1\ntime = 1");
    assert!(key.contains("did you mean `length`?"), "{key}");
    assert!(wrong("length = 0\nmass = 1\ntime = 1").contains("positive"));
}

#[test]
fn the_old_keys_and_no_table_keep_their_meaning() {
    let old = units("length_cgs = 2.0");
    assert_eq!(
        (old.length_cgs, old.mass_cgs, old.time_cgs),
        (2.0, 1.0, 1.0)
    );
    assert!(!old.is_dimensionless());
    for text in [
        "",
        "name = \"dimensionless\"",
        "length_cgs = 1.0\nmass_cgs = 1.0\ntime_cgs = 1.0\nname = \"dimensionless\"",
    ] {
        assert!(units(text).is_dimensionless(), "{text}");
    }
    assert!(!units("length = \"cm\"\nmass = \"g\"\ntime = \"s\"").is_dimensionless());
    // the table may use constants
    let text = "[constants]\nbig = 3e21\n[units]\nlength_cgs = \"2*big\"\n";
    let deck = Deck::parse("d.toml", text).expect("a deck");
    assert!(deck.units().is_ok_and(|u| u.length_cgs == 6e21));
}

#[test]
fn the_resolved_deck_has_the_same_units_and_constants() -> Result<(), DeckError> {
    let text = "[units]\nlength = \"10 kpc\"\ngravity = 1\nvelocity = \"200 km/s\"\n[constants]\nc = 2.0\nr0 = \"3*kpc\"\n[part]\nwidth = \"5*kpc + c\"\n";
    let mut deck = Deck::parse("d.toml", text)?;
    let own = deck.take_units()?;
    let part: Part = deck.table("part")?;
    // a constant takes precedence over a unit
    assert!(close(part.width, 2.5), "{}", part.width);
    assert!(close(deck.constants()[1].1, 0.3));
    deck.finish()?;
    let mut again = Deck::parse("run.toml", &deck.resolved())?;
    assert_eq!(again.take_units()?, own);
    let part_again: Part = again.table("part")?;
    assert_eq!(part_again.width.to_bits(), part.width.to_bits());
    assert_eq!(again.resolved(), deck.resolved());
    let formula = |deck: &Deck, text| {
        deck.formula("part.law", text, &["x"])
            .map(|f| f.eval(&[2.0]))
    };
    for text in ["x*kpc/Myr", "G", "k_B/m_H", "0.1*mH/cm3"] {
        assert_eq!(
            formula(&deck, text)?.to_bits(),
            formula(&again, text)?.to_bits(),
            "{text}"
        );
    }
    assert_eq!(formula(&deck, "G")?, 1.0);
    // a variable hides a unit
    let hidden = deck.formula("part.law", "kpc", &["kpc"])?;
    assert_eq!(hidden.eval(&[7.0]), 7.0);
    Ok(())
}

#[test]
fn overrides_may_change_one_size_after_the_other() -> Result<(), DeckError> {
    let mut deck = Deck::parse("d.toml", "[constants]\na = 1.0\n")?;
    for change in ["units.length=kpc", "units.mass=Msun", "constants.a=2*kpc"] {
        deck.set(change)?;
    }
    let early = deck
        .table::<Part>("part")
        .expect_err("a unit is missing")
        .to_string();
    assert!(early.contains("give one more of"), "{early}");
    deck.set("units.velocity=km/s")?;
    assert_eq!(deck.constants()[0].1, 2.0);
    Ok(())
}

#[test]
fn words_without_units_are_reported() {
    let mut deck = Deck::parse("d.toml", "[part]\nwidth = \"5*kpc\"\n").expect("a deck");
    let why = deck
        .table::<Part>("part")
        .expect_err("no units")
        .to_string();
    assert!(
        why.contains("`kpc`") && why.contains("table [units]"),
        "{why}"
    );
}

#[test]
fn a_check_reports_an_error_of_units_once() {
    let text = "[units]\nlength = \"kpc\"\nmass = \"Msun\"\n[part]\nwitdh = 2.0\n";
    let deck = Deck::parse("d.toml", text).expect("a deck");
    let tables = [
        TableSchema::of::<UnitsConfig>("units"),
        TableSchema::of::<Part>("part"),
    ];
    let why = deck.check(&tables).expect_err("two mistakes").to_string();
    assert!(
        why.matches("units").count() >= 1 && why.contains("witdh"),
        "{why}"
    );
    let wrong_key = Deck::parse("d.toml", "[units]\nlenght = 1\n").expect("a deck");
    let why = wrong_key
        .check(&tables[..1])
        .expect_err("a key")
        .to_string();
    assert_eq!(why.matches("unknown key").count(), 1, "{why}");
}

#[test]
fn a_default_that_follows_is_no_override() -> Result<(), DeckError> {
    let mut deck = Deck::parse("d.toml", "[part]\nlaw = \"x\"\n[whole]\nedge = 3\n")?;
    assert_eq!(deck.written("part.width"), "part.width");
    deck.fill("part.width", "whole.edge", 3.0);
    deck.fill("other.width", "whole.edge", 3.0);
    assert_eq!(deck.table::<Part>("part")?.width, 3.0);
    assert!(!deck.is_overridden("part.width") && !deck.has("other"));
    deck.fill("part.width", "part.law", 4.0);
    assert_eq!(deck.table::<Part>("part")?.width, 3.0);
    // messages name the key that the user has written
    assert_eq!(deck.written("part.width"), "whole.edge");
    assert_eq!(deck.written("other.width"), "other.width");
    let why = deck.error_at("part.width", "too wide").to_string();
    assert!(why.contains("d.toml:4:"), "{why}");
    Ok(())
}

/// Numbers of several dimensions.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Dimensional {
    #[schemars(extend("unit" = "length"))]
    width: f64,
    #[schemars(extend("unit" = "time"))]
    end: f64,
    #[schemars(extend("unit" = "length/time"))]
    speed: Option<f64>,
    #[schemars(extend("unit" = "mass/length**3"))]
    density: f64,
    #[schemars(extend("unit" = "K"))]
    temperature: f64,
    #[schemars(extend("unit" = "length"))]
    edge: Vec<f64>,
    ratio: f64,
    #[schemars(extend("unit" = "of the field"))]
    threshold: f64,
}

const ASTRONOMICAL: &str = "length = \"kpc\"\nmass = \"Msun\"\ntime = \"Myr\"";

fn dimensional(constants: &str, table: &str) -> Result<Dimensional, String> {
    let text = format!("[units]\n{ASTRONOMICAL}\n[constants]\n{constants}\n[part]\n{table}\n");
    let mut deck = Deck::parse("d.toml", &text).map_err(|e| e.to_string())?;
    deck.table("part").map_err(|e| e.to_string())
}

#[test]
fn numbers_have_units() {
    let table = "width = \"30 kpc\"\nend = \"-2e3 Myr\"\nspeed = \"5 kpc/Myr\"\ntemperature = \"1e4 K\"\nedge = [\"-3 kpc\", 2, \"500 pc\"]";
    let found = dimensional("", table).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        [found.width, found.end, found.temperature],
        [30.0, -2e3, 1e4]
    );
    assert_eq!(found.speed, Some(5.0));
    assert!(
        found.edge[..2] == [-3.0, 2.0] && close(found.edge[2], 0.5),
        "{found:?}"
    );
    let found = dimensional("", "density = \"1e-24 g/cm3\"").unwrap_or_else(|e| panic!("{e}"));
    assert!(close(
        found.density,
        1e-24 * (KPC * KPC * KPC) / cgs::SOLAR_MASS
    ));
}

#[test]
fn expressions_have_dimensions() {
    let constants =
        "r0 = \"3 kpc\"\nm = \"2e11 Msun\"\nn = 4\nv0 = \"sqrt(G*m/r0)\"\nt0 = \"r0/v0\"";
    for right in [
        "width = \"3*r0\"",
        "width = \"max(r0, 1*kpc) - 0\"",
        "width = \"n*3\"",
        "end = \"n*t0\"",
        "speed = \"(v0^2 + (G*m/r0))^0.5\"",
        "speed = \"if(r0 > 2*kpc, v0, 0)\"",
        "density = \"m/(4/3*pi*r0^3)\"",
        "ratio = \"r0/kpc\"\nthreshold = \"r0\"",
        "edge = [\"-r0\", \"exp(r0/kpc)*kpc\"]",
    ] {
        dimensional(constants, right).unwrap_or_else(|e| panic!("{right}: {e}"));
    }
    for (wrong, why) in [
        (
            "end = \"0.02*kpc\"",
            "`part.end` must be a time, but the text \"0.02*kpc\" is a length",
        ),
        (
            "end = \"3 kpc\"",
            "`part.end` must be a time, but the text \"3 kpc\" is a length",
        ),
        (
            "edge = [0, \"3*t0\"]",
            "`part.edge[1]` must be a length, but the text \"3*t0\" is a time",
        ),
        (
            "temperature = \"r0\"",
            "must be a number in K, but the text \"r0\" is a length",
        ),
        (
            "ratio = \"r0\"",
            "`part.ratio` must be a pure number, but the text \"r0\" is a length",
        ),
        ("width = \"r0 + t0\"", "it adds a length and a time"),
        ("width = \"r0 + 1\"", "it adds a length and a pure number"),
        (
            "width = \"if(r0 > t0, r0, 1*kpc)\"",
            "it compares a length and a time",
        ),
        (
            "width = \"exp(r0)*kpc\"",
            "it takes a function of a length, not a pure number",
        ),
        (
            "width = \"3 kpx\"",
            "unknown unit `kpx`; did you mean `kpc`?",
        ),
        ("density = \"m/r0^2\"", "must be a density, but the text"),
    ] {
        let found = dimensional(constants, wrong).expect_err(wrong);
        assert!(found.contains(why), "{wrong}: {found}");
        assert!(found.contains("^^"), "{wrong} has no caret: {found}");
    }
}

#[test]
fn formulas_may_be_numbers_with_units() {
    let deck = deck(ASTRONOMICAL);
    let value = |text: &str| deck.formula("part.law", text, &["x"]).map(|f| f.constant());
    assert_eq!(value("-2 kpc/Myr").ok(), Some(Some(-2.0)));
    assert_eq!(value("2*kpc").ok(), Some(Some(2.0)));
    assert_eq!(value("1e-10").ok(), Some(Some(1e-10)));
    assert_eq!(value("1e4*100^(x/100)").ok(), Some(None));
    let wrong = value("2 kpx")
        .expect_err("there is no such unit")
        .to_string();
    assert!(
        wrong.contains("unknown unit `kpx`; did you mean `kpc`?"),
        "{wrong}"
    );
}

#[test]
fn numbers_with_units_need_a_table_of_units() {
    let mut deck =
        Deck::parse("d.toml", "[part]\nwidth = \"3 kpc\"\n").unwrap_or_else(|e| panic!("{e}"));
    let found = deck
        .table::<Dimensional>("part")
        .expect_err("there are no units");
    assert!(
        found.to_string().contains("units need a table [units]"),
        "{found}"
    );
}

#[test]
fn a_unit_that_the_deck_derives_is_exact() {
    for (units, table) in [
        (
            "length = \"kpc\"\nmass = \"1e10 Msun\"\nvelocity = \"km/s\"",
            "speed = \"217 km/s\"",
        ),
        (
            "length = \"pc\"\nvelocity = \"100 km/s\"\ngravity = 1",
            "speed = \"21700 km/s\"",
        ),
        (
            "density = \"mH/cm3\"\nmass = \"Msun\"\nvelocity = \"0.1 km/s\"",
            "speed = \"21.7 km/s\"\ndensity = \"0.3 mH/cm3\"",
        ),
    ] {
        let text = format!("[units]\n{units}\n[part]\n{table}\n");
        let mut deck = Deck::parse("d.toml", &text).expect("a deck");
        let found: Dimensional = deck.table("part").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.speed, Some(217.0), "{units}");
        assert!(found.density == 0.0 || found.density == 0.3, "{found:?}");
    }
}

/// A gas with formulas.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Gas {
    #[schemars(extend("unit" = "mass/length**3"))]
    density: Option<String>,
    #[schemars(extend("unit" = "K"))]
    temperature: String,
}

#[test]
fn constant_formulas_have_the_dimension_of_their_key() {
    let gas = |table: &str| {
        let text =
            format!("[units]\n{ASTRONOMICAL}\n[constants]\nr0 = \"3 kpc\"\n[part]\n{table}\n");
        let mut deck = Deck::parse("d.toml", &text).map_err(|e| e.to_string())?;
        deck.table::<Gas>("part").map_err(|e| e.to_string())
    };
    for right in [
        "density = \"1e-24 g/cm3\"\ntemperature = \"1e4 K\"",
        "density = \"0.1*mH/cm3\"\ntemperature = \"1e4\"",
        // a formula of variables may be in code units
        "density = \"if(x < r0, 1, 0.1*mH/cm3) + sqrt(x^2 + 1)\"",
        // the key is compiled, and its errors found, elsewhere
        "density = \"kcp\"",
    ] {
        gas(right).unwrap_or_else(|e| panic!("{right}: {e}"));
    }
    for (wrong, why) in [
        (
            "density = \"2*r0\"",
            "`part.density` must be a density, but the text \"2*r0\" is a length",
        ),
        (
            "density = \"1e-24 g\"",
            "`part.density` must be a density, but the text \"1e-24 g\" is a mass",
        ),
        (
            "temperature = \"1e4*k_B\"",
            "`part.temperature` must be a number in K",
        ),
    ] {
        let found = gas(wrong).expect_err(wrong);
        assert!(
            found.starts_with("d.toml:") && found.contains(why),
            "{found}"
        );
    }
}
