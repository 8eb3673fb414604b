//! What the equations of a network are evaluated with.
use super::table::Spot;
use nestar_device::device;

/// What is particular to a cell.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Cell<R> {
    /// Hydrogen nuclei per cm^3.
    pub density: R,
    /// Heating in kelvin per Myr and hydrogen nucleus, beside that of photo-ionisation.
    pub heating: R,
}

/// What rates depend on.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Inputs<R> {
    /// Abundances of all species, electrons and, not used here, the temperature.
    pub v: [R; 13],
    /// Hydrogen nuclei per cm^3.
    pub density: R,
    /// Where the temperature lies in the table.
    pub spot: Spot<R>,
}
