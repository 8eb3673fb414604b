//! Conservation across cells, patches and cells with first-order fluxes.
use super::sample::{Block, GAMMA, Random, all_methods, barotropic_methods, law_of, update};
use crate::hydro::{CellMask10, LaneChoice, PatchSolver};
use crate::mesh::fluxes::{FACES, advanced, face_index};
use crate::{CELLS, PATCH};

const RATES: [f64; 3] = [0.05, 0.04, 0.06];

#[test]
fn the_change_of_a_patch_is_what_crosses_its_faces() {
    let mut random = Random(3);
    for method in all_methods().into_iter().chain(barotropic_methods()) {
        let solver = PatchSolver::<f64>::new(method, law_of(&method), 2, LaneChoice::Auto);
        let width = solver.scratch().width();
        let block = Block::random(width, 2, 0.3, &mut random).of_law(&method);
        let new = update(&solver, &block, RATES, None);
        let g = solver.ghosts();
        for c in 0..solver.components() {
            let mut old = 0.0;
            for at in 0..CELLS {
                old += block.values[c][block.cell([at % 8 + g, at / 8 % 8 + g, at / 64 + g])];
            }
            let sum = |values: &[f64]| values[c * 64..(c + 1) * 64].iter().sum::<f64>();
            let crossed: f64 = (0..3)
                .map(|d| RATES[d] * (sum(&new.faces[2 * d + 1]) - sum(&new.faces[2 * d])))
                .sum();
            let change: f64 = new.out[c * CELLS..(c + 1) * CELLS].iter().sum::<f64>() - old;
            assert!(
                (change + crossed).abs() < 2e-12 * old.abs().max(10.0),
                "{method:?} component {c}: {change} {crossed}"
            );
        }
    }
}

#[test]
fn mass_fluxes_give_the_new_density_with_and_without_first_order_fluxes() {
    let (mut random, mut mask) = (Random(4), CellMask10::new());
    mask.set(2, 0, 7);
    for method in all_methods() {
        let solver = PatchSolver::<f64>::new(method, GAMMA, 1, LaneChoice::Auto);
        let block = Block::random(solver.scratch().width(), 1, 0.3, &mut random);
        for mask in [None, Some(&mask)] {
            let new = update(&solver, &block, RATES, mask);
            for at in 0..CELLS {
                let [i, j, k] = [at % 8, at / 8 % 8, at / 64];
                let through = |axis: usize, up: usize| {
                    let mut face = [i, j, k];
                    face[axis] += up;
                    new.mass[axis * FACES + face_index(axis, face)]
                };
                let sides = [0, 1].map(|up| [0, 1, 2].map(|axis| through(axis, up)));
                let old = block.values[0][block.cell([i, j, k].map(|x| x + solver.ghosts()))];
                let density = advanced(old, &sides[0], &sides[1], &RATES);
                assert_eq!(density, new.out[at], "{method:?}, cell {i} {j} {k}");
            }
        }
    }
}

/// Returns two adjacent patches along `axis`, cut out of one field.
fn neighbours(width: usize, axis: usize) -> [Block<f64>; 2] {
    let mut random = Random(17);
    let long = width + PATCH;
    let field: Vec<([f64; 5], f64)> = (0..long.pow(3))
        .map(|_| {
            let mut v = || random.between(-1.0, 1.0);
            ([1.5 + v(), v(), v(), v(), 1.2 + v()], v())
        })
        .collect();
    [0, PATCH].map(|shift| {
        Block::new(width, 1, |mut at| {
            at[axis] += shift;
            let (w, x) = field[at[0] + long * (at[1] + long * at[2])];
            (w, vec![x])
        })
    })
}

#[test]
fn neighbours_use_the_same_flux_with_and_without_first_order_cells() {
    for method in all_methods().into_iter().chain(barotropic_methods()) {
        for axis in 0..3 {
            let solver = PatchSolver::<f64>::new(method, law_of(&method), 1, LaneChoice::Auto);
            let [left, right] =
                neighbours(solver.scratch().width(), axis).map(|block| block.of_law(&method));
            // a cell at the common face, as seen by both patches, and one inside the right patch
            let (mut left_mask, mut right_mask) = (CellMask10::new(), CellMask10::new());
            let mut cell = [3, 4, 5];
            cell[axis] = 7;
            left_mask.set(cell[0], cell[1], cell[2]);
            cell[axis] = -1;
            right_mask.set(cell[0], cell[1], cell[2]);
            let inside = [[0, 2, 2], [2, 0, 2], [2, 2, 0]][axis];
            right_mask.set(inside[0], inside[1], inside[2]);
            let mut seen = inside;
            seen[axis] = 8;
            left_mask.set(seen[0], seen[1], seen[2]);
            for masks in [None, Some((&left_mask, &right_mask))] {
                let a = update(&solver, &left, RATES, masks.map(|m| m.0));
                let b = update(&solver, &right, RATES, masks.map(|m| m.1));
                assert_eq!(
                    a.faces[2 * axis + 1],
                    b.faces[2 * axis],
                    "{method:?} along {axis}"
                );
            }
        }
    }
}

#[test]
fn first_order_fluxes_change_only_the_flagged_cell_and_its_neighbours() {
    let method = crate::hydro::FluidMethod::default();
    let solver = PatchSolver::<f64>::new(method, GAMMA, 0, LaneChoice::Auto);
    let block = Block::random(solver.scratch().width(), 0, 0.3, &mut Random(5));
    let mut mask = CellMask10::new();
    assert!(mask.is_empty());
    mask.set(2, 3, 4);
    assert!(mask.contains(2, 3, 4) && !mask.contains(3, 2, 4) && !mask.is_empty());
    let plain = update(&solver, &block, RATES, None);
    let first_order = update(&solver, &block, RATES, Some(&mask));
    for at in 0..CELLS {
        let [i, j, k] = [at % 8, at / 8 % 8, at / 64].map(|x| x as i32);
        let distance = (i - 2).abs() + (j - 3).abs() + (k - 4).abs();
        assert_eq!(
            plain.out[at] != first_order.out[at],
            distance <= 1,
            "cell {i} {j} {k}"
        );
    }
}

#[test]
fn a_constant_concentration_stays_constant() {
    for method in all_methods() {
        let solver = PatchSolver::<f64>::new(method, GAMMA, 2, LaneChoice::Auto);
        let mut random = Random(11);
        let mut block = Block::random(solver.scratch().width(), 2, 0.5, &mut random);
        // the first scalar is 0.3 of the gas everywhere, the second all of it
        block.values[5] = block.values[0]
            .iter()
            .map(|density| 0.3 * density)
            .collect();
        block.values[6] = block.values[0].clone();
        let new = update(&solver, &block, RATES, None);
        for at in 0..CELLS {
            let (density, part, all) = (
                new.out[at],
                new.out[5 * CELLS + at],
                new.out[6 * CELLS + at],
            );
            assert!((part - 0.3 * density).abs() < 1e-14, "{method:?}");
            assert_eq!(all, density, "{method:?}");
        }
    }
}
