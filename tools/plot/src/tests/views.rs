//! Tests of parts of the domain, of weights and of pictures in any direction.

use super::sample::{Folder, Sample, Species, blast, refined};
use super::{options, pixels};
use crate::view::periodic;
use crate::{Axis, Centre, PlotKind, PlotOptions, Zoom, plot};
use nestar_snapshot::Snapshot;

/// Returns a snapshot with two levels of refinement whose density differs from cell to cell along all axes.
fn sample(folder: &Folder) -> Snapshot {
    refined(|x| vec![1.0 + x[0] * x[0] + 3.0 * x[1] + 0.3 * x[2] * x[0]]).write(folder)
}

#[test]
fn a_zoom_shows_the_pixels_of_a_larger_picture() {
    let folder = Folder::new();
    let snapshot = sample(&folder);
    for axis in [Axis::X, Axis::Y, Axis::Z] {
        for kind in [
            PlotKind::Slice(None),
            PlotKind::Projection,
            PlotKind::Maximum,
        ] {
            let whole = options(axis, kind);
            let part = PlotOptions {
                centre: Centre::At([0.25, 0.375, 5.375]),
                zoom: Some(Zoom::Factor(4.0)),
                kind: match kind {
                    PlotKind::Slice(_) => {
                        PlotKind::Slice(Some(if axis == Axis::Z { 5.5 } else { 0.0 }))
                    }
                    kind => kind,
                },
                ..whole.clone()
            };
            let whole = PlotOptions {
                kind: part.kind,
                ..whole
            };
            let (large, all) = pixels(&snapshot, &whole, 512);
            let (small, some) = pixels(&snapshot, &part, 128);
            assert!((large.scale()[0] - small.scale()[0]).abs() < 1e-9);
            let first = [0, 1]
                .map(|i| ((small.left[i] - large.left[i]) * large.scale()[i]).round() as usize);
            let mut count = 0;
            for row in 0..small.pixels[1] {
                for column in 0..small.pixels[0] {
                    let place = [column + first[0], row + first[1]];
                    if place[0] >= large.pixels[0] || place[1] >= large.pixels[1] {
                        continue;
                    }
                    let found = some.values[row * small.pixels[0] + column];
                    assert_eq!(
                        found,
                        all.values[place[1] * large.pixels[0] + place[0]],
                        "{axis:?} {kind:?}"
                    );
                    count += 1;
                }
            }
            assert!(
                count > small.pixels[0] * small.pixels[1] / 2,
                "{axis:?} {count}"
            );
        }
    }
}

#[test]
fn a_part_beyond_the_domain_has_no_values() {
    let folder = Folder::new();
    let snapshot = sample(&folder);
    assert_eq!(periodic(&snapshot), [false; 3]);
    let corner = PlotOptions {
        centre: Centre::At([-1.0, 0.0, 5.5]),
        zoom: Some(Zoom::Width(0.5)),
        ..PlotOptions::default()
    };
    let (view, raster) = pixels(&snapshot, &corner, 100);
    assert_eq!((view.pixels, view.left), ([100, 100], [-1.25, -0.25]));
    for (i, value) in raster.values.iter().enumerate() {
        let inside = i % 100 >= 50 && i / 100 >= 50;
        assert_eq!(value.is_finite(), inside, "{i}");
    }
}

#[test]
fn periodic_axes_continue_beyond_the_domain() {
    let folder = Folder::new();
    let periodic = ["periodic", "periodic"];
    let walls = ["reflecting", "outflow"];
    let boundary = serde_json::json!({"x": periodic, "y": walls, "z": periodic});
    let snapshot = refined(|x| vec![2.0 + x[0] + x[1]]).write_within(&folder, boundary);
    let view = |at: f64| PlotOptions {
        centre: Centre::At([at, 0.5, 5.25]),
        zoom: Some(Zoom::Factor(1.0)),
        outlines: true,
        ..options(Axis::Z, PlotKind::Projection)
    };
    let (_, middle) = pixels(&snapshot, &view(0.0), 64);
    let (view, edge) = pixels(&snapshot, &view(1.0), 64);
    assert_eq!((view.pixels, view.left[0]), ([64, 32], 0.0));
    for (i, value) in edge.values.iter().enumerate() {
        let across = i / 64 * 64 + (i % 64 + 32) % 64;
        assert_eq!(*value, middle.values[across], "{i}");
    }
    assert!(edge.rectangles(&view).len() > middle.outlines.len());
}

