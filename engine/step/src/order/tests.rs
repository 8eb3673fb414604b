//! Orders that plugins state, orders that follow from the plugins, and orders that are missing.

use super::{SystemChain, SystemNamed};
use crate::{Activity, Phase, Read, Schedules, StepSet};
use bevy_ecs::prelude::*;
use bevy_ecs::system::IntoSystem;
use nestar_engine_data::{FaultBox, Field, Stores};
use nestar_engine_mesh::Owner;
use std::time::Duration;

#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Work;

impl StepSet for Work {
    fn phase(self) -> Phase {
        Phase::Advance
    }
}

/// What the systems of the tests change.
#[derive(Resource, Default)]
struct Gas(Vec<&'static str>);

/// A field that no plugin registers.
struct Dust;

impl Field for Dust {
    const NAME: &'static str = "dust";
}

/// A set of particles.
#[derive(Resource, Default)]
struct Stars;

fn heat(mut gas: ResMut<Gas>) {
    gas.0.push("heat");
}

fn cool(mut gas: ResMut<Gas>) {
    gas.0.push("cool");
}

fn mix(mut gas: ResMut<Gas>) {
    gas.0.push("mix");
}

fn idle() {}

fn rest() {}

fn blow(_: Option<Read<Dust>>) {}

fn change_everything(_: &mut World) {}

fn move_stars(_: ResMut<Stars>) {}

fn add_stars(_: ResMut<Stars>) {}

fn weigh_stars(_: ResMut<Stars>) {}

fn count_entities(_: Query<&Owner>) {}

/// Builds the schedules with the systems that `add` adds; returns the names of all systems in their order.
fn order(add: impl FnOnce(&mut Schedules, &mut World)) -> Result<Vec<String>, String> {
    let mut world = World::new();
    world.init_resource::<Activity>();
    world.init_resource::<FaultBox>();
    world.init_resource::<Stores>();
    world.init_resource::<Gas>();
    world.init_resource::<Stars>();
    let mut schedules = Schedules::default();
    schedules.add_particles(world.component_id::<Stars>());
    add(&mut schedules, &mut world);
    schedules.build(&mut world)?;
    let order = schedules.order(&world, Phase::Advance).into_iter();
    let names: Vec<String> = order.map(|system| system.name).collect();
    Ok(names)
}

#[test]
fn systems_that_access_the_same_data_without_an_order_are_refused() {
    let refused = order(|schedules, world| {
        schedules.begin_plugin("Weather");
        schedules.add(world, Work, cool);
        schedules.add(world, Work, idle);
        schedules.add(world, Work, heat);
    });
    let why = refused.expect_err("the order is ambiguous");
    let wanted = "the systems `cool` and `heat` of the plugin `Weather` have no order in the set `Advance::Work`, but both \
                  access `Gas`: state it by `sim.system_in(…).after(…)`";
    assert!(why.starts_with(wanted), "{why}");
}

#[test]
fn a_field_may_be_missing_if_the_system_declares_it_as_optional() {
    let refused = order(|schedules, world| {
        schedules.add(world, Work, blow);
    });
    let why = refused.expect_err("the field is missing");
    assert!(why.contains("`dust`, which no plugin registers"), "{why}");
    let found = order(|schedules, world| {
        schedules.add(world, Work, blow).optional::<Dust>();
    });
    assert_eq!(found, Ok(vec!["blow".to_owned()]));
}

#[test]
fn a_system_of_the_whole_world_conflicts_with_every_other() {
    let refused = order(|schedules, world| {
        schedules.add(world, Work, change_everything);
        schedules.add(world, Work, heat);
    });
    let why = refused.expect_err("the order is ambiguous");
    let wanted = "but `change_everything` takes the whole world";
    assert!(why.contains(wanted), "{why}");
}

#[test]
fn stated_orders_hold_and_other_systems_keep_the_order_of_registration() {
    let found = order(|schedules, world| {
        schedules.add(world, Work, idle);
        schedules.add(world, Work, heat).after(cool);
        schedules.add(world, Work, rest);
        schedules.add(world, Work, cool);
        schedules.add(world, Work, mix).before(heat).after(cool);
    });
    let wanted = ["idle", "cool", "mix", "heat", "rest"].map(String::from);
    assert_eq!(found, Ok(wanted.to_vec()));
}

#[test]
fn a_chain_runs_one_system_after_the_other() {
    let found = order(|schedules, world| {
        schedules.add(world, Work, rest);
        (mix, cool, heat).add_to(schedules, world, Work);
    });
    let wanted = ["rest", "mix", "cool", "heat"].map(String::from);
    assert_eq!(found, Ok(wanted.to_vec()));
}

#[test]
fn a_system_registered_before_a_chain_runs_after_its_end() {
    let found = order(|schedules, world| {
        schedules.add(world, Work, rest).after(heat);
        (mix, cool, heat).add_to(schedules, world, Work);
    });
    let wanted = ["mix", "cool", "heat", "rest"].map(String::from);
    assert_eq!(found, Ok(wanted.to_vec()));
}

#[test]
fn systems_run_in_the_order_of_the_schedule() {
    let mut world = World::new();
    world.init_resource::<Activity>();
    world.init_resource::<FaultBox>();
    world.init_resource::<Stores>();
    world.init_resource::<Gas>();
    let mut schedules = Schedules::default();
    schedules.add(&mut world, Work, heat).in_sequence();
    schedules.add(&mut world, Work, mix).in_sequence();
    schedules.add(&mut world, Work, cool).before(heat);
    schedules.build(&mut world).expect("the order is stated");
    schedules.get(Phase::Advance).run(&mut world);
    assert_eq!(world.resource::<Gas>().0, ["cool", "heat", "mix"]);
}

#[test]
fn systems_of_two_plugins_run_in_the_order_of_the_program() {
    let found = order(|schedules, world| {
        schedules.begin_plugin("First");
        schedules.add(world, Work, heat);
        schedules.begin_plugin("Second");
        schedules
            .add(world, Work, change_everything)
            .keeps_particles();
        schedules.begin_plugin("Third");
        schedules.add(world, Work, cool);
    });
    let wanted = ["heat", "change_everything", "cool"].map(String::from);
    assert_eq!(found, Ok(wanted.to_vec()));
}

#[test]
fn a_later_plugin_may_state_that_its_system_runs_before_an_earlier_one() {
    let found = order(|schedules, world| {
        schedules.begin_plugin("First");
        schedules.add(world, Work, heat);
        schedules.add(world, Work, mix).after(heat);
        schedules.begin_plugin("Second");
        schedules.add(world, Work, cool).before(mix);
    });
    let wanted = ["heat", "cool", "mix"].map(String::from);
    assert_eq!(found, Ok(wanted.to_vec()));
}

#[test]
fn systems_are_ordered_by_name() {
    let named = || IntoSystem::into_system(heat).with_name("source heat");
    let found = order(|schedules, world| {
        schedules
            .add(world, Work, cool)
            .after(SystemNamed("source heat".into()));
        schedules.add(world, Work, named());
    });
    let wanted = ["source heat", "cool"].map(String::from);
    assert_eq!(found, Ok(wanted.to_vec()));
    let missing = order(|schedules, world| {
        let other = SystemNamed("source wind".into());
        schedules.add(world, Work, cool).after(other);
    });
    let why = missing.expect_err("there is no such system");
    assert!(
        why.contains("`source wind`") && why.contains("`Advance`"),
        "{why}"
    );
}

#[test]
fn a_contradictory_order_is_refused() {
    let refused = order(|schedules, world| {
        schedules.add(world, Work, cool).after(heat);
        schedules.add(world, Work, heat).after(cool);
    });
    let why = refused.expect_err("the order is contradictory");
    assert!(why.contains("Advance") && why.contains("heat"), "{why}");
}

#[test]
fn systems_of_one_name_are_numbered() {
    let found = order(|schedules, world| {
        schedules.add(world, Work, idle);
        schedules.add(world, Work, idle);
    });
    let names = found.expect("the order is arbitrary");
    assert_eq!(names, ["idle", "idle (2)"]);
}

#[test]
fn particle_entities_are_updated_once_after_the_last_system_that_moves_particles() {
    let found = order(|schedules, world| {
        schedules.begin_plugin("Stars");
        schedules.add(world, Work, move_stars);
        schedules.add(world, Work, add_stars).after(move_stars);
        schedules
            .add(world, Work, weigh_stars)
            .after(add_stars)
            .keeps_particles();
        schedules.add(world, Work, count_entities);
    });
    let update = "update particle entities after add_stars";
    let wanted = [
        "move_stars",
        "add_stars",
        update,
        "weigh_stars",
        "count_entities",
    ];
    assert_eq!(found, Ok(wanted.map(String::from).to_vec()));
}

#[test]
fn particle_entities_are_updated_before_systems_that_query_them() {
    let found = order(|schedules, world| {
        schedules.begin_plugin("Stars");
        schedules.add(world, Work, move_stars);
        schedules.begin_plugin("Census");
        schedules.add(world, Work, count_entities);
        schedules.begin_plugin("Births");
        schedules.add(world, Work, add_stars);
    });
    let wanted = [
        "move_stars",
        "update particle entities after move_stars",
        "count_entities",
        "add_stars",
        "update particle entities after add_stars",
    ];
    assert_eq!(found, Ok(wanted.map(String::from).to_vec()));
}

fn sleep() {
    std::thread::sleep(Duration::from_millis(30));
}

fn sleep_long() {
    std::thread::sleep(Duration::from_millis(60));
}

#[test]
fn time_counts_for_the_plugin_of_the_system_and_that_of_field_operations_for_the_mesh() {
    let mut world = World::new();
    world.init_resource::<Activity>();
    world.init_resource::<FaultBox>();
    world.init_resource::<Stores>();
    let mut schedules = Schedules::default();
    schedules.begin_plugin("weather");
    schedules.add(&mut world, Work, sleep_long).of_mesh();
    schedules.add(&mut world, Work, sleep).after(sleep_long);
    schedules.begin_plugin("fields only");
    schedules.add(&mut world, Work, rest).of_mesh();
    schedules.build(&mut world).expect("the order is stated");
    let activity = world.resource::<Activity>().clone();
    assert_eq!(activity.names(), ["mesh", "output", "regrid", "weather"]);
    activity.begin_mesh();
    activity.reset();
    let begin = std::time::Instant::now();
    schedules.get(Phase::Advance).run(&mut world);
    activity.begin_output();
    let wall = begin.elapsed().as_secs_f64();
    let seconds = activity.seconds();
    let (mesh, weather) = (seconds[0], seconds[3]);
    assert!(mesh >= 0.06 && weather >= 0.03, "{seconds:?}");
    assert!(
        (mesh + weather - wall).abs() < 0.02 * wall,
        "{seconds:?} of {wall}"
    );
}
