//! Device program of the gas: compile-time options and kernel skeletons.

use crate::hydro::{FluidMethod, LawConstants, MagneticMethod, Reconstruction, Scheme};
use crate::hydro::{
    barotropic, characteristic, dual, eos, hancock, magnetic, ppm, riemann, shock, transport, weno,
};
use crate::mesh::device::CIRCULATIONS;
use crate::mesh::parameters::{CirculationRegisterView, FluxRegisterView, GatherView};
use crate::mesh::{circulations, fluxes, means};
use crate::{CELLS, PATCH};
use nestar_device::{Address, Item, device};

/// Step of a patch; needs the gather and then [`FluidProgram::text`] before it.
pub const STEP: &str = concat!(
    include_str!("../../mesh/patch_faces.cuh"),
    include_str!("states.cuh"),
    include_str!("transport.cuh"),
    include_str!("fluid.cu")
);
/// Signal rates, and collection of cells that need first-order fluxes; follows [`STEP`].
pub const RATES: &str = include_str!("rates.cu");

/// Functions of the law with an energy.
const GAMMA_LAW: &str = include_str!("gamma_law.cuh");
/// Functions of the laws without energy.
const BAROTROPIC: &str = include_str!("barotropic.cuh");

/// Functions of the law with a magnetic field.
const MAGNETIC: &str = concat!(
    include_str!("magnetic.cuh"),
    include_str!("without_waves.cuh")
);

/// Functions of the law with a magnetic field on faces.
const FACE_FIELD: &str = concat!(
    include_str!("face_field.cuh"),
    include_str!("without_waves.cuh")
);

/// Where a block of the fluid step keeps its scratch. The results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScratchPlacement {
    /// All of it is in shared memory. States at faces are computed once, but not with a field on faces or with first fluxes that correct them.
    Shared,
    /// Cells and first fluxes are in shared memory, fluxes in global memory. States at faces are computed for both cells of each face.
    Split,
    /// All of it is in global memory. States at faces are computed as in `Split`.
    Global,
}

/// Sizes of the scratch of a block, in values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchSize {
    /// In shared memory.
    pub shared: usize,
    /// In global memory.
    pub global: usize,
}

/// Compile-time options of a program for the fluid step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FluidProgram {
    /// The numerical method.
    pub method: FluidMethod,
    /// Constants of the equation of state.
    pub law: LawConstants,
    /// Passive scalars.
    pub scalars: usize,
    /// `true` if values are `f64`.
    pub double: bool,
    /// `true` if cells may fall back to first-order fluxes, for which the step keeps its input.
    pub first_order_fallback: bool,
    /// `true` if the step stores the mass fluxes through all faces.
    pub mass_fluxes: bool,
    /// Where a block keeps its scratch.
    pub placement: ScratchPlacement,
    /// Threads per block.
    pub threads: u32,
    /// Blocks that should fit on a multiprocessor.
    pub blocks: u32,
}

impl FluidProgram {
    /// Returns the size of a block's scratch.
    #[must_use]
    pub fn scratch(&self) -> ScratchSize {
        let components = self.method.gas_components() + self.scalars;
        let ghosts = self.method.ghosts();
        let predictor = self.method.scheme == Scheme::VanLeer;
        let cube = |layers: usize| (PATCH + 2 * layers).pow(3);
        let reach = ghosts - usize::from(predictor);
        let block = components * cube(reach);
        let input = match predictor {
            true => components * cube(ghosts),
            false => 0,
        };
        let has_field = self.method.has_face_field();
        let across = PATCH + 2 * usize::from(has_field);
        let faces = (PATCH + 1) * across * across;
        let edges = 2 * 3 * self.method.variables_of_law() * faces;
        let field = if has_field { 3 * faces } else { 0 };
        let corrects = self.method.scheme == Scheme::Ctu;
        let at_faces = has_field || corrects || self.placement != ScratchPlacement::Shared;
        let kept = match self.first_order_fallback || at_faces {
            true => input,
            false => 0,
        };
        let states = match at_faces && self.method.scheme == Scheme::MusclHancock {
            true => self.method.variables_of_law() * (PATCH + 2).pow(3),
            false => 0,
        };
        let first = match corrects {
            true => 3 * self.method.variables_of_law() * (PATCH + 1) * (PATCH + 2).pow(2),
            false => 0,
        };
        let before_edges = block + kept + field + states + first;
        let cells = before_edges.max(block + input);
        let all = (before_edges + edges).max(cells);
        let [shared, global] = match self.placement {
            ScratchPlacement::Shared => [all, 0],
            ScratchPlacement::Split => [cells, edges],
            ScratchPlacement::Global => [0, all],
        };
        ScratchSize { shared, global }
    }

