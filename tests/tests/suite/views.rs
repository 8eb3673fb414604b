//! Views: values against those computed from a snapshot, equal bits on ranks and devices, resumed runs, refusals.

use super::device_runs::places;
use nestar::engine::Error;
use nestar::snapshot::{PlainArray, Snapshot, latest, read_array};
use nestar_tests::Scratch;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::run_on_ranks;
use nestar_tests::runs::{quietly_into, run_into};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A view of every kind.
const VIEWS: &str = r#"
[[output.view]]
name = "cut"
kind = "slice"
axis = "z"
position = 0.47
steps = 1
fields = ["density", "dye_share", { name = "kinetic", formula = "0.5*density*speed^2" }]
precision = "double"

[[output.view]]
name = "coarse"
kind = "slice"
axis = "x"
position = 0.41
level = 1
region = { left = [0.0, 0.25, 0.0], right = [1.0, 0.75, 0.5] }
steps = 1
fields = ["density"]
precision = "double"

[[output.view]]
name = "column"
kind = "projection"
axis = "y"
steps = 1
fields = ["density"]
region = { left = [0.0, 0.3, 0.0], right = [1.0, 0.7, 1.0] }
precision = "double"

[[output.view]]
name = "weighted"
kind = "projection"
axis = "x"
weight = "density"
steps = 1
fields = ["pressure", "velocity_y"]
precision = "double"

[[output.view]]
name = "shells"
kind = "profile"
centre = [0.4, 0.55, 0.47]
range = [0.02, 0.6]
bins = 12
logarithmic = true
weight = "density"
steps = 1
fields = ["pressure"]
precision = "double"

[[output.view]]
name = "phases"
kind = "pdf"
fields = ["density", "pressure"]
bins = [6, 8]
ranges = [[0.1, 3.0], [0.05, 20.0]]
logarithmic = [false, true]
weight = "density"
steps = 1
precision = "double"

[[output.view]]
name = "ray"
kind = "line"
start = [0.9, 0.31, 0.103]
end = [0.1, 0.72, 0.8]
points = 37
fields = ["density", "pressure"]
steps = 1
precision = "double"

[[output.view]]
name = "probe"
kind = "point"
position = [0.4, 0.55, 0.47]
fields = ["density"]
steps = 1
precision = "double"

[[output.view]]
name = "waves"
kind = "spectrum"
fields = ["density"]
level = 1
steps = 1
precision = "double"

[[output.view]]
name = "part"
kind = "snapshot"
fields = ["density", "pressure", { name = "kinetic", formula = "0.5*density*speed^2" }]
level = 1
region = { left = [0.0, 0.3, 0.0], right = [0.45, 0.6, 0.45] }
steps = 1
precision = "double"

[[output.view]]
name = "drawn"
kind = "picture"
fields = ["pressure", "density*speed"]
axis = "y"
position = 0.55
logarithmic = true
outlines = true
width = 600
steps = 1

[[output.view]]
name = "hottest"
kind = "picture"
fields = ["pressure"]
reduction = "projection"
weight = "density"
level = 1
side = 0.6
centre = [0.4, 0.55, 0.47]
range = [0.1, 8.0]
colour_map = "viridis"
width = 400
steps = 1

[[output.view]]
name = "swarm"
kind = "picture"
fields = ["particles_dust_mass"]
axis = "z"
position = 0.51
width = 600
steps = 1

[[output.view]]
name = "stars"
kind = "projection"
axis = "z"
fields = ["particles_dust_mass", { name = "share", formula = "particles_dust_mass/density" }]
steps = 1
precision = "double"

[[output.view]]
name = "crowd"
kind = "pdf"
fields = ["density"]
weight = "particles_dust_number"
ranges = [[0.01, 10.0]]
bins = [4]
steps = 1
precision = "double"

[[output.view]]
name = "noise"
kind = "slice"
axis = "z"
position = 0.47
level = 1
fields = [{ name = "even", formula = "random(7)" }, { name = "normal", formula = "gaussian(7)" }]
steps = 1
precision = "double"

[particles.species]
dust = { mass = 0.003, initial = { kind = "lattice", points = [9, 7, 5] } }
"#;

/// Names of those with a series.
const NAMES: [&str; 12] = [
    "cut", "coarse", "column", "weighted", "shells", "phases", "ray", "probe", "waves", "stars",
    "crowd", "noise",
];

/// Deck of a blast with views of the gas.
fn with_views(views: &str) -> String {
    // the share of a scalar is a derived field
    format!("{BLAST}\n{}", views.replace("dye_share", "fraction_dye"))
}

/// A cell of a snapshot.
struct Cell {
    level: usize,
    index: [i64; 3],
    is_leaf: bool,
    state: [f64; 6],
}

impl Cell {
    fn pressure(&self) -> f64 {
        let [density, x, y, z, energy, _] = self.state;
        (5.0 / 3.0 - 1.0) * (energy - 0.5 * (x * x + y * y + z * z) / density)
    }

