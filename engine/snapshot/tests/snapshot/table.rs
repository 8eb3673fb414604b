//! Tables of Zarr arrays, as others write them and as snapshots have them.

use crate::common::{Folder, stars, write_array};
use nestar_snapshot::{column_names, read_columns};
use serde_json::json;

#[test]
fn the_items_of_a_snapshot_are_a_table() {
    let folder = Folder::new();
    let snapshot = stars::write(&folder, 0, 30).unwrap();
    let path = snapshot.path().join(stars::PATH);
    let names = [
        "id",
        "mark",
        "place",
        "position_x",
        "position_y",
        "position_z",
    ];
    assert_eq!(column_names(&path).unwrap(), names);
    let columns = read_columns(&path, &["position_z", "id", "position_x"]).unwrap();
    for (row, id) in columns[1].iter().enumerate() {
        assert_eq!(*id, (row * row + 5) as f64);
        assert_eq!(columns[0][row], (3 * row + 2) as f64 / 7.0);
        assert_eq!(columns[2][row], (3 * row) as f64 / 7.0);
    }
    assert!(read_columns(&path, &[]).unwrap().is_empty());
}

#[test]
fn what_is_no_table_is_refused_with_the_reason() {
    let folder = Folder::new();
    let path = &folder.0;
    std::fs::write(
        path.join("zarr.json"),
        r#"{"zarr_format":3,"node_type":"group"}"#,
    )
    .unwrap();
    let bytes =
        |numbers: &[f64]| -> Vec<u8> { numbers.iter().flat_map(|n| n.to_le_bytes()).collect() };
    let write = |name: &str, shape: &[u64], numbers: &[f64]| {
        write_array(
            &path.join(name),
            shape,
            "float64",
            json!(null),
            &bytes(numbers),
        );
    };
    write("x", &[2], &[1.0, 2.0]);
    write("short", &[1], &[1.0]);
    write("hole", &[2], &[1.0, f64::NAN]);
    write("wide", &[1, 2], &[1.0, 2.0]);
    assert_eq!(column_names(path).unwrap(), ["hole", "short", "x"]);
    assert_eq!(read_columns(path, &["x"]).unwrap(), [[1.0, 2.0]]);
    let error = |names: &[&str]| read_columns(path, names).unwrap_err().to_string();
    assert!(error(&["y"]).contains("no column \"y\"; it has hole, short, x"));
    assert!(error(&["x", "short"]).contains("it has 1 rows, x has 2"));
    assert!(error(&["hole"]).contains("row 2 is NaN"));
    for name in ["x", "short", "hole"] {
        std::fs::rename(path.join(name), path.join("wide").join(name)).unwrap();
    }
    let none = column_names(path).unwrap_err().to_string();
    let told = [
        "one-dimensional array for each column",
        "[rows, 3]",
        "the group has wide of shape [1, 2]",
    ];
    assert!(told.iter().all(|told| none.contains(told)), "{none}");
    let other = |name: &str| column_names(&path.join(name)).unwrap_err().to_string();
    assert!(other("wide").contains("a table is a group"));
    assert!(other("nothing").contains("nothing with this name"));
}
