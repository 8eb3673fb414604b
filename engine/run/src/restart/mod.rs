//! Restart from a snapshot, bit for bit and on any number of ranks: every rank reads its own patches.

use crate::blobs;
use crate::restart::compatibility::{Fit, fit};
use crate::restart::fields::load_level;
use crate::restart_state::{RestartState, from_hex, restore_clocks, restore_rest};
use crate::snapshot::{PatchOffsets, snapshot_error};
use nestar_engine_comm as comm;
use nestar_engine_comm::{Displaced, Ranks};
use nestar_engine_data::{Stores, particle_entities};
use nestar_engine_mesh::{Changes, NewRows, Topology};
use nestar_engine_step::error::{agreed, on_first_rank};
use nestar_engine_step::memory::StoredParticles;
use nestar_engine_step::{Activity, Engine, Error, Phase, check_faults, memory, regrid};
use nestar_snapshot::{LEAF, ORIGIN, Snapshot, Values, latest};
use serde_json::Value;
use std::ops::Range;
use std::path::{Path, PathBuf};

mod compatibility;
mod fields;
mod particles;

/// Describes the restored snapshot.
pub struct Restored {
    /// Path of the snapshot.
    pub path: PathBuf,
    /// Number of the snapshot.
    pub number: u32,
    /// Root steps when it was written.
    pub step: u64,
    /// Conserved totals at the start of the simulation.
    pub initial_totals: Vec<f64>,
    /// Settings that differ from those of the snapshot, as text.
    pub changes: Vec<String>,
    /// `true` if the state starts a new run in its own directory.
    pub is_new_run: bool,
}

/// Restores the snapshot that `run.start_from` names as the initial state; `None` if it is empty. Collective.
///
/// # Errors
/// There is no such snapshot, or as [`restore`].
pub fn start(sim: &mut Engine) -> Result<Option<Restored>, Error> {
    let named = sim.settings.run.start_from.clone();
    if named.is_empty() {
        return Ok(None);
    }
    let path = start_path(sim);
    let restored = match path.join("snapshots").is_dir() {
        true => restore(sim, &path)?,
        false => {
            sim.require_fresh()?;
            sim.build_order()?;
            let ranks = sim.world.resource::<Ranks>().clone();
            on_first_rank(&ranks, || require_start(&path))?;
            Some(restore_from(sim, &ranks, 0, &path)?)
        }
    };
    let restored = restored.ok_or_else(|| {
        let path = path.display();
        Error::Setup(format!(
            "run.start_from: the run in {path} has no complete snapshot"
        ))
    })?;
    let is_new_run = true;
    Ok(Some(Restored {
        is_new_run,
        ..restored
    }))
}

/// Checks that a path, which is not the directory of a run, may be a snapshot.
///
/// # Errors
/// It is a view of a run, or another directory; the message says what to name.
fn require_start(path: &Path) -> Result<(), Error> {
    let is_zarr = path.join("zarr.json").exists();
    let in_views = path
        .parent()
        .is_some_and(|parent| parent.ends_with("views"));
    let what = if path.join("entries.csv").exists() {
        "is a view of a run, whose entries have only chosen fields"
    } else if is_zarr && in_views {
        "is a view of a run, whose entries have only chosen values"
    } else if path.is_dir() && path.ends_with("snapshots") {
        "is the directory of all snapshots of a run"
    } else if path.is_dir() && !is_zarr {
        "is a directory without a snapshot"
    } else {
        return Ok(());
    };
    Err(Error::Setup(format!(
        "run.start_from: {} {what}; name the directory of a run, or one of its snapshots/NNNNNN.zarr",
        path.display()
    )))
}

/// Returns the path that `run.start_from` names.
fn start_path(sim: &Engine) -> PathBuf {
    let folder = sim.deck.directory().unwrap_or(Path::new(""));
    folder.join(&sim.settings.run.start_from)
}

/// Reads the numbers of particles in the snapshot with which the run will start, for memory estimates. The
/// snapshot is the latest one in directory `resumes`, or that of the deck. Its errors are reported when it is
/// restored.
pub fn expect_stored_particles(sim: &mut Engine, resumes: Option<&Path>) {
    let newest = |directory: &Path| Some(latest(directory).ok()??.1);
    let is_named = !sim.settings.run.start_from.is_empty();
    let named = || match start_path(sim) {
        run if run.join("snapshots").is_dir() => newest(&run),
        snapshot => Some(snapshot),
    };
    let path = resumes.and_then(newest);
    let path = path.or_else(|| is_named.then(named).flatten());
    if let Some(snapshot) = path.and_then(|path| Snapshot::open(&path).ok()) {
        store_particle_counts(sim, &snapshot);
    }
}

