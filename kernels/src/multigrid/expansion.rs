//! Tables around an isolated domain, from values or an expansion: functions of both the host and `expansion.cu`.
//!
//! Blocks of cells around the domain are ordered `[face][layer][b][a]`, as in
//! [`table_index`](super::stencil::table_index).

use super::exterior::{AROUND_FACE, LAYERS};
use nestar_device::device;
use nestar_device::math::sum3;

/// Number of cells around the domain with values: one more than in the tables, for the spline coefficients.
pub const MARGIN: usize = AROUND_FACE + 1;
/// Number of layers along the normal of a face with values: those of the tables and one more on each side.
pub const TABLE_LAYERS_WITH_MARGIN: usize = LAYERS + 2;

/// Returns the extent along axis `n` = 1 or 2 after that of a face, with `margin` cells on both sides.
#[device]
#[must_use]
pub fn across(cells: &[i32; 3], face: i32, n: i32, margin: i32) -> i32 {
    cells[(((face >> 1) + n) % 3) as usize] + 2 * margin
}

/// Returns the extent of a face along the other two axes, with [`MARGIN`] cells on both sides.
#[must_use]
pub fn face_extent(cells: [i32; 3], face: usize) -> [i32; 2] {
    [1, 2].map(|n| across(&cells, face as i32, n, MARGIN as i32))
}

/// Returns the number of values of a face.
#[must_use]
pub fn face_value_count(cells: [i32; 3], face: usize) -> usize {
    let [a, b] = face_extent(cells, face);
    TABLE_LAYERS_WITH_MARGIN * (a * b) as usize
}

/// Returns the number of values around a domain of root cells.
#[must_use]
pub fn value_count(cells: [i32; 3]) -> usize {
    (0..6).map(|face| face_value_count(cells, face)).sum()
}

/// Returns face, layer, b and a of an index into blocks with `deep` layers and `margin` cells outside the edges of a
/// face.
#[device]
#[must_use]
pub fn place_of(cells: &[i32; 3], deep: i32, margin: i32, place: i32) -> [i32; 4] {
    let mut face: i32 = 0;
    let mut rest = place;
    for n in 0..5 {
        let area = deep * across(cells, n, 1, margin) * across(cells, n, 2, margin);
        if face == n && rest >= area {
            rest -= area;
            face += 1;
        }
    }
    let wide = across(cells, face, 1, margin);
    let line = rest / wide;
    let high = across(cells, face, 2, margin);
    [face, line / high, line % high, rest % wide]
}

/// Returns the root cell of a value, for [`TABLE_LAYERS_WITH_MARGIN`] layers and [`MARGIN`] cells outside edges.
#[device]
#[must_use]
pub fn exterior_cell(cells: &[i32; 3], place: i32) -> [i32; 3] {
    let at = place_of(cells, 5, 3, place);
    let axis = (at[0] >> 1) as usize;
    let first = if at[0] & 1 == 0 { -3 } else { cells[axis] - 2 };
    let mut cell = [0, 0, 0];
    cell[axis] = first + at[1];
    cell[(axis + 1) % 3] = at[3] - 3;
    cell[(axis + 2) % 3] = at[2] - 3;
    cell
}

/// Returns the index of the value of a table entry, and the distances to the next layer and the next b.
#[device]
#[must_use]
pub fn place_of_entry(cells: &[i32; 3], entry: i32) -> [i32; 3] {
    let at = place_of(cells, 3, 2, entry);
    let mut place: i32 = 0;
    for n in 0..5 {
        if n < at[0] {
            place += 5 * across(cells, n, 1, 3) * across(cells, n, 2, 3);
        }
    }
    let wide = across(cells, at[0], 1, 3);
    let layer = wide * across(cells, at[0], 2, 3);
    place += (at[1] + 1) * layer + (at[2] + 1) * wide + at[3] + 1;
    [place, layer, wide]
}

/// Returns the quadratic B-spline coefficient of a value from its neighbours along the axes.
#[device]
#[must_use]
pub fn spline_coefficient(value: f64, beside: &[f64; 6]) -> f64 {
    let mut bends = [0.0; 3];
    for axis in 0..3 {
        bends[axis] = (beside[2 * axis] - value) + (beside[2 * axis + 1] - value);
    }
    value - 0.125 * sum3(bends[0], bends[1], bends[2])
}

/// Returns a derivative of 1/r of order n, over the factorials of its orders and without sign. It follows from those of
/// one and two orders less along each axis (Duan & Krasny 2001): n r^2 e = (2n - 1) sum x e' - (n - 1) sum e''. `first`
/// is 2 - 1/n and `second` 1 - 1/n.
#[device]
#[must_use]
pub fn next_derivative(
    inverse: f64,
    x: &[f64; 3],
    one: &[f64; 3],
    two: &[f64; 3],
    first: f64,
    second: f64,
) -> f64 {
    let ones = sum3(x[0] * one[0], x[1] * one[1], x[2] * one[2]);
    let twos = sum3(two[0], two[1], two[2]);
    inverse * (first * ones - second * twos)
}

#[cfg(test)]
mod tests {
    use super::super::exterior::table_length;
    use super::super::stencil::table_index;
    use super::*;

    const CELLS: [i32; 3] = [8, 24, 16];

    #[test]
    fn entries_and_values_are_those_of_the_same_cells() {
        let length = table_length(CELLS) as i32;
        for entry in 0..length {
            let [place, layer, wide] = place_of_entry(&CELLS, entry);
            let cell = exterior_cell(&CELLS, place);
            let [face, ..] = place_of(&CELLS, LAYERS as i32, AROUND_FACE as i32, entry);
            assert_eq!(table_index(&CELLS, face, cell), entry, "{cell:?}");
            let axis = face as usize / 2;
            for (step, along) in [(layer, axis), (1, (axis + 1) % 3), (wide, (axis + 2) % 3)] {
                let mut next = cell;
                next[along] += 1;
                assert_eq!(exterior_cell(&CELLS, place + step), next);
                assert_eq!(
                    place_of(
                        &CELLS,
                        TABLE_LAYERS_WITH_MARGIN as i32,
                        MARGIN as i32,
                        place + step
                    )[0],
                    face
                );
            }
        }
    }
}
