//! Components on patches that control the engine.
//!
//! Every patch has [`RefinementFlags`]. A plugin that attaches one of the others registers it
//! (`Engine::register_carried`).

use super::patch::CELLS;
use super::patch_component::{PatchComponent, require_registered};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::SELF;
use serde::{Deserialize, Serialize};

/// Measured work of a patch per step, in any unit common to all patches; 1 by default. Load balancing uses it.
/// A level is partitioned when the next coarser level is regridded, the root grid before root steps.
///
/// Values are distinguished from 1e-4 to 1e6. Children inherit the cost of their parent. Systems that measure work add it
/// in each step (`measure_costs`).
#[derive(Component, Clone, Copy, Debug, PartialEq)]
#[component(on_add = require_registered::<Self>)]
pub struct Cost(pub f64);

impl Cost {
    /// Work of a patch of cost 1. Work is an integer, so that its sum over ranks is exact in any order.
    pub const ONE: u64 = (CELLS as u64) << 6;

    /// Returns the work of a patch; invalid costs count as the smallest.
    #[inline]
    pub fn work(self) -> u64 {
        (self.0.clamp(0.0, 1e6) * Self::ONE as f64).round().max(1.0) as u64
    }
}

impl PatchComponent for Cost {
    const NAME: &'static str = "cost";
    const VERSION: u32 = 1;
    const IN_DIGEST: bool = false;

    fn save(&self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }

    fn load(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.try_into().map_err(|_| "it must have 8 bytes")?;
        Ok(Self(f64::from_le_bytes(bytes)))
    }

    fn inherited(&self) -> Option<Self> {
        Some(*self)
    }
}

/// Refinement requests of a patch, set by systems of the phase `Flag`; every patch has them. The engine reads and clears
/// them at the end of the phase. Only patches of the phase's level may be flagged: other flags are lost when the patch
/// migrates or the run restarts.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefinementFlags {
    /// Bit `direction(d)` of 27 for each sector with marked cells or their buffers.
    sectors: u32,
    keeps_children: bool,
}

impl RefinementFlags {
    /// Returns requests for the refinement of sectors, as [`RefinementFlags::refine_sectors`].
    #[must_use]
    pub fn of_sectors(sectors: u32) -> Self {
        Self {
            sectors,
            ..Self::default()
        }
    }

    /// Requests the refinement of the patch.
    pub fn refine(&mut self) {
        self.refine_sectors(1 << SELF);
    }

    /// Requests the refinement of the patch and its neighbours by sector: bit `x + 3 y + 9 z` for the neighbour at
    /// (x, y, z), where 1 is the patch itself. The method `mark` of a field returns these numbers.
    pub fn refine_sectors(&mut self, sectors: u32) {
        self.sectors |= sectors;
    }

    /// Keeps existing children at the next regrid without requesting refinement. Criteria with hysteresis use it, so
    /// that patches are not created and removed repeatedly.
    pub fn keep_children(&mut self) {
        self.keeps_children = true;
    }

    /// Returns the requested sectors.
    #[inline]
    pub(super) fn sectors(self) -> u32 {
        self.sectors
    }

    /// Returns `true` if existing children are kept.
    #[inline]
    pub(super) fn keeps_children(self) -> bool {
        self.keeps_children
    }
}

/// Restricts refinement and coarsening of a patch, for example in a zoom region or around a probe.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(on_add = require_registered::<Self>)]
pub struct Pinned {
    /// `true` if the patch and its octet are never removed.
    pub stays: bool,
    /// Finest level to which the patch and its descendants may be refined. Children inherit only this.
    pub finest: Option<u8>,
}

impl Pinned {
    /// The patch is never removed; refinement is unrestricted.
    pub const STAYS: Self = Self {
        stays: true,
        finest: None,
    };
}

impl PatchComponent for Pinned {
    const NAME: &'static str = "pinned";
    const VERSION: u32 = 1;

    fn save(&self) -> Vec<u8> {
        vec![u8::from(self.stays), self.finest.unwrap_or(u8::MAX)]
    }

    fn load(bytes: &[u8]) -> Result<Self, String> {
        let &[stays, finest] = bytes else {
            return Err("it must have 2 bytes".into());
        };
        Ok(Self {
            stays: stays != 0,
            finest: (finest != u8::MAX).then_some(finest),
        })
    }

    fn inherited(&self) -> Option<Self> {
        let stays = false;
        self.finest.map(|_| Self { stays, ..*self })
    }
}

/// Writes values of the patch to `observed.csv` in the run directory after every root step.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[component(on_add = require_registered::<Self>)]
pub struct Observed {
    /// Name in the table: letters, digits and `_`. Several patches may share a name.
    pub name: String,
    /// Components of fields, by their names in snapshots; empty for all.
    pub components: Vec<String>,
    /// Cell (x, y, z, each from 0 to 7) to write; `None` for mean, minimum and maximum of the patch.
    pub cell: Option<[u8; 3]>,
}

impl PatchComponent for Observed {
    const NAME: &'static str = "observed";
    const VERSION: u32 = 1;
    const IN_DIGEST: bool = false;

    fn save(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn load(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_whole_numbers_of_work() {
        assert_eq!(Cost(1.0).work(), Cost::ONE);
        assert_eq!(Cost(2.5).work(), 5 * Cost::ONE / 2);
        assert_eq!([f64::NAN, -1.0, 0.0].map(|cost| Cost(cost).work()), [1; 3]);
        assert!(Cost(1e-4).work() > 1 && Cost(1e9).work() == Cost(1e6).work());
    }

    #[test]
    fn components_come_back_from_their_bytes() {
        let pins = [
            Pinned::STAYS,
            Pinned {
                stays: false,
                finest: Some(3),
            },
        ];
        for pin in pins {
            assert_eq!(Pinned::load(&pin.save()), Ok(pin));
        }
        assert_eq!(Pinned::STAYS.inherited(), None);
        assert_eq!(
            Pinned {
                stays: true,
                ..pins[1]
            }
            .inherited(),
            Some(pins[1])
        );
        assert_eq!(Cost::load(&Cost(0.1).save()), Ok(Cost(0.1)));
        let observed = Observed {
            name: "probe".into(),
            components: vec!["scalar_dye".into()],
            cell: Some([1, 2, 3]),
        };
        assert_eq!(Observed::load(&observed.save()), Ok(observed));
        assert!(Observed::load(b"{").is_err() && Pinned::load(&[1]).is_err());
    }
}
