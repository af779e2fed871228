//! The story of several clusters behind one CDN: every one has a controller and a Redis of its own, and none is in
//! charge.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::sleep;

use crate::adapters::clock::SystemClock;
use crate::demo::columns::Page;
use crate::demo::member::Member;
use crate::demo::narration::{
    BROKEN, CHAPTER_MAX, DISTRIBUTION, HOST, LOOK_EVERY, NAME, NAMESPACE, Told, image, label, program, say,
};
use crate::demo::story::{self, Came, Stopwatch};
use crate::demo::telling::{Heading, Pace, Wishes};
use purge::ports::Clock;
use sandbox::cloudfront::access_key_id;
use sandbox::group::{GroupWorld, Web};
use sandbox::http::{Action, Fault, When};
use sandbox::kubernetes::PodFate;
use sandbox::redis_server::RedisServer;
use sandbox::world::World;

/// When the next member takes a purge over: soon, for the demo.
const TAKEOVER: (&str, &str) = ("ALLCLEAR__GROUP__TAKEOVER", "1s");

/// A chapter: which version follows which, what disturbs it, and what must come of it.
#[derive(Clone, Copy)]
pub struct Scene {
    /// The version that runs when it begins.
    from: &'static str,
    tag: &'static str,
    /// Purges, and webhook calls.
    expected: usize,
    /// By how much of the usual time one cluster follows another.
    follows: u32,
    trouble: Trouble,
}

pub const SCENES: [(Heading, Scene); 3] = [
    (
        Heading::new("rollout", "one version, one cluster after another, 1.0 → 1.1"),
        Scene { from: "1.0", tag: "1.1", expected: 1, follows: 4, trouble: Trouble::Nothing },
    ),
    (
        Heading::new("broken", "one cluster cannot run it, 1.1 → 2.0: the edge must not see it"),
        Scene { from: "1.1", tag: BROKEN, expected: 0, follows: 1, trouble: Trouble::Fails },
    ),
    (
        Heading::new("killed", "a member dies in the act of purging, 2.0 → 1.2"),
        Scene { from: BROKEN, tag: "1.2", expected: 1, follows: 1, trouble: Trouble::Killed },
    ),
];

/// Of what [`Scene::follows`] is a part.
const FOLLOWS_ALL: u32 = 4;

/// Tells it with this many clusters. Whether it came out as announced.
pub async fn tell(clusters: usize, wishes: &Wishes) -> io::Result<bool> {
    let pace = wishes.pace();
    let scenes = wishes.chosen(&SCENES);
    let from = scenes.first().map_or("1.0", |(_, _, first)| first.from);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let web =
        if RedisServer::is_installed() { Web::new(clusters, None, &[])? } else { Web::in_process(clusters, &clock) };
    let GroupWorld { worlds, web } =
        GroupWorld::joined(clusters, pace.timings, Some(pace.completes_after), web).await?;
    let story = Story::prepare(worlds, web, from, pace).await?;
    story::tell(story, &scenes, wishes).await
}

struct Story {
    pace: &'static Pace,
    members: Vec<Member>,
    web: Web,
    page: Page,
    calls: usize,
    watch: Stopwatch,
}

/// The reason every member has to give in the chapter in which one cluster fails.
const FAILURE: &str = "the rollout timeout passed";

/// What disturbs a chapter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Nothing,
    /// The last cluster cannot pull the image.
    Fails,
    /// The member that is about to create the invalidation is killed in the act.
    Killed,
}

impl Story {
    /// Brings the clusters up, each with the site in this version and a controller.
    async fn prepare(worlds: Vec<World>, web: Web, from: &str, pace: &'static Pace) -> io::Result<Self> {
        let members: io::Result<Vec<Member>> = worlds.into_iter().map(|world| Member::new(world, from)).collect();
        let members = members?;
        let page = Page::new(members.iter().map(|member| member.world.name.clone()).collect());
        let mut story = Self { pace, members, web, page, calls: 0, watch: Stopwatch::default() };
        story.introduce()?;
        for member in &mut story.members {
            member.start(&settings(pace)).await?;
        }
        for member in &story.members {
            member.ready(&member.world.name, 1).await?;
        }
        Ok(story)
    }

