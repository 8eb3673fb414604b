//! An initial state from Zarr arrays on a uniform grid over the domain.

use crate::{Parameters, Setting};
use nestar_deck::{Deck, DeckError, deck};
use nestar_kernels::hydro::eos::{conserved_from_primitive, primitive_from_conserved};
use nestar_snapshot::{UniformArray, read_uniform};
use nestar_systems::hydro::{InitialState, Primitive, PrimitiveColumns};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Initial state from Zarr arrays. All arrays have the same shape [z, y, x] and cover the domain. Along each axis, their
/// number of cells must be a multiple or a divisor of that of each level of the initial mesh. Finer arrays are averaged,
/// and coarser ones are repeated; both conserve mass, momentum and energy.
#[deck]
pub struct Zarr {
    /// Path of the Zarr group (version 2 or 3), relative to the deck.
    #[key(default = "initial.zarr".into())]
    pub path: String,
    /// Name of the array of the mass density.
    #[key(default = "density".into())]
    pub density: String,
    /// Names of the arrays of the velocity along x, y, z; without `velocity` and `momentum` the gas is at rest.
    pub velocity: Option<[String; 3]>,
    /// Names of the arrays of the momentum density along x, y, z, instead of `velocity`.
    pub momentum: Option<[String; 3]>,
    /// Name of the array of the pressure.
    pub pressure: Option<String>,
    /// Name of the array of the total energy density (thermal and kinetic), instead of `pressure`.
    pub energy: Option<String>,
    /// Names of the arrays of the mass fractions of passive scalars, by name of the scalar; absent: 0.
    #[key(default = BTreeMap::new())]
    pub scalars: BTreeMap<String, String>,
}

impl Zarr {
    /// Returns the names of the arrays: density, velocity or momentum if given, pressure or energy, scalars.
    fn names(&self, deck: &Deck, scalars: &[String]) -> Result<Vec<&str>, DeckError> {
        let refuse = |key: &str, message: &str| Err(deck.error_at(key, message));
        let motion = match (&self.velocity, &self.momentum) {
            (Some(_), Some(_)) => {
                return refuse("zarr.momentum", "give `velocity` or `momentum`, not both");
            }
            (motion, None) | (None, motion) => motion,
        };
        let last = match (&self.pressure, &self.energy) {
            (Some(_), Some(_)) => {
                return refuse("zarr.energy", "give `pressure` or `energy`, not both");
            }
            (None, None) => {
                return refuse(
                    "zarr",
                    "[zarr] needs the name of the array of `pressure` or `energy`",
                );
            }
            (Some(name), None) | (None, Some(name)) => name,
        };
        let known: Vec<&str> = scalars.iter().map(String::as_str).collect();
        for scalar in self.scalars.keys() {
            if !scalars.contains(scalar) {
                return Err(deck.unknown_key_at(&format!("zarr.scalars.{scalar}"), &known));
            }
        }
        let mut names = vec![self.density.as_str()];
        names.extend(motion.iter().flatten().map(String::as_str));
        names.push(last);
        names.extend(self.scalars.values().map(String::as_str));
        Ok(names)
    }

    fn group_path(&self, deck: &Deck) -> PathBuf {
        match deck.directory() {
            Some(directory) => directory.join(&self.path),
            None => Path::new(&self.path).to_path_buf(),
        }
    }
}

impl Parameters for Zarr {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let deck = setting.deck;
        let names = self.names(deck, &setting.model.scalars)?;
        let arrays = read_uniform(&self.group_path(deck), &names)
            .map_err(|error| deck.error_at("zarr.path", error.to_string()))?;
        let cells = {
            let [z, y, x] = arrays[0].shape;
            [x, y, z]
        };
        check_shape(setting, cells)?;
        Ok(Box::new(self.grid(setting, cells, arrays)))
    }
}

/// Checks that the number of cells of the arrays is a multiple or a divisor of that of each level.
fn check_shape(setting: &Setting, found: [usize; 3]) -> Result<(), DeckError> {
    for (a, axis) in ["x", "y", "z"].into_iter().enumerate() {
        for level in 0..=setting.max_level {
            let cells = setting.cells[a] << level;
            if found[a] == 0 || (!cells.is_multiple_of(found[a]) && !found[a].is_multiple_of(cells))
            {
                let message = format!(
                    "the arrays have {} cells along {axis}, and level {level} of the mesh {cells}; one number must be a \
                     multiple of the other, such as {cells} or {} cells in the arrays",
                    found[a],
                    2 * cells,
                );
                return Err(setting.deck.error_at("zarr.path", message));
            }
        }
    }
    Ok(())
}

/// Conserved states on a uniform grid over the domain.
struct ZarrGrid {
    cells: [usize; 3],
    /// Number of cells of level 0 along x, y, z.
    root: [usize; 3],
    left: [f64; 3],
    right: [f64; 3],
    gamma: f64,
    /// Conserved state of each cell, x fastest.
    states: Vec<[f64; 5]>,
    /// Number of a scalar, and its mass fraction per cell.
    scalars: Vec<(usize, Vec<f64>)>,
}

