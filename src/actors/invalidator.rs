//! The actor of the accounts: carries purges out, knows the distributions, and asks the edge for what looks want. Decides nothing; see
//! `purge::purges::purge`, `purge::purges::catalog`, `purge::purges::accounts` and `proof::turns`.

mod accounts;
mod bill;
mod distributions;
mod looks;
mod purges;

use std::collections::BTreeMap;

use actix::{Actor, Context, Handler, MessageResult, Recipient, ResponseFuture};
use tokio::sync::oneshot;

use crate::actors::invalidator::accounts::Complained;
use crate::actors::invalidator::looks::Looks;
use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::{MatchPlan, Matched, Observe, PlaceOrder, PurgeReported, RetryPurges};
use crate::actors::observation::{Observation, PurgeSeen};
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX, Settings};
use ::purge::purges::accounts::{Catalogs, Purgers, listing, purging};
use ::purge::purges::bill::{self as month, Bill, Book};
use ::purge::purges::catalog;
use kernel::id::Subject;
use kernel::names::account::AccountName;

/// The actor. See the module's text.
pub struct Invalidator {
    env: Env,
    stop_listener: StopListener,
    /// Sent to root when this ends.
    _obituary: Obituary,
    purges: Shell<Purgers>,
    catalog: Shell<Catalogs>,
    complained: Complained,
    bill: Shell<Bill>,
    looks: Looks,
    /// Where the answer to each question goes.
    questions: BTreeMap<catalog::Token, oneshot::Sender<Result<catalog::Found, catalog::NotFound>>>,
    asked: catalog::Token,
    /// Where reports go: one recipient for each rollout with orders, kept while it lives.
    reports: BTreeMap<Subject, Recipient<PurgeReported>>,
    /// How many of them there may be before those that ended are looked for.
    swept_at: usize,
    /// CloudFront's last refusal in each account, until a call succeeds there.
    trouble: BTreeMap<AccountName, String>,
}

impl Invalidator {
    /// An actor without any work.
    pub fn new(env: Env, stop_listener: StopListener, obituary: Obituary) -> Self {
        let Settings { accounts, pace, budget, freshness, samples_tags, .. } = env.settings.as_ref();
        Self {
            purges: Shell::new(Purgers::new(accounts, pace), &env),
            catalog: Shell::new(Catalogs::new(accounts.clone(), freshness, *samples_tags), &env),
            complained: Complained::new(&env),
            bill: Shell::new(Bill::new(*budget), &env),
            looks: Looks::new(&env),
            stop_listener,
            _obituary: obituary,
            questions: BTreeMap::new(),
            asked: 0,
            reports: BTreeMap::new(),
            swept_at: 0,
            trouble: BTreeMap::new(),
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
        Drives::<Bill>::feed(self, month::Event::Begun, ctx);
        Drives::<Catalogs>::feed(self, listing::Event::Begun, ctx);
    }
}

impl Handler<MatchPlan> for Invalidator {
    type Result = ResponseFuture<Matched>;

    fn handle(&mut self, MatchPlan { namespace, plan, newer }: MatchPlan, ctx: &mut Self::Context) -> Self::Result {
        let (question, answer) = oneshot::channel();
        self.asked = self.asked.wrapping_add(1);
        self.questions.insert(self.asked, question);
        let asked = if newer { listing::Event::Compared } else { listing::Event::Asked };
        Drives::<Catalogs>::feed(self, asked(self.asked, namespace, *plan), ctx);
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
        self.order(*order, ctx);
    }
}

impl Handler<RetryPurges> for Invalidator {
    type Result = ();

    fn handle(&mut self, RetryPurges(workload): RetryPurges, ctx: &mut Self::Context) {
        Drives::<Purgers>::feed(self, purging::Event::Retried(workload.into()), ctx);
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
        let listing = self.catalog.machine().troubles(self.catalog.now());
        let bill = self.bill.machine();
        let uncounted = bill.failure().map(|why| format!("the paths of this month are not known, or not kept: {why}"));
        let costs = bill.over_budget().into_iter().chain(uncounted);
        MessageResult(Observation {
            purges,
            distributions: self.catalog.machine().known(now).map(|(count, age)| (count, age.as_secs())),
            asking: self.questions.len(),
            troubles: self.trouble.values().cloned().chain(listing).chain(costs).collect(),
            bill: bill.book().map(Book::words).unwrap_or_default(),
            ..Observation::default()
        })
    }
}
