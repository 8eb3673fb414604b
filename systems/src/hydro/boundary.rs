//! Boundary conditions of the gas: diode and inflow, and the kernel text of inflow.

use super::formulas::{StateConfig, StateFormulas, VARIABLES, arguments};
use super::initial::is_physical;
use crate::fields::{GAS_COMPONENTS, Gas, GasModel, MagneticFaces, SET_TOLERANCE};
use nestar_deck::{Deck, DeckError, DeviceFormula, Formula, deck};
use nestar_device::math::sum3;
use nestar_device::{Ghost, Item, Real, device};
use nestar_engine::data::{BoundaryRule, FaultBox, FieldSpec};
use nestar_engine::{Engine, Error};
use nestar_kernels::hydro::Conserved;
use nestar_kernels::hydro::eos::conserved_from_primitive;
use nestar_kernels::mesh::{CellRule, GhostCell, InnerStates, RuleFault, RuleText};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Names of the faces in the tables `[inflow.FACE]`.
pub const FACES: [[&str; 2]; 3] = [
    ["x_lower", "x_upper"],
    ["y_lower", "y_upper"],
    ["z_lower", "z_upper"],
];

/// Outflow without inflow: removes the normal velocity of the nearest cell, with its kinetic energy, if it points into
/// the domain.
#[device]
pub(super) fn diode<R: Real>(ghost: Ghost<R, Conserved<R>, 1>) -> Conserved<R> {
    let mut u = ghost.at(0);
    let momentum = u.momentum[ghost.axis];
    let inward = if ghost.side == 0 {
        momentum > 0.0
    } else {
        momentum < 0.0
    };
    if inward {
        u.momentum[ghost.axis] = 0.0;
        u.energy -= 0.5 * momentum * momentum / u.density;
    }
    u
}

/// Outflow without inflow of gas without energy: density and momentum.
#[device]
pub(super) fn diode_without_energy<R: Real>(ghost: Ghost<R, [R; 4], 1>) -> [R; 4] {
    let mut u = ghost.at(0);
    let momentum = u[1 + ghost.axis];
    let inward = if ghost.side == 0 {
        momentum > 0.0
    } else {
        momentum < 0.0
    };
    if inward {
        u[1 + ghost.axis] = 0.0;
    }
    u
}

/// Inflow state at a face, by formulas of x, y, z and t: the tables `[inflow.FACE]`. Formulas are evaluated at the
/// centres of ghost cells, also in ghost cells at edges and corners unless the other face is periodic or reflecting.
/// Ghost cells that belong to two or more such faces get the mean.
#[deck]
pub struct InflowConfig {
    /// The face is open where this formula is not 0 and a reflecting wall elsewhere; default: open everywhere.
    #[serde(rename = "where")]
    pub open: Option<String>,
    /// Mass density, a formula of x, y, z, t and r (distance from the origin).
    #[key(unit = "mass/length**3")]
    pub density: Option<String>,
    /// Number density per cubic centimetre, instead of the density; needs a table `[units]`.
    #[key(unit = "1/cm3")]
    pub number_density_cm3: Option<String>,
    /// Pressure.
    #[key(unit = "mass/(length*time**2)")]
    pub pressure: Option<String>,
    /// Temperature in kelvin, instead of the pressure; needs a table `[units]`.
    #[key(unit = "K")]
    pub temperature_k: Option<String>,
    /// Velocity along x.
    #[key(default = "0".into(), unit = "length/time")]
    pub velocity_x: String,
    /// Velocity along y.
    #[key(default = "0".into(), unit = "length/time")]
    pub velocity_y: String,
    /// Velocity along z.
    #[key(default = "0".into(), unit = "length/time")]
    pub velocity_z: String,
    /// Magnetic field along x, in units in which its pressure is `B^2 / 2`; needs a table `[mhd]`. Default: 0.
    #[key(unit = "(mass/length)**0.5/time")]
    pub magnetic_x: Option<String>,
    /// Magnetic field along y.
    #[key(unit = "(mass/length)**0.5/time")]
    pub magnetic_y: Option<String>,
    /// Magnetic field along z.
    #[key(unit = "(mass/length)**0.5/time")]
    pub magnetic_z: Option<String>,
    /// Mass fraction of each passive scalar, by name. Default: 0, or the value declared by a plugin.
    #[key(default = BTreeMap::new())]
    pub scalars: BTreeMap<String, String>,
}

/// Boundary rule that evaluates formulas.
pub(super) struct Inflow {
    formulas: StateFormulas,
    /// Not 0 where the face is open; `None`: open everywhere.
    open: Option<Formula>,
    model: GasModel,
    /// Name of the table.
    table: String,
    faults: FaultBox,
}

