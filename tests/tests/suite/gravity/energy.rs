//! The sum of the thermal, the kinetic and the gravitational energy.

use super::{LUMP, OUTFLOW, columns};
use nestar_tests::Stepper;

const KICKS: &str = "gravity.energy=\"kicks\"";

/// The sum of all energies of a run.
fn total(run: &mut Stepper) -> f64 {
    let columns = columns(run);
    let of = |name: &str| {
        let found = columns.iter().find(|(own, _)| own == name);
        found.unwrap_or_else(|| panic!("no column {name}")).1
    };
    of("energy_thermal") + of("energy_kinetic") + of("energy_potential")
}

/// How the sum of energies changes over some steps, over that of the gravitational energy.
pub(super) fn drift(settings: &[&str], steps: usize) -> f64 {
    let mut run = Stepper::new(LUMP, settings);
    let gravitational = |run: &mut Stepper| {
        let columns = columns(run);
        let found = columns.iter().find(|(name, _)| name == "energy_potential");
        found.map_or(f64::NAN, |(_, value)| *value)
    };
    let before = [total(&mut run), gravitational(&mut run)];
    let run = run.steps(steps);
    let after = [total(run), gravitational(run)];
    ((after[0] - before[0]) / (after[1] - before[1])).abs()
}

#[test]
fn total_energy_on_a_uniform_mesh_is_conserved_to_round_off() {
    let uniform = ["mesh.max_level=0", "gravity.constant=3"];
    let fluxes = drift(&uniform, 12);
    assert!(fluxes < 1e-11, "{fluxes:e}");
    let kicks = drift(&[uniform[0], uniform[1], KICKS], 12);
    assert!(kicks > 1e-3, "{kicks:e}");
    let single = drift(&[uniform[0], uniform[1], "run.precision=single"], 12);
    assert!(single < 1e-3, "{single:e}");
}

/// Energy is lost at coarse-fine boundaries and by flux corrections.
#[test]
fn total_energy_with_refinement_is_nearly_conserved() {
    // new patches do not have the energy of the coarse cells in their place
    let common = ["gravity.constant=30", "mesh.regrid_interval=100"];
    let ball = [
        "initial.density=\"1e-3 + 3*exp(-((x-0.5)^2+(y-0.5)^2+(z-0.5)^2)/0.01)\"",
        "initial.pressure=\"1e-3 + exp(-((x-0.5)^2+(y-0.5)^2+(z-0.5)^2)/0.01)\"",
        "initial.velocity_x=\"0\"",
        "initial.velocity_y=\"0\"",
        OUTFLOW,
    ];
    for (case, most) in [(&["domain.boundary=\"periodic\""][..], 8e-4), (&ball, 6e-3)] {
        let settings = [&common, case].concat();
        let fluxes = drift(&settings, 8);
        assert!(fluxes < most, "{case:?} {fluxes:e}");
        let kicks = drift(&[&settings[..], &[KICKS]].concat(), 8);
        assert!(kicks > 1e-2, "{case:?} {kicks:e}");
    }
}
