//! Numbers that pools hold.

use super::Precision;
use super::spec::{BoundaryCondition, FieldSpec};
use nestar_device::Real;
use nestar_kernels::mesh::{Boundaries, FaceRule, StateFunctions, StateRules};

/// Floating-point types that a pool may hold.
pub trait Element: Real + bytemuck::Pod {
    /// The precision that this type has.
    const PRECISION: Precision;
    /// What the rules say in this precision.
    fn states(rules: &StateRules) -> StateFunctions<Self>;
    /// What stands beyond a face of the domain, in this precision.
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

/// The rules of the field `spec` with `beyond` beyond the faces of the domain, `[axis][side]`.
pub(super) fn boundaries<R: Element>(
    spec: &FieldSpec,
    beyond: &[[BoundaryCondition; 2]; 3],
) -> Boundaries<R> {
    Boundaries {
        faces: beyond.each_ref().map(|sides| sides.each_ref().map(R::face)),
        normal: spec.normal_masks(),
    }
}
