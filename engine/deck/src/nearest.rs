//! Suggestions for misspelt names.

/// Returns the name in `known` that is most similar to `word`; `None` if no name is similar.
///
/// The distance is the optimal string alignment distance: the number of inserted, deleted, replaced or swapped adjacent
/// characters. Case is ignored, and `-` equals `_`. A name is similar if at most a third of the longer word differs (at
/// least one character is allowed), or if one word is a prefix of the other and has at least three characters.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain =
        |text: &str| -> Vec<char> { text.to_lowercase().replace('-', "_").chars().collect() };
    let wanted = plain(word);
    if wanted.len() > 64 {
        return None;
    }
    let mut best: Option<(usize, &'a str)> = None;
    for name in known {
        let letters = plain(name);
        let allowed = (wanted.len().max(letters.len()) / 3).max(1);
        let mut steps = distance(&wanted, &letters);
        let begins = letters.starts_with(&wanted) || wanted.starts_with(&letters);
        if begins && wanted.len().min(letters.len()) >= 3 {
            steps = steps.min(allowed);
        }
        // every one-letter name is one replacement away from any other
        let unrelated = steps >= wanted.len().max(letters.len());
        if steps <= allowed
            && !(unrelated && steps > 0)
            && best.is_none_or(|(fewest, _)| steps < fewest)
        {
            best = Some((steps, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns the optimal string alignment distance, keeping three rows of the table.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_the_most_similar_name() {
        let known = ["limiter", "gamma", "riemann", "reconstruction", "left_edge"];
        for (word, meant) in [
            ("limitr", Some("limiter")),
            ("Limiter", Some("limiter")),
            ("gmama", Some("gamma")),
            ("left-edge", Some("left_edge")),
            ("recon", Some("reconstruction")),
            ("courant", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest("q", ["x", "y"]), None);
        assert_eq!(nearest("limiter", known), Some("limiter"));
    }
}