/// Stores the numbers of particles for memory estimates.
fn store_particle_counts(sim: &mut Engine, snapshot: &Snapshot) {
    let stored = snapshot
        .particles()
        .map(|particles| (particles.path.clone(), particles.count));
    sim.world.insert_resource(StoredParticles(stored.collect()));
}

/// Restores the latest complete snapshot in the run's directory; `None` if there is none. Each rank reads its
/// own patches, independently of the number of ranks that wrote it. Collective.
///
/// # Errors
/// The snapshot is damaged, or of another domain; another rank has failed.
pub fn restore(sim: &mut Engine, directory: &Path) -> Result<Option<Restored>, Error> {
    sim.require_fresh()?;
    sim.build_order()?;
    let ranks = sim.world.resource::<Ranks>().clone();
    let found = on_first_rank(&ranks, || latest(directory).map_err(snapshot_error))?;
    // all ranks use the snapshot that the first rank finds
    let mut message = found.flatten().map_or_else(Vec::new, |(number, path)| {
        let relative = path.strip_prefix(directory).unwrap_or(&path);
        [
            &number.to_le_bytes(),
            relative.as_os_str().as_encoded_bytes(),
        ]
        .concat()
    });
    ranks.communicator().broadcast(0, &mut message)?;
    let Some((number, relative)) = message.split_first_chunk() else {
        return Ok(None);
    };
    let path = directory.join(String::from_utf8_lossy(relative).as_ref());
    restore_from(sim, &ranks, u32::from_le_bytes(*number), &path).map(Some)
}

/// Makes the error of a rank collective and adds advice on damaged snapshots.
fn collective<T>(ranks: &Ranks, path: &Path, own: Result<T, Error>) -> Result<T, Error> {
    let own = own.map_err(|error| match error {
        // give no advice to move files that do not belong to a run
        Error::Snapshot(why) if path.parent().is_some_and(|p| p.ends_with("snapshots")) => {
            Error::Snapshot(format!(
                "{why}\nto continue from the previous snapshot, move {} away",
                path.display()
            ))
        }
        other => other,
    });
    agreed(ranks, own)
}

/// Restores the snapshot at `path` as [`restore`].
fn restore_from(
    sim: &mut Engine,
    ranks: &Ranks,
    number: u32,
    path: &Path,
) -> Result<Restored, Error> {
    let (snapshot, state, fit) = collective(ranks, path, open(sim, path))?;
    let verified = on_first_rank(ranks, || {
        snapshot.verify_documents().map_err(snapshot_error)
    });
    collective(ranks, path, verified)?;
    store_particle_counts(sim, &snapshot);
    require_memory(sim, &snapshot)?;
    let finest = snapshot.levels().len().saturating_sub(1);
    regrid::create_root(&mut sim.world);
    check_faults(&sim.world)?;
    for level in 0..=finest {
        refine_from_snapshot(sim, ranks, &snapshot, level)?;
    }
    let offsets = PatchOffsets::gather(&sim.world)?;
    collective(ranks, path, restore_clocks(sim, &state))?;
    if fit.uses_initial_state() {
        fill_initial_state(sim, finest)?;
    }
    let mut levels = 0..=finest;
    let loaded = levels.try_for_each(|level| load_level(sim, &snapshot, &fit, &offsets, level));
    collective(ranks, path, loaded)?;
    collective(ranks, path, blobs::restore(sim, &snapshot, &offsets))?;
    collective(ranks, path, particles::restore(sim, &snapshot, &offsets))?;
    particle_entities::initialise(&mut sim.world)?;
    collective(ranks, path, blobs::restore_attached(sim, &snapshot))?;
    restore_rest(sim, &state, &offsets);
    // the content of the patches is known only now
    let imbalance = sim.settings.run.imbalance;
    comm::regrid::rebalance_all(&mut sim.world, imbalance)?;
    collective(ranks, path, check_faults(&sim.world))?;
    comm::particle_entities::update_entities(&mut sim.world)?;
    sim.driver.run_ready(&mut sim.world)?;
    // with its keys, if a formula of the deck has added a field
    if fit.is_changed {
        sim.require_changed()?;
    }
    collective(ranks, path, require_shared_values(sim, finest))?;
    Ok(Restored {
        path: path.to_path_buf(),
        number,
        step: snapshot.attributes().step,
        initial_totals: initial_totals(sim, &state)?,
        changes: fit.changes,
        is_new_run: false,
    })
}

