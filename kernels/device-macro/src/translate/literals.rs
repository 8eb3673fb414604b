//! Translates literals, paths to values, and initialisers of tables.
use super::{Binding, Translator};
use crate::code::{CppCode, CppPart, list, text};
use crate::subset::{REAL_CONSTANTS, bare, cpp_name, lower_case, names_type, primitive};
use syn::{Expr, ExprLit, ExprPath, Lit, LitFloat, LitInt, Path};

/// Returns the digits with a point or exponent, as a C++ floating literal requires.
pub fn digits(f: &LitFloat) -> String {
    let digits = f.base10_digits();
    if digits.ends_with('.') {
        format!("{digits}0")
    } else if digits.contains(['.', 'e', 'E']) {
        digits.to_string()
    } else {
        format!("{digits}.0")
    }
}

/// Returns the text of `i32::MAX` and similar.
fn extreme(ty: &str, name: &str) -> Option<&'static str> {
    Some(match (ty, name) {
        ("i32", "MAX") => "2147483647",
        ("i32", "MIN") => "(-2147483647 - 1)",
        ("i64", "MAX") => "9223372036854775807ll",
        ("i64", "MIN") => "(-9223372036854775807ll - 1)",
        ("u32", "MAX") => "4294967295u",
        ("u64" | "usize", "MAX") => "18446744073709551615ull",
        ("u32", "MIN") => "0u",
        ("u64" | "usize", "MIN") => "0ull",
        _ => return None,
    })
}

impl Translator {
    pub(super) fn lit(&mut self, l: &Lit) -> CppCode {
        match l {
            Lit::Bool(b) => text(if b.value { "true" } else { "false" }),
            Lit::Int(i) => self.integer(i),
            Lit::Float(f) => self.float(f),
            other => self.bad(other, "only bool, integer and float literals"),
        }
    }

    fn integer(&mut self, i: &LitInt) -> CppCode {
        let value = i.base10_parse::<i128>();
        match (value, i.suffix()) {
            (Ok(v), "" | "i32") if v.unsigned_abs() <= i32::MAX as u128 => text(v.to_string()),
            (Ok(v), "" | "i32") if v == -(1 << 31) => text("(-2147483647 - 1)"),
            (_, "") => self.bad(
                i,
                "integer literals beyond i32 need a suffix (`5000000000u64`)",
            ),
            (Ok(v), "i64") if v == -(1 << 63) => text("(-9223372036854775807ll - 1)"),
            (Ok(v), "u32") => text(format!("{v}u")),
            (Ok(v), "usize" | "u64") => text(format!("{v}ull")),
            (Ok(v), "i64") => text(format!("{v}ll")),
            (_, suffix) => self.bad(i, format!("unsupported integer literal suffix `{suffix}`")),
        }
    }

    fn float(&mut self, f: &LitFloat) -> CppCode {
        let digits = digits(f);
        let real = self.real().filter(|_| !self.doubles).map(str::to_string);
        let float = if self.doubles {
            Some("f64")
        } else {
            self.float
        };
        match (f.suffix(), real, float) {
            ("f32", ..) | ("", None, Some("f32")) => text(digits + "f"),
            ("f64", ..) | ("", None, Some(_)) => text(digits),
            ("", Some(real), _) => {
                self.check_single(f, &digits, &real);
                text(format!("{real}({digits})"))
            }
            ("", None, None) => {
                let why =
                    "with several real type parameters a float literal needs its type: `0.5f64`";
                self.bad(f, why)
            }
            (suffix, ..) => self.bad(f, format!("unsupported suffix `{suffix}`")),
        }
    }

    /// Checks that a literal means the same in single and double precision.
    fn check_single(&mut self, f: &LitFloat, digits: &str, real: &str) {
        let Ok(value) = digits.parse::<f64>() else {
            return;
        };
        let single = value as f32;
        let becomes = if value == 0.0 || single.is_normal() {
            return;
        } else if single == 0.0 {
            "0"
        } else if single.is_infinite() {
            "infinite"
        } else {
            "denormal"
        };
        let why = format!(
            "`{digits}` is {becomes} as f32; use `{real}::MIN_POSITIVE`, `{real}::MAX` or a scaled value, \
             or `{real}::lit({digits})` if that is meant"
        );
        self.err(f, why);
    }

    /// Translates a negative integer literal, which C++ does not have.
    pub(super) fn negative(&mut self, e: &Expr) -> Option<CppCode> {
        let Expr::Lit(ExprLit {
            lit: Lit::Int(i), ..
        }) = e
        else {
            return None;
        };
        let negative = LitInt::new(&format!("-{i}"), i.span());
        Some(text("(").c(self.integer(&negative)).t(")"))
    }

