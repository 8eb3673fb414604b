//! HTTP/1.1 on a connection: one request of bounded size and time, one response.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Largest head of a request.
const LARGEST_HEAD: usize = 16 << 10;
/// Largest number of header lines.
const MOST_HEADERS: usize = 64;
/// Time limit for a request to arrive, and for each part of a response to leave.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What is read of a refused request before the connection is closed, so that its sender receives the response.
/// Longest time in which a body is sent.
const SLOWEST: Duration = Duration::from_secs(60);
const DRAINED: usize = 256 << 10;

/// Head of a request.
#[derive(Debug, Default)]
pub struct Request {
    /// Method, such as `GET`.
    pub method: String,
    /// Path and query, as they were sent.
    pub target: String,
    /// Values of the header `Host`.
    pub hosts: Vec<String>,
}

/// A response.
pub struct Response {
    status: u16,
    kind: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Response {
    /// Creates a response with status 200.
    pub fn new(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            kind,
            headers: vec![],
            body: body.into(),
        }
    }

    /// Creates an error: a JSON document with the reason.
    pub fn error(status: u16, why: &str) -> Self {
        let body = format!("{}\n", serde_json::json!({ "error": why }));
        Self {
            status,
            ..Self::new("application/json", body)
        }
    }

    /// Creates a JSON document.
    pub fn json(value: &serde_json::Value) -> Self {
        Self::new("application/json", value.to_string())
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Returns the status line and the headers.
    fn head(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        let mut head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nX-Frame-Options: DENY\r\n",
            self.status,
            self.kind,
            self.body.len()
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head + "\r\n"
    }
}

/// Reads the request of a connection.
///
/// # Errors
/// The response to a request that is incomplete, too large or no HTTP; `None` if the sender has gone.
pub fn read(stream: &mut TcpStream) -> Result<Request, Option<Response>> {
    let end = Instant::now() + TIMEOUT;
    let mut head = Vec::new();
    loop {
        if let Some(request) = parse(&head)? {
            return Ok(request);
        }
        let left = end.saturating_duration_since(Instant::now());
        // a limit of 0 is none
        let late = || Response::error(408, "the request did not arrive in time");
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Some(late()));
        }
        let mut part = [0; 4096];
        match stream.read(&mut part) {
            Ok(0) => return Err(None),
            Ok(count) => head.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // browsers open connections before they need them
                return Err((!head.is_empty()).then(late));
            }
            Err(_) => return Err(None),
        }
    }
}

/// Parses the head of a request; `None` if it is incomplete.
fn parse(head: &[u8]) -> Result<Option<Request>, Response> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let too_large = || Response::error(431, "the head of the request is too large");
    match parsed.parse(&head[..head.len().min(LARGEST_HEAD)]) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() >= LARGEST_HEAD => return Err(too_large()),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(too_large()),
        Err(error) => {
            let why = format!("this is no HTTP request: {error}");
            return Err(Response::error(400, &why));
        }
    }
    let mut request = Request {
        method: parsed.method.unwrap_or_default().into(),
        target: parsed.path.unwrap_or_default().into(),
        hosts: vec![],
    };
    for header in parsed.headers.iter() {
        let value = String::from_utf8_lossy(header.value);
        match header.name.to_ascii_lowercase().as_str() {
            "host" => request.hosts.push(value.trim().into()),
            "content-length" if value.trim() == "0" => {}
            "content-length" | "transfer-encoding" => {
                let why = "a request must have no body: this page is read only";
                // the method is the better reason, if it is wrong
                if matches!(request.method.as_str(), "GET" | "HEAD") {
                    return Err(Response::error(413, why));
                }
            }
            _ => {}
        }
    }
    Ok(Some(request))
}

/// Sends a short response without waiting for its reader, and closes the connection.
pub fn write_at_once(stream: &mut TcpStream, response: &Response) {
    let text = [response.head().as_bytes(), &response.body].concat();
    // the reader may have gone
    let _ = stream
        .set_nonblocking(true)
        .and_then(|()| stream.write_all(&text));
}

/// Sends a body in parts. A slow reader must not hold the connection for long.
fn write_in_time(stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
    let end = Instant::now() + SLOWEST;
    for part in body.chunks(1 << 16) {
        stream.write_all(part)?;
        if Instant::now() > end {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

/// Sends a response, without its body for `HEAD`, and closes the connection.
pub fn write(stream: &mut TcpStream, response: &Response, has_body: bool) {
    let body = if has_body { &response.body[..] } else { &[] };
    let sent = stream
        .set_write_timeout(Some(TIMEOUT))
        .and_then(|()| stream.write_all(response.head().as_bytes()))
        .and_then(|()| write_in_time(stream, body))
        .and_then(|()| stream.shutdown(Shutdown::Write))
        .and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(1))));
    if sent.is_err() {
        // the reader has gone
        return;
    }
    let end = Instant::now() + Duration::from_secs(1);
    let (mut part, mut read) = ([0; 4096], 0);
    while let Ok(count @ 1..) = stream.read(&mut part) {
        read += count;
        if read > DRAINED || Instant::now() > end {
            return;
        }
    }
}

/// Returns the keys and values of a query, decoded.
///
/// # Errors
/// The query is no text in UTF-8 or has an incomplete escape.
pub fn query(text: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decoded(key)?, decoded(value)?))
    });
    pairs.collect()
}

/// Decodes `%20` and `+`.
fn decoded(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is no text of a query");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (high, low) = (digit(), digit());
                let value = high.zip(low).map(|(high, low)| 16 * high + low);
                value
                    .and_then(|value| u8::try_from(value).ok())
                    .ok_or_else(wrong)?
            }
            other => other,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    match text.contains('\0') {
        true => Err(wrong()),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{LARGEST_HEAD, parse, query};

    #[test]
    fn queries_are_decoded_or_refused() {
        let pairs = query("field=density*speed%5E2&at=-2+kpc&log").expect("a query");
        let shown: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(shown, ["field=density*speed^2", "at=-2 kpc", "log="]);
        for wrong in ["a=%", "a=%4", "a=%zz", "%ff=1", "a=%00"] {
            assert!(query(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn heads_are_complete_bounded_and_without_body() {
        let whole = b"GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:8\r\nHOST: x\r\n\r\n";
        let request = parse(whole).ok().flatten().expect("a request");
        assert_eq!((&*request.method, &*request.target), ("GET", "/a?b"));
        assert_eq!(request.hosts, ["127.0.0.1:8", "x"]);
        assert!(parse(&whole[..30]).is_ok_and(|request| request.is_none()));
        let long = [b"GET /", &[b'a'; LARGEST_HEAD][..]].concat();
        let refused = |head: &[u8]| parse(head).map(|_| ()).unwrap_err().status;
        assert_eq!(refused(&long), 431);
        assert_eq!(refused(b"\x16\x03\x01\x02\x00"), 400);
        assert_eq!(refused(b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), 413);
        let post = parse(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n");
        assert!(post.is_ok_and(|request| request.is_some()));
    }
}
