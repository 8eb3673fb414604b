//! Two worlds with the same changes: the field of one is in host memory, that of the other on the emulated device.

use super::boundary_rule::Patchwork;
use nestar::engine::Engine;
use nestar::engine::comm::regrid::decide;
pub use nestar::engine::data::Element;
use nestar::engine::data::device::DeviceTopology;
use nestar::engine::data::{
    BoundaryCondition, Component, Correct, Field, FieldSpec, Pool, Precision, Prolong, StoreRef,
    Stores,
};
use nestar::engine::device::{ComputeDevice, Device};
use nestar::engine::mesh::{Clock, LevelClock, Levels, RefineRequests, RefinementFlags, Topology};
use nestar::engine::step::config::MeshSettings;
use nestar::engine::step::{check_faults, regrid};
use nestar::kernels::hydro::GasStates;
use nestar::kernels::mesh::prolong::SlopeLimiter;
use nestar::kernels::mesh::{SELF, StateRules};
use nestar_deck::Deck;
use nestar_tests::random::Random;
use std::sync::Arc;

pub const COMPONENTS: usize = 6;
pub const LEVELS: usize = 4;
pub const ROW: usize = COMPONENTS * 512;

/// Gas with a scalar.
pub struct Fluid;

impl Field for Fluid {
    const NAME: &'static str = "fluid";
}

/// The configuration of a test.
#[derive(Clone, Copy)]
pub struct Case {
    /// Root cells along each axis.
    pub cells: [usize; 3],
    /// Per axis: `p`eriodic, `o`utflow, `r`eflecting or `w` for a rule, on the lower and the upper side.
    pub faces: [&'static str; 3],
    pub limiter: SlopeLimiter,
    pub seed: u64,
}

impl Case {
    fn beyond(&self) -> [[BoundaryCondition; 2]; 3] {
        let face = |axis: usize, side: usize| match self.faces[axis].as_bytes()[side] {
            b'p' => BoundaryCondition::Periodic,
            b'o' => BoundaryCondition::Outflow,
            b'r' => BoundaryCondition::Reflecting,
            _ => BoundaryCondition::Rule(Arc::new(Patchwork)),
        };
        std::array::from_fn(|axis| [face(axis, 0), face(axis, 1)])
    }

    fn deck<R: Element>(&self) -> Deck {
        let axes = self.faces.iter().zip(["x", "y", "z"]).map(|(faces, axis)| {
            let kind = if faces.starts_with('p') {
                "periodic"
            } else {
                "outflow"
            };
            format!("{axis} = \"{kind}\"")
        });
        let text = format!(
            "[domain]\ncells = {:?}\nright_edge = [1.0, 1.5, 0.75]\nboundary = {{ {} }}\n[run]\ndevice = \"cpu\"\nprecision = \"{}\"\n",
            self.cells,
            axes.collect::<Vec<_>>().join(", "),
            match R::PRECISION {
                Precision::Single => "single",
                Precision::Double => "double",
            }
        );
        Deck::parse("case.toml", &text).expect("the deck is well formed")
    }
}

fn spec(case: &Case) -> FieldSpec {
    let component = |n: usize| Component {
        name: format!("c{n}"),
        units: "1".into(),
        dimension: [0; 3],
        long_name: "a component".into(),
        normal_to: (1..4).contains(&n).then(|| n - 1),
    };
    FieldSpec {
        components: (0..COMPONENTS).map(component).collect(),
        banks: 2,
        time_levels: 2,
        prolong: Prolong::Limited(case.limiter),
        correct: Correct::Fluxes,
        states: Some(StateRules::of::<GasStates, 5>()),
        boundary_conditions: Some(case.beyond()),
        ..FieldSpec::cells(&[])
    }
}

/// The two worlds: host, device.
pub struct Twins {
    pub sims: [Engine; 2],
    pub device: Device,
    pub random: Random,
}

impl Twins {
    /// Two worlds without patches.
    pub fn new<R: Element>(case: &Case, device: &Device) -> Self {
        let sim = |on_device: bool| {
            let mesh = MeshSettings {
                max_level: LEVELS - 1,
                regrid_interval: vec![1; LEVELS],
                flag_buffer: vec![0; LEVELS],
            };
            let mut sim = Engine::new(case.deck::<R>(), mesh).expect("the deck is sound");
            if on_device {
                let domain = sim.world.resource::<Topology>().domain;
                let tables = DeviceTopology::new(device, domain, LEVELS);
                sim.world
                    .insert_resource(tables.unwrap_or_else(|e| panic!("{e}")));
                sim.world.resource_mut::<ComputeDevice>().device = Some(device.clone());
            }
            let registered = sim.register_field::<Fluid>(spec(case));
            registered.unwrap_or_else(|e| panic!("{e}"));
            sim
        };
        Self {
            sims: [sim(false), sim(true)],
            device: device.clone(),
            random: Random::new(case.seed),
        }
    }

