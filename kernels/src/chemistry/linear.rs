//! Solves small dense systems without pivoting, because the matrices of a Rosenbrock method are diagonally dominant.
use nestar_device::{Real, device};

/// Computes the LU factors of `a` in place; the diagonal holds its inverse.
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
