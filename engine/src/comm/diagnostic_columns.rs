//! Columns of diagnostics that reduce a function of a cell over all cells.
//!
//! Results have the same bits on any number of ranks.

use super::totals::pairwise_sum;
use super::{Ranks, RanksError, Reduction, exchange};
use crate::data::device::DeviceTopology;
use crate::data::level::LevelView;
use crate::data::{CellSource, CellValue, Components, Field, Pool, Stores};
use crate::mesh::{Clock, LevelClock, Levels, Topology};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::order::{order_key, value_of_key};
use std::borrow::Cow;
use std::sync::Arc;

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

/// Returns the additional fields that a cell function reads.
type ExtraFields = for<'a> fn(&'a World) -> Vec<&'a dyn CellSource>;

/// Computes the values of columns.
type ColumnValues = Arc<dyn Fn(&mut World) -> Result<Vec<f64>, RanksError> + Send + Sync>;

/// Columns whose values are computed together.
struct DiagnosticColumn {
    names: Vec<Cow<'static, str>>,
    /// Field whose halo is read, if any.
    reads: Option<&'static str>,
    values: ColumnValues,
}

/// Columns that plugins add to `diagnostics.csv`, in order of registration.
#[derive(Resource, Default)]
pub struct DiagnosticColumns(Vec<DiagnosticColumn>);

impl DiagnosticColumns {
    /// Adds a column: the function `M` of `components` of field `F`, reduced over all leaf cells.
    pub fn add<F: Field, M: CellValue>(
        world: &mut World,
        components: Components,
        name: &'static str,
        reduce: Reduce,
        parameters: M::Parameters,
    ) where
        M::Parameters: Send + Sync,
    {
        let others: ExtraFields = |_| Vec::new();
        Self::add_with::<F, M>(world, (components, others), name, reduce, parameters);
    }

    /// As [`DiagnosticColumns::add`], for a function that also reads field `G`.
    pub fn add_of_two<F: Field, G: Field, M: CellValue>(
        world: &mut World,
        components: Components,
        name: &'static str,
        reduce: Reduce,
        parameters: M::Parameters,
    ) where
        M::Parameters: Send + Sync,
    {
        let others: ExtraFields = |world| vec![Pool::<G>::of(world)];
        Self::add_with::<F, M>(world, (components, others), name, reduce, parameters);
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
        world.resource_mut::<Self>().0.push(DiagnosticColumn {
            names: names.into_iter().map(Into::into).collect(),
            reads: None,
            values: Arc::new(values),
        });
    }

    fn add_with<F: Field, M: CellValue>(
        world: &mut World,
        (components, others): (Components, ExtraFields),
        name: &'static str,
        reduce: Reduce,
        parameters: M::Parameters,
    ) where
        M::Parameters: Send + Sync,
    {
        let mut fields = world.resource_mut::<Stores>();
        fields.reads(F::NAME, M::REACH);
        let values = move |world: &mut World| {
            of_all_levels::<F, M>(world, (components, others), reduce, &parameters)
                .map(|value| vec![value])
        };
        world.resource_mut::<Self>().0.push(DiagnosticColumn {
            names: vec![name.into()],
            reads: (M::REACH > 0).then_some(F::NAME),
            values: Arc::new(values),
        });
    }

    /// Returns the names of all columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.0.iter().flat_map(|column| &column.names);
        names.map(|name| &**name)
    }

    /// Returns the values of all columns, after updating the halos that they read. Collective.
    ///
    /// # Errors
    /// The device or another rank has failed.
    pub fn values(world: &mut World) -> Result<Vec<f64>, RanksError> {
        let fields = world.resource::<Stores>().all();
        let columns = world.resource::<Self>().0.iter();
        let columns: Vec<_> = columns.map(|c| (c.reads, c.values.clone())).collect();
        let mut values = Vec::with_capacity(columns.len());
        for (reads, numbers) in columns {
            let read = fields.iter().filter(|field| Some(field.name) == reads);
            for field in read {
                for level in 0..=world.resource::<Topology>().finest() {
                    exchange::refresh_halo(world, level, std::slice::from_ref(field))?;
                }
            }
            values.extend(numbers(world)?);
        }
        Ok(values)
    }
}

fn of_all_levels<F: Field, M: CellValue>(
    world: &World,
    (components, others): (Components, ExtraFields),
    reduce: Reduce,
    parameters: &M::Parameters,
) -> Result<f64, RanksError> {
    let pool = Pool::<F>::of(world);
    let others = others(world);
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
            let sums = pool.patch_sums::<M>(&view, &others, parameters)?;
            sum += topology.domain.cell_volume(level) * pairwise_sum(&sums, ranks)?;
        } else {
            let negate = reduce == Reduce::Smallest;
            key = key.max(pool.largest_key::<M>(&view, &others, negate, parameters)?);
        }
    }
    if reduce == Reduce::Integral {
        return Ok(sum);
    }
    if !ranks.is_single() {
        let mut keys = [key];
        ranks.communicator().reduce(Reduction::Max, &mut keys)?;
        [key] = keys;
    }
    let value = value_of_key(key);
    Ok(if reduce == Reduce::Smallest {
        -value
    } else {
        value
    })
}

/// Returns the clock of a level between two steps.
fn clock_of(world: &World, level: usize) -> LevelClock {
    let Clock { time, steps, .. } = world.resource::<Levels>().clock(level);
    LevelClock {
        level,
        step: steps,
        time,
        dt: 0.0,
        end: time,
        cell_width: world.resource::<Topology>().domain.cell_width(level),
    }
}