    /// Returns the size of a value in bytes.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        if self.double { 8 } else { 4 }
    }

    /// Returns the part of namespace `fluid` that depends on the options.
    #[must_use]
    pub fn text(&self) -> String {
        let m = &self.method;
        let limiter = m.limiter.item().path();
        let [kinetic, gradient, jump, magnetic] =
            (m.dual.map_or([0.0; 4], |dual| dual.thresholds())).map(literal);
        format!(
            "{}#define FACE_FIELD {}\n\
             namespace fluid {{\n\
             constexpr int GAS = {}, UNCORRECTED = {}, GHOSTS = {}, THREADS = {}, MIN_BLOCKS = {};\n\
             constexpr bool HALF_STEP = {}, CORRECTED = {}, PREDICTOR = {}, STAGED = {}, PARABOLIC = {}, EXTREMA = {}, FLATTEN = {}, WENO = {}, CONSTANT = {}, WAVES = {}, KEEP_INPUT = {}, CELLS_IN_SHARED = {}, FLUXES_IN_SHARED = {}, MASS_FLUXES = {}, DUAL = {}, CURE = {};\n\
             RS_FN constexpr rs::arr<field::REAL, 2> law() {{ return rs::arr<field::REAL, 2>{{{{(field::REAL){}, (field::REAL){}}}}}; }}\n\
             RS_FN constexpr field::REAL theta() {{ return (field::REAL){}; }}\n\
             RS_FN constexpr rs::arr<field::REAL, 4> thresholds() {{ return rs::arr<field::REAL, 4>{{{{(field::REAL){kinetic}, \
             (field::REAL){gradient}, (field::REAL){jump}, (field::REAL){magnetic}}}}}; }}\n\
             RS_FN field::REAL half_slope(field::REAL a, field::REAL b) {{ return {limiter}<field::REAL>(a, b, theta()); }}\n\
             typedef rs::arr<field::REAL, GAS> State;\n\
             {}\
             }}\n{}",
            if m.has_face_field() { CIRCULATIONS } else { "" },
            i32::from(m.has_face_field()),
            m.variables_of_law(),
            m.cleaning_component().map_or(-1, |c| c as i32),
            m.ghosts(),
            self.threads,
            self.blocks,
            m.scheme == Scheme::MusclHancock,
            m.scheme == Scheme::Ctu,
            m.scheme == Scheme::VanLeer,
            m.has_stages(),
            m.is_parabolic(),
            m.preserves_extrema(),
            m.flattens(),
            m.reconstruction == Reconstruction::WenoZ,
            m.reconstruction == Reconstruction::Constant,
            m.limits_waves(),
            self.first_order_fallback,
            self.placement != ScratchPlacement::Global,
            self.placement == ScratchPlacement::Shared,
            self.mass_fluxes,
            m.dual.is_some(),
            m.cures_shocks(),
            literal(self.law.0[0]),
            literal(self.law.0[1]),
            literal(m.minmod_theta),
            self.solver(),
            match (m.equation.has_energy(), m.magnetic) {
                (true, None) => GAMMA_LAW,
                (true, Some(MagneticMethod::ConstrainedTransport)) => FACE_FIELD,
                (true, Some(MagneticMethod::Glm)) => MAGNETIC,
                (false, _) => BAROTROPIC,
            },
        )
    }

    /// Returns the functions that depend on the equation of state and on the Riemann solver.
    fn solver(&self) -> String {
        let m = &self.method;
        let Some(riemann) = m.riemann_item().map(Item::path) else {
            return String::new();
        };
        if m.has_face_field() {
            return format!(
                "RS_FN rs::arr<field::REAL, 2> numbers() {{ return rs::arr<field::REAL, 2>{{{{law().d[0], (field::REAL)0}}}}; }}\n\
                 RS_FN State riemann(const State& l, const State& r, field::REAL) {{ return \
                 ::nestar_kernels::hydro::transport::without_cleaning<field::REAL>({riemann}<field::REAL>(\
                 ::nestar_kernels::hydro::transport::with_cleaning<field::REAL>(l), \
                 ::nestar_kernels::hydro::transport::with_cleaning<field::REAL>(r), numbers())); }}\n"
            );
        }
        if m.magnetic.is_some() {
            return format!(
                "RS_FN rs::arr<field::REAL, 2> numbers(field::REAL speed) {{ return rs::arr<field::REAL, 2>{{{{law().d[0], speed}}}}; }}\n\
                 RS_FN State riemann(const State& l, const State& r, field::REAL speed) {{ return {riemann}<field::REAL>(l, r, numbers(speed)); }}\n"
            );
        }
        if m.equation.has_energy() {
            return format!(
                "RS_FN State riemann(const State& l, const State& r, field::REAL) {{ return {riemann}<field::REAL>(l, r, law().d[0]); }}\n"
            );
        }
        let equation = m.equation.item().path();
        format!(
            "RS_FN rs::arr<field::REAL, 2> thermal(field::REAL density) {{ return {equation}<field::REAL>(density, density, law()); }}\n\
             RS_FN State riemann(const State& l, const State& r, field::REAL) {{ return {riemann}<field::REAL>(l, r, thermal(l.d[0]), thermal(r.d[0])); }}\n"
        )
    }

    /// Returns the `#[device]` functions that the skeletons call.
    #[must_use]
    pub fn items(&self) -> Vec<&'static Item> {
        let mut items = vec![
            FaceFieldParameters,
            StepParameters,
            RateParameters,
            CollectParameters,
            eos::primitive_from_internal::ITEM,
            dual::checked_signal_rate::ITEM,
            dual::upwind_state::ITEM,
            dual::advanced::ITEM,
            dual::max_velocity_change_squared::ITEM,
            dual::compression_jump::ITEM,
            dual::slope_factor::ITEM,
            dual::reconcile_energies::ITEM,
            dual::reconciled_energy::ITEM,
            shock::shock_along::ITEM,
            shock::damped::ITEM,
            hancock::half_step_scalar::ITEM,
            hancock::transverse_change::ITEM,
            fluxes::advanced::ITEM,
            fluxes::staged::ITEM,
            fluxes::with_kept_remainder::ITEM,
            fluxes::with_share::ITEM,
            weno::weno_z::ITEM,
            hancock::traced_scalar::ITEM,
            hancock::range_around::ITEM,
            hancock::bounded::ITEM,
            ppm::parabola::ITEM,
            ppm::bounded_parabola::ITEM,
            ppm::limited_parabola::ITEM,
            ppm::flattening::ITEM,
            riemann::flux_of_scalar::ITEM,
            riemann::normalized_fraction::ITEM,
            fluxes::mean4::ITEM,
            self.method.limiter.item(),
        ];
        items.extend(self.method.riemann_item());
        items.extend(
            match (self.method.equation.has_energy(), self.method.magnetic) {
                (true, None) => gamma_law_items(),
                (true, Some(MagneticMethod::ConstrainedTransport)) => face_field_items(),
                (true, Some(MagneticMethod::Glm)) => magnetic_items(),
                (false, _) => barotropic_items(),
            },
        );
        if !self.method.equation.has_energy() {
            items.push(self.method.equation.item());
        }
        items
    }
}

