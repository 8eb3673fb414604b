//! Tests of profiles, lines and phase diagrams.

use super::sample::{Folder, blast, refined};
use crate::curve::Curve;
use crate::phase::Phase;
use crate::{
    Axis, Centre, Format, PlotKind, PlotOptions, ProfileAxis, Scale, Zoom, plot, plot_frames,
};

fn of(field: &str, kind: PlotKind) -> PlotOptions {
    PlotOptions {
        field: field.into(),
        kind,
        ..PlotOptions::default()
    }
}

#[test]
fn the_profile_of_a_linear_density_is_the_density() {
    let folder = Folder::new();
    let snapshot = refined(|x| vec![3.0 + x[0] - 2.0 * x[1] + 0.5 * x[2]]).write(&folder);
    let middle = 3.0 - 1.0 + 0.5 * 5.5;
    for (axis, slope, at) in [
        (Axis::X, 1.0, 0.0),
        (Axis::Y, -2.0, 0.5),
        (Axis::Z, 0.5, 5.5),
    ] {
        let profile = |bins| PlotOptions {
            bins,
            // on one level, all layers have the same mean of the other coordinates
            max_level: Some(0),
            ..of("density", PlotKind::Profile(ProfileAxis::Along(axis)))
        };
        for bins in [None, Some(2), Some(300)] {
            let curve = Curve::new(&snapshot, &profile(bins), &[]).unwrap().unwrap();
            let layers = if axis == Axis::X { 16 } else { 8 };
            assert_eq!(curve.points.len(), if bins == Some(2) { 2 } else { layers });
            for [x, y] in curve.points {
                let expected = middle + slope * (x - at);
                assert!((y - expected).abs() < 1e-12, "{axis:?} {x}: {y} {expected}");
            }
        }
    }
}

#[test]
fn a_radial_profile_is_the_mean_over_shells_by_volume_or_mass() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    let profile = |field: &str, weight: Option<&str>| {
        let options = PlotOptions {
            weight: weight.map(str::to_string),
            ..of(field, PlotKind::Profile(ProfileAxis::Radius))
        };
        Curve::new(&snapshot, &options, &[])
            .unwrap()
            .unwrap()
            .points
    };
    let density = profile("density", None);
    assert!(density.len() > 100);
    for [r, value] in &density {
        // the cells of a shell are of one side of the shock
        let expected = if *r < 2.6 {
            0.01 + 6.0 * (r / 2.6).powi(9)
        } else {
            1.0
        };
        let room = if (r - 2.6).abs() < 0.07 {
            6.0
        } else {
            0.03 + 0.1 * expected
        };
        assert!((value - expected).abs() < room, "{r}: {value} {expected}");
    }
    // the mean by mass is the mean of the product divided by that of the density
    let by_mass = profile("speed", Some("density"));
    let product = profile("speed*density", Some("volume"));
    for ((mass, product), density) in by_mass.iter().zip(&product).zip(&density) {
        assert!((mass[1] - product[1] / density[1]).abs() < 1e-12);
    }
}

#[test]
fn a_line_crosses_each_cell_once() {
    let folder = Folder::new();
    let snapshot = refined(|x| vec![1.0 + x[0] + 2.0 * x[1]]).write(&folder);
    let along = |ends: [[f64; 3]; 2]| {
        let options = of("density", PlotKind::Line(ends));
        Curve::new(&snapshot, &options, &[])
            .unwrap()
            .unwrap()
            .points
    };
    // 8 cells of 1/8, then 16 of 1/32, 8 of 1/16 until x = 1
    let points = along([[-1.0, 0.01, 5.01], [1.0, 0.01, 5.01]]);
    assert_eq!(points.len(), 8 + 16 + 8);
    for [distance, value] in &points {
        let x = distance - 1.0;
        let width = if x < 0.0 {
            0.125
        } else if x < 0.5 {
            0.03125
        } else {
            0.0625
        };
        let y = 0.5 * width;
        assert!((value - (1.0 + x + 2.0 * y)).abs() < 1e-12, "{x}: {value}");
    }
    let back = along([[1.0, 0.01, 5.01], [-1.0, 0.01, 5.01]]);
    for (a, b) in points.iter().zip(back.iter().rev()) {
        assert!((a[0] + b[0] - 2.0).abs() < 1e-12 && a[1] == b[1]);
    }
    // edges and corners of cells, and the upper faces of the domain
    assert_eq!(along([[-1.0, 0.5, 5.5], [0.0, 0.5, 5.5]]).len(), 8);
    assert_eq!(along([[-1.0, 1.0, 6.0], [1.0, 1.0, 6.0]]).len(), 24);
    let diagonal = along([[-1.0, 0.0, 5.0], [0.0, 1.0, 6.0]]);
    assert_eq!(diagonal.len(), 8);
}

