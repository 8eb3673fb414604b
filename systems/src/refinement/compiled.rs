//! A criterion at work: which cells of a patch it flags.

use super::columns::{BLOCK, FieldFormula, GHOSTS, PatchView, Quantity};
use super::config::{Criterion, PerLevel};
use nestar_engine::field::{Element, FaultBox};
use nestar_kernels::PATCH;
use nestar_kernels::criteria::region::{CellPlaces, meets_box, meets_sphere};
use nestar_kernels::criteria::{
    CellFlags, GhostedField, above, below, gradient, jeans, lohner, vorticity,
};
use nestar_kernels::mesh::cell_centre;

/// A criterion with its field compiled.
pub(super) struct Compiled {
    pub criterion: Criterion,
    pub field: Option<FieldFormula>,
}

impl Compiled {
    /// The cells of a patch that this criterion flags.
    pub fn flags<R: Element>(
        &self,
        patch: &PatchView<R>,
        fields: &mut [Vec<R>; 3],
        faults: &FaultBox,
    ) -> CellFlags {
        let level = patch.level;
        match &self.criterion {
            Criterion::Box {
                left,
                right,
                level: finest,
            } => with(below_finest(*finest, level), |()| {
                meets_box(&places(patch), *left, *right)
            }),
            Criterion::Sphere {
                centre,
                radius,
                level: finest,
            } => with(below_finest(*finest, level), |()| {
                meets_sphere(&places(patch), *centre, *radius)
            }),
            Criterion::Vorticity { threshold } => {
                with(threshold.at(level), |t| vortical(patch, fields, t))
            }
            Criterion::Jeans { threshold, gravity } => with(threshold.at(level), |t| {
                unresolved_jeans(patch, fields, *gravity, t)
            }),
            _ => self.field_flags(patch, &mut fields[0], faults),
        }
    }

    /// The cells that a criterion on one field flags.
    fn field_flags<R: Element>(
        &self,
        patch: &PatchView<R>,
        values: &mut Vec<R>,
        faults: &FaultBox,
    ) -> CellFlags {
        let Some(field) = &self.field else {
            return CellFlags::default();
        };
        field.evaluate(patch, values, faults);
        let field = GhostedField::new(values, GHOSTS);
        let at = |threshold: &PerLevel<f64>| threshold.at(patch.level);
        match &self.criterion {
            Criterion::Threshold {
                threshold,
                below: true,
                ..
            } => with(at(threshold), |t| below(&field, R::lit(t))),
            Criterion::Threshold { threshold, .. } => {
                with(at(threshold), |t| above(&field, R::lit(t)))
            }
            Criterion::Gradient { threshold, .. } => {
                with(at(threshold), |t| gradient(&field, R::lit(t)))
            }
            Criterion::Lohner {
                threshold, filter, ..
            } => with(at(threshold), |t| {
                lohner(&field, R::lit(t), R::lit(*filter))
            }),
            // a formula of its own: any value but 0
            _ => above(&field, R::lit(0.0)) | below(&field, R::lit(0.0)),
        }
    }
}

/// Cells with much vorticity.
fn vortical<R: Element>(
    patch: &PatchView<R>,
    fields: &mut [Vec<R>; 3],
    threshold: f64,
) -> CellFlags {
    derive(patch, [0, 1, 2].map(Quantity::Velocity), fields);
    let [x, y, z] = &*fields;
    let velocity = [x, y, z].map(|v| GhostedField::new(v, GHOSTS));
    vorticity(
        [&velocity[0], &velocity[1], &velocity[2]],
        patch.cell_width.map(R::lit),
        R::lit(threshold),
    )
}

/// Cells too wide for their Jeans length.
fn unresolved_jeans<R: Element>(
    patch: &PatchView<R>,
    fields: &mut [Vec<R>; 3],
    gravity: f64,
    cells: f64,
) -> CellFlags {
    let density = Quantity::Component(0);
    derive(patch, [density, Quantity::SoundSpeed, density], fields);
    let width = patch.cell_width.iter().copied().fold(0.0, f64::max);
    let [rho, c_s] = [0, 1].map(|n| GhostedField::new(&fields[n], GHOSTS));
    jeans(&rho, &c_s, R::lit(gravity), R::lit(width), R::lit(cells))
}

/// No flags on levels for which the criterion gives no threshold.
fn with<T>(threshold: Option<T>, flags: impl FnOnce(T) -> CellFlags) -> CellFlags {
    threshold.map_or_else(CellFlags::default, flags)
}

fn below_finest(finest: Option<u32>, level: usize) -> Option<()> {
    finest
        .is_none_or(|finest| level < finest as usize)
        .then_some(())
}

fn derive<R: Element>(patch: &PatchView<R>, quantities: [Quantity; 3], fields: &mut [Vec<R>; 3]) {
    for (field, quantity) in fields.iter_mut().zip(quantities) {
        field.clear();
        field.extend((0..BLOCK).map(|cell| patch.quantity(quantity, cell)));
    }
}

fn places<R>(patch: &PatchView<R>) -> CellPlaces {
    let b = &patch.block;
    let centres = std::array::from_fn(|a| {
        std::array::from_fn::<f64, PATCH, _>(|c| {
            let i = b.origin[a] + (GHOSTS + c) as i32;
            cell_centre(i, b.domain_cells[a], b.left_edge[a], b.right_edge[a])
        })
    });
    CellPlaces {
        centres,
        widths: patch.cell_width,
    }
}