    fn introduce(&self) -> io::Result<()> {
        let count = self.members.len();
        say(&format!("allclear demo: {count} clusters behind one CDN, all on this machine's loopback\n"))?;
        for (at, Member { world, .. }) in self.members.iter().enumerate() {
            let redis = self.web.servers.get(at).map(|server| format!("; Redis {}", server.address()));
            let redis = redis.unwrap_or_default();
            say(&format!("  {:<11} {}   {NAMESPACE}/{NAME}, 3 replicas{redis}", world.name, world.api.url()))?;
        }
        let Some(Member { world, .. }) = self.members.first() else { return Ok(()) };
        say(&format!("  CloudFront  {}   {DISTRIBUTION}, alias {HOST}", world.cdn.url()))?;
        say(&format!("  webhook     {}/purged", world.hook.url()))?;
        let carried = if self.web.servers.is_empty() {
            "redis-server is not in PATH: boards inside this process carry the messages in place of Redis."
        } else {
            "The Redis servers are real (redis-server), without persistence: they carry messages and remember nothing."
        };
        say(&format!("\n  {carried}"))
    }

    fn set_image(&mut self, at: usize, tag: &str) -> io::Result<()> {
        let Some(member) = self.members.get(at) else { return Ok(()) };
        let (name, command) = (member.world.name.clone(), member.set_image(tag)?);
        self.line(&name, "deployment", &command)
    }

    /// Prepares the trouble; returns where the name of the member that is caught at CloudFront will appear.
    fn prepare_trouble(&self, trouble: Trouble, tag: &str) -> Arc<Mutex<Option<String>>> {
        let caught = Arc::new(Mutex::new(None));
        let (Some(first), Some(last)) = (self.members.first(), self.members.last()) else { return caught };
        match trouble {
            Trouble::Nothing => {}
            Trouble::Fails => last.world.kubernetes.set_fate(&image(tag), Some(PodFate::CannotPull)),
            Trouble::Killed => {
                let keys = self.members.iter().map(|member| (member.world.access_key_id(), member.world.name.clone()));
                let (keys, found) = (keys.collect::<Vec<_>>(), Arc::clone(&caught));
                let hold = Fault::once(When::Before, Action::Hold).matching(move |request| {
                    let name = keys.iter().find(|(key, _)| key == access_key_id(request)).map(|(_, name)| name.clone());
                    let is_creation = request.method == "POST" && name.is_some();
                    if is_creation {
                        *found.lock().unwrap_or_else(PoisonError::into_inner) = name;
                    }
                    is_creation
                });
                first.world.cdn.inject(hold);
            }
        }
        caught
    }

    /// Kills the member whose creation of an invalidation is held at CloudFront's door, if there is one; returns its name.
    fn kill_whoever_is_caught(&mut self, caught: &Mutex<Option<String>>) -> io::Result<Option<String>> {
        let Some(name) = caught.lock().unwrap_or_else(PoisonError::into_inner).clone() else { return Ok(None) };
        if let Some(member) = self.members.iter_mut().find(|member| member.world.name == name) {
            member.controller.kill()?;
        }
        self.line(&name, "kill -9", "it had voted and was asking for the invalidation; CloudFront never heard it")?;
        Ok(Some(name))
    }

    /// Starts the killed member again.
    async fn revive(&mut self) -> io::Result<()> {
        for member in self.members.iter_mut().filter(|member| member.controller.is_away()) {
            member.start(&settings(self.pace)).await?;
            let text = "it reads its ledger and finds out what became of its vote";
            self.page.tell(self.watch.elapsed(), &member.world.name, "restart", text)?;
        }
        Ok(())
    }

    /// Tells what is new: what members wait for, Events, and calls of the webhook.
    async fn listen(&mut self) -> io::Result<()> {
        for member in &mut self.members {
            let seen = member.controller.observe().await;
            if let Some(rollout) = seen.rollouts.first() {
                // Without the countdown, which always changes.
                let counts = |last: &str| last.contains(" left") || last.ends_with(" at most");
                let state = rollout.state.rsplit_once(", ").filter(|(_, last)| counts(last));
                let state = state.map_or(rollout.state.as_str(), |(state, _)| state);
                if state != member.state {
                    self.page.tell(self.watch.elapsed(), &member.world.name, "waits", state)?;
                    state.clone_into(&mut member.state);
                }
            }
            for Told { reason, note, .. } in member.news() {
                self.page.tell(self.watch.elapsed(), &member.world.name, label(&reason), &note)?;
            }
        }
        let calls = self.members.first().map(|member| member.calls_after(self.calls)).unwrap_or_default();
        for call in calls {
            self.line("", "webhook", &call)?;
            self.calls += 1;
        }
        Ok(())
    }

