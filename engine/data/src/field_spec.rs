//! Declaration of a field: components, centring, banks and operators, from which the engine derives the rest.

use super::{Precision, RowShape};
use bevy_ecs::world::World;
use nestar_device::Real;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::prolong::SlopeLimiter;
use nestar_kernels::mesh::{
    Boundaries, CellRule, Centring, FaceRule, MAX_COMPONENTS, StateFunctions, StateRules,
};
use std::sync::Arc;

/// A component of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Name of its array in snapshots, for example `momentum_x`.
    pub name: String,
    /// Unit in code units, for example `mass/length**3`.
    pub units: String,
    /// Powers of (length, mass, time) in the unit; all 0 if they are no whole numbers, and then the unit tells the factor.
    pub dimension: [i32; 3],
    /// Description in one sentence.
    pub long_name: String,
    /// Axis of a vector component (0, 1, 2), whose sign changes at a reflecting boundary; `None` for a scalar.
    pub normal_to: Option<usize>,
}

impl Component {
    /// Creates a dimensionless scalar.
    #[must_use]
    pub fn scalar(name: &str) -> Self {
        Self {
            name: name.into(),
            units: "1".into(),
            dimension: [0; 3],
            long_name: name.into(),
            normal_to: None,
        }
    }
}

/// Prolongation: how new patches and ghost cells are filled from the coarser level.
///
/// Values on faces are interpolated within the plane of a coarse face. The faces inside a coarse cell then follow from
/// those on its surface, so that each fine cell has the divergence of the coarse cell (Toth & Roe 2002, J. Comput.
/// Phys. 180, 736).
#[derive(Clone, Copy, Debug)]
pub enum Prolong {
    /// Linear interpolation with limited slopes; conservative and monotonic.
    Limited(SlopeLimiter),
    /// Linear interpolation with central slopes; conservative.
    Linear,
    /// Copies the value of the coarse cell or face.
    Injection,
    /// A function of the plugin; level and rows are in [`NewRows`](nestar_engine_mesh::NewRows).
    Own(fn(&mut World)),
    /// No prolongation: new rows are zero.
    None,
}

impl Prolong {
    /// Returns the slope limiter for interpolation between levels, including ghost cells.
    #[must_use]
    pub fn limiter(self) -> SlopeLimiter {
        match self {
            Self::Limited(limiter) => limiter,
            Self::Linear => SlopeLimiter::Central,
            Self::Injection | Self::Own(_) | Self::None => SlopeLimiter::Flat,
        }
    }
}

/// Restriction: how covered cells are set from the finer level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restrict {
    /// Averages the values of the children.
    Mean,
    /// A system of the plugin in `Synchronise::Restrict`.
    /// It sets the rows whose children are on its rank; the engine sends them to the owners of the parents.
    Own,
    /// No restriction.
    None,
}

/// Correction of coarse cells at coarse-fine faces at synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correct {
    /// Replaces coarse fluxes by fine fluxes (refluxing). The field gets flux registers, which its step must fill.
    Fluxes,
    /// Replaces coarse circulations along edges by fine ones, for fields on faces whose steps subtract a curl. The field
    /// gets circulation registers, which its step must fill.
    Circulations,
    /// No correction.
    None,
}

/// A boundary rule in both precisions.
pub trait BoundaryRule: CellRule<f32> + CellRule<f64> {}

impl<T: CellRule<f32> + CellRule<f64>> BoundaryRule for T {}

/// Boundary condition at one face of the domain.
#[derive(Clone)]
pub enum BoundaryCondition {
    /// Periodic: continues at the opposite face.
    Periodic,
    /// Outflow: zero gradient, the state of the nearest cell.
    Outflow,
    /// Reflecting: mirror image with inverted components normal to the axis.
    Reflecting,
    /// A rule that computes every ghost cell.
    Rule(Arc<dyn BoundaryRule>),
}

