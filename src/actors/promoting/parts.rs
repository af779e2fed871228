//! The two parts: how they are started, rebuilt and ended.

use std::collections::BTreeSet;

use actix::{Actor, Addr, AsyncContext, Context};
use futures_util::future::join;

use super::Promoter;
use crate::actors::lifecycle::{Obituary, StopSignal};
use crate::actors::message::Who;
use crate::actors::object_watcher::PeersRebuilt;
use crate::actors::promoting::clusters::Clusters;
use crate::actors::promoting::message::Peers;
use crate::actors::promoting::pipelines::Pipelines;
use crate::actors::send_even_if_full;
use crate::actors::shell::Drives;
use domain::replica::kind_lifecycle::{Event, Part};

/// Both parts. Each ends when its signal is dropped.
pub(super) struct Built {
    pub(super) groups: BTreeSet<usize>,
    pub(super) clusters: Addr<Clusters>,
    pub(super) pipelines: Addr<Pipelines>,
    pub(super) of_clusters: StopSignal,
    pub(super) of_pipelines: StopSignal,
}

impl Promoter {
    fn clusters(&self, ctx: &Context<Self>, signal: &StopSignal) -> Addr<Clusters> {
        let obituary = Obituary::new(ctx.address().recipient(), Who::Part(Part::Clusters));
        Clusters::new(self.env.clone(), self.promoting.leaves.clone(), signal.listener(), obituary).start()
    }

    fn pipelines(
        &self,
        ctx: &Context<Self>,
        signal: &StopSignal,
        clusters: &Addr<Clusters>,
        groups: BTreeSet<usize>,
    ) -> Addr<Pipelines> {
        let obituary = Obituary::new(ctx.address().recipient(), Who::Part(Part::Pipelines));
        let mut promoting = self.promoting.clone();
        let mut number = 0..;
        promoting.objects.retain(|_| number.next().is_some_and(|number| groups.contains(&number)));
        Pipelines::new(self.env.clone(), promoting, self.peers(clusters), signal.listener(), obituary).start()
    }

    fn peers(&self, clusters: &Addr<Clusters>) -> Peers {
        Peers {
            follow: clusters.clone().recipient(),
            look_at: clusters.clone().recipient(),
            tell_notice: self.tell_notice.clone(),
        }
    }

    pub(super) fn build(&mut self, groups: BTreeSet<usize>, ctx: &Context<Self>) {
        let signal = || StopSignal::under(self.stop_listener.clone());
        let (of_clusters, of_pipelines) = (signal(), signal());
        let clusters = self.clusters(ctx, &of_clusters);
        let pipelines = self.pipelines(ctx, &of_pipelines, &clusters, groups.clone());
        self.built = Some(Built { groups, clusters, pipelines, of_clusters, of_pipelines });
    }

    /// Builds a part anew. Readers of clusters are rebuilt with the watch, whose Pipelines would be theirs for ever.
    pub(super) fn rebuild(&mut self, part: Part, ctx: &Context<Self>) {
        self.env.metrics.restart(part.name());
        tracing::error!(actor = part.name(), "an actor crashed; it is rebuilt");
        let Some(mut built) = self.built.take() else { return };
        built.of_clusters = StopSignal::under(self.stop_listener.clone());
        built.clusters = self.clusters(ctx, &built.of_clusters);
        if part == Part::Pipelines {
            built.of_pipelines = StopSignal::under(self.stop_listener.clone());
            built.pipelines = self.pipelines(ctx, &built.of_pipelines, &built.clusters, built.groups.clone());
        }
        self.built = Some(built);
        self.direct();
    }

    /// Tells the Pipelines where their peers are.
    pub(super) fn direct(&self) {
        if let Some(built) = &self.built {
            send_even_if_full(&built.pipelines.clone().recipient(), PeersRebuilt(self.peers(&built.clusters)));
        }
    }

    pub(super) fn end(&mut self, ctx: &mut Context<Self>) {
        let ended = self.built.take().map(|built| join(built.of_pipelines.end(), built.of_clusters.end()));
        let ended = async move {
            if let Some(ended) = ended {
                ended.await;
            }
        };
        self.ask(ctx, ended, |()| Event::Ended);
    }

    pub(super) fn check(&mut self, part: Part, ctx: &mut Context<Self>) {
        let is_dead = self.built.as_ref().is_some_and(|built| match part {
            Part::Clusters => !built.clusters.connected(),
            Part::Pipelines => !built.pipelines.connected(),
            Part::Repos => false,
        });
        if is_dead {
            self.feed(Event::Crashed(part), ctx);
        }
    }
}
