//! Addresses of outside systems, parsed once and printed without what is secret in them.

use std::fmt;
use std::net::Ipv6Addr;

use url::Url;

use kernel::mask::MASK;

/// Redis' own port (<https://redis.io/docs/latest/operate/oss_and_stack/management/config/>).
pub const REDIS_PORT: u16 = 6379;

/// Characters of a host name at most (RFC 1035, 2.3.4, without the final dot).
const HOST_CHARS_MAX: usize = 253;

/// Why a text was refused: what is wrong, and what to write instead. Never quotes the text, which may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

impl Refused {
    pub(super) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { message: message.into(), fix: fix.into() }
    }
}

/// One Redis server. `Display` and `Debug` hide user and password.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RedisAddress {
    url: Url,
}

impl RedisAddress {
    /// Parses `host`, `host:port`, `host__port` (the form the old program really parsed) or a `redis://` or
    /// `rediss://` URL with user, password and database.
    ///
    /// # Errors
    /// Says what is wrong without quoting the text.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        Self::parse_with_port(text, None)
    }

    /// As [`parse`](Self::parse), with the port to use where the text has none.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with_port(text: &str, port: Option<u16>) -> Result<Self, Refused> {
        let text = text.trim();
        if text.contains("://") {
            return Self::parse_url(text, port);
        }
        if text.contains('@') {
            let message = "has a user or a password, but is not a URL";
            return Err(Refused::new(message, "write it as redis://user:password@host:port/0, percent-encoded"));
        }
        let (host, own_port) = split_port(text)?;
        let port = own_port.or(port).unwrap_or(REDIS_PORT);
        // A bare IPv6 address needs its brackets in a URL.
        let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() };
        Self::parse_url(&format!("redis://{host}:{port}"), None)
    }

    fn parse_url(text: &str, port: Option<u16>) -> Result<Self, Refused> {
        let fix = "write redis://host:port/0, or rediss:// for TLS; percent-encode special characters of the password";
        let mut url = Url::parse(text).map_err(|error| Refused::new(format!("is not a URL: {error}"), fix))?;
        if !matches!(url.scheme(), "redis" | "rediss") {
            return Err(Refused::new("is not a Redis URL", fix));
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        check_host(&host)?;
        check_port(&url)?;
        let database = url.path().trim_start_matches('/');
        if !database.is_empty() && database.parse::<u16>().is_err() {
            return Err(Refused::new("has a database that is not a number", fix));
        }
        if url.fragment().is_some() || url.query().is_some_and(|query| !is_protocol(query)) {
            return Err(Refused::new(
                "has options that are not supported",
                "leave out what follows ? or #, or escape it as %3F or %23 in the password",
            ));
        }
        // Both setters fail only for URLs without a host.
        let port = url.port().or(port).unwrap_or(REDIS_PORT);
        url.set_port(Some(port)).map_err(|()| Refused::new("cannot have a port", fix))?;
        url.set_host(Some(&host.to_ascii_lowercase())).map_err(|error| Refused::new(error.to_string(), fix))?;
        Ok(Self { url })
    }

    /// The whole URL with user and password, for the client.
    pub fn expose(&self) -> &str {
        self.url.as_str()
    }

    /// Whether it is reached with TLS.
    pub fn is_tls(&self) -> bool {
        self.url.scheme() == "rediss"
    }

    /// Host in lower case (an IPv6 address in brackets) and port.
    pub fn server(&self) -> (String, u16) {
        (self.url.host_str().unwrap_or_default().to_owned(), self.url.port().unwrap_or(REDIS_PORT))
    }

    /// Server and database: what makes two addresses one board, as far as texts can tell. Two databases of one server hold
    /// different keys, so they are those of two members.
    pub fn board(&self) -> (String, u16, u16) {
        let (host, port) = self.server();
        // The parser has refused what is no number; 0 is what a URL without one leads to.
        let database = self.url.path().trim_start_matches('/').parse().unwrap_or_default();
        (host, port, database)
    }
}

/// Without user and password.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = self.server();
        let path = if self.url.path() == "/" { "" } else { self.url.path() };
        write!(f, "{}://{}{host}:{port}{path}", self.url.scheme(), masked_user(&self.url))
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An `http` or `https` URL. `Display` and `Debug` show scheme, host and port only: a receiver's path or query is
/// often its password.
#[derive(Clone, PartialEq, Eq)]
pub struct WebUrl {
    url: Url,
}

impl WebUrl {
    /// Parses an absolute URL.
    ///
    /// # Errors
    /// Says what is wrong without quoting the text.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let fix = "write an absolute URL such as https://example.com/path";
        let url = Url::parse(text.trim()).map_err(|error| Refused::new(format!("is not a URL: {error}"), fix))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(Refused::new("is not an http or https URL", fix));
        }
        check_port(&url)?;
        Ok(Self { url })
    }

    /// The whole URL, for the client.
    pub fn expose(&self) -> &Url {
        &self.url
    }
}

/// Without user, password, path and query.
impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.url.scheme(), masked_user(&self.url), self.url.host_str().unwrap_or_default())?;
        if let Some(port) = self.url.port() {
            write!(f, ":{port}")?;
        }
        let has_more = self.url.path() != "/" || self.url.query().is_some() || self.url.fragment().is_some();
        if has_more { write!(f, "/{MASK}") } else { Ok(()) }
    }
}

impl fmt::Debug for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn masked_user(url: &Url) -> String {
    // A password alone is often given as the user by mistake, so the user is hidden as well.
    if url.username().is_empty() && url.password().is_none() { String::new() } else { format!("{MASK}@") }
}