/// Declaration of a field: components, centring, banks and operators.
///
/// ```
/// # use nestar_engine_data::FieldSpec;
/// let potential = FieldSpec { banks: 3, ..FieldSpec::cells(&["potential"]) };
/// ```
#[derive(Clone)]
pub struct FieldSpec {
    /// Components in storage order, 1 to 64.
    pub components: Vec<Component>,
    /// Location of the values. Fields on faces or edges consist of vectors with components x, y, z. Adjacent patches
    /// each store the values of shared faces and edges.
    pub centring: Centring,
    /// Cells of a row along each axis: 8, or 4, 2 or 1 for values coarser than the cells. Coarser rows are only
    /// allocated and exchanged; cell functions, restriction and prolongation need rows of 8.
    pub side: usize,
    /// Number of banks, at least `time_levels`. Further banks are scratch memory of the systems: neither exchanged nor
    /// stored nor interpolated.
    pub banks: usize,
    /// Number of time levels: 1, or 2 for the states before and after a step.
    /// With two, ghost cells of the finer level are interpolated in time.
    pub time_levels: usize,
    /// Stages of a step, 1 or more. With more, the first scratch bank holds states between stages, and registers keep the fluxes of earlier
    /// stages.
    pub stages: usize,
    /// Prolongation to new patches.
    pub prolong: Prolong,
    /// Restriction to covered cells.
    pub restrict: Restrict,
    /// Correction at coarse-fine borders.
    pub correct: Correct,
    /// Functions of states for averages, corrections and interpolations; `None` if all states are physical and
    /// interpolated component by component.
    pub states: Option<StateRules>,
    /// Largest state of leading components; `None` if functions may take any number of them.
    pub leading: Option<LeadingState>,
    /// `true` if diagnostics list the domain sums of the components and their drifts.
    pub in_totals: bool,
    /// `true` if snapshots contain the field and a restart reads it; otherwise the plugin recomputes it.
    pub stored: bool,
    /// `true` if the field holds intermediate values of one method; the order of a step does not list it.
    pub working: bool,
    /// Boundary conditions, `[axis][side]`, at faces without a rule registered for the field and the word of the deck.
    /// `None`: zero gradient, except at periodic and reflecting faces.
    pub boundary_conditions: Option<[[BoundaryCondition; 2]; 3]>,
}

/// Largest state of leading components that a function may take or return, in a field whose further components are of another kind.
/// A larger state would take them for members that the field lacks.
#[derive(Clone, Debug)]
pub struct LeadingState {
    /// Number of components.
    pub components: usize,
    /// Ends the message about a larger state: what the field lacks, and what an author can do.
    pub advice: String,
}

impl FieldSpec {
    /// Checks that the function `name` may take or return `count` leading components of the field `field`.
    ///
    /// # Errors
    /// The state is too large.
    pub(super) fn check_leading(
        &self,
        name: &str,
        field: &str,
        count: usize,
    ) -> Result<(), String> {
        match &self.leading {
            Some(LeadingState { components, advice }) if count > *components => Err(format!(
                "`{name}` has a state of {count} components of the field `{field}`, whose state has {components}: {advice}"
            )),
            _ => Ok(()),
        }
    }

    /// Checks that the function `name` may return `count` of the chosen components of the field `field`.
    ///
    /// # Errors
    /// The leading components do not have such a state, or the field lacks one of the chosen components.
    pub(super) fn check_returned(
        &self,
        name: &str,
        field: &str,
        chosen: &Components,
        count: usize,
    ) -> Result<(), String> {
        if chosen.lead() {
            return self.check_leading(name, field, count);
        }
        if !chosen.lacks(count) {
            return Ok(());
        }
        let advice = self.leading.as_ref().map_or("", |state| &state.advice);
        Err(format!(
            "`{name}` returns a component that the field `{field}` lacks: {advice}"
        ))
    }

