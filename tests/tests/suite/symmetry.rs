//! A symmetric problem stays bitwise symmetric on a mesh that follows it.

use nestar_tests::decks::SYMMETRIC;
use nestar_tests::{State, Stepper};

/// A change of axes: new axis `a` is old axis `from[a]`, mirrored where `mirrored[a]`.
pub struct Change {
    pub from: [usize; 3],
    pub mirrored: [bool; 3],
}

/// A reflection of each axis and the exchanges of axes: they generate all 48 symmetries of a cube.
pub const GENERATORS: [Change; 5] = [
    Change {
        from: [0, 1, 2],
        mirrored: [true, false, false],
    },
    Change {
        from: [0, 1, 2],
        mirrored: [false, true, false],
    },
    Change {
        from: [0, 1, 2],
        mirrored: [false, false, true],
    },
    Change {
        from: [1, 0, 2],
        mirrored: [false; 3],
    },
    Change {
        from: [1, 2, 0],
        mirrored: [false; 3],
    },
];

/// `state` with its axes changed; the momentum is a vector.
pub fn changed(state: &State, change: &Change) -> State {
    changed_vectors(state, change, &[1])
}

/// `state` with its axes changed; vectors begin at the components `vectors`.
pub fn changed_vectors(state: &State, change: &Change, vectors: &[usize]) -> State {
    let mut image = state.clone();
    for (level, patches) in state.levels.iter().enumerate() {
        let patches_along = state.domain.root.map(|n| n << level);
        image.levels[level].clear();
        for (index, patch) in patches {
            let place = |at: [i32; 3], extent: [i32; 3]| -> [i32; 3] {
                std::array::from_fn(|a| {
                    let i = at[change.from[a]];
                    if change.mirrored[a] {
                        extent[a] - 1 - i
                    } else {
                        i
                    }
                })
            };
            let mut twin = patch.clone();
            for cell in 0..512 {
                let at = [cell % 8, cell / 8 % 8, cell / 64].map(|i| i as i32);
                let [i, j, k] = place(at, [8; 3]).map(|i| i as usize);
                let target = i + 8 * j + 64 * k;
                let is_scalar = |c: &usize| !vectors.iter().any(|v| (*v..v + 3).contains(c));
                for c in (0..state.components).filter(is_scalar) {
                    twin.values[c * 512 + target] = patch.values[c * 512 + cell];
                }
                for (&v, a) in vectors.iter().flat_map(|v| [0, 1, 2].map(|a| (v, a))) {
                    let value = patch.values[(v + change.from[a]) * 512 + cell];
                    // adding 0 makes -0 and 0 the same
                    let value = if change.mirrored[a] { -value } else { value } + 0.0;
                    twin.values[(v + a) * 512 + target] = value;
                }
            }
            image.levels[level].insert(place(*index, patches_along), twin);
        }
    }
    image
}

fn symmetric(steps: usize, settings: &[&str]) {
    let state = Stepper::new(SYMMETRIC, settings).steps(steps).state();
    assert!(
        state.counts()[2] >= 64,
        "no refinement to speak of: {:?}",
        state.counts()
    );
    assert_symmetric(&state, settings);
}

fn assert_symmetric(state: &State, settings: &[&str]) {
    let identity = Change {
        from: [0, 1, 2],
        mirrored: [false; 3],
    };
    let itself = changed(state, &identity);
    for change in &GENERATORS {
        if let Some(difference) = itself.difference(&changed(state, change)) {
            let Change { from, mirrored } = change;
            panic!("{settings:?}: axes from {from:?}, mirrored {mirrored:?}: {difference}");
        }
    }
}

#[test]
fn a_blast_stays_symmetric() {
    symmetric(8, &[]);
}

#[test]
fn a_blast_stays_symmetric_in_single_precision() {
    symmetric(8, &["run.precision=single"]);
}

#[test]
fn a_blast_stays_symmetric_with_ppm() {
    symmetric(6, &["hydro.reconstruction=ppm", "time.levels=halved"]);
}

#[test]
fn a_blast_stays_symmetric_with_the_van_leer_scheme() {
    symmetric(
        6,
        &[
            "hydro.scheme=vl",
            "hydro.limiter=van-leer",
            "hydro.riemann=hlle",
            "time.levels=shared",
        ],
    );
}

#[test]
fn a_blast_stays_symmetric_with_all_parts_of_the_second_scheme() {
    let settings = [
        "hydro.scheme=vl",
        "hydro.reconstruction=ppm",
        "hydro.limiter=van-albada",
        "hydro.riemann=exact",
        "run.precision=single",
        "mesh.prolongation=van-leer",
    ];
    symmetric(4, &settings);
}

#[test]
fn a_blast_stays_symmetric_with_corner_transport_upwind() {
    symmetric(4, &["hydro.scheme=ctu", "hydro.riemann=roe"]);
    let settings = [
        "hydro.scheme=ctu",
        "hydro.reconstruction=ppm",
        "run.precision=single",
    ];
    symmetric(4, &settings);
}

#[test]
fn a_blast_stays_symmetric_with_runge_kutta_schemes() {
    symmetric(4, &["hydro.scheme=rk2", "hydro.riemann=hll"]);
    symmetric(4, &["hydro.scheme=rk3", "hydro.reconstruction=weno-z"]);
    let settings = [
        "hydro.scheme=rk3",
        "hydro.reconstruction=ppm",
        "run.precision=single",
    ];
    symmetric(4, &settings);
}

#[test]
fn a_blast_stays_symmetric_with_viscosity_and_conduction() {
    symmetric(
        3,
        &[
            "viscosity.kinematic=0.002",
            "conduction.conductivity=0.003",
            "domain.boundary=reflecting",
        ],
    );
}

#[test]
fn a_blast_stays_symmetric_with_minmod() {
    symmetric(
        4,
        &[
            "hydro.limiter=minmod",
            "mesh.prolongation=minmod",
            "domain.boundary=periodic",
        ],
    );
}

#[test]
fn a_blast_stays_symmetric_at_reflecting_walls() {
    let settings = [
        "domain.boundary=reflecting",
        "initial.pressure=if(r < 0.3, 10, 0.1)",
        "mesh.max_level=1",
    ];
    let state = Stepper::new(SYMMETRIC, &settings).steps(40).state();
    assert_symmetric(&state, &settings);
}

/// The check itself: a single changed bit breaks the symmetry.
#[test]
fn a_changed_bit_breaks_the_symmetry() {
    let mut state = Stepper::new(SYMMETRIC, &[]).steps(1).state();
    let patch = state.levels[2]
        .values_mut()
        .next()
        .expect("level 2 has patches");
    patch.values[5] = f64::from_bits(patch.values[5].to_bits() ^ 1);
    let found = std::panic::catch_unwind(|| assert_symmetric(&state, &[]));
    assert!(found.is_err());
}
