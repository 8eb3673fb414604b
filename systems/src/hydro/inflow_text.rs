//! Kernel text of inflow boundary rules.

use super::formulas::StateFormulas;
use super::initial::is_physical;
use crate::fields::{GAS_COMPONENTS, GasModel, SET_TOLERANCE};
use nestar_deck::{DeviceFormula, Formula};
use nestar_device::Item;
use nestar_device::math::sum3;
use nestar_kernels::hydro::eos::conserved_from_primitive;
use nestar_kernels::mesh::RuleText;
use std::fmt::Write as _;

/// Names of the formulas of a state.
const NAMES: [&str; GAS_COMPONENTS] = [
    "density",
    "velocity_x",
    "velocity_y",
    "velocity_z",
    "pressure",
];

/// Arguments of the functions.
const ARGUMENTS: &str = "(x[0], x[1], x[2], time, r)";

/// Returns the name of the formula of scalar `n`.
fn scalar(n: usize) -> String {
    format!("scalar_{n}")
}

/// An inflow rule at one face.
pub(super) struct InflowText<'a> {
    pub axis: usize,
    pub side: usize,
    /// Not 0 where the face is open; `None`: open everywhere.
    pub open: Option<&'a Formula>,
    pub formulas: &'a StateFormulas,
    pub model: &'a GasModel,
}

impl InflowText<'_> {
    /// Writes the rule and the functions of its formulas.
    pub fn rule(&self) -> RuleText {
        let mut text = RuleText {
            items: vec![
                sum3::ITEM,
                is_physical::ITEM,
                conserved_from_primitive::ITEM,
            ],
            functions: String::new(),
            inner: 1,
        };
        let wall = self.wall(&mut text);
        let beyond = self.beyond(&mut text);
        text.functions += &wall;
        text.functions += &beyond;
        text
    }

    /// Writes the function of a formula, called `of`. Returns its name.
    fn function(&self, formula: &Formula, of: &str, rule: &mut RuleText) -> String {
        let name = self.name(of);
        let DeviceFormula { text, items } = formula.device_text(&name);
        rule.functions += &text;
        rule.items.extend(items);
        name
    }

    /// Returns the name of a function.
    fn name(&self, of: &str) -> String {
        format!("inflow_{}_{}_{of}", self.axis, self.side)
    }

    /// Writes the function of a formula. Returns a call of it at `x`, `time` and `r`.
    fn call(&self, formula: &Formula, of: &str, rule: &mut RuleText) -> String {
        self.function(formula, of, rule) + ARGUMENTS
    }

    /// Writes a statement that reports a fault under `condition`.
    fn fault(&self, condition: &str) -> String {
        let code = RuleText::face_code(self.axis, self.side);
        format!("  if ({condition}) launch::leave_fault(fault, {code}u, x, time);\n")
    }

    fn wall(&self, rule: &mut RuleText) -> String {
        let (axis, side) = (self.axis, self.side);
        let mut text = format!(
            "RS_FN bool wall_{axis}_{side}(const double* x, double time, unsigned* fault) {{\n"
        );
        match self.open {
            None => text += "  return false;\n",
            Some(open) => {
                let open = self.call(open, "open", rule);
                let fault = self.fault("open != open");
                let _ = write!(
                    text,
                    "{}  const double open = {open};\n{fault}  return open == 0.0;\n",
                    radius()
                );
            }
        }
        text + "}\n"
    }

    fn beyond(&self, rule: &mut RuleText) -> String {
        let (axis, side) = (self.axis, self.side);
        let gas = self.formulas.gas().iter().zip(NAMES);
        let mut state: Vec<String> = gas
            .map(|(formula, name)| self.call(formula, name, rule))
            .collect();
        if let Some(pressure) = self.formulas.pressure() {
            let fraction = |(n, formula): (usize, &Option<Formula>)| match formula {
                Some(_) => self.name(&scalar(n)) + ARGUMENTS,
                None => "0.0".into(),
            };
            let fractions = self.formulas.scalars().iter().enumerate().map(fraction);
            let given = [state[0].clone(), state[4].clone()].into_iter();
            let given: Vec<String> = given.chain(fractions).collect();
            let name = self.function(pressure, "converted", rule);
            state[4] = format!("{name}({})", given.join(", "));
        }
        let mut text = format!(
            "RS_FN void ghost_{axis}_{side}(const GhostQuery& at, REAL* u, unsigned* fault) {{
  const double* x = at.centre;
  const double time = at.time;
{}",
            radius()
        );
        let _ = write!(
            text,
            "  const rs::arr<double, 5> w = {{{{{}}}}};
  bool sound = ::{}<double>(w);
  const rs::arr<double, 5> gas = ::{}<double>(w, {});
  for (int c = 0; c < 5; ++c) u[c] = (REAL)gas[c];\n",
            state.join(",\n    "),
            is_physical::ITEM.path(),
            conserved_from_primitive::ITEM.path(),
            double(self.model.gamma)
        );
        if let Some(c) = self.model.internal_energy() {
            let factor = double(1.0 / (self.model.gamma - 1.0));
            let _ = writeln!(text, "  u[{c}] = (REAL)(w[4] * {factor});");
        }
        text += &self.scalars(rule);
        text += &sound_sets(self.model);
        text + &self.fault("!sound") + "}\n"
    }

    /// Writes statements that set the scalars from their fractions.
    fn scalars(&self, rule: &mut RuleText) -> String {
        let mut text = String::new();
        for (n, formula) in self.formulas.scalars().iter().enumerate() {
            let fraction = match formula {
                Some(formula) => self.call(formula, &scalar(n), rule),
                None => "0.0".into(),
            };
            let c = self.model.first_scalar() + n;
            let _ = write!(
                text,
                "  const double fraction_{n} = {fraction};
  sound = sound && rs::is_finite(fraction_{n});
  u[{c}] = (REAL)(fraction_{n} * w[0]);\n"
            );
            if self.model.fractions[n] {
                let _ = writeln!(
                    text,
                    "  sound = sound && fraction_{n} >= {} && fraction_{n} <= {};",
                    double(-SET_TOLERANCE),
                    double(1.0 + SET_TOLERANCE)
                );
            }
        }
        text
    }
}

/// Writes the test of the sets of scalars, as [`GasModel::invalid_set`].
fn sound_sets(model: &GasModel) -> String {
    let sound = |scalars: &mut dyn Iterator<Item = usize>| {
        let names: Vec<String> = scalars.map(|n| format!("fraction_{n}")).collect();
        let sum = names.join(" + ");
        let least = names.join(" >= 0.0 && ");
        format!("  sound = sound && rs::abs({sum} - 1.0) <= {SET_TOLERANCE} && {least} >= 0.0;\n")
    };
    let sets = model.scalar_sets();
    sets.map(|mut scalars| sound(&mut scalars)).collect()
}

/// Writes the distance of `x` from the origin, the variable `r`.
fn radius() -> String {
    let sum: &Item = sum3::ITEM;
    format!(
        "  const double r = rs::sqrt(::{}<double>(x[0] * x[0], x[1] * x[1], x[2] * x[2]));\n",
        sum.path()
    )
}

/// Writes a number by its bits.
fn double(x: f64) -> String {
    format!(
        "rs::from_bits((rs::u64)0x{:016x}ull /* {x} */)",
        x.to_bits()
    )
}

#[cfg(test)]
mod tests;
