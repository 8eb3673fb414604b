//! The table `[chemistry]`: values of single zones, conservation of energy, bitwise equality, invalid decks.

use nestar::App;
use nestar::engine::step::Remarks;
use nestar::testing::same_bits;
use nestar_tests::Stepper;
use nestar_tests::decks::{build, deck};
use nestar_tests::norms::totals;

const BOX: &str = include_str!("../../../scenarios/primordial-cooling.toml");
const SMALL: &str = "domain.cells=[8,8,8]";

/// A hot ball in cold gas that flows, over two levels, with units in which densities are hydrogen masses per cm^3.
const BALL: &str = r#"
scenario = "formula"
[chemistry]
species = 9
heating = 1e-26
photo_ionisation = [1e-13, 5e-14, 1e-15]
photo_heating_ev = [4.0, 6.0, 10.0]
[units]
length_cgs = 3.0856775814913673e18
time_cgs   = 3.15576e13
mass_cgs   = 4.91686e31
[initial]
density    = "1 + 0.3*sin(2*pi*x/50)*cos(2*pi*y/50)"
pressure   = "if((x-20)^2 + (y-27)^2 + (z-23)^2 < 120, 3000, 80)"
velocity_x = "5"
[domain]
cells = [16, 16, 16]
right_edge = [50.0, 50.0, 50.0]
[time]
end = 1.0
[mesh]
max_level = 1
refine = [{ criterion = "gradient", field = "pressure", threshold = 0.4 }]
[hydro]
gamma = 1.6666666666666667
"#;

/// Temperature in kelvin, electron fraction and H2 fraction per hydrogen nucleus of a cell with the given number of species.
pub fn zone(u: &[f64], hydrogen: f64, kelvin: f64) -> [f64; 3] {
    let nuclei = hydrogen * u[0];
    let y = |n: usize, mass: f64| u.get(5 + n).map_or(0.0, |rho| rho / (mass * nuclei));
    let electrons = y(1, 1.0) + y(3, 4.0) + 2.0 * y(4, 4.0) - y(5, 1.0) + y(7, 2.0);
    let atoms = y(0, 1.0) + y(1, 1.0) + y(2, 4.0) + y(3, 4.0) + y(4, 4.0) + y(5, 1.0) + y(7, 2.0);
    let h2 = y(6, 2.0);
    let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
    let energy = (u[4] - kinetic) / nuclei * kelvin;
    [
        energy / (1.5 * (atoms + electrons) + 2.5 * h2),
        electrons,
        h2,
    ]
}

/// The final state of the box.
fn cooled(settings: &[&str], end: f64) -> [f64; 3] {
    let end_at = format!("time.end={end}");
    let settings = [settings, &[SMALL, &end_at]].concat();
    let mut run = Stepper::new(BOX, &settings);
    while run.time() < end {
        run.steps(1);
    }
    let mut found = [0.0; 3];
    run.state()
        .each_leaf_cell(|_, _, _, u| found = zone(u, 0.76013, 1.158_88e8));
    found
}

#[test]
fn six_species_recombine_more_slowly_than_gas_cools() {
    let [temperature, electrons, _] = cooled(&[], 30.0);
    assert!((temperature / 6716.0 - 1.0).abs() < 1e-3, "{temperature} K");
    assert!((electrons / 2.017e-3 - 1.0).abs() < 1e-3, "{electrons}");
}

#[test]
fn molecules_form_and_cool_gas_below_200_kelvin() {
    let settings = ["chemistry.species=9", "time.max_step=2.5"];
    let [temperature, electrons, h2] = cooled(&settings, 100.0);
    assert!((temperature / 192.3 - 1.0).abs() < 3e-3, "{temperature} K");
    assert!((electrons / 7.3e-5 - 1.0).abs() < 1e-2, "{electrons}");
    assert!((h2 / 2.60e-3 - 1.0).abs() < 1e-2, "{h2}");
}

