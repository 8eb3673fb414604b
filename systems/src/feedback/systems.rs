//! The system of feedback: finds stars that explode in a step, and changes the gas around them.

use super::event_sources::{EventSource, StarsWithEvents, blown_mass, random_events};
use super::kinds::{
    FeedbackEvent, Injection, InjectionFn, Injections, SOLAR_METALLICITY, Surroundings,
};
use super::targets::{CellsAround, TargetCell};
use crate::births::{BirthCounters, ParticleBirths, SelectedParticle};
use crate::fields::{Gas, GasModel};
use crate::units::Units;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::Error;
use nestar_engine::comm::Ranks;
use nestar_engine::data::{CellAddress, CellSource, LevelRows};
use nestar_engine::mesh::{LevelClock, Topology, parallel};
use nestar_engine::step::config::BoundaryKind;
use nestar_engine::step::{BudgetId, Budgets, Settings, StepLimits, Write};
use nestar_kernels::mesh::exact_sum::ExactSum;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Scalars of stars.
pub(super) const SCALARS: [&str; 2] = ["birth_time", "birth_mass"];

/// Numbers of the budget, in order.
pub(super) const GIVEN: [&str; 5] = ["events", "mass", "metal_mass", "energy", "radiated"];

/// The feedback of a run.
#[derive(Resource)]
pub(super) struct FeedbackRule {
    pub species: String,
    /// Events, in the order of their numbers.
    pub sources: Vec<EventSource>,
    /// Time between explosions.
    pub interval: f64,
    pub budget: BudgetId,
    /// Component of the scalar `metal`.
    pub metal: Option<usize>,
    pub units: Units,
}

/// What the gas around events depends on.
#[derive(SystemParam)]
pub(super) struct FeedbackInput<'w> {
    topology: Res<'w, Topology>,
    clock: Res<'w, LevelClock>,
    settings: Res<'w, Settings>,
    model: Res<'w, GasModel>,
    rule: Res<'w, FeedbackRule>,
}

impl FeedbackRule {
    /// Returns the number of the last time of explosions until a time, which may be smaller by a hundredth of the interval: root steps
    /// end near these times.
    fn number_at(&self, time: f64) -> f64 {
        (time / self.interval + 0.01).floor()
    }

    /// Returns what an event gives to the cells around it.
    fn kind_of(&self, event: &FeedbackEvent) -> InjectionFn {
        self.sources[event.source as usize].kind
    }

    /// Gathers the events of all ranks, in the order of the cells. Events of one kind in one cell become one.
    fn gathered(&self, ranks: &Ranks, own: &[FeedbackEvent]) -> Result<Vec<FeedbackEvent>, Error> {
        let mut events = ranks.gather(own)?;
        // sources of one kind have the number of the first one
        let kind = |event: &FeedbackEvent| {
            let kind = self.kind_of(event);
            let mut all = self.sources.iter();
            all.position(|source| std::ptr::fn_addr_eq(source.kind, kind))
        };
        events.sort_by_cached_key(|event| {
            let [x, y, z] = event.cell;
            ([z, y, x], kind(event), event.id, event.source)
        });
        let of_cells = events.chunk_by(|a, b| a.cell == b.cell && kind(a) == kind(b));
        Ok(of_cells.map(FeedbackEvent::merged).collect())
    }

    /// Returns the largest age at which stars have events.
    fn last_age(&self) -> f64 {
        self.sources
            .iter()
            .map(EventSource::last_age)
            .fold(0.0, f64::max)
    }
}

/// The last root step. All levels meet at its end.
#[derive(Resource, Clone, Copy, Default)]
pub(super) struct RootStep {
    begin: f64,
    end: f64,
}

/// Lets root steps end near the next time of explosions, while there are stars that will explode.
pub(super) fn limit_by_explosions(
    rule: Res<FeedbackRule>,
    counters: Res<BirthCounters>,
    clock: Res<LevelClock>,
    mut limits: ResMut<StepLimits>,
) {
    if clock.level > 0 {
        return;
    }
    let begin = rule.number_at(clock.time);
    let last = counters.last_birth(&rule.species);
    let is_pending = |last: f64| begin * rule.interval < last + rule.last_age();
    if last.is_some_and(is_pending) {
        limits.propose("feedback", (begin + 1.0) * rule.interval - clock.time);
    }
}

