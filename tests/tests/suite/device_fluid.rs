//! The step of a patch on a device against the CPU's, bit for bit, for one periodic patch of random gas.

use nestar::device_runtime::Address;
use nestar::engine::device::{Buffer, Device, LaunchShape};
use nestar::kernels::choice::Choice;
use nestar::kernels::hydro::solver::device::{
    FaceFieldParameters, FluidProgram, RATES, STEP, ScratchPlacement, StepParameters,
};
use nestar::kernels::hydro::{
    BarotropicStates, DualStates, EquationOfState, GasStates, LawConstants, MagneticMethod,
    MagneticStates,
};
use nestar::kernels::hydro::{
    CellMask10, Cleaning, DualEnergy, FaceFluxes, FluidMethod, HydroReal, LaneChoice, Limiter,
    PatchSolver, PatchStep, Reconstruction, Replacements, RiemannSolver, Scheme, ShockCure,
    Variables,
};
use nestar::kernels::mesh::RowShape;
use nestar::kernels::mesh::device::{FaceText, FieldText};
use nestar::kernels::mesh::fluxes::with_share;
use nestar::kernels::mesh::parameters::{CirculationRegisterView, FluxRegisterView, GatherView};
use nestar::kernels::mesh::prolong::SlopeLimiter;
use nestar::kernels::mesh::{Centring, StateRules};
use nestar_tests::devices;

const RATE: [f64; 3] = [0.11, 0.09, 0.13];
const INVERSE_DX: [f64; 3] = [8.0, 7.0, 9.0];
/// Weight of the new state and share in the fluxes of a stage that is not the first.
const WEIGHT: f64 = 2.0 / 3.0;
const SHARE: f64 = 1.0 / 6.0;
/// Cleaning of a magnetic field.
const CLEANING: Cleaning = Cleaning {
    speed: 0.7,
    damping: 0.9,
};

/// A periodic gas.
fn field(double: bool, method: &FluidMethod, scalars: usize) -> FieldText {
    let periodic = || [FaceText::Periodic, FaceText::Periodic];
    FieldText {
        double,
        components: method.gas_components() + scalars,
        shape: RowShape::of_patches(Centring::Cell),
        faces: [periodic(), periodic(), periodic()],
        normal: [2, 4, 8],
        limiter: SlopeLimiter::MonotonizedCentral,
        states: Some(match (method.equation.has_energy(), method.dual) {
            (false, _) => StateRules::of::<BarotropicStates, 4>().items,
            (true, Some(_)) if method.magnetic.is_some() => {
                StateRules::of::<DualStates, 10>().items
            }
            (true, Some(_)) => StateRules::of::<DualStates, 6>().items,
            (true, None) if method.magnetic.is_some() => {
                StateRules::of::<MagneticStates, 9>().items
            }
            (true, None) => StateRules::of::<GasStates, 5>().items,
        }),
    }
}

/// Constants of the equation of state.
fn law(equation: EquationOfState) -> LawConstants {
    match equation {
        EquationOfState::GammaLaw => 1.4.into(),
        EquationOfState::Isothermal => LawConstants([0.9, 0.0]),
        EquationOfState::Polytropic => LawConstants([0.7, 1.4]),
    }
}

/// A patch of gas with jumps, some of them strong. Without an energy, strong jumps are those of the density.
fn random_patch<R: HydroReal>(method: &FluidMethod, scalars: usize, violent: bool) -> Vec<R> {
    let has_energy = method.equation.has_energy();
    let (gas, components) = (
        method.equation.components(),
        method.gas_components() + scalars,
    );
    let mut seed = 88172645463325252u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut row = vec![R::lit(0.0); components * 512];
    for cell in 0..512 {
        let jumps = violent && !has_energy && random() < 0.03;
        let density = if jumps { 400.0 } else { 0.1 + random() };
        let mut kinetic = 0.0;
        row[cell] = R::lit(density);
        for axis in 1..4 {
            let v = random() - 0.5;
            kinetic += 0.5 * density * v * v;
            row[axis * 512 + cell] = R::lit(density * v);
        }
        let pressure = if violent && random() < 0.03 {
            400.0
        } else {
            0.2 + random()
        };
        if has_energy {
            row[4 * 512 + cell] = R::lit(pressure / (1.4 - 1.0) + kinetic);
        }
        for c in gas..components {
            row[c * 512 + cell] = R::lit(density * random());
        }
    }
    row
}

