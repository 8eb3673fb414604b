//! Literals, paths to values, and initialisers of tables.
use super::{Binding, Translator};
use crate::code::{Code, Part, list, text};
use crate::subset::{REAL_CONSTANTS, bare, lower_case, primitive};
use syn::{Expr, ExprPath, Lit, LitFloat, LitInt, Path};

/// The digits with a point or exponent, as C++ wants them for a floating literal.
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

impl Translator {
    pub(super) fn lit(&mut self, l: &Lit) -> Code {
        match l {
            Lit::Bool(b) => text(if b.value { "true" } else { "false" }),
            Lit::Int(i) => self.integer(i),
            Lit::Float(f) => self.float(f),
            other => self.bad(other, "only bool, integer and float literals"),
        }
    }

    fn integer(&mut self, i: &LitInt) -> Code {
        let value = i.base10_parse::<u64>();
        match (value, i.suffix()) {
            (Ok(v), "") if v <= i32::MAX as u64 => text(v.to_string()),
            (_, "") => self.bad(i, "integer literals beyond i32 need a suffix"),
            (Ok(v), "i32") => text(v.to_string()),
            (Ok(v), "u32") => text(format!("{v}u")),
            (Ok(v), "usize" | "u64") => text(format!("{v}ull")),
            (Ok(v), "i64") => text(format!("{v}ll")),
            (_, suffix) => self.bad(i, format!("unsupported integer literal suffix `{suffix}`")),
        }
    }

    fn float(&mut self, f: &LitFloat) -> Code {
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

    /// A literal must mean the same in single and double precision.
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

    /// A variable, const parameter, associated constant or `#[device]` constant.
    pub(super) fn path(&mut self, p: &Path) -> Code {
        let first = p.segments[0].ident.to_string();
        if p.get_ident().is_some() {
            if let Some(local) = self.lookup(&first) {
                return text(&local.cpp);
            }
            if self.is_const(&first) {
                return text(first);
            }
            if lower_case(&first) {
                let why = format!(
                    "`{first}` is no variable of this function; constants are written in capitals, \
                     functions are called"
                );
                return self.bad(p, why);
            }
        }
        if p.segments.len() == 2
            && (self.is_type(&first) || ["f32", "f64"].contains(&first.as_str()))
        {
            return self.associated_constant(p, &first);
        }
        if p.segments.len() > 1
            && (["std", "core"].contains(&first.as_str()) || primitive(&first).is_some())
        {
            let why = "items of the standard library have no CUDA text; \
                       copy the constant into a #[device] const";
            return self.bad(p, why);
        }
        Code::of(Part::Value(bare(p)))
    }

    fn associated_constant(&mut self, p: &Path, ty: &str) -> Code {
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
        // these two are macros in C
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

    /// A path used as a value.
    pub(super) fn value(&mut self, p: &ExprPath) -> Code {
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

    /// Initialiser of a constant array: nested braces around plain expressions.
    pub(super) fn table(&mut self, e: &Expr) -> Code {
        match e {
            Expr::Array(a) => {
                let elements: Vec<_> = a.elems.iter().map(|e| self.table(e)).collect();
                text("{{").c(list(elements)).t("}}")
            }
            Expr::Repeat(r) => self.bad(r, "write out every element of a constant array"),
            e => self.expr(e, false),
        }
    }
}
