//! Equations of a network: time derivatives and their Jacobian.
use super::energy::{atomic_cooling, molecular_cooling, radiation_heat};
use super::network::{CellConditions, Inputs, Network};
use super::reactions::{atoms, deuterium, molecules, photons};
use super::species::{
    Abundances, DI, ELECTRONS, HEI, HI, OF_DI, OF_ELECTRONS, OF_HEAT_CAPACITY, OF_HEI, OF_HI,
    SPECIES, TEMPERATURE, electrons, heat_capacity,
};
use super::table::table_position;
use nestar_device::{Real, device};

/// Computes the time derivatives `f` of the `S` solved species and the energy. If `J` is 1, also computes the Jacobian `j` with respect to
/// these `N = S + 1` unknowns. Gas that is `held` at the floor keeps its energy.
#[device]
pub fn derivatives<R: Real, const S: usize, const N: usize, const J: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    s: &Abundances<R>,
    held: bool,
    f: &mut [R; N],
    j: &mut [[R; N]; N],
) {
    let e = electrons::<R, S>(s);
    let capacity = heat_capacity::<R, S>(s, e);
    let t = s.energy / capacity;
    let mut v = [0.0; 13];
    for i in 0..SPECIES {
        v[i] = s.y[i];
    }
    v[ELECTRONS] = e;
    let x = Inputs {
        v,
        density: cell.density,
        table_position: table_position(t, p.columns),
    };
    let mut d = [[0.0; 13]; N];
    for i in 0..N {
        f[i] = 0.0;
    }
    f[S] = cell.heating;
    atoms::<R, N, J>(p, &x, f, &mut d);
    photons::<R, N, J>(p, &x, f, &mut d);
    radiation_heat::<R, N, J>(p, &x, t, f, &mut d);
    atomic_cooling::<R, N, J>(p, &x, f, &mut d);
    if S > 3 {
        molecules::<R, N, J>(p, &x, f, &mut d);
        molecular_cooling::<R, N, J>(p, &x, f, &mut d);
    }
    if S > 6 {
        deuterium::<R, N, J>(p, &x, f, &mut d);
    }
    if held {
        f[S] = 0.0;
    }
    if J == 1 {
        by_unknowns::<R, S, N>(&d, t, capacity, held, j);
    }
}

/// Computes the Jacobian from the derivatives with respect to all variables. H, He, D, the electrons and the temperature depend on the
/// unknowns.
#[device]
fn by_unknowns<R: Real, const S: usize, const N: usize>(
    d: &[[R; 13]; N],
    t: R,
    capacity: R,
    held: bool,
    j: &mut [[R; N]; N],
) {
    let per_energy = 1.0 / capacity;
    for i in 0..N {
        let of_t = d[i][TEMPERATURE] * per_energy;
        for k in 0..S {
            let mut sum = d[i][k] + R::lit(OF_ELECTRONS[k]) * d[i][ELECTRONS];
            sum = sum + R::lit(OF_HI[k]) * d[i][HI] + R::lit(OF_HEI[k]) * d[i][HEI];
            if S > 6 {
                sum += R::lit(OF_DI[k]) * d[i][DI];
            }
            j[i][k] = sum - R::lit(OF_HEAT_CAPACITY[k]) * t * of_t;
        }
        j[i][S] = of_t;
    }
    if held {
        for k in 0..N {
            j[S][k] = 0.0;
        }
    }
}
