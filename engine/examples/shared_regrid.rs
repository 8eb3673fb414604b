//! Times the host work of regrids: a refined shell grows, and each regrid follows it.
//!
//! `cargo run --release -p nestar-engine --example shared_regrid -- [ROOT] [RANKS] [THREADS]`: root patches along an
//! axis, ranks, and threads per rank. Ranks are threads of this process. Prints the seconds of the slowest rank, the
//! minimum over several regrids.

use nestar_engine::comm::hierarchy::{ExchangePlans, ReceivedOctet, propose_level, rebuild, root};
use nestar_engine::comm::{Ranks, RanksError, ThreadRank};
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::{Device, DeviceKind};
use nestar_engine::mesh::{Changes, Domain, Topology};

use std::sync::LazyLock;
use std::time::Instant;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const MAX_LEVEL: usize = 2;
/// Half the width of the refined shell in patches of the level, large enough for nesting.
const WIDTH: f64 = 4.0;
/// Number of timed regrids of every level.
const ROUNDS: usize = 8;
/// Timed parts of a regrid.
const PARTS: [&str; 3] = ["propose", "rebuild", "device tables"];

/// Returns seconds: processor time for a single thread, so that other processes do not count, else wall time.
fn now(single: bool) -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let text = match single {
        true => std::fs::read_to_string("/proc/thread-self/schedstat").ok(),
        false => None,
    };
    let nanoseconds = text.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |ns| 1e-9 * ns)
}

/// One rank and its times.
struct Part {
    topology: Topology,
    shares: ExchangePlans,
    ranks: Ranks,
    tables: Option<DeviceTopology>,
    seconds: Vec<[f64; 3]>,
}

/// Returns `true` if the shell of this radius, in units of the box, needs a patch refined.
fn wanted(topology: &Topology, level: usize, row: u32, radius: f64) -> bool {
    let across = f64::from(topology.domain.root[0] << level);
    let centre = topology
        .index(row)
        .map(|i| (f64::from(i) + 0.5) / across - 0.5);
    let distance = centre.iter().map(|x| x * x).sum::<f64>().sqrt();
    (distance - radius).abs() * across < WIDTH
}

impl Part {
    fn new(domain: Domain, ranks: Ranks) -> Result<Self, Failure> {
        let mut topology = Topology::new(domain, MAX_LEVEL);
        let mut shares = ExchangePlans::default();
        root(&mut topology, ranks.communicator(), &mut shares)?;
        // The device of a rank that owns all patches computes its tables.
        let emulated = topology.is_shared().then_some(DeviceKind::Emulated);
        let device = emulated.and_then(|kind| Device::open(kind).ok());
        let tables = device.map(|device| DeviceTopology::new(&device, domain, MAX_LEVEL + 1));
        let tables = tables.transpose()?;
        Ok(Self {
            topology,
            shares,
            ranks,
            tables,
            seconds: Vec::new(),
        })
    }

    fn changes(&self, level: usize, radius: f64) -> Changes {
        let mut changes = Changes::default();
        for &row in self.topology.rows(level) {
            match (
                wanted(&self.topology, level, row, radius),
                self.topology.is_leaf(row),
            ) {
                (true, true) => changes.refine.push(row),
                (false, false) => changes.coarsen.push(row),
                _ => {}
            }
        }
        changes
    }

    /// Returns the own octets of the level that have moved. In a run the former owners send their masks; here the shell
    /// determines them.
    fn refined(&self, octets: &[(u64, bool)], fine: usize, radius: f64) -> Vec<ReceivedOctet> {
        let across = f64::from(self.topology.domain.root[0] << fine);
        let mask = |key: u64| {
            let half = self.topology.octet_place(fine, key);
            let wanted = |c: i32| {
                let at = |a: usize| (f64::from(2 * half[a] + (c >> a & 1)) + 0.5) / across - 0.5;
                let distance = (0..3).map(|a| at(a) * at(a)).sum::<f64>().sqrt();
                fine < MAX_LEVEL && (distance - radius).abs() * across < WIDTH
            };
            (0..8).map(|c| u8::from(wanted(c)) << c).sum()
        };
        let old = octets.iter().filter(|(_, new)| !new);
        let received = |&(key, _): &(u64, bool)| ReceivedOctet {
            key,
            patches: u8::MAX,
            refined: mask(key),
            requested: 0,
        };
        old.map(received).collect()
    }

