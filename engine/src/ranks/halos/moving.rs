//! Rows that go to another rank for good, while the hierarchy changes.

use super::lane::Listed;
use super::{Halos, Lane, add_segments, connection, packed};
use crate::field::FieldOperations;
use crate::field::pieces::{Delivery, OnDevice, Piece};
use crate::ranks::RanksError;
use crate::ranks::{Message, Ranks};
use bevy_ecs::prelude::*;
use nestar_kernels::CELLS;

/// Rows that have come, one behind the other.
pub(in crate::ranks) enum Arrived {
    /// In memory of the host.
    Here(Vec<u8>),
    /// In memory of the device, until the next exchange.
    There,
}

impl Halos {
    /// Sends the present state of whole rows of `level`, by peer, and waits for so many rows of each peer of `receives`. All
    /// ranks call it.
    pub(in crate::ranks) fn carry_rows(
        &mut self,
        world: &World,
        level: usize,
        sends: &[(usize, Vec<u32>)],
        receives: &[(usize, usize)],
        fields: &[FieldOperations],
    ) -> Result<Arrived, RanksError> {
        let whole = |row: &u32, before| Piece::whole(*row, before);
        let mut out = Lane::default();
        let lists = sends.iter().map(|(peer, rows)| (*peer, &rows[..]));
        out.set(self.device.as_ref(), lists, whole)?;
        if self.device.is_none() {
            return messages(world, level, &out, fields);
        }
        // their rows are not known yet
        let unknown = vec![u32::MAX; receives.iter().map(|(_, rows)| *rows).max().unwrap_or(0)];
        let mut into = Lane::default();
        let lists = receives
            .iter()
            .map(|&(peer, rows)| (peer, &unknown[..rows]));
        into.set(None, lists, whole)?;
        self.carry_linked(world, level, [&out, &into], fields)?;
        Ok(Arrived::There)
    }

    /// The same from device to device: `out` goes, `into` comes, and stays in the harbour.
    fn carry_linked(
        &mut self,
        world: &World,
        level: usize,
        [out, into]: [&Lane<Piece>; 2],
        fields: &[FieldOperations],
    ) -> Result<(), RanksError> {
        let (places, width) = packed(world, fields);
        self.make_room([out.values() * width, into.values() * width])?;
        for (field, &packed) in fields.iter().zip(&places) {
            let pieces = out.on_device(self.harbour.outgoing(), packed);
            (field.pack_pieces_there)(world, level, &pieces)?;
        }
        let [sends, receives] = &mut self.segments;
        sends.clear();
        receives.clear();
        add_segments(out, self.harbour.outgoing(), width, sends);
        add_segments(into, self.harbour.incoming(), width, receives);
        if let Some(link) = connection(world) {
            link.start(sends, receives)?;
            link.finish()?;
        }
        Ok(())
    }

    /// Sets rows of `level` from what has come: each row with its place among all that have.
    pub(in crate::ranks) fn unload_rows(
        &self,
        world: &mut World,
        level: usize,
        rows: &[(u32, usize)],
        arrived: &Arrived,
        fields: &[FieldOperations],
    ) -> Result<(), RanksError> {
        let (places, width) = packed(world, fields);
        let piece = |&(row, place): &(u32, usize)| Piece::whole(row, (CELLS * place) as u64);
        let pieces: Vec<Piece> = rows.iter().map(piece).collect();
        let Some(first) = pieces.first() else {
            return Ok(());
        };
        let mut list = Listed::default();
        if let Some(device) = &self.device {
            list.set(device, &pieces)?;
        }
        for (field, &packed) in fields.iter().zip(&places) {
            let delivery = match arrived {
                Arrived::Here(bytes) => Delivery::Here {
                    pieces: &pieces,
                    packed,
                    bytes: &bytes[first.before as usize * width..],
                },
                Arrived::There => Delivery::There {
                    pieces: OnDevice {
                        list: list.address(),
                        count: pieces.len(),
                        memory: self.harbour.incoming(),
                        packed,
                    },
                    owned: true,
                },
            };
            (field.unpack_pieces)(world, level, &delivery)?;
        }
        Ok(())
    }
}

/// The same between hosts.
fn messages(
    world: &World,
    level: usize,
    out: &Lane<Piece>,
    fields: &[FieldOperations],
) -> Result<Arrived, RanksError> {
    let (places, width) = packed(world, fields);
    let mut sends = Vec::new();
    for stretch in &out.stretches {
        let mut bytes = vec![0; stretch.values.len() * width];
        let pieces = &out.entries[stretch.entries.clone()];
        for (field, &packed) in fields.iter().zip(&places) {
            (field.pack_pieces)(world, level, pieces, packed, &mut bytes)?;
        }
        let peer = stretch.peer;
        sends.push(Message { peer, bytes });
    }
    let ranks = world.resource::<Ranks>();
    let received = ranks.communicator().exchange(sends)?;
    let bytes = received.into_iter().flat_map(|message| message.bytes);
    Ok(Arrived::Here(bytes.collect()))
}
