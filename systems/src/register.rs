//! Functions of cells and faces as sources, fluxes, limits of the step, refinement criteria, initial values and columns of the
//! diagnostics. Their systems are called by what they are and by the function, such as `split source cool`.

use crate::fields::GasModel;
use crate::order::{Advance, Flag, Initialise, Limit, Split};
use crate::subcycling::{Subcycling, subcycle_in};
use bevy_ecs::prelude::*;
use bevy_ecs::system::BoxedSystem;
use nestar_engine::comm::{DiagnosticColumns, Reduce};
use nestar_engine::data::{
    CellMap, CellMark, CellSubcycle, CellValue, Components, DerivedInputs, FaceMap, Field,
    LevelRows,
};
use nestar_engine::mesh::RefineRequests;
use nestar_engine::step::{Catalogue, CatalogueEntry, Read, Settings, StepLimits, StepSet, Write};
use nestar_engine::{Engine, Error};
use std::sync::Arc;

/// What a plugin adds with a `#[device]` function of a cell or face. The functions read field `F` where it lives; their parameters
/// stay the same for the whole run (place, time, width and step come with the cell). Those of one set run in the order in which
/// they were added.
pub trait Register {
    /// The simulation, and which components of a field the functions' states are made of.
    fn parts(&mut self) -> (&mut Engine, Components);