/// Returns the functions in [`GAMMA_LAW`].
fn gamma_law_items() -> Vec<&'static Item> {
    vec![
        eos::primitive_from_conserved::ITEM,
        eos::checked_signal_rate::ITEM,
        hancock::half_step::ITEM,
        hancock::half_step_along::ITEM,
        hancock::corrected::ITEM,
        hancock::predicted::ITEM,
        hancock::edges::ITEM,
        hancock::traced_edges::ITEM,
        riemann::hlle::flux_hlle::ITEM,
        riemann::hlle::flux_smoothed::ITEM,
        characteristic::basis::ITEM,
        characteristic::project::ITEM,
        characteristic::restore::ITEM,
    ]
}

/// Returns the functions in [`MAGNETIC`].
fn magnetic_items() -> Vec<&'static Item> {
    vec![
        magnetic::remainder::ITEM,
        magnetic::primitive_from_conserved::ITEM,
        magnetic::checked_signal_rate::ITEM,
        magnetic::checked_signal_rate_from_internal::ITEM,
        magnetic::half_step::ITEM,
        magnetic::edges::ITEM,
        magnetic::traced_edges::ITEM,
        riemann::magnetic::flux_hlle::ITEM,
        riemann::magnetic::flux_smoothed::ITEM,
    ]
}

