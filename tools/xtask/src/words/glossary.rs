//! The list of retired words, and where they are found.
use std::path::Path;

/// Nouns and established terms that end like participles.
const NOUNS: [&str; 24] = [
    "building",
    "burning",
    "cooling",
    "crushing",
    "derived",
    "driving",
    "embedding",
    "ending",
    "heating",
    "nesting",
    "numbering",
    "observed",
    "padding",
    "pairing",
    "scaling",
    "seed",
    "sharding",
    "speed",
    "staggered",
    "staging",
    "subcycling",
    "testing",
    "timing",
    "warning",
];
/// Pronouns, adverbs and verbs that name no thing.
const NO_NOUNS: [&str; 24] = [
    "above", "after", "again", "ahead", "along", "alone", "around", "before", "behind", "below",
    "beneath", "beyond", "held", "kept", "lent", "made", "near", "others", "own", "taken", "tell",
    "these", "whole", "whose",
];

/// Retired words of the file `retired.txt` beside this module.
#[derive(Default)]
pub struct Glossary {
    /// Names in code and their replacements.
    identifiers: Vec<Entry>,
    /// Words and phrases in comments and documents.
    phrases: Vec<Entry>,
}

struct Entry {
    retired: String,
    replacement: String,
}

impl Glossary {
    /// Reads lines `retired = replacement` below the headings `[identifiers]` and `[phrases]`.
    ///
    /// # Errors
    /// One of the lists is missing or empty.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut glossary = Self::default();
        let mut heading = "";
        for line in text.lines() {
            if line.starts_with('[') {
                heading = line;
            }
            let Some((retired, replacement)) = line.split_once(" = ") else {
                continue;
            };
            let list = match heading {
                "[identifiers]" => &mut glossary.identifiers,
                "[phrases]" => &mut glossary.phrases,
                _ => continue,
            };
            list.push(Entry {
                retired: retired.into(),
                replacement: replacement.into(),
            });
        }
        if glossary.identifiers.is_empty() || glossary.phrases.is_empty() {
            return Err("the list of retired identifiers or of retired phrases is missing".into());
        }
        Ok(glossary)
    }

    /// Finds retired names anywhere in a file of code, and retired phrases in its comments.
    pub fn check_code(&self, file: &str, text: &str, found: &mut Vec<String>) {
        for (n, line) in text.lines().enumerate() {
            for entry in &self.identifiers {
                if contains(line, &entry.retired, is_identifier) {
                    found.push(entry.finding(file, n));
                }
            }
            if let Some((_, comment)) = line.split_once("//") {
                self.check_line(file, n, comment, found);
            }
        }
    }

    /// Finds retired phrases in a document.
    pub fn check_text(&self, file: &str, text: &str, found: &mut Vec<String>) {
        for (n, line) in text.lines().enumerate() {
            self.check_line(file, n, line, found);
        }
    }

    fn check_line(&self, file: &str, n: usize, line: &str, found: &mut Vec<String>) {
        let line = line.to_lowercase();
        for entry in &self.phrases {
            if contains(&line, &entry.retired, char::is_alphabetic) {
                found.push(entry.finding(file, n));
            }
        }
    }

    /// Finds file names that are participles, pronouns or adverbs: files are named by nouns.
    pub fn check_file_name(&self, file: &str, found: &mut Vec<String>) {
        let stem = Path::new(file)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let last = stem.rsplit('_').next().unwrap_or_default();
        let participle = ["ing", "ed"]
            .iter()
            .any(|ending| last.len() > 4 && last.ends_with(ending));
        if (participle && !NOUNS.contains(&last)) || NO_NOUNS.contains(&stem.as_ref()) {
            found.push(format!(
                "{file}: `{stem}` names no thing: name the file by a noun of the field"
            ));
        }
    }
}

impl Entry {
    fn finding(&self, file: &str, n: usize) -> String {
        format!(
            "{file}:{}: `{}` is retired: use `{}`",
            n + 1,
            self.retired,
            self.replacement
        )
    }
}

fn is_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns `true` if `word` occurs in `line` with no character of a word beside it.
fn contains(line: &str, word: &str, of_word: fn(char) -> bool) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(of_word) && !after.is_some_and(of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::Glossary;

    const TEXT: &str =
        "[identifiers]\nStretch = Span\nOldName = Comm\n[phrases]\nan old phrase = another\n";

    fn found(text: &str) -> Vec<String> {
        let glossary = Glossary::parse(TEXT).unwrap();
        let mut found = Vec::new();
        glossary.check_code("a.rs", text, &mut found);
        found
    }

    #[test]
    fn retired_names_are_found_as_whole_words_and_phrases_in_comments_alone() {
        assert_eq!(
            found("let a = Stretch::new(); // an old phrase"),
            [
                "a.rs:1: `Stretch` is retired: use `Span`",
                "a.rs:1: `an old phrase` is retired: use `another`",
            ]
        );
        assert!(found("let a = Stretched::new(\"an old phrase\");").is_empty());
        assert_eq!(found("\nuse comm::OldName;").len(), 1);
    }

    #[test]
    fn files_are_named_by_nouns() {
        let glossary = Glossary::parse(TEXT).unwrap();
        let mut found = Vec::new();
        for file in [
            "a/taken.rs",
            "a/called.rs",
            "a/leaving.rs",
            "a/beyond.cuh",
            "a/gas_listed.rs",
        ] {
            glossary.check_file_name(file, &mut found);
        }
        assert_eq!(found.len(), 5, "{found:?}");
        for file in [
            "a/cooling.rs",
            "a/subcycling.rs",
            "a/seed.rs",
            "a/ring.rs",
            "a/halo.rs",
        ] {
            glossary.check_file_name(file, &mut found);
        }
        assert_eq!(found.len(), 5, "{found:?}");
    }

    #[test]
    fn a_glossary_without_lists_is_refused() {
        assert!(Glossary::parse("# Words\n").is_err());
    }
}
