//! Restart of fields: values from the snapshot, or from the deck for added components.

use crate::restart::compatibility::{COORDINATES, Fit, InitialValue};
use crate::snapshot::PatchOffsets;
use nestar_deck::Formula;
use nestar_engine_data::{RowShape, StoreRef, Stores};
use nestar_engine_mesh::{Domain, Topology};
use nestar_engine_step::{Engine, Error};
use nestar_snapshot::{Snapshot, Values};
use std::ops::Range;

/// Describes this rank's part of a shard of one component.
struct ComponentShard<'a> {
    field: StoreRef,
    component: usize,
    name: String,
    /// Formula for the values of an added component.
    formula: Option<&'a Formula>,
    shape: RowShape,
    /// Patch numbers on the level.
    patches: Range<usize>,
}

/// Divides the `own` patches of a level with `total` patches by shards and components, without components
/// that already have values.
fn parts<'a>(
    sim: &Engine,
    fit: &'a Fit,
    own: &Range<usize>,
    total: usize,
) -> Vec<ComponentShard<'a>> {
    let fields = Stores::of(&sim.world, |spec| spec.stored);
    let shard = Snapshot::shard_patches(total);
    let mut parts = Vec::new();
    let mut first = own.start;
    while first < own.end {
        let end = (first + 1).next_multiple_of(shard).min(own.end);
        for field in &fields {
            let spec = field.of(&sim.world).spec();
            for (c, component) in spec.components.iter().enumerate() {
                let formula = match fit.added.get(&component.name) {
                    Some(InitialValue::Initial) => continue,
                    Some(InitialValue::Formula(formula)) => Some(formula),
                    None => None,
                };
                parts.push(ComponentShard {
                    field: *field,
                    component: c,
                    name: component.name.clone(),
                    formula,
                    shape: spec.shape(),
                    patches: first..end,
                });
            }
        }
        first = end;
    }
    parts
}

/// Loads the fields of the own patches of a level. Works shard by shard to limit memory, and reads the next
/// shard while one is stored.
pub(crate) fn load_level(
    sim: &mut Engine,
    snapshot: &Snapshot,
    fit: &Fit,
    offsets: &PatchOffsets,
    level: usize,
) -> Result<(), Error> {
    let topology = sim.world.resource::<Topology>();
    let rows = topology.rows(level).to_vec();
    let own = offsets.own(level);
    let source = LevelReader {
        snapshot,
        level,
        first: own.start,
        origins: rows.iter().map(|&row| topology.origin(row)).collect(),
        domain: topology.domain,
    };
    let parts = parts(sim, fit, &own, offsets.total(level));
    let wrong = |part: &ComponentShard, e: String| {
        let path = snapshot.path().display();
        Error::Snapshot(format!("{path}: level {level}, {}: {e}", part.name))
    };
    let read = |part: &ComponentShard| source.values(part).map_err(|e| wrong(part, e));
    let mut values = parts.first().map(read);
    for (n, part) in parts.iter().enumerate() {
        let Some(present) = values.take().transpose()? else {
            break;
        };
        let rows = &rows[part.patches.start - own.start..part.patches.end - own.start];
        let world = &mut sim.world;
        let load = || (part.field).load(world, level, part.component, rows, &present);
        let (next, stored) = rayon::join(|| parts.get(n + 1).map(read), load);
        stored.map_err(|e| wrong(part, e))?;
        values = next;
    }
    Ok(())
}

/// Reads or computes the values of a level.
struct LevelReader<'a> {
    snapshot: &'a Snapshot,
    level: usize,
    /// Number of the first own patch.
    first: usize,
    /// Origins of the own patches, in cells of the level.
    origins: Vec<[i32; 3]>,
    domain: Domain,
}

impl LevelReader<'_> {
    /// Returns the values of a shard.
    fn values(&self, part: &ComponentShard) -> Result<Values, String> {
        match part.formula {
            Some(formula) => self.evaluate(part, formula).map(Values::F64),
            None => self.read(&part.name, &part.patches),
        }
    }

    /// Reads values from the snapshot.
    fn read(&self, name: &str, patches: &Range<usize>) -> Result<Values, String> {
        let range = patches.start as u64..patches.end as u64;
        let values = self.snapshot.read_patches(self.level as u8, name, range);
        values.map_err(|e| e.to_string())
    }

    fn evaluate(&self, part: &ComponentShard, formula: &Formula) -> Result<Vec<f64>, String> {
        let length = part.patches.len() * part.shape.values();
        let column = |name: &String| {
            if !formula.uses(name) {
                return Ok(None);
            }
            let axis = COORDINATES.iter().position(|word| word == name);
            let values = match axis {
                Some(axis) => self.coordinates(part, axis),
                None => self.read(name, &part.patches)?.into_f64(),
            };
            let alike = values.len() == length;
            let elsewhere =
                || format!("run.added: the values of `{name}` have another position in the cell");
            alike.then_some(Some(values)).ok_or_else(elsewhere)
        };
        let columns = formula.variables().iter().map(column);
        let columns: Vec<Option<Vec<f64>>> = columns.collect::<Result<_, String>>()?;
        // inputs that the formula does not use
        let zeros = vec![0.0; length];
        let columns = columns
            .iter()
            .map(|column| column.as_ref().unwrap_or(&zeros));
        let columns: Vec<&[f64]> = columns.map(Vec::as_slice).collect();
        let mut values = vec![0.0; length];
        formula.eval_many(&columns, &mut values);
        let found = values.iter().find(|value| !value.is_finite());
        let text = formula.text();
        match found {
            Some(value) => Err(format!("run.added = \"{text}\" is {value} in a cell")),
            None => Ok(values),
        }
    }

    /// Returns the coordinates of the values of a shard along an axis.
    fn coordinates(&self, part: &ComponentShard, axis: usize) -> Vec<f64> {
        let RowShape { side, centring } = part.shape;
        let lengths = centring.lengths(part.component, [side; 3]);
        let within = match centring.staggered(part.component, axis) {
            0 => 0.5,
            _ => 0.0,
        };
        let cells = part.shape.width() as f64;
        let width = self.domain.cell_width(self.level)[axis];
        let place = |origin: &[i32; 3], n: usize| {
            let cell = f64::from(origin[axis]) + (n as f64 + within) * cells;
            self.domain.left_edge[axis] + cell * width
        };
        let patches = part.patches.start - self.first..part.patches.end - self.first;
        let step: usize = lengths[..axis].iter().product();
        let numbers = 0..part.shape.values();
        let origins = self.origins[patches].iter();
        let each = origins.flat_map(|origin| {
            let numbers = numbers.clone();
            numbers.map(move |n| place(origin, n / step % lengths[axis]))
        });
        each.collect()
    }
}