    /// Two worlds with a few random refinements, filled.
    pub fn refined<R: Element>(case: &Case, device: &Device) -> Self {
        let mut twins = Self::new::<R>(case, device);
        twins.each(|sim| regrid::create_root(&mut sim.world));
        twins.fill::<R>(0);
        for (round, rarity) in [1, 3, 2].into_iter().enumerate() {
            for level in 0..LEVELS - 1 {
                // the root grid may be one patch, which stays refined; few patches of the finer levels ask
                let rarity = rarity * [1, 4, 24][level];
                twins.regrid(level, if level == 0 && round != 1 { 1 } else { rarity });
                if !twins.topology().rows(level + 1).is_empty() && round < 2 {
                    twins.fill::<R>(level + 1);
                }
            }
        }
        twins
    }

    /// Applies the same change to both.
    pub fn each(&mut self, change: impl Fn(&mut Engine)) {
        for sim in &mut self.sims {
            change(sim);
            check_faults(&sim.world).unwrap_or_else(|e| panic!("{e}"));
        }
    }

    pub fn topology(&self) -> &Topology {
        self.sims[0].world.resource::<Topology>()
    }

    pub fn tables(&self) -> &DeviceTopology {
        self.sims[1].world.resource::<DeviceTopology>()
    }

    pub fn pools(&self) -> [&Pool<Fluid>; 2] {
        [0, 1].map(|n| Pool::of(&self.sims[n].world))
    }

    pub fn operations(&self) -> StoreRef {
        let registry = self.sims[0].world.resource::<Stores>();
        registry.all()[0]
    }

    /// Refines and coarsens one patch in `rarity`, as far as nesting allows, and fills new patches.
    fn regrid(&mut self, level: usize, rarity: u64) {
        let rows = self.topology().rows(level).to_vec();
        // a patch that asks for anything asks for itself and some of its neighbours
        let sectors = |random: &mut Random| (random.bits() & random.bits()) as u32 | 1 << SELF;
        let wanted =
            |random: &mut Random| (random.below(rarity) == 0).then(|| sectors(random) & 0x7ff_ffff);
        let requests: Vec<Option<u32>> = rows.iter().map(|_| wanted(&mut self.random)).collect();
        let operations = self.operations();
        self.each(|sim| {
            let mut asked = sim.world.resource_mut::<RefineRequests>();
            for (&row, sectors) in rows.iter().zip(&requests) {
                asked.set_flags(row, RefinementFlags::of_sectors(sectors.unwrap_or(0)));
            }
            let changes = decide(&mut sim.world, level).unwrap_or_else(|e| panic!("{e}"));
            if !changes.refine.is_empty() || !changes.coarsen.is_empty() {
                regrid::apply(&mut sim.world, level, &changes);
                operations.fill(&mut sim.world);
            }
        });
    }

