//! New places of particles in the memory in which they stand: patches take turns, so that what one turn puts overwrites what turns before have read.

use std::ops::Range;

/// Where particles of a patch stand.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::particles) struct Stretch {
    pub first: u32,
    pub count: u32,
}

/// Most turns before a list gets more memory, since each is a launch.
const MOST: usize = 12;
/// Up to so many particles there is room for all of them twice, and one turn suffices, or two.
pub(super) const FEW: usize = 1 << 21;

/// Memory of a list of particles.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Rows.
    pub rows: usize,
    /// Lists of up to so many particles have room for all of them twice.
    pub few: usize,
    /// Whether any number of turns will do, rather than more memory.
    pub is_scarce: bool,
}

impl Room {
    fn spare(self, particles: usize) -> usize {
        match self.is_scarce {
            true => 0,
            false => spare(particles, self.few),
        }
    }

    /// Turns that so many particles may take.
    fn turns(self, particles: usize) -> usize {
        match self.is_scarce {
            true => usize::MAX,
            false if particles <= self.few => 2,
            false => MOST,
        }
    }
}

/// Rows that so many particles need beside their own to take few turns, a few of them one.
pub(super) fn spare(particles: usize, few: usize) -> usize {
    (particles / 5).max(particles.min(few))
}

/// Where the particles of a list's patches come to stand, and which patches have their turns together, in the order of the patches.
#[derive(Debug)]
pub(super) struct Plan {
    /// Their new places.
    pub stretches: Vec<Stretch>,
    /// Patches of each turn.
    pub turns: Vec<Range<usize>>,
    /// The first row of memory in use.
    pub first: usize,
    /// Particles.
    pub used: usize,
    /// Rows of memory that it takes.
    pub room: usize,
}

impl Plan {
    /// So many particles of each patch in memory of their own, all in one turn.
    pub fn apart(counts: &[u32]) -> Self {
        let all = std::iter::once(0..counts.len());
        Self::from(0, counts, all.collect())
    }

    /// So many particles of each patch in the memory where they stand, of which there may have to be more. None: they stand in another order than the
    /// patches.
    pub fn within(old: &[Stretch], counts: &[u32], room: Room) -> Option<Self> {
        let used = counts.iter().map(|&count| count as usize).sum();
        let (begins, ends) = bounds(old)?;
        let most = room.turns(used);
        let plan = Self::from(0, counts, Vec::new());
        plan.downwards(&begins, most).or_else(|| {
            let top = |rows| Self::from(rows - used, counts, Vec::new());
            let here = (room.rows >= used).then(|| top(room.rows).upwards(&ends, most));
            let more = highest(&ends, counts) + room.spare(used);
            here.flatten()
                .or_else(|| top(more).upwards(&ends, usize::MAX))
        })
    }

    fn from(first: usize, counts: &[u32], turns: Vec<Range<usize>>) -> Self {
        let mut next = first;
        let stretches = counts.iter().map(|&count| {
            let first = next as u32;
            next += count as usize;
            Stretch { first, count }
        });
        Self {
            stretches: stretches.collect(),
            turns,
            first,
            used: next - first,
            room: next,
        }
    }

    /// The same if patches can take turns from the first to the last one.
    fn downwards(mut self, begins: &[usize], most: usize) -> Option<Self> {
        let end = |n: usize| (self.stretches[n].first + self.stretches[n].count) as usize;
        self.turns = turns(begins.len(), most, |from, last| end(last) <= begins[from])?;
        Some(self)
    }

    /// The same from the last to the first one.
    fn upwards(mut self, ends: &[usize], most: usize) -> Option<Self> {
        let mirrored = |n: usize| ends.len() - 1 - n;
        let begin = |n: usize| self.stretches[mirrored(n)].first as usize;
        let fits = |from: usize, last| begin(last) >= ends[mirrored(from)];
        let turns = turns(ends.len(), most, fits)?;
        let turns = turns
            .into_iter()
            .map(|turn| ends.len() - turn.end..ends.len() - turn.start);
        self.turns = turns.collect();
        Some(self)
    }
}

/// For each patch where the first particles stand of it and those behind it, and where the last ones end of it and those before it; none: patches
/// stand in another order.
fn bounds(old: &[Stretch]) -> Option<(Vec<usize>, Vec<usize>)> {
    let mut end = 0;
    let mut ends = Vec::with_capacity(old.len());
    for stretch in old {
        if stretch.count > 0 {
            if (stretch.first as usize) < end {
                return None;
            }
            end = (stretch.first + stretch.count) as usize;
        }
        ends.push(end);
    }
    let mut begin = usize::MAX;
    let mut begins = vec![begin; old.len()];
    for (stretch, to) in old.iter().zip(&mut begins).rev() {
        if stretch.count > 0 {
            begin = stretch.first as usize;
        }
        *to = begin;
    }
    Some((begins, ends))
}

/// The least end of all new places with which each patch has room for itself, from the last one on.
fn highest(ends: &[usize], counts: &[u32]) -> usize {
    let (mut behind, mut highest) = (0, 0);
    for (end, &count) in ends.iter().zip(counts).rev() {
        behind += count as usize;
        highest = highest.max(end + behind);
    }
    highest
}

