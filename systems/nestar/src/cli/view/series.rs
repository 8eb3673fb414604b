//! Pictures and curves of the series that a run writes as views: `views/NAME.zarr`.

use super::diagnostics::{in_units, readable_name};
use super::pictures::Failure;
use nestar_deck::CodeUnits;
use nestar_plot::{Format, Scale, TableColumn, TableMap, TableOptions, plot_map, plot_table};
use nestar_snapshot::{SeriesArray, SeriesReader};
use serde_json::{Value, json};
use std::path::Path;

/// Ending of the names of series.
const ENDING: &str = ".zarr";
/// Most entries that the curve of a point has; of a longer series, every second, fourth, ... entry.
const MOST_ENTRIES: u64 = 2048;
/// Most values of an entry that is drawn.
const MOST_VALUES: u64 = 1 << 26;
/// Relative differences of steps that count as equal.
const ROUNDING: f64 = 1e-6;

/// What is drawn of a series.
pub struct Wanted<'a> {
    /// Name of the directory in `views`.
    pub name: &'a str,
    /// Number of the entry; default: the latest one.
    pub entry: Option<u64>,
    /// Name of the array; default: the first one.
    pub array: Option<&'a str>,
    /// Logarithmic values.
    pub log: bool,
    /// Width in pixels.
    pub width_px: u32,
    /// File format.
    pub format: Format,
}

/// Units of a run, and the sizes that decide about those of times and lengths.
#[derive(Default)]
pub struct Sizes {
    /// Code units.
    pub units: CodeUnits,
    /// End of the run in code time.
    pub end: f64,
    /// Longest side of the box in code length.
    pub side: f64,
}

/// Returns the names of the arrays of a series besides `time` and `step`, sorted.
fn arrays(series: &SeriesReader) -> impl Iterator<Item = &str> {
    series
        .growing()
        .filter(|name| !["time", "step"].contains(name))
}

/// Describes the series with this name in the directory of views; `None` if there is none.
pub fn describe(views: &Path, name: &str) -> Option<Value> {
    let title = name.strip_suffix(ENDING)?;
    let series = SeriesReader::open(&views.join(name)).ok()?;
    let kind = series.attributes().get("view_kind").and_then(Value::as_str);
    let is_over_time = |array: &str| series.array(array).is_some_and(|own| own.shape.is_empty());
    let fields = arrays(&series).map(
        |array| json!({ "name": array, "label": label(array, None), "over_time": is_over_time(array) }),
    );
    Some(json!({
        "name": name,
        "title": kind.map_or_else(|| title.into(), |kind| format!("{title} ({kind})")),
        "count": series.entries(),
        "fields": fields.collect::<Vec<_>>(),
    }))
}

/// Returns the name of an array or a dimension for display.
fn label(name: &str, units: Option<&str>) -> String {
    // the unit is beside the label
    let plain = match units {
        Some("K") => name.strip_suffix("_k").unwrap_or(name),
        Some("cm**-3") => name.strip_suffix("_cm3").unwrap_or(name),
        _ => name,
    };
    match plain {
        "x" | "y" | "z" => plain.into(),
        plain => readable_name(plain),
    }
}

/// A series with what is needed to draw it.
struct Drawing<'a> {
    series: SeriesReader,
    sizes: &'a Sizes,
    array: SeriesArray,
    options: TableOptions,
    log: bool,
}

/// Draws an array of a series: a map, a curve, or a curve over the time if each entry is a number.
///
/// # Errors
/// There is no such series, array or entry; it is damaged; its values cannot be drawn.
pub fn draw(views: &Path, wanted: &Wanted, sizes: &Sizes) -> Result<Vec<u8>, Failure> {
    let missing = |what: String| Failure::new(404, &what);
    let (series, array) = find(views, wanted)?;
    let place = wanted.name;
    let last = series.entries().checked_sub(1);
    let last = last.ok_or_else(|| missing(format!("{place} has no entry yet")))?;
    let entry = wanted.entry.unwrap_or(last);
    if entry > last {
        return Err(missing(format!("{place} has no entry {entry} (any more)")));
    }
    let values = array
        .shape
        .iter()
        .try_fold(1, |all: u64, &n| all.checked_mul(n));
    if values.is_none_or(|values| values > MOST_VALUES) {
        let why = format!(
            "{} is too large for the page: open it in Python",
            array.name
        );
        return Err(Failure::new(400, &why));
    }
    let drawing = Drawing {
        options: TableOptions {
            log_axes: [false, wanted.log],
            width_px: wanted.width_px,
            title: title(&array),
            remark: String::new(),
            format: wanted.format,
        },
        log: wanted.log,
        series,
        sizes,
        array,
    };
    match drawing.array.shape.len() {
        0 => drawing.over_time(last),
        1 => drawing.curve(entry),
        2 => drawing.map(entry),
        _ => Err(Failure::new(
            400,
            &format!("{} has more than two dimensions", drawing.array.name),
        )),
    }
}

/// Returns the names of the files of a directory, sorted; none if it cannot be read.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory);
    let entries = entries.into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Opens a series and finds its array.
