//! Collective error handling and flags. A function is called *collective* if all ranks must call it in the
//! same order.

use super::Error;
use nestar_engine_comm::{Ranks, RanksError, Reduction};

/// First byte of a message about a user's mistake, which is shown without a rank.
const MISTAKE: u8 = 1;
/// First byte of a message about a failure, which is shown with its rank.
const FAILURE: u8 = 0;

/// Bit that marks a rank with an error.
const FAILED: u64 = 1 << 63;

/// Makes the result of local work collective: all ranks return the error of the first rank that failed.
///
/// # Errors
/// The same on all ranks; one of them can report it for all.
pub fn agreed<T>(ranks: &Ranks, own: Result<T, Error>) -> Result<T, Error> {
    agreed_with_flags(ranks, own, 0).map(|(own, _)| own)
}

/// Runs `work` on the first rank and makes its error collective; other ranks get `None`. Collective.
///
/// # Errors
/// As [`agreed`].
pub fn on_first_rank<T>(
    ranks: &Ranks,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    agreed(ranks, (ranks.rank() == 0).then(work).transpose())
}

/// Makes a result collective as [`agreed`] and combines `flags` of all ranks by OR (63 bits) in the same
/// reduction.
///
/// # Errors
/// As [`agreed`].
pub fn agreed_with_flags<T>(
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
        // the other ranks cannot be reached
        (Err(_), Err(error)) => return Err(error),
        (Err(error), Ok(_)) => return Err(error.into()),
    };
    let own = failed.map_or_else(Vec::new, |error| message(&error));
    let all = ranks.communicator().all_gather(&own)?;
    let first = all.iter().enumerate();
    let first = first.filter_map(|(rank, message)| Some((rank, message.split_first()?)));
    let Some((rank, (&kind, text))) = first.into_iter().next() else {
        let why = "a rank has failed without a message";
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
    use nestar_engine_comm::ThreadRank;

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
