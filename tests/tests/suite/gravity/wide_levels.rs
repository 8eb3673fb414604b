//! Convergence on wide levels: 4 to 8 patches across, and 16 and 32 in a separate long run.

use super::columns;
use nestar_tests::Stepper;

/// A density ripple, with a refined level of the given width in patches in the middle of the box.
fn level(across: u32, cycles: u32, sweeps: u32) -> f64 {
    let text = format!(
        r#"
scenario = "formula"
[constants]
patches = {across}
half    = "0.5*patches/(patches + 8)"
[initial]
density  = "1 + 0.5*sin(40*x + 1)*cos(34*y)*sin(46*z + 2) + 3*exp(-((x-0.1)^2+(y+0.05)^2+(z-0.03)^2)/0.01)"
pressure = "1"
[domain]
cells      = ["4*patches + 32", "4*patches + 32", "4*patches + 32"]
left_edge  = [-0.5, -0.5, -0.5]
right_edge = [0.5, 0.5, 0.5]
[time]
end = 1.0
[mesh]
max_level   = 1
flag_buffer = 0
refine = [{{ criterion = "threshold", field = "max(max(abs(x), abs(y)), abs(z))", below = true, threshold = ["half"] }}]
[gravity]
sweeps_aligned = {sweeps}
initial_cycles = {cycles}
"#
    );
    let mut run = Stepper::new(&text, &[]);
    let columns = columns(&mut run);
    let residuals = columns
        .iter()
        .filter(|(name, _)| name == "gravity_residual_1");
    residuals.map(|(_, value)| *value).sum()
}

/// Residual reduction per cycle.
fn rate(across: u32, sweeps: u32) -> f64 {
    level(across, 4, sweeps) / level(across, 3, sweeps)
}

#[test]
fn multigrid_cycles_converge_on_wide_levels() {
    for across in [4, 8] {
        let rates = [1, 2].map(|sweeps| rate(across, sweeps));
        assert!(
            rates[0] < 0.2 && rates[1] < 0.1,
            "{across} patches across: {rates:?}"
        );
    }
}

#[test]
#[ignore = "takes a minute: the test above for 16 and 32 patches across"]
fn cycles_converge_on_levels_of_16_and_32_patches_across() {
    for across in [16, 32] {
        let rate = rate(across, 2);
        assert!(rate < 0.1, "{across} patches across: {rate}");
    }
}
