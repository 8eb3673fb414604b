//! Tests of the root solver: the operator applied to the potential gives the source; known potentials; identical bits
//! on any number of ranks.

use super::green::Quadrature;
use super::*;
use nestar_engine::comm::ThreadRank;
use std::collections::BTreeMap;

/// Numbers of cells, cell width, and seed of a source.
#[derive(Clone, Copy)]
struct Case {
    cells: [usize; 3],
    width: [f64; 3],
    kind: RootKind,
    mirrored: [[bool; 2]; 3],
}

const CUBE: [f64; 3] = [0.25; 3];
const PERIODIC: RootKind = RootKind::Periodic;
const ISOLATED: RootKind = RootKind::Isolated { margin: 2 };

const NO_MIRRORS: [[bool; 2]; 3] = [[false; 2]; 3];

/// Potential by cell, also outside the domain.
type Potential = BTreeMap<[i32; 3], f64>;

/// Returns a pseudo-random source in a cell, from -1 to 1.
fn random(cell: [i32; 3]) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for n in cell {
        state = (state ^ n as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 31;
    }
    (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn patches(cells: [usize; 3]) -> Vec<[i32; 3]> {
    let [nx, ny, nz] = cells.map(|n| (n / PATCH) as i32);
    let all = (0..nx * ny * nz).map(|n| [n % nx, n / nx % ny, n / nx / ny]);
    all.collect()
}

fn cells_of(patch: [i32; 3]) -> impl Iterator<Item = [i32; 3]> {
    let size = PATCH as i32;
    let cell = move |n: i32| [n % size, n / size % size, n / size / size];
    (0..CELLS as i32).map(move |n| {
        let cell = cell(n);
        std::array::from_fn(|axis| patch[axis] * size + cell[axis])
    })
}

/// Solves for the patches of one rank.
fn solve_own(
    case: Case,
    ranks: &Ranks,
    own: &[[i32; 3]],
    source: impl Fn([i32; 3]) -> f64,
) -> Potential {
    let solver =
        RootSolver::beside_mirrors(case.cells, case.width, case.kind, case.mirrored, ranks)
            .unwrap();
    let values: Vec<f64> = own.iter().flat_map(|&p| cells_of(p)).map(source).collect();
    let mut potential = vec![f64::NAN; values.len()];
    let grown = solver.solve(ranks, own, &values, &mut potential).unwrap();
    let cells = own.iter().flat_map(|&p| cells_of(p));
    let mut all: Potential = cells.zip(potential).collect();
    for patch in grown {
        let size = PATCH as i32;
        let [x, y, z] = own[patch.patch].map(|n| n * size);
        let range = || -(size)..2 * size;
        for (k, j, i) in
            range().flat_map(|k| range().flat_map(move |j| range().map(move |i| (k, j, i))))
        {
            if let Some(value) = patch.at([i, j, k]) {
                let twin = all.insert([x + i, y + j, z + k], value);
                assert!(
                    twin.is_none_or(|twin| twin == value),
                    "a cell has two values"
                );
            }
        }
    }
    all
}

/// Solves on `size` ranks with patches dealt round-robin. Returns the potential of all ranks.
fn solve_on(size: usize, case: Case, source: impl Fn([i32; 3]) -> f64 + Sync) -> Potential {
    std::thread::scope(|scope| {
        let source = &source;
        let start = |(rank, threads): (usize, ThreadRank)| {
            scope.spawn(move || {
                let ranks = Ranks::new(threads);
                let own = patches(case.cells).into_iter().skip(rank).step_by(size);
                // not in the order of the domain
                let own: Vec<_> = own.collect::<Vec<_>>().into_iter().rev().collect();
                solve_own(case, &ranks, &own, source)
            })
        };
        let started: Vec<_> = ThreadRank::connect(size)
            .into_iter()
            .enumerate()
            .map(start)
            .collect();
        started
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    })
}

/// Returns the largest residual in cells with known neighbours, relative to the largest term, and the number of these
/// cells.
fn residual(case: Case, phi: &Potential, source: impl Fn([i32; 3]) -> f64) -> (f64, usize) {
    let (mut worst, mut count, mut scale) = (0.0f64, 0, 0.0f64);
    for (&cell, here) in phi {
        let beside = |axis: usize, step: i32| {
            let mut cell = cell;
            cell[axis] += step;
            if case.kind == PERIODIC {
                cell[axis] = cell[axis].rem_euclid(case.cells[axis] as i32);
            }
            phi.get(&cell)
        };
        let along = |axis: usize| {
            let weight = 1.0 / (case.width[axis] * case.width[axis]);
            Some((beside(axis, 1)? - 2.0 * here + beside(axis, -1)?) * weight)
        };
        let inside = (0..3).all(|axis| cell[axis] >= 0 && cell[axis] < case.cells[axis] as i32);
        if let (Some(x), Some(y), Some(z)) = (along(0), along(1), along(2)) {
            let expected = if inside { source(cell) } else { 0.0 };
            worst = worst.max((x + y + z - expected).abs());
            count += 1;
        }
        let weights = case.width.map(|width| 1.0 / (width * width));
        scale = scale.max(here.abs() * weights.iter().sum::<f64>());
    }
    (worst / scale, count)
}

#[test]
fn the_operator_gives_the_source_of_a_periodic_domain() {
    for (cells, width) in [
        ([8; 3], CUBE),
        ([24, 40, 8], CUBE),
        ([16, 56, 8], [0.1, 0.3, 2.0]),
    ] {
        let kind = PERIODIC;
        let case = Case {
            cells,
            width,
            kind,
            mirrored: NO_MIRRORS,
        };
        let all = patches(cells).into_iter().flat_map(cells_of);
        let mean = all.map(random).sum::<f64>() / cells.iter().product::<usize>() as f64;
        let phi = solve_on(1, case, random);
        let (error, count) = residual(case, &phi, |cell| random(cell) - mean);
        assert_eq!(count, cells.iter().product::<usize>());
        assert!(error < 1e-15, "{cells:?}: {error}");
        let sum: f64 = phi.values().sum();
        assert!(sum.abs() < 1e-12, "the mean is {sum}");
    }
}

#[test]
fn the_operator_gives_the_source_of_an_isolated_domain_and_nothing_around_it() {
    for (cells, width) in [
        ([8; 3], CUBE),
        ([24, 40, 8], CUBE),
        ([16, 32, 8], [0.1, 0.3, 2.0]),
    ] {
        let kind = ISOLATED;
        let case = Case {
            cells,
            width,
            kind,
            mirrored: NO_MIRRORS,
        };
        let phi = solve_on(1, case, random);
        assert_eq!(phi.len(), cells.iter().map(|n| n + 4).product::<usize>());
        let (error, count) = residual(case, &phi, random);
        // all cells except those of the outermost layer
        assert_eq!(count, cells.iter().map(|n| n + 2).product::<usize>());
        assert!(error < 2e-15, "{cells:?}: {error}");
    }
}

#[test]
fn a_point_has_the_potential_of_the_lattice() {
    let cells = [8, 24, 16];
    let case = Case {
        cells,
        width: [0.5; 3],
        kind: ISOLATED,
        mirrored: NO_MIRRORS,
    };
    let lattice = Quadrature::new([1.0; 3], [30; 3]);
    for point in [[3, 17, 4], [0, 0, 0], [7, 23, 15]] {
        let phi = solve_on(1, case, |cell| if cell == point { 4.0 } else { 0.0 });
        for (cell, value) in phi {
            let distance = |axis: usize| cell[axis].abs_diff(point[axis]) as usize;
            // the squared width times the source is 1
            let expected = -lattice.value(std::array::from_fn(distance));
            assert!(
                (value - expected).abs() < 3e-16,
                "{cell:?}: {value} {expected}"
            );
        }
    }
}

#[test]
fn the_green_function_is_the_inverse_of_the_operator() {
    let lattice = Quadrature::new([1.0; 3], [70; 3]);
    // G. N. Watson, Q. J. Math. 10, 266 (1939): a sixth of 1.516386059151978
    assert!((lattice.value([0; 3]) - 0.252_731_009_858_663).abs() < 1e-15);
    for cell in [
        [0, 0, 0],
        [1, 0, 0],
        [2, 1, 0],
        [5, 5, 5],
        [1, 30, 2],
        [60, 0, 0],
        [60, 60, 60],
    ] {
        let at = |axis: usize, step: isize| {
            let mut cell: [usize; 3] = cell;
            cell[axis] = cell[axis].checked_add_signed(step).unwrap_or(1);
            lattice.value(cell)
        };
        let sum: f64 = (0..3).map(|axis| at(axis, 1) + at(axis, -1)).sum();
        let expected = if cell == [0; 3] { -1.0 } else { 0.0 };
        let error = sum - 6.0 * lattice.value(cell) - expected;
        assert!(error.abs() < 4e-15, "{cell:?}: {error}");
    }
}

#[test]
fn far_away_the_green_function_is_that_of_a_point_charge_and_its_first_correction() {
    let weights = [1.0, 0.04, 0.25];
    let lattice = Quadrature::new(weights, [400; 3]);
    for cell in [[400, 0, 0], [0, 90, 0], [10, 80, 200], [400, 400, 400]] {
        let along = |axis: usize| (cell[axis] * cell[axis]) as f64 / weights[axis];
        let square = along(0) + along(1) + along(2);
        let volume = weights.iter().product::<f64>().sqrt();
        let charge = 1.0 / (4.0 * std::f64::consts::PI * volume * square.sqrt());
        // first lattice correction: the transform of sum_a k_a^4 / (12 w_a k^4), where k_a is in units of the diffusion
        let of_axis = |axis: usize| {
            let c2 = along(axis) / square;
            let (p2, p4) = (1.5 * c2 - 0.5, (35.0 * c2 * c2 - 30.0 * c2 + 3.0) / 8.0);
            (p4 - p2) / (7.0 * weights[axis])
        };
        let correction = (of_axis(0) + of_axis(1) + of_axis(2)) / square;
        let error = (lattice.value(cell) / charge - 1.0 - correction) * square * square;
        assert!(error.abs() < 1500.0, "{cell:?}: {error}");
        assert!(
            correction.abs() * square * square > 1500.0,
            "{cell:?}: {correction}"
        );
    }
}

#[test]
fn a_uniform_source_of_a_periodic_domain_gives_nothing() {
    let case = Case {
        cells: [24, 8, 16],
        width: CUBE,
        kind: PERIODIC,
        mirrored: NO_MIRRORS,
    };
    let phi = solve_on(1, case, |_| 1.0);
    assert!(phi.values().all(|value| value.abs() < 1e-16));
}

#[test]
fn any_number_of_ranks_gives_the_same_bits() {
    for kind in [PERIODIC, RootKind::Isolated { margin: 1 }, ISOLATED] {
        for cells in [[24, 40, 8], [16, 8, 24]] {
            let case = Case {
                cells,
                width: CUBE,
                kind,
                mirrored: NO_MIRRORS,
            };
            let one = solve_on(1, case, random);
            for size in [2, 3, 4, 11] {
                let many = solve_on(size, case, random);
                let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
                assert!(one.keys().eq(many.keys()), "{kind:?} on {size} ranks");
                assert!(
                    one.values().zip(many.values()).all(same),
                    "{kind:?} on {size} ranks"
                );
            }
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let case = Case {
        cells: [24, 16, 8],
        width: CUBE,
        kind: ISOLATED,
        mirrored: NO_MIRRORS,
    };
    let solve = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let own = patches(case.cells);
        let solve = || solve_own(case, &Ranks::default(), &own, random);
        pool.build().unwrap().install(solve)
    };
    let (one, three) = (solve(1), solve(3));
    let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
    assert!(one.values().zip(three.values()).all(same));
}

#[test]
fn layers_outside_do_not_depend_on_how_many_are_wanted() {
    let solve = |margin| {
        let case = Case {
            cells: [16, 8, 8],
            width: CUBE,
            kind: RootKind::Isolated { margin },
            mirrored: NO_MIRRORS,
        };
        solve_on(1, case, random)
    };
    let (none, most) = (solve(0), solve(8));
    assert_eq!((none.len(), most.len()), (16 * 8 * 8, 32 * 24 * 24));
    for margin in [1, 2] {
        for (cell, value) in solve(margin) {
            assert!((value - most[&cell]).abs() < 1e-15, "{cell:?}");
        }
    }
    assert!(
        none.iter()
            .all(|(cell, value)| (value - most[cell]).abs() < 1e-15)
    );
}

#[test]
fn what_is_no_root_level_is_refused() {
    let ranks = Ranks::default();
    let new = |cells, width, kind| RootSolver::new(cells, width, kind, &ranks);
    let message =
        |result: Result<RootSolver, Error>| result.err().expect("it is refused").to_string();
    let text = message(new([8, 12, 8], CUBE, PERIODIC));
    assert!(text.starts_with("`domain.cells` is [8, 12, 8]"), "{text}");
    let text = message(new([8; 3], [1.0, 0.0, 1.0], ISOLATED));
    assert!(
        text.starts_with("`domain`: cells of the root level"),
        "{text}"
    );
    let text = message(new([8; 3], CUBE, RootKind::Isolated { margin: 9 }));
    assert!(text.contains("8 layers"), "{text}");

    let solver = new([16, 8, 8], CUBE, ISOLATED).unwrap();
    let refusal = |patches: &[[i32; 3]]| {
        let values = vec![0.0; patches.len() * CELLS];
        let result = solver.solve(&ranks, patches, &values, &mut values.clone());
        result.expect_err("it is refused").to_string()
    };
    for (patches, words) in [
        (&[[0, 0, 0]][..], "1 of 2 patches are missing"),
        (&[[0, 0, 0], [0, 0, 0]], "[0, 0, 0] was sent twice"),
        (&[[0, 0, 0], [2, 0, 0]], "no patch [2, 0, 0]"),
        (&[[0, 0, 0], [1, 0, -1]], "no patch [1, 0, -1]"),
    ] {
        let text = refusal(patches);
        assert!(text.contains(words), "{text}");
    }
}

/// Returns the whole of a domain and its mirror images, and the first cell of the domain in it.
fn whole(case: Case) -> (Case, [i32; 3]) {
    let mut all = Case {
        mirrored: NO_MIRRORS,
        ..case
    };
    let mut first = [0; 3];
    for (axis, faces) in case.mirrored.into_iter().enumerate() {
        if faces.contains(&true) {
            all.cells[axis] *= 2;
        }
        if faces == [true, false] {
            first[axis] = case.cells[axis] as i32;
        }
    }
    (all, first)
}

#[test]
fn mirrored_domains_have_the_potential_of_the_whole() {
    let [both, lower, upper, none] = [[true, true], [true, false], [false, true], [false, false]];
    for (kind, mirrored) in [
        (ISOLATED, [lower, none, none]),
        (ISOLATED, [none, lower, upper]),
        (ISOLATED, [upper, lower, lower]),
        (PERIODIC, [both, none, none]),
        (PERIODIC, [none, both, both]),
        (PERIODIC, [both; 3]),
    ] {
        let case = Case {
            cells: [16, 8, 24],
            width: [0.25, 0.5, 0.3],
            kind,
            mirrored,
        };
        let (all, first) = whole(case);
        let of_whole = |cell: [i32; 3]| {
            random(std::array::from_fn(|axis| {
                let count = case.cells[axis] as i32;
                match cell[axis] - first[axis] {
                    x if x < 0 => -1 - x,
                    x if x >= count => 2 * count - 1 - x,
                    x => x,
                }
            }))
        };
        let right = solve_on(1, all, of_whole);
        let most = right.values().fold(0.0, |most: f64, x| most.max(x.abs()));
        let found = solve_on(1, case, random);
        let has_layers = found.len() > case.cells.iter().product();
        assert_eq!(has_layers, kind != PERIODIC);
        for (cell, value) in &found {
            let there = std::array::from_fn(|axis| cell[axis] + first[axis]);
            let error = (value - right[&there]).abs() / most;
            assert!(error < 1e-13, "{kind:?} {mirrored:?} {cell:?}: {error}");
        }
        assert_eq!(solve_on(3, case, random), found, "{kind:?} {mirrored:?}");
    }
}
