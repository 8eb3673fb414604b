//! Updates of patches with a magnetic field on faces.
use super::sample::{Block, Random, magnetic_methods, update};
use crate::hydro::{CellMask10, FluidMethod, LaneChoice, PatchSolver};
use crate::mesh::Centring;
use crate::{CELLS, PATCH};

const RATES: [f64; 3] = [0.05, 0.04, 0.06];

fn methods() -> impl Iterator<Item = FluidMethod> {
    magnetic_methods()
        .into_iter()
        .filter(FluidMethod::has_face_field)
}

/// Gas and field of a box of `long` cells along `axis` and `width` along the others, both random.
struct Sample {
    cells: [usize; 3],
    gas: Vec<[f64; 8]>,
    field: [Vec<f64>; 3],
}

impl Sample {
    fn new(cells: [usize; 3], random: &mut Random) -> Self {
        let count = cells.iter().product();
        let mut v = |most: f64| random.between(-most, most);
        let mut cell = || {
            [
                1.5 + v(0.5),
                v(0.5),
                v(0.5),
                v(0.5),
                3.0 + v(1.0),
                v(0.7),
                v(0.7),
                v(0.7),
            ]
        };
        let gas = (0..count).map(|_| cell()).collect();
        let field = [0, 1, 2].map(|c| {
            let [x, y, z] = Centring::Face.lengths(c, cells);
            (0..x * y * z).map(|_| v(0.7)).collect()
        });
        Self { cells, gas, field }
    }

    /// Cuts out a block of `width` cells from `first` on.
    fn block(&self, first: [usize; 3], width: usize) -> Block<f64> {
        let place = |n: usize, [x, y, _]: [usize; 3]| {
            let at = [n % x, n / x % y, n / (x * y)];
            [0, 1, 2].map(|a| at[a] + first[a])
        };
        let index = |at: [usize; 3], [x, y, _]: [usize; 3]| at[0] + x * (at[1] + y * at[2]);
        let values = (0..8).map(|c| {
            let cell = |n| self.gas[index(place(n, [width; 3]), self.cells)][c];
            (0..width.pow(3)).map(cell).collect()
        });
        let field = (0..3).flat_map(|c| {
            let lengths = Centring::Face.lengths(c, [width; 3]);
            let of_sample = Centring::Face.lengths(c, self.cells);
            let face = move |n| self.field[c][index(place(n, lengths), of_sample)];
            (0..lengths.iter().product()).map(face)
        });
        Block {
            width,
            values: values.collect(),
            field: field.collect(),
        }
    }
}

/// Returns the divergence of a row of a field on faces times the time step, in a cell.
fn divergence(value: impl Fn(usize, [usize; 3]) -> f64, at: [usize; 3]) -> f64 {
    let through = |c: usize| {
        let mut above = at;
        above[c] += 1;
        RATES[c] * (value(c, above) - value(c, at))
    };
    through(0) + through(1) + through(2)
}

fn in_row(row: &[f64]) -> impl Fn(usize, [usize; 3]) -> f64 + '_ {
    |c, at| row[c * Centring::Face.values() + Centring::Face.index(c, at)]
}

#[test]
fn steps_keep_the_divergence_of_the_field_and_its_means_in_cells() {
    let mut mask = CellMask10::new();
    for cell in [[2, 0, 7], [-1, 3, 8], [4, 4, 4], [8, 8, 8]] {
        mask.set(cell[0], cell[1], cell[2]);
    }
    for method in methods() {
        let solver = PatchSolver::<f64>::new(method, 1.4, 0, LaneChoice::Auto);
        let (g, width) = (solver.ghosts(), solver.scratch().width());
        let sample = Sample::new([width; 3], &mut Random(5));
        let block = sample.block([0; 3], width);
        for mask in [None, Some(&mask)] {
            let new = update(&solver, &block, RATES, mask);
            let before = |c: usize, at: [usize; 3]| {
                let [x, y, _] = Centring::Face.lengths(c, [width; 3]);
                let [i, j, k] = at.map(|n| n + g);
                sample.field[c][i + x * (j + y * k)]
            };
            let after = in_row(&new.field);
            let mut largest = 0.0f64;
            for cell in 0..CELLS {
                let at = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
                let change = divergence(&after, at) - divergence(before, at);
                assert!(change.abs() < 1e-15, "{method:?} {at:?}: {change:e}");
                largest = largest.max((after(0, at) - before(0, at)).abs());
                for c in 0..3 {
                    let mut above = at;
                    above[c] += 1;
                    let mean = 0.5 * (after(c, at) + after(c, above));
                    assert_eq!(new.out[(5 + c) * CELLS + cell], mean, "{method:?} {at:?}");
                }
            }
            assert!(largest > 1e-3, "{method:?}: the field hardly changes");
        }
    }
}

