//! The mesh on a device against the CPU's, bit for bit: tables, gathers, interpolation, averages, flux correction, totals,
//! transfers and maps, on random hierarchies with random fields and all kinds of faces.

mod boundary_rule;
mod fluxes;
mod gather;
mod host_and_device;

use bevy_ecs::system::RunSystemOnce;
use host_and_device::{COMPONENTS, Case, Element, Fluid, LEVELS, Twins};
use nestar::engine::comm::exchange::refresh_halo;
use nestar::engine::comm::{DiagnosticColumns, Reduce, totals};
use nestar::engine::data::LevelRows;
use nestar::engine::device::Device;
use nestar::engine::step::regrid::restrict;
use nestar::kernels::mesh::prolong::SlopeLimiter;
use nestar::kernels::mesh::{COARSER, OUTSIDE};
use nestar::prelude::{
    Conserved, Place, Read, Real, ResMut, Resource, Write, device, kinetic_energy,
};
use nestar::snapshot::Values;
use nestar::systems::register::Register as _;
use nestar_tests::devices;

/// Boxes, faces and limiters of all kinds.
const CASES: [Case; 4] = [
    Case {
        cells: [24, 16, 8],
        faces: ["pp", "pp", "pp"],
        limiter: SlopeLimiter::MonotonizedCentral,
        seed: 1,
    },
    Case {
        cells: [8, 16, 24],
        faces: ["or", "pp", "rw"],
        limiter: SlopeLimiter::VanLeer,
        seed: 2,
    },
    Case {
        cells: [16, 8, 16],
        faces: ["ww", "ro", "ow"],
        limiter: SlopeLimiter::Minmod,
        seed: 3,
    },
    Case {
        cells: [8, 8, 8],
        faces: ["wr", "ww", "rw"],
        limiter: SlopeLimiter::MonotonizedCentral,
        seed: 4,
    },
];

/// A test of a case.
type Test<'a> = &'a dyn Fn(&Case, &Device);

/// Runs a test, which is given for double and single precision, on every case and the emulated device, each case in one
/// precision, as it has its own kernels in each. Skips, with a printed reason and `false`, where the device is not available.
fn on_all(double: Test, single: Test) -> bool {
    let device = devices::open();
    match &device {
        Ok(device) => {
            let tests = [double, single, single, double];
            for (case, test) in CASES.iter().zip(tests) {
                test(case, device);
            }
        }
        Err(error) => println!("skipped: {error}"),
    }
    device.is_ok()
}

/// Checks that the tables on the device equal those of the host.
fn same_tables(twins: &Twins) {
    let (topology, tables) = (twins.topology(), twins.tables());
    for level in 0..LEVELS {
        assert_eq!(tables.count(level), topology.rows(level).len());
        for &row in topology.rows(level) {
            let found = tables.row(row).expect("the device gives its tables");
            let neighbours = topology.neighbours(row);
            let codes = i32::from(neighbours.contains(&COARSER))
                + 2 * i32::from(neighbours.contains(&OUTSIDE));
            let [x, y, z] = topology.index(row);
            let number = |row: Option<u32>| row.map_or(-1, |row| row as i32);
            assert_eq!(found.0[..27], neighbours[..], "row {row} of level {level}");
            assert_eq!(found.0[27], codes, "row {row} of level {level}");
            assert_eq!(found.1, number(topology.parent(row)));
            assert_eq!(found.2, number(topology.first_child(row)));
            assert_eq!(found.3, [x, y, z, level as i32]);
        }
    }
}

fn regridding<R: Element>(case: &Case, device: &Device) {
    let twins = Twins::refined::<R>(case, device);
    let topology = twins.topology();
    assert!(!topology.rows(2).is_empty(), "the case refines twice");
    let beside = |code| {
        let mut rows = (1..LEVELS).flat_map(|level| topology.rows(level));
        rows.any(|&row| topology.neighbours(row).contains(&code))
    };
    assert!(beside(COARSER), "the case has coarse-fine faces");
    assert!(
        beside(OUTSIDE) || case.faces == ["pp"; 3],
        "the case refines at walls"
    );
    same_tables(&twins);
    for level in 0..LEVELS {
        twins.same::<R>(level, "interpolated");
    }
}

