//! Rows that take new states.

use super::components::Components;
use super::element::Element;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::{DependentComponents, MAX_COMPONENTS, StateFunctions};

/// Gives the chosen components of a row these values, and lets others follow; `before` is working space.
///
/// # Errors
/// The first cell whose state would not be sound: the row is as it was.
pub(super) fn write_back<R: Element>(
    row: &mut [R],
    (chosen, states): (&Components, Option<&StateFunctions<R>>),
    values: &mut [R],
    before: &mut Vec<R>,
) -> Result<(), usize> {
    let follow = states.and_then(|states| states.dependents);
    if follow.is_some() {
        before.clear();
        before.extend_from_slice(row);
    }
    exchange(row, chosen, values);
    if let Some(follow) = &follow {
        follow_row(before, row, follow);
    }
    let Some(states) = states.filter(|states| !(states.physical)(row, CELLS)) else {
        return Ok(());
    };
    // the row is not sound, so that a cell of it is not
    let cell = first_unphysical(row, states).unwrap_or_default();
    match follow {
        Some(_) => row.copy_from_slice(before),
        None => exchange(row, chosen, values),
    }
    Err(cell)
}

/// Exchanges the chosen components of a row with values.
fn exchange<R: Element>(row: &mut [R], chosen: &Components, values: &mut [R]) {
    for (n, values) in values.chunks_mut(CELLS).enumerate() {
        if let Some(number) = chosen.number(n) {
            let first = number * CELLS;
            row[first..first + values.len()].swap_with_slice(values);
        }
    }
}

/// Lets what follows from changed components of a row, which was `before`, follow.
fn follow_row<R: Element>(before: &[R], row: &mut [R], follow: &DependentComponents<R>) {
    let [mut old, mut new] = [[R::lit(0.0); MAX_COMPONENTS]; 2];
    let components = row.len() / CELLS;
    for cell in 0..CELLS {
        for c in 0..components {
            (old[c], new[c]) = (before[c * CELLS + cell], row[c * CELLS + cell]);
        }
        (follow.update)(&old[..components], &mut new[..components]);
        for c in 0..components {
            row[c * CELLS + cell] = new[c];
        }
    }
}

/// The first cell of a row whose state is not sound.
fn first_unphysical<R: Element>(row: &[R], states: &StateFunctions<R>) -> Option<usize> {
    let state = |cell: usize| -> Vec<R> { row.iter().copied().skip(cell).step_by(CELLS).collect() };
    (0..CELLS).find(|&cell| !(states.physical)(&state(cell), 1))
}
