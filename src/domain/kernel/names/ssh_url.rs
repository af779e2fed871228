//! A repository's address for SSH, as git reads it ([urls]): `ssh://[USER@]HOST[:PORT]/PATH`. It goes to a program's command line and to a
//! shell of the host, so each part has a grammar of its own, and none can begin like an option.
//!
//! Not for `git@host:path`: that form is refused, with the address to write in its place.
//!
//! [urls]: https://git-scm.com/docs/git-clone#_git_urls

use core::net::Ipv6Addr; // as a value: `core` has no sockets

/// How such an address begins.
const SCHEME: &str = "ssh://";

/// The port of SSH (RFC 4253, 4).
const PORT: u16 = 22;

/// Whom a host of git knows everyone as; each knows who it is by the key.
const USER: &str = "git";

/// Longest user, in characters: that of Linux and twice more.
const USER_CHARS_MAX: usize = 64;

/// Longest host, in characters (RFC 1035, 2.3.4).
const HOST_CHARS_MAX: usize = 253;

/// Where the ports of SSH that pass firewalls are, and where the same forge's pages and API are
/// (<https://docs.github.com/en/authentication/troubleshooting-ssh/using-ssh-over-the-https-port>,
/// <https://docs.gitlab.com/user/gitlab_com/#alternative-ssh-port>,
/// <https://support.atlassian.com/bitbucket-cloud/docs/troubleshoot-ssh-issues/>).
const ELSEWHERE: [(&str, &str); 3] =
    [("ssh.github.com", "github.com"), ("altssh.gitlab.com", "gitlab.com"), ("altssh.bitbucket.org", "bitbucket.org")];

/// An address of SSH in its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SshUrl {
    user: String,
    /// In lower case; an address of version 6 without brackets.
    host: String,
    port: u16,
    /// As the host's shell gets it, before quoting.
    path: String,
}

/// Why a text is no address of SSH; nothing of it is repeated, for it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSshUrl {
    #[error("it is not of the form ssh://[USER@]HOST[:PORT]/PATH")]
    Form,
    #[error("it holds a password: put a key into the Secret, under identity")]
    Password,
    #[error("its user has other characters than letters, digits and . _ + -, or begins with -")]
    User,
    #[error("its host is no name and no address in brackets")]
    Host,
    #[error("its port is no number from 1 to 65535")]
    Port,
    #[error("it has a query or a fragment")]
    Query,
    #[error("it names no repository, or one with characters that no path has")]
    Path,
}

impl SshUrl {
    /// Whether a text is meant to be one.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Reads one.
    ///
    /// # Errors
    /// It has another form, or a part that no host takes.
    pub fn parse(text: &str) -> Result<Self, NotSshUrl> {
        let rest = text.strip_prefix(SCHEME).ok_or(NotSshUrl::Form)?;
        let (authority, path) = rest.split_once('/').ok_or(NotSshUrl::Form)?;
        if rest.contains(['?', '#']) {
            return Err(NotSshUrl::Query);
        }
        let (user, place) = authority.rsplit_once('@').unwrap_or((USER, authority));
        if user.contains(':') {
            return Err(NotSshUrl::Password);
        }
        let is_of_user = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        if user.is_empty() || user.len() > USER_CHARS_MAX || user.starts_with('-') || !user.chars().all(is_of_user) {
            return Err(NotSshUrl::User);
        }
        let (host, port) = located(place)?;
        Ok(Self { user: user.to_owned(), host, port, path: decoded(path)? })
    }