    /// Creates a cell-centred field of dimensionless scalars: one bank, limited prolongation, averaged, no flux
    /// correction, no totals, stored.
    #[must_use]
    pub fn cells(names: &[&str]) -> Self {
        Self {
            components: names.iter().map(|name| Component::scalar(name)).collect(),
            centring: Centring::Cell,
            side: PATCH,
            banks: 1,
            time_levels: 1,
            stages: 1,
            prolong: Prolong::Limited(SlopeLimiter::MonotonizedCentral),
            restrict: Restrict::Mean,
            correct: Correct::None,
            states: None,
            leading: None,
            in_totals: false,
            stored: true,
            working: false,
            boundary_conditions: None,
        }
    }

    /// Adds the totals of its components and their drifts to the diagnostics.
    #[must_use]
    pub fn in_totals(self) -> Self {
        Self {
            in_totals: true,
            ..self
        }
    }

    /// Creates a dimensionless vector by its face-centred components, otherwise as [`FieldSpec::cells`].
    /// New faces are interpolated with limited slopes within coarse faces. Between them the divergence of the coarse
    /// cells is kept, see [`Prolong`]. Coarse faces take the mean of four fine faces. Values on shared faces are kept
    /// bitwise equal.
    #[must_use]
    pub fn faces(names: [&str; 3]) -> Self {
        let mut spec = Self::cells(&names);
        spec.centring = Centring::Face;
        for (axis, component) in spec.components.iter_mut().enumerate() {
            component.normal_to = Some(axis);
        }
        spec
    }

    /// Returns, for each axis, the bit mask of components whose sign changes at a reflecting boundary.
    #[must_use]
    pub fn normal_masks(&self) -> [u64; 3] {
        let mut masks = [0; 3];
        for (c, component) in self.components.iter().enumerate() {
            if let Some(axis) = component.normal_to {
                masks[axis] |= 1 << c;
            }
        }
        masks
    }

    /// Returns `true` if the prolongation reads neighbours of the parents, including halo patches.
    #[must_use]
    pub fn reads_surroundings(&self) -> bool {
        !matches!(self.prolong, Prolong::Injection | Prolong::None)
    }

    /// Returns the shape of a row.
    #[must_use]
    pub fn shape(&self) -> RowShape {
        RowShape {
            side: self.side,
            centring: self.centring,
        }
    }

    /// Returns the number of values of a row in one bank.
    #[must_use]
    pub fn row_values(&self) -> usize {
        self.components.len() * self.shape().values()
    }

    /// Returns the bytes of a row in all banks.
    #[must_use]
    pub fn row_bytes(&self, precision: Precision) -> usize {
        self.banks * self.row_values() * precision.bytes()
    }

    /// Checks that a pool can store the field.
    ///
    /// # Errors
    /// A message about the field `name`.
    pub fn check(&self, name: &str) -> Result<(), String> {
        let wrong = |why: String| Err(format!("field `{name}`: {why}"));
        let components = self.components.len();
        if !(1..=MAX_COMPONENTS).contains(&components) {
            return wrong(format!(
                "{components} components; a field has 1 to {MAX_COMPONENTS}"
            ));
        }
        if !(1..=2).contains(&self.time_levels) || self.banks < self.time_levels {
            let (banks, levels) = (self.banks, self.time_levels);
            return wrong(format!(
                "{levels} of {banks} banks are time levels; 1 or 2 are allowed, at most as many as banks"
            ));
        }
        if ![1, 2, 4, PATCH].contains(&self.side) {
            return wrong(format!(
                "rows of {} cells along an axis; 1, 2, 4 or 8 are allowed",
                self.side
            ));
        }
        self.check_centring().or_else(|why| wrong(why.into()))
    }