#[test]
fn the_centre_of_the_maximum_is_the_cell_with_the_largest_value() {
    let folder = Folder::new();
    let peak = |x: [f64; 3]| -((x[0] - 0.3).powi(2) + (x[1] - 0.2).powi(2) + (x[2] - 5.1).powi(2));
    let sample = Sample {
        fields: vec![("density", "1")],
        state: |x| vec![-((x[0] - 0.3).powi(2) + (x[1] - 0.2).powi(2) + (x[2] - 5.1).powi(2))],
        ..refined(|_| vec![])
    };
    let snapshot = sample.write(&folder);
    let about = PlotOptions {
        centre: Centre::Maximum,
        zoom: Some(Zoom::Width(0.1)),
        ..PlotOptions::default()
    };
    let (view, raster) = pixels(&snapshot, &about, 100);
    // cells of 1/32 around the peak
    let nearest = [0.3, 0.2, 5.1].map(|x: f64| ((x * 32.0).floor() + 0.5) / 32.0);
    assert_eq!(view.centre, nearest);
    assert_eq!(view.at, Some(nearest[2]));
    let largest = raster
        .values
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(largest, peak(nearest));
    assert_eq!(raster.values[50 * 100 + 50], largest);
}

#[test]
fn a_direction_along_an_axis_shows_the_picture_along_it() {
    let folder = Folder::new();
    let snapshot = sample(&folder);
    let same = |kind, zoom, weight: Option<&str>| {
        for (axis, normal) in [
            (Axis::X, [2.0, 0.0, 0.0]),
            (Axis::Y, [0.0, -1.0, 0.0]),
            (Axis::Z, [0.0, 0.0, 0.5]),
        ] {
            let along = PlotOptions {
                zoom,
                weight: weight.map(str::to_string),
                centre: Centre::At([0.01, 0.52, 5.48]),
                ..options(axis, kind)
            };
            let across = PlotOptions {
                normal: Some(normal),
                ..along.clone()
            };
            let (view, expected) = pixels(&snapshot, &along, 90);
            let (turned, found) = pixels(&snapshot, &across, 90);
            assert_eq!(view.pixels, turned.pixels);
            let pairs = expected.values.iter().zip(&found.values);
            for (i, (a, b)) in pairs.enumerate() {
                let equal = (a - b).abs() <= 1e-12 * a.abs() || a.is_nan() && b.is_nan();
                assert!(equal, "{kind:?} {axis:?} {i}: {a} {b}");
            }
            assert!(
                expected
                    .values
                    .iter()
                    .filter(|value| value.is_finite())
                    .count()
                    > 1000
            );
        }
    };
    for kind in [
        PlotKind::Slice(None),
        PlotKind::Projection,
        PlotKind::Maximum,
    ] {
        same(kind, None, None);
        same(kind, Some(Zoom::Factor(1.7)), None);
    }
    same(PlotKind::Projection, None, Some("density"));
}

#[test]
fn the_opposite_direction_shows_the_mirror_image() {
    let folder = Folder::new();
    let snapshot = sample(&folder);
    for (axis, normal) in [
        (Axis::X, [-1.0, 0.0, 0.0]),
        (Axis::Y, [0.0, 1.0, 0.0]),
        (Axis::Z, [0.0, 0.0, -1.0]),
    ] {
        for kind in [PlotKind::Slice(None), PlotKind::Projection] {
            let along = options(axis, kind);
            let behind = PlotOptions {
                normal: Some(normal),
                ..along.clone()
            };
            let (view, expected) = pixels(&snapshot, &along, 128);
            let (_, found) = pixels(&snapshot, &behind, 128);
            let columns = view.pixels[0];
            for (i, value) in found.values.iter().enumerate() {
                let mirrored = i / columns * columns + columns - 1 - i % columns;
                let expected = expected.values[mirrored];
                assert!(
                    (value - expected).abs() < 1e-12 * expected,
                    "{axis:?} {kind:?} {i}"
                );
            }
        }
    }
}

