//! The series of views on the page: each kind is drawn with units, follows its run, and is refused in words.

use super::{Browser, LONG, NEWS, Page, UNITS, endless, wait};
use crate::{BLAST, Place};
use std::time::Duration;

/// A series of each kind.
const SERIES: &str = r#"
[[output.view]]
name = "cut"
kind = "slice"
axis = "z"
position = 0.1
steps = 1
fields = ["density", { name = "doubled", formula = "2*pressure" }]
[[output.view]]
name = "column"
kind = "projection"
axis = "x"
steps = 1
fields = ["density"]
[[output.view]]
name = "shells"
kind = "profile"
centre = [0.0, 0.0, 0.0]
range = [0.04, 0.5]
bins = 8
logarithmic = true
steps = 1
fields = ["pressure"]
[[output.view]]
name = "phases"
kind = "pdf"
fields = ["density", "pressure"]
bins = [8, 6]
ranges = [[0.0, 4.0], [0.01, 20.0]]
logarithmic = [false, true]
steps = 1
[[output.view]]
name = "ray"
kind = "line"
start = [-0.4, 0.1, 0.1]
end = [0.4, 0.1, 0.1]
points = 20
steps = 1
fields = ["velocity_x"]
[[output.view]]
name = "probe"
kind = "point"
position = [0.1, 0.1, 0.1]
steps = 1
fields = ["pressure"]
[[output.view]]
name = "waves"
kind = "spectrum"
steps = 1
fields = ["density"]
[[output.view]]
name = "drawn"
kind = "picture"
width = 300
steps = 1
fields = ["density"]
"#;

/// Names of the series in the list of the page, with a field of each.
const NAMES: [(&str, &str, &str); 7] = [
    ("column.zarr", "column (projection)", "density"),
    ("cut.zarr", "cut (slice)", "doubled"),
    ("phases.zarr", "phases (pdf)", "distribution"),
    ("probe.zarr", "probe (point)", "pressure"),
    ("ray.zarr", "ray (line)", "velocity_x"),
    ("shells.zarr", "shells (profile)", "pressure"),
    ("waves.zarr", "waves (spectrum)", "density"),
];

#[test]
fn each_series_of_views_is_drawn_with_units() {
    let place = Place::with(&format!("{BLAST}{UNITS}{SERIES}"));
    let steps = ["run", "deck.toml", "--set", "time.max_steps=3"];
    place.nestar(&steps).has_status(0);
    let page = Page::of(&place, "run");
    let views = page.get("status.json").json()["views"].clone();
    let listed = views.as_array().expect("views").iter();
    let listed: Vec<_> = listed.filter(|view| !view["title"].is_null()).collect();
    assert_eq!((listed.len(), views.as_array().map(Vec::len)), (7, Some(8)));
    for (view, (name, title, field)) in listed.iter().zip(NAMES) {
        assert_eq!(
            (&view["name"], &view["title"]),
            (&name.into(), &title.into())
        );
        assert_eq!(view["count"], 4, "{name}");
        let mut fields = view["fields"].as_array().expect("fields").iter();
        assert!(fields.any(|own| own["name"] == field), "{view}");
    }
    let drawn = |query: &str| page.get(&format!("series.svg?{query}&width=500"));
    for (query, texts) in [
        (
            "name=column.zarr&n=0",
            ["t = 0 Myr", "Density [Msun/pc", ">y [kpc]<", "<image"],
        ),
        (
            "name=cut.zarr&n=3&field=density",
            ["t = ", "Density [g/cm", ">x [kpc]<", "<image"],
        ),
        (
            "name=phases.zarr&n=2",
            ["t = ", ">Density [g/cm", "Pressure [erg/cm", "<image"],
        ),
        (
            "name=probe.zarr",
            [">Time [Myr]<", "Pressure [", "<path", "Pressure"],
        ),
        (
            "name=ray.zarr&n=1",
            ["t = ", ">Distance [kpc]<", ">Velocity x [km/s]<", "<path"],
        ),
        (
            "name=shells.zarr&log=1",
            ["t = ", ">Radius [", "Pressure [", "<path"],
        ),
        (
            "name=waves.zarr&log=1",
            ["t = ", "Wavenumber [", "Density [", "<path"],
        ),
    ] {
        let answer = drawn(query);
        let text = answer.text();
        assert_eq!(answer.status, 200, "{query}: {text}");
        let lacks: Vec<&str> = texts
            .into_iter()
            .filter(|own| !text.contains(own))
            .collect();
        assert!(lacks.is_empty(), "{query}: no {lacks:?} in {text}");
    }
    let png = page.get("series.png?name=cut.zarr&n=1&width=500");
    assert!(png.status == 200 && png.body.starts_with(b"\x89PNG"));
    let later = page.get("series.png?name=cut.zarr&n=3&width=500");
    assert!(png.body != later.body);
    for (query, status, words) in [
        ("name=cut.zarr&n=4", 404, "no entry 4"),
        ("name=cut.zarr&n=x", 400, "the number of an entry"),
        ("name=cut.zarr&field=none", 404, "it has density, doubled"),
        ("name=cut", 404, "no such series"),
        ("name=../views/cut.zarr", 404, "no such series"),
        ("name=ray.zarr&n=0&log=1", 400, "no value above 0"),
    ] {
        drawn(query).refuses(status, words);
    }
    let chunk = place.0.join("run/views/cut.zarr/density/c.1.0.0");
    std::fs::write(chunk, "damaged").expect("the file");
    drawn("name=cut.zarr&n=1").refuses(500, "c.1.0.0");
    std::fs::remove_dir_all(place.0.join("run/views")).expect("the views");
    drawn("name=cut.zarr&n=1").refuses(404, "no such series");
    assert_eq!(
        page.get("status.json").json()["views"],
        serde_json::json!([])
    );
}

