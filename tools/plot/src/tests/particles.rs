//! Tests of densities and dots of particles.

use super::sample::{Folder, Species, refined};
use super::{decode, options, pixels};
use crate::{Axis, PlotKind, PlotOptions, plot};
use nestar_snapshot::Snapshot;

/// Returns a snapshot with massive and massless particles in the domain from (−1, 0, 5) to (1, 1, 6).
fn sample(folder: &Folder) -> Snapshot {
    let dark = Species(
        "dark",
        vec![
            [-0.5, 0.25, 5.5, 3.0],
            [0.5, 0.75, 5.9, 1.0],
            [0.99999, 0.00001, 5.1, 2.0],
        ],
    );
    let dye = Species("dye", vec![[0.3, 0.3, 5.5, 0.0], [0.3, 0.3, 5.2, 0.0]]);
    refined(|_| vec![1.0]).write_with(folder, &[dark, dye])
}

fn of(field: &str, axis: Axis, kind: PlotKind) -> PlotOptions {
    PlotOptions {
        field: field.into(),
        ..options(axis, kind)
    }
}

#[test]
fn a_projection_of_particles_holds_all_their_mass() {
    let folder = Folder::new();
    let snapshot = sample(&folder);
    for (axis, area) in [(Axis::X, 1.0), (Axis::Y, 2.0), (Axis::Z, 2.0)] {
        for (field, sum) in [("particles/dark", 6.0), ("particles/dye", 2.0)] {
            let (view, raster) = pixels(&snapshot, &of(field, axis, PlotKind::Projection), 100);
            let pixel = area / (view.pixels[0] * view.pixels[1]) as f64;
            let found: f64 = raster.values.iter().map(|value| value * pixel).sum();
            assert!((found - sum).abs() < 1e-12, "{axis:?} {field}: {found}");
            assert!(!raster.outlines.is_empty());
        }
    }
    // 100 x 50 pixels with an area of 4e-4; the first particle lies between two pixels
    let projection = of("particles/dark", Axis::Z, PlotKind::Projection);
    let (_, raster) = pixels(&snapshot, &projection, 100);
    for (column, row, mass) in [(24, 12, 1.5), (25, 12, 1.5), (24, 11, 0.0), (26, 12, 0.0)] {
        let found = raster.values[row * 100 + column] * 4e-4;
        assert!((found - mass).abs() < 1e-9, "{column} {row}: {found}");
    }
}

#[test]
fn a_slice_of_particles_is_as_thick_as_the_finest_cell_or_the_depth() {
    let folder = Folder::new();
    let snapshot = sample(&folder);
    let mass = |at: f64, depth: Option<f64>, level: Option<u8>| {
        let options = PlotOptions {
            depth,
            max_level: level,
            ..of("particles/dark", Axis::Z, PlotKind::Slice(Some(at)))
        };
        let (view, raster) = pixels(&snapshot, &options, 100);
        let depth = view.slab.end - view.slab.start;
        raster.values.iter().sum::<f64>() * 4e-4 * depth
    };
    let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
    // cells are 1/32 wide on level 2, and 1/8 on level 0
    near(mass(5.51, None, None), 3.0);
    near(mass(5.52, None, None), 0.0);
    near(mass(5.55, None, Some(0)), 3.0);
    near(mass(5.6, Some(0.7), None), 4.0);
    near(mass(5.5, Some(10.0), None), 6.0);
}

#[test]
fn dots_are_where_particles_are_in_the_colour_of_their_species() {
    let folder = Folder::new();
    let snapshot = sample(&folder);
    let drawn = |names: &[&str], depth: f64| {
        let options = PlotOptions {
            particles: names.iter().map(ToString::to_string).collect(),
            depth: Some(depth),
            dot_px: Some(9.0),
            width_px: 600,
            min: Some(1.0),
            max: Some(2.0),
            ..PlotOptions::default()
        };
        let (width, height, picture) = decode(&plot(&snapshot, &options).unwrap());
        assert_eq!(width, 600);
        let count = |colour: [u8; 3]| picture.iter().filter(|pixel| **pixel == colour).count();
        (count([0, 190, 255]), count([70, 220, 60]), height)
    };
    assert_eq!((drawn(&[], 1.0).0, drawn(&[], 1.0).1), (0, 0));
    // a dot has about 64 pixels, half of them opaque; the legend has some pixels of the colour
    let (dark, dye, _) = drawn(&["all"], 0.1);
    assert!(
        (40..110).contains(&dark) && (40..110).contains(&dye),
        "{dark} {dye}"
    );
    let (dark, dye, _) = drawn(&["dark"], 2.0);
    assert!(dark > 100 && dye == 0, "{dark} {dye}");
}

#[test]
fn invalid_particle_options_are_explained() {
    let (folder, other) = (Folder::new(), Folder::new());
    let snapshot = sample(&folder);
    let without = refined(|_| vec![1.0]).write(&other);
    let error = |snapshot: &Snapshot, edit: &dyn Fn(&mut PlotOptions)| {
        let mut options = PlotOptions::default();
        edit(&mut options);
        plot(snapshot, &options).unwrap_err().to_string()
    };
    let dark = |options: &mut PlotOptions| options.particles = vec!["darc".into()];
    let unknown = error(&snapshot, &dark);
    for text in ["\"darc\"", "did you mean \"dark\"?", "dark, dye", "\"all\""] {
        assert!(unknown.contains(text), "no {text} in {unknown}");
    }
    assert!(error(&without, &dark).contains("has no particles"));
    let field = |options: &mut PlotOptions| options.field = "particles/darc".into();
    assert!(error(&snapshot, &field).contains("did you mean \"particles/dark\"?"));
    assert!(!error(&without, &field).contains("particles/dark"));
    let thin = |options: &mut PlotOptions| options.depth = Some(0.0);
    assert!(error(&snapshot, &thin).contains("depth 0"));
    let large = |options: &mut PlotOptions| options.dot_px = Some(1e3);
    assert!(error(&snapshot, &large).contains("0.5 to 100"));
    let greatest = |options: &mut PlotOptions| {
        *options = of("particles/dark", Axis::Z, PlotKind::Maximum);
    };
    assert!(error(&snapshot, &greatest).contains("no maximum"));
}
