//! Plugin states and components of patches and particles in snapshots, stored as byte arrays (blobs).
//!
//! A restart checks that a snapshot has the blobs and particles that the program needs.

use crate::snapshot::PatchOffsets;
use bevy_ecs::prelude::{Entity, World};
use nestar_engine_comm::particle_entities::AttachedComponents;
use nestar_engine_comm::{Ranks, RanksError, Reduction, particle_entities};
use nestar_engine_data::particle_entities::ParticleId;
use nestar_engine_data::{ParticleKinds, ParticleSetRef};
use nestar_engine_mesh::Topology;
use nestar_engine_mesh::patch::{
    PatchComponentOperations, PatchComponentValues, PatchComponents, decode, encode,
};
use nestar_engine_step::state::{StateOperations, StateRegistry};
use nestar_engine_step::{Engine, Error};
use nestar_snapshot::{Blob, Snapshot};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

/// Group of plugin states in snapshots.
const STATES: &str = "state/";

/// Returns the blobs of the present state; complete on the first rank. Collective.
///
/// # Errors
/// A state differs between ranks; another rank has failed.
pub(super) fn blobs(world: &World, offsets: &PatchOffsets) -> Result<Vec<Blob>, Error> {
    let states = world.resource::<StateRegistry>();
    let blob = |(name, state): (&str, &StateOperations)| {
        let path = format!("{STATES}{name}");
        Blob::new(path, state.version, true, (state.save)(world))
    };
    let mut blobs: Vec<Blob> = states.each().map(blob).collect();
    require_identical(world.resource::<Ranks>(), &blobs)?;
    let kinds = world.resource::<PatchComponents>().kinds();
    if !kinds.is_empty() {
        let values = components(world, offsets)?.0;
        let valued = kinds
            .iter()
            .zip(values)
            .filter(|(_, values)| !values.is_empty());
        blobs.extend(valued.map(|(kind, mut values)| {
            values.sort_unstable();
            let path = format!("{COMPONENTS}{}", kind.name);
            Blob::new(path, kind.version, kind.in_digest, encode(&values))
        }));
    }
    blobs.extend(attached_blobs(world)?);
    Ok(blobs)
}

/// Returns a unique number of a patch. It has the level in the upper 8 bits, then its Hilbert order on the
/// level.
fn number(level: usize, place: usize) -> u64 {
    (level as u64) << 56 | place as u64
}

/// Collects the components of all patches on the first rank.
fn components(world: &World, offsets: &PatchOffsets) -> Result<PatchComponentValues, Error> {
    let (topology, ranks) = (world.resource::<Topology>(), world.resource::<Ranks>());
    let mut patches = Vec::new();
    for level in 0..offsets.levels() {
        let rows = offsets.own(level).zip(topology.rows(level));
        patches.extend(rows.map(|(place, &row)| (number(level, place), topology.entity(row))));
    }
    let mut values = PatchComponentValues::of(world, &patches, false);
    for message in ranks.gather_on_first(|| values.to_bytes())? {
        let broken = || RanksError::Transport("a message with components is truncated".into());
        values.append(PatchComponentValues::from_bytes(&message.bytes).ok_or_else(broken)?);
    }
    Ok(values)
}

/// Rejects plugin states that differ between ranks.
fn require_identical(ranks: &Ranks, blobs: &[Blob]) -> Result<(), Error> {
    let hash = |blob: &Blob| {
        let mut hasher = DefaultHasher::new();
        hasher.write(&blob.bytes);
        hasher.finish()
    };
    let own: Vec<u64> = blobs.iter().map(hash).collect();
    // largest hash, and complement of the smallest
    let mut extremes: Vec<u64> = own.iter().flat_map(|&hash| [hash, !hash]).collect();
    if extremes.is_empty() {
        return Ok(());
    }
    ranks.communicator().reduce(Reduction::Max, &mut extremes)?;
    let differs = |(_, extremes): &(&Blob, &[u64; 2])| extremes[0] != !extremes[1];
    let found = blobs.iter().zip(extremes.as_chunks().0).find(differs);
    found.map_or(Ok(()), |(blob, _)| {
        Err(Error::Setup(format!(
            "`{}` is not the same on all ranks: a plugin must change its state identically on all of them",
            blob.header.path
        )))
    })
}

