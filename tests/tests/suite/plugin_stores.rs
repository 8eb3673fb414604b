//! A store of a plugin: one number per patch in a plain vector, which the engine migrates like a field.

use crate::device_runs::emulation;
use bevy_ecs::prelude::*;
use nestar::engine::comm::{Comm, Ranks};
use nestar::engine::data::Piece;
use nestar::engine::data::{
    FieldSpec, LevelBank, MeshContext, Precision, Prolong, Restrict, Store,
};
use nestar::engine::device::DeviceError;
use nestar::engine::mesh::{NewRows, Topology};
use nestar::prelude::*;
use nestar::snapshot::{Snapshot, Values};
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::{joined, on_ranks_of, run_with};
use nestar_tests::runs::digests;
use nestar_tests::{Scratch, State};

/// A number for every patch.
#[derive(Resource)]
struct Tally {
    spec: FieldSpec,
    precision: Precision,
    /// By row.
    values: Vec<f64>,
    /// By level.
    fresh: Vec<usize>,
}

impl Tally {
    /// A value as the run stores it.
    fn rounded(&self, value: f64) -> f64 {
        match self.precision {
            Precision::Single => f64::from(value as f32),
            Precision::Double => value,
        }
    }

    fn of(&self, rows: &[u32]) -> Values {
        let values = rows.iter().map(|&row| self.values[row as usize]);
        match self.precision {
            Precision::Single => Values::F32(values.map(|v| v as f32).collect()),
            Precision::Double => Values::F64(values.collect()),
        }
    }

    fn set(&mut self, rows: impl Iterator<Item = u32>, values: Values) {
        for (row, value) in rows.zip(values.into_f64()) {
            self.values[row as usize] = value;
        }
    }
}

fn rows(pieces: &[Piece]) -> Vec<u32> {
    pieces.iter().map(|piece| piece.row).collect()
}

