//! Drives a drift step of a species on a device: count, exchange, insert.

use super::super::leavers::DriftResult;
use super::super::species::Species;
use super::incoming::{ArrivalSegment, Arrivals};
use super::lists::DeviceParticles;
use super::step::{CountedStep, DeviceStep};
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::data::{MigrationBatch, ParticleSet};
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_kernels::particles::device::{PageArray, UnpackParameters};

impl Species {
    /// Starts the drift step: advances and counts the particles, and packs those that leave. Arrivals are
    /// collected until [`Species::finish_device_step`].
    ///
    /// # Errors
    /// As [`Species::upload`].
    pub(in crate::particles) fn begin_device_step(
        &mut self,
        step: &DeviceStep,
        tables: &DeviceTopology,
    ) -> Result<(DriftResult, Option<CountedStep>), DeviceError> {
        let Some(lists) = self.upload(step.topology, Some(tables))? else {
            return Ok((DriftResult::default(), None));
        };
        let drifted = lists.step(step)?;
        self.arrivals = Some(Arrivals::default());
        Ok(drifted)
    }

    /// Exchanges particles with devices of other ranks. Returns arrivals for patches that are not on the
    /// device. Collective.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice; another rank or the transport has failed.
    pub(in crate::particles) fn exchange(
        &mut self,
        step: &DeviceStep,
        counted: &CountedStep,
        others: &Comm,
    ) -> Result<Vec<MigrationBatch>, DeviceError> {
        match self.on_device.as_ref().zip(self.arrivals.as_mut()) {
            Some((lists, arrivals)) => lists.exchange(step, (counted, arrivals), others),
            None => Ok(Vec::new()),
        }
    }

    /// Finishes the step that [`Species::begin_device_step`] started.
    ///
    /// # Errors
    /// As there.
    pub(in crate::particles) fn finish_device_step(
        &mut self,
        step: &DeviceStep,
        counted: CountedStep,
    ) -> Result<(), DeviceError> {
        let Some((lists, arrivals)) = self.on_device.as_mut().zip(self.arrivals.take()) else {
            return Ok(());
        };
        let rest = lists.insert(step, counted, arrivals)?;
        rest.iter()
            .try_for_each(|(row, records)| self.put(*row, records))
    }
}

impl DeviceParticles {
    /// Scatters particles to their patches after [`DeviceParticles::step`] and inserts arrivals. Returns
    /// arrivals for patches outside the lists of the step, by row.
    ///
    /// # Errors
    /// As there.
    fn insert(
        &mut self,
        step: &DeviceStep,
        counted: CountedStep,
        mut arrivals: Arrivals,
    ) -> Result<Vec<(u32, Vec<u8>)>, DeviceError> {
        let CountedStep {
            mut counts,
            sources,
            ..
        } = counted;
        let rest = arrivals.assign_lists(step.topology, &step.lists());
        if sources.is_empty() && arrivals.is_empty() {
            return Ok(rest);
        }
        let mut ends = counts.clone();
        arrivals.count(&mut counts, step.rows());
        let mut new = Vec::new();
        for at @ (_, list) in step.lists() {
            let counts = &mut counts[list * step.rows()..][..step.rows()];
            new.push(self.reserve(step.topology, at, counts)?);
        }
        let mut page_arrays = [PageArray::default(); 4];
        for ((page_array, at), new) in page_arrays.iter_mut().zip(step.lists()).zip(&new) {
            *page_array = self.page_array_of(at, new);
        }
        self.scatter((step, &new), (&counts, page_arrays), &sources)?;
        ends.iter_mut()
            .zip(&counts)
            .for_each(|(n, first)| *n += first);
        self.unpack(step, (&arrivals, &ends), page_arrays)?;
        for (at, new) in step.lists().into_iter().zip(new) {
            self.commit(step.topology, at, new)?;
        }
        Ok(rest)
    }

    /// Inserts arrivals after the scattered particles of each row; `ends` gives the first free position of
    /// each row.
    fn unpack(
        &self,
        step: &DeviceStep,
        (arrivals, ends): (&Arrivals, &[u32]),
        to: [PageArray; 4],
    ) -> Result<(), DeviceError> {
        if arrivals.is_empty() {
            return Ok(());
        }
        let (kernels, memory) = (&*self.kernels, &mut *self.kernels.memory());
        memory.cursors.set(&kernels.device, ends)?;
        memory.records.set(&kernels.device, &arrivals.records)?;
        let received = (memory.received.address(), &arrivals.received);
        for (records, pieces) in [(memory.records.address(), &arrivals.pieces), received] {
            if pieces.is_empty() {
                continue;
            }
            let words = |p: &ArrivalSegment| [p.row, p.list as u32, p.page_array, p.count as u32];
            let words: Vec<[u32; 4]> = pieces.iter().map(words).collect();
            let firsts: Vec<u64> = pieces.iter().map(|piece| piece.first as u64).collect();
            memory.starts.set(&kernels.device, &firsts)?;
            memory.pieces.set(&kernels.device, words.as_flattened())?;
            let parameters = UnpackParameters {
                records: records.into(),
                firsts: memory.starts.address().into(),
                pieces: memory.pieces.address().into(),
                to,
                cursors: memory.cursors.address().into(),
                rows: step.topology.capacity() as i64,
                numbers: self.numbers(),
            };
            let shape = LaunchShape::of(words.len(), 128);
            kernels.device.launch(&kernels.unpack, shape, &parameters)?;
        }
        Ok(())
    }
}
