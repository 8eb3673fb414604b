//! Gathers the faces of a patch and of its ghost cells into one block.
//!
//! A face that belongs to a patch of the level has the value stored there. Beyond a coarse-fine border, the fine faces on a coarse one are
//! interpolated in its plane and in time, and those inside coarse cells follow from them as in new patches. A value depends on its place
//! and on the state only, not on the patch that asks for it.

use super::block::{LevelGeometry, cell_centre, face_position};
use super::boundary::{FaceRule, mean_of_rules};
use super::coarse_faces::CoarseFaces;
use super::fine_faces::{inner_face_from, width_ratios};
use super::gather::{GatherTarget, GhostView};
use super::rule::{GhostCell, InnerStates};
use super::states::MAX_COMPONENTS;
use super::{COARSER, Centring, OUTSIDE};
use crate::PATCH;
use nestar_device::Real;

/// Gathers the faces of row `row` and of its ghost cells.
///
/// The block has `[component][k][j][i]` values, along the axis of a component one more than cells.
///
/// # Panics
/// If more ghost layers are wanted than `view.reach`, or the values do not lie on faces.
pub fn gather_faces<R: Real>(view: &GhostView<R>, row: u32, target: &mut GatherTarget<R>) {
    let (ghosts, reach) = (target.ghosts, view.reach);
    assert!(
        ghosts <= reach,
        "a gather of {ghosts} ghost layers, but only {reach} may be read"
    );
    assert_eq!(view.centring, Centring::Face, "a gather of faces");
    let around = &view.neighbours[row as usize];
    if around.contains(&COARSER) {
        interpolate(view, row, target);
    }
    // faces on a border with coarser patches are those of this level
    for (d, &code) in around.iter().enumerate() {
        if let Ok(neighbour) = u32::try_from(code) {
            copy_sector(view.level.row(neighbour), step_in(d), target);
        }
    }
    if around.contains(&OUTSIDE) {
        fill_outside(view, row, target);
    }
}

/// Returns the step to the neighbour in direction `d` of a table of 27.
fn step_in(d: usize) -> [i32; 3] {
    [d % 3, d / 3 % 3, d / 9].map(|n| n as i32 - 1)
}

/// Returns the index of a value among those of component `c` in a block.
fn index_in_block(c: usize, ghosts: usize, [i, j, k]: [usize; 3]) -> usize {
    let [x, y, _] = Centring::Face.lengths(c, [PATCH + 2 * ghosts; 3]);
    i + x * (j + y * k)
}

/// Copies the faces of the cells that the neighbour at `step` provides.
fn copy_sector<R: Real>(source: &[R], step: [i32; 3], target: &mut GatherTarget<R>) {
    let g = target.ghosts;
    // first cell in the neighbour, first cell in the block, number of cells
    let cells = step.map(|step| match step {
        -1 => (PATCH - g, 0, g),
        0 => (0, g, PATCH),
        _ => (0, PATCH + g, g),
    });
    if cells.iter().any(|cells| cells.2 == 0) {
        return;
    }
    let values = Centring::Face.values();
    for c in 0..target.components {
        let [x, y, z] = Centring::Face.lengths(c, cells.map(|cells| cells.2));
        for (k, j) in (0..z).flat_map(|k| (0..y).map(move |j| (k, j))) {
            let from = [cells[0].0, cells[1].0 + j, cells[2].0 + k];
            let to = [cells[0].1, cells[1].1 + j, cells[2].1 + k];
            let from = c * values + Centring::Face.index(c, from);
            let to = c * target.stride + index_in_block(c, g, to);
            target.values[to..to + x].copy_from_slice(&source[from..from + x]);
        }
    }
}