/// Lets stars of the level explode at the end of a root step, if a time of explosions has passed in it.
pub(super) fn explode_stars(
    rows: LevelRows,
    input: FeedbackInput,
    mut root: ResMut<RootStep>,
    mut births: ParticleBirths,
    mut gas: Write<Gas>,
    mut budgets: ResMut<Budgets>,
) -> Result<(), Error> {
    let clock = &input.clock;
    if clock.level == 0 {
        (root.begin, root.end) = (clock.time, clock.end);
    }
    let passed = [root.begin, root.end].map(|time| input.rule.number_at(time));
    if clock.end != root.end || passed[0] == passed[1] {
        return Ok(());
    }
    let stars = input.own_stars(passed, &mut births)?;
    let own: Vec<FeedbackEvent> = stars.iter().flat_map(|star| star.events.clone()).collect();
    let events = input.rule.gathered(births.ranks(), &own)?;
    if events.is_empty() {
        return Ok(());
    }
    let lighter = stars.into_iter().map(ExplodingStar::without_ejecta);
    births.change(&input.rule.species, &lighter.collect::<Vec<_>>())?;
    let walls = input.settings.domain.boundary.faces();
    let around = CellsAround {
        topology: &input.topology,
        walls: walls.map(|sides| sides.map(|kind| kind == BoundaryKind::Reflecting)),
    };
    let level = input.clock.level;
    let targets = parallel::map_indices(events.len(), |n| around.of(n, level, events[n].cell));
    let targets = targets.concat();
    let surroundings = input.surroundings(&targets, &events, &gas, births.ranks())?;
    let injections = parallel::map_indices(events.len(), |n| {
        input.rule.kind_of(&events[n])(&events[n], &surroundings[n])
    });
    let mut given = input.own_totals(&own);
    for level in input.levels_around() {
        let cells = ChangedCells::of(level, &targets);
        input.change(&rows, &cells, &events, &injections, &mut gas, &mut given)?;
    }
    budgets.add_sums(input.rule.budget, level, given);
    Ok(())
}

impl FeedbackEvent {
    /// Returns events in one cell as one event, with the velocity of their centre of mass.
    fn merged(events: &[Self]) -> Self {
        let mut whole = events[0];
        for event in &events[1..] {
            let weights = match whole.mass + event.mass > 0.0 {
                true => [whole.mass, event.mass],
                false => [whole.count, event.count],
            };
            let all = weights[0] + weights[1];
            for (velocity, other) in whole.velocity.iter_mut().zip(event.velocity) {
                *velocity = (weights[0] * *velocity + weights[1] * other) / all;
            }
            whole.count += event.count;
            whole.energy += event.energy;
            whole.mass += event.mass;
            whole.metals += event.metals;
        }
        whole
    }
}

/// A star with events.
struct ExplodingStar {
    star: SelectedParticle,
    events: Vec<FeedbackEvent>,
}

impl ExplodingStar {
    fn of(star: SelectedParticle) -> Self {
        let events = Vec::new();
        Self { star, events }
    }

    /// Returns the mass that is left after the events.
    fn mass_left(&self) -> f64 {
        let given: f64 = self.events.iter().map(|event| event.mass).sum();
        (self.star.particle.mass - given).max(0.0)
    }

    /// Adds events of a source, or a wind of some mass.
    fn add(&mut self, number: u64, source: &EventSource, count: f64, level: usize) {
        let (is_counted, left) = (source.is_counted(), self.mass_left());
        let count = if is_counted { count } else { count.min(left) };
        if count <= 0.0 {
            return;
        }
        let mass = (count * source.ejecta).min(left);
        self.events.push(FeedbackEvent {
            id: self.star.particle.id,
            source: number,
            cell: self.star.cell_on(level),
            level: level as i32,
            velocity: self.star.particle.velocity,
            count: if is_counted { count } else { 0.0 },
            energy: count * source.energy,
            mass,
            metals: (count * source.metals).min(mass),
        });
    }

    /// Returns the star after the events.
    fn without_ejecta(mut self) -> SelectedParticle {
        self.star.particle.mass = self.mass_left();
        self.star
    }
}

/// The gas in a part of one of the 27 cells around an event.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct GasSample {
    event: u64,
    /// Number of the cell, then of the child.
    place: u64,
    part: f64,
    density: f64,
    momentum: [f64; 3],
    metals: f64,
}

