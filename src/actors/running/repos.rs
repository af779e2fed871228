//! Repos, as their parent tends them.

use std::sync::Arc;

use actix::Recipient;

use crate::actors::Env;
use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::{TellNotice, Who};
use crate::actors::object_watcher::{ObjectWatcher, Tended};
use crate::actors::observation::{Observation, RunningSeen};
use crate::actors::running::repo::RepoActor;
use crate::telemetry::Metrics;
use domain::kernel::id::RepoId;
use domain::ports::pipeline::Objects;
use domain::ports::repo::Running;
use domain::repo::spec::Object;

/// The parent of all Repos.
pub type Repos = ObjectWatcher<Running>;

impl Tended for Running {
    type Object = Object;
    /// The sender of webhooks.
    type Peers = Recipient<TellNotice>;
    type Child = RepoActor;

    const NAME: &'static str = "Repo";
    const CHILD: &'static str = "repo";

    fn objects(&self) -> &[Arc<dyn Objects<Object>>] {
        &self.objects
    }

    fn child(
        &self,
        env: Env,
        objects: Arc<dyn Objects<Object>>,
        peers: Recipient<TellNotice>,
        object: Object,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> RepoActor {
        RepoActor::new(env, self.clone(), objects, peers, object, stop_listener, obituary)
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

    fn shown(troubles: Vec<String>) -> Observation {
        let running = RunningSeen { troubles, ..RunningSeen::default() };
        Observation { running: Some(running), ..Observation::default() }
    }
}
