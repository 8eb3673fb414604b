//! Series: they grow entry by entry, continue after a cut, and xarray reads them.

use crate::common::{Folder, SmallDisk, names, random};
use crate::python::run;
use nestar_snapshot::{
    DataType, Series, SeriesArray, SeriesList, SeriesPlan, SeriesReader, Values, read_array,
};
use serde_json::{Map, Value, json};
use std::path::Path;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn array(name: &str, data_type: DataType, dimensions: &[&str], shape: &[u64]) -> SeriesArray {
    SeriesArray {
        name: name.into(),
        data_type,
        dimensions: dimensions.iter().map(|name| name.to_string()).collect(),
        shape: shape.to_vec(),
        attributes: map(json!({"units": "mass/length**3"})),
    }
}

fn plan() -> SeriesPlan {
    let coordinate = |name: &str, values: &[f64]| {
        let shape = [values.len() as u64];
        let own = array(name, DataType::F64, &[name], &shape);
        (own, Values::F64(values.to_vec()))
    };
    SeriesPlan {
        attributes: map(json!({"format": "nestar-view", "view_kind": "slice"})),
        time: map(json!({"units": "time"})),
        coordinates: vec![
            coordinate("y", &[0.25, 0.75]),
            coordinate("x", &[0.5, 1.5, 2.5]),
        ],
        arrays: vec![
            array("density", DataType::F32, &["y", "x"], &[2, 3]),
            array("total", DataType::F64, &[], &[]),
        ],
        list: None,
    }
}

/// Appends entry `n`.
fn append(series: &mut Series, n: usize) {
    let (time, step) = ([0.0, 0.5, 1.25][n], [0, 3, 7][n]);
    let values = (0..6).map(|i| (10 * n + i) as f32).collect();
    let values = [Values::F32(values), Values::F64(vec![n as f64])];
    series.append(time, step, &values).expect("written");
}

fn times(path: &Path) -> Vec<f64> {
    read_array(path, "time").expect("readable").values
}

#[test]
fn a_series_continues_after_its_entries_up_to_a_step() {
    let folder = Folder::new();
    let path = folder.0.join("view.zarr");
    let mut series = Series::create(&path, &plan()).expect("created");
    (0..3).for_each(|n| append(&mut series, n));
    series.sync().expect("synced");
    assert_eq!(series.latest_step(), Some(7));
    for (step, kept) in [(7, 3), (6, 2), (0, 1)] {
        let mut series = Series::resume(&path, &plan(), step).expect("resumed");
        assert_eq!(times(&path), [0.0, 0.5, 1.25][..kept]);
        assert_eq!(series.latest_step(), Some([0, 3, 7][kept - 1]));
        (kept..3).for_each(|n| append(&mut series, n));
        assert_eq!(times(&path), [0.0, 0.5, 1.25]);
        let density = read_array(&path, "density").expect("readable");
        assert_eq!(density.shape, [3, 2, 3]);
        assert_eq!(density.values[6..9], [10.0, 11.0, 12.0]);
    }
    if let Some(printed) = run("check_series.py", &[path.as_os_str()]) {
        assert_eq!(printed, "python: ok\n");
    }
}

#[test]
fn the_coordinates_of_long_series_fill_several_chunks() {
    let folder = Folder::new();
    let path = folder.0.join("view.zarr");
    let plan = SeriesPlan {
        coordinates: Vec::new(),
        arrays: vec![array("total", DataType::F64, &[], &[])],
        ..plan()
    };
    let mut series = Series::create(&path, &plan).expect("created");
    let fill = |series: &mut Series, steps: std::ops::Range<u64>| {
        for step in steps {
            let values = [Values::F64(vec![step as f64])];
            series.append(step as f64, step, &values).expect("written");
        }
    };
    fill(&mut series, 0..1030);
    let mut series = Series::resume(&path, &plan, 1026).expect("resumed");
    fill(&mut series, 1027..1040);
    let expected: Vec<f64> = (0..1040).map(f64::from).collect();
    for name in ["time", "step", "total"] {
        assert_eq!(read_array(&path, name).expect("readable").values, expected);
    }
}

