//! Fine flux registers on their way to the rank of the coarse patch.

use super::{Halos, add_segments, connection, packed};
use crate::field::FieldOperations;
use crate::field::travel::REGISTER;
use crate::ranks::{Message, Messages, Ranks, RanksError};
use bevy_ecs::prelude::*;

impl Halos {
    /// Sends the fine flux registers of faces between `level` and the finer one to the ranks of the coarse patches.
    pub(in crate::ranks) fn carry_faces(
        &mut self,
        world: &mut World,
        level: usize,
        fields: &[FieldOperations],
    ) -> Result<(), RanksError> {
        if self.device.is_some() {
            self.carry_faces_linked(world, level, fields)
        } else {
            self.carry_faces_as_messages(world, level, fields)
        }
    }

    fn carry_faces_linked(
        &mut self,
        world: &mut World,
        level: usize,
        fields: &[FieldOperations],
    ) -> Result<(), RanksError> {
        let (places, width) = packed(world, fields);
        let route = &self.levels[level].faces;
        let (outgoing, incoming) = (self.harbour.outgoing(), self.harbour.incoming());
        for (field, &packed) in fields.iter().zip(&places) {
            let faces = route.sends.on_device(outgoing, packed);
            (field.pack_faces_there)(world, level, &faces)?;
        }
        let [sends, receives] = &mut self.segments;
        sends.clear();
        receives.clear();
        add_segments(&route.sends, outgoing, width, sends);
        add_segments(&route.receives, incoming, width, receives);
        if let Some(link) = connection(world) {
            link.start(sends, receives)?;
            link.finish()?;
        }
        for (field, &packed) in fields.iter().zip(&places) {
            let faces = route.receives.on_device(incoming, packed);
            (field.unpack_faces_there)(world, level, &faces)?;
        }
        Ok(())
    }

    fn carry_faces_as_messages(
        &mut self,
        world: &mut World,
        level: usize,
        fields: &[FieldOperations],
    ) -> Result<(), RanksError> {
        let (places, width) = packed(world, fields);
        let route = &self.levels[level].faces;
        let mut halo = Messages::default();
        for stretch in &route.sends.stretches {
            let mut bytes = vec![0; stretch.entries.len() * REGISTER * width];
            let faces = &route.sends.entries[stretch.entries.clone()];
            for (field, &packed) in fields.iter().zip(&places) {
                (field.pack_faces)(world, level, faces, packed, &mut bytes)?;
            }
            let peer = stretch.peer;
            halo.sends.push(Message { peer, bytes });
        }
        let room = route.receives.stretches.iter().map(|stretch| Message {
            peer: stretch.peer,
            bytes: vec![0; stretch.entries.len() * REGISTER * width],
        });
        halo.receives.extend(room);
        let ranks = world.resource::<Ranks>().clone();
        self.trip.count(&halo);
        let halo = self.trip.wait(ranks.communicator().start_messages(halo)?)?;
        for (stretch, message) in route.receives.stretches.iter().zip(&halo.receives) {
            let faces = &route.receives.entries[stretch.entries.clone()];
            for (field, &packed) in fields.iter().zip(&places) {
                (field.unpack_faces)(world, level, faces, packed, &message.bytes)?;
            }
        }
        Ok(())
    }
}
