//! Checks of deck values that depend on each other.

use crate::Error;
use crate::config::{BoundaryKind, DomainConfig};
use nestar_deck::Deck;
use nestar_engine_mesh::hilbert::bits_for;
use nestar_engine_mesh::{Domain, PATCH};

/// Checks `[domain]` and returns the domain.
pub(super) fn check_domain(deck: &Deck, config: &DomainConfig) -> Result<Domain, Error> {
    let mut root = [0; 3];
    for a in 0..3 {
        if !config.cells[a].is_multiple_of(PATCH as u32) {
            let message = format!(
                "must be a multiple of {PATCH} along every axis, found {}",
                config.cells[a]
            );
            return Err(deck.error_at(&format!("domain.cells[{a}]"), message).into());
        }
        root[a] = (config.cells[a] as usize / PATCH) as i32;
        let (left, right) = (config.left_edge[a], config.right_edge[a]);
        if right <= left {
            let message =
                format!("must lie above left_edge along every axis, found {right} after {left}");
            return Err(deck
                .error_at(&format!("domain.right_edge[{a}]"), message)
                .into());
        }
    }
    Ok(Domain {
        root,
        left_edge: config.left_edge,
        right_edge: config.right_edge,
        periodic: periodic_axes(deck, config)?,
    })
}

/// Returns the axes that are periodic.
fn periodic_axes(deck: &Deck, config: &DomainConfig) -> Result<[bool; 3], Error> {
    let mut periodic = [false; 3];
    for (a, sides) in config.boundary.faces().into_iter().enumerate() {
        let count = sides
            .iter()
            .filter(|&k| *k == BoundaryKind::Periodic)
            .count();
        if count == 1 {
            let message = format!(
                "the {} axis is periodic on one side only",
                ["x", "y", "z"][a]
            );
            return Err(deck.error_at("domain.boundary", message).into());
        }
        periodic[a] = count == 2;
    }
    Ok(periodic)
}

/// Checks the size of the finest level. The Hilbert curve has 21 bits per axis, and rows are counted in 32
/// bits.
pub(super) fn check_mesh(deck: &Deck, domain: &Domain, max_level: usize) -> Result<(), Error> {
    let bits = bits_for(domain.root, max_level);
    if bits > 21 {
        let message = format!(
            "the finest level would have more than 2^21 patches along an axis (2^{bits}); \
             lower mesh.max_level by {} or take a smaller root grid",
            bits - 21
        );
        return Err(deck.error_at("mesh.max_level", message).into());
    }
    let patches: i64 = domain.root.iter().map(|&n| i64::from(n)).product();
    if patches > i64::from(i32::MAX) / 16 {
        let message = format!("{patches} root patches are more than one process can count");
        return Err(deck.error_at("domain.cells", message).into());
    }
    Ok(())
}
