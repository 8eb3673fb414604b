//! Self-gravity by red-black Gauss-Seidel sweeps that start from the potential of the last step:
//! `cargo run --release --example potential -- run scenarios/programs/potential.toml`.

use nestar::prelude::*;

/// Self-gravity of the gas by relaxation with a fixed number of sweeps per step, for weak and slowly varying fields.
#[deck]
pub struct RelaxationGravity {
    /// Four pi times the gravitational constant.
    #[key(default = 1.0, unit = "length**3/(mass*time**2)", min = 0.0)]
    pub strength: f64,
    /// Mean density, subtracted from the source in a periodic box.
    #[key(default = 1.0, unit = "mass/length**3", min = 0.0)]
    pub mean: f64,
    /// Number of sweeps per step, each over the red and then the black cells.
    #[key(default = 4, min = 1, max = 1000)]
    pub sweeps: usize,
}

struct RelaxedPotential;

impl Field for RelaxedPotential {
    const NAME: &'static str = "potential";
}

/// Returns the Gauss-Seidel update of the seven-point Laplacian on cubic cells.
#[device]
fn relax<R: Real>(u: &Stencil<R>, gas: Conserved<R>, at: &Place<R>, strength: R, mean: R) -> R {
    let x = u.at(-1, 0, 0) + u.at(1, 0, 0);
    let y = u.at(0, -1, 0) + u.at(0, 1, 0);
    let z = u.at(0, 0, -1) + u.at(0, 0, 1);
    let source = strength * (gas.density - mean) * at.width[0] * at.width[0];
    (sum3(x, y, z) - source) / 6.0
}

/// Returns the gas accelerated by the gradient of the potential; its internal energy does not change.
#[device]
fn fall<R: Real>(u: &Stencil<R>, gas: Conserved<R>, at: &Place<R>) -> Conserved<R> {
    let pull = -0.5 * at.dt * gas.density / at.width[0];
    let x = pull * (u.at(1, 0, 0) - u.at(-1, 0, 0));
    let y = pull * (u.at(0, 1, 0) - u.at(0, -1, 0));
    let z = pull * (u.at(0, 0, 1) - u.at(0, 0, -1));
    let mut v = gas;
    v.momentum = [
        gas.momentum[0] + x,
        gas.momentum[1] + y,
        gas.momentum[2] + z,
    ];
    v.energy = gas.energy + (kinetic_energy(v) - kinetic_energy(gas));
    v
}

impl Plugin for RelaxationGravity {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<RelaxedPotential>(FieldSpec::cells(&["potential"]))?;
        sim.initial::<RelaxedPotential, nothing>([]);
        let (sweeps, p) = (self.sweeps, [self.strength, self.mean]);
        let solve = move |rows: LevelRows,
                          mut potential: Write<RelaxedPotential, 1>,
                          gas: Read<Gas>,
                          mut ranks: Comm| {
            potential.sweep::<relax>(&rows, &gas, sweeps, &mut ranks, &p)
        };
        sim.system_in(Advance::Potential, solve);
        let fall = |rows: LevelRows, potential: Read<RelaxedPotential, 1>, mut gas: Write<Gas>| {
            gas.update::<fall>(&rows, Around(&potential), &[]);
        };
        sim.system_in(Advance::Couple, fall);
        Ok(())
    }
}

/// The program.
pub fn program(app: App) -> App {
    app.plugin::<RelaxationGravity>("sweeps")
}

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| program(app).program(nestar::program!()))
}
