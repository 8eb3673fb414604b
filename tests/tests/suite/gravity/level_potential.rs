//! The potential of each level alone.

use super::leaves::norm;
use super::{FEW, LUMP, MULTIGRID, OUTFLOW};
use crate::device_runs::places;
use nestar::engine::comm::Ranks;
use nestar::engine::data::Element;
use nestar::engine::data::Pool;
use nestar::entities::Topology;
use nestar::kernels::mesh::GhostView;
use nestar::kernels::multigrid::level::{self, LevelGrid};
use nestar::kernels::multigrid::stencil::PoissonSource;
use nestar::prelude::*;
use nestar::systems::fields::Potential;
use nestar::systems::fields::{Matter, OwnPotential};
use nestar::systems::gravity::ExteriorPotential;
use nestar_tests::decks::deck;
use nestar_tests::ranks::on_ranks_of;
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, Stepper};
use std::collections::BTreeMap;
use std::f64::consts::PI;

const SINGLE: &str = "run.precision=single";
const ONE_WAY: &str = "gravity.coupling=\"one-way\"";

/// The setting that selects it.
#[derive(Clone)]
struct Asks;

impl Plugin for Asks {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.request::<OwnPotential>()
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

/// Slopes of it, of fourth order.
struct Slope;

impl Field for Slope {
    const NAME: &'static str = "slope";
}

#[device]
fn slope<R: Real>(u: &Stencil<R, R, 2>, at: &Place<R>) -> R {
    let near = u.at(1, 0, 0) - u.at(-1, 0, 0);
    let far = u.at(2, 0, 0) - u.at(-2, 0, 0);
    (8.0 * near - far) / (12.0 * at.width[0])
}

/// Asks for it and reads it.
#[derive(Clone)]
struct Reads;

impl Plugin for Reads {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.request::<OwnPotential>()
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Slope>(FieldSpec::cells(&["slope"]))?;
        sim.initial::<Slope, nothing>([]);
        let read = |rows: LevelRows, own: Read<OwnPotential, 2>, mut slopes: Write<Slope>| {
            slopes.update::<slope>(&rows, Around(&own), &[]);
        };
        sim.system_in(Advance::Correct, read);
        Ok(())
    }
}

/// Matter at rest, independent of the gas.
#[derive(Clone)]
struct Rock;

#[device]
fn rock<R: Real>(_there: R, at: &Place<R>) -> R {
    let [x, y, z] = [at.centre[0] - 0.4, at.centre[1] - 0.55, at.centre[2] - 0.47];
    exp(-100.0 * sum3(x * x, y * y, z * z))
}

impl Plugin for Rock {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.gravity_source(
            "rock",
            |In(level): In<usize>,
             mut rows: LevelRows,
             mut matter: Write<Matter>|
             -> Result<(), Error> {
                rows.visit(level);
                matter.update::<rock>(&rows, (), &[]);
                Ok(())
            },
        );
        Ok(())
    }
}

fn begun(app: &App, text: &str, settings: &[&str]) -> Stepper {
    let sim = app.simulation(deck(text, settings));
    Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")))
}

/// Rock in the levels of a lump of gas that stay.
fn rock_with(asks: bool, settings: &[&str]) -> Stepper {
    let app = App::default().always(Rock);
    let app = if asks { app.always(Asks) } else { app };
    let fixed = [
        OUTFLOW,
        "initial.density=\"1e-6\"",
        "initial.pressure=\"1e-6\"",
        "mesh.refine=[{ criterion = \"threshold\", field = \"(x-0.4)^2+(y-0.5)^2+(z-0.5)^2\", below = true, threshold = [0.08, 0.01] }]",
    ];
    begun(&app, LUMP, &[&fixed, settings].concat())
}

/// The values of a field on a level.
fn values<F: Field>(run: &mut Stepper, level: usize) -> Vec<f64> {
    let sim = run.0.engine();
    let rows = Pool::<F>::of(&sim.world).present::<f64>(level);
    let all = sim.world.resource::<Topology>().rows(level).iter();
    all.flat_map(|&row| rows.row(row).to_vec()).collect()
}

/// The largest difference over the largest value.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    let largest =
        |of: &mut dyn Iterator<Item = f64>| of.fold(0.0, |most: f64, x| most.max(x.abs()));
    let differences = &mut a.iter().zip(b).map(|(a, b)| a - b);
    largest(differences) / largest(&mut a.iter().copied())
}