#[test]
fn tables_and_new_patches_are_the_same() {
    on_all(&regridding::<f64>, &regridding::<f32>);
}

fn averaging<R: Element>(case: &Case, device: &Device) {
    let mut twins = Twins::refined::<R>(case, device);
    for level in (0..LEVELS - 1).rev() {
        twins.clock(level, 0.1);
        let fields = [twins.operations()];
        twins.each(|sim| {
            refresh_halo(&mut sim.world, level, &fields).expect("there is no other rank");
            sim.world
                .run_system_once(restrict::<Fluid>)
                .expect("the system runs")
                .expect("copies are up to date");
        });
        twins.same::<R>(level, "averaged");
    }
}

#[test]
fn averages_are_the_same() {
    on_all(&averaging::<f64>, &averaging::<f32>);
}

fn adding<R: Element>(case: &Case, device: &Device) {
    let twins = Twins::refined::<R>(case, device);
    let sums = [0, 1].map(|n| totals(&twins.sims[n].world, &twins.operations()));
    let [host, device] = sums.map(|sums| sums.expect("the device adds up"));
    assert_eq!(host.len(), COMPONENTS);
    for (a, b) in host.iter().zip(&device) {
        assert_eq!(a.to_bits(), b.to_bits(), "{host:?} {device:?}");
    }
}

#[test]
fn totals_are_the_same() {
    on_all(&adding::<f64>, &adding::<f32>);
}

fn moving<R: Element>(case: &Case, device: &Device) {
    let mut twins = Twins::refined::<R>(case, device);
    let operations = twins.operations();
    let rows = twins.topology().rows(1).to_vec();
    // every second patch, in the other precision than one of the two runs has
    let some: Vec<u32> = rows.iter().copied().step_by(2).collect();
    let values = (0..some.len() * 512)
        .map(|n| 1.0 + n as f32 / 7.0)
        .collect();
    let values = Values::F32(values);
    twins.each(|sim| {
        let loaded = operations.load(&mut sim.world, 1, 4, &some, &values);
        loaded.expect("a load");
    });
    twins.same::<R>(1, "loaded");
    for c in 0..COMPONENTS {
        let [host, device] = [0, 1].map(|n| operations.of(&twins.sims[n].world).save(1, c, &rows));
        assert!(
            host.expect("values") == device.expect("values"),
            "component {c}"
        );
    }
}

#[test]
fn uploads_and_downloads_are_identical() {
    on_all(&moving::<f64>, &moving::<f32>);
}

/// Drag on the gas; the scalar is unchanged.
#[device]
fn slow<R: Real>(u: Conserved<R>, rate: R, dt: R) -> Conserved<R> {
    let keep = 1.0 / (1.0 + rate * dt);
    let kinetic = kinetic_energy(u);
    let m = u.momentum;
    Conserved {
        density: u.density,
        momentum: [keep * m[0], keep * m[1], keep * m[2]],
        energy: u.energy - kinetic * (1.0 - keep * keep),
    }
}

fn mapping<R: Element>(case: &Case, device: &Device) {
    let mut twins = Twins::refined::<R>(case, device);
    let before = twins.same::<R>(1, "at first");
    twins.clock(1, 0.1);
    twins.each(|sim| {
        let map = |rows: LevelRows, mut pool: Write<Fluid>| {
            pool.update::<slow>(&rows, (), &[0.3, 0.1]);
        };
        sim.world.run_system_once(map).expect("the system runs");
    });
    let after = twins.same::<R>(1, "mapped");
    assert!(before.iter().zip(&after).any(|(a, b)| a.bits() != b.bits()));
    twins.same::<R>(0, "left alone");
}

