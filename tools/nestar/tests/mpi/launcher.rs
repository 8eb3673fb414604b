//! The launcher of MPI jobs.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a job.
const PATIENCE: Duration = Duration::from_secs(180);

/// The launcher.
pub struct Launcher(OsString);

/// Exit status and output of a job.
pub struct Outcome {
    /// Exit status of the launcher.
    pub status: Option<i32>,
    /// Standard output of all ranks.
    pub out: String,
    /// Standard error of all ranks and of the launcher.
    pub err: String,
    /// Wall time.
    pub time: Duration,
}

impl Launcher {
    pub fn find() -> Self {
        let named = std::env::var_os("NESTAR_MPIEXEC").filter(|name| !name.is_empty());
        Self(named.unwrap_or_else(|| "mpiexec".into()))
    }

    /// Runs `program` on several ranks in `place`.
    pub fn run(&self, place: &Path, ranks: usize, program: &str, arguments: &[&str]) -> Outcome {
        let ranks = ranks.to_string();
        self.start(place, &[&["-n", &ranks, program], arguments].concat())
    }

    /// Runs the launcher with these arguments in `place`, and waits for its end.
    pub fn start(&self, place: &Path, arguments: &[&str]) -> Outcome {
        self.begin(place, arguments).end()
    }

    /// Starts the launcher with these arguments in `place`.
    pub fn begin(&self, place: &Path, arguments: &[&str]) -> Job {
        let mut command = Command::new(&self.0);
        command
            .current_dir(place)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // allow Open MPI to start more ranks than cores, and to run as root
        for (name, value) in [
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
            ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
        ] {
            command.env(name, value);
        }
        let start = Instant::now();
        let child = command.spawn();
        let mut child = child.unwrap_or_else(|e| panic!("{}: {e}", self.0.display()));
        let out = collect(child.stdout.take());
        let err = collect(child.stderr.take());
        Job {
            child,
            out,
            err,
            start,
        }
    }
}

/// A running job.
pub struct Job {
    child: Child,
    out: thread::JoinHandle<String>,
    err: thread::JoinHandle<String>,
    start: Instant,
}

impl Job {
    /// Process id of the launcher.
    pub fn process(&self) -> String {
        self.child.id().to_string()
    }

    /// Waits for the end of the job.
    pub fn end(mut self) -> Outcome {
        let status = wait(&mut self.child, self.start);
        Outcome {
            status,
            out: self.out.join().unwrap_or_default(),
            err: self.err.join().unwrap_or_default(),
            time: self.start.elapsed(),
        }
    }
}

/// Reads a pipe to its end.
fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // after an error, return the bytes read before it
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, start: Instant) -> Option<i32> {
    loop {
        if let Some(status) = child.try_wait().expect("the launcher can be waited for") {
            return status.code();
        }
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("the job hangs");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

impl Outcome {
    /// Checks the exit status.
    #[track_caller]
    pub fn has_status(&self, status: i32) -> &Self {
        assert_eq!(self.status, Some(status), "{}\n{}", self.out, self.err);
        self
    }

    /// Checks that there is exactly one error message, and that it contains these texts.
    #[track_caller]
    pub fn complains(&self, texts: &[&str]) -> &Self {
        let errors: Vec<&str> = self
            .err
            .lines()
            .filter(|l| l.trim_start().starts_with("error: "))
            .collect();
        assert_eq!(errors.len(), 1, "{}", self.err);
        for text in texts {
            assert!(self.err.contains(text), "no {text:?} in\n{}", self.err);
        }
        self
    }
}
