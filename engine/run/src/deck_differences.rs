//! Differences between two decks: of a run and its restart, or of two ranks, which must agree.

use crate::RunOptions;
use nestar_engine_comm::{Ranks, RanksError};
use nestar_engine_step::error::agreed;
use nestar_engine_step::{Engine, Error};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use toml::Value;

/// Describes a setting that differs.
pub(super) struct SettingChange {
    pub key: String,
    /// Values before and after.
    pub values: [Option<Value>; 2],
    /// Text for messages.
    pub text: String,
}

/// Settings that do not affect results. The first ones may differ between ranks; the others control
/// collective work.
const IGNORED_KEYS: [&str; 6] = [
    "run.threads",
    "run.device",
    "run.queue",
    "run.audit",
    "run.start_from",
    "run.folder",
];
/// Number of settings that may differ between ranks.
const RANK_KEYS: usize = 3;

/// Returns the settings that differ between two resolved decks, except for output and machine settings.
pub(super) fn setting_changes(before: &str, now: &str) -> Vec<SettingChange> {
    differences(before, now, "was ", |key| {
        key.starts_with("output.") || IGNORED_KEYS.contains(&key)
    })
}

/// Returns the settings of a rank that differ from the first rank's, except for those that ranks may choose.
/// Directories are compared elsewhere.
fn between_ranks(first: &str, own: &str) -> Vec<String> {
    let changes = differences(first, own, "rank 0: ", |key| {
        key == "output.directory" || IGNORED_KEYS[..RANK_KEYS].contains(&key)
    });
    changes.into_iter().map(|change| change.text).collect()
}

/// Returns the settings that differ between two decks, with the text `word` and the value in `first`.
fn differences(
    first: &str,
    other: &str,
    word: &str,
    skips: impl Fn(&str) -> bool,
) -> Vec<SettingChange> {
    let (first, other) = (flatten(first), flatten(other));
    let keys: BTreeSet<&String> = first.keys().chain(other.keys()).collect();
    let shown = |value: Option<&Value>| value.map_or("absent".into(), Value::to_string);
    keys.into_iter()
        .filter(|key| !skips(key) && first.get(*key) != other.get(*key))
        .map(|key| {
            let values = [first.get(key), other.get(key)];
            let [first, own] = values.map(shown);
            SettingChange {
                key: key.clone(),
                values: values.map(Option::<&Value>::cloned),
                text: format!("{key} = {own} ({word}{first})"),
            }
        })
        .collect()
}

/// Flattens a TOML deck to full keys and values; empty if the text is no TOML.
fn flatten(text: &str) -> BTreeMap<String, Value> {
    fn flatten_into(path: &str, value: &Value, out: &mut BTreeMap<String, Value>) {
        let Value::Table(table) = value else {
            out.insert(path.to_string(), value.clone());
            return;
        };
        for (key, value) in table {
            let inner = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            flatten_into(&inner, value, out);
        }
    }
    let mut out = BTreeMap::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        flatten_into("", &Value::Table(table), &mut out);
    }
    out
}

/// Largest number of settings in a message.
const MAX_NAMED: usize = 4;

/// Identifies the program and deck of a rank.
#[derive(Clone, Serialize, Deserialize)]
struct RunIdentity {
    program: String,
    resume: bool,
    deck: String,
}

/// Checks that every rank runs the same as the first one. Collective, before anything that depends on the
/// deck.
///
/// # Errors
/// The difference of a rank; another rank has failed.
pub(super) fn require_same_run(sim: &Engine, options: &RunOptions) -> Result<(), Error> {
    let ranks = sim.world.resource::<Ranks>();
    let build = &options.build;
    let own = RunIdentity {
        program: format!("{} {}", build.version, build.commit),
        resume: options.resume,
        deck: sim.deck.resolved(),
    };
    let mut message = serde_json::to_vec(&own).unwrap_or_default();
    ranks.communicator().broadcast(0, &mut message)?;
    let first: RunIdentity = serde_json::from_slice(&message).map_err(|e| {
        RanksError::Transport(format!("the message of the first rank is damaged: {e}"))
    })?;
    let same = own.difference(&first).map_or(Ok(()), |how| {
        Err(Error::Setup(format!("rank {} {how}", ranks.rank())))
    });
    agreed(ranks, same)
}

impl RunIdentity {
    /// Describes the difference from the first rank, if any.
    fn difference(&self, first: &Self) -> Option<String> {
        if self.program != first.program {
            let (own, first) = (&self.program, &first.program);
            return Some(format!(
                "runs version {own} of the program, rank 0 version {first}: start the same version on all ranks"
            ));
        }
        if self.resume != first.resume {
            let word = if self.resume { "resumes" } else { "begins" };
            return Some(format!(
                "{word} a run and rank 0 does not: give all ranks the same arguments"
            ));
        }
        if self.deck == first.deck {
            return None;
        }
        let mut settings = between_ranks(&first.deck, &self.deck);
        let more = settings.len().saturating_sub(MAX_NAMED);
        settings.truncate(MAX_NAMED);
        if more > 0 {
            settings.push(format!("{more} more"));
        }
        let settings = (!settings.is_empty()).then(|| settings.join(", "))?;
        Some(format!(
            "has another deck than rank 0: {settings}; give all ranks the same deck and arguments"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::RunIdentity;

    fn identity(deck: &str) -> RunIdentity {
        RunIdentity {
            program: "1.0 abc".into(),
            resume: false,
            deck: deck.into(),
        }
    }

    #[test]
    fn only_machine_settings_may_differ_between_ranks() {
        let deck = |more: &str| identity(&format!("{more}\n[time]\ncourant = 0.4\nend = 1.0\n"));
        let first = deck("[run]\nthreads = 1\ndevice = \"cpu\"");
        assert_eq!(deck("[run]\nthreads = 2").difference(&first), None);
        for (switch, message) in [
            ("audit = true", "run.audit = true (rank 0: absent)"),
            (
                "start_from = \"a\"",
                "run.start_from = \"a\" (rank 0: absent)",
            ),
        ] {
            let how = deck(&format!("[run]\n{switch}")).difference(&first);
            assert!(how.expect("the decks differ").contains(message), "{switch}");
        }
        let other = identity("[time]\ncourant = 0.3\nend = 1.0\n").difference(&first);
        let other = other.expect("the decks differ");
        assert!(
            other.contains("time.courant = 0.3 (rank 0: 0.4);"),
            "{other}"
        );
        let many = identity("a=1\nb=1\nc=1\nd=1\n").difference(&first);
        let many = many.expect("the decks differ");
        assert!(
            many.contains("a = 1 (rank 0: absent)") && many.contains("2 more"),
            "{many}"
        );
    }

    #[test]
    fn ranks_must_run_one_program_with_equal_arguments() {
        let first = identity("");
        let message = |other: RunIdentity| other.difference(&first).unwrap_or_default();
        let program = "1.0 def".into();
        assert!(
            message(RunIdentity {
                program,
                ..first.clone()
            })
            .contains("version 1.0 def")
        );
        let resume = true;
        assert!(
            message(RunIdentity {
                resume,
                ..first.clone()
            })
            .contains("resumes")
        );
        assert_eq!(message(first.clone()), "");
    }
}
