//! JSON output of predictions.
//!
//! Schema 3 is an object with `schema`, `program`, `hierarchy`, `machine` and `plans`, a list with one object per number of
//! ranks. Units are bytes, seconds and 1/s. Lists by rank begin with rank 0, lists by level with level 0. Traffic refers to
//! one step of its level. Changes of meaning raise `schema`; additional keys do not.

use super::PlanInput;
use nestar::App;
use nestar::engine::comm::estimate::{ExtraTraffic, LevelLoad, PartitionEstimate};
use nestar::engine::mesh::CELLS;
use serde_json::{Value, json};

/// Returns all results.
pub fn document(app: &App, subject: &PlanInput, estimates: &[PartitionEstimate]) -> Value {
    let build = app.build_info();
    let (outline, sizes, machine) = (&subject.outline, &subject.sizes, &subject.machine);
    let plan = |estimate: &PartitionEstimate| {
        let ranks: Vec<usize> = (0..estimate.ranks).collect();
        let mut plan = plan(subject, estimate, &ranks);
        plan["by_rank"] = ranks
            .iter()
            .map(|&rank| by_rank(subject, estimate, rank))
            .collect();
        plan
    };
    let waits =
        |of: fn(&ExtraTraffic) -> f64| subject.root_step.waits.iter().map(of).collect::<Vec<_>>();
    json!({
        "schema": 3,
        "program": { "version": build.version, "commit": build.commit, "flags": build.flags },
        "hierarchy": {
            "origin": subject.origin,
            "patches": (0..outline.levels()).map(|level| outline.patches(level)).collect::<Vec<_>>(),
            "cell_bytes": sizes.cell,
            "face_bytes": sizes.face,
            "held_row_bytes": subject.row_bytes,
            "layers": subject.layers,
            "items": subject.particles.lines,
            "item_bytes": subject.particles.bytes,
            "steps": subject.root_step.steps,
            "regrids_per_root_step": subject.root_step.regrids,
            "exchanges_per_root_step": waits(|w| w.exchanges),
            "host_bytes_per_root_step": waits(|w| w.host_bytes),
        },
        "machine": {
            "cells_per_second": machine.rate,
            "rate_origin": subject.rate_from,
            "latency_seconds": machine.latency,
            "bytes_per_second": machine.bandwidth,
            "step_seconds": machine.step,
            "exchange_seconds": machine.exchange,
            "host_bytes_per_second": machine.host,
            "regrid_seconds_per_copy": machine.regrid,
        },
        "plans": estimates.iter().map(plan).collect::<Vec<_>>(),
    })
}

/// Returns the results for one number of ranks; minimum, mean and maximum are taken over `ranks`.
pub fn plan(subject: &PlanInput, estimate: &PartitionEstimate, ranks: &[usize]) -> Value {
    let over = |figure: &dyn Fn(usize) -> u64| spread(ranks.iter().map(|&rank| figure(rank)));
    let times = estimate.times(&subject.sizes, &subject.machine);
    let updates = over(&|rank| estimate.weight(rank) * CELLS as u64);
    let level = |level| by_level(subject, estimate, ranks, level);
    json!({
        "ranks": estimate.ranks,
        "empty_ranks": estimate.ranks - estimate.busy().len(),
        "imbalance": updates["imbalance"],
        "imbalance_of_steps": estimate.imbalance(),
        "efficiency": {
            "without_messages": times.efficiency(times.balanced),
            "overlapped": times.efficiency(times.overlapped),
            "waiting": times.efficiency(times.waiting),
        },
        "root_step_seconds": times,
        "cell_updates_per_root_step": updates,
        "neighbours": over(&|rank| u64::from(estimate.neighbours[rank])),
        "items": over(&|rank| estimate.items(rank)),
        "memory_bytes": over(&|rank| subject.memory(estimate, rank)),
        "levels": (0..estimate.levels).map(level).collect::<Vec<_>>(),
    })
}

fn by_level(
    subject: &PlanInput,
    estimate: &PartitionEstimate,
    ranks: &[usize],
    level: usize,
) -> Value {
    let over = |figure: &dyn Fn(usize) -> u64| spread(ranks.iter().map(|&rank| figure(rank)));
    let load = |rank| estimate.load(rank, level);
    let [sent, received] = [0, 1].map(|side| {
        let traffic = |rank| estimate.traffic(rank, level, &subject.sizes)[side];
        json!({
            "messages": over(&|rank| traffic(rank).messages),
            "bytes": over(&|rank| traffic(rank).bytes),
        })
    });
    let patches = over(&|rank| load(rank).patches);
    json!({
        "level": level,
        "imbalance": patches["imbalance"],
        "patches": patches,
        "cells": over(&|rank| load(rank).patches * CELLS as u64),
        "copies": over(&|rank| load(rank).halo_patches()),
        "halo_exchanges": estimate.exchanges(level),
        "sent": sent,
        "received": received,
    })
}

fn by_rank(subject: &PlanInput, estimate: &PartitionEstimate, rank: usize) -> Value {
    let levels = estimate.rank(rank).iter().enumerate();
    let part = |(level, load): (usize, &LevelLoad)| {
        let [sent, received] = estimate.traffic(rank, level, &subject.sizes);
        let mut part = json!(load);
        part["cells"] = json!(load.patches * CELLS as u64);
        part["copies"] = json!(load.halo_patches());
        (part["sent"], part["received"]) = (json!(sent), json!(received));
        part
    };
    json!({
        "neighbours": estimate.neighbours[rank],
        "memory_bytes": subject.memory(estimate, rank),
        "cell_updates_per_root_step": estimate.weight(rank) * CELLS as u64,
        "levels": levels.map(part).collect::<Vec<_>>(),
    })
}

/// Returns minimum, mean, maximum and imbalance (maximum over mean; `null` if all are 0).
fn spread(values: impl ExactSizeIterator<Item = u64> + Clone) -> Value {
    let mean = values.clone().sum::<u64>() as f64 / values.len() as f64;
    let most = values.clone().max().unwrap_or(0) as f64;
    let imbalance = (mean > 0.0).then(|| most / mean);
    let least = values.min().unwrap_or(0) as f64;
    json!({ "least": least, "mean": mean, "most": most, "imbalance": imbalance })
}

#[cfg(test)]
mod tests {
    use super::spread;
    use serde_json::{Value, json};

    #[test]
    fn a_spread_contains_the_imbalance() {
        let figure = json!({ "least": 1.0, "mean": 3.0, "most": 6.0, "imbalance": 2.0 });
        assert_eq!(spread([1, 2, 3, 6].into_iter()), figure);
        assert_eq!(spread([0, 0].into_iter())["imbalance"], Value::Null);
    }
}
