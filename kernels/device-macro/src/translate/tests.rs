//! Tests the translation of single constructs, and the messages and positions of errors.
mod refusals;

use super::*;
use crate::code::CppPart;
use crate::{cell_fn, infer, rust_side};
use quote::quote;

/// Returns the text, with other items as `<path>`.
fn shown(code: &CppCode) -> String {
    let part = |p: &CppPart| match p {
        CppPart::Text(t) => t.clone(),
        CppPart::Value(p) | CppPart::Owner(p) | CppPart::Type(p) => {
            format!("<{}>", p.to_token_stream())
        }
        CppPart::Inferred(p) => format!("<{}><inferred>", p.to_token_stream()),
    };
    code.parts.iter().map(part).collect()
}

/// Returns prototype and body in one line, without the line directives.
fn translated(source: &str) -> String {
    let mut f: ItemFn = syn::parse_str(source).unwrap();
    infer::function(&mut f).unwrap();
    let (proto, body) = function(&f).1.unwrap();
    let all = format!("{} {}", shown(&proto), shown(&body));
    let lines = all
        .lines()
        .filter(|l| !l.starts_with("#line") && !l.starts_with("//"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Returns the errors as (message, text under the carets).
fn errors(source: &str) -> Vec<(String, String)> {
    let mut f: ItemFn = syn::parse_str(source).unwrap();
    let inferred = infer::function(&mut f);
    let (translator, result) = function(&f);
    let result = inferred
        .and(result)
        .and_then(|_| rust_side::rewrite(&mut f.clone(), &translator, &quote!(rt)));
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

/// Returns the Rust side as tokens.
fn rewritten(source: &str) -> String {
    let mut f: ItemFn = syn::parse_str(source).unwrap();
    infer::function(&mut f).unwrap();
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
        text.contains("RS_UNROLL for (rs::usize i = 0ull; i < N; ++i) {"),
        "{text}"
    );
    // Rust evaluates the end once
    assert!(
        text.contains("{ const auto e_1_ = n; for (int i_1 = 2; i_1 <= e_1_; ++i_1) {"),
        "{text}"
    );
}

/// Expressions that look like integers among numbers, and are integers.
#[test]
fn integers_stand_among_numbers_where_they_are_meant() {
    for body in [
        "x.powi(2) * R::from_i32(3)",
        "let u = [x, x]; u[1] * R::from_i32(2 * n)",
        "x.to_i32() * 2; x",
        "if n > 0 { x } else { 2.0 * x }",
        "x * g(2)",
        "let y = g(x); y * 2; x",
        "f64::DIGITS + 1; x",
    ] {
        let source = format!("fn f<R: Real>(x: R, n: i32) -> R {{ {body} }}");
        let errors = errors(&source);
        let refused = errors.iter().any(|(why, _)| why.contains("floating-point"));
        assert!(!refused, "{body}: {errors:?}");
    }
}

#[test]
fn a_list_of_marked_items_does_not_hide_what_to_do_with_an_unmarked_one() {
    let marked = crate::companion::marked(&syn::parse_quote!(heat), &quote!(item), &quote!(rt));
    let marked = marked.to_string();
    let hidden = "# [diagnostic :: do_not_recommend] impl rt :: Marked for heat";
    assert!(marked.contains(hidden), "{marked}");
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
    let literal = "[&]() { <a :: S><inferred> s_1_ = <b :: h>(); s_1_.v = (<b :: g><R, 3>(x) * R(<LIMIT>)); return s_1_; }()";
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
    let plain = "{ if n > 2i32 && N < 3usize { x } else { - x } }";
    let source =
        "fn f<R: Lane, const N: usize>(x: R, n: i32) -> R { if n > 2 && N < 3 { x } else { -x } }";
    assert_eq!(rewritten(source), plain);
    // so is a condition on an enum
    assert!(
        rewritten("fn f<R: Lane>(x: R, m: Mode) -> R { if m == Mode::Sum { x } else { -x } }")
            .starts_with("{ if m == Mode :: Sum {")
    );
    // scalars branch
    assert!(
        rewritten("fn f<R: Real>(x: R) -> R { if x > 0.0 { x } else { -x } }")
            .starts_with("{ if x >")
    );
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
fn literals_take_the_types_of_what_they_meet() {
    for (source, part) in [
        (
            "fn f(n: u64) -> u64 { let mut h = 7; h = h ^ n; h }",
            "auto h = 7ull;",
        ),
        (
            "fn f(x: &[f64; 3]) -> f64 { let mut s = 0.0; for i in 1..3 { s += x[i]; } s }",
            "RS_UNROLL for (rs::usize i = 1ull; i < 3ull; ++i)",
        ),
        (
            "fn f(n: u32) -> u32 { let k = if n > 3_000_000_000 { 1 } else { 2 }; k * n }",
            "(n > 3000000000u)",
        ),
        (
            "fn f(n: i64) -> i64 { let a = [0; 4]; a[1] + n }",
            "rs::splat<4>(0ll)",
        ),
        (
            "fn f<R: Real>(x: R) -> R { let n = -2; x.powi(n) }",
            "const auto n = (-2);",
        ),
        (
            "fn f() -> (u32, u64) { let (a, b) = (1, 2); (a, b) }",
            "rs::mkt(1u, 2ull)",
        ),
        (
            "fn f(n: usize) -> usize { let k = loop { break 5; }; k + n }",
            "for (;;) { return 5ull; } }()",
        ),
        (
            "fn f(n: i32) -> i32 { match n { -2147483648 => 1, _ => 2 } }",
            "== (-2147483647 - 1))",
        ),
    ] {
        let text = translated(source);
        assert!(text.contains(part), "{text}");
    }
    // without constraints the type is the same in both languages
    assert!(rewritten("fn f() { let n = 2 * 3; }").contains("2i32 * 3i32"));
}

#[test]
fn types_bring_functions() {
    let text = translated(
        "fn f<R: Real, L: Law>(x: R) -> R { L::rate(x) * L::of::<R>(2.0) + R::lit(L::SCALE) + a::Power::rate(x) }",
    );
    let sum = "(((L::rate(x) * L::template of<R>(R(2.0))) + R(L::SCALE)) + <a :: Power>::rate(x))";
    assert!(
        text.starts_with("template<class R, class L> RS_FN R f(const R x)") && text.contains(sum),
        "{text}"
    );
    let i: syn::ItemImpl =
        syn::parse_str("impl Law for Power { fn rate<R: Real>(x: R) -> R { Self::of::<R>(x, Self::POWER, Power::POWER) } }").unwrap();
    let syn::ImplItem::Fn(f) = i.items[0].clone() else {
        panic!()
    };
    let f = ItemFn {
        attrs: f.attrs,
        vis: f.vis,
        sig: f.sig,
        block: Box::new(f.block),
    };
    let power = syn::parse_str("const POWER: i32 = 2;").unwrap();
    let (declaration, functions) =
        implementation(&syn::parse_str("Power").unwrap(), &[power], &[f]).unwrap();
    let declared = "struct Power {\nRS_CONST int POWER = 2;\ntemplate<class R> RS_MEMBER static R rate(const R x);\n}";
    assert_eq!(shown(&declaration), declared);
    let functions = shown(&functions);
    assert!(functions.starts_with("template<class R> RS_MEMBER R Power::rate(const R x) {"));
    let value = "return Power::of<R>(x, Power::POWER, Power::POWER);";
    assert!(functions.contains(value), "{functions}");
}

#[test]
fn enums_are_ints_with_names() {
    let text = |source: &str| enumeration(&syn::parse_str(source).unwrap()).map(|c| shown(&c));
    assert_eq!(
        text("enum Mode { Sum, Double = 5 }").unwrap(),
        "enum class Mode : int { Sum, Double = 5 };"
    );
    let error = text("enum Mode { Sum(f64) }").unwrap_err().to_string();
    assert!(error.contains("a variant cannot hold data"), "{error}");
    assert!(
        translated("fn f(m: Mode) -> bool { m == a::Mode::Double }")
            .contains("(m == <a :: Mode>::Double)")
    );
}

#[test]
fn constants_are_typed_and_tables_braced() {
    let text = |source: &str| shown(&constant(&syn::parse_str(source).unwrap(), None).unwrap());
    assert_eq!(text("const A: f64 = 0.1;"), "RS_CONST double A = 0.1;");
    assert_eq!(
        text("const A: f32 = 2.0 * 0.1;"),
        "RS_CONST float A = (2.0f * 0.1f);"
    );
    assert_eq!(
        text("const T: [[f64; 2]; 2] = [[1.0, B], [-2.0, 1e3]];"),
        "RS_TABLE rs::arr<rs::arr<double, 2>, 2> T = {{{{1.0, <B>}}, {{(-2.0), 1e3}}}};"
    );
    assert_eq!(
        text("const T: [f64; N] = [0.5; N];"),
        "RS_TABLE rs::arr<double, <N>> T = rs::filled<<N>>(0.5);"
    );
    let refused = constant(&syn::parse_str("const A: f64 = T[1];").unwrap(), None).err();
    assert!(refused.is_some_and(|e| e.to_string().contains("a constant is made of literals")));
}
