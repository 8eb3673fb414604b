//! Tests of Parquet files.

use super::parquet::written::{ColumnValues, save};
use super::tests::{Folder, refused};
use super::{DeckError, InitialParticle};
use std::fs::{read, write};

/// Numbers of a column, all different and exact in single precision.
fn numbers(column: usize, rows: usize) -> ColumnValues {
    let number = |row| f64::from((1.0 / (1 + row + 7 * column) as f64 - 0.1) as f32);
    (0..rows).map(|row| Some(number(row))).collect()
}

const NAMES: [&str; 7] = ["x", "y", "z", "vx", "vy", "vz", "mass"];

fn bits(made: &[InitialParticle]) -> Vec<[u64; 8]> {
    let one = |made: &InitialParticle| {
        let ([x, y, z], [u, v, w]) = (made.position, made.velocity);
        [x, y, z, u, v, w, made.mass, made.scalars[0]].map(f64::to_bits)
    };
    made.iter().map(one).collect()
}

/// Columns of a table, the last of integers, and the same table as text.
fn table(rows: usize) -> (Vec<ColumnValues>, String) {
    let mut columns: Vec<ColumnValues> = (0..7).map(|n| numbers(n, rows)).collect();
    columns.push((0..rows).map(|row| Some(row as f64 - 3.0)).collect());
    let mut text = format!("{} age\n", NAMES.join(" "));
    for row in 0..rows {
        let values = columns.iter().map(|column| column[row].unwrap_or_default());
        let values: Vec<String> = values.map(|value| value.to_string()).collect();
        text += &(values.join(" ") + "\n");
    }
    (columns, text)
}

/// Codec, rows of a group, type of numbers, and the last column.
const WAYS: [(&str, usize, &str, &str); 5] = [
    (
        "UNCOMPRESSED",
        50_001,
        "required float",
        "required int32 age",
    ),
    ("SNAPPY", 20_000, "required double", "required int64 age"),
    ("ZSTD(3)", 7_001, "optional float", "optional int64 age"),
    (
        "GZIP(6)",
        50_000,
        "optional double",
        "optional int32 age (INTEGER(16,true))",
    ),
    ("LZ4_RAW", 16_384, "optional double", "required double age"),
];

#[test]
fn parquet_and_text_tables_agree() {
    let (columns, text) = table(50_001);
    let folder = Folder::new("parquet", &text);
    let expected = bits(&folder.rows_of("bodies.csv", "", None).unwrap());
    assert_eq!(expected.len(), 50_001);
    for (codec, group, number, last) in WAYS {
        let mut named = NAMES.map(|name| format!("{number} {name}")).to_vec();
        named.push(last.into());
        let table = named
            .iter()
            .map(|name| &**name)
            .zip(columns.iter().cloned());
        let path = folder.0.join("bodies.parquet");
        save(&path, codec, group, &table.collect::<Vec<_>>());
        let found = folder.rows_of("bodies.parquet", "", None).unwrap();
        assert!(bits(&found) == expected, "{codec} {number} {last}");
    }
}

/// Writes the table of positions with one more column.
fn beside(folder: &Folder, column: &str, values: ColumnValues) {
    let rows = values.len();
    let mut table: Vec<_> = ["required float x", "required float y", "required float z"]
        .map(|name| (name, numbers(1, rows)))
        .into();
    table.push((column, values));
    save(&folder.0.join("b"), "SNAPPY", 3, &table);
}

fn rows(folder: &Folder) -> Result<Vec<InitialParticle>, DeckError> {
    folder.rows_of("b", "", None)
}

#[test]
fn wrong_columns_are_reported_with_their_rows() {
    let folder = Folder::new("parquet-wrong", "");
    let four = |value| vec![Some(0.0), Some(1.0), Some(2.0), value, Some(4.0)];
    beside(&folder, "required double mass", four(Some(f64::NAN)));
    refused(
        rows(&folder),
        &["deck.toml:4", "/b: column \"mass\"", "NaN in row 4"],
    );
    beside(&folder, "optional int32 mass", four(None));
    refused(rows(&folder), &["column \"mass\"", "row 4", "null"]);
    beside(&folder, "required double masses", four(Some(3.0)));
    refused(rows(&folder), &["a.mass", "column mass"]);
    refused(
        folder.rows_of("b", "mass = \"2*m\"", None),
        &["a.mass", "`m`"],
    );
    // a column that is not used may have any type
    assert_eq!(folder.rows_of("b", "", Some(1.0)).unwrap().len(), 5);
    beside(&folder, "required float x", four(Some(3.0)));
    refused(rows(&folder), &["two columns", "`x`"]);
    for (column, kind) in [
        ("required binary mass (STRING)", "String"),
        ("required binary mass", "BYTE_ARRAY"),
        ("required int64 mass (TIMESTAMP(MILLIS,true))", "Timestamp"),
        ("required int32 mass (DECIMAL(9,2))", "Decimal"),
    ] {
        beside(&folder, column, four(Some(3.0)));
        refused(rows(&folder), &["column \"mass\"", kind, "double"]);
    }
    beside(&folder, "required double mass", vec![]);
    refused(rows(&folder), &["/b has no numbers"]);
    beside(
        &folder,
        "required group a { required double mass; }",
        four(Some(3.0)),
    );
    let nested = folder.rows_of("b", "mass = \"column_4\"", None);
    refused(nested, &["a.mass", "structure"]);
}

#[test]
fn unsigned_integers_stay_positive() {
    let folder = Folder::new("parquet-unsigned", "");
    for (column, mass) in [
        ("required int32 mass (INTEGER(32,false))", 4_294_967_295.0),
        ("required int32 mass (UINT_32)", 4_294_967_295.0),
        (
            "required int64 mass (INTEGER(64,false))",
            18_446_744_073_709_551_615.0,
        ),
        ("required int64 mass (INTEGER(64,true))", -1.0),
    ] {
        beside(&folder, column, vec![Some(-1.0)]);
        assert_eq!(rows(&folder).unwrap()[0].mass, mass, "{column}");
    }
}

#[test]
fn damaged_files_are_refused() {
    let folder = Folder::new("parquet-damaged", "");
    beside(&folder, "optional double mass", numbers(0, 9));
    let (path, good) = (folder.0.join("b"), read(folder.0.join("b")).unwrap());
    for length in [0, 4, 12, good.len() / 2, good.len() - 1] {
        write(folder.0.join("b.parquet"), &good[..length]).unwrap();
        let short = folder.rows_of("b.parquet", "", None);
        refused(short, &["deck.toml:4", "b.parquet cannot be read"]);
    }
    let expected = bits(&rows(&folder).unwrap());
    let mut message = 0;
    for n in 0..good.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[n] ^= flip;
            write(&path, bad).unwrap();
            // the numbers may be wrong, but none is missing
            match rows(&folder) {
                Ok(found) => assert_eq!(found.len(), expected.len(), "{n}"),
                Err(_) => message += 1,
            }
        }
    }
    assert!(message > good.len(), "{message} of {}", 3 * good.len());
}
