//! Tests of particle sources.

use super::lattice::LatticeInitial;
use super::random::RandomInitial;
use super::sphere::SphereInitial;
use super::table::{TableInitial, TableSource};
use super::{InitialParticle, ParticleSource, SpeciesInfo};
use crate::spheres::NamedSpheres;
use nestar_deck::{Deck, DeckError};
use nestar_device::random::Stream;
use nestar_engine::mesh::Domain;
use std::path::PathBuf;

const STREAM: Stream = Stream {
    seed: 1,
    purpose: 7,
    step: 0,
};

fn deck(text: &str) -> Deck {
    Deck::parse("deck.toml", text).unwrap()
}

pub(super) fn refused<T>(found: Result<T, DeckError>, words: &[&str]) {
    let Err(error) = found else {
        panic!("no word of {words:?}");
    };
    for word in words {
        assert!(error.to_string().contains(word), "no {word} in {error}");
    }
}

/// A species with these scalars and individual masses.
fn about(scalars: &[String]) -> SpeciesInfo<'_> {
    SpeciesInfo {
        name: "star",
        mass: None,
        scalars,
    }
}

fn all(source: &dyn ParticleSource) -> Vec<InitialParticle> {
    (0..source.count())
        .filter_map(|id| source.make(id).unwrap())
        .collect()
}

#[test]
fn formulas_have_random_numbers_of_their_own() {
    let mut deck = deck(
        r#"
        [a]
        count    = 40000
        position = ["u0 + id", "2*u1", "u2*u3"]
        velocity = ["g0", "g1 + 3", "x*y"]
        mass     = "u4"
        keep     = "u5 < 0.5"
        scalars  = { age = "r" }
        "#,
    );
    let random: RandomInitial = deck.table("a").unwrap();
    let names = ["metals".into(), "age".into()];
    let draws = random.draws(&deck, "a", &about(&names), STREAM).unwrap();
    assert_eq!(draws.count(), 40_000);
    let made = all(&draws);
    let count = made.len() as f64;
    assert!((count - 20_000.0).abs() < 400.0, "{count}");
    let mean = |of: &dyn Fn(&InitialParticle) -> f64| made.iter().map(of).sum::<f64>() / count;
    let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.03, "{found} {wanted}");
    near(mean(&|p| p.position[0].fract()), 0.5);
    near(mean(&|p| p.position[1]), 1.0);
    near(mean(&|p| p.position[2]), 0.25);
    near(mean(&|p| p.velocity[0]), 0.0);
    near(mean(&|p| p.velocity[0].powi(2)), 1.0);
    near(mean(&|p| p.velocity[1]), 3.0);
    near(mean(&|p| p.velocity[0] * (p.velocity[1] - 3.0)), 0.0);
    near(mean(&|p| p.mass), 0.5);
    for p in &made {
        let [x, y, z] = p.position;
        assert_eq!(p.velocity[2], x * y);
        assert!((p.scalars[1] - (x * x + y * y + z * z).sqrt()).abs() < 1e-9 * p.scalars[1]);
        assert_eq!(p.scalars[0], 0.0);
    }
    // a particle depends on the seed and the identity only
    let other = Stream { seed: 2, ..STREAM };
    let others = random.draws(&deck, "a", &about(&names), other).unwrap();
    assert_eq!(draws.make(17), draws.make(17));
    assert_ne!(
        draws.make(17).unwrap().map(|p| p.mass),
        others.make(17).unwrap().map(|p| p.mass)
    );
    deck.set("a.position=[\"x\", \"0\", \"0\"]").unwrap();
    let wrong: RandomInitial = deck.table("a").unwrap();
    refused(
        wrong.draws(&deck, "a", &about(&names), STREAM),
        &["a.position[0]", "x"],
    );
    refused(
        random.draws(&deck, "a", &about(&[]), STREAM),
        &["`age` in [a.scalars]"],
    );
}