/// Rejects restored fields if two neighbouring patches hold different values on their common face. This includes periodic faces of the domain.
/// Collective.
fn require_shared_values(sim: &mut Engine, finest: usize) -> Result<(), Error> {
    let mut found = None;
    for level in 0..=finest {
        let here = comm::shared_values::unequal_shared_values(&mut sim.world, level)?;
        found = found.or(here);
    }
    match found {
        None => Ok(()),
        Some(why) => Err(Error::Setup(format!(
            "{why}: if faces of the domain are periodic that were not, keep the `domain.boundary` of the run that wrote the snapshot, or begin a \
             new run; else the snapshot is damaged"
        ))),
    }
}

/// Fills all patches by the phase `Initialise` before values of the snapshot replace them. Collective.
fn fill_initial_state(sim: &mut Engine, finest: usize) -> Result<(), Error> {
    for level in 0..=finest {
        let world = &mut sim.world;
        let rows = world.resource::<Topology>().rows(level).to_vec();
        let mut new = world.resource_mut::<NewRows>();
        (new.level, new.rows) = (level, rows);
        sim.driver.run_phase(world, Phase::Initialise, level, 0.0)?;
    }
    // reading the snapshot follows
    sim.world.resource::<Activity>().begin_output();
    let displaced = Displaced::in_refined_patches(&sim.world);
    Ok(displaced.reinsert(&mut sim.world)?)
}

/// Returns the totals at the start of the simulation by component; present totals if the snapshot lacks them.
/// Collective.
fn initial_totals(sim: &Engine, state: &RestartState) -> Result<Vec<f64>, Error> {
    let components = Stores::totalled(&sim.world).into_iter().enumerate();
    let known: Vec<Option<&str>> = components
        .map(|(n, component)| state.initial_total(n, &component.name))
        .collect();
    let now = match known.contains(&None) {
        true => totals(sim)?,
        false => Vec::new(),
    };
    let each = known.into_iter().enumerate();
    each.map(|(n, known)| known.map_or_else(|| Ok(now[n]), from_hex))
        .collect()
}

/// Opens the snapshot, checks that the run can continue from it and sets the clocks.
fn open(sim: &mut Engine, path: &Path) -> Result<(Snapshot, RestartState, Fit), Error> {
    let snapshot = Snapshot::open(path).map_err(snapshot_error)?;
    if let Some(view) = &snapshot.attributes().view {
        return Err(Error::Setup(format!(
            "{} is an entry of the view `{view}`, which has only chosen fields and patches: no run can start from it; name one of \
             the snapshots/NNNNNN.zarr of the run",
            path.display()
        )));
    }
    let others = Error::all([
        check_domain(sim, &snapshot),
        blobs::check(sim, &snapshot),
        particles::check(sim, &snapshot),
    ]);
    let fit = match (fit(sim, &snapshot), others) {
        (Err(error), Err(others)) => return Err(error.and(others)),
        (fit, others) => others.and(fit)?,
    };
    let restart = Value::Object(snapshot.attributes().restart.clone());
    let state: RestartState = serde_json::from_value(restart).map_err(|e| {
        Error::Snapshot(format!(
            "{}: the attribute `restart` is incomplete: {e}",
            path.display()
        ))
    })?;
    check_state(sim, &snapshot, &state)?;
    restore_clocks(sim, &state)?;
    Ok((snapshot, state, fit))
}

/// Checks that the attribute `restart` matches the rest of the snapshot.
fn check_state(sim: &Engine, snapshot: &Snapshot, state: &RestartState) -> Result<(), Error> {
    let components = state.totals(Stores::totalled(&sim.world).len());
    let levels = snapshot.levels().len();
    let clocks = state.clocks.iter().take(levels);
    let times: Vec<f64> = clocks
        .map(|clock| from_hex(&clock.time))
        .collect::<Result<_, _>>()?;
    let in_step =
        times.len() == levels && times.iter().all(|&time| time == snapshot.attributes().time);
    if in_step && state.initial_totals.len() == components {
        return Ok(());
    }
    Err(Error::Snapshot(format!(
        "{}: the attribute `restart` does not match the snapshot: it has {} clocks and {} totals for {levels} levels at time {} \
         and {components} components",
        snapshot.path().display(),
        state.clocks.len(),
        state.initial_totals.len(),
        snapshot.attributes().time,
    )))
}

/// Checks that all patches of the snapshot fit into the memory of the ranks. Collective.
fn require_memory(sim: &Engine, snapshot: &Snapshot) -> Result<(), Error> {
    let finer = snapshot.levels().skip(1);
    let finer: u64 = finer.map(|level| level.patches).sum();
    let rows = sim.world.resource::<Topology>().root_rows() + finer as usize;
    let finest = snapshot.levels().len().saturating_sub(1);
    let shortage = memory::shortage(&sim.world, rows, finest)?;
    shortage.map_or(Ok(()), |shortage| {
        let why = format!("{}: {}", snapshot.path().display(), shortage.description());
        Err(Error::Snapshot(format!(
            "{why}; take {}",
            shortage.remedy()
        )))
    })
}