impl Inflow {
    pub(super) fn from_deck(
        deck: &mut Deck,
        path: &str,
        model: &GasModel,
        faults: FaultBox,
    ) -> Result<Self, DeckError> {
        let config: InflowConfig = deck.table(path)?;
        if config.open.is_some() && model.has_face_field() {
            let why = format!(
                "`{path}.where`: with mhd.method = \"ct\" the magnetic field cannot end at a part of a face that is closed: remove it, or use \"glm\""
            );
            return Err(deck.error_at(&format!("{path}.where"), why));
        }
        let compile = |text| deck.formula(&format!("{path}.where"), text, &VARIABLES);
        let open = config.open.as_deref().map(compile).transpose()?;
        let state = StateConfig {
            samples: 1,
            density: config.density,
            number_density_cm3: config.number_density_cm3,
            pressure: config.pressure,
            temperature_k: config.temperature_k,
            velocity_x: config.velocity_x,
            velocity_y: config.velocity_y,
            velocity_z: config.velocity_z,
            magnetic_x: config.magnetic_x,
            magnetic_y: config.magnetic_y,
            magnetic_z: config.magnetic_z,
            vector_potential_x: None,
            vector_potential_y: None,
            vector_potential_z: None,
            scalars: config.scalars,
        };
        Ok(Self {
            formulas: StateFormulas::compile(deck, path, model, &state)?,
            open,
            model: model.clone(),
            table: path.to_string(),
            faults,
        })
    }
}

impl Inflow {
    /// Returns the value of `where` at a cell; 1 if the table has no such key.
    fn opening(&self, centre: [f64; 3], time: f64) -> f64 {
        let open = self.open.as_ref();
        open.map_or(1.0, |open| open.eval(&arguments(centre, time)))
    }

    /// Describes the first error of the formulas at a cell: in `where`, the state or the scalars.
    fn fault(&self, centre: [f64; 3], time: f64) -> Option<String> {
        let table = &self.table;
        if self.opening(centre, time).is_nan() {
            return Some(format!(
                "`where` of [{table}] is not a number at (x, y, z) = {centre:?}, t = {time}"
            ));
        }
        let primitive = self.formulas.at(centre, time);
        if !primitive.is_physical() {
            return Some(format!(
                "the formulas of [{table}] give an unphysical state at (x, y, z) = {centre:?}, t = {time}: {primitive:?}; \
                 density and pressure must be positive and all values finite"
            ));
        }
        if let Some(field) = self.formulas.field_at(centre, time)
            && !field.iter().all(|b| b.is_finite())
        {
            return Some(format!(
                "the formulas of [{table}] give the magnetic field {field:?} at (x, y, z) = {centre:?}, t = {time}"
            ));
        }
        let fraction = |n| self.formulas.scalar_at(n, centre, time);
        let wrong = (0..self.model.scalars.len()).find(|&n| !fraction(n).is_finite());
        let why = match wrong {
            Some(n) => format!("the scalar {} is {}", self.model.scalars[n], fraction(n)),
            None => self.invalid_scalar(centre, time)?,
        };
        Some(format!(
            "[{table}] at (x, y, z) = {centre:?}, t = {time}: {why}"
        ))
    }

    fn invalid_scalar(&self, centre: [f64; 3], time: f64) -> Option<String> {
        let fraction = |n| self.formulas.scalar_at(n, centre, time);
        self.model.invalid_scalar(&self.table, fraction)
    }

    fn report(&self, cell: &GhostCell) {
        if let Some(message) = self.fault(cell.centre, cell.time) {
            self.faults.report(|| message);
        }
    }
}

impl<R: Real> CellRule<R> for Inflow {
    fn is_wall(&self, cell: &GhostCell) -> bool {
        let open = self.opening(cell.centre, cell.time);
        if open.is_nan() {
            self.report(cell);
        }
        open == 0.0
    }

