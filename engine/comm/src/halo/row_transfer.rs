//! Moves whole rows to other ranks during a regrid.

use super::{Halos, Segment, TransferList, Transport};
use crate::{Message, Ranks, RanksError};
use bevy_ecs::prelude::*;
use nestar_engine_data::store::Store;
use nestar_engine_data::{DevicePieces, Piece};
use nestar_engine_data::{RowShape, StoreRef};
use nestar_engine_device::{Device, ReusableBuffer};

/// Received rows: field by field, within a field by rank.
pub(crate) enum ReceivedRows {
    /// In host memory, by field.
    OnHost(Vec<Vec<u8>>),
    /// In device memory until the next exchange; holds the number of rows.
    OnDevice(usize),
}

impl Halos {
    /// Sends whole rows of `level` by peer, and receives the given number of rows from each peer of `receives`.
    /// Collective.
    pub(crate) fn exchange_rows(
        &mut self,
        world: &World,
        level: usize,
        sends: &[(usize, Vec<u32>)],
        receives: &[(usize, usize)],
        fields: &[StoreRef],
    ) -> Result<ReceivedRows, RanksError> {
        let fields: Vec<&dyn Store> = fields.iter().map(|f| f.of(world)).collect();
        let Some(device) = self.device.clone() else {
            return messages(world, level, sends, &fields);
        };
        self.exchange_rows_linked(world, &device, level, sends, receives, &fields)?;
        Ok(ReceivedRows::OnDevice(
            receives.iter().map(|(_, rows)| rows).sum(),
        ))
    }

    /// Exchanges whole rows between devices; received rows stay in the incoming buffer.
    fn exchange_rows_linked(
        &mut self,
        world: &World,
        device: &Device,
        level: usize,
        sends: &[(usize, Vec<u32>)],
        receives: &[(usize, usize)],
        fields: &[&dyn Store],
    ) -> Result<(), RanksError> {
        let width: usize = fields.iter().map(|field| field.row_bytes()).sum();
        let rows = |all: usize, rows: usize| all + rows * width;
        let out = sends.iter().map(|(_, list)| list.len()).fold(0, rows);
        let into = receives.iter().map(|(_, count)| *count).fold(0, rows);
        self.reserve([out, into])?;
        let [mut outgoing, mut incoming] = self.buffers.addresses();
        let [sending, receiving] = &mut self.segments;
        sending.clear();
        receiving.clear();
        // Dropping a list would wait for the device.
        let mut lists = Vec::new();
        for field in fields {
            let list = whole_rows(sends, field.shape(), Some(device))?;
            let device_list = list.on_device(device, outgoing);
            field.pack_on_device(field.present_bank(level), &device_list)?;
            for (peer, rows) in sends {
                let bytes = rows.len() * field.row_bytes();
                add(sending, *peer, &mut outgoing, bytes);
            }
            for (peer, rows) in receives {
                let bytes = rows * field.row_bytes();
                add(receiving, *peer, &mut incoming, bytes);
            }
            lists.push(list);
        }
        if let Some(link) = Transport::of(world).link {
            link.start(sending, receiving)?;
            link.finish()?;
        }
        Ok(())
    }

    /// Unpacks received rows of `level`; each entry is a row and its position among the received rows.
    pub(crate) fn unpack_rows(
        &self,
        world: &mut World,
        level: usize,
        rows: &[(u32, usize)],
        arrived: &ReceivedRows,
        fields: &[StoreRef],
    ) -> Result<(), RanksError> {
        let Some(&(_, first)) = rows.first() else {
            return Ok(());
        };
        let [_, mut memory] = self.buffers.addresses();
        for (n, field) in fields.iter().enumerate() {
            let field = field.of_mut(world);
            let (at, shape) = (field.present_bank(level), field.shape());
            let before = |place| (shape.row() * place) as u64;
            let piece = |&(row, place): &(u32, usize)| Piece::whole(row, before(place), shape);
            let pieces: Vec<Piece> = rows.iter().map(piece).collect();
            match arrived {
                ReceivedRows::OnHost(bytes) => {
                    let bytes = &bytes[n][first * field.row_bytes()..];
                    field.unpack(at, &pieces, bytes, true)?;
                }
                ReceivedRows::OnDevice(count) => {
                    let Some(device) = &self.device else {
                        continue;
                    };
                    let mut device_list = ReusableBuffer::default();
                    device_list.set(device, &pieces)?;
                    let list = DevicePieces {
                        entries: &pieces,
                        device,
                        list: device_list.address(),
                        memory,
                        stride: 0,
                    };
                    field.unpack_on_device(at, &list, true)?;
                    memory += (count * field.row_bytes()) as u64;
                }
            }
        }
        Ok(())
    }
}

/// Lists whole rows of stores of `shape`, by peer.
fn whole_rows(
    rows: &[(usize, Vec<u32>)],
    shape: RowShape,
    device: Option<&Device>,
) -> Result<TransferList, RanksError> {
    let mut list = TransferList::default();
    let lists = rows.iter().map(|(peer, rows)| (*peer, &rows[..]));
    let whole = |row: &u32, before| Piece::whole(*row, before, shape);
    list.set(device, shape, lists, whole)?;
    Ok(list)
}

/// Appends a segment of `bytes` bytes at `memory` and advances `memory`.
fn add(segments: &mut Vec<Segment>, peer: usize, memory: &mut u64, bytes: usize) {
    let address = *memory;
    segments.push(Segment {
        peer,
        address,
        bytes,
    });
    *memory += bytes as u64;
}

/// Exchanges whole rows between hosts.
fn messages(
    world: &World,
    level: usize,
    sends: &[(usize, Vec<u32>)],
    fields: &[&dyn Store],
) -> Result<ReceivedRows, RanksError> {
    let width: usize = fields.iter().map(|field| field.row_bytes()).sum();
    let mut messages = Vec::new();
    for (peer, rows) in sends {
        let mut bytes = vec![0; rows.len() * width];
        let mut own = &mut bytes[..];
        for field in fields {
            let list = whole_rows(&[(*peer, rows.clone())], field.shape(), None)?;
            let (part, rest) = own.split_at_mut(rows.len() * field.row_bytes());
            field.pack(field.present_bank(level), &list.entries, part)?;
            own = rest;
        }
        let peer = *peer;
        messages.push(Message { peer, bytes });
    }
    let ranks = world.resource::<Ranks>().communicator();
    let received = ranks.exchange(messages)?;
    let mut arrived = vec![Vec::new(); fields.len()];
    for message in &received {
        let rows = message.bytes.len() / width;
        let mut bytes = &message.bytes[..];
        for (field, arrived) in fields.iter().zip(&mut arrived) {
            let (own, rest) = bytes.split_at(rows * field.row_bytes());
            arrived.extend_from_slice(own);
            bytes = rest;
        }
    }
    Ok(ReceivedRows::OnHost(arrived))
}
