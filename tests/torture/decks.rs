//! Random decks: each gives an error with its position or a run, never a panic.

use super::restarts::shipped;
use super::{Attack, Setting};
use nestar::{App, Simulation};
use nestar_deck::Deck;
use nestar_tests::random::Random;
use std::time::Duration;

/// What is put into decks.
const PIECES: [&str; 40] = [
    "0",
    "-1",
    "1e308",
    "-1e-308",
    "nan",
    "inf",
    "9223372036854775807",
    "65536",
    "4294967296",
    "0.1",
    "\"\"",
    "\"1/0\"",
    "\"sqrt(-1)\"",
    "\"x\"",
    "\"((((((((x))))))))\"",
    "[]",
    "[[]]",
    "{}",
    "[8, 8, 8]",
    "[1e300, 1, 1]",
    "true",
    "\n",
    "=",
    "[mesh]",
    "[[mesh.refine]]",
    "criterion = \"sphere\"",
    "max_level = 12",
    "\"formula\"",
    "\"zarr\"",
    "\"inflow\"",
    "\"reflecting\"",
    "\"periodic\"",
    "\"\\u0000\"",
    "é",
    "1979-05-27",
    "'''",
    "#",
    ".",
    "precision = \"single\"",
    "\"sedov\"",
];

/// Longest time that a deck may take of a processor.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn prepare(_: &Setting) -> Result<Attack, String> {
    let paths = shipped()?;
    let read = paths.iter().map(std::fs::read_to_string);
    let decks: Vec<String> = read.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    Ok(Box::new(move |_, random| {
        let start = spent();
        let text = mutated(&decks, random);
        read_and_build(&text, random);
        match spent().saturating_sub(start) {
            long if long > PATIENCE => Err(format!("it took {long:?}:\n{text}")),
            _ => Ok(()),
        }
    }))
}

/// Processor time of this thread; 0 where the system does not report it.
fn spent() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// A shipped deck with some changes.
fn mutated(decks: &[String], random: &mut Random) -> String {
    let mut text = decks[random.below(decks.len() as u64) as usize]
        .clone()
        .into_bytes();
    for _ in 0..=random.below(6) {
        let at = random.below(text.len().max(1) as u64) as usize;
        let to = (at + random.below(40) as usize).min(text.len());
        match random.below(8) {
            0 => text[at..to].reverse(),
            1 => drop(text.drain(at..to)),
            2 => {
                let copy = text[at..to].to_vec();
                let depth = random.pick(&[1, 2, 3000]);
                text.splice(at..at, copy.repeat(depth));
            }
            3 => {
                let other = decks[random.below(decks.len() as u64) as usize].as_bytes();
                let from = random.below(other.len() as u64) as usize;
                let end = (from + random.below(200) as usize).min(other.len());
                text.splice(at..to, other[from..end].iter().copied());
            }
            4 => {
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            _ => replace_value(&mut text, at, random),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The value of the line around byte `at` becomes another.
fn replace_value(text: &mut Vec<u8>, at: usize, random: &mut Random) {
    let piece = random.pick(&PIECES).bytes();
    let end = (at..text.len())
        .find(|&n| text[n] == b'\n')
        .unwrap_or(text.len());
    let begin = (0..at.min(end))
        .rev()
        .find(|&n| text[n] == b'\n')
        .map_or(0, |n| n + 1);
    let equals = (begin..end).find(|&n| text[n] == b'=');
    match equals {
        Some(equals) => text.splice(equals + 1..end, piece),
        None => text.splice(begin..end, piece),
    };
}

/// What every command does with a deck before it runs; some are built, and those that are small begun.
fn read_and_build(text: &str, random: &mut Random) {
    let Ok(mut deck) = Deck::parse("deck.toml", text) else {
        return;
    };
    let parts = random.pick(&[1, 3, 100, 20_000]);
    let path = vec!["a"; parts].join(".");
    for change in [
        &format!("{path}=1"),
        "run.threads=1",
        "run.device=cpu",
        "run.memory_limit=64",
    ] {
        let _ = deck.set(change);
    }
    let mut plain = Deck::parse("deck.toml", text).unwrap_or(deck.clone());
    for change in [
        "run.threads=1",
        "run.device=cpu",
        "run.memory_limit=64",
        "mesh.max_level=1",
    ] {
        let _ = plain.set(change);
    }
    let _ = App::default()
        .check(&deck)
        .map_err(|error| error.to_string());
    if App::default().check(&plain).is_err() {
        return;
    }
    if let Ok(mut sim) = Simulation::new(plain) {
        let cells: u64 = sim
            .engine()
            .settings
            .domain
            .cells
            .map(u64::from)
            .iter()
            .product();
        if cells <= 1 << 12 {
            let _ = sim
                .with(|s| s.finish_setup().and_then(|()| s.initialise()))
                .map_err(|e| e.to_string());
        }
    }
}