/// Mass fluxes of a patch.
const MASS: usize = 3 * 576;

struct Case {
    method: FluidMethod,
    scalars: usize,
    first_order_fallback: bool,
    placement: ScratchPlacement,
}

/// Returns a placement of the scratch that stores states at faces, or one that computes them where they are needed.
fn placement(stored: bool) -> ScratchPlacement {
    match stored {
        true => ScratchPlacement::Shared,
        false => ScratchPlacement::Split,
    }
}

/// Results of a step.
struct Found<R> {
    /// New values and mass fluxes.
    values: Vec<R>,
    /// Signal rate.
    rate: R,
    unphysical: [u64; 8],
    replacements: Replacements<R>,
}

/// The step on the CPU.
fn on_cpu<R: HydroReal>(case: &Case, row: &[R], mask: Option<&CellMask10>) -> Found<R> {
    let solver = PatchSolver::<R>::new(
        case.method,
        law(case.method.equation),
        case.scalars,
        LaneChoice::Auto,
    );
    let mut scratch = solver.scratch();
    let (ghosts, components) = (solver.ghosts(), solver.components());
    let (n, stride) = (8 + 2 * ghosts, scratch.component_stride());
    let input = scratch.input();
    for c in 0..components {
        for cell in 0..n * n * n {
            let [i, j, k] = [cell % n, cell / n % n, cell / (n * n)].map(|i| (i + 8 - ghosts) % 8);
            input[c * stride + cell] = row[c * 512 + i + 8 * (j + 8 * k)];
        }
    }
    let mut out = vec![R::lit(0.0); components * 512];
    let mut mass = vec![R::lit(0.0); MASS];
    let before = random_patch::<R>(&case.method, case.scalars, false);
    let staged = case.method.has_stages();
    let step = PatchStep {
        rates: RATE.map(R::lit),
        inverse_dx: INVERSE_DX.map(R::lit),
        first_order: mask,
        cleaning: CLEANING,
        before: staged.then(|| (&before[..], R::lit(WEIGHT))),
    };
    let mut faces = FaceFluxes {
        mass: Some(&mut mass),
        ..FaceFluxes::default()
    };
    let outcome = solver.update(&mut scratch, &step, &mut out, &mut faces);
    if staged {
        let earlier = before.iter().cycle();
        let shares = mass.iter().zip(earlier);
        mass = shares
            .map(|(&flux, &earlier)| with_share(earlier, flux, R::lit(SHARE)))
            .collect();
    }
    out.extend(mass);
    Found {
        values: out,
        rate: outcome.signal_rate,
        unphysical: outcome.unphysical,
        replacements: outcome.replacements,
    }
}

/// Returns the program with its scratch in global memory if the shared memory of the device is too small for it.
fn placed(program: FluidProgram, device: &Device) -> FluidProgram {
    // masks and block reduction
    let declared = 2048;
    let needed = program.scratch().shared * program.value_bytes() + declared;
    match needed <= device.limits().shared_per_block as usize {
        true => program,
        false => FluidProgram {
            placement: ScratchPlacement::Global,
            ..program
        },
    }
}

