//! Runs functions of particles where the particles are: in host pages or on a device.

use super::device::ListId;
use super::function_call::{
    CalledParticle, FunctionCall, FunctionReduction, NumberedRecord, ParticleCollect, ParticleMap,
    ParticleValue, RecordOf, UpdateSums, lists_of, numbers,
};
use super::function_on_host::ToldParticle;
use super::pages::ParticleReal;
use super::species::Species;
use nestar_device::{CellState, ParticleFn, Real};
use nestar_engine::device::DeviceError;
use nestar_engine::in_precision;
use nestar_kernels::mesh::cell_record::RecordResult;
use std::collections::BTreeMap;

impl Species {
    /// Sets the particles that a level moves on this rank to the results of a function.
    pub(super) fn update_by<M: ParticleMap>(
        &mut self,
        call: &FunctionCall<M>,
    ) -> Result<UpdateSums, DeviceError> {
        let lists = lists_of(call.clock.level);
        if let Some(there) = self.upload(call.topology, call.tables)? {
            return there.update(call, lists);
        }
        let of_list =
            |at| in_precision!(self.precision(), R => self.update_on_host::<M, R>(call, at));
        Ok(lists
            .map(of_list)
            .fold(UpdateSums::default(), UpdateSums::with))
    }

    /// Reduces the results of a function for the particles that a level moves on this rank.
    pub(super) fn reduce_by<M: ParticleValue>(
        &mut self,
        call: &FunctionCall<M>,
        by: FunctionReduction,
    ) -> Result<u64, DeviceError> {
        let lists = lists_of(call.clock.level);
        if let Some(there) = self.upload(call.topology, call.tables)? {
            return there.reduce(call, lists, by);
        }
        let of_list =
            |at| in_precision!(self.precision(), R => self.reduce_on_host::<M, R>(call, at, by));
        Ok(lists.map(of_list).fold(0, |a, b| by.joined(a, b)))
    }

    /// Returns the particles that a level moves on this rank and for which a function has a record, with the numbers of the record: patches
    /// in Hilbert order, the coarser level first, and in a patch by identity. On a device, eight bytes are fetched for each list if there is
    /// none.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub(super) fn collect_by<M: ParticleCollect>(
        &mut self,
        call: &FunctionCall<M>,
    ) -> Result<Vec<NumberedRecord>, DeviceError> {
        let mut all = Vec::new();
        for at in lists_of(call.clock.level) {
            let mut found = match self.upload(call.topology, call.tables)? {
                Some(there) => there.collect(call, at, RecordOf::<M>::COUNT)?,
                None => {
                    in_precision!(self.precision(), R => self.collect_on_host::<M, R>(call, at))
                }
            };
            if found.is_empty() {
                continue;
            }
            let rows = call.topology.rows(at.level).iter().zip(0usize..);
            let places: BTreeMap<u32, usize> = rows.map(|(&row, place)| (row, place)).collect();
            found.sort_unstable_by_key(|(own, _)| (places.get(&own.row), own.particle.id));
            self.complete_masses(found.iter_mut().map(|(own, _)| own));
            all.extend(found);
        }
        Ok(all)
    }

    /// Lists particles of host pages, as [`Species::collect_by`].
    fn collect_on_host<M: ParticleFn<Result<R>: RecordResult<R>>, R: ParticleReal>(
        &mut self,
        call: &FunctionCall<M>,
        at: ListId,
    ) -> Vec<NumberedRecord> {
        let tell = |_: &CalledParticle<R>, result: M::Result<R>| {
            let (record, count) = numbers::<R, _>(&result.into_record()?);
            Some(record[..count].iter().map(|x| Real::to_f64(*x)).collect())
        };
        let told = self.told_on_host::<M, R, Vec<f64>>(call, at, tell);
        let with_particle = |told: ToldParticle<Vec<f64>>| {
            let (pages, mut record) = (&self.patches[told.row as usize][at.list], Vec::new());
            pages.read(self.pool.columns, told.n, &mut record);
            let particle = self.selected(call.topology, at.level, told.row, &record);
            (particle, told.what)
        };
        told.into_iter().map(with_particle).collect()
    }
}
