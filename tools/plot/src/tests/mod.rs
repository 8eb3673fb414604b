//! Tests of pictures against the formulas of the snapshots.

mod curves;
mod formulas;
mod particles;
mod sample;
mod views;

use crate::centre::centre;
use crate::field::PlotField;
use crate::raster::{self, Raster};
use crate::texts::rounded;
use crate::view::PlotView;
use crate::{Axis, COLOUR_MAPS, PlotError, PlotKind, PlotOptions, Scale, plot};
use nestar_snapshot::Snapshot;
use sample::{Folder, Sample, blast, refined};

/// Returns the view and pixels of a picture `width` pixels wide.
fn pixels(snapshot: &Snapshot, options: &PlotOptions, width: usize) -> (PlotView, Raster) {
    let field = PlotField::new(snapshot, &options.field, &[]).unwrap();
    let weight = options.weight.as_ref();
    let weight = weight.map(|name| PlotField::weight(snapshot, name, &[]).unwrap());
    let centre = centre(snapshot, &field, options).unwrap();
    let view = PlotView::new(snapshot, options, centre, width).unwrap();
    let raster = raster::draw(snapshot, &field, weight.as_ref(), options, &view).unwrap();
    (view, raster)
}

fn options(axis: Axis, kind: PlotKind) -> PlotOptions {
    PlotOptions {
        axis,
        kind,
        ..PlotOptions::default()
    }
}

/// Returns the side of the leaf patch of [`refined`] at a point.
fn side(x: [f64; 3]) -> f64 {
    let inside = |side: f64| x[0] >= 0.0 && x[0] < side && x[1] < side && x[2] < 5.0 + side;
    if inside(0.5) {
        0.25
    } else if inside(1.0) {
        0.5
    } else {
        1.0
    }
}

#[test]
fn every_pixel_of_a_slice_has_the_value_of_the_finest_cell_there() {
    let formula = |x: [f64; 3]| x[0] + 10.0 * x[1] + 100.0 * x[2];
    let folder = Folder::new();
    let snapshot = refined(|x| vec![x[0] + 10.0 * x[1] + 100.0 * x[2]]).write(&folder);
    for (axis, at) in [
        (Axis::Z, 5.3),
        (Axis::Z, 5.9),
        (Axis::Y, 0.1),
        (Axis::X, 0.2),
        (Axis::X, 1.0),
    ] {
        let (view, raster) = pixels(&snapshot, &options(axis, PlotKind::Slice(Some(at))), 173);
        for (i, &value) in raster.values.iter().enumerate() {
            let pixel = [i % view.pixels[0], i / view.pixels[0]];
            // the upper edge of the domain belongs to the last cells
            let mut x = [if axis == Axis::X { at.min(0.999) } else { at }; 3];
            for n in 0..2 {
                x[view.plane[n]] = view.left[n] + (pixel[n] as f64 + 0.5) / view.scale()[n];
            }
            let width = side(x) / 8.0;
            let centre: [f64; 3] = std::array::from_fn(|n| ((x[n] / width).floor() + 0.5) * width);
            assert!(
                (value - formula(centre)).abs() < 1e-9,
                "{axis:?} {at} pixel {pixel:?}: {value}, {centre:?}"
            );
        }
    }
}

#[test]
fn a_projection_integrates_along_the_line_of_sight() {
    let folder = Folder::new();
    let snapshot = refined(|x| vec![3.0 + 2.0 * x[0]]).write(&folder);
    let (_, raster) = pixels(&snapshot, &options(Axis::X, PlotKind::Projection), 64);
    // integral of 3 + 2 x from −1 to 1, for which the midpoint rule is exact
    assert!(
        raster
            .values
            .iter()
            .all(|value| (value - 6.0).abs() < 1e-12)
    );
    let (view, raster) = pixels(&snapshot, &options(Axis::Z, PlotKind::Projection), 64);
    assert_eq!(view.pixels, [64, 32]);
    let corner = 3.0 + 2.0 * (-1.0 + 0.5 / 8.0);
    assert!((raster.values[0] - corner).abs() < 1e-12);
}

#[test]
fn a_maximum_sees_the_greatest_value_on_any_level() {
    let folder = Folder::new();
    let snapshot = refined(|x| vec![-(x[2] - 5.2).abs()]).write(&folder);
    let (view, raster) = pixels(&snapshot, &options(Axis::Z, PlotKind::Maximum), 64);
    let [columns, _] = view.pixels;
    // the nearest cell centre to 5.2 has the distance 0.0125 for cells of 1/8 and 1/16, and 0.003125 for cells of 1/32
    assert!((raster.values[0] + 0.0125).abs() < 1e-9);
    assert!((raster.values[columns / 2 + 1] + 0.003125).abs() < 1e-9);
}