#[test]
fn the_browser_follows_the_series_of_a_run() {
    let place = Place::with(&format!("{BLAST}{UNITS}{SERIES}"));
    let Some(browser) = Browser::start(&place) else {
        eprintln!("skipped: NESTAR_BROWSER names no Chromium");
        return;
    };
    let run = endless(&place);
    let count = |page: &Page| {
        let views = page.get("status.json").json()["views"].clone();
        views[0]["count"].as_u64().filter(|count| *count > 2)
    };
    std::fs::create_dir_all(place.0.join("run")).expect("a directory");
    let page = Page::of(&place, "run");
    wait(LONG, "three entries", || count(&page));
    browser.open(&page.address());
    let choose = |name: &str, value: &str| {
        browser.text(&format!(
            "(() => {{ const box = document.getElementById('{name}'); box.value = '{value}'; box.onchange(); return ''; }})()"
        ))
    };
    let wide = "String(document.querySelector('#view img')?.naturalWidth ?? 0)";
    let text = "document.querySelector('#view img')?.alt ?? ''";
    for (name, _, field) in NAMES {
        wait(LONG, name, || {
            let listed = format!(
                "String([...document.getElementById('view-name').options].some(one => one.value === '{name}'))"
            );
            (browser.text(&listed) == "true").then_some(())
        });
        choose("view-name", name);
        let known = format!(
            "String([...document.getElementById('view-field').options].some(one => one.value === '{field}'))"
        );
        wait(LONG, field, || {
            (browser.text(&known) == "true").then_some(())
        });
        choose("view-field", field);
        let alt = format!("view {name}, {field}");
        wait(LONG, &alt, || (browser.text(text) == alt).then_some(()));
        let width: u32 = browser.text(wide).parse().expect("a number");
        assert!(width >= 500, "{name}: {width}");
    }
    // the newest entry is shown, until another one is chosen
    choose("view-name", "cut.zarr");
    let shown = || {
        let text = browser.text("document.getElementById('view-text').textContent");
        text.split(' ').next()?.parse::<u64>().ok()
    };
    wait(LONG, "an entry", shown);
    let now = count(&page).expect("entries");
    wait(NEWS + Duration::from_secs(1), "a new entry", || {
        shown().filter(|n| *n >= now)
    });
    browser.text("(() => { const box = document.getElementById('view-number'); box.value = 1; box.oninput(); return ''; })()");
    wait(LONG, "the chosen entry", || {
        (shown() == Some(1)).then_some(())
    });
    let later = count(&page).expect("entries") + 1;
    wait(LONG, "more entries", || {
        count(&page).filter(|count| *count > later)
    });
    std::thread::sleep(NEWS);
    assert_eq!(shown(), Some(1), "a chosen entry stays");
    let problems = browser.text("String(document.querySelectorAll('.problem').length)");
    assert_eq!(problems, "0");
    run.signal("-INT");
    assert_eq!(browser.faults(), [""; 0]);
}
