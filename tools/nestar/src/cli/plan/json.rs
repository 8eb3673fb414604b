//! The forecast for programs.
//!
//! `schema` is 2: an object with `schema`, `program`, `hierarchy`, `machine` and `plans`, a list with one object a number of
//! ranks. Bytes are bytes, times are seconds, rates are per second. Lists by rank begin with rank 0, lists by level with
//! level 0; traffic is that of one step of its level. A change of meaning raises `schema`; further keys do not.

use super::{Spread, Subject};
use nestar::assemble;
use nestar::engine::mesh::CELLS;
use nestar::engine::ranks::forecast::{Forecast, LevelTraffic, Traffic};
use serde_json::{Value, json};

/// All figures.
pub fn document(subject: &Subject, forecasts: &[Forecast]) -> Value {
    let build = assemble::build_info();
    let (topology, machine) = (&subject.topology, &subject.machine);
    let levels = 0..=topology.finest();
    json!({
        "schema": 2,
        "program": { "version": build.version, "commit": build.commit, "flags": build.flags },
        "hierarchy": {
            "origin": subject.origin,
            "patches": levels.map(|level| topology.rows(level).len()).collect::<Vec<_>>(),
            "row_bytes": subject.sizes.row,
            "layered_cell_bytes": subject.sizes.layered,
            "face_bytes": subject.sizes.face,
            "held_row_bytes": subject.sizes.held,
            "layers": subject.layers,
        },
        "machine": {
            "cells_per_second": machine.rate,
            "latency_seconds": machine.latency,
            "bytes_per_second": machine.bandwidth,
        },
        "plans": forecasts.iter().map(|forecast| plan(subject, forecast)).collect::<Vec<_>>(),
    })
}

fn plan(subject: &Subject, forecast: &Forecast) -> Value {
    let ranks = forecast.ranks;
    let times = forecast.times(&subject.sizes, &subject.machine);
    json!({
        "ranks": ranks,
        "imbalance": Spread::of(ranks, |rank| forecast.weight(rank)).imbalance(),
        "imbalance_of_steps": forecast.imbalance(),
        "efficiency": {
            "without_messages": times.efficiency(times.balanced),
            "overlapped": times.efficiency(times.overlapped),
            "waiting": times.efficiency(times.waiting),
        },
        "root_step_seconds": {
            "ideal": times.ideal,
            "without_messages": times.balanced,
            "overlapped": times.overlapped,
            "waiting": times.waiting,
        },
        "neighbours": spread(Spread::of(ranks, |rank| u64::from(forecast.neighbours[rank]))),
        "memory_bytes": spread(Spread::of(ranks, |rank| forecast.memory(rank, &subject.sizes))),
        "levels": (0..forecast.levels).map(|level| by_level(subject, forecast, level)).collect::<Vec<_>>(),
        "by_rank": (0..ranks).map(|rank| by_rank(subject, forecast, rank)).collect::<Vec<_>>(),
    })
}

fn spread(spread: Spread) -> Value {
    json!({ "least": spread.least, "mean": spread.mean, "most": spread.most })
}

fn by_level(subject: &Subject, forecast: &Forecast, level: usize) -> Value {
    let over = |of: &dyn Fn(usize) -> u64| spread(Spread::of(forecast.ranks, of));
    let sides = [0, 1].map(|side| {
        let traffic = |rank| forecast.traffic(rank, level, &subject.sizes)[side];
        json!({
            "messages": over(&|rank| traffic(rank).messages),
            "bytes": over(&|rank| traffic(rank).bytes),
        })
    });
    let patches = Spread::of(forecast.ranks, |rank| forecast.load(rank, level).patches);
    let [sent, received] = sides;
    json!({
        "level": level,
        "imbalance": patches.imbalance(),
        "patches": spread(patches),
        "cells": over(&|rank| forecast.load(rank, level).patches * CELLS as u64),
        "copies": over(&|rank| forecast.load(rank, level).copies()),
        "halo_exchanges": forecast.exchanges(level),
        "sent": sent,
        "received": received,
    })
}

fn by_rank(subject: &Subject, forecast: &Forecast, rank: usize) -> Value {
    let levels = forecast.rank(rank).iter().enumerate().map(|(level, load)| {
        let [sent, received] = forecast.traffic(rank, level, &subject.sizes);
        json!({
            "patches": load.patches,
            "cells": load.patches * CELLS as u64,
            "copies": load.copies(),
            "held_rows": load.held,
            "sent": total(sent),
            "received": total(received),
            "halo": traffic(&load.halo),
            "averages": traffic(&load.averages),
            "fluxes": traffic(&load.fluxes),
        })
    });
    json!({
        "neighbours": forecast.neighbours[rank],
        "memory_bytes": forecast.memory(rank, &subject.sizes),
        "cell_updates_per_root_step": forecast.weight(rank) * CELLS as u64,
        "levels": levels.collect::<Vec<_>>(),
    })
}

fn total(traffic: LevelTraffic) -> Value {
    json!({ "messages": traffic.messages, "bytes": traffic.bytes })
}

/// One exchange: messages, and the rows or faces in them.
fn traffic(traffic: &Traffic) -> Value {
    let [sent, received] = [traffic.sent, traffic.received]
        .map(|flow| json!({ "messages": flow.messages, "items": flow.items }));
    json!({ "sent": sent, "received": received })
}
