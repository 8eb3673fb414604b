//! Columns of the diagnostics that decks define.

use super::device_runs::emulation;
use nestar_tests::decks::{BLAST, deck};
use nestar_tests::ranks::on_ranks;
use nestar_tests::{State, Stepper};

const COLUMNS: &str = r#"
[[diagnostics]]
name = "hot_mass"
formula = "density"
reduction = "integral"
where = "pressure > 0.5 and x < 0.6"

[[diagnostics]]
name = "mean_pressure"
formula = "pressure"
reduction = "mean"
weight = "density"
where = "x > 0.2"

[[diagnostics]]
name = "fastest"
formula = "sqrt(velocity_x^2 + velocity_y^2)"
reduction = "max"

[[diagnostics]]
name = "least"
formula = "pressure"
reduction = "min"
where = "level == 1"
"#;

const NAMES: [&str; 4] = ["hot_mass", "mean_pressure", "fastest", "least"];

fn text() -> String {
    format!("{BLAST}\n{COLUMNS}")
}

/// The same numbers from the cells of the state.
fn expected(state: &State) -> [f64; 4] {
    let (mut mass, mut weight, mut product) = (0.0, 0.0, 0.0);
    let (mut fastest, mut least) = (f64::NEG_INFINITY, f64::INFINITY);
    state.each_leaf_cell(|level, x, volume, u| {
        let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
        let pressure = (5.0 / 3.0 - 1.0) * (u[4] - kinetic);
        if pressure > 0.5 && x[0] < 0.6 {
            mass += u[0] * volume;
        }
        if x[0] > 0.2 {
            weight += u[0] * volume;
            product += u[0] * pressure * volume;
        }
        fastest = fastest.max((u[1] * u[1] + u[2] * u[2]).sqrt() / u[0]);
        if level == 1 {
            least = least.min(pressure);
        }
    });
    [mass, product / weight, fastest, least]
}

#[test]
fn columns_are_reductions_over_leaf_cells() {
    let mut run = Stepper::new(&text(), &[]);
    run.steps(3);
    let found = run.columns(NAMES);
    let wanted = expected(&run.state());
    for ((name, found), wanted) in NAMES.iter().zip(found).zip(wanted) {
        assert!(wanted.is_finite() && wanted != 0.0, "{name}: {wanted}");
        assert!(
            (found / wanted - 1.0).abs() < 1e-12,
            "{name}: {found} {wanted}"
        );
    }
}

#[test]
fn columns_have_the_same_bits_on_ranks_and_devices() {
    let bits = |run: &mut Stepper| {
        run.steps(2);
        run.columns(NAMES).map(f64::to_bits)
    };
    let one = bits(&mut Stepper::new(&text(), &[]));
    for found in on_ranks(3, &text(), &[], bits) {
        assert_eq!(found, one);
    }
    if emulation() {
        let device = ["run.device=emulated"];
        assert_eq!(bits(&mut Stepper::new(&text(), &device)), one);
    }
}

#[test]
fn columns_that_mean_nothing_are_refused() {
    for (change, why) in [
        (
            "name = \"hot mass\"",
            "must have only letters, digits and `_`",
        ),
        (
            "name = \"mean_pressure\"",
            "there is a column \"mean_pressure\" already",
        ),
        (
            "name = \"total_density\"",
            "there is a column \"total_density\" already",
        ),
        ("name = \"step\"", "there is a column \"step\" already"),
        ("formula = \"densty\"", "did you mean `density`?"),
        ("reduction = \"sum\"", "diagnostics[0].reduction"),
        ("where = \"presure > 1\"", "did you mean `pressure`?"),
        (
            "weight = \"density\"",
            "a weight needs reduction = \"mean\"",
        ),
    ] {
        let key = change.split(' ').next().unwrap_or_default();
        let first = COLUMNS
            .find(&format!("{key} = "))
            .filter(|_| key != "weight");
        let text = match first {
            Some(at) => {
                let end = at + COLUMNS[at..].find('\n').unwrap_or(0);
                format!("{BLAST}\n{}{change}{}", &COLUMNS[..at], &COLUMNS[end..])
            }
            None => format!(
                "{BLAST}\n{}",
                COLUMNS.replacen("where", &format!("{change}\nwhere"), 1)
            ),
        };
        let made = nestar::Simulation::new(deck(&text, &[]));
        let found = made.err().expect(change).to_string();
        assert!(
            found.contains(why) && found.starts_with("test:"),
            "{change}: {found}"
        );
    }
}
