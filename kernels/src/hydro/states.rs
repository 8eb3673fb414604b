//! State functions of gas for averages, corrections and interpolations.

use super::{barotropic, dual, eos, magnetic, transport};
use crate::mesh::States;
use nestar_device::{Item, Real};

/// Gas with positive density and pressure. Density, velocity and internal energy are interpolated. If round-off spoils the pressure of an
/// average or correction, density and momentum are kept and the internal energy is taken from the previous state.
pub struct GasStates;

impl States<5> for GasStates {
    const ITEMS: [&'static Item; 4] = [
        eos::is_physical::ITEM,
        eos::interpolated::ITEM,
        eos::from_interpolated::ITEM,
        eos::repaired::ITEM,
    ];

    fn physical<R: Real>(u: &[R; 5]) -> bool {
        eos::is_physical(u)
    }

    fn primitive<R: Real>(u: &[R; 5]) -> [R; 5] {
        eos::interpolated(u)
    }

    fn conserved<R: Real>(w: &[R; 5]) -> [R; 5] {
        eos::from_interpolated(w)
    }

    fn repaired<R: Real>(u: &[R; 5], w: &[R; 5]) -> [R; 5] {
        eos::repaired(u, w)
    }
}

/// Gas without energy, with a positive density. Density and velocity are interpolated.
pub struct BarotropicStates;

impl States<4> for BarotropicStates {
    const ITEMS: [&'static Item; 4] = [
        barotropic::is_physical::ITEM,
        barotropic::primitive_from_conserved::ITEM,
        barotropic::conserved_from_primitive::ITEM,
        barotropic::repaired::ITEM,
    ];

    fn physical<R: Real>(u: &[R; 4]) -> bool {
        barotropic::is_physical(u)
    }

    fn primitive<R: Real>(u: &[R; 4]) -> [R; 4] {
        barotropic::primitive_from_conserved(u)
    }

    fn conserved<R: Real>(w: &[R; 4]) -> [R; 4] {
        barotropic::conserved_from_primitive(w)
    }

    fn repaired<R: Real>(u: &[R; 4], w: &[R; 4]) -> [R; 4] {
        barotropic::repaired(u, w)
    }
}

/// Gas with dual energy ([`dual`]) in the last component. Density and internal energy are positive. Averages, corrections and
/// interpolations recompute the total energy of cold or strongly magnetised gas from the internal one; changes of other components change the
/// internal energy. There are 6 components without a magnetic field, 9 with one on cell faces and 10 with one at cell centres.
pub struct DualStates;

impl<const N: usize> States<N> for DualStates {
    const ITEMS: [&'static Item; 4] = [
        dual::is_physical::ITEM,
        dual::interpolated::ITEM,
        dual::from_interpolated::ITEM,
        dual::repaired::ITEM,
    ];
    const DEPENDENTS: Option<[&'static Item; 2]> =
        Some([dual::with_dependents::ITEM, dual::reconciled::ITEM]);
    const REMAINDER: Option<&'static Item> = if N > 6 {
        Some(dual::remainder::ITEM)
    } else {
        None
    };

    fn physical<R: Real>(u: &[R; N]) -> bool {
        dual::is_physical(u)
    }

    fn primitive<R: Real>(u: &[R; N]) -> [R; N] {
        dual::interpolated(u)
    }

    fn conserved<R: Real>(w: &[R; N]) -> [R; N] {
        dual::from_interpolated(w)
    }

    fn repaired<R: Real>(u: &[R; N], w: &[R; N]) -> [R; N] {
        dual::repaired(u, w)
    }

    fn with_dependents<R: Real>(before: &[R; N], after: &[R; N]) -> [R; N] {
        dual::with_dependents(before, after)
    }

    fn reconciled<R: Real>(u: &[R; N], thresholds: &[R; 2]) -> [R; N] {
        dual::reconciled(u, thresholds)
    }

    fn remainder<R: Real>(u: &[R; N]) -> [R; N] {
        dual::remainder(u)
    }
}

/// Gas with a magnetic field. Density, velocity, internal energy and field are interpolated; averages and corrections conserve the total
/// energy.
pub struct MagneticStates;

impl States<9> for MagneticStates {
    const ITEMS: [&'static Item; 4] = [
        magnetic::is_physical::ITEM,
        magnetic::interpolated::ITEM,
        magnetic::from_interpolated::ITEM,
        magnetic::repaired::ITEM,
    ];
    const REMAINDER: Option<&'static Item> = Some(magnetic::remainder::ITEM);

    fn physical<R: Real>(u: &[R; 9]) -> bool {
        magnetic::is_physical(u)
    }

    fn primitive<R: Real>(u: &[R; 9]) -> [R; 9] {
        magnetic::interpolated(u)
    }

    fn conserved<R: Real>(w: &[R; 9]) -> [R; 9] {
        magnetic::from_interpolated(w)
    }

    fn repaired<R: Real>(u: &[R; 9], w: &[R; 9]) -> [R; 9] {
        magnetic::repaired(u, w)
    }

    fn remainder<R: Real>(u: &[R; 9]) -> [R; 9] {
        magnetic::remainder(u)
    }
}

/// Gas with a magnetic field on cell faces; as [`MagneticStates`] without the cleaning variable.
pub struct FaceFieldStates;

impl States<8> for FaceFieldStates {
    const ITEMS: [&'static Item; 4] = [
        transport::is_physical::ITEM,
        transport::interpolated::ITEM,
        transport::from_interpolated::ITEM,
        transport::repaired::ITEM,
    ];
    const REMAINDER: Option<&'static Item> = Some(transport::remainder::ITEM);

    fn physical<R: Real>(u: &[R; 8]) -> bool {
        transport::is_physical(u)
    }

    fn primitive<R: Real>(u: &[R; 8]) -> [R; 8] {
        transport::interpolated(u)
    }

    fn conserved<R: Real>(w: &[R; 8]) -> [R; 8] {
        transport::from_interpolated(w)
    }

    fn repaired<R: Real>(u: &[R; 8], w: &[R; 8]) -> [R; 8] {
        transport::repaired(u, w)
    }

    fn remainder<R: Real>(u: &[R; 8]) -> [R; 8] {
        transport::remainder(u)
    }
}
