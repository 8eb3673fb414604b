//! Random gathered patches and helpers of the tests that update them.
use crate::choice::Choice;
use crate::hydro::{
    CellMask10, Cleaning, DualEnergy, EquationOfState, FaceFluxes, FluidMethod, HydroReal,
    LawConstants, Limiter, MagneticMethod, PatchOutcome, PatchSolver, PatchStep, Reconstruction,
    RiemannSolver, Scheme, ShockCure, Variables,
};
use crate::mesh::Centring;
use crate::{CELLS, PATCH};
use nestar_device::Real;

pub const GAMMA: f64 = 1.4;

/// Every sensible combination of scheme, reconstruction, variables and limiter, with HLLC; every Riemann solver with each scheme and
/// reconstruction. A stage of `rk3` is one of `rk2`, so that one combination of it suffices.
pub fn all_methods() -> Vec<FluidMethod> {
    let mut methods = vec![];
    for scheme in Scheme::ALL.iter().copied() {
        let staged = scheme.stages().len() > 1;
        for reconstruction in Reconstruction::ALL.iter().copied() {
            if reconstruction == Reconstruction::WenoZ && !staged {
                continue;
            }
            let base = FluidMethod {
                scheme,
                reconstruction,
                shock_cure: ShockCure::Hlle,
                minmod_theta: 1.3,
                ..FluidMethod::default()
            };
            if scheme == Scheme::Rk3 {
                methods.push(base);
                continue;
            }
            let with = |&riemann: &RiemannSolver| FluidMethod { riemann, ..base };
            let solvers = RiemannSolver::ALL.iter().map(with);
            methods.extend(solvers.filter(|method| method.riemann_item().is_some()));
            let slopes = base.limits_slopes();
            for variables in Variables::ALL.iter().copied().filter(|_| slopes) {
                let limiters = Limiter::ALL.iter().map(|&limiter| FluidMethod {
                    variables,
                    limiter,
                    ..base
                });
                methods.extend(limiters.filter(|method| *method != base));
            }
        }
    }
    methods
}

/// Methods that support dual energy, with it.
pub fn dual_methods() -> Vec<FluidMethod> {
    let dual = Some(DualEnergy::default());
    let knows_dual = |method: &FluidMethod| !method.scheme.is_for_gas_alone();
    let methods = all_methods().into_iter().filter(knows_dual);
    methods
        .map(|method| FluidMethod { dual, ..method })
        .collect()
}

/// Methods with dual energy and a magnetic field, for one Riemann solver.
pub fn dual_magnetic_methods() -> Vec<FluidMethod> {
    let dual = Some(DualEnergy::default());
    let methods = magnetic_methods().into_iter();
    let methods = methods.filter(|method| method.riemann == RiemannSolver::Hlld);
    methods
        .map(|method| FluidMethod { dual, ..method })
        .collect()
}

/// Methods for gas without energy.
pub fn barotropic_methods() -> Vec<FluidMethod> {
    let equations = [EquationOfState::Isothermal, EquationOfState::Polytropic];
    let of = |equation| {
        all_methods()
            .into_iter()
            .map(move |method| FluidMethod { equation, ..method })
    };
    let methods = equations.into_iter().flat_map(of);
    methods
        .filter(|method| method.riemann_item().is_some())
        .collect()
}

/// Methods for gas with a magnetic field at cell centres, then those with one on faces.
pub fn magnetic_methods() -> Vec<FluidMethod> {
    let methods = MagneticMethod::ALL.iter().rev().copied();
    let methods = methods.flat_map(methods_with_field);
    methods
        .filter(|method| !method.has_face_field() || !method.has_stages())
        .collect()
}

fn methods_with_field(magnetic: MagneticMethod) -> Vec<FluidMethod> {
    let magnetic = Some(magnetic);
    let solvers = RiemannSolver::ALL.iter().copied();
    let solvers: Vec<_> = solvers
        .filter(|solver| solver.item_with_field().is_some())
        .collect();
    let methods = all_methods().into_iter().filter(|method| {
        !method.scheme.is_for_gas_alone()
            && method.variables == Variables::Primitive
            && method.riemann == RiemannSolver::Hllc
    });
    let of = |method: FluidMethod| {
        let with = move |&riemann: &RiemannSolver| FluidMethod {
            riemann,
            magnetic,
            ..method
        };
        solvers.iter().map(with).collect::<Vec<_>>()
    };
    methods.flat_map(of).collect()
}

/// Constants of the law of a method; the sound speed is close to 1.
pub fn law_of(method: &FluidMethod) -> LawConstants {
    match method.equation {
        EquationOfState::GammaLaw => GAMMA.into(),
        EquationOfState::Isothermal => LawConstants([1.21, 0.0]),
        EquationOfState::Polytropic => LawConstants([0.9, GAMMA]),
    }
}

