//! The forecast for people.

use super::{Spread, Subject};
use crate::cli::memory::shown;
use nestar::engine::mesh::{CELLS, Topology};
use nestar::engine::ranks::forecast::{Forecast, Times};
use std::fmt::Write as _;

/// Everything.
pub fn report(subject: &Subject, forecasts: &[Forecast]) -> String {
    let mut text = head(subject);
    for forecast in forecasts {
        text += &block(subject, forecast);
    }
    text + &table(subject, forecasts)
}

fn head(subject: &Subject) -> String {
    let (topology, machine) = (&subject.topology, &subject.machine);
    let patches = patches(topology);
    format!(
        "{}: {} patches ({}), {} a patch\n\
         a rank updates {:.3e} cells/s, sends and receives {:.3e} B/s, {:.3e} s a message\n\
         sent and received: in one step of a level; a root step has 2^l steps of level l\n",
        subject.origin,
        patches.iter().sum::<usize>(),
        patches
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(" "),
        shown(subject.sizes.row),
        machine.rate,
        machine.bandwidth,
        machine.latency,
    )
}

fn patches(topology: &Topology) -> Vec<usize> {
    (0..=topology.finest())
        .map(|level| topology.rows(level).len())
        .collect()
}

/// One number of ranks.
fn block(subject: &Subject, forecast: &Forecast) -> String {
    let mut text = format!(
        "\n{:<34}{:>12}{:>12}{:>12}{:>11}\n",
        count(forecast.ranks),
        "least",
        "mean",
        "most",
        "most/mean"
    );
    for level in 0..forecast.levels {
        text += &level_block(subject, forecast, level);
    }
    let ranks = forecast.ranks;
    let weight = Spread::of(ranks, |rank| forecast.weight(rank) * CELLS as u64);
    row(&mut text, "cell updates a root step", weight, whole);
    let neighbours = Spread::of(ranks, |rank| u64::from(forecast.neighbours[rank]));
    row(&mut text, "neighbour ranks", neighbours, whole);
    let memory = Spread::of(ranks, |rank| forecast.memory(rank, &subject.sizes));
    row(&mut text, "memory of patches", memory, bytes);
    text
}

fn count(ranks: usize) -> String {
    format!("{ranks} rank{}", if ranks == 1 { "" } else { "s" })
}

fn level_block(subject: &Subject, forecast: &Forecast, level: usize) -> String {
    let spread = |of: &dyn Fn(usize) -> u64| Spread::of(forecast.ranks, of);
    let load = |rank| forecast.load(rank, level);
    let mut text = String::new();
    row(
        &mut text,
        &format!("level {level}: patches"),
        spread(&|rank| load(rank).patches),
        whole,
    );
    if forecast.ranks == 1 {
        return text;
    }
    row(
        &mut text,
        "  copies",
        spread(&|rank| load(rank).copies()),
        whole,
    );
    for (side, name) in ["sent", "received"].into_iter().enumerate() {
        let traffic = |rank| forecast.traffic(rank, level, &subject.sizes)[side];
        row(
            &mut text,
            &format!("  messages {name}"),
            spread(&|rank| traffic(rank).messages),
            whole,
        );
        row(
            &mut text,
            &format!("  {name}"),
            spread(&|rank| traffic(rank).bytes),
            bytes,
        );
    }
    text
}

fn row(text: &mut String, name: &str, spread: Spread, show: fn(f64) -> String) {
    let imbalance = spread
        .imbalance()
        .map_or("-".into(), |ratio| format!("{ratio:.2}"));
    let [least, mean, most] = [spread.least, spread.mean, spread.most].map(show);
    // writing to a string cannot fail
    let _ = writeln!(
        text,
        "{name:<34}{least:>12}{mean:>12}{most:>12}{imbalance:>11}"
    );
}

fn whole(value: f64) -> String {
    if value < 1e9 && value.fract() != 0.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

fn bytes(value: f64) -> String {
    shown(value as u64)
}

/// What stands above the lines of [`table`].
fn heading() -> String {
    format!(
        "\nparallel efficiency, messages under way while cells are updated (overlap) or not (wait)\n\n\
         {:>7} {:>10} {:>11}\n{:>7} {:>10} {:>11} {:>9} {:>9} {:>9}\n",
        "", "imbalance", "memory", "ranks", "of steps", "most", "no sends", "overlap", "wait"
    )
}

/// All numbers of ranks, a line each.
fn table(subject: &Subject, forecasts: &[Forecast]) -> String {
    let mut text = heading();
    for forecast in forecasts {
        let ranks = forecast.ranks;
        let memory = Spread::of(ranks, |rank| forecast.memory(rank, &subject.sizes));
        let times = forecast.times(&subject.sizes, &subject.machine);
        let shares = [times.balanced, times.overlapped, times.waiting];
        let [none, overlap, wait] = shares.map(|time| percent(&times, time));
        // writing to a string cannot fail
        let _ = writeln!(
            text,
            "{ranks:>7} {:>9.1}% {:>11} {none:>9} {overlap:>9} {wait:>9}",
            100.0 * forecast.imbalance(),
            bytes(memory.most)
        );
    }
    text
}

fn percent(times: &Times, time: f64) -> String {
    format!("{:.1}%", 100.0 * times.efficiency(time))
}
