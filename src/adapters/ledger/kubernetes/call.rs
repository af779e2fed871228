//! One call to the API server: bounded in time, its failure in words and with the right `Retry`.

use std::future::Future;
use std::time::Duration;

use crate::adapters::{in_words, whom};
use crate::ports::{PortError, Retry};

/// Longest a call may take. The API server itself gives up on a request after 60 s, but a ledger that takes 10 s is as
/// good as away: the caller's back-off and its report are worth more than the rest of the wait. kube has no time-out of
/// its own (ARCHITECTURE.md, *Measured*).
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A call that did not succeed.
#[derive(Debug)]
pub(super) enum Failed {
    /// 404: there is no such object.
    NotFound,
    /// 409: somebody else wrote, or created, first.
    Conflict,
    /// 410: the pages of this listing are gone.
    Expired,
    /// The ledger as a whole was deleted since it was opened.
    Lost(PortError),
    /// Anything else.
    Other(PortError),
}

/// What is being asked for, for errors: which verb on which ConfigMap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// The RBAC verb.
    pub(super) verb: &'static str,
    /// The object's name, or what is listed.
    pub(super) name: &'a str,
    /// The namespace of the ledger.
    pub(super) namespace: &'a str,
}

impl Call<'_> {
    /// Makes the call.
    pub(super) async fn make<T>(self, call: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
        match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => Err(Failed::Other(PortError::passing(
                self.attempted(),
                format!("no answer from the API server within {} s", CALL_TIMEOUT.as_secs()),
            ))),
        }
    }

    /// What was attempted, for errors.
    pub(super) fn attempted(self) -> String {
        let Self { verb, name, namespace } = self;
        format!("failed to {verb} configmap {name} in namespace {namespace}")
    }

    fn failed(self, error: kube::Error) -> Failed {
        let kube::Error::Api(status) = error else {
            return Failed::Other(PortError::passing(self.attempted(), in_words(&error)));
        };
        match status.code {
            404 => Failed::NotFound,
            409 => Failed::Conflict,
            410 => Failed::Expired,
            401 => Failed::Other(PortError::denied(
                self.attempted(),
                format!(
                    "the API server does not accept our credentials ({}); renew the token or the kubeconfig",
                    status.message
                ),
            )),
            403 => Failed::Other(PortError::denied(
                self.attempted(),
                format!(
                    "{}; allow {} the verb \"{}\" on \"configmaps\" in namespace {} (the Role in deploy/ lists all that \
                     the ledger needs)",
                    status.message,
                    whom(&status.message),
                    self.verb,
                    self.namespace
                ),
            )),
            // A request the server understood and will not take: the same one will not be taken later either.
            400 | 405 | 413 | 415 | 422 => Failed::Other(PortError::lasting(self.attempted(), status.message)),
            _ => {
                let wait = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                let retry = if wait > 0 { Retry::After(Duration::from_secs(wait.into())) } else { Retry::Later };
                let cause = format!("{} ({} {})", status.message, status.code, status.reason);
                Failed::Other(PortError { retry, ..PortError::passing(self.attempted(), cause) })
            }
        }
    }

    /// The failure as the caller's error, for a call to which 404, 409 and 410 are no answers.
    pub(super) fn unexpected(self, failed: Failed) -> PortError {
        match failed {
            Failed::NotFound => PortError::passing(self.attempted(), "it does not exist"),
            Failed::Conflict => PortError::passing(self.attempted(), "somebody else wrote it at the same moment"),
            Failed::Expired => PortError::passing(self.attempted(), "the listing expired while it was read"),
            Failed::Lost(error) | Failed::Other(error) => error,
        }
    }
}
