//! One step of the Rosenbrock method RODAS3, with its error, and the solution of its small dense linear systems.

use super::equations::derivatives;
use super::network::{CellConditions, Network};
use super::species::{Abundances, DI, H2, HD, HEI, HI, add_increment, electrons};
use nestar_device::{Real, device};

/// Abundance of all ions below which single precision does not resolve their changes: fast reactions of trace species convert ions into
/// each other with a round-off that shorter sub-steps do not reduce.
#[device]
const FEWEST_IONS: f64 = 1e-13;

/// Result of a step.
#[device]
#[derive(Clone, Copy)]
pub struct RodasStep<R> {
    /// State at its end.
    pub state: Abundances<R>,
    /// Error over tolerance; at most 1 for an acceptable step, the largest number if a value is invalid.
    pub error: R,
}

/// Solves for `f` plus `c1 k1 + c2 k2 + c3 k3`.
#[device]
fn stage<R: Real, const N: usize>(
    a: &[[R; N]; N],
    f: &[R; N],
    k: &[[R; N]; 3],
    c: [R; 3],
) -> [R; N] {
    let mut b = [0.0; N];
    for i in 0..N {
        b[i] = f[i] + (c[0] * k[0][i] + c[1] * k[1][i] + c[2] * k[2][i]);
    }
    solve::<R, N>(a, &mut b);
    b
}

/// Takes a step of length `h` from `s` with derivatives `f` and Jacobian `j`: four stages, two further evaluations, order 3 with an error
/// of order 2, stiffly accurate and L-stable (Sandu et al. 1997, Atmospheric Environment 31, 3459; gamma = 1/2).
#[device]
pub fn rodas3<R: Real, const S: usize, const N: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    s: &Abundances<R>,
    h: R,
    held: bool,
    f: &[R; N],
    j: &[[R; N]; N],
) -> RodasStep<R> {
    let per_step = 1.0 / h;
    let mut a = [[0.0; N]; N];
    for i in 0..N {
        for k in 0..N {
            a[i][k] = -j[i][k];
        }
        a[i][i] += 2.0 * per_step;
    }
    factor::<R, N>(&mut a);
    let mut k = [[0.0; N]; 3];
    let mut f2 = [0.0; N];
    let mut d = [0.0; N];
    let mut unused = [[0.0; N]; N];
    k[0] = stage::<R, N>(&a, f, &k, [0.0, 0.0, 0.0]);
    k[1] = stage::<R, N>(&a, f, &k, [4.0 * per_step, 0.0, 0.0]);
    for i in 0..N {
        d[i] = 2.0 * k[0][i];
    }
    let middle = add_increment::<R, S, N>(s, &d);
    derivatives::<R, S, N, 0>(p, cell, &middle, held, &mut f2, &mut unused);
    k[2] = stage::<R, N>(&a, &f2, &k, [per_step, -per_step, 0.0]);
    for i in 0..N {
        d[i] += k[2][i];
    }
    let late = add_increment::<R, S, N>(s, &d);
    derivatives::<R, S, N, 0>(p, cell, &late, held, &mut f2, &mut unused);
    let third = -(R::lit(8.0 / 3.0)) * per_step;
    let error = stage::<R, N>(&a, &f2, &k, [per_step, -per_step, third]);
    for i in 0..N {
        d[i] += error[i];
    }
    let state = add_increment::<R, S, N>(s, &d);
    let error = scaled_error::<R, S, N>(p, s, &state, &error);
    RodasStep { state, error }
}

/// Returns the largest error over its tolerance; a maximum does not depend on the order. A negative energy, an abundance below minus the
/// absolute tolerance, or NaN gives the largest number.
///
/// The absolute tolerance of ions is at most the relative tolerance of the electrons, because few electrons may grow to many. In single
/// precision it is at least that of [`FEWEST_IONS`].
#[device]
fn scaled_error<R: Real, const S: usize, const N: usize>(
    p: &Network<R>,
    old: &Abundances<R>,
    new: &Abundances<R>,
    error: &[R; N],
) -> R {
    let mut sound = new.energy > 0.0;
    let mut largest = error[S].abs() / (p.relative * old.energy.max(new.energy));
    sound = sound && largest >= 0.0;
    let charge = electrons::<R, S>(old).max(electrons::<R, S>(new));
    let resolved = if R::EPSILON > 1e-10 {
        R::lit(FEWEST_IONS)
    } else {
        0.0
    };
    let of_ions = p.absolute.min(p.relative * charge.max(resolved));
    for i in 0..S {
        let absolute = if i == H2 || i == HD {
            p.absolute
        } else {
            of_ions
        };
        let size = old.y[i].abs().max(new.y[i].abs());
        let one = error[i].abs() / (absolute + p.relative * size);
        sound = sound && one >= 0.0 && new.y[i] >= -absolute;
        largest = largest.max(one);
    }
    sound = sound && new.y[HI] >= -p.absolute && new.y[HEI] >= -p.absolute;
    if S > 6 {
        sound = sound && new.y[DI] >= -p.absolute;
    }
    if sound { largest } else { R::MAX }
}

/// Computes the LU factors of `a` in place; the diagonal holds its inverse. It does not pivot, because the matrices of a Rosenbrock method
/// are diagonally dominant.
#[device]
pub fn factor<R: Real, const N: usize>(a: &mut [[R; N]; N]) {
    for k in 0..N {
        let inverse = 1.0 / a[k][k];
        a[k][k] = inverse;
        for i in 0..N {
            if i > k {
                let l = a[i][k] * inverse;
                a[i][k] = l;
                for j in 0..N {
                    if j > k {
                        a[i][j] -= l * a[k][j];
                    }
                }
            }
        }
    }
}

/// Solves for a right-hand side in place.
#[device]
pub fn solve<R: Real, const N: usize>(a: &[[R; N]; N], b: &mut [R; N]) {
    for i in 0..N {
        for j in 0..N {
            if j < i {
                b[i] -= a[i][j] * b[j];
            }
        }
    }
    for back in 0..N {
        let i = N - 1 - back;
        for j in 0..N {
            if j > i {
                b[i] -= a[i][j] * b[j];
            }
        }
        b[i] *= a[i][i];
    }
}
