//! The story of several clusters behind one CDN: every one has a controller and a Redis of its own, and none is in
//! charge.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::actors::observation::Observation;
use crate::adapters::clock::SystemClock;
use crate::demo::columns::Page;
use crate::demo::life::Life;
use crate::demo::narration::{
    BROKEN, CHAPTER_MAX, Chapter, DISTRIBUTION, HOST, LOOK_EVERY, NAME, NAMESPACE, Told, events, image, label, program,
    say, settled, table,
};
use crate::demo::telling::{Heading, Pace, Wishes};
use domain::ports::Clock;
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
    pub heading: Heading,
    /// The version that runs when it begins.
    from: &'static str,
    tag: &'static str,
    /// Purges, and webhook calls.
    expected: usize,
    /// By how much of the usual time one cluster follows another.
    follows: u32,
    trouble: Trouble,
}

pub const SCENES: [Scene; 3] = [
    Scene {
        heading: Heading::new("rollout", "one version, one cluster after another, 1.0 → 1.1"),
        from: "1.0",
        tag: "1.1",
        expected: 1,
        follows: 4,
        trouble: Trouble::Nothing,
    },
    Scene {
        heading: Heading::new("broken", "one cluster cannot run it, 1.1 → 2.0: the edge must not see it"),
        from: "1.1",
        tag: BROKEN,
        expected: 0,
        follows: 1,
        trouble: Trouble::Fails,
    },
    Scene {
        heading: Heading::new("killed", "a member dies in the act of purging, 2.0 → 1.2"),
        from: BROKEN,
        tag: "1.2",
        expected: 1,
        follows: 1,
        trouble: Trouble::Killed,
    },
];

/// Of what [`Scene::follows`] is a part.
const FOLLOWS_ALL: u32 = 4;

/// Tells it with this many clusters. Whether it came out as announced.
pub async fn tell(clusters: usize, wishes: &Wishes) -> io::Result<bool> {
    let pace = wishes.pace();
    let scenes = wishes.chosen(&SCENES, |scene| scene.heading);
    let from = scenes.first().map_or("1.0", |(_, first)| first.from);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let web =
        if RedisServer::is_installed() { Web::new(clusters, None, &[])? } else { Web::in_process(clusters, &clock) };
    let GroupWorld { worlds, web } =
        GroupWorld::joined(clusters, pace.timings, Some(pace.completes_after), web).await?;
    let mut story = Story::prepare(worlds, web, from, pace).await?;
    let mut told = Ok(());
    for (number, scene) in &scenes {
        told = story.chapter(*number, scene).await;
        if told.is_err() {
            break;
        }
    }
    let well = story.table(scenes.len())?;
    told?;
    if wishes.stay {
        story.stay().await?;
    }
    story.end()?;
    Ok(well)
}

/// One cluster and its controller.
struct Member {
    world: World,
    life: Option<Life>,
    controllers: JoinHandle<()>,
    /// Ids of Events that were told, or that are from an earlier chapter.
    told: BTreeSet<String>,
    /// The last thing it said it waits for.
    state: String,
}

