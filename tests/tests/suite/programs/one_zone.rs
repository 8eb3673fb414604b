//! One-zone collapse of primordial gas in free fall.

use super::{free_fall, stepper};
use crate::chemistry::zone;

const FALL: &str = include_str!("../../../../scenarios/programs/free_fall.toml");

#[test]
fn a_collapsing_one_zone_model_has_the_temperatures_of_molecular_cooling() {
    let wanted = [(1e3, 235.8), (1e6, 481.8), (9.9e7, 763.8)];
    for precision in ["run.precision=single", "run.precision=double"] {
        let mut run = stepper(free_fall::program, FALL, &[precision]);
        let mut found = [0.0; 3];
        for (density, temperature) in wanted {
            let mut nuclei = 0.0;
            while nuclei < density {
                run.steps(1);
                run.state().each_leaf_cell(|_, _, _, u| {
                    nuclei = 0.76013 * u[0];
                    found = zone(u, 0.76013, 115.888);
                });
            }
            let error = found[0] / temperature - 1.0;
            println!("{precision}: {} K at {nuclei:e}, {error:e}", found[0]);
            assert!(error.abs() < 3e-3, "{precision} {density}: {}", found[0]);
        }
        assert!((found[2] / 1.070e-3 - 1.0).abs() < 5e-3, "{}", found[2]);
    }
}
