//! The state of a run as plain values that compare bitwise.

use nestar::engine::Engine;
use nestar::engine::data::Stores;
use nestar::engine::mesh::{Clock, Domain, Levels, Topology};
use nestar::snapshot::Values;
use nestar::systems::fields::GasModel;
use std::collections::BTreeMap;

/// Cells of a patch.
pub const CELLS: usize = 512;

/// A patch with its values, `[component][512]`, or as many values a component as its centring says; single precision is widened, which keeps every bit.
#[derive(Clone, Debug)]
pub struct Patch {
    /// `true` if the patch has no children.
    pub leaf: bool,
    /// Values, density first.
    pub values: Vec<f64>,
}

/// All patches of a run by level and position, with the clocks of the levels.
#[derive(Clone, Debug)]
pub struct State {
    /// The box.
    pub domain: Domain,
    /// Clocks by level.
    pub clocks: Vec<Clock>,
    /// Per level, patches by their index.
    pub levels: Vec<BTreeMap<[i32; 3], Patch>>,
    /// Components of a cell.
    pub components: usize,
    /// `true` if component 4 is the energy.
    pub has_energy: bool,
}

impl State {
    /// The present state of `sim`.
    ///
    /// # Panics
    /// If a field holds something else than floats.
    #[must_use]
    pub fn of(sim: &Engine) -> Self {
        let topology = sim.world.resource::<Topology>();
        let levels = sim.world.resource::<Levels>();
        let read = |level: usize| {
            let columns = columns(sim, level);
            let patch = |(n, &row): (usize, &u32)| {
                let part = |column: &Vec<f64>| {
                    let length = column.len() / topology.rows(level).len();
                    column[n * length..][..length].to_vec()
                };
                let leaf = topology.is_leaf(row);
                let values = columns.iter().flat_map(part).collect();
                (topology.index(row), Patch { leaf, values })
            };
            topology.rows(level).iter().enumerate().map(patch).collect()
        };
        let list: Vec<BTreeMap<[i32; 3], Patch>> = (0..=topology.max_level).map(read).collect();
        Self {
            domain: topology.domain,
            clocks: (0..=topology.max_level).map(|l| levels.clock(l)).collect(),
            components: list[0]
                .values()
                .next()
                .map_or(0, |p| p.values.len() / CELLS),
            has_energy: (sim.world.get_resource::<GasModel>())
                .is_none_or(|gas| gas.equation.has_energy()),
            levels: list,
        }
    }

    /// Patches per level.
    #[must_use]
    pub fn counts(&self) -> Vec<usize> {
        self.levels.iter().map(BTreeMap::len).collect()
    }

    /// Describes the first bitwise difference to `other`; `None` if there is none.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.counts() != other.counts() {
            return Some(format!(
                "patches {:?} and {:?}",
                self.counts(),
                other.counts()
            ));
        }
        for (level, (mine, theirs)) in self.levels.iter().zip(&other.levels).enumerate() {
            let used = !mine.is_empty();
            if used && self.clocks[level] != other.clocks[level] {
                let (a, b) = (self.clocks[level], other.clocks[level]);
                return Some(format!("level {level}: clocks {a:?} and {b:?}"));
            }
            for (index, patch) in mine {
                let Some(twin) = theirs.get(index) else {
                    return Some(format!("level {level}: patch {index:?} in one state only"));
                };
                let bits = |p: &Patch| p.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                let (a, b) = (bits(patch), bits(twin));
                if let Some(n) = (0..a.len()).find(|&n| a[n] != b[n]) {
                    let (x, y) = (patch.values[n], twin.values[n]);
                    let (c, cell) = (n / CELLS, n % CELLS);
                    return Some(format!(
                        "level {level}, patch {index:?}, component {c}, cell {cell}: {x:e} and {y:e}"
                    ));
                }
            }
        }
        None
    }

    /// Calls `visit` with level, cell centre, cell volume and the components of every leaf cell.
    pub fn each_leaf_cell(&self, mut visit: impl FnMut(usize, [f64; 3], f64, &[f64])) {
        let mut cell_values = vec![0.0; self.components];
        for (level, patches) in self.levels.iter().enumerate() {
            let (width, volume) = (
                self.domain.cell_width(level),
                self.domain.cell_volume(level),
            );
            for (index, patch) in patches.iter().filter(|(_, patch)| patch.leaf) {
                for cell in 0..CELLS {
                    let place = [cell % 8, cell / 8 % 8, cell / 64];
                    let centre = std::array::from_fn(|a| {
                        let i = f64::from(8 * index[a]) + place[a] as f64 + 0.5;
                        self.domain.left_edge[a] + i * width[a]
                    });
                    for (c, value) in cell_values.iter_mut().enumerate() {
                        *value = patch.values[c * CELLS + cell];
                    }
                    visit(level, centre, volume, &cell_values);
                }
            }
        }
    }

    /// Checks that all cells have positive density and, with an energy, pressure, and finite values.
    ///
    /// # Errors
    /// Level, position and state of the first unphysical cell.
    pub fn physical(&self) -> Result<(), String> {
        let mut found = Ok(());
        self.each_leaf_cell(|level, x, _, u| {
            let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
            let warm = !self.has_energy || u[4] > kinetic;
            let good = u[0] > 0.0 && warm && u.iter().all(|v| v.is_finite());
            if !good && found.is_ok() {
                found = Err(format!("level {level}, {x:?}: {u:?}"));
            }
        });
        found
    }
}

/// All components of the patches of `level`, in their Hilbert order.
fn columns(sim: &Engine, level: usize) -> Vec<Vec<f64>> {
    let rows = sim.world.resource::<Topology>().rows(level);
    let fields = sim.world.resource::<Stores>().all();
    let mut columns = Vec::new();
    for field in fields {
        for c in 0..field.of(&sim.world).spec().components.len() {
            let values = field.of(&sim.world).save(level, c, rows);
            columns.push(match values.expect("the device gives its rows") {
                Values::F64(values) => values,
                Values::F32(values) => values.into_iter().map(f64::from).collect(),
                _ => panic!("a field holds floats"),
            });
        }
    }
    columns
}
