//! Functions of several fields: registered for a tuple of fields or with derived inputs, and called by a system.

use nestar::engine::data::DerivedInputs;
use nestar::engine::data::criteria::{CellQuantity, NamedQuantity, QuantityFn};
use nestar::prelude::*;
use nestar::testing::same_bits;
use nestar_tests::Stepper;
use nestar_tests::decks::{BLAST, HALF, deck};
use std::sync::Arc;

struct Dust;

impl Field for Dust {
    const NAME: &'static str = "dust";
}

struct Ice;

impl Field for Ice {
    const NAME: &'static str = "ice";
}

/// A hundredth of the density of the gas.
#[device]
fn follow<R: Real>(u: (R, Conserved<R>)) -> R {
    let (_, gas) = u;
    0.01 * gas.density
}

/// Dust that grows by sweeping up gas and ice.
#[device]
fn grow<R: Real>(u: (R, Conserved<R>, R), at: &Place<R>) -> R {
    let (dust, gas, ice) = u;
    dust + at.dt * (gas.density * dust + 2.0 * ice)
}

#[device]
fn growth_time<R: Real>(u: (Conserved<R>, R)) -> R {
    let (gas, dust) = u;
    0.1 / (gas.density + dust)
}

#[device]
fn is_dusty<R: Real>(u: (R, Conserved<R>)) -> bool {
    let (dust, gas) = u;
    dust > 0.0105 * gas.density
}

#[device]
fn solids<R: Real>(u: (R, R)) -> R {
    let (dust, ice) = u;
    dust + ice
}

#[device]
fn density<R: Real>(u: Conserved<R>) -> R {
    u.density
}

#[derive(Clone)]
struct Grains;

impl Plugin for Grains {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Dust>(FieldSpec::cells(&["dust"]))?;
        sim.register_field::<Ice>(FieldSpec::cells(&["ice"]))?;
        sim.initial::<(Dust, Gas), follow>([]);
        sim.initial::<(Ice, Gas), follow>([]);
        sim.source::<(Dust, Gas, Ice), grow>([]);
        sim.limit::<(Gas, Dust), growth_time>("growth", []);
        sim.criterion::<(Dust, Gas), is_dusty>([]);
        sim.column::<(Dust, Ice), solids>("solids", Reduce::Integral, []);
        sim.column::<Gas, density>("gas", Reduce::Integral, []);
        let again = |rows: LevelRows, gas: Read<Gas>, ice: Read<Ice>, mut dust: Write<Dust>| {
            dust.update::<grow>(&rows, (&gas, &ice), &[]);
        };
        sim.system_in(Advance::Sources, again);
        Ok(())
    }
}

/// Heating in proportion to a derived input.
#[device]
fn heat<R: Real>(u: (Conserved<R>, R), at: &Place<R>) -> Conserved<R> {
    let (gas, rate) = u;
    let mut heated = gas;
    heated.energy = gas.energy + 0.1 * at.dt * rate;
    heated
}

#[device]
fn is_heated<R: Real>(u: (Conserved<R>, R)) -> bool {
    let (gas, rate) = u;
    rate > 0.5 * gas.energy
}

#[device]
fn rate<R: Real>(u: (Conserved<R>, R)) -> R {
    let (_, rate) = u;
    rate
}

/// Heats gas in proportion to its density.
#[derive(Clone)]
struct Heating;

impl Plugin for Heating {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let of_density = CellQuantity::Named(NamedQuantity {
            function: QuantityFn::of::<density>(),
            components: vec![0, 1, 2, 3, 4],
            parameters: Vec::new(),
        });
        let numbers = Arc::new(DerivedInputs::new(vec![of_density]));
        let mut sim = sim.with_numbers(&numbers);
        sim.split_source::<Gas, heat>([]);
        sim.criterion::<Gas, is_heated>([]);
        sim.column::<Gas, rate>("heating", Reduce::Integral, []);
        Ok(())
    }
}

#[test]
fn functions_of_derived_inputs_are_identical_on_ranks_and_devices() {
    let app = App::default().always(Heating);
    let small = [HALF, "mesh.max_level=1"];
    same_bits(&app, BLAST, &small, 2).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn functions_of_several_fields_are_identical_on_ranks_and_devices() {
    let app = App::default().always(Grains);
    let small = [HALF, "mesh.max_level=1"];
    same_bits(&app, BLAST, &small, 2).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn states_of_several_fields_have_the_order_of_the_list() {
    let app = App::default().always(Grains);
    let sim = app.simulation(deck(BLAST, &[HALF, "mesh.max_level=0"]));
    let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    let [before, mass] = stepper.columns(["solids", "gas"]);
    assert!((before - 0.02 * mass).abs() < 1e-12 * mass);
    stepper.steps(1);
    let [after] = stepper.columns(["solids"]);
    assert!(after > before);
}
