//! Defines the table `[sinks]`.

use crate::births::{MovedBy, SpeciesMap};
use crate::fields::{GasFloors, GasModel};
use nestar_deck::deck;
use nestar_engine::data::Precision;
use nestar_engine::mesh::Topology;
use nestar_engine::{Engine, Error};

/// Sink particles: collapsing gas that the mesh cannot resolve becomes particles, which accrete more gas (Federrath et al. 2010).
/// Sinks form and accrete in cells of the finest level, `mesh.max_level`. Needs tables `[gravity]` and `[particles]`.
#[deck]
pub struct SinksConfig {
    /// Species of the sinks. Its particles have masses of their own (no key `mass`); `initial = { kind = "none" }` begins without
    /// sinks. It has the scalars `birth_time`, `spin_x`, `spin_y` and `spin_z`, in single precision also `mass_remainder`. The
    /// scalar `birth_mass` and, for a scalar `metal` of the gas, the accreted mass `metal_mass` are filled in if listed.
    #[key(default = "sinks".into())]
    pub species: String,
    /// Threshold density, above which sinks form and accrete.
    #[key(unit = "mass/length**3", above = 0.0)]
    pub density: Option<f64>,
    /// The threshold is the density at which the Jeans length, sqrt(pi c^2/(G rho)), has this number of cells. With `density`
    /// as well, the higher threshold counts.
    #[key(above = 0.0)]
    pub jeans_cells: Option<f64>,
    /// Radius within which sinks accrete gas, in cells of the finest level. No sink forms within this radius of another one.
    #[key(default = 2.5, min = 1.0, max = 8.0)]
    pub accretion_radius: f64,
    /// Rule by which sinks form and accrete. `federrath`: sinks form at minima of the potential where the flow converges along all axes and
    /// the gas within the accretion radius is bound and exceeds a Jeans mass; they accrete bound gas that flows towards them.
    /// Programs may add words.
    #[key(default = "federrath".into())]
    pub rule: String,
    /// Sinks form during the run. Otherwise there are only the sinks of the initial state.
    #[key(default = true)]
    pub form: bool,
    /// Two sinks that are bound to each other and closer than the accretion radius become one.
    #[key(default = false)]
    pub merge: bool,
}

/// Scalars that the species of the sinks needs.
pub(super) const NEEDED: [&str; 4] = ["birth_time", "spin_x", "spin_y", "spin_z"];

/// Scalar that holds what the stored mass lacks by rounding.
pub(super) const REMAINDER: &str = "mass_remainder";

impl SinksConfig {
    /// Checks that other tables provide what sinks need.
    ///
    /// # Errors
    /// A table, the species or a scalar is missing; the gas is frozen; a key contradicts another one.
    pub(super) fn check(&self, sim: &Engine, rules: &[&str]) -> Result<(), Error> {
        let refuse = |key: &str, why: String| Err(sim.deck.error_at(key, why).into());
        let deck = &sim.deck;
        if !deck.has("gravity") {
            let why = "sinks need self-gravity: add a table [gravity]";
            return refuse("sinks", why.into());
        }
        if deck.has("cosmology") {
            let why = "sinks are not supported in an expanding universe: remove one of the tables [sinks] and [cosmology]";
            return refuse("sinks", why.into());
        }
        if !rules.contains(&&*self.rule) {
            let why = format!(
                "there is no rule {:?} for sinks: choose one of {rules:?}",
                self.rule
            );
            return refuse("sinks.rule", why);
        }
        if self.density.is_none() && self.jeans_cells.is_none() {
            let why = "sinks need a threshold: give `density`, or `jeans_cells = 4`";
            return refuse("sinks", why.into());
        }
        let gravity = deck.resolved_at("gravity").unwrap_or_default();
        if gravity.get("force").is_some_and(|force| force == "stress") {
            let why = "\"stress\" does not work with [sinks]: set gravity.force = \"gradient\"";
            return refuse("gravity.force", why.into());
        }
        if sim.world.resource::<GasModel>().frozen {
            let why = "sinks accrete gas that moves: remove `hydro.frozen`, or the table [sinks]";
            return refuse("hydro.frozen", why.into());
        }
        self.check_mesh(sim)?;
        self.check_species(sim)
    }

    /// Checks that an accretion sphere does not meet itself across a periodic domain, and that a pressure floor does not keep the gas below
    /// the threshold.
    ///
    /// # Errors
    /// It does.
    fn check_mesh(&self, sim: &Engine) -> Result<(), Error> {
        let topology = sim.world.resource::<Topology>();
        let (domain, level) = (&topology.domain, topology.max_level);
        let (cells, width) = (domain.cells(level), domain.cell_width(level));
        let radius = self.accretion_radius * width.into_iter().fold(0.0, f64::max);
        for axis in (0..3).filter(|&axis| domain.periodic[axis]) {
            if 2.0 * radius / width[axis] + 2.0 > f64::from(cells[axis]) {
                let why = format!(
                    "the accretion radius of {} cells is too large for the periodic domain, which has {} cells of the finest level along {}",
                    self.accretion_radius,
                    cells[axis],
                    ["x", "y", "z"][axis]
                );
                return Err(sim.deck.error_at("sinks.accretion_radius", why).into());
            }
        }
        let floors = sim.world.get_resource::<GasFloors>();
        let held = floors.map_or(0.0, |floors| floors.jeans_cells);
        if self.jeans_cells.is_some_and(|cells| held >= cells) {
            let why = format!(
                "`floors.jeans_cells = {held}` keeps the Jeans length above this number of cells, so that no sink forms: give more \
                 cells, or lower the floor"
            );
            return Err(sim.deck.error_at("sinks.jeans_cells", why).into());
        }
        Ok(())
    }

    /// Checks that the species of the sinks exists and has the scalars of sinks.
    ///
    /// # Errors
    /// It does not.
    fn check_species(&self, sim: &Engine) -> Result<(), Error> {
        let refuse = |key: &str, why: String| Err(sim.deck.error_at(key, why).into());
        let name = &self.species;
        let key = format!("particles.species.{name}");
        let scalars = NEEDED.map(|scalar| format!("{scalar:?}")).join(", ");
        let Some(species) = sim.world.get_resource::<SpeciesMap>() else {
            let why = format!(
                "sinks are particles: add a table [{key}] with initial = {{ kind = \"none\" }} and scalars = [{scalars}]"
            );
            return refuse("sinks", why);
        };
        let Ok(sinks) = species.named(name) else {
            let known: Vec<&str> = species.0.iter().map(|own| &*own.name).collect();
            let why = format!(
                "there is no species {name:?} for the sinks (there are {known:?}): add a table [{key}] with \
                 initial = {{ kind = \"none\" }} and scalars = [{scalars}]"
            );
            return refuse("sinks.species", why);
        };
        if sinks.moved_by != MovedBy::Fall {
            let why = format!("sinks move by gravity: remove `{key}.moved_by`");
            return refuse(&format!("{key}.moved_by"), why);
        }
        let has = |scalar: &str| sinks.scalars.iter().any(|own| own == scalar);
        let is_single = sinks.precision() == Precision::Single;
        let needed = NEEDED.into_iter().chain(is_single.then_some(REMAINDER));
        let missing: Vec<&str> = needed.filter(|scalar| !has(scalar)).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => refuse(
                &format!("{key}.scalars"),
                format!("sinks need the scalars {missing:?}: add them to `{key}.scalars`"),
            ),
        }
    }
}