    /// Checks that the operators support rows with fewer cells.
    pub fn check_pool(&self, name: &str) -> Result<(), String> {
        self.check(name)?;
        let interpolated = !matches!(self.prolong, Prolong::Own(_) | Prolong::None);
        let averaged = self.restrict != Restrict::None || self.correct != Correct::None;
        let summed = self.in_totals || self.states.is_some();
        if self.side == PATCH || !(interpolated || averaged || summed || self.stored) {
            return Ok(());
        }
        Err(format!(
            "field `{name}`: rows of {} cells along an axis are not interpolated, averaged, corrected, summed or stored by the \
             engine: set prolong, restrict and correct to None, stored to false",
            self.side
        ))
    }

    /// Returns `true` if circulations of the field can be corrected.
    fn may_circulate(&self) -> bool {
        let averaged = self.restrict == Restrict::Mean;
        self.centring == Centring::Face && averaged && self.stages == 1
    }

    /// Returns `true` if the declaration names a rule for a face of the domain.
    fn has_boundary_rule(&self) -> bool {
        let own = self.boundary_conditions.iter().flatten().flatten();
        own.into_iter()
            .any(|beyond| matches!(beyond, BoundaryCondition::Rule(_)))
    }

    /// Checks that the operators support values on faces or edges.
    fn check_centring(&self) -> Result<(), &'static str> {
        let interpolated = !matches!(self.prolong, Prolong::Own(_) | Prolong::None);
        if self.correct == Correct::Circulations && !self.may_circulate() {
            Err(
                "circulations are corrected only for values on faces that are averaged and advance in one stage",
            )
        } else if self.centring == Centring::Cell {
            Ok(())
        } else if !self.components.len().is_multiple_of(3) {
            Err("values on faces or edges must be vectors of three components")
        } else if self.correct == Correct::Fluxes || self.in_totals || self.states.is_some() {
            Err("values on faces or edges support no flux correction, totals or state rules")
        } else if self.centring == Centring::Edge && interpolated {
            Err(
                "values on edges are interpolated only by the plugin itself (Prolong::Own) or not at all",
            )
        } else if self.centring == Centring::Edge && self.has_boundary_rule() {
            Err("boundary rules work on values in cells and on faces only")
        } else {
            Ok(())
        }
    }
}

/// The components of the first field that form the state of a function, in order. The default is the leading ones.
/// A member may be [`Components::ZERO`] or [`Components::ABSENT`] instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Components([u8; MAX_COMPONENTS]);

impl Default for Components {
    fn default() -> Self {
        Self(std::array::from_fn(|n| n as u8))
    }
}

impl Components {
    /// Placeholder for a component: reads as 0, and its result is dropped. A state with more members than are chosen is
    /// refused.
    pub const ZERO: usize = u8::MAX as usize - 1;
    /// Placeholder for a component that the field lacks: reads as 0. A function that returns it is refused.
    pub const ABSENT: usize = u8::MAX as usize - 2;

    /// Creates a choice of these components.
    ///
    /// # Panics
    /// If there are more numbers than a field may have components, or a number is too large and no placeholder.
    #[must_use]
    pub fn of(numbers: &[usize]) -> Self {
        let mut chosen = [u8::MAX; MAX_COMPONENTS];
        for (place, &number) in chosen[..numbers.len()].iter_mut().zip(numbers) {
            let known = number < MAX_COMPONENTS || Self::is_placeholder(number);
            assert!(known, "a field has no component {number}");
            *place = number as u8;
        }
        Self(chosen)
    }

    /// Returns component `n` of the state; `None` if it reads as 0.
    #[inline(always)]
    pub(super) fn number(&self, n: usize) -> Option<usize> {
        let number = usize::from(self.0[n]);
        (!Self::is_placeholder(number)).then_some(number)
    }

    /// Returns `true` for numbers that stand for no component.
    #[inline(always)]
    fn is_placeholder(number: usize) -> bool {
        number == Self::ZERO || number == Self::ABSENT
    }

    /// Returns `true` if a state of `count` members has one that the field lacks.
    fn lacks(&self, count: usize) -> bool {
        let mut members = self.0.iter().take(count);
        members.any(|&number| usize::from(number) == Self::ABSENT)
    }

