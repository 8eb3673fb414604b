//! Compares every criterion on the emulated device with the host, on a refined hierarchy between walls and an inflow
//! face.

use super::Criteria;
use super::MeshConfig;
use crate::fields::{Gas, GasModel};
use crate::hydro::Hydro;
use crate::hydro::formulas::StateFormulas;
use crate::hydro::initial::{InitialGas, fill_initial_gas};
use crate::order::{self, Initialise};
use crate::refinement::Refinement;
use bevy_ecs::prelude::*;
use bevy_ecs::system::RunSystemOnce;
use nestar_deck::Deck;
use nestar_engine::Engine;
use nestar_engine::comm::exchange::refresh_halo;
use nestar_engine::data::{LevelRows, Stores};
use nestar_engine::device::ComputeDevice;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::{Read, Settings, check_faults};
use nestar_kernels::criteria::LIST_BLOCK;

const BOUNDED: &str = r#"
[domain]
cells      = [32, 16, 16]
left_edge  = [-0.5, -0.25, -0.5]
right_edge = [0.5, 0.25, 0.5]
boundary   = { x = ["inflow", "outflow"], y = "reflecting", z = ["diode", "outflow"] }
[inflow.x_lower]
where      = "z < 0.2"
density    = "1 + 0.3*sin(8*y + t)"
velocity_x = "1.5"
pressure   = "0.3"
scalars    = { dye = "0.5 + y" }
"#;

const PERIODIC: &str = r#"
[domain]
cells      = [16, 24, 16]
left_edge  = [0, 0, 0]
right_edge = [0.5, 1, 1]
"#;

const GAS: &str = r#"
[initial]
density    = "1 + 0.2*sin(7*x)*cos(5*y)"
pressure   = "if(min((x-0.1)^2 + (y-0.05)^2 + (z+0.3)^2, (x-0.3)^2 + (y-0.4)^2 + (z-0.6)^2) < 0.02, 3, 0.2)"
velocity_x = "0.3 + 0.2*cos(9*z)"
velocity_y = "-0.2 + 0.1*sin(6*z)"
scalars    = { dye = "if(x < 0.1, 1, 0.25)" }
[run]
threads = 1
[mesh]
max_level = 2
regrid_interval = 2
flag_buffer = [1, 2]
refine = [{ criterion = "gradient", field = "pressure", threshold = 0.25 }]
[hydro]
scalars = ["dye"]
"#;

/// Criteria that each flag some but not all cells of the hierarchy on the refinable levels 0 and 1.
const CRITERIA: &[&str] = &[
    r#"{ criterion = "threshold", field = "density", threshold = [1.15, 1.1] }"#,
    r#"{ criterion = "threshold", field = "pressure", threshold = 0.21, below = true }"#,
    r#"{ criterion = "threshold", field = "temperature", threshold = 0.4 }"#,
    r#"{ criterion = "threshold", field = "entropy", threshold = [0.4] }"#,
    r#"{ criterion = "threshold", field = "fraction_dye + 0.2*sin(9*y)", threshold = 0.5 }"#,
    r#"{ criterion = "threshold", field = "r", threshold = 0.6 }"#,
    r#"{ criterion = "threshold", field = "z", threshold = 0.1, below = true }"#,
    r#"{ criterion = "gradient", field = "density", threshold = 0.05 }"#,
    r#"{ criterion = "gradient", field = "mach^2 + 2*r", threshold = [0.2, 0.1] }"#,
    r#"{ criterion = "gradient", field = "speed", threshold = 0.1 }"#,
    r#"{ criterion = "lohner", field = "density", threshold = 0.4 }"#,
    r#"{ criterion = "lohner", field = "ln(pressure)", threshold = [0.5, 0.6], filter = 0.1 }"#,
    r#"{ criterion = "lohner", field = "scalar_dye", threshold = 0.6, filter = 0.02 }"#,
    r#"{ criterion = "vorticity", threshold = 0.2 }"#,
    r#"{ criterion = "jeans", threshold = 40, gravity = 0.7 }"#,
    r#"{ criterion = "box", left = [0.1, -1, -1], right = [0.3, 1, 0.1], level = 1 }"#,
    r#"{ criterion = "sphere", centre = [0.1, 0.05, 0.1], radius = 0.2 }"#,
    r#"{ criterion = "formula", when = "sound_speed > 0.9 && level < 1 || t + width > z + 3*velocity_x" }"#,
];

fn simulation(domain: &str, precision: &str, device: &str) -> Engine {
    let mut deck = Deck::parse("criteria.toml", &format!("{GAS}{domain}")).unwrap();
    deck.set(&format!("run.precision={precision}")).unwrap();
    deck.set(&format!("run.device={device}")).unwrap();
    let mesh: MeshConfig = deck.table("mesh").unwrap();
    let settings = mesh.settings(&deck).unwrap();
    let mut sim = Engine::new(deck, settings).unwrap();
    order::configure(&mut sim);
    let prolongation = mesh.prolongation.into();
    sim.add(Hydro {
        prolongation,
        courant: 0.4,
    })
    .unwrap();
    sim.add(Refinement { config: mesh }).unwrap();
    let model = sim.world.resource::<GasModel>().clone();
    let state = StateFormulas::from_deck(&mut sim.deck, "initial", &model).unwrap();
    sim.world.insert_resource(InitialGas(Box::new(state)));
    sim.system_in(Initialise::State, fill_initial_gas);
    sim.finish_setup().and_then(|()| sim.initialise()).unwrap();
    for _ in 0..2 {
        sim.root_step(1.0).unwrap();
    }
    sim
}

