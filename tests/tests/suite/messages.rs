//! Messages for authors of physics: mistakes are reported by name, before the run where possible.

use super::device_runs::places;
use nestar::engine::data::{Precision, Prolong};
use nestar::engine::step::Phase;
use nestar::kernels::mesh::Centring;
use nestar::prelude::*;
use nestar_tests::Stepper;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::on_ranks_of;

/// A limit of 0 where the gas is dense.
#[device]
fn zero<R: Real>(u: Conserved<R>) -> R {
    if u.density > 1.05 {
        0.0 * u.density
    } else {
        u.density
    }
}

/// A limit that is NaN where the gas is dense.
#[device]
fn not_a_number<R: Real>(u: Conserved<R>) -> R {
    let none = if u.density > 1.05 {
        0.0 * u.density
    } else {
        u.density
    };
    none / (2.0 * none)
}

#[device]
fn slower<R: Real>(u: Conserved<R>) -> Conserved<R> {
    let mut v = u;
    v.energy = 0.5 * u.energy;
    v
}

#[device]
fn down<R: Real>(u: &FaceStencil<R>, face: &Face<R>) -> R {
    (u.at(-1) - u.at(0)) / face.width
}

#[device]
fn dense<R: Real>(u: Conserved<R>) -> bool {
    u.density > 1.0
}

#[device]
fn mass<R: Real>(u: Conserved<R>) -> R {
    u.density
}

/// A field of one component.
struct Dust;

impl Field for Dust {
    const NAME: &'static str = "dust";
}

/// A resource that is never inserted.
#[derive(Resource)]
struct Table {
    _rates: Vec<f64>,
}

/// A plugin of a function.
#[derive(Clone, Copy)]
struct By(fn(&mut Engine));

impl Plugin for By {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        (self.0)(sim);
        Ok(())
    }
}

/// Returns the error of a plugin before the first step.
fn refused(build: fn(&mut Engine)) -> String {
    let app = App::default().always(By(build));
    let sim = app.simulation(deck(BLAST, &["mesh.max_level=0"]));
    let ready = sim.and_then(|mut sim| sim.with(|sim| sim.finish_setup()));
    ready.expect_err("refused").to_string()
}

fn dust(sim: &mut Engine) -> &mut Engine {
    let registered = sim.register_field::<Dust>(FieldSpec::cells(&["dust"]));
    registered.expect("a field");
    sim
}

#[test]
fn limits_that_are_not_positive_are_named() {
    let plugins = [
        (By(|sim| sim.limit::<Gas, zero>("patience", [])), "0e0"),
        (
            By(|sim| sim.limit::<Gas, not_a_number>("patience", [])),
            "NaN",
        ),
    ];
    for (plugin, value) in plugins {
        for (device, size) in places(&[2], &[1]) {
            let app = App::default().always(plugin);
            let build = |ranks| app.simulation_on(deck(BLAST, &[HALF, device]), ranks);
            let found = on_ranks_of(size, build, |stepper: &mut Stepper| {
                stepper.try_step().expect_err("no step").to_string()
            });
            for found in found {
                let wanted = format!("the limit \"patience\" proposes a time step of {value}");
                assert!(found.contains(&wanted), "{device}, {size} ranks: {found}");
            }
        }
    }
}

