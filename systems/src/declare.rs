//! Declarations of plugins before the gas is built: scalars, derived fields and optional fields.

use crate::fields::{
    Acceleration, AccelerationRequested, Derived, Gas, GasDeclarations, GasModel, MassFlux,
    OwnPotential, OwnPotentialRequested, PairAcceleration, PairAccelerationRequested,
};
use crate::hydro::HydroConfig;
use bevy_ecs::prelude::*;
use nestar_deck::{Deck, DeckError};
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

    /// Declares a derived field, which criteria, formulas and plots can use by name: the function `M` of the gas, as
    /// seen in `frame`, and of these scalars. `units` is `1` or, for example, `mass/length**3`; `nestar list` shows the
    /// documentation of `M`. A derived field `temperature_k` or `number_density_cm3` replaces the built-in one, which
    /// assumes the constant mean molecular weight of the table `[hydro]`. With `temperature_k`, also insert the resource
    /// [`PressureFormula`](crate::fields::PressureFormula), by which initial states and inflow accept temperatures.
    ///
    /// # Errors
    /// The gas is built already; `M` takes another number of parameters. Later: a duplicate name, an unknown scalar.
    ///
    /// # Panics
    /// If `M` reads several fields or a neighbourhood.
    fn derived<M: CellValue>(
        &mut self,
        name: &str,
        units: &str,
        frame: GasFrame,
        scalars: &[&str],
        parameters: &[f64],
    ) -> Result<(), Error>
    where
        M::Parameters: for<'a> TryFrom<&'a [f64]>;

    /// Declares a derived field of the gas in its rest frame, whose function, parameters and scalars are chosen by
    /// `choose` when the gas is built. `QuantityFn::with::<M>(p)` is a function with a parameter structure, which may
    /// hold tables; `nestar list` shows `doc`.
    ///
    /// # Errors
    /// The gas is built already. Later: the errors of `choose`, a duplicate name, an unknown scalar.
    fn derived_when_built(
        &mut self,
        name: &str,
        units: &str,
        doc: &str,
        choose: impl FnOnce(&mut Engine, &GasModel) -> Result<ChosenFunction, Error>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), Error>;

    /// Requests an optional field: [`MassFlux`], [`OwnPotential`] or [`Acceleration`].
    ///
    /// # Errors
    /// The gas is built already.
    fn request<F: OptionalField>(&mut self) -> Result<(), Error>;
}

/// Frame in which a function sees the gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GasFrame {
    /// Frame of the grid: momentum and total energy as stored.
    Grid,
    /// Rest frame of the gas, as for functions that [`Register::at_rest`](crate::register::Register::at_rest) selects.
    Rest,
}

/// A function of the gas in its rest frame, and the scalars that it reads after the gas components.
pub type ChosenFunction = (QuantityFn, &'static [&'static str]);

/// A field that exists if a plugin requests it.
pub trait OptionalField: Field {
    /// Records the request.
    #[doc(hidden)]
    fn request(world: &mut World);
}

impl OptionalField for MassFlux {
    fn request(world: &mut World) {
        let mut declarations = world.get_resource_or_init::<GasDeclarations>();
        declarations.mass_fluxes = true;
    }
}

impl OptionalField for OwnPotential {
    fn request(world: &mut World) {
        world.insert_resource(OwnPotentialRequested);
    }
}

impl OptionalField for PairAcceleration {
    fn request(world: &mut World) {
        world.insert_resource(PairAccelerationRequested);
    }
}

impl OptionalField for Acceleration {
    fn request(world: &mut World) {
        world.insert_resource(AccelerationRequested);
    }
}

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

/// Name, unit and description of a derived field.
struct DerivedLabel {
    name: String,
    units: String,
    doc: String,
}

impl DerivedLabel {
    /// Describes the derived field by a function of the gas and of scalars.
    fn of(self, function: QuantityFn, scalars: &[&str], frame: GasFrame) -> Derived {
        Derived {
            name: self.name,
            units: self.units,
            doc: self.doc,
            number: NamedQuantity {
                function,
                components: Vec::new(),
                parameters: Vec::new(),
            },
            scalars: scalars.iter().map(ToString::to_string).collect(),
            at_rest: frame == GasFrame::Rest,
        }
    }
}

/// Adds a derived field that `make` builds when the gas is built.
fn add_derived(
    sim: &mut Engine,
    label: DerivedLabel,
    make: impl FnOnce(DerivedLabel, &mut Engine, &GasModel) -> Result<Derived, Error>
    + Send
    + Sync
    + 'static,
) -> Result<(), Error> {
    declared(sim)?;
    let mut catalogue = sim.world.resource_mut::<Catalogue>();
    let entry = catalogue.add("derived field", &label.name, &label.doc);
    entry.of(Gas::NAME).unit(&label.units);
    let make = Box::new(move |sim: &mut Engine, model: &GasModel| make(label, sim, model));
    declared(sim)?.derived.push(make);
    Ok(())
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

    fn derived<M: CellValue>(
        &mut self,
        name: &str,
        units: &str,
        frame: GasFrame,
        scalars: &[&str],
        parameters: &[f64],
    ) -> Result<(), Error>
    where
        M::Parameters: for<'a> TryFrom<&'a [f64]>,
    {
        parameters_of::<M>(parameters)
            .map_err(|why| Error::Setup(format!("the derived field {name:?} is invalid: {why}")))?;
        let label = DerivedLabel {
            name: name.into(),
            units: units.into(),
            doc: M::DOC.into(),
        };
        let scalars: Vec<String> = scalars.iter().map(ToString::to_string).collect();
        let parameters = parameters.to_vec();
        add_derived(self, label, move |label, _, _| {
            let scalars: Vec<&str> = scalars.iter().map(String::as_str).collect();
            let mut derived = label.of(QuantityFn::of::<M>(), &scalars, frame);
            derived.number.parameters = parameters;
            Ok(derived)
        })
    }

    fn derived_when_built(
        &mut self,
        name: &str,
        units: &str,
        doc: &str,
        choose: impl FnOnce(&mut Engine, &GasModel) -> Result<ChosenFunction, Error>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), Error> {
        let label = DerivedLabel {
            name: name.into(),
            units: units.into(),
            doc: doc.into(),
        };
        add_derived(self, label, |label, sim, model| {
            let (function, scalars) = choose(sim, model)?;
            Ok(label.of(function, scalars, GasFrame::Rest))
        })
    }

    fn request<F: OptionalField>(&mut self) -> Result<(), Error> {
        declared(self)?;
        F::request(&mut self.world);
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

/// Returns `true` if the gas of a deck has an energy, before the gas is built.
///
/// # Errors
/// The table `[hydro]` is invalid.
pub(crate) fn gas_has_energy(deck: &mut Deck) -> Result<bool, DeckError> {
    let config = HydroConfig::of(deck)?;
    Ok(config.eos.0.has_energy())
}
