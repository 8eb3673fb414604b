//! Systems of sinks: gather them, find new ones, let them accrete and merge.

use super::accretion::{Accretion, AccretionRule, Gain, Sink, Threshold};
use super::cells::dense_minimum;
use super::config::{NEEDED, SinksConfig};
use super::formation::{Candidate, Formation};
use super::rules::SinkRule;
use super::volumes::{Neighbourhood, Point};
use crate::births::{MassQuantum, NewParticle, ParticleBirths, SelectedParticle};
use crate::fields::{Gas, GasLosses, GasModel, Potential};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Lane, Real};
use nestar_engine::comm::Ranks;
use nestar_engine::data::{CellAddress, CellSource, LevelRows};
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::{BudgetId, Budgets, Read, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::mesh::exact_sum::ExactSum;

/// Numbers of the budget, in order.
pub(super) const TAKEN: [&str; 2] = ["accreted_mass", "merged"];

/// The sinks of a run.
#[derive(Resource)]
pub(super) struct SinkSettings {
    pub config: SinksConfig,
    pub rule: SinkRule,
    pub threshold: Threshold,
    pub gravity: f64,
    pub budget: BudgetId,
    /// Places of scalars among those of the species.
    pub columns: SinkColumns,
}

/// Numbers of the scalars of the species.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SinkColumns {
    birth_time: Option<usize>,
    spin: [Option<usize>; 3],
    birth_mass: Option<usize>,
    /// For each scalar of the gas.
    accreted: Vec<Option<usize>>,
}

impl SinkColumns {
    /// Finds the scalars of a species by name; `gas` are the names of the scalars of the gas.
    pub fn of(species: &[String], gas: &[String]) -> Self {
        let find = |name: &str| species.iter().position(|own| own == name);
        let [birth_time, spin @ ..] = NEEDED.map(find);
        Self {
            birth_time,
            spin,
            birth_mass: find("birth_mass"),
            accreted: gas
                .iter()
                .map(|name| find(&format!("{name}_mass")))
                .collect(),
        }
    }

    /// Returns what all ranks need to know of a sink, as numbers.
    fn encode(&self, sink: &SelectedParticle, level: usize) -> Vec<f64> {
        let particle = &sink.particle;
        let scalar = |n: Option<usize>| n.map_or(0.0, |n| particle.scalars[n]);
        let mut numbers = vec![f64::from_bits(particle.id)];
        numbers.extend(sink.place_on(level));
        numbers.extend(particle.velocity);
        numbers.push(particle.mass);
        numbers.extend(self.spin.map(scalar));
        numbers.extend(self.accreted.iter().map(|n| scalar(*n)));
        numbers
    }

    /// Returns the sink of such numbers.
    fn decode(numbers: &[f64]) -> Sink {
        let three = |n: usize| [numbers[n], numbers[n + 1], numbers[n + 2]];
        Sink {
            id: Some(numbers[0].to_bits()),
            position: three(1),
            velocity: three(4),
            mass: numbers[7],
            spin: three(8),
            scalars: numbers[11..].to_vec(),
        }
    }

    /// Sets the mass and the scalars of a particle to those of a sink with its gain.
    fn set(&self, sink: &Sink, gain: &Gain, particle: SinkNumbers) {
        *particle.mass = sink.mass + gain.mass;
        let mut set = |n: Option<usize>, value: f64| {
            if let Some(n) = n {
                particle.scalars[n] = value;
            }
        };
        for axis in 0..3 {
            set(self.spin[axis], sink.spin[axis] + gain.spin[axis]);
        }
        for (n, column) in self.accreted.iter().enumerate() {
            let own = sink.scalars.get(n).copied().unwrap_or(0.0);
            let more = gain.scalars.get(n).copied().unwrap_or(0.0);
            set(*column, own + more);
        }
    }
}

/// The numbers of a particle that change.
struct SinkNumbers<'a> {
    mass: &'a mut f64,
    scalars: &'a mut Vec<f64>,
}

/// Sinks of the level, the same on all ranks, and the particles of this rank.
#[derive(Resource, Default)]
pub(super) struct LevelSinks {
    /// By identity; then those that form in this step.
    sinks: Vec<Sink>,
    own: Vec<SelectedParticle>,
    /// Cells of this rank in which sinks form, with their numbers in `sinks`.
    forming: Vec<(usize, CellAddress)>,
}

/// What the systems depend on.
#[derive(SystemParam)]
pub(super) struct SinkInput<'w> {
    topology: Res<'w, Topology>,
    clock: Res<'w, LevelClock>,
    model: Res<'w, GasModel>,
    settings: Res<'w, SinkSettings>,
    losses: Option<ResMut<'w, GasLosses>>,
}

impl SinkInput<'_> {
    /// Returns `true` on the finest level.
    fn is_finest(&self) -> bool {
        self.clock.level == self.topology.max_level
    }

    fn around(&self) -> Neighbourhood<'_> {
        let radius = self.settings.config.accretion_radius;
        Neighbourhood::new(&self.topology, self.clock.level, radius)
    }
}

