//! Halo patches are exchanged while the interior is advanced, over device links or as messages: the result is bitwise that
//! of one rank.

use bevy_ecs::prelude::*;
use nestar::Simulation;
use nestar::engine::comm::{Connection, ExchangePlans, Halos, Ranks};
use nestar::engine::data::Pool;
use nestar::engine::data::store::Store;
use nestar::engine::device::ComputeDevice;
use nestar::engine::mesh::LevelClock;
use nestar::engine::mesh::Topology;
use nestar::engine::{Error, Plugin};
use nestar::systems::fields::Gas;
use nestar::systems::order::Advance;
use nestar_tests::decks::{BLAST, deck};
use nestar_tests::ranks::{joined, on_ranks, on_ranks_of};
use nestar_tests::{State, Stepper};
use std::collections::BTreeSet;

/// A long box: two or three ranks have interiors that are larger than their borders.
const LONG: [&str; 5] = [
    "domain.cells=[96,32,32]",
    "domain.right_edge=[3.0,1.0,1.0]",
    "domain.boundary=\"outflow\"",
    "mesh.max_level=1",
    "mesh.regrid_interval=2",
];

const STEPS: usize = 3;

fn settings<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&LONG[..], more].concat()
}

fn alone(settings: &[&str]) -> State {
    Stepper::new(BLAST, settings).steps(STEPS).state()
}

fn compare(expected: &State, found: Vec<State>, what: &str) {
    if let Some(difference) = expected.difference(&joined(found)) {
        panic!("{what}: {difference}");
    }
}

/// Overwrites stale halo patches before the step of the gas, so that reading one before its exchange is detected.
struct Spoil;

fn spoil(world: &mut World) {
    let level = world.resource::<LevelClock>().level;
    for level in [level.checked_sub(1), Some(level)].into_iter().flatten() {
        let copies = world.resource::<Topology>().copies(level).to_vec();
        let gas = Pool::<Gas>::of_mut(world);
        if gas.valid_layers(gas.present_bank(level)) > 0 {
            continue;
        }
        let values = vec![f64::NAN; copies.len() * gas.components() * 512];
        gas.store(level, &copies, &values)
            .expect("the pool takes values");
    }
}

impl Plugin for Spoil {
    fn build(&self, sim: &mut nestar::engine::Engine) -> Result<(), Error> {
        sim.system_in(Advance::Exchange, spoil);
        Ok(())
    }
}

/// Returns `true` if the step of any level begins with its interior.
fn splits(stepper: &mut Stepper) -> bool {
    let world = &stepper.0.engine().world;
    let (halos, topology) = (world.resource::<Halos>(), world.resource::<Topology>());
    (0..=topology.max_level).any(|level| halos.split(level).is_worth_overlapping())
}

#[test]
fn interior_patches_read_no_halo() {
    let mut devices = vec!["run.device=cpu"];
    if crate::device_runs::emulation() {
        devices.push("run.device=emulated");
    }
    let expected = alone(&LONG);
    for device in devices {
        let settings = settings(&[device]);
        let build =
            |ranks: Ranks| Simulation::with_ranks(deck(BLAST, &settings), ranks)?.add(Spoil);
        let work = |stepper: &mut Stepper| {
            let split = splits(stepper);
            (split, stepper.steps(STEPS).state())
        };
        let (split, states): (Vec<_>, Vec<_>) = on_ranks_of(2, build, work).into_iter().unzip();
        assert!(split.contains(&true), "the case is too small");
        compare(&expected, states, device);
    }
}

#[test]
fn interior_and_halo_patches_partition_the_rows() {
    on_ranks(3, BLAST, &["mesh.max_level=2"], |stepper| {
        for _ in 0..STEPS {
            let world = &stepper.steps(1).0.engine().world;
            let (halos, topology) = (world.resource::<Halos>(), world.resource::<Topology>());
            let plans = world.resource::<ExchangePlans>();
            for level in (0..=topology.max_level).filter(|&level| plans.has_halo(level)) {
                let split = halos.split(level);
                let (inside, border) = (&split.interior.rows, &split.boundary.rows);
                let rows: BTreeSet<u32> = inside.iter().chain(border).copied().collect();
                let own: BTreeSet<u32> = topology.rows(level).iter().copied().collect();
                assert_eq!(rows, own, "level {level}");
                assert_eq!(rows.len(), inside.len() + border.len(), "level {level}");
                // each part in the order of the level
                for part in [inside, border] {
                    assert!(part.is_sorted_by_key(|&row| topology.key(row)));
                }
            }
        }
    });
}

#[test]
fn overlapping_the_halo_exchange_with_the_step_changes_no_bit() {
    let hard = [
        "initial.pressure=if((x-0.9)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.002, 1e4, 1e-4)",
        "initial.velocity_x=if(x < 0.9, -20, 20)",
        "hydro.reconstruction=ppm",
        "time.courant=0.9",
    ];
    for more in [&["run.precision=single", "hydro.scheme=vl"][..], &hard] {
        let settings = settings(more);
        let expected = alone(&settings);
        let work = |stepper: &mut Stepper| stepper.steps(STEPS).state();
        compare(
            &expected,
            on_ranks(3, BLAST, &settings, work),
            "three ranks",
        );
    }
}

#[test]
fn ranks_with_and_without_devices_share_a_run() {
    if !crate::device_runs::emulation() {
        return;
    }
    let expected = alone(&LONG);
    for devices in [[true, false, true], [true; 3]] {
        let build = |ranks: Ranks| {
            let device = ["run.device=cpu", "run.device=emulated"];
            let own = device[usize::from(devices[ranks.rank()])];
            Simulation::with_ranks(deck(BLAST, &settings(&[own])), ranks)
        };
        let linked = devices == [true; 3];
        let work = |stepper: &mut Stepper| {
            let state = stepper.steps(STEPS).state();
            let world = &stepper.0.engine().world;
            let connection = world.get_resource::<Connection>();
            assert_eq!(connection.is_some(), linked);
            let counters = world.resource::<Halos>().counters(connection);
            assert!(counters.exchanges > 0 && counters.bytes_sent > 0);
            assert!(counters.waited > 0.0);
            state
        };
        compare(
            &expected,
            on_ranks_of(3, build, work),
            &format!("devices {devices:?}"),
        );
    }
}

#[test]
fn between_regrids_nothing_is_allocated_or_listed_on_devices() {
    if !crate::device_runs::emulation() {
        return;
    }
    let settings = settings(&["run.device=emulated", "mesh.regrid_interval=1000"]);
    on_ranks(2, BLAST, &settings, |stepper| {
        stepper.steps(1);
        let look = |stepper: &mut Stepper| {
            let world = &stepper.0.engine().world;
            let device = world.resource::<ComputeDevice>().device.clone();
            let device = device.expect("the rank has a device").counters();
            let connection = world.get_resource::<Connection>();
            let direct = connection.is_some_and(Connection::is_direct);
            let link = world.resource::<Halos>().counters(connection);
            (device, link, direct)
        };
        let (before, link_before, _) = look(stepper);
        stepper.steps(2);
        let (after, link, direct) = look(stepper);
        assert!(link.exchanges > link_before.exchanges);
        assert_eq!(after.allocations, before.allocations);
        // on the way through the hosts what comes is copied up, from device to device nothing is
        let arrived = link.bytes_received - link_before.bytes_received;
        assert!(arrived > 0);
        let copied = if direct { 0 } else { arrived };
        assert_eq!(after.bytes_up - before.bytes_up, copied);
    });
}
