//! Where a Secret may be sent (decision 57): who may edit a Pipeline or a Repo names the address, but not where a Secret goes. That says
//! who may edit the Secret, by an annotation on it, or the operator.
//!
//! ```text
//! allclear.dev/send-to: git.example.com, forge.example.com:8443     a port that is not named is 443; there is no wildcard
//! ```

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// The annotation of a Secret that lists them.
pub const SEND_TO: &str = "allclear.dev/send-to";

/// The port of HTTPS.
const HTTPS: u16 = 443;

/// The ports of other schemes, each where its address names none.
const PORTS: [(&str, u16); 2] = [("http", 80), ("ssh", 22)];

/// Most hosts of one list that are read.
const LISTED_MAX: usize = 100;

/// A host and a port, as a request goes there: the host in lower case, an address of version 6 in brackets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    host: String,
    port: u16,
}

impl Destination {
    /// That of a URL; `None` if it has no host.
    pub fn of_url(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let other = PORTS.iter().find(|(other, _)| scheme.eq_ignore_ascii_case(other));
        let default = other.map_or(HTTPS, |(_, port)| *port);
        let authority = rest.split(['/', '?', '#', '\\']).next()?;
        // What stands before the last @ is no host, whatever it looks like.
        let authority = authority.rsplit('@').next()?;
        Self::parse(authority, default)
    }

    fn parse(text: &str, default: u16) -> Option<Self> {
        let end = text.rfind(']').map_or(0, |end| end + 1);
        let (host, port) = match text.get(end..)?.rfind(':') {
            Some(at) => (text.get(..end + at)?, text.get(end + at + 1..)?.parse().ok()?),
            None => (text, default),
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_[]:".contains(c);
        let sound = !host.is_empty() && host.chars().all(is_part) && (end == host.len() || !host.contains(':'));
        sound.then(|| Self { host: host.trim_end_matches('.').to_ascii_lowercase(), port })
    }
}

impl FromStr for Destination {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::parse(text.trim(), HTTPS).ok_or(())
    }
}

impl Display for Destination {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if *port == HTTPS { write!(f, "{host}") } else { write!(f, "{host}:{port}") }
    }
}

/// The purpose of a Secret's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is sent there, or signs what is sent there; `None` where an address has no host.
    SentTo(Option<Destination>),
    /// Requests of others are compared with it.
    Compared,
}

impl Purpose {
    /// It is sent to the host of this URL.
    pub fn sent_to(url: &str) -> Self {
        Self::SentTo(Destination::of_url(url))
    }
}

/// Why a Secret may not be used so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsendable(String);

/// Whether a Secret may be used so, where its annotation lists these hosts and the operator allows those.
///
/// # Errors
/// With the command that allows it.
pub fn judge(
    (namespace, name): (&str, &str),
    purpose: &Purpose,
    listed: Option<&str>,
    allowed: &BTreeSet<Destination>,
) -> Result<(), Unsendable> {
    let to = match purpose {
        Purpose::Compared => return Ok(()),
        Purpose::SentTo(None) => return Err(Unsendable("the address that it would be sent to has no host".to_owned())),
        Purpose::SentTo(Some(to)) => to,
    };
    let items = listed.unwrap_or_default().split([',', ' ', '\n']).filter(|item| !item.is_empty()).take(LISTED_MAX);
    if allowed.contains(to) || items.filter_map(|item| item.parse().ok()).any(|one: Destination| one == *to) {
        return Ok(());
    }
    // Readers of this message may not be allowed to read the Secret, so its list is not repeated.
    Err(Unsendable(match listed {
        None => format!(
            "it is not sent to {to}, for it has no annotation {SEND_TO}; if it belongs there: kubectl annotate secret {name} -n \
             {namespace} {SEND_TO}={to}"
        ),
        Some(_) => format!(
            "it is not sent to {to}, which its annotation {SEND_TO} does not list; if it belongs there, add {to} to that list: \
             kubectl edit secret {name} -n {namespace}"
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(text: &str) -> Option<String> {
        Destination::of_url(text).map(|to| format!("{}:{}", to.host, to.port))
    }

    #[test]
    fn a_url_leads_where_a_request_for_it_goes() {
        for (url, leads) in [
            ("https://git.example.com/shop/web.git", "git.example.com:443"),
            ("https://GIT.example.com.:8443/shop", "git.example.com:8443"),
            ("http://git.example.com", "git.example.com:80"),
            ("ssh://git@git.example.com/shop/web.git", "git.example.com:22"),
            ("ssh://git@git.example.com:2222/shop", "git.example.com:2222"),
            ("https://git.example.com@evil.example.net/x", "evil.example.net:443"),
            ("https://git.example.com:x@evil.example.net/", "evil.example.net:443"),
            ("https://evil.example.net\\@git.example.com/", "evil.example.net:443"),
            ("https://evil.example.net#@git.example.com/", "evil.example.net:443"),
            ("https://[2001:DB8::1]:8443/x", "[2001:db8::1]:8443"),
            ("https://[2001:db8::1]/x", "[2001:db8::1]:443"),
        ] {
            assert_eq!(to(url).as_deref(), Some(leads), "{url}");
        }
        for none in ["git.example.com", "https://", "https:///x", "https://a:b:c/", "https://a b/", "https://a:99999/"]
        {
            assert_eq!(to(none), None, "{none}");
        }
    }

    #[test]
    fn only_whoever_may_edit_the_secret_or_the_operator_says_where_it_goes() {
        let judged = |url: &str, listed: Option<&str>, allowed: &[&str]| {
            let allowed = allowed.iter().map(|item| item.parse().unwrap()).collect();
            judge(("shop", "forge"), &Purpose::sent_to(url), listed, &allowed).map_err(|why| why.to_string())
        };
        assert_eq!(judged("https://git.example.com/a", Some("git.example.com"), &[]), Ok(()));
        assert_eq!(judged("https://git.example.com:443/a", Some("x.example.com, GIT.example.com:443"), &[]), Ok(()));
        assert_eq!(judged("https://git.example.com:8443/a", None, &["git.example.com:8443"]), Ok(()));
        for (url, listed) in [
            ("https://git.example.com/a", None),
            ("https://git.example.com:8443/a", Some("git.example.com")),
            ("https://a.git.example.com/a", Some("git.example.com, *.git.example.com")),
            ("https://git.example.com.evil.example.net/a", Some("git.example.com")),
            ("http://git.example.com/a", Some("git.example.com")),
            ("ssh://git.example.com/a", Some("git.example.com")),
        ] {
            let refused = judged(url, listed, &["forge.example.com"]).unwrap_err();
            assert!(refused.contains("kubectl ") && refused.contains("secret forge -n shop"), "{url}: {refused}");
        }
        let refused = judged("https://new.example.com:8443/a", Some("hidden.example.com"), &[]).unwrap_err();
        assert!(refused.contains("add new.example.com:8443 to that list") && !refused.contains("hidden"), "{refused}");
        let refused = judged("https://new.example.com/a", None, &[]).unwrap_err();
        assert!(
            refused.ends_with("kubectl annotate secret forge -n shop allclear.dev/send-to=new.example.com"),
            "{refused}"
        );
        assert!(judge(("shop", "forge"), &Purpose::Compared, None, &BTreeSet::new()).is_ok());
    }
}
