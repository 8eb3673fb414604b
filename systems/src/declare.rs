//! What plugins declare before the gas is made: scalars that it carries, and numbers with names; how decks give numbers by level.

use crate::fields::{
    AccelerationAsked, Declared, Derived, Gas, GasModel, Naming, OwnPotentialAsked,
};
use bevy_ecs::prelude::*;
use nestar_engine::data::criteria::{NamedQuantity, QuantityFn, parameters_of};
use nestar_engine::data::{CellValue, Field};
use nestar_engine::step::Catalogue;
use nestar_engine::{Engine, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

    /// A number in a cell with a name, which the deck's criteria and formulas and the pictures of this program may use: `M` of the gas and of
    /// these scalars, whatever others there are. `units` is `1`, or like `mass/length**3`; `list` shows what documents `M`.
    /// A number of the name `temperature_k` or `number_density_cm3` replaces Nestar's own, which has the constant mean molecular weight of
    /// the table `[hydro]`: so does a plugin that knows how much of the gas is ionised.
    ///
    /// # Errors
    /// The gas is made already; `M` takes another number of parameters.
    ///
    /// # Panics
    /// If `M` reads several fields or around cells.
    fn derived<M: CellValue>(
        &mut self,
        name: &str,
        units: &str,
        scalars: &[&str],
        parameters: &[f64],
    ) -> Result<(), Error>
    where
        M::Parameters: for<'a> TryFrom<&'a [f64]>,
    {
        let about = [name, units, M::DOC];
        let derived = derived(about, QuantityFn::of::<M>(), scalars);
        self.name_number(about, constant::<M>(derived, parameters)?)
    }

    /// As [`Declare::derived`] for a function of the gas's heat, which looks at the gas in its own frame as functions by
    /// [`Register::at_rest`](crate::register::Register::at_rest) do.
    ///
    /// # Errors
    /// As [`Declare::derived`].
    ///
    /// # Panics
    /// As [`Declare::derived`].
    fn derived_at_rest<M: CellValue>(
        &mut self,
        name: &str,
        units: &str,
        scalars: &[&str],
        parameters: &[f64],
    ) -> Result<(), Error>
    where
        M::Parameters: for<'a> TryFrom<&'a [f64]>,
    {
        let about = [name, units, M::DOC];
        let derived = Derived {
            at_rest: true,
            ..derived(about, QuantityFn::of::<M>(), scalars)
        };
        self.name_number(about, constant::<M>(derived, parameters)?)
    }

    /// As [`Declare::derived_at_rest`] for a function that is chosen, with its parameters and the scalars that it reads, when it is known
    /// what the gas is made of: `choose` gives it then. `QuantityFn::with::<M>(p)` is a function with a structure of parameters, which may
    /// hold tables; `doc` is what `list` shows.
    ///
    /// # Errors
    /// The gas is made already. Later those of `choose`, a name that somebody else has, a scalar that there is not.
    fn derived_when_made(
        &mut self,
        name: &str,
        units: &str,
        doc: &str,
        choose: impl FnOnce(&mut Engine, &GasModel) -> Result<Chosen, Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let about = [name, units, doc];
        let own = about.map(String::from);
        let make = move |sim: &mut Engine, model: &GasModel| {
            let (function, scalars) = choose(sim, model)?;
            Ok(Derived {
                at_rest: true,
                ..derived(own.each_ref().map(String::as_str), function, scalars)
            })
        };
        self.name_number(about, Box::new(make))
    }

    /// A number with a name, a unit and a sentence about it, which `make` gives when it is known what the gas is made of: what the
    /// functions above come to.
    ///
    /// # Errors
    /// The gas is made already. Later those of `make`, a name that somebody else has, a scalar that there is not.
    fn name_number(&mut self, about: [&str; 3], make: Naming) -> Result<(), Error>;

    /// Lets every step of the gas leave its mass fluxes in the field [`MassFlux`](crate::fields::MassFlux), for systems behind
    /// [`Advance::Fluid`](crate::order::Advance::Fluid). Cells mended with first-order fluxes are right too; corrections where levels meet
    /// come later.
    ///
    /// # Errors
    /// The gas is made already.
    fn mass_fluxes(&mut self) -> Result<(), Error>;

    /// Lets self-gravity keep a second potential of each level in the field [`OwnPotential`](crate::fields::OwnPotential), without what finer
    /// levels add: for matter beside coarse-fine faces that must not feel itself. It stands at the end of the level's step from
    /// [`Advance::Potential`](crate::order::Advance::Potential) on. A level that has finer ones takes one more multigrid cycle a
    /// step for it, the root level one more solve; elsewhere it is a copy. Without a table `[gravity]` in the deck the field is not there.
    ///
    /// # Errors
    /// The gas is made already.
    fn own_potential(&mut self) -> Result<(), Error>;

    /// Keeps what everything that falls freely is accelerated by in the field [`Acceleration`](crate::fields::Acceleration). It stands at the
    /// end of the level's step from [`Advance::Couple`](crate::order::Advance::Couple) on.
    ///
    /// # Errors
    /// The gas is made already.
    fn acceleration(&mut self) -> Result<(), Error>;
}