/// The root level of a run that asks is that of a run coupled one way, from the beginning on.
#[test]
fn the_root_level_potential_equals_that_of_a_one_way_coupled_run() {
    for root in ["gravity.root=\"fft\"", MULTIGRID] {
        let mut asks = rock_with(true, &[root]);
        let mut one_way = rock_with(false, &[root, ONE_WAY]);
        let found = values::<OwnPotential>(&mut asks, 0);
        let right = values::<Potential>(&mut one_way, 0);
        assert!(found == right, "{root}");
        let coupled = difference(&right, &values::<Potential>(&mut asks, 0));
        assert!(coupled > 1e-4, "levels do nothing: {coupled:e}");
        asks.steps(3);
        one_way.steps(3);
        let found = values::<OwnPotential>(&mut asks, 0);
        let wrong = difference(&values::<Potential>(&mut one_way, 0), &found);
        assert!(wrong < 1e-12, "{root} {wrong:e}");
    }
}

/// The largest residual of a level's own equation over the largest right-hand side.
fn residual(run: &mut Stepper, level: usize) -> f64 {
    let sim = run.0.engine();
    let topology = sim.world.resource::<Topology>();
    let own = Pool::<OwnPotential>::of(&sim.world).ghosts::<f64>(topology, level, 2);
    let border = Pool::<Potential>::of(&sim.world).ghosts::<f64>(topology, level, 2);
    let width = topology.domain.cell_width(level);
    let grid = LevelGrid {
        view: GhostView {
            coarse_old: border.coarse_old,
            coarse_new: border.coarse_new,
            ..own
        },
        exterior: sim.world.resource::<ExteriorPotential>().on_host(1.0),
        source: PoissonSource {
            density: Pool::<Matter>::of(&sim.world).present::<f64>(level),
            coefficient: 4.0 * PI,
            mean: 0.0,
        },
        tau: None,
        weights: width.map(|w| 1.0 / (w * w)),
    };
    let rows = topology.rows(level).iter();
    let found = rows.map(|&row| level::largest_residual(&grid, row, true));
    let [residual, source] = found.fold([0.0; 2], |a, b| [0, 1].map(|n| f64::max(a[n], b[n])));
    residual / source
}

#[test]
fn the_level_potential_solves_the_poisson_equation_of_that_level() {
    let mut run = rock_with(true, &[]);
    let finest = run.0.engine().world.resource::<Topology>().finest();
    assert_eq!(finest, 2, "the case has no levels");
    let before = residual(&mut run, 1);
    let after = residual(run.steps(3), 1);
    assert!(before < 1e-8 && after < 1e-11, "{before:e} {after:e}");
    let both = values::<Potential>(&mut run, 1);
    let apart = difference(&both, &values::<OwnPotential>(&mut run, 1));
    assert!(apart > 1e-4, "level 2 does nothing: {apart:e}");
}

/// Where nothing finer is coupled back it is the potential itself.
#[test]
fn the_level_potential_is_the_full_potential_without_finer_levels() {
    for (settings, levels) in [
        (&[][..], 2..=2),
        (&[ONE_WAY], 0..=2),
        (&["mesh.max_level=0"], 0..=0),
    ] {
        let app = App::default().always(Asks);
        for boundary in [OUTFLOW, "domain.boundary=\"periodic\""] {
            let mut run = begun(&app, LUMP, &[settings, &[FEW, boundary]].concat());
            for step in 0..3 {
                for level in levels.clone() {
                    let own = values::<OwnPotential>(&mut run, level);
                    assert!(!own.is_empty(), "there is no level {level}");
                    let same = own == values::<Potential>(&mut run, level);
                    assert!(same, "{settings:?} level {level} step {step}");
                }
                run.steps(1);
            }
        }
    }
}

/// A lump of one cell of level 0 or 1 beside a face of the next finer level, in cells of width 1 of the root level.
const CELL: &str = r#"
scenario = "formula"
[constants]
at = 8.5
off = 0.5
half = 0.5
[initial]
density  = "1e-12 + if(max(max(abs(x-at), abs(y-off)), abs(z-off)) < half, 1, 0)"
pressure = "1"
[domain]
cells = [32, 32, 32]
left_edge = [-16, -16, -16]
right_edge = [16, 16, 16]
boundary = "outflow"
[time]
end = 1.0
[mesh]
max_level = 2
flag_buffer = 0
refine = [{ criterion = "threshold", field = "max(max(abs(x), abs(y)), abs(z))", below = true, threshold = [8, 4] }]
[gravity]
initial_cycles = 16
"#;

/// The value of a field in a cell of a level.
fn value<F: Field>(sim: &Engine, level: usize, cell: [i32; 3]) -> f64 {
    let topology = sim.world.resource::<Topology>();
    let patch = cell.map(|i| i.div_euclid(8));
    let rows = topology.rows(level).iter();
    let mut found = rows.filter(|&&row| topology.index(row) == patch);
    let row = *found.next().expect("the level has the cell");
    let [x, y, z] = cell.map(|i| i.rem_euclid(8) as usize);
    Pool::<F>::of(&sim.world).present::<f64>(level).row(row)[x + 8 * (y + 8 * z)]
}

