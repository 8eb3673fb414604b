//! Turbulence driven by random waves, whose sequence continues after a restart:
//! `cargo run --release --example driving -- run scenarios/programs/driving.toml`.

use nestar::prelude::*;

/// Divergence-free random acceleration: transverse waves along each axis, each an Ornstein-Uhlenbeck process in time.
#[deck]
pub struct Driving {
    /// Root mean square of the amplitude of each wave; that of the acceleration is larger by a factor of 2.4.
    #[key(default = 1.0, unit = "length/time**2", min = 0.0)]
    pub strength: f64,
    /// Correlation time of the waves: the autocorrelation decreases to 1/e.
    #[key(default = 0.3, unit = "time", above = 0.0)]
    pub memory: f64,
    /// Wavelength; the size of the box should be a multiple of it.
    #[key(default = 1.0, unit = "length", above = 0.0)]
    pub length: f64,
    /// Seed of the random sequence.
    #[key(default = 1)]
    pub seed: u32,
}

/// Amplitudes of cosine and sine, for each axis and each of the two transverse directions.
#[derive(Resource, Default)]
pub struct Waves(pub [f64; 12]);

impl Waves {
    /// Advances the waves by `dt` with the exact update of Gillespie (1996), Phys. Rev. E 54, 2084, eq. 1.9a.
    pub fn advance(&mut self, stream: random::Stream, dt: f64, driving: &Driving) {
        let keep = exp(-dt / driving.memory);
        let kick = driving.strength * sqrt(1.0 - keep * keep);
        for (id, amplitude) in self.0.iter_mut().enumerate() {
            let [deviate, _] = random::normals::<f64>(random::of_id(&stream, id as u64, 0));
            *amplitude = keep * *amplitude + kick * deviate;
        }
    }
}

impl PluginState for Waves {
    const VERSION: u32 = 1;
    fn save(&self) -> Vec<u8> {
        self.0.iter().flat_map(|a| a.to_le_bytes()).collect()
    }
    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let found = <&[[u8; 8]; 12]>::try_from(bytes.as_chunks().0);
        self.0 = found.map_err(|_| "not 12 numbers")?.map(f64::from_le_bytes);
        Ok(())
    }
}

#[device]
#[derive(Clone)]
struct DrivingForce<R> {
    waves: [R; 12],
    length: R,
}

#[device]
fn push<R: Real>(u: Conserved<R>, at: &Place<R>, p: &DrivingForce<R>) -> Conserved<R> {
    let mut v = u;
    for axis in 0..3 {
        let phase = 2.0 * R::PI * at.centre[axis] / p.length;
        let (c, s) = (cos(phase), sin(phase));
        for side in 0..2 {
            let n = 4 * axis + 2 * side;
            let pull = p.waves[n] * c + p.waves[n + 1] * s;
            v.momentum[(axis + 1 + side) % 3] += at.dt * u.density * pull;
        }
    }
    v.energy += kinetic_energy(v) - kinetic_energy(u);
    v
}

impl Plugin for Driving {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let (stream, driving) = (sim.random_stream("driving", self.seed)?, self.clone());
        sim.register_state("driving", Waves::default())?;
        let drive = move |clock: Res<LevelClock>,
                          rows: LevelRows,
                          mut waves: ResMut<Waves>,
                          mut gas: Write<Gas>| {
            if clock.level == 0 {
                waves.advance(stream.at_step(clock.step), clock.dt, &driving);
            }
            let (waves, length) = (waves.0, driving.length);
            gas.update::<push>(&rows, (), &DrivingForce { waves, length });
        };
        sim.system_in(Advance::Sources, drive);
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<Driving>("driving")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
