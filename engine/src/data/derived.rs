//! Numbers with names that follow from a field's state in each cell, for those who look at the state: snapshots and pictures.

use super::listed::{CellCube, NamedQuantity};
use super::{Component, Components};
use bevy_ecs::prelude::Resource;
use nestar_kernels::mesh::block::LevelGeometry;

/// A number in each cell that follows from the state of a field.
#[derive(Clone)]
pub struct DerivedField {
    /// Its name, and that of its array in snapshots.
    pub name: String,
    /// Its unit: `1`, or like `mass/length**3`; words other than length, mass and time are units of their own, such as `K`.
    pub units: String,
    /// A sentence for people.
    pub long_name: String,
    /// What it is.
    pub number: NamedQuantity,
}

impl DerivedField {
    /// The components of the field that it is made of, ascending.
    #[must_use]
    pub fn components(&self) -> Vec<usize> {
        let mut components = self.number.components.clone();
        components.retain(|&c| c != Components::ZERO);
        components.sort_unstable();
        components.dedup();
        components
    }

    /// Makes the numbers of a patch's 512 cells of `[component][512]` values.
    pub(crate) fn fill(
        &self,
        values: &[f64],
        patch: [i32; 3],
        geometry: &LevelGeometry,
        out: &mut [f64],
    ) {
        self.number
            .fill(&CellCube::of_patch(values, patch, geometry), out);
    }
}

/// The derived fields that there are, with the fields that they are made of; set by [`Engine::register_derived`](crate::Engine::register_derived).
#[derive(Resource, Default)]
pub struct DerivedFields(Vec<(&'static str, DerivedField)>);

impl DerivedFields {
    /// Adds what is made of the field `of`.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub(crate) fn add(
        &mut self,
        of: &'static str,
        components: &[Component],
        derived: Vec<DerivedField>,
    ) -> Result<(), String> {
        for own in derived {
            let wrong = |why: &str| Err(format!("derived field `{}`: {why}", own.name));
            if own.number.function.reach > 0 {
                return wrong("it reads cells around, and can be made of its own cell alone");
            }
            if own
                .components()
                .last()
                .is_none_or(|&c| c >= components.len())
            {
                return wrong(&format!("its components are not those of the field `{of}`"));
            }
            if self.0.iter().any(|(_, known)| known.name == own.name) {
                return wrong("there is another one of that name");
            }
            self.0.push((of, own));
        }
        Ok(())
    }

    /// All of them, with the names of the fields that they are made of.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &DerivedField)> {
        self.0.iter().map(|(of, own)| (*of, own))
    }

    /// Those with some names.
    pub fn named<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl Iterator<Item = (&'static str, &'a DerivedField)> {
        let find = |name: &'a String| self.all().find(|(_, own)| own.name == *name);
        names.iter().filter_map(find)
    }
}