    /// Returns the centre in the box of the tests, whose cells are not cubes.
    fn centre(&self) -> [f64; 3] {
        [0, 1, 2].map(|a| (self.index[a] as f64 + 0.5) * width(self.level)[a])
    }

    fn volume(&self) -> f64 {
        width(self.level).iter().product()
    }
}

/// Returns the cell widths of a level in a unit cube of 16 x 16 x 8 root cells.
fn width(level: usize) -> [f64; 3] {
    [16, 16, 8].map(|n| 1.0 / f64::from(n << level))
}

/// Returns the cells of the latest snapshot, those up to `finest`; finer ones are left out, and cells there are leaves.
fn cells(run: &Path, finest: usize) -> Vec<Cell> {
    let (_, path) = latest(run).expect("readable").expect("a snapshot");
    let snapshot = Snapshot::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let mut cells = Vec::new();
    for level in 0..=finest.min(snapshot.levels().len() - 1) {
        let read = |name: &str| {
            let values = snapshot.read(level as u8, name);
            values.unwrap_or_else(|e| panic!("{e}")).to_f64()
        };
        let (origin, leaf) = (read("origin"), read("leaf"));
        let names = [
            "density",
            "momentum_x",
            "momentum_y",
            "momentum_z",
            "energy",
            "scalar_dye",
        ];
        let state = names.map(read);
        for n in 0..state[0].len() {
            let (patch, cell) = (n / 512, n % 512);
            let at = [cell % 8, cell / 8 % 8, cell / 64];
            cells.push(Cell {
                level,
                index: [0, 1, 2].map(|a| origin[3 * patch + a] as i64 + at[a] as i64),
                is_leaf: leaf[patch] == 1.0 || level == finest,
                state: [0, 1, 2, 3, 4, 5].map(|c| state[c][n]),
            });
        }
    }
    assert!(cells.iter().any(|cell| cell.level == finest), "not refined");
    cells.retain(|cell| cell.is_leaf);
    cells
}

/// Returns the leaf cell of each cell of the finest level.
fn by_place(cells: &[Cell], finest: usize) -> BTreeMap<[i64; 3], &Cell> {
    let mut places = BTreeMap::new();
    for cell in cells {
        let side = 1i64 << (finest - cell.level);
        for n in 0..side * side * side {
            let at = [n % side, n / side % side, n / (side * side)];
            places.insert([0, 1, 2].map(|a| cell.index[a] * side + at[a]), cell);
        }
    }
    places
}

fn view(run: &Path, name: &str, array: &str) -> PlainArray {
    let path = run.join("views").join(format!("{name}.zarr"));
    read_array(&path, array).unwrap_or_else(|e| panic!("{name}/{array}: {e}"))
}

/// Returns the last entry of an array without its first dimension.
fn last(run: &Path, name: &str, array: &str) -> (Vec<u64>, Vec<f64>) {
    let PlainArray { shape, values } = view(run, name, array);
    let size: u64 = shape[1..].iter().product();
    (
        shape[1..].to_vec(),
        values[values.len() - size as usize..].to_vec(),
    )
}

/// Compares values with a relative difference of 1e-12 of the largest one.
fn close(found: &[f64], expected: &[f64], what: &str) {
    let scale = expected.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    assert!(scale > 0.0 && found.len() == expected.len(), "{what}");
    for (n, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-12 * scale, "{what}[{n}]: {a} {b}");
    }
}

/// Settings of a run of some steps with a snapshot at the end.
fn settings(steps: &str) -> Vec<&str> {
    vec![HALF, "output.final=true", "output.initial=true", steps]
}

#[test]
fn slices_and_projections_are_those_of_the_snapshot() {
    let scratch = Scratch::new();
    let run = scratch.run();
    run_into(
        &run,
        false,
        &with_views(VIEWS),
        &settings("time.max_steps=3"),
    )
    .expect("runs");
    let all = cells(&run, 2);
    let fine = by_place(&all, 2);
    let at = |index: [i64; 3]| fine[&index];
    let grid =
        |rows: i64, columns: i64| (0..rows).flat_map(move |i| (0..columns).map(move |j| [i, j]));
    // 0.47 is in the 16th of 32 layers
    let slice = |value: &dyn Fn(&Cell) -> f64| -> Vec<f64> {
        grid(64, 64).map(|[j, i]| value(at([i, j, 15]))).collect()
    };
    let (shape, found) = last(&run, "cut", "density");
    assert_eq!(shape, [64, 64]);
    assert_eq!(found, slice(&|cell| cell.state[0]));
    let (_, found) = last(&run, "cut", "fraction_dye");
    assert_eq!(found, slice(&|cell| cell.state[5] / cell.state[0]));
    let kinetic = |cell: &Cell| {
        let [density, x, y, z, ..] = cell.state;
        0.5 * (x * x + y * y + z * z) / density
    };
    close(&last(&run, "cut", "kinetic").1, &slice(&kinetic), "kinetic");

    // columns between 0.3 and 0.7, widened to whole cells: 19 to 44 of 64
    let sum = |x: i64, z: i64| (19..45).map(|y| at([x, y, z]).state[0] / 64.0).sum();
    let expected: Vec<f64> = grid(32, 64).map(|[z, x]| sum(x, z)).collect();
    let (shape, found) = last(&run, "column", "density");
    assert_eq!(shape, [32, 64]);
    close(&found, &expected, "column");

    let mean = |value: &dyn Fn(&Cell) -> f64| -> Vec<f64> {
        let of = |[z, y]: [i64; 2]| {
            let cells = || (0..64).map(|x| at([x, y, z]));
            let weight: f64 = cells().map(|cell| cell.state[0]).sum();
            cells().map(|cell| cell.state[0] * value(cell)).sum::<f64>() / weight
        };
        grid(32, 64).map(of).collect()
    };
    close(
        &last(&run, "weighted", "pressure").1,
        &mean(&Cell::pressure),
        "pressure",
    );
    let velocity = mean(&|cell| cell.state[2] / cell.state[0]);
    close(
        &last(&run, "weighted", "velocity_y").1,
        &velocity,
        "velocity",
    );
    require_part(&run);
    require_particles(&run);
    require_swarm(&run, &fine);
    require_no_start(&run);
}

