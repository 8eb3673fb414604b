//! Calls of functions of particles: kinds of functions, the columns that they read, and one call on the host.

use super::device::ListId;
use super::pages::{PAGE, PageColumns, ParticleReal};
use super::selected_particle::SelectedParticle;
use super::species::Species;
use nestar_device::{CellState, ParticleFn, ParticleInputs, ParticlePlace, Precise, Real};
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::cell_record::RecordResult;
use nestar_kernels::particles::functions::{FunctionLevel, MOST_NUMBERS, SUM, particle_place};

/// A function of a particle that returns its new state: mass and velocity, and optionally scalars.
pub trait ParticleMap:
    ParticleFn<Result<f32>: CellState<f32>> + ParticleFn<Result<f64>: CellState<f64>>
{
}

impl<M> ParticleMap for M where
    M: ParticleFn<Result<f32>: CellState<f32>> + ParticleFn<Result<f64>: CellState<f64>>
{
}

/// A function of a particle that returns a number.
pub trait ParticleValue: ParticleFn<Result<f32> = f32> + ParticleFn<Result<f64> = f64> {}

impl<M> ParticleValue for M where M: ParticleFn<Result<f32> = f32> + ParticleFn<Result<f64> = f64> {}

/// A function of a particle that returns a [`CellRecord`](nestar_kernels::mesh::cell_record::CellRecord).
pub trait ParticleCollect:
    ParticleFn<Result<f32>: RecordResult<f32>> + ParticleFn<Result<f64>: RecordResult<f64>>
{
}

impl<M> ParticleCollect for M where
    M: ParticleFn<Result<f32>: RecordResult<f32>> + ParticleFn<Result<f64>: RecordResult<f64>>
{
}

/// Type of the record of a function in double precision.
pub(super) type RecordOf<M> = <<M as ParticleFn>::Result<f64> as RecordResult<f64>>::Record;

/// A particle, and the numbers of its record.
pub(super) type NumberedRecord = (SelectedParticle, Vec<f64>);

/// Number of numbers of a state.
fn numbers_of(components: [usize; 4]) -> usize {
    components.iter().sum()
}

/// Columns of the state of functions: mass, velocity, and the chosen scalars.
#[derive(Clone, Debug)]
pub(super) struct StateColumns {
    /// Columns, counted after the identity; -1 for the mass that all particles have.
    pub columns: [i32; MOST_NUMBERS],
    /// Number of columns.
    count: usize,
    /// Mass of each particle, if all have the same.
    pub mass: f64,
    /// Names of the scalars.
    pub scalars: Vec<String>,
    /// Name of the species.
    pub species: String,
}

impl StateColumns {
    /// Returns the columns of a species with these scalars.
    ///
    /// # Errors
    /// The key of the deck, and the reason why it does not fit.
    pub fn of(species: &Species, scalars: &[&str]) -> Result<Self, [String; 2]> {
        let masses = species.pool.columns.masses;
        let mut columns = [0; MOST_NUMBERS];
        columns[..4].copy_from_slice(&[if masses { 9 } else { -1 }, 3, 4, 5]);
        let key = format!("particles.species.{}.scalars", species.name);
        if scalars.len() + 4 > MOST_NUMBERS {
            let why = format!(
                "a function of particles reads at most {} scalars of `{key}`",
                MOST_NUMBERS - 4
            );
            return Err([key, why]);
        }
        for (column, name) in columns[4..].iter_mut().zip(scalars) {
            let Some(n) = species.scalars.iter().position(|own| own == name) else {
                let why = format!(
                    "a function of particles reads the scalar {name:?}, which the species does not have: add it to `{key}`"
                );
                return Err([key, why]);
            };
            *column = (9 + usize::from(masses) + n) as i32;
        }
        Ok(Self {
            columns,
            count: 4 + scalars.len(),
            mass: species.mass,
            scalars: scalars.iter().map(ToString::to_string).collect(),
            species: species.name.clone(),
        })
    }

    /// Checks that a function can read this state.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn fits<M: ParticleFn>(&self) -> Result<(), String> {
        let read = numbers_of(M::State::<f64>::COMPONENTS);
        if read <= self.count {
            return Ok(());
        }
        Err(format!(
            "`{}` reads {read} numbers of each particle of particles.species.{}: the mass, the velocity and {} scalars; {} are \
             named where it is added",
            M::ITEM.name,
            self.species,
            read.saturating_sub(4),
            self.scalars.len()
        ))
    }

    /// Checks that a function can also set this state.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn fits_map<M: ParticleMap>(&self) -> Result<(), String> {
        self.fits::<M>()?;
        let set = numbers_of(M::Result::<f64>::COMPONENTS);
        if (4..=self.count).contains(&set) {
            return Ok(());
        }
        Err(format!(
            "`{}` returns {set} numbers, but changes particles of particles.species.{}: it returns the mass, the velocity and \
             at most the {} scalars that are named where it is added",
            M::ITEM.name,
            self.species,
            self.scalars.len()
        ))
    }

    /// Describes the leading numbers of a state.
    pub fn describe(&self, numbers: &[f64]) -> String {
        let mut text = format!("the mass {:e}", numbers[0]);
        text += &format!(", the velocity {:?}", &numbers[1..4]);
        let scalars = self.scalars.iter().zip(&numbers[4..]);
        scalars.for_each(|(name, value)| text += &format!(", {name} {value:e}"));
        text
    }
}