impl Store for Tally {
    fn name(&self) -> &'static str {
        "tally"
    }

    fn spec(&self) -> &FieldSpec {
        &self.spec
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn valid_layers(&self, at: LevelBank) -> usize {
        self.fresh[at.level]
    }

    fn set_valid_layers(&mut self, at: LevelBank, layers: usize) {
        self.fresh[at.level] = layers;
    }

    fn invalidate_halos(&mut self, level: usize) {
        self.fresh[level] = 0;
    }

    fn on_regrid(
        &mut self,
        around: &MeshContext,
        level: usize,
        _: &[u32],
    ) -> Result<(), DeviceError> {
        self.values.resize(around.topology.capacity(), 0.0);
        self.fresh.resize(around.topology.max_level + 1, 0);
        for level in level.saturating_sub(1)..=level {
            self.invalidate_halos(level);
        }
        Ok(())
    }

    fn fill(&mut self, _: &MeshContext, _: &NewRows) -> Result<(), DeviceError> {
        Ok(())
    }

    fn pack(&self, _: LevelBank, pieces: &[Piece], out: &mut [u8]) -> Result<(), DeviceError> {
        let values = self.of(&rows(pieces));
        out[..values.bytes().len()].copy_from_slice(values.bytes());
        Ok(())
    }

    fn unpack(
        &mut self,
        at: LevelBank,
        pieces: &[Piece],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError> {
        let bytes = &bytes[..pieces.len() * self.precision.bytes()];
        let values = match self.precision {
            Precision::Single => Values::F32(bytemuck::pod_collect_to_vec(bytes)),
            Precision::Double => Values::F64(bytemuck::pod_collect_to_vec(bytes)),
        };
        self.set(rows(pieces).into_iter(), values);
        if owned {
            self.invalidate_halos(at.level);
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        8 * self.values.len()
    }

    fn save(&self, _: usize, _: usize, rows: &[u32]) -> Result<Values, DeviceError> {
        Ok(self.of(rows))
    }

    fn load(
        &mut self,
        _: &MeshContext,
        level: usize,
        _: usize,
        rows: &[u32],
        values: &Values,
    ) -> Result<(), String> {
        self.set(rows.iter().copied(), values.clone());
        self.invalidate_halos(level);
        Ok(())
    }
}

/// New patches begin with the number of their parent, which may be another rank's.
fn inherit(world: &mut World) {
    world.resource_scope(|world, mut tally: Mut<Tally>| {
        let (new, topology) = (world.resource::<NewRows>(), world.resource::<Topology>());
        for &row in &new.rows {
            let parent = topology.parent(row).expect("a new patch has a parent");
            tally.values[row as usize] = tally.values[parent as usize];
        }
        tally.invalidate_halos(new.level);
    });
}

struct Tallies;

impl Plugin for Tallies {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let spec = FieldSpec {
            side: 1,
            prolong: Prolong::Own(inherit),
            restrict: Restrict::None,
            ..FieldSpec::cells(&["tally"])
        };
        let tally = Tally {
            spec,
            precision: sim.precision(),
            values: Vec::new(),
            fresh: Vec::new(),
        };
        sim.register_store(tally, 1)?;
        sim.system_in(Initialise::State, begin);
        sim.system_in(Advance::Sources, spread);
        Ok(())
    }
}

fn begin(topology: Res<Topology>, clock: Res<LevelClock>, mut tally: ResMut<Tally>) {
    for &row in topology.rows(clock.level) {
        let [x, y, z] = topology.origin(row);
        let value = f64::from(x + 5 * y + 11 * z) * 0.37;
        tally.values[row as usize] = tally.rounded(value.fract());
    }
    tally.invalidate_halos(clock.level);
}

/// Every patch moves towards the mean of those around it.
fn spread(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut tally: ResMut<Tally>,
    mut ranks: Comm,
) -> Result<(), Error> {
    let level = clock.level;
    ranks.refresh_halo(&mut *tally, level, 1)?;
    let value = |&row: &u32| {
        let around = topology.neighbours(row).iter();
        let held = around.filter_map(|&beside| u32::try_from(beside).ok());
        let values: Vec<f64> = held.map(|beside| tally.values[beside as usize]).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        tally.rounded(0.5 * (tally.values[row as usize] + mean))
    };
    let values: Vec<f64> = topology.rows(level).iter().map(value).collect();
    for (&row, value) in topology.rows(level).iter().zip(values) {
        tally.values[row as usize] = value;
    }
    tally.invalidate_halos(level);
    Ok(())
}

const BUSY: &[&str] = &[HALF, "mesh.regrid_interval=1", "time.courant=0.8"];

fn state(ranks: usize, settings: &[&str]) -> State {
    let settings = [BUSY, settings].concat();
    let build = |ranks: Ranks| Simulation::with_ranks(deck(BLAST, &settings), ranks)?.add(Tallies);
    joined(on_ranks_of(ranks, build, |stepper| {
        stepper.steps(4).state()
    }))
}

#[test]
fn a_plugin_store_follows_its_patches() {
    for precision in ["run.precision=double", "run.precision=single"] {
        let alone = state(1, &[precision]);
        for ranks in [2, 4] {
            let difference = alone.difference(&state(ranks, &[precision]));
            assert_eq!(difference, None, "{ranks} ranks, {precision}");
        }
        if emulation() {
            let device = [precision, "run.device=emulated"];
            assert_eq!(alone.difference(&state(2, &device)), None, "{precision}");
        }
    }
}

#[test]
fn a_plugin_store_is_saved_and_restored_on_any_number_of_ranks() {
    let run = |scratch: &Scratch, ranks, resume, steps: &str, device| {
        let settings = [BUSY, &["output.steps=2", steps, device]].concat();
        let ended = run_with(&scratch.run(), resume, ranks, &settings, |sim| {
            sim.add(Tallies)
        });
        ended.unwrap_or_else(|e| panic!("{e}"));
    };
    let whole = Scratch::new();
    run(&whole, 1, false, "time.max_steps=4", "run.device=cpu");
    let expected = digests(&whole.run());
    let snapshot = Snapshot::open(&whole.run().join("snapshots/000001.zarr")).expect("a snapshot");
    let fields = snapshot.fields(1).into_iter();
    let shapes: Vec<_> = fields
        .filter(|f| f.name == "tally")
        .map(|f| f.shape.clone())
        .collect();
    assert_eq!(shapes, [vec![1, 1, 1]]);
    let mut cases = vec![
        (1, 1, "run.device=cpu"),
        (2, 3, "run.device=cpu"),
        (4, 2, "run.device=cpu"),
    ];
    if emulation() {
        cases.push((2, 1, "run.device=emulated"));
    }
    for (before, after, device) in cases {
        let parts = Scratch::new();
        run(&parts, before, false, "time.max_steps=2", device);
        run(&parts, after, true, "time.max_steps=4", device);
        assert_eq!(
            digests(&parts.run()),
            expected,
            "{before}, then {after} ranks, {device}"
        );
    }
}

#[test]
fn operations_of_pools_are_refused_for_other_stores_by_name() {
    struct Wrong(FieldSpec, usize);
    impl Plugin for Wrong {
        fn build(&self, sim: &mut Engine) -> Result<(), Error> {
            let precision = sim.precision();
            let tally = Tally {
                spec: self.0.clone(),
                precision,
                values: Vec::new(),
                fresh: Vec::new(),
            };
            sim.register_store(tally, self.1)
        }
    }
    let refused = |spec, depth| {
        let sim = nestar_tests::build(BLAST, &[]).add(Wrong(spec, depth));
        sim.err().expect("refused").to_string()
    };
    let spec = FieldSpec {
        side: 2,
        prolong: Prolong::None,
        restrict: Restrict::None,
        ..FieldSpec::cells(&["tally"])
    };
    let deep = refused(spec.clone(), 3);
    assert!(
        deep.contains("store `tally`: a halo has no more layers"),
        "{deep}"
    );
    let odd = refused(
        FieldSpec {
            side: 3,
            ..spec.clone()
        },
        1,
    );
    assert!(odd.contains("`tally`: rows of 3 cells"), "{odd}");
    let averaged = refused(
        FieldSpec {
            restrict: Restrict::Mean,
            ..spec
        },
        1,
    );
    assert!(
        averaged.contains("must fill and average its rows itself"),
        "{averaged}"
    );
}
