//! A patch as an entity with small components. Cell data is stored in the pools of fields, never in a component.
//!
//! Every patch on a rank has [`Level`], [`PatchIndex`], [`PatchRow`] and [`Owner`], and [`Parent`] if the parent is on
//! the same rank. `Patches<&PatchIndex>` visits those of a level in Hilbert order, a plain `Query` visits all in any
//! order. Every patch also has [`RefinementFlags`]. Systems may attach further components by `Commands`; [`Cost`],
//! [`Pinned`] and [`Observed`] control the engine, and a plugin that attaches one of them registers it
//! (`Engine::register_carried`). Halo patches are not entities.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use nestar_kernels::mesh::SELF;
pub use nestar_kernels::{CELLS, PATCH};
use serde::{Deserialize, Serialize};

/// Refinement level of a patch, 0 for the root grid.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(pub u8);

/// Position of a patch on its level, in units of patches.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchIndex(pub [i32; 3]);

/// Row of a patch in all pools and topology tables.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchRow(pub u32);

/// The patch refined by this one; absent on level 0.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent(pub Entity);

/// The rank that owns the patch.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub u32);

/// A component that migrates with its patch and is saved in snapshots. Register it with `Engine::register_carried`;
/// unregistered components do not migrate.
///
/// A patch keeps its components while it is refined or coarsened; they are removed with the patch. A new patch has only
/// those that [`PatchComponent::inherited`] of its parent returns.
pub trait PatchComponent: Component + Sized {
    /// Name in snapshots; it may contain letters, digits and `_`.
    const NAME: &'static str;
    /// Version of the bytes; increase it when their meaning changes.
    const VERSION: u32;
    /// `true` if the digest of snapshots includes it; `false` for data that does not affect results.
    const IN_DIGEST: bool = true;

    /// Returns the component as bytes, independent of the machine.
    fn save(&self) -> Vec<u8>;

    /// Restores the bytes of [`PatchComponent::save`] of the same version.
    ///
    /// # Errors
    /// The reason why the bytes are invalid.
    fn load(bytes: &[u8]) -> Result<Self, String>;

    /// Returns the component that each child inherits at refinement, if any.
    fn inherited(&self) -> Option<Self> {
        None
    }
}

/// Access to one kind of component.
#[derive(Clone, Copy)]
pub struct PatchComponentOperations {
    /// Name in snapshots.
    pub name: &'static str,
    /// Version of the bytes.
    pub version: u32,
    /// `true` if the digest of snapshots includes it.
    pub in_digest: bool,
    /// Returns the component of an entity as bytes, if it has one.
    pub save: fn(&World, Entity) -> Option<Vec<u8>>,
    /// Attaches the component to an entity; an error says why the bytes are invalid.
    pub load: fn(&mut World, Entity, &[u8]) -> Result<(), String>,
    /// Returns the bytes that the children of an entity inherit.
    pub inherited: fn(&World, Entity) -> Option<Vec<u8>>,
    /// Returns all entities with this component.
    pub with: fn(&World) -> Vec<Entity>,
}

/// Registered components in the order of registration, which is equal on all ranks.
#[derive(Resource, Clone, Default)]
pub struct PatchComponents {
    kinds: Vec<PatchComponentOperations>,
    /// Name of an engine component that was attached without registration.
    unregistered: Option<&'static str>,
}

impl PatchComponents {
    /// Registers a component; a second call has no effect.
    pub fn add<C: PatchComponent>(&mut self) {
        if self.has::<C>() {
            return;
        }
        self.kinds.push(PatchComponentOperations {
            name: C::NAME,
            version: C::VERSION,
            in_digest: C::IN_DIGEST,
            save: |world, entity| world.get::<C>(entity).map(C::save),
            load: |world, entity, bytes| {
                let component = C::load(bytes)?;
                world.entity_mut(entity).insert(component);
                Ok(())
            },
            inherited: |world, entity| Some(world.get::<C>(entity)?.inherited()?.save()),
            with: |world| {
                let found = world.try_query_filtered::<Entity, With<C>>();
                found.map_or_else(Vec::new, |mut query| query.iter(world).collect())
            },
        });
    }

    /// Returns `true` if the component is registered.
    pub fn has<C: PatchComponent>(&self) -> bool {
        self.kinds.iter().any(|kind| kind.name == C::NAME)
    }

