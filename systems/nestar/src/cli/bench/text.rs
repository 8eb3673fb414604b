//! Text output of benchmark results.

use super::measure::{BenchMachine, KernelProfile, Measurement};
use super::root;
use crate::cli::memory::format_bytes;
use crate::cli::run::time_fractions;
use nestar::App;
use nestar::engine::device::DeviceCounters;
use std::fmt::Write as _;

/// Returns the CPU model and the memory of the machine, if known.
pub fn host() -> (Option<String>, Option<u64>) {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let model = line.and_then(|line| line.split_once(':'));
    let model = model.map(|(_, name)| name.trim().to_string());
    (model, nestar::engine::step::memory::machine::total())
}

/// Returns the header: program, machine and device.
pub fn head(app: &App, machine: &BenchMachine) -> String {
    let build = app.build_info();
    let (model, memory) = host();
    let mut text = format!(
        "{} ({})\nmachine: {}, {} threads in use, {} of memory\ndevice: {}\n",
        app.signature(),
        build.flags,
        model.as_deref().unwrap_or("unknown CPU"),
        machine.threads,
        memory.map_or_else(|| "an unknown amount".into(), format_bytes),
        machine.device
    );
    if machine.ranks > 1 {
        // writing to a string cannot fail
        let _ = writeln!(
            text,
            "ranks: {}, connected by {}",
            machine.ranks, machine.library
        );
    }
    if let Some(why) = &machine.note {
        // writing to a string cannot fail
        let _ = writeln!(text, "no GPU is used: {why}");
    }
    text
}

/// Returns all results of one case.
pub fn block(m: &Measurement) -> String {
    let mut text = format!(
        "\n{} {}, {}: {:.3e} cell updates/s\n",
        m.case,
        root(m.cells),
        m.precision,
        m.timed.rate()
    );
    for (name, what) in facts(m) {
        // writing to a string cannot fail
        let _ = writeln!(text, "  {name:<10} {what}");
    }
    if let Some(profile) = &m.profile {
        text += &kernels(profile);
    }
    text
}

/// Returns the results of a case as names and texts.
fn facts(m: &Measurement) -> Vec<(&'static str, String)> {
    let run = &m.timed.run;
    let patches: Vec<String> = m.patches.iter().map(usize::to_string).collect();
    let patches = format!("{} ({:.2e} cells)", patches.join(" "), m.all_cells() as f64);
    let mut facts = vec![
        ("steps", steps(m)),
        ("patches", patches),
        ("time", time_fractions(&m.timed.times)),
    ];
    if run.fallback_cells + run.retried_steps > 0 {
        let (cells, steps) = (run.fallback_cells, run.retried_steps);
        facts.push(("corrected", format!("{cells} cells, {steps} steps retried")));
    }
    if let Some(mean) = run.mean_subcycles() {
        facts.push(("sub-steps", format!("{mean:.2} per cell and step")));
    }
    if let Some(device) = &m.timed.device {
        facts.push(("traffic", traffic(device, m.steps, "root step")));
        facts.push(("", traffic(device, run.level_steps, "level step")));
    }
    if m.machine.ranks > 1 {
        let imbalance = 100.0 * run.work.imbalance(m.machine.ranks);
        let ranks = format!("{}, imbalance {imbalance:.2}%", m.machine.ranks);
        facts.extend([("ranks", ranks), ("halos", halos(m))]);
    }
    facts.push(("memory", memory(m)));
    if let Some(busy) = m.busy() {
        let (busy, host) = (100.0 * busy, 100.0 * (1.0 - busy));
        let busy = format!("device {busy:.1}%, host only {host:.1}%");
        facts.push(("busy", busy));
    }
    let profile = m.profile.iter().filter(|profile| profile.link.timed > 0);
    facts.extend(profile.map(|profile| ("overlap", overlap(profile))));
    facts
}