/// Returns the blobs that this program stores: path, version, and whether a snapshot must have it.
fn blob_kinds(world: &World) -> Vec<(String, u32, bool)> {
    let states = world.resource::<StateRegistry>().each();
    let states = states.map(|(name, state)| (format!("{STATES}{name}"), state.version, true));
    let kinds = world.resource::<PatchComponents>().kinds().iter();
    let kinds = kinds.map(|kind| (format!("{COMPONENTS}{}", kind.name), kind.version, false));
    let particles = world.resource::<ParticleKinds>().all().into_iter();
    let particles = particles.map(|kind| (kind.path.clone(), kind.of(world).version(), true));
    let attached = attached_blob_kinds(world);
    states
        .chain(kinds)
        .chain(particles)
        .chain(attached)
        .collect()
}

/// Checks that the snapshot has the blobs and particles of this program, except those that the deck resets.
///
/// # Errors
/// The first that is missing or has another version, with advice.
pub(super) fn check(sim: &Engine, snapshot: &Snapshot) -> Result<(), Error> {
    let path = snapshot.path();
    let kept = blob_kinds(&sim.world);
    let reset = &sim.settings.run.reset_states;
    let is_reset = |blob: &str| reset.iter().any(|name| names_blob(name, blob));
    let blobs = snapshot.blobs().map(|blob| (&*blob.path, blob.version));
    let particles = snapshot
        .particles()
        .map(|particles| (&*particles.path, particles.version));
    let stored: Vec<(&str, u32)> = blobs.chain(particles).collect();
    let own = kept.iter().map(|(blob, ..)| &**blob);
    let known: BTreeSet<&str> = stored.iter().map(|(blob, _)| *blob).chain(own).collect();
    require_unique(reset, &known).map_err(|why| setup_error(path, &why))?;
    let mut problems = Vec::new();
    for &(blob, version) in &stored {
        let own = kept.iter().find(|(kept, ..)| kept == blob);
        match own.map(|(_, version, _)| *version) {
            None if !is_reset(blob) => problems.push(Problem::Unknown { blob, version }),
            Some(own) if own != version && !is_reset(blob) => {
                problems.push(Problem::OtherVersion { blob, version, own });
            }
            Some(own) if own == version && is_reset(blob) => problems.push(Problem::Needless(blob)),
            _ => {}
        }
    }
    let lacks = |kept: &str| stored.iter().all(|(blob, _)| *blob != kept);
    let lacking = kept
        .iter()
        .filter(|(kept, _, needed)| *needed && lacks(kept) && !is_reset(kept));
    problems.extend(lacking.map(|(blob, ..)| Problem::Missing(blob)));
    let is_known = |name: &&String| known.iter().any(|blob| names_blob(name, blob));
    let unknown = reset.iter().filter(|name| !is_known(name));
    problems.extend(unknown.map(|name| Problem::Needless(name)));
    Problem::check(&problems, path, reset)
}