/// Requires that the last entry of the view `part` has the patches of the latest snapshot that overlap its region, and their values.
fn require_part(run: &Path) {
    let (_, path) = latest(run).expect("readable").expect("a snapshot");
    let whole = Snapshot::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let path = run.join("views/part/000003.zarr");
    let part = Snapshot::open(&path).unwrap_or_else(|e| panic!("{e}"));
    part.verify(|_| {}).expect("whole");
    let attributes = part.attributes();
    assert_eq!(
        (attributes.step, attributes.view.as_deref()),
        (3, Some("part"))
    );
    let levels: Vec<u8> = part.levels().map(|level| level.level).collect();
    assert_eq!(levels, [0, 1]);
    let names: Vec<&str> = part.fields(1).iter().map(|own| &*own.name).collect();
    assert_eq!(names, ["density", "kinetic", "pressure"]);
    for level in levels {
        let read = |of: &Snapshot, name: &str| {
            let values = of.read(level, name);
            values.unwrap_or_else(|e| panic!("{e}")).to_f64()
        };
        let origins = read(&whole, "origin");
        let overlaps = |origin: &[f64]| {
            (0..3).all(|a| {
                let (left, right) = ([0.0, 0.3, 0.0][a], [0.45, 0.6, 0.45][a]);
                let edge = |n: f64| n * width(level.into())[a];
                edge(origin[a]) < right && edge(origin[a] + 8.0) > left
            })
        };
        let (density, leaf) = (read(&whole, "density"), read(&whole, "leaf"));
        let (mut kept, mut expected, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        for (n, origin) in origins.chunks(3).enumerate() {
            if overlaps(origin) {
                kept.extend_from_slice(origin);
                expected.extend_from_slice(&density[512 * n..512 * (n + 1)]);
                leaves.push(if level == 1 { 1.0 } else { leaf[n] });
            }
        }
        assert!(kept.len() < origins.len() && !kept.is_empty());
        assert_eq!(read(&part, "origin"), kept, "level {level}");
        assert_eq!(read(&part, "density"), expected, "level {level}");
        assert_eq!(read(&part, "leaf"), leaves, "level {level}");
    }
}

/// Requires that views count each particle once, in its pixel.
fn require_particles(run: &Path) {
    let (_, path) = latest(run).expect("readable").expect("a snapshot");
    let snapshot = Snapshot::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let places = snapshot.read_particles("particles/dust", "position", 0..315);
    let places = places.unwrap_or_else(|e| panic!("{e}")).to_f64();
    // a particle is spread over its cell, at most 4 by 4 pixels
    let (mut expected, mut found) = (vec![0.0; 16 * 16], vec![0.0; 16 * 16]);
    for at in places.chunks(3) {
        let [x, y] = [0, 1].map(|a| (at[a] * 16.0) as usize);
        expected[16 * y + x] += 0.003;
    }
    let (_, pixels) = last(run, "stars", "particles_dust_mass");
    for (n, mass) in pixels.iter().enumerate() {
        found[16 * (n / 64 / 4) + n % 64 / 4] += mass / 4096.0;
    }
    close(&found, &expected, "particles");
    let (_, crowd) = last(run, "crowd", "distribution");
    assert!(
        (crowd.iter().sum::<f64>() - 315.0).abs() < 1e-9,
        "{crowd:?}"
    );
    let (_, even) = last(run, "noise", "even");
    let mean = even.iter().sum::<f64>() / even.len() as f64;
    assert!((mean - 0.5).abs() < 0.05 && even.iter().all(|x| (0.0..1.0).contains(x)));
    let (_, normal) = last(run, "noise", "normal");
    let variance = normal.iter().map(|x| x * x).sum::<f64>() / normal.len() as f64;
    assert!((variance - 1.0).abs() < 0.3, "{variance}");
}

/// Requires that the last picture `swarm` has another colour than that of 0 exactly in the cells with particles.
fn require_swarm(run: &Path, fine: &BTreeMap<[i64; 3], &Cell>) {
    let (_, path) = latest(run).expect("readable").expect("a snapshot");
    let snapshot = Snapshot::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let places = snapshot.read_particles("particles/dust", "position", 0..315);
    let places = places.unwrap_or_else(|e| panic!("{e}")).to_f64();
    let leaf = |index: [i64; 3]| (fine[&index].level, fine[&index].index);
    let filled: BTreeSet<(usize, [i64; 3])> = places
        .chunks(3)
        .map(|at| leaf([0, 1, 2].map(|a| (at[a] * [64.0, 64.0, 32.0][a]) as i64)))
        .collect();
    let file = std::fs::File::open(run.join("views/swarm/000003.png")).expect("a picture");
    let mut reader = png::Decoder::new(std::io::BufReader::new(file))
        .read_info()
        .expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("a frame");
    // the plane is 404 pixels wide and high, beside an axis and below a title, in a picture of 600 pixels
    let [left, top, side] = [67.0, 38.0, 404.0];
    let colour = |[i, j]: [i64; 2]| {
        let [right, up] = [i, j].map(|n| (n as f64 + 0.5) / 64.0 * side);
        let [column, row] = [left + right, top + side - up].map(|x| x as usize);
        let at = row * info.line_size + column * info.color_type.samples();
        [pixels[at], pixels[at + 1], pixels[at + 2]]
    };
    let cells = || (0..64).flat_map(|j| (0..64).map(move |i| [i, j]));
    let is_filled = |[i, j]: [i64; 2]| filled.contains(&leaf([i, j, 16]));
    let (some, none): (Vec<_>, Vec<_>) = cells().partition(|&at| is_filled(at));
    assert!(some.len() > 60 && none.len() > 60, "{}", some.len());
    let zero = colour(none[0]);
    for at in none {
        assert_eq!(colour(at), zero, "no particle in {at:?}");
    }
    for at in some {
        assert_ne!(colour(at), zero, "particles in {at:?}");
    }
}

/// Requires that no run starts from a view, from one of its entries, or from a directory that is no run.
fn require_no_start(run: &Path) {
    for (path, what) in [
        ("views/part/000003.zarr", "is an entry of the view `part`"),
        ("views/part", "is a view of a run"),
        ("views/cut.zarr", "is a view of a run"),
        ("views", "is a directory without a snapshot"),
        ("snapshots", "is the directory of all snapshots"),
    ] {
        let path = run.join(path);
        let from = format!("run.start_from=\"{}\"", path.display());
        let scratch = Scratch::new();
        let result = run_into(&scratch.run(), false, BLAST, &[HALF, &from, "time.end=2.0"]);
        let error = result.expect_err("refused");
        let why = error.to_string();
        assert!(matches!(error, Error::Setup(_)), "{error:?}");
        assert!(path.exists(), "{why}");
        assert!(
            why.contains(what) && why.contains("snapshots/NNNNNN.zarr"),
            "{why}"
        );
    }
}

#[test]
fn coarse_slices_hold_means_of_finer_cells() {
    let scratch = Scratch::new();
    let run = scratch.run();
    run_into(
        &run,
        false,
        &with_views(VIEWS),
        &settings("time.max_steps=2"),
    )
    .expect("runs");
    let all = cells(&run, 1);
    let places = by_place(&all, 1);
    // x = 0.41 is in cell 13 of 32; y from 8 to 24 of 32; z up to 8 of 16
    let rows = (0..8).flat_map(|z| (8..24).map(move |y| [13, y, z]));
    let expected: Vec<f64> = rows.map(|at| places[&at].state[0]).collect();
    let (shape, found) = last(&run, "coarse", "density");
    assert_eq!(shape, [8, 16]);
    assert_eq!(found, expected);
    assert_eq!(view(&run, "coarse", "y").values[0], 8.5 / 32.0);
}

#[test]
fn profiles_and_distributions_are_those_of_the_snapshot() {
    let scratch = Scratch::new();
    let run = scratch.run();
    run_into(
        &run,
        false,
        &with_views(VIEWS),
        &settings("time.max_steps=3"),
    )
    .expect("runs");
    let all = cells(&run, 2);
    let edges = view(&run, "shells", "radius_edge").values;
    assert_eq!((edges[0], edges[12], edges.len()), (0.02, 0.6, 13));
    let radius = |cell: &Cell| {
        let [x, y, z] = cell.centre();
        let d = [x - 0.4, y - 0.55, z - 0.47].map(|d| d * d);
        (d[0] + d[1] + d[2]).sqrt()
    };
    let (mut sums, mut weights) = ([0.0; 12], [0.0; 12]);
    for cell in &all {
        let bin = edges.partition_point(|&edge| edge <= radius(cell));
        if (1..=12).contains(&bin) {
            let mass = cell.state[0] * cell.volume();
            sums[bin - 1] += cell.pressure() * mass;
            weights[bin - 1] += mass;
        }
    }
    close(&last(&run, "shells", "weight").1, &weights, "weight");
    let means: Vec<f64> = sums
        .iter()
        .zip(weights)
        .map(|(sum, weight)| sum / weight)
        .collect();
    close(&last(&run, "shells", "pressure").1, &means, "pressure");

    let [x, y] = ["density_edge", "pressure_edge"].map(|name| view(&run, "phases", name).values);
    let mut expected = vec![0.0; 48];
    for cell in &all {
        let i = x.partition_point(|&edge| edge <= cell.state[0]);
        let j = y.partition_point(|&edge| edge <= cell.pressure());
        if (1..=6).contains(&i) && (1..=8).contains(&j) {
            expected[(j - 1) * 6 + i - 1] += cell.state[0] * cell.volume();
        }
    }
    let (shape, found) = last(&run, "phases", "distribution");
    assert_eq!(shape, [8, 6]);
    close(&found, &expected, "distribution");
    assert!(
        expected.iter().filter(|&&x| x > 0.0).count() > 4,
        "a weak test"
    );
}

#[test]
fn lines_and_points_hold_the_cells_that_contain_them() {
    let scratch = Scratch::new();
    let run = scratch.run();
    run_into(
        &run,
        false,
        &with_views(VIEWS),
        &settings("time.max_steps=3"),
    )
    .expect("runs");
    let all = cells(&run, 2);
    let fine = by_place(&all, 2);
    let at = |place: [f64; 3]| {
        let cell = [0, 1, 2].map(|a| (place[a] / width(2)[a]).floor() as i64);
        fine[&cell]
    };
    let place = |n: i32| {
        let part = f64::from(n) / 36.0;
        [0.9 - 0.8 * part, 0.31 + 0.41 * part, 0.103 + 0.697 * part]
    };
    let density: Vec<f64> = (0..37).map(|n| at(place(n)).state[0]).collect();
    let (shape, found) = last(&run, "ray", "density");
    assert_eq!((shape, found), (vec![37], density));
    let pressure: Vec<f64> = (0..37).map(|n| at(place(n)).pressure()).collect();
    close(&last(&run, "ray", "pressure").1, &pressure, "ray");
    let distance = view(&run, "ray", "distance").values;
    close(
        &distance[36..],
        &[(0.64f64 + 0.1681 + 0.485_809).sqrt()],
        "length",
    );
    let levels: BTreeSet<usize> = (0..37).map(|n| at(place(n)).level).collect();
    assert!(levels.len() > 1, "a weak test");

    let (shape, found) = last(&run, "probe", "density");
    assert_eq!(shape, Vec::<u64>::new());
    assert_eq!(found, [at([0.4, 0.55, 0.47]).state[0]]);
    assert_eq!(view(&run, "probe", "density").shape, [4]);
}

#[test]
fn the_integral_of_a_spectrum_is_the_variance() {
    let scratch = Scratch::new();
    let run = scratch.run();
    run_into(
        &run,
        false,
        &with_views(VIEWS),
        &settings("time.max_steps=2"),
    )
    .expect("runs");
    let all = cells(&run, 1);
    let places = by_place(&all, 1);
    let count = places.len() as f64;
    let mean = places.values().map(|cell| cell.state[0]).sum::<f64>() / count;
    let squares = places.values().map(|cell| (cell.state[0] - mean).powi(2));
    let variance = squares.sum::<f64>() / count;
    let wavenumber = view(&run, "waves", "wavenumber").values;
    let (shape, power) = last(&run, "waves", "density");
    assert_eq!(shape, [wavenumber.len() as u64]);
    let total: f64 = power.iter().sum();
    close(&[total * wavenumber[0]], &[variance], "variance");
    // the initial density is a wave of one period along x and one along y
    let first = view(&run, "waves", "density").values;
    let largest = (0..power.len()).max_by(|&a, &b| first[a].total_cmp(&first[b]));
    assert_eq!(largest, Some(0), "{first:?}");
    close(
        &wavenumber[..2],
        &[1.0, 2.0].map(|n| n * std::f64::consts::TAU),
        "wavenumber",
    );
}

/// Returns all files of the views of a run.
fn files(run: &Path) -> BTreeMap<String, Vec<u8>> {
    fn add(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{prefix}/{name}");
            match path.is_dir() {
                true => add(&path, &name, files),
                false => drop(files.insert(name, std::fs::read(&path).expect("a file"))),
            }
        }
    }
    let mut files = BTreeMap::new();
    add(&run.join("views"), "", &mut files);
    files
}

