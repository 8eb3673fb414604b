//! Density and positions of particles in a picture.

use crate::PlotOptions;
use crate::error::{PlotError, Result, nearest};
use crate::view::PlotView;
use nestar_snapshot::Snapshot;

/// Prefix of particle groups in snapshots.
pub(crate) const GROUP: &str = "particles/";
/// Name of the array of positions.
const POSITION: &str = "position";
/// Name of the array of masses.
const MASS: &str = "mass";
/// Name of the selection of all species.
const ALL: &str = "all";

/// Particles of a species to read from a snapshot.
#[derive(Clone, Copy)]
pub(crate) struct PlottedSpecies<'a> {
    /// Path of the group, `particles/NAME`.
    pub path: &'a str,
    /// `true` to weight particles by mass, `false` to count them.
    pub massive: bool,
}

/// Returns the groups of the species in a snapshot, `particles/NAME`.
pub(crate) fn species(snapshot: &Snapshot) -> Vec<String> {
    let paths = snapshot.particles().map(|items| items.path.clone());
    paths.filter(|path| path.starts_with(GROUP)).collect()
}

/// Returns the name of the species of a group.
pub(crate) fn name(path: &str) -> &str {
    path.strip_prefix(GROUP).unwrap_or(path)
}

/// Returns the species selected by the options, with their numbers in the snapshot.
pub(crate) fn selected_species(
    snapshot: &Snapshot,
    options: &PlotOptions,
) -> Result<Vec<(usize, String)>> {
    let all = species(snapshot);
    let names: Vec<String> = all.iter().map(|path| name(path).to_string()).collect();
    let fail = |text: String| Err(PlotError::Option(text));
    if names.is_empty() && !options.particles.is_empty() {
        return fail("the snapshot has no particles".to_string());
    }
    let unknown = |wanted: &&String| *wanted != ALL && !names.contains(wanted);
    if let Some(wanted) = options.particles.iter().find(unknown) {
        let hint = nearest(wanted, &names)
            .map_or(String::new(), |near| format!("did you mean {near:?}? "));
        let known = names.join(", ");
        return fail(format!(
            "there are no particles {wanted:?}; {hint}known are {known}, and {ALL:?} for all"
        ));
    }
    let is_selected = |path: &str| {
        options
            .particles
            .iter()
            .any(|wanted| wanted == ALL || wanted == name(path))
    };
    let numbered = all.into_iter().enumerate();
    Ok(numbered.filter(|(_, path)| is_selected(path)).collect())
}

/// Calls `work` with the arrays of one shard of particles at a time, until it returns `false`.
fn for_each_chunk(
    snapshot: &Snapshot,
    path: &str,
    arrays: &[&str],
    mut work: impl FnMut(&[Vec<f64>]) -> bool,
) -> Result<()> {
    let headers = snapshot.particles().filter(|items| items.path == path);
    let count = headers.map(|items| items.count).sum();
    let shard = Snapshot::shard_particles(count).max(1);
    for first in (0..count).step_by(shard as usize) {
        let range = first..(first + shard).min(count);
        let read = |array: &&str| {
            Ok(snapshot
                .read_particles(path, array, range.clone())?
                .into_f64())
        };
        if !work(&arrays.iter().map(read).collect::<Result<Vec<_>>>()?) {
            break;
        }
    }
    Ok(())
}

/// Returns `true` if any particle of the species has mass.
pub(crate) fn have_mass(snapshot: &Snapshot, path: &str) -> Result<bool> {
    let mut found = false;
    if snapshot
        .columns(path)
        .iter()
        .any(|column| column.name == MASS)
    {
        for_each_chunk(snapshot, path, &[MASS], |arrays| {
            found = arrays[0].iter().any(|&mass| mass > 0.0);
            !found
        })?;
    }
    Ok(found)
}

/// Calls `work` with position and weight of each particle in the picture.
///
/// The position is in pixels from the lower left corner. The weight is the mass, or 1 for a source without mass.
pub(crate) fn for_each_particle(
    snapshot: &Snapshot,
    source: PlottedSpecies,
    view: &PlotView,
    mut work: impl FnMut([f64; 2], f64),
) -> Result<()> {
    let arrays = [POSITION, MASS];
    let arrays = &arrays[..1 + usize::from(source.massive)];
    let scale = view.scale();
    for_each_chunk(snapshot, source.path, arrays, |numbers| {
        for (n, position) in numbers[0].as_chunks::<3>().0.iter().enumerate() {
            let (place, depth) = view.project(*position);
            if !view.slab.contains(&depth) {
                continue;
            }
            let weight = numbers.get(1).map_or(1.0, |masses| masses[n]);
            for right in &view.shifts[0] {
                for up in &view.shifts[1] {
                    let shifts = [right, up];
                    let at = |i: usize| (place[i] + shifts[i] - view.left[i]) * scale[i];
                    work([at(0), at(1)], weight);
                }
            }
        }
        true
    })
}

/// Returns mass (or number) per area of each pixel, by cloud-in-cell deposition; in a slice, per volume.
///
/// The part of a cloud outside the picture is added to the pixel at the edge, so the total mass is exact. Particles outside are left out.
pub(crate) fn density(
    snapshot: &Snapshot,
    source: PlottedSpecies,
    view: &PlotView,
) -> Result<Vec<f64>> {
    let mut values = vec![0.0; view.pixels[0] * view.pixels[1]];
    let depth = view.at.map_or(1.0, |_| view.slab.end - view.slab.start);
    let per_mass = view.scale()[0] * view.scale()[1] / depth;
    for_each_particle(snapshot, source, view, |at, mass| {
        let inside = |i: usize| (-1e-6..=view.pixels[i] as f64 + 1e-6).contains(&at[i]);
        if !(inside(0) && inside(1)) {
            return;
        }
        let [columns, rows] = [0, 1].map(|i| cloud_in_cell(at[i], view.pixels[i]));
        for (row, upwards) in rows {
            for (column, across) in columns {
                values[row * view.pixels[0] + column] += mass * per_mass * upwards * across;
            }
        }
    })?;
    Ok(values)
}

/// Returns the two pixels covered by a cloud of one pixel's width around `at`, with their weights.
fn cloud_in_cell(at: f64, pixels: usize) -> [(usize, f64); 2] {
    let lower = (at - 0.5).floor();
    let upper = at - 0.5 - lower;
    // the cast saturates at 0
    let pixel = |number: f64| (number as usize).min(pixels - 1);
    [(pixel(lower), 1.0 - upper), (pixel(lower + 1.0), upper)]
}
