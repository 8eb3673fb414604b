//! Advances particles on a device: opening kick, drift, and count per destination.

use super::super::patch_exchange::{DriftResult, Escaped};
use super::kernels::ListLaunch;
use super::lists::{DeviceParticles, ListId};
use nestar_device::Address;
use nestar_engine::comm::DeviceMessage;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::Topology;
use nestar_kernels::PATCH;
use nestar_kernels::particles::device::{DriftParameters, HierarchyTables, PageArray, SCATTER};

/// Initial capacity for identities of particles that leave the domain in a step.
const ESCAPE_CAPACITY: usize = 4096;

/// Drift step of a level.
pub struct DeviceStep<'a> {
    /// Hierarchy.
    pub topology: &'a Topology,
    /// Topology tables on the device.
    pub tables: HierarchyTables,
    /// Revision of the topology tables.
    pub revision: u64,
    /// Level of the step.
    pub level: usize,
    /// Length of the step.
    pub dt: f64,
    /// Length of the kick: half the step times the factor of accelerations.
    pub half: f64,
    /// Reflecting faces, as bits `2 * axis + side`.
    pub walls: u32,
    /// Mass quanta per unit mass.
    pub quanta_per_mass: f64,
    /// Mass of each particle, if all have the same.
    pub mass: f64,
    /// `true` if entities follow particles to other ranks; particles then travel through the hosts.
    pub follow: bool,
}

/// List of particles that a step moves.
pub struct SourceList {
    pub(super) args: DriftParameters,
    pub(super) launch: ListLaunch,
    /// Level of the patches, and list.
    pub(super) at: ListId,
}

/// State of a step between count and scatter.
pub struct CountedStep {
    /// Particles per row, `[list][rows + 1]`.
    pub(super) counts: Vec<u32>,
    pub(super) sources: Vec<SourceList>,
    /// Messages to devices of other ranks.
    pub(super) messages: Vec<DeviceMessage>,
}

impl DeviceStep<'_> {
    /// Returns the lists that the step reads and writes. Lists of the level itself come
    /// first, so that rows in finer patches are free when coarse patches are scattered.
    pub(in crate::particles) fn lists(&self) -> Vec<ListId> {
        let mut lists = ListId::both(self.level).to_vec();
        let below = self.level.checked_sub(1);
        lists.extend(below.map(|level| ListId { level, list: 1 }));
        lists
    }

    /// Counters per list: one per row, and one for all other destinations.
    pub(in crate::particles) fn rows(&self) -> usize {
        self.topology.capacity() + 1
    }

    /// Returns kernel parameters for a list of a level.
    fn args(&self, from: &ListLaunch, ListId { level, list }: ListId) -> DriftParameters {
        let width = self.topology.domain.cell_width(level);
        DriftParameters {
            from: from.list,
            to: [PageArray::default(); 4],
            cursors: 0.into(),
            tags: 0.into(),
            tagged: 0,
            lost: 0.into(),
            escaped: 0.into(),
            room: 0,
            rate: width.map(|width| self.dt / (PATCH as f64 * width)),
            half: self.half,
            quanta_per_mass: self.quanta_per_mass,
            mass: self.mass,
            rows: self.topology.capacity() as i64,
            walls: self.walls,
            stay: if level == self.level { [0, 0] } else { [1, 2] },
            own: level == self.level,
            what: SCATTER,
            free_from_batch: Address::NONE,
            batch: 0,
            list: list as i32,
            staged: Address::NONE,
            keys: 0.into(),
            positions: 0.into(),
        }
    }
}

impl DeviceParticles {
    /// Kicks particles by half a step and finds their destinations. Outgoing particles are packed;
    /// [`DeviceParticles::insert`] scatters the others.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub(in crate::particles) fn step(
        &mut self,
        step: &DeviceStep,
    ) -> Result<(DriftResult, Option<CountedStep>), DeviceError> {
        let mut sources = Vec::new();
        for at in step.lists() {
            if self.holds(at.level, at.list) {
                let launch = self.list(step.topology, step.tables, at.level, at.list)?;
                let args = step.args(&launch, at);
                sources.push(SourceList { args, launch, at });
            }
        }
        let (mut counts, mut drifted) = match sources.is_empty() {
            true => (vec![0; 2 * step.rows()], DriftResult::default()),
            false => self.counted(step, &mut sources)?,
        };
        if drifted.fault.is_some() {
            return Ok((drifted, None));
        }
        let (parcels, messages) = self.extract_outgoing(step, &mut counts, &sources)?;
        drifted.parcels = parcels;
        let counted = CountedStep {
            counts,
            sources,
            messages,
        };
        Ok((drifted, Some(counted)))
    }

    /// Counts the particles per row, `[list][rows + 1]`, and those that leave the domain.
    fn counted(
        &self,
        step: &DeviceStep,
        sources: &mut [SourceList],
    ) -> Result<(Vec<u32>, DriftResult), DeviceError> {
        let counted = self.count_with_capacity(step, sources, ESCAPE_CAPACITY)?;
        match counted.1.lost.count as usize {
            // more particles have left the domain than expected: repeat with space for all identities
            escaped if escaped > ESCAPE_CAPACITY => {
                self.count_with_capacity(step, sources, escaped)
            }
            _ => Ok(counted),
        }
    }

    /// Counts with space for `room` identities of particles that leave the domain.
    fn count_with_capacity(
        &self,
        step: &DeviceStep,
        sources: &mut [SourceList],
        room: usize,
    ) -> Result<(Vec<u32>, DriftResult), DeviceError> {
        let kernels = &*self.kernels;
        let memory = &mut *kernels.memory();
        let mut counts = vec![0; 2 * step.rows()];
        // the three words of the report follow, so that the host waits once
        let report = counts.len();
        counts.resize(report + 6, 0);
        let cursors = memory.cursors.provide(&kernels.device, counts.len())?;
        let escaped = memory.escaped.provide(&kernels.device, room)?;
        let particles = sources.iter().map(|source| source.launch.particles).sum();
        let keys = memory.keys.provide(&kernels.device, particles)?.address();
        let positions = memory
            .positions
            .provide(&kernels.device, particles)?
            .address();
        let mut before = 0u64;
        kernels.device.fill_zero(cursors, 0..counts.len())?;
        // offsets, velocities and accelerations
        let bytes = 9 * self.columns.number;
        for SourceList { args, launch, at } in sources {
            args.cursors = cursors.address().into();
            args.lost = (cursors.address() + 4 * report as u64).into();
            (args.escaped, args.room) = (escaped.address().into(), room as i64);
            // kernels index from the first row of memory
            let first = before.wrapping_sub(self.buffers[at.level][at.list].first as u64);
            args.keys = keys.wrapping_add(first).into();
            args.positions = positions.wrapping_add(first.wrapping_mul(4)).into();
            before += launch.particles as u64;
            kernels.work(&kernels.count, launch, bytes, args)?;
        }
        kernels.device.download(cursors, 0, &mut counts)?;
        let word = |n: usize| {
            let [lower, upper] = [0, 1].map(|half| u64::from(counts[report + 2 * n + half]));
            upper << 32 | lower
        };
        let [count, mass, fault] = [0, 1, 2].map(word);
        counts.truncate(report);
        let mut identities = vec![0; room.min(count as usize)];
        kernels.device.download(escaped, 0, &mut identities)?;
        let drifted = DriftResult {
            lost: Escaped { count, mass },
            escaped: identities,
            fault: fault.checked_sub(1),
            ..DriftResult::default()
        };
        Ok((counts, drifted))
    }
}
