//! Tests of `nestar plot` on runs: parts of the domain, formulas, profiles, phase diagrams, lines, SVG and frames.

use crate::{BLAST, Outcome, Place};

/// Units of the runs.
const UNITS: &str = "[units]\nlength = \"kpc\"\nmass = \"Msun\"\nvelocity = \"km/s\"\n";

/// Plots the run with these options, separated by blanks; `~` stands for a blank inside of an option.
fn plot(place: &Place, options: &str) -> Outcome {
    let options: Vec<String> = options
        .split(' ')
        .map(|option| option.replace('~', " "))
        .collect();
    let options = options.iter().map(String::as_str);
    place.nestar(
        &["plot", "run"]
            .into_iter()
            .chain(options)
            .collect::<Vec<_>>(),
    )
}

/// Returns the texts of an SVG file, each on a line.
fn texts(place: &Place, name: &str) -> String {
    let file = std::fs::read_to_string(place.0.join(name)).expect("the file");
    let lines = file.lines().filter(|line| line.starts_with("<text"));
    let mut found = String::new();
    for line in lines {
        let mut inside = false;
        for letter in line.chars() {
            match letter {
                '<' => inside = true,
                '>' => inside = false,
                _ if !inside => found.push(letter),
                _ => {}
            }
        }
        found.push('\n');
    }
    found
}

#[test]
fn every_kind_of_plot_of_a_run_has_its_titles_and_units() {
    let place = Place::with(&format!("{BLAST}{UNITS}"));
    let run = ["run", "deck.toml", "--set", "time.max_steps=4"];
    place.nestar(&run).has_status(0);
    let expected: [(&str, &[&str]); 11] = [
        (
            "--centre 100~pc,0,-0.1~kpc --zoom 300~pc",
            &["Density, z = −100 pc", "x [pc]", "Density [g/cm3]"],
        ),
        (
            "--field pressure --centre max --zoom 4 --log",
            &["Pressure, z = ", "Pressure [erg/cm3]"],
        ),
        ("--field density*speed^2/2", &["density*speed2/2 [erg/cm3]"]),
        ("--field density+speed", &["density+speed\n"]),
        (
            "--field temperature_k --projection --weight density",
            &["Temperature, mean by mass along z [K]"],
        ),
        (
            "--projection --normal 1,1,0.5",
            &[
                "∫ Density along (1, 1, 0.5)",
                "to the right [",
                "[Msun/pc2]",
            ],
        ),
        (
            "--profile radius --log --log-x",
            &["Density, mean by volume", "Radius [pc]", "Density [g/cm3]"],
        ),
        (
            "--profile x --field speed --weight density --bins 16",
            &["Speed, mean by mass", "x [pc]", "Speed [km/s]"],
        ),
        (
            "--phase number_density_cm3,temperature_k --log --log-x --log-y",
            &[
                "Mass by number density and temperature",
                "Temperature [K]",
                "Number density [",
                "Mass [",
            ],
        ),
        (
            "--line -0.5,0,0 0.5~kpc,0,0 --field mach",
            &[
                "Mach from (−0.5, 0, 0) to (0.5, 0, 0) kpc",
                "Distance [kpc]",
            ],
        ),
        (
            "--arrows --streamlines --contours 3 --outlines",
            &["longest arrow", "km/s"],
        ),
    ];
    for (options, wanted) in expected {
        plot(&place, &format!("{options} --width 500 -o a.png")).has_status(0);
        let png = std::fs::read(place.0.join("a.png")).expect("the picture");
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
        plot(&place, &format!("{options} --width 500 -o a.svg")).has_status(0);
        let found = texts(&place, "a.svg");
        for text in wanted {
            assert!(found.contains(text), "{options}: {text} in\n{found}");
        }
    }
    let panels = plot(&place, "-f density -f pressure --width 500");
    panels.has_status(0);
    assert_eq!(panels.out, "density_pressure_000001.png\n");
}

