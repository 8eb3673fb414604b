//! A Chromium without windows, driven over a pipe by its debugging protocol.

use super::{LONG, Running};
use crate::Place;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// A browser with one page.
pub struct Browser {
    _program: Running,
    requests: RefCell<File>,
    answers: Receiver<Value>,
    session: RefCell<Option<String>>,
    sent: RefCell<u64>,
    faults: RefCell<Vec<String>>,
}

impl Browser {
    /// Starts the browser that the environment variable `NESTAR_BROWSER` names.
    pub fn start(place: &Place) -> Option<Self> {
        let program = std::env::var_os("NESTAR_BROWSER").filter(|name| !name.is_empty())?;
        let [input, output] = ["browser.in", "browser.out"].map(|name| place.0.join(name));
        let made = Command::new("mkfifo").args([&input, &output]).status();
        assert!(made.expect("mkfifo starts").success());
        // descriptors 3 and 4 are the pipes of the protocol
        let script = r#"exec "$@" 3<"$0.in" 4>"$0.out""#;
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(place.0.join("browser"))
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--remote-debugging-pipe", "--window-size=1300,1000"])
            .arg(format!(
                "--user-data-dir={}",
                place.0.join("profile").display()
            ))
            .arg("about:blank")
            .env("HOME", &place.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let program = Running(child.expect("the browser starts"));
        let requests = OpenOptions::new().write(true).open(&input).expect("a pipe");
        let mut from = BufReader::new(File::open(&output).expect("a pipe"));
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while from.read_until(0, &mut bytes).is_ok_and(|count| count > 0) {
                bytes.pop();
                let value = serde_json::from_slice(&bytes).expect("JSON");
                if sender.send(value).is_err() {
                    return;
                }
                bytes.clear();
            }
        });
        let browser = Self {
            _program: program,
            requests: requests.into(),
            answers,
            session: None.into(),
            sent: 0.into(),
            faults: vec![].into(),
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        let session = attached["sessionId"].as_str().expect("a session");
        *browser.session.borrow_mut() = Some(session.to_string());
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            browser.call(domain, json!({}));
        }
        Some(browser)
    }

    /// Sends a request and returns its result.
    fn call(&self, method: &str, parameters: Value) -> Value {
        *self.sent.borrow_mut() += 1;
        let id = *self.sent.borrow();
        let mut request = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &*self.session.borrow() {
            request["sessionId"] = session.as_str().into();
        }
        let text = format!("{request}\0");
        self.requests
            .borrow_mut()
            .write_all(text.as_bytes())
            .expect("the browser listens");
        loop {
            let answer = self.answers.recv_timeout(LONG);
            let answer = answer.unwrap_or_else(|error| panic!("no answer to {method}: {error}"));
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.record(&answer);
        }
    }

    /// Keeps errors that the page reports.
    fn record(&self, event: &Value) {
        let parameters = &event["params"];
        let is_fault = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => parameters["entry"]["level"] == "error",
            Some("Runtime.consoleAPICalled") => parameters["type"] == "error",
            _ => false,
        };
        if is_fault {
            self.faults.borrow_mut().push(parameters.to_string());
        }
    }

    /// Opens an address and waits for its document.
    pub fn open(&self, address: &str) {
        let moved = self.call("Page.navigate", json!({ "url": address }));
        assert!(moved["errorText"].is_null(), "{moved}");
        let is_there = || {
            let state = self.text("document.readyState + ' ' + location.href");
            (state == format!("complete {address}")).then_some(())
        };
        super::wait(LONG, address, is_there);
    }

    /// Returns the text of an expression in the page.
    pub fn text(&self, expression: &str) -> String {
        let wanted = json!({ "expression": expression, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", wanted);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        match &answer["result"]["value"] {
            Value::String(text) => text.clone(),
            other => panic!("{expression} is {other}"),
        }
    }

    /// Returns the errors that the page has reported so far.
    pub fn faults(&self) -> Vec<String> {
        self.text("''");
        self.faults.borrow().clone()
    }
}
