//! Tests of `nestar view`: who may read the page, what it shows, and how it follows a run, over plain HTTP and in a browser.

mod browser;
mod series;

use crate::{BLAST, Place};
use browser::Browser;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Units of the runs.
const UNITS: &str = "[units]\nlength = \"kpc\"\nmass = \"Msun\"\nvelocity = \"km/s\"\n";
/// Time limit for a new step to appear.
const NEWS: Duration = Duration::from_secs(2);
/// Time limit of everything else.
const LONG: Duration = Duration::from_secs(60);

/// A process that is killed when it is dropped.
struct Running(Child);

impl Running {
    fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status();
        assert!(kill.expect("kill starts").success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A page that is served.
struct Page {
    program: Running,
    port: u16,
    token: String,
}

/// Answer to a request.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into()
    }

    fn json(&self) -> serde_json::Value {
        assert_eq!(self.status, 200, "{}", self.text());
        serde_json::from_slice(&self.body).expect("JSON")
    }

    #[track_caller]
    fn refuses(&self, status: u16, words: &str) {
        let text = self.text();
        assert_eq!(self.status, status, "{text}");
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

impl Page {
    fn of(place: &Place, run: &str) -> Self {
        let child = place
            .command(&["view", run])
            .env_remove("SSH_CONNECTION")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut program = Running(child.expect("the program starts"));
        let mut address = String::new();
        let out = program.0.stdout.take().expect("its output");
        BufReader::new(out)
            .read_line(&mut address)
            .expect("the address");
        let inside = address
            .trim()
            .strip_prefix("http://127.0.0.1:")
            .expect("this machine");
        let (port, token) = inside.split_once('/').expect("a token");
        let token = token.strip_suffix('/').expect("a folder").to_string();
        assert!(token.len() >= 32, "{token}");
        let port = port.parse().expect("a port");
        Self {
            program,
            port,
            token,
        }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Sends these bytes.
    fn send(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(LONG)).expect("a time limit");
        stream.write_all(request).expect("a request");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("an answer");
        let end = all.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.expect("a head") + 4;
        let head = String::from_utf8_lossy(&all[..end]).to_string();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        Answer {
            status: status.expect("a status"),
            head,
            body: all.split_off(end),
        }
    }

    fn request(&self, method: &str, target: &str, host: &str) -> Answer {
        self.send(format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    }

    /// Gets a document of the page.
    fn get(&self, document: &str) -> Answer {
        self.request("GET", &format!("/{}/{document}", self.token), "127.0.0.1")
    }
}

/// Returns a directory with a run of four steps and three snapshots.
fn with_a_run() -> Place {
    let place = Place::with(&format!("{BLAST}{UNITS}"));
    let run = [
        "run",
        "deck.toml",
        "--set",
        "time.max_steps=4",
        "--set",
        "output.steps=2",
    ];
    place.nestar(&run).has_status(0);
    place
}

#[test]
fn the_page_is_read_only_and_for_its_token_only() {
    let place = with_a_run();
    let page = Page::of(&place, "run");
    let own = format!("/{}/", page.token);
    for target in [
        "/",
        "/status.json",
        "/0123456789/",
        &own[..own.len() - 1],
        &own[..20],
        &format!("/{own}"),
    ] {
        page.request("GET", target, "127.0.0.1")
            .refuses(403, "token");
    }
    for host in ["evil.example", "127.0.0.1.evil.example:80", ""] {
        page.request("GET", &own, host).refuses(403, "127.0.0.1");
    }
    page.send(format!("GET {own} HTTP/1.1\r\n\r\n").as_bytes())
        .refuses(403, "host");
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        page.request(method, &own, "localhost:8000")
            .refuses(405, "read only");
        page.request(method, "/", "localhost").refuses(403, "token");
    }
    for path in [
        "../deck.toml",
        "run.log",
        "..%2f..%2fetc/passwd",
        "snapshots/000000.zarr/zarr.json",
        "/etc/passwd",
    ] {
        page.get(path).refuses(404, "no such document");
    }
    let long = format!("GET {own}{} HTTP/1.1\r\n\r\n", "a".repeat(40_000));
    page.send(long.as_bytes()).refuses(431, "too large");
    page.send(b"\x16\x03\x01\x00\x05hello\r\n\r\n")
        .refuses(400, "no HTTP");
    let body = format!("GET {own} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc");
    page.send(body.as_bytes()).refuses(413, "read only");
    let whole = page.get("");
    let head = page.request("HEAD", &own, "[::1]:90");
    let length = format!("Content-Length: {}\r\n", whole.body.len());
    assert!(head.status == 200 && head.body.is_empty() && head.head.contains(&length));
    assert!(whole.text().contains("<title>Nestar</title>"));
    assert!(
        head.head
            .contains("Content-Security-Policy: default-src 'none'"),
        "{}",
        head.head
    );
    // nothing of this was written
    page.program.signal("-INT");
    let mut program = page.program;
    assert_eq!(program.0.wait().expect("its end").code(), Some(0));
    for (run, words) in [
        ("deck.toml", "is a file"),
        ("run/snapshots/000000.zarr", "is a snapshot"),
        ("none", "does not exist"),
    ] {
        place
            .nestar(&["view", run])
            .has_status(2)
            .complains(&[words]);
    }
}

#[test]
fn pictures_are_those_of_plot_and_damage_is_told() {
    let place = with_a_run();
    let page = Page::of(&place, "run");
    let plots = [
        (
            "n=1&field=pressure&slice=-100+pc&log=1&axis=x",
            "--field pressure --slice=-100~pc --log --axis x",
        ),
        (
            "n=1&field=density&projection=1&colour-map=viridis&outlines=1",
            "--projection --colour-map viridis --outlines",
        ),
        (
            "n=1&field=density*speed%5E2&profile=radius",
            "--field density*speed^2 --profile radius",
        ),
    ];
    let drawn = |query: &str| page.get(&format!("picture.png?{query}&width=500"));
    std::thread::scope(|scope| {
        // several at once
        let both = [(); 2].map(|()| plots.map(|(query, _)| scope.spawn(move || drawn(query).body)));
        let found = both.map(|all| all.map(|one| one.join().expect("a picture")));
        for (number, (_, options)) in plots.iter().enumerate() {
            let options: Vec<String> = options.split(' ').map(|o| o.replace('~', " ")).collect();
            let mut arguments = vec![
                "plot",
                "run/snapshots/000001.zarr",
                "-o",
                "a.png",
                "--width",
                "500",
            ];
            arguments.extend(options.iter().map(String::as_str));
            place.nestar(&arguments).has_status(0);
            let expected = std::fs::read(place.0.join("a.png")).expect("the picture");
            assert!(
                found.iter().all(|all| all[number] == expected),
                "{options:?}"
            );
        }
    });
    for (query, words) in [
        ("field=densty", "did you mean \\\"density\\\""),
        (
            "slice=9+kpc",
            "the slice must lie in the domain: z from -0.5 to 0.5 kpc",
        ),
        ("slice=3+Myr", "must be a length, but"),
        ("axis=w", "must be x, y or z"),
        ("output=x", "no such option"),
        ("n=-1", "the number of a snapshot"),
        ("field=%", "no text of a query"),
    ] {
        drawn(query).refuses(400, words);
    }
    drawn("n=7").refuses(404, "no snapshot 7");
    let curves = page
        .get("curves.svg?x=time&y=total_density&y=total_energy&log-y=1")
        .text();
    for text in [">Time [Myr]<", ">Total density [Msun]<", "<path"] {
        assert!(curves.contains(text), "{text} in {curves}");
    }
    page.get("curves.svg?y=mass")
        .refuses(404, "no column \\\"mass\\\"");
    page.get("curves.svg").refuses(400, "no curve");
    let status = page.get("status.json").json();
    assert_eq!(status["snapshots"], serde_json::json!([0, 1, 2]));
    assert_eq!(
        (&status["state"]["word"], &status["diagnostics"]["rows"]),
        (&"finished".into(), &5.into())
    );
    let about = page.get("snapshot.json?n=1").json();
    let fields = about["fields"].as_array().expect("fields");
    let temperature = fields.iter().find(|field| field["name"] == "temperature_k");
    assert_eq!(temperature.map(|field| &field["unit"]), Some(&"K".into()));
    damage(&place, &page);
}

/// Damages the snapshots and the table of a run that the page shows.
fn damage(place: &Place, page: &Page) {
    let shard = |folder: PathBuf| {
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                match path.is_dir() {
                    true => folders.push(path),
                    false if !path.ends_with("zarr.json") && !path.ends_with("checksums.txt") => {
                        std::fs::write(path, "damaged").expect("the file");
                    }
                    false => {}
                }
            }
        }
    };
    shard(place.0.join("run/snapshots/000002.zarr/level_0"));
    shard(place.0.join("run/snapshots/000002.zarr/level_1"));
    let refused = page.get("picture.png?n=2&field=speed");
    refused.refuses(500, "000002.zarr");
    std::fs::write(place.0.join("run/snapshots/000000.zarr/zarr.json"), "{").expect("the file");
    page.get("picture.png?n=0").refuses(500, "000000.zarr");
    std::fs::write(place.0.join("run/diagnostics.csv"), "step,ti").expect("the file");
    page.get("curves.svg?y=dt")
        .refuses(404, "no diagnostics yet");
    std::fs::remove_dir_all(place.0.join("run/snapshots")).expect("the snapshots");
    page.get("snapshot.json?n=1").refuses(404, "no snapshot 1");
    std::fs::remove_dir_all(place.0.join("run")).expect("the run");
    let status = page.get("status.json").json();
    assert_eq!(status["state"]["word"], "missing");
}

