//! Why something with a server did not succeed, before the words say with which one.

use std::time::Duration;

use purge::ports::{PortError, Retry};

use crate::HttpError;
use crate::ssh::SshError;

/// Characters of a server's words that are shown.
const WORDS_CHARS_MAX: usize = 400;

/// One failure; `cause` may still hold what a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) cause: String,
    pub(super) retry: Retry,
    pub(super) denied: bool,
    /// The server did answer, and it may answer a humbler request better.
    pub(super) answered: bool,
    /// It failed at the request (5xx), and may answer the same one later.
    pub(super) broken: bool,
}

impl Failure {
    /// The server's answer is not what it should be.
    pub(super) fn answer(cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), retry: Retry::Later, denied: false, answered: true, broken: false }
    }

    /// The server fails at it.
    pub(super) fn broken(cause: impl Into<String>) -> Self {
        Self { broken: true, ..Self::answer(cause) }
    }

    /// A person must change something.
    pub(super) fn lasting(cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), retry: Retry::Never, denied: false, answered: false, broken: false }
    }

    /// The server knows what we want and does not let us.
    pub(super) fn denied(cause: impl Into<String>) -> Self {
        Self { denied: true, ..Self::lasting(cause) }
    }

    /// It may pass, where the server says so after this time.
    pub(super) fn passing(cause: impl Into<String>, after: Option<Duration>) -> Self {
        Self { retry: after.map_or(Retry::Later, Retry::After), ..Self::lasting(cause) }
    }

    /// There is no whole answer.
    pub(super) fn of_http(error: HttpError, answer_max: usize) -> Self {
        match error {
            HttpError::Refused(words) => Self::lasting(words),
            HttpError::Unreachable(words) | HttpError::Failed(words) | HttpError::Untrusted(words) => {
                Self::passing(words, None)
            }
            HttpError::TooLong => Self::lasting(too_much(&format!("{} in one answer", spoken_bytes(answer_max)))),
        }
    }

    /// A command did not run, or did not end.
    pub(super) fn of_ssh(error: SshError, answer_max: usize) -> Self {
        match error {
            SshError::Refused(words) => Self::lasting(words),
            SshError::Denied(words) => Self::denied(words),
            SshError::Unreachable(words) | SshError::Failed(words) | SshError::Untrusted(words) => {
                Self::passing(words, None)
            }
            SshError::TooLong => Self::of_http(HttpError::TooLong, answer_max),
        }
    }

    /// With what was attempted. No secret is in the words, not even where a server repeats it, and they fit on a line.
    pub(super) fn while_trying(self, attempted: String, secrets: &[&str]) -> PortError {
        let Self { mut cause, retry, denied, answered: _, broken: _ } = self;
        for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
            cause = cause.replace(secret, "***");
        }
        let cause = cause.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty());
        let cause: String = cause.collect::<Vec<_>>().join(" ").chars().take(WORDS_CHARS_MAX).collect();
        PortError { retry, denied, ..PortError::passing(attempted, cause) }
    }
}

/// The words of a bound that was met: `too_much("5 files")`.
pub(super) fn too_much(bound: &str) -> String {
    format!("more than {bound}; the repository is too large for this")
}

/// In MiB, where it is some.
pub(super) fn spoken_bytes(bytes: usize) -> String {
    const MIB: usize = 1024 * 1024;
    if bytes.is_multiple_of(MIB) { format!("{} MiB", bytes / MIB) } else { format!("{bytes} bytes") }
}
