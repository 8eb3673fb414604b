//! Floors of the gas: what they add, what they keep, and what is refused.

use super::device_runs::emulation;
use nestar::App;
use nestar::engine::step::Phase;
use nestar::prelude::*;
use nestar::testing::same_bits;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::norms::{magnitudes, totals};
use nestar_tests::runs::run_into;
use nestar_tests::{Scratch, Stepper};
use std::collections::BTreeMap;
use std::path::Path;

/// Floors that all act on [`BLAST`]: the Jeans pressure is 0.095 times the square of the density, without any gravity.
const ALL: [&str; 6] = [
    HALF,
    "floors.density=0.85",
    "floors.temperature=0.1",
    "floors.pressure=0.105",
    "gravity.constant=1e-30",
    "floors.jeans_cells=2.256893e16",
];

/// Gains of the floors: mass, momentum, energy by density, temperature, pressure and Jeans length, scalar.
const GAINS: [&str; 9] = [
    "floors_density_mass",
    "floors_density_momentum_x",
    "floors_density_momentum_y",
    "floors_density_momentum_z",
    "floors_density_energy",
    "floors_temperature_energy",
    "floors_pressure_energy",
    "floors_jeans_energy",
    "floors_scalar_dye_mass",
];

/// Takes steps and compares the totals less the gains with the totals of before; `dye` is the component of the scalar.
/// Returns the gains.
fn gains_of(run: &mut Stepper, dye: usize, steps: usize, tolerance: f64) -> [f64; 9] {
    let before = run.0.with(|sim| totals(sim));
    run.steps(steps);
    let gains = run.columns(GAINS);
    let after = run.0.with(|sim| totals(sim));
    let scale = magnitudes(&run.state());
    let energy = gains[4] + gains[5] + gains[6] + gains[7];
    let added = [gains[0], gains[1], gains[2], gains[3], energy, gains[8]];
    // the dual-energy formalism does not conserve the total energy
    let has_energy = |(c, _): &(usize, f64)| *c != 4 || dye == 5;
    let all = [0, 1, 2, 3, 4, dye].into_iter().zip(added);
    for (c, gain) in all.filter(has_energy) {
        let error = (after[c] - gain - before[c]) / scale[c];
        assert!(error.abs() < tolerance, "component {c}: {error:e}");
    }
    gains
}

#[test]
fn totals_less_the_gains_of_all_floors_are_constant() {
    for (dual, precision, tolerance) in [
        (false, "double", 1e-13),
        (true, "double", 1e-13),
        (false, "single", 1e-6),
    ] {
        let own = [
            format!("hydro.dual_energy={dual}"),
            format!("run.precision={precision}"),
        ];
        // new patches are interpolated and may be below a floor until their first step
        let fixed = "mesh.regrid_interval=1000";
        let mut run = Stepper::new(BLAST, &[&ALL[..], &[fixed, &own[0], &own[1]]].concat());
        let gains = gains_of(&mut run, 5 + usize::from(dual), 3, tolerance);
        assert!(run.state().counts()[2] > 0, "three levels");
        for (gain, name) in gains.iter().zip(GAINS) {
            let signed = name.contains("momentum");
            assert!(*gain > 0.0 || signed && *gain != 0.0, "{name}: {gain:e}");
        }
        let exact = 1.0 - if precision == "single" { 1e-5 } else { 1e-12 };
        run.state().each_leaf_cell(|level, x, _, u| {
            let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
            let heat = if dual { u[5] } else { u[4] - kinetic };
            let pressure = heat / 1.5;
            assert!(u[0] >= 0.85 * exact, "{level} {x:?}: {u:?}");
            let jeans = 0.095 * u[0] * u[0] * (1.0 - 1e-4);
            let least = (0.1 * u[0]).max(0.105).max(jeans);
            assert!(pressure >= least * exact, "{level} {x:?}: {pressure} {u:?}");
        });
    }
}

#[test]
fn a_density_floor_keeps_velocity_temperature_and_fractions() {
    let uniform = [
        "domain.cells=[8,8,8]",
        "mesh.max_level=0",
        "mesh.refine=[]",
        "initial.density=0.5",
        "initial.pressure=0.2",
        "initial.velocity_x=3",
        "initial.velocity_y=-2",
        "initial.velocity_z=1",
        "initial.scalars.dye=0.25",
        "run.precision=double",
        "floors.density=2",
    ];
    let mut run = Stepper::new(BLAST, &uniform);
    let gains = gains_of(&mut run, 5, 1, 1e-13);
    let exact = [1.5, 4.5, -3.0, 1.5, 3.0 * (0.3 + 3.5), 0.0, 0.0, 0.0, 0.375];
    for ((found, exact), name) in gains.into_iter().zip(exact).zip(GAINS) {
        assert!((found - exact).abs() < 1e-12, "{name}: {found} for {exact}");
    }
}

