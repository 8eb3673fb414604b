//! Magnetic field on cell faces: its initial values, and the means in cells that the gas has.

use super::device::GasDevice;
use super::initial::{
    InitialGas, InitialState, PrimitiveColumns, Rule, fill_initial_gas, symmetric_sum,
};
use super::solver::HydroSolver;
use crate::fields::{GAS_COMPONENTS, Gas, GasModel, MagneticFaces};
use crate::order::{Initialise, Regrid, Synchronise};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::Real;
use nestar_engine::comm::{DiagnosticColumns, Ranks, RanksError, Reduction};
use nestar_engine::data::{Correct, Element, FieldSpec, Pool, Precision, Prolong, Restrict};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{LevelClock, NewRows, Topology, parallel};
use nestar_engine::step::{BudgetId, Budgets, FieldView, Read, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::hydro::eos::is_physical;
use nestar_kernels::hydro::transport::with_field;
use nestar_kernels::mesh::circulations::circulated;
use nestar_kernels::mesh::exact_sum::ExactSum;
use nestar_kernels::mesh::means::mean2;
use nestar_kernels::mesh::prolong::SlopeLimiter;
use nestar_kernels::mesh::{Centring, direction};
use nestar_kernels::{CELLS, PATCH};

/// Values of a row of the field: three components.
const ROW: usize = 3 * Centring::Face.values();

/// Number of patches that are treated together.
const ROWS_AT_A_TIME: usize = 256;

/// Returns the field on faces.
pub(super) fn spec(prolongation: SlopeLimiter) -> FieldSpec {
    let mut spec = FieldSpec {
        banks: 2,
        time_levels: 2,
        prolong: Prolong::Limited(prolongation),
        restrict: Restrict::Mean,
        correct: Correct::Circulations,
        ..FieldSpec::faces(["magnetic_x_face", "magnetic_y_face", "magnetic_z_face"])
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
    sim.world.insert_resource(Heat(heat));
    DiagnosticColumns::set_units(&mut sim.world, "mhd_heat", "mass*length**2/time**2");
    sim.system_in(Synchronise::Restrict, fill_faces_beside_refined)
        .in_sequence();
    sim.system_in(Synchronise::Correct, match_coarse_cells)
        .in_sequence();
    sim.system_in(Regrid::Complete, match_new_cells);
    sim.system_in(Initialise::State, fill_faces)
        .after(fill_initial_gas);
    DiagnosticColumns::add_numbers(&mut sim.world, ["divergence_error"], |world| {
        world.resource_scope(|world, mut solver: Mut<HydroSolver>| {
            let device = match &mut *solver {
                HydroSolver::Device(device) => Some(&mut **device),
                _ => None,
            };
            Ok(vec![divergence_error(world, device)?])
        })
    });
    sim.check_initial(require_no_divergence);
    Ok(())
}

// ---- means in cells

/// Returns the mean of component `c` of a row of the field over the two faces of a cell.
fn mean<R: Real>(faces: &[R], c: usize, cell: usize) -> R {
    let [below, above] = faces_of(c, cell);
    mean2(faces[below], faces[above])
}

/// Returns the indices in a row of the lower and the upper face of a cell along axis `c`.
fn faces_of(c: usize, cell: usize) -> [usize; 2] {
    let at = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
    let mut above = at;
    above[c] += 1;
    [at, above].map(|at| c * Centring::Face.values() + Centring::Face.index(c, at))
}

/// Sets the field in the cells of a row of the gas to the means over the faces. The total energy stays, unless no pressure would be left: then
/// the energy of the gas does. Returns the energy density that is gained.
fn match_row<R: Real>(gas: &mut [R], faces: &[R]) -> ExactSum {
    let mut gained = ExactSum::default();
    for cell in 0..CELLS {
        let u: [R; 8] = std::array::from_fn(|c| gas[c * CELLS + cell]);
        let field = [0, 1, 2].map(|c| mean(faces, c, cell));
        let mut new = with_field(&u, &field);
        if !is_physical(&[new[0], new[1], new[2], new[3], new[4]]) {
            gained.add(u[4].to_f64() - new[4].to_f64());
            new[4] = u[4];
        }
        for c in 4..8 {
            gas[c * CELLS + cell] = new[c];
        }
    }
    gained
}

/// Changes rows of the gas on a level by a function of the gas and of the field on faces, a view of that level. Returns its results.
fn change_rows<R: Element, T: Send>(
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
struct Heat(BudgetId);

/// The account, and the solver on a device, if there is one.
#[derive(SystemParam)]
struct Matching<'w> {
    account: Res<'w, Heat>,
    budgets: ResMut<'w, Budgets>,
    solver: ResMut<'w, HydroSolver>,
}

/// Gives the cells of some rows the means over the faces. Adds to the account what the gas of leaf cells gains.
fn match_rows<R: Element>(
    (level, rows): (usize, &[u32]),
    topology: &Topology,
    gas: &mut Write<Gas>,
    field: &FieldView<MagneticFaces>,
    matching: &mut Matching,
) -> Result<(), Error> {
    let left;
    let mut rows = rows;
    if let HydroSolver::Device(solver) = &mut *matching.solver {
        // cells that would lose their pressure are rare
        left = solver.match_rows(rows, &gas.change_rows_on(level, rows), field)?;
        rows = &left;
    }
    let gained = change_rows::<R, _>((level, rows), gas, field, match_row)?;
    let volume = topology.domain.cell_volume(level);
    let mut sum = ExactSum::default();
    for (_, gained) in (rows.iter().zip(&gained)).filter(|(row, _)| topology.is_leaf(**row)) {
        sum.add(volume * gained.value());
    }
    matching.budgets.add_sums(matching.account.0, level, [sum]);
    Ok(())
}

/// Gives the cells of refined patches and of their neighbours the means over the faces, which were averaged and corrected.
fn match_coarse_cells(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    mut gas: Write<Gas>,
    field: Read<MagneticFaces>,
    mut matching: Matching,
) -> Result<(), Error> {
    let rows = topology.rows(clock.level).iter().copied();
    let rows: Vec<u32> = rows
        .filter(|&row| is_near_refined(&topology, row))
        .collect();
    in_precision!(gas.precision(), R =>
        match_rows::<R>((clock.level, &rows), &topology, &mut gas, &field.own(), &mut matching))
}

/// Returns `true` if a patch or one of its 26 neighbours is refined.
fn is_near_refined(topology: &Topology, row: u32) -> bool {
    let refined = |n: &i32| u32::try_from(*n).is_ok_and(|n| !topology.is_leaf(n));
    topology.neighbours(row).iter().any(refined)
}

/// Gives the cells of new patches the means over the faces.
fn match_new_cells(
    new: Res<NewRows>,
    topology: Res<Topology>,
    mut gas: Write<Gas>,
    field: Read<MagneticFaces>,
    mut matching: Matching,
) -> Result<(), Error> {
    in_precision!(gas.precision(), R =>
        match_rows::<R>((new.level, &new.rows), &topology, &mut gas, &field.own_on(new.level), &mut matching))
}

// ---- initial values

/// Fills the faces of new patches with the initial field, and their cells with its means.
fn fill_faces(
    initial: Res<InitialGas>,
    model: Res<GasModel>,
    topology: Res<Topology>,
    new: Res<NewRows>,
    mut gas: Write<Gas>,
    mut field: Write<MagneticFaces>,
) -> Result<(), Error> {
    let fill = FaceFill::new(&*initial.0, &model, &topology, new.level);
    in_precision!(gas.precision(), R => fill.rows::<R>(&new.rows, &mut gas, &mut field))
}

/// Fills the faces of leaf patches beside refined ones of the initial hierarchy again: the edges of fine patches are known only now.
fn fill_faces_beside_refined(
    initial: Res<InitialGas>,
    model: Res<GasModel>,
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    mut gas: Write<Gas>,
    mut field: Write<MagneticFaces>,
) -> Result<(), Error> {
    // the initial hierarchy is synchronised without a step
    if clock.dt > 0.0 {
        return Ok(());
    }
    let rows = topology.rows(clock.level).iter().copied();
    let beside = |row: &u32| topology.is_leaf(*row) && is_near_refined(&topology, *row);
    let rows: Vec<u32> = rows.filter(beside).collect();
    let fill = FaceFill::new(&*initial.0, &model, &topology, clock.level);
    in_precision!(gas.precision(), R => fill.rows::<R>(&rows, &mut gas, &mut field))
}

/// Data for filling the faces of patches of a level.
struct FaceFill<'a> {
    initial: &'a dyn InitialState,
    model: &'a GasModel,
    topology: &'a Topology,
    level: usize,
    /// Samples across a face.
    rule: Rule,
    /// Samples along an edge.
    along: Rule,
}

/// Number of Gauss-Legendre points on an edge.
const EDGE_POINTS: usize = 3;

impl<'a> FaceFill<'a> {
    fn new(
        initial: &'a dyn InitialState,
        model: &'a GasModel,
        topology: &'a Topology,
        level: usize,
    ) -> Self {
        Self {
            initial,
            model,
            topology,
            level,
            rule: Rule::new(initial.samples()),
            along: Rule::new(EDGE_POINTS),
        }
    }

    fn rows<R: Element>(
        &self,
        rows: &[u32],
        gas: &mut Write<Gas>,
        field: &mut Write<MagneticFaces>,
    ) -> Result<(), Error> {
        field.change_rows_on(self.level, rows);
        for rows in rows.chunks(ROWS_AT_A_TIME) {
            let mut faces = vec![R::lit(0.0); rows.len() * ROW];
            let mut patches: Vec<_> = faces.chunks_exact_mut(ROW).collect();
            parallel::map_mut(&mut patches, |n, out| self.row(rows[n], out));
            field.store_on(self.level, rows, &faces)?;
        }
        // the energy of the gas does not depend on the field
        let set = |gas: &mut [R], faces: &[R]| {
            for (c, cell) in (0..3).flat_map(|c| (0..CELLS).map(move |cell| (c, cell))) {
                gas[(GAS_COMPONENTS + c) * CELLS + cell] = mean(faces, c, cell);
            }
        };
        change_rows::<R, ()>((self.level, rows), gas, &field.own_on(self.level), set)?;
        Ok(())
    }

    /// Computes the faces of a patch.
    fn row<R: Real>(&self, row: u32, out: &mut [R]) {
        let potential: Vec<Vec<f64>> = (0..3).map(|c| self.edges(row, c)).collect();
        let width = self.topology.domain.cell_width(self.level);
        for (c, out) in out.chunks_exact_mut(Centring::Face.values()).enumerate() {
            let [a, b] = [(c + 1) % 3, (c + 2) % 3];
            let rates = [-1.0 / width[a], -1.0 / width[b]];
            let edge = |axis: usize, at: [usize; 3]| {
                let along = potential[axis].get(Centring::Edge.index(axis, at));
                along.copied().unwrap_or(0.0)
            };
            for ((n, out), own) in out.iter_mut().enumerate().zip(self.means(row, c)) {
                let at = place(Centring::Face, c, n);
                let both = |axis: usize, across: usize| {
                    let mut above = at;
                    above[across] += 1;
                    [edge(axis, at), edge(axis, above)]
                };
                *out = R::lit(circulated(own, &both(a, b), &both(b, a), &rates));
            }
        }
    }

    /// Returns the means of the field of the initial state over the faces of component `c`.
    fn means(&self, row: u32, c: usize) -> Vec<f64> {
        let (places, weights) = (&self.rule.places, &self.rule.weights_along);
        let s = places.len();
        let samples = s * s;
        let values = Centring::Face.values();
        let mut points: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::new());
        for n in 0..values * samples {
            let (at, sample) = (place(Centring::Face, c, n / samples), n % samples);
            let within = [sample % s, sample / s];
            for axis in 0..3 {
                let offset = match (axis + 3 - c) % 3 {
                    0 => 0.0,
                    across => 0.5 + places[within[across - 1]],
                };
                points[axis].push(self.coordinate(row, axis, at[axis] as f64 + offset));
            }
        }
        let mut columns = PrimitiveColumns::at(points, self.model);
        columns.level = self.level;
        self.initial.fill(&mut columns);
        let mean = |face: &[f64]| {
            let weight = |n: usize| weights[n % s] * weights[n / s];
            let mut terms: Vec<f64> = (0..samples).map(|n| weight(n) * face[n]).collect();
            symmetric_sum(&mut terms)
        };
        columns.magnetic[c]
            .chunks_exact(samples)
            .map(mean)
            .collect()
    }

    /// Returns the means of the vector potential over the edges along axis `c`; empty if that component is 0. An edge that a refined patch
    /// touches has the mean of the fine edges.
    fn edges(&self, row: u32, c: usize) -> Vec<f64> {
        let count = Centring::Edge.values();
        let s = self.along.places.len();
        let mut points: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::new());
        let mut parts = Vec::with_capacity(count);
        for n in 0..count {
            let at = place(Centring::Edge, c, n);
            let halves = if self.touches_refined(row, c, at) {
                2
            } else {
                1
            };
            parts.push(halves);
            for (half, sample) in (0..halves).flat_map(|h| (0..s).map(move |sample| (h, sample))) {
                let middle = (f64::from(half) + 0.5) / f64::from(halves);
                let along = middle + self.along.places[sample] / f64::from(halves);
                for axis in 0..3 {
                    let offset = if axis == c { along } else { 0.0 };
                    points[axis].push(self.coordinate(row, axis, at[axis] as f64 + offset));
                }
            }
        }
        let Some(values) = self.initial.vector_potential(c, &points) else {
            return Vec::new();
        };
        let mut values = values.chunks_exact(s);
        let mut mean = || {
            let samples = values.next().unwrap_or_default().iter();
            let terms = samples
                .zip(&self.along.weights_along)
                .map(|(a, weight)| weight * a);
            symmetric_sum(&mut terms.collect::<Vec<_>>())
        };
        let edge = |halves: i32| match halves {
            1 => mean(),
            _ => mean2(mean(), mean()),
        };
        parts.into_iter().map(edge).collect()
    }

    /// Returns a coordinate, by its distance in cells from the lower end of a patch.
    fn coordinate(&self, row: u32, axis: usize, cells: f64) -> f64 {
        let domain = &self.topology.domain;
        let origin = f64::from(self.topology.origin(row)[axis]);
        domain.left_edge[axis] + (origin + cells) * domain.cell_width(self.level)[axis]
    }

    /// Returns `true` if an edge of a patch along axis `c` is one of a refined patch, too.
    fn touches_refined(&self, row: u32, c: usize, at: [usize; 3]) -> bool {
        let [a, b] = [(c + 1) % 3, (c + 2) % 3];
        let beyond = |axis: usize| i32::from(at[axis] == PATCH) - i32::from(at[axis] == 0);
        let around = self.topology.neighbours(row);
        [(true, false), (false, true), (true, true)]
            .iter()
            .any(|&(first, second)| {
                let mut step = [0; 3];
                step[a] = if first { beyond(a) } else { 0 };
                step[b] = if second { beyond(b) } else { 0 };
                let is_beyond = (!first || step[a] != 0) && (!second || step[b] != 0);
                let beside = u32::try_from(around[direction(step)]);
                is_beyond && beside.is_ok_and(|n| !self.topology.is_leaf(n))
            })
    }
}

