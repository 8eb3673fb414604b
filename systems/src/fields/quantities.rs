//! NamedQuantity quantities of a cell: stored components, derived quantities, coordinates, and formulas of them.

use super::{GAS_COMPONENTS, GasModel, GasUnits};
use nestar_deck::{Deck, DeckError};
use nestar_device::math::sum3;
use nestar_device::{Place, Real, device};
use nestar_engine::Engine;
use nestar_engine::data::criteria::{CellQuantity, NamedQuantity, QuantityFn};
use nestar_engine::data::{Components, DerivedField, DerivedFields, Stores};
use nestar_kernels::hydro::{barotropic, eos, magnetic};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// Returns a stored component.
#[device]
fn component<R: Real>(q: R) -> R {
    q
}

/// Returns the velocity along the axis of the first momentum.
#[device]
fn velocity<R: Real>(u: [R; 5], gamma: R) -> R {
    let w = eos::primitive_from_conserved(&u, gamma);
    w[1]
}

/// Gas pressure.
#[device]
fn pressure<R: Real>(u: [R; 5], gamma: R) -> R {
    let w = eos::primitive_from_conserved(&u, gamma);
    w[4]
}

/// Pressure over density.
#[device]
fn temperature<R: Real>(u: [R; 5], gamma: R) -> R {
    eos::temperature(u[0], pressure(u, gamma))
}

/// Temperature in kelvin.
#[device]
fn temperature_k<R: Real>(u: [R; 5], at: &Place<R>, gamma: R, kelvin: R) -> R {
    temperature(u, gamma) * kelvin * per_velocity_squared(at)
}

/// Scale factor; 1 without expansion.
#[device]
pub(crate) fn scale_factor<R: Real>(at: &Place<R>) -> R {
    R::from_f64(at.numbers[0])
}

/// Square of the present code velocity over that at a scale factor of 1.
#[device]
pub(crate) fn per_velocity_squared<R: Real>(at: &Place<R>) -> R {
    let a = at.numbers[0];
    R::from_f64(1.0 / (a * a))
}

/// Particles per cubic centimetre.
#[device]
fn number_density_cm3<R: Real>(density: R, at: &Place<R>, per_density: R) -> R {
    let a = at.numbers[0];
    density * per_density * R::from_f64(1.0 / (a * a * a))
}

/// Pressure over density to the power gamma.
#[device]
fn entropy<R: Real>(u: [R; 5], gamma: R) -> R {
    eos::entropy(u[0], pressure(u, gamma), gamma)
}

/// Sound speed.
#[device]
fn sound_speed<R: Real>(u: [R; 5], gamma: R) -> R {
    eos::sound_speed(u[0], pressure(u, gamma), gamma)
}

/// Gas pressure from the internal energy.
#[device]
fn cold_pressure<R: Real>(internal: R, gamma: R) -> R {
    (gamma - 1.0) * internal
}

/// Temperature from density and internal energy.
#[device]
fn cold_temperature<R: Real>(u: [R; 2], gamma: R) -> R {
    eos::temperature(u[0], cold_pressure(u[1], gamma))
}

/// Temperature in kelvin from density and internal energy.
#[device]
fn cold_temperature_k<R: Real>(u: [R; 2], at: &Place<R>, gamma: R, kelvin: R) -> R {
    cold_temperature(u, gamma) * kelvin * per_velocity_squared(at)
}

/// Entropy from density and internal energy.
#[device]
fn cold_entropy<R: Real>(u: [R; 2], gamma: R) -> R {
    eos::entropy(u[0], cold_pressure(u[1], gamma), gamma)
}

/// Sound speed from density and internal energy.
#[device]
fn cold_sound_speed<R: Real>(u: [R; 2], gamma: R) -> R {
    eos::sound_speed(u[0], cold_pressure(u[1], gamma), gamma)
}

/// Mach number from density, momentum and internal energy.
#[device]
fn cold_mach<R: Real>(u: [R; 6], gamma: R) -> R {
    let fast = speed([u[0], u[1], u[2], u[3], u[4]], gamma);
    fast / cold_sound_speed([u[0], u[5]], gamma)
}

