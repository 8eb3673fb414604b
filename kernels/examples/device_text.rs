//! Writes CUDA programs into the folder given as argument, to be compiled by `cargo xtask kernels`: every device item of the kernels,
//! instantiated (`NAME_float.cu` and `NAME_double.cu`), and the kernel skeletons of mesh and fluid in several specialisations.
use nestar_device::{
    Face, FaceStencil, Item, Place, Real, Stencil, device, instantiate_with, interpolate, math,
    random,
};
use nestar_kernels::criteria::cell;
use nestar_kernels::gravity::stress::{self, STRESS};
use nestar_kernels::gravity::{self, GRAVITY_KERNELS};
use nestar_kernels::hydro::solver::device::{FluidProgram, RATES, STEP, ScratchPlacement};
use nestar_kernels::hydro::{
    Conserved, DualEnergy, EquationOfState, FluidMethod, LawConstants, Limiter, MagneticMethod,
    Reconstruction, RiemannSolver, Scheme, kinetic_energy,
};
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::RowShape;
use nestar_kernels::mesh::device::{
    CIRCULATION_REGISTERS, CIRCULATIONS, CONSERVE, FLUXES, FaceText, FieldText, MAP, MARK, PROLONG,
    REDUCE, RESTRICT, SUBCYCLE, SkeletonFunction, TOTALS, TRANSFER, WINDOW, WRITE_BACK,
    gathered_faces,
};
use nestar_kernels::mesh::prolong::SlopeLimiter;
use nestar_kernels::mesh::subcycle::{CONTINUE, DONE, Outcome, RETRY, Subcycle};
use nestar_kernels::multigrid::device::MULTIGRID;
use nestar_kernels::particles::device::PARTICLES;
use nestar_kernels::particles::field_kernels::{KICK_SOURCE, TRACER_SOURCE, items as movers};
use nestar_kernels::{hydro, mesh, multigrid};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: device_text FOLDER");
        return ExitCode::from(2);
    };
    let mut texts = Vec::new();
    for real in ["float", "double"] {
        for (name, items) in items() {
            texts.push((format!("{name}_{real}"), instantiate_with(&items, real)));
        }
        for (name, text) in skeletons(real == "double") {
            texts.push((format!("{name}_{real}"), text));
        }
    }
    for (name, text) in texts {
        let path = folder.join(format!("{name}.cu"));
        if let Err(e) = std::fs::write(&path, text) {
            eprintln!("error: {}: {e}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Items with the values of their const parameters.
type Instances = Vec<(&'static Item, &'static [&'static str])>;

fn items() -> [(&'static str, Instances); 3] {
    let functions = vec![
        interpolate::ITEM,
        random::in_cell::ITEM,
        random::of_id::ITEM,
        random::uniforms::ITEM,
        random::normals::ITEM,
        math::exp::ITEM,
        math::exp_m1::ITEM,
        math::ln::ITEM,
        math::ln_1p::ITEM,
        math::log10::ITEM,
        math::pow::ITEM,
        math::sqrt::ITEM,
        math::sin::ITEM,
        math::cos::ITEM,
        math::tan::ITEM,
        math::atan::ITEM,
        math::atan2::ITEM,
        math::sinh::ITEM,
        math::cosh::ITEM,
        math::tanh::ITEM,
        math::erf::ITEM,
        math::sum3::ITEM,
        math::sum4::ITEM,
    ];
    [
        ("math", plain(functions)),
        ("hydro", plain(hydro::device_items())),
        ("mesh", plain(mesh::device_items())),
    ]
}

/// A function of a stencil.
#[device]
fn smoothed<R: Real>(u: &Stencil<R, Conserved<R>, 2>, at: &Place<R>, rate: R) -> Conserved<R> {
    let mut v = u.at(0, 0, 0);
    v.density += rate * at.dt * (u.at(2, 0, 0).density - u.at(0, -1, 0).density);
    v
}

/// A function of a face.
#[device]
fn flowing<R: Real>(u: &FaceStencil<R, Conserved<R>>, face: &Face<R>, rate: R) -> Conserved<R> {
    let mut v = u.at(0);
    v.energy = rate * (u.at(-1).density - v.density) / face.width;
    v
}

/// A function that asks to be called again.
#[device]
fn cooled<R: Real>(u: Conserved<R>, rate: R) -> Outcome<Conserved<R>> {
    let mut v = u;
    v.energy -= rate;
    let mut status = DONE;
    if v.energy > rate {
        status = CONTINUE;
    }
    Outcome::<Conserved<R>> { state: v, status }
}

/// A function that carries a number from call to call, and returns two sums.
#[device]
fn counted<R: Real>(both: (Conserved<R>, R), rate: R) -> Subcycle<Conserved<R>, R, [R; 2]> {
    let (u, calls) = both;
    let mut v = u;
    v.energy -= rate;
    let mut status = DONE;
    if calls < 2.0 {
        status = RETRY;
    }
    Subcycle::<Conserved<R>, R, [R; 2]> {
        state: v,
        carried: calls + 1.0,
        sums: [rate, calls],
        status,
        work: 1,
    }
}

/// Returns skeletons for functions of cells and faces.
fn cells(field: &FieldText) -> Vec<(&'static str, String)> {
    use SkeletonFunction::{Cell, Face};
    let of = |function: SkeletonFunction, in_shared, skeleton: &[&str]| {
        field.program(&function.items(), &function.texts(in_shared, skeleton))
    };
    let marks = |item, reach| of(Cell(item, reach), true, &[MARK]);
    let around = |in_shared| of(Cell(smoothed::ITEM, 2), in_shared, &[MAP, WRITE_BACK]);
    let flows = Face(flowing::ITEM, 1, 5);
    vec![
        ("cells", of(Cell(kinetic_energy::ITEM, 0), true, &[REDUCE])),
        ("around", around(true)),
        ("around_global", around(false)),
        ("attempts", of(Cell(cooled::ITEM, 0), true, &[SUBCYCLE])),
        ("accounts", of(Cell(counted::ITEM, 0), true, &[SUBCYCLE])),
        ("window", of(SkeletonFunction::Window(2), true, &[WINDOW])),
        ("fluxes", of(flows, true, &[CONSERVE, WRITE_BACK])),
        ("mark_lohner", marks(cell::lohner::ITEM, 2)),
        ("mark_vorticity", marks(cell::vorticity::ITEM, 2)),
        ("mark_current", marks(cell::current::ITEM, 2)),
        ("mark_jeans", marks(cell::jeans::ITEM, 0)),
        ("mark_box", marks(cell::overlaps_box::ITEM, 0)),
    ]
}

/// Items without const parameters.
fn plain(items: Vec<&'static Item>) -> Instances {
    items.into_iter().map(|item| (item, &[][..])).collect()
}

/// Returns the skeletons of the mesh, and of the fluid with very different methods.
fn skeletons(double: bool) -> Vec<(&'static str, String)> {
    let walls = || [FaceText::Outflow, FaceText::Reflecting];
    let field = |scalars: usize| FieldText {
        double,
        components: 5 + scalars,
        shape: RowShape::of_patches(Centring::Cell),
        faces: [walls(), [FaceText::Periodic, FaceText::Periodic], walls()],
        normal: [2, 4, 8],
        limiter: SlopeLimiter::MonotonizedCentral,
        states: Some(mesh::StateRules::of::<hydro::GasStates, 5>().items),
    };
    let plain = FluidProgram {
        method: FluidMethod::default(),
        law: 1.4.into(),
        scalars: 0,
        double,
        first_order_fallback: false,
        mass_fluxes: false,
        placement: ScratchPlacement::Shared,
        threads: 576,
        blocks: 1,
    };
    let other = FluidProgram {
        method: FluidMethod {
            scheme: Scheme::VanLeer,
            reconstruction: Reconstruction::Ppm,
            limiter: Limiter::VanAlbada,
            riemann: RiemannSolver::Exact,
            ..FluidMethod::default()
        },
        scalars: 2,
        first_order_fallback: true,
        mass_fluxes: true,
        placement: ScratchPlacement::Global,
        ..plain
    };
    let staged = FluidProgram {
        method: FluidMethod {
            scheme: Scheme::Rk3,
            reconstruction: Reconstruction::WenoZ,
            riemann: RiemannSolver::Hll,
            ..FluidMethod::default()
        },
        scalars: 1,
        first_order_fallback: true,
        mass_fluxes: true,
        ..plain
    };
    let corrected = FluidProgram {
        method: FluidMethod {
            scheme: Scheme::Ctu,
            ..FluidMethod::default()
        },
        scalars: 1,
        first_order_fallback: true,
        placement: ScratchPlacement::Split,
        ..plain
    };
    let isothermal = FluidProgram {
        method: FluidMethod {
            equation: EquationOfState::Isothermal,
            reconstruction: Reconstruction::Ppm,
            ..FluidMethod::default()
        },
        law: LawConstants([1.0, 0.0]),
        ..other
    };
    let without_energy = FieldText {
        components: 4 + isothermal.scalars,
        states: Some(mesh::StateRules::of::<hydro::BarotropicStates, 4>().items),
        ..field(0)
    };
    let parts = [&isothermal.text(), STEP, RATES];
    let isothermal = without_energy.program(&isothermal.items(), &parts);
    let magnetised_options = FluidProgram {
        method: FluidMethod {
            magnetic: Some(MagneticMethod::Glm),
            riemann: RiemannSolver::Hlld,
            ..staged.method
        },
        ..staged
    };
    let with_field = FieldText {
        components: 9 + magnetised_options.scalars,
        states: Some(mesh::StateRules::of::<hydro::MagneticStates, 9>().items),
        ..field(0)
    };
    let of_mesh = [PROLONG, RESTRICT, FLUXES, TOTALS, TRANSFER];
    let mesh_with_field = with_field.program(&[], &of_mesh);
    let parts = [&magnetised_options.text(), STEP, RATES];
    let magnetised = with_field.program(&magnetised_options.items(), &parts);
    let with_face_field = FluidProgram {
        method: FluidMethod {
            magnetic: Some(MagneticMethod::ConstrainedTransport),
            riemann: RiemannSolver::Hlld,
            ..FluidMethod::default()
        },
        ..other
    };
    let parts = [&with_face_field.text(), STEP, RATES];
    let face_field = FieldText {
        components: 8 + with_face_field.scalars,
        states: Some(mesh::StateRules::of::<hydro::FaceFieldStates, 8>().items),
        ..field(0)
    };
    let face_field = face_field.program(&with_face_field.items(), &parts);
    let dual = [magnetised_options, with_face_field].map(|program| {
        let both = FluidProgram {
            method: FluidMethod {
                dual: Some(DualEnergy::default()),
                ..program.method
            },
            ..program
        };
        let field = FieldText {
            components: both.method.gas_components() + both.scalars,
            states: Some(match both.method.magnetic {
                Some(MagneticMethod::Glm) => mesh::StateRules::of::<hydro::DualStates, 10>().items,
                _ => mesh::StateRules::of::<hydro::DualStates, 9>().items,
            }),
            ..field(0)
        };
        let fluid = field.program(&both.items(), &[&both.text(), STEP, RATES]);
        [field.program(&[], &of_mesh), fluid]
    });
    let [
        [mesh_dual, dual_magnetised],
        [mesh_dual_face_field, dual_face_field],
    ] = dual;
    let fluid = |p: &FluidProgram| field(p.scalars).program(&p.items(), &[&p.text(), STEP, RATES]);
    let on_faces = FieldText {
        components: 3,
        shape: RowShape::of_patches(Centring::Face),
        states: None,
        ..field(0)
    };
    let of_faces = [&of_mesh[..], &[CIRCULATIONS, CIRCULATION_REGISTERS]].concat();
    let window = SkeletonFunction::Window(3);
    let window = on_faces.program(&window.items(), &window.texts(true, &[WINDOW]));
    let mut texts = vec![
        ("skeletons_mesh", field(1).program(&[], &of_mesh)),
        ("skeletons_faces", on_faces.program(&[], &of_faces)),
        ("window_faces", window),
        (
            "skeletons_gathered_faces",
            on_faces.program(&[], &[&gathered_faces(2)]),
        ),
        ("skeletons_face_field", face_field),
        ("skeletons_fluid", fluid(&plain)),
        ("skeletons_fallback", fluid(&other)),
        ("skeletons_staged", fluid(&staged)),
        ("skeletons_corrected", fluid(&corrected)),
        ("skeletons_isothermal", isothermal),
        ("skeletons_magnetised", magnetised),
        ("skeletons_mesh_magnetised", mesh_with_field),
        ("skeletons_dual_magnetised", dual_magnetised),
        ("skeletons_dual_face_field", dual_face_field),
        ("skeletons_mesh_dual", mesh_dual),
        ("skeletons_mesh_dual_face_field", mesh_dual_face_field),
    ];
    texts.extend(cells(&field(1)));
    texts.extend(gravity(&field(0)));
    texts
}

/// Returns the Poisson solver with the gravity of gas, a field of coarser rows, and particles.
fn gravity(gas: &FieldText) -> [(&'static str, String); 6] {
    let unknowns = FieldText {
        components: 1,
        normal: [0; 3],
        states: None,
        ..gas.clone()
    };
    let coarse = FieldText {
        shape: RowShape {
            side: 4,
            centring: Centring::Cell,
        },
        ..unknowns.clone()
    };
    let accelerations = FieldText {
        components: 6,
        ..unknowns.clone()
    };
    let particles = nestar_kernels::particles::device::items();
    let items = [multigrid::device_items(), gravity::device_items()].concat();
    let with_stress = [items.clone(), stress::device_items()].concat();
    let of_mesh = [PROLONG, RESTRICT, FLUXES, TOTALS, TRANSFER];
    [
        (
            "gravity",
            unknowns.program(&items, &[MULTIGRID, GRAVITY_KERNELS]),
        ),
        ("stress", unknowns.program(&with_stress, &[STRESS])),
        ("skeletons_coarse", coarse.program(&[], &of_mesh)),
        ("particles", accelerations.program(&particles, &[PARTICLES])),
        ("pull", accelerations.program(&movers(), &[KICK_SOURCE])),
        ("trace", gas.program(&movers(), &[TRACER_SOURCE])),
    ]
}