    /// Returns `true` if the state consists of the leading components.
    pub(super) fn lead(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the number of components that a field needs for a state of `count` members.
    pub(super) fn wanted(&self, count: usize) -> usize {
        let numbers = (0..count.min(MAX_COMPONENTS)).filter_map(|n| self.number(n));
        numbers.map(|n| n + 1).max().unwrap_or(0)
    }

    /// Returns the component numbers for kernels; a negative number reads as 0.
    pub(super) fn numbers(&self) -> [i32; MAX_COMPONENTS] {
        std::array::from_fn(|n| self.number(n).map_or(-1, |number| number as i32))
    }
}

/// A floating-point type that a pool may hold.
pub trait Element: Real + bytemuck::Pod {
    /// Precision of this type.
    const PRECISION: Precision;
    /// Returns the state functions in this precision.
    fn states(rules: &StateRules) -> StateFunctions<Self>;
    /// Converts a boundary condition to this precision.
    fn face(beyond: &BoundaryCondition) -> FaceRule<Self>;
}

macro_rules! element {
    ($t:ty, $variant:ident, $states:ident) => {
        impl Element for $t {
            const PRECISION: Precision = Precision::$variant;
            fn states(rules: &StateRules) -> StateFunctions<Self> {
                rules.$states
            }
            fn face(beyond: &BoundaryCondition) -> FaceRule<Self> {
                match beyond {
                    BoundaryCondition::Periodic => FaceRule::Periodic,
                    BoundaryCondition::Outflow => FaceRule::Outflow,
                    BoundaryCondition::Reflecting => FaceRule::Reflecting,
                    BoundaryCondition::Rule(rule) => FaceRule::Rule(rule.clone()),
                }
            }
        }
    };
}
element!(f32, Single, single);
element!(f64, Double, double);

/// Returns the boundary conditions of the field `spec`, `[axis][side]`, in one precision.
pub(super) fn boundaries<R: Element>(
    spec: &FieldSpec,
    beyond: &[[BoundaryCondition; 2]; 3],
) -> Boundaries<R> {
    Boundaries {
        faces: beyond.each_ref().map(|sides| sides.each_ref().map(R::face)),
        normal: spec.normal_masks(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_that_no_pool_can_hold_are_refused_by_name() {
        let sound = FieldSpec {
            banks: 3,
            time_levels: 2,
            ..FieldSpec::cells(&["potential"])
        };
        assert!(sound.check("potential").is_ok());
        let refused = |spec: FieldSpec| spec.check("dust").expect_err("refused");
        let none = FieldSpec::cells(&[]);
        assert!(refused(none).contains("field `dust`: 0 components"));
        let banks = FieldSpec {
            time_levels: 2,
            ..sound.clone()
        };
        assert!(banks.check("x").is_ok());
        for (banks, time_levels) in [(1, 2), (0, 0), (4, 3)] {
            let spec = FieldSpec {
                banks,
                time_levels,
                ..sound.clone()
            };
            let levels = format!("{time_levels} of {banks} banks");
            assert!(refused(spec).contains(&levels));
        }
        let face = FieldSpec::faces(["x", "y", "z"]);
        assert!(face.check("b").is_ok());
        let totalled = FieldSpec {
            in_totals: true,
            ..face.clone()
        };
        assert!(refused(totalled).contains("field `dust`: values on faces"));
        let edges = FieldSpec {
            centring: Centring::Edge,
            ..face.clone()
        };
        assert!(refused(edges).contains("values on edges are interpolated"));
        let pair = FieldSpec {
            centring: Centring::Face,
            ..FieldSpec::cells(&["x", "y"])
        };
        assert!(refused(pair).contains("three components"));
        assert_eq!((face.row_values(), sound.row_values()), (3 * 576, 512));
        assert_eq!(sound.row_bytes(Precision::Double), 3 * 512 * 8);
    }
}
