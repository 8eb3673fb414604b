//! Inputs of the quantities of views: components of fields, and sums over the particles in each cell.

use super::quantity::{DEPOSITS, Quantity, ViewDeposit, ViewQuantities};
use nestar_engine_data::{
    DataType, ParticleColumn, ParticleKinds, ParticleSet, ParticleSetRef, PatchPlace, StoreRef,
    Stores,
};
use nestar_engine_mesh::{Topology, parallel};
use nestar_engine_step::{Engine, Error};
use nestar_kernels::{CELLS, PATCH};

/// Name of the column with the positions of particles.
const POSITION: &str = "position";

/// What quantities are computed from.
pub(super) struct Inputs {
    /// Inputs, each once.
    list: Vec<Input>,
    /// Places of the inputs of each quantity among them.
    places: Vec<Vec<usize>>,
}

/// An input.
enum Input {
    /// A component of a field.
    Component(StoreRef, usize),
    /// The sum of a column over the particles in each cell, or their number, per volume.
    Deposit(ParticleSetRef, Option<ParticleColumn>),
}

impl Inputs {
    /// Finds the inputs of some quantities.
    ///
    /// # Errors
    /// A store or a particle set is not registered.
    pub fn new(sim: &Engine, quantities: &[Quantity]) -> Result<Self, Error> {
        let mut named: Vec<(&str, usize)> = Vec::new();
        let mut places = Vec::new();
        for quantity in quantities {
            let place = |input: &(&'static str, usize)| {
                let known = named.iter().position(|own| own == input);
                known.unwrap_or_else(|| {
                    named.push(*input);
                    named.len() - 1
                })
            };
            places.push(quantity.inputs.iter().map(place).collect());
        }
        let list = named.into_iter().map(|own| input(sim, own)).collect();
        Ok(Self {
            list: list_or_error(list)?,
            places,
        })
    }

    /// Returns the number of inputs.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the field of all inputs, if there is only one and no input is of particles.
    pub fn store(&self) -> Option<StoreRef> {
        let store = |input: &Input| match input {
            Input::Component(store, _) => Some(*store),
            Input::Deposit(..) => None,
        };
        let first = store(self.list.first()?)?;
        let same = |input| store(input).is_some_and(|own| own.name == first.name);
        self.list.iter().all(same).then_some(first)
    }

    /// Reads the inputs in some rows of a level: `[input][row][512]`.
    ///
    /// # Errors
    /// The device fails.
    pub fn read(&self, sim: &Engine, level: usize, rows: &[u32]) -> Result<Vec<Vec<f64>>, Error> {
        let values = |input: &Input| match input {
            Input::Component(store, component) => {
                let values = store.of(&sim.world).save(level, *component, rows)?;
                Ok(values.into_f64())
            }
            Input::Deposit(kind, column) => {
                let particles = kind.of(&sim.world);
                deposit(sim, particles, column.as_ref(), level, rows)
            }
        };
        self.list.iter().map(values).collect()
    }

    /// Collects the inputs of quantity `n` in patch `number` of those that were read, `[input][512]`.
    pub fn gather(&self, n: usize, read: &[Vec<f64>], number: usize, state: &mut Vec<f64>) {
        state.clear();
        for &place in &self.places[n] {
            state.extend_from_slice(&read[place][number * CELLS..][..CELLS]);
        }
    }
}

fn list_or_error(list: Vec<Result<Input, Error>>) -> Result<Vec<Input>, Error> {
    list.into_iter().collect()
}

/// Finds an input by the name of its store and its component.
fn input(sim: &Engine, (name, component): (&str, usize)) -> Result<Input, Error> {
    let missing = |name: &str| Error::Setup(format!("no plugin registers the field `{name}`"));
    if name != DEPOSITS {
        let stores = sim.world.resource::<Stores>().all();
        let store = stores.into_iter().find(|store| store.name == name);
        return Ok(Input::Component(
            store.ok_or_else(|| missing(name))?,
            component,
        ));
    }
    let deposits = &sim.world.resource::<ViewQuantities>().deposits;
    let ViewDeposit { path, column } = &deposits[component];
    let kinds = sim.world.resource::<ParticleKinds>().all();
    let kind = kinds.into_iter().find(|kind| kind.path == *path);
    let kind = kind.ok_or_else(|| missing(path))?;
    let column = match column {
        None => None,
        Some(name) => {
            let columns = kind.of(&sim.world).columns();
            let own = columns.into_iter().find(|own| own.what.name == *name);
            Some(own.ok_or_else(|| missing(&format!("{path}/{name}")))?)
        }
    };
    Ok(Input::Deposit(kind, column))
}

/// Sums a column, or 1, over the particles in each cell of some rows, per volume. A particle counts in the cell that contains it. The
/// order of summation is that of the identities.
fn deposit(
    sim: &Engine,
    particles: &dyn ParticleSet,
    column: Option<&ParticleColumn>,
    level: usize,
    rows: &[u32],
) -> Result<Vec<f64>, Error> {
    let topology = sim.world.resource::<Topology>();
    let width = topology.domain.cell_width(level);
    let volume: f64 = width.iter().product();
    let records = particles.copy_all(rows)?;
    let patches: Vec<(u32, Vec<u8>)> = rows.iter().copied().zip(records).collect();
    let sums = parallel::map(&patches, |(row, records)| {
        let patch = PatchPlace {
            domain: &topology.domain,
            level,
            index: topology.index(*row),
        };
        let corner = patch.at([0.0; 3]);
        let mut sums = vec![0.0; CELLS];
        for record in records.chunks_exact(particles.record_bytes()) {
            let at = particles.derive(POSITION, record, &patch);
            let [i, j, k] = [0, 1, 2].map(|a| {
                // the cast saturates at 0
                (((at[a] - corner[a]) / width[a]) as usize).min(PATCH - 1)
            });
            sums[(k * PATCH + j) * PATCH + i] +=
                column.map_or(1.0, |column| value(particles, column, record, &patch));
        }
        sums.iter_mut().for_each(|sum| *sum /= volume);
        sums
    });
    Ok(sums.concat())
}

/// Returns the value of a column in a record.
fn value(
    particles: &dyn ParticleSet,
    column: &ParticleColumn,
    record: &[u8],
    patch: &PatchPlace,
) -> f64 {
    let Some(at) = column.at else {
        return particles.derive(&column.what.name, record, patch)[0];
    };
    let bytes = &record[at..];
    match column.data_type {
        DataType::F32 => bytes
            .first_chunk()
            .map_or(0.0, |b| f32::from_le_bytes(*b).into()),
        _ => bytes.first_chunk().map_or(0.0, |b| f64::from_le_bytes(*b)),
    }
}