#[test]
fn the_profile_and_the_line_of_a_linear_density_are_straight() {
    let place = Place::with(BLAST);
    let linear = [
        "run",
        "deck.toml",
        "--set",
        "initial.density='3 + 2*x'",
        "--set",
        "time.max_steps=1",
    ];
    place.nestar(&linear).has_status(0);
    for kind in ["--profile x", "--line -0.5,0.2,0.1 0.5,0.2,0.1"] {
        let options: Vec<&str> = kind.split(' ').collect();
        let start = ["plot", "run/snapshots/000000.zarr", "-o", "a.svg"];
        place.nestar(&[&start[..], &options].concat()).has_status(0);
        let file = std::fs::read_to_string(place.0.join("a.svg")).expect("the file");
        let path = file
            .lines()
            .find(|line| line.starts_with("<path"))
            .expect("the curve");
        let path = path
            .split('"')
            .rfind(|text| text.starts_with('M'))
            .expect("its points");
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let points = path[1..]
            .split('L')
            .map(|point| point.split_once(' ').expect("two numbers"));
        let points: Vec<[f64; 2]> = points.map(|(x, y)| [number(x), number(y)]).collect();
        let (first, last) = (points[0], points[points.len() - 1]);
        assert!(
            points.len() >= 16 && last[0] > first[0] + 500.0,
            "{kind}: {points:?}"
        );
        // upwards, as the vertical axis of SVG is downwards
        assert!(last[1] < first[1] - 300.0, "{kind}: {points:?}");
        let slope = (last[1] - first[1]) / (last[0] - first[0]);
        for [x, y] in points {
            let expected = first[1] + slope * (x - first[0]);
            assert!((y - expected).abs() < 0.03, "{kind}: {x} {y} {expected}");
        }
    }
}

#[test]
fn wrong_options_of_plots_are_refused_by_name_in_one_line() {
    let place = Place::with(&format!("{BLAST}{UNITS}"));
    let run = ["run", "deck.toml", "--set", "time.max_steps=1"];
    place.nestar(&run).has_status(0);
    for (options, words) in [
        ("--zoom 0", "--zoom 0: must be a factor or a width above 0"),
        ("--zoom=-3", "--zoom -3"),
        (
            "--zoom 3~Myr",
            "--zoom: must be a length, but \"3 Myr\" is a time",
        ),
        ("--zoom wide", "--zoom: \"wide\" is no number"),
        (
            "--centre 1,2",
            "--centre: \"1,2\" has 2 numbers: write three, X,Y,Z",
        ),
        (
            "--centre 0,0,3~kpc",
            "--centre must lie in the domain: z from -0.5 to 0.5 kpc",
        ),
        ("--centre 0,0,max", "--centre: \"max\" is no number"),
        ("--field densty*2", "did you mean `density`"),
        ("--field density*", "the formula \"density*\""),
        ("--normal 0,0,0", "--normal 0,0,0"),
        ("--normal 1,0,0 --axis x", "cannot be used with"),
        ("--profile r", "must be radius, x, y or z"),
        (
            "--profile x --log-x",
            "--log-x: the coordinate begins at -0.5",
        ),
        ("--profile x --bins 0", "--bins 0: must be 2 to 4096"),
        ("--profile x --field velocity_x*0-1 --log", "without --log"),
        ("--phase density", "--phase: \"density\": write two fields"),
        ("--phase density,presure", "did you mean \"pressure\"?"),
        (
            "--phase density,velocity_x*0-1 --log-y",
            "--log-y: velocity_x*0-1 has no positive value",
        ),
        ("--line 0,0,0 0,0,0", "--line: both points are the same"),
        ("--line 0,0,0 0,0,9", "--line must lie in the domain"),
        (
            "--weight density",
            "--weight: needs --projection, --profile or --phase",
        ),
        (
            "--contours none",
            "--contours: \"none\": write their number, or values",
        ),
        ("--contours 0", "--contours 0: must be 1 to 100"),
        (
            "--streamlines magnetic",
            "--streamlines magnetic: there is no field \"magnetic_x\"",
        ),
        ("-o a.jpg", "--output: a.jpg: must end in .png or .svg"),
        ("--frames 1", "--frames: \"1\": write all, or FIRST..LAST"),
        (
            "--frames 7..9",
            "--frames: \"7..9\": the run has no such snapshot",
        ),
    ] {
        let outcome = plot(&place, options);
        outcome.has_status(2).complains(&[words]);
        let is_usage = outcome.err.contains("--help");
        assert!(
            is_usage || outcome.err.trim().lines().count() == 1,
            "{options}: {}",
            outcome.err
        );
    }
    let one = place.nestar(&["plot", "run/snapshots/000000.zarr", "--frames", "all"]);
    one.has_status(2)
        .complains(&["--frames", "is no directory of a run"]);
}