/// The force of a lump in a cell on itself over that on a neighbour at two cells.
fn self_force<F: Field>(run: &mut Stepper, level: usize, cell: [i32; 3]) -> f64 {
    let sim = run.0.engine();
    let width = sim.world.resource::<Topology>().domain.cell_width(level)[0];
    let slope = |axis: usize| {
        let beside = |step: i32| {
            let mut at = cell;
            at[axis] += step;
            value::<F>(sim, level, at)
        };
        (beside(1) - beside(-1)) / (2.0 * width)
    };
    let mass = width.powi(3);
    norm([0, 1, 2].map(slope)) / (mass / (2.0 * width).powi(2))
}

/// On either side of faces between levels 0 and 1, and 1 and 2: a lump in cells of the coarser level.
#[test]
fn a_clump_next_to_a_finer_level_has_no_self_force() {
    for (level, x, most) in [(0, 24, 1e-8), (0, 23, 1e-8), (1, 40, 2e-4), (1, 39, 2e-4)] {
        let width = 0.5_f64.powi(level as i32);
        let cell = [x, 16 << level, 16 << level];
        let settings = [
            format!("constants.at={}", (f64::from(x) + 0.5) * width - 16.0),
            format!("constants.off={}", 0.5 * width),
            format!("constants.half={}", 0.5 * width),
        ];
        let app = App::default().always(Asks);
        let mut run = begun(&app, CELL, &settings.each_ref().map(String::as_str));
        let own = self_force::<OwnPotential>(&mut run, level, cell);
        let both = self_force::<Potential>(&mut run, level, cell);
        assert!(
            own < most && both > 0.1,
            "level {level}, {x}: {own:e} {both:e}"
        );
    }
}

/// Bits of the potential and of its slopes by level and place, of all ranks.
type Found = BTreeMap<(usize, [i32; 3]), [Vec<u64>; 2]>;

fn found<R: Element>(run: &mut Stepper) -> Found {
    let world = &run.0.engine().world;
    let topology = world.resource::<Topology>();
    let of = |level: usize| {
        let patch = move |&row: &u32| {
            let own = Pool::<OwnPotential>::of(world).host::<R>(level, &[row]);
            let slopes = Pool::<Slope>::of(world).host::<R>(level, &[row]);
            let bits = |values: Vec<R>| values.iter().map(|x| x.to_f64().to_bits()).collect();
            let both = [own, slopes].map(|values| bits(values.unwrap_or_else(|e| panic!("{e}"))));
            ((level, topology.index(row)), both)
        };
        topology.rows(level).iter().map(patch)
    };
    (0..=topology.finest()).flat_map(of).collect()
}

/// The state after two steps on the given number of ranks.
fn found_on(size: usize, settings: &[&str]) -> Found {
    let app = App::default().always(Reads);
    let all = [&[FEW], settings].concat();
    let build = |ranks: Ranks| app.simulation_on(deck(LUMP, &all), ranks);
    let parts = on_ranks_of(size, build, |run| match settings.contains(&SINGLE) {
        true => found::<f32>(run.steps(2)),
        false => found::<f64>(run.steps(2)),
    });
    parts.into_iter().flatten().collect()
}

#[test]
fn the_level_potential_is_identical_on_ranks_and_devices() {
    // ranks in one case, devices in the other
    for (case, places) in [
        (&[OUTFLOW][..], places(&[3], &[])),
        (&[SINGLE, MULTIGRID], places(&[], &[2])),
    ] {
        let alone = found_on(1, case);
        assert!(alone.keys().any(|(level, _)| *level == 2), "no levels");
        for (device, size) in places {
            let other = found_on(size, &[case, &[device]].concat());
            assert!(alone == other, "{device}, {size} ranks, {case:?}");
        }
    }
}

#[test]
fn the_level_potential_is_identical_after_a_restart() {
    let run = |parts: &[&str], case: &[&str]| {
        let (scratch, app) = (Scratch::new(), App::default().always(Reads));
        for (n, steps) in parts.iter().enumerate() {
            let settings = [case, &[FEW, "output.final=true", steps]].concat();
            let sim = app.simulation(deck(LUMP, &settings));
            let run = sim.and_then(|mut sim| sim.run_with(quietly_into(&scratch.run(), n > 0)));
            run.unwrap_or_else(|e| panic!("{e}"));
        }
        digests(&scratch.run())
            .pop()
            .expect("there is a snapshot")
            .1
    };
    for case in [&[][..], &[MULTIGRID, OUTFLOW], &[ONE_WAY]] {
        let whole = run(&["time.max_steps=3"], case);
        let parts = run(&["time.max_steps=1", "time.max_steps=3"], case);
        assert_eq!(parts, whole, "{case:?}");
    }
}
