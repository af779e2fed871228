//! `http.*`: where probes and where the status page are served.

use std::net::SocketAddr;

use super::address::Refused;
use super::mask::{Secret, shown};
use super::values::Values;
use super::webhooks::ReadFile;
use super::{Http, unread};

/// Characters of a token at least: as the key of a group.
const TOKEN_CHARS_MIN: usize = 32;

/// Characters of a token at most; it is sent in a header.
const TOKEN_CHARS_MAX: usize = 1_024;

/// The page. Only loopback is safe for it.
const PAGE: &str = "http.page";

pub(super) fn http(values: &mut Values<'_>, read: ReadFile<'_>) -> Option<Http> {
    let listen = values.parsed("http.listen", "`address:port`", address);
    let page = values.parsed(PAGE, "`address:port`", address);
    let fresh = fresh(values, read);
    let http = Http { listen: listen?, page: page?, fresh: fresh? };
    if overlap(http.listen, http.page) {
        let message = "takes the port of http.listen: probes and the page have places of their own, so that neither takes the other's";
        let place = values.place(PAGE);
        values.findings.refuse(&place, PAGE, None, message, "give it another port, such as 127.0.0.1:8081");
        return None;
    }
    if !http.page.ip().to_canonical().is_loopback() {
        let message = "is no loopback address: every pod that reaches it can read the names, versions and troubles of all workloads, \
                       for nothing there asks who it is; 127.0.0.1:8081 with kubectl port-forward shows them to people who may \
                       reach the pod, and a NetworkPolicy can keep others out";
        let place = values.place(PAGE);
        values.findings.warn(&place, PAGE, message);
    }
    Some(http)
}

/// The token of who asks whether the edge is fresh. Without one, nobody may.
fn fresh(values: &mut Values<'_>, read: ReadFile<'_>) -> Option<Option<Secret<String>>> {
    let key = "http.fresh_token_file";
    let Some(path) = values.file(key)? else { return Some(None) };
    let value = Some(shown(&path.to_string_lossy()));
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("names a file that cannot be read: {}", unread(&error));
            let fix = "mount the token there, or leave http.fresh_token_file empty";
            return values.refuse(key, value, Refused::new(message, fix));
        }
    };
    let token = text.trim();
    let is_token = token.chars().all(|c| c.is_ascii_graphic());
    if !is_token || !(TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX).contains(&token.len()) {
        let fix = format!("write {TOKEN_CHARS_MIN} random letters and digits or more into it, on one line");
        return values.refuse(key, value, Refused::new("names a file that holds no token", fix));
    }
    Some(Some(Secret::new(token.to_owned())))
}

/// Whether the system would not let both be listened on, as far as that can be known before.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (first, second) = (one.ip().to_canonical(), other.ip().to_canonical());
    let same = first == second || first.is_unspecified() || second.is_unspecified();
    // The system chooses another port for each 0.
    one.port() == other.port() && one.port() != 0 && same
}

fn address(text: &str) -> Result<SocketAddr, Refused> {
    let fix = "write an IP address and a port, such as 0.0.0.0:8080 or [::]:8080";
    text.parse().map_err(|_| Refused::new("is not an address with a port", fix))
}