/// Returns the place of value `n` of component `c` of a row.
fn place(centring: Centring, c: usize, n: usize) -> [usize; 3] {
    let [x, y, _] = centring.lengths(c, [PATCH; 3]);
    [n % x, n / x % y, n / (x * y)]
}

// ---- divergence

/// Returns the largest divergence times the smallest cell width in leaf cells of this rank, and the largest field on faces; infinity for what is
/// not a number. `solver` is that of the device with the field, if it is given.
fn extremes(world: &World, mut solver: Option<&mut GasDevice>) -> Result<[f64; 2], RanksError> {
    let topology = world.resource::<Topology>();
    let field = Pool::<MagneticFaces>::of(world);
    let mut extremes = [0.0f64; 2];
    for level in 0..=topology.finest() {
        let part = parts_of(topology.domain.cell_width(level));
        let rows = topology.rows(level).iter().copied();
        let leaves: Vec<u32> = rows.filter(|&row| topology.is_leaf(row)).collect();
        let of_level = match &mut solver {
            Some(solver) => {
                let bank = field.device().bank(field.current(level));
                solver.face_extremes(&leaves, bank, part)?
            }
            None => in_precision!(field.precision(), R =>
                extremes_on_host::<R>(field, level, &leaves, part))?,
        };
        extremes = [0, 1].map(|n| extremes[n].max(of_level[n]));
    }
    Ok(extremes)
}

