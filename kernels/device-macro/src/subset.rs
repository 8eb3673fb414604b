//! The supported subset of Rust: methods, types, operators, and queries about syntax.
use syn::{
    Attribute, BinOp, Expr, ExprAssign, ExprBinary, ExprLit, ExprReference, Ident, Lit, LitInt,
    Meta, Path, PathArguments, UnOp,
    visit::{self, Visit},
};

/// A method of the subset.
pub struct Method {
    /// Name on both sides.
    pub name: &'static str,
    /// Trait of the runtime crate through which the Rust side calls it.
    pub of: &'static str,
    /// Number of arguments after the receiver.
    pub arguments: usize,
}

const fn method(name: &'static str, of: &'static str, arguments: usize) -> Method {
    Method {
        name,
        of,
        arguments,
    }
}

/// All methods. The Rust side calls the traits of `nestar-device`, so that inherent methods (`f64::max`, `f64::powi`) are never used.
pub const METHODS: &[Method] = &[
    method("sqrt", "Lane", 0),
    method("abs", "Num", 0),
    method("min", "Num", 1),
    method("max", "Num", 1),
    method("lesser", "Num", 1),
    method("greater", "Num", 1),
    method("clamp", "Num", 2),
    method("powi", "Lane", 1),
    method("copysign", "Lane", 1),
    method("signum", "Lane", 0),
    method("recip", "Lane", 0),
    method("is_nan", "Lane", 0),
    method("mul_add", "Real", 2),
    method("floor", "Real", 0),
    method("ceil", "Real", 0),
    method("trunc", "Real", 0),
    method("is_finite", "Real", 0),
    method("frexp", "Real", 0),
    method("ldexp", "Real", 1),
    method("to_i32", "Real", 0),
    method("to_f64", "Real", 0),
    method("to_bits", "Bits", 0),
];

/// Methods that the Rust side calls unchanged.
pub const OWN_METHODS: &[Method] = &[
    method("len", "", 0),
    method("wrapping_add", "", 1),
    method("wrapping_sub", "", 1),
    method("wrapping_mul", "", 1),
];

/// Methods of the standard library whose results differ between libms.
pub const TRANSCENDENTAL: &[&str] = &[
    "sin", "cos", "tan", "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "log10",
    "powf", "cbrt", "hypot",
];

/// Associated constants of a real type parameter.
pub const REAL_CONSTANTS: &[&str] = &["EPSILON", "MAX", "MIN_POSITIVE", "INFINITY", "NAN", "PI"];

include!("words.rs");

/// Returns the C++ name of an identifier: the same, except for names reserved in C++.
pub fn cpp_name(i: &Ident) -> String {
    mangled(&i.to_string())
}

/// Returns the C++ name of a scalar type.
pub fn primitive(name: &str) -> Option<&'static str> {
    Some(match name {
        "f32" => "float",
        "f64" => "double",
        "bool" => "bool",
        "i32" => "int",
        "u32" => "unsigned",
        "i64" => "rs::i64",
        "u64" => "rs::u64",
        "usize" => "rs::usize",
        _ => return None,
    })
}

/// Returns `true` for a lower-case name, as of variables and functions.
pub fn lower_case(name: &str) -> bool {
    name.chars().any(|c| c.is_lowercase())
}

/// Converts doc comments to C++ comments.
pub fn docs(attributes: &[Attribute]) -> String {
    let mut comments = String::new();
    for attribute in attributes {
        let Meta::NameValue(pair) = &attribute.meta else {
            continue;
        };
        if !pair.path.is_ident("doc") {
            continue;
        }
        if let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &pair.value
        {
            for line in text.value().lines() {
                // a trailing backslash would join the next line to the comment
                comments.push_str(&format!("//{}\n", line.trim_end().trim_end_matches('\\')));
            }
        }
    }
    comments
}

/// Returns the path without generic arguments.
pub fn bare(path: &Path) -> Path {
    let mut path = path.clone();
    for segment in &mut path.segments {
        segment.arguments = PathArguments::None;
    }
    path
}

/// Returns the identifier if the expression is one.
pub fn ident_of(e: &Expr) -> Option<&Ident> {
    match e {
        Expr::Path(p) if p.qself.is_none() => p.path.get_ident(),
        _ => None,
    }
}