#[test]
fn spheres_share_particles_by_mass() {
    let text = r#"
        [spheres.large]
        centre         = [1.0, 2.0, 3.0]
        velocity       = [10.0, 0.0, 0.0]
        particles.dark = { kind = "plummer", mass = 3.0, radius = 0.01 }
        truncation     = 0.1
        [spheres.small]
        centre         = [-1.0, 0.0, 0.0]
        particles.dark = { kind = "plummer", mass = 1.0, radius = 0.01 }
        truncation     = 0.1
        [a]
        sphere    = ["large", "small"]
        component = "dark"
        count     = 1000
    "#;
    let mut deck = deck(text);
    let spheres = NamedSpheres::of(&mut deck, 1.0, 5.0 / 3.0).unwrap();
    let initial: SphereInitial = deck.table("a").unwrap();
    let parts = initial.parts(&deck, "a", Some(&spheres), STREAM).unwrap();
    let share = (1.0f64 + 0.01).powf(-1.5);
    assert!((parts.mass().unwrap() * 1000.0 / (4.0 * share) - 1.0).abs() < 1e-9);
    let made = all(&parts);
    assert_eq!(made.len(), 1000);
    for (id, p) in made.iter().enumerate() {
        let centre = if id < 750 {
            [1.0, 2.0, 3.0]
        } else {
            [-1.0, 0.0, 0.0]
        };
        let away: f64 = (0..3).map(|a| (p.position[a] - centre[a]).powi(2)).sum();
        assert!(away <= 0.01 * (1.0 + 1e-12), "{id}");
    }
    let speed = made[..750].iter().map(|p| p.velocity[0]).sum::<f64>() / 750.0;
    assert!((speed - 10.0).abs() < 1.0, "{speed}");
    let twice: SphereInitial = {
        deck.set("a.sphere=[\"large\", \"small\", \"large\"]")
            .unwrap();
        deck.table("a").unwrap()
    };
    refused(
        twice.parts(&deck, "a", Some(&spheres), STREAM),
        &["a.sphere[2]", "large", "twice"],
    );
    refused(
        initial.parts(&deck, "a", None, STREAM),
        &["a.sphere", "[spheres]"],
    );
}

/// A folder with a deck and a file.
pub(super) struct Folder(pub PathBuf);