#[test]
fn patches_at_a_face_agree_about_its_field_and_its_edges() {
    for method in methods() {
        let solver = PatchSolver::<f64>::new(method, 1.4, 0, LaneChoice::Auto);
        let width = solver.scratch().width();
        for axis in 0..3 {
            let mut cells = [width; 3];
            cells[axis] += PATCH;
            let sample = Sample::new(cells, &mut Random(17));
            let mut second = [0; 3];
            second[axis] = PATCH;
            let blocks = [sample.block([0; 3], width), sample.block(second, width)];
            // a cell at the common face, and one at its border, as seen by both patches
            let masks = [7, -1].map(|place| {
                let mut mask = CellMask10::new();
                for across in [[4, 5], [-1, 3], [8, 8]] {
                    let mut cell = [across[0], across[1], across[0]];
                    cell[(axis + 1) % 3] = across[0];
                    cell[(axis + 2) % 3] = across[1];
                    cell[axis] = place;
                    mask.set(cell[0], cell[1], cell[2]);
                }
                mask
            });
            for masked in [false, true] {
                let [below, above] =
                    [0, 1].map(|n| update(&solver, &blocks[n], RATES, masked.then_some(&masks[n])));
                let (a, b) = (in_row(&below.field), in_row(&above.field));
                let edge = |row: &[f64], c: usize, at| {
                    row[c * Centring::Edge.values() + Centring::Edge.index(c, at)]
                };
                for n in 0..(PATCH + 1) * (PATCH + 1) {
                    let mut at = [0; 3];
                    at[(axis + 1) % 3] = n % (PATCH + 1);
                    at[(axis + 2) % 3] = n / (PATCH + 1);
                    let mut last = at;
                    last[axis] = PATCH;
                    if n % (PATCH + 1) < PATCH && n / (PATCH + 1) < PATCH {
                        assert_eq!(a(axis, last), b(axis, at), "{method:?} along {axis}");
                    }
                    for c in [(axis + 1) % 3, (axis + 2) % 3] {
                        if at[c] < PATCH {
                            let [one, other] =
                                [edge(&below.electric, c, last), edge(&above.electric, c, at)];
                            assert_eq!(one, other, "{method:?} along {axis}, edge {c} at {at:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_uniform_state_stays_and_changes_no_bit_of_the_field() {
    let b = [0.3, -0.7, 1.1];
    for method in methods() {
        let solver = PatchSolver::<f64>::new(method, 1.4, 0, LaneChoice::Auto);
        let width = solver.scratch().width();
        let mut sample = Sample::new([width; 3], &mut Random(1));
        let field = b.iter().copied();
        let cell: Vec<f64> = [1.0, 0.5, 0.25, -2.0, 5.0]
            .into_iter()
            .chain(field)
            .collect();
        sample.gas.fill(cell.try_into().expect("eight values"));
        for c in 0..3 {
            sample.field[c].fill(b[c]);
        }
        let new = update(&solver, &sample.block([0; 3], width), RATES, None);
        for (c, values) in new.field.chunks_exact(Centring::Face.values()).enumerate() {
            assert!(values.iter().all(|&value| value == b[c]), "{method:?}");
        }
    }
}