/// Requires that two runs have the same views, byte by byte.
fn require_same(one: &Path, other: &Path, what: &str) {
    let [one, other] = [files(one), files(other)];
    let names: Vec<&String> = one.keys().collect();
    assert_eq!(names, other.keys().collect::<Vec<_>>(), "{what}");
    assert!(
        NAMES
            .iter()
            .all(|name| one.contains_key(&format!("/{name}.zarr/zarr.json")))
    );
    let entries = ["000000.zarr", "000000.png", "000001.zarr", "000001.png"];
    for (entry, view) in entries.iter().zip(["part", "drawn", "part", "hottest"]) {
        let names = names
            .iter()
            .filter(|name| name.starts_with(&format!("/{view}/{entry}")));
        assert!(names.count() > 0, "{what}: {view}/{entry} is missing");
    }
    for (name, bytes) in &one {
        // the attributes have the deck, with the run's directory and device
        let is_root = |file: &str| name.ends_with(&format!(".zarr/{file}"));
        if name.starts_with("/part/") && (is_root("zarr.json") || is_root("checksums")) {
            continue;
        }
        assert!(*bytes == other[name], "{what}: {name} differs");
    }
}

#[test]
fn views_have_the_same_bits_on_ranks_threads_and_devices() {
    let text = with_views(VIEWS);
    // ranks in one precision, devices in the other
    for (precision, mut others) in [
        ("run.precision=double", places(&[3], &[])),
        ("run.precision=single", places(&[], &[2])),
    ] {
        let settings = [HALF, "time.max_steps=2", precision];
        let alone = Scratch::new();
        run_into(&alone.run(), false, &text, &settings).expect("runs");
        if precision.ends_with("double") {
            others.push(("run.threads=2", 1));
        }
        for (setting, ranks) in others {
            let scratch = Scratch::new();
            let options = (0..ranks).map(|_| quietly_into(&scratch.run(), false));
            let settings = [&settings[..], &[setting]].concat();
            for result in run_on_ranks(&text, &settings, options.collect()) {
                result.unwrap_or_else(|e| panic!("{e}"));
            }
            let what = format!("{precision}, {setting}, {ranks} ranks");
            require_same(&alone.run(), &scratch.run(), &what);
        }
    }
}

