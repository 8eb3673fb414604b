//! Extends a domain evenly beyond its mirrored faces, for transforms without mirrors.

use super::exchange::{PaddedBox, PaddedPatch};
use nestar_kernels::multigrid::mirrors::{mirrors_beside, reflected};
use nestar_kernels::{CELLS, PATCH};

/// Even extension of a domain: the domain and its mirror images form a box of twice the length along mirrored axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvenExtension {
    /// Patches of the domain along each axis.
    domain: [usize; 3],
    /// Mirrored faces, lower and upper, by axis.
    mirrored: [[bool; 2]; 3],
}

impl EvenExtension {
    pub fn new(cells: [usize; 3], mirrored: [[bool; 2]; 3]) -> Self {
        Self {
            domain: cells.map(|cells| cells / PATCH),
            mirrored,
        }
    }

    /// Returns `true` if the domain has mirrored faces.
    pub fn has_mirrors(&self) -> bool {
        (0..3).any(|axis| self.doubles(axis))
    }

    fn doubles(&self, axis: usize) -> bool {
        self.mirrored[axis].contains(&true)
    }

    /// Returns the number of cells of the extended box.
    pub fn cells(&self) -> [usize; 3] {
        std::array::from_fn(|axis| {
            let copies = if self.doubles(axis) { 2 } else { 1 };
            copies * self.domain[axis] * PATCH
        })
    }

    /// Returns a patch of the domain, or its mirror image along the axes in the bit mask `along`, in the extended box.
    fn image(&self, patch: [i32; 3], along: usize) -> [i32; 3] {
        std::array::from_fn(|axis| {
            let count = self.domain[axis] as i32;
            // the images lie below the domain if only its lower face mirrors
            let first = match self.mirrored[axis] {
                [true, false] => count,
                _ => 0,
            };
            let place = patch[axis] + first;
            match along >> axis & 1 {
                0 => place,
                _ => 2 * count - 1 - place,
            }
        })
    }

    /// Returns the bit masks of axes of all images, that of the domain itself first.
    fn images(self) -> impl Iterator<Item = usize> {
        let mask: usize = (0..3)
            .map(|axis| usize::from(self.doubles(axis)) << axis)
            .sum();
        (0..8).filter(move |along| along & !mask == 0)
    }

    /// Returns the positions of patches and of their images; the patches themselves come first.
    pub fn patches(&self, patches: &[[i32; 3]]) -> Vec<[i32; 3]> {
        let of_image = |along| patches.iter().map(move |&patch| self.image(patch, along));
        self.images().flat_map(of_image).collect()
    }

    /// Returns the source of [`EvenExtension::patches`].
    pub fn source(&self, source: &[f64]) -> Vec<f64> {
        let of_image = |along| {
            source
                .chunks_exact(CELLS)
                .flat_map(move |patch| mirrored(patch, along))
        };
        self.images().flat_map(of_image).collect()
    }

    /// Returns the patches at the faces of the domain with the layers outside it. Those outside mirrored faces are
    /// mirror images; `padded` holds the others, in the extended box.
    pub fn padded(
        &self,
        patches: &[[i32; 3]],
        potential: &[f64],
        padded: &[PaddedPatch],
        margin: usize,
    ) -> Vec<PaddedPatch> {
        let mut in_order: Vec<Option<&PaddedPatch>> = vec![None; patches.len()];
        for grown in padded.iter().filter(|grown| grown.patch < patches.len()) {
            in_order[grown.patch] = Some(grown);
        }
        let one = |(n, &patch): (usize, &[i32; 3])| {
            let (own, grown) = (&potential[n * CELLS..][..CELLS], in_order[n]);
            let place = PaddedBox::of(patch.map(|x| x as usize), self.domain, margin);
            let value = |cell: [i32; 3]| {
                let cell = self.folded(patch, cell);
                let is_own = cell.iter().all(|x| (0..PATCH as i32).contains(x));
                match grown {
                    Some(grown) if !is_own => grown.at(cell).unwrap_or(f64::NAN),
                    _ => own[index(cell)],
                }
            };
            place.has_outside().then(|| PaddedPatch {
                patch: n,
                below: place.below,
                size: place.size(),
                values: place.relative_cells().map(value).collect(),
            })
        };
        patches.iter().enumerate().filter_map(one).collect()
    }

    /// Reflects a cell, relative to a patch, outside mirrored faces back into the domain.
    fn folded(&self, patch: [i32; 3], cell: [i32; 3]) -> [i32; 3] {
        let faces = self.mirrored.into_iter().flatten().enumerate();
        let faces = faces.map(|(n, is_mirrored)| i32::from(is_mirrored) << n);
        let beside = mirrors_beside(faces.sum(), &self.domain.map(|n| n as i32), &patch);
        reflected(beside, &cell, PATCH as i32)
    }
}

fn index([x, y, z]: [i32; 3]) -> usize {
    let size = PATCH as i32;
    (x + size * (y + size * z)) as usize
}

/// Returns the values of a patch in the order of its mirror image along some axes.
fn mirrored(values: &[f64], along: usize) -> impl Iterator<Item = f64> + '_ {
    let last = PATCH - 1;
    let flip = move |axis: usize, x: usize| if along >> axis & 1 == 1 { last - x } else { x };
    (0..CELLS).map(move |n| {
        let [x, y, z] = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
        values[flip(0, x) + PATCH * (flip(1, y) + PATCH * flip(2, z))]
    })
}