#[test]
fn a_phase_diagram_holds_all_mass_where_it_is() {
    let folder = Folder::new();
    let snapshot = blast().write(&folder);
    let mass = {
        let density = PlotOptions {
            weight: Some("volume".into()),
            bins: Some(2),
            ..of("density", PlotKind::Profile(ProfileAxis::Along(Axis::X)))
        };
        let curve = Curve::new(&snapshot, &density, &[]).unwrap().unwrap();
        // two halves of 256 each
        curve
            .points
            .iter()
            .map(|point| 256.0 * point[1])
            .sum::<f64>()
    };
    for (log, bins) in [([false; 2], None), ([true; 2], Some(50))] {
        let options = PlotOptions {
            across: "pressure".into(),
            log_axes: log,
            bins,
            ..of("density", PlotKind::Phase)
        };
        let phase = Phase::new(&snapshot, &options, &[], None).unwrap();
        let sum: f64 = phase.sums.iter().filter(|sum| sum.is_finite()).sum();
        assert!((sum / mass - 1.0).abs() < 1e-12, "{log:?} {sum} {mass}");
        assert_eq!(phase.count, bins.unwrap_or(128) as usize);
        // outside of the shock are density 1 and pressure 1e-3, the least: 512 - 4/3 pi 2.6^3
        let scale = if log[0] { Scale::Log } else { Scale::Linear };
        let bin = (scale.fraction(phase.ranges[0], 1.0) * phase.count as f64) as usize;
        let outside = phase.sums[bin];
        assert!((outside - 438.4).abs() < 1.0, "{log:?} {outside}");
    }
    let part = PlotOptions {
        across: "pressure".into(),
        centre: Centre::At([4.0; 3]),
        zoom: Some(Zoom::Width(2.0)),
        weight: Some("volume".into()),
        ..of("density", PlotKind::Phase)
    };
    let sums = Phase::new(&snapshot, &part, &[], None).unwrap().sums;
    let volume: f64 = sums.iter().filter(|sum| sum.is_finite()).sum();
    assert!((volume - 8.0).abs() < 1e-12, "{volume}");
}

#[test]
fn phase_diagrams_of_frames_have_the_same_axes() {
    let folders = [Folder::new(), Folder::new()];
    let snapshots = [
        refined(|x| vec![2.0 + x[0]]).write(&folders[0]),
        refined(|x| vec![3.0 + x[1]]).write(&folders[1]),
    ];
    let options = PlotOptions {
        across: "density^2".into(),
        format: Format::Svg,
        ..of("density", PlotKind::Phase)
    };
    let labels = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("<text"));
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    let files = std::sync::Mutex::new(vec![vec![]; 2]);
    let panels = [options.clone()];
    plot_frames(&snapshots, &panels, &[], |number, bytes| {
        files.lock().unwrap()[number] = labels(&bytes);
        Ok(())
    })
    .unwrap();
    let files = files.into_inner().unwrap();
    assert_eq!(files[0], files[1]);
    assert_ne!(files[0], labels(&plot(&snapshots[0], &options).unwrap()));
}

#[test]
fn senseless_profiles_lines_and_diagrams_are_refused_in_one_line() {
    let folder = Folder::new();
    let snapshot = refined(|x| vec![x[0]]).write(&folder);
    let error = |options: PlotOptions| {
        let text = plot(&snapshot, &options).unwrap_err().to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    };
    let line = |from, to| of("density", PlotKind::Line([from, to]));
    let radius = || of("density", PlotKind::Profile(ProfileAxis::Radius));
    let x = || of("density", PlotKind::Profile(ProfileAxis::Along(Axis::X)));
    let phase = |across: &str| PlotOptions {
        across: across.into(),
        weight: Some("volume".into()),
        ..of("density", PlotKind::Phase)
    };
    for (options, words) in [
        (
            PlotOptions {
                bins: Some(5),
                ..PlotOptions::default()
            },
            "--bins: needs --profile or --phase",
        ),
        (
            PlotOptions {
                log_axes: [true, false],
                ..PlotOptions::default()
            },
            "--log-x: needs --profile, --line or --phase",
        ),
        (
            PlotOptions {
                weight: Some("volume".into()),
                ..line([0.0, 0.5, 5.5], [0.5, 0.5, 5.5])
            },
            "--weight: needs --projection",
        ),
        (
            line([0.0, 0.5, 5.5], [0.0, 0.5, 5.5]),
            "--line: both points are the same",
        ),
        (
            line([0.0, 0.5, 5.5], [0.0, 0.5, 9.0]),
            "--line must lie in the domain: z from 5 to 6",
        ),
        (
            PlotOptions {
                bins: Some(1),
                ..radius()
            },
            "--bins 1: must be 2 to 4096",
        ),
        (
            PlotOptions {
                log_axes: [true, false],
                ..x()
            },
            "--log-x: the coordinate begins at -1",
        ),
        (
            PlotOptions {
                scale: Scale::Log,
                field: "-1 - density^2".into(),
                ..x()
            },
            "use a linear scale",
        ),
        (
            PlotOptions {
                weight: Some("0*density".into()),
                ..x()
            },
            "--profile: no cell with a weight (0*density)",
        ),
        (
            PlotOptions {
                weight: Some("densty".into()),
                ..x()
            },
            "did you mean \"density\"?",
        ),
        (
            PlotOptions {
                outlines: true,
                ..x()
            },
            "--outlines: needs a slice",
        ),
        (
            PlotOptions {
                normal: Some([1.0; 3]),
                ..radius()
            },
            "--normal: needs a slice",
        ),
        (phase("presure"), "there is no field \"presure\""),
        (
            phase("density/0*0"),
            "--phase: density/0*0 has no finite value",
        ),
        (
            PlotOptions {
                log_axes: [false, true],
                ..phase("-1 - density^2")
            },
            "--log-y: -1 - density^2 has no positive value",
        ),
        // smaller than a cell: no centre of a cell is inside
        (
            PlotOptions {
                zoom: Some(Zoom::Width(1e-3)),
                centre: Centre::At([0.0, 0.5, 5.5]),
                ..radius()
            },
            "--profile: no cell",
        ),
    ] {
        let found = error(options);
        assert!(found.contains(words), "{found}");
    }
}