#[test]
fn a_killed_run_continues_its_views_without_gap_or_duplicate() {
    let text = with_views(VIEWS);
    let (whole, killed) = (Scratch::new(), Scratch::new());
    run_into(&whole.run(), false, &text, &[HALF, "time.max_steps=6"]).expect("runs");
    // snapshots at steps 2 and 4; entries up to step 5, and files of a sixth that was not committed
    let cut = [HALF, "time.max_steps=5", "output.steps=2"];
    run_into(&killed.run(), false, &text, &cut).expect("runs");
    let place = killed.run().join("views/cut.zarr/density");
    assert!(place.join("c.5.0.0").is_file());
    std::fs::write(place.join("c.6.0.0"), "half a chunk").expect("writable");
    std::fs::write(place.join("zarr.json.partial"), "half of it").expect("writable");
    let part = killed.run().join("views/part");
    std::fs::create_dir(part.join(".000006.zarr.partial")).expect("writable");
    std::fs::create_dir(part.join("000006.zarr")).expect("writable");
    std::fs::write(killed.run().join("views/drawn/000006.png"), "x").expect("writable");
    let steps = view(&killed.run(), "cut", "step").values;
    assert_eq!(steps, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    run_into(&killed.run(), true, &text, &[HALF, "time.max_steps=6"]).expect("goes on");
    require_same(&whole.run(), &killed.run(), "after the kill");
    let steps = view(&killed.run(), "cut", "step").values;
    assert_eq!(steps, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let table = std::fs::read_to_string(part.join("entries.csv")).expect("readable");
    let rows: Vec<&str> = table
        .lines()
        .map(|row| row.split(',').next().unwrap_or(""))
        .collect();
    assert_eq!(rows, ["step", "0", "1", "2", "3", "4", "5", "6"]);
    let changed = text.replace("viridis", "magma");
    let result = run_into(&killed.run(), true, &changed, &[HALF, "time.max_steps=7"]);
    let why = result.expect_err("refused").to_string();
    assert!(
        why.contains("`view_colour_map` differs") && why.contains("colour_map = \"magma\""),
        "{why}"
    );
}

const TIMED: &str = r#"
[[output.view]]
name = "at"
kind = "slice"
axis = "z"
position = 0.5
interval = 0.004
times = [0.001, 0.0055]
fields = ["density"]
"#;

#[test]
fn time_steps_end_at_the_times_of_views() {
    let scratch = Scratch::new();
    let run = scratch.run();
    let first = [HALF, "time.end=0.006", "output.interval=0.002"];
    run_into(&run, false, &with_views(TIMED), &first).expect("runs");
    assert_eq!(view(&run, "at", "time").values, [0.0, 0.001, 0.004, 0.0055]);
    let second = [HALF, "time.end=0.009"];
    run_into(&run, true, &with_views(TIMED), &second).expect("goes on");
    assert_eq!(
        view(&run, "at", "time").values,
        [0.0, 0.001, 0.004, 0.0055, 0.008]
    );
    // another run into the same directory moves them away
    run_into(&run, false, &with_views(TIMED), &first).expect("runs");
    assert_eq!(view(&run.join("earlier.1"), "at", "time").values.len(), 5);
    assert_eq!(view(&run, "at", "time").values.len(), 4);
}

#[test]
fn a_resumed_run_with_another_view_of_the_name_is_refused() {
    let scratch = Scratch::new();
    let run = scratch.run();
    let settings = [HALF, "time.max_steps=2", "output.steps=1"];
    run_into(&run, false, &with_views(TIMED), &settings).expect("runs");
    let refused = |from: &str, to: &str| {
        let text = with_views(&TIMED.replace(from, to));
        let settings = [HALF, "time.max_steps=3"];
        let result = run_into(&run, true, &text, &settings);
        result.expect_err("refused").to_string()
    };
    for (from, to, texts) in [
        (
            "position = 0.5",
            "position = 0.75",
            ["position` differs: 0.5 before, 0.75 now", "position = 0.75"],
        ),
        (
            "[\"density\"]",
            "[\"density\", \"pressure\"]",
            ["`pressure` differs: it has no such array", "fields = "],
        ),
        (
            "[\"density\"]",
            "[\"pressure\"]",
            ["`pressure` differs", "fields = "],
        ),
        (
            "[\"density\"]",
            "[\"density\"]\nlevel = 1",
            ["`view_level` differs", "level = 1"],
        ),
    ] {
        let why = refused(from, to);
        for text in texts {
            assert!(why.contains(text), "{why}");
        }
        assert!(why.contains("give the view another name"), "{why}");
    }
    // a cadence may change
    let text = with_views(&TIMED.replace("interval = 0.004", "steps = 1"));
    run_into(&run, true, &text, &[HALF, "time.max_steps=3"]).expect("goes on");
}

#[test]
fn invalid_views_are_refused_with_their_line() {
    let refused = |from: &str, to: &str| {
        let text = with_views(&VIEWS.replacen(from, to, 1));
        let mut sim = nestar::Simulation::new(deck(&text, &[])).expect("made");
        let result = sim.engine().finish_setup();
        result.expect_err(to).to_string()
    };
    let cadence = "position = 0.47\nsteps = 1";
    for (from, to, why, line) in [
        (
            cadence,
            "position = 0.47",
            "`output.view[0]` is a view without cadence",
            "[[output.view]]",
        ),
        (
            "{ name = \"kinetic\"",
            "{ name = \"pressure\"",
            "gives a formula the name of the field \"pressure\"",
            "fields = ",
        ),
        (
            "name = \"coarse\"",
            "name = \"cut\"",
            "`output.view[0]` has the name \"cut\" already",
            "name = \"cut\"",
        ),
        (
            "name = \"cut\"",
            "name = \"a/b\"",
            "must consist of letters, digits",
            "name = \"a/b\"",
        ),
        (
            "kind = \"slice\"",
            "kind = \"slize\"",
            "did you mean \"slice\"?",
            "kind = \"slize\"",
        ),
        (
            "[\"density\", ",
            "[\"densty\", ",
            "did you mean \"density\"?",
            "fields = [\"densty\"",
        ),
        ("density*speed^2", "density*sped^2", "sped", "sped^2"),
        ("bins = 12", "bins = 0", "at least 1", "bins = 0"),
        (
            "bins = [6, 8]",
            "bins = [6, 0]",
            "at least 1",
            "bins = [6, 0]",
        ),
        (
            "bins = [6, 8]",
            "bins = [6]",
            "must have one element for each of the 2 fields",
            "bins = [6]",
        ),
        (
            "right = [1.0, 0.75, 0.5]",
            "right = [1.5, 0.75, 0.5]",
            "must be in the box, from x = 0 to 1, found 1.5",
            "right = [1.5",
        ),
        (
            "right = [1.0, 0.75, 0.5]",
            "right = [1.0, 0.2, 0.5]",
            "must be above left",
            "right = [1.0, 0.2",
        ),
        (
            "level = 1",
            "level = 3",
            "must be at most `mesh.max_level` = 2, found 3",
            "level = 3",
        ),
        (
            "position = 0.47",
            "position = -0.1",
            "must be in the box, from z = 0 to 1",
            "position = -0.1",
        ),
        (
            "range = [0.02, 0.6]",
            "range = [0.0, 0.6]",
            "must be positive for logarithmic bins",
            "range = [0.0, 0.6]",
        ),
        (
            "[0.05, 20.0]]",
            "[-1, 20.0]]",
            "must be positive for logarithmic bins",
            "ranges = ",
        ),
        (
            cadence,
            "position = 0.47\ntimes = [0.1, 0.3, 0.2]",
            "`output.view[0].times[2]` is 0.2, but must be after 0.3",
            "times = [",
        ),
        (
            "weight = \"density\"",
            "weight = \"masss\"",
            "weight",
            "weight = \"masss\"",
        ),
        (
            "end = [0.1, 0.72, 0.8]",
            "end = [0.1, 1.72, 0.8]",
            "`output.view[6].end[1]` must be in the box, from y = 0 to 1",
            "end = [0.1, 1.72, 0.8]",
        ),
        (
            "end = [0.1, 0.72, 0.8]",
            "end = [0.9, 0.31, 0.103]",
            "must differ from start",
            "end = [0.9",
        ),
        ("points = 37", "points = 1", "at least 2", "points = 1"),
        (
            "right = [1.0, 0.75, 0.5]",
            "right = [0.3, 0.75, 0.5]",
            "must be in the region of the view",
            "position = 0.41",
        ),
        (
            "kind = \"spectrum\"",
            "kind = \"spectrum\"\nregion = { left = [0, 0, 0], right = [1, 1, 1] }",
            "has no meaning for a spectrum",
            "region = ",
        ),
        (
            "position = [0.4, 0.55, 0.47]",
            "position = [0.4, 0.55, 0.47]\nregion = { left = [0, 0, 0], right = [1, 1, 1] }",
            "has no meaning",
            "region = ",
        ),
        (
            "axis = \"z\"",
            "axis = \"w\"",
            "one of \"x\", \"y\", \"z\"",
            "axis = \"w\"",
        ),
        ("axis = \"z\"", "axsi = \"z\"", "unknown key `axsi`", "axsi"),
        (
            "centre = [0.4, 0.55, 0.47]",
            "centre = [0.4, 0.55, 0.47]\naxis = \"x\"",
            "either a centre or an axis",
            "[[output.view]]",
        ),
        (
            "fields = [\"density\", \"pressure\"]",
            "fields = []",
            "must name one field or more",
            "fields = []",
        ),
        (
            "right = [0.45, 0.6, 0.45]",
            "right = [0.45, 1.6, 0.45]",
            "must be in the box, from y = 0 to 1, found 1.6",
            "right = [0.45, 1.6",
        ),
        (
            "[\"pressure\", \"density*speed\"]",
            "[\"presure\", \"density*speed\"]",
            "did you mean \"pressure\"?",
            "[\"presure\"",
        ),
        ("density*speed\"", "density*sped\"", "sped", "density*sped"),
        (
            "position = 0.55",
            "position = 1.55",
            "must be in the box, from y = 0 to 1",
            "position = 1.55",
        ),
        (
            "position = 0.55",
            "position = 0.55\nregion = { left = [0, 0, 0], right = [1, 1, 1] }",
            "give `centre` and `side`",
            "region = ",
        ),
        (
            "position = 0.55",
            "position = 0.55\nprecision = \"single\"",
            "has no meaning for a picture",
            "precision = ",
        ),
        (
            "width = 600",
            "width = 300",
            "for 2 panels side by side",
            "width = 300",
        ),
        (
            "colour_map = \"viridis\"",
            "colour_map = \"virids\"",
            "did you mean \"viridis\"?",
            "\"virids\"",
        ),
        ("[0.1, 8.0]", "[9.0, 8.0]", "must ascend", "range = [9.0"),
        (
            "reduction = \"projection\"\nweight = \"density\"",
            "reduction = \"projection\"\nweight = \"densty\"",
            "did you mean \"density\"?",
            "weight = \"densty\"",
        ),
        (
            "reduction = \"projection\"",
            "reduction = \"maximum\"",
            "needs `reduction = \"projection\"`",
            "weight = ",
        ),
        ("side = 0.6", "side = 0.0", "must be above 0", "side = 0.0"),
        (
            "\"particles_dust_mass\", {",
            "\"particles_dst_mass\", {",
            "did you mean \"particles_dust_mass\"?",
            "particles_dst_mass",
        ),
        (
            "name = \"stars\"",
            "name = \"stars\"\nlevel = 1",
            "must be 2, the finest level, for the particles",
            "level = 1",
        ),
        (
            "[\"density\", \"pressure\", {",
            "[\"particles_dust_mass\", \"pressure\", {",
            "its coarser cells would have none",
            "fields = [\"particles_dust_mass\", \"pressure\"",
        ),
        (
            "fields = [\"particles_dust_mass\"]",
            "level = 1\nfields = [\"particles_dust_mass\"]",
            "must be 2, the finest level, for the particles",
            "level = 1",
        ),
        (
            "fields = [\"particles_dust_mass\"]",
            "fields = [\"particles/dust\"]",
            "must be `particles_dust_mass` or `particles_dust_number`",
            "particles/dust",
        ),
        (
            "fields = [\"density\", \"pressure\"]",
            "fields = [\"density\", \"density\"]",
            "gives a second array named \"density\"",
            "fields = ",
        ),
    ] {
        let message = refused(from, to);
        assert!(message.contains(why), "{why}: {message}");
        assert!(
            message.contains("test:") && message.contains(line),
            "{line}: {message}"
        );
    }
}
