//! Time and memory of a solve of Poisson's equation on the root level:
//! `cargo run --release -p nestar-systems --example root_poisson -- CELLS [MARGIN]` (without a margin: periodic).

use nestar_engine::comm::Ranks;
use nestar_systems::gravity::root_fft::{RootKind, RootSolver};
use std::time::Instant;

/// Returns the peak memory of the process, MiB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0.0) / 1024.0
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let mut next = || arguments.next().map(|word| word.expect("a number"));
    let n = next().unwrap_or(64);
    let kind = next().map_or(RootKind::Periodic, |margin| RootKind::Isolated { margin });
    let side = (n / 8) as i32;
    let patch = |p: i32| [p % side, p / side % side, p / side / side];
    let patches: Vec<_> = (0..side * side * side).map(patch).collect();
    let source: Vec<f64> = (0..n * n * n)
        .map(|m| (m * m % 1009) as f64 - 504.0)
        .collect();
    let mut potential = vec![0.0; source.len()];
    let ranks = Ranks::default();

    let empty = peak();
    let start = Instant::now();
    let solver = RootSolver::new([n; 3], [1.0 / n as f64; 3], kind, &ranks).expect("it fits");
    let (made, held) = (start.elapsed(), peak());
    let mut best = f64::INFINITY;
    for _ in 0..(1 << 23) / (n * n * n) + 3 {
        let start = Instant::now();
        let solved = solver.solve(&ranks, &patches, &source, &mut potential);
        solved.expect("it is solved");
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!(
        "{n}^3 {kind:?}: made in {:.3} s ({:.0} MiB more), solved in {:.4} s = {:.0} ns a cell (in all {:.0} MiB more)",
        made.as_secs_f64(),
        held - empty,
        best,
        1e9 * best / (n * n * n) as f64,
        peak() - empty,
    );
}
