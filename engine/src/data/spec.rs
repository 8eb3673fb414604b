//! What a plugin declares of a field; the engine derives the rest from it.

use super::{Precision, RowShape};
use bevy_ecs::world::World;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::MAX_COMPONENTS;
use nestar_kernels::mesh::prolong::SlopeLimiter;
use nestar_kernels::mesh::{CellRule, Centring, StateRules};
use std::sync::Arc;

/// What one component of a field is.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Name of its array in snapshots, for example `momentum_x`.
    pub name: String,
    /// Unit in code units, for example `mass/length**3`.
    pub units: String,
    /// Powers of (length, mass, time) in the unit.
    pub dimension: [i32; 3],
    /// A sentence for people.
    pub long_name: String,
    /// The axis whose mirror image changes the component's sign: 0, 1, 2 for a vector's own, `None` for a scalar.
    pub normal_to: Option<usize>,
}

impl Component {
    /// A dimensionless scalar.
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

/// How new patches get their values from the coarser level.
#[derive(Clone, Copy, Debug)]
pub enum Prolong {
    /// Linear interpolation with limited slopes, conservative and monotonic.
    Limited(SlopeLimiter),
    /// Linear interpolation with central slopes, conservative.
    Linear,
    /// The value of the coarse cell.
    Injection,
    /// By the plugin itself: new patches and their level stand in [`NewRows`](crate::mesh::NewRows).
    Own(fn(&mut World)),
    /// Not at all: new rows begin with zeros.
    None,
}

impl Prolong {
    /// The limiter of interpolations between levels, those of ghost cells included.
    #[must_use]
    pub fn limiter(self) -> SlopeLimiter {
        match self {
            Self::Limited(limiter) => limiter,
            Self::Linear => SlopeLimiter::Central,
            Self::Injection | Self::Own(_) | Self::None => SlopeLimiter::Flat,
        }
    }
}

/// How covered cells get their values from the finer level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restrict {
    /// The mean of the children's values there.
    Mean,
    /// By a system of the plugin's in `Synchronise::Restrict`, which sets the rows
    /// whose children the rank owns; the engine sends them to the owners of the parents.
    Own,
    /// Not at all.
    None,
}

/// What happens at coarse-fine faces when the finer level has reached the time of the coarser one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correct {
    /// Coarse cells take the fine fluxes in place of their own: the field has flux registers, which its step fills.
    Fluxes,
    /// Nothing.
    None,
}

/// A rule beyond a face of the domain, in both precisions.
pub trait BoundaryRule: CellRule<f32> + CellRule<f64> {}

impl<T: CellRule<f32> + CellRule<f64>> BoundaryRule for T {}

/// What stands beyond one face of the domain.
#[derive(Clone)]
pub enum BoundaryCondition {
    /// The domain continues at the opposite face.
    Periodic,
    /// Zero gradient: the state of the nearest cell.
    Outflow,
    /// Mirror image; components normal to the axis change sign.
    Reflecting,
    /// A rule for every ghost cell.
    Rule(Arc<dyn BoundaryRule>),
}

/// Declaration of a field: everything the engine needs to move it about.
///
/// ```
/// # use nestar_engine::data::FieldSpec;
/// let potential = FieldSpec { banks: 3, ..FieldSpec::cells(&["potential"]) };
/// ```
#[derive(Clone)]
pub struct FieldSpec {
    /// Components, in the order of their storage; 1 to 64.
    pub components: Vec<Component>,
    /// Where values lie. A field on faces or edges has vectors of three components, x y z; patches that share a face or an edge
    /// hold a value each.
    pub centring: Centring,
    /// Cells of a row along each axis: 8, or 4, 2 or 1 of values that are coarser than the cells. Coarser ones are exchanged and
    /// grow with the hierarchy; functions of cells, averages and interpolations are for rows of 8.
    pub side: usize,
    /// Banks of every row, at least `time_levels`. Those beyond the time levels are working space of the field's systems: they
    /// are neither exchanged nor stored nor interpolated.
    pub banks: usize,
    /// Banks that hold the state at a time: 1, or 2 for the state before and after a level's step, between which the ghost
    /// cells of the finer level are interpolated in time.
    pub time_levels: usize,
    /// How new patches get their values.
    pub prolong: Prolong,
    /// How covered cells get their values.
    pub restrict: Restrict,
    /// What happens at coarse-fine faces.
    pub correct: Correct,
    /// What averages, corrections and interpolations must know of states; `None`: all are sound, and they are interpolated as they
    /// are.
    pub states: Option<StateRules>,
    /// Whether diagnostics list the sums of the components over the domain, and their drifts.
    pub in_totals: bool,
    /// Whether snapshots hold the field and a restart reads it; what they do not hold the plugin makes anew.
    pub stored: bool,
    /// What stands beyond the faces of the domain, `[axis][side]`, where no rule is registered for the field and the deck's word;
    /// `None`: zero gradient unless a face is periodic or reflecting.
    pub boundary_conditions: Option<[[BoundaryCondition; 2]; 3]>,
}

