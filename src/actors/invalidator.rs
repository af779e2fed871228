//! The actor of the account: carries purges out, knows the distributions, and asks the edge for what looks want. Decides nothing; see
//! `purge::purges::purge`, `purge::purges::catalog` and `proof::turns`.

mod distributions;
mod looks;
mod purges;

use std::collections::BTreeMap;

use actix::{Actor, Context, Handler, MessageResult, Recipient, ResponseFuture};
use tokio::sync::oneshot;

use crate::actors::invalidator::looks::Looks;
use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::{MatchPlan, Matched, Observe, PlaceOrder, PurgeReported, RetryPurges};
use crate::actors::observation::{Observation, PurgeSeen};
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use ::purge::purges::catalog::{self, Catalog};
use ::purge::purges::purge::{self, Purger};
use kernel::id::Subject;

/// The actor. See the module's text.
pub struct Invalidator {
    env: Env,
    stop_listener: StopListener,
    /// Sent to root when this ends.
    _obituary: Obituary,
    purges: Shell<Purger>,
    catalog: Shell<Catalog>,
    looks: Looks,
    /// Where the answer to each question goes.
    questions: BTreeMap<catalog::Token, oneshot::Sender<Result<catalog::Found, catalog::NotFound>>>,
    asked: catalog::Token,
    /// Where reports go: one recipient for each rollout with orders, kept while it lives.
    reports: BTreeMap<Subject, Recipient<PurgeReported>>,
    /// How many of them there may be before those that ended are looked for.
    swept_at: usize,
    /// CloudFront's last refusal, until a call succeeds.
    trouble: Option<String>,
}

impl Invalidator {
    /// An actor without any work.
    pub fn new(env: Env, stop_listener: StopListener, obituary: Obituary) -> Self {
        Self {
            purges: Shell::new(Purger::new(env.settings.pace.clone()), &env),
            catalog: Shell::new(
                Catalog::new(env.settings.freshness.clone()).sampling_tags(env.settings.samples_tags),
                &env,
            ),
            looks: Looks::new(&env),
            stop_listener,
            _obituary: obituary,
            questions: BTreeMap::new(),
            asked: 0,
            reports: BTreeMap::new(),
            swept_at: 0,
            trouble: None,
            env,
        }
    }
}

impl Actor for Invalidator {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.show_pace();
        self.show_waiting();
        Drives::<Catalog>::feed(self, catalog::Event::Begun, ctx);
    }
}

impl Handler<MatchPlan> for Invalidator {
    type Result = ResponseFuture<Matched>;

    fn handle(&mut self, MatchPlan { plan, newer }: MatchPlan, ctx: &mut Self::Context) -> Self::Result {
        let (question, answer) = oneshot::channel();
        self.asked = self.asked.wrapping_add(1);
        self.questions.insert(self.asked, question);
        let asked = if newer { catalog::Event::Compared } else { catalog::Event::Asked };
        Drives::<Catalog>::feed(self, asked(self.asked, *plan), ctx);
        Box::pin(async move { answer.await.ok() })
    }
}

impl Handler<PlaceOrder> for Invalidator {
    type Result = ();

    fn handle(&mut self, PlaceOrder { mut order, report_to }: PlaceOrder, ctx: &mut Self::Context) {
        order.ordered_ms = self.env.ports.clock.wall_ms();
        self.reports.insert(order.subject.clone(), report_to);
        if self.reports.len() > self.swept_at {
            // Each is looked at as often as others come: however many there are, an order costs little.
            self.reports.retain(|_, recipient| recipient.connected());
            self.swept_at = self.reports.len() * 2;
        }
        Drives::<Purger>::feed(self, purge::Event::Ordered(*order), ctx);
    }
}

impl Handler<RetryPurges> for Invalidator {
    type Result = ();

    fn handle(&mut self, RetryPurges(workload): RetryPurges, ctx: &mut Self::Context) {
        Drives::<Purger>::feed(self, purge::Event::Retried(workload.into()), ctx);
    }
}

impl Handler<Observe> for Invalidator {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        self.show_pace();
        let now = self.purges.now();
        let seen = self.purges.machine().describe(now).into_iter();
        let purges =
            seen.map(|(reference, distribution, state)| PurgeSeen { reference, distribution, state }).collect();
        let catalog = self.catalog.machine();
        let denied = |why| format!("cache tags count as switched off, and paths are purged instead: {why}");
        let unlisted = |why| format!("distribution tenants that are not known are not purged: {why}");
        let tenants = catalog.distribution_tenants_denied().map(unlisted);
        let tags = catalog.tags_denied().map(denied).into_iter().chain(catalog.tags_missing(self.catalog.now()));
        let listing = catalog.failure().map(str::to_owned).into_iter().chain(tenants).chain(tags);
        MessageResult(Observation {
            purges,
            distributions: self.catalog.machine().known(now).map(|(count, age)| (count, age.as_secs())),
            asking: self.questions.len(),
            troubles: self.trouble.iter().cloned().chain(listing).collect(),
            ..Observation::default()
        })
    }
}