#[test]
fn lists_have_any_number_of_rows_in_an_entry() {
    let folder = Folder::new();
    let path = folder.0.join("view.zarr");
    let plan = SeriesPlan {
        coordinates: Vec::new(),
        arrays: vec![array("total", DataType::F64, &[], &[])],
        list: Some(SeriesList {
            dimension: "row".into(),
            count: map(json!({"long_name": "number of rows"})),
            arrays: vec![
                array("id", DataType::U64, &[], &[]),
                array("position", DataType::F32, &["axis"], &[3]),
            ],
        }),
        ..plan()
    };
    // chunks have 16384 rows
    let counts: [u64; 6] = [3, 0, 40_000, 9_149, 0, 5];
    let firsts: Vec<u64> = (0..6).map(|n| counts[..n].iter().sum()).collect();
    let append = |series: &mut Series, n: usize| {
        let rows: Vec<u64> = (firsts[n]..firsts[n] + counts[n]).map(|x| x * x).collect();
        let points = rows.iter().flat_map(|&x| [x as f32, 1.0, -(x as f32)]);
        let points = Values::F32(points.collect());
        let values = [Values::F64(vec![n as f64]), Values::U64(rows), points];
        (series.append(n as f64, n as u64, &values)).expect("written");
    };
    let mut series = Series::create(&path, &plan).expect("created");
    for (first, step) in [(0, 3), (4, 5), (6, 2), (3, 0), (1, 3)] {
        (first..6).for_each(|n| append(&mut series, n));
        let numbers = read_array(&path, "count").expect("readable").values;
        assert_eq!(numbers, counts.map(|n| n as f64));
        let ids = read_array(&path, "id").expect("readable");
        let square = |n: u64| (n * n) as f64;
        assert!(ids.values == (0..49_157).map(square).collect::<Vec<_>>());
        let points = read_array(&path, "position").expect("readable");
        assert_eq!(points.shape, [49_157, 3]);
        assert_eq!(
            points.values[3 * 49_000 + 2],
            -f64::from(square(49_000) as f32)
        );
        series = Series::resume(&path, &plan, step).expect("resumed");
        let kept = read_array(&path, "id").expect("readable").shape;
        assert_eq!(kept, [counts[..=step as usize].iter().sum::<u64>()]);
    }
    let refused = series.append(9.0, 9, &[Values::F64(vec![0.0])]);
    let why = refused.expect_err("too few").to_string();
    assert!(why.contains("3 arrays are planned, 1 given"), "{why}");
    let reader = SeriesReader::open(&path).expect("readable");
    assert_eq!(
        reader.growing().collect::<Vec<_>>(),
        ["count", "step", "time", "total"]
    );
}

#[test]
fn differences_to_another_plan_are_described() {
    let folder = Folder::new();
    let path = folder.0.join("view.zarr");
    Series::create(&path, &plan()).expect("created");
    let differs = |change: &dyn Fn(&mut SeriesPlan)| {
        let mut plan = plan();
        change(&mut plan);
        Series::difference(&path, &plan).expect("readable")
    };
    assert_eq!(differs(&|_| {}), None);
    let of = |name: &str, why: &str| Some((name.to_string(), why.to_string()));
    let kind = differs(&|plan| drop(plan.attributes.insert("view_kind".into(), json!("line"))));
    assert_eq!(kind, of("view_kind", "\"slice\" before, \"line\" now"));
    let shape = differs(&|plan| plan.arrays[0].shape = vec![2, 4]);
    assert_eq!(
        shape,
        of("density", "\"float32\" [2,3] before, \"float32\" [2,4] now")
    );
    let absent = differs(&|plan| plan.arrays[1].name = "sum".into());
    assert_eq!(absent, of("sum", "it has no such array"));
    let fewer = differs(&|plan| drop(plan.arrays.pop()));
    assert_eq!(fewer, of("total", "it is not among the fields now"));
    let missing = Series::difference(&folder.0.join("none.zarr"), &plan());
    assert!(missing.is_err());
}

#[test]
fn a_series_is_created_whole_or_not_at_all() {
    let folder = Folder::new();
    // what a killed run leaves
    std::fs::create_dir_all(folder.0.join(".view.zarr.partial/density")).expect("a directory");
    let path = folder.0.join("view.zarr");
    let mut series = Series::create(&path, &plan()).expect("created");
    assert_eq!(names(&folder.0), ["view.zarr"]);
    append(&mut series, 0);
    series.sync().expect("synced under its final name");
    let again = Series::create(&path, &plan()).map(|_| ());
    let why = again.expect_err("refused").to_string();
    assert!(why.contains("view.zarr exists already"), "{why}");
    assert_eq!(times(&path), [0.0]);
}

