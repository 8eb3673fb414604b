//! Summary of a snapshot as text.

use crate::{
    BlobHeader, DataType, FieldHeader, LEAF, LevelHeader, PATCH_SIZE, ParticlesHeader, Result,
    Snapshot,
};
use std::fmt::Write;

/// Number of patches to read at a time.
const BATCH: u64 = 1024;

/// Extremes and volume integral of a field over the leaf cells.
#[derive(Clone, Copy)]
struct Statistics {
    min: f64,
    max: f64,
    total: f64,
}

impl Statistics {
    /// Statistics of no values.
    const NONE: Self = Self {
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        total: 0.0,
    };

    /// Updates the extremes; a NaN replaces both, so that it is visible.
    fn update(&mut self, value: f64) {
        self.min = if value >= self.min { self.min } else { value };
        self.max = if value <= self.max { self.max } else { value };
    }
}

/// A unit in which numbers of an array are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryUnit {
    /// Name, such as `kpc`.
    pub name: String,
    /// Number of these units in a code unit.
    pub factor: f64,
}

/// Chooses the unit in which numbers are printed, from their code unit (such as `mass/length**3`) and a typical value.
pub type ChooseUnit<'a> = &'a dyn Fn(&str, f64) -> SummaryUnit;

/// Returns the [`summary_in`] code units.
///
/// # Errors
/// As [`Snapshot::read`].
pub fn summary(snapshot: &Snapshot) -> Result<String> {
    let unit = |name: &str, _| SummaryUnit {
        name: name.into(),
        factor: 1.0,
    };
    summary_in(snapshot, &unit)
}

/// Returns a summary of several lines: time, step, domain, levels, fields, particles and blobs. Each cell-centred field has
/// its extremes and volume integral over the leaf cells, each particle column its extremes and sum.
///
/// # Errors
/// As [`Snapshot::read`].
pub fn summary_in(snapshot: &Snapshot, unit: ChooseUnit) -> Result<String> {
    let mut text = header(snapshot, unit)?;
    text += &fields(snapshot, unit)?;
    for particles in snapshot.particles() {
        text += &particles_line(snapshot, particles);
        text += &columns(snapshot, particles, unit)?;
    }
    text.extend(snapshot.blobs().map(blob_line));
    Ok(text)
}

/// A row of a table of extremes and totals.
struct Row {
    name: String,
    found: Statistics,
    /// Unit of the extremes, for example `mass/length**3`.
    units: String,
    /// Unit of the total.
    total_units: String,
    note: &'static str,
}

impl Row {
    /// Formats the row for names of `width` characters.
    fn text(&self, width: usize, unit: ChooseUnit) -> String {
        let Statistics { min, max, total } = self.found;
        let own = unit(&self.units, min.abs().max(max.abs()));
        let whole = unit(&self.total_units, total.abs());
        let (min, max, total) = (own.factor * min, own.factor * max, whole.factor * total);
        format!(
            "{:width$}  {min:>13.6e}  {max:>13.6e}  {:12}  {total:>22.15e}  {}{}\n",
            self.name, own.name, whole.name, self.note
        )
    }
}

/// Formats the table of fields.
fn fields(snapshot: &Snapshot, unit: ChooseUnit) -> Result<String> {
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
    let mut text = head("field", width, "volume integral");
    for field in fields {
        let note = if field.derived { ", derived" } else { "" };
        let Some(found) = statistics(snapshot, field)? else {
            let _ = writeln!(
                text,
                "{:width$}  {:>13}  {:>13}  {:12}  {:>22}  {note}",
                field.name, "-", "-", field.units, "-"
            );
            continue;
        };
        let row = Row {
            name: field.name.clone(),
            found,
            units: field.units.clone(),
            total_units: integral_unit(&field.units),
            note,
        };
        text += &row.text(width, unit);
    }
    Ok(text)
}

/// Returns the unit of the volume integral of a field.
fn integral_unit(units: &str) -> String {
    match units.strip_suffix("/length**3") {
        Some("1") => "1".into(),
        Some(rest) => rest.into(),
        None if units == "1" => "length**3".into(),
        None => format!("{units}*length**3"),
    }
}

/// Formats the first line of a table.
fn head(what: &str, width: usize, total: &str) -> String {
    format!(
        "{what:width$}  {:>13}  {:>13}  {:12}  {total:>22}  unit\n",
        "least", "greatest", "unit"
    )
}

/// Formats a line about a kind of particles.
fn particles_line(snapshot: &Snapshot, particles: &ParticlesHeader) -> String {
    let names = snapshot.columns(&particles.path).into_iter();
    let names: Vec<&str> = names.map(|column| column.name.as_str()).collect();
    let ParticlesHeader {
        path,
        count,
        version,
    } = particles;
    format!(
        "{path}: version {version}, {count} with {}\n",
        names.join(", ")
    )
}

