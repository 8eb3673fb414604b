//! Constructs that are rejected, with their messages and positions.
use super::errors;

/// (body after `x: R, n: i32`, part of the message, text under the carets).
const REFUSED: &[(&str, &str, &str)] = &[
    ("let n = 2 * 3; g(n)", "give this integer a type", "2 * 3"),
    ("let n = -1; g(n)", "give this integer a type", "-1"),
    ("let n = [1, 2]; g(n)", "give this integer a type", "[1, 2]"),
    (
        "let n = if x > 0.0 { 1 } else { 2 }; g(n)",
        "give this integer a type",
        "if x > 0.0 { 1 } else { 2 }",
    ),
    ("2 * x", "write `2.0`", "2"),
    ("x.max(0)", "write `0.0`", "0"),
    ("let y: R = 1; y", "write `1.0`", "1"),
    ("let k = 3; x + k", "write `3.0`", "3"),
    ("if x > 0 { x } else { -x }", "write `0.0`", "0"),
    ("let u = [x, x]; 4 * u[0]", "write `4.0`", "4"),
    ("let u: [R; 2] = [0; 2]; u[1]", "write `0.0`", "0"),
    ("if n > 0 { 7 } else { x }", "write `7.0`", "7"),
    ("x + R::from_f64(5)", "write `5.0`", "5"),
    ("let mut y = x; y += 6; y", "write `6.0`", "6"),
    ("g(1 << 3)", "give the shifted literal a type", "1"),
    ("g(5000000000)", "`5000000000u64`", "5000000000"),
    (
        "let k = match n { 1 => g(x), _ => 0 }; x",
        "give this integer a type",
        "match n { 1 => g(x), _ => 0 }",
    ),
    ("x.cooled(n)", "call `cooled(x, …)`", "cooled"),
    (
        "let law = x; law(x)",
        "functions are selected by type",
        "law",
    ),
    (
        "let t = \"text\"; x",
        "only bool, integer and float literals",
        "\"text\"",
    ),
    (
        "let t = format!(\"{x}\"); x",
        "text is not supported on the device",
        "format!(\"{x}\")",
    ),
    (
        "let t: String = g(x); x",
        "type `String` is not supported",
        "String",
    ),
    ("while n > 0 { break 'a; } x", "no labels", "break 'a"),
    (
        "Gas::<R>::own(x)",
        "a structure has no functions here",
        "Gas::<R>::own",
    ),
    ("x.sin()", "call the device functions of `math`", "sin"),
    ("x.sort()", "not in the device list", "sort"),
    ("x.max()", "`max` takes 1 argument(s)", "x.max()"),
    ("x * y", "`y` is not a variable of this function", "y"),
    ("f(x)", "may not call itself", "f"),
    (
        "std::f64::consts::PI * x",
        "no CUDA text",
        "std::f64::consts::PI",
    ),
    ("f64::sqrt(2.0) * x", "no CUDA text", "f64::sqrt"),
    ("R::TAU * x", "`R::TAU` is not known", "R::TAU"),
    ("x * 1e300", "`1e300` is infinite as f32", "1e300"),
    ("x * 1e-40", "denormal as f32", "1e-40"),
    ("let c = |y| y; x", "closures are not supported", "|y| y"),
    (
        "for i in v.iter() { } x",
        "`for` runs over a range",
        "v.iter()",
    ),
    (
        "let v: [u8; 2] = g(x); x",
        "type `u8` is not supported",
        "u8",
    ),
    (
        "let v: Vec<R> = g(x); x",
        "`Vec` is not supported",
        "Vec<R>",
    ),
    ("Some(x)", "enums with data are not supported", "Some"),
    (
        "println!(\"{x}\"); x",
        "macro `println!` is not supported",
        "println!(\"{x}\")",
    ),
    (
        "let y = { if x > 0.0 { return x; } x }; y",
        "`return` inside a block used as a value",
        "return x",
    ),
    ("'a: loop { break; } x", "no loop labels", "'a:"),
    (
        "x + { let mut t = x; t += 1.0; t }",
        "does not fix the order",
        "{ let mut t = x; t += 1.0; t }",
    ),
    ("unsafe { x }", "no unsafe blocks", "unsafe { x }"),
    (
        "match n { 1 if x > 0.0 => x, _ => -x }",
        "no match guards",
        "x > 0.0",
    ),
    (
        "match n { 1.. => x, _ => -x }",
        "the range needs both ends",
        "1..",
    ),
    (
        "#[cfg(test)] let y = x; x",
        "put #[cfg] on the whole item",
        "#[cfg(test)]",
    ),
    ("x + g(&mut x)", "must stand alone", "&mut x"),
    ("g::<_, 3>(x)", "C++ has no `_`", "_"),
];

#[test]
fn what_cannot_be_said_is_refused_once_and_in_place() {
    for (body, message, place) in REFUSED {
        let source = format!("fn f<R: Real>(mut x: R, n: i32) -> R {{ {body} }}");
        let found = errors(&source);
        assert_eq!(found.len(), 1, "{body}: {found:?}");
        assert!(found[0].0.contains(message), "{body}: {}", found[0].0);
        assert_eq!(found[0].1, *place, "{body}: {}", found[0].0);
    }
}

#[test]
fn signatures_outside_the_subset_are_refused() {
    for (source, message) in [
        (
            "fn f<L: Fn(f64) -> f64>(law: L) -> f64 { 1.0 }",
            "functions are selected by type: write `trait Law",
        ),
        (
            "fn f(x: String) -> f64 { 1.0 }",
            "type `String` is not supported",
        ),
        (
            "fn f(law: &dyn Fn(f64) -> f64) -> f64 { 1.0 }",
            "functions are selected by type",
        ),
        (
            "fn f(law: impl Fn(f64) -> f64) -> f64 { 1.0 }",
            "functions are selected by type",
        ),
        (
            "fn f(law: fn(f64) -> f64) -> f64 { 1.0 }",
            "functions are selected by type",
        ),
        ("fn f(x: Vec<f64>) -> f64 { 1.0 }", "`Vec` is not supported"),
        (
            "fn f<T: Clone>(x: T) -> T { x }",
            "bounded by `Real` or `Lane`",
        ),
        ("fn f<R>(x: R) -> R { x }", "bounded by `Real` or `Lane`"),
        ("fn f<'a>(x: &'a f64) -> f64 { *x }", "named lifetimes"),
        (
            "fn f<R>(x: R) -> R where R: Real { x }",
            "no `where` clauses",
        ),
        (
            "fn f(x: &[f64]) -> f64 { x[0] }",
            "slices are not supported",
        ),
        (
            "fn f(x: &f64) -> &f64 { x }",
            "return values, not references",
        ),
        ("async fn f(x: f64) -> f64 { x }", "async functions"),
        (
            "fn f((a, b): (f64, f64)) -> f64 { a }",
            "parameters must be plain names",
        ),
        (
            "fn f<R: Real, Q: Real>(x: R, y: Q) -> R { x * 0.5 }",
            "a float literal needs its type",
        ),
    ] {
        let found = errors(source);
        assert!(
            found.iter().any(|(m, _)| m.contains(message)),
            "{source}: {found:?}"
        );
    }
}
