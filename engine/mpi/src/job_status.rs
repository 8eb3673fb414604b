//! Status of a job at its end.

/// How the ranks of a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// All ranks have finished without failure.
    Done,
    /// All ranks have finished, and some have failed.
    Failed {
        /// Lowest failed rank.
        rank: usize,
        /// Is `true` if all ranks have failed.
        all: bool,
    },
    /// This rank has failed and the others have not noticed; they must be aborted.
    Unresponsive,
}
