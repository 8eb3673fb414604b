//! Constrained transport in a patch update: half a step of the field on faces before the march, then electric fields on edges and the new
//! field plane by plane.
use super::FaceFluxes;
use super::HydroReal;
use super::march::March;
use super::passes::{CirculationPass, ContactPass, MeanElectricPass};
use super::scratch::{ScratchLayout, TransportLayout};
use crate::PATCH;
use crate::hydro::transport::electric_field;
use crate::mesh::Centring;

impl ScratchLayout {
    /// Returns the offset of the electric fields in the cells of plane `k`, if there is a field on faces.
    pub(super) fn electric_in_cells(&self, k: usize) -> Option<usize> {
        let arrays = self.transport?;
        Some(arrays.in_cells + k % 2 * 3 * self.plane)
    }

    /// Returns the arrays of the field on faces.
    fn arrays(&self) -> TransportLayout {
        self.transport.expect("the method has a field on faces")
    }

    /// Returns the index of a cell of the patch in a block; those around it have positions from -1 to 8.
    fn cell(&self, at: [i32; 3]) -> usize {
        let [x, y, z] = at.map(|i| (i + self.ghosts as i32) as usize);
        x + self.width * (y + self.width * z)
    }
}

impl<R: HydroReal> March<'_, R> {
    /// Takes the gathered field on faces and advances it by half a step, in the patch and in one layer of cells around it.
    pub fn begin_transport(&mut self) {
        let (l, arrays) = (self.layout, self.layout.arrays());
        self.unpack_faces();
        let p = self.scratch.pointer();
        let first = l.cell([-1; 3]);
        let last = |reach: [usize; 2]| {
            let mut at = [PATCH as i32; 3];
            at[reach[0]] += 1;
            at[reach[1]] += i32::from(reach[1] != reach[0]);
            l.cell(at)
        };
        for c in 0..3 {
            let [a, b] = [(c + 1) % 3, (c + 2) % 3];
            let velocity = |axis: usize| p.wrapping_add(l.primitive + (1 + axis) * l.block + first);
            let field = |axis: usize| p.wrapping_add(arrays.faces + axis * l.block + first);
            let pass = MeanElectricPass {
                velocity: [velocity(a), velocity(b)].map(<*mut R>::cast_const),
                field: [field(a), field(b)].map(<*mut R>::cast_const),
                steps: [l.steps()[a], l.steps()[b]],
                electric: p.wrapping_add(arrays.electric + c * l.block + first),
                count: last([a, b]) + 1 - first,
            };
            // SAFETY: the cells below all these edges lie inside the block
            unsafe { (self.solver.passes.mean_electric)(&pass) };
        }
        let rates = self.step.rates.map(|rate| R::lit(0.5) * rate);
        for c in 0..3 {
            self.circulate(c, [first, last([c, c]) + 1 - first], arrays.half, rates);
        }
    }

    /// Copies the gathered faces to arrays of the layout of a block. The last faces along the axis of a component are not needed.
    fn unpack_faces(&mut self) {
        let (l, arrays) = (self.layout, self.layout.arrays());
        let stride = self.scratch.face_input().1;
        let data = self.scratch.values_mut(0..l.total);
        for c in 0..3 {
            let [x, y, _] = Centring::Face.lengths(c, [l.width; 3]);
            for row in 0..l.width * l.width {
                let (j, k) = (row % l.width, row / l.width);
                let from = arrays.input + c * stride + x * (j + y * k);
                let to = arrays.faces + c * l.block + row * l.width;
                data.copy_within(from..from + l.width, to);
            }
        }
    }

    /// Stores in the array `to` the field of component `c` after circulations over `rates`, on `count` faces from `first` on.
    fn circulate(&mut self, c: usize, [first, count]: [usize; 2], to: usize, rates: [R; 3]) {
        let (l, arrays, p) = (self.layout, self.layout.arrays(), self.scratch.pointer());
        let [a, b] = [(c + 1) % 3, (c + 2) % 3];
        let electric = |axis: usize| {
            let from = arrays.electric + axis * l.block + first;
            p.wrapping_add(from).cast_const()
        };
        let pass = CirculationPass {
            faces: p.wrapping_add(arrays.faces + c * l.block + first),
            electric: [electric(a), electric(b)],
            steps: [l.steps()[a], l.steps()[b]],
            next: p.wrapping_add(to + c * l.block + first),
            count,
            rates: [rates[a], rates[b]],
        };
        // SAFETY: the edges around these faces were computed
        unsafe { (self.solver.passes.circulate)(&pass) };
    }

    /// Sets the normal field of the states on both sides of each face in plane `k` to the one on the face after half a step.
    pub fn set_normal_field(&mut self, k: usize) {
        let l = self.layout;
        let Some(arrays) = l.transport else {
            return;
        };
        let row = PATCH + 2;
        for axis in 0..3 {
            let component = (5 + axis) * l.plane;
            let low = l.low + axis * l.planes() + component;
            let high = l.high + l.slot(axis, k) * l.planes() + component;
            let half = arrays.half + axis * l.block + k * l.steps()[2];
            let data = self.scratch.values_mut(0..l.total);
            for j in l.ghosts - 1..=l.ghosts + PATCH {
                let at = j * l.width + l.ghosts - 1;
                data.copy_within(half + at..half + at + row, low + at);
                let above = half + at + l.steps()[axis];
                data.copy_within(above..above + row, high + at);
            }
        }
        self.use_old_electric_fields(k);
    }

    /// Replaces the electric fields in first-order cells of plane `k` by those before the step.
    fn use_old_electric_fields(&mut self, k: usize) {
        let (l, Some(cells)) = (self.layout, self.step.first_order) else {
            return;
        };
        let to = l.electric_in_cells(k).expect("a field on faces");
        let data = self.scratch.values_mut(0..l.total);
        let last = PATCH as i32;
        for (j, i) in (-1..=last).flat_map(|j| (-1..=last).map(move |i| (j, i))) {
            let z = k as i32 - l.ghosts as i32;
            if !cells.contains(i, j, z) {
                continue;
            }
            let at = l.cell([i, j, z]);
            let three = |first: usize| {
                [0, 1, 2].map(|axis| data[l.primitive + (first + axis) * l.block + at])
            };
            let electric = electric_field(&three(1), &three(5));
            for (axis, value) in electric.into_iter().enumerate() {
                data[to + axis * l.plane + at % l.steps()[2]] = value;
            }
        }
    }

    /// Computes the electric fields on the edges around the lower z faces of plane `k` and on the z edges in it, and the new field on the
    /// lower z faces of plane `k` and on the x and y faces of the plane below.
    pub fn transport(&mut self, k: usize) {
        let l = self.layout;
        for c in 0..3 {
            if c < 2 || k < l.ghosts + PATCH {
                self.contact_electric(c, k);
            }
        }
        let (next, rates) = (l.arrays().next, self.step.rates);
        let count = PATCH * l.width + PATCH + 1;
        let plane = |k: usize| k * l.steps()[2] + l.corner();
        self.circulate(2, [plane(k), count], next, rates);
        if k > l.ghosts {
            for c in 0..2 {
                self.circulate(c, [plane(k - 1), count], next, rates);
            }
        }
    }

    /// Computes the electric fields on the lower edges of plane `k` along axis `c`.
    fn contact_electric(&mut self, c: usize, k: usize) {
        let (l, p) = (self.layout, self.scratch.pointer());
        let [a, b] = [(c + 1) % 3, (c + 2) % 3];
        let corner = l.corner();
        // the plane and the place in it of the cell below along some axes
        let below = |along: &[usize]| {
            let mut place = (k, corner);
            for &axis in along {
                match axis {
                    2 => place.0 -= 1,
                    _ => place.1 -= l.steps()[axis],
                }
            }
            place
        };
        let fluxes = |axis: usize, component: usize| {
            let across = if axis == a { b } else { a };
            [below(&[across]), below(&[])].map(|(k, at)| {
                let from = l.flux_plane(axis, k) + component * l.plane + at;
                p.wrapping_add(from).cast_const()
            })
        };
        let places = [below(&[a, b]), below(&[b]), below(&[a]), below(&[])];
        let density = places.map(|(k, at)| {
            let from = l.primitive + k * l.steps()[2] + at;
            p.wrapping_add(from).cast_const()
        });
        let cells = places.map(|(k, at)| {
            let plane = l.electric_in_cells(k).expect("a field on faces");
            p.wrapping_add(plane + c * l.plane + at).cast_const()
        });
        let pass = ContactPass {
            faces_a: fluxes(a, 5 + b),
            faces_b: fluxes(b, 5 + a),
            mass_a: fluxes(a, 0),
            mass_b: fluxes(b, 0),
            cells,
            density,
            rates: [self.step.rates[a], self.step.rates[b]],
            electric: p.wrapping_add(l.arrays().electric + c * l.block + k * l.steps()[2] + corner),
            count: PATCH * l.width + PATCH + 1,
        };
        // SAFETY: the fluxes through the faces at these edges were computed, and the electric fields in the cells
        unsafe { (self.solver.passes.contact_electric)(&pass) };
    }

    /// Returns pointers to the new field on the lower faces of the cell `first` of the block, by axis.
    pub fn next_field(&mut self, first: usize) -> [*const R; 3] {
        let (l, p) = (self.layout, self.scratch.pointer());
        match l.transport {
            None => [std::ptr::null(); 3],
            Some(arrays) => [0, 1, 2].map(|axis| {
                let from = arrays.next + axis * l.block + first;
                p.wrapping_add(from).cast_const()
            }),
        }
    }

    /// Copies the new field and the electric fields to their destinations.
    ///
    /// # Panics
    /// If there is no destination for the new field.
    pub fn finish_transport(&mut self, faces: &mut FaceFluxes<'_, R>) {
        let Some(arrays) = self.layout.transport else {
            return;
        };
        let field = faces.field.as_deref_mut();
        let field = field.expect("a destination for the field on faces");
        self.copy_rows(Centring::Face, arrays.next, field);
        if let Some(electric) = faces.electric.as_deref_mut() {
            self.copy_rows(Centring::Edge, arrays.electric, electric);
        }
    }

    /// Copies an array of the layout of a block to a row of a patch with the values of `centring`.
    fn copy_rows(&self, centring: Centring, from: usize, target: &mut [R]) {
        let l = self.layout;
        for c in 0..3 {
            let [x, y, z] = centring.lengths(c, [PATCH; 3]);
            for (k, j) in (0..z).flat_map(|k| (0..y).map(move |j| (k, j))) {
                let from = from + c * l.block + l.cell([0, j as i32, k as i32]);
                let to = c * centring.values() + centring.index(c, [0, j, k]);
                target[to..to + x].copy_from_slice(self.scratch.values(from..from + x));
            }
        }
    }
}