    /// Functions of the gas and of these scalars, whatever others there are: their states have the five components of the gas, then
    /// the scalars in this order.
    ///
    /// # Errors
    /// The gas has no such scalar, or is not made yet.
    fn with_scalars(&mut self, names: &[&str]) -> Result<With<'_>, Error> {
        let (sim, _) = self.parts();
        let components = gas(sim, "with_scalars")?.components(names)?;
        Ok(With { sim, components })
    }

    /// The same for functions of heat, which look at the gas in its own frame: where it carries its internal energy (`hydro.dual_energy`),
    /// they get that in place of the total energy, and no momentum; elsewhere the gas as it is. They leave density and momentum alone.
    ///
    /// # Errors
    /// As [`Register::with_scalars`].
    fn at_rest(&mut self, names: &[&str]) -> Result<With<'_>, Error> {
        let (sim, _) = self.parts();
        let numbers = gas(sim, "at_rest")?.numbers_at_rest(names)?;
        let components = Components::of(&numbers);
        Ok(With { sim, components })
    }

    /// A source: every cell takes the result of `M` once a step, after the gas has been advanced.
    fn source<F: Field, M: CellMap>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        map_in::<F, M>("source", self.parts(), Advance::Sources, parameters);
    }

    /// A source that acts over half a step before the gas is advanced, and over half a step after it (Strang 1968): together they are
    /// of second order in time.
    fn split_source<F: Field, M: CellMap>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        map_in::<F, M>("split source", self.parts(), Split::Sources, parameters);
    }

    /// A source that is called again and again in a cell until it is done, once a step, after the gas has been advanced: `M` gives an
    /// [`Subcycle`](nestar_kernels::mesh::subcycle::Subcycle) or an [`Outcome`](nestar_kernels::mesh::subcycle::Outcome), and may carry numbers from call to call.
    /// What it gives to be summed goes into the account that `attempts` names.
    ///
    /// # Errors
    /// The account has another number of names than `M` gives numbers to be summed, or its name is taken.
    fn subcycle<F: Field, M: CellSubcycle>(
        &mut self,
        attempts: Subcycling,
        parameters: M::Parameters,
    ) -> Result<(), Error>
    where
        M::Parameters: Send + Sync,
    {
        subcycle_in::<F, M>(self.parts(), attempts, None, parameters)
    }

    /// Values of new patches while the initial hierarchy is made: the results of `M`, after the scenario has set the gas.
    fn initial<F: Field, M: CellMap>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        map_in::<F, M>("initial", self.parts(), Initialise::State, parameters);
    }

    /// Fluxes through the faces of cells after the gas has been advanced, conserved over all levels: `F` is corrected by fluxes.
    fn fluxes<F: Field, M: FaceMap>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        let flow = move |rows: LevelRows, mut field: Write<F>| {
            field.fluxes::<M>(&rows, &parameters);
        };
        let (sim, components) = self.parts();
        let flow = IntoSystem::into_system(flow).with_name(format!("fluxes {}", M::ITEM.name));
        sim.system_in(Advance::Sources, flow)
            .halo_width::<F>(M::REACH);
        sim.check_field::<F>(M::ITEM.name, move |field| {
            field.fits_fluxes::<M>(&components)
        });
        note::<F>(sim, "fluxes", M::ITEM.name, M::DOC);
    }

    /// A limit of the time step: the smallest value of `M` in a level's cells, in units of time. `name` is what the run log
    /// shows.
    fn limit<F: Field, M: CellValue>(&mut self, name: &'static str, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        let limit = move |mut rows: LevelRows, field: Read<F>, mut limits: ResMut<StepLimits>| {
            rows.choose(components);
            limits.propose(name, field.smallest::<M>(&rows, &parameters));
        };
        let limit = IntoSystem::into_system(limit).with_name(format!("limit {name}"));
        sim.system_in(Limit::Propose, limit)
            .halo_width::<F>(M::REACH);
        sim.check_field::<F>(M::ITEM.name, move |field| field.fits::<M>(&components));
        note::<F>(sim, "limit", name, M::DOC).unit("time");
    }

    /// As [`Register::limit`] for a function that reads `numbers` as the state of a second field.
    fn limit_by<F: Field, M: CellValue>(
        &mut self,
        name: &'static str,
        numbers: Arc<DerivedInputs>,
        parameters: M::Parameters,
    ) where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        let limit = move |mut rows: LevelRows, field: Read<F>, mut limits: ResMut<StepLimits>| {
            rows.choose(components);
            limits.propose(name, field.smallest_by::<M>(&rows, &numbers, &parameters));
        };
        let limit = IntoSystem::into_system(limit).with_name(format!("limit {name}"));
        sim.system_in(Limit::Propose, limit);
        note::<F>(sim, "limit", name, M::DOC).unit("time");
    }

    /// A refinement criterion: cells where `M` holds want a finer mesh, with the flag buffer of the deck.
    fn criterion<F: Field, M: CellMark>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        let flag = move |mut rows: LevelRows,
                         field: Read<F>,
                         settings: Res<Settings>,
                         mut requests: ResMut<RefineRequests>| {
            rows.choose(components);
            let buffer = settings.mesh.flag_buffer[rows.level()] as usize;
            let marked = field.marked::<M>(&rows, buffer, &parameters);
            for (&row, sectors) in rows.rows().iter().zip(marked) {
                requests.add(row, sectors);
            }
        };
        let flag = IntoSystem::into_system(flag).with_name(format!("criterion {}", M::ITEM.name));
        sim.system_in(Flag::Criteria, flag)
            .halo_width::<F>(M::REACH);
        sim.check_field::<F>(M::ITEM.name, move |field| field.fits::<M>(&components));
        note::<F>(sim, "criterion", M::ITEM.name, M::DOC);
    }

    /// A column of the diagnostics: `M` in all leaf cells, reduced. Lists show it with the unit that `.unit("mass")` tells.
    fn column<F: Field, M: CellValue>(
        &mut self,
        name: &'static str,
        reduce: Reduce,
        parameters: M::Parameters,
    ) -> &mut CatalogueEntry
    where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        DiagnosticColumns::add::<F, M>(&mut sim.world, components, name, reduce, parameters);
        sim.check_field::<F>(M::ITEM.name, move |field| field.fits::<M>(&components));
        note::<F>(sim, "column", name, M::DOC)
    }

    /// As [`Register::column`] for a function of the states of two fields.
    fn column_of_two<F: Field, G: Field, M: CellValue>(
        &mut self,
        name: &'static str,
        reduce: Reduce,
        parameters: M::Parameters,
    ) -> &mut CatalogueEntry
    where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        DiagnosticColumns::add_of_two::<F, G, M>(
            &mut sim.world,
            components,
            name,
            reduce,
            parameters,
        );
        note::<F>(sim, "column", name, M::DOC)
    }
}