///
/// # Errors
/// There is no such series or array; it is damaged.
fn find(views: &Path, wanted: &Wanted) -> Result<(SeriesReader, SeriesArray), Failure> {
    // only names that are there become paths
    let names = names(views);
    let known = names.iter().find(|name| *name == wanted.name);
    let place = known.filter(|name| name.ends_with(ENDING));
    let place = place.ok_or_else(|| Failure::new(404, "the run has no such series"))?;
    let series = SeriesReader::open(&views.join(place))?;
    let array = match wanted.array {
        Some(name) => arrays(&series).find(|own| *own == name),
        None => arrays(&series).next(),
    };
    match array.and_then(|name| series.array(name)) {
        Some(array) => Ok((series, array)),
        None => {
            let known = arrays(&series).collect::<Vec<_>>().join(", ");
            let why = format!("{place} has no such field; it has {known}");
            Err(Failure::new(404, &why))
        }
    }
}

/// Returns the title of a picture: the description of the array, capitalised.
fn title(array: &SeriesArray) -> String {
    let described = array.attributes.get("long_name").and_then(Value::as_str);
    readable_name(described.unwrap_or(&array.name))
}

impl Drawing<'_> {
    /// Returns values of an array or a coordinate in units for display.
    fn column(&self, array: &SeriesArray, values: Vec<f64>) -> TableColumn {
        let units = array.attributes.get("units").and_then(Value::as_str);
        let label = label(&array.name, units);
        // the same as that of the axes of other pictures
        let typical = (units == Some("length")).then_some(self.sizes.side);
        in_units(&self.sizes.units, units, label, values, typical)
    }

    /// Returns times.
    fn times(&self, entries: &[u64]) -> Result<TableColumn, Failure> {
        let values = self.series.read("time", entries)?;
        let (code, end) = (&self.sizes.units, self.sizes.end);
        let label = "Time".into();
        Ok(in_units(code, Some("time"), label, values, Some(end)))
    }

    /// Returns the text of the time of an entry.
    fn remark(&self, entry: u64) -> Result<String, Failure> {
        let time = self.times(&[entry])?;
        let number = nestar_plot::rounded(time.values[0]);
        Ok(format!("t = {number} {}", time.unit).trim_end().into())
    }

    /// Returns the coordinates along a dimension of the array, or the numbers of its elements.
    fn coordinates(&self, dimension: usize) -> Result<TableColumn, Failure> {
        let name = &self.array.dimensions[dimension];
        let all: Vec<u64> = (0..self.array.shape[dimension]).collect();
        let coordinate = self.series.array(name);
        match coordinate.filter(|own| own.shape == [all.len() as u64]) {
            Some(own) => Ok(self.column(&own, self.series.read(name, &all)?)),
            None => Ok(TableColumn {
                label: label(name, None),
                unit: String::new(),
                values: all.iter().map(|&n| n as f64).collect(),
            }),
        }
    }

    /// Returns the values of an entry in units for display.
    fn values(&self, entry: u64) -> Result<TableColumn, Failure> {
        let values = self.series.read(&self.array.name, &[entry])?;
        Ok(self.column(&self.array, values))
    }

    /// Draws numbers over the time.
    fn over_time(self, last: u64) -> Result<Vec<u8>, Failure> {
        let stride = (last + 1).div_ceil(MOST_ENTRIES) as usize;
        let mut entries: Vec<u64> = (0..=last).step_by(stride).collect();
        if entries.last() != Some(&last) {
            entries.push(last);
        }
        let values = self.series.read(&self.array.name, &entries)?;
        let values = self.column(&self.array, values);
        Ok(plot_table(
            &self.times(&entries)?,
            &[values],
            &self.options,
        )?)
    }

    /// Draws values along a line, or in bins.
    fn curve(self, entry: u64) -> Result<Vec<u8>, Failure> {
        let (across, values) = (self.coordinates(0)?, self.values(entry)?);
        let options = TableOptions {
            log_axes: [is_logarithmic(&across.values), self.log],
            remark: self.remark(entry)?,
            ..self.options
        };
        Ok(plot_table(&across, &[values], &options)?)
    }

    /// Draws values in a plane, or in bins of two fields.
    fn map(self, entry: u64) -> Result<Vec<u8>, Failure> {
        let [upwards, across] = [self.coordinates(0)?, self.coordinates(1)?];
        let is_length = |name: &String| ["x", "y", "z"].contains(&name.as_str());
        let map = TableMap {
            is_plane: self.array.dimensions.iter().all(is_length) && across.unit == upwards.unit,
            values: self.values(entry)?,
            across,
            upwards,
        };
        let options = TableOptions {
            log_axes: [&map.across, &map.upwards].map(|axis| is_logarithmic(&axis.values)),
            remark: self.remark(entry)?,
            ..self.options
        };
        let colours = if self.log { Scale::Log } else { Scale::Linear };
        Ok(plot_map(&map, colours, &options)?)
    }
}

