//! The story of several clusters behind one CDN: every one has a controller and a Redis of its own, and none is in
//! charge.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::actors::observation::Observation;
use crate::adapters::clock::SystemClock;
use crate::demo::life::Life;
use crate::demo::narration::{
    BROKEN, CHAPTER_MAX, COMPLETES_AFTER, Chapter, DISTRIBUTION, HOST, LOOK_EVERY, NAME, NAMESPACE, ROLLOUT_TIMEOUT,
    TIMINGS, Told, events, image, label, program, say, settled, table,
};
use domain::ports::Clock;
use sandbox::cloudfront::access_key_id;
use sandbox::group::{GroupWorld, Web};
use sandbox::http::{Action, Fault, When};
use sandbox::kubernetes::PodFate;
use sandbox::redis_server::RedisServer;
use sandbox::world::World;

/// Short, for the demo: how long a failing rollout takes, and when the next member takes a purge over.
const SETTINGS: [(&str, &str); 2] =
    [("ALLCLEAR__ROLLOUT__TIMEOUT", ROLLOUT_TIMEOUT), ("ALLCLEAR__GROUP__TAKEOVER", "1s")];

/// Time between the rollouts of two clusters: long enough to see the others wait.
const STAGGER: Duration = Duration::from_millis(1_200);

/// The tag of the chapter in which a member is killed.
const LAST: &str = "1.2";

/// Tells it with this many clusters. Whether it came out as announced; `stay` keeps everything running afterwards.
pub async fn tell(clusters: usize, stay: bool) -> io::Result<bool> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let web =
        if RedisServer::is_installed() { Web::new(clusters, None, &[])? } else { Web::in_process(clusters, &clock) };
    let GroupWorld { worlds, web } = GroupWorld::joined(clusters, TIMINGS, Some(COMPLETES_AFTER), web).await?;
    let mut story = Story::prepare(worlds, web).await?;
    let told = story.tell().await;
    let well = story.table()?;
    told?;
    if stay {
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
    members: Vec<Member>,
    web: Web,
    began: Instant,
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
    /// Brings the clusters up, each with the site and a controller.
    async fn prepare(worlds: Vec<World>, web: Web) -> io::Result<Self> {
        let mut members = Vec::new();
        for world in worlds {
            world.add_site(NAMESPACE, NAME, &image("1.0"), HOST, DISTRIBUTION)?;
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
        let mut story = Self { members, web, began: Instant::now(), calls: 0, chapters: Vec::new() };
        story.introduce()?;
        for member in &mut story.members {
            member.life = Some(Life::start(&member.world, &SETTINGS).await?);
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

    async fn tell(&mut self) -> io::Result<()> {
        let nothing = Trouble::Nothing;
        self.chapter("one version, one cluster after another, 1.0 → 1.1", "1.1", 1, STAGGER, nothing).await?;
        let short = STAGGER / 4;
        self.chapter(
            "one cluster cannot run it, 1.1 → 2.0: the edge must not see it",
            BROKEN,
            0,
            short,
            Trouble::Fails,
        )
        .await?;
        self.chapter("a member dies in the act of purging, 2.0 → 1.2", LAST, 1, short, Trouble::Killed).await
    }

    /// Sets a tag in one cluster after another and tells what follows, until every member says how it ended.
    async fn chapter(
        &mut self,
        title: &'static str,
        tag: &str,
        expected: usize,
        stagger: Duration,
        trouble: Trouble,
    ) -> io::Result<()> {
        say(&format!("\n{}. {title}", self.chapters.len() + 1))?;
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
        let (purged, called) = (self.purges() - purges, self.received() - calls);
        self.chapters.push(Chapter { title, expected, purged, called, ended, took: self.began.elapsed() });
        Ok(())
    }

    fn set_image(&self, at: usize, tag: &str) -> io::Result<()> {
        let Some(Member { world, .. }) = self.members.get(at) else { return Ok(()) };
        let refused = |failure| io::Error::other(format!("{failure:?}"));
        world.kubernetes.set_image(NAMESPACE, NAME, NAME, &image(tag)).map_err(refused)?;
        self.line(&world.name, "deployment", &format!("kubectl set image deployment/{NAME} {NAME}={}", image(tag)))
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
            member.life = Some(Life::start(&member.world, &SETTINGS).await?);
            tell_line(
                began,
                &member.world.name,
                "restart",
                "it reads its ledger and finds out what became of its vote",
            )?;
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
                let state = rollout.state.rsplit_once(", ").filter(|(_, left)| left.contains(" left"));
                let state = state.map_or(rollout.state.as_str(), |(state, _)| state);
                if state != member.state {
                    tell_line(began, &member.world.name, "waits", state)?;
                    state.clone_into(&mut member.state);
                }
            }
            for Told { id, reason, note } in events(&member.world) {
                if member.told.insert(id) {
                    let text = note.strip_prefix("not purged: ").unwrap_or(&note);
                    tell_line(began, &member.world.name, label(&reason), text)?;
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

    fn line(&self, member: &str, what: &str, text: &str) -> io::Result<()> {
        tell_line(self.began, member, what, text)
    }

    fn table(&self) -> io::Result<bool> {
        let well = table(&self.chapters, 3)?;
        let purges = self.members.first().map(|member| member.world.cloudfront.invalidations()).unwrap_or_default();
        let by = |key: &str| {
            let found = self.members.iter().find(|member| member.world.access_key_id() == key);
            found.map_or("?", |member| member.world.name.as_str())
        };
        let makers: Vec<&str> = purges.iter().map(|purge| by(&purge.caller)).collect();
        say(&format!("\nCloudFront was asked for {} invalidations, by {}.", purges.len(), makers.join(" and ")))?;
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

/// Prints what happened in one cluster.
fn tell_line(began: Instant, member: &str, what: &str, text: &str) -> io::Result<()> {
    let seconds = began.elapsed().as_secs_f64();
    say(&format!("  {seconds:5.2} s  {member:<5} {what:<20} {text}"))
}