#[test]
fn entries_are_read_while_a_series_grows() {
    let folder = Folder::new();
    let path = folder.0.join("view.zarr");
    let mut series = Series::create(&path, &plan()).expect("created");
    let empty = SeriesReader::open(&path).expect("readable");
    assert_eq!(empty.entries(), 0);
    (0..2).for_each(|n| append(&mut series, n));
    let reader = SeriesReader::open(&path).expect("readable");
    append(&mut series, 2);
    assert_eq!(reader.entries(), 2);
    let names: Vec<&str> = reader.growing().collect();
    assert_eq!(names, ["density", "step", "time", "total"]);
    let density = reader.array("density").expect("an array");
    assert_eq!(density, plan().arrays[0]);
    assert_eq!(
        reader.array("x").expect("an array"),
        plan().coordinates[1].0
    );
    assert_eq!(reader.attributes()["view_kind"], "slice");
    let read = |name: &str, entries: &[u64]| reader.read(name, entries).expect("readable");
    assert_eq!(read("density", &[1]), [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]);
    assert_eq!(read("total", &[0, 1]), [0.0, 1.0]);
    assert_eq!(read("time", &[0, 1]), [0.0, 0.5]);
    assert_eq!(read("x", &[0, 2]), [0.5, 2.5]);
    let refused = |name: &str, entry| {
        reader
            .read(name, &[entry])
            .expect_err("refused")
            .to_string()
    };
    assert!(refused("density", 2).contains("no entry 2 of density"));
    assert!(refused("pressure", 0).contains("has no array \"pressure\"; it has density"));
    std::fs::write(path.join("density/c.1.0.0"), "damaged").expect("written");
    assert!(refused("density", 1).contains("c.1.0.0"));
    assert!(SeriesReader::open(&folder.0).is_err());
}

/// Requires that a result is the error of a full disk, with the name of a file.
fn require_full<T>(result: nestar_snapshot::Result<T>, file: &str) {
    let why = result.map(|_| ()).expect_err("full").to_string();
    assert!(
        why.contains(file) && why.contains("disk is full: free some space"),
        "{why}"
    );
}

#[test]
fn a_series_goes_on_after_a_full_disk_without_gap_or_duplicate() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mount(&folder) else {
        return;
    };
    let plan = SeriesPlan {
        coordinates: Vec::new(),
        arrays: vec![array("noise", DataType::F64, &["x"], &[12_000])],
        ..plan()
    };
    let path = disk.0.join("view.zarr");
    let filler = disk.fill();
    require_full(Series::create(&path, &plan), "view.zarr");
    assert_eq!(names(&disk.0), ["filler"]);
    std::fs::remove_file(&filler).expect("removed");
    // what a user removes later to make room
    let other = disk.0.join("other");
    std::fs::write(&other, vec![7; 256 << 10]).expect("written");
    // each entry has its own part of the numbers
    let noise = random(12_100);
    let values = |step: u64| vec![Values::F64(noise[step as usize..][..12_000].to_vec())];
    let mut series = Series::create(&path, &plan).expect("created");
    let append = |series: &mut Series, step: u64| series.append(step as f64, step, &values(step));
    let mut whole = 0;
    let failed = loop {
        match append(&mut series, whole) {
            Ok(()) => whole += 1,
            failed => break failed,
        }
    };
    require_full(failed, "view.zarr/noise/c.");
    assert!((5..9).contains(&whole), "{whole}");
    let steps = || read_array(&path, "step").expect("readable").values;
    assert_eq!(steps(), (0..whole).map(|n| n as f64).collect::<Vec<_>>());
    // without space it cannot go on, and loses nothing
    drop(series);
    let filler = disk.fill();
    require_full(Series::resume(&path, &plan, whole - 3), "view.zarr");
    assert_eq!(steps().len() as u64, whole);
    for file in [filler, other] {
        std::fs::remove_file(file).expect("removed");
    }
    let mut series = Series::resume(&path, &plan, whole - 3).expect("resumed");
    assert_eq!(series.latest_step(), Some(whole - 3));
    (whole - 2..whole).for_each(|step| append(&mut series, step).expect("written"));
    assert_eq!(steps(), (0..whole).map(|n| n as f64).collect::<Vec<_>>());
    let found = read_array(&path, "noise").expect("readable").values;
    let expected: Vec<f64> = (0..whole)
        .flat_map(|n| noise[n as usize..][..12_000].to_vec())
        .collect();
    assert!(found == expected);
}
