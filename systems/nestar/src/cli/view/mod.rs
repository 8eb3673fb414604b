//! `nestar view`: a page about a run for the browser, served on this machine. It only reads.

mod diagnostics;
mod guard;
mod http;
mod pictures;
mod series;
mod server;
mod site;
mod state;
mod views;

use super::{CommandError, FAILED, INVALID_INPUT, print};
use clap::Args;
use nestar::monitor::hangups_are_ignored;
use nestar::report::print_message;
use nestar::{App, assemble};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use site::Site;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Arguments of `nestar view`.
#[derive(Args)]
pub struct ViewArgs {
    /// Directory of a run, which may be at work
    run: PathBuf,
    /// Port on 127.0.0.1; default: a free one
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Open the page in the browser of the desktop
    #[arg(long)]
    open: bool,
}

/// Serves the page until a signal arrives.
pub fn view(app: &App, arguments: &ViewArgs) -> Result<(), CommandError> {
    require_run(&arguments.run)?;
    let fault =
        |what: &str, error: io::Error| CommandError::new(FAILED, format!("{what}: {error}"));
    let token = guard::random_token().map_err(|e| fault("no random numbers for the token", e))?;
    let wanted = arguments.port.unwrap_or(0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted));
    let listener = listener.map_err(|error| {
        let why = format!("--port {wanted}: cannot listen on 127.0.0.1: {error}");
        CommandError::new(FAILED, why)
    })?;
    let port = listener
        .local_addr()
        .map_err(|e| fault("no port", e))?
        .port();
    let address = format!("http://127.0.0.1:{port}/{token}/");
    let mut signals = signals().map_err(|e| fault("cannot install signal handlers", e))?;
    let pool = assemble::thread_pool(0)?;
    let site = Site::new(app, arguments.run.clone(), token, pool);
    print(&format!("{address}\n"))?;
    let run = arguments.run.display();
    print_message(&format!("a page about {run}, read only; Ctrl-C ends it"));
    if let Some(hint) = tunnel(port) {
        print_message(&hint);
    }
    let opened = arguments.open.then(|| open(&address));
    let served = server::serve(&listener, &site, || {
        // an error ends the page, like a signal
        let _ = signals.read(&mut [0]);
    });
    if let Some(Some(file)) = opened {
        let _ = std::fs::remove_file(file);
    }
    served.map_err(|e| fault("cannot serve the page", e))
}

/// Refuses what is no directory, or a snapshot.
fn require_run(path: &Path) -> Result<(), CommandError> {
    let shown = path.display();
    let why = if path.join("zarr.json").is_file() {
        "is a snapshot: name the directory of its run"
    } else if path.is_dir() {
        return Ok(());
    } else if path.exists() {
        "is a file: name the directory of a run"
    } else {
        "does not exist: name the directory of a run, such as out/sedov"
    };
    Err(CommandError::new(INVALID_INPUT, format!("{shown} {why}")))
}

/// Returns a stream that receives a byte for each signal to end; the second signal ends the program at once.
fn signals() -> io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    let ending = Arc::new(AtomicBool::new(false));
    let wanted = [SIGINT, SIGTERM, SIGHUP];
    for signal in wanted
        .into_iter()
        .filter(|signal| *signal != SIGHUP || !hangups_are_ignored())
    {
        flag::register_conditional_shutdown(signal, 128 + signal, ending.clone())?;
        flag::register(signal, ending.clone())?;
        low_level::pipe::register(signal, sender.try_clone()?)?;
    }
    Ok(receiver)
}

/// Returns the command by which another machine reaches the page, in a session of ssh.
fn tunnel(port: u16) -> Option<String> {
    std::env::var_os("SSH_CONNECTION")?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let user = std::env::var("USER").map_or(String::new(), |user| format!("{user}@"));
    let host = host.trim();
    Some(format!(
        "to see it on your own machine, run there\n  ssh -N -L {port}:127.0.0.1:{port} {user}{host}\nand open the address in its browser"
    ))
}

/// Opens the page in the browser and returns the file by which it does: the token must not be among the arguments of a program, which
/// everybody on the machine can see.
fn open(address: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    let name = guard::random_token().ok()?;
    let file = folder.join(format!("nestar-view-{}.html", &name[..12]));
    let page = format!(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url={address}\"><a href=\"{address}\">Nestar</a>\n"
    );
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file);
    let started = made
        .and_then(|mut made| made.write_all(page.as_bytes()))
        .and_then(|()| {
            Command::new("xdg-open")
                .arg(&file)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
        });
    if let Err(error) = started {
        print_message(&format!(
            "cannot open a browser ({error}): open the address above"
        ));
    }
    Some(file)
}