#[test]
fn a_projection_in_any_direction_holds_all_mass() {
    let folder = Folder::new();
    let snapshot = refined(|_| vec![2.0]).write(&folder);
    let stars = Species("stars", vec![[0.1, 0.2, 5.3, 3.0], [-0.9, 0.9, 5.9, 1.0]]);
    let other = Folder::new();
    let particles = refined(|_| vec![2.0]).write_with(&other, &[stars]);
    for normal in [[1.0, 1.0, 1.0], [0.3, -0.7, 0.2], [-1.0, 0.0, 0.01]] {
        let turned = |field: &str| PlotOptions {
            field: field.into(),
            normal: Some(normal),
            ..options(Axis::Z, PlotKind::Projection)
        };
        let mass = |snapshot: &Snapshot, field: &str| {
            let (view, raster) = pixels(snapshot, &turned(field), 400);
            let pixel = 1.0 / (view.scale()[0] * view.scale()[1]);
            let values = raster.values.iter().filter(|value| value.is_finite());
            values.map(|value| value * pixel).sum::<f64>()
        };
        // the volume is 2; pixels at the edges are rounded
        let found = mass(&snapshot, "density");
        assert!((found / 4.0 - 1.0).abs() < 1e-3, "{normal:?} {found}");
        let found = mass(&particles, "particles/stars");
        assert!((found - 4.0).abs() < 1e-12, "{normal:?} {found}");
    }
}

#[test]
fn the_rays_through_a_cube_have_its_diagonal() {
    let folder = Folder::new();
    let snapshot = Sample {
        root: [1; 3],
        ..refined(|_| vec![1.0])
    };
    let snapshot = snapshot.write(&folder);
    let diagonal = PlotOptions {
        normal: Some([1.0; 3]),
        ..options(Axis::Z, PlotKind::Projection)
    };
    let (view, raster) = pixels(&snapshot, &diagonal, 301);
    let largest = raster
        .values
        .iter()
        .copied()
        .filter(|v| v.is_finite())
        .fold(0.0, f64::max);
    let middle = raster.values[view.pixels[1] / 2 * 301 + 150];
    // the pixel next to the middle is at most a pixel away
    assert!((middle - 3f64.sqrt()).abs() < 0.02, "{middle}");
    assert!(largest <= 3f64.sqrt() * (1.0 + 1e-12));
}

#[test]
fn a_projection_is_the_sum_of_slices() {
    let folder = Folder::new();
    let snapshot = sample(&folder);
    for (axis, cells, low) in [(Axis::X, 64, -1.0), (Axis::Y, 32, 0.0), (Axis::Z, 32, 5.0)] {
        let (_, projection) = pixels(&snapshot, &options(axis, PlotKind::Projection), 64);
        let mut sum = vec![0.0; projection.values.len()];
        // one slice in each of the finest cells
        for slice in 0..cells {
            let at = low + (f64::from(slice) + 0.5) / 32.0;
            let (_, raster) = pixels(&snapshot, &options(axis, PlotKind::Slice(Some(at))), 64);
            sum.iter_mut()
                .zip(raster.values)
                .for_each(|(sum, value)| *sum += value / 32.0);
        }
        for (found, expected) in projection.values.iter().zip(sum) {
            assert!(
                (found - expected).abs() < 1e-12 * expected.abs(),
                "{axis:?}: {found} {expected}"
            );
        }
    }
}

#[test]
fn a_weighted_projection_is_a_mean() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    let of = |field: &str, weight: Option<&str>| {
        let options = PlotOptions {
            field: field.into(),
            weight: weight.map(str::to_string),
            ..options(Axis::Y, PlotKind::Projection)
        };
        pixels(&snapshot, &options, 80).1.values
    };
    let mean = of("pressure", Some("density"));
    let (above, below) = (of("pressure*density", None), of("density", None));
    for i in 0..mean.len() {
        assert!(
            (mean[i] - above[i] / below[i]).abs() < 1e-12 * mean[i],
            "{i}"
        );
    }
    let by_volume = of("density", Some("volume"));
    // the domain is 8 long
    for (mean, integral) in by_volume.iter().zip(below) {
        assert!((mean - integral / 8.0).abs() < 1e-12 * mean);
    }
}

