//! Gas dynamics: finite volumes on the adaptive mesh.

pub mod boundary;
mod capture;
pub mod config;
pub mod device;
mod diagnostics;
mod extremes;
mod face_field;
pub mod fallback;
pub mod formulas;
pub mod initial;
mod primitive;
mod replacements;
pub mod replay;
pub mod solver;
mod stages;
pub mod systems;

use crate::fields::quantities::{WITH_UNITS, derived_fields, vocabulary};
use crate::fields::{
    Derived, Gas, GasDeclarations, GasModel, GasUnits, MagneticFaces, MassFlux, SET_TOLERANCE,
};
use crate::order::{Advance, Limit};
use crate::units::Units;
use bevy_ecs::prelude::*;
pub use config::{HydroConfig, MhdConfig};
use device::GasDevice;
pub use diagnostics::require_injection;
use extremes::Extremes;
pub use initial::{InitialState, Injection, Primitive, PrimitiveColumns};
use nestar_engine::data::device::DevicePool;
use nestar_engine::data::{
    Component, Correct, FieldSpec, LeadingState, Pool, Precision, Prolong, Restrict, Store,
};
use nestar_engine::mesh::{Levels, Topology};
use nestar_engine::step::{Remarks, RunFacts};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::choice::Choice;
use nestar_kernels::mesh::prolong::SlopeLimiter;
use replacements::ReplacementAccount;
use solver::{HydroSolver, LevelRates};

/// Plugin that registers the gas, its time-step limit and its update.
pub struct Hydro {
    /// Slope limiter of the prolongation.
    pub prolongation: SlopeLimiter,
    /// Courant number, above 0 and at most 1.
    pub courant: f64,
}

impl Plugin for Hydro {
    fn name(&self) -> &str {
        "hydro"
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let declared = sim
            .world
            .remove_resource::<GasDeclarations>()
            .unwrap_or_default();
        let leaves_fluxes = declared.mass_fluxes;
        let (config, model) = gas(sim, declared)?;
        sim.keep_keys(&[
            "hydro.eos",
            "hydro.gamma",
            "hydro.sound_speed",
            "hydro.polytropic_constant",
            "hydro.scalars",
            "hydro.scalar_sets",
            "mhd.method",
        ]);
        boundary::register(sim, &model)?;
        let stages = match config.frozen {
            true => 1,
            false => config.method().scheme.stages().len(),
        };
        sim.register_field::<Gas>(spec(&model, self.prolongation, stages))?;
        sim.register_derived::<Gas>(derived_fields(&model))?;
        let courant = self.courant;
        if leaves_fluxes {
            sim.register_field::<MassFlux>(mass_fluxes(stages))?;
        }
        if model.has_face_field() {
            face_field::register(sim, self.prolongation)?;
        }
        let with_field = model.has_face_field();
        let solver = match Pool::<Gas>::of(&sim.world).on_device() {
            Some(pool) => HydroSolver::Device(Box::new(GasDevice::new(
                &config,
                &model,
                (pool, faces_on_device(sim, &model)),
                courant,
                leaves_fluxes,
                sim.levels(),
            )?)),
            None => HydroSolver::new(&config, &model, sim.precision(), courant),
        };
        sim.world.insert_resource(solver);
        facts(sim, &model);
        sim.world.insert_resource(model);
        sim.world.insert_resource(Extremes::default());
        sim.world.insert_resource(LevelRates::default());
        sim.check_initial(extremes::require_range);
        sim.check_changed(require_fractions);
        if config.frozen {
            return Ok(());
        }
        if config.method().dual.is_some() && config.magnetic.is_some() {
            ReplacementAccount::register(sim)?;
        }
        sim.system_in(Limit::Propose, systems::limit_by_courant);
        add_fluid(sim, config.method().ghosts(), leaves_fluxes, with_field);
        Ok(())
    }
}

/// Adds the system that advances the gas, which reads `ghosts` ghost layers. `leaves_fluxes` stores the mass fluxes, `with_field` is `true` with a
/// magnetic field on faces.
fn add_fluid(sim: &mut Engine, ghosts: usize, leaves_fluxes: bool, with_field: bool) {
    // it advances the interior while halo messages are in flight
    let mut fluid = match (leaves_fluxes, with_field) {
        (true, false) => sim.system_in(Advance::Fluid, systems::advance_gas_with_mass_fluxes),
        (false, false) => sim.system_in(Advance::Fluid, systems::advance_gas),
        (true, true) => sim.system_in(
            Advance::Fluid,
            systems::advance_magnetised_gas_with_mass_fluxes,
        ),
        (false, true) => sim.system_in(Advance::Fluid, systems::advance_magnetised_gas),
    };
    fluid.halo_width::<Gas>(ghosts).manages_own_halo::<Gas>();
    if with_field {
        fluid.halo_width::<MagneticFaces>(ghosts);
    }
}

