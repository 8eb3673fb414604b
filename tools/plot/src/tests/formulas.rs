//! Tests of formulas, panels, SVG, contours and arrows.

use super::sample::{Folder, blast, refined};
use super::{decode, options, pixels};
use crate::field::PlotField;
use crate::{
    Axis, Contours, Format, PlotKind, PlotOptions, ProfileAxis, Scale, plot, plot_frames,
    plot_panels,
};
use std::sync::Mutex;

fn of(field: &str) -> PlotOptions {
    PlotOptions {
        field: field.into(),
        ..PlotOptions::default()
    }
}

#[test]
fn a_formula_is_computed_in_each_cell() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    let values = |field: &str| pixels(&snapshot, &of(field), 70).1.values;
    let (density, pressure) = (values("density"), values("pressure"));
    let (speed, dye) = (values("speed"), values("fraction_dye"));
    let formula = values("if(density > 0.5, 2*pressure^2, -1) + speed*max(fraction_dye, 0.3)");
    for i in 0..formula.len() {
        let first = if density[i] > 0.5 {
            2.0 * pressure[i] * pressure[i]
        } else {
            -1.0
        };
        let expected = first + speed[i] * dye[i].max(0.3);
        assert!(
            (formula[i] - expected).abs() < 1e-12,
            "{i}: {} {expected}",
            formula[i]
        );
    }
}

#[test]
fn coordinates_are_those_of_the_centres_of_cells() {
    let folder = Folder::new();
    let snapshot = refined(|x| vec![x[0] + 10.0 * x[1] + 100.0 * x[2]]).write(&folder);
    for axis in [Axis::X, Axis::Y, Axis::Z] {
        let difference = PlotOptions {
            field: "abs(density - x - 10*y - 100*z)".into(),
            ..options(axis, PlotKind::Maximum)
        };
        let (_, raster) = pixels(&snapshot, &difference, 64);
        assert!(raster.values.iter().all(|&value| value < 1e-12));
    }
    assert_eq!(
        PlotField::new(&snapshot, "x^2", &[]).unwrap().units,
        "length**2"
    );
}

#[test]
fn formulas_have_units_where_their_fields_have_them() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    for (text, units) in [
        ("density*speed^2", "mass/(length*time**2)"),
        ("2*sqrt(speed^2)", "length/time"),
        ("pressure/density/speed^2", "1"),
        ("density + speed", ""),
        ("density*entropy", ""),
    ] {
        let field = PlotField::new(&snapshot, text, &[]).unwrap();
        assert_eq!(field.units, units, "{text}");
    }
    let along = PlotField::new(&snapshot, "density + speed", &[])
        .unwrap()
        .units_along();
    assert_eq!(along, "");
}

#[test]
fn wrong_formulas_are_explained_in_one_line() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    for (text, words) in [
        ("densty*2", "did you mean `density`"),
        ("density*(2", "formula \"density*(2\": column"),
        ("density +", "column"),
        ("particles/stars", "there is no field"),
        ("", "there is no field"),
    ] {
        let error = plot(&snapshot, &of(text)).unwrap_err().to_string();
        assert!(
            error.contains(words) && !error.contains('\n'),
            "{text}: {error}"
        );
    }
}

/// Returns the SVG document of a plot.
fn document(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn svg_has_the_picture_of_the_png_and_texts() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    let svg = PlotOptions {
        title: Some("a < b & \"c\"".into()),
        format: Format::Svg,
        scale: Scale::Log,
        contours: Some(Contours::Count(3)),
        ..of("density*speed^2 + 1e-3")
    };
    let text = document(plot(&snapshot, &svg).unwrap());
    let parsed = roxmltree::Document::parse(&text).unwrap();
    let named = |name: &'static str| {
        parsed
            .descendants()
            .filter(move |node| node.has_tag_name(name))
    };
    let texts: Vec<String> = named("text")
        .map(|node| {
            node.descendants()
                .filter_map(|n| n.text().filter(|_| n.is_text()))
                .collect()
        })
        .collect();
    for wanted in ["a < b & \"c\"", "x", "y", "t = 0.05"] {
        assert!(
            texts.iter().any(|text| text == wanted),
            "{wanted}: {texts:?}"
        );
    }
    assert_eq!(named("path").count(), 3);
    // the embedded image is that of the PNG file without contours
    let image = named("image").next().unwrap();
    let number = |name: &str| image.attribute(name).unwrap().parse::<usize>().unwrap();
    let data = image
        .attribute("href")
        .unwrap()
        .strip_prefix("data:image/png;base64,")
        .unwrap();
    let (width, height, inner) = decode(&from_base64(data));
    assert_eq!((width, height), (number("width"), number("height")));
    let png = PlotOptions {
        format: Format::Png,
        contours: None,
        ..svg
    };
    let (columns, _, all) = decode(&plot(&snapshot, &png).unwrap());
    for row in 2..height - 2 {
        let start = (number("y") + row) * columns + number("x");
        assert_eq!(
            all[start + 2..start + width - 2],
            inner[row * width + 2..][..width - 4]
        );
    }
}

