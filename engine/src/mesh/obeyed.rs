//! Components that anyone may attach to patches and that the engine obeys. Who attaches one registers it
//! (`Engine::register_carried`).

use super::patch::CELLS;
use super::patch_component::{PatchComponent, require_registered};
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

/// Measured work of a step of a patch, in any unit that all patches share; 1 where it is absent. The parts of the ranks are cut
/// by it when the level below is regridded, those of the root grid before root steps.
///
/// Values from 1e-4 to 1e6 are told apart; children begin with the cost of their parent.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
#[component(on_add = require_registered::<Self>)]
pub struct Cost(pub f64);

impl Cost {
    /// Work of a patch of cost 1. Work is an integer, so that ranks add it up exactly in any order.
    pub(crate) const ONE: u64 = (CELLS as u64) << 6;

    /// The work of a patch; what is no cost counts as the least.
    pub(crate) fn work(self) -> u64 {
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
        let bytes = bytes.try_into().map_err(|_| "it has 8 bytes")?;
        Ok(Self(f64::from_le_bytes(bytes)))
    }

    fn inherited(&self) -> Option<Self> {
        Some(*self)
    }
}

/// What the criteria may not do to a patch: a zoom region, the surroundings of a probe.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(on_add = require_registered::<Self>)]
pub struct Pinned {
    /// Whether the patch, and with it its octet, stays whatever the criteria say.
    pub stays: bool,
    /// The finest level that the patch or its descendants may be refined to. Its children inherit this, and nothing else.
    pub finest: Option<u8>,
}

impl Pinned {
    /// The patch stays, and is refined as the criteria say.
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
            return Err("it has 2 bytes".into());
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

/// The patch's values are written to `observed.csv` in the run's directory after every root step.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[component(on_add = require_registered::<Self>)]
pub struct Observed {
    /// What the rows are called: letters, digits and `_`. Several patches may share a name.
    pub name: String,
    /// Components of fields, by the names of their arrays in snapshots; empty: all.
    pub components: Vec<String>,
    /// The cell (x, y, z, each from 0 to 7) whose values are written; none: mean, least and greatest value of the patch.
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
