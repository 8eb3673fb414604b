//! Laws of the gas: the equation of state, and what the passes of the solver need of a law.
//!
//! A law has `N` components: the gamma law five, laws without energy four ([`barotropic`]), gas with a magnetic field at cell centres nine
//! ([`magnetic`]), with one on cell faces eight ([`transport`]). The passes and the text of devices know `N` and these functions only.
use super::riemann::{self, hlle};
use super::{barotropic, characteristic, dual, eos, hancock, magnetic, transport};
use crate::choice::choices;
use nestar_device::simd::Simd;
use nestar_device::{Lane, device};

choices! {
    $
    /// Equation of state.
    pub enum EquationOfState by select_equation;
    /// Returns `[pressure, squared sound speed]` by an equation of state, which is one of [`EquationOfState`]. Only the gamma law reads
    /// `pressure`; `law` holds its [`constants`](LawConstants).
    fn thermal<R: Simd>(density: R, pressure: R, law: &[R; 2]) -> [R; 2] as (density, pressure, law);
    /// Ideal gas with a constant ratio of specific heats, `gamma`.
    GammaLaw = "gamma-law": gamma_law;
    /// Gas with the constant sound speed `sound_speed`, without an energy.
    Isothermal = "isothermal": barotropic::isothermal;
    /// Pressure `polytropic_constant * density^gamma`, without an energy.
    Polytropic = "polytropic": barotropic::polytropic as barotropic::polytropic_in_each_lane;
}

/// Returns pressure and squared sound speed of ideal gas; `law` holds the ratio of specific heats.
#[device]
pub fn gamma_law<R: Lane>(density: R, pressure: R, law: &[R; 2]) -> [R; 2] {
    [pressure, law[0] * pressure / density]
}

impl EquationOfState {
    /// Returns the number of components of the gas: five with an energy, else four.
    #[must_use]
    pub fn components(self) -> usize {
        if self.has_energy() { 5 } else { 4 }
    }

    /// Returns `true` if the gas has an energy.
    #[must_use]
    pub fn has_energy(self) -> bool {
        self == EquationOfState::GammaLaw
    }
}

/// Constants of an equation of state: the ratio of specific heats; the squared sound speed of isothermal gas; constant and exponent of
/// polytropic gas. Unused ones are 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawConstants(pub [f64; 2]);

/// A ratio of specific heats.
impl From<f64> for LawConstants {
    fn from(gamma: f64) -> Self {
        Self([gamma, 0.0])
    }
}

/// Constants of an equation of state, then cleaning speed and damping of a magnetic field ([`Cleaning`](super::Cleaning)).
pub type LawNumbers<V> = [V; 4];

