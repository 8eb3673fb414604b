//! Selects the passes for an instruction set at run time.
//!
//! Each pass is instantiated separately and called through a function pointer. The number of instantiations is therefore the sum of the
//! choices (limiters, solvers, reconstructions), not their product. All give the same bits.
use super::passes::{
    CirculationPass, ContactPass, CorrectionPass, EdgePass, FlattenPass, FluxPass,
    MeanElectricPass, PlaneOutcome, PredictPass, PrimitivePass, ShockPass, SignalRatePass,
    SlopePass, UpdatePass,
};
use crate::hydro::FluidMethod;
use nestar_device::Real;
use nestar_device::simd::Simd;

/// Selects the vector instructions for a patch update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneChoice {
    /// The widest instructions of the processor.
    #[default]
    Auto,
    /// One cell at a time.
    Scalar,
    /// 256 bits: 4 (f64) or 8 (f32) cells at a time.
    Avx2,
    /// 512 bits: 8 (f64) or 16 (f32) cells at a time.
    Avx512,
}

impl LaneChoice {
    /// Returns the widest available instructions up to the choice, never `Auto`.
    #[must_use]
    pub fn available(self) -> LaneChoice {
        match self {
            LaneChoice::Scalar => LaneChoice::Scalar,
            LaneChoice::Avx512 | LaneChoice::Auto if has_avx512() => LaneChoice::Avx512,
            _ if has_avx2() => LaneChoice::Avx2,
            _ => LaneChoice::Scalar,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

/// Numbers in which a patch can be computed: `f32` and `f64`, with their vectors.
pub trait HydroReal: Real + Simd<E = Self> {
    /// Returns the passes of `method` for the instruction set `lanes`, a result of [`LaneChoice::available`].
    ///
    /// It is a method of the number, so that passes are compiled once, in this crate.
    #[doc(hidden)]
    fn passes(method: &FluidMethod, lanes: LaneChoice) -> Passes<Self>;
}

/// Implements [`HydroReal`] with the vectors of each instruction set.
macro_rules! hydro_real {
    ($number:ty, $narrow:ty, $wide:ty) => {
        impl HydroReal for $number {
            fn passes(method: &FluidMethod, lanes: LaneChoice) -> Passes<Self> {
                match lanes {
                    LaneChoice::Avx512 => wide::passes::<$wide>(method),
                    LaneChoice::Avx2 => narrow::passes::<$narrow>(method),
                    _ => scalar::passes::<$number>(method),
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
hydro_real!(
    f64,
    nestar_device::simd::x86::D4,
    nestar_device::simd::x86::D8
);
#[cfg(target_arch = "x86_64")]
hydro_real!(
    f32,
    nestar_device::simd::x86::S8,
    nestar_device::simd::x86::S16
);
#[cfg(not(target_arch = "x86_64"))]
hydro_real!(f64, f64, f64);
#[cfg(not(target_arch = "x86_64"))]
hydro_real!(f32, f32, f32);

/// Passes of one method for one instruction set.
///
/// All are unsafe: the pointers must be valid for the ranges in the arguments, and the processor must support the instructions.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Passes<E> {
    pub primitives: unsafe fn(&PrimitivePass<E>),
    pub shocks: unsafe fn(&ShockPass<E>) -> bool,
    pub slopes: unsafe fn(&SlopePass<E>),
    pub flatten: unsafe fn(&FlattenPass<E>),
    pub edges: unsafe fn(&EdgePass<E>),
    pub correct: unsafe fn(&CorrectionPass<E>),
    pub fluxes: unsafe fn(&FluxPass<E>),
    pub damped_fluxes: unsafe fn(&FluxPass<E>),
    pub internal_fluxes: unsafe fn(&FluxPass<E>),
    pub scalar_fluxes: unsafe fn(&FluxPass<E>),
    pub predict: unsafe fn(&PredictPass<E>),
    pub update: unsafe fn(&UpdatePass<E>) -> PlaneOutcome<E>,
    pub signal_rate: unsafe fn(&SignalRatePass<E>) -> E,
    pub mean_electric: unsafe fn(&MeanElectricPass<E>),
    pub contact_electric: unsafe fn(&ContactPass<E>),
    pub circulate: unsafe fn(&CirculationPass<E>),
}

/// Defines a module with an entry for every pass under one instruction set, and selects among them.
macro_rules! instruction_set {
    ($module:ident $(, $features:literal)?) => {
        mod $module {
            use super::super::passes::{self, ALONG_AXES, AT_START, CirculationPass, ContactPass, CorrectionPass, EdgePass, FlattenPass, FluxPass, HALF_STEP, MeanElectricPass, PlaneOutcome, PredictPass, PrimitivePass, ShockPass, SignalRatePass, SlopePass, UpdatePass};
            use super::Passes;
            use crate::hydro::law::{Law, select_law};
            use crate::hydro::limiter::select_limiter;
            use crate::hydro::riemann::select_riemann_solver;
            use crate::hydro::{FluidMethod, Limiter, Reconstruction, RiemannSolver, Scheme};
            use nestar_device::simd::Simd;

            instruction_set!(@entry [$($features)?] primitives of L [const DUAL: bool](PrimitivePass));
            instruction_set!(@entry [$($features)?] no_slopes[](SlopePass));
            instruction_set!(@entry [$($features)?] slopes[const LIMITER: u32](SlopePass));
            instruction_set!(@entry [$($features)?] wave_slopes of L [const LIMITER: u32](SlopePass));
            instruction_set!(@entry [$($features)?] parabolas[const WENO: bool](SlopePass));
            instruction_set!(@entry [$($features)?] limited_parabolas[const LIMITER: u32](SlopePass));
            instruction_set!(@entry [$($features)?] wave_parabolas of L [const LIMITER: u32](SlopePass));
            instruction_set!(@entry [$($features)?] flatten[](FlattenPass));
            instruction_set!(@entry [$($features)?] edges of L [const PARABOLIC: bool, const TIME: u32, const FLATTEN: bool, const DUAL: bool](EdgePass));
            instruction_set!(@entry [$($features)?] correct of L [](CorrectionPass));
            instruction_set!(@entry [$($features)?] fluxes of L [const SOLVER: u32](FluxPass));
            instruction_set!(@entry [$($features)?] shocks of L [](ShockPass) -> bool);
            instruction_set!(@entry [$($features)?] damped_fluxes of L [](FluxPass));
            instruction_set!(@entry [$($features)?] internal_fluxes[](FluxPass));
            instruction_set!(@entry [$($features)?] scalar_fluxes[](FluxPass));
            instruction_set!(@entry [$($features)?] predict of L [](PredictPass));
            instruction_set!(@entry [$($features)?] update of L [const DUAL: bool](UpdatePass) -> PlaneOutcome<V::E>);
            instruction_set!(@entry [$($features)?] mean_electric[](MeanElectricPass));
            instruction_set!(@entry [$($features)?] contact_electric[](ContactPass));
            instruction_set!(@entry [$($features)?] circulate[](CirculationPass));
            instruction_set!(@entry [$($features)?] signal_rate of L [const DUAL: bool](SignalRatePass) -> V::E);

            fn slopes_of<V: Simd, L: Law<N>, const N: usize>(method: &FluidMethod) -> unsafe fn(&SlopePass<V::E>) {
                match (method.reconstruction, method.limits_waves()) {
                    (Reconstruction::Constant, _) => no_slopes::<V>,
                    (Reconstruction::Plm, false) => select_limiter!(method.limiter, slopes::<V>),
                    (Reconstruction::Plm, true) => select_limiter!(method.limiter, wave_slopes::<V, L, N>),
                    (Reconstruction::WenoZ, _) => parabolas::<V, true>,
                    (Reconstruction::Ppm, _) if method.preserves_extrema() => parabolas::<V, false>,
                    (Reconstruction::Ppm, false) => select_limiter!(method.limiter, limited_parabolas::<V>),
                    (Reconstruction::Ppm, true) => select_limiter!(method.limiter, wave_parabolas::<V, L, N>),
                }
            }

            fn edges_of<V: Simd, L: Law<N>, const N: usize>(method: &FluidMethod) -> unsafe fn(&EdgePass<V::E>) {
                if method.is_parabolic() {
                    return edges_from::<V, L, N, true>(method);
                }
                edges_from::<V, L, N, false>(method)
            }

            fn edges_from<V: Simd, L: Law<N>, const N: usize, const PARABOLIC: bool>(method: &FluidMethod) -> unsafe fn(&EdgePass<V::E>) {
                match (method.scheme, method.flattens(), method.dual.is_some()) {
                    // dual energy is refused
                    (Scheme::Ctu, false, _) => edges::<V, L, N, PARABOLIC, ALONG_AXES, false, false>,
                    (Scheme::Ctu, true, _) => edges::<V, L, N, PARABOLIC, ALONG_AXES, true, false>,
                    (Scheme::MusclHancock, false, false) => edges::<V, L, N, PARABOLIC, HALF_STEP, false, false>,
                    (Scheme::MusclHancock, false, true) => edges::<V, L, N, PARABOLIC, HALF_STEP, false, true>,
                    (Scheme::MusclHancock, true, false) => edges::<V, L, N, PARABOLIC, HALF_STEP, true, false>,
                    (Scheme::MusclHancock, true, true) => edges::<V, L, N, PARABOLIC, HALF_STEP, true, true>,
                    (_, false, false) => edges::<V, L, N, PARABOLIC, AT_START, false, false>,
                    (_, false, true) => edges::<V, L, N, PARABOLIC, AT_START, false, true>,
                    (_, true, false) => edges::<V, L, N, PARABOLIC, AT_START, true, false>,
                    (_, true, true) => edges::<V, L, N, PARABOLIC, AT_START, true, true>,
                }
            }

            fn passes_of<V: Simd, L: Law<N>, const N: usize>(method: &FluidMethod) -> Passes<V::E> {
                let dual = method.dual.is_some();
                Passes {
                    primitives: if dual { primitives::<V, L, N, true> } else { primitives::<V, L, N, false> },
                    slopes: slopes_of::<V, L, N>(method),
                    flatten: flatten::<V>,
                    edges: edges_of::<V, L, N>(method),
                    correct: correct::<V, L, N>,
                    fluxes: select_riemann_solver!(method.riemann, fluxes::<V, L, N>),
                    shocks: shocks::<V, L, N>,
                    damped_fluxes: damped_fluxes::<V, L, N>,
                    internal_fluxes: internal_fluxes::<V>,
                    scalar_fluxes: scalar_fluxes::<V>,
                    predict: predict::<V, L, N>,
                    update: if dual { update::<V, L, N, true> } else { update::<V, L, N, false> },
                    signal_rate: if dual { signal_rate::<V, L, N, true> } else { signal_rate::<V, L, N, false> },
                    mean_electric: mean_electric::<V>,
                    contact_electric: contact_electric::<V>,
                    circulate: circulate::<V>,
                }
            }

            pub fn passes<V: Simd>(method: &FluidMethod) -> Passes<V::E> {
                select_law!(method, passes_of::<V>)(method)
            }
        }
    };
    (@entry [$($features:literal)?] $pass:ident $(of $law:ident)? [$(const $constant:ident: $kind:ty),*]($arguments:ident) $(-> $result:ty)?) => {
        $(#[cfg_attr(target_arch = "x86_64", target_feature(enable = $features))])?
        unsafe fn $pass<V: Simd, $($law: Law<N>, const N: usize,)? $(const $constant: $kind),*>(arguments: &$arguments<V::E>) $(-> $result)? {
            // SAFETY: the caller's promise, unchanged
            unsafe { passes::$pass::<V, $($law, N,)? $($constant),*>(arguments) }
        }
    };
}

instruction_set!(scalar);
instruction_set!(narrow, "avx2");
instruction_set!(wide, "avx512f,avx512dq,avx512vl,avx512bw");
