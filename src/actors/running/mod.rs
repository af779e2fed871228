//! Repos, as their actors know them.

pub mod repo;

use std::collections::BTreeSet;

use actix::Recipient;

use crate::actors::Env;
use crate::actors::lifecycle::StopListener;
use crate::actors::message::{Died, Observe, Who};
use crate::actors::object::{Ctx, ObjectActor, ObjectOf, Tended};
use crate::actors::observation::{Observation, RunningSeen};
use crate::actors::running::repo::Runs;
use crate::actors::shell::Drives;
use crate::telemetry::Metrics;
use kernel::id::RepoId;
use kernel::remark::Remark;
use kernel::replica::kind_lifecycle::Part;
use objects::history::Entry;
use objects::owned::OwnMachine;
use objects::ports::KindPorts;
use objects::ports::repo::Running;
use objects::repo::past;
use objects::repo::remark::remarks;
use objects::repo::spec::Object;
use objects::repo::status::Status;
use objects::repo::view::view;
use objects::repo::{Effect, Repo};

impl Tended for Running {
    type Machine = Repo;
    type Beside = ();
    type Extra = Runs;

    const NAME: &'static str = "Repo";
    const PLURAL: &'static str = "Repos";
    const CHILD: &'static str = "repo";
    const FIND: &'static str = "find_repos";
    const HALTED: &'static str = "nothing is run";
    const RIGHTS: &'static str = "apply deploy/components/repo for the rights to them, or set repo.enabled to \"off\"";
    const WATCH: Part = Part::Repos;
    const ONE_GROUP: bool = true;

    fn ports(&self) -> &KindPorts<Repo> {
        &self.kind
    }

    fn within(mut self, places: &BTreeSet<usize>) -> Self {
        self.kind.keep(places);
        self
    }

    fn troubles(&self) -> Vec<String> {
        self.heads.troubles()
    }

    fn beside(&self, _: &Env, _: StopListener, _: Recipient<Died>) -> ((), Option<Recipient<Observe>>) {
        ((), None)
    }

    fn machine(_: &Env, epoch_ms: i64, object: Object) -> Repo {
        Repo::new(epoch_ms, object)
    }

    fn extra(metrics: &Metrics) -> Runs {
        Runs::new(metrics)
    }

    fn perform(actor: &mut ObjectActor<Self>, effect: Effect, ctx: &mut Ctx<Self>) {
        actor.perform_effect(effect, ctx);
    }

    fn peers_rebuilt(actor: &mut ObjectActor<Self>, ctx: &mut Ctx<Self>) {
        actor.tick(ctx);
    }

    fn stored(actor: &mut ObjectActor<Self>, change: Option<(&Status, &Status)>) {
        actor.count_runs(change);
    }

    fn remarks(written: &ObjectOf<Self>, before: &Status) -> Vec<Remark> {
        remarks(&written.status, before)
    }

    fn news(written: &ObjectOf<Self>, before: &Status, _at_ms: i64) -> Vec<Entry> {
        past::news(&written.status, before)
    }

    fn remembered(status: &Status) -> Vec<Entry> {
        past::remembered(status)
    }

    fn shown(machine: Option<&Repo>, troubles: Vec<String>) -> Observation {
        let repos = machine.map(|machine| view(machine.object(), machine.durable())).into_iter().collect();
        Observation { running: Some(RunningSeen { repos, troubles }), ..Observation::default() }
    }

    fn name(id: &RepoId) -> &str {
        &id.name
    }

    fn who(id: RepoId) -> Who {
        Who::Repo(id)
    }

    fn id_of(who: Who) -> Option<RepoId> {
        match who {
            Who::Repo(id) => Some(id),
            Who::Singleton(_) | Who::Rollout(_) | Who::Part(_) | Who::Cluster(_) | Who::Pipeline(_) => None,
        }
    }

    fn count(metrics: &Metrics, count: usize) {
        metrics.runs.repos(count);
    }
}