/// Decodes base 64.
fn from_base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = vec![];
    for four in text.as_bytes().chunks(4) {
        let bits = four.iter().fold(0u32, |bits, &c| {
            bits << 6 | u32::from(if c == b'=' { 0 } else { digit(c) })
        });
        let padding = four.iter().filter(|c| **c == b'=').count();
        out.extend(&bits.to_be_bytes()[1..4 - padding]);
    }
    out
}

#[test]
fn all_kinds_of_plots_are_svg_documents() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    for kind in [
        PlotKind::Slice(None),
        PlotKind::Projection,
        PlotKind::Maximum,
        PlotKind::Profile(ProfileAxis::Radius),
        PlotKind::Phase,
        PlotKind::Line([[0.0; 3], [8.0; 3]]),
    ] {
        let svg = PlotOptions {
            kind,
            across: "pressure".into(),
            arrows: kind.is_picture().then(|| "velocity".into()),
            format: Format::Svg,
            ..of("density")
        };
        let text = document(plot(&snapshot, &svg).unwrap());
        roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

#[test]
fn contours_and_arrows_are_drawn_over_the_picture() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    let plain = of("density");
    let picture = |options: &PlotOptions| decode(&plot(&snapshot, options).unwrap()).2;
    let different = |other: &PlotOptions| {
        let (a, b) = (picture(&plain), picture(other));
        a.iter().zip(&b).filter(|(a, b)| a != b).count()
    };
    let contours = |contours| PlotOptions {
        contours: Some(contours),
        ..plain.clone()
    };
    let arrows = |name: &str| PlotOptions {
        arrows: Some(name.into()),
        ..plain.clone()
    };
    assert_eq!(different(&plain), 0);
    // the circle of density 1/2 is about 2 pi 2.4 long, 1/8 of the width of the picture each
    let count = different(&contours(Contours::Values(vec![0.5])));
    assert!((1000..20_000).contains(&count), "{count}");
    assert_eq!(different(&contours(Contours::Values(vec![1e9]))), 0);
    assert!(different(&contours(Contours::Count(4))) > count);
    assert!(different(&arrows("velocity")) > 500);
    let streamlines = PlotOptions {
        streamlines: Some("velocity".into()),
        ..plain.clone()
    };
    assert!(different(&streamlines) > 2000);
    for (options, words) in [
        (
            contours(Contours::Count(0)),
            "--contours 0: must be 1 to 100",
        ),
        (contours(Contours::Values(vec![f64::NAN])), "must be finite"),
        (
            arrows("velocty"),
            "--arrows velocty: there is no field \"velocty_x\"; did you mean \"velocity_x\"?",
        ),
    ] {
        let error = plot(&snapshot, &options).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn panels_are_side_by_side() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    let panel = |field: &str| PlotOptions {
        width_px: 900,
        ..of(field)
    };
    let panels = ["density", "pressure", "speed", "mach"].map(panel);
    let size = |count: usize| {
        let (width, height, _) = decode(&plot_panels(&snapshot, &panels[..count], &[]).unwrap());
        (width, height)
    };
    let (_, one) = size(1);
    assert_eq!(size(2).0, 900);
    assert!(size(2).1.abs_diff(one / 2) < 20);
    assert_eq!(size(3).0, 900);
    assert!(size(4).1.abs_diff(one) < 20);
    // the second panel is the picture of its field alone
    let (width, _, both) = decode(&plot_panels(&snapshot, &panels[..2], &[]).unwrap());
    let (own, height, alone) = decode(
        &plot(
            &snapshot,
            &PlotOptions {
                width_px: 450,
                ..of("pressure")
            },
        )
        .unwrap(),
    );
    for row in 0..height {
        assert_eq!(
            both[row * width + 450..(row + 1) * width],
            alone[row * own..(row + 1) * own]
        );
    }
    let narrow = plot_panels(
        &snapshot,
        &panels.map(|p| PlotOptions { width_px: 300, ..p }),
        &[],
    );
    assert!(
        narrow
            .unwrap_err()
            .to_string()
            .contains("panels side by side need")
    );
}

#[test]
fn frames_have_one_range_of_colours() {
    let folders = [Folder::new(), Folder::new()];
    let snapshots = [
        refined(|x| vec![1.0 + f64::from(u8::from(x[0] > 0.0))]).write(&folders[0]),
        refined(|x| vec![2.0 + f64::from(u8::from(x[0] > 0.0))]).write(&folders[1]),
    ];
    let panel = PlotOptions {
        colour_map: Some("viridis".into()),
        ..options(Axis::Z, PlotKind::Slice(None))
    };
    let files = Mutex::new(vec![vec![]; 2]);
    plot_frames(
        &snapshots,
        std::slice::from_ref(&panel),
        &[],
        |number, bytes| {
            files.lock().unwrap()[number] = bytes;
            Ok(())
        },
    )
    .unwrap();
    let counts = |bytes: &[u8]| {
        let (_, _, picture) = decode(bytes);
        [[68, 1, 84], [253, 231, 37]].map(|colour| picture.iter().filter(|p| **p == colour).count())
    };
    let files = files.into_inner().unwrap();
    let (first, second) = (counts(&files[0]), counts(&files[1]));
    // the least value is in the first frame, the largest in the second one
    assert!(first[0] > 50_000 && first[1] < 1000, "{first:?}");
    assert!(second[1] > 50_000 && second[0] < 1000, "{second:?}");
}
