//! Views of a run: pictures that it has drawn itself, `views/NAME/NNNNNN.png`, and series, `views/NAME.zarr`.

use super::pictures::Failure;
use super::series::{self, names};
use serde_json::{Value, json};
use std::path::Path;

/// Returns the number of a picture by the name of its file.
fn number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".png")?;
    let is_plain = number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| number.parse().ok()).flatten()
}

/// A view of the run.
enum RunView {
    /// Pictures with these numbers.
    Pictures(String, Vec<u32>),
    /// A series, described.
    Series(Value),
}

impl RunView {
    /// Returns the view with this name; `None` if it has neither pictures nor a series.
    fn of(views: &Path, name: String) -> Option<Self> {
        if let Some(series) = series::describe(views, &name) {
            return Some(Self::Series(series));
        }
        let files = names(&views.join(&name));
        let numbers: Vec<u32> = files.iter().filter_map(|file| number(file)).collect();
        (!numbers.is_empty()).then_some(Self::Pictures(name, numbers))
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Pictures(name, _) => Some(name),
            Self::Series(described) => described["name"].as_str(),
        }
    }
}

/// Returns the views that have pictures, with the count of those, and the series, with the count of entries and the fields. If the view
/// `wanted`, or the first one, has pictures, it also has their numbers, those after `known` if that is given.
pub fn list(directory: &Path, wanted: Option<&str>, known: Option<u32>) -> Value {
    let views = directory.join("views");
    let found = names(&views).into_iter();
    let all: Vec<RunView> = found.filter_map(|name| RunView::of(&views, name)).collect();
    let chosen = all.iter().position(|view| view.name() == wanted);
    // what is known of another view does not count
    let known = known.filter(|_| chosen.is_some());
    let place = chosen.unwrap_or(0);
    let described = all.into_iter().enumerate().map(|(n, view)| match view {
        RunView::Series(described) => described,
        RunView::Pictures(name, numbers) if n != place => {
            json!({ "name": name, "count": numbers.len() })
        }
        RunView::Pictures(name, mut numbers) => {
            let count = numbers.len();
            numbers.retain(|number| known.is_none_or(|known| *number > known));
            json!({ "name": name, "count": count, "numbers": numbers })
        }
    });
    described.collect()
}

/// Reads a picture of a view.
///
/// # Errors
/// There is no such picture, or it cannot be read.
pub fn picture(directory: &Path, view: &str, wanted: u32) -> Result<Vec<u8>, Failure> {
    let views = directory.join("views");
    let missing = || Failure::new(404, "the run has no such picture (any more)");
    // only names that are there become paths
    let view = names(&views).into_iter().find(|name| name == view);
    let folder = views.join(view.ok_or_else(missing)?);
    let files = names(&folder).into_iter();
    let file = files.into_iter().find(|file| number(file) == Some(wanted));
    let path = folder.join(file.ok_or_else(missing)?);
    std::fs::read(&path)
        .map_err(|error| Failure::new(500, &format!("cannot read a picture: {error}")))
}

#[cfg(test)]
mod tests {
    use super::{list, picture};

    #[test]
    fn pictures_of_views_are_found_by_their_names_only() {
        let name = format!("nestar-view-views-{}", std::process::id());
        let run = std::env::temp_dir().join(name);
        let all = || list(&run, None, None);
        assert_eq!(all(), serde_json::json!([]));
        std::fs::create_dir_all(run.join("views/movie")).expect("a directory");
        std::fs::create_dir_all(run.join("views/line.zarr")).expect("a directory");
        for file in [
            "views/movie/000004.png",
            "views/movie/entries.csv",
            "000004.png",
        ] {
            std::fs::write(run.join(file), file).expect("a file");
        }
        let movie = serde_json::json!({ "name": "movie", "count": 1, "numbers": [4] });
        assert_eq!(all(), serde_json::json!([movie]));
        std::fs::create_dir_all(run.join("views/a")).expect("a directory");
        for file in ["views/a/000000.png", "views/movie/000011.png"] {
            std::fs::write(run.join(file), file).expect("a file");
        }
        let first = serde_json::json!({ "name": "a", "count": 1, "numbers": [0] });
        let counted = serde_json::json!({ "name": "a", "count": 1 });
        let rest = serde_json::json!({ "name": "movie", "count": 2 });
        let fresh = serde_json::json!({ "name": "movie", "count": 2, "numbers": [11] });
        assert_eq!(all(), serde_json::json!([first, rest]));
        assert_eq!(
            list(&run, Some("none"), Some(7)),
            serde_json::json!([first, rest])
        );
        assert_eq!(
            list(&run, Some("movie"), Some(4)),
            serde_json::json!([counted, fresh])
        );
        let found = |view: &str, number: u32| picture(&run, view, number);
        assert!(found("movie", 4).is_ok_and(|bytes| bytes.starts_with(b"views/movie")));
        for (view, number) in [
            ("movie", 5),
            ("..", 4),
            ("", 4),
            ("movie/..", 4),
            ("../views/movie", 4),
        ] {
            assert!(
                found(view, number).is_err_and(|failure| failure.status == 404),
                "{view}"
            );
        }
        std::fs::remove_dir_all(&run).expect("the directory");
    }
}