impl FieldSpec {
    /// A cell-centred field of dimensionless scalars: one bank, interpolated with limited slopes, averaged, not
    /// flux-corrected, not in the totals, stored.
    #[must_use]
    pub fn cells(names: &[&str]) -> Self {
        Self {
            components: names.iter().map(|name| Component::scalar(name)).collect(),
            centring: Centring::Cell,
            side: PATCH,
            banks: 1,
            time_levels: 1,
            prolong: Prolong::Limited(SlopeLimiter::MonotonizedCentral),
            restrict: Restrict::Mean,
            correct: Correct::None,
            states: None,
            in_totals: false,
            stored: true,
            boundary_conditions: None,
        }
    }

    /// The field with totals of its components, and their drifts, among the diagnostics.
    #[must_use]
    pub fn in_totals(self) -> Self {
        Self {
            in_totals: true,
            ..self
        }
    }

    /// A dimensionless vector by its components on faces, otherwise as [`FieldSpec::cells`]: new faces are interpolated with
    /// limited slopes within coarse faces and by means between them, coarse faces take the mean of four, and values that two
    /// patches share keep the same bits.
    #[must_use]
    pub fn faces(names: [&str; 3]) -> Self {
        let mut spec = Self::cells(&names);
        spec.centring = Centring::Face;
        for (axis, component) in spec.components.iter_mut().enumerate() {
            component.normal_to = Some(axis);
        }
        spec
    }

    /// Per axis, the components that change sign under its mirror image, as a bit mask.
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

    /// Whether new patches are made from what surrounds their parents, copies of others' patches included.
    #[must_use]
    pub fn reads_surroundings(&self) -> bool {
        !matches!(self.prolong, Prolong::Injection | Prolong::None)
    }

    /// How rows are cut.
    #[must_use]
    pub fn shape(&self) -> RowShape {
        RowShape {
            side: self.side,
            centring: self.centring,
        }
    }

    /// Values of a row of one bank.
    #[must_use]
    pub fn row_values(&self) -> usize {
        self.components.len() * self.shape().values()
    }

    /// Bytes of a row in all banks.
    #[must_use]
    pub fn row_bytes(&self, precision: Precision) -> usize {
        self.banks * self.row_values() * precision.bytes()
    }

    /// Refuses what no pool can hold.
    ///
    /// # Errors
    /// What is wrong with the field `name`.
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
                "{levels} of {banks} banks are time levels; one or two can be, and not more than there are"
            ));
        }
        if ![1, 2, 4, PATCH].contains(&self.side) {
            return wrong(format!(
                "rows of {} cells along an axis; 1, 2, 4 or 8 can be",
                self.side
            ));
        }
        self.check_centring().or_else(|why| wrong(why.into()))
    }

    /// Refuses what pools of coarser rows cannot do.
    pub(crate) fn check_pool(&self, name: &str) -> Result<(), String> {
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

    /// What values on faces or edges cannot do.
    fn check_centring(&self) -> Result<(), &'static str> {
        let interpolated = !matches!(self.prolong, Prolong::Own(_) | Prolong::None);
        if self.centring == Centring::Cell {
            Ok(())
        } else if !self.components.len().is_multiple_of(3) {
            Err("values on faces or edges are vectors of three components")
        } else if self.correct == Correct::Fluxes || self.in_totals || self.states.is_some() {
            Err("values on faces or edges have no fluxes, totals or rules of states")
        } else if self.centring == Centring::Edge && interpolated {
            Err("values on edges are interpolated by the plugin itself or not at all")
        } else {
            Ok(())
        }
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