/// Lowest internal energy and density that systems between the parts of a step have read.
struct Lowest;

impl Field for Lowest {
    const NAME: &'static str = "lowest";
}

#[device]
fn none_read<R: Real>(_present: [R; 2]) -> [R; 2] {
    [R::INFINITY, R::INFINITY]
}

#[device]
fn lower<R: Real>(u: ([R; 2], Conserved<R>)) -> [R; 2] {
    let ([energy, density], gas) = u;
    [energy.min(internal_energy(gas)), density.min(gas.density)]
}

#[device]
fn lowest_energy<R: Real>(u: [R; 2]) -> R {
    u[0]
}

#[device]
fn lowest_density<R: Real>(u: [R; 2]) -> R {
    u[1]
}

/// Removes half of the internal energy of gas at rest.
#[device]
fn chill<R: Real>(u: Conserved<R>) -> Conserved<R> {
    let mut v = u;
    v.energy = 0.5 * u.energy;
    v
}

/// Removes half of gas at rest.
#[device]
fn thin<R: Real>(u: Conserved<R>) -> Conserved<R> {
    let mut v = u;
    v.density = 0.5 * u.density;
    v.energy = 0.5 * u.energy;
    v
}

/// Chills gas in both halves of the split sources, removes half of it afterwards, and notes what the fluid and the first
/// systems after the step read.
struct Drain;

impl Plugin for Drain {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Lowest>(FieldSpec::cells(&["energy", "density"]))?;
        sim.initial::<Lowest, none_read>([]);
        sim.column::<Lowest, lowest_energy>("lowest_energy", Reduce::Smallest, []);
        sim.column::<Lowest, lowest_density>("lowest_density", Reduce::Smallest, []);
        let note = |rows: LevelRows, gas: Read<Gas>, mut lowest: Write<Lowest>| {
            lowest.update::<lower>(&rows, &gas, &[]);
        };
        sim.system_in(Advance::Exchange, note);
        sim.system_in(Advance::Predict, note);
        sim.split_source::<Gas, chill>([]);
        sim.source::<Gas, thin>([]);
        Ok(())
    }
}

/// The initial state is at the floors, so that each gain is what a source has removed.
#[test]
fn floors_follow_both_halves_of_split_sources_and_sources_of_programs() {
    let uniform = [
        "domain.cells=[8,8,8]",
        "mesh.max_level=0",
        "mesh.refine=[]",
        "initial.density=0.5",
        "initial.pressure=0.2",
        "initial.velocity_x=0",
        "initial.velocity_y=0",
        "initial.velocity_z=0",
        "initial.scalars.dye=0.25",
        "run.precision=double",
        "floors.density=0.5",
        "floors.temperature=0.4",
    ];
    let sim = nestar_tests::build(BLAST, &uniform).add(Drain);
    let mut run = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    run.steps(1);
    let names = [
        "lowest_energy",
        "lowest_density",
        "floors_density_mass",
        "floors_density_energy",
        "floors_temperature_energy",
    ];
    let exact = [0.3, 0.5, 0.25, 0.15, 0.3];
    for ((found, exact), name) in run.columns(names).into_iter().zip(exact).zip(names) {
        assert!((found - exact).abs() < 1e-14, "{name}: {found} for {exact}");
    }
    run.state().each_leaf_cell(|_, x, _, u| {
        let internal = u[4] - 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
        let kept = (u[0] - 0.5).abs() < 1e-15 && (internal - 0.3).abs() < 1e-14;
        assert!(kept, "{x:?}: {u:?}");
    });
}