#[test]
fn functions_that_do_not_match_their_field_are_refused_before_the_run() {
    let reads = "reads 5 components of field 0, which has 1";
    let none = "works on the field `dust`, which no plugin registers";
    let cases: [(By, &str); 10] = [
        (
            By(|sim| sim.source::<Gas, with_dust>([])),
            "`with_dust` reads 1 components of field 1, which has 0",
        ),
        (
            By(|sim| dust(sim).source::<(Dust, Gas), with_dust>([])),
            "`with_dust` reads 5 components of field 0, which has 1",
        ),
        (By(|sim| sim.source::<(Gas, Dust), with_dust>([])), none),
        (By(|sim| dust(sim).source::<Dust, slower>([])), reads),
        (By(|sim| dust(sim).limit::<Dust, mass>("mass", [])), reads),
        (By(|sim| dust(sim).criterion::<Dust, dense>([])), reads),
        (
            By(|sim| {
                dust(sim).column::<Dust, mass>("mass", Reduce::Integral, []);
            }),
            reads,
        ),
        (
            By(|sim| dust(sim).flux::<Dust, down>([])),
            "`down` gives fluxes of `dust`, which has no flux registers: declare `correct: Correct::Fluxes`",
        ),
        (By(|sim| sim.source::<Dust, nothing>([])), none),
        (
            By(|sim| {
                sim.column::<Dust, even>("dust", Reduce::Integral, []);
            }),
            none,
        ),
    ];
    for (plugin, wanted) in cases {
        let found = refused(plugin.0);
        assert!(found.contains(wanted), "{wanted}: {found}");
    }
}

/// A field with a vector on the faces of cells.
struct Flow;

impl Field for Flow {
    const NAME: &'static str = "flow";
}

fn flow(sim: &mut Engine, centring: Centring) -> &mut Engine {
    let spec = FieldSpec {
        centring,
        prolong: Prolong::None,
        ..FieldSpec::faces(["flow_x", "flow_y", "flow_z"])
    };
    sim.register_field::<Flow>(spec).expect("a field");
    sim
}

/// Values on faces or edges would be read as values of cells.
#[test]
fn cell_functions_of_staggered_fields_are_refused_before_the_run() {
    fn faces(sim: &mut Engine) -> &mut Engine {
        flow(sim, Centring::Face)
    }
    let cases: [By; 7] = [
        By(|sim| faces(sim).source::<Flow, even>([])),
        By(|sim| faces(sim).source::<(Gas, Flow), with_dust>([])),
        By(|sim| faces(sim).limit::<Flow, even>("flow", [])),
        By(|sim| faces(sim).criterion::<Flow, positive>([])),
        By(|sim| {
            faces(sim).column::<Flow, even>("flow", Reduce::Integral, []);
        }),
        By(|sim| faces(sim).flux::<Flow, down>([])),
        By(|sim| faces(sim).initial::<Flow, even>([])),
    ];
    for plugin in cases {
        let found = refused(plugin.0);
        let wanted =
            "is evaluated in cells, and the values of the field `flow` are on the faces of cells";
        assert!(found.contains(wanted), "{found}");
    }
    let found = refused(|sim| flow(sim, Centring::Edge).source::<Flow, even>([]));
    assert!(found.contains("are on the edges of cells"), "{found}");
}

#[device]
fn positive<R: Real>(u: R) -> bool {
    u > 0.0
}

#[device]
fn even<R: Real>(old: R) -> R {
    0.0 * old + 1.0
}

#[device]
fn with_dust<R: Real>(u: (Conserved<R>, R)) -> Conserved<R> {
    let (gas, _) = u;
    gas
}

#[device]
fn diluted<R: Real>(u: Conserved<R>, by: R, power: R) -> R {
    u.density / pow(by, power)
}

#[test]
fn a_wrong_number_of_parameters_is_refused_with_what_the_function_takes() {
    /// Returns this number of values.
    #[derive(Clone)]
    struct Gives(usize);
    impl Plugin for Gives {
        fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
            let given = &[2.0, 1.5, 3.0][..self.0];
            sim.derived::<diluted>("thin", "1", GasFrame::Grid, &[], given)
        }
        fn build(&self, _: &mut Engine) -> Result<(), Error> {
            Ok(())
        }
    }
    let made = |n| App::default().always(Gives(n)).simulation(deck(BLAST, &[]));
    assert!(made(2).is_ok());
    for (n, given) in [(0, "0: []"), (1, "1: [2.0]"), (3, "3: [2.0, 1.5, 3.0]")] {
        let found = made(n).err().expect("refused").to_string();
        let wanted = format!("`diluted` takes 2 numbers as parameters, but is given {given}");
        assert!(
            found.contains(&wanted) && found.contains("\"thin\""),
            "{found}"
        );
    }
}

