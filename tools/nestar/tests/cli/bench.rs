//! Tests of `nestar bench`.

use crate::Place;
use serde_json::Value;

/// Returns the results of `nestar bench` with these arguments.
fn figures(place: &Place, arguments: &[&str]) -> Value {
    let outcome = place.nestar(&[&["bench", "--json", "-"][..], arguments].concat());
    outcome.has_status(0);
    // standard output contains only JSON
    serde_json::from_str(&outcome.out).unwrap_or_else(|e| panic!("{e}:\n{}", outcome.out))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn every_case_gives_rates_in_both_precisions() {
    let place = Place::new();
    // more levels or wider buffers would refine all of a root level that small
    let mut small: Vec<&str> = "--device cpu --cells 8 --steps 1".split(' ').collect();
    for setting in [
        "mesh.max_level=2",
        "mesh.flag_buffer=1",
        "mesh.regrid_interval=1",
    ] {
        small.extend(["--set", setting]);
    }
    let all = figures(&place, &small);
    assert_eq!(all["schema"], 2);
    assert!(all["device"].as_str().is_some_and(|d| d.starts_with("CPU")));
    let results = all["results"].as_array().expect("a list of results");
    let names: Vec<(&str, &str)> = results
        .iter()
        .map(|r| (r["case"].as_str(), r["precision"].as_str()))
        .map(|(case, precision)| (case.unwrap_or_default(), precision.unwrap_or_default()))
        .collect();
    let cases = [
        "uniform",
        "blast",
        "magnetic",
        "kelvin-helmholtz",
        "collapse",
        "particles",
        "plummer",
        "cooling",
        "chemistry",
        "joint",
    ];
    let wanted = cases.map(|case| [(case, "single"), (case, "double")]);
    assert_eq!(names, wanted.concat());
    let (mut times_of_all, mut wall_of_all) = (0.0, 0.0);
    for result in results {
        assert!(number(&result["cell_updates_per_second"]) > 0.0, "{result}");
        let cells = result["patches"].as_array().expect("patches").iter();
        let cells: f64 = cells.map(|n| 512.0 * number(n)).sum();
        assert_eq!(number(&result["cells"]), cells);
        assert!(number(&result["cell_updates"]) >= cells, "{result}");
        assert!(number(&result["memory"]["fields_bytes"]) > 0.0);
        let sub_steps = result["sub_steps_per_cell"].as_f64();
        let reacts = result["case"] == "chemistry";
        assert_eq!(
            sub_steps.is_some_and(|mean| mean >= 1.0),
            reacts,
            "{result}"
        );
        let times = result["plugin_seconds"].as_object().expect("times");
        times_of_all += times.values().map(number).sum::<f64>();
        wall_of_all += number(&result["wall_seconds"]);
    }
    let joint = results.last().expect("the case that joins all");
    for name in ["hydro", "gravity", "particles", "cooling", "mesh", "regrid"] {
        assert!(
            number(&joint["plugin_seconds"][name]) > 0.0,
            "{name}: {joint}"
        );
    }
    // both clocks are read one after the other, and another process may run in between
    let differ = (times_of_all - wall_of_all).abs();
    assert!(
        differ < 0.02 * wall_of_all + 0.005,
        "{times_of_all} of {wall_of_all} s"
    );
    let finest = results[2]["patches"].as_array().expect("patches").len();
    assert_eq!(finest, 3, "two levels of refinement");
}

/// Weak scaling: two ranks compute a box of twice the length, with the same number of patches per rank.
#[test]
fn ranks_measure_one_simulation_together() {
    let place = Place::new();
    let long = "blast --device cpu --precision single --steps 1 --set domain.cells=[16,8,8] \
                --set domain.right_edge=[2,1,1] --set mesh.refine[0].threshold=0.7";
    let measure = |ranks: &'static str| {
        let ranks = ["--ranks", ranks].into_iter();
        figures(&place, &long.split(' ').chain(ranks).collect::<Vec<_>>())
    };
    let [alone, both] = ["1", "2"].map(measure);
    assert_eq!((&alone["ranks"], &both["ranks"]), (&1.into(), &2.into()));
    let [alone, both] = [&alone, &both].map(|all| &all["results"][0]);
    assert_eq!(both["root_cells"], serde_json::json!([16, 8, 8]));
    for same in ["patches", "cell_updates", "level_steps"] {
        assert_eq!(alone[same], both[same], "{same}");
    }
}

#[test]
fn a_text_for_people_and_a_file_for_programs_come_together() {
    let place = Place::new();
    let arguments =
        "bench uniform --device cpu --precision single --cells 16 --steps 2 --json figures.json";
    let outcome = place.nestar(&arguments.split(' ').collect::<Vec<_>>());
    outcome
        .has_status(0)
        .tells(&["measuring uniform 16^3, single"]);
    for text in [
        "machine: ",
        "device: CPU, ",
        "uniform 16^3, single: ",
        "2 root steps after 2, 2 level steps",
        "uniform                    16^3    single    4.10e3       2 ",
    ] {
        assert!(
            outcome.out.contains(text),
            "no {text:?} in\n{}",
            outcome.out
        );
    }
    let file: Value = serde_json::from_str(&place.read("figures.json")).expect("JSON");
    assert_eq!(file["results"][0]["root_steps"], 2);
    assert!(!place.0.join("out").exists(), "a benchmark writes no run");
}

#[test]
fn a_profile_names_the_kernels_of_a_device() {
    let place = Place::new();
    let arguments = "blast --device emulated --precision single --cells 8 --steps 4 --profile --set mesh.max_level=1";
    let compiler = std::process::Command::new("c++").arg("--version").output();
    if compiler.is_err() {
        println!("skipped: there is no C++ compiler");
        return;
    }
    let all = figures(&place, &arguments.split(' ').collect::<Vec<_>>());
    let result = &all["results"][0];
    let kernels = result["profile"]["kernels"].as_array().expect("kernels");
    let step = kernels.iter().find(|k| k["name"] == "fluid_step");
    let step = step.unwrap_or_else(|| panic!("{result:#}"));
    assert_eq!(step["launches"], result["level_steps"]);
    assert!(number(&step["cells_per_second"]) > 0.0 && number(&step["bytes_per_second"]) > 0.0);
    let shares: f64 = kernels.iter().map(|k| number(&k["share"])).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    let traffic = &result["traffic"]["per_level_step"];
    assert!(number(&traffic["launches"]) >= 1.0 && number(&traffic["bytes_down"]) > 0.0);
    let busy = number(&result["device_busy_share"]);
    assert!(busy > 0.0 && busy <= 1.0, "{busy}");
}

#[test]
fn invalid_arguments_of_a_benchmark_are_errors() {
    let place = Place::new();
    let cases = [
        ("uniforn", "a similar value exists: 'uniform'"),
        ("--cells 12", "must be a multiple of 8"),
        ("--steps 0", "--steps"),
        ("--device gpu", "run.device"),
        ("--set hydro.gama=1", "did you mean `gamma`?"),
    ];
    for (options, text) in cases {
        let arguments = ["bench"].into_iter().chain(options.split(' '));
        let outcome = place.nestar(&arguments.collect::<Vec<_>>());
        outcome.has_status(2).complains(&[text]);
    }
    let small = "bench uniform --device cpu --cells 32 --set run.memory_limit=1";
    let outcome = place.nestar(&small.split(' ').collect::<Vec<_>>());
    outcome.has_status(4).complains(&[
        "uniform 32^3, single: too little memory",
        "use fewer --cells",
    ]);
}
