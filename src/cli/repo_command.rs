//! What `allclear repo` was asked to do, by its arguments.

use std::collections::BTreeMap;
use std::process::ExitCode;

use url::Url;

use crate::adapters::clock::SystemClock;
use crate::adapters::kubernetes::crd::repo::Installation;
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::objects::RepoKind;
use crate::cli::answer::{EXIT_INVALID, Outcome, Output, print, refused};
use crate::cli::arguments::{Global, Listing, RepoAction, WhichRepos};
use crate::cli::connect::connected;
use crate::cli::consent::Consent;
use crate::cli::repo;
use domain::kernel::id::RepoId;
use domain::ports::Clock;

/// `allclear explain repo/NS/NAME`.
pub(super) fn explain(
    global: Global,
    environment: BTreeMap<String, String>,
    name: &str,
    server: Option<Url>,
    output: Output,
) -> ExitCode {
    match (repo::named(name), server) {
        (Ok(id), None) => {
            at_desk(global, environment, output, async |desk| repo::explain(repo::Asked::Desk(desk), &id, output).await)
        }
        (Ok(id), Some(url)) => {
            actix::System::new().block_on(async { print(&repo::explain(repo::Asked::Server(&url), &id, output).await) })
        }
        (Err(why), _) => invalid(&why),
    }
}

/// `allclear repo`.
pub(super) fn repo(global: Global, environment: BTreeMap<String, String>, action: RepoAction) -> ExitCode {
    let asked = match action {
        RepoAction::List(Listing { namespace, output }) => {
            let output = output.into();
            return at_desk(global, environment, output, async |desk| {
                repo::list(desk, namespace.as_deref(), output).await
            });
        }
        RepoAction::Approve { name, ticket, overrides, yes } => match repo::named(&name) {
            Ok(id) => {
                return at_desk(global, environment, Output::Table, async |desk| {
                    let said = repo::Yes { ticket: ticket.as_deref(), overrides };
                    repo::approve(desk, &id, said, Consent::new(yes)).await
                });
            }
            Err(why) => Err(why),
        },
        RepoAction::Logs { name, step } => match repo::named(&name) {
            Ok(id) => {
                return at_desk(global, environment, Output::Table, async |desk| repo::logs(desk, &id, step).await);
            }
            Err(why) => Err(why),
        },
        RepoAction::Poke { which } => {
            these(which).map(|which| (which, repo::Change::Poke(SystemClock::default().wall_ms())))
        }
        RepoAction::Suspend { which, reason } => these(which).map(|which| (which, repo::Change::Suspend(reason))),
        RepoAction::Resume { which } => these(which).map(|which| (which, repo::Change::Resume)),
    };
    match asked {
        Ok((which, change)) => {
            at_desk(global, environment, Output::Table, async |desk| repo::change(desk, which, change).await)
        }
        Err(why) => invalid(&why),
    }
}

fn these(which: WhichRepos) -> Result<repo::Which<RepoId>, String> {
    match which.name {
        Some(name) => repo::named(&name).map(repo::Which::One),
        None => Ok(repo::Which::All(which.namespace)),
    }
}

fn invalid(why: &str) -> ExitCode {
    print(&Outcome { code: EXIT_INVALID, ..refused(why) })
}

/// Connects with the caller's credentials, and has something done with Repos.
fn at_desk(
    global: Global,
    environment: BTreeMap<String, String>,
    output: Output,
    done: impl AsyncFnOnce(&Desk<RepoKind>) -> Outcome,
) -> ExitCode {
    connected(global, environment, output, async |_, clients| {
        // What an installation adds to a spec is not shown.
        done(&Desk::of_repos(clients, Installation::default())).await
    })
}