    fn apply(&self, cell: &GhostCell, _: &InnerStates<R>, state: &mut [R]) {
        let primitive = self.formulas.at(cell.centre, cell.time);
        let mut sound = primitive.is_physical();
        let mut conserved = [0.0; GAS_COMPONENTS];
        primitive.conserved(self.model.gamma, &mut conserved);
        let (gas, behind) = state.split_at_mut(self.model.equation.components());
        for (value, c) in gas.iter_mut().zip(conserved) {
            *value = R::lit(c);
        }
        let field = self.formulas.field_at(cell.centre, cell.time);
        let (of_field, behind) = behind.split_at_mut(self.model.field_components());
        if let Some([x, y, z]) = field {
            sound &= [x, y, z].iter().all(|b| b.is_finite());
            for (value, b) in of_field.iter_mut().zip([x, y, z, 0.0]) {
                *value = R::lit(b);
            }
        }
        let (energies, scalars) = behind.split_at_mut(usize::from(self.model.dual.is_some()));
        for internal in energies {
            *internal = R::lit(primitive.internal_energy(self.model.gamma));
        }
        for (n, value) in scalars.iter_mut().enumerate() {
            let fraction = self.formulas.scalar_at(n, cell.centre, cell.time);
            sound &= fraction.is_finite();
            *value = R::lit(fraction * primitive.density);
        }
        sound &= self.invalid_scalar(cell.centre, cell.time).is_none();
        if !sound {
            self.report(cell);
        }
    }

    fn device(&self, axis: usize, side: usize) -> Option<RuleText> {
        let inflow = InflowText {
            axis,
            side,
            open: self.open.as_ref(),
            formulas: &self.formulas,
            model: &self.model,
        };
        Some(inflow.rule())
    }

    fn fault_message(&self, fault: &RuleFault) -> Option<String> {
        self.fault(fault.centre, fault.time)
    }
}

/// The magnetic field of an inflow on faces outside the domain. Those of the domain itself change by the electric field, which the inflow
/// determines where it is fast.
struct FieldInflow(Inflow);

impl<R: Real> CellRule<R> for FieldInflow {
    fn apply(&self, face: &GhostCell, _: &InnerStates<R>, state: &mut [R]) {
        let field = self.0.formulas.field_at(face.centre, face.time);
        for (value, b) in state.iter_mut().zip(field.into_iter().flatten()) {
            *value = R::lit(b);
        }
        if !state.iter().all(|b| b.is_finite()) {
            self.0.report(face);
        }
    }

    fn device(&self, axis: usize, side: usize) -> Option<RuleText> {
        let inflow = InflowText {
            axis,
            side,
            open: None,
            formulas: &self.0.formulas,
            model: &self.0.model,
        };
        Some(inflow.rule_of_field())
    }

    fn fault_message(&self, fault: &RuleFault) -> Option<String> {
        self.0.fault(fault.centre, fault.time)
    }
}

/// Boundary conditions of the gas by name, each with a description.
pub const WORDS: [(&str, &str); 2] = [
    ("diode", "Outflow without inflow."),
    ("inflow", "Inflow state by formulas of x, y, z and t."),
];

