//! Parameters of the kernels for topology tables. Their CUDA text is generated, as that of [`parameters`](super::parameters).

use nestar_device::{Address, Item, device};

/// Returns all structures.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    vec![
        AdoptParameters,
        SetParameters,
        LinkParameters,
        ScatterParameters,
    ]
}

/// Parameters of `topology_adopt`.
#[device]
#[derive(Clone, Copy)]
pub struct AdoptParameters {
    /// The level's rows, octet by octet.
    pub rows: Address<i32>,
    /// `[count / 8]`.
    pub parents: Address<i32>,
    /// `[count]`: new values of `first_child`.
    pub children: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// Index and level, `[row][4]`.
    pub index: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// Refinement level.
    pub level: i32,
    /// Number of rows.
    pub count: i32,
}

/// Parameters of `topology_set`.
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
    /// Number of rows.
    pub count: i32,
}

/// Parameters of `topology_link`.
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
    /// Neighbours, `[row][28]`; the output.
    pub neighbours: Address<i32>,
    /// Number of rows.
    pub count: i32,
}

/// Parameters of `topology_scatter`.
#[device]
#[derive(Clone, Copy)]
pub struct ScatterParameters {
    /// The rows, all different, `[count]`.
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
    /// Number of rows.
    pub count: i32,
}
