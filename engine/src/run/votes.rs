//! Flags that ranks exchange before each root step.

/// Holds the flags of one rank, or their combination by OR.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunFlags {
    /// The run is asked to stop.
    pub stop: bool,
    /// A snapshot is due by wall-clock time.
    pub due: bool,
    /// Part of the latest snapshot is not on disk yet.
    pub unsynced: bool,
}

impl RunFlags {
    /// Encodes the flags as bits for [`agreed_with_flags`](crate::step::agreement::agreed_with_flags).
    pub fn bits(self) -> u64 {
        let flags = [self.stop, self.due, self.unsynced];
        let bits = flags.iter().enumerate();
        bits.map(|(n, &flag)| u64::from(flag) << n).sum()
    }

    /// Decodes the flags from bits.
    pub fn of(bits: u64) -> Self {
        let [stop, due, unsynced] = [0, 1, 2].map(|n| bits >> n & 1 == 1);
        Self {
            stop,
            due,
            unsynced,
        }
    }
}
