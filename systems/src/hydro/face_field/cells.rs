//! Means of the field over the faces of cells, which are components of the gas.

use crate::fields::{GAS_COMPONENTS, Gas, GasModel, MagneticFaces};
use crate::hydro::solver::HydroSolver;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::Real;
use nestar_engine::data::Element;
use nestar_engine::mesh::{LevelClock, NewRows, Topology, parallel};
use nestar_engine::step::{BudgetId, Budgets, FieldView, Read, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::hydro::MagneticMethod;
use nestar_kernels::hydro::dual::reconciled_energy;
use nestar_kernels::hydro::eos::is_physical;
use nestar_kernels::hydro::magnetic::magnetic_energy;
use nestar_kernels::hydro::transport::with_field;
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::exact_sum::ExactSum;
use nestar_kernels::mesh::means::mean2;
use nestar_kernels::{CELLS, PATCH};

/// Component of the internal energy of gas with a field on faces, if there is that energy.
const INTERNAL: usize = GAS_COMPONENTS + MagneticMethod::ConstrainedTransport.components();

/// Names of the components of the field.
pub(super) const NAMES: [&str; 3] = ["magnetic_x_face", "magnetic_y_face", "magnetic_z_face"];

/// Values of a row of the field: three components.
pub(super) const ROW: usize = 3 * Centring::Face.values();

/// Number of patches that are treated together.
pub(super) const ROWS_AT_A_TIME: usize = 256;

/// Returns the mean of component `c` of a row of the field over the two faces of a cell.
pub(super) fn mean<R: Real>(faces: &[R], c: usize, cell: usize) -> R {
    let [below, above] = faces_of(c, cell);
    mean2(faces[below], faces[above])
}

/// Returns the indices in a row of the lower and the upper face of a cell along axis `c`.
pub(super) fn faces_of(c: usize, cell: usize) -> [usize; 2] {
    let at = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
    let mut above = at;
    above[c] += 1;
    [at, above].map(|at| c * Centring::Face.values() + Centring::Face.index(c, at))
}

/// Sets the field in the cells of a row of the gas to the means over the faces. The total energy stays, unless no pressure would be left: then
/// the energy of the gas does, or with the dual-energy formalism the internal energy. `magnetic` is its threshold, if there is that energy:
/// the pressure is lost below this fraction of the magnetic energy. Returns the energy density that is gained.
fn update_row<R: Real>(gas: &mut [R], faces: &[R], magnetic: Option<f64>) -> ExactSum {
    let mut gained = ExactSum::default();
    for cell in 0..CELLS {
        let u: [R; 8] = std::array::from_fn(|c| gas[c * CELLS + cell]);
        let field = [0, 1, 2].map(|c| mean(faces, c, cell));
        let mut new = with_field(&u, &field);
        let five = [new[0], new[1], new[2], new[3], new[4]];
        let energy = match magnetic {
            Some(magnetic) => {
                let thresholds = [R::lit(0.0), R::lit(magnetic)];
                let internal = gas[INTERNAL * CELLS + cell];
                reconciled_energy(&five, internal, magnetic_energy(&field), &thresholds)
            }
            None if is_physical(&five) => new[4],
            None => u[4],
        };
        gained.add(energy.to_f64() - new[4].to_f64());
        new[4] = energy;
        for c in 4..8 {
            gas[c * CELLS + cell] = new[c];
        }
    }
    gained
}

/// Changes rows of the gas on a level by a function of the gas and of the field on faces, a view of that level. Returns its results.
pub(super) fn change_rows<R: Element, T: Send>(
    (level, rows): (usize, &[u32]),
    gas: &mut Write<Gas>,
    field: &FieldView<MagneticFaces>,
    change: impl Fn(&mut [R], &[R]) -> T + Sync,
) -> Result<Vec<T>, Error> {
    // other ranks may have rows
    gas.change_rows_on(level, rows);
    let mut results = Vec::with_capacity(rows.len());
    let length = gas.own_on(level).components() * CELLS;
    for rows in rows.chunks(ROWS_AT_A_TIME) {
        let mut values = gas.own_on(level).host::<R>(rows)?;
        let faces = field.host::<R>(rows)?;
        let mut patches: Vec<_> = values.chunks_exact_mut(length).collect();
        let change = |n: usize, gas: &mut &mut [R]| change(gas, &faces[n * ROW..(n + 1) * ROW]);
        results.extend(parallel::map_mut(&mut patches, change));
        gas.store_on(level, rows, &values)?;
    }
    Ok(results)
}

/// The account of the energy that gas gains where a change of the field would leave it no pressure.
#[derive(Resource)]
pub(super) struct Heat(pub BudgetId);

/// The account, the gas, and its solver on a device, if there is one.
#[derive(SystemParam)]
pub(super) struct CellFieldUpdate<'w> {
    account: Res<'w, Heat>,
    model: Res<'w, GasModel>,
    budgets: ResMut<'w, Budgets>,
    solver: ResMut<'w, HydroSolver>,
}

