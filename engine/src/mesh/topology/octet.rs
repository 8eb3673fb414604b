//! The unit in which ranks hold patches.

/// Patches that an octet may lie near.
#[derive(Clone, Copy)]
pub(crate) enum NeighbourLevel {
    /// Those of its own level at and around its patches.
    Same = 1,
    /// Those of the coarser level at and around its parent.
    Coarser = 2,
    /// The children of what lies at and around its patches.
    Finer = 4,
}

/// What is known of an octet's surroundings before anybody has looked: anything may be near.
pub(crate) const UNKNOWN: u8 = u8::MAX;

/// Eight places with a common half index; a mask has bit `z y x` for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Octet {
    /// Key of the parent, or of the half index: the keys of the eight without their last three bits.
    pub key: u64,
    /// First of its eight rows, a multiple of 8.
    pub first: u32,
    /// Patches that this rank owns.
    pub owned: u8,
    /// Patches of other ranks of whose values this rank keeps copies.
    pub copied: u8,
    /// Which patches of other ranks may be near, as bits of [`NeighbourLevel`]; kept for octets with own patches.
    pub(super) near: u8,
}

impl Octet {
    /// An octet of which the patches of `owned` are own ones and those of `copied` copies; it has no rows yet.
    #[must_use]
    pub fn new(key: u64, owned: u8, copied: u8) -> Self {
        Self {
            key,
            first: u32::MAX,
            owned,
            copied,
            near: UNKNOWN,
        }
    }

    /// The rows of the patches of `mask`.
    pub fn rows(&self, mask: u8) -> impl Iterator<Item = u32> + use<> {
        let first = self.first;
        (0..8)
            .filter(move |c| mask >> c & 1 == 1)
            .map(move |c| first + c)
    }

    /// Whether patches of other ranks may be near.
    pub(crate) fn is_near(&self, patches: NeighbourLevel) -> bool {
        self.near & patches as u8 != 0
    }
}

/// Which of the eight of its octet a patch is, as bits z y x.
#[must_use]
pub fn side(index: [i32; 3]) -> u32 {
    (index[0] & 1 | (index[1] & 1) << 1 | (index[2] & 1) << 2) as u32
}