/// The same on a device; `first_order`: the cells of the patch to correct.
fn on_device<R: HydroReal + bytemuck::Pod>(
    device: &Device,
    case: &Case,
    row: &[R],
    first_order: &[u32; 16],
) -> Found<R> {
    let double = size_of::<R>() == 8;
    let text = FluidProgram {
        method: case.method,
        law: law(case.method.equation),
        scalars: case.scalars,
        double,
        first_order_fallback: case.first_order_fallback,
        mass_fluxes: true,
        placement: case.placement,
        threads: 576,
        blocks: 1,
    };
    let text = placed(text, device);
    let field = field(double, &case.method, case.scalars);
    let source = field.program(&text.items(), &[&text.text(), STEP, RATES]);
    let module = device.compile("fluid-test", &source).unwrap();
    let kernel = module.kernel("fluid_step").unwrap();
    let present = device.buffer::<R>(row.len()).unwrap();
    device.upload(&present, 0, row).unwrap();
    let next = device.buffer::<R>(row.len()).unwrap();
    let before = random_patch::<R>(&case.method, case.scalars, false);
    let earlier: Vec<R> = before.iter().copied().cycle().take(MASS).collect();
    let [before, earlier] = [&before, &earlier].map(|values| {
        let buffer = device.buffer::<R>(values.len()).unwrap();
        device.upload(&buffer, 0, values).unwrap();
        buffer
    });
    let after_first = |buffer: &Buffer<R>| match case.method.has_stages() {
        true => buffer.address().into(),
        false => Address::NONE,
    };
    let mass = device.buffer::<R>(MASS).unwrap();
    let around = device.buffer::<i32>(28).unwrap();
    let rows = device.buffer::<i32>(1).unwrap();
    let rates = device.buffer::<R>(1).unwrap();
    let unphysical = device.buffer::<u64>(8).unwrap();
    let flagged = device.buffer::<u32>(16).unwrap();
    device.upload(&flagged, 0, first_order).unwrap();
    let stale = device.buffer::<u8>(8).unwrap();
    let replaced = device.buffer::<u32>(1).unwrap();
    let gains = device.buffer::<R>(1).unwrap();
    let status = device.buffer::<u64>(3).unwrap();
    let size = text.scratch();
    let bytes = size.global * text.value_bytes();
    let scratch = device.buffer::<u64>(bytes / 8 + 1).unwrap();
    let view = GatherView::<R> {
        level: present.address().into(),
        coarse_old: present.address().into(),
        coarse_new: present.address().into(),
        neighbours: around.address().into(),
        parent: Address::NONE,
        first_child: Address::NONE,
        index: Address::NONE,
        fault: Address::NONE,
        weight: 1.0,
        time: 0.0,
        left: [0.0; 3],
        right: [0.0; 3],
        domain_cells: [0; 3],
    };
    let p = StepParameters {
        view,
        registers: FluxRegisterView {
            coarse_slot: Address::NONE,
            fine_slot: Address::NONE,
            coarse_flux: Address::NONE,
            attempt: Address::NONE,
        },
        next: next.address().into(),
        mass: mass.address().into(),
        field: FaceFieldParameters {
            view,
            registers: CirculationRegisterView::default(),
            gathered: Address::NONE,
            next: Address::NONE,
        },
        before: after_first(&before),
        earlier: FluxRegisterView::default(),
        mass_before: after_first(&earlier),
        rows: rows.address().into(),
        rates: rates.address().into(),
        unphysical: unphysical.address().into(),
        first_order: if case.first_order_fallback {
            flagged.address().into()
        } else {
            Address::NONE
        },
        stale: stale.address().into(),
        replaced: replaced.address().into(),
        gains: gains.address().into(),
        scratch: scratch.address().into(),
        status: status.address().into(),
        rate: RATE,
        weight: WEIGHT,
        share: SHARE,
        cleaning_speed: CLEANING.speed,
        damping: CLEANING.damping,
        inverse_dx: INVERSE_DX,
        count: 1,
    };
    let shape = LaunchShape {
        shared: (size.shared * text.value_bytes()) as u32,
        ..LaunchShape::of(1, 576)
    };
    device.launch(&kernel, shape, &p).unwrap();
    let mut out = vec![R::lit(0.0); row.len() + MASS];
    let (new, fluxes) = out.split_at_mut(row.len());
    device.download(&next, 0, new).unwrap();
    device.download(&mass, 0, fluxes).unwrap();
    let mut rate = [R::lit(0.0)];
    device.download(&rates, 0, &mut rate).unwrap();
    let mut mask = [0; 8];
    device.download(&unphysical, 0, &mut mask).unwrap();
    let (mut cells, mut gain) = ([0], [R::lit(0.0)]);
    if case.method.dual.is_some() {
        device.download(&replaced, 0, &mut cells).unwrap();
        device.download(&gains, 0, &mut gain).unwrap();
    }
    Found {
        values: out,
        rate: rate[0],
        unphysical: mask,
        replacements: Replacements {
            cells: cells[0],
            gain: gain[0],
        },
    }
}

