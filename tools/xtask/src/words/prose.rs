//! Long sentences and broken links of documents.
use std::path::Path;

/// Most words of a sentence.
const LONGEST: usize = 35;

/// Returns `true` for the documents that users read.
pub fn is_document(file: &str) -> bool {
    file.ends_with(".md") && (file.starts_with("docs/") || file == "README.md")
}

/// Finds sentences of more than 35 words in a Markdown text. Code, tables and headings are left out.
pub fn check(file: &str, text: &str, found: &mut Vec<String>) {
    for paragraph in paragraphs(text) {
        for sentence in sentences(&paragraph.text) {
            let words = words(sentence);
            if words > LONGEST {
                let start: String = sentence.chars().take(60).collect();
                let line = paragraph.line;
                found.push(format!(
                    "{file}:{line}: a sentence of {words} words (at most {LONGEST}): \"{start}...\""
                ));
            }
        }
    }
}

/// Finds links to files that do not exist. Addresses of web pages and places within the page are left out.
pub fn check_links(root: &Path, file: &str, text: &str, found: &mut Vec<String>) {
    let folder = root
        .join(file)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default();
    for (n, line) in text.lines().enumerate() {
        for link in line.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or_default();
            let elsewhere = target.is_empty() || target.contains("://") || link.starts_with('#');
            if !elsewhere && !folder.join(target).exists() {
                found.push(format!(
                    "{file}:{}: the link leads to no file: {target}",
                    n + 1
                ));
            }
        }
    }
}

/// Lines of prose that belong together.
struct Paragraph {
    line: usize,
    text: String,
}

fn paragraphs(text: &str) -> Vec<Paragraph> {
    let (mut found, mut fenced) = (Vec::<Paragraph>::new(), false);
    let mut open = false;
    for (n, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            fenced = !fenced;
        }
        let is_item = ["- ", "* ", "> "]
            .iter()
            .any(|mark| trimmed.starts_with(mark))
            || trimmed
                .split_once(". ")
                .is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        if fenced
            || trimmed.is_empty()
            || ["```", "|", "#", "<"]
                .iter()
                .any(|mark| trimmed.starts_with(mark))
        {
            open = false;
            continue;
        }
        match found.last_mut() {
            Some(paragraph) if open && !is_item => {
                paragraph.text.push(' ');
                paragraph.text.push_str(trimmed);
            }
            _ => found.push(Paragraph {
                line: n + 1,
                text: trimmed.to_string(),
            }),
        }
        open = true;
    }
    found
}

/// Splits a paragraph behind full stops, question marks and exclamation marks that a blank follows.
fn sentences(paragraph: &str) -> Vec<&str> {
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, mark) in paragraph.match_indices(['.', '?', '!']) {
        let rest = &paragraph[at + mark.len()..];
        let closed = rest.trim_start_matches([')', '"', '*', '`', ']']);
        if closed.starts_with(' ') || closed.is_empty() {
            found.push(&paragraph[start..=at]);
            start = at + 1;
        }
    }
    found.push(&paragraph[start..]);
    found
}

/// Counts the words of a sentence. A piece of code or the address of a link counts as one.
fn words(sentence: &str) -> usize {
    let mut plain = String::new();
    for (n, part) in sentence.split('`').enumerate() {
        plain.push_str(if n % 2 == 0 { part } else { "code" });
    }
    plain
        .split_whitespace()
        .filter(|word| word.contains(char::is_alphanumeric))
        .count()
}

#[cfg(test)]
mod tests {
    use super::{check, check_links};
    use std::path::Path;

    #[test]
    fn long_sentences_are_found_where_they_are_prose() {
        let long = "word ".repeat(36);
        let text = format!(
            "Short.\n\n# {long}\n\n```\n{long}\n```\n\n| {long} |\n\nFirst. {long}\nlast.\n"
        );
        let mut found = Vec::new();
        check("docs/a.md", &text, &mut found);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("docs/a.md:11: a sentence of 37 words"),
            "{found:?}"
        );
    }

    #[test]
    fn links_lead_to_files() {
        let mut found = Vec::new();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text =
            "[a](../README.md), [b](https://example.org/x), [c](#place)\n[d](missing.md#place)\n";
        check_links(&root, "docs/a.md", text, &mut found);
        assert_eq!(
            found,
            ["docs/a.md:2: the link leads to no file: missing.md"]
        );
    }

    #[test]
    fn items_of_a_list_and_code_do_not_add_up() {
        let item = format!("- {}\n", "word ".repeat(20));
        let code = format!("{} `{}`.\n", "word ".repeat(30), "a b ".repeat(20));
        let mut found = Vec::new();
        check("docs/a.md", &format!("{item}{item}\n{code}"), &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}