/// A function of the gas in its own frame, and the scalars that it reads behind the gas.
pub type Chosen = (QuantityFn, &'static [&'static str]);

/// What plugins have declared, while they may.
fn declared(sim: &mut Engine) -> Result<Mut<'_, Declared>, Error> {
    if sim.world.contains_resource::<GasModel>() {
        return Err(Error::Setup(
            "the gas is made already and takes no more scalars and names: add the plugin to the program (`App::plugin`, `App::always`), \
             which lets it declare them in time"
                .into(),
        ));
    }
    Ok(sim.world.get_resource_or_init::<Declared>())
}

/// A number by a function of the gas and of some scalars, with what there is to say about it.
fn derived([name, units, doc]: [&str; 3], function: QuantityFn, scalars: &[&str]) -> Derived {
    Derived {
        name: name.into(),
        units: units.into(),
        doc: doc.into(),
        number: NamedQuantity {
            function,
            components: Vec::new(),
            parameters: Vec::new(),
        },
        scalars: scalars.iter().map(ToString::to_string).collect(),
        at_rest: false,
    }
}

/// Gives the number with these parameters, if the function takes them.
fn constant<M: CellValue>(mut derived: Derived, parameters: &[f64]) -> Result<Naming, Error>
where
    M::Parameters: for<'a> TryFrom<&'a [f64]>,
{
    parameters_of::<M>(parameters).map_err(|why| {
        let name = &derived.name;
        Error::Setup(format!("the number {name:?} cannot be derived: {why}"))
    })?;
    derived.number.parameters = parameters.to_vec();
    Ok(Box::new(|_, _| Ok(derived)))
}

impl Declare for Engine {
    fn scalars(&mut self, scalars: &[(&str, f64)]) -> Result<(), Error> {
        declared(self)?;
        let mut catalogue = self.world.resource_mut::<Catalogue>();
        for (name, fraction) in scalars {
            let doc = format!("Mass fraction, 0 to 1; default {fraction}.");
            catalogue.add("scalar", name, &doc);
        }
        let mut declared = declared(self)?;
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
        let mut declared = declared(self)?;
        if !declared.sets.contains(&names) {
            declared.sets.push(names);
        }
        Ok(())
    }

    fn mass_fluxes(&mut self) -> Result<(), Error> {
        declared(self)?.mass_fluxes = true;
        Ok(())
    }

    fn own_potential(&mut self) -> Result<(), Error> {
        declared(self)?;
        self.world.insert_resource(OwnPotentialAsked);
        Ok(())
    }

    fn acceleration(&mut self) -> Result<(), Error> {
        declared(self)?;
        self.world.insert_resource(AccelerationAsked);
        Ok(())
    }

    fn name_number(&mut self, about: [&str; 3], make: Naming) -> Result<(), Error> {
        declared(self)?.derived.push(make);
        let [name, units, doc] = about;
        let mut catalogue = self.world.resource_mut::<Catalogue>();
        let entry = catalogue.add("derived field", name, doc);
        entry.of(Gas::NAME).unit(units);
        Ok(())
    }
}

/// A number for every level, or a list with one per level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PerLevel<T> {
    /// The same on every level.
    Every(T),
    /// Level 0, 1, …
    Each(Vec<T>),
}

impl<T: Copy> PerLevel<T> {
    /// The value of `level`; a list holds for the levels that it names.
    #[must_use]
    pub fn at(&self, level: usize) -> Option<T> {
        match self {
            Self::Every(value) => Some(*value),
            Self::Each(list) => list.get(level).copied(),
        }
    }
}
