//! Dye that diffuses: a user field with a time-step limit, a criterion and a column.

use nestar::prelude::*;

pub struct Ink;

impl Field for Ink {
    const NAME: &'static str = "ink";
}

#[device]
#[derive(Clone, Copy)]
pub struct Spreading<R> {
    pub rate: R,
    pub edge: R,
}

#[device]
fn blot<R: Real>(_old: R, at: &Place<R>) -> R {
    let [x, y, z] = [at.centre[0] - 0.4, at.centre[1] - 0.3, at.centre[2] - 0.5];
    exp(-60.0 * sum3(x * x, y * y, z * z))
}

#[device]
fn spread<R: Real>(u: &Stencil<R>, at: &Place<R>, p: &Spreading<R>) -> R {
    let x = u.at(-1, 0, 0) + u.at(1, 0, 0);
    let y = u.at(0, -1, 0) + u.at(0, 1, 0);
    let z = u.at(0, 0, -1) + u.at(0, 0, 1);
    let change = sum3(x, y, z) - 6.0 * u.at(0, 0, 0);
    u.at(0, 0, 0) + p.rate * at.dt * change / (at.width[0] * at.width[0])
}

#[device]
fn longest_step<R: Real>(_u: R, at: &Place<R>, p: &Spreading<R>) -> R {
    at.width[0] * at.width[0] / (8.0 * p.rate)
}

#[device]
fn slope<R: Real>(u: &Stencil<R>) -> R {
    let x = u.at(1, 0, 0) - u.at(-1, 0, 0);
    let y = u.at(0, 1, 0) - u.at(0, -1, 0);
    let z = u.at(0, 0, 1) - u.at(0, 0, -1);
    sum3(x * x, y * y, z * z).sqrt()
}

#[device]
fn at_edge<R: Real>(u: &Stencil<R>, p: &Spreading<R>) -> bool {
    slope(u) > p.edge
}

impl Plugin for Spreading<f64> {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let p = *self;
        sim.register_field::<Ink>(FieldSpec::cells(&["ink"]))?;
        let fill = |rows: LevelRows, mut ink: Write<Ink>| ink.update::<blot>(&rows, (), &[]);
        let step =
            move |rows: LevelRows, mut ink: Write<Ink, 1>| ink.update::<spread>(&rows, (), &p);
        sim.system_in(Initialise::State, fill);
        sim.system_in(Advance::Sources, step);
        sim.limit::<Ink, longest_step>("ink", p);
        sim.criterion::<Ink, at_edge>(p);
        sim.column::<Ink, slope>("slopes", Reduce::Integral, []);
        Ok(())
    }
}
