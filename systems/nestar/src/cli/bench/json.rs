//! JSON output of benchmark results.
//!
//! Schema 2 is an object with `schema`, `date`, `program`, `machine`, `device` and `results`, a list with one object per
//! case. Units are bytes, seconds and 1/s; a value that was not measured is `null`. Changes of meaning raise `schema`;
//! additional keys do not.

use super::measure::{KernelProfile, Measurement};
use super::text;
use nestar::App;
use nestar::engine::device::DeviceCounters;
use serde_json::{Map, Value, json};
use std::time::SystemTime;

/// Returns all results.
pub fn document(app: &App, measurements: &[Measurement]) -> Value {
    let build = app.build_info();
    let (model, memory) = text::host();
    let machine = measurements.first().map(|m| &m.machine);
    json!({
        "schema": 2,
        "date": humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        "program": { "version": build.version, "commit": build.commit, "flags": build.flags },
        "machine": {
            "cpu": model,
            "threads": machine.map(|p| p.threads),
            "memory_bytes": memory,
        },
        "device": machine.map(|p| p.device.clone()),
        "ranks": machine.map(|p| p.ranks),
        "note": machine.and_then(|p| p.note.clone()),
        "results": measurements.iter().map(result).collect::<Vec<_>>(),
    })
}

/// Returns the results of one case.
fn result(m: &Measurement) -> Value {
    let run = &m.timed.run;
    let device = m.timed.device.as_ref();
    json!({
        "case": m.case,
        "root_cells": m.cells,
        "precision": m.precision,
        "cell_updates_per_second": m.timed.rate(),
        "cell_updates": run.cell_updates,
        "wall_seconds": m.timed.wall,
        "set_up_seconds": m.set_up,
        "warm_up_steps": m.warm_up,
        "root_steps": m.steps,
        "level_steps": run.level_steps,
        "regrids": run.regrids,
        "first_order_cells": run.fallback_cells,
        "retried_steps": run.retried_steps,
        "sub_steps_per_cell": run.mean_subcycles(),
        "patches": m.patches,
        "cells": m.all_cells(),
        "plugin_seconds": times(m),
        "device_busy_share": m.busy(),
        "host_share": m.busy().map(|busy| 1.0 - busy),
        "memory": {
            "fields_bytes": m.memory.fields,
            "resident_bytes": m.memory.resident,
            "device_free_bytes": m.memory.device.map(|d| d.free),
            "device_total_bytes": m.memory.device.map(|d| d.total),
        },
        "traffic": device.map(|device| json!({
            "per_root_step": traffic(device, m.steps),
            "per_level_step": traffic(device, run.level_steps),
        })),
        "imbalance": run.work.imbalance(m.machine.ranks),
        "halos": halos(m),
        "profile": m.profile.as_ref().map(profile),
    })
}

/// Returns the halo traffic of the first rank; `None` on a single rank.
fn halos(m: &Measurement) -> Option<Value> {
    let halos = &m.timed.halos;
    (m.machine.ranks > 1).then(|| {
        json!({
            "way": m.machine.link,
            "exchanges": halos.exchanges,
            "bytes_sent": halos.bytes_sent,
            "bytes_received": halos.bytes_received,
            "waited_seconds": halos.waited,
        })
    })
}

/// Returns the seconds of each plugin, the mesh and the output.
fn times(m: &Measurement) -> Map<String, Value> {
    let times = m.timed.times.iter();
    times
        .map(|(name, seconds)| (name.clone(), json!(seconds)))
        .collect()
}

fn traffic(device: &DeviceCounters, steps: u64) -> Value {
    let per = |count: u64| count as f64 / steps.max(1) as f64;
    json!({
        "launches": per(device.launches),
        "synchronisations": per(device.synchronisations),
        "allocations": per(device.allocations),
        "bytes_up": per(device.bytes_up),
        "bytes_down": per(device.bytes_down),
    })
}

fn profile(profile: &KernelProfile) -> Value {
    let kernels = profile.kernels.iter().map(|kernel| {
        json!({
            "name": kernel.name,
            "launches": kernel.launches,
            "seconds": kernel.seconds,
            "share": kernel.seconds / profile.seconds(),
            "cells_per_second": kernel.cells_per_second,
            "bytes_per_second": kernel.bytes_per_second,
        })
    });
    json!({
        "wall_seconds": profile.wall,
        "cell_updates": profile.cell_updates,
        "device_seconds": profile.seconds(),
        "halo_seconds": profile.link.seconds,
        "exposed_halo_seconds": profile.link.exposed,
        "kernels": kernels.collect::<Vec<_>>(),
    })
}