/// Gathers the sinks of the finest level.
pub(super) fn gather_sinks(
    input: SinkInput,
    mut births: ParticleBirths,
    mut sinks: ResMut<LevelSinks>,
) -> Result<(), Error> {
    *sinks = LevelSinks::default();
    if !input.is_finest() {
        return Ok(());
    }
    let SinkSettings {
        config, columns, ..
    } = &*input.settings;
    let all = [f64::NEG_INFINITY, f64::INFINITY];
    sinks.own = births.select(&config.species, NEEDED[0], all)?;
    let level = input.clock.level;
    let own = sinks.own.iter();
    let own: Vec<f64> = own.flat_map(|sink| columns.encode(sink, level)).collect();
    let all = births.ranks().gather(&own)?;
    let all = all.chunks_exact(11 + columns.accreted.len());
    sinks.sinks = all.map(SinkColumns::decode).collect();
    sinks.sinks.sort_by_key(|sink| sink.id);
    Ok(())
}

/// Finds cells of the finest level in which sinks form.
pub(super) fn find_forming_sinks(
    rows: LevelRows,
    input: SinkInput,
    gas: Read<Gas>,
    potential: Read<Potential, 1>,
    ranks: Res<Ranks>,
    quantum: Res<MassQuantum>,
    mut sinks: ResMut<LevelSinks>,
) -> Result<(), Error> {
    if !input.is_finest() {
        return Ok(());
    }
    let around = input.around();
    let density = [input.settings.threshold.density];
    let found = potential.collect::<dense_minimum>(&rows, &gas, &density);
    let formation = Formation {
        rule: &input.settings.rule,
        model: &input.model,
        around: &around,
        gravity: input.settings.gravity,
        threshold: &input.settings.threshold,
        least_mass: 1.0 / quantum.quanta_per_mass,
    };
    let level = input.clock.level;
    let count = CellSource::count(&gas) + 1;
    let cells: Vec<CellAddress> = found.iter().map(|minimum| minimum.at).collect();
    let states = gas.cells(level, &cells)?;
    let dense = found.iter().zip(states.chunks_exact(count - 1));
    let dense = dense.filter(|(_, state)| formation.is_dense(state));
    let own = dense.map(|(minimum, _)| Candidate {
        cell: minimum.at.index(&input.topology),
        unused: 0,
        potential: minimum.record,
    });
    let is_far = |candidate: &Candidate| {
        let here = Point::centre_of(candidate.cell);
        let mut all = sinks.sinks.iter();
        all.all(|sink| !around.are_near(here, sink.point()))
    };
    let own: Vec<Candidate> = own.filter(is_far).collect();
    let candidates = ranks.gather(&own)?;
    let points = candidates.iter().map(|one| Point::centre_of(one.cell));
    let points: Vec<Point> = points.collect();
    let read = |cells: &[CellAddress]| {
        let states = gas.cells(level, cells)?;
        let potentials = potential.cells(level, cells)?;
        let states = states.chunks_exact(count - 1).zip(potentials);
        Ok(states
            .flat_map(|(state, potential)| state.iter().copied().chain([potential]))
            .collect())
    };
    let volumes = around.sample(&points, count, read, &ranks)?;
    let scalars = input.model.scalars.len();
    for n in formation.choose(&candidates, &volumes) {
        let cell = candidates[n].cell;
        let at = CellAddress::in_own_leaf(&input.topology, level, cell);
        let number = sinks.sinks.len();
        sinks.forming.extend(at.map(|at| (number, at)));
        sinks.sinks.push(Sink {
            position: Point::centre_of(cell).0,
            velocity: formation.mean_velocity(&volumes[n]),
            scalars: vec![0.0; scalars],
            ..Sink::default()
        });
    }
    Ok(())
}

/// Lets sinks take gas, form and merge.
pub(super) fn accrete(
    rows: LevelRows,
    mut input: SinkInput,
    sinks: Res<LevelSinks>,
    quantum: Res<MassQuantum>,
    mut gas: Write<Gas>,
    mut births: ParticleBirths,
    mut budgets: ResMut<Budgets>,
) -> Result<(), Error> {
    if sinks.sinks.is_empty() {
        return Ok(());
    }
    let level = input.clock.level;
    if let Some(losses) = &mut input.losses {
        losses.note(level);
    }
    let sinks = &*sinks;
    let (around, settings) = (input.around(), &*input.settings);
    let points: Vec<Point> = sinks.sinks.iter().map(Sink::point).collect();
    let count = CellSource::count(&gas);
    let read = |cells: &[CellAddress]| gas.cells(level, cells);
    let volumes = around.sample(&points, count, read, births.ranks())?;
    let rule = AccretionRule {
        rule: &settings.rule,
        model: &input.model,
        around: &around,
        threshold: &settings.threshold,
        gravity: settings.gravity,
        least_mass: 1.0 / quantum.quanta_per_mass,
        round: in_precision!(gas.precision(), R => |x| R::lit(x).to_f64()),
    };
    let mut accretion = rule.apply(&sinks.sinks, &volumes);
    let accreted = accretion.gains.iter().map(|gain| gain.mass);
    let accreted: Vec<f64> = accreted.collect();
    let ended = match settings.config.merge {
        true => rule.merge(&sinks.sinks, &mut accretion.gains),
        false => Vec::new(),
    };
    let change = SinkChange {
        input: &input,
        sinks,
        accretion: &accretion,
        ended: &ended,
    };
    change.apply_to_gas(&rows, &mut gas)?;
    change.apply_to_particles(&mut births)?;
    let mut taken: [ExactSum; TAKEN.len()] = Default::default();
    if births.ranks().rank() == 0 {
        accreted.into_iter().for_each(|mass| taken[0].add(mass));
        taken[1].add(ended.len() as f64);
    }
    budgets.add_sums(settings.budget, level, taken);
    Ok(())
}

