//! Communicator of a single rank.

use super::communicator::{
    Communicator, Message, MessageBuffer, Messages, PendingExchange, RanksError, Reduction,
};

/// The communicator of a run with one rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleRank;

/// An exchange that is complete from the start.
struct Nothing(Messages<MessageBuffer>);

impl PendingExchange for Nothing {
    fn is_done(&mut self) -> Result<bool, RanksError> {
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<Messages<MessageBuffer>, RanksError> {
        Ok(self.0)
    }
}

impl Communicator for SingleRank {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn reduce(&self, _: Reduction, _: &mut [u64]) -> Result<(), RanksError> {
        Ok(())
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RanksError> {
        Ok(vec![bytes.to_vec()])
    }

    fn exchange(&self, sends: Vec<Message>) -> Result<Vec<Message>, RanksError> {
        Ok(sends)
    }

    fn start(
        &self,
        messages: Messages<MessageBuffer>,
    ) -> Result<Box<dyn PendingExchange>, RanksError> {
        Ok(Box::new(Nothing(messages)))
    }

    fn broadcast(&self, _: usize, _: &mut Vec<u8>) -> Result<(), RanksError> {
        Ok(())
    }

    fn barrier(&self) -> Result<(), RanksError> {
        Ok(())
    }

    fn abort(&self, _: &str) {}
}