/// Waits until `found` returns a value, and returns it with the time that it took.
#[track_caller]
fn wait<T>(limit: Duration, what: &str, mut found: impl FnMut() -> Option<T>) -> (T, Duration) {
    let start = Instant::now();
    loop {
        if let Some(value) = found() {
            return (value, start.elapsed());
        }
        assert!(start.elapsed() < limit, "{what} has not appeared");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the step of the latest whole row of the diagnostics.
fn step_on_disk(place: &Place) -> Option<u64> {
    let text = std::fs::read_to_string(place.0.join("run/diagnostics.csv")).ok()?;
    let whole = &text[..=text.rfind('\n')?];
    whole.lines().last()?.split(',').next()?.parse().ok()
}

/// Starts a run that does not end by itself.
fn endless(place: &Place) -> Running {
    let sets = ["time.max_steps=0", "time.end=1e9", "output.steps=50"];
    let mut arguments = vec!["run", "deck.toml", "--quiet"];
    arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
    let child = place.command(&arguments).stdout(Stdio::null()).spawn();
    Running(child.expect("the program starts"))
}

#[test]
fn a_new_step_of_a_run_appears_within_two_seconds() {
    let place = Place::with(BLAST);
    std::fs::create_dir(place.0.join("run")).expect("a directory");
    let page = Page::of(&place, "run");
    let status = page.get("status.json").json();
    assert_eq!(
        (&status["state"]["word"], &status["snapshots"]),
        (&"empty".into(), &serde_json::json!([]))
    );
    page.get("picture.png")
        .refuses(404, "no complete snapshot yet");
    let run = endless(&place);
    let browser = Browser::start(&place);
    if let Some(browser) = &browser {
        browser.open(&page.address());
    }
    wait(LONG, "the first step", || {
        step_on_disk(&place).filter(|step| *step > 0)
    });
    for _ in 0..3 {
        let step = step_on_disk(&place).expect("a step") + 1;
        wait(LONG, "the next step", || {
            step_on_disk(&place).filter(|now| *now >= step)
        });
        let over_http = || {
            let status = page.get("status.json").json();
            assert_eq!(status["state"]["word"], "running");
            status["diagnostics"]["step"]
                .as_f64()
                .filter(|now| *now >= step as f64)
        };
        wait(NEWS, "a step over HTTP", over_http);
    }
    let Some(browser) = browser else {
        eprintln!("skipped: NESTAR_BROWSER names no Chromium");
        return;
    };
    in_browser(&place, &page, &browser);
    run.signal("-INT");
    let word = || {
        (browser.text("document.getElementById('state').textContent") == "interrupted")
            .then_some(())
    };
    wait(LONG, "the end of the run", word);
    assert_eq!(browser.faults(), [""; 0]);
    // without its token the page shows nothing
    browser.open(&format!("http://127.0.0.1:{}/", page.port));
    let shown = browser.text("document.body.innerText + document.querySelectorAll('img').length");
    assert!(
        shown.contains("token") && shown.ends_with('0') && !shown.contains("step"),
        "{shown}"
    );
}

/// Looks at the page of a run at work.
fn in_browser(place: &Place, page: &Page, browser: &Browser) {
    for figure in ["picture", "curves"] {
        let width = format!("String(document.querySelector('#{figure} img')?.naturalWidth ?? 0)");
        let loaded = || {
            browser
                .text(&width)
                .parse()
                .ok()
                .filter(|width: &u32| *width >= 400)
        };
        wait(LONG, figure, loaded);
    }
    let at = "document.getElementById('where').textContent";
    let shown = || {
        browser
            .text(at)
            .split([' ', ','])
            .nth(1)?
            .parse::<u64>()
            .ok()
    };
    let mut longest = Duration::ZERO;
    for _ in 0..4 {
        let step = step_on_disk(place).expect("a step");
        let (_, took) = wait(NEWS, "a step in the browser", || {
            shown().filter(|now| *now >= step)
        });
        longest = longest.max(took);
        std::thread::sleep(Duration::from_millis(300));
    }
    eprintln!("a new step is in the browser after {longest:.2?} at most");
    // a picture of another kind, and two more curves
    let source = "document.querySelector('#picture img').src";
    let before = browser.text(source);
    browser.text("(() => { const kind = document.getElementById('kind'); kind.value = 'projection'; kind.onchange(); return ''; })()");
    wait(LONG, "the projection", || {
        (browser.text(source) != before).then_some(())
    });
    let alt = browser.text("document.querySelector('#picture img').alt");
    assert_eq!(alt, "projection of density");
    browser.text("(() => { for (const button of [...document.querySelectorAll('#columns button[aria-pressed=false]')].slice(1, 3)) button.click(); return ''; })()");
    let both = "document.querySelector('#curves img').alt";
    wait(LONG, "the curves", || {
        browser.text(both).contains(", ").then_some(())
    });
    let log = browser.text("document.getElementById('log').textContent");
    assert!(log.contains("step "), "{log}");
    let problems = browser.text("document.querySelectorAll('.problem').length + document.getElementById('banner').textContent");
    assert_eq!(problems, "0");
    assert_eq!(browser.text("location.href"), page.address());
}