/// What a step changes.
struct SinkChange<'a> {
    input: &'a SinkInput<'a>,
    sinks: &'a LevelSinks,
    accretion: &'a Accretion,
    /// Numbers of sinks that have merged with others.
    ended: &'a [usize],
}

impl SinkChange<'_> {
    /// Removes what sinks take from the cells of this rank.
    fn apply_to_gas(&self, rows: &LevelRows, gas: &mut Write<Gas>) -> Result<(), Error> {
        let (topology, level) = (&*self.input.topology, self.input.clock.level);
        let (mut cells, mut kept) = (Vec::new(), Vec::new());
        for (index, share) in self.accretion.kept() {
            if let Some(at) = CellAddress::in_own_leaf(topology, level, index) {
                cells.push(at);
                kept.push(share);
            }
        }
        let mut states = gas.cells(level, &cells)?;
        let of_cells = states.chunks_exact_mut(CellSource::count(gas));
        for (kept, state) in kept.iter().zip(of_cells) {
            self.input.model.reduce(state, *kept);
        }
        match gas.set_cells(rows, level, &cells, &states) {
            None => Ok(()),
            Some(n) => Err(Error::Setup(format!(
                "the gas in cell {} of the patch {:?} on level {level} is unphysical after the accretion by a sink: use \
                 `hydro.dual_energy`, or raise `sinks.density`",
                cells[n].cell,
                topology.index(cells[n].row),
            ))),
        }
    }

    /// Changes the sinks of this rank, creates new ones and removes those that have merged. Collective.
    fn apply_to_particles(&self, births: &mut ParticleBirths) -> Result<(), Error> {
        let settings = &self.input.settings;
        let species = &settings.config.species;
        let number_of = |id: u64| {
            let mut all = self.sinks.sinks.iter();
            all.position(|sink| sink.id == Some(id))
        };
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        for own in &self.sinks.own {
            let Some(n) = number_of(own.particle.id) else {
                continue;
            };
            let gain = &self.accretion.gains[n];
            if self.ended.contains(&n) {
                gone.push(own.particle.id);
            } else if gain.mass > 0.0 {
                let (mut own, sink) = (own.clone(), &self.sinks.sinks[n]);
                own.particle.velocity = sink.velocity_with(gain);
                let numbers = SinkNumbers {
                    mass: &mut own.particle.mass,
                    scalars: &mut own.particle.scalars,
                };
                settings.columns.set(sink, gain, numbers);
                changed.push(own);
            }
        }
        if self.sinks.sinks.iter().any(|sink| sink.id.is_some()) {
            births.change(species, &changed)?;
        }
        if !self.ended.is_empty() {
            births.end(species, &gone)?;
        }
        let born = self.sinks.forming.iter();
        let born = born.filter(|(n, _)| self.accretion.gains[*n].mass > 0.0);
        let scalars = births.species().named(species)?.scalars.len();
        let born: Vec<NewParticle> = born
            .map(|(n, at)| self.new_sink(*n, *at, scalars))
            .collect();
        if self.sinks.sinks.iter().any(|sink| sink.id.is_none()) {
            births.add(species, &born)?;
        }
        Ok(())
    }

    /// Returns a sink that forms in a cell of this rank.
    fn new_sink(&self, number: usize, at: CellAddress, scalars: usize) -> NewParticle {
        let (sink, gain) = (&self.sinks.sinks[number], &self.accretion.gains[number]);
        let columns = &self.input.settings.columns;
        let mut born = NewParticle {
            row: at.row,
            offset: NewParticle::centre_of(at.cell),
            velocity: gain.momentum.map(|momentum| momentum / gain.mass),
            mass: 0.0,
            scalars: vec![0.0; scalars],
        };
        let numbers = SinkNumbers {
            mass: &mut born.mass,
            scalars: &mut born.scalars,
        };
        columns.set(sink, gain, numbers);
        if let Some(n) = columns.birth_time {
            born.scalars[n] = self.input.clock.end;
        }
        if let Some(n) = columns.birth_mass {
            born.scalars[n] = gain.mass;
        }
        born
    }
}