    /// As whom the host is called.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The host; an address of version 6 without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What the host's program of git is given: an absolute path, or one that begins with `~`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Host and port, for people and for what is counted by host.
    pub fn place(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// How a `known_hosts` names the host ([sshd(8)](https://man.openbsd.org/sshd.8#SSH_KNOWN_HOSTS_FILE_FORMAT)).
    pub fn known_as(&self) -> String {
        let Self { host, port, .. } = self;
        if *port == PORT { host.clone() } else { format!("[{host}]:{port}") }
    }

    /// The repository without its user, for people.
    pub fn shown(&self) -> String {
        format!("{}/{}", self.place(), self.path.trim_start_matches('/'))
    }

    /// Where the pages and the API of the same forge are: https, on its usual port.
    pub fn web(&self) -> String {
        let elsewhere = ELSEWHERE.iter().find(|(host, _)| *host == self.host).map(|(_, web)| *web);
        match elsewhere.unwrap_or(&self.host) {
            address if address.contains(':') => format!("https://[{address}]"),
            host => format!("https://{host}"),
        }
    }

    /// The address to write in place of `git@host:path`, if a text is one of that form. `user:password@host/path` is none: its
    /// words are not repeated.
    pub fn in_place_of(text: &str) -> Option<String> {
        let (authority, path) = text.split_once(':').filter(|(authority, path)| {
            let is_plain = !authority.contains('/') && !path.starts_with("//") && !path.contains('@');
            is_plain && !authority.is_empty() && !path.is_empty()
        })?;
        let url = format!("{SCHEME}{authority}/{}", path.trim_start_matches('/'));
        Self::parse(&url).is_ok().then_some(url)
    }
}

/// The place of the pages and the API beside a repository: of an address of SSH its forge's, else the address itself.
pub fn web_of(url: &str) -> String {
    SshUrl::parse(url).map_or_else(|_other| url.to_owned(), |url| url.web())
}

fn located(place: &str) -> Result<(String, u16), NotSshUrl> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(NotSshUrl::Host)?;
            let address: Ipv6Addr = host.parse().map_err(|_no_address| NotSshUrl::Host)?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(NotSshUrl::Port)?) };
            (address.to_string(), port)
        }
        None => {
            let (host, port) = place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port)));
            (named(host)?, port)
        }
    };
    let port = port.map_or(Ok(PORT), |port| {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        port.parse().ok().filter(|port| digits && *port > 0).ok_or(NotSshUrl::Port)
    })?;
    Ok((host, port))
}

fn named(host: &str) -> Result<String, NotSshUrl> {
    let is_of_label = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let is_label = |label: &str| !label.is_empty() && !label.starts_with('-') && label.chars().all(is_of_label);
    match host.len() <= HOST_CHARS_MAX && host.split('.').all(is_label) {
        true => Ok(host.to_ascii_lowercase()),
        false => Err(NotSshUrl::Host),
    }
}