/// The floors are the last system of each set that changes the gas, and no others are added.
#[test]
fn floors_end_each_set_that_changes_the_gas() {
    let of = |settings: &[&str]| -> Vec<String> {
        let sim = nestar_tests::build(BLAST, &[&["floors.density=0.5"][..], settings].concat());
        let mut run = Stepper::of(sim);
        let mut found = Vec::new();
        for phase in Phase::ALL {
            let order = run.0.with(|sim| sim.order(phase));
            let last = |n: usize| order.get(n + 1).is_none_or(|next| next.set != order[n].set);
            for (n, system) in order.iter().enumerate() {
                if system.name.starts_with("floors") {
                    assert!(last(n), "{phase:?}: {order:?}");
                    found.push(system.name.clone());
                }
            }
        }
        found
    };
    let fluid = ["floors after Fluid", "floors of corrected gas"];
    assert_eq!(of(&[]), fluid);
    let split = "floors after split sources";
    assert_eq!(
        of(&["gravity.constant=1e-3"]),
        [&[split], &fluid[..]].concat()
    );
    let heated = [
        "floors after Fluid",
        "floors after Sources",
        "floors of corrected gas",
    ];
    assert_eq!(of(&["sources.heating=1", "sources.split=false"]), heated);
    let stress = [
        split,
        "floors after Fluid",
        "floors after Couple",
        "floors of corrected gas",
    ];
    assert_eq!(
        of(&["gravity.constant=1e-3", "gravity.force=stress"]),
        stress
    );
}

#[test]
fn a_blast_into_a_near_vacuum_runs_on_a_density_floor() {
    let vacuum = [
        HALF,
        "initial.density='if((x-0.4)^2 + (y-0.55)^2 + (z-0.47)^2 < 0.0121, 1, 1e-9)'",
        "initial.pressure='if((x-0.4)^2 + (y-0.55)^2 + (z-0.47)^2 < 0.0121, 10, 1e-10)'",
        "run.precision=double",
        "floors.density=1e-5",
    ];
    let mut run = Stepper::new(BLAST, &vacuum);
    let gains = gains_of(&mut run, 5, 4, 1e-13);
    assert!(gains[0] > 0.5e-5, "{gains:?}");
    run.state().each_leaf_cell(|_, x, _, u| {
        assert!(u[0] >= 1e-5 * (1.0 - 1e-15), "{x:?}: {u:?}");
    });
}

/// The last entries of the diagnostics of a run, by name.
fn last_row(directory: &Path) -> BTreeMap<String, String> {
    let table = std::fs::read_to_string(directory.join("diagnostics.csv")).expect("diagnostics");
    let row = |line: Option<&str>| -> Vec<String> {
        let line = line.expect("a line");
        line.split(',').map(String::from).collect()
    };
    let (names, values) = (row(table.lines().next()), row(table.lines().last()));
    names.into_iter().zip(values).collect()
}

#[test]
fn floors_have_the_same_bits_everywhere_and_gains_survive_a_restart() {
    let scratch = [Scratch::new(), Scratch::new()];
    let run = |place: &Scratch, resume, end: &str| {
        let settings = [&ALL[..], &["output.final=true", end]].concat();
        run_into(&place.run(), resume, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    };
    run(&scratch[0], false, "time.max_steps=2");
    run(&scratch[1], false, "time.max_steps=1");
    run(&scratch[1], true, "time.max_steps=2");
    let [whole, parts] = scratch.each_ref().map(|place| last_row(&place.run()));
    let gains = |(name, _): &(&String, &String)| name.starts_with("floors_");
    let [whole, parts] = [&whole, &parts].map(|row| row.iter().filter(gains).collect::<Vec<_>>());
    // each gain is told for the run and for three levels
    assert_eq!(whole.len(), 4 * GAINS.len(), "{whole:?}");
    assert_eq!(whole, parts);
    if emulation() {
        let both = [&ALL[..], &["hydro.dual_energy=true"]].concat();
        for settings in [&ALL[..], &both] {
            same_bits(&App::default(), BLAST, settings, 2).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn floors_without_sense_are_refused_by_key() {
    for (settings, words) in [
        (&["floors.density=-1"][..], "floors.density"),
        (&["floors.pressure=-1e-9"], "floors.pressure"),
        (&["floors.temperature=-1"], "floors.temperature"),
        (&["floors.jeans_cells=-4"], "floors.jeans_cells"),
        (&["floors.temperature_k=10"], "add a table [units]"),
        (&["floors.jeans_cells=4"], "add a table [gravity]"),
        (&["floors.density=1", "hydro.frozen=true"], "hydro.frozen"),
        (
            &[
                "floors.temperature=1",
                "floors.temperature_k=10",
                "units.length=pc",
                "units.time=Myr",
                "units.mass=Msun",
            ],
            "give one of them",
        ),
    ] {
        let sim = App::default().simulation(deck(BLAST, settings));
        let why = sim.map(|_| ()).expect_err("refused").to_string();
        assert!(why.contains(words), "{settings:?}: {why}");
    }
}