#[test]
fn a_level_limit_shows_the_averages_of_coarser_patches() {
    let folder = Folder::new();
    let snapshot = refined(|x| vec![x[0]]).write(&folder);
    let limited = PlotOptions {
        max_level: Some(0),
        field: "level".into(),
        ..options(Axis::Z, PlotKind::Slice(Some(5.1)))
    };
    let (_, raster) = pixels(&snapshot, &limited, 64);
    assert!(raster.values.iter().all(|&value| value == 0.0));
    assert_eq!(raster.outlines.len(), 2);
    let all = PlotOptions {
        max_level: None,
        ..limited
    };
    let (_, raster) = pixels(&snapshot, &all, 64);
    let mut levels = raster.values.clone();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    assert_eq!(levels, [0.0, 1.0, 2.0]);
    assert_eq!(raster.outlines.len(), 1 + 3 + 4);
}

/// Returns width, height and pixels of a PNG file.
pub(crate) fn decode(png: &[u8]) -> (usize, usize, Vec<[u8; 3]>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png))
        .read_info()
        .unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let pixels = bytes.as_chunks::<3>().0.to_vec();
    (info.width as usize, info.height as usize, pixels)
}

#[test]
fn a_field_of_the_callers_is_drawn_as_one_of_the_snapshot() {
    let folder = Folder::new();
    let snapshot = refined(|x| vec![1.0 + x[0] * x[0]]).write(&folder);
    let options = |field: &str| PlotOptions {
        field: field.into(),
        title: Some("t".into()),
        ..PlotOptions::default()
    };
    let own = |name: &str, array: &str| crate::CustomField {
        name: name.into(),
        units: "1".into(),
        arrays: vec![array.into()],
        value: std::sync::Arc::new(|u: &[f64]| 3.0 * u[0]),
    };
    let draw = |own: &[crate::CustomField]| crate::plot_with(&snapshot, &options("thrice"), own);
    let colours = |picture: &[u8]| {
        let (width, height, pixels) = decode(picture);
        // without colour bar and title
        let inside = |n: &usize| n % width < width / 2 && n / width > height / 4;
        (0..pixels.len())
            .filter(inside)
            .map(|n| pixels[n])
            .collect::<Vec<_>>()
    };
    let thrice = colours(&draw(&[own("thrice", "density")]).unwrap());
    // values scaled by a factor have the same colours
    assert_eq!(
        thrice,
        colours(&plot(&snapshot, &options("density")).unwrap())
    );
    // the snapshot does not have the array
    assert!(draw(&[own("thrice", "nothing")]).is_err() && draw(&[]).is_err());
}

#[test]
fn a_picture_without_values_is_an_error_with_the_reason() {
    let folder = Folder::new();
    let snapshot = refined(|_| vec![1.0]).write(&folder);
    let why = |value: f64, scale| {
        let options = PlotOptions {
            field: "time_left".into(),
            scale,
            ..PlotOptions::default()
        };
        let own = crate::CustomField {
            name: "time_left".into(),
            units: "time".into(),
            arrays: vec!["density".into()],
            value: std::sync::Arc::new(move |u: &[f64]| value * u[0]),
        };
        crate::plot_with(&snapshot, &options, &[own])
            .expect_err("nothing")
            .to_string()
    };
    for (value, words) in [
        (f64::INFINITY, "time_left is infinite in every cell"),
        (f64::NAN, "time_left is not a number in every cell"),
    ] {
        for scale in [Scale::Linear, Scale::Log] {
            let found = why(value, scale);
            assert!(found.contains(words), "{found}");
        }
    }
    let found = why(-1.0, Scale::Log);
    assert!(found.contains("time_left has no positive value"), "{found}");
}

#[test]
fn a_picture_has_the_colours_of_its_values_and_a_white_border() {
    let folder = Folder::new();
    let snapshot = refined(|x| vec![if x[0] < 0.0 { 1.0 } else { 10.0 }]).write(&folder);
    let mut options = PlotOptions {
        width_px: 600,
        colour_map: Some("viridis".into()),
        ..PlotOptions::default()
    };
    let (width, height, picture) = decode(&plot(&snapshot, &options).unwrap());
    assert_eq!(width, 600);
    let count = |picture: &[[u8; 3]], colour: [u8; 3]| {
        picture.iter().filter(|pixel| **pixel == colour).count()
    };
    // the first and last colours of viridis each fill one half of the picture
    let halves = [
        count(&picture, [68, 1, 84]),
        count(&picture, [253, 231, 37]),
    ];
    assert!(
        halves
            .iter()
            .all(|&half| half > 20_000 && half.abs_diff(halves[0]) < 200),
        "{halves:?}"
    );
    assert!((0..height).all(|row| picture[row * width] == [255; 3]));
    options.outlines = true;
    let (_, _, outlined) = decode(&plot(&snapshot, &options).unwrap());
    assert!(count(&outlined, [68, 1, 84]) < halves[0]);
    options.outlines = false;
    options.colour_map = Some("viridis-reversed".into());
    let (_, _, reversed) = decode(&plot(&snapshot, &options).unwrap());
    let left = picture
        .iter()
        .position(|&pixel| pixel == [68, 1, 84])
        .unwrap();
    assert_eq!(reversed[left], [253, 231, 37]);
}