struct Story {
    pace: &'static Pace,
    members: Vec<Member>,
    web: Web,
    began: Instant,
    page: Page,
    calls: usize,
    chapters: Vec<Chapter>,
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
        let mut members = Vec::new();
        for world in worlds {
            world.add_site(NAMESPACE, NAME, &image(from), HOST, DISTRIBUTION)?;
            let url = format!("{}/purged", world.hook.url());
            world.subscribe(&json!([{
                "name": NAME, "url": url, "method": "POST", "headers": {}, "parameters": { "site": HOST },
            }]))?;
            let cluster = world.kubernetes.clone();
            #[expect(clippy::disallowed_methods, reason = "part of the world that the demo plays; ended with it")]
            let controllers = actix::spawn(async move { cluster.run_controller().await });
            let (told, state) = (BTreeSet::new(), String::new());
            members.push(Member { world, life: None, controllers, told, state });
        }
        let page = Page::new(members.iter().map(|member| member.world.name.clone()).collect());
        let mut story = Self { pace, members, web, began: Instant::now(), page, calls: 0, chapters: Vec::new() };
        story.introduce()?;
        for member in &mut story.members {
            member.life = Some(Life::start(&member.world, &settings(pace)).await?);
        }
        story.ready().await?;
        Ok(story)
    }

    /// Waits until every member has seen its cluster, which is settled: nothing has changed, so nothing is purged.
    async fn ready(&self) -> io::Result<()> {
        let deadline = Instant::now() + CHAPTER_MAX;
        for member in &self.members {
            loop {
                let seen = member.observe().await;
                if seen.synced && seen.workloads == 1 && settled(&member.world) {
                    break;
                }
                if Instant::now() > deadline {
                    let troubles = seen.troubles.join("; ");
                    return Err(io::Error::other(format!("{} was not ready: {troubles}", member.world.name)));
                }
                sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
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

    /// Sets a tag in one cluster after another and tells what follows, until every member says how it ended.
    async fn chapter(&mut self, number: usize, scene: &Scene) -> io::Result<()> {
        let Scene { heading: Heading { title, .. }, tag, expected, follows, trouble, .. } = *scene;
        let stagger = self.pace.stagger * follows / FOLLOWS_ALL;
        say(&format!("\n{number}. {title}"))?;
        self.began = Instant::now();
        let (purges, calls) = (self.purges(), self.received());
        self.calls = calls;
        for member in &mut self.members {
            member.told = events(&member.world).into_iter().map(|told| told.id).collect();
        }
        let caught = self.prepare_trouble(trouble, tag);
        let mut killed = None;
        let mut set = 0;
        let mut ended = false;
        while !ended {
            if self.began.elapsed() > CHAPTER_MAX {
                let text = format!("nothing more happened within {} s", CHAPTER_MAX.as_secs());
                self.line("", "given up", &text)?;
                break;
            }
            if set < self.members.len() && self.began.elapsed() >= stagger * u32::try_from(set).unwrap_or(u32::MAX) {
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
        let (purged, called) = (self.purges() - purges, self.received() - calls);
        self.chapters.push(Chapter { number, title, expected, purged, called, ended, took: self.began.elapsed() });
        Ok(())
    }

    fn set_image(&mut self, at: usize, tag: &str) -> io::Result<()> {
        let Some(Member { world, .. }) = self.members.get(at) else { return Ok(()) };
        let refused = |failure| io::Error::other(format!("{failure:?}"));
        world.kubernetes.set_image(NAMESPACE, NAME, NAME, &image(tag)).map_err(refused)?;
        let name = world.name.clone();
        self.line(&name, "deployment", &format!("kubectl set image deployment/{NAME} {NAME}={}", image(tag)))
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
            member.life.take().map_or(Ok(()), Life::kill)?;
        }
        self.line(&name, "kill -9", "it had voted and was asking for the invalidation; CloudFront never heard it")?;
        Ok(Some(name))
    }

    /// Starts the killed member again.
    async fn revive(&mut self) -> io::Result<()> {
        let began = self.began;
        for member in self.members.iter_mut().filter(|member| member.life.is_none()) {
            member.life = Some(Life::start(&member.world, &settings(self.pace)).await?);
            let text = "it reads its ledger and finds out what became of its vote";
            self.page.tell(began.elapsed(), &member.world.name, "restart", text)?;
        }
        Ok(())
    }

    /// Tells what is new: what members wait for, Events, and calls of the webhook.
    async fn listen(&mut self) -> io::Result<()> {
        let began = self.began;
        for member in &mut self.members {
            let seen = member.observe().await;
            if let Some(rollout) = seen.rollouts.first() {
                // Without the countdown, which always changes.
                let counts = |last: &str| last.contains(" left") || last.ends_with(" at most");
                let state = rollout.state.rsplit_once(", ").filter(|(_, last)| counts(last));
                let state = state.map_or(rollout.state.as_str(), |(state, _)| state);
                if state != member.state {
                    self.page.tell(began.elapsed(), &member.world.name, "waits", state)?;
                    state.clone_into(&mut member.state);
                }
            }
            for Told { id, reason, note } in events(&member.world) {
                if member.told.insert(id) {
                    let text = note.strip_prefix("not purged: ").unwrap_or(&note);
                    self.page.tell(began.elapsed(), &member.world.name, label(&reason), text)?;
                }
            }
        }
        let received = self.members.first().map(|member| member.world.receiver.received()).unwrap_or_default();
        for call in received.iter().skip(self.calls) {
            let body = String::from_utf8_lossy(&call.request.body);
            let text = format!("{} {} with {body}, answered 204", call.request.method, call.request.path);
            self.line("", "webhook", &text)?;
        }
        self.calls = received.len();
        Ok(())
    }

    /// Whether no member has anything left to do.
    async fn is_quiet(&self) -> bool {
        for member in &self.members {
            let seen = member.observe().await;
            if !seen.synced || !seen.rollouts.is_empty() || !seen.deliveries.is_empty() {
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
        self.members.first().map(|member| member.world.receiver.received().len()).unwrap_or_default()
    }

    fn purges(&self) -> usize {
        self.members.first().map(|member| member.world.cloudfront.invalidations().len()).unwrap_or_default()
    }

    fn line(&mut self, member: &str, what: &str, text: &str) -> io::Result<()> {
        self.page.tell(self.began.elapsed(), member, what, text)
    }

    fn table(&self, announced: usize) -> io::Result<bool> {
        let well = table(&self.chapters, announced)?;
        let purges = self.members.first().map(|member| member.world.cloudfront.invalidations()).unwrap_or_default();
        let by = |key: &str| {
            let found = self.members.iter().find(|member| member.world.access_key_id() == key);
            found.map_or("?", |member| member.world.name.as_str())
        };
        let makers: Vec<&str> = purges.iter().map(|purge| by(&purge.caller)).collect();
        say(&match makers.as_slice() {
            [] => "\nCloudFront was asked for nothing.".to_owned(),
            [one] => format!("\nCloudFront was asked for 1 invalidation, by {one}."),
            many => format!("\nCloudFront was asked for {} invalidations, by {}.", many.len(), many.join(" and ")),
        })?;
        Ok(well)
    }

    async fn stay(&self) -> io::Result<()> {
        say("\nStill running; end it with Ctrl-C. In another shell, for one of the clusters:")?;
        for Member { world, life, .. } in &self.members {
            let Some(life) = life else { continue };
            say(&format!(
                "\n  {}\
                 \n    status page   http://{}/\
                 \n    settings      . {}",
                world.name,
                life.address(),
                world.leave_settings()?.display(),
            ))?;
        }
        say(&format!(
            "\n  then\
             \n    ask why       {} explain -n {NAMESPACE} {NAME}\
             \n    roll out      kubectl -n {NAMESPACE} set image deployment/{NAME} {NAME}={}",
            program(),
            image("1.3"),
        ))?;
        tokio::signal::ctrl_c().await
    }

    fn end(self) -> io::Result<()> {
        for Member { life, controllers, .. } in self.members {
            controllers.abort();
            life.map_or(Ok(()), Life::stop)?;
        }
        Ok(())
    }
}

impl Member {
    async fn observe(&self) -> Observation {
        match &self.life {
            Some(life) => life.observe().await,
            None => Observation::default(),
        }
    }
}

/// The settings of every controller.
fn settings(pace: &Pace) -> Vec<(&'static str, &'static str)> {
    [pace.settings(), &[TAKEOVER]].concat()
}