#[test]
fn gas_and_radiated_energy_sum_to_a_constant_and_elements_are_conserved() {
    let settings = ["chemistry.floor_k=9000", "chemistry.photoelectric=1e-26"];
    let mut run = Stepper::new(BALL, &settings);
    let before = run.0.with(|sim| totals(sim));
    run.steps(8);
    assert!(run.state().counts()[1] > 0, "nothing is refined");
    let after = run.0.with(|sim| totals(sim));
    let columns = ["chemistry_lost", "chemistry_heated", "chemistry_floored"];
    let [lost, heated, floored] = run.columns(columns);
    assert!(
        lost.abs() > 1e-3 * before[4] && heated > 0.0 && floored > 0.0,
        "{lost}, {heated}, {floored}"
    );
    let explained = after[4] + lost - heated - floored;
    assert!(
        (explained / before[4] - 1.0).abs() < 1e-12,
        "{explained}, {}",
        before[4]
    );
    run.state().each_leaf_cell(|_, _, _, u| {
        let hydrogen = u[5] + u[6] + u[10] + u[11] + u[12];
        let error = hydrogen / (0.76 * u[0]) - 1.0;
        assert!(error.abs() < 1e-14, "{error:e}");
    });
}

/// Masses of hydrogen, helium, metals and all gas with the given number of species.
fn elements(run: &mut Stepper, species: usize) -> [f64; 4] {
    let total = run.0.with(|sim| totals(sim));
    let metals = total[5];
    let of = &total[6..5 + species];
    let hydrogen = of[0] + of[1] + of.iter().skip(5).sum::<f64>();
    [hydrogen, of[2] + of[3] + of[4], metals, total[0]]
}

#[test]
fn elements_are_conserved_with_advection_reactions_and_refinement() {
    for (species, precision, tolerance) in [
        (6, "double", 4e-15),
        (9, "double", 4e-15),
        (9, "single", 3e-7),
    ] {
        let settings = [
            &format!("chemistry.species={species}"),
            &format!("run.precision={precision}"),
            "hydro.scalars=['metal']",
            "initial.scalars.metal=0.02*(1 + 0.9*sin(2*pi*x/50))",
            "domain.cells=[32,8,8]",
            "mesh.flag_buffer=0",
            // the border of the finer level wanders through the ball
            "mesh.refine=[{criterion='formula', when='abs(x - 5 - 100*t) < 1'}]",
        ];
        let mut run = Stepper::new(BALL, &settings);
        let before = elements(&mut run, species);
        let (mut worst, mut meshes) = ([0.0f64; 4], std::collections::BTreeSet::new());
        for _ in 0..30 {
            run.steps(1);
            let now = elements(&mut run, species);
            for (worst, (now, before)) in worst.iter_mut().zip(now.iter().zip(before)) {
                *worst = worst.max((now / before - 1.0).abs());
            }
            let mut leaves = [0.0; 2];
            run.state()
                .each_leaf_cell(|level, x, _, _| leaves[level] += x[0]);
            assert!(leaves[0] > 0.0, "all is refined");
            meshes.insert(leaves.map(f64::to_bits));
        }
        println!(
            "{species} species, {precision}: {worst:?}, {} meshes",
            meshes.len()
        );
        assert!(worst.iter().all(|worst| *worst < tolerance), "{worst:?}");
        assert!(meshes.len() > 2, "nothing is refined anew");
    }
}

#[test]
fn chemistry_is_identical_on_ranks_and_devices_and_after_a_restart() {
    let more = [
        "hydro.dual_energy=true",
        "chemistry.courant=0.5",
        "chemistry.length_cells=2",
        "mesh.refine=[{criterion='formula', when='cooling_time < 2'}, {criterion='gradient', field='cooling_time', threshold=0.5}]",
        "chemistry.heating='1e-26*(1 + 0.1*sin(x + t))*density'",
        "chemistry.photoelectric=1e-26",
    ];
    // each network in one precision
    let [single, double] = ["run.precision=single", "run.precision=double"];
    let more = [&more[..], &[double]].concat();
    for (species, more) in [("6", &[single][..]), ("9", &more), ("12", &[single])] {
        let species = format!("chemistry.species={species}");
        let settings = [&["domain.cells=[16,8,8]", &species], more].concat();
        same_bits(&App::default(), BALL, &settings, 2).unwrap_or_else(|e| panic!("{species}: {e}"));
    }
}

