//! Structures of parameters, with their tables, of the functions that give a list's numbers.

use super::Precision;
use crate::in_precision;
use nestar_device::{Parameter, Precise};
use std::sync::Arc;

/// Says where the values of a table stand on a device.
pub(super) type Placing<'a> = dyn FnMut(&Arc<[f64]>) -> u64 + 'a;

/// A structure of parameters.
pub(super) trait Structure: Send + Sync {
    /// Bytes that it takes in double precision, the most.
    fn most_bytes(&self) -> usize;
    /// Its bytes on a device.
    fn bytes(&self, precision: Precision, place: &mut Placing) -> Vec<u8>;
}

impl<P: Precise + Send + Sync> Structure for P {
    fn most_bytes(&self) -> usize {
        P::In::<f64>::BYTES
    }

    fn bytes(&self, precision: Precision, place: &mut Placing) -> Vec<u8> {
        in_precision!(precision, R => {
            let mut own = self.precise::<R>();
            own.bind(place);
            let mut bytes = vec![0; P::In::<R>::BYTES];
            own.write(&mut bytes);
            bytes
        })
    }
}

/// Alignment of every structure.
const ALIGNMENT: usize = 16;

/// The structures of a list, one behind the other at the same places in both precisions.
#[derive(Clone, Default)]
pub(super) struct Structures(Vec<(usize, Arc<dyn Structure>)>);

impl Structures {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where a structure stands, which is taken up if it is not there yet; bytes.
    pub fn place(&mut self, structure: &Arc<dyn Structure>) -> usize {
        let mut known = self.0.iter();
        if let Some((at, _)) = known.find(|(_, other)| Arc::ptr_eq(other, structure)) {
            return *at;
        }
        let end = self.bytes_to(self.0.len());
        self.0.push((end, structure.clone()));
        end
    }

    /// Bytes of the first so many.
    fn bytes_to(&self, count: usize) -> usize {
        let last = self.0[..count].last();
        last.map_or(0, |(at, last)| {
            (at + last.most_bytes()).next_multiple_of(ALIGNMENT)
        })
    }

    /// All of them as a device has them.
    pub fn bytes(&self, precision: Precision, place: &mut Placing) -> Vec<u8> {
        let mut all = vec![0; self.bytes_to(self.0.len())];
        for (at, structure) in &self.0 {
            let bytes = structure.bytes(precision, place);
            all[*at..at + bytes.len()].copy_from_slice(&bytes);
        }
        all
    }
}
