//! A remark on gas that is denser than the network is valid for (docs/chemistry.md, "Range").

use super::ChemistrySetup;
use crate::fields::Gas;
use crate::order::Limit;
use bevy_ecs::prelude::*;
use nestar_device::{Real, device};
use nestar_engine::comm::Comm;
use nestar_engine::data::LevelRows;
use nestar_engine::step::{Read, Remarks};
use nestar_engine::{Engine, Error};
use nestar_kernels::hydro::Conserved;

/// Hydrogen nuclei per cm^3 above which lines of H2 are opaque (Ripamonti & Abel 2004, MNRAS 348, 1019).
const OPAQUE_LINES: f64 = 1e10;

/// Largest density since the previous root step, and whether the run has been told.
#[derive(Resource)]
struct DensityRange {
    /// Hydrogen nuclei per cm^3 per code unit of density.
    per_density: f64,
    /// Largest number of hydrogen nuclei per cm^3 on this rank.
    densest: f64,
    is_told: bool,
}

/// Registers the remark for networks with H2.
pub(super) fn register(sim: &mut Engine, setup: &ChemistrySetup) {
    if setup.config.species < 9 {
        return;
    }
    sim.world.insert_resource(DensityRange {
        per_density: setup.cells.hydrogen * setup.cells.per_cm3,
        densest: 0.0,
        is_told: false,
    });
    sim.system_in(Limit::Propose, compare_density_with_range);
}

#[device]
fn specific_volume<R: Real>(u: Conserved<R>) -> R {
    1.0 / u.density
}

/// Measures the density of the level; on the root level it tells the run, once, that some gas is too dense.
fn compare_density_with_range(
    rows: LevelRows,
    gas: Read<Gas>,
    mut range: ResMut<DensityRange>,
    mut remarks: ResMut<Remarks>,
    others: Comm,
) -> Result<(), Error> {
    if range.is_told || rows.is_estimate() {
        return Ok(());
    }
    let density = range.per_density / gas.reduce::<specific_volume>(&rows, (), &[]);
    range.densest = range.densest.max(density);
    if rows.level() > 0 {
        return Ok(());
    }
    // positive numbers have the order of their bits
    let densest = f64::from_bits(others.max(range.densest.to_bits())?);
    if densest > OPAQUE_LINES {
        range.is_told = true;
        remarks.0.push(format!(
            "note: [chemistry] reaches {densest:.1e} hydrogen nuclei per cm^3; above {OPAQUE_LINES:e} lines of H2 are opaque, which the \
             network does not include: the gas cools too fast"
        ));
    }
    Ok(())
}
