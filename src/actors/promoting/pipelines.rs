//! Pipelines, as their parent tends them.

use std::sync::Arc;

use crate::actors::Env;
use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::Who;
use crate::actors::object_watcher::{ObjectWatcher, Tended};
use crate::actors::observation::{Observation, PromotingSeen};
use crate::actors::promoting::message::Peers;
use crate::actors::promoting::pipeline::PipelineActor;
use crate::telemetry::Metrics;
use domain::kernel::id::PipelineId;
use domain::pipeline::spec::Object;
use domain::ports::pipeline::{Objects, Promoting};

/// The parent of all Pipelines.
pub type Pipelines = ObjectWatcher<Promoting>;

impl Tended for Promoting {
    type Object = Object;
    type Peers = Peers;
    type Child = PipelineActor;

    const NAME: &'static str = "Pipeline";
    const CHILD: &'static str = "pipeline";

    fn objects(&self) -> &[Arc<dyn Objects<Object>>] {
        &self.objects
    }

    fn child(
        &self,
        env: Env,
        objects: Arc<dyn Objects<Object>>,
        peers: Peers,
        object: Object,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> PipelineActor {
        PipelineActor::new(env, self.clone(), objects, peers, object, stop_listener, obituary)
    }

    fn who(id: PipelineId) -> Who {
        Who::Pipeline(id)
    }

    fn id_of(who: Who) -> Option<PipelineId> {
        match who {
            Who::Pipeline(id) => Some(id),
            Who::Singleton(_) | Who::Rollout(_) | Who::Part(_) | Who::Cluster(_) | Who::Repo(_) => None,
        }
    }

    fn count(metrics: &Metrics, count: usize) {
        metrics.promotions.pipelines(count);
    }

    fn shown(troubles: Vec<String>) -> Observation {
        let promoting = PromotingSeen { troubles, ..PromotingSeen::default() };
        Observation { promoting: Some(promoting), ..Observation::default() }
    }
}
