//! Particles of a prediction: number, work and location.

use super::super::{CommandError, FAILED};
use nestar::engine::Engine;
use nestar::engine::comm::estimate::TreeOutline;
use nestar::engine::data::{ParticleKinds, ParticleSet};
use nestar::engine::mesh::Topology;
use nestar::engine::step::memory::{StoredParticles, particle_demand};
use nestar::snapshot::{Snapshot, Values};

/// Maximum number of sampled positions.
const MAX_SAMPLED: u64 = 1 << 16;

/// Particles found for a prediction.
#[derive(Default)]
pub struct ParticleForecast {
    /// Average bytes per particle.
    pub bytes: f64,
    /// Description, one line per kind.
    pub lines: Vec<String>,
}

/// Adds the initial particles of a run to the patches of `outline`.
pub fn expected(sim: &Engine, outline: &mut TreeOutline) -> ParticleForecast {
    let domain = sim.world.resource::<Topology>().domain;
    put(sim, outline, |outline, particles, count| {
        let sampled = MAX_SAMPLED.min(count);
        let Some(positions) = particles.initial_positions(&domain, sampled) else {
            outline.add_positions(particles.weight(), count, None);
            return Ok("distributed evenly over the patches of the finest level".into());
        };
        // some identities have no particle
        let existing =
            (u128::from(count) * positions.len() as u128 / u128::from(sampled.max(1))) as u64;
        if !positions.is_empty() {
            outline.add_positions(particles.weight(), existing, Some(&positions));
        }
        Ok(match sampled < count {
            true => format!("located by a sample of {sampled} initial positions"),
            false => "located by their initial positions".into(),
        })
    })
    .unwrap_or_default()
}

/// Adds the particles of a snapshot to the patches of its hierarchy `outline`.
pub fn stored(
    sim: &mut Engine,
    snapshot: &Snapshot,
    outline: &mut TreeOutline,
) -> Result<ParticleForecast, CommandError> {
    let counts = snapshot
        .particles()
        .map(|group| (group.path.clone(), group.count));
    sim.world.insert_resource(StoredParticles(counts.collect()));
    let kinds = sim.world.resource::<ParticleKinds>().all();
    put(sim, outline, |outline, particles, _| {
        let kind = kinds.iter().find(|kind| kind.name == particles.name());
        let path = kind.map_or("", |kind| &*kind.path);
        let Some(header) = snapshot.particles().find(|header| header.path == path) else {
            return Ok("not in the snapshot".into());
        };
        let read = |(level, patches): (u8, u64)| match snapshot.read_patches(
            level,
            &header.counts(),
            0..patches,
        )? {
            Values::U32(counts) => Ok(counts),
            _ => Err(CommandError::new(
                FAILED,
                format!("{path}: the counts have a wrong type"),
            )),
        };
        let levels = snapshot.levels().map(|level| (level.level, level.patches));
        let counts: Vec<Vec<u32>> = levels.map(read).collect::<Result<_, _>>()?;
        let added = outline.add_counts(particles.weight(), &counts);
        added.map_err(|why| CommandError::new(FAILED, format!("{path}: {why}")))?;
        Ok("located as in the snapshot".into())
    })
}

/// Adds the particles of each kind by `place`, which returns a description of their location.
fn put(
    sim: &Engine,
    outline: &mut TreeOutline,
    mut place: impl FnMut(&mut TreeOutline, &dyn ParticleSet, u64) -> Result<String, CommandError>,
) -> Result<ParticleForecast, CommandError> {
    let patches = (0..outline.levels()).map(|level| outline.patches(level));
    let demands = particle_demand(&sim.world, patches.sum(), 1);
    let mut lines = Vec::new();
    let kinds = sim.world.resource::<ParticleKinds>().all();
    for demand in &demands {
        let Some(kind) = kinds.iter().find(|kind| kind.path == demand.path) else {
            continue;
        };
        let particles = kind.of(&sim.world);
        let at = place(outline, particles, demand.count)?;
        lines.push(format!(
            "{}: at most {} particles, each with the work of {} cells, {at}",
            demand.path,
            demand.count,
            particles.weight()
        ));
    }
    let sum = |of: fn(&(u64, u64)) -> u64| {
        demands
            .iter()
            .map(|d| of(&(d.count, d.bytes)) as f64)
            .sum::<f64>()
    };
    let (count, bytes) = (sum(|d| d.0), sum(|d| d.1));
    let bytes = if count > 0.0 { bytes / count } else { 0.0 };
    Ok(ParticleForecast { bytes, lines })
}
