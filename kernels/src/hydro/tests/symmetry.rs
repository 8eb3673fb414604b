//! Exchanging axes and mirroring the input does exactly the same to the output.
use super::sample::{Block, Random, all_methods, barotropic_methods, dual_methods, law_of, update};
use crate::hydro::{CellMask10, HydroReal, LaneChoice, PatchSolver};
use crate::{CELLS, PATCH};
use nestar_device::Real;

/// New axis `a` is the old axis `axis[a]`, mirrored where `flip[a]`.
#[derive(Clone, Copy, Debug)]
struct Transform {
    axis: [usize; 3],
    flip: [bool; 3],
}

impl Transform {
    /// Transforms that generate all 48, and two that mix them.
    fn some() -> [Transform; 5] {
        let new = |axis, flip| Transform { axis, flip };
        [
            new([0, 1, 2], [true, false, false]),
            new([1, 0, 2], [false; 3]),
            new([1, 2, 0], [false; 3]),
            new([2, 1, 0], [false, true, true]),
            new([2, 0, 1], [true, true, true]),
        ]
    }

    /// New place of the cell at `at` among `n` an axis.
    fn place(&self, at: [usize; 3], n: usize) -> [usize; 3] {
        [0, 1, 2].map(|a| {
            if self.flip[a] {
                n - 1 - at[self.axis[a]]
            } else {
                at[self.axis[a]]
            }
        })
    }

    /// Old component and sign of the new component `c`.
    fn component(&self, c: usize) -> (usize, f64) {
        if (1..4).contains(&c) {
            (
                1 + self.axis[c - 1],
                if self.flip[c - 1] { -1.0 } else { 1.0 },
            )
        } else {
            (c, 1.0)
        }
    }

    /// Values `[component][cell]` of a cube with `n` cells an axis, transformed.
    fn values<R: Real>(&self, old: &[R], n: usize) -> Vec<R> {
        let cells = n.pow(3);
        let mut new = old.to_vec();
        for c in 0..old.len() / cells {
            let (from, sign) = self.component(c);
            for at in 0..cells {
                let [i, j, k] = self.place([at % n, at / n % n, at / (n * n)], n);
                new[c * cells + i + n * (j + n * k)] = R::lit(sign) * old[from * cells + at];
            }
        }
        new
    }

    fn block<R: Real>(&self, block: &Block<R>) -> Block<R> {
        let flat = self.values(&block.values.concat(), block.width);
        Block {
            width: block.width,
            values: flat.chunks(block.width.pow(3)).map(<[R]>::to_vec).collect(),
            field: Vec::new(),
        }
    }
}

/// A mask of a few cells, transformed.
fn mask(transform: &Transform) -> CellMask10 {
    let mut mask = CellMask10::new();
    for cell in [[0, 4, 5], [1, 4, 5], [9, 8, 1], [4, 4, 4]] {
        let [i, j, k] = transform.place(cell, PATCH + 2);
        mask.set(i as i32 - 1, j as i32 - 1, k as i32 - 1);
    }
    mask
}

fn exact_symmetry<R: HydroReal>() {
    let identity = Transform {
        axis: [0, 1, 2],
        flip: [false; 3],
    };
    let rates = [0.09, 0.06, 0.12];
    let mut random = Random(99);
    let methods = all_methods().into_iter().chain(dual_methods());
    for method in methods.chain(barotropic_methods()) {
        for roughness in [0.05, 1.0] {
            // components behind the variables: scalars or the internal energy
            let scalars = 6 - method.gas_components();
            let law = law_of(&method);
            let solver = PatchSolver::<R>::new(method, law, scalars, LaneChoice::Auto);
            let behind = 6 - method.equation.components();
            let width = solver.scratch().width();
            let block = Block::<R>::random(width, behind, roughness, &mut random).of_law(&method);
            let reference = update(&solver, &block, rates, Some(&mask(&identity)));
            for t in Transform::some() {
                let new_rates = t.axis.map(|axis| rates[axis]);
                let new = update(&solver, &t.block(&block), new_rates, Some(&mask(&t)));
                let expected = t.values(&reference.out, PATCH);
                assert_eq!(expected.len(), 6 * CELLS);
                let differ = new
                    .out
                    .iter()
                    .zip(&expected)
                    .filter(|(a, b)| a != b && !(a.is_nan() && b.is_nan()))
                    .count();
                assert_eq!(differ, 0, "{t:?} {method:?} {roughness}");
                assert!(
                    new.outcome.signal_rate == reference.outcome.signal_rate,
                    "{t:?} {method:?}"
                );
            }
        }
    }
}

#[test]
fn updates_are_exactly_symmetric_in_double_precision() {
    exact_symmetry::<f64>();
}

#[test]
fn updates_are_exactly_symmetric_in_single_precision() {
    exact_symmetry::<f32>();
}
