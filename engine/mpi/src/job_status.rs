//! The end of all ranks.

/// How ranks ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// All ranks are here, and none has failed.
    Done,
    /// All ranks are here, and some have failed.
    Failed {
        /// The first of them.
        rank: usize,
        /// Whether all have.
        all: bool,
    },
    /// This rank has failed and the others have not noticed: they must be ended.
    Unresponsive,
}
