//! The server: one thread per connection, up to a limit.

use super::http::{self, Response};
use super::site::Site;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, scope};
use std::time::Duration;

/// Largest number of open connections.
const MOST_CONNECTIONS: usize = 64;

/// Open connections.
#[derive(Default)]
struct Connections {
    open: Mutex<BTreeMap<u64, TcpStream>>,
    ends: AtomicBool,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, TcpStream>> {
        // a panic cannot leave an inconsistent state
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes connections that wait for a request end, and those that follow.
    fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        for stream in self.open().values() {
            let _ = stream.shutdown(Shutdown::Read);
        }
    }
}

/// Answers requests until `wait` returns; answers that were begun are finished.
///
/// # Errors
/// The listener has no address, or a thread cannot be started.
pub fn serve(listener: &TcpListener, site: &Site, wait: impl FnOnce()) -> io::Result<()> {
    let address = listener.local_addr()?;
    let connections = Connections::default();
    scope(|scope| {
        let accepting = Builder::new().name("connections".into());
        let accepting =
            accepting.spawn_scoped(scope, || accept(scope, listener, site, &connections))?;
        wait();
        connections.end();
        // wakes the thread that waits for a connection
        let _ = TcpStream::connect(address);
        let _ = accepting.join();
        Ok(())
    })
}

/// Accepts connections and answers each in a thread.
fn accept<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    listener: &TcpListener,
    site: &'env Site,
    connections: &'scope Connections,
) {
    for number in 0.. {
        let accepted = listener.accept();
        if connections.ends.load(Ordering::SeqCst) {
            return;
        }
        let Ok((mut stream, _)) = accepted else {
            // no more files, for instance
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let Ok(copy) = stream.try_clone() else {
            continue;
        };
        let mut open = connections.open();
        if open.len() >= MOST_CONNECTIONS {
            drop(open);
            // a short text fits into the buffer of the connection
            let why = "too many requests at once; try again";
            http::write_at_once(&mut stream, &Response::error(503, why));
            continue;
        }
        open.insert(number, copy);
        drop(open);
        let work = move || {
            let guarded = AssertUnwindSafe(|| answer(&mut stream, site));
            // the panic itself has been printed already
            if std::panic::catch_unwind(guarded).is_err() {
                let why = "this is a bug of the page; please report it with the run's deck";
                http::write(&mut stream, &Response::error(500, why), true);
            }
            connections.open().remove(&number);
        };
        let started = Builder::new()
            .name("request".into())
            .spawn_scoped(scope, work);
        if started.is_err() {
            connections.open().remove(&number);
        }
    }
}

/// Answers the request of a connection.
fn answer(stream: &mut TcpStream, site: &Site) {
    let _ = stream.set_nodelay(true);
    match http::read(stream) {
        Ok(request) => {
            let response = site.answer(&request);
            http::write(stream, &response, request.method != "HEAD");
        }
        Err(Some(refusal)) => http::write(stream, &refusal, true),
        Err(None) => {}
    }
}
