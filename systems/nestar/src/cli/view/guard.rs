//! Who may see the page: requests with the token, sent to this machine by name.

use super::http::Request;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read as _};

/// Bytes of a token.
const TOKEN_BYTES: usize = 24;

/// Returns a random hexadecimal token.
///
/// # Errors
/// The system has no random numbers.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares two texts in a time that depends on their lengths only.
fn equal(given: &[u8], token: &[u8]) -> bool {
    if given.len() != token.len() {
        return false;
    }
    let pairs = given.iter().zip(token);
    let difference = pairs.fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    black_box(difference) == 0
}

/// Returns the path behind the token, or why the request is refused.
///
/// A page of another site can make a browser send requests to this machine under that site's name (DNS rebinding): the header `Host`
/// must name this machine. Its port may be that of a tunnel.
pub fn admitted<'a>(request: &'a Request, token: &str) -> Result<&'a str, &'static str> {
    let [host] = &request.hosts[..] else {
        return Err("the request must name its host");
    };
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host.as_str(), "80"),
    };
    let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&name);
    if !is_here || port.parse::<u16>().is_err() {
        return Err("this page is for 127.0.0.1 and localhost only");
    }
    let inside = request.target.strip_prefix('/').unwrap_or_default();
    let (given, path) = inside.split_once('/').unwrap_or((inside, ""));
    match equal(given.as_bytes(), token.as_bytes()) {
        true if inside.contains('/') => Ok(path),
        _ => Err("the address lacks its token: open the address that `nestar view` has printed"),
    }
}

#[cfg(test)]
mod tests {
    use super::{admitted, random_token};
    use crate::cli::view::http::Request;

    fn request(target: &str, hosts: &[&str]) -> Request {
        Request {
            method: "GET".into(),
            target: target.into(),
            hosts: hosts.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn tokens_are_random() {
        let [a, b] = [(); 2].map(|()| random_token().expect("random numbers"));
        assert!(a != b && a.len() == 48 && a.chars().all(|c| c.is_ascii_hexdigit()));
    }

    #[test]
    fn only_the_token_and_this_machine_are_admitted() {
        let allowed = |target: &str, hosts: &[&str]| {
            admitted(&request(target, hosts), "abc123").map(str::to_string)
        };
        let here = ["127.0.0.1:4000"];
        assert_eq!(allowed("/abc123/", &here), Ok(String::new()));
        assert_eq!(
            allowed("/abc123/status?x=1", &here),
            Ok("status?x=1".into())
        );
        for host in ["localhost:80", "localhost", "[::1]:9", "[::1]"] {
            assert!(allowed("/abc123/", &[host]).is_ok(), "{host}");
        }
        for target in [
            "/",
            "",
            "/abc124/",
            "/abc12/",
            "/abc1234/",
            "/ABC123/",
            "//abc123/",
            "abc",
            "/abc123",
        ] {
            assert!(allowed(target, &here).is_err(), "{target}");
        }
        for host in [
            "evil.example",
            "evil.example:4000",
            "127.0.0.1.evil.example",
            "127.0.0.1:x",
            "",
            "localhost:",
            "127.0.0.1:99999",
        ] {
            assert!(allowed("/abc123/", &[host]).is_err(), "{host}");
        }
        assert!(allowed("/abc123/", &[]).is_err());
        assert!(allowed("/abc123/", &["localhost", "localhost"]).is_err());
    }
}