    /// Whether no member has anything left to do.
    async fn is_quiet(&self) -> bool {
        for member in &self.members {
            if !member.is_quiet().await {
                return false;
            }
        }
        true
    }

    /// Whether every member gives this reason.
    fn agree_on(&self, reason: &str) -> bool {
        self.members.iter().all(|member| member.state.contains(reason))
    }

    fn received(&self) -> usize {
        self.members.first().map(Member::received).unwrap_or_default()
    }

    fn purges(&self) -> usize {
        self.members.first().map(Member::purges).unwrap_or_default()
    }

    fn line(&mut self, member: &str, what: &str, text: &str) -> io::Result<()> {
        self.page.tell(self.watch.elapsed(), member, what, text)
    }
}

impl story::Story for Story {
    type Scene = Scene;

    const COLUMNS: &'static [&'static str] = &["purges", "webhooks"];

    fn watch(&mut self) -> &mut Stopwatch {
        &mut self.watch
    }

    /// Sets a tag in one cluster after another and tells what follows, until every member says how it ended.
    async fn chapter(&mut self, Scene { tag, expected, follows, trouble, .. }: Scene) -> io::Result<Came> {
        let stagger = self.pace.stagger * follows / FOLLOWS_ALL;
        let (purges, calls) = (self.purges(), self.received());
        self.calls = calls;
        self.members.iter_mut().for_each(Member::begin);
        let caught = self.prepare_trouble(trouble, tag);
        let mut killed = None;
        let mut set = 0;
        let mut ended = false;
        while !ended {
            if self.watch.elapsed() > CHAPTER_MAX {
                let text = format!("nothing more happened within {} s", CHAPTER_MAX.as_secs());
                self.line("", "given up", &text)?;
                break;
            }
            if set < self.members.len() && self.watch.elapsed() >= stagger * u32::try_from(set).unwrap_or(u32::MAX) {
                self.set_image(set, tag)?;
                set += 1;
            }
            self.listen().await?;
            if killed.is_none() {
                killed = self.kill_whoever_is_caught(&caught)?;
            } else if self.purges() > purges {
                self.revive().await?;
            }
            sleep(LOOK_EVERY).await;
            let done = set == self.members.len() && self.received() >= calls + expected;
            ended = done && if expected > 0 { self.is_quiet().await } else { self.agree_on(FAILURE) };
        }
        self.listen().await?;
        self.revive().await?;
        self.page.end()?;
        let came = [self.purges() - purges, self.received() - calls];
        Ok(Came::counts(expected, &came, ended))
    }

    fn closing(&self) -> Option<String> {
        let purges = self.members.first().map(|member| member.world.cloudfront.invalidations()).unwrap_or_default();
        let by = |key: &str| {
            let found = self.members.iter().find(|member| member.world.access_key_id() == key);
            found.map_or("?", |member| member.world.name.as_str())
        };
        let makers: Vec<&str> = purges.iter().map(|purge| by(&purge.caller)).collect();
        Some(match makers.as_slice() {
            [] => "\nCloudFront was asked for nothing.".to_owned(),
            [one] => format!("\nCloudFront was asked for 1 invalidation, by {one}."),
            many => format!("\nCloudFront was asked for {} invalidations, by {}.", many.len(), many.join(" and ")),
        })
    }

    fn staying(&self) -> io::Result<String> {
        let mut text = "\nStill running; end it with Ctrl-C. In another shell, for one of the clusters:\n".to_owned();
        for Member { world, controller, .. } in &self.members {
            text += &format!(
                "\n  {}\
                 \n    status page   {}\
                 \n    settings      . {}\n",
                world.name,
                controller.page(),
                world.leave_settings()?.display(),
            );
        }
        text += &format!(
            "\n  then\
             \n    ask why       {} explain -n {NAMESPACE} {NAME}\
             \n    roll out      kubectl -n {NAMESPACE} set image deployment/{NAME} {NAME}={}",
            program(),
            image("1.3"),
        );
        Ok(text)
    }

    fn end(self) -> io::Result<()> {
        self.members.into_iter().try_for_each(|member| member.controller.stop())
    }
}

/// The settings of every controller.
fn settings(pace: &Pace) -> Vec<(&'static str, &'static str)> {
    [pace.settings(), &[TAKEOVER]].concat()
}