    /// A random state: smooth, with jumps, and with cells whose neighbours cannot be interpolated.
    fn state(&mut self) -> [f64; COMPONENTS] {
        let random = &mut self.random;
        let violent = random.below(12) == 0;
        let density = if violent {
            1e-3
        } else {
            random.between(0.5, 1.5)
        };
        let mut u = [0.0; COMPONENTS];
        let mut kinetic = 0.0;
        for m in &mut u[1..4] {
            let v = random.between(-1.0, 1.0) * if violent { 30.0 } else { 1.0 };
            kinetic += 0.5 * density * v * v;
            *m = density * v;
        }
        u[0] = density;
        u[4] = kinetic + random.pick(&[1e-3, 0.1, 1.0]);
        u[5] = density * random.between(0.0, 1.0);
        u
    }

    /// Random rows, `[row][component][512]`.
    pub fn rows<R: Element>(&mut self, rows: usize) -> Vec<R> {
        let mut values = vec![R::lit(0.0); rows * ROW];
        for row in values.chunks_exact_mut(ROW) {
            for cell in 0..512 {
                for (c, u) in self.state().into_iter().enumerate() {
                    row[c * 512 + cell] = R::lit(u);
                }
            }
        }
        values
    }

    /// Fills the present bank of a level at random.
    pub fn fill<R: Element>(&mut self, level: usize) {
        let rows = self.topology().rows(level).to_vec();
        let values = self.rows::<R>(rows.len());
        self.each(|sim| {
            let pool = Pool::<Fluid>::of_mut(&mut sim.world);
            pool.store(level, &rows, &values)
                .expect("the rows are stored");
        });
    }

    /// A step of a level of length `dt` to a random state.
    pub fn step<R: Element>(&mut self, level: usize, dt: f64) {
        let rows = self.topology().rows(level).to_vec();
        let time = self.sims[0].world.resource::<Levels>().time(level) + dt;
        self.each(|sim| {
            let clock = Clock {
                time,
                ..sim.world.resource::<Levels>().clock(level)
            };
            sim.world.resource_mut::<Levels>().set(level, clock);
            let pool = Pool::<Fluid>::of_mut(&mut sim.world);
            pool.commit(level, time, dt, &rows)
                .expect("the step stands");
        });
        self.fill::<R>(level);
    }

    /// Sets the clock that systems read.
    pub fn clock(&mut self, level: usize, dt: f64) {
        self.each(|sim| {
            let cell_width = sim.world.resource::<Topology>().domain.cell_width(level);
            *sim.world.resource_mut::<LevelClock>() = LevelClock {
                level,
                dt,
                end: dt,
                cell_width,
                ..LevelClock::default()
            };
        });
    }

    /// Checks that the current state of a level is bitwise equal in both worlds; returns it.
    pub fn same<R: Element>(&self, level: usize, what: &str) -> Vec<R> {
        let rows = self.topology().rows(level);
        let [host, device] = self.pools().map(|pool| pool.host::<R>(level, rows));
        let (host, device) = (host.expect("a copy"), device.expect("a copy"));
        compare(&host, &device, |n| {
            let (row, rest) = (rows[n / ROW], n % ROW);
            format!(
                "{what}: level {level}, row {row}, component {}, cell {}",
                rest / 512,
                rest % 512
            )
        });
        host
    }
}

/// Compares bitwise.
pub fn compare<R: Element>(host: &[R], device: &[R], place: impl Fn(usize) -> String) {
    assert_eq!(host.len(), device.len(), "{}", place(0));
    let differs = |(a, b): (&R, &R)| a.bits() != b.bits();
    let wrong = host
        .iter()
        .zip(device)
        .filter(|pair| differs(*pair))
        .count();
    if let Some(n) = host.iter().zip(device).position(differs) {
        panic!(
            "{}: {} on the host, {} on the device; {wrong} of {} values differ",
            place(n),
            host[n],
            device[n],
            host.len()
        );
    }
}
