//! What a pool knows of each level.

/// What a level's time levels hold.
#[derive(Clone, Debug)]
pub(super) struct BankClock {
    /// The bank that holds the present state.
    pub(super) current: usize,
    /// Simulation time of each of the first two banks' values.
    pub(super) times: [f64; 2],
    /// Layers of the copies of other ranks' patches that are up to date, bank by bank. The same on all ranks; a rank alone
    /// keeps them too, so that a forgotten exchange is found in any run.
    pub(super) valid_layers: Vec<usize>,
}

/// Counts of a level's changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChangeCounts {
    pub(super) all: u64,
    /// The count at the latest change that did not say which rows it concerns.
    pub(super) of_all_rows: u64,
}