#[test]
fn frames_of_a_run_are_the_pictures_with_the_common_range() {
    let place = Place::with(BLAST);
    let run = [
        "run",
        "deck.toml",
        "--set",
        "output.steps=2",
        "--set",
        "time.max_steps=6",
    ];
    place.nestar(&run).has_status(0);
    let all = plot(&place, "--frames all --width 300 -o movie");
    all.has_status(0);
    let names: Vec<String> = (0..4)
        .map(|n| format!("movie/density_{n:06}.png\n"))
        .collect();
    assert_eq!(all.out, names.concat());
    let picture = |name: &str| std::fs::read(place.0.join(name)).expect("the picture");
    // the range of the first frame alone is another one
    plot(
        &place,
        "--width 300 --min-value 0.9 --max-value 1.1 -o own.png",
    )
    .has_status(0);
    assert_ne!(picture("own.png"), picture("movie/density_000003.png"));
    let fixed = "--min-value 0.9 --max-value 1.1 --width 300";
    plot(&place, &format!("--frames 2..3 {fixed} -o fixed")).has_status(0);
    assert_eq!(picture("own.png"), picture("fixed/density_000003.png"));
    assert!(!place.0.join("fixed/density_000001.png").exists());
    let nowhere = plot(&place, "--frames all -o deck.toml/frames");
    nowhere
        .has_status(1)
        .complains(&["cannot make deck.toml/frames"]);
}

/// Views that draw what `nestar plot` draws below.
const VIEWS: &str = r#"
[[output.view]]
name = "cut"
kind = "picture"
fields = ["temperature_k", "density*speed"]
axis = "x"
position = "50 pc"
logarithmic = true
outlines = true
width = 800
steps = 2

[[output.view]]
name = "column"
kind = "picture"
fields = ["pressure"]
reduction = "projection"
weight = "density"
side = "300 pc"
colour_map = "viridis"
units = "cgs"
steps = 2
"#;

#[test]
fn pictures_of_a_run_are_those_of_its_snapshots() {
    let place = Place::with(&format!("{BLAST}{UNITS}{VIEWS}"));
    let check = place.nestar(&["check", "deck.toml", "--set", "time.max_steps=4"]);
    check.has_status(0);
    assert!(
        check.out.contains("in views/cut/NNNNNN.png"),
        "{}",
        check.out
    );
    let run = ["run", "deck.toml", "--set", "time.max_steps=4"];
    place.nestar(&run).has_status(0);
    for (view, options) in [
        (
            "cut",
            "--field temperature_k --field density*speed --axis x --slice 50~pc --log --outlines --width 800",
        ),
        (
            "column",
            "--field pressure --projection --weight density --zoom 300~pc --colour-map viridis --units cgs",
        ),
    ] {
        let file = format!("{view}.png");
        plot(&place, &format!("{options} -o {file}")).has_status(0);
        let read = |path: &str| std::fs::read(place.0.join(path)).expect("the file");
        let own = read(&format!("run/views/{view}/000002.png"));
        assert!(own.len() > 10_000 && own == read(&file), "{view} differs");
        assert!(own != read(&format!("run/views/{view}/000001.png")));
    }
}