impl Zarr {
    /// Returns the conserved state; `motion` is velocity or momentum, and `last` is pressure or energy.
    fn conserved(&self, gamma: f64, rho: f64, motion: [f64; 3], last: f64) -> [f64; 5] {
        let [x, y, z] = match self.momentum {
            Some(_) => motion.map(|m| m / rho),
            None => motion,
        };
        let mut state = conserved_from_primitive(&[rho, x, y, z, last], gamma);
        if self.energy.is_some() {
            state[4] = last;
        }
        state
    }

    /// Combines the arrays, in the order of [`Zarr::names`], to conserved states.
    fn grid(&self, setting: &Setting, cells: [usize; 3], arrays: Vec<UniformArray>) -> ZarrGrid {
        let gamma = setting.model.gamma;
        let mut arrays = arrays.into_iter().map(|array| array.values);
        let mut next = || arrays.next().unwrap_or_default();
        let density = next();
        let moving = self.velocity.is_some() || self.momentum.is_some();
        let motion = moving.then(|| [next(), next(), next()]);
        let last = next();
        let state = |n: usize| {
            let motion = motion
                .as_ref()
                .map_or([0.0; 3], |m| [m[0][n], m[1][n], m[2][n]]);
            self.conserved(gamma, density[n], motion, last[n])
        };
        let states = (0..density.len()).map(state).collect();
        let number = |name: &String| setting.model.scalars.iter().position(|s| s == name);
        let scalars = self
            .scalars
            .keys()
            .filter_map(|name| Some((number(name)?, next())));
        ZarrGrid {
            cells,
            root: setting.cells,
            left: setting.edges[0],
            right: setting.edges[1],
            gamma,
            scalars: scalars.collect(),
            states,
        }
    }
}

impl ZarrGrid {
    /// Returns the ranges of array cells that cover the mesh cell of `level` around `x`.
    fn ranges(&self, x: [f64; 3], level: usize) -> [std::ops::Range<usize>; 3] {
        std::array::from_fn(|a| {
            let fraction = (x[a] - self.left[a]) / (self.right[a] - self.left[a]);
            let mesh_cells = self.root[a] << level;
            let cell = ((fraction * mesh_cells as f64) as usize).min(mesh_cells - 1);
            if self.cells[a] >= mesh_cells {
                let ratio = self.cells[a] / mesh_cells;
                cell * ratio..(cell + 1) * ratio
            } else {
                let cell = cell / (mesh_cells / self.cells[a]);
                cell..cell + 1
            }
        })
    }

    /// Returns the averages of the conserved state and of the scalars' mass densities over the cells.
    fn average(&self, [xs, ys, zs]: [std::ops::Range<usize>; 3]) -> ([f64; 5], Vec<f64>) {
        let weight = 1.0 / (xs.len() * ys.len() * zs.len()) as f64;
        let mut state = [0.0; 5];
        let mut scalars = vec![0.0; self.scalars.len()];
        for k in zs {
            for j in ys.clone() {
                for i in xs.clone() {
                    let n = (k * self.cells[1] + j) * self.cells[0] + i;
                    for (sum, u) in state.iter_mut().zip(self.states[n]) {
                        *sum += weight * u;
                    }
                    for (sum, (_, fraction)) in scalars.iter_mut().zip(&self.scalars) {
                        *sum += weight * fraction[n] * self.states[n][0];
                    }
                }
            }
        }
        (state, scalars)
    }
}

