//! What goes one way between ranks: a list, rank by rank, made when the hierarchy changes and used until it changes again.

use crate::device::{Buffer, Device, DeviceError};
use crate::field::device::face_number;
use crate::field::pieces::{OnDevice, Packed, Piece};
use crate::field::travel::REGISTER;
use crate::mesh::faces::Face;
use bytemuck::Pod;
use std::ops::Range;

/// What travels.
pub(in crate::ranks) trait Cargo: Copy {
    /// What stands for it in a list on the device.
    type There: Pod;
    /// As such.
    fn there(&self) -> Self::There;
    /// Values of a component.
    fn values(&self) -> usize;
}

impl Cargo for Piece {
    type There = Self;
    fn there(&self) -> Self {
        *self
    }
    fn values(&self) -> usize {
        self.cells()
    }
}

impl Cargo for Face {
    type There = u32;
    fn there(&self) -> u32 {
        face_number(self)
    }
    fn values(&self) -> usize {
        REGISTER
    }
}

/// A list on the device that is written anew now and then.
pub(in crate::ranks) struct Listed<T>(Option<Buffer<T>>);

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Pod> Listed<T> {
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
pub(in crate::ranks) struct Stretch {
    pub peer: usize,
    /// Part of the list.
    pub entries: Range<usize>,
    /// Values of a component, counted from the start of the lane.
    pub values: Range<usize>,
}

/// What goes one way, rank by rank.
pub(in crate::ranks) struct Lane<T: Cargo> {
    pub entries: Vec<T>,
    pub stretches: Vec<Stretch>,
    there: Listed<T::There>,
}

impl<T: Cargo> Default for Lane<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            stretches: Vec::new(),
            there: Listed::default(),
        }
    }
}

impl<T: Cargo> Lane<T> {
    /// Replaces the content by what goes to or comes from each peer, ascending by peer: `entry` makes an entry of what is
    /// listed and the number of values before it.
    pub fn set<'a, S: 'a>(
        &mut self,
        device: Option<&Device>,
        lists: impl Iterator<Item = (usize, &'a [S])>,
        entry: impl Fn(&S, u64) -> T,
    ) -> Result<(), DeviceError> {
        self.entries.clear();
        self.stretches.clear();
        let mut values = 0;
        for (peer, list) in lists.filter(|(_, list)| !list.is_empty()) {
            let (first, start) = (self.entries.len(), values);
            for one in list {
                let made = entry(one, values as u64);
                values += made.values();
                self.entries.push(made);
            }
            self.stretches.push(Stretch {
                peer,
                entries: first..self.entries.len(),
                values: start..values,
            });
        }
        let Some(device) = device else {
            return Ok(());
        };
        let there: Vec<T::There> = self.entries.iter().map(T::there).collect();
        self.there.set(device, &there)
    }

    /// The list on the device, for values packed in `memory` there.
    pub fn on_device(&self, memory: u64, packed: Packed) -> OnDevice {
        OnDevice {
            list: self.there.address(),
            count: self.entries.len(),
            memory,
            packed,
        }
    }

    /// Values of a component in all.
    pub fn values(&self) -> usize {
        self.stretches.last().map_or(0, |last| last.values.end)
    }
}

/// Both ways.
pub(in crate::ranks) struct Route<T: Cargo> {
    pub sends: Lane<T>,
    pub receives: Lane<T>,
}

impl<T: Cargo> Default for Route<T> {
    fn default() -> Self {
        Self {
            sends: Lane::default(),
            receives: Lane::default(),
        }
    }
}