/// Returns the smallest cell width over that along each axis.
fn parts_of(width: [f64; 3]) -> [f64; 3] {
    let smallest = width[0].min(width[1]).min(width[2]);
    width.map(|w| smallest / w)
}

/// Returns [`extremes`] of some rows, computed on the host.
fn extremes_on_host<R: Element>(
    field: &Pool<MagneticFaces>,
    level: usize,
    rows: &[u32],
    part: [f64; 3],
) -> Result<[f64; 2], DeviceError> {
    let mut extremes = [0.0f64; 2];
    for rows in rows.chunks(ROWS_AT_A_TIME) {
        let values = field.host::<R>(level, rows)?;
        let faces: Vec<&[R]> = values.chunks_exact(ROW).collect();
        let each = parallel::map(&faces, |faces| extremes_of(faces, part));
        extremes = [0, 1].map(|n| {
            each.iter()
                .fold(extremes[n], |most, found| most.max(found[n]))
        });
    }
    Ok(extremes)
}

/// Returns the largest divergence times the smallest cell width in the cells of a row, and the largest field; `part` is [`parts_of`] the widths.
fn extremes_of<R: Real>(faces: &[R], part: [f64; 3]) -> [f64; 2] {
    let divergence = (0..CELLS).map(|cell| {
        let through = |c: usize| {
            let [below, above] = faces_of(c, cell).map(|n| faces[n].to_f64());
            (above - below) * part[c]
        };
        ((through(0) + through(1)) + through(2)).abs()
    });
    let strength = faces.iter().map(|b| b.to_f64().abs());
    [divergence.fold(0.0, larger), strength.fold(0.0, larger)]
}