/// Registers the boundary conditions of the gas.
///
/// # Errors
/// Another plugin uses one of the names.
pub fn register(sim: &mut Engine, model: &GasModel) -> Result<(), Error> {
    let [(diode_word, _), (inflow_word, doc)] = WORDS;
    match model.equation.has_energy() {
        true => sim.register_boundary::<Gas, diode>(diode_word, [])?,
        false => sim.register_boundary::<Gas, diode_without_energy>(diode_word, [])?,
    }
    let (model, faults) = (model.clone(), sim.world.resource::<FaultBox>().clone());
    if model.has_face_field() {
        let (model, faults) = (model.clone(), faults.clone());
        let of_field = move |deck: &mut Deck, [axis, side]: [usize; 2], _: &FieldSpec| {
            let table = format!("inflow.{}", FACES[axis][side]);
            let inflow = Inflow::from_deck(deck, &table, &model, faults.clone())?;
            let rule: Arc<dyn BoundaryRule> = Arc::new(FieldInflow(inflow));
            Ok(rule)
        };
        sim.register_boundary_rule::<MagneticFaces>(inflow_word, doc, of_field)?;
    }
    let inflow = move |deck: &mut Deck, [axis, side]: [usize; 2], _: &FieldSpec| {
        let table = format!("inflow.{}", FACES[axis][side]);
        let rule: Arc<dyn BoundaryRule> =
            Arc::new(Inflow::from_deck(deck, &table, &model, faults.clone())?);
        Ok(rule)
    };
    sim.register_boundary_rule::<Gas>(inflow_word, doc, inflow)
}

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

    /// Writes the rule of the magnetic field on faces.
    fn rule_of_field(&self) -> RuleText {
        let (axis, side) = (self.axis, self.side);
        let mut text = RuleText {
            items: vec![sum3::ITEM],
            functions: String::new(),
            inner: 1,
        };
        let field = self.statements_of_field(0, &mut text);
        let _ = write!(
            text.functions,
            "{}RS_FN void ghost_{axis}_{side}(const GhostQuery& at, REAL* u, unsigned* fault) {{
  const double* x = at.centre;
  const double time = at.time;
  bool sound = true;
{}{field}{}}}
",
            self.wall(&mut RuleText {
                items: Vec::new(),
                functions: String::new(),
                inner: 1,
            }),
            radius(),
            self.fault("!sound")
        );
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
  for (int c = 0; c < {}; ++c) u[c] = (REAL)gas[c];\n",
            state.join(",\n    "),
            is_physical::ITEM.path(),
            conserved_from_primitive::ITEM.path(),
            double(self.model.gamma),
            self.model.equation.components()
        );
        if let Some(c) = self.model.internal_energy() {
            let factor = double(1.0 / (self.model.gamma - 1.0));
            let _ = writeln!(text, "  u[{c}] = (REAL)(w[4] * {factor});");
        }
        text += &self.field(rule);
        text += &self.scalars(rule);
        text += &sound_sets(self.model);
        text + &self.fault("!sound") + "}\n"
    }

    /// Writes statements that set the magnetic field, if the gas has one.
    fn field(&self, rule: &mut RuleText) -> String {
        let Some(first) = self.model.magnetic_field() else {
            return String::new();
        };
        let mut text = self.statements_of_field(first, rule);
        if self.model.field_components() > 3 {
            let _ = writeln!(text, "  u[{}] = (REAL)0.0;", first + 3);
        }
        text
    }

    /// Writes statements that set the magnetic field, whose first component is `first`.
    fn statements_of_field(&self, first: usize, rule: &mut RuleText) -> String {
        let mut text = String::new();
        let Some(field) = self.formulas.field() else {
            return text;
        };
        for (n, formula) in field.iter().enumerate() {
            let value = self.call(formula, &format!("magnetic_{n}"), rule);
            let _ = write!(
                text,
                "  const double field_{n} = {value};
  sound = sound && rs::is_finite(field_{n});
  u[{}] = (REAL)field_{n};\n",
                first + n
            );
        }
        text
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
mod inflow_text_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_kernels::mesh::{Boundaries, CellBlock, FaceRule};

    const DECK: &str = r#"
        [inflow.y_lower]
        where      = "x < 1"
        density    = "8 + t"
        velocity_y = "0.5"
        pressure   = "0.4"
    "#;

    /// Returns boundaries with `inflow` at the lower y face and outflow elsewhere.
    fn open_below(inflow: Inflow) -> Boundaries<f64> {
        let mut faces = [const { [const { FaceRule::<f64>::Outflow }; 2] }; 3];
        faces[1][0] = FaceRule::Rule(Arc::new(inflow));
        Boundaries {
            faces,
            normal: [2, 4, 8],
        }
    }

    /// The lower y face is open for x < 1 and a wall elsewhere, in all ghost layers.
    #[test]
    fn an_inflow_face_is_a_wall_where_it_is_closed() {
        let mut deck = Deck::parse("inflow.toml", DECK).unwrap();
        let model = GasModel::plain(1.4, &[]);
        let inflow =
            Inflow::from_deck(&mut deck, "inflow.y_lower", &model, FaultBox::default()).unwrap();
        let boundaries = open_below(inflow);
        // cells of width 0.5; two ghost layers below y = 0, none elsewhere
        let n = 4;
        let block = CellBlock {
            n,
            level: 0,
            origin: [0, -2, 0],
            domain_cells: [8; 3],
            left_edge: [0.0; 3],
            right_edge: [4.0; 3],
        };
        let cells = n * n * n;
        let mut values: Vec<f64> = (0..5 * cells).map(|i| 1.0 + i as f64).collect();
        let before = values.clone();
        boundaries.fill(&block, 2.0, &mut values, cells, 5, &mut [0.0; 5]);
        for (i, layer) in [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1), (3, 0)] {
            let ghost: Vec<f64> = (0..5)
                .map(|c| values[c * cells + i + n * (1 - layer)])
                .collect();
            let mirror: Vec<f64> = (0..5)
                .map(|c| before[c * cells + i + n * (2 + layer)])
                .collect();
            let wanted = if i < 2 {
                vec![10.0, 0.0, 5.0, 0.0, 1.0 + 1.25]
            } else {
                vec![mirror[0], mirror[1], -mirror[2], mirror[3], mirror[4]]
            };
            for (found, wanted) in ghost.iter().zip(wanted) {
                assert!((found - wanted).abs() < 1e-13, "{i} {layer}: {ghost:?}");
            }
        }
    }
}