/// Pressure of gas without energy: constant and exponent of a polytrope, which is isothermal if the exponent is 1.
#[device]
fn polytropic_pressure<R: Real>(density: R, constant: R, exponent: R) -> R {
    let thermal = barotropic::polytropic(density, density, &[constant, exponent]);
    thermal[0]
}

/// Temperature of gas without energy.
#[device]
fn polytropic_temperature<R: Real>(density: R, constant: R, exponent: R) -> R {
    eos::temperature(density, polytropic_pressure(density, constant, exponent))
}

/// Temperature in kelvin of gas without energy.
#[device]
fn polytropic_temperature_k<R: Real>(density: R, constant: R, exponent: R, kelvin: R) -> R {
    polytropic_temperature(density, constant, exponent) * kelvin
}

/// Sound speed of gas without energy.
#[device]
fn polytropic_sound_speed<R: Real>(density: R, constant: R, exponent: R) -> R {
    let thermal = barotropic::polytropic(density, density, &[constant, exponent]);
    thermal[1].sqrt()
}

/// Mach number of gas without energy.
#[device]
fn polytropic_mach<R: Real>(u: [R; 4], constant: R, exponent: R) -> R {
    let w = barotropic::primitive_from_conserved(&u);
    let fast = sum3(w[1] * w[1], w[2] * w[2], w[3] * w[3]).sqrt();
    fast / polytropic_sound_speed(u[0], constant, exponent)
}

/// Magnitude of the velocity.
#[device]
fn speed<R: Real>(u: [R; 5], gamma: R) -> R {
    let w = eos::primitive_from_conserved(&u, gamma);
    sum3(w[1] * w[1], w[2] * w[2], w[3] * w[3]).sqrt()
}

/// Mach number.
#[device]
fn mach<R: Real>(u: [R; 5], gamma: R) -> R {
    speed(u, gamma) / sound_speed(u, gamma)
}

/// Energy density of the magnetic field, which is its pressure.
#[device]
fn magnetic_energy<R: Real>(b: [R; 3]) -> R {
    magnetic::magnetic_energy(&b)
}

/// Magnitude of the magnetic field.
#[device]
fn magnetic_field<R: Real>(b: [R; 3]) -> R {
    sum3(b[0] * b[0], b[1] * b[1], b[2] * b[2]).sqrt()
}

/// Ratio of gas pressure and magnetic pressure, infinite without a field.
#[device]
fn plasma_beta<R: Real>(u: [R; 8], gamma: R) -> R {
    pressure([u[0], u[1], u[2], u[3], u[4]], gamma) / magnetic_energy([u[5], u[6], u[7]])
}

/// Ratio of the gas pressure from the internal energy and the magnetic pressure, infinite without a field.
#[device]
fn cold_plasma_beta<R: Real>(u: [R; 4], gamma: R) -> R {
    cold_pressure(u[0], gamma) / magnetic_energy([u[1], u[2], u[3]])
}

/// Alfven speed.
#[device]
fn alfven_speed<R: Real>(u: [R; 4]) -> R {
    magnetic_field([u[1], u[2], u[3]]) / u[0].sqrt()
}

/// Mass fraction of a scalar, from the density and the density of the scalar.
#[device]
fn fraction<R: Real>(u: [R; 2]) -> R {
    u[1] / u[0]
}

/// x coordinate of the cell centre.
#[device]
fn x<R: Real>(at: &Place<R>) -> R {
    at.centre[0]
}

/// y coordinate of the cell centre.
#[device]
fn y<R: Real>(at: &Place<R>) -> R {
    at.centre[1]
}

/// z coordinate of the cell centre.
#[device]
fn z<R: Real>(at: &Place<R>) -> R {
    at.centre[2]
}

/// Distance of the cell centre from the origin.
#[device]
fn radius<R: Real>(at: &Place<R>) -> R {
    let [x, y, z] = at.centre;
    sum3(x * x, y * y, z * z).sqrt()
}

/// Simulation time.
#[device]
fn time<R: Real>(at: &Place<R>) -> R {
    R::from_f64(at.time)
}

/// Time at the middle of the step.
#[device]
fn middle<R: Real>(at: &Place<R>) -> R {
    R::from_f64(at.time) + 0.5 * at.dt
}

