//! Rows that go to another rank for good, while the hierarchy changes.

use super::list::DeviceList;
use super::{CopyList, Halos, Transport, add_segments};
use crate::field::FieldOperations;
use crate::field::copies::Exchanged;
use crate::field::pieces::{OnDevice, Piece};
use crate::ranks::{Message, Ranks, RanksError};
use bevy_ecs::prelude::*;
use nestar_kernels::CELLS;

/// Rows that have come: field by field, within a field one after the other, rank by rank.
pub(in crate::ranks) enum Arrived {
    /// In memory of the host, by field.
    OnHost(Vec<Vec<u8>>),
    /// In memory of the device, until the next exchange; so many rows.
    OnDevice(usize),
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
        let fields: Vec<&dyn Exchanged> = fields.iter().map(|f| (f.exchanged)(world)).collect();
        let whole = |row: &u32, before| Piece::whole(*row, before);
        let mut out = CopyList::default();
        let lists = sends.iter().map(|(peer, rows)| (*peer, &rows[..]));
        out.set(self.device.as_ref(), lists, whole)?;
        if self.device.is_none() {
            return messages(world, level, &out, &fields);
        }
        // their rows are not known yet
        let unknown = vec![u32::MAX; receives.iter().map(|(_, rows)| *rows).max().unwrap_or(0)];
        let mut into = CopyList::default();
        let lists = receives
            .iter()
            .map(|&(peer, rows)| (peer, &unknown[..rows]));
        into.set(None, lists, whole)?;
        self.carry_linked(world, level, [&out, &into], &fields)?;
        Ok(Arrived::OnDevice(into.entries.len()))
    }

    /// The same from device to device: `out` goes, `into` comes, and stays in the buffer.
    fn carry_linked(
        &mut self,
        world: &World,
        level: usize,
        [out, into]: [&CopyList<Piece>; 2],
        fields: &[&dyn Exchanged],
    ) -> Result<(), RanksError> {
        let width: usize = fields.iter().map(|field| field.cell_bytes()).sum();
        self.make_room([out.values() * width, into.values() * width])?;
        let [mut outgoing, mut incoming] = self.buffers.addresses();
        let [sends, receives] = &mut self.segments;
        sends.clear();
        receives.clear();
        for field in fields {
            let width = field.cell_bytes();
            field.pack_on_device(field.present_bank(level), &out.on_device(outgoing))?;
            add_segments(out, outgoing, width, sends);
            add_segments(into, incoming, width, receives);
            outgoing += (out.values() * width) as u64;
            incoming += (into.values() * width) as u64;
        }
        if let Some(link) = Transport::of(world).link {
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
        let piece = |&(row, place): &(u32, usize)| Piece::whole(row, (CELLS * place) as u64);
        let pieces: Vec<Piece> = rows.iter().map(piece).collect();
        let Some(first) = pieces.first() else {
            return Ok(());
        };
        let mut list = DeviceList::default();
        if let Some(device) = &self.device {
            list.set(device, &pieces)?;
        }
        let [_, mut memory] = self.buffers.addresses();
        for (n, field) in fields.iter().enumerate() {
            let field = (field.exchanged_mut)(world);
            let (at, width) = (field.present_bank(level), field.cell_bytes());
            match arrived {
                Arrived::OnHost(bytes) => {
                    let bytes = &bytes[n][first.before as usize * width..];
                    field.unpack(at, &pieces, bytes, true)?;
                }
                Arrived::OnDevice(count) => {
                    let (list, count_here) = (list.address(), pieces.len());
                    let pieces = OnDevice {
                        list,
                        count: count_here,
                        memory,
                    };
                    field.unpack_on_device(at, &pieces, true)?;
                    memory += (count * CELLS * width) as u64;
                }
            }
        }
        Ok(())
    }
}

/// The same between hosts.
fn messages(
    world: &World,
    level: usize,
    out: &CopyList<Piece>,
    fields: &[&dyn Exchanged],
) -> Result<Arrived, RanksError> {
    let width: usize = fields.iter().map(|field| field.cell_bytes()).sum();
    let mut sends = Vec::new();
    for segment in &out.segments {
        let mut bytes = vec![0; segment.values.len() * width];
        let mut own = &mut bytes[..];
        for field in fields {
            let length = segment.values.len() * field.cell_bytes();
            let (part, rest) = own.split_at_mut(length);
            field.pack(field.present_bank(level), out.of(segment), part)?;
            own = rest;
        }
        let peer = segment.peer;
        sends.push(Message { peer, bytes });
    }
    let received = world.resource::<Ranks>().communicator().exchange(sends)?;
    let mut arrived = vec![Vec::new(); fields.len()];
    for message in &received {
        let cells = message.bytes.len() / width;
        let mut bytes = &message.bytes[..];
        for (field, arrived) in fields.iter().zip(&mut arrived) {
            let (own, rest) = bytes.split_at(cells * field.cell_bytes());
            arrived.extend_from_slice(own);
            bytes = rest;
        }
    }
    Ok(Arrived::OnHost(arrived))
}