/// Gives the cells of some rows the means over the faces. Adds to the account what the gas of leaf cells gains.
fn update_cell_fields<R: Element>(
    (level, rows): (usize, &[u32]),
    topology: &Topology,
    gas: &mut Write<Gas>,
    field: &FieldView<MagneticFaces>,
    update: &mut CellFieldUpdate,
) -> Result<(), Error> {
    let left;
    let mut rows = rows;
    if let HydroSolver::Device(solver) = &mut *update.solver {
        // cells that would lose their pressure are rare
        left = solver.update_cell_fields(rows, &gas.change_rows_on(level, rows), field)?;
        rows = &left;
    }
    let magnetic = update.model.dual.map(|dual| dual.magnetic);
    let row = |gas: &mut [R], faces: &[R]| update_row(gas, faces, magnetic);
    let gained = change_rows::<R, _>((level, rows), gas, field, row)?;
    let volume = topology.domain.cell_volume(level);
    let mut sum = ExactSum::default();
    for (_, gained) in (rows.iter().zip(&gained)).filter(|(row, _)| topology.is_leaf(**row)) {
        sum.add(volume * gained.value());
    }
    update.budgets.add_sums(update.account.0, level, [sum]);
    Ok(())
}

/// Gives the cells of refined patches and of their neighbours the means over the faces, which were averaged and corrected.
pub(super) fn update_coarse_cells(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    mut gas: Write<Gas>,
    field: Read<MagneticFaces>,
    mut update: CellFieldUpdate,
) -> Result<(), Error> {
    let rows = topology.rows(clock.level).iter().copied();
    let rows: Vec<u32> = rows
        .filter(|&row| is_near_refined(&topology, row))
        .collect();
    in_precision!(gas.precision(), R =>
        update_cell_fields::<R>((clock.level, &rows), &topology, &mut gas, &field.own(), &mut update))
}

/// Returns `true` if an entry of a table of neighbours is a refined patch.
pub(super) fn is_refined(topology: &Topology, neighbour: i32) -> bool {
    u32::try_from(neighbour).is_ok_and(|row| !topology.is_leaf(row))
}

/// Returns `true` if a patch or one of its 26 neighbours is refined.
pub(super) fn is_near_refined(topology: &Topology, row: u32) -> bool {
    let mut around = topology.neighbours(row).iter();
    around.any(|&neighbour| is_refined(topology, neighbour))
}

/// Gives the cells of new patches the means over the faces.
pub(super) fn update_new_cells(
    new: Res<NewRows>,
    topology: Res<Topology>,
    mut gas: Write<Gas>,
    field: Read<MagneticFaces>,
    mut update: CellFieldUpdate,
) -> Result<(), Error> {
    in_precision!(gas.precision(), R =>
        update_cell_fields::<R>((new.level, &new.rows), &topology, &mut gas, &field.own_on(new.level), &mut update))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gas at rest with the thermal energy 0.15 in a field of 10 along x, and faces with another field.
    fn gained(field: f64, magnetic: Option<f64>) -> (f64, f64) {
        let cell = [1.0, 0.0, 0.0, 0.0, 0.15, 10.0, 0.0, 0.0, 0.15];
        let mut gas: Vec<f64> = cell.iter().flat_map(|u| [*u; CELLS]).collect();
        let mut faces = vec![0.0; ROW];
        faces[..Centring::Face.values()].fill(field);
        let gained = update_row(&mut gas, &faces, magnetic).value();
        assert_eq!(gas[5 * CELLS], field);
        assert_eq!(gas[INTERNAL * CELLS], 0.15);
        (gas[4 * CELLS], gained / CELLS as f64)
    }

    /// A stronger field of the faces takes more than the pressure: the gas keeps its internal energy, which is counted. A weaker one heats it.
    #[test]
    fn gas_keeps_its_internal_energy_where_the_field_of_the_faces_takes_it() {
        let (energy, heat) = gained(10.1, Some(1e-3));
        assert!(energy == 0.15 && (heat - 1.005).abs() < 1e-12, "{heat}");
        // less than a thousandth of the magnetic energy would be left
        let (energy, heat) = gained(10.011, Some(1e-3));
        assert!(energy == 0.15 && (heat - 0.1100605).abs() < 1e-12, "{heat}");
        let (energy, heat) = gained(10.011, None);
        assert!((energy - 0.0399395).abs() < 1e-12 && heat == 0.0);
        for magnetic in [Some(1e-3), None] {
            let (energy, heat) = gained(9.9, magnetic);
            assert!((energy - 1.145).abs() < 1e-12 && heat == 0.0, "{energy}");
        }
    }
}
