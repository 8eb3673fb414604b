//! Reduces over the cells of all ranks in an order that does not depend on the number of ranks.
//!
//! Totals of fields, and columns of diagnostics that reduce a function of a cell.

use super::{Ranks, RanksError, exchange};
use bevy_ecs::prelude::*;
use nestar_engine_data::device::DeviceTopology;
use nestar_engine_data::level::LevelView;
use nestar_engine_data::operators::RepairedOnHost;
use nestar_engine_data::{
    CellValue, Components, DerivedInputs, Field, InputList, MeshContext, Parameters, Pool,
    StoreRef, Stores, pairwise,
};
use nestar_engine_mesh::{Clock, LevelClock, Levels, Topology};
use nestar_kernels::mesh::order::{order_key, value_of_key};
use nestar_kernels::mesh::parameters::RepairedCells;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Returns the volume integral of each component of `field` with its remainder over all leaf cells, in double precision. Collective.
///
/// The patches of a level are summed pairwise in Hilbert order.
///
/// # Errors
/// The device or another rank has failed.
pub fn totals(world: &World, field: &StoreRef) -> Result<Vec<f64>, RanksError> {
    let topology = world.resource::<Topology>();
    let ranks = world.resource::<Ranks>();
    let components = field.of(world).spec().components.len();
    let mut totals = vec![0.0; components];
    for level in 0..=topology.finest() {
        let volume = topology.domain.cell_volume(level);
        let halves = PairwiseTree::of(topology.rows(level).len(), components, ranks)?;
        let own = field
            .of(world)
            .node_sums(&MeshContext::of(world), level, &halves.own_nodes())?;
        for (total, sum) in totals.iter_mut().zip(halves.join(own, ranks)?) {
            *total += volume * sum;
        }
    }
    Ok(totals)
}

/// Sums one number per patch of a level over all ranks, pairwise in Hilbert order. Collective.
fn pairwise_sum(of_patches: &[f64], ranks: &Ranks) -> Result<f64, RanksError> {
    let halves = PairwiseTree::of(of_patches.len(), 1, ranks)?;
    let nodes = halves.own_nodes();
    let sum = |node: &Range<usize>| pairwise(of_patches, 0, 1, node.start, node.end);
    let sums = halves.join(nodes.iter().map(sum).collect(), ranks)?;
    Ok(sums.first().copied().unwrap_or(0.0))
}

/// Returns the number of unphysical cells repaired between levels since the start of the run, summed over all ranks.
/// Collective.
///
/// Round-off in averages and flux corrections makes such cells. Waits for the device.
///
/// # Errors
/// The device or another rank has failed.
pub fn cells_repaired_between_levels(world: &World) -> Result<RepairedCells, RanksError> {
    let mut repaired = world.resource::<RepairedOnHost>().0;
    for field in &world.resource::<Stores>().all() {
        let on_device = field.of(world).repaired_on_device()?;
        repaired.averages += on_device.averages;
        repaired.corrections += on_device.corrections;
    }
    let ranks = world.resource::<Ranks>();
    Ok(RepairedCells {
        averages: ranks.sum(repaired.averages)?,
        corrections: ranks.sum(repaired.corrections)?,
    })
}

/// Binary tree over the patches of a level for pairwise summation. Its shape does not depend on the number of ranks.
struct PairwiseTree {
    components: usize,
    rank: usize,
    /// By rank: one past its last patch in the order of the whole level.
    ends: Vec<usize>,
}

impl PairwiseTree {
    /// Creates the tree of a level of which this rank has `count` patches.
    fn of(count: usize, components: usize, ranks: &Ranks) -> Result<Self, RanksError> {
        let count = (count as u64).to_le_bytes();
        let counts = ranks.communicator().all_gather(&count)?;
        let mut end = 0;
        let mut ends = |count: &Vec<u8>| {
            end += bytemuck::pod_read_unaligned::<u64>(count) as usize;
            end
        };
        Ok(Self {
            components,
            rank: ranks.rank(),
            ends: counts.iter().map(&mut ends).collect(),
        })
    }

    fn count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the largest nodes that consist of own patches only, as ranges of own patches in order.
    ///
    /// There are at most two for every level of the tree.
    fn own_nodes(&self) -> Vec<Range<usize>> {
        let before = self.rank.checked_sub(1).map_or(0, |rank| self.ends[rank]);
        let mut nodes = Vec::new();
        self.halve(0, self.count(), &mut |owner, from, to| {
            if owner == self.rank {
                nodes.push(from - before..to - before);
            }
            Vec::new()
        });
        nodes
    }