/// Takes as many of so many patches into each turn as fit; none: one does not fit at all, or it takes more turns than `most`.
fn turns(
    count: usize,
    most: usize,
    fits: impl Fn(usize, usize) -> bool,
) -> Option<Vec<Range<usize>>> {
    let (mut turns, mut from) = (Vec::new(), 0);
    while from < count {
        let fitting = (from..count).take_while(|&last| fits(from, last)).count();
        if fitting == 0 || turns.len() == most {
            return None;
        }
        turns.push(from..from + fitting);
        from += fitting;
    }
    Some(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deals as kernels do: a turn reads all of its patches before it writes.
    fn check(old: &[Stretch], counts: &[u32], rows: usize, few: usize) -> Plan {
        check_in(
            old,
            counts,
            Room {
                rows,
                few,
                is_scarce: false,
            },
        )
    }

    fn check_in(old: &[Stretch], counts: &[u32], room: Room) -> Plan {
        let plan = Plan::within(old, counts, room).expect("a plan");
        let mut rows = vec![None; plan.room.max(room.rows)];
        for (patch, stretch) in old.iter().enumerate() {
            let own = &mut rows[stretch.first as usize..][..stretch.count as usize];
            own.fill(Some(patch));
        }
        for turn in &plan.turns {
            for patch in turn.clone() {
                let Stretch { first, count } = old[patch];
                let own = &rows[first as usize..][..count as usize];
                assert!(
                    own.iter().all(|&row| row == Some(patch)),
                    "{patch} {plan:?}"
                );
            }
            for patch in turn.clone() {
                let Stretch { first, count } = plan.stretches[patch];
                assert_eq!(count, counts[patch]);
                // what is written bears no patch's number
                rows[first as usize..][..count as usize].fill(Some(usize::MAX));
            }
        }
        let mut seen: Vec<usize> = plan.turns.iter().flat_map(Clone::clone).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..counts.len()).collect::<Vec<_>>());
        plan
    }

    fn random(n: u64) -> u64 {
        let n = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
    }

    #[test]
    fn nothing_is_overwritten_before_it_is_read_step_after_step() {
        let patches = 300;
        let mut counts: Vec<u32> = (0..patches).map(|n| random(n) as u32 % 6_000).collect();
        let plan = Plan::apart(&counts);
        let (mut old, mut room) = (plan.stretches, plan.room);
        for step in 0..40 {
            for (n, count) in counts.iter_mut().enumerate() {
                let change = random(step * patches + n as u64 + 7) as i64 % 600 - 297;
                *count = (i64::from(*count) + change).max(0) as u32;
            }
            let plan = check(&old, &counts, room, 0);
            assert!(plan.turns.len() <= 2 * MOST);
            assert!(
                plan.room.max(room) <= plan.used * 4 / 3,
                "{step} {} {}",
                plan.room,
                plan.used
            );
            (old, room) = (plan.stretches, room.max(plan.room));
        }
    }

    #[test]
    fn few_particles_take_one_turn() {
        let counts = [0, 64, 3, 0, 500];
        let old = Plan::apart(&counts);
        let up = check(&old.stretches, &[5, 60, 1, 0, 501], old.room, FEW);
        assert_eq!((up.turns.len(), up.first), (1, up.room - 567));
        let down = check(&up.stretches, &[7, 58, 1, 0, 501], up.room, FEW);
        assert_eq!((down.turns.len(), down.first), (1, 0));
    }

    #[test]
    fn a_patch_that_takes_nearly_all_finds_room() {
        let counts = [10, 3_000_000, 20];
        let old = Plan::apart(&counts);
        let plan = check(&old.stretches, &[3_000_000, 20, 10], old.room, FEW);
        check(&plan.stretches, &[1, 0, 4_000_000], plan.room, FEW);
    }

    #[test]
    fn scarce_memory_takes_more_turns() {
        let counts: Vec<u32> = (0..500).map(|n| random(n) as u32 % 90).collect();
        let old = Plan::apart(&counts);
        let few = counts.iter().rev().copied().collect::<Vec<_>>();
        let room = |is_scarce| Room {
            rows: old.room,
            few: 0,
            is_scarce,
        };
        let [ample, scarce] = [false, true].map(|is| check_in(&old.stretches, &few, room(is)));
        assert!(scarce.room < ample.room && scarce.turns.len() > ample.turns.len());
        assert!(scarce.room < old.room + 2000, "{}", scarce.room);
    }

    #[test]
    fn another_order_wants_other_memory() {
        let swapped = [7, 0].map(|first| Stretch { first, count: 7 });
        let room = Room {
            rows: 100,
            few: FEW,
            is_scarce: false,
        };
        assert!(Plan::within(&swapped, &[7, 7], room).is_none());
        let plan = check(&[Stretch::default(); 2], &[7, 7], 0, FEW);
        assert_eq!((plan.turns.len(), plan.room), (1, 14));
    }
}
