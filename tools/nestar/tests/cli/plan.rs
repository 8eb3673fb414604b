//! Tests of `nestar plan`.

use crate::{BLAST, Outcome, Place};
use serde_json::Value;

/// Returns the plans of `nestar plan` with these arguments.
fn plans(place: &Place, arguments: &[&str]) -> Value {
    // no measurement
    let rate: &[&str] = match arguments.contains(&"--device-rate") {
        true => &[],
        false => &["--device-rate", "5e9"],
    };
    let outcome =
        place.nestar(&[&["plan", "deck.toml", "--json", "-"][..], arguments, rate].concat());
    outcome.has_status(0);
    // standard output contains only JSON
    serde_json::from_str(&outcome.out).unwrap_or_else(|e| panic!("{e}:\n{}", outcome.out))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn the_parts_of_the_ranks_sum_to_the_total() {
    let place = Place::with(BLAST);
    let all = plans(&place, &["--ranks", "1,3,4096"]);
    assert_eq!(all["schema"], 3);
    let patches: Vec<f64> = list(&all["hierarchy"]["patches"])
        .iter()
        .map(number)
        .collect();
    assert_eq!((patches.len(), patches[0]), (2, 8.0));
    for (plan, ranks) in list(&all["plans"]).iter().zip([1, 3, 4096]) {
        assert_eq!(plan["ranks"], ranks);
        let parts = list(&plan["by_rank"]);
        assert_eq!(parts.len(), ranks);
        for (level, patches) in patches.iter().enumerate() {
            let sum = |of: &dyn Fn(&Value) -> f64| -> f64 {
                parts.iter().map(|part| of(&part["levels"][level])).sum()
            };
            assert_eq!(sum(&|part| number(&part["patches"])), *patches);
            for key in ["messages", "bytes"] {
                let [sent, received] =
                    ["sent", "received"].map(|side| sum(&|part| number(&part[side][key])));
                assert_eq!(sent, received, "{key} of level {level} on {ranks} ranks");
                assert_eq!(sent > 0.0, ranks > 1);
            }
        }
        let idle = |part: &&Value| number(&part["cell_updates_per_root_step"]) == 0.0;
        let empty = parts.iter().filter(idle).count();
        assert_eq!(plan["empty_ranks"], empty);
        assert_eq!(empty > 0, ranks == 4096);
        let efficiency = number(&plan["efficiency"]["waiting"]);
        assert!(efficiency > 0.0 && efficiency <= 1.0);
        assert!(number(&plan["imbalance"]) >= 1.0);
        assert!(number(&plan["memory_bytes"]["most"]) > 0.0);
    }
    assert_eq!(all["plans"][0]["efficiency"]["waiting"], 1.0);
}

#[test]
fn a_snapshot_is_planned_for_without_its_fields() {
    let place = Place::with(BLAST);
    place
        .nestar(&["run", "deck.toml", "--set", "time.max_steps=2"])
        .has_status(0);
    let (initial, stored) = ("run/snapshots/000000.zarr", "run");
    let built = plans(&place, &["--ranks", "2,5"]);
    let read = plans(&place, &["--ranks", "2,5", "--snapshot", initial]);
    assert_eq!(built["plans"], read["plans"]);
    let coarse = [
        "--ranks",
        "2",
        "--snapshot",
        stored,
        "--set",
        "mesh.max_level=0",
    ];
    assert_eq!(
        list(&plans(&place, &coarse)["hierarchy"]["patches"]).len(),
        2
    );
    let other = [
        "plan",
        "deck.toml",
        "--ranks",
        "2",
        "--snapshot",
        stored,
        "--set",
        "domain.cells=[32,16,16]",
    ];
    place.nestar(&other).has_status(2).complains(&[
        "the root grid has [16, 16, 16] cells, but that of the deck has [32, 16, 16]",
    ]);
}

#[test]
fn a_table_and_a_file_come_together() {
    let place = Place::with(BLAST);
    let outcome = place.nestar(&[
        "plan",
        "deck.toml",
        "--ranks",
        "4,4096",
        "--network",
        "1",
        "--latency",
        "0",
        "--json",
        "plan.json",
    ]);
    outcome.has_status(0);
    for text in [
        "initial hierarchy",
        "\n4 ranks",
        "\n4096 ranks",
        "ranks are empty because there are too few patches",
        "level 1: patches",
        "neighbour ranks",
        "parallel efficiency",
    ] {
        assert!(
            outcome.out.contains(text),
            "no {text:?} in\n{}",
            outcome.out
        );
    }
    let file: Value = serde_json::from_str(&place.read("plan.json")).expect("JSON");
    assert_eq!(number(&file["machine"]["bytes_per_second"]), 1e9);
    for wrong in ["--ranks=0", "--network=0", "--latency=-1", "--layers=9"] {
        let arguments = ["plan", "deck.toml", "--ranks", "4", wrong];
        assert_eq!(place.nestar(&arguments).status, Some(2), "{wrong}");
    }
}

/// Measured time of a root step in weak scaling of `nestar bench plummer` (BENCHMARKS.md, four H200), with the rate of one
/// GPU.
#[test]
fn gravity_and_particles_on_several_gpus_take_as_long_as_was_measured() {
    let place = Place::with(include_str!(
        "../../../../systems/nestar/bench/plummer.toml"
    ));
    for (ranks, sides, rates) in [
        (2, [2, 1], [1.381e9, 2.142e9]),
        (4, [2, 2], [1.381e9, 4.216e9]),
    ] {
        let box_of = |key: &str, side: i32| {
            format!(
                "domain.{key}=[{}, {}, {side}]",
                side * sides[0],
                side * sides[1]
            )
        };
        let settings = [
            box_of("cells", 256),
            box_of("left_edge", -8),
            box_of("right_edge", 8),
            format!("constants.n={}", 20_000_000 * ranks),
            "run.precision=single".into(),
        ];
        let settings: Vec<&str> = settings
            .iter()
            .flat_map(|set| ["--set", set.as_str()])
            .collect();
        let (ranks, rate) = (ranks.to_string(), rates[0].to_string());
        let machine = [
            "--ranks",
            &ranks,
            "--device-rate",
            &rate,
            "--network",
            "250",
            "--latency",
            "10",
        ];
        let all = plans(&place, &[&machine[..], &settings].concat());
        let seconds = number(&all["plans"][0]["root_step_seconds"]["overlapped"]);
        let cells = f64::from(256 * 256 * 256 * sides[0] * sides[1]);
        let found = cells / seconds / rates[1];
        assert!((found - 1.0).abs() < 0.05, "{ranks} GPUs: {found}");
    }
}

#[test]
fn particles_count_in_plans_where_they_are() {
    let place = Place::with(BLAST);
    let dark = |count: u64| {
        format!(
            "particles.species.dark={{ mass = 0.0, initial = {{ kind = \"random\", count = {count}, \
             position = [\"u0 - 0.5\", \"u1 - 0.5\", \"u2 - 0.5\"] }} }}"
        )
    };
    let many = dark(1_000_000_000);
    let all = plans(&place, &["--ranks", "2", "--set", &many]);
    let line = all["hierarchy"]["items"][0].as_str().expect("a line");
    assert!(
        line.starts_with("particles/dark: at most 1000000000 particles"),
        "{line}"
    );
    let plan = &all["plans"][0];
    assert_eq!(number(&plan["items"]["mean"]), 5e8);
    assert!(number(&plan["memory_bytes"]["most"]) > 80.0 * 5e8);
    // each rank has particles
    assert!(number(&plan["items"]["least"]) > 0.0, "{}", plan["items"]);
    let few = dark(1000);
    place
        .nestar(&[
            "run",
            "deck.toml",
            "--set",
            "time.max_steps=1",
            "--set",
            &few,
        ])
        .has_status(0);
    let stored = plans(
        &place,
        &["--ranks", "1,3", "--snapshot", "run", "--set", &few],
    );
    for (plan, ranks) in list(&stored["plans"]).iter().zip([1.0, 3.0]) {
        assert_eq!((number(&plan["items"]["mean"]) * ranks).round(), 1000.0);
    }
    let info = place.nestar(&["info", "run"]);
    info.has_status(0);
    for column in ["position_x", "velocity_z", "mass"] {
        assert!(info.out.contains(&format!("\n{column} ")), "{}", info.out);
    }
    let outcome = place.nestar(&["run", "deck.toml", "--set", &dark(100_000_000_000)]);
    outcome.has_status(4).complains(&[
        "patches of the root grid the fields and particles need",
        "fewer particles",
    ]);
}

/// Returns the line of the duration of `nestar check`, with a cache folder and without a home.
fn duration(place: &Place, folder: &str) -> String {
    let mut command = place.command(&["check", "deck.toml"]);
    command.env("NESTAR_CACHE", folder).env_remove("HOME");
    let outcome = Outcome::of(command.output().expect("the program starts"));
    outcome.has_status(0);
    let mut lines = outcome.out.lines();
    let found = lines.find(|line| line.contains("cell updates, at"));
    found.unwrap_or_else(|| panic!("{}", outcome.out)).into()
}

#[test]
fn speeds_are_those_of_earlier_runs_on_the_device() {
    let place = Place::with(BLAST);
    let first = duration(&place, "cache");
    assert!(first.contains("(measured on CPU"), "{first}");
    assert!(first.contains("with 32^3 cells of this deck)"), "{first}");
    // a measurement is remembered
    let stored = place.read("cache/rates.json");
    let mut rates: Value = serde_json::from_str(&stored).expect("JSON");
    rates["rates"][0]["cells_per_second"] = 1.25e6.into();
    place.write("cache/rates.json", &rates.to_string());
    let second = duration(&place, "cache");
    assert!(second.contains("at 1.25e6 cells/s (measured"), "{second}");
    // a run is preferred; other settings of the scenario are the same work
    let mut third = String::new();
    for steps in [500, 2000, 8000, 32000] {
        let steps = format!("time.max_steps={steps}");
        let settings = [&*steps, "time.end=100", "initial.density=1.5"];
        let settings = settings.into_iter().flat_map(|set| ["--set", set]);
        let run: Vec<&str> = ["run", "deck.toml", "--quiet"]
            .into_iter()
            .chain(settings)
            .collect();
        let ended = place.command(&run).env("NESTAR_CACHE", "cache").output();
        Outcome::of(ended.expect("the program starts")).has_status(0);
        third = duration(&place, "cache");
        // shorter runs than two seconds are not recorded
        if third.contains(" in the run of ") {
            break;
        }
    }
    assert!(
        third.contains(" in the run of ") && third.contains("/run)"),
        "{third}"
    );
    // speeds of devices of other machines
    let mut rates: Value = serde_json::from_str(&place.read("cache/rates.json")).expect("JSON");
    let mut other = rates["rates"][0].clone();
    other["device"] = "NVIDIA H200".into();
    other["cells_per_second"] = 7.5e9.into();
    rates["rates"].as_array_mut().expect("a list").push(other);
    place.write("cache/rates.json", &rates.to_string());
    let plan = |device: &str| {
        let words = ["plan", "deck.toml", "--ranks", "2", "--measured-on", device];
        let mut command = place.command(&words);
        command.env("NESTAR_CACHE", "cache");
        Outcome::of(command.output().expect("the program starts"))
    };
    let known = plan("h200");
    known.has_status(0);
    let expected = "7.500e9 cell updates/s (measured on NVIDIA H200 in the run of ";
    assert!(known.out.contains(expected), "{}", known.out);
    let unknown = plan("b300");
    unknown.has_status(2);
    assert!(
        unknown.err.contains("known devices: CPU"),
        "{}",
        unknown.err
    );
    // neither a damaged file nor a folder that cannot be written is an error
    place.write("cache/rates.json", "{");
    for folder in ["cache", "/proc/none"] {
        let line = duration(&place, folder);
        assert!(line.contains("with 32^3 cells"), "{line}");
    }
}