#[test]
fn metals_cool_by_a_table_beside_the_species() {
    let table = concat!(
        "cooling.table=",
        env!("CARGO_MANIFEST_DIR"),
        "/../scenarios/solar-cooling.zarr"
    );
    let after = |more: &[&str]| {
        let settings = [&[SMALL, "time.end=0.05"], more].concat();
        let mut run = Stepper::new(BOX, &settings);
        run.finish();
        let mut heat = 0.0;
        run.state().each_leaf_cell(|_, _, _, u| heat = u[4]);
        heat
    };
    let plain = after(&[]);
    let without = after(&[table, "cooling.metallicity=0"]);
    assert!((without / plain - 1.0).abs() < 1e-12, "{without} {plain}");
    // at 10^6 K metals of solar abundance radiate more than hydrogen and helium do
    let with = after(&[table]);
    assert!(with < 0.8 * plain, "{with} {plain}");
    let refused = App::default().simulation(deck(BOX, &["cooling.table=koyama-inutsuka"]));
    let refused = refused.map(|_| ()).expect_err("refused").to_string();
    assert!(refused.contains("do not depend on metals"), "{refused}");
}

#[test]
fn the_cooling_limit_takes_a_fraction_of_the_cooling_time() {
    let steps = |courant: &str| {
        let settings = [SMALL, "time.end=0.5", courant];
        let mut run = Stepper::new(BOX, &settings);
        let mut count = 0;
        let mut heat = [0.0; 2];
        while run.time() < 0.5 {
            run.state().each_leaf_cell(|_, _, _, u| heat[0] = u[4]);
            run.steps(1);
            run.state().each_leaf_cell(|_, _, _, u| heat[1] = u[4]);
            let part = (heat[1] / heat[0]).ln().abs();
            assert!(courant.ends_with("=0") || part < 0.03, "{part}");
            count += 1;
        }
        count
    };
    assert_eq!(steps("chemistry.courant=0"), 1);
    assert!(steps("chemistry.courant=0.02") > 10);
}

/// Heating rate of the box, in erg per hydrogen nucleus and second.
fn heated(settings: &[&str]) -> f64 {
    let settings = [settings, &[SMALL, "time.end=0.3", "time.max_step=0.1"]].concat();
    let mut run = Stepper::new(BOX, &settings);
    let mass = run.0.with(|sim| totals(sim))[0];
    let [energy] = run.finish().columns(["chemistry_heated"]);
    // (kpc/Myr)^2 times a hydrogen mass over a million years
    let unit =
        (3.085_677_581_491_367_3e21f64 / 3.155_76e13).powi(2) * 1.673_532_84e-24 / 3.155_76e13;
    energy / (0.76013 * mass * 0.3) * unit
}

#[test]
fn heating_is_a_number_or_a_formula_and_dust_heats_cold_gas_alone() {
    let cold = "initial.pressure=1e-4";
    for (settings, wanted) in [
        (&["chemistry.heating=2e-26"][..], 2e-26),
        (
            &["chemistry.heating='2e-26'", "chemistry.photoelectric=3e-26"],
            2e-26,
        ),
        (&["chemistry.photoelectric=3e-26", cold], 3e-26),
        // the mean of t, at the middle of steps, is 0.15
        (
            &[
                "chemistry.heating='1e-26*(1 + sin(2*pi*(x - 1)/32) + 10*t)'",
                cold,
            ],
            2.5e-26,
        ),
    ] {
        let error = heated(settings) / wanted - 1.0;
        assert!(error.abs() < 1e-5, "{settings:?}: {error:e}");
    }
    let unknown = App::default().simulation(deck(BOX, &["chemistry.heating='pressure'"]));
    let unknown = unknown.map(|_| ()).expect_err("refused").to_string();
    assert!(
        unknown.contains("chemistry.heating") && unknown.contains("pressure"),
        "{unknown}"
    );
}

