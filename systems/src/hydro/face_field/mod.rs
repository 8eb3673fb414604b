//! Magnetic field on cell faces.

mod cells;
mod checks;
mod divergence;
mod initial;

use super::initial::fill_initial_gas;
use crate::fields::MagneticFaces;
use crate::order::{Initialise, Regrid, Synchronise};
use nestar_engine::comm::DiagnosticColumns;
use nestar_engine::data::{Correct, FieldSpec, Prolong, Restrict};
use nestar_engine::{Engine, Error};
use nestar_kernels::mesh::prolong::SlopeLimiter;

/// Returns the field on faces.
pub(super) fn spec(prolongation: SlopeLimiter) -> FieldSpec {
    let mut spec = FieldSpec {
        banks: 2,
        time_levels: 2,
        prolong: Prolong::Limited(prolongation),
        restrict: Restrict::Mean,
        correct: Correct::Circulations,
        ..FieldSpec::faces(cells::NAMES)
    };
    for (component, axis) in spec.components.iter_mut().zip(["x", "y", "z"]) {
        component.units = "(mass/length)**0.5/time".into();
        component.long_name =
            format!("magnetic field on faces along {axis}, over the square root of 4 pi");
    }
    spec
}

/// Registers the field and its systems, after the gas.
pub(super) fn register(sim: &mut Engine, prolongation: SlopeLimiter) -> Result<(), Error> {
    sim.register_field::<MagneticFaces>(spec(prolongation))?;
    let heat = sim.register_budget("mhd", &["heat"])?;
    sim.world.insert_resource(cells::Heat(heat));
    DiagnosticColumns::set_units(&mut sim.world, "mhd_heat", "mass*length**2/time**2");
    sim.system_in(Synchronise::Restrict, initial::fill_faces_beside_refined)
        .in_sequence();
    sim.system_in(Synchronise::Correct, cells::update_coarse_cells)
        .in_sequence();
    sim.system_in(Regrid::Complete, cells::update_new_cells);
    sim.system_in(Initialise::State, initial::fill_faces)
        .after(fill_initial_gas);
    DiagnosticColumns::add_numbers(&mut sim.world, ["divergence_error"], divergence::column);
    sim.check_initial(checks::require_initial_field);
    sim.check_changed(checks::require_restored_field);
    Ok(())
}
