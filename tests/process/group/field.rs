//! Three clusters that are one group, each with the program, a Redis and a line to every Redis, and what can be said of all
//! of them from the outside.

use std::ops::{Index, IndexMut};
use std::time::{Duration, Instant};

use purge::records::record::Record;
use sandbox::cloudfront::{Invalidation, access_key_id};
use sandbox::group::{GroupWorld, Web};
use sandbox::http::{Action, Fault, Request, When};
use sandbox::kubernetes::Timings;
use support::process::{PATIENCE, Process, comes_true};

use crate::group::oracles::Baseline;
use crate::group::timeline::Timeline;
use crate::scene::{NAME, Scene};

/// Members of the group, where a row does not say otherwise.
pub const MEMBERS: usize = 3;

/// What every Redis wants to hear first. No log may show it (O7).
pub const PASSWORD: &str = "redis-password-that-no-log-may-show";

/// Long enough for the first look at an invalidation to find it in progress.
const COMPLETES_AFTER: Duration = Duration::from_millis(150);

/// When the next member takes over what the one before it does not do.
pub const TAKEOVER: Duration = Duration::from_millis(700);

/// The field. Dropping it ends everything in it.
pub struct Field {
    pub members: Vec<Scene>,
    pub web: Web,
    pub timeline: Timeline,
    /// What each process held when it had just started.
    pub baselines: Vec<Option<Baseline>>,
}

impl Field {
    /// Settled clusters and empty Redis servers, without the program.
    pub async fn prepare() -> Self {
        Self::of(MEMBERS, Some(COMPLETES_AFTER), &[]).await
    }

    /// The same, with further options for every Redis, and invalidations that complete after this time.
    pub async fn of(members: usize, completes_after: Option<Duration>, redis: &[&str]) -> Self {
        let web = Web::new(members, Some(PASSWORD), redis).expect("redis-server is there: run `make test-setup` once");
        let joined = GroupWorld::joined(members, Timings::IMMEDIATE, completes_after, web).await;
        let GroupWorld { worlds, web } = joined.expect("loopback is there");
        let clusters = worlds.iter().map(|world| world.kubernetes.clone()).collect();
        let mut members: Vec<Scene> = worlds.into_iter().map(Scene::of).collect();
        let takeover = format!("{}ms", TAKEOVER.as_millis());
        members.iter_mut().for_each(|member| member.set("ALLCLEAR__GROUP__TAKEOVER", &takeover));
        let baselines = members.iter().map(|_| None).collect();
        Self { members, web, timeline: Timeline::follow(clusters), baselines }
    }

    /// Clusters with the program in each, all of which know each other.
    pub async fn new() -> Self {
        let mut field = Self::prepare().await;
        field.start().await;
        field
    }

