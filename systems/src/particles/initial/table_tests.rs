//! Tests of identities from tables.

use super::ParticleSource;
use super::tests::{Folder, refused};
use nestar_deck::DeckError;

/// Returns the identities of the particles of a table.
fn identities(folder: &Folder, table: &str) -> Result<Vec<u64>, DeckError> {
    let rows = folder.source("bodies.csv", table, Some(0.0))?;
    let kept = (0..rows.count()).filter(|&n| rows.make(n).unwrap().is_some());
    Ok(kept.map(|n| rows.identity(n)).collect())
}

#[test]
fn the_column_id_says_identities() {
    let folder = Folder::new(
        "id",
        "x y z id\n1 2 3 9007199254740991\n1 2 3 0\n1 2 3 40\n",
    );
    assert_eq!(identities(&folder, "").unwrap(), [(1 << 53) - 1, 0, 40]);
    assert_eq!(identities(&folder, "id = \"row\"").unwrap(), [0, 1, 2]);
    assert_eq!(
        identities(&folder, "id = \"2*row + x\"").unwrap(),
        [1, 3, 5]
    );
    let late = "keep = \"row > 0\"\nposition = [\"row\", \"0\", \"0\"]";
    assert_eq!(identities(&folder, late).unwrap(), [0, 40]);
    refused(
        identities(&folder, "id = \"i\""),
        &["deck.toml:5", "a.id", "`i`"],
    );
    let folder = Folder::new("no-id", "x y z row\n1 2 3 7\n1 2 3 9\n");
    assert_eq!(identities(&folder, "").unwrap(), [0, 1]);
    assert_eq!(identities(&folder, "id = \"row\"").unwrap(), [7, 9]);
}

#[test]
fn identities_that_are_none_are_told_with_their_rows() {
    for (number, told) in [
        ("-1", "has the identity -1"),
        ("0.5", "has the identity 0.5"),
        ("9007199254740993", "has the identity 9007199254740992"),
        ("3", "rows 1 and 2 have the identity 3"),
    ] {
        let folder = Folder::new("wrong-id", &format!("x y z id\n1 2 3 3\n2 2 3 {number}\n"));
        refused(
            identities(&folder, ""),
            &["bodies.csv", told, "id = \"row\"", "deck.toml"],
        );
    }
    // rows that are not kept need no identity
    let folder = Folder::new("left-out", "x y z id\n1 2 3 3\n2 2 3 3\n");
    assert_eq!(identities(&folder, "keep = \"x > 1\"").unwrap(), [3]);
}
