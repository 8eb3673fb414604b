//! The translation of single constructs, and what is refused with which words and where.
use super::*;
use crate::code::Part;
use crate::{cell_fn, rust_side};
use quote::quote;

/// The text with other items as `<path>`.
fn shown(code: &Code) -> String {
    let part = |p: &Part| match p {
        Part::Text(t) => t.clone(),
        Part::Value(p) | Part::Type(p) => format!("<{}>", p.to_token_stream()),
        Part::Inferred(p) => format!("<{}><inferred>", p.to_token_stream()),
    };
    code.parts.iter().map(part).collect()
}

/// Prototype and body in one line, without the line directives.
fn translated(source: &str) -> String {
    let f: ItemFn = syn::parse_str(source).unwrap();
    let (proto, body) = function(&f).1.unwrap();
    let all = format!("{} {}", shown(&proto), shown(&body));
    let lines = all
        .lines()
        .filter(|l| !l.starts_with("#line") && !l.starts_with("//"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The errors as (message, text under the carets).
fn errors(source: &str) -> Vec<(String, String)> {
    let f: ItemFn = syn::parse_str(source).unwrap();
    let (translator, result) = function(&f);
    let result = result.and_then(|_| rust_side::rewrite(&mut f.clone(), &translator, &quote!(rt)));
    let Err(all) = result else { return Vec::new() };
    let place = |e: syn::Error| {
        let span = e.span();
        (
            e.to_string(),
            source[span.start().column..span.end().column].to_string(),
        )
    };
    all.into_iter().map(place).collect()
}

/// The Rust side, as tokens.
fn rewritten(source: &str) -> String {
    let mut f: ItemFn = syn::parse_str(source).unwrap();
    let translator = function(&f).0;
    rust_side::rewrite(&mut f, &translator, &quote!(rt)).unwrap();
    f.block.to_token_stream().to_string()
}

#[test]
fn functions_become_templates() {
    let source = "fn f<R: Real, const N: usize>(x: &[R; N], mut y: R, n: &mut i32) -> R \
                  { y = y * 0.5; *n += 1; x[0].max(y) }";
    let text = translated(source);
    let proto = "template<class R, rs::usize N> RS_FN R f(const rs::arr<R, N>& x, R y, int& n)";
    assert_eq!(
        text,
        format!("{proto} {{ y = (y * R(0.5)); n += 1; return rs::max(x[0], y); }}")
    );
}

#[test]
fn shadowing_and_cpp_words_become_new_names() {
    let text = translated("fn f<R: Real>(auto: R) -> R { let x = auto; let x = x * x; x }");
    assert!(
        text.contains("const R auto_) { const auto x = auto_; const auto x_1 = (x * x);"),
        "{text}"
    );
    assert!(text.ends_with("return x_1; }"), "{text}");
}

#[test]
fn blocks_as_values_are_lambdas_and_pure_ones_selections() {
    let text = translated("fn f<R: Real>(x: R) -> R { let y = if x > 0.0 { x } else { -x }; y }");
    assert!(
        text.contains("const auto y = ((x > R(0.0)) ? x : (-x));"),
        "{text}"
    );
    let text = translated("fn f<R: Real>(x: R) -> R { let y = { let t = x * x; t + x }; y }");
    assert!(
        text.contains("const auto y = [&]() { const auto t = (x * x); return (t + x); }();"),
        "{text}"
    );
}

#[test]
fn loops_keep_their_bounds_and_types() {
    let text = translated(
        "fn f<const N: usize>(n: i32) -> i32 { let mut s: i32 = 0; \
                           for i in 0..N { s += 1; } for i in 2..=n { s += i; } s }",
    );
    assert!(
        text.contains("RS_UNROLL for (rs::val<decltype(N)> i = 0; i < N; ++i) {"),
        "{text}"
    );
    // Rust evaluates the end once
    assert!(
        text.contains(
            "{ const auto e_1_ = n; for (rs::val<decltype(n)> i_1 = 2; i_1 <= e_1_; ++i_1) {"
        ),
        "{text}"
    );
}

#[test]
fn literals_have_the_type_of_the_function() {
    assert!(translated("fn f<R: Real>(x: R) -> R { x + 1. }").contains("x + R(1.0)"));
    assert!(translated("fn f(x: f64) -> f64 { x + 1e3 }").contains("x + 1e3"));
    assert!(
        translated("fn f<R: Real>(x: R) -> R { x + R::lit(-0.1 * 1e-300) }")
            .contains("x + R(((-0.1) * 1e-300))")
    );
    let rust = rewritten("fn f<R: Real>(x: R) -> R { x + 0.5 - R::from_f64(0.1 * 2.0f64) }");
    assert_eq!(
        rust,
        "{ x + < R as rt :: Lane > :: lit (0.5) - R :: from_f64 (0.1f64 * 2.0f64) }"
    );
    assert_eq!(
        rewritten("fn f(x: f64) -> f64 { x + 2. }"),
        "{ x + 2.0f64 }"
    );
}

#[test]
fn other_items_stay_open() {
    let text = translated(
        "fn f<R: Real>(x: R) -> a::S<R> { a::S { v: b::g::<R, 3>(x) * R::lit(LIMIT), ..b::h() } }",
    );
    let literal = "[&]() { <a :: S><inferred> s_ = <b :: h>(); s_.v = (<b :: g><R, 3>(x) * R(<LIMIT>)); return s_; }()";
    assert!(text.contains(literal), "{text}");
}

#[test]
fn lanes_compare_and_select() {
    let rust = rewritten(
        "fn f<R: Lane>(x: R, n: i32) -> R { if x > 0.0 && !(x < 1.0) { x } else { -x } }",
    );
    let condition = "rt :: Num :: gt (x , < R as rt :: Lane > :: lit (0.0)) \
                     & ! (rt :: Num :: lt (x , < R as rt :: Lane > :: lit (1.0)))";
    assert_eq!(
        rust,
        format!("{{ < _ as rt :: Pick < R > > :: pick ({condition} , x , - x) }}")
    );
    // a condition on integers is one for all lanes
    let plain = "{ if n > 2 && N < 3 { x } else { - x } }";
    let source =
        "fn f<R: Lane, const N: usize>(x: R, n: i32) -> R { if n > 2 && N < 3 { x } else { -x } }";
    assert_eq!(rewritten(source), plain);
    // scalars branch
    assert!(
        rewritten("fn f<R: Real>(x: R) -> R { if x > 0.0 { x } else { -x } }")
            .starts_with("{ if x >")
    );
}

/// (body after `x: R, n: i32`, part of the message, text under the carets).
const REFUSED: &[(&str, &str, &str)] = &[
    ("let n = 2 * 3; x", "give this integer a type", "2 * 3"),
    ("let n = -1; x", "give this integer a type", "-1"),
    ("let n = [1, 2]; x", "give this integer a type", "[1, 2]"),
    (
        "let n = if x > 0.0 { 1 } else { 2 }; x",
        "give this integer a type",
        "if x > 0.0 { 1 } else { 2 }",
    ),
    (
        "let n: u32 = 1 << 3; x",
        "give the shifted literal a type",
        "1",
    ),
    ("x.sin()", "call the device functions of `math`", "sin"),
    ("x.sort()", "not in the device list", "sort"),
    ("x.max()", "`max` takes 1 argument(s)", "x.max()"),
    ("x * y", "`y` is no variable of this function", "y"),
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
    ("Some(x)", "enums are not supported", "Some"),
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
        "match n { 1..=3 => x, _ => -x }",
        "`match` takes integer",
        "1..=3",
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

#[test]
fn branches_of_lanes_may_not_act() {
    for body in [
        "let mut y = x; if x > 0.0 { y = -x; } y",
        "let mut y = x; let z = if x > 0.0 { y = -x; x } else { x }; y + z",
        "let mut y = x; while y > 1.0 { y = 0.5 * y; } y",
        "if x > 0.0 { return x; } else { } x",
    ] {
        let found = errors(&format!("fn f<R: Lane>(x: R) -> R {{ {body} }}"));
        assert_eq!(found.len(), 1, "{body}: {found:?}");
        assert!(
            found[0].0.contains("bound R by `Real` (scalar only)"),
            "{body}: {}",
            found[0].0
        );
    }
}

#[test]
fn cell_maps_are_known_by_their_signature() {
    let is_of_cell = |source: &str| {
        let f: ItemFn = syn::parse_str(source).unwrap();
        !cell_fn::implementation(&f, &quote!(rt)).is_empty()
    };
    assert!(is_of_cell(
        "fn f<R: Real>(s: a::S<R>, p: R) -> a::S<R> { s }"
    ));
    assert!(is_of_cell("fn f<R: Lane>(s: [R; 5]) -> [R; 5] { s }"));
    assert!(is_of_cell(
        "fn f<R: Real>(s: R, a: R, b: R, c: R, d: R, e: R, g: R, h: R, i: R) -> R { s }"
    ));
    assert!(is_of_cell(
        "fn f<R: Real>(s: (S<R>, [R; 2]), at: &Place<R>, p: &P<R>) -> bool { true }"
    ));
    assert!(is_of_cell(
        "fn f<R: Real>(s: S<R>, at: &Place<R>, p: R) -> R { p }"
    ));
    for source in [
        "fn f<R: Real>(s: S<i32>) -> R { s }",
        "fn f<R: Real>(s: S<R>, p: &P<R>, at: &Place<R>) -> R { s }",
        "fn f<R: Real>(s: S<R>, p: &mut P<R>) -> R { s }",
        "fn f<R: Real>(s: R, a: R, b: R, c: R, d: R, e: R, g: R, h: R, i: R, j: R) -> R { s }",
        "fn f<R: Real>(s: &S<R>) -> S<R> { *s }",
        "fn f<R: Real>(s: S<R>, n: i32) -> S<R> { s }",
        "fn f<R: Real>(s: S<R>) { }",
        "fn f<R: Real, const N: usize>(s: [R; N]) -> [R; N] { s }",
        "fn f(s: f64) -> f64 { s }",
        "fn f<R: Real>() -> R { 1.0 }",
    ] {
        assert!(!is_of_cell(source), "{source}");
    }
}

#[test]
fn constants_are_typed_and_tables_braced() {
    let text = |source: &str| shown(&constant(&syn::parse_str(source).unwrap()).unwrap());
    assert_eq!(text("const A: f64 = 0.1;"), "RS_CONST double A = 0.1;");
    assert_eq!(
        text("const A: f32 = 2.0 * 0.1;"),
        "RS_CONST float A = (2.0f * 0.1f);"
    );
    assert_eq!(
        text("const T: [[f64; 2]; 2] = [[1.0, B], [-2.0, 1e3]];"),
        "RS_TABLE rs::arr<rs::arr<double, 2>, 2> T = {{{{1.0, <B>}}, {{(-2.0), 1e3}}}};"
    );
}