    fn regrid(&mut self, level: usize, [radius, finer]: [f64; 2]) -> Result<(), Failure> {
        let changes = self.changes(level, radius);
        let ranks = self.ranks.clone();
        let ranks = ranks.communicator();
        ranks.barrier()?;
        let single = rayon::current_num_threads() == 1;
        let mut times = vec![now(single)];
        let proposal = propose_level(&mut self.topology, ranks, level, &changes, &[], 1.05)?;
        times.push(now(single));
        let refined = match proposal.cut {
            true => self.refined(&proposal.octets, level + 1, finer),
            false => Vec::new(),
        };
        let begin = now(single);
        let (topology, shares) = (&mut self.topology, &mut self.shares);
        rebuild(topology, ranks, shares, level + 1, &proposal, &refined)?;
        let rebuilt = now(single) - begin;
        times.push(now(single));
        if let Some(tables) = &mut self.tables {
            tables.update(&self.topology, level + 1, &[])?;
        }
        times.push(now(single));
        let mut seconds = [0.0; 3];
        for (part, pair) in seconds.iter_mut().zip(times.windows(2)) {
            *part = pair[1] - pair[0];
        }
        seconds[1] = rebuilt;
        self.seconds.push(seconds);
        Ok(())
    }

    fn run(&mut self) -> Result<(), Failure> {
        // Start quickly: every level once, from coarse to fine.
        let mut radius = 0.3;
        for level in 0..MAX_LEVEL {
            self.regrid(level, [radius; 2])?;
        }
        self.seconds.clear();
        let step = 0.3 / f64::from(self.topology.domain.root[0] << MAX_LEVEL);
        for _ in 0..ROUNDS {
            let before = radius;
            radius += step;
            for level in (0..MAX_LEVEL).rev() {
                let finer = if level + 1 == MAX_LEVEL {
                    before
                } else {
                    radius
                };
                self.regrid(level, [radius, finer])?;
            }
        }
        Ok(())
    }

    /// Returns the times of the slowest rank for each regrid.
    fn slowest(&self) -> Result<Vec<[f64; 3]>, RanksError> {
        let words: Vec<u8> = self
            .seconds
            .iter()
            .flatten()
            .flat_map(|s| s.to_le_bytes())
            .collect();
        let all = self.ranks.communicator().all_gather(&words)?;
        let mut slowest = vec![[0.0f64; 3]; self.seconds.len()];
        for bytes in all {
            let words = bytes
                .as_chunks()
                .0
                .iter()
                .map(|&word| f64::from_le_bytes(word));
            for (most, seconds) in slowest.iter_mut().flatten().zip(words) {
                *most = most.max(seconds);
            }
        }
        Ok(slowest)
    }

    fn report(&self) -> Result<(), Failure> {
        let slowest = self.slowest()?;
        if self.ranks.rank() > 0 {
            return Ok(());
        }
        let own: Vec<usize> = (0..=MAX_LEVEL)
            .map(|level| self.topology.rows(level).len())
            .collect();
        let held = self.topology.capacity();
        println!("rank 0: own patches {own:?}, rows {held}");
        for level in (0..MAX_LEVEL).rev() {
            let of_level = slowest
                .iter()
                .skip(MAX_LEVEL - 1 - level)
                .step_by(MAX_LEVEL);
            let of_level: Vec<[f64; 3]> = of_level.copied().collect();
            let least = |part: usize| {
                let seconds = of_level.iter().map(|seconds| seconds[part]);
                format!(
                    "{} {:.4}",
                    PARTS[part],
                    seconds.fold(f64::INFINITY, f64::min)
                )
            };
            let parts: Vec<String> = (0..PARTS.len()).map(least).collect();
            println!("regrid of level {level}: {}", parts.join(", "));
        }
        Ok(())
    }
}

/// Runs one rank on a thread pool of its own.
fn work(domain: Domain, ranks: ThreadRank, threads: usize) -> Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| e.to_string())?;
    let ranks = Ranks::new(ranks);
    let result = pool.install(|| {
        let mut part = Part::new(domain, ranks.clone())?;
        part.run()?;
        part.report()
    });
    result.map_err(|error: Failure| {
        ranks.communicator().abort(&error.to_string());
        error.to_string()
    })
}

fn main() -> Result<(), String> {
    let numbers: Result<Vec<usize>, _> =
        std::env::args().skip(1).map(|word| word.parse()).collect();
    let numbers = numbers.map_err(|e| format!("ROOT, RANKS and THREADS are numbers: {e}"))?;
    let [root, ranks, threads] = [(0, 22), (1, 2), (2, 1)]
        .map(|(n, default): (usize, usize)| numbers.get(n).copied().unwrap_or(default));
    let domain = Domain {
        root: [root as i32; 3],
        left_edge: [0.0; 3],
        right_edge: [1.0; 3],
        periodic: [true; 3],
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = ThreadRank::connect(ranks)
            .into_iter()
            .map(|rank| scope.spawn(move || work(domain, rank, threads)))
            .collect();
        let ended = started.into_iter().map(|thread| thread.join());
        let mut results = ended.collect::<Vec<_>>().into_iter();
        results.try_for_each(|result| result.map_err(|_| "a rank panicked".to_string())?)
    })
}
