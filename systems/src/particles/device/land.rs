//! The end of the first half of a step on a device: particles go to their patches, with those that come from elsewhere.

use super::super::leavers::Drifted;
use super::super::species::Species;
use super::incoming::{Incoming, Piece};
use super::lists::OnDevice;
use super::step::{Counted, Step};
use nestar_engine::device::{DeviceError, Shape};
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::field::{Items, Parcel};
use nestar_engine::ranks::OtherRanks;
use nestar_kernels::particles::device::{Stack, Unpack};

impl Species {
    /// The first half of a step on a device, but for what comes from elsewhere: until [`Species::land`] that is kept apart.
    ///
    /// # Errors
    /// As [`Species::settled`].
    pub(in crate::particles) fn leave(
        &mut self,
        step: &Step,
        tables: &DeviceTopology,
    ) -> Result<(Drifted, Option<Counted>), DeviceError> {
        let Some(lists) = self.settled(step.topology, Some(tables))? else {
            return Ok((Drifted::default(), None));
        };
        let drifted = lists.step(step)?;
        self.incoming = Some(Incoming::default());
        Ok(drifted)
    }

    /// Sends particles to other ranks' devices, and takes what comes from there in; what comes to patches that kernels do not deal to is given
    /// back. All ranks call this.
    ///
    /// # Errors
    /// The device fails, or its memory does not suffice; another rank has failed, or the transport has.
    pub(in crate::particles) fn pass(
        &mut self,
        step: &Step,
        counted: &Counted,
        others: &OtherRanks,
    ) -> Result<Vec<Parcel>, DeviceError> {
        match self.lists.as_ref().zip(self.incoming.as_mut()) {
            Some((lists, incoming)) => lists.pass(step, (counted, incoming), others),
            None => Ok(Vec::new()),
        }
    }

    /// Ends what [`Species::leave`] began.
    ///
    /// # Errors
    /// As there.
    pub(in crate::particles) fn land(
        &mut self,
        step: &Step,
        counted: Counted,
    ) -> Result<(), DeviceError> {
        let Some((lists, incoming)) = self.lists.as_mut().zip(self.incoming.take()) else {
            return Ok(());
        };
        let rest = lists.land(step, counted, incoming)?;
        rest.iter()
            .try_for_each(|(row, records)| self.put(*row, records))
    }
}

impl OnDevice {
    /// Deals particles to their patches after [`OnDevice::step`], with what comes from elsewhere; what goes to none of the lists that the step deals,
    /// by row.
    ///
    /// # Errors
    /// As there.
    fn land(
        &mut self,
        step: &Step,
        counted: Counted,
        mut incoming: Incoming,
    ) -> Result<Vec<(u32, Vec<u8>)>, DeviceError> {
        let Counted {
            mut counts,
            sources,
            ..
        } = counted;
        let rest = incoming.settle(step.topology, &step.lists());
        if sources.is_empty() && incoming.is_empty() {
            return Ok(rest);
        }
        let mut behind = counts.clone();
        incoming.count(&mut counts, step.rows());
        let mut new = Vec::new();
        for at @ (_, list) in step.lists() {
            let counts = &mut counts[list * step.rows()..][..step.rows()];
            new.push(self.provide(step.topology, at, counts)?);
        }
        let mut stacks = [Stack::default(); 4];
        for ((stack, at), new) in stacks.iter_mut().zip(step.lists()).zip(&new) {
            *stack = self.stack_of(at, new);
        }
        self.deal((step, &new), (&counts, stacks), &sources)?;
        behind
            .iter_mut()
            .zip(&counts)
            .for_each(|(n, first)| *n += first);
        self.unpack(step, (&incoming, &behind), stacks)?;
        for (at, new) in step.lists().into_iter().zip(new) {
            self.replace(step.topology, at, new)?;
        }
        Ok(rest)
    }

    /// Puts what comes behind what kernels have dealt to the stacks of a step: `behind` says where, for each row.
    fn unpack(
        &self,
        step: &Step,
        (incoming, behind): (&Incoming, &[u32]),
        to: [Stack; 4],
    ) -> Result<(), DeviceError> {
        if incoming.is_empty() {
            return Ok(());
        }
        let (kernels, memory) = (&*self.kernels, &mut *self.kernels.memory());
        memory.cursors.set(&kernels.device, behind)?;
        memory.records.set(&kernels.device, &incoming.records)?;
        let passed = (memory.passed.address(), &incoming.passed);
        for (records, pieces) in [(memory.records.address(), &incoming.pieces), passed] {
            if pieces.is_empty() {
                continue;
            }
            let words = |p: &Piece| [p.row, p.list as u32, p.stack, p.count as u32];
            let words: Vec<[u32; 4]> = pieces.iter().map(words).collect();
            let firsts: Vec<u64> = pieces.iter().map(|piece| piece.first as u64).collect();
            memory.starts.set(&kernels.device, &firsts)?;
            memory.pieces.set(&kernels.device, words.as_flattened())?;
            let given = Unpack {
                records: records.into(),
                firsts: memory.starts.address().into(),
                pieces: memory.pieces.address().into(),
                to,
                cursors: memory.cursors.address().into(),
                rows: step.topology.capacity() as i64,
                numbers: self.numbers(),
            };
            let shape = Shape::of(words.len(), 128);
            kernels.device.launch(&kernels.unpack, shape, &given)?;
        }
        Ok(())
    }
}