/// A call of a function on particles that a level moves.
pub(super) struct FunctionCall<'a, M: ParticleFn> {
    pub topology: &'a Topology,
    /// Present if fields are on a device.
    pub tables: Option<&'a DeviceTopology>,
    pub columns: &'a StateColumns,
    /// Clock of the level.
    pub clock: LevelClock,
    /// Mass quanta per unit mass.
    pub quanta_per_mass: f64,
    pub parameters: &'a M::Parameters,
}

/// Returns the lists of the particles that a level moves.
pub(super) fn lists_of(level: usize) -> impl Iterator<Item = ListId> {
    let coarser = level.checked_sub(1).map(|level| ListId { level, list: 1 });
    coarser.into_iter().chain([ListId { level, list: 0 }])
}

impl<M: ParticleFn> FunctionCall<'_, M> {
    /// Describes the level and the patches of a list.
    pub fn level_of(&self, at: ListId) -> FunctionLevel {
        let domain = &self.topology.domain;
        FunctionLevel {
            left: domain.left_edge,
            patch_width: domain
                .cell_width(at.level)
                .map(|width| PATCH as f64 * width),
            width: domain.cell_width(self.clock.level),
            level: self.clock.level as i32,
            time: self.clock.time,
            dt: self.clock.dt,
            numbers: self.clock.middle,
        }
    }
}

/// What an update of particles adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct UpdateSums {
    /// Change of the mass in quanta, as the bits of an `i64`.
    pub gained: u64,
    /// Mass in quanta by which particles have become heavier.
    pub grown: u64,
    /// Number of particles with another mass.
    pub changed: u64,
    /// Largest complement of the identity of a particle with an invalid result; 0 if there is none.
    pub invalid: u64,
}

impl UpdateSums {
    /// Adds the sums of other particles.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            gained: self.gained.wrapping_add(other.gained),
            grown: self.grown.wrapping_add(other.grown),
            changed: self.changed + other.changed,
            invalid: self.invalid.max(other.invalid),
        }
    }
}

/// What a reduction finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionReduction {
    /// [`SUM`] or another kind.
    pub what: i32,
    /// Units per unit of the result in a sum.
    pub scale: f64,
}

impl FunctionReduction {
    /// Combines two integers.
    pub fn joined(self, a: u64, b: u64) -> u64 {
        match self.what {
            SUM => a.wrapping_add(b),
            _ => a.max(b),
        }
    }
}

/// A particle, as an input of a function.
pub(super) struct CalledParticle<'a, R> {
    pub level: &'a FunctionLevel,
    /// Index of the patch on its level.
    pub index: [i32; 3],
    pub id: u64,
    /// Offset in the patch in units of 2^-64 of its width.
    pub offset: [u64; 3],
    /// State, number by number.
    pub numbers: [R; MOST_NUMBERS],
    /// Numbers before each member of the state.
    firsts: [usize; 4],
}

impl<'a, R: ParticleReal> CalledParticle<'a, R> {
    /// Reads particle `n` of a page of a patch.
    #[inline(always)]
    pub fn read<M: ParticleFn>(
        (level, index): (&'a FunctionLevel, [i32; 3]),
        columns: &StateColumns,
        page: &PageColumns<R>,
        n: usize,
    ) -> Self {
        let mut numbers = [R::lit(0.0); MOST_NUMBERS];
        let read = numbers.iter_mut().zip(&columns.columns);
        for (number, &column) in read.take(columns.count) {
            *number = match usize::try_from(column) {
                Ok(column) => page.numbers[PAGE * column + n],
                Err(_) => R::lit(columns.mass),
            };
        }
        Self {
            level,
            index,
            id: page.id[n],
            offset: page.offset_of(n),
            numbers,
            firsts: firsts(M::State::<R>::COMPONENTS),
        }
    }

    /// Calls a function.
    #[inline(always)]
    pub fn call<M: ParticleFn>(
        &self,
        parameters: &<M::Parameters as Precise>::In<R>,
    ) -> M::Result<R> {
        M::call::<R>(self, parameters)
    }
}

impl<R: Real> ParticleInputs<R> for CalledParticle<'_, R> {
    #[inline(always)]
    fn value(&self, member: usize, number: usize) -> R {
        self.numbers[self.firsts[member] + number]
    }

    #[inline(always)]
    fn place(&self) -> ParticlePlace<R> {
        particle_place(self.level, self.id, self.offset, self.index)
    }
}

/// Returns the numbers before each member of a state.
fn firsts([a, b, c, _]: [usize; 4]) -> [usize; 4] {
    [0, a, a + b, a + b + c]
}

/// Returns the numbers of a state, and how many there are.
#[inline(always)]
pub(super) fn numbers<R: Real, S: CellState<R>>(state: &S) -> ([R; MOST_NUMBERS], usize) {
    let (mut numbers, firsts) = ([R::lit(0.0); MOST_NUMBERS], firsts(S::COMPONENTS));
    let mut set = |member: usize, n: usize, number: R| numbers[firsts[member] + n] = number;
    state.write(&mut set, 0, 0);
    (numbers, numbers_of(S::COMPONENTS))
}
