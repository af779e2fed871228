//! Pipelines, as their actors know them. Beside the watch of Pipelines are the readers of the clusters in which their targets are.

pub mod clusters;
pub mod leaf;
pub mod message;
pub mod pipeline;

use std::collections::BTreeSet;

use actix::{Actor, Recipient};

use crate::actors::Env;
use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::{Died, Observe, Who};
use crate::actors::object::{Ctx, ObjectActor, ObjectOf, Tended};
use crate::actors::observation::{Observation, PromotingSeen};
use crate::actors::promoting::clusters::Clusters;
use crate::actors::promoting::message::Readers;
use crate::actors::promoting::pipeline::Promotes;
use crate::actors::shell::Drives;
use crate::telemetry::Metrics;
use kernel::id::{PipelineId, Subject};
use kernel::remark::Remark;
use kernel::replica::kind_lifecycle::Part;
use notices::notice::Kind;
use objects::history::Entry;
use objects::owned::OwnMachine;
use objects::pipeline::past;
use objects::pipeline::remark::remarks;
use objects::pipeline::spec::Object;
use objects::pipeline::status::Status;
use objects::pipeline::view::view;
use objects::pipeline::{Effect, Event, Pipeline};
use objects::ports::KindPorts;
use objects::ports::pipeline::Promoting;

impl Tended for Promoting {
    type Machine = Pipeline;
    type Beside = Readers;
    type Extra = Promotes;

    const NAME: &'static str = "Pipeline";
    const PLURAL: &'static str = "Pipelines";
    const CHILD: &'static str = "pipeline";
    const FIND: &'static str = "find_pipelines";
    const HALTED: &'static str = "nothing is promoted";
    const RIGHTS: &'static str =
        "apply deploy/components/pipelines for the rights to them, or set pipeline.enabled to \"off\"";
    const WATCH: Part = Part::Pipelines;
    const BESIDE: Option<Part> = Some(Part::Clusters);
    const ONE_GROUP: bool = false;

    fn ports(&self) -> &KindPorts<Pipeline> {
        &self.kind
    }

    fn within(mut self, places: &BTreeSet<usize>) -> Self {
        self.kind.keep(places);
        self
    }

    fn beside(
        &self,
        env: &Env,
        stop_listener: StopListener,
        died: Recipient<Died>,
    ) -> (Readers, Option<Recipient<Observe>>) {
        let obituary = Obituary::new(died, Who::Part(Part::Clusters));
        let (leaves, freezes) = (self.leaves.clone(), self.freezes.clone());
        let clusters = Clusters::new(env.clone(), leaves, freezes, stop_listener, obituary).start();
        let readers = Readers { follow: clusters.clone().recipient(), look_at: clusters.clone().recipient() };
        (readers, Some(clusters.recipient()))
    }

    fn machine(env: &Env, epoch_ms: i64, object: Object) -> Pipeline {
        let heard = env.ports.notifier.hears(&Subject::Pipeline(object.id.clone()), Kind::PromotionStarted);
        Pipeline::new(epoch_ms, object).heard(heard)
    }

    fn extra(metrics: &Metrics) -> Promotes {
        Promotes::new(metrics)
    }

    fn perform(actor: &mut ObjectActor<Self>, effect: Effect, ctx: &mut Ctx<Self>) {
        actor.perform_effect(effect, ctx);
    }

    fn peers_rebuilt(actor: &mut ObjectActor<Self>, ctx: &mut Ctx<Self>) {
        actor.feed(Event::PeersRestarted, ctx);
    }

    /// The clusters forget its targets.
    fn leave(actor: &mut ObjectActor<Self>, ctx: &mut Ctx<Self>) {
        actor.follow(Vec::new(), ctx);
    }

    fn stored(actor: &mut ObjectActor<Self>, change: Option<(&Status, &Status)>) {
        actor.count_promotions(change);
    }

    fn remarks(written: &ObjectOf<Self>, before: &Status) -> Vec<Remark> {
        remarks(written, before)
    }

    fn news(written: &ObjectOf<Self>, before: &Status, at_ms: i64) -> Vec<Entry> {
        past::news(written, before, at_ms)
    }

    fn remembered(status: &Status) -> Vec<Entry> {
        past::remembered(status)
    }

    fn shown(machine: Option<&Pipeline>, troubles: Vec<String>) -> Observation {
        let seen = |machine: &Pipeline| view(machine.object(), machine.durable(), Some(machine.sights()));
        let pipelines = machine.map(seen).into_iter().collect();
        let promoting = PromotingSeen { pipelines, troubles, ..PromotingSeen::default() };
        Observation { promoting: Some(promoting), ..Observation::default() }
    }

    fn name(id: &PipelineId) -> &str {
        &id.name
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
}
