//! What goes one way between ranks: a list, rank by rank, made when the hierarchy changes and used until it changes again.

use crate::device::{Buffer, Device, DeviceError};
use crate::field::pieces::{OnDevice, Piece, REGISTER, RowShape};
use crate::field::store::{BankOf, Store};
use crate::mesh::faces::{Face, face_number};
use bytemuck::Pod;
use std::ops::Range;

/// What a list names: values of one field, on the host or on a device.
pub(in crate::ranks) trait Entry: Copy {
    /// What stands for it in a list on the device.
    type OnDevice: Pod;
    /// As such.
    fn on_device(&self) -> Self::OnDevice;
    /// Values of a component in each group of components.
    fn values(&self, shape: RowShape) -> usize;
    /// Packs `entries` of `field`.
    fn pack(
        field: &dyn Store,
        at: BankOf,
        entries: &[Self],
        out: &mut [u8],
    ) -> Result<(), DeviceError>;
    /// Sets `entries` of `field`; `owned` ones change the level.
    fn unpack(
        field: &mut dyn Store,
        at: BankOf,
        entries: &[Self],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError>;
    /// Starts to pack the entries of a list on the device.
    fn pack_there(field: &dyn Store, at: BankOf, list: &OnDevice<Self>) -> Result<(), DeviceError>;
    /// Starts to set the entries of a list on the device.
    fn unpack_there(
        field: &mut dyn Store,
        at: BankOf,
        list: &OnDevice<Self>,
        owned: bool,
    ) -> Result<(), DeviceError>;
}

impl Entry for Piece {
    type OnDevice = Self;
    fn on_device(&self) -> Self {
        *self
    }
    fn values(&self, shape: RowShape) -> usize {
        Piece::values(self, shape)
    }
    fn pack(
        field: &dyn Store,
        at: BankOf,
        entries: &[Self],
        out: &mut [u8],
    ) -> Result<(), DeviceError> {
        field.pack(at, entries, out)
    }
    fn unpack(
        field: &mut dyn Store,
        at: BankOf,
        entries: &[Self],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError> {
        field.unpack(at, entries, bytes, owned)
    }
    fn pack_there(field: &dyn Store, at: BankOf, list: &OnDevice<Self>) -> Result<(), DeviceError> {
        field.pack_on_device(at, list)
    }
    fn unpack_there(
        field: &mut dyn Store,
        at: BankOf,
        list: &OnDevice<Self>,
        owned: bool,
    ) -> Result<(), DeviceError> {
        field.unpack_on_device(at, list, owned)
    }
}

impl Entry for Face {
    type OnDevice = u32;
    fn on_device(&self) -> u32 {
        face_number(self)
    }
    fn values(&self, _: RowShape) -> usize {
        REGISTER
    }
    fn pack(
        field: &dyn Store,
        at: BankOf,
        entries: &[Self],
        out: &mut [u8],
    ) -> Result<(), DeviceError> {
        field.pack_faces(at.level, entries, out)
    }
    fn unpack(
        field: &mut dyn Store,
        at: BankOf,
        entries: &[Self],
        bytes: &[u8],
        _: bool,
    ) -> Result<(), DeviceError> {
        field.unpack_faces(at.level, entries, bytes)
    }
    fn pack_there(field: &dyn Store, at: BankOf, list: &OnDevice<Self>) -> Result<(), DeviceError> {
        field.pack_faces_on_device(at.level, list)
    }
    fn unpack_there(
        field: &mut dyn Store,
        at: BankOf,
        list: &OnDevice<Self>,
        _: bool,
    ) -> Result<(), DeviceError> {
        field.unpack_faces_on_device(at.level, list)
    }
}

/// A list on the device that is written anew now and then.
pub(in crate::ranks) struct DeviceList<T>(Option<Buffer<T>>);

impl<T> Default for DeviceList<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Pod> DeviceList<T> {
    /// Replaces the list.
    pub fn set(&mut self, device: &Device, values: &[T]) -> Result<(), DeviceError> {
        let known = self.0.as_ref().map_or(0, Buffer::len);
        if known < values.len() {
            // the old one goes first, to make room
            self.0 = None;
            // lists are short, and memory is long in coming: a level that grows shall not ask for it at every regrid
            self.0 = Some(device.buffer(2 * values.len())?);
        }
        match &self.0 {
            Some(buffer) => device.upload(buffer, 0, values),
            None => Ok(()),
        }
    }

    /// Address of the first element; 0 if there was never one.
    pub fn address(&self) -> u64 {
        self.0.as_ref().map_or(0, Buffer::address)
    }
}

/// What one rank gets or gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::ranks) struct Segment {
    pub peer: usize,
    /// Part of the list.
    pub entries: Range<usize>,
    /// Values of a component, counted from the start of the list.
    pub values: Range<usize>,
}

/// What goes one way, rank by rank.
pub(in crate::ranks) struct CopyList<T: Entry> {
    pub entries: Vec<T>,
    pub segments: Vec<Segment>,
    there: DeviceList<T::OnDevice>,
}

impl<T: Entry> Default for CopyList<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            segments: Vec::new(),
            there: DeviceList::default(),
        }
    }
}

impl<T: Entry> CopyList<T> {
    /// Replaces the content by what goes to or comes from each peer, ascending by peer: `entry` makes an entry of what is
    /// listed and the number of values before it, in stores of `shape`.
    pub fn set<'a, S: 'a>(
        &mut self,
        device: Option<&Device>,
        shape: RowShape,
        lists: impl Iterator<Item = (usize, &'a [S])>,
        entry: impl Fn(&S, u64) -> T,
    ) -> Result<(), DeviceError> {
        self.entries.clear();
        self.segments.clear();
        let mut values = 0;
        for (peer, list) in lists.filter(|(_, list)| !list.is_empty()) {
            let (first, start) = (self.entries.len(), values);
            for one in list {
                let made = entry(one, values as u64);
                values += made.values(shape);
                self.entries.push(made);
            }
            self.segments.push(Segment {
                peer,
                entries: first..self.entries.len(),
                values: start..values,
            });
        }
        let Some(device) = device else {
            return Ok(());
        };
        let there: Vec<T::OnDevice> = self.entries.iter().map(T::on_device).collect();
        self.there.set(device, &there)
    }

    /// The entries of a segment.
    pub fn of(&self, segment: &Segment) -> &[T] {
        &self.entries[segment.entries.clone()]
    }

    /// The list on the device, for values packed in `memory` there.
    pub fn on_device<'a>(&'a self, device: &'a Device, memory: u64) -> OnDevice<'a, T> {
        OnDevice {
            entries: &self.entries,
            device,
            list: self.there.address(),
            memory,
        }
    }

    /// Values of a component in all.
    pub fn values(&self) -> usize {
        self.segments.last().map_or(0, |last| last.values.end)
    }
}

/// Both ways.
pub(in crate::ranks) struct Route<T: Entry> {
    pub sends: CopyList<T>,
    pub receives: CopyList<T>,
}

impl<T: Entry> Default for Route<T> {
    fn default() -> Self {
        Self {
            sends: CopyList::default(),
            receives: CopyList::default(),
        }
    }
}
