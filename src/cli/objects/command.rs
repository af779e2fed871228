//! `allclear pipeline`, `allclear repo` and `allclear explain` of one of them, by their arguments.

use std::collections::BTreeMap;
use std::process::ExitCode;

use url::Url;

use super::kind::ShownKind;
use super::{About, Asked, Asker, Change, Which, Yes, approve, change, explain, history, keep, list, logs};
use crate::adapters::clock::SystemClock;
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::histories::KubernetesHistories;
use crate::adapters::kubernetes::objects::{PipelineKind, RepoKind};
use crate::cli::answer::{Outcome, Output, invalid, print};
use crate::cli::arguments::{ChangeAction, Global, Listing, Past, PipelineAction, RepoAction};
use crate::cli::command_kind::{IdOf, NoName, named_in};
use crate::cli::connect::connected;
use crate::cli::consent::Consent;
use kernel::id::{Environment, PipelineId, Revision};
use purge::ports::Clock;

/// Who calls: the arguments that all commands have, and the environment.
pub(in crate::cli) type Caller = (Global, BTreeMap<String, String>);

/// `allclear explain KIND/NS/NAME`, or with the namespace beside it.
pub(in crate::cli) fn explained<K: ShownKind>(
    caller: Caller,
    (namespace, name): (Option<&str>, &str),
    server: Option<Url>,
    output: Output,
) -> ExitCode {
    let id = named_in::<K>(name, namespace);
    let Some(url) = server else {
        return of_one(caller, id, output, async |desk: &Desk<K>, id| explain(Asked::Desk(desk), id, output).await);
    };
    match id {
        Ok(id) => actix::System::new().block_on(async { print(&explain(Asked::<K>::Server(&url), &id, output).await) }),
        Err(error) => print(&invalid(&error)),
    }
}

/// `allclear pipeline`.
pub(in crate::cli) fn pipeline(caller: Caller, action: PipelineAction) -> ExitCode {
    match action {
        PipelineAction::List(listing) => listed::<PipelineKind>(caller, listing),
        PipelineAction::Approve { which, environment, overrides, yes } => {
            said(caller, which.id(), About::Open(Environment(environment)), overrides, yes)
        }
        PipelineAction::Promote { which, environment, revision, overrides, yes } => {
            said(caller, which.id(), About::Chosen(Environment(environment), Revision(revision)), overrides, yes)
        }
        PipelineAction::History(past) => told::<PipelineKind>(caller, past),
        PipelineAction::Change(action) => changed(caller, action),
    }
}

/// Says yes to this about a Pipeline.
fn said(caller: Caller, id: Result<PipelineId, NoName>, asker: About, overrides: bool, yes: bool) -> ExitCode {
    of_one(caller, id, Output::Table, async |desk: &Desk, id| {
        let said = Yes { asker: &asker, ticket: None, overrides };
        approve(desk, id, said, Consent::new(yes)).await
    })
}

/// `allclear repo`.
pub(in crate::cli) fn repo(caller: Caller, action: RepoAction) -> ExitCode {
    match action {
        RepoAction::List(listing) => listed::<RepoKind>(caller, listing),
        RepoAction::Approve { which, ticket, overrides, yes } => {
            of_one(caller, which.id(), Output::Table, async |desk: &Desk<RepoKind>, id| {
                let said = Yes { asker: &Asker::Open, ticket: ticket.as_deref(), overrides };
                approve(desk, id, said, Consent::new(yes)).await
            })
        }
        RepoAction::Run { which, yes } => {
            of_one(caller, which.id(), Output::Table, async |desk: &Desk<RepoKind>, id| {
                let said = Yes { asker: &Asker::Again, ticket: None, overrides: false };
                approve(desk, id, said, Consent::new(yes)).await
            })
        }
        RepoAction::Unlock { which, yes } => {
            of_one(caller, which.id(), Output::Table, async |desk: &Desk<RepoKind>, id| {
                let asker = Asker::Unlock(SystemClock::default().wall_ms());
                let said = Yes { asker: &asker, ticket: None, overrides: false };
                approve(desk, id, said, Consent::new(yes)).await
            })
        }
        RepoAction::Keep { which, yes } => {
            of_one(caller, which.id(), Output::Table, async |desk, id| keep(desk, id, Consent::new(yes)).await)
        }
        RepoAction::Logs { which, step } => {
            of_one(caller, which.id(), Output::Table, async |desk, id| logs(desk, id, step).await)
        }
        RepoAction::History(past) => told::<RepoKind>(caller, past),
        RepoAction::Change(action) => changed(caller, action),
    }
}

fn listed<K: ShownKind>(caller: Caller, Listing { of, output }: Listing) -> ExitCode {
    let (output, namespace) = (output.into(), of.only());
    at_desk(caller, output, async |desk: &Desk<K>| list(desk, namespace.as_deref(), output).await)
}

/// What an object has gone through.
fn told<K: ShownKind>((global, environment): Caller, past: Past<K>) -> ExitCode {
    let Past { which, limit, output } = past;
    let (id, output) = match which.id() {
        Ok(id) => (id, Output::from(output)),
        Err(error) => return print(&invalid(&error)),
    };
    connected(global, environment, output, async |config, clients| {
        history(&K::desk(config, clients), &KubernetesHistories::new(clients), &id, limit, output).await
    })
}

fn changed<K: ShownKind>(caller: Caller, action: ChangeAction<K>) -> ExitCode {
    let (chosen, what) = match action {
        ChangeAction::Poke { which } => (which, Change::Poke(SystemClock::default().wall_ms())),
        ChangeAction::Suspend { which, reason } => (which, Change::Suspend(reason)),
        ChangeAction::Resume { which } => (which, Change::Resume),
    };
    let id = chosen.name.as_deref().map(|name| named_in::<K>(name, chosen.namespace.as_deref()));
    let which = match id.transpose() {
        Ok(Some(id)) => Which::One(id),
        Ok(None) => Which::All(chosen.namespace),
        Err(error) => return print(&invalid(&error)),
    };
    at_desk(caller, Output::Table, async |desk: &Desk<K>| change(desk, which, what).await)
}

/// Has something done with the object of this name.
fn of_one<K: ShownKind>(
    caller: Caller,
    id: Result<IdOf<K>, NoName>,
    output: Output,
    then: impl AsyncFnOnce(&Desk<K>, &IdOf<K>) -> Outcome,
) -> ExitCode {
    match id {
        Ok(id) => at_desk(caller, output, async |desk: &Desk<K>| then(desk, &id).await),
        Err(error) => print(&invalid(&error)),
    }
}

/// Connects with the caller's credentials, and has something done with the objects of a kind.
fn at_desk<K: ShownKind>(
    (global, environment): Caller,
    output: Output,
    then: impl AsyncFnOnce(&Desk<K>) -> Outcome,
) -> ExitCode {
    connected(global, environment, output, async |config, clients| then(&K::desk(config, clients)).await)
}
