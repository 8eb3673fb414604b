//! Tests that a run on several ranks is bitwise identical to a run on one.

use crate::{Case, Launcher, role};
use nestar::Simulation;
use nestar::engine::comm::Ranks;
use nestar::engine::data::Stores;
use nestar::engine::mesh::Topology;
use nestar::snapshot::Values;
use nestar_deck::Deck;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Deck of an off-centre blast wave in a flow, with a passive scalar and two adaptive levels.
const BLAST: &str = r#"
scenario = "formula"

[initial]
density    = "1 + 0.2*sin(2*pi*x)*cos(2*pi*y)"
pressure   = "if((x-0.4)^2 + (y-0.55)^2 + (z-0.47)^2 < 0.0121, 10, 0.1)"
velocity_x = "0.3"
velocity_y = "-0.2 + 0.1*sin(2*pi*z)"
scalars    = { dye = "if(x < 0.5, 1, 0.25)" }

[domain]
cells = [16, 16, 16]

[mesh]
max_level       = 2
regrid_interval = 2
[[mesh.refine]]
criterion = "gradient"
field     = "pressure"
threshold = 0.4

[hydro]
scalars = ["dye"]

[run]
audit   = true
threads = 1
"#;
/// Number of root steps.
const STEPS: usize = 4;

/// The tests.
pub fn cases() -> Vec<Case> {
    let case = |device: &'static str| {
        let name = format!("runs::a_blast_on_{device}_is_the_same_on_1_to_4_ranks");
        Case::new(name, move |launcher: &Launcher| {
            let alone = end(launcher, device, 1);
            for size in 2..=4 {
                assert_eq!(end(launcher, device, size), alone, "{size} ranks");
            }
        })
    };
    vec![case("cpu"), case("emulated")]
}

/// Output of the ranks about the final state.
fn end(launcher: &Launcher, device: &str, size: usize) -> String {
    let outcome = role::play(launcher, size, "run", device);
    let mut ends = outcome.out.lines().filter(|line| line.starts_with("end: "));
    let first = ends.next().unwrap_or_else(|| panic!("{}", outcome.err));
    assert_eq!(
        ends.filter(|end| *end == first).count(),
        size - 1,
        "{}",
        outcome.out
    );
    first.to_string()
}

/// Runs one rank.
pub fn run(ranks: &Ranks, device: &str) {
    let mut deck = Deck::parse("blast", BLAST).unwrap();
    deck.set(&format!("run.device={device}")).unwrap();
    let mut sim = Simulation::with_ranks(deck, ranks.clone()).unwrap();
    sim.with(|sim| {
        sim.finish_setup().unwrap();
        sim.initialise().unwrap();
        for _ in 0..STEPS {
            sim.root_step(1.0).unwrap();
        }
        let all = ranks.communicator().all_gather(&patches(sim).concat());
        let all = all.unwrap().concat();
        let mut patches: Vec<&[u8]> = all.chunks_exact(LENGTH).collect();
        patches.sort_unstable();
        println!("end: {} patches, {:016x}", patches.len(), hash(&patches));
    });
}

/// Size of the record of a patch in bytes.
const LENGTH: usize = 24;

/// Returns level, position and a hash of the values for each patch of this rank.
fn patches(sim: &nestar::engine::Engine) -> Vec<[u8; LENGTH]> {
    let topology = sim.world.resource::<Topology>();
    let mut patches = Vec::new();
    for level in 0..=topology.finest() {
        let rows = topology.rows(level);
        let mut hashers = vec![DefaultHasher::new(); rows.len()];
        for field in sim.world.resource::<Stores>().all() {
            for c in 0..field.of(&sim.world).spec().components.len() {
                match field.of(&sim.world).save(level, c, rows).unwrap() {
                    Values::F64(values) => {
                        for (cells, hasher) in values.chunks_exact(512).zip(&mut hashers) {
                            cells.iter().for_each(|value| value.to_bits().hash(hasher));
                        }
                    }
                    _ => panic!("the deck asks for double precision"),
                }
            }
        }
        for (&row, hasher) in rows.iter().zip(hashers) {
            let mut patch = [0; LENGTH];
            patch[..4].copy_from_slice(&(level as u32).to_be_bytes());
            for (a, index) in topology.index(row).into_iter().enumerate() {
                patch[4 * (a + 1)..][..4].copy_from_slice(&index.to_be_bytes());
            }
            patch[16..].copy_from_slice(&hasher.finish().to_be_bytes());
            patches.push(patch);
        }
    }
    patches
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
