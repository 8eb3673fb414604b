//! Requests halo patches from their owners.

use super::communicator::{Communicator, Message, RanksError};
use super::exchange_plan::ExchangePlan;
use super::neighbourhood::OctetPart;
use crate::mesh::Topology;

/// Answers requests for halo patches.
pub trait PatchOwners {
    /// Requests halo patches of `level` from their owners; `wanted` lists the octets of each owner.
    ///
    /// Adds the rows that other ranks request from this one to `plan`. Returns, by owner and octet, the mask of patches
    /// with children.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    fn request_halo(
        &self,
        topology: &Topology,
        level: usize,
        wanted: &[(usize, Vec<OctetPart>)],
        plan: &mut ExchangePlan,
    ) -> Result<Vec<Vec<u8>>, RanksError>;
}

/// Bytes of a request: key of the octet and mask of patches.
const REQUEST: usize = 9;

impl<C: Communicator + ?Sized> PatchOwners for C {
    fn request_halo(
        &self,
        topology: &Topology,
        level: usize,
        wanted: &[(usize, Vec<OctetPart>)],
        plan: &mut ExchangePlan,
    ) -> Result<Vec<Vec<u8>>, RanksError> {
        let request = |(peer, parts): &(usize, Vec<OctetPart>)| {
            let entry = |(key, mask): &OctetPart| key.to_le_bytes().into_iter().chain([*mask]);
            let bytes = parts.iter().flat_map(entry).collect();
            Message { peer: *peer, bytes }
        };
        let received = self.exchange(wanted.iter().map(request).collect())?;
        let mut answers = Vec::with_capacity(received.len());
        for request in received {
            answers.push(answer(topology, level, &request, plan)?);
        }
        let answers = self.exchange(answers)?;
        Ok(answers.into_iter().map(|answer| answer.bytes).collect())
    }
}

/// Adds the rows that one rank requests to the plan; the answer has one byte per octet.
fn answer(
    topology: &Topology,
    level: usize,
    request: &Message,
    plan: &mut ExchangePlan,
) -> Result<Message, RanksError> {
    let mut bytes = Vec::with_capacity(request.bytes.len() / REQUEST);
    for entry in request.bytes.as_chunks::<REQUEST>().0 {
        let [key @ .., mask] = *entry;
        let octet = topology.octet(level, u64::from_le_bytes(key));
        let octet = octet
            .filter(|octet| octet.owned & mask == mask)
            .ok_or_else(|| {
                RanksError::Transport(format!(
                    "rank {} requests patches of level {level} that rank {} does not own",
                    request.peer,
                    topology.rank()
                ))
            })?;
        for row in octet.rows(mask) {
            plan.send(request.peer, row);
        }
        bytes.push(topology.refined(octet));
    }
    let peer = request.peer;
    Ok(Message { peer, bytes })
}