fn compare<R: HydroReal + bytemuck::Pod>(device: &Device, case: &Case) {
    let violent = case.first_order_fallback;
    let row = random_patch::<R>(&case.method, case.scalars, violent);
    let (mut mask, mut first_order) = (CellMask10::new(), [0u32; 16]);
    if case.first_order_fallback {
        for cell in [0usize, 63, 77, 200, 448, 511] {
            first_order[cell / 32] |= 1 << (cell % 32);
            let at = [cell % 8, cell / 8 % 8, cell / 64].map(|i| i as i32);
            // the patch is its own neighbour
            for face in 0..7usize {
                let mut ghost = at;
                if face < 6 {
                    ghost[face / 2] += if face % 2 == 0 { -8 } else { 8 };
                }
                if ghost.iter().all(|i| (-1..=8).contains(i)) {
                    mask.set(ghost[0], ghost[1], ghost[2]);
                }
            }
        }
    }
    let wanted = on_cpu(case, &row, case.first_order_fallback.then_some(&mask));
    let found = on_device(device, case, &row, &first_order);
    let method = case.method;
    assert_eq!(
        found.unphysical, wanted.unphysical,
        "unphysical cells: {method:?}"
    );
    assert_eq!(
        found.rate.bits(),
        wanted.rate.bits(),
        "signal rate: {method:?}"
    );
    let same = |(a, b): (&R, &R)| a.bits() == b.bits() || (a.is_nan() && b.is_nan());
    let [own, theirs] = [&found, &wanted].map(|found| found.replacements);
    assert_eq!(own.cells, theirs.cells, "replaced energies: {method:?}");
    assert!(
        same((&own.gain, &theirs.gain)),
        "replaced energies: {method:?}: {own:?} {theirs:?}"
    );
    if method.dual.is_some() {
        println!("{method:?}: {own:?}");
    }
    let pairs = found.values.iter().zip(&wanted.values);
    let differ = pairs.filter(|pair| !same(*pair)).count();
    let of = wanted.values.len();
    assert_eq!(differ, 0, "of {of} values differ: {method:?}");
}

fn compare_in(single: bool, device: &Device, case: &Case) {
    match single {
        true => compare::<f32>(device, case),
        false => compare::<f64>(device, case),
    }
}

/// Every choice occurs, with and without scalars and corrected cells.
#[test]
fn a_step_on_the_device_has_the_bits_of_the_cpu() {
    let Ok(device) = devices::open() else {
        println!("skipped: there is no C++ compiler on this machine");
        return;
    };
    use Reconstruction::{Constant, Plm, Ppm, WenoZ};
    use Scheme::{Ctu, MusclHancock, Rk2, Rk3, VanLeer};
    use Variables::{Characteristic, Primitive};
    let cases = [
        (
            (MusclHancock, Plm, Primitive),
            "monotonized-central",
            "hllc",
            0,
            false,
        ),
        (
            (MusclHancock, Plm, Primitive),
            "van-albada",
            "hlle",
            2,
            true,
        ),
        (
            (MusclHancock, Plm, Characteristic),
            "hybrid",
            "roe",
            1,
            false,
        ),
        (
            (MusclHancock, Ppm, Primitive),
            "van-leer",
            "exact",
            1,
            false,
        ),
        (
            (MusclHancock, Constant, Primitive),
            "minmod",
            "llf",
            1,
            true,
        ),
        ((VanLeer, Plm, Primitive), "minmod", "aufs", 1, true),
        (
            (VanLeer, Plm, Characteristic),
            "monotonized-central",
            "hll",
            0,
            true,
        ),
        (
            (VanLeer, Ppm, Primitive),
            "monotonized-central",
            "hllc",
            0,
            false,
        ),
        ((VanLeer, Ppm, Characteristic), "van-leer", "hllc", 1, false),
        ((Ctu, Plm, Primitive), "minmod", "hllc", 2, true),
        ((Ctu, Plm, Characteristic), "hybrid", "roe", 0, false),
        (
            (Ctu, Ppm, Primitive),
            "monotonized-central",
            "hllc",
            1,
            false,
        ),
        ((Rk2, Plm, Primitive), "minmod", "hll", 2, true),
        (
            (Rk3, WenoZ, Primitive),
            "monotonized-central",
            "hllc",
            1,
            false,
        ),
        (
            (Rk3, Ppm, Primitive),
            "monotonized-central",
            "hllc",
            0,
            true,
        ),
    ];
    for ((scheme, reconstruction, variables), limiter, riemann, scalars, fallback) in cases {
        let method = FluidMethod {
            scheme,
            reconstruction,
            variables,
            limiter: Limiter::of_word(limiter).expect("a limiter"),
            riemann: RiemannSolver::of_word(riemann).expect("a solver"),
            shock_cure: ShockCure::Hlle,
            // some of the cases flatten
            flattening: (limiter == "hybrid" || limiter == "minmod").then_some(true),
            ..FluidMethod::default()
        };
        let case = Case {
            method,
            scalars,
            first_order_fallback: fallback,
            placement: placement(variables == Primitive),
        };
        // a method is compiled in one precision, and with a dual energy in the other
        compare_in(fallback, &device, &case);
        if !scheme.is_for_gas_alone() && method.equation.has_energy() {
            let dual = Some(DualEnergy::default());
            let method = FluidMethod { dual, ..method };
            let other = Case {
                method,
                placement: placement(variables == Characteristic),
                ..case
            };
            compare_in(!fallback, &device, &other);
        }
    }
}