/// The gas, which is there when plugins are built.
fn gas<'a>(sim: &'a Engine, what: &str) -> Result<&'a GasModel, Error> {
    sim.world.get_resource::<GasModel>().ok_or_else(|| {
        Error::Setup(format!(
            "the gas is not made yet: call `{what}` in the method `build` of the plugin"
        ))
    })
}

/// Adds a map to a set.
pub(crate) fn map_in<F: Field, M: CellMap>(
    kind: &'static str,
    (sim, components): (&mut Engine, Components),
    set: impl StepSet,
    parameters: M::Parameters,
) where
    M::Parameters: Send + Sync,
{
    let map = move |mut rows: LevelRows, mut field: Write<F>| {
        rows.choose(components);
        field.map_cells::<M>(&rows, &parameters);
    };
    let map = IntoSystem::into_system(map).with_name(format!("{kind} {}", M::ITEM.name));
    sim.system_in(set, map).halo_width::<F>(M::REACH);
    sim.check_field::<F>(M::ITEM.name, move |field| field.fits_map::<M>(&components));
    note::<F>(sim, kind, M::ITEM.name, M::DOC);
}

/// Adds to the catalogue what works on field `F`.
fn note<'a, F: Field>(
    sim: &'a mut Engine,
    kind: &'static str,
    name: &str,
    doc: &str,
) -> &'a mut CatalogueEntry {
    let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
    catalogue.add(kind, name, doc).of(F::NAME)
}

impl Register for Engine {
    fn parts(&mut self) -> (&mut Engine, Components) {
        (self, Components::default())
    }
}

/// A simulation for functions of the gas with some of its scalars: [`Register::with_scalars`].
pub struct With<'a> {
    sim: &'a mut Engine,
    components: Components,
}

impl Register for With<'_> {
    fn parts(&mut self) -> (&mut Engine, Components) {
        (self.sim, self.components)
    }
}

/// A system that adds the density of some matter on a level to [`Matter`](crate::fields::Matter).
pub(crate) type MatterSource = BoxedSystem<In<usize>, Result<(), Error>>;

/// Everything that attracts, in the order in which it is added.
#[derive(Resource, Default)]
pub(crate) struct MatterSources(pub Vec<MatterSource>);

/// A system that can be run.
pub(crate) fn matter_source<M>(
    world: &mut World,
    system: impl IntoSystem<In<usize>, Result<(), Error>, M>,
) -> MatterSource {
    let mut system: MatterSource = Box::new(IntoSystem::into_system(system));
    system.initialize(world);
    system
}

/// For plugins with matter of their own.
pub trait GravitySources {
    /// Lets the matter attract that `system` adds to [`Matter`](crate::fields::Matter) on the level it is given, after the gas has set it: it calls
    /// [`LevelRows::visit`] with the level and works on its own rows. Without a table `[gravity]` in the deck nothing attracts. Call it
    /// in `Plugin::build`.
    ///
    /// ```text
    /// sim.gravity_source(|In(level): In<usize>, mut rows: LevelRows, dust: Read<Dust>, mut matter: Write<Matter>| {
    ///     rows.visit(level);
    ///     matter.map_of::<add, _, 0>(&rows, &dust, &[], &[]);       // fn add<R: Real>(u: (R, R)) -> R { u.0 + u.1 }
    ///     Ok(())
    /// });
    /// ```
    fn gravity_source<M>(&mut self, system: impl IntoSystem<In<usize>, Result<(), Error>, M>);
}

impl GravitySources for Engine {
    fn gravity_source<M>(&mut self, system: impl IntoSystem<In<usize>, Result<(), Error>, M>) {
        if self.world.contains_resource::<MatterSources>() {
            let system = matter_source(&mut self.world, system);
            self.world.resource_mut::<MatterSources>().0.push(system);
        }
    }
}
