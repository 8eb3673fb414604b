//! Particles that enter marked patches become stars, which lose mass; marked patches are refined:
//! `cargo run --release --example stellar_mass_loss -- run scenarios/programs/stellar_mass_loss.toml`.

use nestar::engine::data::ParticleSet;
use nestar::entities::*;
use nestar::prelude::*;
use nestar::systems::{order::Flag, particles::SpeciesMap};

/// Star formation in the root patches at the lower end of the x axis and their children.
#[deck]
pub struct StellarMassLoss {
    /// Mass that a star loses per time, relative to its mass.
    #[key(default = 2.0, unit = "1/time", min = 0.0)]
    pub loss: f64,
}

/// Time at which a star was born; on a patch, the time since which stars form in it.
#[derive(Component, Clone, Copy)]
pub struct Birth(pub f64);

impl PatchComponent for Birth {
    const NAME: &'static str = "birth";
    const VERSION: u32 = 1;
    fn save(&self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.try_into().map_err(|_| "no number")?;
        Ok(Self(f64::from_le_bytes(bytes)))
    }
    fn inherited(&self) -> Option<Self> {
        Some(*self)
    }
}

/// Attaches the time of birth to particles that have entered a marked patch.
fn form_stars(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    species: Res<SpeciesMap>,
    patches: Patches<&Birth>,
    mut particles: ParticleEntities,
    mut commands: Commands,
) -> Result<(), Error> {
    let stars = species.named("stars")?;
    let rows: Vec<u32> = patches.iter().map(|(patch, _)| patch.row()).collect();
    for id in stars.identities(&rows)?.concat() {
        if let Some(star) = particles.entity(&topology, stars, id)? {
            commands.entity(star).insert_if_new(Birth(clock.end));
        }
    }
    Ok(())
}

impl Plugin for StellarMassLoss {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_carried::<Birth>();
        let loss = self.loss;
        let mark = move |patches: Patches<(&Level, &PatchIndex)>, mut commands: Commands| {
            let forms_stars = |(level, index): (&Level, &PatchIndex)| index.0[0] >> level.0 == 0;
            for (patch, _) in patches.iter().filter(|(_, place)| forms_stars(*place)) {
                commands.entity(patch.entity()).insert(Birth(0.0));
            }
        };
        let refine = |mut patches: Patches<&mut RefinementFlags, With<Birth>>| {
            patches.iter_mut().for_each(|(_, mut flags)| flags.refine());
        };
        let lose_mass = move |clock: Res<LevelClock>,
                              topology: Res<Topology>,
                              mut species: ResMut<SpeciesMap>,
                              stars: Query<(&ParticleId, &Birth)>|
              -> Result<(), Error> {
            let loses = |birth: &Birth| clock.level == 0 && birth.0 <= clock.time;
            for (star, _) in stars.iter().filter(|(_, birth)| loses(birth)) {
                species.change(&topology, star, |star| star.mass *= exp(-loss * clock.dt))?;
            }
            Ok(())
        };
        sim.system_in(Initialise::State, mark);
        sim.system_in(Flag::Criteria, refine);
        sim.system_in(Advance::Correct, lose_mass);
        sim.system_in(Advance::Sources, form_stars);
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<StellarMassLoss>("stellar_mass_loss")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