    /// Returns the sums of the level from those of all nodes; `own` has those of this rank, `[node][component]`.
    fn join(&self, own: Vec<f64>, ranks: &Ranks) -> Result<Vec<f64>, RanksError> {
        if self.count() == 0 {
            return Ok(vec![0.0; self.components]);
        }
        let of_ranks = ranks
            .communicator()
            .all_gather(bytemuck::cast_slice(&own))?;
        let nodes = |bytes: &Vec<u8>| bytemuck::pod_collect_to_vec::<u8, f64>(bytes).into_iter();
        let mut of_ranks: Vec<_> = of_ranks.iter().map(nodes).collect();
        Ok(self.halve(0, self.count(), &mut |owner, _, _| {
            of_ranks[owner].by_ref().take(self.components).collect()
        }))
    }

    /// Sums patches `from..to` recursively, down to nodes owned by one rank, whose sums `node` returns.
    fn halve(
        &self,
        from: usize,
        to: usize,
        node: &mut impl FnMut(usize, usize, usize) -> Vec<f64>,
    ) -> Vec<f64> {
        if from == to {
            return Vec::new();
        }
        let owner = self.ends.partition_point(|&end| end <= from);
        if to <= self.ends[owner] {
            return node(owner, from, to);
        }
        let middle = from + (to - from) / 2;
        let low = self.halve(from, middle, node);
        let high = self.halve(middle, to, node);
        low.iter().zip(high).map(|(a, b)| a + b).collect()
    }
}

/// Reduction of a column over all leaf cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Minimum; NaN if any value is NaN.
    Smallest,
    /// Maximum; NaN if any value is NaN.
    Largest,
    /// Sum of value times cell volume.
    Integral,
}

/// Inputs of the function of a column.
pub struct ColumnInputs {
    /// Components of the first field that form the first state.
    pub components: Components,
    /// Returns the other fields.
    pub others: for<'a> fn(&'a World) -> InputList<'a>,
    /// Derived inputs in place of other fields.
    pub numbers: Option<Arc<DerivedInputs>>,
}

/// Computes the values of columns from those of earlier ones.
type ColumnValues = Arc<dyn Fn(&mut World, &[f64]) -> Result<Vec<f64>, RanksError> + Send + Sync>;

/// Columns whose values are computed together.
struct DiagnosticColumn {
    names: Vec<Cow<'static, str>>,
    /// Field whose halo is read, if any.
    reads: Option<&'static str>,
    /// Names of the earlier columns that are read.
    of: Vec<String>,
    values: ColumnValues,
}

/// Columns that plugins add to `diagnostics.csv`, in order of registration.
#[derive(Resource, Default)]
pub struct DiagnosticColumns {
    columns: Vec<DiagnosticColumn>,
    /// Names and units in code units.
    units: Vec<(String, String)>,
}