#[test]
fn every_field_and_colour_map_can_be_drawn() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    let fields = [
        "density",
        "velocity_x",
        "speed",
        "pressure",
        "temperature",
        "sound_speed",
        "mach",
        "entropy",
        "fraction_dye",
    ];
    for (i, map) in COLOUR_MAPS.into_iter().enumerate() {
        let field = fields[i % fields.len()].to_string();
        let options = PlotOptions {
            field,
            width_px: 300,
            colour_map: Some(map.into()),
            ..PlotOptions::default()
        };
        assert_eq!(decode(&plot(&snapshot, &options).unwrap()).0, 300);
    }
}

#[test]
fn invalid_options_are_explained() {
    let folder = Folder::new();
    let snapshot = refined(|_| vec![-1.0]).write(&folder);
    let error = |edit: &dyn Fn(&mut PlotOptions)| {
        let mut options = PlotOptions::default();
        edit(&mut options);
        plot(&snapshot, &options).unwrap_err().to_string()
    };
    let unknown = error(&|options| options.field = "densty".into());
    assert!(
        unknown.contains("did you mean \"density\"") && unknown.contains("density, level"),
        "{unknown}"
    );
    assert!(error(&|options| options.field = "pressure".into()).contains("no field"));
    assert!(error(&|options| options.kind = PlotKind::Slice(Some(7.0))).contains("z from 5 to 6"));
    assert!(error(&|options| options.scale = Scale::Log).contains("use a linear scale"));
    assert!(error(&|options| options.max = Some(-2.0)).contains("min must be less"));
    assert!(error(&|options| options.width_px = 10).contains("200 to 8192"));
    assert!(
        error(&|options| options.colour_map = Some("virids".into()))
            .contains("did you mean \"viridis\"")
    );
    assert!("w".parse::<Axis>().is_err());
    std::fs::remove_file(snapshot.path().join("level_0/density/c.0.0.0.0")).unwrap();
    assert!(matches!(
        plot(&snapshot, &PlotOptions::default()),
        Err(PlotError::Snapshot(_))
    ));
}

#[test]
fn a_long_domain_is_stretched_and_a_tall_one_narrowed() {
    let folder = Folder::new();
    let long = Sample {
        root: [16, 1, 2],
        ..refined(|x| vec![x[0]])
    }
    .write(&folder);
    let view = |axis: Axis| {
        pixels(&long, &options(axis, PlotKind::Slice(None)), 400)
            .0
            .pixels
    };
    assert_eq!(view(Axis::Z), [400, 100]);
    assert_eq!(view(Axis::X), [240, 480]);
}

#[test]
fn a_picture_of_256_cells_cubed_takes_less_than_two_seconds() {
    let folder = Folder::new();
    let large = Sample {
        root: [32; 3],
        left: [0.0; 3],
        refine: |_, _, _| false,
        fields: vec![("density", "1")],
        state: |x| vec![x[0] * x[1] + x[2]],
    };
    let snapshot = large.write(&folder);
    for kind in [
        PlotKind::Slice(None),
        PlotKind::Projection,
        PlotKind::Maximum,
    ] {
        // the minimum of three, as other tests run at the same time
        let seconds = (0..3).map(|_| {
            let begun = std::time::Instant::now();
            plot(&snapshot, &options(Axis::X, kind)).unwrap();
            begun.elapsed().as_secs_f64()
        });
        let least = seconds.fold(f64::INFINITY, f64::min);
        assert!(least < 2.0, "{kind:?}: {least} s");
    }
}

#[test]
fn numbers_are_rounded_for_titles() {
    assert_eq!(rounded(0.5), "0.5");
    assert_eq!(rounded(0.1 + 0.2), "0.3");
    assert_eq!(rounded(-12.3456), "−12.35");
    assert_eq!(rounded(100.0), "100");
    assert_eq!(rounded(2.5e-7), "2.500×10^{−7}");
}