/// Returns `true` for coordinates whose ratios are equal, such as those of logarithmic bins.
fn is_logarithmic(values: &[f64]) -> bool {
    let [first, second, .., last] = values else {
        return false;
    };
    let ratio = second / first;
    let is_ratio = |pair: &[f64]| (pair[1] / pair[0] - ratio).abs() <= ROUNDING * ratio;
    *first > 0.0 && *last > *first && ratio - 1.0 > ROUNDING && values.windows(2).all(is_ratio)
}

#[cfg(test)]
mod tests {
    use super::{Sizes, Wanted, describe, draw, is_logarithmic, label};
    use nestar_plot::Format;
    use nestar_snapshot::{DataType, Series, SeriesArray, SeriesPlan, Values};
    use serde_json::{Map, json};
    use std::path::{Path, PathBuf};

    fn array(name: &str, dimensions: &[&str], shape: &[u64]) -> SeriesArray {
        let units = if name == "x" {
            "length"
        } else {
            "mass/length**3"
        };
        let attributes = json!({ "units": units, "long_name": "mass density" });
        SeriesArray {
            name: name.into(),
            data_type: DataType::F64,
            dimensions: dimensions.iter().map(ToString::to_string).collect(),
            shape: shape.to_vec(),
            attributes: attributes.as_object().cloned().unwrap_or_default(),
        }
    }

    /// Writes a series with two entries of a map, a curve and a number.
    fn series(name: &str) -> PathBuf {
        let name = format!("nestar-view-{name}-{}", std::process::id());
        let views = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&views).expect("a directory");
        let plan = SeriesPlan {
            attributes: Map::from_iter([("view_kind".to_string(), json!("slice"))]),
            time: Map::new(),
            coordinates: vec![(array("x", &["x"], &[3]), Values::F64(vec![0.25, 0.5, 1.0]))],
            arrays: vec![
                array("density", &["y", "x"], &[2, 3]),
                array("along", &["x"], &[3]),
                array("total", &[], &[]),
            ],
            list: None,
        };
        let mut series = Series::create(&views.join("cut.zarr"), &plan).expect("created");
        for n in 0..2u64 {
            let values = [6, 3, 1].map(|count| Values::F64(vec![1.0 + n as f64; count]));
            series.append(0.5 * n as f64, n, &values).expect("written");
        }
        views
    }

    fn drawn(views: &Path, name: &str, array: &str, entry: Option<u64>) -> Result<String, u16> {
        let wanted = Wanted {
            name,
            entry,
            array: (!array.is_empty()).then_some(array),
            log: false,
            width_px: 400,
            format: Format::Svg,
        };
        let bytes = draw(views, &wanted, &Sizes::default());
        let bytes = bytes.map_err(|failure| failure.status)?;
        Ok(String::from_utf8(bytes).expect("SVG is text"))
    }

    #[test]
    fn maps_curves_and_numbers_are_drawn_with_their_time() {
        let views = series("series");
        let about = describe(&views, "cut.zarr").expect("a series");
        assert_eq!(
            (&about["title"], &about["count"]),
            (&json!("cut (slice)"), &json!(2))
        );
        assert_eq!(about["fields"][2]["over_time"], json!(true));
        assert!(describe(&views, "none.zarr").is_none() && describe(&views, "cut").is_none());
        let text = |array, entry| drawn(&views, "cut.zarr", array, entry).expect("a picture");
        for (array, entry, words) in [
            ("density", None, ["t = 0.5<", ">Mass density<", ">y<"]),
            ("density", Some(0), ["t = 0<", "<image", ">x<"]),
            ("along", Some(1), ["t = 0.5<", "<path", ">x<"]),
            ("total", None, [">Time<", "<path", ">Mass density<"]),
            ("", None, ["t = 0.5<", ">x<", ">Mass density<"]),
        ] {
            let svg = text(array, entry);
            let lacks = words.iter().find(|word| !svg.contains(*word));
            assert_eq!(lacks, None, "{array} {entry:?}: {svg}");
        }
        for (name, array, entry) in [
            ("cut.zarr", "density", Some(2)),
            ("cut.zarr", "time", None),
            ("cut.zarr", "x", None),
            ("cut.zarr", "none", None),
            ("none.zarr", "", None),
            ("../views/cut.zarr", "", None),
            ("", "", None),
        ] {
            assert_eq!(
                drawn(&views, name, array, entry),
                Err(404),
                "{name} {array}"
            );
        }
        std::fs::write(views.join("cut.zarr/density/c.1.0.0"), "x").expect("written");
        assert_eq!(drawn(&views, "cut.zarr", "density", None), Err(500));
        std::fs::remove_dir_all(&views).expect("removed");
    }

    #[test]
    fn logarithmic_coordinates_are_recognised() {
        assert!(is_logarithmic(&[0.25, 0.5, 1.0]) && is_logarithmic(&[1.0, 10.0, 100.0, 1000.0]));
        for linear in [
            &[1.0, 2.0, 3.0][..],
            &[1.0, 2.0],
            &[-1.0, -2.0, -4.0],
            &[1.0; 3],
        ] {
            assert!(!is_logarithmic(linear), "{linear:?}");
        }
        assert_eq!(label("temperature_k", Some("K")), "Temperature");
        assert_eq!(label("scalar_k", Some("1")), "Scalar k");
    }
}