impl DiagnosticColumns {
    /// First columns of every run.
    pub const FIRST: [&'static str; 4] = ["step", "time", "dt", "limiter"];
    /// Columns of the counters of every run.
    pub const COUNTERS: [&'static str; 8] = [
        "cell_updates_per_second",
        "memory_bytes",
        "first_order_cells",
        "retried_steps",
        "repaired_averages",
        "repaired_corrections",
        "capped_patches",
        "imbalance",
    ];
    /// Beginnings of the names of other columns: patches of levels, totals with their drifts, and times.
    const PREFIXES: [&'static str; 4] = ["patches_", "total_", "drift_", "seconds_"];

    /// Returns `true` if there is a column of this name, or if every run may have one.
    #[must_use]
    pub fn is_taken(&self, name: &str) -> bool {
        let mut names = self.names().chain(Self::FIRST).chain(Self::COUNTERS);
        names.any(|other| other == name)
            || Self::PREFIXES.iter().any(|begin| name.starts_with(begin))
    }

    /// Adds a column: the function `M` of field `F` and `inputs`, reduced over all leaf cells.
    pub fn add<F: Field, M: CellValue>(
        world: &mut World,
        inputs: ColumnInputs,
        name: &'static str,
        reduce: Reduce,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) where
        M::Parameters: Send + Sync,
    {
        let parameters = parameters.into();
        let mut fields = world.resource_mut::<Stores>();
        fields.reads(F::NAME, M::REACH);
        let values = move |world: &mut World, _: &[f64]| {
            let levels = world.resource::<Levels>();
            let parameters = parameters.at(levels.numbers_at(levels.time(0)));
            let value = inputs.reduce::<F, M>(world, reduce, &parameters);
            value.map(|value| vec![value])
        };
        world.resource_mut::<Self>().columns.push(DiagnosticColumn {
            names: vec![name.into()],
            reads: (M::REACH > 0).then_some(F::NAME),
            of: Vec::new(),
            values: Arc::new(values),
        });
    }

    /// Adds a column for a number that a plugin keeps and that is equal on all ranks.
    pub fn add_number(
        world: &mut World,
        name: impl Into<Cow<'static, str>>,
        value: impl Fn(&World) -> f64 + Send + Sync + 'static,
    ) {
        Self::add_numbers(world, [name], move |world| Ok(vec![value(world)]));
    }

    /// Adds columns for numbers that a plugin computes together and that are equal on all ranks.
    ///
    /// `values` is called by all ranks and may communicate.
    pub fn add_numbers(
        world: &mut World,
        names: impl IntoIterator<Item = impl Into<Cow<'static, str>>>,
        values: impl Fn(&mut World) -> Result<Vec<f64>, RanksError> + Send + Sync + 'static,
    ) {
        let values = move |world: &mut World, _: &[f64]| values(world);
        world.resource_mut::<Self>().columns.push(DiagnosticColumn {
            names: names.into_iter().map(Into::into).collect(),
            reads: None,
            of: Vec::new(),
            values: Arc::new(values),
        });
    }

    /// Adds a column that is computed from earlier columns `of` in the same row; the value of a column that does not exist is 0. A run calls
    /// `value` once for each row, in order: it may sum over rows in a resource that snapshots store (`Engine::register_state`).
    pub fn add_of_columns<const N: usize>(
        world: &mut World,
        name: impl Into<Cow<'static, str>>,
        of: [&str; N],
        value: impl Fn(&mut World, [f64; N]) -> f64 + Send + Sync + 'static,
    ) {
        let values = move |world: &mut World, of: &[f64]| {
            Ok(vec![value(world, std::array::from_fn(|n| of[n]))])
        };
        world.resource_mut::<Self>().columns.push(DiagnosticColumn {
            names: vec![name.into()],
            reads: None,
            of: of.map(String::from).to_vec(),
            values: Arc::new(values),
        });
    }

    /// Sets the unit of a column in code units, for example `mass/length**3`; also that of `NAME_LEVEL` for all levels.
    pub fn set_units(world: &mut World, name: impl Into<String>, units: impl Into<String>) {
        let all = &mut world.resource_mut::<Self>().units;
        all.push((name.into(), units.into()));
    }

    /// Returns the unit of a column, if it is known.
    #[must_use]
    pub fn units(&self, name: &str) -> Option<&str> {
        let of = |name: &str| {
            let found = self.units.iter().find(|(own, _)| own == name);
            found.map(|(_, units)| &**units)
        };
        let of_level = || {
            let (all, level) = name.rsplit_once('_')?;
            of(all).filter(|_| level.bytes().all(|b| b.is_ascii_digit()))
        };
        of(name).or_else(of_level)
    }

    /// Returns the names of all columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.columns.iter().flat_map(|column| &column.names);
        names.map(|name| &**name)
    }

    /// Returns the values of all columns, after updating the halos that they read. Collective.
    ///
    /// # Errors
    /// The device or another rank has failed.
    pub fn values(world: &mut World) -> Result<Vec<f64>, RanksError> {
        let fields = world.resource::<Stores>().all();
        let all = world.resource::<Self>();
        let names: Vec<String> = all.names().map(String::from).collect();
        let columns = all.columns.iter();
        let columns: Vec<_> = columns
            .map(|c| (c.reads, c.of.clone(), c.values.clone()))
            .collect();
        let mut values = Vec::with_capacity(names.len());
        for (reads, of, numbers) in columns {
            let earlier = |name: &String| {
                let found = names.iter().position(|own| own == name);
                found.and_then(|n| values.get(n).copied()).unwrap_or(0.0)
            };
            let of: Vec<f64> = of.iter().map(earlier).collect();
            let read = fields.iter().filter(|field| Some(field.name) == reads);
            for field in read {
                for level in 0..=world.resource::<Topology>().finest() {
                    exchange::refresh_halo(world, level, std::slice::from_ref(field))?;
                }
            }
            values.extend(numbers(world, &of)?);
        }
        Ok(values)
    }
}

impl ColumnInputs {
    /// Reduces the function `M` of field `F` and these inputs over all leaf cells. Collective.
    ///
    /// # Errors
    /// The device or another rank has failed.
    pub fn reduce<F: Field, M: CellValue>(
        &self,
        world: &World,
        reduce: Reduce,
        parameters: &M::Parameters,
    ) -> Result<f64, RanksError> {
        let pool = Pool::<F>::of(world);
        let components = self.components;
        let inputs = (self.others)(world).with_numbers(self.numbers.as_deref());
        let (topology, ranks) = (world.resource::<Topology>(), world.resource::<Ranks>());
        let (mut sum, mut key) = (0.0, order_key(f64::NEG_INFINITY));
        for level in 0..=topology.finest() {
            let view = LevelView {
                components,
                topology,
                clock: clock_of(world, level),
                tables: world.get_resource::<DeviceTopology>(),
            };
            if reduce == Reduce::Integral {
                let sums = pool.patch_sums::<M>(&view, inputs, parameters)?;
                sum += topology.domain.cell_volume(level) * pairwise_sum(&sums, ranks)?;
            } else {
                let negate = reduce == Reduce::Smallest;
                key = key.max(pool.largest_key::<M>(&view, inputs, negate, parameters)?);
            }
        }
        if reduce == Reduce::Integral {
            return Ok(sum);
        }
        let value = value_of_key(ranks.max(key)?);
        Ok(if reduce == Reduce::Smallest {
            -value
        } else {
            value
        })
    }
}

/// Returns the clock of a level between two steps.
fn clock_of(world: &World, level: usize) -> LevelClock {
    let levels = world.resource::<Levels>();
    let Clock { time, steps, .. } = levels.clock(level);
    let numbers = levels.numbers_at(time);
    LevelClock {
        level,
        step: steps,
        time,
        dt: 0.0,
        end: time,
        cell_width: world.resource::<Topology>().domain.cell_width(level),
        numbers,
        middle: numbers,
    }
}

#[cfg(test)]
mod tests {
    use super::{PairwiseTree, pairwise};
    use crate::{Ranks, ThreadRank};