fn check_domain(sim: &Engine, snapshot: &Snapshot) -> Result<(), Error> {
    let (attributes, domain) = (snapshot.attributes(), &sim.settings.domain);
    let same = attributes.root_cells == domain.cells.map(u64::from)
        && attributes.domain_left_edge == domain.left_edge
        && attributes.domain_right_edge == domain.right_edge;
    if !same {
        return Err(Error::Setup(format!(
            "{}: this snapshot has {:?} root cells from {:?} to {:?}, the deck {:?} from {:?} to {:?}; \
             continue with the deck of the run (its run.toml)",
            snapshot.path().display(),
            attributes.root_cells,
            attributes.domain_left_edge,
            attributes.domain_right_edge,
            domain.cells,
            domain.left_edge,
            domain.right_edge,
        )));
    }
    let levels = snapshot.levels().len();
    if levels > sim.levels() {
        let most = sim.levels() - 1;
        return Err(Error::Setup(format!(
            "{}: this snapshot has levels up to {}, the deck allows {most}; set mesh.max_level to at least {}",
            snapshot.path().display(),
            levels - 1,
            levels - 1,
        )));
    }
    Ok(())
}

/// Refines the patches of `level` that have children in the snapshot.
fn refine_from_snapshot(
    sim: &mut Engine,
    ranks: &Ranks,
    snapshot: &Snapshot,
    level: usize,
) -> Result<(), Error> {
    let path = snapshot.path();
    let offsets = PatchOffsets::gather(&sim.world)?;
    let changes = collective(ranks, path, refined_patches(sim, snapshot, &offsets, level))?;
    if ranks.any(!changes.refine.is_empty())? {
        regrid::apply(&mut sim.world, level, &changes);
    }
    // after an exchange, a failed rank cannot be reached any more
    check_faults(&sim.world)
}

/// Returns the own patches of `level` that have children in the snapshot.
fn refined_patches(
    sim: &Engine,
    snapshot: &Snapshot,
    offsets: &PatchOffsets,
    level: usize,
) -> Result<Changes, Error> {
    let mismatch = || {
        Error::Snapshot(format!(
            "{}: the patches of level {level} do not match the coarser levels; the snapshot is damaged",
            snapshot.path().display()
        ))
    };
    let header = snapshot.levels().nth(level);
    let announced = if level < offsets.levels() {
        offsets.total(level)
    } else {
        0
    };
    if header.is_none_or(|header| header.patches != announced as u64) || announced == 0 {
        return Err(mismatch());
    }
    let (origins, leaf) = structure(snapshot, level, offsets.own(level))?;
    let topology = sim.world.resource::<Topology>();
    let rows = topology.rows(level);
    let places: Vec<i32> = rows.iter().flat_map(|&row| topology.origin(row)).collect();
    if places != origins || leaf.len() != rows.len() {
        return Err(mismatch());
    }
    let refined = rows.iter().zip(&leaf).filter(|(_, leaf)| **leaf == 0);
    Ok(Changes {
        refine: refined.map(|(row, _)| *row).collect(),
        coarsen: Vec::new(),
    })
}

/// Reads the origins of patches of `level`, three numbers each, and their leaf flags.
fn structure(
    snapshot: &Snapshot,
    level: usize,
    patches: Range<usize>,
) -> Result<(Vec<i32>, Vec<u8>), Error> {
    let read = |name: &str| {
        let range = patches.start as u64..patches.end as u64;
        let values = snapshot.read_patches(level as u8, name, range);
        values.map_err(snapshot_error)
    };
    match (read(ORIGIN)?, read(LEAF)?) {
        (Values::I32(origins), Values::U8(leaf)) => Ok((origins, leaf)),
        _ => Err(Error::Snapshot(format!(
            "{}: level {level}: `origin` or `leaf` has a wrong type",
            snapshot.path().display()
        ))),
    }
}

/// Returns the totals of all fields that have totals, by component. Collective.
///
/// # Errors
/// A device fails; another rank has failed.
pub(crate) fn totals(sim: &Engine) -> Result<Vec<f64>, Error> {
    let operations = Stores::of(&sim.world, |spec| spec.in_totals);
    let mut totals = Vec::new();
    for field in &operations {
        totals.extend(comm::totals(&sim.world, field)?);
    }
    Ok(totals)
}