/// Refinement level.
#[device]
fn level<R: Real>(at: &Place<R>) -> R {
    R::from_i32(at.level)
}

/// Smallest width of the cell.
#[device]
fn width<R: Real>(at: &Place<R>) -> R {
    at.width[0].min(at.width[1]).min(at.width[2])
}

/// Builds a named quantity of some components.
fn of(function: QuantityFn, components: &[usize], parameters: &[f64]) -> NamedQuantity {
    NamedQuantity {
        function,
        components: components.to_vec(),
        parameters: parameters.to_vec(),
    }
}

/// Returns a component of a field as a quantity.
#[must_use]
pub fn stored_component(c: usize) -> NamedQuantity {
    of(QuantityFn::of::<component>(), &[c], &[])
}

/// Returns the named quantities of the gas.
fn of_gas(gamma: f64, energy: usize) -> [(&'static str, NamedQuantity); 14] {
    let own = |c: usize| of(QuantityFn::of::<component>(), &[c], &[]);
    let gas = |function, order| of(function, order, &[gamma]);
    let (v, all) = (QuantityFn::of::<velocity>, &[0, 1, 2, 3, energy]);
    [
        ("density", own(0)),
        ("momentum_x", own(1)),
        ("momentum_y", own(2)),
        ("momentum_z", own(3)),
        ("energy", own(energy)),
        ("pressure", gas(QuantityFn::of::<pressure>(), all)),
        ("temperature", gas(QuantityFn::of::<temperature>(), all)),
        ("entropy", gas(QuantityFn::of::<entropy>(), all)),
        ("sound_speed", gas(QuantityFn::of::<sound_speed>(), all)),
        ("velocity_x", gas(v(), all)),
        ("velocity_y", gas(v(), &[0, 2, 3, 1, energy])),
        ("velocity_z", gas(v(), &[0, 3, 1, 2, energy])),
        ("speed", gas(QuantityFn::of::<speed>(), all)),
        ("mach", gas(QuantityFn::of::<mach>(), all)),
    ]
}

/// Names that exist only with a table `[units]`; a plugin may replace them with its own derived fields.
pub const WITH_UNITS: [&str; 2] = ["temperature_k", "number_density_cm3"];

/// Returns the quantities of [`WITH_UNITS`].
fn with_units(model: &GasModel, physical: &GasUnits) -> [(&'static str, NamedQuantity); 2] {
    let (mut temperature, from) = match model.internal_energy() {
        Some(c) => (QuantityFn::of::<cold_temperature_k>(), vec![0, c]),
        None => (QuantityFn::of::<temperature_k>(), vec![0, 1, 2, 3, 4]),
    };
    let hot_gas = match model.polytrope() {
        None => of(temperature, &from, &[model.gamma, physical.kelvin]),
        Some([constant, exponent]) => {
            temperature = QuantityFn::of::<polytropic_temperature_k>();
            of(temperature, &[0], &[constant, exponent, physical.kelvin])
        }
    };
    let number = QuantityFn::of::<number_density_cm3>();
    let [hot, many] = WITH_UNITS;
    [
        (hot, hot_gas),
        (many, of(number, &[0], &[physical.number_density])),
    ]
}

/// Returns the quantities that use the internal energy and replace those of [`of_gas`].
fn of_internal_energy(gamma: f64, c: usize) -> [(&'static str, NamedQuantity); 5] {
    let gas = |function, order: &[usize]| of(function, order, &[gamma]);
    [
        ("pressure", gas(QuantityFn::of::<cold_pressure>(), &[c])),
        (
            "temperature",
            gas(QuantityFn::of::<cold_temperature>(), &[0, c]),
        ),
        ("entropy", gas(QuantityFn::of::<cold_entropy>(), &[0, c])),
        (
            "sound_speed",
            gas(QuantityFn::of::<cold_sound_speed>(), &[0, c]),
        ),
        (
            "mach",
            gas(QuantityFn::of::<cold_mach>(), &[0, 1, 2, 3, 4, c]),
        ),
    ]
}

/// Returns the quantities of gas without energy that replace those of [`of_gas`].
fn of_polytrope(polytrope: &[f64; 2]) -> [(&'static str, NamedQuantity); 4] {
    let gas = |function, order: &[usize]| of(function, order, polytrope);
    [
        (
            "pressure",
            gas(QuantityFn::of::<polytropic_pressure>(), &[0]),
        ),
        (
            "temperature",
            gas(QuantityFn::of::<polytropic_temperature>(), &[0]),
        ),
        (
            "sound_speed",
            gas(QuantityFn::of::<polytropic_sound_speed>(), &[0]),
        ),
        (
            "mach",
            gas(QuantityFn::of::<polytropic_mach>(), &[0, 1, 2, 3]),
        ),
    ]
}

/// Returns the quantities of a magnetic field, whose first component is `first`.
fn of_field(
    gamma: f64,
    first: usize,
    internal: Option<usize>,
) -> [(&'static str, NamedQuantity); 8] {
    let own = |c: usize| of(QuantityFn::of::<component>(), &[c], &[]);
    let [x, y, z, cleaning] = [0, 1, 2, 3].map(|n| first + n);
    let beta = match internal {
        Some(c) => (QuantityFn::of::<cold_plasma_beta>(), vec![c, x, y, z]),
        None => (
            QuantityFn::of::<plasma_beta>(),
            vec![0, 1, 2, 3, 4, x, y, z],
        ),
    };
    [
        ("magnetic_x", own(x)),
        ("magnetic_y", own(y)),
        ("magnetic_z", own(z)),
        ("magnetic_cleaning", own(cleaning)),
        (
            "magnetic_field",
            of(QuantityFn::of::<magnetic_field>(), &[x, y, z], &[]),
        ),
        (
            "magnetic_energy",
            of(QuantityFn::of::<magnetic_energy>(), &[x, y, z], &[]),
        ),
        (
            "alfven_speed",
            of(QuantityFn::of::<alfven_speed>(), &[0, x, y, z], &[]),
        ),
        ("plasma_beta", of(beta.0, &beta.1, &[gamma])),
    ]
}

/// Returns the coordinates, the time and the level.
fn of_place() -> [(&'static str, NamedQuantity); 8] {
    let functions = [
        ("x", QuantityFn::of::<x>()),
        ("y", QuantityFn::of::<y>()),
        ("z", QuantityFn::of::<z>()),
        ("r", QuantityFn::of::<radius>()),
        ("t", QuantityFn::of::<time>()),
        ("level", QuantityFn::of::<level>()),
        ("width", QuantityFn::of::<width>()),
        ("cell_width", QuantityFn::of::<width>()),
    ];
    functions.map(|(name, function)| (name, of(function, &[], &[])))
}

/// Returns all names and their quantities.
#[must_use]
pub fn vocabulary(model: &GasModel) -> Vec<(String, NamedQuantity)> {
    let energy = match model.polytrope() {
        None => GAS_COMPONENTS - 1,
        Some(_) => Components::ZERO,
    };
    let fixed = of_gas(model.gamma, energy).into_iter().chain(of_place());
    let mut names: Vec<(String, NamedQuantity)> = fixed.map(|(n, q)| (n.to_string(), q)).collect();
    if let Some(polytrope) = model.polytrope() {
        let own = of_polytrope(&polytrope);
        let missing = |name: &str| ["energy", "entropy"].contains(&name);
        names.retain(|(known, _)| !missing(known) && own.iter().all(|(name, _)| known != name));
        names.extend(own.map(|(name, number)| (name.to_string(), number)));
    }
    if let Some(c) = model.internal_energy() {
        for (name, number) in of_internal_energy(model.gamma, c) {
            names.retain(|(own, _)| own != name);
            names.push((name.into(), number));
        }
        let own = of(QuantityFn::of::<component>(), &[c], &[]);
        names.push(("internal_energy".into(), own));
    }
    if let Some(first) = model.magnetic_field() {
        let own = of_field(model.gamma, first, model.internal_energy());
        names.extend(own.map(|(name, number)| (name.to_string(), number)));
    }
    for (n, scalar) in model.scalars.iter().enumerate() {
        let c = model.first_scalar() + n;
        let own = of(QuantityFn::of::<component>(), &[c], &[]);
        let fraction = of(QuantityFn::of::<fraction>(), &[0, c], &[]);
        names.push((format!("scalar_{scalar}"), own));
        names.push((format!("fraction_{scalar}"), fraction));
    }
    if let Some(physical) = &model.physical {
        let own = with_units(model, physical).into_iter();
        let own = own.filter(|(name, _)| !model.replaces(name));
        names.extend(own.map(|(name, number)| (name.to_string(), number)));
    }
    let derived = model.derived.iter();
    names.extend(derived.map(|own| (own.name.clone(), own.number.clone())));
    names
}

/// Returns unit and description of a built-in derived quantity; `None` for stored components and coordinates.
fn described(name: &str, gamma: f64) -> Option<(String, String)> {
    if let Some(scalar) = name.strip_prefix("fraction_") {
        return Some(("1".into(), format!("mass fraction of the scalar {scalar}")));
    }
    if let Some(axis) = name.strip_prefix("velocity_") {
        return Some(("length/time".into(), format!("velocity along {axis}")));
    }
    let entropy = format!("mass/(length*time**2)/(mass/length**3)**{gamma}");
    let (units, about) = match name {
        "pressure" => ("mass/(length*time**2)", "gas pressure"),
        "temperature" => ("length**2/time**2", "pressure over density"),
        "entropy" => (&*entropy, "pressure over density to the power gamma"),
        "sound_speed" => ("length/time", "sound speed"),
        "speed" => ("length/time", "magnitude of the velocity"),
        "mach" => ("1", "speed over sound speed"),
        "temperature_k" => ("K", "temperature in kelvin"),
        "magnetic_field" => (
            "(mass/length)**0.5/time",
            "magnitude of the magnetic field, over the square root of 4 pi",
        ),
        "magnetic_energy" => (
            "mass/(length*time**2)",
            "energy density of the magnetic field, which is its pressure",
        ),
        "plasma_beta" => ("1", "gas pressure over magnetic pressure"),
        "alfven_speed" => ("length/time", "Alfven speed"),
        "number_density_cm3" => ("cm**-3", "particles per cubic centimetre"),
        _ => return None,
    };
    Some((units.into(), about.into()))
}

/// Returns the derived fields for snapshots and plots: all named quantities except stored components and coordinates.
#[must_use]
pub fn derived_fields(model: &GasModel) -> Vec<DerivedField> {
    let derived = |(name, number): (String, NamedQuantity)| {
        let own = model.derived.iter().find(|own| own.name == name);
        let own = own.map(|own| (own.units.clone(), own.doc.clone()));
        let (units, long_name) = own.or_else(|| described(&name, model.gamma))?;
        Some(DerivedField {
            name,
            units,
            long_name,
            number,
        })
    };
    vocabulary(model).into_iter().filter_map(derived).collect()
}

/// Returns [`vocabulary`] with the middle of the step as `t`, which makes time-dependent rates second-order accurate.
#[must_use]
pub fn vocabulary_of_rates(model: &GasModel) -> Vec<(String, NamedQuantity)> {
    let mut names = vocabulary(model);
    for (name, number) in &mut names {
        if name == "t" {
            number.function = QuantityFn::of::<middle>();
        }
    }
    names
}

/// Returns the names of coordinates and of time.
#[must_use]
pub fn vocabulary_of_places() -> Vec<(String, NamedQuantity)> {
    let names = of_place().into_iter();
    let names = names.filter(|(name, _)| ["x", "y", "z", "r", "t"].contains(name));
    names.map(|(n, q)| (n.to_string(), q)).collect()
}

/// Returns the error for a quantity `name` at `path` of a deck without units.
#[must_use]
pub fn needs_units(deck: &Deck, path: &str, name: &str) -> DeckError {
    let message = format!(
        "`{path}`: `{name}` needs units: add a table [units] to the deck, such as \
         length = \"kpc\", mass = \"Msun\", velocity = \"km/s\""
    );
    deck.error_at(path, message)
}

/// Compiles the text at `path` of the deck: one of `names`, or a formula of them.
///
/// # Errors
/// The formula is invalid or has an unknown name; the error has the position.
pub fn compile(
    deck: &Deck,
    path: &str,
    text: &str,
    mut names: Vec<(String, NamedQuantity)>,
) -> Result<CellQuantity, DeckError> {
    if let Some(plain) = names.iter().position(|(name, _)| name == text.trim()) {
        return Ok(CellQuantity::Named(names.swap_remove(plain).1));
    }
    let said = |name: &&&str| {
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.any(|word| word == **name) && !names.iter().any(|(known, _)| known == **name)
    };
    if let Some(name) = WITH_UNITS.iter().find(said)
        && deck.units()?.is_dimensionless()
    {
        return Err(needs_units(deck, path, name));
    }
    let formula = |names: &[(String, NamedQuantity)]| {
        let words: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        deck.formula(path, text, &words)
    };
    // compile again with the variables in use only: these are computed in each cell
    let all = formula(&names)?;
    names.retain(|(name, _)| all.uses(name));
    let formula = formula(&names)?;
    let arguments = names.into_iter().map(|(_, number)| number).collect();
    Ok(CellQuantity::Formula(formula, arguments, path.to_string()))
}

/// Deserialises a number or a formula to text, for `#[serde(deserialize_with)]`.
///
/// # Errors
/// The value is neither.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number or a formula")]
    enum NumberOrFormula {
        Number(f64),
        Formula(String),
    }
    Ok(match NumberOrFormula::deserialize(from)? {
        NumberOrFormula::Number(number) => format!("{number:?}"),
        NumberOrFormula::Formula(text) => text,
    })
}

/// Returns the schema of such a key, for `#[schemars(schema_with)]`.
pub(crate) fn number_or_formula(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "string"] })
}

/// Compiles the heating rate `text` at `key` of the deck: a number or a formula of `names`. Also returns its value if
/// it is constant.
///
/// # Errors
/// The formula is invalid or has an unknown name; the error has the position.
pub(crate) fn heating(
    deck: &Deck,
    key: &str,
    text: &str,
    names: Vec<(String, NamedQuantity)>,
) -> Result<(CellQuantity, Option<f64>), DeckError> {
    // a number needs no names, which might clash with constants of the deck
    let names = match text.trim().parse::<f64>() {
        Ok(_) => Vec::new(),
        Err(_) => names,
    };
    let number = compile(deck, key, text, names)?;
    let constant = match &number {
        CellQuantity::Formula(formula, ..) => formula.constant(),
        CellQuantity::Named(_) => None,
    };
    Ok((number, constant))
}

/// Checks that a constant heating rate is no logarithm.
///
/// # Errors
/// The rate is beyond the largest plausible one.
pub(crate) fn check_heating(
    deck: &Deck,
    key: &str,
    constant: Option<f64>,
) -> Result<(), DeckError> {
    if let Some(rate) = constant.filter(|rate| rate.abs() > LARGEST_RATE) {
        let why = format!(
            "`{key}` is {rate:e}, beyond the largest plausible rate {LARGEST_RATE:e} erg/s per hydrogen nucleus: give a rate, not a logarithm"
        );
        return Err(deck.error_at(key, why));
    }
    Ok(())
}

/// Largest plausible rate of cooling or heating, erg cm^3/s or erg/s per hydrogen nucleus: larger values are probably logarithms.
pub(crate) const LARGEST_RATE: f64 = 1e-10;

/// Returns unit and description of a quantity of the gas.
pub(crate) fn described_in(sim: &Engine, name: &str) -> [String; 2] {
    let derived = sim.world.resource::<DerivedFields>().all();
    let mut derived = derived.filter(|(_, own)| own.name == name);
    if let Some((_, own)) = derived.next() {
        return [own.units.clone(), own.long_name.clone()];
    }
    for store in sim.world.resource::<Stores>().all() {
        let mut components = store.of(&sim.world).spec().components.iter();
        if let Some(own) = components.find(|own| own.name == name) {
            return [own.units.clone(), own.long_name.clone()];
        }
    }
    let (units, long_name) = match name {
        "x" | "y" | "z" => ("length", format!("{name} of the cell centre")),
        "r" => (
            "length",
            "distance of the cell centre from the origin".into(),
        ),
        "t" => ("time", "simulation time".into()),
        "width" | "cell_width" => ("length", "smallest width of the cell".into()),
        _ => ("1", name.into()),
    };
    [units.into(), long_name]
}