impl InitialState for ZarrGrid {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        for n in 0..columns.len() {
            let (state, scalars) = self.average(self.ranges(columns.point(n), columns.level));
            let w = primitive_from_conserved(&state, self.gamma);
            columns.states[n] = Primitive {
                density: w[0],
                velocity: [w[1], w[2], w[3]],
                pressure: w[4],
            };
            for ((number, _), density) in self.scalars.iter().zip(scalars) {
                columns.scalars[*number][n] = density / w[0];
            }
        }
    }

    fn scalars_given(&self) -> Option<Vec<usize>> {
        Some(self.scalars.iter().map(|(number, _)| *number).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_systems::fields::GasModel;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A folder of arrays that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        /// A Zarr group with 4 x 2 x 2 cells (x, y, z) of density, momentum, energy and dye.
        fn new() -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("nestar-zarr-scenario-{}-{n}", std::process::id());
            let folder = Self(std::env::temp_dir().join(name));
            let group = folder.0.join("initial.zarr");
            std::fs::create_dir_all(&group).unwrap();
            std::fs::write(
                group.join("zarr.json"),
                r#"{"zarr_format":3,"node_type":"group"}"#,
            )
            .unwrap();
            let number = |i: usize| i as f64;
            write(&group.join("density"), |i| 1.0 + number(i));
            for (a, axis) in ["x", "y", "z"].into_iter().enumerate() {
                write(&group.join(format!("momentum_{axis}")), |i| {
                    0.1 * number(i + a)
                });
            }
            write(&group.join("energy"), |i| 20.0 + number(i));
            write(&group.join("dye"), |i| if i % 2 == 0 { 1.0 } else { 0.25 });
            folder
        }

        fn state(
            &self,
            table: &str,
            cells: [usize; 3],
        ) -> Result<Box<dyn InitialState>, DeckError> {
            let name = self.0.join("deck.toml").display().to_string();
            let mut deck = Deck::parse(&name, table).unwrap();
            let parameters: Zarr = deck.table("zarr")?;
            parameters.initial(&Setting {
                deck: &deck,
                model: GasModel::plain(1.4, &["dust", "dye"]),
                edges: [[0.0; 3], [4.0, 2.0, 2.0]],
                cells,
                mirrors: [[false; 2]; 3],
                root_width: std::array::from_fn(|a| [4.0, 2.0, 2.0][a] / cells[a] as f64),
                max_level: 1,
            })
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Writes a Zarr array of one chunk without compression.
    fn write(path: &Path, value: impl Fn(usize) -> f64) {
        let file = path.join("c/0/0/0");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let bytes: Vec<u8> = (0..16).flat_map(|i| value(i).to_le_bytes()).collect();
        std::fs::write(file, bytes).unwrap();
        let document = r#"{"zarr_format":3,"node_type":"array","shape":[2,2,4],"data_type":"float64",
            "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,2,4]}},
            "chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":0,
            "codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":{}}"#;
        std::fs::write(path.join("zarr.json"), document).unwrap();
    }

    /// Conserved state and dye's density of the cell of `level` around `x`.
    fn at(state: &dyn InitialState, x: [f64; 3], level: usize) -> [f64; 6] {
        let mut columns = PrimitiveColumns {
            level,
            points: x.map(|x| vec![x]),
            states: vec![Primitive {
                density: 0.0,
                velocity: [0.0; 3],
                pressure: 0.0,
            }],
            scalars: vec![vec![0.0]; 2],
            ..PrimitiveColumns::default()
        };
        state.fill(&mut columns);
        let mut found = [0.0; 6];
        columns.states[0].conserved(1.4, &mut found);
        found[5] = columns.scalars[1][0] * found[0];
        assert_eq!(columns.scalars[0][0], 0.0);
        found
    }

    const TABLE: &str = r#"
        [zarr]
        momentum = ["momentum_x", "momentum_y", "momentum_z"]
        energy = "energy"
        scalars = { dye = "dye" }
    "#;

    fn assert_near(found: [f64; 6], wanted: [f64; 6]) {
        let near = found.iter().zip(wanted).all(|(f, w)| (f - w).abs() < 1e-13);
        assert!(near, "{found:?} instead of {wanted:?}");
    }

    #[test]
    fn finer_arrays_are_averaged_and_coarser_ones_repeated() {
        let folder = Folder::new();
        let state = folder.state(TABLE, [4, 2, 2]).unwrap();
        // cell (2, 1, 1) has number 14
        let cell = [15.0, 1.4, 1.5, 1.6, 34.0, 15.0];
        assert_near(at(&*state, [2.5, 1.5, 1.5], 0), cell);
        assert_near(at(&*state, [2.1, 1.9, 1.2], 1), cell);
        // two cells along x of a mesh of 2 x 2 x 2: numbers 12 and 13
        let state = folder.state(TABLE, [2, 2, 2]).unwrap();
        let dye = 0.5 * (13.0 + 0.25 * 14.0);
        assert_near(
            at(&*state, [1.0, 1.5, 1.5], 0),
            [13.5, 1.25, 1.35, 1.45, 32.5, dye],
        );
    }

    #[test]
    fn inconsistent_input_is_an_error_with_its_line() {
        let folder = Folder::new();
        let error = |table: &str, cells| match folder.state(table, cells) {
            Ok(_) => panic!("{table} was accepted"),
            Err(error) => error.to_string(),
        };
        let cells = [4, 2, 2];
        assert!(error(TABLE, [24, 24, 3]).contains("2 cells along z, and level 0 of the mesh 3"));
        assert!(error("[zarr]\n", cells).contains("`pressure` or `energy`"));
        let both = "[zarr]\npressure = \"energy\"\nenergy = \"energy\"";
        assert!(error(both, cells).contains("deck.toml:3"));
        let wrong = "[zarr]\nenergy = \"energy\"\nscalars = { dy = \"dye\" }";
        assert!(error(wrong, cells).contains("dye"));
        let missing = "[zarr]\nenergy = \"heat\"";
        assert!(error(missing, cells).contains("density, dye, energy"));
        assert!(error("[zarr]\npath = \"no.zarr\"\nenergy = \"e\"", cells).contains("no.zarr"));
    }
}
