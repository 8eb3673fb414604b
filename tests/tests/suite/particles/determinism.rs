//! One digest on any ranks; the deposit conserves all mass exactly.

use super::{bits, particles};
use nestar::Simulation;
use nestar::engine::comm::Ranks;
use nestar_tests::decks::deck;
use nestar_tests::ranks::{on_ranks, run_on_ranks_of};
use nestar_tests::runs::quietly_into;
use nestar_tests::{Scratch, Stepper};

/// Particles with individual masses that stream and fall through moving refined boxes.
pub(super) const CLUMP: &str = r#"
scenario = "formula"

[initial]
density  = "0.1 + 0.05*sin(2*pi*x)"
pressure = "0.1"

[domain]
cells      = [32, 16, 16]
left_edge  = [0.0, 0.0, 0.0]
right_edge = [2.0, 1.0, 1.0]
boundary   = "periodic"

[time]
end = 1.0

[mesh]
max_level       = 2
regrid_interval = 1
flag_buffer     = 1

[[mesh.refine]]
criterion = "formula"
when      = "max(abs(x - 0.8 - t), max(abs(y - 0.4), abs(z - 0.5))) < if(level > 0, 0.06, 0.14)"

[hydro]

[gravity]
cycles         = 1
initial_cycles = 2

[particles]
cloud = "cic"

[particles.species.dark]
initial = { kind = "lattice", points = [20, 10, 10], displacement = ["0.03*sin(9*y)", "0.02*cos(7*z)", "0.03*sin(8*x)"], velocity = ["0.6 + 0.3*sin(id)", "0.4*cos(3*id)", "0.4*sin(5*id)"], mass = "0.0002*(1.5 + sin(id))" }

[particles.species.stars]
mass    = 0.0001
initial = { kind = "lattice", points = [8, 8, 8], velocity = ["-0.5", "0.2", "0"] }

[run]
audit = true
"#;

const SHORT: &[&str] = &["time.max_steps=5"];

/// The state of all ranks after some steps.
fn after(ranks: usize, steps: usize, settings: &[&str]) -> Vec<Vec<u64>> {
    let settings = [SHORT, settings].concat();
    let found = on_ranks(ranks, CLUMP, &settings, |stepper| {
        stepper.steps(steps);
        let all = ["dark", "stars"].map(|name| particles(stepper, name));
        all.concat()
    });
    let mut all: Vec<Vec<u64>> = found.iter().flatten().map(bits).collect();
    all.sort_unstable();
    all
}

#[test]
fn results_do_not_depend_on_ranks_or_particle_order() {
    // each number of ranks in one precision
    let even = "run.imbalance=1.01";
    for (precision, others) in [
        ("run.precision=single", &[(2, even)][..]),
        (
            "run.precision=double",
            &[(1, "particles.shuffle=true"), (5, even)],
        ),
    ] {
        let one = after(1, 2, &[precision]);
        assert_eq!(one.len(), 2000 + 512, "all are there");
        let levels = [0, 1, 2].map(|level| one.iter().filter(|p| p[1] == level).count());
        assert!(levels.into_iter().all(|count| count > 20), "{levels:?}");
        for &(ranks, more) in others {
            assert!(
                one == after(ranks, 2, &[precision, more]),
                "{ranks} ranks, {precision}, {more}"
            );
        }
    }
}

#[test]
fn a_particle_mass_below_the_quantum_is_refused() {
    let light = ["particles.species.stars.mass=1e-30", "time.max_steps=1"];
    let build = |ranks: Ranks| Simulation::with_ranks(deck(CLUMP, &light), ranks);
    let scratch = Scratch::new();
    let options = (0..2).map(|_| quietly_into(&scratch.run(), false));
    for ended in run_on_ranks_of(build, options.collect()) {
        let why = ended.expect_err("refused").to_string();
        let told =
            "particles.species.stars has a particle of the mass 1e-30, below the mass quantum";
        assert!(why.contains(told), "{why}");
    }
}

#[test]
fn deposit_conserves_mass_for_every_scheme_and_boundary_zone() {
    for (cloud, zone) in [("ngp", 0), ("cic", 1), ("tsc", 2)] {
        let settings = [
            format!("particles.cloud={cloud}"),
            format!("particles.zone={zone}"),
        ];
        let [cloud, zone] = &settings;
        let one = after(1, 2, &[cloud, zone]);
        assert!(
            one == after(3, 2, &[cloud, zone, "particles.shuffle=true"]),
            "{settings:?}"
        );
    }
}

#[test]
fn an_unknown_species_is_reported() {
    let mut stepper = Stepper::new(CLUMP, SHORT);
    let world = &stepper.0.engine().world;
    let all = world.resource::<nestar::systems::particles::SpeciesMap>();
    let why = all.named("gas").err().expect("refused").to_string();
    assert!(why.contains("\"dark\", \"stars\""), "{why}");
}
