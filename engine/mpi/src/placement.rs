//! Detects the cores of a rank and which of them other ranks of the host share.

use nestar_engine::comm::Placement;

/// Size of a core set, bytes: one bit per core in the numbering of the system.
pub const BYTES: usize = 512;

/// Returns the cores available to this process; none if the system does not report them.
pub fn cores() -> [u8; BYTES] {
    let mut set = [0; BYTES];
    fill(&mut set);
    set
}

#[cfg(target_os = "linux")]
fn fill(set: &mut [u8; BYTES]) {
    // SAFETY: the system writes at most `BYTES` bytes; a failure leaves the set empty
    unsafe { libc::sched_getaffinity(0, BYTES, set.as_mut_ptr().cast()) };
}

#[cfg(not(target_os = "linux"))]
fn fill(_: &mut [u8; BYTES]) {}

/// Returns the placement of a rank on its host from the core sets of all ranks there.
///
/// Launchers may bind ranks to different cores, or leave all cores to all ranks.
pub fn placement(local_rank: usize, local_size: usize, sets: &[u8]) -> Placement {
    let sets: Vec<&[u8]> = sets.chunks_exact(BYTES).collect();
    let shares = |a: &[u8], b: &[u8]| a.iter().zip(b).any(|(a, b)| a & b != 0);
    let sharing = match sets.get(local_rank) {
        Some(own) if shares(own, own) => sets.iter().filter(|set| shares(own, set)).count(),
        _ => local_size,
    };
    Placement {
        cores: Placement::shared(0, sharing).cores,
        local_rank,
        local_size,
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, cores, placement};
    use nestar_engine::comm::Placement;

    /// Core sets of ranks, from their first bytes.
    fn sets(firsts: &[u8]) -> Vec<u8> {
        let set = |&first: &u8| {
            let mut set = [0; BYTES];
            set[0] = first;
            set
        };
        firsts.iter().flat_map(set).collect()
    }

    #[test]
    fn ranks_share_the_cores_that_they_have_in_common() {
        let all = Placement::process_cores();
        let half = (all / 2).max(1);
        assert_eq!(placement(1, 2, &sets(&[0b1111, 0b1111])).cores, half);
        assert_eq!(placement(1, 2, &sets(&[0b0011, 0b1100])).cores, all);
        assert_eq!(
            placement(0, 3, &sets(&[0b0011, 0b0011, 0b1100])).cores,
            half
        );
    }

    #[test]
    fn the_system_reports_as_many_cores_as_threads() {
        let reported: u32 = cores().iter().map(|byte| byte.count_ones()).sum();
        // A control group may grant less time than the cores have.
        assert!(reported == 0 || reported as usize >= Placement::process_cores());
    }

    #[test]
    fn unknown_cores_are_shared_by_all_ranks() {
        assert_eq!(placement(0, 4, &sets(&[0; 4])), Placement::shared(0, 4));
    }
}
