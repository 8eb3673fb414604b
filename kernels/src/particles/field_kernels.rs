//! Parameters of particle kernels that read a field: the closing kick and the motion of tracers.

use super::device::{self, CloudShape, ParticleList};
use crate::mesh::parameters::GatherView;
use crate::mesh::prolong::between;
use nestar_device::random::{Stream, of_id, uniforms};
use nestar_device::{Address, Item, device};

/// Source of the kernel that gathers accelerations, for the program of the acceleration field.
pub const KICK_SOURCE: &str = concat!(
    include_str!("pages.cuh"),
    include_str!("boundary_zone.cuh"),
    include_str!("deep_part.cuh"),
    include_str!("gather.cuh"),
    include_str!("kick.cu")
);

/// Source of the tracer kernels, for the program of the gas field.
pub const TRACER_SOURCE: &str = concat!(
    include_str!("pages.cuh"),
    include_str!("boundary_zone.cuh"),
    include_str!("gather.cuh"),
    include_str!("tracers.cu")
);

/// Returns all structures and the functions that the kernels call.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    let mut items = device::items();
    items.extend([KickParameters, AdvectParameters, JumpParameters]);
    items.extend([STOP::ITEM, JUMP::ITEM, CHILD::ITEM]);
    items.extend([of_id::ITEM, uniforms::ITEM, between::ITEM]);
    items
}

/// Parameters of `particles_kick`: gathers accelerations and applies the closing kick.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct KickParameters<R> {
    /// `true` for particles outside the boundary zone of their level; otherwise the coarser level kicks those in the zone only.
    pub deep: bool,
    /// `true` to add the acceleration to the stored one; otherwise it replaces that.
    pub add: bool,
    /// Factor of the acceleration that is stored: 1, 0 or -1.
    pub sign: f64,
    /// `true` to gather the second vector field, if there are two.
    pub second: bool,
    /// Particles.
    pub from: ParticleList,
    /// Accelerations on the particles' level or on the next coarser one.
    pub view: GatherView<R>,
    /// Clouds.
    pub clouds: CloudShape,
    /// State in the view. 0: the particles' own level; 1, 2: the coarser level before and after its step; 3:
    /// its only state.
    pub state: i32,
    /// `true` if the view is centred on the parents of the particles' patches.
    pub parent: bool,
    /// Weight of the later state.
    pub weight: f64,
    /// Length of the kick.
    pub half: f64,
    /// `true` to correct an earlier kick: only the change of the acceleration is applied.
    pub correct: bool,
    /// Times of the states minus the time of the particles.
    pub time_offsets: [f64; 2],
    /// Inverse width of the patches of the view.
    pub per_width: [f64; 3],
    /// `true` to weight the acceleration with the part of the particle that is outside the boundary zone.
    pub weighs: bool,
    /// Longest displacement in patch widths, for the next three values as in
    /// [`DepositParameters`](device::DepositParameters).
    pub most: f64,
    /// Times of the two states of the coarser level.
    pub zone_times: [f64; 2],
    /// Weight of the newer state in 2^-32.
    pub newer: u32,
}

/// Parameters of `particles_advect`: sets the velocities of tracers to their mean over the step, by Heun's
/// method.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct AdvectParameters<R> {
    /// Particles.
    pub from: ParticleList,
    /// Gas on the level of their patches before the step of that level, or the only state.
    pub before: GatherView<R>,
    /// Gas after the step.
    pub after: GatherView<R>,
    /// `true` if the states differ.
    pub both: bool,
    /// Buffers of gathered gas, `[block][values]`; null if shared memory is used.
    pub blocks: Address<R>,
    /// Values gathered by a block.
    pub values: i64,
    /// Weights of the later state at the start and at the end of the particles' step.
    pub weights: [f64; 2],
    /// Step over patch width along each axis.
    pub rate: [f64; 3],
}

/// Task of `particles_jump`: stop tracers in coarse patches, except those that enter a finer neighbour patch.
#[device]
pub const STOP: i32 = 0;
/// Task of `particles_jump`: draw the jumps of a step.
#[device]
pub const JUMP: i32 = 1;
/// Task of `particles_jump`: assign tracers of a new patch to child cells.
#[device]
pub const CHILD: i32 = 2;

/// Parameters of `particles_jump`: draws the jumps of Monte Carlo tracers.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct JumpParameters<R> {
    /// Particles.
    pub from: ParticleList,
    /// [`STOP`], [`JUMP`] or [`CHILD`].
    pub what: i32,
    /// Gas after the step.
    pub gas: Address<R>,
    /// Mass fluxes of the step, `[row][axis][576]`; for [`JUMP`] only.
    pub mass: Address<R>,
    /// Step over cell width along each axis.
    pub rates: [f64; 3],
    /// Cell width over step along each axis.
    pub speeds: [f64; 3],
    /// Random numbers of the step.
    pub stream: Stream,
    /// Index of the random numbers: of the jump, followed by those of the offset; or of the child cell.
    pub number: u32,
}
