//! Electric fields on edges, and their circulations around faces.
use super::splat;
use crate::hydro::transport::{contact_electric_field, mean_electric_field};
use crate::mesh::circulations::circulated;
use nestar_device::simd::Simd;

/// Computes electric fields on a flat range of edges from velocities and fields before the step. `a` and `b` are the axes after that of the
/// edges.
pub struct MeanElectricPass<E> {
    /// Velocities along `a` and `b` in the cell above the first edge.
    pub velocity: [*const E; 2],
    /// Fields on the lower faces of that cell normal to `a` and `b`.
    pub field: [*const E; 2],
    /// Offsets between cells along `a` and `b`.
    pub steps: [usize; 2],
    pub electric: *mut E,
    pub count: usize,
}

#[inline(always)]
pub unsafe fn mean_electric<V: Simd>(pass: &MeanElectricPass<V::E>) {
    let [a, b] = pass.steps;
    for n in (0..pass.count).step_by(V::N) {
        // SAFETY: the caller vouches for the cells below the edges
        unsafe {
            let four = |p: *const V::E| {
                let p = p.add(n);
                [p.sub(a + b), p.sub(b), p.sub(a), p].map(|p| V::load(p))
            };
            let two = |p: *const V::E, step: usize| {
                let p = p.add(n);
                [p.sub(step), p].map(|p| V::load(p))
            };
            let velocity = pass.velocity.map(four);
            let (field_a, field_b) = (two(pass.field[0], b), two(pass.field[1], a));
            mean_electric_field(&velocity, &field_a, &field_b).store(pass.electric.add(n));
        }
    }
}

/// Changes fields on a flat range of faces by the circulation of the electric field. `a` and `b` are the axes after the normal of the faces.
pub struct CirculationPass<E> {
    pub faces: *const E,
    /// Electric fields along `a` and `b` on the lower edges of the first face.
    pub electric: [*const E; 2],
    /// Offsets between cells along `a` and `b`.
    pub steps: [usize; 2],
    pub next: *mut E,
    pub count: usize,
    /// Time step over the cell width along `a` and `b`.
    pub rates: [E; 2],
}

#[inline(always)]
pub unsafe fn circulate<V: Simd>(pass: &CirculationPass<V::E>) {
    let rates = pass.rates.map(|rate| splat::<V>(rate));
    let [a, b] = pass.steps;
    for n in (0..pass.count).step_by(V::N) {
        // SAFETY: the caller vouches for the edges of the faces
        unsafe {
            let two = |p: *const V::E, step: usize| {
                let p = p.add(n);
                [p, p.add(step)].map(|p| V::load(p))
            };
            let (first, second) = (two(pass.electric[0], b), two(pass.electric[1], a));
            let u = V::load(pass.faces.add(n));
            circulated(u, &first, &second, &rates).store(pass.next.add(n));
        }
    }
}

/// Computes electric fields on a flat range of edges from those on faces and in cells, see [`contact_electric_field`]. `a` and `b` are the
/// axes after that of the edges.
pub struct ContactPass<E> {
    /// Fluxes of the field along `b` through the faces normal to `a`, those at `-b` and `+b`: minus the electric field.
    pub faces_a: [*const E; 2],
    /// Fluxes of the field along `a` through the faces normal to `b`, those at `-a` and `+a`: the electric field.
    pub faces_b: [*const E; 2],
    pub mass_a: [*const E; 2],
    pub mass_b: [*const E; 2],
    /// Electric fields in the cells at `-a -b`, `+a -b`, `-a +b`, `+a +b`.
    pub cells: [*const E; 4],
    /// Densities in the same cells.
    pub density: [*const E; 4],
    /// dt / dx along `a` and `b`.
    pub rates: [E; 2],
    pub electric: *mut E,
    pub count: usize,
}

#[inline(always)]
pub unsafe fn contact_electric<V: Simd>(pass: &ContactPass<V::E>) {
    let [rate_a, rate_b] = pass.rates.map(|rate| splat::<V>(rate));
    for n in (0..pass.count).step_by(V::N) {
        // SAFETY: the caller vouches for the faces and cells at the edges
        unsafe {
            let two = |p: [*const V::E; 2]| p.map(|p| V::load(p.add(n)));
            let faces_a = two(pass.faces_a).map(|flux: V| -flux);
            let cells = pass.cells.map(|p| V::load(p.add(n)));
            let density = pass.density.map(|p| V::load(p.add(n)));
            contact_electric_field(
                &faces_a,
                &two(pass.faces_b),
                &two(pass.mass_a).map(|mass: V| rate_a * mass),
                &two(pass.mass_b).map(|mass: V| rate_b * mass),
                &cells,
                &density,
            )
            .store(pass.electric.add(n));
        }
    }
}