/// Interpolates the faces of ghost cells in coarser patches.
fn interpolate<R: Real>(view: &GhostView<R>, row: u32, target: &mut GatherTarget<R>) {
    let (around, corner) = (
        &view.neighbours[row as usize],
        CoarseFaces::corner(view, row),
    );
    let (reach, half) = (target.ghosts.div_ceil(2), PATCH / 2);
    let across = half + 2 * reach;
    let coarse = CoarseFaces::around_parent(view, row);
    let ratios = width_ratios(&view.edges, view.domain_cells);
    for n in 0..across * across * across {
        let q = [n % across, n / across % across, n / (across * across)];
        let part = q.map(|q| usize::from(q >= reach) + usize::from(q >= reach + half));
        if around[part[0] + 3 * part[1] + 9 * part[2]] != COARSER {
            continue;
        }
        let at = std::array::from_fn(|a| corner[a] + q[a] as i32 - reach as i32);
        let first = q.map(|q| 2 * (q as i32 - reach as i32) + target.ghosts as i32);
        for vector in 0..target.components / 3 {
            let faces = fine_faces(&coarse, vector, at, &ratios);
            put(&faces, vector, first, target);
        }
    }
}

/// Fine faces of a coarse cell: by component, then plane, then along the third axis, then along the next one.
type CellFaces<R> = [[R; 12]; 3];

/// Returns the index of a fine face among those of component `c`.
fn index_in_cell(c: usize, at: [usize; 3]) -> usize {
    4 * at[c] + 2 * at[(c + 2) % 3] + at[(c + 1) % 3]
}

/// Returns the position of fine face `n` of component `c`, as [`index_in_cell`].
fn place_in_cell(c: usize, n: usize) -> [usize; 3] {
    let mut at = [0; 3];
    at[c] = n / 4;
    at[(c + 1) % 3] = n % 2;
    at[(c + 2) % 3] = n / 2 % 2;
    at
}

/// Returns the fine faces of the coarse cell `at` for a vector of the field.
fn fine_faces<R: Real>(
    coarse: &CoarseFaces<R>,
    vector: usize,
    at: [i32; 3],
    ratios: &[[R; 3]; 3],
) -> CellFaces<R> {
    let mut faces = [[R::lit(0.0); 12]; 3];
    for (c, faces) in faces.iter_mut().enumerate() {
        for plane in [0, 1] {
            let mut at = at;
            at[c] += plane;
            let from = 8 * plane as usize;
            faces[from..from + 4].copy_from_slice(&coarse.fine(3 * vector + c, at));
        }
    }
    for c in 0..3 {
        for n in 4..8 {
            let outer = |c: usize, at| faces[c][index_in_cell(c, at)];
            faces[c][n] = inner_face_from(c, place_in_cell(c, n), ratios, outer);
        }
    }
    faces
}

/// Writes the fine faces of a coarse cell whose first fine cell is `first` in the block. With an odd number of ghost layers only half of
/// the outermost coarse cells is used.
fn put<R: Real>(
    faces: &CellFaces<R>,
    vector: usize,
    first: [i32; 3],
    target: &mut GatherTarget<R>,
) {
    let n = PATCH + 2 * target.ghosts;
    for (axis, faces) in faces.iter().enumerate() {
        let c = 3 * vector + axis;
        let lengths = Centring::Face.lengths(c, [n; 3]);
        for (place, value) in faces.iter().enumerate() {
            let within = place_in_cell(axis, place);
            let at = [0, 1, 2].map(|a| usize::try_from(first[a] + within[a] as i32));
            if let [Ok(i), Ok(j), Ok(k)] = at
                && (0..3).all(|a| [i, j, k][a] < lengths[a])
            {
                let to = index_in_block(c, target.ghosts, [i, j, k]);
                target.values[c * target.stride + to] = *value;
            }
        }
    }
}

