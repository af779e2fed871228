//! `http.*` and `hooks.*`: where probes, where the status page, and where requests of other programs are served.

use std::net::{IpAddr, SocketAddr};

use super::address::Refused;
use super::mask::Secret;
use super::pipeline::{Enabled, Pipeline};
use super::values::Values;
use super::webhooks::ReadFile;
use kernel::mask::shown;
use kernel::text::unread;

/// Characters of a token at least: as the key of a group.
const TOKEN_CHARS_MIN: usize = 32;

/// Characters of a token at most; it is sent in a header.
const TOKEN_CHARS_MAX: usize = 1_024;

/// The page. Only loopback is safe for it.
const PAGE: &str = "http.page";

/// Requests of other programs.
const HOOKS: &str = "hooks.listen";

/// Keys at most: one for each forge, and twice as many while they are changed.
const HOOK_KEYS_MAX: usize = 16;

/// Characters of a key at least. People type them into the settings of a forge; 16 random letters are beyond guessing.
const HOOK_KEY_CHARS_MIN: usize = 16;

/// Networks of proxies at most.
const PROXIES_MAX: usize = 64;

/// `http.*`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Where probes and metrics are served.
    pub listen: SocketAddr,
    /// Where API and status page are served, and probes and metrics too.
    pub page: SocketAddr,
    /// The token by which others may ask, beside the probes, whether the edge is purged, read from `http.fresh_token_file`; `None`:
    /// they may not.
    pub fresh: Option<Secret<String>>,
}

/// `hooks.*`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    /// Where requests of other programs are taken; `None`: nowhere.
    pub listen: Option<SocketAddr>,
    /// The keys by which requests to look are signed, read from `hooks.key_file`: each is believed.
    pub keys: Vec<Secret<String>>,
    /// Where there is no key, no signature is asked for.
    pub allow_unsigned: bool,
    /// An approval may leave out its ticket.
    pub empty_approvals: bool,
    /// Proxies that say who is behind them: an address, and how many of its bits count.
    pub trusted_proxies: Vec<(IpAddr, u8)>,
}

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

/// The token that a request whether an edge is purged carries. Without one, none is allowed.
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

/// Requests of other programs. `http` is where everything else is.
pub(super) fn hooks(
    values: &mut Values<'_>,
    http: Option<&Http>,
    pipeline: Option<&Pipeline>,
    read: ReadFile<'_>,
) -> Option<Hooks> {
    let listen = values.optional(HOOKS, "`address:port`", address);
    let keys = hook_keys(values, read);
    let allow_unsigned = values.truth("hooks.allow_unsigned");
    let empty_approvals = values.truth("hooks.empty_approvals");
    let proxies = values.list("hooks.trusted_proxies", "list of addresses and networks", PROXIES_MAX, network);
    let hooks = Hooks {
        listen: listen?,
        keys: keys?,
        allow_unsigned: allow_unsigned?,
        empty_approvals: empty_approvals?,
        trusted_proxies: proxies?,
    };
    let Some(listen) = hooks.listen else { return Some(hooks) };
    let place = values.place(HOOKS);
    if http.is_some_and(|http| overlap(listen, http.listen) || overlap(listen, http.page)) {
        let message = "takes the port of http.listen or of http.page: strangers may come to this one, and each has places of its own";
        values.findings.refuse(&place, HOOKS, None, message, "give it another port, such as 0.0.0.0:8082");
        return None;
    }
    if pipeline.is_some_and(|pipeline| pipeline.enabled == Enabled::Off) {
        let message = "has no effect, because pipeline.enabled is off: there is nothing that could be asked for";
        values.findings.warn(&place, HOOKS, message);
    }
    if hooks.allow_unsigned {
        let place = values.place("hooks.allow_unsigned");
        let message = "lets every client that reaches hooks.listen make allclear look at Pipelines whose spec names no key; \
                       with hooks.empty_approvals, approve them too";
        values.findings.warn(&place, "hooks.allow_unsigned", message);
    }
    if hooks.empty_approvals {
        let place = values.place("hooks.empty_approvals");
        let message = "takes approvals that name no ticket: one that was captured approves the same revision again whenever a \
                       person is asked about it";
        values.findings.warn(&place, "hooks.empty_approvals", message);
    }
    Some(hooks)
}

/// The keys of those that ask us to look, one on each line.
fn hook_keys(values: &mut Values<'_>, read: ReadFile<'_>) -> Option<Vec<Secret<String>>> {
    let key = "hooks.key_file";
    let Some(path) = values.file(key)? else { return Some(Vec::new()) };
    let value = Some(shown(&path.to_string_lossy()));
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("names a file that cannot be read: {}", unread(&error));
            let fix = "mount the keys there, or leave hooks.key_file empty";
            return values.refuse(key, value, Refused::new(message, fix));
        }
    };
    let keys: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let shortest = keys.iter().map(|key| key.len()).min().unwrap_or_default();
    let fix = format!("write one key on each line, of {HOOK_KEY_CHARS_MIN} random letters and digits or more");
    let refused = if keys.len() > HOOK_KEYS_MAX {
        Refused::new(format!("names a file with {} keys, {HOOK_KEYS_MAX} at most", keys.len()), fix)
    } else if shortest < HOOK_KEY_CHARS_MIN {
        Refused::new(format!("names a file with a key of {shortest} characters"), fix)
    } else if !keys.iter().all(|key| key.chars().all(|c| c.is_ascii_graphic())) {
        Refused::new("names a file with a key that has blanks or other marks in it", fix)
    } else {
        return Some(keys.into_iter().map(|key| Secret::new(key.to_owned())).collect());
    };
    values.refuse(key, value, refused)
}

/// `10.0.0.0/8`, or one address.
fn network(text: &str) -> Result<(IpAddr, u8), Refused> {
    let fix = "write an address such as 10.0.0.1, or a network such as 10.0.0.0/8";
    let refused = || Refused::new("is no address and no network", fix);
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| refused())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(most), str::parse).map_err(|_| refused())?;
    if bits > most {
        return Err(refused());
    }
    if bits == 0 {
        let fix = "name the addresses of your proxies: who is trusted says for itself who it is";
        return Err(Refused::new("means every address", fix));
    }
    Ok((address, bits))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_an_address_or_a_network_and_never_everybody() {
        let read = |text| network(text).ok().map(|(address, bits)| format!("{address}/{bits}"));
        assert_eq!(read("10.0.0.0/8").as_deref(), Some("10.0.0.0/8"));
        assert_eq!(read("192.0.2.7").as_deref(), Some("192.0.2.7/32"));
        assert_eq!(read("fd00::/8").as_deref(), Some("fd00::/8"));
        assert_eq!(read("::1").as_deref(), Some("::1/128"));
        for bad in ["", "ingress", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "::/129", "10.0.0.0/-1", "0.0.0.0/0", "::/0"]
        {
            assert!(network(bad).is_err(), "{bad}");
        }
    }
}