/// Returns the larger number, or infinity if the second is not a finite number.
fn larger(a: f64, b: f64) -> f64 {
    match b {
        _ if b <= a => a,
        _ if b < f64::INFINITY => b,
        _ => f64::INFINITY,
    }
}

/// Returns the largest divergence times the cell width over the largest field on faces, among all ranks; 0 without a field. Collective.
fn divergence_error(world: &World, solver: Option<&mut GasDevice>) -> Result<f64, RanksError> {
    let own = extremes(world, solver)?;
    // numbers that are not negative are in the order of their bits
    let mut keys = own.map(f64::to_bits);
    let ranks = world.resource::<Ranks>().communicator();
    ranks.reduce(Reduction::Max, &mut keys)?;
    let [divergence, field] = keys.map(f64::from_bits);
    Ok(match field {
        0.0 => 0.0,
        _ => divergence / field,
    })
}

/// Rejects an initial field with a divergence, except in previews, which do not hold all patches. Collective.
///
/// # Errors
/// The divergence is more than round-off; another rank has failed.
fn require_no_divergence(world: &World) -> Result<(), Error> {
    let field = Pool::<MagneticFaces>::of(world);
    if field.is_partial() {
        return Ok(());
    }
    let most = match field.precision() {
        Precision::Single => 1e-5,
        Precision::Double => 1e-10,
    };
    let divergence = divergence_error(world, None)?;
    if divergence <= most {
        return Ok(());
    }
    Err(Error::Setup(format!(
        "the divergence of the initial magnetic field, times the cell width and over the largest field, is up to {divergence:.1e}, but \
         mhd.method = \"ct\" keeps it as it is: give the part of the field that varies by `initial.vector_potential_x`, `_y` and `_z`, and \
         only constants, or functions of the other two coordinates, by `initial.magnetic_x`, `_y` and `_z`"
    )))
}