    /// The same, with these settings in every member.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let mut field = Self::prepare().await;
        field.set(settings);
        field.start().await;
        field
    }

    /// Changes settings of all members, before they are started.
    pub fn set(&mut self, settings: &[(&str, &str)]) {
        for (name, value) in settings {
            self.members.iter_mut().for_each(|member| member.set(name, value));
        }
    }

    /// Starts the program in every cluster and waits until each has seen its own.
    pub async fn start(&mut self) {
        self.members.iter_mut().for_each(|member| member.launch(&["run"]));
        for at in 0..self.members.len() {
            self.wait_started(at).await;
        }
        self.wait_until("every member knows every other", async |field| {
            for member in &field.members {
                if member.process().state().await["troubles"].as_array().is_none_or(|troubles| !troubles.is_empty()) {
                    return false;
                }
            }
            true
        })
        .await;
        for at in 0..self.members.len() {
            self.baselines[at] = Some(Baseline::of(self[at].process()));
        }
    }

    /// Starts one member again, or for the first time, and waits until it has seen its cluster.
    pub async fn revive(&mut self, at: usize) {
        self[at].launch(&["run"]);
        self.wait_started(at).await;
        self.baselines[at] = None;
    }

    async fn wait_started(&self, at: usize) {
        self[at].wait_until_started().await;
    }

    pub fn kill(&mut self, at: usize) {
        self[at].take_process().kill();
    }

    /// Rolls a tag out in every cluster.
    pub fn roll_out(&self, tag: &str) {
        self.members.iter().for_each(|member| member.roll_out(tag));
    }

    /// Waits until the rollout `seq` is over everywhere: closed, told, forgotten.
    pub async fn wait_until_over(&self, seq: u64) {
        let over = async |field: &Self| field.members.iter().all(|member| is_over(member, seq));
        self.wait_until(&format!("rollout {seq} is over everywhere"), over).await;
    }

    /// Waits until a condition holds; fails with all that is known if it never does.
    pub async fn wait_until(&self, what: &str, mut condition: impl AsyncFnMut(&Self) -> bool) {
        if !comes_true(async || condition(self).await).await {
            panic!("it never came to this within {PATIENCE:?}: {what}\n{}", self.tell().await);
        }
    }

    /// Waits for this long, during which a condition must hold.
    pub async fn holds_for(&self, time: Duration, what: &str, mut condition: impl AsyncFnMut(&Self) -> bool) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if !condition(self).await {
                panic!("it did not stay so: {what}\n{}", self.tell().await);
            }
            tokio::time::sleep(support::process::LOOK_EVERY).await;
        }
    }

    /// Everything worth knowing when something has failed.
    pub async fn tell(&self) -> String {
        let mut text = format!("invalidations: {:#?}\n", self.purges());
        for member in &self.members {
            text.push_str(&format!(
                "--- {}\nrecord: {:?}\noutbox: {}\n",
                member.world.name,
                member.record(),
                member.outbox()
            ));
            if member.is_started() {
                let state = member.process().state().await;
                text.push_str(&format!("state: {state}\nlog:\n{}\n", member.process().tail()));
            }
        }
        text
    }

    /// The record of the workload in each ledger.
    pub fn records(&self) -> Vec<Option<Record>> {
        self.members.iter().map(Scene::record).collect()
    }

    /// Whether every member has voted for its rollout `seq`, or is past that.
    pub fn all_voted(&self, seq: u64) -> bool {
        self.records().iter().all(|record| {
            record
                .as_ref()
                .is_some_and(|record| record.votes.iter().any(|vote| vote.seq.0 >= seq) || record.closed.0 >= seq)
        })
    }

    /// Everything CloudFront ever accepted.
    pub fn purges(&self) -> Vec<Invalidation> {
        self[0].world.cloudfront.invalidations()
    }

    /// Which member made an invalidation.
    pub fn maker(&self, purge: &Invalidation) -> usize {
        let made = |member: &Scene| member.world.access_key_id() == purge.caller;
        self.members.iter().position(made).expect("a member made it")
    }

    /// Calls the webhook receiver has taken.
    pub fn calls(&self) -> usize {
        self[0].calls()
    }

    /// Lets every member's requests to its API server that match go wrong in this way.
    pub fn inject_everywhere(&self, fault: impl Fn() -> Fault, matches: fn(&Request) -> bool) {
        self.members.iter().for_each(|member| member.world.api.inject(fault().matching(matches)));
    }

    pub fn clear_faults(&self) {
        self.members.iter().for_each(|member| member.world.api.clear_faults());
        self[0].world.cdn.clear_faults();
        self[0].world.hook.clear_faults();
    }

    /// Waits until CloudFront's door has caught somebody who asks for something like this; returns who it is.
    pub async fn caught_at_cloudfront(&self, when: When, method: &'static str, path: &'static str) -> usize {
        let found = std::sync::Arc::new(std::sync::Mutex::new(None));
        let caught = std::sync::Arc::clone(&found);
        let keys: Vec<String> = self.members.iter().map(|member| member.world.access_key_id()).collect();
        let matches = move |request: &Request| {
            let matches = request.method == method && request.path.contains(path);
            let caller = keys.iter().position(|key| key == access_key_id(request));
            if matches {
                *caught.lock().unwrap() = caller;
            }
            matches && caller.is_some()
        };
        self[0].world.cdn.inject(Fault::once(when, Action::Hold).matching(matches));
        let held = tokio::time::timeout(PATIENCE, self[0].world.cdn.held()).await;
        if held.is_err() {
            panic!("nobody asked CloudFront for {method} {path}\n{}", self.tell().await);
        }
        let at = found.lock().unwrap().take();
        at.expect("it was caught")
    }

    /// Process ids and such of one member.
    pub fn process(&self, at: usize) -> &Process {
        self[at].process()
    }
}

/// Whether a member's rollout `seq` is over, as its ledger says.
pub fn is_over(member: &Scene, seq: u64) -> bool {
    member.is_over(NAME, seq) && member.outbox() == 0
}

impl Index<usize> for Field {
    type Output = Scene;

    fn index(&self, at: usize) -> &Scene {
        &self.members[at]
    }
}

impl IndexMut<usize> for Field {
    fn index_mut(&mut self, at: usize) -> &mut Scene {
        &mut self.members[at]
    }
}