    /// Values whose sum depends on the order of summation.
    fn values(count: usize) -> Vec<f64> {
        (0..2 * count)
            .map(|n| 1.0 / (n as f64 + 0.3) + 1e-3)
            .collect()
    }

    fn on_ranks(counts: &[usize]) -> Vec<Vec<u64>> {
        let all = values(counts.iter().sum());
        std::thread::scope(|scope| {
            let mut before = 0;
            let mut started = Vec::new();
            for (ranks, &count) in ThreadRank::connect(counts.len()).into_iter().zip(counts) {
                let own = &all[2 * before..2 * (before + count)];
                before += count;
                started.push(scope.spawn(move || {
                    let ranks = Ranks::new(ranks);
                    let halves = PairwiseTree::of(count, 2, &ranks).unwrap();
                    let nodes = halves.own_nodes();
                    let sum = |node: &std::ops::Range<usize>| {
                        [0, 1].map(|c| pairwise(own, c, 2, node.start, node.end))
                    };
                    let sums = halves.join(nodes.iter().flat_map(sum).collect(), &ranks);
                    let sums = sums.unwrap();
                    sums.into_iter().map(f64::to_bits).collect()
                }));
            }
            started.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn sums_do_not_depend_on_the_number_of_ranks() {
        for counts in [
            vec![1, 0],
            vec![5, 11, 3],
            vec![0, 0, 64, 1],
            vec![7; 8],
            vec![100, 1, 0, 333, 2],
        ] {
            let count = counts.iter().sum();
            let all = values(count);
            let expected = [0, 1].map(|c| pairwise(&all, c, 2, 0, count).to_bits());
            for sums in on_ranks(&counts) {
                assert_eq!(sums, expected, "{counts:?}");
            }
            let backwards = all.iter().rev().step_by(2).sum::<f64>();
            assert!(
                count < 400 || backwards.to_bits() != expected[1],
                "a weak test"
            );
        }
        assert_eq!(on_ranks(&[0, 0]), vec![vec![0; 2]; 2]);
    }
}
