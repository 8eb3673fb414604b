//! Star formation: particles and patches with components of a program.

use super::{decay, stellar_mass_loss, stepper};
use nestar::engine::mesh::Levels;
use nestar::entities::{Level, ParticleId, PatchIndex, Topology};
use nestar::systems::particles::SpeciesMap;
use std::collections::BTreeMap;
use stellar_mass_loss::Birth;

/// Particles in marked patches are stars, and each loses mass in the root steps that begin after its birth.
#[test]
fn stars_form_in_marked_patches_and_lose_mass_from_then_on() {
    let text = include_str!("../../../../scenarios/programs/stellar_mass_loss.toml");
    let mut run = stepper(
        stellar_mass_loss::program,
        text,
        &["domain.cells=[16,16,16]"],
    );
    let (mut times, mut births) = (vec![0.0], Vec::new());
    for _ in 0..6 {
        run.steps(1);
        let world = &mut run.0.engine().world;
        let mut born = world.query::<(&ParticleId, &Birth)>();
        births.push(born.iter(world).count());
        times.push(world.resource::<Levels>().time(0));
    }
    // half of the particles at first, and a column of 64 as it comes in
    assert!(births[0] == 256 && births[5] > 256, "{births:?}");
    let world = &mut run.0.engine().world;
    let mut born = world.query::<(&ParticleId, &Birth)>();
    let born = born.iter(world).map(|(id, birth)| (id.id(), birth.0));
    let born: BTreeMap<u64, f64> = born.collect();
    let topology = world.resource::<Topology>();
    let species = world.resource::<SpeciesMap>();
    let all = species
        .named("stars")
        .and_then(|stars| Ok(stars.particles(topology)?));
    for star in all.unwrap_or_else(|e| panic!("{e}")) {
        let steps = times.windows(2).filter(|step| {
            let birth = born.get(&star.id);
            birth.is_some_and(|birth| *birth <= step[0])
        });
        let time: f64 = steps.map(|step| step[1] - step[0]).sum();
        let column = (star.id % 8) as f64;
        let expected = 0.001 * (1.0 + (column + 0.5) / 8.0) * (-2.0 * time).exp();
        assert!((star.mass / expected - 1.0).abs() < 1e-12, "{star:?}");
    }
    let mut patches = world.query::<(&Level, &PatchIndex, Option<&Birth>)>();
    for (level, index, birth) in patches.iter(world) {
        assert_eq!(
            index.0[0] >> level.0 == 0,
            birth.is_some(),
            "{level:?} {index:?}"
        );
    }
    assert_eq!(world.resource::<Topology>().rows(1).len(), 32);
}

/// The mass of decaying particles is exactly exponential in time, the column follows it, and faint particles end.
#[test]
fn particles_decay_exponentially_until_they_end() {
    let text = include_str!("../../../../scenarios/programs/decay.toml");
    let settings = ["domain.cells=[16,16,16]", "run.audit=true"];
    let mut run = stepper(decay::program, text, &settings);
    let [before, count] = run.columns(["relics_mass", "relics_count"]);
    assert!(count > 100.0);
    while run.time() < 0.7 {
        run.steps(1);
        let left = (-run.time() / 0.5).exp();
        let [mass, rate] = run.columns(["relics_mass", "decay_rate"]);
        assert!((mass / (before * left) - 1.0).abs() < 1e-12, "{mass}");
        assert!((rate * 0.5 / mass - 1.0).abs() < 1e-12, "{rate}");
    }
    let all = crate::particles::particles(&mut run, "relics");
    assert_eq!(all.len() as f64, count);
    let left = (-run.time() / 0.5).exp();
    for relic in &all {
        let part = relic.mass / (relic.mass + relic.scalars[0]);
        assert!((part / left - 1.0).abs() < 1e-12, "{relic:?}");
    }
    // a fifth is left after 0.8
    run.finish();
    let [ended, count_after, mass] = run.columns(["relics_ended", "relics_count", "relics_mass"]);
    assert_eq!((ended, count_after, mass), (count, 0.0, 0.0));
}