/// Returns the magnetic field on faces on the device, if there is one.
fn faces_on_device<'a>(sim: &'a Engine, model: &GasModel) -> Option<&'a DevicePool> {
    let faces = model.has_face_field();
    faces.then(|| Pool::<MagneticFaces>::of(&sim.world).device())
}

/// Adds facts about the gas to snapshots and columns to the diagnostics.
fn facts(sim: &mut Engine, model: &GasModel) {
    let mut facts = sim.world.resource_mut::<RunFacts>();
    facts.constant.insert("gamma".into(), model.gamma);
    if let Some([constant, _]) = model.polytrope() {
        facts
            .constant
            .insert("polytropic_constant".into(), constant);
    }
    if let Some(physical) = model.physical.filter(|_| !model.replaces(WITH_UNITS[0])) {
        let weight = physical.mean_molecular_weight;
        facts
            .constant
            .insert("mean_molecular_weight".into(), weight);
    }
    diagnostics::register(sim, model);
}

/// Reads the table, adds declared scalars and builds the gas model.
fn gas(sim: &mut Engine, declared: GasDeclarations) -> Result<(HydroConfig, GasModel), Error> {
    let mut config = HydroConfig::of(&mut sim.deck)?;
    declared.join(&mut config.scalars, &mut config.scalar_sets);
    config.checked_method(&sim.deck)?;
    let remarks = config.remarks(&sim.deck);
    sim.world.resource_mut::<Remarks>().0.extend(remarks);
    let scalars = config.checked_scalars(&sim.deck)?;
    let initial = scalars.iter().map(|name| declared.initial(name)).collect();
    let [first_scale_factor, _] = sim.world.resource::<Levels>().numbers_at(0.0);
    let physical = config.physical(&sim.deck, Units::find(sim))?;
    let physical = physical.map(|physical| GasUnits {
        first_scale_factor,
        ..physical
    });
    let mut model = GasModel {
        equation: config.eos.0,
        law: config.law(),
        gamma: config.exponent(),
        fractions: config.checked_fractions(&sim.deck)?,
        sets: config.checked_sets(&sim.deck)?,
        scalars,
        initial,
        derived: Vec::new(),
        physical,
        pressure_formula: None,
        frozen: config.frozen,
        riemann: config.riemann(),
        dual: config.method().dual,
        magnetic: config.magnetic,
    };
    for naming in declared.derived {
        let derived = naming(sim, &model)?;
        add_derived(&mut model, derived)?;
    }
    model.pressure_formula = sim.world.remove_resource();
    Ok((config, model))
}

/// Adds a derived field of a plugin.
fn add_derived(model: &mut GasModel, mut derived: Derived) -> Result<(), Error> {
    let name = &derived.name;
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let replaces = WITH_UNITS.contains(&&**name) && model.derived.iter().all(|d| d.name != *name);
    let taken = || vocabulary(model).iter().any(|(taken, _)| taken == name);
    if !plain || (!replaces && taken()) {
        return Err(Error::Setup(format!(
            "the name {name:?} of a derived field is invalid or in use: it must begin with a letter and have only letters, digits \
             and `_`"
        )));
    }
    let scalars: Vec<&str> = derived.scalars.iter().map(String::as_str).collect();
    derived.number.components = match derived.at_rest {
        true => model.component_numbers_at_rest(&scalars)?,
        false => model.component_numbers(&scalars)?,
    };
    model.derived.push(derived);
    Ok(())
}