/// Fills the faces outside the domain: mirror images at reflecting walls, the values of rules, the nearest face inside elsewhere.
///
/// Rules are evaluated at the face's own position, mirrored at walls. If several rules apply, the result is their mean. Faces of the domain
/// themselves are inside.
fn fill_outside<R: Real>(view: &GhostView<R>, row: u32, target: &mut GatherTarget<R>) {
    let g = target.ghosts;
    let first = view.index[row as usize].map(|i| i * PATCH as i32 - g as i32);
    let mut state = [R::lit(0.0); MAX_COMPONENTS];
    for c in 0..target.components {
        let [x, y, z] = Centring::Face.lengths(c, [PATCH + 2 * g; 3]);
        for n in 0..x * y * z {
            let at = [n % x, n / x % y, n / (x * y)];
            let (mut from, mut outside, mut negative) = (at, false, false);
            let mut asked: [i32; 3] = std::array::from_fn(|a| first[a] + at[a] as i32);
            for axis in 0..3 {
                let Some(source) = source_along(view, c, axis, asked[axis]) else {
                    asked[axis] = wrapped(view, axis, asked[axis]);
                    continue;
                };
                outside = true;
                negative ^= source.negative;
                from[axis] = (source.place - first[axis]) as usize;
                if source.is_mirrored {
                    asked[axis] = source.place;
                }
            }
            if outside {
                let near = target.values[c * target.stride + index_in_block(c, g, from)];
                let value = by_rules(view, c, asked, near, &mut state[..target.components]);
                let to = c * target.stride + index_in_block(c, g, at);
                target.values[to] = if negative { -value } else { value };
            }
        }
    }
}

/// Returns the place within the domain along `axis`, if that is periodic.
fn wrapped<R>(view: &GhostView<R>, axis: usize, place: i32) -> i32 {
    match view.boundaries.faces[axis][1] {
        FaceRule::Periodic => place.rem_euclid(view.domain_cells[axis]),
        _ => place,
    }
}

/// Returns the value of component `c` on the face `asked` by the rules of the faces of the domain that it lies beyond: `near`, that of the nearest
/// face inside, if there are none. `state` is work space for all components.
fn by_rules<R: Real>(
    view: &GhostView<R>,
    c: usize,
    asked: [i32; 3],
    near: R,
    state: &mut [R],
) -> R {
    let mut values = [near; 3];
    let mut count = 0;
    for axis in 0..3 {
        let last = view.domain_cells[axis] - 1 + Centring::Face.staggered(c, axis) as i32;
        let layers = [-1 - asked[axis], asked[axis] - last - 1];
        let Some(side) = layers.iter().position(|layer| *layer >= 0) else {
            continue;
        };
        let FaceRule::Rule(rule) = &view.boundaries.faces[axis][side] else {
            continue;
        };
        let cell = GhostCell {
            axis,
            side,
            layer: layers[side],
            index: asked,
            centre: position(view, c, asked),
            time: view.time,
            level: geometry(view),
        };
        state.fill(near);
        rule.apply(&cell, &InnerStates::default(), state);
        values[count] = state[c];
        count += 1;
    }
    match count {
        0 | 1 => values[0],
        _ => mean_of_rules(values[0], values[1], values[2], count == 3),
    }
}

/// Returns the geometry of the level.
fn geometry<R>(view: &GhostView<R>) -> LevelGeometry {
    let [left, right] = view.edges;
    LevelGeometry {
        left,
        right,
        cells: view.domain_cells,
        level: view.number,
        width: [0, 1, 2].map(|a| (right[a] - left[a]) / f64::from(view.domain_cells[a])),
        time: view.time,
        dt: 0.0,
        numbers: [1.0; 2],
    }
}

/// Returns the position of the middle of a face of component `c`.
fn position<R>(view: &GhostView<R>, c: usize, at: [i32; 3]) -> [f64; 3] {
    std::array::from_fn(|a| {
        let [left, right] = view.edges.map(|edges| edges[a]);
        match Centring::Face.staggered(c, a) {
            0 => cell_centre(at[a], view.domain_cells[a], left, right),
            _ => face_position(at[a], view.domain_cells[a], left, right),
        }
    })
}

/// Where a face outside the domain takes its value from, along one axis.
struct Source {
    /// Position on the level.
    place: i32,
    /// `true` if the value changes its sign.
    negative: bool,
    /// `true` if the face is the mirror image of its source.
    is_mirrored: bool,
}