/// A path with its escapes read, as git reads them; one that begins with a user's home loses its slash, as with git.
fn decoded(path: &str) -> Result<String, NotSshUrl> {
    let mut bytes = vec![b'/'];
    let mut rest = path.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = if *first == b'%' { more.split_at_checked(2) } else { None };
        let (byte, more) = match escaped {
            Some((digits, more)) => (hexadecimal(digits).ok_or(NotSshUrl::Path)?, more),
            None if *first == b'%' => return Err(NotSshUrl::Path),
            None => (*first, more),
        };
        bytes.push(byte);
        rest = more;
    }
    let path = String::from_utf8(bytes).map_err(|_no_text| NotSshUrl::Path)?;
    let path = path.trim_end_matches('/');
    if path.is_empty() || path.chars().any(char::is_control) {
        return Err(NotSshUrl::Path);
    }
    Ok(if path.starts_with("/~") { path.trim_start_matches('/') } else { path }.to_owned())
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, String, u16, String) {
        let url = SshUrl::parse(text).expect(text);
        (url.user, url.host, url.port, url.path)
    }

    fn parts(user: &str, host: &str, port: u16, path: &str) -> (String, String, u16, String) {
        (user.to_owned(), host.to_owned(), port, path.to_owned())
    }

    #[test]
    fn an_address_is_read_as_git_reads_it() {
        for (text, expected) in [
            ("ssh://git@github.com/shop/web.git", parts("git", "github.com", 22, "/shop/web.git")),
            ("ssh://Git.Example.com:2222/web/", parts("git", "git.example.com", 2222, "/web")),
            ("ssh://ann+ci@10.0.0.7/a", parts("ann+ci", "10.0.0.7", 22, "/a")),
            ("ssh://git@[FD00::7]:2222/a", parts("git", "fd00::7", 2222, "/a")),
            ("ssh://git@[::1]/a", parts("git", "::1", 22, "/a")),
            ("ssh://git@h/~ann/a", parts("git", "h", 22, "~ann/a")),
            ("ssh://git@h/a%20b%27c", parts("git", "h", 22, "/a b'c")),
            ("ssh://git@h/-a", parts("git", "h", 22, "/-a")),
            ("ssh://git@h/a:b@c", parts("git", "h", 22, "/a:b@c")),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn what_a_command_line_or_a_shell_could_take_for_something_else_is_refused() {
        for (text, why) in [
            ("https://github.com/shop/web", NotSshUrl::Form),
            ("git@github.com:shop/web", NotSshUrl::Form),
            ("ssh://github.com", NotSshUrl::Form),
            ("ssh://-oProxyCommand=touch$IFS/tmp/x/a", NotSshUrl::Host),
            ("ssh://-h/a", NotSshUrl::Host),
            ("ssh://a.-b/a", NotSshUrl::Host),
            ("ssh://-l@h/a", NotSshUrl::User),
            ("ssh://@h/a", NotSshUrl::User),
            ("ssh://a b@h/a", NotSshUrl::User),
            ("ssh://a%20b@h/a", NotSshUrl::User),
            ("ssh://ann:hunter2@h/a", NotSshUrl::Password),
            ("ssh://git@/a", NotSshUrl::Host),
            ("ssh://git@h./a", NotSshUrl::Host),
            ("ssh://git@a..b/a", NotSshUrl::Host),
            ("ssh://git@h,other/a", NotSshUrl::Host),
            ("ssh://git@[h]/a", NotSshUrl::Host),
            ("ssh://git@[::1/a", NotSshUrl::Host),
            ("ssh://git@::1/a", NotSshUrl::Host),
            ("ssh://git@[::1]22/a", NotSshUrl::Port),
            ("ssh://git@h:/a", NotSshUrl::Port),
            ("ssh://git@h:0/a", NotSshUrl::Port),
            ("ssh://git@h:+22/a", NotSshUrl::Port),
            ("ssh://git@h:65536/a", NotSshUrl::Port),
            ("ssh://git@h/a?b", NotSshUrl::Query),
            ("ssh://git@h/a#b", NotSshUrl::Query),
            ("ssh://git@h/", NotSshUrl::Path),
            ("ssh://git@h//", NotSshUrl::Path),
            ("ssh://git@h/a%0ab", NotSshUrl::Path),
            ("ssh://git@h/a%00", NotSshUrl::Path),
            ("ssh://git@h/a%2", NotSshUrl::Path),
            ("ssh://git@h/a%+1", NotSshUrl::Path),
            ("ssh://git@h/a%ff", NotSshUrl::Path),
        ] {
            assert_eq!(SshUrl::parse(text), Err(why), "{text}");
        }
        assert!(!NotSshUrl::Password.to_string().contains("hunter2"));
    }

    #[test]
    fn a_host_is_named_as_people_and_known_hosts_name_it() {
        for (text, place, known_as, web) in [
            ("ssh://github.com/a", "github.com:22", "github.com", "https://github.com"),
            ("ssh://ssh.github.com:443/a", "ssh.github.com:443", "[ssh.github.com]:443", "https://github.com"),
            ("ssh://[fd00::7]/a", "[fd00::7]:22", "fd00::7", "https://[fd00::7]"),
            ("ssh://[fd00::7]:2222/a", "[fd00::7]:2222", "[fd00::7]:2222", "https://[fd00::7]"),
        ] {
            let url = SshUrl::parse(text).unwrap();
            assert_eq!((url.place().as_str(), url.known_as().as_str(), url.web().as_str()), (place, known_as, web));
            assert_eq!((url.shown(), web_of(text)), (format!("{place}/a"), web.to_owned()));
        }
        assert_eq!(web_of("https://a.example.com:8443/b"), "https://a.example.com:8443/b");
    }

    #[test]
    fn the_short_form_is_answered_with_the_long_one() {
        for (text, url) in [
            ("git@github.com:shop/web.git", Some("ssh://git@github.com/shop/web.git")),
            ("h:/srv/web", Some("ssh://h/srv/web")),
            ("h:~ann/web", Some("ssh://h/~ann/web")),
            ("https://h/a", None),
            ("-oX:a", None),
            ("a/b:c", None),
            ("words", None),
            ("h:", None),
            ("oauth2:glpat-hunter2@h/a", None),
            ("ann:hunter2@h:a", None),
        ] {
            assert_eq!(SshUrl::in_place_of(text).as_deref(), url, "{text}");
        }
    }
}
