//! The `nestar` command.

use nestar::engine::run::RunOptions;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn main() {
    let deck = std::env::args().nth(2).unwrap_or_default();
    let mut sim = nestar::Simulation::from_deck(&deck).unwrap_or_else(|e| {
        eprintln!("{e}");
        std::process::exit(2)
    });
    struct P;
    impl nestar::engine::run::Observer for P {
        fn note(&mut self, m: &str) {
            println!("{m}");
        }
        fn step(&mut self, p: &nestar::engine::run::Progress) {
            println!(
                "{} t={:.5} dt={:.3e} {} {:?} {:.3e}/s",
                p.step, p.time, p.dt, p.limiter, p.patches, p.rate
            );
        }
    }
    let options = RunOptions {
        output: None,
        resume: std::env::args().any(|a| a == "--resume"),
        stop: Arc::new(AtomicBool::new(false)),
        observer: Box::new(P),
        build: nestar::assemble::build_info(),
    };
    match sim.run_with(options) {
        Ok(s) => println!("{s:?}"),
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1)
        }
    }
}