/// Formats the table of floating-point particle columns: extremes and sums; empty without such columns.
fn columns(snapshot: &Snapshot, particles: &ParticlesHeader, unit: ChooseUnit) -> Result<String> {
    let headers = snapshot.columns(&particles.path).into_iter();
    let headers: Vec<&FieldHeader> = headers
        .filter(|header| matches!(header.data_type, DataType::F32 | DataType::F64))
        .collect();
    if particles.count == 0 || headers.is_empty() {
        return Ok(String::new());
    }
    let width = headers.iter().map(|header| header.name.len() + 2);
    let width = width.max().unwrap_or(0);
    let mut text = head("column", width, "sum");
    for header in headers {
        let vector = header.shape.iter().product::<u64>() == 3;
        let endings: &[&str] = if vector { &["_x", "_y", "_z"] } else { &[""] };
        let found = column(snapshot, particles, header)?;
        for (ending, found) in endings.iter().zip(found) {
            let row = Row {
                name: format!("{}{ending}", header.name),
                found,
                units: header.units.clone(),
                total_units: header.units.clone(),
                note: "",
            };
            text += &row.text(width, unit);
        }
    }
    Ok(text)
}

/// Computes the statistics of the components of a column.
fn column(
    snapshot: &Snapshot,
    particles: &ParticlesHeader,
    header: &FieldHeader,
) -> Result<Vec<Statistics>> {
    let components = header.shape.iter().product::<u64>() as usize;
    let mut found = vec![Statistics::NONE; components];
    let shard = Snapshot::shard_particles(particles.count).max(1);
    for first in (0..particles.count).step_by(shard as usize) {
        let range = first..(first + shard).min(particles.count);
        let values = snapshot.read_particles(&particles.path, &header.name, range)?;
        let values = values.into_f64();
        for (n, found) in found.iter_mut().enumerate() {
            let values = values.iter().skip(n).step_by(components);
            // sum each shard first
            found.total += values.clone().sum::<f64>();
            values.for_each(|value| found.update(*value));
        }
    }
    Ok(found)
}

/// Formats a line about a blob.
fn blob_line(part: &BlobHeader) -> String {
    let BlobHeader {
        path,
        version,
        length,
        ..
    } = part;
    format!("{path}: version {version}, {length} bytes\n")
}

/// Formats the part of the summary that needs no field data.
fn header(snapshot: &Snapshot, unit: ChooseUnit) -> Result<String> {
    let attributes = snapshot.attributes();
    let megabytes = snapshot.file_bytes()? as f64 / 1e6;
    let precision = format!("{:?}", attributes.precision).to_lowercase();
    let facts = attributes.facts.iter();
    let facts: String = facts
        .map(|(name, value)| format!(", {name} {value}"))
        .collect();
    let edges = [attributes.domain_left_edge, attributes.domain_right_edge];
    let extent = (0..3).map(|axis| edges[1][axis] - edges[0][axis]);
    let length = unit("length", extent.fold(0.0, f64::max));
    let time = unit("time", attributes.time);
    let now = match attributes.units.is_changing {
        true => format!("time {} code units", plain(attributes.time)),
        false => format!(
            "time {}{}",
            plain(attributes.time * time.factor),
            suffix(&time.name)
        ),
    };
    let [[x0, y0, z0], [x1, y1, z1]] = edges.map(|edge| edge.map(|x| plain(x * length.factor)));
    let [nx, ny, nz] = attributes.root_cells;
    let mut text = format!(
        "{}: {megabytes:.2} MB\n\
         {}, step {}, {precision} precision{facts}\n\
         domain [{x0}, {x1}] x [{y0}, {y1}] x [{z0}, {z1}]{}, {nx} x {ny} x {nz} root cells, units: {}\n",
        snapshot.path().display(),
        now,
        attributes.step,
        suffix(&length.name),
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
        let width = level.cell_width[0] * length.factor;
        let _ = writeln!(
            text,
            "{:5} {:9} {cells:12} {leaves:14}  {width:e}{}",
            level.level,
            level.patches,
            suffix(&length.name)
        );
    }
    Ok(text)
}

/// Returns a unit to put after a number; code units are left out.
fn suffix(name: &str) -> String {
    match name {
        "length" | "time" => String::new(),
        name => format!(" {name}"),
    }
}

/// Formats a converted number with 14 digits, so that 0.1 + 0.2 is shown as 0.3.
fn plain(value: f64) -> String {
    let value: f64 = format!("{value:.13e}").parse().unwrap_or(value);
    match value == 0.0 || (1e-4..1e7).contains(&value.abs()) {
        true => value.to_string(),
        false => format!("{value:e}"),
    }
}

/// Computes the statistics of a field over all levels; `None` without leaf cells or for fields that are not
/// cell-centred.
fn statistics(snapshot: &Snapshot, field: &FieldHeader) -> Result<Option<Statistics>> {
    let mut sum = Statistics::NONE;
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
    for batch in leaves.chunks(BATCH as usize) {
        let values = snapshot.read_selected(level.level, name, batch)?.into_f64();
        cells += values.len();
        // Sum each patch first: the error then grows with the number of patches, not of cells.
        for patch in values.chunks(PATCH_SIZE.pow(3) as usize) {
            sum.total += patch.iter().sum::<f64>() * volume;
        }
        values.iter().for_each(|value| sum.update(*value));
    }
    Ok(cells)
}
