//! Ideal magnetohydrodynamics with magnetic fields on cell faces (constrained transport; Evans & Hawley 1988, Astrophys. J. 332, 659).
//!
//! The state of a cell is that of [`magnetic`] without the cleaning variable; its field is the mean of the fields on its faces. The field on a
//! face is that along its normal, and changes by the circulation of the electric field `E = -v x B`, the electromotive force, around it. Electric fields on edges follow
//! from the fluxes through the four faces at the edge and from those in its four cells (Gardiner & Stone 2005, J. Comput. Phys. 205, 509).
//! Along an edge of axis `c`, `a` and `b` are the next two axes in cyclic order.
use super::magnetic;
use crate::mesh::fluxes::mean4;
use crate::mesh::means::mean2;
use nestar_device::{Lane, Real, device};

/// Returns a state with the cleaning variable 0.
#[device]
pub fn with_cleaning<R: Lane>(u: &[R; 8]) -> [R; 9] {
    [u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], 0.0]
}

/// Returns a state without its cleaning variable.
#[device]
pub fn without_cleaning<R: Lane>(u: &[R; 9]) -> [R; 8] {
    [u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7]]
}

/// Returns the part of each conserved quantity that its component does not contain, see [`magnetic::remainder`].
#[device]
pub fn remainder<R: Lane>(u: &[R; 8]) -> [R; 8] {
    without_cleaning(&magnetic::remainder(&with_cleaning(u)))
}

/// Returns the variables that are interpolated between levels, see [`magnetic::interpolated`].
#[device]
pub fn interpolated<R: Lane>(u: &[R; 8]) -> [R; 8] {
    without_cleaning(&magnetic::interpolated(&with_cleaning(u)))
}

/// Returns the conserved state of [`interpolated`] variables.
#[device]
pub fn from_interpolated<R: Lane>(w: &[R; 8]) -> [R; 8] {
    without_cleaning(&magnetic::from_interpolated(&with_cleaning(w)))
}

/// Repairs a state `u` whose pressure became negative, see [`magnetic::repaired`].
#[device]
pub fn repaired<R: Lane>(u: &[R; 8], w: &[R; 8]) -> [R; 8] {
    without_cleaning(&magnetic::repaired(&with_cleaning(u), &with_cleaning(w)))
}

/// Returns `true` if a conserved state is finite and has positive density and pressure.
#[device]
pub fn is_physical<R: Real>(u: &[R; 8]) -> bool {
    magnetic::is_physical(&with_cleaning(u))
}

/// Returns a conserved state with the field `field` and the same total energy, thermal, kinetic and magnetic.
#[device]
pub fn with_field<R: Lane>(u: &[R; 8], field: &[R; 3]) -> [R; 8] {
    let before = magnetic::magnetic_energy(&[u[5], u[6], u[7]]);
    let energy = u[4] + (before - magnetic::magnetic_energy(field));
    [u[0], u[1], u[2], u[3], energy, field[0], field[1], field[2]]
}

/// Returns the electric field `-v x B` of gas with a velocity and a field.
pub fn electric_field<R: Lane>(v: &[R; 3], b: &[R; 3]) -> [R; 3] {
    [(1, 2), (2, 0), (0, 1)].map(|(a, c)| electric_field_along(&[v[a], v[c]], &[b[a], b[c]]))
}

/// Returns the electric field along an axis of gas whose velocity and field along `a` and `b` are given.
#[device]
pub fn electric_field_along<R: Lane>(velocity: &[R; 2], field: &[R; 2]) -> R {
    velocity[1] * field[0] - velocity[0] * field[1]
}

/// Returns the electric field on an edge from means, for half a step.
///
/// `velocity` are the velocities along `a` and `b` in the four cells at the edge, those of `-a -b`, `+a -b`, `-a +b`, `+a +b`. `field_a` are the
/// fields on the faces normal to `a` at `-b` and `+b`, `field_b` those normal to `b` at `-a` and `+a`.
#[device]
pub fn mean_electric_field<R: Lane>(
    velocity: &[[R; 4]; 2],
    field_a: &[R; 2],
    field_b: &[R; 2],
) -> R {
    let along_a = mean4(&velocity[0]) * mean2(field_b[0], field_b[1]);
    let along_b = mean4(&velocity[1]) * mean2(field_a[0], field_a[1]);
    along_b - along_a
}

/// Returns the difference that gas carries through a face: the one `below` it if the mass flux is positive, the one `above` if it is negative.
///
/// `moved` is half the part of a cell that the gas crosses in the step. Both differences are blended below 1/1024, so that round-off of gas at
/// rest does not decide, as in Athena++ (Stone et al. 2020, Astrophys. J. Suppl. 249, 4).
#[device]
fn carried<R: Lane>(moved: R, below: R, above: R) -> R {
    let weight = (1024.0 * moved).max(-0.5).min(0.5);
    (0.5 + weight) * below + (0.5 - weight) * above
}