/// Returns the functions in [`FACE_FIELD`].
fn face_field_items() -> Vec<&'static Item> {
    let mut items = magnetic_items();
    items.extend([
        transport::with_cleaning::ITEM,
        transport::without_cleaning::ITEM,
        transport::remainder::ITEM,
        transport::electric_field_along::ITEM,
        transport::mean_electric_field::ITEM,
        transport::contact_electric_field::ITEM,
        transport::with_field::ITEM,
        transport::is_physical::ITEM,
        CellFieldParameters,
        ExtremesParameters,
        circulations::circulated::ITEM,
        circulations::place_around::ITEM,
        circulations::index_on_surface::ITEM,
        means::mean2::ITEM,
    ]);
    items
}

/// Returns the functions in [`BAROTROPIC`].
fn barotropic_items() -> Vec<&'static Item> {
    vec![
        barotropic::primitive_from_conserved::ITEM,
        barotropic::checked_signal_rate::ITEM,
        barotropic::half_step::ITEM,
        barotropic::half_step_along::ITEM,
        barotropic::corrected::ITEM,
        barotropic::predicted::ITEM,
        barotropic::edges::ITEM,
        barotropic::traced_edges::ITEM,
        riemann::barotropic::flux_hlle::ITEM,
        riemann::barotropic::flux_smoothed::ITEM,
        barotropic::basis::ITEM,
        barotropic::project::ITEM,
        barotropic::restore::ITEM,
    ]
}

/// Returns a double as a C++ literal with all its bits.
fn literal(x: f64) -> String {
    // seventeen digits identify every double
    format!("{x:.17e}")
}

const _: () = assert!(CELLS == 512, "masks of cells are sixteen words of 32 bits");

/// Result of a launch of the step's kernels.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct Status {
    /// Bits of the largest signal rate of the level, in the precision of the run.
    pub largest_rate: u64,
    /// Patches with unphysical cells (or words of cells, while cells are collected).
    pub unphysical: u32,
    /// Cells that take first-order fluxes.
    pub first_order: u32,
    /// Cells in which the internal energy replaced the total one, with dual energy.
    pub replaced: u64,
}

/// Magnetic field on faces in `fluid_step`; unused without one.
#[device]
#[derive(Clone, Copy)]
pub struct FaceFieldParameters<R> {
    /// View of the level, for the kernel that gathers faces.
    pub view: GatherView<R>,
    /// Registers for circulations along edges of coarse-fine borders.
    pub registers: CirculationRegisterView<R>,
    /// Gathered faces of each row to advance, in the order of the rows, `[count][component][k][j][i]` with one more value along the axis of a
    /// component.
    pub gathered: Address<R>,
    /// The bank to write.
    pub next: Address<R>,
}