/// A law of `N` components on the CPU. States and fluxes are those of [`eos`] and [`riemann`], or of [`barotropic`]; `law` holds the
/// [numbers](LawNumbers).
pub trait Law<const N: usize>: 'static {
    /// The primitive variable that determines the pressure.
    const PRESSURE: usize;

    /// `true` if components do not contain all of a conserved quantity, see [`Law::remainder`].
    const HAS_REMAINDER: bool = false;

    /// `true` if the last three components are the means of a field on faces, which changes by electric fields on edges.
    const HAS_FACE_FIELD: bool = false;

    /// Returns the part of each conserved quantity that its component does not contain, see [`magnetic::remainder`].
    #[inline(always)]
    fn remainder<V: Simd>(u: &[V; N]) -> [V; N] {
        *u
    }

    /// Returns the result of the fluxes with its damping.
    #[inline(always)]
    fn damped<V: Simd>(u: &[V; N], _: &LawNumbers<V>) -> [V; N] {
        *u
    }

    /// Returns the pressure from this variable.
    fn pressure<V: Simd>(variable: V, law: &LawNumbers<V>) -> V;

    /// Converts conserved to primitive variables.
    fn primitive<V: Simd>(u: &[V; N], law: &LawNumbers<V>) -> [V; N];

    /// Returns the signal rate of a conserved state, or -1 if the state is unphysical.
    fn checked_signal_rate<V: Simd>(u: &[V; N], inverse_dx: &[V; 3], law: &LawNumbers<V>) -> V;

    /// Returns [`Law::checked_signal_rate`] of gas with the internal energy density `internal`.
    fn checked_signal_rate_from_internal<V: Simd>(
        u: &[V; N],
        internal: V,
        inverse_dx: &[V; 3],
        law: &LawNumbers<V>,
    ) -> V;

    /// Returns the flux of a solver, which is one of [`RiemannSolver`](super::RiemannSolver).
    fn flux<V: Simd, const SOLVER: u32>(l: &[V; N], r: &[V; N], law: &LawNumbers<V>) -> [V; N];

    /// Returns the HLLE flux.
    fn flux_hlle<V: Simd>(l: &[V; N], r: &[V; N], law: &LawNumbers<V>) -> [V; N];

    /// Returns the HLLE flux with smoothed wave speeds.
    fn flux_smoothed<V: Simd>(l: &[V; N], r: &[V; N], law: &LawNumbers<V>) -> [V; N];

    /// Returns the primitive state half a step later, see [`hancock::half_step`].
    fn half_step<V: Simd>(
        w: &[V; N],
        half: &[[V; N]; 3],
        rates: &[V; 3],
        law: &LawNumbers<V>,
    ) -> [V; N];

    /// Returns the primitive state half a step later by the differences along one axis, see [`hancock::half_step_along`]. Not with a magnetic
    /// field.
    #[inline(always)]
    fn half_step_along<V: Simd>(_: &[V; N], _: &[V; N], _: V, _: &LawNumbers<V>) -> [V; N] {
        unreachable!("states with magnetic fields are not traced along one axis")
    }

    /// Returns the primitive state at a face after its change by the fluxes across, see [`hancock::corrected`]. Not with a magnetic field.
    #[inline(always)]
    fn corrected<V: Simd>(_: &[V; N], _: &[V; N], _: &LawNumbers<V>) -> [V; N] {
        unreachable!("states with magnetic fields are not corrected by fluxes across")
    }

    /// Returns the primitive state after the predictor, see [`hancock::predicted`].
    fn predicted<V: Simd>(u: &[V; N], old: &[V; N], law: &LawNumbers<V>) -> [V; N];

    /// Returns the states at the faces, see [`hancock::edges`].
    fn edges<V: Simd>(w: &[V; N], h: &[V; N], distances: [&[V; N]; 2]) -> ([V; N], [V; N]);

    /// Returns the states at the faces, see [`hancock::traced_edges`].
    fn traced_edges<V: Simd>(
        w: &[V; N],
        h: &[V; N],
        distances: [&[V; N]; 2],
        rate: V,
        law: &LawNumbers<V>,
    ) -> ([V; N], [V; N]);

    /// Returns differences that are limited in characteristic variables: `limit` takes an amplitude of the differences to the cells below
    /// and above the state `w`.
    fn limited_waves<V: Simd>(
        w: &[V; N],
        differences: [&[V; N]; 2],
        law: &LawNumbers<V>,
        limit: impl Fn(V, V) -> V,
    ) -> [V; N];
}

/// Calls a function of the laws, with parameters `L: Law<N>, const N: usize` after the given ones, for a [`FluidMethod`](super::FluidMethod).
macro_rules! select_law {
    ($method:expr, $function:ident::<$($before:tt),+>) => {
        match ($method.equation, $method.magnetic) {
            ($crate::hydro::EquationOfState::GammaLaw, None) => {
                $function::<$($before),+, $crate::hydro::law::GammaLaw, 5>
            }
            (
                $crate::hydro::EquationOfState::GammaLaw,
                Some($crate::hydro::MagneticMethod::Glm),
            ) => {
                $function::<$($before),+, $crate::hydro::law::Magnetised, 9>
            }
            (
                $crate::hydro::EquationOfState::GammaLaw,
                Some($crate::hydro::MagneticMethod::ConstrainedTransport),
            ) => {
                $function::<$($before),+, $crate::hydro::law::WithFaceField, 8>
            }
            ($crate::hydro::EquationOfState::Isothermal, _) => {
                $function::<$($before),+, $crate::hydro::law::Isothermal, 4>
            }
            ($crate::hydro::EquationOfState::Polytropic, _) => {
                $function::<$($before),+, $crate::hydro::law::Polytropic, 4>
            }
        }
    };
}
pub(crate) use select_law;

/// Ideal gas with a constant ratio of specific heats.
pub struct GammaLaw;

/// Isothermal gas.
pub type Isothermal = Barotropic<{ EquationOfState::Isothermal as u32 }>;

/// Polytropic gas.
pub type Polytropic = Barotropic<{ EquationOfState::Polytropic as u32 }>;

impl Law<5> for GammaLaw {
    const PRESSURE: usize = 4;

    #[inline(always)]
    fn pressure<V: Simd>(variable: V, _: &LawNumbers<V>) -> V {
        variable
    }

