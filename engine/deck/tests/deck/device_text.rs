//! Formulas as device code, compiled by g++, have the bits of the stack machine.

use nestar_deck::{CELL_VARIABLES, Deck, Formula};
use nestar_device::program;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLES: [&str; 3] = ["x", "y", "z"];

/// Every operation at least once, with both branches of selections and folded constants.
const FORMULAS: &[&str] = &[
    "x",
    "0.1",
    "0/0 + 0*x",
    "-1/0 * x",
    "-x",
    "!x",
    "not x or y",
    "x && y",
    "x || y",
    "x < y",
    "x <= y",
    "x > y",
    "x >= y",
    "x == y",
    "x != y",
    "if(x, y, z)",
    "if(x < y, sqrt(x), ln(y))",
    "min(x, y, z)",
    "max(x, y, z)",
    "abs(x)",
    "sign(x)",
    "step(x)",
    "floor(x)",
    "ceil(x)",
    "mod(x, y)",
    "sqrt(x)",
    "exp(x)",
    "ln(x)",
    "log10(x)",
    "pow(x, y)",
    "x^2 + y^3 - z^-1",
    "x^16 * y^-16",
    "x^0 + x^0.5",
    "sin(x)",
    "cos(x)",
    "tan(x)",
    "asin(x)",
    "acos(x)",
    "atan(x)",
    "atan2(y, x)",
    "sinh(x)",
    "cosh(x)",
    "tanh(x)",
    "erf(x)",
    "x + y - z * x / y",
];

/// Simple random numbers for tests.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 20) as usize % n
    }

    /// Returns an ordinary number, a special one, or any bit pattern.
    fn number(&mut self) -> f64 {
        const SPECIAL: [f64; 14] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            2.0,
            1e300,
            1e-300,
            5e-324,
            f64::MAX,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        let unit = (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        match self.below(8) {
            0 => SPECIAL[self.below(SPECIAL.len())],
            1 => f64::from_bits(self.bits()),
            2 => (10.0 * unit).round(),
            3 => 100.0 * unit,
            _ => unit,
        }
    }

    /// Returns a formula of at most this `depth`.
    fn formula(&mut self, depth: usize) -> String {
        const ONE: [&str; 19] = [
            "-", "!", "abs", "sign", "step", "floor", "ceil", "sqrt", "exp", "ln", "log10", "sin",
            "cos", "tan", "asin", "acos", "atan", "tanh", "erf",
        ];
        const TWO: [&str; 12] = [
            "+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=", "&&", "||",
        ];
        const CALLS: [&str; 5] = ["mod", "min", "max", "atan2", "pow"];
        if depth == 0 || self.below(8) == 0 {
            return match self.below(5) {
                0 => format!("{:?}", (self.number() % 8.0).abs().max(1e-3)),
                _ => VARIABLES[self.below(3)].to_string(),
            };
        }
        let mut part = |depth| self.formula(depth - 1);
        let (a, b) = (part(depth), part(depth));
        match self.below(7) {
            0 | 1 => format!("({a} {} {b})", TWO[self.below(4)]),
            2 => format!("({a} {} {b})", TWO[self.below(TWO.len())]),
            3 => format!("{}({a})", ONE[self.below(ONE.len())]),
            4 => format!("{}({a}, {b})", CALLS[self.below(CALLS.len())]),
            5 => format!("({a})^{}", self.below(33) as i32 - 16),
            _ => format!("if({a}, {b}, {})", self.formula(depth - 1)),
        }
    }
}

/// C++ function that makes the level or an index of a cell, as [`arguments`] does.
const CELL: &str = "#include <algorithm>
#include <cmath>
static double cell(double x) { return std::abs(x) < 1e6 ? std::floor(std::abs(x)) : 3.0; }
";

/// C++ program that reads points and writes the values of all formulas.
const MAIN: &str = r#"
#include <cstdio>
#include <vector>
int main(int, char** a) {
  std::vector<double> x;
  FILE* in = fopen(a[1], "rb");
  fseek(in, 0, SEEK_END); x.resize(ftell(in) / sizeof(double)); rewind(in);
  if (fread(x.data(), sizeof(double), x.size(), in) != x.size()) return 2;
  FILE* out = fopen(a[2], "wb");
  for (auto f : formulas)
    for (unsigned long i = 0; i < x.size(); i += 3) {
      const double y = f(x[i], x[i + 1], x[i + 2]);
      if (fwrite(&y, sizeof y, 1, out) != 1) return 3;
    }
  return fclose(out) == 0 ? 0 : 4;
}
"#;