#[test]
fn a_missing_resource_is_named_before_the_run() {
    fn shine(_: LevelRows, _: Res<Table>) {}
    fn may_shine(_: LevelRows, _: Option<Res<Table>>) {}
    let found = refused(|sim| {
        sim.system_in(Advance::Sources, may_shine);
        sim.system_in(Advance::Sources, shine);
    });
    let wanted = "::shine` takes the resource `suite::messages::Table`, which was not inserted";
    assert!(found.contains(wanted), "{found}");
    assert!(!found.contains("::may_shine"), "{found}");
}

fn heat(_: Write<Gas>) {}

fn cool(_: Write<Gas>) {}

#[test]
fn systems_that_write_a_field_without_an_order_are_refused() {
    let found = refused(|sim| {
        sim.system_in(Advance::Sources, heat);
        sim.system_in(Advance::Sources, cool);
    });
    let wanted = "the systems `heat` and `cool` of the plugin ";
    assert!(found.starts_with(wanted), "{found}");
    let wanted =
        "have no order in the set `Advance::Sources`, but both access the field `gas`: state it by";
    assert!(found.contains(wanted), "{found}");
}

#[test]
fn systems_in_a_schedule_without_an_order_are_named() {
    let found = refused(|sim| {
        sim.schedule(Phase::Advance).add_systems((heat, cool));
    });
    for part in ["heat", "cool", "Gas"] {
        assert!(found.contains(part), "{found}");
    }
}

/// Works in double precision alone.
#[derive(Clone)]
struct Doubles;

impl Plugin for Doubles {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        match sim.precision() {
            Precision::Double => Ok(()),
            Precision::Single => {
                let why = "[doubles] needs run.precision = \"double\"";
                Err(Error::Setup(why.into()))
            }
        }
    }
}

#[test]
fn an_unsupported_precision_is_refused_when_a_plugin_registers() {
    let app = App::default().always(Doubles);
    let sim = |precision| app.simulation(deck(BLAST, &[precision]));
    assert!(sim("run.precision=double").is_ok());
    let found = sim("run.precision=single").err().expect("refused");
    let found = found.to_string();
    assert!(found.contains("[doubles] needs run.precision"), "{found}");
}

#[test]
fn scalars_are_not_readable_while_they_are_declared() {
    #[derive(Clone)]
    struct Hasty;
    impl Plugin for Hasty {
        fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
            sim.scalars(&[("dye", 0.5)])?;
            sim.with_scalars(&["dye"])?.source::<Gas, slower>([]);
            Ok(())
        }
        fn build(&self, _: &mut Engine) -> Result<(), Error> {
            Ok(())
        }
    }
    let sim = App::default().always(Hasty).simulation(deck(BLAST, &[]));
    let found = sim.err().expect("refused").to_string();
    assert!(
        found.contains(
            "the gas is not built yet: call `with_scalars` in the method `build` of the plugin"
        ),
        "{found}"
    );
}

/// Its registrations depend on a key without a default.
#[deck]
struct Wall {
    /// Name of the boundary.
    word: String,
}

#[device]
fn near<R: Real>(ghost: Ghost<R, Conserved<R>, 1>) -> Conserved<R> {
    ghost.at(0)
}

impl Plugin for Wall {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_boundary::<Gas, near>(&self.word, [])
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_plugin_without_valid_defaults_reports_it_and_its_choices_are_listed() {
    let app = App::default().plugin::<Wall>("wall");
    let plugins = app.registered_plugins();
    let why = plugins[0]
        .entries
        .as_ref()
        .expect_err("no default")
        .to_string();
    assert!(why.contains("word"), "{why}");
    let settings = ["domain.boundary=near", "wall.word=near"];
    let near = deck(BLAST, &settings);
    app.check(&near).unwrap_or_else(|e| panic!("{e}"));
    let mut sim = app.simulation(near).unwrap_or_else(|e| panic!("{e}"));
    sim.with(|sim| sim.finish_setup())
        .unwrap_or_else(|e| panic!("{e}"));
}