#[test]
fn the_cooling_limit_holds_where_heating_balances_cooling() {
    let settings = [
        SMALL,
        "chemistry.heating=1e-24",
        "chemistry.courant=1",
        "time.max_step=20",
    ];
    let mut run = Stepper::new(BOX, &settings);
    let mut heat = [0.0; 2];
    let mut step = run.try_step().expect("a step");
    while run.time() < 20.0 {
        run.state().each_leaf_cell(|_, _, _, u| heat[0] = u[4]);
        step = run.try_step().expect("a step");
        run.state().each_leaf_cell(|_, _, _, u| heat[1] = u[4]);
    }
    println!("{:?} {}: {:e}", step, heat[1], heat[1] / heat[0] - 1.0);
    assert!((heat[1] / heat[0] - 1.0).abs() < 1e-3);
    assert_eq!(step.limiter, "chemistry");
}

/// Gas that moves at Mach 100 cools and recombines like gas at rest, although its heat is in the last digits of the energy.
#[test]
fn cold_gas_that_moves_fast_cools_as_gas_at_rest() {
    let rest = ["time.max_step=0.75", "run.precision=single"];
    let fast = [
        "hydro.dual_energy=true",
        "initial.velocity_x=16",
        "domain.right_edge=[4e3,4e3,4e3]",
    ];
    let end = |more: &[&str]| {
        let settings = [&rest[..], &[SMALL, "time.end=30"], more].concat();
        let mut run = Stepper::new(BOX, &settings);
        run.finish();
        let mut found = [0.0; 2];
        run.state().each_leaf_cell(|_, _, _, u| {
            let dual = !more.is_empty();
            let heat = if dual { u[5] } else { u[4] };
            found = [heat, u[6 + usize::from(dual)]];
        });
        found
    };
    let ([heat, ions], [moving, carried]) = (end(&[]), end(&fast));
    assert!((moving / heat - 1.0).abs() < 2e-5, "{moving} {heat}");
    assert!((carried / ions - 1.0).abs() < 2e-5, "{carried} {ions}");
}

#[test]
fn invalid_decks_are_refused_with_their_key() {
    for (setting, words) in [
        ("chemistry.species=7", "`chemistry.species` must be 6"),
        ("chemistry.hydrogen_fraction=1.0", "leaves no helium"),
        ("hydro.gamma=1.4", "set `hydro.gamma = 1.6666666666666667`"),
        ("chemistry.tolerance=0", "chemistry.tolerance"),
        ("chemistry.heating=-26", "give a rate, not a logarithm"),
        ("chemistry.initial=given", "`initial.scalars.HII`"),
    ] {
        let refused = nestar::Simulation::new(deck(BOX, &[setting]));
        let message = refused.err().expect("a refusal").to_string();
        assert!(message.contains(words), "{setting}: {message}");
    }
    let given = ["chemistry.initial=given", "initial.scalars.HI=0.76"];
    assert!(nestar::Simulation::new(deck(BOX, &given)).is_ok());
    let without = BOX.replace("[units]", "[other]");
    assert!(nestar::Simulation::new(deck(&without, &[])).is_err());
}

#[test]
fn a_cell_that_needs_too_many_subcycles_is_reported() {
    let sim = build(
        BOX,
        &[SMALL, "chemistry.max_substeps=2", "time.max_step=20"],
    );
    let mut stepper = Stepper::of(sim);
    let message = stepper
        .try_step()
        .expect_err("too few sub-steps")
        .to_string();
    assert!(message.contains("`chemistry.max_substeps`"), "{message}");
    assert!(
        message.contains("`react_6` is not done after 3 calls in cell [0, 0, 0]"),
        "{message}"
    );
}

#[test]
fn gas_denser_than_the_network_is_valid_for_is_told_once() {
    let told = |settings: &[&str]| {
        let short = [
            "domain.cells=[8,8,8]",
            "time.max_step=1e-9",
            "mesh.refine=[]",
        ];
        let mut run = Stepper::new(BALL, &[&short, settings].concat());
        run.steps(3);
        let of_density = |remark: &&String| remark.contains("hydrogen nuclei per cm^3");
        let remarks = run.0.with(|sim| sim.world.resource::<Remarks>().0.clone());
        remarks.iter().filter(of_density).count()
    };
    let dense = ["initial.density=3e10", "initial.pressure=1e12"];
    assert_eq!(told(&dense), 1);
    assert_eq!(told(&["initial.density=1e9", "initial.pressure=1e11"]), 0);
    assert_eq!(told(&[&dense[..], &["chemistry.species=6"]].concat()), 0);
}