    #[inline(always)]
    fn primitive<V: Simd>(u: &[V; 5], law: &LawNumbers<V>) -> [V; 5] {
        eos::primitive_from_conserved(u, law[0])
    }

    #[inline(always)]
    fn checked_signal_rate<V: Simd>(u: &[V; 5], inverse_dx: &[V; 3], law: &LawNumbers<V>) -> V {
        eos::checked_signal_rate(u, inverse_dx, law[0])
    }

    #[inline(always)]
    fn checked_signal_rate_from_internal<V: Simd>(
        u: &[V; 5],
        internal: V,
        inverse_dx: &[V; 3],
        law: &LawNumbers<V>,
    ) -> V {
        dual::checked_signal_rate(u, internal, inverse_dx, law[0])
    }

    #[inline(always)]
    fn flux<V: Simd, const SOLVER: u32>(l: &[V; 5], r: &[V; 5], law: &LawNumbers<V>) -> [V; 5] {
        riemann::flux::<V, SOLVER>(l, r, law[0])
    }

    #[inline(always)]
    fn flux_hlle<V: Simd>(l: &[V; 5], r: &[V; 5], law: &LawNumbers<V>) -> [V; 5] {
        hlle::flux_hlle(l, r, law[0])
    }

    #[inline(always)]
    fn flux_smoothed<V: Simd>(l: &[V; 5], r: &[V; 5], law: &LawNumbers<V>) -> [V; 5] {
        hlle::flux_smoothed(l, r, law[0])
    }

    #[inline(always)]
    fn half_step<V: Simd>(
        w: &[V; 5],
        half: &[[V; 5]; 3],
        rates: &[V; 3],
        law: &LawNumbers<V>,
    ) -> [V; 5] {
        hancock::half_step(w, half, rates, law[0])
    }

    #[inline(always)]
    fn half_step_along<V: Simd>(w: &[V; 5], half: &[V; 5], rate: V, law: &LawNumbers<V>) -> [V; 5] {
        hancock::half_step_along(w, half, rate, law[0])
    }

    #[inline(always)]
    fn corrected<V: Simd>(w: &[V; 5], change: &[V; 5], law: &LawNumbers<V>) -> [V; 5] {
        hancock::corrected(w, change, law[0])
    }

    #[inline(always)]
    fn predicted<V: Simd>(u: &[V; 5], old: &[V; 5], law: &LawNumbers<V>) -> [V; 5] {
        hancock::predicted(u, old, law[0])
    }

    #[inline(always)]
    fn edges<V: Simd>(w: &[V; 5], h: &[V; 5], [lower, upper]: [&[V; 5]; 2]) -> ([V; 5], [V; 5]) {
        hancock::edges(w, h, lower, upper)
    }

    #[inline(always)]
    fn traced_edges<V: Simd>(
        w: &[V; 5],
        h: &[V; 5],
        [lower, upper]: [&[V; 5]; 2],
        rate: V,
        law: &LawNumbers<V>,
    ) -> ([V; 5], [V; 5]) {
        hancock::traced_edges(w, h, lower, upper, rate, law[0])
    }

    #[inline(always)]
    fn limited_waves<V: Simd>(
        w: &[V; 5],
        [below, above]: [&[V; 5]; 2],
        law: &LawNumbers<V>,
        limit: impl Fn(V, V) -> V,
    ) -> [V; 5] {
        let basis = characteristic::basis(w, law[0]);
        let (below, above) = (
            characteristic::project(below, &basis),
            characteristic::project(above, &basis),
        );
        let mut limited = below;
        for v in 0..5 {
            limited[v] = limit(below[v], above[v]);
        }
        characteristic::restore(&limited, &basis)
    }
}

/// Gas without energy, by an equation of state of [`EquationOfState`].
pub struct Barotropic<const EQUATION: u32>;

/// Returns pressure and squared sound speed of gas without energy.
#[inline(always)]
fn of<V: Simd, const EQUATION: u32>(density: V, law: &LawNumbers<V>) -> [V; 2] {
    thermal::<V, EQUATION>(density, density, &[law[0], law[1]])
}

impl<const EQUATION: u32> Law<4> for Barotropic<EQUATION> {
    const PRESSURE: usize = 0;

    #[inline(always)]
    fn pressure<V: Simd>(variable: V, law: &LawNumbers<V>) -> V {
        of::<V, EQUATION>(variable, law)[0]
    }

