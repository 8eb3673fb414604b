//! Flux registers and the correction.

use super::host_and_device::{COMPONENTS, Case, Element, Fluid, LEVELS, Twins};
use super::on_all;
use bevy_ecs::system::RunSystemOnce;
use nestar::device_runtime::{Address, device};
use nestar::engine::comm::cells_repaired_between_levels;
use nestar::engine::data::FineSide;
use nestar::engine::device::{Buffer, Device, LaunchShape};
use nestar::engine::step::regrid::correct;
use nestar::kernels::mesh::fluxes::{FACE, QUARTER};
use nestar::kernels::mesh::parameters::FluxRegisterView;
use std::cell::Cell;

/// Values of a face of a patch: as the coarse side, then as the fine side.
const COARSE: usize = COMPONENTS * FACE;
const FINE: usize = COMPONENTS * QUARTER;

/// Puts the fluxes of all faces into the registers.
const KERNEL: &str = "
KERNEL(put_fluxes, FLUXES<mesh::REAL>) {
  constexpr int COARSE = mesh::COMPONENTS * mesh::FACE, FINE = mesh::COMPONENTS * mesh::QUARTER;
  const int n = launch::block() / 6, face = launch::block() % 6, at = 6 * p.rows[n] + face;
  const int coarse = p.registers.coarse_slot ? p.registers.coarse_slot[at] : -1;
  const int fine = p.registers.fine_slot ? p.registers.fine_slot[at] : -1;
  if (coarse >= 0)
    EACH(i, COARSE) p.registers.coarse_flux[(rs::i64)coarse * COARSE + i] = p.coarse[(rs::i64)launch::block() * COARSE + i];
  if (fine >= 0)
    EACH(i, FINE) p.registers.attempt[(rs::i64)fine * FINE + i] = p.fine[(rs::i64)launch::block() * FINE + i];
}
";

#[device]
struct Fluxes<R> {
    registers: FluxRegisterView<R>,
    rows: Address<i32>,
    coarse: Address<R>,
    fine: Address<R>,
}

/// Random fluxes through all faces of a level's patches, `[row][face]`: some steady, a few very large.
fn fluxes<R: Element>(twins: &mut Twins, level: usize, length: usize) -> Vec<R> {
    let faces = 6 * twins.topology().rows(level).len();
    let mut values = Vec::with_capacity(faces * length);
    for _ in 0..faces {
        let size = twins.random.pick(&[0.0, 1e-3, 1e-3, 0.1]);
        values.extend((0..length).map(|_| R::lit(size * twins.random.between(-1.0, 1.0))));
    }
    values
}

fn put_on_host<R: Element>(twins: &Twins, level: usize, coarse: &[R], fine: &[R]) {
    let registers = &twins.pools()[0].typed::<R>().registers;
    for (n, &row) in twins.topology().rows(level).iter().enumerate() {
        for face in 0..6 {
            let at = 6 * n + face;
            // SAFETY: nobody else uses the registers.
            if let Some(register) = unsafe { registers.coarse_mut(level, row, face) } {
                register.copy_from_slice(&coarse[at * COARSE..(at + 1) * COARSE]);
            }
            // SAFETY: as above.
            let attempt = unsafe { registers.fine_mut(level, row, face, FineSide::Tentative) };
            if let Some(register) = attempt {
                register.copy_from_slice(&fine[at * FINE..(at + 1) * FINE]);
            }
        }
    }
}

fn put_on_device<R: Element>(twins: &Twins, level: usize, coarse: &[R], fine: &[R]) {
    let (pool, device) = (twins.pools()[1].device(), &twins.device);
    let kernel = KERNEL.replace("FLUXES", &Fluxes.path());
    let module = device.compile("fluxes", &pool.program(&[Fluxes], &[&kernel]));
    let kernel = module
        .and_then(|m| m.kernel("put_fluxes"))
        .unwrap_or_else(|e| panic!("{e}"));
    let upload = |values: &[R]| -> Buffer<R> {
        let buffer = device.buffer(values.len()).expect("memory");
        device.upload(&buffer, 0, values).expect("an upload");
        buffer
    };
    let (coarse, fine) = (upload(coarse), upload(fine));
    let parameters = Fluxes {
        registers: pool.register_view(level),
        rows: twins.tables().rows(level).into(),
        coarse: coarse.address().into(),
        fine: fine.address().into(),
    };
    let shape = LaunchShape::of(6 * twins.tables().count(level), 1);
    device
        .launch(&kernel, shape, &parameters)
        .expect("a launch");
}

/// A step of `level` with its fluxes, those of the finer levels inside it, and the correction.
fn advance<R: Element>(twins: &mut Twins, level: usize, dt: f64) {
    if twins.topology().rows(level).is_empty() {
        return;
    }
    let (coarse, fine) = (
        fluxes::<R>(twins, level, COARSE),
        fluxes::<R>(twins, level, FINE),
    );
    put_on_host(twins, level, &coarse, &fine);
    put_on_device(twins, level, &coarse, &fine);
    twins.step::<R>(level, dt);
    if level + 1 == LEVELS {
        return;
    }
    let parts: &[f64] = if level == 0 {
        &[0.25, 0.5, 0.25]
    } else {
        &[0.5, 0.5]
    };
    for part in parts {
        advance::<R>(twins, level + 1, part * dt);
    }
    twins.clock(level, dt);
    twins.each(|sim| {
        sim.world
            .run_system_once(correct::<Fluid>)
            .expect("the system runs")
            .expect("the device works");
    });
    twins.same::<R>(level, "corrected");
}

/// Returns the number of flux corrections that fell back to first order.
fn correcting<R: Element>(case: &Case, device: &Device) -> u64 {
    let mut twins = Twins::refined::<R>(case, device);
    advance::<R>(&mut twins, 0, 0.02);
    let repaired = |n: usize| cells_repaired_between_levels(&twins.sims[n].world);
    let [host, device] = [0, 1].map(|n| repaired(n).expect("the device adds up"));
    assert_eq!(host, device);
    host.corrections
}

#[test]
fn corrections_are_the_same() {
    let repaired = Cell::new(0);
    let add = |more: u64| repaired.set(repaired.get() + more);
    let ran = on_all(
        &|case, device| add(correcting::<f64>(case, device)),
        &|case, device| add(correcting::<f32>(case, device)),
    );
    assert!(
        !ran || repaired.get() > 0,
        "some corrections must be repaired"
    );
}
