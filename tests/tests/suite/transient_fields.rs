//! A field of three banks that snapshots do not save: a plugin recomputes it in `Ready` and on new patches.

use crate::device_runs::emulation;
use bevy_ecs::prelude::*;
use nestar::engine::data::{Element, Field, FieldSpec, Pool, Precision, Prolong, Restrict};
use nestar::engine::mesh::{Levels, NewRows, Topology};
use nestar::prelude::*;
use nestar::systems::order::Ready;
use nestar_tests::Scratch;
use nestar_tests::decks::HALF;
use nestar_tests::ranks::run_with;
use nestar_tests::runs::digests;

/// A number that follows from place and time: known at the end of a step, used in the next one.
struct Shade;
/// What has been shaded so far; snapshots keep it.
struct Glow;

impl Field for Shade {
    const NAME: &'static str = "shade";
}

impl Field for Glow {
    const NAME: &'static str = "glow";
}

struct Shading {
    /// `true` if the shade is recomputed in `Ready`.
    ready: bool,
}

impl Plugin for Shading {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Shade>(FieldSpec {
            banks: 3,
            prolong: Prolong::Own(shade_new),
            restrict: Restrict::None,
            stored: false,
            ..FieldSpec::cells(&["shade"])
        })?;
        sim.register_field::<Glow>(FieldSpec::cells(&["glow"]))?;
        if self.ready {
            sim.system_in(Ready::Recompute, shade);
        }
        sim.system_in(Advance::Sources, glow);
        sim.system_in(Advance::Sources, shade);
        Ok(())
    }
}

/// The shade of the cells of a row: what both working banks hold of it, multiplied.
fn shades<R: Element>(topology: &Topology, row: u32, time: f64) -> [Vec<R>; 2] {
    let [x, y, z] = topology.origin(row);
    let place = (0..512).map(|n| f64::from((x + 3 * y + 7 * z) % 64) + f64::from(n));
    let place: Vec<R> = place.map(|p| R::lit((0.37 * p).fract())).collect();
    let time = vec![R::lit(1.0 + time); 512];
    [place, time]
}

/// At the end of a step, or where there is none.
fn shade(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut shade: Write<Shade>,
) -> Result<(), Error> {
    fn of<R: Element>(
        topology: &Topology,
        time: f64,
        shade: &mut Write<Shade>,
    ) -> Result<(), Error> {
        let (view, mut values) = (shade.own(), Vec::new());
        for &row in view.rows() {
            let parts = shades::<R>(topology, row, time);
            if !view.is_on_device() {
                for (n, part) in parts.iter().enumerate() {
                    // SAFETY: rows are set one by one, each in its own bank.
                    unsafe { view.scratch::<R>(n).row_mut(row) }.copy_from_slice(part);
                }
            }
            values.extend(parts[0].iter().zip(&parts[1]).map(|(&a, &b)| a * b));
        }
        let rows = view.rows().to_vec();
        Ok(shade.store(&rows, &values)?)
    }
    match shade.precision() {
        Precision::Single => of::<f32>(&topology, clock.end, &mut shade),
        Precision::Double => of::<f64>(&topology, clock.end, &mut shade),
    }
}

/// Of new patches.
fn shade_new(world: &mut World) {
    fn of<R: Element>(world: &mut World) {
        let new = world.resource::<NewRows>();
        let (level, rows) = (new.level, new.rows.clone());
        let time = world.resource::<Levels>().time(level);
        let topology = world.resource::<Topology>();
        let of_row = |&row: &u32| {
            let [place, time] = shades::<R>(topology, row, time);
            place.into_iter().zip(time).map(|(a, b)| a * b)
        };
        let values: Vec<R> = rows.iter().flat_map(of_row).collect();
        let stored = Pool::<Shade>::of_mut(world).store(level, &rows, &values);
        stored.expect("the pool takes its rows");
    }
    match Pool::<Shade>::of(world).precision() {
        Precision::Single => of::<f32>(world),
        Precision::Double => of::<f64>(world),
    }
}

fn glow(clock: Res<LevelClock>, shade: Read<Shade>, mut glow: Write<Glow>) -> Result<(), Error> {
    fn of<R: Element>(dt: f64, shade: &Read<Shade>, glow: &mut Write<Glow>) -> Result<(), Error> {
        let rows = glow.own().rows().to_vec();
        let shade = shade.own().host::<R>(&rows)?;
        let mut values = glow.own().host::<R>(&rows)?;
        for (value, shade) in values.iter_mut().zip(shade) {
            *value += R::lit(dt) * shade;
        }
        Ok(glow.store(&rows, &values)?)
    }
    match glow.precision() {
        Precision::Single => of::<f32>(clock.dt, &shade, &mut glow),
        Precision::Double => of::<f64>(clock.dt, &shade, &mut glow),
    }
}

/// What is stored of four steps, taken by `before` ranks and from the second step on by `after`.
fn stored(ready: bool, before: usize, after: Option<usize>, settings: &[&str]) -> Vec<String> {
    let scratch = Scratch::new();
    let run = |resume, ranks, steps| {
        let steps: &str = steps;
        let busy = [
            HALF,
            "mesh.max_level=1",
            "mesh.regrid_interval=1",
            "output.steps=2",
            steps,
        ];
        let settings = [&busy, settings].concat();
        let add = |sim: Simulation| sim.add(Shading { ready });
        run_with(&scratch.run(), resume, ranks, &settings, add).unwrap_or_else(|e| panic!("{e}"));
    };
    if let Some(after) = after {
        run(false, before, "time.max_steps=2");
        run(true, after, "time.max_steps=4");
    } else {
        run(false, before, "time.max_steps=4");
    }
    digests(&scratch.run())
        .into_iter()
        .map(|(_, d)| d)
        .collect()
}

#[test]
fn a_field_that_is_not_saved_is_recomputed() {
    for precision in ["run.precision=double", "run.precision=single"] {
        let cpu = [precision, "run.device=cpu"];
        let whole = stored(true, 1, None, &cpu);
        let parts = stored(true, 4, Some(3), &cpu);
        assert_eq!(parts, whole, "{precision}: 4, then 3 ranks");
        if emulation() {
            let device = [precision, "run.device=emulated"];
            assert_eq!(stored(true, 2, Some(1), &device), whole, "{precision}");
        }
    }
    let cpu = ["run.device=cpu"];
    let forgotten = stored(false, 1, Some(1), &cpu);
    assert_ne!(forgotten, stored(false, 1, None, &cpu), "nobody reads it");
}
