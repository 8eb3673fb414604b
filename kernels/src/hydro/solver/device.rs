//! The device program of the gas: what is compiled in, and the skeletons.

use crate::hydro::{FluidMethod, Limiter, Reconstruction, RiemannSolver, Scheme};
use crate::hydro::{dual, eos, hancock, limiter, ppm, riemann};
use crate::mesh::fluxes;
use crate::mesh::parameters::{FluxRegisterView, GatherView};
use crate::{CELLS, PATCH};
use nestar_device::{Address, Item, device};

/// The step of a patch; needs the text of [`FluidProgram::text`] before it, and the gather before that.
pub const STEP: &str = concat!(
    include_str!("../../mesh/patch_faces.cuh"),
    include_str!("states.cuh"),
    include_str!("fluid.cu")
);
/// Signal rates and the collection of cells to mend; follows [`STEP`].
pub const RATES: &str = include_str!("rates.cu");

/// Faces of a patch normal to one axis.
const FACES: usize = (PATCH + 1) * PATCH * PATCH;

/// What a program of the fluid step is specialised for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FluidProgram {
    /// The numerical method.
    pub method: FluidMethod,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Passive scalars.
    pub scalars: usize,
    /// Whether values are `f64`.
    pub double: bool,
    /// Whether the step mends cells with first-order fluxes, for which it keeps its input.
    pub first_order_fallback: bool,
    /// Whether the step leaves the mass fluxes through all faces.
    pub mass_fluxes: bool,
    /// Whether the scratch is shared memory.
    pub in_shared: bool,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that should fit on a multiprocessor.
    pub blocks: u32,
}

impl FluidProgram {
    /// Values of a block's scratch.
    #[must_use]
    pub fn scratch(&self) -> usize {
        let components = self.method.gas_components() + self.scalars;
        let ghosts = self.method.ghosts();
        let half_step = self.method.scheme == Scheme::MusclHancock;
        let cube = |layers: usize| (PATCH + 2 * layers).pow(3);
        let reach = if half_step { ghosts } else { ghosts - 1 };
        let block = components * cube(reach);
        let input = if half_step {
            0
        } else {
            components * cube(ghosts)
        };
        let edges = 2 * 3 * 5 * FACES;
        let kept = if self.first_order_fallback { input } else { 0 };
        (block + kept + edges).max(block + input)
    }

    /// Bytes of a value.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        if self.double { 8 } else { 4 }
    }

    /// The namespace `fluid` as far as the run's choices make it.
    #[must_use]
    pub fn text(&self) -> String {
        let m = &self.method;
        let limiter = match m.limiter {
            Limiter::Minmod => limiter::MINMOD,
            Limiter::VanLeer => limiter::VAN_LEER,
            Limiter::VanAlbada => limiter::VAN_ALBADA,
            Limiter::MonotonizedCentral => limiter::MONOTONIZED_CENTRAL,
        };
        let riemann = match m.riemann {
            RiemannSolver::Hllc => 0,
            RiemannSolver::Hlle => 1,
            RiemannSolver::Exact => 2,
        };
        let [kinetic, gradient, jump] =
            (m.dual.map_or([0.0; 3], |dual| dual.thresholds())).map(literal);
        format!(
            "namespace fluid {{\n\
             constexpr int GHOSTS = {}, RIEMANN = {riemann}, THREADS = {}, MIN_BLOCKS = {};\n\
             constexpr unsigned LIMITER = {limiter}u;\n\
             constexpr bool HALF_STEP = {}, PARABOLIC = {}, KEEP_INPUT = {}, IN_SHARED = {}, MASS_FLUXES = {}, DUAL = {};\n\
             RS_FN constexpr field::REAL gamma() {{ return (field::REAL){}; }}\n\
             RS_FN constexpr field::REAL theta() {{ return (field::REAL){}; }}\n\
             RS_FN constexpr rs::arr<field::REAL, 3> thresholds() {{ return rs::arr<field::REAL, 3>{{{{(field::REAL){kinetic}, \
             (field::REAL){gradient}, (field::REAL){jump}}}}}; }}\n\
             }}\n",
            m.ghosts(),
            self.threads,
            self.blocks,
            m.scheme == Scheme::MusclHancock,
            m.reconstruction == Reconstruction::Ppm,
            self.first_order_fallback,
            self.in_shared,
            self.mass_fluxes,
            m.dual.is_some(),
            literal(self.gamma),
            literal(m.minmod_theta),
        )
    }

    /// The `#[device]` functions that the skeletons call.
    #[must_use]
    pub fn items(&self) -> Vec<&'static Item> {
        vec![
            StepParameters,
            RateParameters,
            CollectParameters,
            eos::primitive_from_conserved::ITEM,
            eos::checked_signal_rate::ITEM,
            dual::primitive::ITEM,
            dual::checked_signal_rate::ITEM,
            dual::upwind_state::ITEM,
            dual::advanced::ITEM,
            dual::max_velocity_change_squared::ITEM,
            dual::compression_jump::ITEM,
            dual::slope_factor::ITEM,
            dual::reconcile_energies::ITEM,
            hancock::half_step::ITEM,
            hancock::half_step_scalar::ITEM,
            hancock::predicted::ITEM,
            hancock::edges::ITEM,
            fluxes::advanced::ITEM,
            limiter::half_slope::ITEM,
            hancock::traced_edges::ITEM,
            hancock::traced_scalar::ITEM,
            hancock::range_around::ITEM,
            hancock::bounded::ITEM,
            ppm::parabola::ITEM,
            ppm::bounded_parabola::ITEM,
            ppm::limited_parabola::ITEM,
            ppm::flattening::ITEM,
            riemann::flux_of_scalar::ITEM,
            riemann::part_of::ITEM,
            riemann::hllc::flux_hllc::ITEM,
            riemann::hlle::flux_hlle::ITEM,
            riemann::exact::flux_exact::ITEM,
            fluxes::mean4::ITEM,
        ]
    }
}

