//! Text output of predictions.

use super::{PlanInput, json};
use nestar::engine::comm::estimate::{ExtraTraffic, PartitionEstimate};
use nestar::engine::device::format_bytes;
use nestar::engine::mesh::CELLS;
use serde_json::Value;

/// Returns the whole report; empty ranks are excluded from the statistics.
pub fn report(subject: &PlanInput, estimates: &[PartitionEstimate]) -> String {
    let plan = |estimate: &PartitionEstimate| json::plan(subject, estimate, &estimate.busy());
    let plans: Vec<Value> = estimates.iter().map(plan).collect();
    let blocks: String = plans.iter().map(block).collect();
    let lines: String = plans.iter().map(line).collect();
    format!(
        "{}{blocks}\n\
         parallel efficiency without messages, with overlapped messages, and with blocking messages\n\n\
         {:>18} {:>11}\n  ranks {:>10} {:>11} {:>9} {:>9} {:>9}\n{lines}",
        head(subject),
        "imbalance",
        "memory",
        "of steps",
        "maximum",
        "none",
        "overlap",
        "blocking"
    )
}

fn head(subject: &PlanInput) -> String {
    let (outline, machine) = (&subject.outline, &subject.machine);
    let patches: Vec<usize> = (0..outline.levels()).map(|l| outline.patches(l)).collect();
    let by_level: Vec<String> = patches.iter().map(usize::to_string).collect();
    let particles: String = subject
        .particles
        .lines
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let root_step = &subject.root_step;
    let waits = |of: fn(&ExtraTraffic) -> f64| root_step.waits.iter().map(of).sum::<f64>();
    let steps: Vec<String> = root_step.steps.iter().map(u64::to_string).collect();
    format!(
        "{}: {} patches ({}), {} per patch\n\
         each rank: {:.3e} cell updates/s ({}), {:.3e} B/s in each direction, latency {:.3e} s\n\
         traffic is given per level step; level steps per root step: {}, {}\n\
         overhead on several ranks: {:.0} us per level step; {:.1} regrids per root step, {:.1} us per halo patch; {:.0} exchanges without \
         overlap, {:.0} us each; {} through host memory\n{particles}",
        subject.origin,
        patches.iter().sum::<usize>(),
        by_level.join(" "),
        format_bytes(CELLS as u64 * subject.sizes.cell),
        machine.rate,
        subject.rate_from,
        machine.bandwidth,
        machine.latency,
        steps.join(" "),
        subject.steps_from,
        1e6 * machine.step,
        root_step.regrids.iter().sum::<f64>(),
        1e6 * machine.regrid,
        waits(|w| w.exchanges),
        1e6 * machine.exchange,
        format_bytes(waits(|w| w.host_bytes) as u64),
    )
}

/// Returns the statistics for one number of ranks.
fn block(plan: &Value) -> String {
    let title = match number(&plan["ranks"]) {
        1.0 => "1 rank".to_string(),
        ranks => format!("{ranks} ranks"),
    };
    let mut text = format!(
        "\n{title:<34}{:>12}{:>12}{:>12}{:>11}\n",
        "minimum", "mean", "maximum", "max/mean"
    );
    if plan["empty_ranks"] != 0 {
        let empty = &plan["empty_ranks"];
        text += &format!(
            "{empty} ranks are empty because there are too few patches; statistics of the others:\n"
        );
    }
    for (n, level) in plan["levels"].as_array().into_iter().flatten().enumerate() {
        text += &row(&format!("level {n}: patches"), &level["patches"], rounded);
        if plan["ranks"] == 1 {
            continue;
        }
        text += &row("  halo patches", &level["copies"], rounded);
        for side in ["sent", "received"] {
            text += &row(
                &format!("  messages {side}"),
                &level[side]["messages"],
                rounded,
            );
            text += &row(&format!("  {side}"), &level[side]["bytes"], bytes);
        }
    }
    let updates = &plan["cell_updates_per_root_step"];
    text + &row("cell updates per root step", updates, rounded)
        + &row("neighbour ranks", &plan["neighbours"], rounded)
        + &particle_row(plan)
        + &row("memory", &plan["memory_bytes"], bytes)
}

/// Returns the row of particles, if there are any.
fn particle_row(plan: &Value) -> String {
    match number(&plan["items"]["most"]) > 0.0 {
        true => row("particles", &plan["items"], rounded),
        false => String::new(),
    }
}

fn row(name: &str, spread: &Value, show: fn(f64) -> String) -> String {
    let imbalance = spread["imbalance"].as_f64();
    let imbalance = imbalance.map_or("-".into(), |ratio| format!("{ratio:.2}"));
    let [least, mean, most] = ["least", "mean", "most"].map(|key| show(number(&spread[key])));
    format!("{name:<34}{least:>12}{mean:>12}{most:>12}{imbalance:>11}\n")
}

/// Returns a number of the results.
fn number(figure: &Value) -> f64 {
    figure.as_f64().unwrap_or(f64::NAN)
}

fn rounded(value: f64) -> String {
    if value < 1e9 && value.fract() != 0.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

fn bytes(value: f64) -> String {
    format_bytes(value as u64)
}

/// Returns one line of the table of efficiencies.
fn line(plan: &Value) -> String {
    let percent = |fraction: &Value| format!("{:.1}%", 100.0 * number(fraction));
    let [none, overlap, wait] =
        ["without_messages", "overlapped", "waiting"].map(|key| percent(&plan["efficiency"][key]));
    let imbalance = match number(&plan["empty_ranks"]) {
        0.0 => percent(&plan["imbalance_of_steps"]),
        empty => format!("{empty} empty"),
    };
    let memory = bytes(number(&plan["memory_bytes"]["most"]));
    let ranks = number(&plan["ranks"]);
    format!("{ranks:>7} {imbalance:>10} {memory:>11} {none:>9} {overlap:>9} {wait:>9}\n")
}
