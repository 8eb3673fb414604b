//! What the ranks of a run agree on: whether work went well everywhere, and what else a few bits say.

use super::Error;
use crate::comm::{Ranks, RanksError, Reduction};

/// First byte of a message about a mistake of the user, which is told as it is.
const MISTAKE: u8 = 1;
/// First byte of a message about a failure, which is told with the rank.
const FAILURE: u8 = 0;

/// The bit of a rank that has an error.
const FAILED: u64 = 1 << 63;

/// What a rank got from work of its own, if all ranks got through with theirs. All ranks call this.
///
/// # Errors
/// That of the first rank that has one, on all ranks the same: they end together, and one of them can tell for all.
pub(crate) fn agreed<T>(ranks: &Ranks, own: Result<T, Error>) -> Result<T, Error> {
    agreed_with_flags(ranks, own, 0).map(|(own, _)| own)
}

/// What `work` gives to the first rank; nothing to the others. All ranks call this.
///
/// # Errors
/// As [`agreed`].
pub(crate) fn on_first_rank<T>(
    ranks: &Ranks,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    agreed(ranks, (ranks.rank() == 0).then(work).transpose())
}

/// As [`agreed`], with the bits that any rank sets in `flags`, of which there are 63: one number is reduced.
///
/// # Errors
/// As [`agreed`].
pub(crate) fn agreed_with_flags<T>(
    ranks: &Ranks,
    own: Result<T, Error>,
    flags: u64,
) -> Result<(T, u64), Error> {
    if ranks.is_single() {
        return own.map(|own| (own, flags));
    }
    let mut bits = [if own.is_err() { FAILED } else { flags }];
    let reduced = ranks.communicator().reduce(Reduction::Or, &mut bits);
    let failed = match (reduced, own) {
        (Ok(()), Ok(own)) if bits[0] & FAILED == 0 => return Ok((own, bits[0])),
        (Ok(()), own) => own.err(),
        // the others cannot be asked
        (Err(_), Err(error)) => return Err(error),
        (Err(error), Ok(_)) => return Err(error.into()),
    };
    let own = failed.map_or_else(Vec::new, |error| message(&error));
    let all = ranks.communicator().all_gather(&own)?;
    let first = all.iter().enumerate();
    let first = first.filter_map(|(rank, message)| Some((rank, message.split_first()?)));
    let Some((rank, (&kind, text))) = first.into_iter().next() else {
        let why = "a rank has failed without a word";
        return Err(RanksError::Transport(why.into()).into());
    };
    let message = String::from_utf8_lossy(text).into_owned();
    Err(match kind {
        MISTAKE => Error::Setup(message),
        _ => RanksError::Stopped { rank, message }.into(),
    })
}

fn message(error: &Error) -> Vec<u8> {
    let kind = match error {
        Error::Deck(_) | Error::Setup(_) => MISTAKE,
        _ => FAILURE,
    };
    let mut message = vec![kind];
    message.extend(error.to_string().into_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::ThreadRank;

    fn on_ranks<T: Send>(size: usize, work: impl Fn(&Ranks) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let work = &work;
            let start = |rank| scope.spawn(move || work(&Ranks::new(rank)));
            let started: Vec<_> = ThreadRank::connect(size).into_iter().map(start).collect();
            started.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_ranks_get_the_error_of_the_first_that_has_one() {
        let text = |kind: fn(String) -> Error, failing: &[usize]| {
            let told = on_ranks(3, |ranks| {
                let rank = ranks.rank();
                let own = match failing.contains(&rank) {
                    true => Err(kind(format!("why {rank}"))),
                    false => Ok(rank),
                };
                agreed(ranks, own).map_err(|error| error.to_string())
            });
            assert!(told.iter().all(|one| one.is_ok() || *one == told[0]));
            told[0].clone()
        };
        assert_eq!(text(Error::Snapshot, &[]), Ok(0));
        let failed = |rank: usize| Err(format!("rank {rank} failed: why {rank}"));
        assert_eq!(text(Error::Snapshot, &[2]), failed(2));
        assert_eq!(text(Error::Snapshot, &[0, 1, 2]), failed(0));
        assert_eq!(text(Error::Setup, &[1, 2]), Err("why 1".into()));
    }

    #[test]
    fn a_flag_of_any_rank_counts_for_all() {
        let joined = on_ranks(3, |ranks| {
            let (own, bits) =
                agreed_with_flags(ranks, Ok(ranks.rank()), 1 << (2 * ranks.rank())).unwrap();
            assert_eq!(own, ranks.rank());
            bits
        });
        assert_eq!(joined, [0b1_0101; 3]);
    }
}