/// Returns the electric field on an edge that follows contacts (Gardiner & Stone 2005, eqs. 41 and 50).
///
/// `faces_a` are the electric fields along the edge on the faces normal to `a` at `-b` and `+b`, `faces_b` those on the faces normal to `b` at
/// `-a` and `+a`; `mass_a` and `mass_b` are the masses that pass them in the step, times the cross-section over the volume of a cell. `cells` are
/// the electric fields in the four cells at the edge, `-a -b`, `+a -b`, `-a +b`, `+a +b`, and `density` are the densities there.
#[device]
pub fn contact_electric_field<R: Lane>(
    faces_a: &[R; 2],
    faces_b: &[R; 2],
    mass_a: &[R; 2],
    mass_b: &[R; 2],
    cells: &[R; 4],
    density: &[R; 4],
) -> R {
    let across_a = carried(
        mass_a[0] / (density[0] + density[1]),
        faces_b[0] - cells[0],
        faces_b[1] - cells[1],
    ) + carried(
        mass_a[1] / (density[2] + density[3]),
        faces_b[0] - cells[2],
        faces_b[1] - cells[3],
    );
    let across_b = carried(
        mass_b[0] / (density[0] + density[2]),
        faces_a[0] - cells[0],
        faces_a[1] - cells[2],
    ) + carried(
        mass_b[1] / (density[1] + density[3]),
        faces_a[0] - cells[1],
        faces_a[1] - cells[3],
    );
    0.25 * (((faces_a[0] + faces_a[1]) + (faces_b[0] + faces_b[1])) + (across_a + across_b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that looks random.
    fn number(n: usize) -> f64 {
        ((n * 7919 + 13) % 1009) as f64 / 504.5 - 1.0
    }

    #[test]
    fn a_change_of_the_field_keeps_the_total_energy() {
        let u: [f64; 8] = std::array::from_fn(|n| 1.0 + number(n));
        let changed = with_field(&u, &[0.3, -2.0, 0.7]);
        let total = |u: &[f64; 8]| u[4] + remainder(u)[4];
        assert!((total(&u) - total(&changed)).abs() < 1e-15 * total(&u));
        assert_eq!(changed[5..], [0.3, -2.0, 0.7]);
        // the same field changes no bit
        assert_eq!(with_field(&u, &[u[5], u[6], u[7]]), u);
    }

    #[test]
    fn the_electric_field_of_an_edge_has_the_symmetries_of_the_mesh() {
        let [fa, fb, ma, mb]: [[f64; 2]; 4] =
            std::array::from_fn(|n| [number(2 * n), number(2 * n + 1)]);
        let c: [f64; 4] = std::array::from_fn(|n| number(n + 20));
        let d: [f64; 4] = std::array::from_fn(|n| 2e3 + 1e3 * number(n + 30));
        let e = contact_electric_field(&fa, &fb, &ma, &mb, &c, &d);
        // exchanged axes: the electric field is a pseudovector
        let exchanged = contact_electric_field(
            &fb.map(|x| -x),
            &fa.map(|x| -x),
            &mb,
            &ma,
            &[-c[0], -c[2], -c[1], -c[3]],
            &[d[0], d[2], d[1], d[3]],
        );
        assert_eq!(exchanged.to_bits(), (-e).to_bits());
        // a mirrored
        let mirrored = contact_electric_field(
            &fa.map(|x| -x),
            &[-fb[1], -fb[0]],
            &ma.map(|x| -x),
            &[mb[1], mb[0]],
            &[-c[1], -c[0], -c[3], -c[2]],
            &[d[1], d[0], d[3], d[2]],
        );
        assert_eq!(mirrored.to_bits(), (-e).to_bits());
        let mean = mean_electric_field(&[c, fa_and(fb, ma)], &mb, &fa);
        let swapped = |v: [f64; 4]| [v[0], v[2], v[1], v[3]];
        let exchanged = mean_electric_field(&[swapped(fa_and(fb, ma)), swapped(c)], &fa, &mb);
        assert_eq!(exchanged.to_bits(), (-mean).to_bits());
    }

    fn fa_and(a: [f64; 2], b: [f64; 2]) -> [f64; 4] {
        [a[0], a[1], b[0], b[1]]
    }

    #[test]
    fn the_round_off_of_gas_at_rest_does_not_decide() {
        let faces = [[1.0, -2.0], [3.0, 5.0]];
        let cells = [0.3, -0.7, 1.1, 0.2];
        let of = |mass: f64| {
            let [a, b] = faces;
            contact_electric_field(&a, &b, &[mass; 2], &[mass; 2], &cells, &[1.0; 4])
        };
        assert!((of(1e-14) - of(-1e-14)).abs() < 1e-10);
        // a flux of 1/1024 of a cell carries the difference of one side alone
        for sign in [-1.0, 1.0] {
            assert_eq!(of(sign * 1.1 / 1024.0), of(sign));
            assert_ne!(of(sign * 0.9 / 1024.0), of(sign));
        }
        assert_ne!(of(1.0), of(-1.0));
    }

    #[test]
    fn a_uniform_flow_has_its_electric_field_on_every_edge() {
        let (v, b) = ([0.3, -0.7, 1.1], [2.0, 0.5, -1.5]);
        let [x, y, z] = electric_field(&v, &b);
        let of_edge = |e: f64| {
            contact_electric_field(&[e; 2], &[e; 2], &[v[0]; 2], &[v[1]; 2], &[e; 4], &[1.0; 4])
        };
        for e in [x, y, z] {
            assert!((of_edge(e) - e).abs() < 1e-15);
        }
        let mean = |c: usize| {
            let [a, d] = [(c + 1) % 3, (c + 2) % 3];
            mean_electric_field(&[[v[a]; 4], [v[d]; 4]], &[b[a]; 2], &[b[d]; 2])
        };
        for (c, e) in [x, y, z].into_iter().enumerate() {
            assert!((mean(c) - e).abs() < 1e-15);
        }
    }
}
