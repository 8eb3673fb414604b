//! Declarations of plugins before the gas is built: scalars, derived fields and optional fields.

use crate::fields::{
    AccelerationRequested, Derived, DerivedMaker, Gas, GasDeclarations, GasModel,
    OwnPotentialRequested,
};
use bevy_ecs::prelude::*;
use nestar_engine::data::criteria::{NamedQuantity, QuantityFn, parameters_of};
use nestar_engine::data::{CellValue, Field};
use nestar_engine::step::Catalogue;
use nestar_engine::{Engine, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declarations of plugins, for [`Plugin::declare`](nestar_engine::Plugin::declare).
pub trait Declare {
    /// Declares scalars of the gas: name and default mass fraction, used if neither scenario nor boundary gives a
    /// value. Advection keeps the fractions within the bounds of their neighbourhood. A scalar may be declared several
    /// times, also by the deck.
    ///
    /// # Errors
    /// The gas is built already; a name or fraction is invalid; two declarations give different fractions.
    fn scalars(&mut self, scalars: &[(&str, f64)]) -> Result<(), Error>;

    /// Declares scalars, as [`Declare::scalars`], that make up all of the gas: their mass fractions sum to 1 in every
    /// cell.
    ///
    /// # Errors
    /// As [`Declare::scalars`].
    fn scalar_set(&mut self, scalars: &[(&str, f64)]) -> Result<(), Error>;

    /// Declares a derived field, which criteria, formulas and plots can use by name: the function `M` of the gas and of
    /// these scalars. `units` is `1` or, for example, `mass/length**3`; `nestar list` shows the documentation of `M`. A
    /// derived field `temperature_k` or `number_density_cm3` replaces the built-in one, which assumes the constant mean
    /// molecular weight of the table `[hydro]`.
    ///
    /// # Errors
    /// The gas is built already; `M` takes another number of parameters.
    ///
    /// # Panics
    /// If `M` reads several fields or a neighbourhood.
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

    /// Declares a derived field, as [`Declare::derived`], of the gas in its rest frame, as for functions added by
    /// [`Register::at_rest`](crate::register::Register::at_rest).
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

    /// Declares a derived field, as [`Declare::derived_at_rest`], whose function, parameters and scalars are chosen by
    /// `choose` when the gas is built. `QuantityFn::with::<M>(p)` is a function with a parameter structure, which may
    /// hold tables; `nestar list` shows `doc`.
    ///
    /// # Errors
    /// The gas is built already. Later: the errors of `choose`, a duplicate name, an unknown scalar.
    fn derived_when_made(
        &mut self,
        name: &str,
        units: &str,
        doc: &str,
        choose: impl FnOnce(&mut Engine, &GasModel) -> Result<ChosenFunction, Error>
        + Send
        + Sync
        + 'static,
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

    /// Declares a derived field with name, unit and description (`about`) that `make` builds when the gas is built. The
    /// functions above call it.
    ///
    /// # Errors
    /// The gas is built already. Later: the errors of `make`, a duplicate name, an unknown scalar.
    fn name_number(&mut self, about: [&str; 3], make: DerivedMaker) -> Result<(), Error>;

    /// Requests the field [`MassFlux`](crate::fields::MassFlux), which each step of the gas fills for systems after
    /// [`Advance::Fluid`](crate::order::Advance::Fluid). It includes first-order fluxes of corrected cells, but not
    /// flux corrections at level boundaries, which come later.
    ///
    /// # Errors
    /// The gas is built already.
    fn mass_fluxes(&mut self) -> Result<(), Error>;

    /// Requests the field [`OwnPotential`](crate::fields::OwnPotential): the potential of each level without the
    /// contribution of finer levels, for matter beside coarse-fine faces that must not act on itself. It is at the end
    /// of the step of the level from [`Advance::Potential`](crate::order::Advance::Potential) on. It costs one more
    /// multigrid cycle per step on levels with finer levels and one more solve of the root level; elsewhere it is a
    /// copy. The field does not exist without a table `[gravity]`.
    ///
    /// # Errors
    /// The gas is built already.
    fn own_potential(&mut self) -> Result<(), Error>;

    /// Requests the field [`Acceleration`](crate::fields::Acceleration). It is at the end of the step of the level from
    /// [`Advance::Couple`](crate::order::Advance::Couple) on.
    ///
    /// # Errors
    /// The gas is built already.
    fn acceleration(&mut self) -> Result<(), Error>;
}

/// A function of the gas in its rest frame, and the scalars that it reads after the gas components.
pub type ChosenFunction = (QuantityFn, &'static [&'static str]);

/// Returns the declarations, which are open until the gas is built.
fn declared(sim: &mut Engine) -> Result<Mut<'_, GasDeclarations>, Error> {
    if sim.world.contains_resource::<GasModel>() {
        return Err(Error::Setup(
            "the gas is built already and takes no more declarations: add the plugin to the program (`App::plugin`, `App::always`), \
             so that its method `declare` is called in time"
                .into(),
        ));
    }
    Ok(sim.world.get_resource_or_init::<GasDeclarations>())
}

/// Describes a derived field by a function of the gas and of scalars.
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

/// Sets the parameters of a derived field, if the function takes them.
fn constant<M: CellValue>(mut derived: Derived, parameters: &[f64]) -> Result<DerivedMaker, Error>
where
    M::Parameters: for<'a> TryFrom<&'a [f64]>,
{
    parameters_of::<M>(parameters).map_err(|why| {
        let name = &derived.name;
        Error::Setup(format!("the derived field {name:?} is invalid: {why}"))
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
        self.world.insert_resource(OwnPotentialRequested);
        Ok(())
    }

    fn acceleration(&mut self) -> Result<(), Error> {
        declared(self)?;
        self.world.insert_resource(AccelerationRequested);
        Ok(())
    }

    fn name_number(&mut self, about: [&str; 3], make: DerivedMaker) -> Result<(), Error> {
        declared(self)?.derived.push(make);
        let [name, units, doc] = about;
        let mut catalogue = self.world.resource_mut::<Catalogue>();
        let entry = catalogue.add("derived field", name, doc);
        entry.of(Gas::NAME).unit(units);
        Ok(())
    }
}

/// A value for all levels, or a list with one value per level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PerLevel<T> {
    /// The same on every level.
    Every(T),
    /// Level 0, 1, …
    Each(Vec<T>),
}

impl<T: Copy> PerLevel<T> {
    /// Returns the value for `level`; `None` after the end of a list.
    #[must_use]
    pub fn at(&self, level: usize) -> Option<T> {
        match self {
            Self::Every(value) => Some(*value),
            Self::Each(list) => list.get(level).copied(),
        }
    }
}
