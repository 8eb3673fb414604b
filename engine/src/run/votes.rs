//! What the ranks of a run say together before a root step.

/// What each rank says, or any of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunFlags {
    /// The run is asked to stop.
    pub stop: bool,
    /// A snapshot is due by the clock on the wall.
    pub due: bool,
    /// A share of the latest snapshot is not on the disk yet.
    pub unsynced: bool,
}

impl RunFlags {
    /// As bits, for [`agreed_with_flags`](crate::step::agreement::agreed_with_flags).
    pub fn bits(self) -> u64 {
        let flags = [self.stop, self.due, self.unsynced];
        let bits = flags.iter().enumerate();
        bits.map(|(n, &flag)| u64::from(flag) << n).sum()
    }

    /// From bits.
    pub fn of(bits: u64) -> Self {
        let [stop, due, unsynced] = [0, 1, 2].map(|n| bits >> n & 1 == 1);
        Self {
            stop,
            due,
            unsynced,
        }
    }
}