/// Returns the source along `axis` of a face of component `c` at `place` on the level; `None` inside the domain or if the axis is
/// periodic. Faces on the wall itself are inside.
fn source_along<R: Real>(view: &GhostView<R>, c: usize, axis: usize, place: i32) -> Option<Source> {
    let on_axis = Centring::Face.staggered(c, axis) as i32;
    let last = view.domain_cells[axis] - 1 + on_axis;
    let side = match place {
        ..0 => 0,
        _ if place > last => 1,
        _ => return None,
    };
    match view.boundaries.faces[axis][side] {
        FaceRule::Periodic => None,
        FaceRule::Reflecting => Some(Source {
            place: match side {
                0 => on_axis - 1 - place,
                _ => 2 * last + 1 - on_axis - place,
            },
            negative: view.boundaries.normal[axis] >> c & 1 == 1,
            is_mirrored: true,
        }),
        FaceRule::Outflow | FaceRule::Rule(_) => Some(Source {
            place: side as i32 * last,
            negative: false,
            is_mirrored: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::prolong::SlopeLimiter;
    use crate::mesh::{Boundaries, Rows, SELF, direction};
    use std::collections::BTreeMap;

    const VALUES: usize = Centring::Face.values();
    /// Rows 0..27 are a coarse patch (13) and its neighbours, rows 27..35 its children.
    const ROWS: usize = 64;
    /// Widths of a fine cell, and the weight of the newer coarse values.
    const WIDTHS: [f64; 3] = [1.0, 0.25, 3.0];
    const WEIGHT: f64 = 0.25;

    /// A refined patch with coarse neighbours; walls below along y, an open end above along z.
    struct Family {
        banks: [Vec<f64>; 2],
        neighbours: Vec<[i32; 27]>,
        index: Vec<[i32; 3]>,
    }

    fn step_to(d: usize) -> [i32; 3] {
        [d % 3, d / 3 % 3, d / 9].map(|n| n as i32 - 1)
    }

    impl Family {
        /// Fills rows with `value` of bank, level, component and place, counted from the first cell of the refined patch.
        fn new(value: impl Fn(usize, usize, usize, [i32; 3]) -> f64) -> Self {
            let mut neighbours = vec![[COARSER; 27]; ROWS];
            let mut index = vec![[0; 3]; ROWS];
            let inside = |step: [i32; 3]| step[1] >= 0 && step[2] <= 0;
            neighbours[SELF] = std::array::from_fn(|d| match inside(step_to(d)) {
                true => d as i32,
                false => OUTSIDE,
            });
            // the refined patch is the second along x, the first along y, the last along z
            index[SELF] = [1, 0, 1];
            for child in 0..8 {
                let own = [0, 1, 2].map(|a| child >> a & 1);
                index[27 + child as usize] = [0, 1, 2].map(|a| 2 * index[SELF][a] + own[a]);
                for (d, code) in neighbours[27 + child as usize].iter_mut().enumerate() {
                    let to: [i32; 3] = std::array::from_fn(|a| own[a] + step_to(d)[a]);
                    if to.iter().all(|i| (0..2).contains(i)) {
                        *code = 27 + to[0] + 2 * to[1] + 4 * to[2];
                    } else if to[1] < 0 || to[2] > 1 {
                        *code = OUTSIDE;
                    }
                }
            }
            let bank = |bank: usize| {
                let mut values = vec![f64::NAN; ROWS * 3 * VALUES];
                for (row, values) in values.chunks_exact_mut(3 * VALUES).take(35).enumerate() {
                    let (level, first) = match row.checked_sub(27) {
                        None => (0, step_to(row).map(|i| i * PATCH as i32)),
                        Some(child) => (1, [0, 1, 2].map(|a| 8 * (child as i32 >> a & 1))),
                    };
                    for (n, to) in values.iter_mut().enumerate() {
                        let c = n / VALUES;
                        let [x, y, _] = Centring::Face.lengths(c, [PATCH; 3]);
                        let at = [n % VALUES % x, n % VALUES / x % y, n % VALUES / (x * y)];
                        let place = std::array::from_fn(|a| first[a] + at[a] as i32);
                        *to = value(bank, level, c, place);
                    }
                }
                values
            };
            Self {
                banks: [bank(0), bank(1)],
                neighbours,
                index,
            }
        }

        /// Gathers child `child` with `ghosts` ghost layers.
        fn gather(&mut self, child: usize, ghosts: usize) -> Vec<f64> {
            let slabs = self.banks.each_mut().map(|bank| [bank.as_mut_ptr()]);
            // SAFETY: a slab holds `ROWS` rows, 64 as the shift says, and outlives the view.
            let [old, new] = [0, 1].map(|n| unsafe { Rows::new(&slabs[n], 6, 3 * VALUES) });
            let boundaries = Boundaries {
                faces: [
                    [FaceRule::Periodic, FaceRule::Periodic],
                    [FaceRule::Reflecting, FaceRule::Reflecting],
                    [FaceRule::Outflow, FaceRule::Outflow],
                ],
                normal: [1, 2, 4],
            };
            let view = GhostView {
                level: new,
                coarse_old: old,
                coarse_new: new,
                weight: WEIGHT,
                neighbours: &self.neighbours,
                parent: &[SELF as i32; ROWS],
                index: &self.index,
                number: 1,
                domain_cells: [48, 32, 32],
                edges: [[0.0; 3], [48.0, 8.0, 96.0]],
                boundaries: &boundaries,
                time: 0.0,
                limiter: SlopeLimiter::Central,
                states: None,
                reach: 4,
                centring: Centring::Face,
            };
            let n = PATCH + 2 * ghosts;
            let stride = n * n * (n + 1);
            let mut values = vec![f64::NAN; 3 * stride];
            let mut target = GatherTarget {
                values: &mut values,
                stride,
                components: 3,
                ghosts,
            };
            gather_faces(&view, 27 + child as u32, &mut target);
            values
        }
    }

    fn number(words: [i32; 5]) -> f64 {
        let mix = |sum: i64, word: i32| (sum * 1009 + i64::from(word) * 7919 + 12_345) % 1_000_003;
        words.into_iter().fold(17, mix) as f64 / 1e6
    }

    /// A field without divergence on each level: the curl of random numbers on edges. `width` is that of its cells.
    fn curl(bank: usize, level: usize, c: usize, at: [i32; 3]) -> f64 {
        let width = WIDTHS.map(|w| if level == 0 { 2.0 * w } else { w });
        let [b, e] = [(c + 1) % 3, (c + 2) % 3];
        let edge = |along: usize, at: [i32; 3]| {
            number([
                bank as i32,
                (level * 3 + along) as i32,
                at[0] + 40,
                at[1] + 40,
                at[2] + 40,
            ])
        };
        let slope = |along: usize, axis: usize| {
            let mut above = at;
            above[axis] += 1;
            (edge(along, above) - edge(along, at)) / width[axis]
        };
        slope(e, b) - slope(b, e)
    }

    /// Calls `each` with component, place from the first cell of the refined patch, and value.
    fn each_face(
        child: usize,
        ghosts: usize,
        values: &[f64],
        mut each: impl FnMut(usize, [i32; 3], f64),
    ) {
        let n = PATCH + 2 * ghosts;
        for (at, &value) in values.iter().enumerate() {
            let (c, at) = (at / (n * n * (n + 1)), at % (n * n * (n + 1)));
            let [x, y, _] = Centring::Face.lengths(c, [n; 3]);
            let within = [at % x, at / x % y, at / (x * y)];
            let first = [0, 1, 2].map(|a| 8 * (child as i32 >> a & 1) - ghosts as i32);
            each(
                c,
                std::array::from_fn(|a| first[a] + within[a] as i32),
                value,
            );
        }
    }

    #[test]
    fn a_linear_field_is_gathered_exactly_in_space_and_time() {
        let linear = |c: usize, at: [f64; 3]| {
            2.0 * at[c] - 0.5 * at[(c + 1) % 3] + 0.25 * at[(c + 2) % 3] + 7.0
        };
        let value = |bank: usize, level: usize, c: usize, at: [i32; 3]| {
            let width = if level == 0 { 2.0 } else { 1.0 };
            let half = |a: usize| if a == c { 0.0 } else { 0.5 };
            let at = [0, 1, 2].map(|a| width * (f64::from(at[a]) + half(a)));
            // the older coarse values are 4 larger, so that their blend is 3 larger
            linear(c, at) + if level == 0 && bank == 0 { 4.0 } else { 0.0 }
        };
        let mut family = Family::new(value);
        for (child, ghosts) in
            (0..8).flat_map(|child| [(child, 1), (child, 2), (child, 3), (child, 4)])
        {
            let values = family.gather(child, ghosts);
            each_face(child, ghosts, &values, |c, at, found| {
                let in_domain = (0..3).all(|a| match a {
                    1 => at[1] >= 0,
                    2 => at[2] < 16 + i32::from(c == 2),
                    _ => true,
                });
                // slopes next to the open boundaries are not those of the field
                let inner = at[1] >= 2 && at[2] < 14;
                if !in_domain || !inner {
                    return;
                }
                let fine = (0..3).all(|a| (0..16 + i32::from(a == c)).contains(&at[a]));
                let wanted = value(1, 1, c, at) + if fine { 0.0 } else { 3.0 };
                assert_eq!(found, wanted, "{child} {ghosts}: {c} {at:?}");
            });
        }
    }

    #[test]
    fn ghost_cells_have_no_divergence_and_a_face_depends_on_its_place_only() {
        let mut family = Family::new(curl);
        let mut known: BTreeMap<(usize, [i32; 3]), u64> = BTreeMap::new();
        let mut again = 0;
        for (child, ghosts) in
            (0..8).flat_map(|child| [(child, 1), (child, 2), (child, 3), (child, 4)])
        {
            let values = family.gather(child, ghosts);
            each_face(child, ghosts, &values, |c, at, found| {
                assert!(found.is_finite(), "{child} {ghosts}: {c} {at:?}");
                let before = known.insert((c, at), found.to_bits());
                assert!(
                    before.is_none_or(|before| before == found.to_bits()),
                    "{c} {at:?}"
                );
                again += usize::from(before.is_some());
            });
        }
        assert!(again > 10_000, "{again}");
        let face = |c: usize, at: [i32; 3]| f64::from_bits(known[&(c, at)]);
        let mut checked = 0;
        for n in 0..24 * 20 * 20 {
            let at = [n % 24 - 4, n / 24 % 20, n / 480 - 4];
            // cells at the border have two kinds of faces
            let apart = |a: usize| at[a] < -1 || at[a] > 16;
            let fine = (0..3).all(|a| (0..16).contains(&at[a]));
            if !fine && !(0..3).any(apart) {
                continue;
            }
            let through = |c: usize| {
                let mut above = at;
                above[c] += 1;
                (face(c, above) - face(c, at)) / WIDTHS[c]
            };
            let divergence = through(0) + through(1) + through(2);
            assert!(divergence.abs() < 1e-13, "{at:?}: {divergence:e}");
            checked += 1;
        }
        assert!(checked > 5000, "{checked}");
    }

    #[test]
    fn faces_on_the_border_are_those_of_the_finer_patch() {
        let mut family = Family::new(curl);
        for ghosts in 1..=4 {
            let values = family.gather(0, ghosts);
            let mut checked = 0;
            each_face(0, ghosts, &values, |c, at, found| {
                if (0..3).all(|a| (0..16 + i32::from(a == c)).contains(&at[a])) {
                    assert_eq!(found, curl(1, 1, c, at), "{ghosts}: {c} {at:?}");
                    checked += 1;
                }
            });
            assert!(checked > 3 * 8 * 8 * 9, "{checked}");
        }
    }

    #[test]
    fn faces_outside_are_mirrored_at_walls_and_repeated_at_open_ends() {
        let mut family = Family::new(curl);
        // child 4 touches the wall below along y and the open end above along z
        let values = family.gather(4, 2);
        let mut known = BTreeMap::new();
        each_face(4, 2, &values, |c, at, found| {
            known.insert((c, at), found);
        });
        assert_eq!(family.neighbours[31][direction([0, -1, 1])], OUTSIDE);
        let mut checked = 0;
        for (&(c, at), &found) in &known {
            let (mut from, mut sign) = (at, 1.0);
            if at[1] < 0 {
                from[1] = if c == 1 { -at[1] } else { -1 - at[1] };
                sign = if c == 1 { -1.0 } else { 1.0 };
            }
            from[2] = at[2].min(15 + i32::from(c == 2));
            assert_eq!(found, sign * known[&(c, from)], "{c} {at:?}");
            checked += usize::from(from != at);
        }
        assert!(checked > 1000, "{checked}");
    }
}