/// A double as a C++ literal with all its bits.
fn literal(x: f64) -> String {
    // seventeen digits name every double
    format!("{x:.17e}")
}

const _: () = assert!(CELLS == 512, "masks of cells are sixteen words of 32 bits");

/// What a launch of the step's kernels finds.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct Status {
    /// Bits of the largest signal rate of the level, in the precision of the run.
    pub largest_rate: u64,
    /// Patches (or words of cells, while cells are collected) that hold unphysical cells.
    pub unphysical: u32,
    /// Cells that take first-order fluxes.
    pub first_order: u32,
}

/// Of the kernel `fluid_step`.
#[device]
#[derive(Clone, Copy)]
pub struct StepParameters<R> {
    /// Gathers on the level.
    pub view: GatherView<R>,
    /// Where fluxes through coarse-fine faces go.
    pub registers: FluxRegisterView<R>,
    /// The bank to write.
    pub next: Address<R>,
    /// Mass fluxes, `[row][axis][576]`, if the program leaves them.
    pub mass: Address<R>,
    /// The rows to advance, `[count]`.
    pub rows: Address<i32>,
    /// Largest signal rate, `[row]`.
    pub rates: Address<R>,
    /// Cells whose update is unphysical, `[row][16]`: bit 8 j + i of plane k, two words a plane.
    pub unphysical: Address<u32>,
    /// The same for cells that take first-order fluxes; nowhere: there are none.
    pub first_order: Address<u32>,
    /// `[row]`: cleared, since the rate is that of the new state.
    pub stale: Address<u8>,
    /// A block's scratch after the other's, where it is not in shared memory.
    pub scratch: Address<R>,
    /// What is found.
    pub status: Address<Status>,
    /// dt / dx.
    pub rate: [f64; 3],
    /// 1 / dx.
    pub inverse_dx: [f64; 3],
    /// Rows.
    pub count: i32,
}

/// Of the kernel `signal_rates`.
#[device]
#[derive(Clone, Copy)]
pub struct RateParameters<R> {
    /// The level's present bank.
    pub level: Address<R>,
    /// The level's rows, `[count]`.
    pub rows: Address<i32>,
    /// Largest signal rate, `[row]`.
    pub rates: Address<R>,
    /// `[row]`: rows whose rate is to be made anew.
    pub stale: Address<u8>,
    /// What is found.
    pub status: Address<Status>,
    /// 1 / dx.
    pub inverse_dx: [f64; 3],
    /// Rows.
    pub count: i32,
    /// Whether rows that are not stale may have changed as well.
    pub all: i32,
}

/// Of the kernel `collect_first_order`.
#[device]
#[derive(Clone, Copy)]
pub struct CollectParameters {
    /// The rows, `[count]`.
    pub rows: Address<i32>,
    /// As in [`StepParameters`].
    pub unphysical: Address<u32>,
    /// As in [`StepParameters`].
    pub first_order: Address<u32>,
    /// What is found.
    pub status: Address<Status>,
    /// Rows.
    pub count: i32,
    /// Whether to forget earlier first-order cells.
    pub fresh: bool,
}