/// Splits `host`, `host:port`, `host__port`, `[v6]:port` or a bare IPv6 address.
fn split_port(text: &str) -> Result<(&str, Option<u16>), Refused> {
    if text.parse::<Ipv6Addr>().is_ok() {
        return Ok((text, None));
    }
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return match (address.parse::<Ipv6Addr>(), rest.strip_prefix(':')) {
            (Ok(_), None) if rest.is_empty() => Ok((address, None)),
            (Ok(_), Some(port)) => Ok((address, Some(parse_port(port)?))),
            _ => Err(Refused::new("is not an IPv6 address in brackets", "write [2001:db8::1]:6379")),
        };
    }
    match text.rsplit_once("__").or_else(|| text.rsplit_once(':')) {
        Some((host, port)) => Ok((host, Some(parse_port(port)?))),
        None => Ok((text, None)),
    }
}

/// A port from 1 to 65535.
pub(super) fn parse_port(text: &str) -> Result<u16, Refused> {
    text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(no_port)
}

/// The parser of URLs takes port 0, at which nothing can listen.
fn check_port(url: &Url) -> Result<(), Refused> {
    if url.port() == Some(0) { Err(no_port()) } else { Ok(()) }
}

fn no_port() -> Refused {
    let fix = "write host:port, such as redis.example.com:6379";
    Refused::new("has a port that is not a number from 1 to 65535", fix)
}

fn check_host(host: &str) -> Result<(), Refused> {
    let fix = "write a host name or an IP address, such as redis.example.com";
    if host.is_empty() {
        return Err(Refused::new("has no host", fix));
    }
    let is_name = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    // The URL parser has checked what is in brackets.
    if host.len() > HOST_CHARS_MAX || !(is_name || host.starts_with('[')) {
        return Err(Refused::new("has a host that is not a name or an address", fix));
    }
    Ok(())
}

/// `protocol=resp3` and its like is the one option of the client that is safe to pass on.
fn is_protocol(query: &str) -> bool {
    query
        .split_once('=')
        .is_some_and(|(name, value)| name == "protocol" && matches!(value, "2" | "3" | "resp2" | "resp3"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redis(text: &str) -> String {
        RedisAddress::parse(text).map_or_else(|refused| refused.message, |address| address.expose().to_owned())
    }

    #[test]
    fn every_form_of_a_redis_address_is_understood() {
        assert_eq!(redis("cache"), "redis://cache:6379");
        assert_eq!(redis(" cache:7000 "), "redis://cache:7000");
        assert_eq!(redis("redis_master.prod__7000"), "redis://redis_master.prod:7000");
        assert_eq!(redis("10.0.0.7__6380"), "redis://10.0.0.7:6380");
        assert_eq!(redis("2001:db8::1"), "redis://[2001:db8::1]:6379");
        assert_eq!(redis("[2001:db8::1]:7000"), "redis://[2001:db8::1]:7000");
        assert_eq!(redis("rediss://me:p%40ss@Cache.Example.com/2"), "rediss://me:p%40ss@cache.example.com:6379/2");
        assert_eq!(redis("redis://cache?protocol=resp3"), "redis://cache:6379?protocol=resp3");
    }

    #[test]
    fn what_is_no_redis_address_is_refused() {
        for text in [
            "",
            ":6379",
            "cache:",
            "cache:0",
            "cache:65536",
            "cache:http",
            "cache__",
            "a:b:c",
            "a b",
            "me:pass@cache",
            "http://cache",
            "redis://",
            "redis://cache/zero",
            "redis://cache:0",
            "redis://cache?db=1",
            "redis://cache#insecure",
            "redis://:pa/ss@cache",
            "redis://:1/2@cache",
            "redis://u/2@cache",
            "[::1",
            "[cache]:1",
            "tcp://10.0.0.1:6379",
        ] {
            assert!(RedisAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_port_given_apart_is_used_where_the_address_has_none() {
        let with_port = |text| RedisAddress::parse_with_port(text, Some(7000)).unwrap().server();
        assert_eq!(with_port("cache"), ("cache".to_owned(), 7000));
        assert_eq!(with_port("redis://cache/1"), ("cache".to_owned(), 7000));
        assert_eq!(with_port("cache:6379"), ("cache".to_owned(), 6379));
    }

    #[test]
    fn two_databases_of_one_server_are_two_boards() {
        let board = |text| RedisAddress::parse(text).unwrap().board();
        assert_eq!(board("redis://me:secret@Cache/0"), board("cache"));
        assert_eq!(board("cache:6379"), board("redis://cache/"));
        assert_ne!(board("redis://cache/1"), board("cache"));
        assert_eq!(board("redis://cache:7000/12?protocol=resp3"), ("cache".to_owned(), 7000, 12));
    }

    #[test]
    fn addresses_print_no_credentials() {
        let address = RedisAddress::parse("redis://me:secret@cache/2").unwrap();
        assert_eq!(format!("{address} {address:?}"), "redis://•••@cache:6379/2 redis://•••@cache:6379/2");
        let url = WebUrl::parse("https://u:p@hooks.example.com:8443/T0/B0/secret?x=1").unwrap();
        assert_eq!(
            format!("{url} {url:?}"),
            "https://•••@hooks.example.com:8443/••• https://•••@hooks.example.com:8443/•••"
        );
        assert_eq!(WebUrl::parse("http://127.0.0.1:5000").unwrap().to_string(), "http://127.0.0.1:5000");
    }

    #[test]
    fn a_web_url_needs_scheme_and_host() {
        for text in
            ["", "ci.example.com/x", "ftp://ci.example.com", "https://", "mailto:a@b", "https://ci.example.com:0"]
        {
            assert!(WebUrl::parse(text).is_err(), "{text}");
        }
    }
}
