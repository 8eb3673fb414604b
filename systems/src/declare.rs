//! What plugins declare before the gas is made: scalars that it carries.

use crate::fields::{DeclaredScalars, GasModel};
use nestar_engine::step::Catalogue;
use nestar_engine::{Engine, Error};

/// Declarations of plugins, in [`Plugin::declare`](nestar_engine::Plugin::declare).
pub trait Declare {
    /// Scalars that the gas carries, by name and with the mass fraction that they have where neither scenario nor boundary says
    /// another. Their fractions keep the bounds of their surroundings. A scalar that the deck or another plugin declares too is one
    /// and the same.
    ///
    /// # Errors
    /// The gas is made already; a name or a fraction that no scalar has; another fraction than somebody else gives it.
    fn scalars(&mut self, scalars: &[(&str, f64)]) -> Result<(), Error>;

    /// As [`Declare::scalars`] for all that the gas consists of: the fractions sum to 1 in every cell.
    ///
    /// # Errors
    /// As [`Declare::scalars`].
    fn scalar_set(&mut self, scalars: &[(&str, f64)]) -> Result<(), Error>;
}

impl Declare for Engine {
    fn scalars(&mut self, scalars: &[(&str, f64)]) -> Result<(), Error> {
        if self.world.contains_resource::<GasModel>() {
            return Err(Error::Setup(
                "the gas is made already and takes no more scalars: add the plugin to the program (`App::plugin`, `App::always`), \
                 which lets it declare them in time"
                    .into(),
            ));
        }
        let mut catalogue = self.world.resource_mut::<Catalogue>();
        for (name, fraction) in scalars {
            let doc = format!("Mass fraction, 0 to 1; default {fraction}.");
            catalogue.add("scalar", name, &doc);
        }
        let mut declared = self.world.get_resource_or_init::<DeclaredScalars>();
        for &(name, fraction) in scalars {
            let known = declared.scalars.iter().find(|(own, _)| own == name);
            let wrong = match known {
                _ if !(0.0..=1.0).contains(&fraction) => {
                    format!("must lie in 0 to 1, found {fraction}")
                }
                Some((_, other)) if *other != fraction => {
                    format!("is {other} for one plugin and {fraction} for another")
                }
                Some(_) => continue,
                None => {
                    declared.scalars.push((name.into(), fraction));
                    continue;
                }
            };
            let message = format!("the initial mass fraction of the scalar {name:?} {wrong}");
            return Err(Error::Setup(message));
        }
        Ok(())
    }

    fn scalar_set(&mut self, scalars: &[(&str, f64)]) -> Result<(), Error> {
        self.scalars(scalars)?;
        let names = scalars.iter().map(|(name, _)| name.to_string()).collect();
        let mut declared = self.world.get_resource_or_init::<DeclaredScalars>();
        if !declared.sets.contains(&names) {
            declared.sets.push(names);
        }
        Ok(())
    }
}
