//! Replays the step of a captured patch on the host: the same passes, bit for bit.

use super::HydroConfig;
use super::capture::GasDetails;
use super::solver::GasReal;
use crate::fields::{GAS_COMPONENTS, Gas};
use nestar_engine::data::Field;
use nestar_engine::step::Capture;
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::choice::Choice;
use nestar_kernels::hydro::{
    CellMask10, Cleaning, FaceFluxes, LaneChoice, PatchScratch, PatchSolver, PatchStep,
};
use nestar_kernels::mesh::{Centring, ShareSets};

/// Result of one pass over a patch.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayPass {
    /// Number of cells with first-order fluxes, in the patch and the layer around it.
    pub first_order: usize,
    /// Number of unphysical cells of the patch.
    pub unphysical: usize,
    /// State of the captured cell, by component, per unit volume.
    pub state: Vec<f64>,
}

/// Converts a state to density, velocity x y z and pressure, in code units.
#[must_use]
pub fn primitive(state: &[f64], config: &HydroConfig) -> [f64; GAS_COMPONENTS] {
    config.eos.0.primitive(state, config.law())
}

/// Repeats the captured step with the method of `config` over `dt`: one pass with the fluxes of the scheme, then one
/// for each round of correction.
///
/// # Errors
/// The capture is not of the gas, or has too few ghost layers for the method.
pub fn replay(capture: &Capture, config: &HydroConfig, dt: f64) -> Result<Vec<ReplayPass>, Error> {
    let components = capture.components.len();
    let details: Result<GasDetails, _> = capture.details.clone().try_into();
    let details = details.map_err(|e| Error::Setup(format!("the capture's details: {e}")))?;
    if capture.field != Gas::NAME || components < config.method().gas_components() {
        let field = &capture.field;
        return Err(Error::Setup(format!(
            "steps of the field `{field}` cannot be replayed"
        )));
    }
    in_precision!(capture.precision, R => passes::<R>(capture, config, dt, &details))
}

fn passes<R: GasReal>(
    capture: &Capture,
    config: &HydroConfig,
    dt: f64,
    details: &GasDetails,
) -> Result<Vec<ReplayPass>, Error> {
    let components = capture.components.len();
    let solver = solver_of::<R>(config, components, &details.sets);
    let mut scratch = solver.scratch();
    let Some(block) = capture.block::<R>(solver.ghosts()) else {
        return Err(Error::Setup(format!(
            "the method needs {} ghost layers, but the capture has {}",
            solver.ghosts(),
            capture.layers
        )));
    };
    put(&block, components, &mut scratch);
    put_faces(&details.faces, &mut scratch)?;
    let values: Vec<R> = details.before.iter().map(|&value| R::lit(value)).collect();
    let before = state_before(config, components, details, &values)?;
    let [speed, damping] = details.cleaning;
    let step = PatchStep {
        rates: capture.width.map(|w| R::lit(dt / w)),
        inverse_dx: capture.width.map(|w| R::lit(1.0 / w)),
        first_order: None,
        cleaning: Cleaning { speed, damping },
        before,
    };
    let rounds = details.rounds.iter().map(|cells| Some(&cells[..]));
    let passes = std::iter::once(None).chain(rounds);
    Ok(passes
        .map(|cells| pass(&solver, &mut scratch, &step, capture.cell, cells))
        .collect())
}

/// Returns the state before the step and the weight of the new one, if a stage after the first was captured.
fn state_before<'a, R: GasReal>(
    config: &HydroConfig,
    components: usize,
    details: &GasDetails,
    values: &'a [R],
) -> Result<Option<(&'a [R], R)>, Error> {
    let stages = config.method().scheme.stages();
    let Some(stage) = stages.get(details.stage) else {
        return Err(Error::Setup(format!(
            "stage {} of a step was captured, but steps of hydro.scheme = \"{}\" have {} stages: replay it with the scheme of the run",
            details.stage + 1,
            config.scheme.0.word(),
            stages.len()
        )));
    };
    if details.stage == 0 {
        return Ok(None);
    }
    match values.len() == components * CELLS {
        true => Ok(Some((values, R::lit(stage.weight)))),
        false => Err(Error::Setup(
            "the capture's details: the state before the step is incomplete, so the file is damaged".into(),
        )),
    }
}

/// Updates the patch in `scratch` by `step`, with first-order fluxes in these cells. Returns the state of `cell`.
fn pass<R: GasReal>(
    solver: &PatchSolver<R>,
    scratch: &mut PatchScratch<R>,
    step: &PatchStep<R>,
    [i, j, k]: [usize; 3],
    first_order: Option<&[[i32; 3]]>,
) -> ReplayPass {
    let mut out = vec![R::lit(0.0); solver.components() * CELLS];
    let mut field = vec![R::lit(0.0); 3 * Centring::Face.values()];
    let faces = &mut FaceFluxes {
        field: Some(&mut field),
        ..FaceFluxes::default()
    };
    let mask = first_order.map(mask);
    let step = PatchStep {
        first_order: mask.as_ref(),
        ..*step
    };
    let outcome = solver.update(scratch, &step, &mut out, faces);
    let unphysical = outcome.unphysical.iter().map(|word| word.count_ones());
    let own = out.iter().skip(i + 8 * (j + 8 * k)).step_by(CELLS);
    ReplayPass {
        first_order: first_order.map_or(0, <[_]>::len),
        unphysical: unphysical.sum::<u32>() as usize,
        state: own.map(|x| x.to_f64()).collect(),
    }
}

fn solver_of<R: GasReal>(config: &HydroConfig, components: usize, of: &[usize]) -> PatchSolver<R> {
    let method = config.method();
    let scalars = components - method.gas_components();
    PatchSolver::new(method, config.law(), scalars, LaneChoice::Auto).with_sets(sets(of))
}

/// Copies a block with ghost cells to the input of the solver.
fn put<R: GasReal>(block: &[R], components: usize, scratch: &mut PatchScratch<R>) {
    let stride = scratch.component_stride();
    let each = block.len() / components;
    for (c, values) in block.chunks_exact(each).enumerate() {
        scratch.input()[c * stride..][..each].copy_from_slice(values);
    }
}

/// Copies a field on faces to the input of the solver.
fn put_faces<R: GasReal>(faces: &[f64], scratch: &mut PatchScratch<R>) -> Result<(), Error> {
    let (input, _) = scratch.face_input();
    if faces.len() != input.len() {
        return Err(Error::Setup(format!(
            "the capture has {} values of a magnetic field on faces, but the method needs {}: replay it with the method of the run",
            faces.len(),
            input.len()
        )));
    }
    for (value, b) in input.iter_mut().zip(faces) {
        *value = R::lit(*b);
    }
    Ok(())
}

/// Builds a mask of cells -1 to 8 along each axis.
fn mask(cells: &[[i32; 3]]) -> CellMask10 {
    let mut mask = CellMask10::new();
    let inside = |cell: &&[i32; 3]| cell.iter().all(|i| (-1..=8).contains(i));
    for &[i, j, k] in cells.iter().filter(inside) {
        mask.set(i, j, k);
    }
    mask
}

/// Builds the sets of scalars from the set number of each component.
fn sets(of: &[usize]) -> ShareSets {
    let most = of.iter().copied().max().unwrap_or(0).min(of.len());
    (1..=most).fold(ShareSets::default(), |sets, set| {
        let members: Vec<usize> = (0..of.len()).filter(|&c| of[c] == set).collect();
        sets.with(&members)
    })
}