/// Returns `true` if the expression can be assigned to or borrowed mutably.
pub fn is_place(e: &Expr) -> bool {
    match e {
        Expr::Path(_) => true,
        Expr::Field(f) => is_place(&f.base),
        Expr::Index(i) => is_place(&i.expr),
        Expr::Paren(p) => is_place(&p.expr),
        Expr::Unary(u) => matches!(u.op, UnOp::Deref(_)) && is_place(&u.expr),
        _ => false,
    }
}

/// Returns the integer literal if the expression is one, possibly negated or in parentheses.
pub fn integer_literal(e: &Expr) -> Option<&LitInt> {
    match e {
        Expr::Lit(ExprLit {
            lit: Lit::Int(i), ..
        }) => Some(i),
        Expr::Paren(p) => integer_literal(&p.expr),
        Expr::Unary(u) if matches!(u.op, UnOp::Neg(_)) => integer_literal(&u.expr),
        _ => None,
    }
}

pub fn compares(o: &BinOp) -> bool {
    use BinOp::*;
    matches!(
        o,
        Eq(_) | Ne(_) | Lt(_) | Le(_) | Gt(_) | Ge(_) | And(_) | Or(_)
    )
}

pub fn shifts(o: &BinOp) -> bool {
    use BinOp::*;
    matches!(o, Shl(_) | Shr(_) | ShlAssign(_) | ShrAssign(_))
}

/// Returns `true` for a `CamelCase` name of a type.
pub fn names_type(i: &Ident) -> bool {
    let name = i.to_string();
    name.starts_with(|c: char| c.is_uppercase()) && (name.len() == 1 || lower_case(&name))
}

/// Returns the operator of a compound assignment.
pub fn compound(o: &BinOp) -> Option<&'static str> {
    use BinOp::*;
    Some(match o {
        AddAssign(_) => "+",
        SubAssign(_) => "-",
        MulAssign(_) => "*",
        DivAssign(_) => "/",
        RemAssign(_) => "%",
        BitXorAssign(_) => "^",
        BitAndAssign(_) => "&",
        BitOrAssign(_) => "|",
        ShlAssign(_) => "<<",
        ShrAssign(_) => ">>",
        _ => return None,
    })
}

/// Returns the C++ spelling of an operator that is translated to an operator.
pub fn operator(o: &BinOp) -> Option<&'static str> {
    use BinOp::*;
    Some(match o {
        Add(_) => "+",
        Sub(_) => "-",
        Mul(_) => "*",
        Div(_) => "/",
        And(_) => "&&",
        Or(_) => "||",
        Shr(_) => ">>",
        Eq(_) => "==",
        Lt(_) => "<",
        Le(_) => "<=",
        Ne(_) => "!=",
        Ge(_) => ">=",
        Gt(_) => ">",
        _ => return None,
    })
}

/// Returns the function of namespace `rs` for an operator whose C++ meaning depends on promotion.
pub fn operator_function(o: &BinOp) -> Option<&'static str> {
    Some(match o {
        BinOp::Rem(_) => "rem",
        BinOp::Shl(_) => "shl",
        BinOp::BitAnd(_) => "band",
        BinOp::BitOr(_) => "bor",
        BinOp::BitXor(_) => "bxor",
        _ => return None,
    })
}

/// Returns `true` if evaluating the expression changes a variable.
pub fn has_effects(e: &Expr) -> bool {
    struct EffectFinder(bool);
    impl<'a> Visit<'a> for EffectFinder {
        fn visit_expr_assign(&mut self, _: &'a ExprAssign) {
            self.0 = true;
        }
        fn visit_expr_reference(&mut self, r: &'a ExprReference) {
            self.0 |= r.mutability.is_some();
            visit::visit_expr_reference(self, r);
        }
        fn visit_expr_binary(&mut self, b: &'a ExprBinary) {
            self.0 |= compound(&b.op).is_some();
            visit::visit_expr_binary(self, b);
        }
    }
    let mut effects = EffectFinder(false);
    effects.visit_expr(e);
    effects.0
}