/// The same for gas without energy.
#[test]
fn gas_without_energy_has_the_bits_of_the_cpu_on_the_device() {
    let Ok(device) = devices::open() else {
        println!("skipped: there is no C++ compiler on this machine");
        return;
    };
    use EquationOfState::{Isothermal, Polytropic};
    use Reconstruction::{Plm, Ppm};
    use Scheme::{Ctu, MusclHancock, VanLeer};
    use Variables::{Characteristic, Primitive};
    let cases = [
        ((Isothermal, MusclHancock, Plm, Primitive), "hllc", 1, true),
        ((Isothermal, MusclHancock, Ppm, Primitive), "hll", 0, false),
        ((Isothermal, VanLeer, Ppm, Characteristic), "hlle", 2, true),
        (
            (Polytropic, MusclHancock, Plm, Characteristic),
            "hlle",
            0,
            false,
        ),
        ((Polytropic, MusclHancock, Ppm, Primitive), "llf", 1, true),
        ((Polytropic, VanLeer, Plm, Primitive), "hllc", 1, false),
        ((Isothermal, Ctu, Plm, Primitive), "hllc", 0, true),
        ((Polytropic, Ctu, Ppm, Primitive), "hlle", 1, false),
    ];
    for ((equation, scheme, reconstruction, variables), riemann, scalars, fallback) in cases {
        let method = FluidMethod {
            equation,
            scheme,
            reconstruction,
            variables,
            riemann: RiemannSolver::of_word(riemann).expect("a solver"),
            shock_cure: ShockCure::Hlle,
            ..FluidMethod::default()
        };
        let case = Case {
            method,
            scalars,
            first_order_fallback: fallback,
            placement: placement(riemann != "hlle"),
        };
        compare_in(scheme == VanLeer, &device, &case);
    }
}

/// The same for gas with a magnetic field.
#[test]
fn gas_with_a_field_has_the_bits_of_the_cpu_on_the_device() {
    let Ok(device) = devices::open() else {
        println!("skipped: there is no C++ compiler on this machine");
        return;
    };
    use Reconstruction::{Plm, Ppm, WenoZ};
    use Scheme::{MusclHancock, Rk2, Rk3};
    let cases = [
        ((MusclHancock, Plm), "hlld", 1, true),
        ((MusclHancock, Ppm), "hlld", 0, false),
        ((Rk2, Plm), "hlle", 0, true),
        ((Rk3, WenoZ), "hlld", 0, false),
        ((Rk2, Ppm), "hll", 2, false),
        ((MusclHancock, Plm), "llf", 0, false),
        ((MusclHancock, Plm), "lhlld", 0, false),
    ];
    for (n, ((scheme, reconstruction), riemann, scalars, fallback)) in cases.into_iter().enumerate()
    {
        let method = FluidMethod {
            scheme,
            reconstruction,
            riemann: RiemannSolver::of_word(riemann).expect("a solver"),
            shock_cure: ShockCure::Hlle,
            magnetic: Some(MagneticMethod::Glm),
            ..FluidMethod::default()
        };
        let case = Case {
            method,
            scalars,
            first_order_fallback: fallback,
            placement: placement(n % 2 == 1),
        };
        compare_in(n % 2 == 1, &device, &case);
        if n < 3 {
            let dual = Some(DualEnergy::default());
            let method = FluidMethod { dual, ..method };
            compare_in(n % 2 == 0, &device, &Case { method, ..case });
        }
    }
}