/// Numbers in [0, 1), from a linear congruence (Knuth's multiplier).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, a: f64, b: f64) -> f64 {
        a + (b - a) * self.next()
    }
}

/// A ghosted conserved state, `values[component][cell]`.
#[derive(Clone)]
pub struct Block<R> {
    pub width: usize,
    pub values: Vec<Vec<R>>,
    /// A field on faces, `[component][k][j][i]`, for methods that have one; empty for one that is the same in all updates.
    pub field: Vec<R>,
}

impl<R: Real> Block<R> {
    /// Creates a block from primitive variables and mass fractions of each cell.
    pub fn new(
        width: usize,
        scalars: usize,
        mut state: impl FnMut([usize; 3]) -> ([f64; 5], Vec<f64>),
    ) -> Self {
        let mut values = vec![Vec::with_capacity(width.pow(3)); 5 + scalars];
        for at in 0..width.pow(3) {
            let ([density, a, b, c, pressure], x) =
                state([at % width, at / width % width, at / (width * width)]);
            let energy = pressure / (GAMMA - 1.0) + 0.5 * density * (a * a + b * b + c * c);
            let u = [density, density * a, density * b, density * c, energy];
            for (component, value) in u
                .into_iter()
                .chain(x.iter().map(|x| density * x))
                .enumerate()
            {
                values[component].push(R::lit(value));
            }
        }
        Block {
            width,
            values,
            field: Vec::new(),
        }
    }

    /// Independent random cells: density and pressure vary by factors up to `exp(2 roughness)`, velocities up to three
    /// times the roughness.
    pub fn random(width: usize, scalars: usize, roughness: f64, random: &mut Random) -> Self {
        Self::new(width, scalars, |_| {
            let mut factor = || (random.between(-roughness, roughness)).exp();
            let (density, pressure) = (factor(), factor());
            let mut velocity = || random.between(-3.0 * roughness, 3.0 * roughness);
            let v = [velocity(), velocity(), velocity()];
            let x = (0..scalars).map(|_| random.next()).collect();
            ([density, v[0], v[1], v[2], pressure], x)
        })
    }

    /// Removes the energy if the gas of `method` has none.
    pub fn of_law(mut self, method: &FluidMethod) -> Self {
        if !method.equation.has_energy() {
            self.values.remove(4);
        }
        self
    }

    pub fn cell(&self, at: [usize; 3]) -> usize {
        at[0] + self.width * (at[1] + self.width * at[2])
    }
}

/// Result of an update.
pub struct Updated<R> {
    pub out: Vec<R>,
    pub outcome: PatchOutcome<R>,
    pub faces: Vec<Vec<R>>,
    /// Mass fluxes through the faces of all cells.
    pub mass: Vec<R>,
    /// Field on faces and electric fields on edges, if the method has them.
    pub field: Vec<R>,
    pub electric: Vec<R>,
}

/// Runs one update.
pub fn update<R: HydroReal>(
    solver: &PatchSolver<R>,
    block: &Block<R>,
    rates: [f64; 3],
    mask: Option<&CellMask10>,
) -> Updated<R> {
    let mut scratch = solver.scratch();
    let stride = scratch.component_stride();
    assert_eq!(scratch.width(), block.width);
    for (c, values) in block.values.iter().enumerate() {
        scratch.input()[c * stride..c * stride + values.len()].copy_from_slice(values);
    }
    let (input, _) = scratch.face_input();
    match block.field.is_empty() {
        true => {
            let value = |n: usize| R::lit((n * 7919 % 1009) as f64 / 1009.0 - 0.5);
            input
                .iter_mut()
                .enumerate()
                .for_each(|(n, b)| *b = value(n));
        }
        false => input.copy_from_slice(&block.field),
    }
    let with_field = !input.is_empty();
    let row = |centring: Centring| vec![R::lit(0.0); 3 * centring.values()];
    let (mut field, mut electric) = (row(Centring::Face), row(Centring::Edge));
    let components = solver.components();
    let mut out = vec![R::lit(0.0); components * CELLS];
    let mut faces = vec![vec![R::lit(0.0); components * PATCH * PATCH]; 6];
    let mut targets = faces.iter_mut();
    let mut mass = vec![R::lit(0.0); 3 * Centring::Face.values()];
    let mut fluxes = FaceFluxes {
        sides: std::array::from_fn(|_| targets.next().map(Vec::as_mut_slice)),
        mass: Some(&mut mass),
        field: with_field.then_some(&mut field),
        electric: with_field.then_some(&mut electric),
    };
    let step = PatchStep {
        rates: rates.map(R::lit),
        inverse_dx: rates.map(|rate| R::lit(10.0 * rate)),
        first_order: mask,
        cleaning: Cleaning::default(),
        before: None,
    };
    let outcome = solver.update(&mut scratch, &step, &mut out, &mut fluxes);
    Updated {
        out,
        outcome,
        faces,
        mass,
        field,
        electric,
    }
}
