//! Reduces over particles on a device: maxima and exact sums.

use super::lists::{DeviceParticles, ListId};
use nestar_engine::data::Precision;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::Topology;
use nestar_kernels::PATCH;
use nestar_kernels::particles::device::{MaximumParameters, TermsParameters};
use nestar_kernels::particles::terms::TERMS;

/// Hierarchy and units of a reduction over particles.
pub(in crate::particles) struct ReductionContext<'a> {
    pub topology: &'a Topology,
    pub tables: Option<&'a DeviceTopology>,
    /// Mass quanta per unit mass.
    pub quanta_per_mass: f64,
}

/// Bits of the largest magnitudes of the terms, or their integer sums; then the mass in quanta.
pub(in crate::particles) type TermSums = [u64; TERMS + 1];

impl DeviceParticles {
    /// Returns the largest velocity, then acceleration, along each axis, for a list of a level.
    ///
    /// # Errors
    /// The device fails.
    pub fn largest(
        &mut self,
        topology: &Topology,
        tables: &DeviceTopology,
        ListId { level, list }: ListId,
    ) -> Result<[f64; 6], DeviceError> {
        if !self.holds(level, list) {
            return Ok([0.0; 6]);
        }
        if let Some(known) = self.buffers[level][list].largest {
            return Ok(known);
        }
        let kernels = self.kernels.clone();
        let from = self.list(topology, super::tables(tables), level, list)?;
        kernels.device.fill_zero(&kernels.words, 0..6)?;
        let args = MaximumParameters {
            from: from.list,
            largest: kernels.words.address().into(),
        };
        kernels.work(&kernels.maximum, &from, 6 * self.columns.number, &args)?;
        let mut words = [0; 6];
        kernels.device.download(&kernels.words, 0, &mut words)?;
        let number = |bits: u64| match kernels.precision {
            Precision::Double => f64::from_bits(bits),
            Precision::Single => f64::from(f32::from_bits(bits as u32)),
        };
        Ok(*self.buffers[level][list].largest.insert(words.map(number)))
    }

    /// Reduces the conserved quantities of all particles: the largest magnitudes, or the sums if `scales`
    /// gives the fixed-point units.
    ///
    /// # Errors
    /// The device fails.
    pub fn terms(
        &mut self,
        context: &ReductionContext,
        mass: f64,
        scales: Option<[f64; TERMS]>,
    ) -> Result<TermSums, DeviceError> {
        let kernels = self.kernels.clone();
        let (topology, domain) = (context.topology, &context.topology.domain);
        kernels.device.fill_zero(&kernels.words, 0..8)?;
        for ListId { level, list } in (0..self.buffers.len()).flat_map(ListId::both) {
            let Some(tables) = context.tables.filter(|_| self.holds(level, list)) else {
                continue;
            };
            let from = self.list(topology, super::tables(tables), level, list)?;
            let args = TermsParameters {
                from: from.list,
                out: kernels.words.address().into(),
                left: domain.left_edge,
                width: domain.cell_width(level).map(|width| PATCH as f64 * width),
                scales: scales.unwrap_or_default(),
                quanta_per_mass: context.quanta_per_mass,
                mass,
                sizes: scales.is_none(),
            };
            let bytes = (6 + usize::from(self.columns.masses)) * self.columns.number;
            kernels.work(&kernels.terms, &from, bytes, &args)?;
        }
        let mut sums = [0; TERMS + 1];
        kernels.device.download(&kernels.words, 0, &mut sums)?;
        Ok(sums)
    }
}