#[test]
fn senseless_views_are_refused_in_one_line() {
    let folder = Folder::new();
    let snapshot = sample(&folder);
    let error = |edit: &dyn Fn(&mut PlotOptions)| {
        let mut options = PlotOptions::default();
        edit(&mut options);
        let text = plot(&snapshot, &options).unwrap_err().to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    };
    for (zoom, words) in [
        (
            Zoom::Factor(0.0),
            "--zoom 0: must be a factor or a width above 0",
        ),
        (Zoom::Factor(-2.0), "--zoom -2"),
        (Zoom::Factor(f64::NAN), "--zoom NaN"),
        (Zoom::Width(0.0), "--zoom 0"),
        (Zoom::Factor(1e20), "--zoom: the picture must be"),
        (Zoom::Width(1e9), "--zoom: the picture must be"),
    ] {
        let found = error(&|options| options.zoom = Some(zoom));
        assert!(found.contains(words), "{found}");
    }
    let outside = error(&|options| options.centre = Centre::At([0.0, 0.5, 7.0]));
    assert!(
        outside.contains("--centre must lie in the domain: z from 5 to 6"),
        "{outside}"
    );
    let outside = error(&|options| options.centre = Centre::At([f64::NAN, 0.5, 5.5]));
    assert!(outside.contains("x from -1 to 1"), "{outside}");
    let none = error(&|options| options.normal = Some([0.0; 3]));
    assert!(none.contains("--normal 0,0,0"), "{none}");
    let both = error(&|options| {
        options.normal = Some([1.0; 3]);
        options.kind = PlotKind::Slice(Some(5.5));
    });
    assert!(both.contains("--slice"), "{both}");
    let weight = error(&|options| options.weight = Some("density".into()));
    assert!(weight.contains("--weight: needs --projection"), "{weight}");
    let nan = error(&|options| {
        options.field = "sqrt(-density)".into();
        options.centre = Centre::Maximum;
    });
    assert!(
        nan.contains("--centre max") && nan.contains("no finite value"),
        "{nan}"
    );
}

#[test]
fn a_turned_picture_of_256_cells_cubed_takes_less_than_two_seconds() {
    let folder = Folder::new();
    let large = Sample {
        root: [32; 3],
        left: [0.0; 3],
        refine: |_, _, _| false,
        fields: vec![("density", "1")],
        state: |x| vec![x[0] * x[1] + x[2] + 1.0],
    };
    let snapshot = large.write(&folder);
    let turned = |kind| PlotOptions {
        normal: Some([0.5, 0.3, 0.8]),
        ..options(Axis::Z, kind)
    };
    let weighted = PlotOptions {
        weight: Some("density".into()),
        ..options(Axis::Z, PlotKind::Projection)
    };
    let zoomed = PlotOptions {
        centre: Centre::Maximum,
        zoom: Some(Zoom::Factor(5.0)),
        ..PlotOptions::default()
    };
    let of = |kind, field: &str| PlotOptions {
        field: field.into(),
        across: "density^2 + 1".into(),
        ..options(Axis::Z, kind)
    };
    let all = [
        turned(PlotKind::Projection),
        turned(PlotKind::Slice(None)),
        weighted,
        zoomed,
        of(PlotKind::Projection, "density*(1 + density)"),
        of(PlotKind::Profile(crate::ProfileAxis::Radius), "density"),
        of(PlotKind::Phase, "density"),
        of(PlotKind::Line([[0.0; 3], [32.0; 3]]), "density"),
    ];
    for options in all {
        let seconds = (0..3).map(|_| seconds_on_two_cores(|| plot(&snapshot, &options).unwrap()));
        let least = seconds.fold(f64::INFINITY, f64::min);
        assert!(
            least < 2.0,
            "{:?} {:?}: {least} s",
            options.kind,
            options.normal
        );
    }
}

/// Returns the time of `work`, or half of the processor time if that is less because other programs run at the same time.
fn seconds_on_two_cores<T>(work: impl FnOnce() -> T) -> f64 {
    let processor = || {
        let text = std::fs::read_to_string("/proc/self/stat").unwrap();
        let words: Vec<&str> = text.split(' ').collect();
        let ticks = |n: usize| words[n].parse::<f64>().unwrap();
        (ticks(13) + ticks(14)) / 100.0
    };
    let (begun, used) = (std::time::Instant::now(), processor());
    work();
    (0.5 * (processor() - used)).min(begun.elapsed().as_secs_f64())
}
