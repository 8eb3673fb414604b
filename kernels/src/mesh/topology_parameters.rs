//! What the kernels of the topology tables take; their text is generated, as that of [`parameters`](super::parameters).

use nestar_device::{Address, Item, device};

/// Every structure.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    vec![
        AdoptParameters,
        SetParameters,
        LinkParameters,
        ScatterParameters,
    ]
}

/// Of the kernels of the topology that give the patches of a level their parents, places and children.
#[device]
#[derive(Clone, Copy)]
pub struct AdoptParameters {
    /// The level's rows, octet by octet.
    pub rows: Address<i32>,
    /// `[count / 8]`.
    pub parents: Address<i32>,
    /// `[count]`: what becomes of `first_child`.
    pub children: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// Index and level, `[row][4]`.
    pub index: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// The level.
    pub level: i32,
    /// Rows.
    pub count: i32,
}

/// Of the kernel `topology_set`.
#[device]
#[derive(Clone, Copy)]
pub struct SetParameters {
    /// The rows, `[count]`.
    pub rows: Address<i32>,
    /// `[count][width]`.
    pub values: Address<i32>,
    /// `[row][width]`.
    pub table: Address<i32>,
    /// Entries of a row.
    pub width: i32,
    /// Rows.
    pub count: i32,
}

/// Of the kernel `topology_link`.
#[device]
#[derive(Clone, Copy)]
pub struct LinkParameters {
    /// The rows, `[count]`.
    pub rows: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// Index and level, `[row][4]`.
    pub index: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// Neighbours, `[row][28]`, to be made.
    pub neighbours: Address<i32>,
    /// Rows.
    pub count: i32,
}

/// Of the kernel `topology_scatter`.
#[device]
#[derive(Clone, Copy)]
pub struct ScatterParameters {
    /// The rows, distinct, `[count]`.
    pub rows: Address<i32>,
    /// `[count][34]`: entries of all tables.
    pub words: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// Index and level, `[row][4]`.
    pub index: Address<i32>,
    /// Rows.
    pub count: i32,
}