impl Folder {
    pub(super) fn new(name: &str, file: &str) -> Self {
        let name = format!("nestar-particles-{name}-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&folder.0).unwrap();
        std::fs::write(folder.0.join("bodies.csv"), file).unwrap();
        folder
    }

    fn rows(&self, table: &str, mass: Option<f64>) -> Result<Vec<InitialParticle>, DeckError> {
        self.rows_of("bodies.csv", table, mass)
    }

    pub(super) fn rows_of(
        &self,
        file: &str,
        table: &str,
        mass: Option<f64>,
    ) -> Result<Vec<InitialParticle>, DeckError> {
        self.source(file, table, mass).map(|rows| all(&rows))
    }

    pub(super) fn source(
        &self,
        file: &str,
        table: &str,
        mass: Option<f64>,
    ) -> Result<TableSource, DeckError> {
        let name = self.0.join("deck.toml").display().to_string();
        let text = format!("[constants]\nkm_s = 0.5\n[a]\nfile = {file:?}\n{table}");
        let mut deck = Deck::parse(&name, &text)?;
        let own: TableInitial = deck.table("a")?;
        let about = SpeciesInfo {
            name: "star",
            mass,
            scalars: &["age".into()],
        };
        own.rows(&deck, "a", &about)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn tables_give_one_particle_per_row() {
    let folder = Folder::new(
        "rows",
        "x, y, z, vx, vy, vz, mass, age # Mpc, km/s\n1, 2, 3, 4, 5, 6, 7, 8\n-1, -2, -3, 0, 0, 0, 1, 0\n",
    );
    let made = folder.rows("", None).unwrap();
    let first = InitialParticle {
        position: [1.0, 2.0, 3.0],
        velocity: [4.0, 5.0, 6.0],
        mass: 7.0,
        scalars: vec![8.0],
    };
    assert_eq!((made.len(), &made[0]), (2, &first));
    let scaled = "position = [\"10*x\", \"y\", \"z\"]\nvelocity = [\"vx*km_s\", \"0\", \"vz\"]\nmass = \"2*mass\"\nkeep = \"mass > 1\"\n\
                  scalars = { age = \"age + 1\" }";
    let made = folder.rows(scaled, None).unwrap();
    let first = InitialParticle {
        position: [10.0, 2.0, 3.0],
        velocity: [2.0, 0.0, 6.0],
        mass: 14.0,
        scalars: vec![9.0],
    };
    assert_eq!(made, [first]);
    refused(
        folder.rows("mass = \"m\"", None),
        &["a.mass", "deck.toml:5", "`m`"],
    );
    refused(folder.rows("file = \"b.csv\"", None), &["twice"]);
}

#[test]
fn wrong_tables_are_reported_with_line_and_column() {
    let folder = Folder::new("wrong", "x y z\n1 2 3\n4 five 6\n");
    refused(
        folder.rows("", Some(1.0)),
        &["bodies.csv:3:3", "five", "deck.toml:4"],
    );
    let folder = Folder::new("massless", "x y z\n1 2 3\n");
    refused(folder.rows("", None), &["a.mass", "column mass"]);
    let rest = folder.rows("", Some(1.0)).unwrap();
    assert_eq!((rest[0].velocity, &rest[0].scalars), ([0.0; 3], &vec![0.0]));
    let folder = Folder::new("nameless", "1 2 3\n");
    let position = "position = [\"column_1\", \"column_2\", \"column_3\"]";
    assert_eq!(
        folder.rows(position, Some(1.0)).unwrap()[0].position,
        [1.0, 2.0, 3.0]
    );
}

#[test]
fn a_group_of_zarr_arrays_is_a_table() {
    let folder = Folder::new("zarr", "");
    let group = folder.0.join("bodies.zarr");
    let write = |name: &str, shape: &str, chunk: &str, numbers: &[f64]| {
        let array = group.join(name);
        let file = array.join("c").join(chunk);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        std::fs::write(file, bytes).unwrap();
        let text = format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": {shape}, "data_type": "float64", "fill_value": 0,
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": {shape}}}}},
            "chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "/"}}}},
            "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}], "attributes": {{}}}}"#
        );
        std::fs::write(array.join("zarr.json"), text).unwrap();
    };
    write("age", "[2]", "0", &[8.0, 9.0]);
    // ages are integers
    let [file, types] = ["age/c/0", "age/zarr.json"].map(|name| group.join(name));
    let whole: Vec<u8> = [8i64, 9].iter().flat_map(|n| n.to_le_bytes()).collect();
    std::fs::write(file, whole).unwrap();
    let text = std::fs::read_to_string(&types).unwrap();
    std::fs::write(types, text.replace("float64", "int64")).unwrap();
    write("mass", "[2]", "0", &[7.0, 1.0]);
    write(
        "position",
        "[2, 3]",
        "0/0",
        &[1.0, 2.0, 3.0, -1.0, -2.0, -3.0],
    );
    let text = r#"{"zarr_format": 3, "node_type": "group"}"#;
    std::fs::write(group.join("zarr.json"), text).unwrap();
    let position = "position = [\"position_x\", \"position_y\", \"2*position_z\"]";
    let rows = |table: &str| folder.rows_of("bodies.zarr", table, None);
    let made = rows(&format!("{position}\nkeep = \"mass > 1\"")).unwrap();
    let first = InitialParticle {
        position: [1.0, 2.0, 6.0],
        mass: 7.0,
        scalars: vec![8.0],
        ..InitialParticle::default()
    };
    assert_eq!(made, [first]);
    let alone = "position = [\"1\", \"2\", \"3\"]\nmass = \"4\"\nscalars = { age = \"5\" }";
    assert_eq!(rows(alone).unwrap().len(), 2);
    refused(rows(""), &["a.position[0]", "`x`"]);
    write("mass", "[2]", "0", &[7.0, f64::NAN]);
    refused(rows(position), &["mass: its value in row 2 is NaN"]);
    std::fs::remove_file(group.join("mass/c/0")).unwrap();
    refused(rows(position), &["deck.toml:4", "c/0 is missing"]);
}

#[test]
fn particles_without_mass_are_refused() {
    let text = "[a]\ncount = 3\nposition = [\"u0\", \"u1\", \"u2\"]\n[b]\npoints = [2, 2, 2]";
    let mut deck = deck(text);
    let random: RandomInitial = deck.table("a").unwrap();
    let words = ["a.mass", "particles.species.star.mass"];
    refused(random.draws(&deck, "a", &about(&[]), STREAM), &words);
    let parameters = SpeciesInfo {
        mass: Some(0.0),
        ..about(&[])
    };
    assert!(random.draws(&deck, "a", &parameters, STREAM).is_ok());
    let lattice: LatticeInitial = deck.table("b").unwrap();
    let domain = Domain {
        left_edge: [0.0; 3],
        right_edge: [1.0; 3],
        root: [1; 3],
        periodic: [true; 3],
    };
    refused(
        lattice.points(&deck, "b", &about(&[]), &domain, None),
        &["b.mass", "particles.species.star.mass"],
    );
}

#[test]
fn a_condition_that_is_not_a_number_is_refused() {
    let text =
        "[a]\ncount = 3\nposition = [\"id\", \"1\", \"2\"]\nmass = \"1\"\nkeep = \"sqrt(1.5 - x)\"";
    let mut deck = deck(text);
    let random: RandomInitial = deck.table("a").unwrap();
    let draws = random.draws(&deck, "a", &about(&[]), STREAM).unwrap();
    assert!(draws.make(1).unwrap().is_some());
    let error = draws.make(2).unwrap_err();
    assert!(
        error.contains("`a.keep`") && error.contains("[2.0, 1.0, 2.0]"),
        "{error}"
    );
}

#[test]
fn columns_have_unique_names() {
    let folder = Folder::new("names", "x y z column_2\n1 2 3 4\n");
    assert!(folder.rows("", Some(1.0)).is_ok());
    let folder = Folder::new("twice", "x,y[1],z,column_2\n1,2,3,4\n");
    refused(folder.rows("", Some(1.0)), &["`column_2`", "rename"]);
}

#[test]
fn ranks_create_each_particle_once_in_equally_many_portions() {
    for (size, count, most) in [(1, 10, 4), (3, 11, 2), (5, 4, 3), (4, 0, 1), (2, 8, 100)] {
        let of = |rank| super::portions(rank, size, count, most).collect::<Vec<_>>();
        let all: Vec<_> = (0..size).map(of).collect();
        assert!(all.iter().all(|portions| portions.len() == all[0].len()));
        let portions = all.iter().flatten();
        assert!(
            portions
                .clone()
                .all(|ids| ids.clone().count() as u64 <= most)
        );
        let ids: Vec<u64> = portions.cloned().flatten().collect();
        assert_eq!(ids, (0..count).collect::<Vec<_>>(), "{size} {count} {most}");
    }
}

/// Returns the identities of the particles of a table.
fn identities(folder: &Folder, table: &str) -> Result<Vec<u64>, DeckError> {
    let rows = folder.source("bodies.csv", table, Some(0.0))?;
    let kept = (0..rows.count()).filter(|&n| rows.make(n).unwrap().is_some());
    Ok(kept.map(|n| rows.identity(n)).collect())
}

#[test]
fn the_column_id_gives_identities() {
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
fn invalid_identities_are_reported_with_their_rows() {
    for (number, message) in [
        ("-1", "has the identity -1"),
        ("0.5", "has the identity 0.5"),
        ("9007199254740993", "has the identity 9007199254740992"),
        ("3", "rows 1 and 2 have the identity 3"),
    ] {
        let folder = Folder::new("wrong-id", &format!("x y z id\n1 2 3 3\n2 2 3 {number}\n"));
        refused(
            identities(&folder, ""),
            &["bodies.csv", message, "id = \"row\"", "deck.toml"],
        );
    }
    // rows that are not kept need no identity
    let folder = Folder::new("left-out", "x y z id\n1 2 3 3\n2 2 3 3\n");
    assert_eq!(identities(&folder, "keep = \"x > 1\"").unwrap(), [3]);
}
