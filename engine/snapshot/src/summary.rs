//! A description of a snapshot for people.

use crate::{
    FieldHeader, ItemsHeader, LEAF, LevelHeader, PATCH_SIZE, PartHeader, Result, Snapshot,
};
use std::fmt::Write;

/// Patches that are in memory at a time.
const STRETCH: u64 = 1024;

/// Extremes and volume integral of a field over the leaf cells.
#[derive(Clone, Copy)]
struct Statistics {
    min: f64,
    max: f64,
    total: f64,
}

/// A text of several lines: time, step, domain, levels with their patches and cells, and for every field with one
/// value per cell its unit, least and greatest value and volume integral over the leaf cells (code units); the items with their
/// arrays, the parts beside the fields with their versions and sizes.
///
/// # Errors
/// As [`Snapshot::read`].
pub fn summary(snapshot: &Snapshot) -> Result<String> {
    let mut text = header(snapshot)?;
    let mut fields: Vec<&FieldHeader> = snapshot
        .levels()
        .flat_map(|level| snapshot.fields(level.level))
        .collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    fields.dedup_by(|a, b| a.name == b.name);
    let width = fields
        .iter()
        .map(|field| field.name.len())
        .max()
        .unwrap_or(0)
        .max(5);
    let _ = writeln!(
        text,
        "{:width$}  {:>13}  {:>13}  {:>22}  unit",
        "field", "least", "greatest", "volume integral"
    );
    for field in fields {
        let unit = match field.derived {
            true => format!("{}, derived", field.units),
            false => field.units.clone(),
        };
        let Some(Statistics { min, max, total }) = statistics(snapshot, field)? else {
            let _ = writeln!(
                text,
                "{:width$}  {:>13}  {:>13}  {:>22}  {unit}",
                field.name, "-", "-", "-"
            );
            continue;
        };
        let _ = writeln!(
            text,
            "{:width$}  {min:>13.6e}  {max:>13.6e}  {total:>22.15e}  {unit}",
            field.name
        );
    }
    text.extend(snapshot.items().map(|items| counted(snapshot, items)));
    text.extend(snapshot.parts().map(described));
    Ok(text)
}

/// A line about a kind of items.
fn counted(snapshot: &Snapshot, items: &ItemsHeader) -> String {
    let names = snapshot.columns(&items.path).into_iter();
    let names: Vec<&str> = names.map(|column| column.name.as_str()).collect();
    let ItemsHeader {
        path,
        count,
        version,
    } = items;
    format!(
        "{path}: version {version}, {count} with {}\n",
        names.join(", ")
    )
}

/// A line about a part.
fn described(part: &PartHeader) -> String {
    let PartHeader {
        path,
        version,
        length,
        ..
    } = part;
    format!("{path}: version {version}, {length} bytes\n")
}

/// The part of the summary that needs no field.
fn header(snapshot: &Snapshot) -> Result<String> {
    let attributes = snapshot.attributes();
    let megabytes = snapshot.file_bytes()? as f64 / 1e6;
    let precision = format!("{:?}", attributes.precision).to_lowercase();
    let facts = attributes.facts.iter();
    let facts: String = facts
        .map(|(name, value)| format!(", {name} {value}"))
        .collect();
    let [[x0, y0, z0], [x1, y1, z1]] = [attributes.domain_left_edge, attributes.domain_right_edge];
    let [nx, ny, nz] = attributes.root_cells;
    let mut text = format!(
        "{}: {megabytes:.2} MB\n\
         time {}, step {}, {precision} precision{facts}\n\
         domain [{x0}, {x1}] x [{y0}, {y1}] x [{z0}, {z1}], {nx} x {ny} x {nz} root cells, units: {}\n",
        snapshot.path().display(),
        attributes.time,
        attributes.step,
        attributes.units.name,
    );
    let _ = writeln!(
        text,
        "level   patches        cells   leaf patches  cell width"
    );
    for level in snapshot.levels() {
        let leaves = snapshot
            .read(level.level, LEAF)?
            .bytes()
            .iter()
            .filter(|&&leaf| leaf == 1)
            .count();
        let cells = level.patches * PATCH_SIZE.pow(3);
        let width = level.cell_width[0];
        let _ = writeln!(
            text,
            "{:5} {:9} {cells:12} {leaves:14}  {width:e}",
            level.level, level.patches
        );
    }
    Ok(text)
}

/// The statistics of a field over all levels that have it; `None` if it has no leaf cell or no value per cell.
fn statistics(snapshot: &Snapshot, field: &FieldHeader) -> Result<Option<Statistics>> {
    let mut sum = Statistics {
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        total: 0.0,
    };
    let mut cells = 0;
    for level in snapshot.levels() {
        let has = snapshot
            .fields(level.level)
            .iter()
            .any(|other| other.name == field.name && other.is_per_cell());
        if has {
            cells += add_level(snapshot, level, &field.name, &mut sum)?;
        }
    }
    Ok((cells > 0).then_some(sum))
}

/// Adds the leaf cells of one level and returns their number.
fn add_level(
    snapshot: &Snapshot,
    level: &LevelHeader,
    name: &str,
    sum: &mut Statistics,
) -> Result<usize> {
    let leaf = snapshot.read(level.level, LEAF)?;
    let leaves: Vec<u64> = (0..level.patches)
        .filter(|&patch| leaf.bytes()[patch as usize] == 1)
        .collect();
    let volume: f64 = level.cell_width.iter().product();
    let mut cells = 0;
    for stretch in leaves.chunks(STRETCH as usize) {
        let values = snapshot
            .read_selected(level.level, name, stretch)?
            .into_f64();
        cells += values.len();
        // Sums of one patch first: the error grows with the number of patches, not of cells.
        for patch in values.chunks(PATCH_SIZE.pow(3) as usize) {
            sum.total += patch.iter().sum::<f64>() * volume;
        }
        for &value in &values {
            // A NaN is greater than everything and less than everything, so that it shows.
            sum.min = if value >= sum.min { sum.min } else { value };
            sum.max = if value <= sum.max { sum.max } else { value };
        }
    }
    Ok(cells)
}