fn steps(m: &Measurement) -> String {
    let run = &m.timed.run;
    format!(
        "{} root steps after {}, {} level steps, {} regrids; {:.3e} cell updates in {:.3} s; set-up {:.1} s",
        m.steps,
        m.warm_up,
        run.level_steps,
        run.regrids,
        run.cell_updates as f64,
        m.timed.wall,
        m.set_up
    )
}

/// Describes the halo traffic of the first rank.
fn halos(m: &Measurement) -> String {
    let halos = &m.timed.halos;
    let per = |count: u64| count as f64 / m.timed.run.level_steps.max(1) as f64;
    format!(
        "per level step: {:.1} exchanges, {} sent, {} received; host waits {:.2}% of the time{}",
        per(halos.exchanges),
        format_bytes(per(halos.bytes_sent) as u64),
        format_bytes(per(halos.bytes_received) as u64),
        100.0 * halos.waited / m.timed.wall,
        m.machine
            .link
            .as_ref()
            .map_or_else(String::new, |link| format!("; {link}"))
    )
}

/// Describes how much of the halo exchange overlaps with computation.
fn overlap(profile: &KernelProfile) -> String {
    let percent = |seconds: f64| 100.0 * seconds / profile.wall;
    format!(
        "halo exchange {:.1}% of the time, {:.2}% not hidden",
        percent(profile.link.seconds),
        percent(profile.link.exposed)
    )
}

fn traffic(device: &DeviceCounters, steps: u64, name: &str) -> String {
    let per = |count: u64| count as f64 / steps.max(1) as f64;
    format!(
        "per {name}: {:.1} launches, {:.1} synchronisations, {} to device, {} to host",
        per(device.launches),
        per(device.synchronisations),
        format_bytes(per(device.bytes_up) as u64),
        format_bytes(per(device.bytes_down) as u64)
    )
}

fn memory(m: &Measurement) -> String {
    let mut text = format!(
        "fields {}, resident {}",
        format_bytes(m.memory.fields),
        format_bytes(m.memory.resident)
    );
    if let Some(device) = m.memory.device {
        let used = device.total.saturating_sub(device.free);
        text += &format!(
            ", device {} of {}",
            format_bytes(used),
            format_bytes(device.total)
        );
    }
    text
}

fn kernels(profile: &KernelProfile) -> String {
    let mut text = format!(
        "  {:<24} {:>9} {:>12} {:>7} {:>11} {:>9}\n",
        "kernel", "launches", "total", "share", "cells/s", "GB/s"
    );
    let all = profile.seconds();
    for kernel in &profile.kernels {
        let cells = kernel.cells_per_second.map(|rate| format!("{rate:.3e}"));
        let bytes = kernel
            .bytes_per_second
            .map(|rate| format!("{:.1}", 1e-9 * rate));
        let line = format!(
            "  {:<24} {:>9} {:>9.3} ms {:>6.1}% {:>11} {:>9}",
            kernel.name,
            kernel.launches,
            1e3 * kernel.seconds,
            100.0 * kernel.seconds / all,
            cells.unwrap_or_default(),
            bytes.unwrap_or_default()
        );
        text += line.trim_end();
        text.push('\n');
    }
    let wall = 1e3 * profile.wall;
    text + &format!(
        "  {:<24} {:>9} {:>9.3} ms of {wall:.3} ms with every launch timed\n",
        "all",
        "",
        1e3 * all
    )
}

/// Returns a table with one line per case.
pub fn table(measurements: &[Measurement]) -> String {
    let mut text = format!(
        "\n{:<18} {:>12} {:>9} {:>9} {:>7} {:>9} {:>12}\n",
        "case", "root", "precision", "cells", "steps", "seconds", "updates/s"
    );
    for m in measurements {
        let _ = writeln!(
            text,
            "{:<18} {:>12} {:>9} {:>9.2e} {:>7} {:>9.3} {:>12.3e}",
            m.case,
            root(m.cells),
            m.precision,
            m.all_cells() as f64,
            m.steps,
            m.timed.wall,
            m.timed.rate()
        );
    }
    text
}