    #[inline(always)]
    fn primitive<V: Simd>(u: &[V; 4], _: &LawNumbers<V>) -> [V; 4] {
        barotropic::primitive_from_conserved(u)
    }

    #[inline(always)]
    fn checked_signal_rate<V: Simd>(u: &[V; 4], inverse_dx: &[V; 3], law: &LawNumbers<V>) -> V {
        barotropic::checked_signal_rate(u, &of::<V, EQUATION>(u[0], law), inverse_dx)
    }

    #[inline(always)]
    fn checked_signal_rate_from_internal<V: Simd>(
        _: &[V; 4],
        _: V,
        _: &[V; 3],
        _: &LawNumbers<V>,
    ) -> V {
        unreachable!("gas without energy has no dual energy")
    }

    #[inline(always)]
    fn flux<V: Simd, const SOLVER: u32>(l: &[V; 4], r: &[V; 4], law: &LawNumbers<V>) -> [V; 4] {
        let (of_l, of_r) = (of::<V, EQUATION>(l[0], law), of::<V, EQUATION>(r[0], law));
        riemann::barotropic::flux::<V, SOLVER>(l, r, &of_l, &of_r)
    }

    #[inline(always)]
    fn flux_hlle<V: Simd>(l: &[V; 4], r: &[V; 4], law: &LawNumbers<V>) -> [V; 4] {
        let (of_l, of_r) = (of::<V, EQUATION>(l[0], law), of::<V, EQUATION>(r[0], law));
        riemann::barotropic::flux_hlle(l, r, &of_l, &of_r)
    }

    #[inline(always)]
    fn flux_smoothed<V: Simd>(l: &[V; 4], r: &[V; 4], law: &LawNumbers<V>) -> [V; 4] {
        let (of_l, of_r) = (of::<V, EQUATION>(l[0], law), of::<V, EQUATION>(r[0], law));
        riemann::barotropic::flux_smoothed(l, r, &of_l, &of_r)
    }

    #[inline(always)]
    fn half_step<V: Simd>(
        w: &[V; 4],
        half: &[[V; 4]; 3],
        rates: &[V; 3],
        law: &LawNumbers<V>,
    ) -> [V; 4] {
        barotropic::half_step(w, half, rates, of::<V, EQUATION>(w[0], law)[1])
    }

    #[inline(always)]
    fn half_step_along<V: Simd>(w: &[V; 4], half: &[V; 4], rate: V, law: &LawNumbers<V>) -> [V; 4] {
        barotropic::half_step_along(w, half, rate, of::<V, EQUATION>(w[0], law)[1])
    }

    #[inline(always)]
    fn corrected<V: Simd>(w: &[V; 4], change: &[V; 4], _: &LawNumbers<V>) -> [V; 4] {
        barotropic::corrected(w, change)
    }

    #[inline(always)]
    fn predicted<V: Simd>(u: &[V; 4], old: &[V; 4], _: &LawNumbers<V>) -> [V; 4] {
        barotropic::predicted(u, old)
    }

    #[inline(always)]
    fn edges<V: Simd>(w: &[V; 4], h: &[V; 4], [lower, upper]: [&[V; 4]; 2]) -> ([V; 4], [V; 4]) {
        barotropic::edges(w, h, lower, upper)
    }

    #[inline(always)]
    fn traced_edges<V: Simd>(
        w: &[V; 4],
        h: &[V; 4],
        [lower, upper]: [&[V; 4]; 2],
        rate: V,
        law: &LawNumbers<V>,
    ) -> ([V; 4], [V; 4]) {
        let c2 = of::<V, EQUATION>(w[0], law)[1];
        barotropic::traced_edges(w, h, lower, upper, rate, c2)
    }

    #[inline(always)]
    fn limited_waves<V: Simd>(
        w: &[V; 4],
        [below, above]: [&[V; 4]; 2],
        law: &LawNumbers<V>,
        limit: impl Fn(V, V) -> V,
    ) -> [V; 4] {
        let basis = barotropic::basis(w[0], of::<V, EQUATION>(w[0], law)[1]);
        let (below, above) = (
            barotropic::project(below, &basis),
            barotropic::project(above, &basis),
        );
        let mut limited = below;
        for v in 0..4 {
            limited[v] = limit(below[v], above[v]);
        }
        barotropic::restore(&limited, &basis)
    }
}

/// Ideal gas with a magnetic field.
pub struct Magnetised;

/// Returns the ratio of specific heats and the cleaning speed.
#[inline(always)]
fn with_cleaning<V: Simd>(law: &LawNumbers<V>) -> [V; 2] {
    [law[0], law[2]]
}

