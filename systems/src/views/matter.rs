//! Collects the matter of a run on its first rank: particles with mass, and gas as points at the centres of leaf cells.

use super::points::MassPoint;
use crate::fields::{Gas, GasModel};
use nestar_deck::DeckError;
use nestar_engine::comm::{Ranks, RanksError, communicator::Message};
use nestar_engine::data::{
    Field, ParticleColumn, ParticleKinds, ParticleSet, ParticleSetRef, PatchPlace, Stores,
};
use nestar_engine::mesh::{Topology, parallel};
use nestar_engine::run::views::ViewContext;
use nestar_engine::step::error::agreed;
use nestar_engine::{Engine, Error};
use nestar_kernels::{CELLS, PATCH};
use nestar_snapshot::DataType;

/// Refuses keys of views of cells in a view of particles.
///
/// # Errors
/// The deck gives one of them.
pub fn require_no_cells(context: &ViewContext, what: &str) -> Result<(), DeckError> {
    let config = context.config;
    let given = [
        ("fields", !config.fields.is_empty()),
        ("level", config.level.is_some()),
        ("region", config.region.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(context.error(key, &format!("has no meaning for {what}: remove it"))),
        None => Ok(()),
    }
}

/// Patches whose particles are read together.
const BATCH: usize = 4096;
/// Word for all matter among the names of species.
const ALL: &str = "matter";
/// Position of the density among the components of the gas.
const DENSITY: usize = 0;

/// The matter of a run, with a choice of species of particles.
pub struct Matter {
    /// Chosen species and the other ones with mass. The number of a species is its place among all.
    species: Vec<Species>,
    /// `true` for gas.
    gas: bool,
}

/// A species with mass.
struct Species {
    kind: ParticleSetRef,
    number: u64,
    is_chosen: bool,
    mass: ParticleColumn,
    velocity: Option<ParticleColumn>,
}

/// Points of all ranks.
#[derive(Debug, Default)]
pub struct Points {
    /// Particles of the chosen species, then those of the others, then gas; in any order otherwise.
    pub all: Vec<MassPoint>,
    /// Number of particles of the chosen species.
    pub chosen: usize,
}

impl Matter {
    /// Finds the species at the key `species` of a view, or all with mass if it is empty. `others` adds the matter that is not chosen.
    ///
    /// # Errors
    /// There is no such species, or it has no mass; the run has no particles with mass.
    pub fn new(context: &ViewContext, names: &[String], others: bool) -> Result<Self, DeckError> {
        let names: Vec<(usize, &str)> = names.iter().map(|name| &**name).enumerate().collect();
        Self::chosen(context, &names, others, &[])
    }

    /// Finds the matter that an element of the key `species` names: a species, or all matter for [`ALL`].
    ///
    /// # Errors
    /// As [`Matter::new`].
    pub fn named(context: &ViewContext, number: usize, name: &str) -> Result<Self, DeckError> {
        match name {
            ALL => Self::chosen(context, &[], true, &[]),
            name => Self::chosen(context, &[(number, name)], false, &[ALL]),
        }
    }

    /// Finds species by their places in the key `species` and names. `words` are further words that are known there.
    fn chosen(
        context: &ViewContext,
        names: &[(usize, &str)],
        others: bool,
        words: &[&str],
    ) -> Result<Self, DeckError> {
        let kinds = context.world().resource::<ParticleKinds>().all();
        let columns = |kind: &ParticleSetRef| kind.of(context.world()).columns();
        let find = |columns: &[ParticleColumn], name: &str| {
            columns.iter().find(|own| own.what.name == name).cloned()
        };
        let mut all = Vec::new();
        for (number, kind) in kinds.into_iter().enumerate() {
            let columns = columns(&kind);
            let (position, mass) = (find(&columns, "position"), find(&columns, "mass"));
            if let (Some(_), Some(mass)) = (position, mass) {
                all.push(Species {
                    number: number as u64,
                    is_chosen: names.is_empty() || names.iter().any(|(_, name)| *name == kind.name),
                    velocity: find(&columns, "velocity"),
                    mass,
                    kind,
                });
            }
        }
        let mut known: Vec<&str> = all.iter().map(|own| &*own.kind.name).collect();
        if known.is_empty() {
            let path = context.path;
            let message = format!(
                "`{path}` needs particles with mass: add a species with `mass` to [particles.species]"
            );
            return Err(context.deck.error_at(path, message));
        }
        known.extend(words);
        for (n, name) in names {
            if !known.contains(name) {
                let path = format!("{}.species[{n}]", context.path);
                return Err(context.deck.unknown_word_at(&path, name, &known));
            }
        }
        all.retain(|own| own.is_chosen || others);
        let gas = context.world().get_resource::<GasModel>();
        Ok(Self {
            species: all,
            gas: others && gas.is_some_and(|gas| !gas.frozen),
        })
    }

    /// Returns the points of all ranks at the present time, on the first rank. Collective.
    ///
    /// # Errors
    /// The device or another rank has failed.
    pub fn collect(&self, sim: &Engine) -> Result<Option<Points>, Error> {
        let ranks = sim.world.resource::<Ranks>();
        let own = agreed(ranks, self.own(sim))?;
        if ranks.is_single() {
            return Ok(Some(own.joined()));
        }
        let mut parts = own;
        let send = |points: &[MassPoint]| match ranks.rank() {
            0 => Vec::new(),
            _ => vec![Message {
                peer: 0,
                bytes: bytemuck::cast_slice(points).to_vec(),
            }],
        };
        for part in &mut parts.0 {
            for message in ranks.communicator().exchange(send(part))? {
                let peer = message.peer;
                if message.bytes.len() % size_of::<MassPoint>() != 0 {
                    let why = format!("the particles from rank {peer} are damaged");
                    return Err(RanksError::Transport(why).into());
                }
                part.extend(bytemuck::pod_collect_to_vec::<u8, MassPoint>(
                    &message.bytes,
                ));
            }
        }
        Ok((ranks.rank() == 0).then(|| parts.joined()))
    }

    /// Returns the points of this rank.
    fn own(&self, sim: &Engine) -> Result<Parts, Error> {
        let mut parts = Parts::default();
        for species in &self.species {
            let part = &mut parts.0[usize::from(!species.is_chosen)];
            species.read(sim, part)?;
        }
        if self.gas {
            read_gas(sim, &mut parts.0[1])?;
        }
        Ok(parts)
    }
}

/// Points of the chosen species, and others.
#[derive(Default)]
struct Parts([Vec<MassPoint>; 2]);

impl Parts {
    fn joined(self) -> Points {
        let [mut all, others] = self.0;
        let chosen = all.len();
        all.extend(others);
        Points { all, chosen }
    }
}

impl Species {
    /// Adds the particles of this rank.
    fn read(&self, sim: &Engine, points: &mut Vec<MassPoint>) -> Result<(), Error> {
        let topology = sim.world.resource::<Topology>();
        let particles = self.kind.of(&sim.world);
        for rows in particles.occupied_rows(topology).chunks(BATCH) {
            let records = particles.copy_all(rows)?;
            let patches: Vec<(u32, Vec<u8>)> = rows.iter().copied().zip(records).collect();
            let read = parallel::map(&patches, |(row, records)| {
                let patch = PatchPlace {
                    domain: &topology.domain,
                    level: topology.level(*row).unwrap_or(0),
                    index: topology.index(*row),
                };
                let records = records.chunks_exact(particles.record_bytes());
                let point = |record| self.point(particles, record, &patch);
                records.map(point).collect::<Vec<_>>()
            });
            points.extend(read.into_iter().flatten());
        }
        Ok(())
    }

    fn point(&self, particles: &dyn ParticleSet, record: &[u8], patch: &PatchPlace) -> MassPoint {
        let values = |column: &ParticleColumn| match column.at {
            None => particles.derive(&column.what.name, record, patch),
            Some(at) => [0, 1, 2].map(|n| match n < column.values() {
                true => number(
                    &record[at + n * column.data_type.size()..],
                    column.data_type,
                ),
                false => 0.0,
            }),
        };
        MassPoint {
            position: particles.derive("position", record, patch),
            velocity: self.velocity.as_ref().map_or([0.0; 3], values),
            mass: values(&self.mass)[0],
            identity: [particles.identity(record).unwrap_or(0), self.number],
        }
    }
}

/// Reads a floating-point number.
fn number(bytes: &[u8], data_type: DataType) -> f64 {
    match data_type {
        DataType::F32 => bytes
            .first_chunk()
            .map_or(0.0, |b| f32::from_le_bytes(*b).into()),
        _ => bytes.first_chunk().map_or(0.0, |b| f64::from_le_bytes(*b)),
    }
}

/// Adds the gas of the leaf cells of this rank. The second number of its identities is larger than those of particles.
fn read_gas(sim: &Engine, points: &mut Vec<MassPoint>) -> Result<(), Error> {
    let topology = sim.world.resource::<Topology>();
    let stores = sim.world.resource::<Stores>().all();
    let Some(gas) = stores.into_iter().find(|store| store.name == Gas::NAME) else {
        return Ok(());
    };
    for level in 0..=topology.finest() {
        let width = topology.domain.cell_width(level);
        let volume: f64 = width.iter().product();
        let cells = topology.domain.cells(level).map(|n| n as u64);
        let rows = topology.rows(level).iter().copied();
        let rows: Vec<u32> = rows.filter(|&row| topology.is_leaf(row)).collect();
        for rows in rows.chunks(BATCH) {
            let values = gas.of(&sim.world).save(level, DENSITY, rows)?.into_f64();
            for (n, density) in values.into_iter().enumerate() {
                let (patch, cell) = (topology.index(rows[n / CELLS]), n % CELLS);
                let within = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
                let index = [0, 1, 2].map(|a| patch[a] as u64 * PATCH as u64 + within[a] as u64);
                let position = [0, 1, 2]
                    .map(|a| topology.domain.left_edge[a] + (index[a] as f64 + 0.5) * width[a]);
                points.push(MassPoint {
                    position,
                    velocity: [0.0; 3],
                    mass: density * volume,
                    identity: [
                        (index[2] * cells[1] + index[1]) * cells[0] + index[0],
                        u64::MAX - level as u64,
                    ],
                });
            }
        }
    }
    Ok(())
}
