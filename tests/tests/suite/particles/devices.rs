//! Particles on a device: the bits of the host, in snapshots and in sums over all particles.

use super::criteria::{CLOUDS, CRITERIA};
use super::same::CLUMP;
use nestar_tests::Scratch;
use nestar_tests::devices::open;
use nestar_tests::runs::{digests, run_into};
use std::collections::BTreeMap;
use std::path::Path;

/// Columns of diagnostics by name.
type Columns = BTreeMap<String, Vec<String>>;

/// The columns of particles in a run's diagnostics.
fn sums(directory: &Path) -> Columns {
    let text = std::fs::read_to_string(directory.join("diagnostics.csv")).expect("a file");
    let mut lines = text.lines().map(|line| line.split(','));
    let names = lines.next().expect("names").enumerate();
    let whose = |name: &str| ["particles_", "dark_", "stars_"].map(|own| name.starts_with(own));
    let own = names.filter(|(_, name)| whose(name).contains(&true));
    let column = |n: usize| {
        let values = lines.clone().filter_map(|mut line| line.nth(n));
        values.map(String::from).collect()
    };
    own.map(|(n, name)| (name.to_string(), column(n))).collect()
}

/// Snapshots and sums of a run on a device.
fn run(device: &str, settings: &[&str]) -> (Vec<(String, String)>, Columns) {
    run_of(CLUMP, device, settings)
}

fn run_of(deck: &str, device: &str, settings: &[&str]) -> (Vec<(String, String)>, Columns) {
    let scratch = Scratch::new();
    let device = format!("run.device={device}");
    let own = ["output.steps=2", "output.final=true", &device];
    let settings = [&own[..], settings].concat();
    run_into(&scratch.run(), false, deck, &settings).unwrap_or_else(|e| panic!("{device}: {e}"));
    (digests(&scratch.run()), sums(&scratch.run()))
}

#[test]
fn a_device_moves_them_as_the_host_does() {
    if open().is_err() {
        return;
    }
    let open_box = "domain.boundary=outflow";
    let cases: [&[&str]; 4] = [
        &[],
        &[
            "run.precision=single",
            "particles.cloud=tsc",
            "run.audit=false",
        ],
        &[open_box, "particles.cloud=ngp", "run.audit=false"],
        &[
            "domain.boundary=reflecting",
            "particles.zone=0",
            "run.audit=false",
        ],
    ];
    for case in cases {
        let settings = [&["time.max_steps=4"], case].concat();
        let (cpu, device) = (run("cpu", &settings), run("emulated", &settings));
        assert!(cpu.0.len() > 1 && cpu.1.len() >= 15, "{cpu:?}");
        assert_eq!(cpu, device, "{case:?}");
        let lost: f64 = cpu.1["dark_lost"]
            .last()
            .expect("rows")
            .parse()
            .expect("a number");
        assert_eq!(lost > 0.0, case.contains(&open_box), "{case:?}: {lost}");
    }
}

#[test]
fn a_device_refines_as_the_host_does() {
    if open().is_err() {
        return;
    }
    let kept = "particles.refine.kept_per_patch=[20,9]";
    let both = "particles.refine.mass_per_cell=[0.006]";
    let falling = ["time.max_steps=4", "run.audit=false", "hydro.frozen=false"];
    for criteria in CRITERIA {
        for more in [&[kept][..], &[both, kept], &["run.audit=true"]] {
            let settings = [&falling[..], criteria, more].concat();
            let (cpu, device) = (
                run_of(CLOUDS, "cpu", &settings),
                run_of(CLOUDS, "emulated", &settings),
            );
            assert!(cpu.0.len() > 1);
            assert_eq!(cpu, device, "{settings:?}");
        }
    }
}
