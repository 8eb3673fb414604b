//! Snapshots of functions on refined meshes.

use nestar_snapshot::{
    Attributes, CgsUnits, DataType, FieldHeader, LEAF, LevelHeader, LevelPlan, ORIGIN,
    ParticlesHeader, ParticlesPlan, Role, Snapshot, SnapshotPlan, SnapshotTarget, SnapshotWriter,
    StoredPrecision, Values, WriterThreads,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Temporary folder, removed on drop.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "nestar-plot-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Mesh and fields of a snapshot.
pub struct Sample {
    /// Number of patches of level 0 along x, y, z; the side of a patch is 1.
    pub root: [i32; 3],
    /// Lower edge of the domain.
    pub left: [f64; 3],
    /// Returns `true` if a patch with this level, lower corner and side has children.
    pub refine: fn(level: u8, corner: [f64; 3], side: f64) -> bool,
    /// Names and units of the fields.
    pub fields: Vec<(&'static str, &'static str)>,
    /// Returns the values of the fields at a point.
    pub state: fn(x: [f64; 3]) -> Vec<f64>,
}

impl Sample {
    /// Returns lower corner and side of a patch.
    fn corner(&self, level: u8, patch: [i32; 3]) -> ([f64; 3], f64) {
        let side = 1.0 / f64::from(1 << level);
        (
            std::array::from_fn(|i| self.left[i] + f64::from(patch[i]) * side),
            side,
        )
    }

    fn refines(&self, level: u8, patch: [i32; 3]) -> bool {
        let (corner, side) = self.corner(level, patch);
        (self.refine)(level, corner, side)
    }

    /// Returns the positions of the patches of each level, in units of patches.
    fn mesh(&self) -> Vec<Vec<[i32; 3]>> {
        let [nx, ny, nz] = self.root;
        let root = (0..nz).flat_map(|k| (0..ny).flat_map(move |j| (0..nx).map(move |i| [i, j, k])));
        let mut levels: Vec<Vec<[i32; 3]>> = vec![root.collect()];
        loop {
            let level = levels.len() as u8 - 1;
            let parents = levels[level as usize]
                .iter()
                .filter(|patch| self.refines(level, **patch));
            let children: BTreeSet<[i32; 3]> = parents
                .flat_map(|p| {
                    (0..8).map(move |c| [2 * p[0] + c % 2, 2 * p[1] + c / 2 % 2, 2 * p[2] + c / 4])
                })
                .collect();
            if children.is_empty() {
                return levels;
            }
            levels.push(children.into_iter().collect());
        }
    }

    /// Returns the values of all fields on the patches, one vector per field.
    fn values(&self, level: u8, patches: &[[i32; 3]]) -> Vec<Vec<f64>> {
        let mut values = vec![Vec::with_capacity(patches.len() * 512); self.fields.len()];
        for &patch in patches {
            let (corner, side) = self.corner(level, patch);
            for cell in 0..512 {
                let index = [cell % 8, cell / 8 % 8, cell / 64];
                let state = (self.state)(std::array::from_fn(|i| {
                    corner[i] + (f64::from(index[i]) + 0.5) * side / 8.0
                }));
                values
                    .iter_mut()
                    .zip(state)
                    .for_each(|(values, value)| values.push(value));
            }
        }
        values
    }

    fn attributes(&self, boundary: serde_json::Value) -> Attributes {
        Attributes {
            time: 0.05,
            step: 10,
            domain_left_edge: self.left,
            domain_right_edge: std::array::from_fn(|i| self.left[i] + f64::from(self.root[i])),
            root_cells: self.root.map(|n| 8 * n as u64),
            boundary,
            precision: StoredPrecision::Double,
            units: CgsUnits {
                length_cgs: 1.0,
                mass_cgs: 1.0,
                time_cgs: 1.0,
                name: "dimensionless".into(),
                is_changing: false,
            },
            facts: [("gamma".into(), 1.4)].into(),
            config: String::new(),
            view: None,
            restart: serde_json::Map::new(),
        }
    }

    fn level(&self, level: u8, patches: usize) -> LevelPlan {
        let field =
            |(name, unit): &(&str, &str)| FieldHeader::cells(name, DataType::F64, unit, 1.0, name);
        let width = 0.125 / f64::from(1 << level);
        let header = LevelHeader {
            level,
            time: 0.05,
            dt: 1e-3,
            cell_width: [width; 3],
            patches: patches as u64,
        };
        LevelPlan {
            header,
            fields: self.fields.iter().map(field).collect(),
        }
    }

    /// Writes the snapshot.
    pub fn write(&self, folder: &Folder) -> Snapshot {
        self.write_with(folder, &[])
    }

    /// Writes the snapshot with particles.
    pub fn write_with(&self, folder: &Folder, species: &[Species]) -> Snapshot {
        self.write_all(folder, species, json!("periodic"))
    }

    /// Writes the snapshot with boundary conditions by axis.
    pub fn write_within(&self, folder: &Folder, boundary: serde_json::Value) -> Snapshot {
        self.write_all(folder, &[], boundary)
    }

    fn write_all(
        &self,
        folder: &Folder,
        species: &[Species],
        boundary: serde_json::Value,
    ) -> Snapshot {
        let mesh = self.mesh();
        let numbered = mesh.iter().enumerate();
        let levels: Vec<LevelPlan> = numbered
            .map(|(l, patches)| self.level(l as u8, patches.len()))
            .collect();
        let target = SnapshotTarget {
            directory: folder.0.clone(),
            number: 0,
            replace: true,
            queue_bytes: 1 << 26,
            threads: WriterThreads::new(1).unwrap(),
        };
        let mut plan = SnapshotPlan::new(&self.attributes(boundary), &levels).unwrap();
        for kind in species {
            plan.add_particles(&kind.plan()).unwrap();
        }
        let steps = mesh.iter().map(|patches| {
            let shard = Snapshot::shard_patches(patches.len());
            patches.len().div_ceil(shard) as u64
        });
        let shards = steps.chain(species.iter().map(|_| 1));
        let shards: Vec<_> = shards
            .map(|end| std::iter::once(0..end).collect())
            .collect();
        let mut writer = SnapshotWriter::begin_share(&target, plan, Role::Only, &shards).unwrap();
        for (level, patches) in mesh.iter().enumerate() {
            let shard = writer.shard_patches(level as u8);
            for (number, patches) in patches.chunks(shard).enumerate() {
                self.push(&mut writer, level as u8, (number * shard) as u64, patches);
            }
            for kind in species {
                let counts = Values::U32(vec![0; patches.len()]);
                let name = kind.plan().header.counts();
                writer.push(level as u8, &name, 0, counts).unwrap();
            }
        }
        species.iter().for_each(|kind| kind.push(&mut writer));
        let done = writer.finish().unwrap().wait().unwrap();
        Snapshot::open(&done.path).unwrap()
    }

    /// Writes one shard of each array.
    fn push(&self, writer: &mut SnapshotWriter, level: u8, first: u64, patches: &[[i32; 3]]) {
        let origin = patches
            .iter()
            .flat_map(|patch| patch.map(|n| 8 * n))
            .collect();
        writer
            .push(level, ORIGIN, first, Values::I32(origin))
            .unwrap();
        let leaf = patches
            .iter()
            .map(|patch| u8::from(!self.refines(level, *patch)))
            .collect();
        writer.push(level, LEAF, first, Values::U8(leaf)).unwrap();
        for ((name, _), values) in self.fields.iter().zip(self.values(level, patches)) {
            writer
                .push(level, name, first, Values::F64(values))
                .unwrap();
        }
    }
}

/// Name of a species, and x, y, z and mass of each particle.
pub struct Species(pub &'static str, pub Vec<[f64; 4]>);

impl Species {
    fn plan(&self) -> ParticlesPlan {
        let column = |name: &str, shape: Vec<u64>| FieldHeader {
            dimensions: shape.iter().map(|_| "axis".into()).collect(),
            shape,
            ..FieldHeader::cells(name, DataType::F64, "1", 1.0, name)
        };
        ParticlesPlan {
            header: ParticlesHeader {
                path: format!("particles/{}", self.0),
                count: self.1.len() as u64,
                version: 1,
            },
            dimension: "particle".into(),
            columns: vec![column("position", vec![3]), column("mass", vec![])],
        }
    }

    fn push(&self, writer: &mut SnapshotWriter) {
        let places = self.1.iter().flat_map(|particle| particle[..3].to_vec());
        let masses = self.1.iter().map(|particle| particle[3]);
        for (name, values) in [("position", places.collect()), ("mass", masses.collect())] {
            let path = self.plan().header.path;
            writer
                .push_particles(&path, name, 0, Values::F64(values))
                .unwrap();
        }
    }
}

/// Returns a sample with 2 x 1 x 1 patches from (−1, 0, 5), one of them refined and its corner refined twice, with one field.
pub fn refined(state: fn([f64; 3]) -> Vec<f64>) -> Sample {
    Sample {
        root: [2, 1, 1],
        left: [-1.0, 0.0, 5.0],
        refine: |level, corner, _| level < 2 && corner == [0.0, 0.0, 5.0],
        fields: vec![("density", "mass/length**3")],
        state,
    }
}

/// Returns a spherical blast wave in 8 x 8 x 8 patches with three levels around the shock, with a gas and a dye.
pub fn blast() -> Sample {
    Sample {
        root: [8, 8, 8],
        left: [0.0; 3],
        refine: |level, corner, side| {
            let distance = |i: usize| corner[i] + 0.5 * side - 4.0;
            let r = (distance(0).powi(2) + distance(1).powi(2) + distance(2).powi(2)).sqrt();
            level < 2 && (r - 2.6).abs() < side
        },
        fields: vec![
            ("density", "mass/length**3"),
            ("momentum_x", "mass/(length**2*time)"),
            ("momentum_y", "mass/(length**2*time)"),
            ("momentum_z", "mass/(length**2*time)"),
            ("energy", "mass/(length*time**2)"),
            ("scalar_dye", "mass/length**3"),
        ],
        state: |x| {
            let d = x.map(|x| x - 4.0);
            let r = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
            let inside = r < 2.6;
            let density: f64 = if inside {
                0.01 + 6.0 * (r / 2.6).powi(9)
            } else {
                1.0
            };
            let speed = if inside { r / 2.6 } else { 0.0 };
            let pressure = if inside {
                0.4 + 0.8 * (r / 2.6).powi(6)
            } else {
                1e-3
            };
            let momentum = d.map(|d| density * speed * d / r.max(1e-9));
            let energy = pressure / 0.4 + 0.5 * density * speed * speed;
            let dye = density * (0.5 + 0.5 * (3.0 * x[0]).sin());
            vec![density, momentum[0], momentum[1], momentum[2], energy, dye]
        },
    }
}