impl Law<9> for Magnetised {
    const PRESSURE: usize = 4;
    const HAS_REMAINDER: bool = true;

    #[inline(always)]
    fn remainder<V: Simd>(u: &[V; 9]) -> [V; 9] {
        magnetic::remainder(u)
    }

    #[inline(always)]
    fn damped<V: Simd>(u: &[V; 9], law: &LawNumbers<V>) -> [V; 9] {
        let mut damped = *u;
        damped[8] = law[3] * u[8];
        damped
    }

    #[inline(always)]
    fn pressure<V: Simd>(variable: V, _: &LawNumbers<V>) -> V {
        variable
    }

    #[inline(always)]
    fn primitive<V: Simd>(u: &[V; 9], law: &LawNumbers<V>) -> [V; 9] {
        magnetic::primitive_from_conserved(u, law[0])
    }

    #[inline(always)]
    fn checked_signal_rate<V: Simd>(u: &[V; 9], inverse_dx: &[V; 3], law: &LawNumbers<V>) -> V {
        magnetic::checked_signal_rate(u, inverse_dx, law[0])
    }

    #[inline(always)]
    fn checked_signal_rate_from_internal<V: Simd>(
        u: &[V; 9],
        internal: V,
        inverse_dx: &[V; 3],
        law: &LawNumbers<V>,
    ) -> V {
        magnetic::checked_signal_rate_from_internal(u, internal, inverse_dx, law[0])
    }

    #[inline(always)]
    fn flux<V: Simd, const SOLVER: u32>(l: &[V; 9], r: &[V; 9], law: &LawNumbers<V>) -> [V; 9] {
        riemann::magnetic::flux::<V, SOLVER>(l, r, &with_cleaning(law))
    }

    #[inline(always)]
    fn flux_hlle<V: Simd>(l: &[V; 9], r: &[V; 9], law: &LawNumbers<V>) -> [V; 9] {
        riemann::magnetic::flux_hlle(l, r, &with_cleaning(law))
    }

    #[inline(always)]
    fn flux_smoothed<V: Simd>(l: &[V; 9], r: &[V; 9], law: &LawNumbers<V>) -> [V; 9] {
        riemann::magnetic::flux_smoothed(l, r, &with_cleaning(law))
    }

    #[inline(always)]
    fn half_step<V: Simd>(
        w: &[V; 9],
        half: &[[V; 9]; 3],
        rates: &[V; 3],
        law: &LawNumbers<V>,
    ) -> [V; 9] {
        magnetic::half_step(w, half, rates, &with_cleaning(law))
    }

    #[inline(always)]
    fn predicted<V: Simd>(_: &[V; 9], _: &[V; 9], _: &LawNumbers<V>) -> [V; 9] {
        unreachable!("the predictor does not know magnetic fields")
    }

    #[inline(always)]
    fn edges<V: Simd>(w: &[V; 9], h: &[V; 9], [lower, upper]: [&[V; 9]; 2]) -> ([V; 9], [V; 9]) {
        magnetic::edges(w, h, lower, upper)
    }

    #[inline(always)]
    fn traced_edges<V: Simd>(
        w: &[V; 9],
        h: &[V; 9],
        [lower, upper]: [&[V; 9]; 2],
        rate: V,
        law: &LawNumbers<V>,
    ) -> ([V; 9], [V; 9]) {
        magnetic::traced_edges(w, h, lower, upper, rate, &with_cleaning(law))
    }

    #[inline(always)]
    fn limited_waves<V: Simd>(
        _: &[V; 9],
        _: [&[V; 9]; 2],
        _: &LawNumbers<V>,
        _: impl Fn(V, V) -> V,
    ) -> [V; 9] {
        unreachable!("slopes with magnetic fields are limited in primitive variables")
    }
}

/// Ideal gas with a magnetic field on cell faces.
pub struct WithFaceField;

/// Returns the numbers of the law with the cleaning speed 0.
#[inline(always)]
fn at_rest<V: Simd>(law: &LawNumbers<V>) -> LawNumbers<V> {
    let zero = V::lit(0.0);
    [law[0], law[1], zero, zero]
}

/// Returns both states without their cleaning variables.
#[inline(always)]
fn both_without_cleaning<V: Simd>((low, high): ([V; 9], [V; 9])) -> ([V; 8], [V; 8]) {
    (
        transport::without_cleaning(&low),
        transport::without_cleaning(&high),
    )
}