/// Compiles the criteria `list` for the simulation.
fn criteria(sim: &Engine, list: &str) -> Criteria {
    let text = format!("[mesh]\nmax_level = 2\nflag_buffer = [1, 2]\nrefine = [{list}]\n");
    let mut deck = Deck::parse("list.toml", &text).unwrap();
    let config: MeshConfig = deck.table("mesh").unwrap();
    let model = sim.world.resource::<GasModel>();
    Criteria::compile(&config, &deck, model).unwrap()
}

/// Returns the sectors that the patches of `level` request by `list`, in row order.
fn sectors(sim: &mut Engine, list: &str, level: usize) -> Vec<u32> {
    let made = criteria(sim, list);
    sim.world.insert_resource(made);
    let domain = &sim.world.resource::<Topology>().domain;
    let cell_width = domain.cell_width(level);
    sim.world.insert_resource(LevelClock {
        level,
        cell_width,
        ..LevelClock::default()
    });
    let fields = sim.world.resource::<Stores>().all();
    refresh_halo(&mut sim.world, level, &fields).unwrap();
    let marked =
        |rows: LevelRows, gas: Read<Gas, 2>, settings: Res<Settings>, list: Res<Criteria>| {
            let buffer = settings.mesh.flag_buffer[rows.level()] as usize;
            let gas = gas.get(list.0.reach()).unwrap();
            gas.mark_by_list(&rows, buffer, &list.0)
        };
    sim.world.run_system_once(marked).unwrap()
}

/// Compares the flags of lists of `size` criteria, and of an empty list.
fn agree(domain: &str, precision: &str, size: usize) {
    let mut host = simulation(domain, precision, "cpu");
    let mut device = simulation(domain, precision, "emulated");
    let patches = |sim: &Engine, level| sim.world.resource::<Topology>().rows(level).len();
    assert!(patches(&host, 1) > 0 && patches(&host, 2) > 0);
    let most = 27 * (patches(&host, 0) + patches(&host, 1));
    let lists = CRITERIA.chunks(size).map(|list| list.join(",\n"));
    for list in lists.chain([String::new()]) {
        let mut found = 0;
        for level in 0..2 {
            let wanted = sectors(&mut host, &list, level);
            let flagged = sectors(&mut device, &list, level);
            assert_eq!(flagged, wanted, "{list}, level {level}");
            found += wanted.iter().map(|s| s.count_ones()).sum::<u32>() as usize;
        }
        let some = found > 0 && found < most;
        assert!(some || list.is_empty(), "{list}: {found} of {most} sectors");
    }
    check_faults(&device.world).unwrap();
}

#[test]
fn double_precision_flags_between_walls_are_the_hosts() {
    agree(BOUNDED, "double", 1);
}

#[test]
fn single_precision_flags_between_walls_are_the_hosts() {
    agree(BOUNDED, "single", 3);
}

#[test]
fn flags_in_a_periodic_box_are_the_hosts() {
    agree(PERIODIC, "double", 4);
}

/// More fields than shared memory holds.
#[test]
fn many_fields_are_kept_in_global_memory() {
    let field = |n: usize| {
        format!("{{ criterion = \"lohner\", field = \"density + {n}*speed\", threshold = 0.8 }}")
    };
    let list: Vec<String> = (0..20).map(field).collect();
    let list = list.join(", ");
    let mut host = simulation(BOUNDED, "double", "cpu");
    let mut device = simulation(BOUNDED, "double", "emulated");
    for level in 0..2 {
        let wanted = sectors(&mut host, &list, level);
        assert_eq!(sectors(&mut device, &list, level), wanted);
        assert!(wanted.iter().any(|&sectors| sectors != 0));
    }
    let kept = device.world.resource::<Criteria>().0.text().kept;
    let device = device.world.resource::<ComputeDevice>();
    let limits = device.device.as_ref().unwrap().limits();
    assert!(kept * LIST_BLOCK * 8 > limits.shared_per_block as usize);
}

/// Formulas that are not a number stop the run with the same message.
#[test]
fn faults_of_criteria_have_the_hosts_message() {
    for list in [
        r#"{ criterion = "formula", when = "sqrt(x + 0.48)" }"#,
        r#"{ criterion = "lohner", field = "ln(x + 0.48)", threshold = 0.5 }"#,
    ] {
        let message = |device: &str| {
            let mut sim = simulation(BOUNDED, "double", device);
            sectors(&mut sim, list, 0);
            check_faults(&sim.world).unwrap_err().to_string()
        };
        let [host, device] = ["cpu", "emulated"].map(message);
        let (words, place) = host.split_once("at (").expect("a place");
        assert!(device.starts_with(words), "{device}");
        let same = |message: &str| message.contains("-0.484375,") && message.contains("t = ");
        assert!(same(&host) && same(&device), "{place}, {device}");
    }
}

/// A field that several criteria read is stored in a block once.
#[test]
fn fields_are_stored_once() {
    let sim = simulation(PERIODIC, "single", "cpu");
    let count = |list: &str| criteria(&sim, list).0.text().kept;
    assert_eq!(count(CRITERIA[0]), 0);
    assert_eq!(count(r#"{ criterion = "vorticity", threshold = 0.1 }"#), 3);
    let twice = r#"{ criterion = "gradient", field = "pressure", threshold = 0.1 },
        { criterion = "lohner", field = "pressure", threshold = 0.5 },
        { criterion = "gradient", field = "velocity_y", threshold = 0.5 },
        { criterion = "vorticity", threshold = 0.1 }"#;
    assert_eq!(count(twice), 4);
}
