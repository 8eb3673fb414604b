//! Tests that need no GPU.

use super::super::image;
use super::{MAX_PEERS, number};
use nestar_device::{LAUNCH, program};
use nestar_kernels::mailbox::{MAILBOX, items};

#[test]
fn no_two_ranks_share_slots() {
    let here: Vec<usize> = (3..3 + MAX_PEERS + 1).map(|n| n * n).collect();
    for whose in &here {
        let others = here.iter().filter(|rank| *rank != whose);
        let numbers = others.map(|&rank| number(&here, rank, *whose));
        assert!(numbers.eq((0..MAX_PEERS as u64).map(Some)));
        assert_eq!(number(&here, *whose, *whose), None);
    }
}

#[test]
fn the_kernel_compiles() {
    image::find_compiler();
    if !image::compiler_present() {
        println!("skipped: there is no NVRTC");
        return;
    }
    let source = [&program(&items()), LAUNCH, MAILBOX].concat();
    image::compile(
        "mailbox",
        &source,
        "sm_80",
        &image::options(image::version().unwrap()),
    )
    .unwrap();
}
