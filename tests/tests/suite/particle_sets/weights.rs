//! Weights of plugin particles in the partition.

use super::{BUSY, PER_PATCH, TestParticles, particles_of, places};
use crate::device_runs::emulation;
use bevy_ecs::prelude::*;
use nestar::engine::mesh::Topology;
use nestar::prelude::*;
use nestar_tests::decks::{BLAST, deck};
use nestar_tests::ranks::on_ranks_of;

/// Test particles at rest, in the eight root patches of one corner.
struct Corner {
    weight: f64,
}

impl Plugin for Corner {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_particle_set(TestParticles(Vec::new(), self.weight))?;
        sim.system_in(Initialise::State, begin_in_corner);
        Ok(())
    }
}

fn begin_in_corner(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut test_particles: ResMut<TestParticles>,
) {
    let rows = topology.rows(0).iter().filter(|_| clock.level == 0);
    for &row in rows.filter(|&&row| topology.index(row).iter().all(|&i| i < 2)) {
        test_particles.0[row as usize] = particles_of(topology.index(row));
    }
}

#[test]
fn the_partition_uses_the_weights_of_a_plugins_particles() {
    let devices = ["run.device=cpu", "run.device=emulated"];
    for device in devices.into_iter().take(1 + usize::from(emulation())) {
        // patches and test particles of two ranks
        let shares = |weight: f64| {
            let settings = [BUSY, &["run.imbalance=1.01", device]].concat();
            let corner = || Corner { weight };
            let build =
                |ranks| Simulation::with_ranks(deck(BLAST, &settings), ranks)?.add(corner());
            on_ranks_of(2, build, |stepper| {
                stepper.steps(3);
                let test_particles = places(stepper).len();
                let topology = stepper.0.engine().world.resource::<Topology>();
                let levels = 0..=topology.finest();
                let patches: usize = levels.map(|level| topology.rows(level).len()).sum();
                (patches, test_particles)
            })
        };
        let [light, heavy] = [0.0, 1e5].map(shares);
        let all = PER_PATCH as usize * 8;
        for shares in [&light, &heavy] {
            assert_eq!(shares[0].1 + shares[1].1, all, "{light:?} {heavy:?}");
        }
        let least = |shares: &[(usize, usize)]| shares[0].1.min(shares[1].1);
        assert_eq!(least(&light), 0, "{light:?} {heavy:?}");
        assert!(least(&heavy) >= all / 4, "{light:?} {heavy:?}");
        assert!(light[0].0.abs_diff(light[1].0) < heavy[0].0.abs_diff(heavy[1].0));
    }
}
