//! Named quantities derived from the state of a cell, for snapshots and images.

use super::field_spec::{Component, Components};
use super::quantities::{CellCube, NamedQuantity};
use bevy_ecs::prelude::Resource;
use nestar_kernels::mesh::block::LevelGeometry;

/// A quantity per cell that is derived from the state of a field.
#[derive(Clone)]
pub struct DerivedField {
    /// Name of the quantity and of its array in snapshots.
    pub name: String,
    /// Unit: `1`, or as `mass/length**3`. Words other than length, mass and time are units of their own, such as `K`.
    pub units: String,
    /// Description in one sentence.
    pub long_name: String,
    /// The function that computes it.
    pub number: NamedQuantity,
}

impl DerivedField {
    /// Returns the components of the field that it reads, ascending.
    #[must_use]
    pub fn components(&self) -> Vec<usize> {
        let mut components = self.number.components.clone();
        components.retain(|&c| c != Components::ZERO);
        components.sort_unstable();
        components.dedup();
        components
    }

    /// Computes the quantity in the 512 cells of a patch from `[component][512]` values.
    pub fn fill(&self, values: &[f64], patch: [i32; 3], geometry: &LevelGeometry, out: &mut [f64]) {
        self.number
            .fill(&CellCube::of_patch(values, patch, geometry), out);
    }
}

/// All derived quantities with the names of their fields; filled by `Engine::register_derived`.
#[derive(Resource, Default)]
pub struct DerivedFields(Vec<(&'static str, DerivedField)>);

impl DerivedFields {
    /// Adds quantities derived from the field `of`.
    ///
    /// # Errors
    /// The first quantity that is refused, with the reason.
    pub fn add(
        &mut self,
        of: &'static str,
        components: &[Component],
        derived: Vec<DerivedField>,
    ) -> Result<(), String> {
        for own in derived {
            let wrong = |why: &str| Err(format!("derived field `{}`: {why}", own.name));
            if own.number.function.reach > 0 {
                return wrong(
                    "it reads neighbouring cells; derived fields may read only their own cell",
                );
            }
            if own
                .components()
                .last()
                .is_none_or(|&c| c >= components.len())
            {
                return wrong(&format!("its components are not those of the field `{of}`"));
            }
            if self.0.iter().any(|(_, known)| known.name == own.name) {
                return wrong("the name is already in use");
            }
            self.0.push((of, own));
        }
        Ok(())
    }

    /// Returns all quantities with the names of their fields.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &DerivedField)> {
        self.0.iter().map(|(of, own)| (*of, own))
    }

    /// Returns the quantities called `names`.
    pub fn named<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl Iterator<Item = (&'static str, &'a DerivedField)> {
        let find = |name: &'a String| self.all().find(|(_, own)| own.name == *name);
        names.iter().filter_map(find)
    }
}