/// Returns `true` if `name` is `part`, with or without its group: `driving` or `state/driving`.
fn names_blob(name: &str, blob: &str) -> bool {
    let rest = blob.strip_suffix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Rejects ambiguous names.
fn require_unique(names: &[String], known: &BTreeSet<&str>) -> Result<(), String> {
    for name in names {
        let meant = known.iter().filter(|blob| names_blob(name, blob));
        let meant: Vec<String> = meant.map(|blob| format!("{blob:?}")).collect();
        if meant.len() > 1 && !known.contains(&&**name) {
            let which = meant.join(", ");
            return Err(format!(
                "run.reset_states: {name:?} is ambiguous: write {which}"
            ));
        }
    }
    Ok(())
}

/// Describes a blob by its group and name, such as "state `driving`".
fn described(blob: &str) -> String {
    let (group, name) = blob.split_once('/').unwrap_or(("state", blob));
    let kind = match group {
        "components" => "component",
        "items" => "item",
        other => other,
    };
    format!("{kind} `{name}`")
}

fn setup_error(path: &Path, why: &str) -> Error {
    Error::Setup(format!("{}: {why}", path.display()))
}

/// A blob that differs between a snapshot and the program.
enum Problem<'a> {
    /// No plugin of the program stores it.
    Unknown { blob: &'a str, version: u32 },
    /// The program reads another version of it.
    OtherVersion {
        blob: &'a str,
        version: u32,
        own: u32,
    },
    /// The snapshot lacks it.
    Missing(&'a str),
    /// It needs no reset, but `run.reset_states` names it.
    Needless(&'a str),
}

impl Problem<'_> {
    /// Fails with all `problems` and one option that resets all blobs; `reset` is the present list.
    fn check(problems: &[Self], path: &Path, reset: &[String]) -> Result<(), Error> {
        if problems.is_empty() {
            return Ok(());
        }
        let mut names: Vec<&str> = reset.iter().map(|name| &**name).collect();
        names.retain(|name| {
            let needless = |problem: &Self| match problem {
                Self::Needless(blob) => names_blob(name, blob),
                _ => false,
            };
            !problems.iter().any(needless)
        });
        names.extend(problems.iter().filter_map(Self::to_reset));
        let why: Vec<String> = problems.iter().map(Self::described).collect();
        let why = why.join("; ");
        let way = match names.len() == reset.len() {
            true => String::new(),
            false => format!(", or set --set 'run.reset_states={names:?}'"),
        };
        let why = format!("{why}; continue with the plugins of that run{way}");
        Err(setup_error(path, &why))
    }

    /// Returns the name of a blob that can be reset.
    fn to_reset(&self) -> Option<&str> {
        let (Self::Unknown { blob, .. } | Self::OtherVersion { blob, .. } | Self::Missing(blob)) =
            self
        else {
            return None;
        };
        Some(blob.split_once('/').map_or(*blob, |(_, name)| name))
    }

    fn described(&self) -> String {
        match self {
            Self::Unknown { blob, version } => format!(
                "this snapshot holds the {} (version {version}), which no plugin of this program stores",
                described(blob)
            ),
            Self::OtherVersion { blob, version, own } => format!(
                "this snapshot holds version {version} of the {}, this program reads version {own}",
                described(blob)
            ),
            Self::Missing(blob) => format!(
                "this snapshot lacks the {}, which a plugin of this program needs",
                described(blob)
            ),
            Self::Needless(blob) => format!(
                "run.reset_states names the {}, which needs no reset: snapshot and program both have it, or both lack it; remove it \
                 there",
                described(blob)
            ),
        }
    }
}

/// Restores the blobs that the snapshot and this program share.
///
/// # Errors
/// A blob is damaged, or its owner rejects it.
pub(super) fn restore(
    sim: &mut Engine,
    snapshot: &Snapshot,
    offsets: &PatchOffsets,
) -> Result<(), Error> {
    let read = |path: &str, version: u32| {
        let mut blobs = snapshot.blobs();
        let stored = blobs.any(|blob| blob.path == path && blob.version == version);
        let bytes = stored.then(|| snapshot.read_blob(path)).transpose();
        bytes.map_err(|e| Error::Snapshot(e.to_string()))
    };
    let wrong = |path: &str, why: String| {
        let place = snapshot.path().display();
        Error::Snapshot(format!("{place}: {path}: {why}"))
    };
    let states = sim.world.resource::<StateRegistry>().clone();
    for (name, state) in states.each() {
        let path = format!("{STATES}{name}");
        if let Some(bytes) = read(&path, state.version)? {
            (state.load)(&mut sim.world, &bytes).map_err(|why| wrong(&path, why))?;
        }
    }
    let mut values = PatchComponentValues::default();
    for kind in sim.world.resource::<PatchComponents>().kinds() {
        let path = format!("{COMPONENTS}{}", kind.name);
        let bytes = read(&path, kind.version)?.unwrap_or_default();
        let decoded = decode(&bytes).ok_or_else(|| wrong(&path, "it is truncated".into()));
        values.0.push(decoded?);
    }
    let attached = values.attach(&mut sim.world, |world, number| {
        entity(world, offsets, number)
    });
    attached.map_err(|why| wrong(COMPONENTS, why))
}

/// Returns the entity of the patch with that [`number`], if this rank owns it.
fn entity(world: &World, offsets: &PatchOffsets, number: u64) -> Option<Entity> {
    row(world, offsets, number).map(|row| world.resource::<Topology>().entity(row))
}

/// Returns the row of the patch with that [`number`], if this rank owns it.
fn row(world: &World, offsets: &PatchOffsets, number: u64) -> Option<u32> {
    let (level, place) = ((number >> 56) as usize, (number & ((1 << 56) - 1)) as usize);
    if level >= offsets.levels() || !offsets.own(level).contains(&place) {
        return None;
    }
    let rows = world.resource::<Topology>().rows(level);
    Some(rows[place - offsets.own(level).start])
}

/// Group of the components of patches and particles in snapshots.
const COMPONENTS: &str = "components/";

/// Returns the path of a component of a kind of particles.
fn path(particles: &str, component: &str) -> String {
    format!("{COMPONENTS}{component}_of_{particles}")
}

/// Returns the blobs that this program may store: path, version, and whether a snapshot must have it.
fn attached_blob_kinds(world: &World) -> Vec<(String, u32, bool)> {
    let components = world.resource::<PatchComponents>().kinds();
    let kinds = world.resource::<ParticleKinds>().all();
    let blobs = |kind: &ParticleSetRef| {
        let blob = |c: &PatchComponentOperations| (path(&kind.name, c.name), c.version, false);
        components.iter().map(blob).collect::<Vec<_>>()
    };
    kinds.iter().flat_map(blobs).collect()
}

/// Returns the blobs of the present state; complete on the first rank. Collective.
///
/// # Errors
/// Another rank has failed, or the transport has.
fn attached_blobs(world: &World) -> Result<Vec<Blob>, Error> {
    let components = world.resource::<PatchComponents>().kinds();
    let kinds = world.resource::<ParticleKinds>().all();
    if components.is_empty() || kinds.is_empty() {
        return Ok(Vec::new());
    }
    let own: Vec<AttachedComponents> = components.iter().map(|c| values(world, c)).collect();
    let ranks = world.resource::<Ranks>();
    let mut all = own.clone();
    for message in ranks.gather_on_first(|| particle_entities::to_bytes(&own))? {
        let broken = || RanksError::Transport("a message with components is truncated".into());
        let theirs = particle_entities::from_bytes(&message.bytes).ok_or_else(broken)?;
        all.iter_mut()
            .zip(theirs)
            .for_each(|(all, theirs)| all.extend(theirs));
    }
    let mut blobs = Vec::new();
    for (component, mut values) in components.iter().zip(all) {
        values.sort_unstable();
        for of_kind in values.chunk_by(|(one, _), (other, _)| one.kind() == other.kind()) {
            let (kind, by_id) = (&kinds[of_kind[0].0.kind()], of_kind.iter());
            let by_id: Vec<(u64, Vec<u8>)> = by_id.map(|(i, v)| (i.id(), v.clone())).collect();
            let path = path(&kind.name, component.name);
            blobs.push(Blob::new(
                path,
                component.version,
                component.in_digest,
                encode(&by_id),
            ));
        }
    }
    Ok(blobs)
}

/// Returns the values of a component on this rank.
fn values(world: &World, component: &PatchComponentOperations) -> AttachedComponents {
    let value = |entity: Entity| {
        let item = *world.get::<ParticleId>(entity)?;
        Some((item, (component.save)(world, entity)?))
    };
    (component.with)(world)
        .into_iter()
        .filter_map(value)
        .collect()
}

/// Attaches the components in the snapshot to own particles, which exist already.
///
/// # Errors
/// A blob is damaged, a component rejects it, or a device fails.
pub(super) fn restore_attached(sim: &mut Engine, snapshot: &Snapshot) -> Result<(), Error> {
    let place = snapshot.path().display().to_string();
    let wrong = |why: String| Error::Snapshot(format!("{place}: {why}"));
    let components = sim.world.resource::<PatchComponents>().kinds().to_vec();
    let kinds = sim.world.resource::<ParticleKinds>().all();
    let mut all = Vec::new();
    for component in &components {
        let mut values = AttachedComponents::new();
        for (number, kind) in kinds.iter().enumerate() {
            let path = path(&kind.name, component.name);
            let mut blobs = snapshot.blobs();
            if !blobs.any(|blob| blob.path == path && blob.version == component.version) {
                continue;
            }
            let bytes = snapshot.read_blob(&path);
            let bytes = bytes.map_err(|e| Error::Snapshot(e.to_string()))?;
            let stored = decode(&bytes).ok_or_else(|| wrong(format!("{path} is truncated")))?;
            for (id, value) in stored {
                let topology = sim.world.resource::<Topology>();
                if kind.of(&sim.world).row_of(topology, id)?.is_some() {
                    values.push((ParticleId::new(number, id), value));
                }
            }
        }
        all.push(values);
    }
    particle_entities::attach(&mut sim.world, all, |_, _| true).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::require_unique;
    use std::collections::BTreeSet;

    #[test]
    fn an_ambiguous_name_is_rejected() {
        let known = BTreeSet::from([
            "state/dark",
            "particles/dark",
            "state/heat",
            "state/preheat",
        ]);
        let asked = |name: &str| require_unique(&[name.to_string()], &known);
        for single in ["heat", "state/heat", "state/dark", "particles/dark", "cold"] {
            assert_eq!(asked(single), Ok(()), "{single}");
        }
        let why = asked("dark").expect_err("there are two");
        assert!(
            why.contains("\"dark\" is") && why.contains("\"particles/dark\", \"state/dark\""),
            "{why}"
        );
    }
}
