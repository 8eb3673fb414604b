//! Particles: their density on the pixels of a picture, and where their dots are.

use crate::error::{PlotError, Result, nearest};
use crate::view::PlotView;
use crate::{Axis, PlotOptions};
use nestar_snapshot::Snapshot;

/// What the names of their groups in snapshots begin with.
const GROUP: &str = "particles/";
/// The array of their places.
const POSITION: &str = "position";
/// The array of their masses.
const MASS: &str = "mass";
/// The word for all species.
const ALL: &str = "all";

/// The species of a snapshot: their groups, `particles/NAME`.
pub(crate) fn species(snapshot: &Snapshot) -> Vec<String> {
    let paths = snapshot.particles().map(|items| items.path.clone());
    paths.filter(|path| path.starts_with(GROUP)).collect()
}

/// The name of a species.
pub(crate) fn name(path: &str) -> &str {
    path.strip_prefix(GROUP).unwrap_or(path)
}

/// The species that the options name, with their numbers among those of the snapshot.
pub(crate) fn selected_species(
    snapshot: &Snapshot,
    options: &PlotOptions,
) -> Result<Vec<(usize, String)>> {
    let there = species(snapshot);
    let names: Vec<String> = there.iter().map(|path| name(path).to_string()).collect();
    let wrong = |text: String| Err(PlotError::Option(text));
    if names.is_empty() && !options.particles.is_empty() {
        return wrong("the snapshot has no particles".to_string());
    }
    let unknown = |wanted: &&String| *wanted != ALL && !names.contains(wanted);
    if let Some(wanted) = options.particles.iter().find(unknown) {
        let hint = nearest(wanted, &names)
            .map_or(String::new(), |near| format!("did you mean {near:?}? "));
        let known = names.join(", ");
        return wrong(format!(
            "there are no particles {wanted:?}; {hint}There are {known}, and {ALL:?} for all of them"
        ));
    }
    let is_wanted = |path: &str| {
        options
            .particles
            .iter()
            .any(|wanted| wanted == ALL || wanted == name(path))
    };
    let numbered = there.into_iter().enumerate();
    Ok(numbered.filter(|(_, path)| is_wanted(path)).collect())
}

/// Calls `work` with numbers of some particles at a time, until it returns false.
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

/// Whether any particle of a species has mass.
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

/// Calls `work` with the place on the picture, in pixels from its lower left corner, and the mass (1 without `masses`) of each particle
/// that the picture shows.
pub(crate) fn for_each_particle(
    snapshot: &Snapshot,
    (path, masses): (&str, bool),
    (view, axis): (&PlotView, Axis),
    mut work: impl FnMut([f64; 2], f64),
) -> Result<()> {
    let arrays = [POSITION, MASS];
    let arrays = &arrays[..1 + usize::from(masses)];
    let scale = view.scale();
    for_each_chunk(snapshot, path, arrays, |numbers| {
        for (n, place) in numbers[0].chunks_exact(3).enumerate() {
            if view.slab.contains(&place[axis.index()]) {
                let at = |i: usize| (place[view.plane[i]] - view.left[i]) * scale[i];
                work(
                    [at(0), at(1)],
                    numbers.get(1).map_or(1.0, |masses| masses[n]),
                );
            }
        }
        true
    })
}

/// The mass (the number without `masses`) of a species for each pixel over the pixel's area, and over the depth of a slice. Each particle
/// is a square of a pixel's size. What of it is outside of the picture counts to the pixel at the edge: all mass is there.
pub(crate) fn density(
    snapshot: &Snapshot,
    species: (&str, bool),
    (view, axis): (&PlotView, Axis),
) -> Result<Vec<f64>> {
    let mut values = vec![0.0; view.pixels[0] * view.pixels[1]];
    let depth = view.at.map_or(1.0, |_| view.slab.end - view.slab.start);
    let per_mass = view.scale()[0] * view.scale()[1] / depth;
    for_each_particle(snapshot, species, (view, axis), |at, mass| {
        let [columns, rows] = [0, 1].map(|i| cloud_in_cell(at[i], view.pixels[i]));
        for (row, upwards) in rows {
            for (column, across) in columns {
                values[row * view.pixels[0] + column] += mass * per_mass * upwards * across;
            }
        }
    })?;
    Ok(values)
}

/// The two pixels, of `pixels`, that hold a cloud as wide as a pixel around `at`, and how much of it.
fn cloud_in_cell(at: f64, pixels: usize) -> [(usize, f64); 2] {
    let lower = (at - 0.5).floor();
    let upper = at - 0.5 - lower;
    // The cast saturates at 0.
    let pixel = |number: f64| (number as usize).min(pixels - 1);
    [(pixel(lower), 1.0 - upper), (pixel(lower + 1.0), upper)]
}