    /// Returns the message about a component attached without registration, if there is one.
    pub fn fault(&self) -> Option<String> {
        self.unregistered.map(|name| {
            format!(
                "a patch has the component `{name}`, which would be lost when the patch moves: call `sim.register_carried` for it where \
                 the plugin is built"
            )
        })
    }

    /// Returns all registered components.
    pub fn kinds(&self) -> &[PatchComponentOperations] {
        &self.kinds
    }
}

/// Hook of engine components: detects attachment without registration.
pub(super) fn require_registered<C: PatchComponent>(mut world: DeferredWorld, _: HookContext) {
    if let Some(mut carried) = world.get_resource_mut::<PatchComponents>()
        && !carried.has::<C>()
    {
        carried.unregistered = Some(C::NAME);
    }
}

/// Values of components: for each kind, the number of the patch, agreed by all ranks, and the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchComponentValues(pub Vec<Vec<(u64, Vec<u8>)>>);

impl PatchComponentValues {
    /// Returns the components of `patches`, or with `inherited` those of their children.
    pub fn of(world: &World, patches: &[(u64, Entity)], inherited: bool) -> Self {
        let kind = |kind: &PatchComponentOperations| {
            let read = if inherited { kind.inherited } else { kind.save };
            let value = |&(patch, entity): &(u64, Entity)| Some((patch, read(world, entity)?));
            patches.iter().filter_map(value).collect()
        };
        Self(
            world
                .resource::<PatchComponents>()
                .kinds()
                .iter()
                .map(kind)
                .collect(),
        )
    }

    /// Appends the values of `other`.
    pub fn append(&mut self, other: Self) {
        self.0.resize(self.0.len().max(other.0.len()), Vec::new());
        for (own, mut more) in self.0.iter_mut().zip(other.0) {
            own.append(&mut more);
        }
    }

    /// Attaches the values to entities; `find` returns `None` for patches of other ranks.
    ///
    /// # Errors
    /// The component whose bytes are invalid, with the reason.
    pub fn attach(
        &self,
        world: &mut World,
        find: impl Fn(&World, u64) -> Option<Entity>,
    ) -> Result<(), String> {
        let kinds = world.resource::<PatchComponents>().kinds().to_vec();
        for (kind, values) in kinds.iter().zip(&self.0) {
            for (patch, bytes) in values {
                if let Some(entity) = find(world, *patch) {
                    (kind.load)(world, entity, bytes)
                        .map_err(|why| format!("the component `{}`: {why}", kind.name))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the values as bytes: each kind after its length.
    pub fn to_bytes(&self) -> Vec<u8> {
        let kinds = self.0.iter().map(|values| encode(values));
        kinds
            .flat_map(|bytes| [&(bytes.len() as u64).to_le_bytes(), &bytes[..]].concat())
            .collect()
    }

    /// Decodes the bytes of [`PatchComponentValues::to_bytes`].
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut kinds = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
            kinds.push(decode(bytes.split_off(..usize::try_from(length).ok()?)?)?);
        }
        Some(Self(kinds))
    }
}

/// Encodes the values of one kind: number of the patch (u64, little-endian), length (u32) and bytes.
pub fn encode(values: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (patch, value) in values {
        bytes.extend(patch.to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(value);
    }
    bytes
}

/// Decodes the bytes of [`encode`].
pub fn decode(mut bytes: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let patch = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
        let length = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        values.push((patch, bytes.split_off(..length as usize)?.to_vec()));
    }
    Some(values)
}

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
    /// Name in the table; it may contain letters, digits and `_`. Several patches may have the same name.
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
    use crate::patch::{PatchComponentValues, *};

    #[test]
    fn values_travel_as_bytes() {
        let values = PatchComponentValues(vec![
            vec![(7, vec![1, 2]), (u64::MAX, vec![])],
            vec![],
            vec![(0, vec![0; 300])],
        ]);
        let bytes = values.to_bytes();
        assert_eq!(PatchComponentValues::from_bytes(&bytes), Some(values));
        assert_eq!(
            PatchComponentValues::from_bytes(&bytes[..bytes.len() - 1]),
            None
        );
        assert_eq!(PatchComponentValues::from_bytes(&bytes[..3]), None);
    }

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