fn source(formulas: &[Formula]) -> String {
    let functions: Vec<_> = formulas
        .iter()
        .enumerate()
        .map(|(n, formula)| formula.device_text(&format!("formula_{n}")))
        .collect();
    let items: Vec<_> = functions.iter().flat_map(|f| f.items.clone()).collect();
    let mut text = program(&items);
    text.push_str(CELL);
    for (n, function) in functions.iter().enumerate() {
        text.push_str(&function.text);
        let cell = match formulas[n].uses_cell() {
            true => ", std::min(cell(z), 30.0), cell(x), cell(y), cell(100 * z)",
            false => "",
        };
        let _ = writeln!(
            text,
            "static __attribute__((noinline)) double call_{n}(double x, double y, double z) {{\n  return formula_{n}(x, y, z{cell});\n}}"
        );
    }
    let names: Vec<String> = (0..functions.len()).map(|n| format!("call_{n}")).collect();
    let _ = writeln!(
        text,
        "static double (*const formulas[])(double, double, double) = {{{}}};",
        names.join(", ")
    );
    text + MAIN
}

/// Folder that is removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the values of all formulas at all points from the compiled program.
fn run(folder: &Path, formulas: &[Formula], points: &[[f64; 3]]) -> Vec<f64> {
    std::fs::write(folder.join("formulas.cpp"), source(formulas)).unwrap();
    let compiled = Command::new("g++")
        .args([
            "-std=c++17",
            "-O2",
            "-ffp-contract=off",
            "formulas.cpp",
            "-o",
            "formulas",
        ])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let bytes: Vec<u8> = points
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    std::fs::write(folder.join("points"), bytes).unwrap();
    let status = Command::new(folder.join("formulas"))
        .args(["points", "values"])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    let bytes = std::fs::read(folder.join("values")).unwrap();
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|bytes| f64::from_le_bytes(*bytes))
        .collect()
}

/// Formulas that call tabulated functions, with every extrapolation.
fn by_numbers() -> Vec<Formula> {
    let rows = "x = [-0.7, -0.1, 0.2, 0.9], y = [1, -0.3, -0.2, 2.5]";
    let positive = "x = [0.1, 0.2, 0.9], y = [-3, -0.2, 0.7], interpolation = \"spline\"";
    let text = format!(
        "[tables]
refused = {{ {rows} }}
level = {{ {rows}, below = \"constant\", above = \"constant\" }}
line = {{ {rows}, below = \"linear\", above = \"linear\" }}
halo = {{ {positive}, integral = true, below = \"core\", above = \"kepler\" }}"
    );
    let deck = Deck::parse("deck", &text).expect("a deck");
    let texts = [
        "refused(x)",
        "level(x)*line(y)",
        "halo(x)",
        "halo(halo(y) + halo(z))",
    ];
    let formula = |text| deck.formula("a.b", text, &VARIABLES).expect(text);
    texts.map(formula).to_vec()
}

/// Returns a formula with random numbers of cells; its other variables are those of the others.
fn of_cells() -> Formula {
    let variables = [&VARIABLES[..], &CELL_VARIABLES].concat();
    let text = "x + random(4294967295) - gaussian(1)";
    Formula::parse(text, &variables).expect(text)
}

/// Returns the values of the variables of a formula: the point, then the level and index of a cell made from it.
fn arguments(formula: &Formula, point: &[f64; 3]) -> Vec<f64> {
    let cell = |x: f64| if x.abs() < 1e6 { x.abs().floor() } else { 3.0 };
    let [x, y, z] = *point;
    let all = [
        x,
        y,
        z,
        cell(z).min(30.0),
        cell(x),
        cell(y),
        cell(100.0 * z),
    ];
    all[..formula.variables().len()].to_vec()
}

#[test]
fn device_text_has_the_bits_of_the_stack_machine() {
    if Command::new("g++").arg("--version").output().is_err() {
        println!("skipped: there is no g++ on this machine");
        return;
    }
    let mut random = Random(11);
    let listed = FORMULAS.iter().map(|text| (*text).to_string());
    let texts: Vec<String> = listed
        .chain((0..60).map(|n| random.formula(2 + n % 3)))
        .collect();
    let mut formulas: Vec<Formula> = texts
        .iter()
        .map(|text| Formula::parse(text, &VARIABLES).expect(text))
        .collect();
    formulas.extend(by_numbers());
    formulas.push(of_cells());
    let points: Vec<[f64; 3]> = (0..3000)
        .map(|_| std::array::from_fn(|_| random.number()))
        .collect();
    let folder =
        Folder(std::env::temp_dir().join(format!("nestar-formulas-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let values = run(&folder.0, &formulas, &points);
    assert_eq!(values.len(), formulas.len() * points.len());
    let mut numbers = 0;
    for (formula, values) in formulas.iter().zip(values.chunks(points.len())) {
        for (point, found) in points.iter().zip(values) {
            let wanted = formula.eval(&arguments(formula, point));
            numbers += usize::from(!wanted.is_nan());
            assert!(
                found.to_bits() == wanted.to_bits() || (found.is_nan() && wanted.is_nan()),
                "{} at {point:?} is {wanted:e}, compiled {found:e}",
                formula.text()
            );
        }
    }
    assert!(
        2 * numbers > values.len(),
        "hardly any number in the results"
    );
}
