//! The story of one cluster.

use std::io;

use serde_json::json;
use tokio::time::sleep;

use crate::demo::canary::{self, Turn};
use crate::demo::member::{Member, hook};
use crate::demo::narration::{
    BROKEN, CHAPTER_MAX, DISTRIBUTION, HOST, LOOK_EVERY, NAME, NAMESPACE, Told, image, label, program, refused, say,
};
use crate::demo::story::{self, Came, Stopwatch};
use crate::demo::telling::{CALM, Heading, Pace, Wishes};
use sandbox::kubernetes::PodFate;
use sandbox::world::World;

/// What a person does.
#[derive(Clone, Copy)]
enum Act {
    /// Rolls out this tag.
    RollOut(&'static str),
    /// Gives the Service the pods of the other Deployment.
    Switch,
    /// Rolls out this tag of the canary, and does these things with it, from this one on.
    Canary(&'static str, Turn),
}

/// The other Deployment, which is complete before any traffic reaches it, and its version.
const GREEN: &str = "web-green";
const GREEN_TAG: &str = "1.3";

/// A chapter: what is done, from which version on, and what must come of it.
#[derive(Clone, Copy)]
pub struct Scene {
    /// The version that runs when it begins.
    from: &'static str,
    act: Act,
    /// Purges, and webhook calls.
    expected: usize,
    /// The reason of the Event that it ends with.
    until: &'static str,
    /// Whether the controller is killed in the middle.
    kill: bool,
}

pub const SCENES: [(Heading, Scene); 7] = [
    (
        Heading::new("rollout", "a new version is rolled out, 1.0 → 1.1"),
        Scene { from: "1.0", act: Act::RollOut("1.1"), expected: 1, until: "PurgeCompleted", kill: false },
    ),
    (
        Heading::new("broken", "a version whose image does not exist, 1.1 → 2.0"),
        Scene { from: "1.1", act: Act::RollOut(BROKEN), expected: 0, until: "RolloutFailed", kill: false },
    ),
    (
        Heading { name: "back", title: "back to 1.1: the edge never saw 2.0", goes_on: true },
        Scene { from: BROKEN, act: Act::RollOut("1.1"), expected: 0, until: "PurgeSkipped", kill: false },
    ),
    (
        Heading::new("old", "the old version again, 1.1 → 1.0"),
        Scene { from: "1.1", act: Act::RollOut("1.0"), expected: 1, until: "PurgeCompleted", kill: false },
    ),
    (
        Heading::new("killed", "the controller is killed in the middle, 1.0 → 1.2"),
        Scene { from: "1.0", act: Act::RollOut("1.2"), expected: 1, until: "PurgeCompleted", kill: true },
    ),
    (
        Heading::new("moved", "the Service selects another Deployment, 1.2 → 1.3"),
        Scene { from: "1.2", act: Act::Switch, expected: 1, until: "PurgeCompleted", kill: false },
    ),
    (
        Heading::new("aborted", "a canary is aborted, then tried again, 1.0 → 1.1"),
        Scene {
            from: GREEN_TAG,
            act: Act::Canary("1.1", Turn::Aborts),
            expected: 2,
            until: "PurgeCompleted",
            kill: false,
        },
    ),
];

/// Tells it. Whether it came out as announced.
pub async fn tell(wishes: &Wishes) -> io::Result<bool> {
    let pace = wishes.pace();
    let scenes = wishes.chosen(&SCENES);
    let from = scenes.first().map_or("1.0", |(_, _, first)| first.from);
    let world = World::new(pace.timings, Some(pace.completes_after)).await?;
    world.kubernetes.set_fate(&image(BROKEN), Some(PodFate::CannotPull));
    let mut member = Member::new(world, from)?;
    member.world.kubernetes.seed(NAMESPACE, GREEN, &image(GREEN_TAG), 3).map_err(refused)?;
    canary::add(&member.world, "1.0").await?;
    member.world.subscribe(&json!([
        hook(&member.world, NAME, HOST, &[NAME, GREEN]),
        hook(&member.world, canary::NAME, canary::HOST, &[canary::NAME])
    ]))?;
    say(&format!(
        "allclear demo: the real controller against stand-ins on this machine's loopback\n\
         \n  Kubernetes  {}   {NAMESPACE}/{NAME}, 3 replicas, reached by {HOST}; {NAMESPACE}/{GREEN}, by nothing\
         \n                                           {NAMESPACE}/{}, a canary, reached by {}\
         \n  CloudFront  {}   {DISTRIBUTION}, alias {HOST}\
         \n  webhook     {}/purged",
        member.world.api.url(),
        canary::NAME,
        canary::HOST,
        member.world.cdn.url(),
        member.world.hook.url(),
    ))?;
    member.start(pace.settings()).await?;
    member.ready("the controller", 3).await?;
    let story = Story { pace, member, calls: 0, watch: Stopwatch::default() };
    story::tell(story, &scenes, wishes).await
}

struct Story {
    pace: &'static Pace,
    member: Member,
    calls: usize,
    watch: Stopwatch,
}

impl story::Story for Story {
    type Scene = Scene;

    const COLUMNS: &'static [&'static str] = &["purges", "webhooks"];

    fn watch(&mut self) -> &mut Stopwatch {
        &mut self.watch
    }

    /// Does it and tells what follows, until the Event that it ends with was published (and the webhook called, if a purge is
    /// expected).
    async fn chapter(&mut self, Scene { act, expected, until, kill, .. }: Scene) -> io::Result<Came> {
        self.member.state.clear();
        self.member.begin();
        let (purges, calls) = (self.member.purges(), self.member.received());
        match act {
            Act::RollOut(tag) => self.watch.line("deployment", &self.member.set_image(tag)?)?,
            Act::Switch => self.watch.line("service", &self.member.select(GREEN)?)?,
            Act::Canary(tag, _) => self.watch.line("canary", &canary::set_image(&self.member.world, tag)?)?,
        }
        let mut turn = if let Act::Canary(_, first) = act { Some(first) } else { None };
        let mut killed = !kill;
        // There has to be a middle to kill it in.
        self.member.world.kubernetes.set_timings(if kill { CALM.timings } else { self.pace.timings });
        let mut ended = false;
        let mut given_up = false;
        while !ended || turn.is_some() || self.member.received() - calls < expected || !self.member.is_quiet().await {
            if self.watch.elapsed() > CHAPTER_MAX {
                let text = format!("nothing more happened within {} s", CHAPTER_MAX.as_secs());
                self.watch.line("given up", &text)?;
                given_up = true;
                break;
            }
            self.tell_state().await?;
            if !killed && self.member.state.starts_with("1 of") {
                self.restart().await?;
                killed = true;
            }
            for Told { reason, note, .. } in self.member.news() {
                self.watch.line(label(&reason), &note)?;
                ended |= reason == until;
            }
            self.tell_calls()?;
            let rests = ended && self.member.is_quiet().await;
            if let Some(now) = turn.filter(|turn| turn.is_due(&self.member.state, rests)) {
                self.watch.line("canary", &now.play(&self.member.world)?)?;
                (turn, ended) = (now.next(), false);
            }
            sleep(LOOK_EVERY).await;
        }
        // The last call may have come after the last look.
        self.tell_calls()?;
        let came = [self.member.purges() - purges, self.member.received() - calls];
        Ok(Came::counts(expected, &came, killed && !given_up))
    }

    fn closing(&self) -> Option<String> {
        Some(match self.member.purges() {
            0 => "\nCloudFront was asked for nothing.".to_owned(),
            1 => "\nCloudFront was asked for 1 invalidation.".to_owned(),
            purges => format!(
                "\nCloudFront was asked for {purges} invalidations, one for each version that reached the edge."
            ),
        })
    }

    fn staying(&self) -> io::Result<String> {
        Ok(format!(
            "\nStill running; end it with Ctrl-C. In another shell:\n\
             \n  status page   {}\
             \n  settings      . {}\
             \n  ask why       {} explain -n {NAMESPACE} {NAME}\
             \n  roll out      kubectl -n {NAMESPACE} set image deployment/{NAME} {NAME}={}\
             \n  look closer   kubectl -n {NAMESPACE} get deployments,pods,ingresses,events",
            self.member.controller.page(),
            self.member.world.leave_settings()?.display(),
            program(),
            image("1.3"),
        ))
    }

    fn end(self) -> io::Result<()> {
        self.member.controller.stop()
    }
}

impl Story {
    async fn restart(&mut self) -> io::Result<()> {
        self.member.controller.kill()?;
        self.watch.line("kill -9", "the controller is gone; pods go on becoming ready without it")?;
        sleep(self.pace.away).await;
        self.member.start(self.pace.settings()).await?;
        self.watch.line("restart", "a new controller reads the ledger and goes on")
    }

    /// Tells what the rollout waits for, whenever that changes; without the countdown, which always changes.
    async fn tell_state(&mut self) -> io::Result<()> {
        let seen = self.member.controller.observe().await;
        let Some(rollout) = seen.rollouts.first() else { return Ok(()) };
        let (what, state) = match rollout.purges.as_slice() {
            [] if rollout.phase == "rolling" => (
                "waiting",
                rollout.state.rsplit_once(", ").map_or(rollout.state.as_str(), |(state, _)| state).to_owned(),
            ),
            [] => return Ok(()),
            [first, ..] => ("site found", format!("it is served by {}", first.distribution)),
        };
        if state != self.member.state {
            self.watch.line(what, &state)?;
            self.member.state = state;
        }
        Ok(())
    }

    fn tell_calls(&mut self) -> io::Result<()> {
        for call in self.member.calls_after(self.calls) {
            self.watch.line("webhook", &call)?;
            self.calls += 1;
        }
        Ok(())
    }
}