#[test]
fn maps_of_cells_are_the_same() {
    on_all(&mapping::<f64>, &mapping::<f32>);
}

/// All kinds of function parameters: numbers in both precisions, integers, arrays.
#[device]
struct Reaction<R> {
    rates: [R; 2],
    exact: f64,
    rounds: i32,
}

/// Gas with its scalar, and the position.
#[device]
#[derive(Clone, Copy)]
struct Dyed<R: Real> {
    gas: Conserved<R>,
    dye: R,
}

/// Changes the scalar by every value that a function may read.
#[device]
fn react<R: Real>(u: Dyed<R>, at: &Place<R>, p: &Reaction<R>) -> Dyed<R> {
    let mut v = u;
    for n in 0..p.rounds {
        v.dye += p.rates[(n % 2) as usize] * at.centre[0] * at.width[1] * at.dt;
    }
    v.dye += R::from_f64(p.exact * at.time) * R::from_i32(at.index[2] + at.level);
    v.gas.energy = u.gas.energy + 0.01 * v.dye * v.dye;
    v
}

/// A value whose sum depends on the order of summation.
#[device]
fn energy_of_dye<R: Real>(u: Dyed<R>, at: &Place<R>, scale: R) -> R {
    scale * u.dye * u.gas.energy / (at.centre[1] + 1.0)
}

#[device]
fn dye_above<R: Real>(u: Dyed<R>, p: &Reaction<R>) -> bool {
    u.dye > p.rates[0] && u.dye < p.rates[1]
}

const REACTION: Reaction<f64> = Reaction {
    rates: [0.55, 0.6],
    exact: 0.1,
    rounds: 3,
};

#[derive(Resource, Default)]
struct Found {
    smallest: Vec<u64>,
    sectors: Vec<Vec<u32>>,
}

fn functions_of_cells<R: Element>(case: &Case, device: &Device) {
    let mut twins = Twins::refined::<R>(case, device);
    twins.each(|sim| sim.world.insert_resource(Found::default()));
    for level in 0..host_and_device::LEVELS {
        if twins.topology().rows(level).is_empty() {
            continue;
        }
        twins.clock(level, 0.1);
        twins.each(|sim| {
            let mark = |rows: LevelRows, pool: Read<Fluid>, mut found: ResMut<Found>| {
                let sectors = pool.mark::<dye_above>(&rows, (), 3, &REACTION);
                found.sectors.push(sectors);
            };
            let map = |rows: LevelRows, mut pool: Write<Fluid>| {
                pool.update::<react>(&rows, (), &REACTION);
            };
            let reduce = |rows: LevelRows, pool: Read<Fluid>, mut found: ResMut<Found>| {
                let smallest = pool.reduce::<energy_of_dye>(&rows, (), &[0.7]);
                found.smallest.push(smallest.to_bits());
            };
            sim.world.run_system_once(mark).expect("the system runs");
            sim.world.run_system_once(map).expect("the system runs");
            sim.world.run_system_once(reduce).expect("the system runs");
            for reduce in [Reduce::Integral, Reduce::Largest] {
                sim.column::<Fluid, energy_of_dye>("dye", reduce, [0.3]);
            }
        });
        twins.same::<R>(level, "reacted");
    }
    let found = twins.sims.each_mut().map(|sim| {
        let columns = DiagnosticColumns::values(&mut sim.world).unwrap_or_else(|e| panic!("{e}"));
        let found = sim.world.resource::<Found>();
        let bits = columns.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        (found.smallest.clone(), found.sectors.clone(), bits)
    });
    assert_eq!(found[0], found[1]);
    assert!(found[0].1.iter().flatten().any(|&s| s != 0));
    assert!(found[0].2.iter().all(|&bits| f64::from_bits(bits) > 0.0));
}

#[test]
fn functions_of_cells_are_the_same() {
    on_all(&functions_of_cells::<f64>, &functions_of_cells::<f32>);
}
