//! Copies values on faces or edges that several patches share: one patch owns each value.

use super::{Centring, Rows, direction};
use crate::PATCH;
use nestar_device::{Real, device};

/// Returns the priority of a patch in direction `d` of a table of 27 as owner of a shared value; the smallest wins.
///
/// Refined patches come first, because their values come from finer ones; then the lower one along z, then y, then x.
#[device]
pub fn owner_priority(d: u32, refined: bool) -> u32 {
    if refined { d } else { d + 27u32 }
}

/// Copies the values on the sides of `row` that other patches of its level own. Returns `true` if there are any. `refined` tells whether a
/// row has children.
///
/// # Safety
/// Nobody else may access the rows of `level` meanwhile.
pub unsafe fn sync_shared_values<R: Real>(
    centring: Centring,
    level: &Rows<R>,
    neighbours: &[[i32; 27]],
    row: u32,
    refined: impl Fn(u32) -> bool,
) -> bool {
    let values = centring.values();
    let mut shared = false;
    for sides in (0..27).map(step_in) {
        let (step, owner) = owner_at(&neighbours[row as usize], sides, &refined);
        let on_sides = |c: &usize| (0..3).all(|a| sides[a] == 0 || centring.staggered(*c, a) == 1);
        if step == [0; 3] {
            continue;
        }
        for c in (0..level.row_length() / values).filter(on_sides) {
            shared = true;
            for at in places_on(centring, c, sides) {
                let theirs = std::array::from_fn(|a| match step[a] {
                    0 => at[a],
                    _ => PATCH - at[a],
                });
                let value = level.row(owner)[c * values + centring.index(c, theirs)];
                // SAFETY: exclusivity is the caller's contract, and no other reference is alive.
                let own = unsafe { level.row_mut(row) };
                own[c * values + centring.index(c, at)] = value;
            }
        }
    }
    shared
}

/// Returns the step to the neighbour in direction `d` of a table of 27.
fn step_in(d: usize) -> [i32; 3] {
    [d % 3, d / 3 % 3, d / 9].map(|n| n as i32 - 1)
}

/// Finds the owner of the values on the given sides of a patch (-1 lower, 1 upper, 0 between): the step to it, and its row.
fn owner_at(around: &[i32; 27], sides: [i32; 3], refined: impl Fn(u32) -> bool) -> ([i32; 3], u32) {
    let sharers = (0..8).map(|bits| std::array::from_fn(|a| sides[a] * (bits >> a & 1)));
    let held =
        sharers.filter_map(|step| Some((step, u32::try_from(around[direction(step)]).ok()?)));
    held.min_by_key(|&(step, row)| owner_priority(direction(step) as u32, refined(row)))
        .expect("the patch itself exists")
}

/// Iterates over the positions of component `c` that lie exactly on the given sides of a patch.
fn places_on(
    centring: Centring,
    c: usize,
    sides: [i32; 3],
) -> impl Iterator<Item = [usize; 3]> + use<> {
    let [x, y, z] = std::array::from_fn(|a| match sides[a] {
        -1 => 0..1,
        1 => PATCH..PATCH + 1,
        _ => centring.staggered(c, a)..PATCH,
    });
    z.flat_map(move |k| {
        let x = x.clone();
        let rows = y.clone();
        rows.flat_map(move |j| x.clone().map(move |i| [i, j, k]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::OUTSIDE;

    /// Rows of a slab.
    const ROWS: usize = 64;

    /// Returns the neighbours of eight patches that fill a box with walls.
    fn cube() -> Vec<[i32; 27]> {
        let place = |row: usize| [row & 1, row >> 1 & 1, row >> 2].map(|i| i as i32);
        let beside = |row, d| {
            let [at, step] = [place(row), step_in(d)];
            let next: [i32; 3] = std::array::from_fn(|a| at[a] + step[a]);
            let inside = next.iter().all(|i| (0..2).contains(i));
            if inside {
                next[0] + 2 * next[1] + 4 * next[2]
            } else {
                OUTSIDE
            }
        };
        (0..8)
            .map(|row| std::array::from_fn(|d| beside(row, d)))
            .collect()
    }

    #[test]
    fn values_that_patches_share_have_one_owner() {
        // refined rows, and rows that own all their shared values
        for (centring, refined, owners) in [
            (Centring::Face, 0b0000_0000u32, &[0][..]),
            (Centring::Face, 0b1000_0010, &[1, 7]),
            (Centring::Edge, 0b0000_0000, &[0]),
            (Centring::Edge, 0b1001_0100, &[2]),
        ] {
            let values = centring.values();
            let mut held: Vec<f64> = (0..ROWS * 3 * values).map(|n| n as f64).collect();
            let before = held.clone();
            let slab = [held.as_mut_ptr()];
            // SAFETY: the slab holds `ROWS` rows, 64 as the shift says, and outlives the view.
            let rows = unsafe { Rows::new(&slab, 6, 3 * values) };
            for row in 0..8 {
                let refined = |row: u32| refined >> row & 1 == 1;
                // SAFETY: one thread sets row after row.
                let takes = unsafe { sync_shared_values(centring, &rows, &cube(), row, refined) };
                assert_eq!(takes, !owners.contains(&row), "{centring:?}, row {row}");
            }
            // by position in the box: all current values, and the previous value of the first owner
            let mut places = std::collections::BTreeMap::<_, Vec<(bool, usize, f64, f64)>>::new();
            for (n, (now, was)) in held.iter().zip(&before).enumerate().take(8 * 3 * values) {
                let (row, c, n) = (n / (3 * values), n / values % 3, n % values);
                let [x, y, _] = centring.lengths(c, [PATCH; 3]);
                let at = [n % x, n / x % y, n / (x * y)];
                let place = [0, 1, 2].map(|a| at[a] + PATCH * (row >> a & 1));
                let least = refined >> row & 1 == 0;
                let of_place = places.entry((c, place)).or_default();
                of_place.push((least, row, *now, *was));
            }
            for of_place in places.values_mut() {
                of_place.sort_by_key(|&(least, row, ..)| (least, row));
                let owners = of_place[0].3;
                assert!(of_place.iter().all(|&(.., now, _)| now == owners));
            }
        }
    }
}