/// Unit of a component, and its powers of length, mass and time.
type Unit = (&'static str, [i32; 3]);

const DENSITY: Unit = ("mass/length**3", [-3, 1, 0]);
const MOMENTUM: Unit = ("mass/(length**2*time)", [-2, 1, -1]);
/// Its powers of length and mass are no whole numbers: the factor follows from the unit.
const MAGNETIC_FIELD: Unit = ("(mass/length)**0.5/time", [0; 3]);
const ENERGY: Unit = ("mass/(length*time**2)", [-1, 1, -2]);

fn component(
    name: String,
    (units, dimension): Unit,
    long_name: String,
    normal_to: Option<usize>,
) -> Component {
    Component {
        name,
        units: units.into(),
        dimension,
        long_name,
        normal_to,
    }
}

/// Returns the field of mass fluxes, which is neither stored nor interpolated: each step overwrites it.
///
/// In steps of several `stages` a second bank holds those of earlier stages.
fn mass_fluxes(stages: usize) -> FieldSpec {
    let mut spec = FieldSpec {
        banks: 1 + usize::from(stages > 1),
        prolong: Prolong::None,
        restrict: Restrict::None,
        stored: false,
        ..FieldSpec::faces(["mass_flux_x", "mass_flux_y", "mass_flux_z"])
    };
    for component in &mut spec.components {
        component.units = "mass/(length**2*time)".into();
        component.dimension = [-2, 1, -1];
        component.long_name = "mass that flows through a face by area and time".into();
    }
    spec
}

/// Returns the components of a magnetic field.
fn magnetic_components() -> impl Iterator<Item = Component> {
    let field = |(axis, name): (usize, &str)| {
        let long_name = format!("magnetic field along {name}, over the square root of 4 pi");
        component(
            format!("magnetic_{name}"),
            MAGNETIC_FIELD,
            long_name,
            Some(axis),
        )
    };
    let fields = ["x", "y", "z"].into_iter().enumerate().map(field);
    let long_name = "cleaning variable of the divergence of the magnetic field".into();
    let cleaning = component("magnetic_cleaning".into(), MAGNETIC_FIELD, long_name, None);
    fields.chain(std::iter::once(cleaning))
}

fn spec(model: &GasModel, prolongation: SlopeLimiter, stages: usize) -> FieldSpec {
    let momentum = |(axis, name): (usize, &str)| {
        let long_name = format!("momentum density along {name}");
        component(format!("momentum_{name}"), MOMENTUM, long_name, Some(axis))
    };
    let scalar = |name: &String| {
        let long_name = format!("mass density of the passive scalar {name}");
        component(format!("scalar_{name}"), DENSITY, long_name, None)
    };
    let energy = "total energy density (thermal and kinetic)".into();
    let mut components = vec![component(
        "density".into(),
        DENSITY,
        "mass density".into(),
        None,
    )];
    components.extend(["x", "y", "z"].into_iter().enumerate().map(momentum));
    if model.equation.has_energy() {
        components.push(component("energy".into(), ENERGY, energy, None));
    }
    if model.magnetic.is_some() {
        components.extend(magnetic_components().take(model.field_components()));
    }
    if model.dual.is_some() {
        let long_name = "thermal energy density".into();
        let name = "internal_energy".into();
        components.push(component(name, ENERGY, long_name, None));
    }
    components.extend(model.scalars.iter().map(scalar));
    let leading = (!model.equation.has_energy()).then(|| LeadingState {
        components: model.equation.components(),
        advice: format!(
            "the gas of hydro.eos = {:?} has no energy; take density and momentum as `[R; 4]`, or, to read the gas as `Conserved` with an \
             energy of 0 but not to change it, register the function by `sim.with_scalars(&[])?`",
            model.equation.word()
        ),
    });
    FieldSpec {
        components,
        banks: 2 + usize::from(stages > 1),
        time_levels: 2,
        stages,
        prolong: Prolong::Limited(prolongation),
        correct: Correct::Fluxes,
        states: Some(model.states()),
        leading,
        in_totals: true,
        ..FieldSpec::cells(&[])
    }
}

/// Number of patches that are checked together.
const ROWS_AT_A_TIME: usize = 256;

/// Checks that mass fractions are between 0 and 1, and that those of each set sum to 1 to within round-off.
///
/// # Errors
/// The fractions in a cell do not; a device fails.
fn require_fractions(world: &World) -> Result<(), Error> {
    let topology = world.resource::<Topology>();
    if !world.resource::<GasModel>().fractions.contains(&true) {
        return Ok(());
    }
    let parts = (0..=topology.finest()).flat_map(|level| {
        let parts = topology.rows(level).chunks(ROWS_AT_A_TIME);
        parts.map(move |rows| (level, rows))
    });
    for (level, rows) in parts {
        if let Some(why) = wrong(world, level, rows)? {
            return Err(Error::Setup(format!(
                "the state of the snapshot on level {level}, with hydro.scalar_sets, run.added and run.dropped applied: {why}"
            )));
        }
    }
    Ok(())
}

/// Describes the first invalid fraction or set in some patches of a level.
fn wrong(world: &World, level: usize, rows: &[u32]) -> Result<Option<String>, Error> {
    let (gas, model) = (Pool::<Gas>::of(world), world.resource::<GasModel>());
    let tolerance = match gas.precision() {
        Precision::Single => 1e3 * SET_TOLERANCE,
        Precision::Double => SET_TOLERANCE,
    };
    let column = |c| gas.save(level, c, rows).map(|values| values.into_f64());
    let density = column(0)?;
    let first = model.first_scalar();
    let components = first..first + model.scalars.len();
    let scalars = components.map(column).collect::<Result<Vec<_>, _>>()?;
    let mut cells = 0..density.len();
    Ok(cells.find_map(|n| {
        // flux corrections may leave slightly negative fractions
        let fraction = |s: usize| match scalars[s][n] / density[n] {
            trace if trace < 0.0 && trace > -tolerance => 0.0,
            fraction => fraction,
        };
        let bounds = -tolerance..=1.0 + tolerance;
        let mut fractions = (0..scalars.len()).filter(|&s| model.fractions[s]);
        let wrong = fractions.find(|&s| !bounds.contains(&fraction(s)));
        let why = |s: usize| {
            let (name, value) = (&model.scalars[s], fraction(s));
            format!(
                "the fraction of {name} is {value}, but mass fractions are between 0 and 1: `scalar_{name}` is a density between 0 \
                 and `density`, unless hydro.quantities has {name:?}"
            )
        };
        let set = || model.invalid_set(tolerance, fraction);
        wrong.map(why).or_else(set)
    }))
}
