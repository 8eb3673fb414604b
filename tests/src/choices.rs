//! Every sensible choice of the table `[hydro]`.

use nestar::kernels::choice::Choice;
use nestar::kernels::hydro::{
    EquationOfState, FluidMethod, Limiter, Reconstruction, RiemannSolver, Scheme, Variables,
};

/// Returns every sensible choice of scheme, reconstruction and variables, with all limiters and all Riemann solvers. A stage of a Runge-Kutta
/// scheme and corner transport upwind use the functions as the other schemes do, so that all of them come with `rk2` or `ctu` and `plm` only.
#[must_use]
pub fn all() -> Vec<FluidMethod> {
    let mut methods = Vec::new();
    for &scheme in Scheme::ALL {
        for &reconstruction in Reconstruction::ALL {
            for &variables in Variables::ALL {
                let base = FluidMethod {
                    scheme,
                    reconstruction,
                    variables,
                    ..FluidMethod::default()
                };
                let has_slopes = variables == Variables::Primitive || base.limits_slopes();
                let has_edges = reconstruction != Reconstruction::WenoZ || base.has_stages();
                if !has_slopes || !has_edges {
                    continue;
                }
                let with_all = match scheme {
                    Scheme::MusclHancock | Scheme::VanLeer => true,
                    Scheme::Rk2 | Scheme::Ctu => reconstruction == Reconstruction::Plm,
                    Scheme::Rk3 => false,
                };
                match with_all {
                    true => methods.extend(with_each_function(base)),
                    false => methods.push(base),
                }
            }
        }
    }
    methods
}

/// Returns every sensible choice for an equation of state without energy.
#[must_use]
pub fn without_energy(equation: EquationOfState) -> Vec<FluidMethod> {
    let methods = all().into_iter();
    let methods = methods.map(|method| FluidMethod { equation, ..method });
    methods
        .filter(|method| method.riemann_item().is_some())
        .collect()
}

/// Returns a method with each of the limiters that it uses, and with each of the Riemann solvers.
fn with_each_function(base: FluidMethod) -> impl Iterator<Item = FluidMethod> {
    let limiters = Limiter::ALL.iter().copied();
    let limiters = limiters.filter(move |limiter| base.limits_slopes() && *limiter != base.limiter);
    let solvers = RiemannSolver::ALL.iter().copied();
    let solvers = solvers.filter(move |solver| *solver != base.riemann);
    std::iter::once(base)
        .chain(limiters.map(move |limiter| FluidMethod { limiter, ..base }))
        .chain(solvers.map(move |riemann| FluidMethod { riemann, ..base }))
        .filter(|method| method.riemann_item().is_some())
}

/// Returns the settings of a deck that make a choice.
#[must_use]
pub fn settings(method: &FluidMethod) -> [String; 5] {
    [
        format!("hydro.scheme={}", method.scheme.word()),
        format!("hydro.reconstruction={}", method.reconstruction.word()),
        format!("hydro.variables={}", method.variables.word()),
        format!("hydro.limiter={}", method.limiter.word()),
        format!("hydro.riemann={}", method.riemann.word()),
    ]
}