/// Parameters of `fluid_step`.
#[device]
#[derive(Clone, Copy)]
pub struct StepParameters<R> {
    /// View of the level for gathers.
    pub view: GatherView<R>,
    /// Registers for fluxes through coarse-fine faces.
    pub registers: FluxRegisterView<R>,
    /// The bank to write.
    pub next: Address<R>,
    /// Mass fluxes, `[row][axis][576]`, if the program stores them.
    pub mass: Address<R>,
    /// The state before the step; null in the first stage of a step.
    pub before: Address<R>,
    /// Magnetic field on faces.
    pub field: FaceFieldParameters<R>,
    /// Registers with the shares of earlier stages; without addresses in the first stage.
    pub earlier: FluxRegisterView<R>,
    /// Mass fluxes of earlier stages; null in the first stage.
    pub mass_before: Address<R>,
    /// The rows to advance, `[count]`.
    pub rows: Address<i32>,
    /// Largest signal rate, `[row]`.
    pub rates: Address<R>,
    /// Cells whose update is unphysical, `[row][16]`: bit 8 j + i of plane k, two words per plane.
    pub unphysical: Address<u32>,
    /// Cells that take first-order fluxes, in the same format; null for none.
    pub first_order: Address<u32>,
    /// `[row]`: cleared, because the rate is that of the new state.
    pub stale: Address<u8>,
    /// Number of cells in which the internal energy replaced the total one, `[row]`; unused without dual energy.
    pub replaced: Address<u32>,
    /// Sum of the changes of their energy densities, `[row]`.
    pub gains: Address<R>,
    /// Scratch of all blocks, the part that is not in shared memory.
    pub scratch: Address<R>,
    /// Result.
    pub status: Address<Status>,
    /// dt / dx.
    pub rate: [f64; 3],
    /// [Weight](crate::hydro::Stage::weight) of the new state in a stage after the first.
    pub weight: f64,
    /// [Share](crate::hydro::Stage::share) of the stage in the fluxes of the step.
    pub share: f64,
    /// [Speed](crate::hydro::Cleaning::speed) of the cleaning of a magnetic field.
    pub cleaning_speed: f64,
    /// [Damping](crate::hydro::Cleaning::damping) of its cleaning variable.
    pub damping: f64,
    /// 1 / dx.
    pub inverse_dx: [f64; 3],
    /// Number of rows.
    pub count: i32,
}

/// Parameters of `signal_rates`.
#[device]
#[derive(Clone, Copy)]
pub struct RateParameters<R> {
    /// The level's present bank.
    pub level: Address<R>,
    /// The level's rows, `[count]`.
    pub rows: Address<i32>,
    /// Largest signal rate, `[row]`.
    pub rates: Address<R>,
    /// `[row]`: set for rows whose rate must be recomputed.
    pub stale: Address<u8>,
    /// Result.
    pub status: Address<Status>,
    /// 1 / dx.
    pub inverse_dx: [f64; 3],
    /// Number of rows.
    pub count: i32,
    /// Nonzero if rows that are not stale may have changed as well.
    pub all: i32,
}

/// Parameters of `update_cell_fields`.
#[device]
#[derive(Clone, Copy)]
pub struct CellFieldParameters<R> {
    /// The rows, `[count]`.
    pub rows: Address<i32>,
    /// The bank of the gas to change.
    pub gas: Address<R>,
    /// The bank of the field on faces.
    pub faces: Address<R>,
    /// `[row]`: set for the rows.
    pub stale: Address<u8>,
    /// `[count]`: set to 1 for rows that are left as they are, because a cell would lose its pressure, else to 0.
    pub left: Address<i32>,
}

/// Parameters of `face_extremes`.
#[device]
#[derive(Clone, Copy)]
pub struct ExtremesParameters<R> {
    /// The rows, `[count]`.
    pub rows: Address<i32>,
    /// The bank of the field on faces.
    pub faces: Address<R>,
    /// Bits of two doubles: the largest divergence times the smallest cell width, and the largest field.
    pub largest: Address<u64>,
    /// Smallest cell width over that along each axis.
    pub part: [f64; 3],
}

/// Parameters of `collect_first_order`.
#[device]
#[derive(Clone, Copy)]
pub struct CollectParameters {
    /// The rows, `[count]`.
    pub rows: Address<i32>,
    /// See [`StepParameters`].
    pub unphysical: Address<u32>,
    /// See [`StepParameters`].
    pub first_order: Address<u32>,
    /// Result.
    pub status: Address<Status>,
    /// Number of rows.
    pub count: i32,
    /// `true` to discard earlier first-order cells.
    pub fresh: bool,
}