impl Law<8> for WithFaceField {
    const PRESSURE: usize = 4;
    const HAS_REMAINDER: bool = true;
    const HAS_FACE_FIELD: bool = true;

    #[inline(always)]
    fn remainder<V: Simd>(u: &[V; 8]) -> [V; 8] {
        transport::remainder(u)
    }

    #[inline(always)]
    fn pressure<V: Simd>(variable: V, _: &LawNumbers<V>) -> V {
        variable
    }

    #[inline(always)]
    fn primitive<V: Simd>(u: &[V; 8], law: &LawNumbers<V>) -> [V; 8] {
        transport::without_cleaning(&Magnetised::primitive(&transport::with_cleaning(u), law))
    }

    #[inline(always)]
    fn checked_signal_rate<V: Simd>(u: &[V; 8], inverse_dx: &[V; 3], law: &LawNumbers<V>) -> V {
        Magnetised::checked_signal_rate(&transport::with_cleaning(u), inverse_dx, law)
    }

    #[inline(always)]
    fn checked_signal_rate_from_internal<V: Simd>(
        u: &[V; 8],
        internal: V,
        inverse_dx: &[V; 3],
        law: &LawNumbers<V>,
    ) -> V {
        let u = transport::with_cleaning(u);
        Magnetised::checked_signal_rate_from_internal(&u, internal, inverse_dx, law)
    }

    #[inline(always)]
    fn flux<V: Simd, const SOLVER: u32>(l: &[V; 8], r: &[V; 8], law: &LawNumbers<V>) -> [V; 8] {
        let [l, r] = [l, r].map(transport::with_cleaning);
        transport::without_cleaning(&Magnetised::flux::<V, SOLVER>(&l, &r, &at_rest(law)))
    }

    #[inline(always)]
    fn flux_hlle<V: Simd>(l: &[V; 8], r: &[V; 8], law: &LawNumbers<V>) -> [V; 8] {
        let [l, r] = [l, r].map(transport::with_cleaning);
        transport::without_cleaning(&Magnetised::flux_hlle(&l, &r, &at_rest(law)))
    }

    #[inline(always)]
    fn flux_smoothed<V: Simd>(l: &[V; 8], r: &[V; 8], law: &LawNumbers<V>) -> [V; 8] {
        let [l, r] = [l, r].map(transport::with_cleaning);
        transport::without_cleaning(&Magnetised::flux_smoothed(&l, &r, &at_rest(law)))
    }

    #[inline(always)]
    fn half_step<V: Simd>(
        w: &[V; 8],
        half: &[[V; 8]; 3],
        rates: &[V; 3],
        law: &LawNumbers<V>,
    ) -> [V; 8] {
        let [x, y, z] = half;
        let half = [x, y, z].map(transport::with_cleaning);
        let w = transport::with_cleaning(w);
        transport::without_cleaning(&Magnetised::half_step(&w, &half, rates, &at_rest(law)))
    }

    #[inline(always)]
    fn predicted<V: Simd>(_: &[V; 8], _: &[V; 8], _: &LawNumbers<V>) -> [V; 8] {
        unreachable!("the predictor does not know magnetic fields")
    }

    #[inline(always)]
    fn edges<V: Simd>(w: &[V; 8], h: &[V; 8], distances: [&[V; 8]; 2]) -> ([V; 8], [V; 8]) {
        let [w, h] = [w, h].map(transport::with_cleaning);
        let [lower, upper] = distances.map(transport::with_cleaning);
        both_without_cleaning(Magnetised::edges(&w, &h, [&lower, &upper]))
    }

    #[inline(always)]
    fn traced_edges<V: Simd>(
        w: &[V; 8],
        h: &[V; 8],
        distances: [&[V; 8]; 2],
        rate: V,
        law: &LawNumbers<V>,
    ) -> ([V; 8], [V; 8]) {
        let [w, h] = [w, h].map(transport::with_cleaning);
        let [lower, upper] = distances.map(transport::with_cleaning);
        let (distances, law) = ([&lower, &upper], at_rest(law));
        both_without_cleaning(Magnetised::traced_edges(&w, &h, distances, rate, &law))
    }

    #[inline(always)]
    fn limited_waves<V: Simd>(
        _: &[V; 8],
        _: [&[V; 8]; 2],
        _: &LawNumbers<V>,
        _: impl Fn(V, V) -> V,
    ) -> [V; 8] {
        unreachable!("slopes with magnetic fields are limited in primitive variables")
    }
}