    /// Translates a variable, const parameter, associated constant, enum variant or `#[device]` constant.
    pub(super) fn path(&mut self, p: &Path) -> CppCode {
        let first = p.segments[0].ident.to_string();
        if p.get_ident().is_some() {
            if let Some(local) = self.lookup(&first) {
                return text(&local.cpp);
            }
            if self.is_const(&first) {
                return text(first);
            }
            if lower_case(&first) && !names_type(&p.segments[0].ident) {
                let why = format!(
                    "`{first}` is not a variable of this function; constants are written in capitals, functions are called, \
                     and in a `match` `_` matches the rest"
                );
                return self.bad(p, why);
            }
        }
        if p.segments.len() == 2
            && (self.is_type(&first) || ["f32", "f64"].contains(&first.as_str()))
        {
            return self.associated_constant(p, &first);
        }
        if p.segments.len() == 2
            && let Some(extreme) = extreme(&first, &p.segments[1].ident.to_string())
        {
            return text(extreme);
        }
        if p.segments.len() > 1
            && (["std", "core"].contains(&first.as_str()) || primitive(&first).is_some())
        {
            let why = "items of the standard library have no CUDA text; \
                       copy the constant into a #[device] const";
            return self.bad(p, why);
        }
        self.item_value(p)
    }

    /// Translates an enum variant, a constant of a type, a structure without members, or a constant.
    fn item_value(&mut self, p: &Path) -> CppCode {
        match self.owner(p, CppPart::Value) {
            Some(owner) => owner.t(cpp_name(&p.segments[p.segments.len() - 1].ident)),
            // a structure without members as a value
            None if p
                .segments
                .last()
                .is_some_and(|s| lower_case(&s.ident.to_string())) =>
            {
                CppCode::of(CppPart::Value(bare(p))).t("{}")
            }
            None => CppCode::of(CppPart::Value(bare(p))),
        }
    }

    /// Returns the type, with `::`, of the last name of a path: an enum or a type that provides functions, as `part` says.
    pub(super) fn owner(&mut self, p: &Path, part: fn(Path) -> CppPart) -> Option<CppCode> {
        let mut owner = bare(p);
        owner.segments.pop();
        owner.segments.pop_punct();
        let name = &owner.segments.last()?.ident;
        if owner.segments.len() == 1 && self.is_choice(&name.to_string()) {
            return Some(text(format!("{name}::")));
        }
        if owner.segments.len() == 1 && self.is_own(name) {
            return self.of.as_ref().map(|of| text(cpp_name(of)).t("::"));
        }
        names_type(name).then(|| CppCode::of(part(owner)).t("::"))
    }

    fn associated_constant(&mut self, p: &Path, ty: &str) -> CppCode {
        let name = p.segments[1].ident.to_string();
        let parameter = self.is_type(ty);
        if !REAL_CONSTANTS.contains(&name.as_str()) || !parameter && name == "PI" {
            let known = REAL_CONSTANTS.join(", ");
            let why = format!(
                "`{ty}::{name}` is not known on the device; a type parameter has {known} \
                 and the functions lit, from_f64, from_i32, from_u32, from_usize"
            );
            return self.bad(p, why);
        }
        // INFINITY and NAN are macros in C
        let suffix = if ["INFINITY", "NAN"].contains(&name.as_str()) {
            "_"
        } else {
            ""
        };
        text(format!(
            "rs::lim<{}>::{name}{suffix}()",
            primitive(ty).unwrap_or(ty)
        ))
    }

    /// Translates a path used as a value.
    pub(super) fn value(&mut self, p: &ExprPath) -> CppCode {
        if p.qself.is_some() {
            return self.bad(p, "qualified paths are not supported");
        }
        let local = p.path.get_ident().and_then(|i| self.lookup(&i.to_string()));
        if local.is_some_and(|l| l.binding == Binding::Mutable) {
            let why = "a `&mut` can only be dereferenced, indexed or passed on to a call; \
                       as a value C++ would copy it";
            return self.bad(p, why);
        }
        self.path(&p.path)
    }

    /// Translates the initialiser of a constant array: nested braces around plain expressions.
    pub(super) fn table(&mut self, e: &Expr) -> CppCode {
        match e {
            Expr::Array(a) => {
                let elements: Vec<_> = a.elems.iter().map(|e| self.table(e)).collect();
                text("{{").c(list(elements)).t("}}")
            }
            Expr::Repeat(r) => {
                let length = self.expr(&r.len, false);
                let element = match &*r.expr {
                    inner @ Expr::Repeat(_) => self.table(inner),
                    other => self.expr(other, false),
                };
                text("rs::filled<").c(length).t(">(").c(element).t(")")
            }
            e => self.expr(e, false),
        }
    }
}
