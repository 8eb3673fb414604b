//! Mirrored faces of the domain, beyond which the potential continues evenly: functions of both the host and kernels.
//!
//! Bit masks of faces are in the order x-, x+, y-, y+, z-, z+.

use nestar_device::device;

/// Returns the bit mask of those `mirrored` faces of the domain at which a patch lies, from its index on a level with
/// `patches` patches along the axes; or of those of a patch at which a cell lies.
#[device]
#[must_use]
pub fn mirrors_beside(mirrored: i32, patches: &[i32; 3], index: &[i32; 3]) -> i32 {
    let mut beside: i32 = 0;
    for axis in 0..3 {
        if index[axis] == 0 {
            beside |= 1 << (2 * axis);
        }
        if index[axis] + 1 == patches[axis] {
            beside |= 2 << (2 * axis);
        }
    }
    beside & mirrored
}

/// Reflects a cell outside mirrored faces of a patch back into the domain. Cells are counted from the first of the
/// `size`^3 cells of the patch; `mirrors` is the bit mask of the faces.
#[device]
#[must_use]
pub fn reflected(mirrors: i32, cell: &[i32; 3], size: i32) -> [i32; 3] {
    let mut to = [cell[0], cell[1], cell[2]];
    for axis in 0..3 {
        let faces = mirrors >> (2 * axis);
        if faces & 1 == 1 && to[axis] < 0 {
            to[axis] = -1 - to[axis];
        }
        if faces & 2 == 2 && to[axis] >= size {
            to[axis] = 2 * size - 1 - to[axis];
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_reflected_only_at_mirrors_of_their_patch() {
        let patches = [2, 1, 4];
        // x-, y+, z-, z+
        let mirrored = 0b11_10_01;
        assert_eq!(mirrors_beside(mirrored, &patches, &[0, 0, 1]), 0b00_10_01);
        assert_eq!(mirrors_beside(mirrored, &patches, &[1, 0, 3]), 0b10_10_00);
        assert_eq!(mirrors_beside(0, &patches, &[0, 0, 0]), 0);
        let corner = mirrors_beside(mirrored, &patches, &[0, 0, 0]);
        assert_eq!(reflected(corner, &[-1, 8, -3], 8), [0, 7, 2]);
        assert_eq!(reflected(corner, &[8, -1, 8], 8), [8, -1, 8]);
        assert_eq!(reflected(corner, &[3, 9, 4], 8), [3, 6, 4]);
        let corner = mirrors_beside(mirrored, &patches, &[0, 0, 3]);
        assert_eq!(reflected(corner, &[0, 0, 2], 2), [0, 0, 1]);
    }
}
