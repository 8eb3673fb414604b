//! Checks all invariants of the hierarchy, for tests and `nestar run --audit`.

use super::Topology;
use super::topology::offset;
use nestar_kernels::mesh::{COARSER, OUTSIDE};
use std::collections::BTreeMap;

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditError(pub String);

impl std::fmt::Display for AuditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the audit finds a fault: {}", self.0)
    }
}

impl std::error::Error for AuditError {}

/// Checks rows, order, neighbours, parents, children and proper nesting, based on the patch indices alone.
///
/// # Errors
/// The first violation, with level, row and index.
pub fn audit(topology: &Topology) -> Result<(), AuditError> {
    let mut places: Vec<BTreeMap<[i32; 3], u32>> = Vec::new();
    let mut used = vec![false; topology.capacity()];
    for level in 0..=topology.max_level {
        let mut map = BTreeMap::new();
        for &row in topology.rows(level) {
            if std::mem::replace(&mut used[row as usize], true)
                || topology.level(row) != Some(level)
            {
                return Err(AuditError(format!(
                    "row {row} is listed twice or on a wrong level (level {level})"
                )));
            }
            map.insert(topology.index(row), row);
        }
        check_order(topology, level)?;
        for octet in topology.octets(level) {
            let held = octet
                .rows(u8::MAX)
                .filter(|&row| topology.level(row).is_some());
            map.extend(held.map(|row| (topology.index(row), row)));
        }
        places.push(map);
    }
    let root: i64 = topology.domain.root.iter().map(|&n| i64::from(n)).product();
    if topology.count(0) as i64 != root {
        return Err(AuditError(format!(
            "level 0 has {} patches instead of {root}",
            topology.count(0)
        )));
    }
    for (level, map) in places.iter().enumerate() {
        // families and neighbours of halo patches are used only if these are parents
        for (&index, &row) in map.iter().filter(|(_, row)| topology.is_owned(**row)) {
            check_family(topology, &places, level, index, row)?;
            check_neighbours(topology, &places, level, index, row)?;
        }
    }
    Ok(())
}

fn check_order(topology: &Topology, level: usize) -> Result<(), AuditError> {
    let keys: Vec<u64> = topology
        .rows(level)
        .iter()
        .map(|&row| topology.key(row))
        .collect();
    match keys.windows(2).position(|k| k[0] >= k[1]) {
        None => Ok(()),
        Some(n) => Err(AuditError(format!(
            "level {level} is not in Hilbert order at position {n}"
        ))),
    }
}

fn check_family(
    topology: &Topology,
    places: &[BTreeMap<[i32; 3], u32>],
    level: usize,
    index: [i32; 3],
    row: u32,
) -> Result<(), AuditError> {
    let wrong = |what: &str| {
        Err(AuditError(format!(
            "{what} of the patch {index:?} of level {level} (row {row})"
        )))
    };
    if level > 0 {
        let parent = places[level - 1]
            .get(&index.map(|i| i.div_euclid(2)))
            .copied();
        if parent.is_none() || parent != topology.parent(row) {
            return wrong("wrong parent");
        }
    }
    if let Some(first) = topology.first_child(row) {
        for c in 0..8u32 {
            let place = std::array::from_fn(|a| 2 * index[a] + (c >> a & 1) as i32);
            if places.get(level + 1).and_then(|map| map.get(&place)) != Some(&(first + c)) {
                return wrong("wrong child");
            }
        }
    }
    Ok(())
}

fn check_neighbours(
    topology: &Topology,
    places: &[BTreeMap<[i32; 3], u32>],
    level: usize,
    index: [i32; 3],
    row: u32,
) -> Result<(), AuditError> {
    let patches = topology.domain.root.map(|n| n << level);
    for (d, &code) in topology.neighbours(row).iter().enumerate() {
        let step = offset(d);
        let mut place = [0; 3];
        let mut outside = false;
        for a in 0..3 {
            let i = index[a] + step[a];
            outside |= !topology.domain.periodic[a] && !(0..patches[a]).contains(&i);
            place[a] = i.rem_euclid(patches[a]);
        }
        let expected = match places[level].get(&place) {
            _ if outside => OUTSIDE,
            Some(&n) => n as i32,
            None => COARSER,
        };
        if code != expected {
            return Err(AuditError(format!(
                "neighbour {step:?} of the patch {index:?} of level {level} (row {row}) is {code}, not {expected}"
            )));
        }
        if expected == COARSER && !places[level - 1].contains_key(&place.map(|i| i.div_euclid(2))) {
            return Err(AuditError(format!(
                "proper nesting is violated: the patch {index:?} of level {level} has a neighbour two levels coarser"
            )));
        }
    }
    Ok(())
}
