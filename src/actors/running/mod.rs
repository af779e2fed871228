//! Repos, as their actors know them.

pub mod repo;

use std::sync::Arc;

use actix::Recipient;

use crate::actors::Env;
use crate::actors::lifecycle::StopListener;
use crate::actors::message::{Died, Observe, Who};
use crate::actors::object::{Ctx, ObjectActor, ObjectOf, Tended};
use crate::actors::observation::{Observation, RunningSeen};
use crate::actors::running::repo::Runs;
use crate::actors::shell::Drives;
use crate::telemetry::Metrics;
use domain::kernel::id::RepoId;
use domain::kernel::remark::Remark;
use domain::objects::owned::OwnMachine;
use domain::ports::objects::{Calendar, Objects, Verdicts};
use domain::ports::repo::Running;
use domain::replica::kind_lifecycle::Part;
use domain::repo::remark::remarks;
use domain::repo::spec::Object;
use domain::repo::status::Status;
use domain::repo::view::view;
use domain::repo::{Effect, Repo};

impl Tended for Running {
    type Machine = Repo;
    type Beside = ();
    type Kept = Runs;

    const NAME: &'static str = "Repo";
    const PLURAL: &'static str = "Repos";
    const CHILD: &'static str = "repo";
    const FIND: &'static str = "find_repos";
    const HALTED: &'static str = "nothing is run";
    const RIGHTS: &'static str = "apply deploy/components/repo for the rights to them, or set repo.enabled to \"off\"";
    const WATCH: Part = Part::Repos;
    const ONE_GROUP: bool = true;

    fn objects(&self) -> &[Arc<dyn Objects<Object>>] {
        &self.objects
    }

    fn within(mut self, keeps: impl Fn(usize) -> bool) -> Self {
        let mut number = 0..;
        self.objects.retain(|_| number.next().is_some_and(&keeps));
        self
    }

    fn calendar(&self) -> &Arc<dyn Calendar> {
        &self.calendar
    }

    fn verdicts(&self) -> &Arc<dyn Verdicts> {
        &self.verdicts
    }

    fn required(&self) -> bool {
        self.required
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

    fn keep(metrics: &Metrics) -> Runs {
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

    fn shown(machine: Option<&Repo>, troubles: Vec<String>) -> Observation {
        let repos = machine.map(|machine| view(machine.object(), machine.durable())).into_iter().collect();
        Observation { running: Some(RunningSeen { repos, troubles }), ..Observation::default() }
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
