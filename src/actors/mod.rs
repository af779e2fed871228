//! Thin actors: they carry messages between the machines of `domain` and the ports, and decide nothing.
//!
//! ```text
//! Root ─┬─ DeploymentWatcher ─┬─ RolloutActor   (one for each workload with a rollout in flight)
//!       │                     ├─ PodWatcher     (one for each namespace with rollouts in flight)
//!       │                     └─ TrafficWatcher (what leads to which workload)
//!       ├─ ClusterGroupActor  (the group's records)
//!       ├─ Invalidator        (all purges, the accounts' distributions, and all questions to the edge)
//!       ├─ Webhook            (all deliveries)
//!       └─ Supervisor ─┬─ ObjectWatcher ── ObjectActor   (one for each Pipeline, or Repo)         one for each of our kinds, on a
//!                      └─ Clusters ─────── LeafActor     (one for each cluster with targets)      thread of their own
//! ```
//!
//! A parent builds its children from durable facts, gets a notice of every death ([`lifecycle`]) and builds again,
//! within a budget. No task is detached: every future belongs to an actor's context and ends with it.

mod attempts;
pub mod browse;
pub mod cluster_group;
pub mod complaints;
pub mod deployment_watcher;
pub mod directory;
pub mod invalidator;
pub mod lifecycle;
pub mod looks;
pub mod message;
pub mod object;
pub mod object_watcher;
pub mod observation;
pub mod pod_watcher;
pub mod ports;
pub mod promoting;
pub mod rollout;
pub mod root;
pub mod running;
pub mod shell;
pub mod supervisor;
pub(crate) mod telling;
pub mod traffic;
pub mod traffic_watcher;
pub mod webhook;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actix::{Message, Recipient};

use crate::actors::complaints::Complaints;
use crate::actors::ports::Ports;
use crate::telemetry::Metrics;
use kernel::id::Member;
use kernel::machine::millis;
use kernel::refusal::Cause;
use kernel::retry;
use notices::delivery;
use purge::agreement::roster::Trust;
use purge::bounds::policy::Policy;
use purge::ports::{CdnError, PortError, StoreError};
use purge::purges::accounts::Accounts;
use purge::purges::catalog::Freshness;
use purge::purges::purge::Pace;

/// What every actor is built from. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    pub ports: Ports,
    pub metrics: Arc<Metrics>,
    pub settings: Arc<Settings>,
    /// Refusals that only a person can end.
    pub complaints: Arc<Complaints>,
}

impl Env {
    /// Notes the end of a call to a port; see [`Complaints::heard`].
    pub(crate) fn heard(&self, cause: Cause, place: &str, error: Option<&PortError>) -> bool {
        self.complaints.heard(self.ports.clock.now(), cause, place, error)
    }

    /// How a call to CloudFront ended, counted where it failed; see [`Complaints::heard_of_cdn`].
    pub(crate) fn heard_of_cdn(&self, right: Cause, place: &str, error: Option<&CdnError>) -> bool {
        if error.is_some() {
            self.metrics.failure(right.name());
        }
        self.complaints.heard_of_cdn(self.ports.clock.now(), right, place, error)
    }

    /// How storing a record ended; see [`Complaints::heard_of_store`].
    pub(crate) fn heard_of_store(&self, place: &str, error: Option<&StoreError>) -> bool {
        self.complaints.heard_of_store(self.ports.clock.now(), place, error)
    }
}

/// Configuration, as far as actors need it.
#[derive(Clone, Debug)]
pub struct Settings {
    pub member: Member,
    pub group: String,
    /// How rollouts are judged.
    pub policy: Policy,
    /// The AWS accounts, and what each is asked for.
    pub accounts: Accounts,
    /// How purges are paced.
    pub pace: Pace,
    /// Paths of a month in each account above which somebody is told; 0: nobody.
    pub budget: u64,
    /// How often distributions are listed.
    pub freshness: Freshness,
    /// An answer is looked at before a purge by cache tags is believed to do anything.
    pub samples_tags: bool,
    /// How deliveries are kept and repeated.
    pub outbox: delivery::Settings,
    /// The group; `None` while alone.
    pub grouping: Option<Grouping>,
    /// What is left beside the ledger for commands elsewhere: the settings in force, as a text without secrets.
    pub in_force: Option<String>,
    /// Our identity was determined without the members in the ledger: if it has any, the process restarts.
    pub is_unread: bool,
    /// Traffic that moves from one workload to another asks for a purge.
    pub follows_traffic: bool,
    /// Pipelines get a thread of their own, so that what other clusters send never holds up a purge.
    pub own_thread: bool,
}

/// The configuration of a group with other members.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    /// The members' names if they are configured; empty if they are to be learnt.
    pub members: BTreeSet<Member>,
    /// Whether records are signed, or are not on purpose.
    pub trust: Trust,
    /// A random name for this life of the process.
    pub boot: String,
    /// Only listen: others must not count on us (decision 23).
    pub listen_only: bool,
    /// The configuration names our own Redis, and no other one.
    pub only_own: bool,
    /// The group's name was derived from the namespaces that are watched.
    pub is_derived: bool,
    /// The namespaces that are watched; empty: all.
    pub watch: BTreeSet<String>,
}

/// Messages an actor's mailbox holds before it refuses more and senders must try again. A rollout produces a handful a
/// second; this is a burst of several workloads and still far below a page of memory.
pub const MAILBOX_MAX: usize = 256;

/// Sends a message that must not be lost, at most one for each object. So it may exceed a mailbox. An
/// actor that is dead is rebuilt, and is sent the message again then.
#[expect(
    clippy::disallowed_methods,
    reason = "see above; a burst of 2,000 objects at a start is no reason to try again"
)]
fn send_even_if_full<M>(to: &Recipient<M>, message: M)
where
    M: Message<Result = ()> + Send,
{
    to.do_send(message);
}

/// How long one actor waits for another's answer. Answers that need an outside call come as events instead.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The operation of reading a record. All other reads of a record count under it.
pub(crate) const LOAD: &str = "load_record";

/// Calls the outside again and again, with back-off, until it answers. For what an actor cannot start without; `cause` names
/// what is missing if it is refused.
pub(crate) async fn retry_until_ok<T, F>(
    operation: &'static str,
    cause: Cause,
    env: Env,
    mut call: impl FnMut() -> F,
) -> T
where
    F: Future<Output = Result<T, PortError>>,
{
    let mut attempt = 0;
    loop {
        let answer = call().await;
        let said = env.heard(cause, operation, answer.as_ref().err());
        match answer {
            Ok(answer) => return answer,
            Err(error) => {
                attempt += 1;
                let wait = retry::SERVICE.delay(attempt, operation);
                env.metrics.failure(operation);
                let wait_ms = millis(wait);
                if said {
                    tracing::debug!(%error, operation, wait_ms, "refused; trying again");
                } else {
                    tracing::warn!(%error, operation, wait_ms, "waiting for the outside; trying again");
                }
                tokio::time::sleep(wait).await;
            }
        }
    }
}
