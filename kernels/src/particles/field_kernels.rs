//! What the kernels take that say how particles move: those that pull what falls, and those that let gas take tracers along.

use super::device::{self, CloudShape, ParticleList};
use crate::mesh::parameters::GatherView;
use crate::mesh::prolong::between;
use nestar_device::random::{Stream, of_id, uniforms};
use nestar_device::{Address, Item, device};

/// The kernel that accelerates what falls, of the program of accelerations.
pub const KICK_SOURCE: &str = concat!(
    include_str!("stacks.cuh"),
    include_str!("cells.cuh"),
    include_str!("feel.cuh"),
    include_str!("pull.cu")
);

/// The kernels that say where gas takes tracers, of the program of gas.
pub const TRACER_SOURCE: &str = concat!(
    include_str!("stacks.cuh"),
    include_str!("cells.cuh"),
    include_str!("feel.cuh"),
    include_str!("trace.cu")
);

/// Every structure, and what the kernels call.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    let mut items = device::items();
    items.extend([KickParameters, AdvectParameters, JumpParameters]);
    items.extend([STOP::ITEM, JUMP::ITEM, CHILD::ITEM]);
    items.extend([of_id::ITEM, uniforms::ITEM, between::ITEM]);
    items
}

/// Of the kernel `particles_kick`: what accelerates particles, and the closing kick.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct KickParameters<R> {
    /// The particles.
    pub from: ParticleList,
    /// Accelerations on the particles' level, or on the next coarser one.
    pub view: GatherView<R>,
    /// The clouds.
    pub clouds: CloudShape,
    /// What the view shows: 0 the particles' own level now; of the coarser level 1 its state before, 2 after, 3 the only one.
    pub state: i32,
    /// Whether it shows the surroundings of the parents of the particles' patches.
    pub parent: bool,
    /// Weight of the later state.
    pub weight: f64,
    /// Length of the kick.
    pub half: f64,
    /// Whether it has been made by the accelerations that the particles have, and these are found anew.
    pub correct: bool,
    /// From the time of the particles to those of the states.
    pub ahead: [f64; 2],
    /// Over the width of a patch of the coarser level.
    pub per_width: [f64; 3],
}

/// Of the kernel `particles_advect`: gives tracers the mean velocities of a step, by Heun's rule.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct AdvectParameters<R> {
    /// The particles.
    pub from: ParticleList,
    /// Gas on the level of their patches before the step of that level, or now.
    pub before: GatherView<R>,
    /// The same after it.
    pub after: GatherView<R>,
    /// Whether the two differ.
    pub both: bool,
    /// Where blocks gather gas, `[block][values]`; none: in shared memory.
    pub blocks: Address<R>,
    /// Values that a block gathers.
    pub values: i64,
    /// Weights of the later state at the begin and at the end of the particles' step.
    pub weights: [f64; 2],
    /// The step over the width of a patch along each axis.
    pub rate: [f64; 3],
}

/// What tracers by chance do: those in a patch of the next coarser level than that which moves them stop, but for those on their way into a
/// finer patch.
#[device]
pub const STOP: i32 = 0;
/// They draw their way in a step.
#[device]
pub const JUMP: i32 = 1;
/// Those in a new patch draw which of the cells that a coarser one has become they take.
#[device]
pub const CHILD: i32 = 2;

/// Of the kernel `particles_jump`: lets tracers draw where mass takes them.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct JumpParameters<R> {
    /// The particles.
    pub from: ParticleList,
    /// [`STOP`], [`WAY`] or [`CHILD`].
    pub what: i32,
    /// The bank of the gas behind the step.
    pub gas: Address<R>,
    /// Of a way: the mass fluxes of the step, `[row][axis][576]`.
    pub mass: Address<R>,
    /// The step over the width of a cell along each axis.
    pub rates: [f64; 3],
    /// A cell in a step along each axis.
    pub speeds: [f64; 3],
    /// The random numbers of the step.
    pub stream: Stream,
    /// Which of them say the way, and the next ones the place; or which say the cell.
    pub number: u32,
}