impl FeedbackInput<'_> {
    /// Returns the level and those next to it.
    fn levels_around(&self) -> RangeInclusive<usize> {
        let level = self.clock.level;
        level.saturating_sub(1)..=(level + 1).min(self.topology.finest())
    }

    /// Returns the stars of this rank that explode between two times of explosions, given by their numbers, by identity.
    fn own_stars(
        &self,
        numbers: [f64; 2],
        births: &mut ParticleBirths,
    ) -> Result<Vec<ExplodingStar>, Error> {
        let passed = numbers.map(|number| number * self.rule.interval);
        let mut found: BTreeMap<u64, ExplodingStar> = BTreeMap::new();
        for (number, source) in self.rule.sources.iter().enumerate() {
            for (star, count) in self.events_of(source, passed, numbers[1] as u64, births)? {
                let exploding = found.entry(star.particle.id);
                let exploding = exploding.or_insert_with(|| ExplodingStar::of(star));
                exploding.add(number as u64, source, count, self.clock.level);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Returns the stars of this rank that have events of a source between two times, with the number of events. `step` numbers the
    /// interval.
    fn events_of(
        &self,
        source: &EventSource,
        passed: [f64; 2],
        step: u64,
        births: &mut ParticleBirths,
    ) -> Result<Vec<(SelectedParticle, f64)>, Error> {
        let species = &self.rule.species;
        let found = match source.stars(passed, step) {
            StarsWithEvents::AtRandom(rates) => {
                let mut stars = births.of(species, &SCALARS)?;
                stars.collect::<random_events>(&rates)?
            }
            StarsWithEvents::Windy(rates) => {
                let mut stars = births.of(species, &SCALARS)?;
                stars.collect::<blown_mass>(&rates)?
            }
            StarsWithEvents::Born {
                between,
                mass_per_event,
            } => {
                let mut scalars = births.species().named(species)?.scalars.iter();
                let mass = scalars.position(|own| own == SCALARS[1]);
                let mass = mass.unwrap_or_default();
                let found = births.select(species, SCALARS[0], between)?;
                let count = |star: &SelectedParticle| star.particle.scalars[mass] / mass_per_event;
                let found = found.into_iter().map(|star| (count(&star), star));
                let found = found.filter(|(count, _)| *count > 0.0);
                return Ok(found.map(|(count, star)| (star, count)).collect());
            }
        };
        let found = found.into_iter();
        Ok(found.map(|found| (found.particle, found.record)).collect())
    }

    /// Returns the sums of the budget for the events of this rank, before the gas has changed.
    fn own_totals(&self, own: &[FeedbackEvent]) -> [ExactSum; GIVEN.len()] {
        let mut sums: [ExactSum; GIVEN.len()] = Default::default();
        for event in own {
            let square: f64 = event.velocity.iter().map(|v| v * v).sum();
            sums[0].add(event.count);
            // what the gas does not take has been radiated
            sums[4].add(event.energy + 0.5 * event.mass * square);
        }
        sums
    }

    /// Returns the gas around each event: the density in each of the 27 cells, and means. Collective.
    fn surroundings(
        &self,
        targets: &[TargetCell],
        events: &[FeedbackEvent],
        gas: &Write<Gas>,
        ranks: &Ranks,
    ) -> Result<Vec<Surroundings>, Error> {
        let level = self.clock.level;
        let mut own: Vec<GasSample> = Vec::with_capacity(targets.len());
        for of_level in self.levels_around() {
            let there = targets.iter().filter(|target| target.level == of_level);
            let there: Vec<&TargetCell> = there.collect();
            let cells: Vec<CellAddress> = there.iter().map(|target| target.at).collect();
            let states = gas.cells(of_level, &cells)?;
            let states = states.chunks_exact(CellSource::count(gas));
            own.extend(there.iter().zip(states).map(|(target, state)| GasSample {
                event: target.event as u64,
                place: target.place(),
                part: target.part,
                density: state[0],
                momentum: target.mirror([state[1], state[2], state[3]]),
                // gas without metals of its own is that of the sun
                metals:
                    (self.rule.metal).map_or(SOLAR_METALLICITY * state[0], |metal| state[metal]),
            }));
        }
        let mut samples = ranks.gather(&own)?;
        samples.sort_unstable_by_key(|sample| (sample.event, sample.place));
        let domain = &self.topology.domain;
        let (width, volume) = (domain.cell_width(level), domain.cell_volume(level));
        let units = &self.rule.units;
        let empty = Surroundings {
            width: width[0],
            volume,
            units: [units.length, units.mass, units.time],
            ..Surroundings::default()
        };
        let mut means = vec![empty; events.len()];
        for samples in samples.chunk_by(|a, b| a.event == b.event) {
            let mean = &mut means[samples[0].event as usize];
            let (mut metals, mut cells) = (0.0, 0.0);
            for sample in samples {
                let number = sample.place as usize / 8;
                mean.densities[number] += sample.part * sample.density;
                for (sum, momentum) in mean.velocities[number].iter_mut().zip(sample.momentum) {
                    *sum += sample.part * momentum;
                }
                metals += sample.part * sample.metals;
                cells += sample.part;
            }
            let star = events[samples[0].event as usize].velocity;
            for (velocity, density) in mean.velocities.iter_mut().zip(mean.densities) {
                if density > 0.0 {
                    *velocity = [0, 1, 2].map(|axis| velocity[axis] / density - star[axis]);
                }
            }
            let density: f64 = mean.densities.iter().sum();
            (mean.metallicity, mean.density) = (metals / density, density / cells);
        }
        Ok(means)
    }

    /// Changes the gas of the own cells of a level, and adds what it gains to `given`.
    fn change(
        &self,
        rows: &LevelRows,
        cells: &ChangedCells,
        events: &[FeedbackEvent],
        injections: &[Injections],
        gas: &mut Write<Gas>,
        given: &mut [ExactSum; GIVEN.len()],
    ) -> Result<(), Error> {
        let volume = self.topology.domain.cell_volume(cells.level);
        let mut states = gas.cells(cells.level, &cells.addresses)?;
        let of_cells = states.chunks_exact_mut(CellSource::count(&*gas));
        let mut of_cells: Vec<(&mut [f64], &[TargetCell])> =
            of_cells.zip(cells.targets()).collect();
        let gains = parallel::map_mut(&mut of_cells, |_, (state, targets)| {
            let mut gains = [0.0; 3];
            for target in *targets {
                let event = &events[target.event];
                let injection = &injections[target.event][target.number];
                gains[0] += injection.mass * target.part;
                gains[1] += injection.metals * target.part;
                gains[2] += self.inject(state, injection, event, target, volume) * volume;
            }
            gains
        });
        for [mass, metals, energy] in gains {
            for (sum, gain) in given[1..].iter_mut().zip([mass, metals, energy, -energy]) {
                sum.add(gain);
            }
        }
        let set = gas.set_cells(rows, cells.level, &cells.addresses, &states);
        let Some(n) = set else { return Ok(()) };
        Err(Error::Setup(format!(
            "the feedback of star {} of particles.species.{} leaves unphysical gas in cell {} of the patch {:?} on level {}: use \
             `hydro.dual_energy`, double precision, or `[floors]`",
            events[cells.targets().nth(n).map_or(0, |targets| targets[0].event)].id,
            self.rule.species,
            cells.addresses[n].cell,
            self.topology.index(cells.addresses[n].row),
            cells.level
        )))
    }

    /// Adds what a cell gets to its state; returns the gain of energy per volume.
    fn inject(
        &self,
        state: &mut [f64],
        injection: &Injection,
        event: &FeedbackEvent,
        target: &TargetCell,
        volume: f64,
    ) -> f64 {
        let per_volume = target.part / volume;
        let velocity = target.mirror(event.velocity);
        let push = target.mirror(injection.momentum);
        let mass = injection.mass * per_volume;
        let kinetic = |state: &[f64]| {
            (state[1] * state[1] + state[2] * state[2] + state[3] * state[3]) / (2.0 * state[0])
        };
        let (before, density) = (kinetic(state), state[0]);
        // energy in the frame of the mesh
        let mut energy = injection.energy * per_volume;
        for axis in 0..3 {
            let momentum = push[axis] * per_volume;
            energy += (0.5 * mass * velocity[axis] + momentum) * velocity[axis];
            state[1 + axis] += mass * velocity[axis] + momentum;
        }
        state[0] += mass;
        let work = kinetic(state) - before;
        let heat = (energy - work).max(0.0);
        state[4] += work + heat;
        if let Some(internal) = self.model.internal_energy() {
            state[internal] += heat;
        }
        // species keep their shares of the gas
        let ratio = state[0] / density;
        for set in 1..=self.model.sets.count() {
            self.model
                .sets
                .members(set)
                .for_each(|member| state[member] *= ratio);
        }
        if let Some(metal) = self.rule.metal {
            state[metal] += injection.metals * per_volume;
        }
        work + heat
    }
}

impl TargetCell {
    /// Returns a vector as the wall mirrors it.
    fn mirror(&self, v: [f64; 3]) -> [f64; 3] {
        [0, 1, 2].map(|axis| {
            if self.mirrored[axis] {
                -v[axis]
            } else {
                v[axis]
            }
        })
    }

    /// Returns the number of its cell among the 27, then of its child.
    fn place(&self) -> u64 {
        (8 * self.number + self.child) as u64
    }
}

/// Cells of a level that change, each with what it gets, in the order of events and cells around them.
struct ChangedCells {
    level: usize,
    addresses: Vec<CellAddress>,
    /// In the order of the cells.
    all: Vec<TargetCell>,
}

impl ChangedCells {
    /// Groups the targets on a level by cell.
    fn of(level: usize, targets: &[TargetCell]) -> Self {
        let there = targets.iter().filter(|target| target.level == level);
        let mut all: Vec<TargetCell> = there.copied().collect();
        all.sort_unstable_by_key(|target| (target.at, target.event, target.place()));
        let mut addresses: Vec<CellAddress> = all.iter().map(|target| target.at).collect();
        addresses.dedup();
        Self {
            level,
            addresses,
            all,
        }
    }

    /// Returns the targets of each cell.
    fn targets(&self) -> impl Iterator<Item = &[TargetCell]> {
        self.all.chunk_by(|a, b| a.at == b.at)
    }
}
