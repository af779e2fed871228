//! The story of one cluster.

use std::collections::BTreeSet;
use std::io;

use tokio::time::{Instant, sleep};

use crate::demo::life::Life;
use crate::demo::narration::{
    BROKEN, CHAPTER_MAX, Chapter, DISTRIBUTION, HOST, LOOK_EVERY, NAME, NAMESPACE, Told, events, image, label, line,
    program, say, settled, table,
};
use crate::demo::telling::{CALM, Heading, Pace, Wishes};
use sandbox::kubernetes::PodFate;
use sandbox::world::World;

/// A chapter: which version follows which, and what must come of it.
#[derive(Clone, Copy)]
pub struct Scene {
    pub heading: Heading,
    /// The version that runs when it begins.
    from: &'static str,
    tag: &'static str,
    /// Purges, and webhook calls.
    expected: usize,
    /// The reason of the Event that it ends with.
    until: &'static str,
    /// Whether the controller is killed in the middle.
    kill: bool,
}

pub const SCENES: [Scene; 5] = [
    Scene {
        heading: Heading::new("rollout", "a new version is rolled out, 1.0 → 1.1"),
        from: "1.0",
        tag: "1.1",
        expected: 1,
        until: "PurgeCompleted",
        kill: false,
    },
    Scene {
        heading: Heading::new("broken", "a version whose image does not exist, 1.1 → 2.0"),
        from: "1.1",
        tag: BROKEN,
        expected: 0,
        until: "RolloutFailed",
        kill: false,
    },
    Scene {
        heading: Heading { name: "back", title: "back to 1.1: the edge never saw 2.0", goes_on: true },
        from: BROKEN,
        tag: "1.1",
        expected: 0,
        until: "PurgeSkipped",
        kill: false,
    },
    Scene {
        heading: Heading::new("old", "the old version again, 1.1 → 1.0"),
        from: "1.1",
        tag: "1.0",
        expected: 1,
        until: "PurgeCompleted",
        kill: false,
    },
    Scene {
        heading: Heading::new("killed", "the controller is killed in the middle, 1.0 → 1.2"),
        from: "1.0",
        tag: "1.2",
        expected: 1,
        until: "PurgeCompleted",
        kill: true,
    },
];

/// Tells it. Whether it came out as announced.
pub async fn tell(wishes: &Wishes) -> io::Result<bool> {
    let pace = wishes.pace();
    let scenes = wishes.chosen(&SCENES, |scene| scene.heading);
    let from = scenes.first().map_or("1.0", |(_, first)| first.from);
    let world = World::new(pace.timings, Some(pace.completes_after)).await?;
    world.kubernetes.set_fate(&image(BROKEN), Some(PodFate::CannotPull));
    world.add_site(NAMESPACE, NAME, &image(from), HOST, DISTRIBUTION)?;
    let url = format!("{}/purged", world.hook.url());
    world.subscribe(&serde_json::json!([{
        "name": NAME, "url": url, "method": "POST", "headers": {}, "parameters": { "site": HOST },
    }]))?;
    let cluster = world.kubernetes.clone();
    #[expect(clippy::disallowed_methods, reason = "part of the world that the demo plays; ended with it")]
    let controllers = actix::spawn(async move { cluster.run_controller().await });
    say(&format!(
        "allclear demo: the real controller against stand-ins on this machine's loopback\n\
         \n  Kubernetes  {}   {NAMESPACE}/{NAME}, 3 replicas, reached by {HOST}\
         \n  CloudFront  {}   {DISTRIBUTION}, alias {HOST}\
         \n  webhook     {url}",
        world.api.url(),
        world.cdn.url(),
    ))?;
    let life = Life::start(&world, pace.settings()).await?;
    let mut story = Story::new(world, life, pace).await?;
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
    controllers.abort();
    story.life.take().map_or(Ok(()), Life::stop)?;
    Ok(well)
}

struct Story {
    pace: &'static Pace,
    world: World,
    life: Option<Life>,
    began: Instant,
    /// Notes of Events already told.
    told: BTreeSet<String>,
    /// The last thing the controller said it waits for.
    state: String,
    calls: usize,
    chapters: Vec<Chapter>,
}

impl Story {
    async fn new(world: World, life: Life, pace: &'static Pace) -> io::Result<Self> {
        let story = Self {
            pace,
            world,
            life: Some(life),
            began: Instant::now(),
            told: BTreeSet::new(),
            state: String::new(),
            calls: 0,
            chapters: Vec::new(),
        };
        // The workload that was there before is a baseline: nothing has changed, so nothing is purged.
        let deadline = Instant::now() + CHAPTER_MAX;
        loop {
            let seen = story.observe().await;
            if seen.synced && seen.workloads == 1 && settled(&story.world) {
                return Ok(story);
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("the controller was not ready: {}", seen.troubles.join("; "))));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Sets a tag and tells what follows, until the Event that it ends with was published (and the webhook called, if a purge is
    /// expected).
    async fn chapter(&mut self, number: usize, scene: &Scene) -> io::Result<()> {
        let Scene { heading: Heading { title, .. }, tag, expected, until, kill, .. } = *scene;
        say(&format!("\n{number}. {title}"))?;
        self.began = Instant::now();
        self.told.clear();
        self.state.clear();
        let (purges, calls) = (self.purges(), self.world.receiver.received().len());
        let known: BTreeSet<String> = events(&self.world).into_iter().map(|told| told.id).collect();
        let refused = |failure| io::Error::other(format!("{failure:?}"));
        self.world.kubernetes.set_image(NAMESPACE, NAME, NAME, &image(tag)).map_err(refused)?;
        self.line("deployment", &format!("kubectl set image deployment/{NAME} {NAME}={}", image(tag)))?;
        let mut killed = !kill;
        // There has to be a middle to kill it in.
        self.world.kubernetes.set_timings(if kill { CALM.timings } else { self.pace.timings });
        let mut ended = false;
        let mut given_up = false;
        while !ended || self.calls_since(calls) < expected || !self.quiet().await {
            if self.began.elapsed() > CHAPTER_MAX {
                self.line("given up", &format!("nothing more happened within {} s", CHAPTER_MAX.as_secs()))?;
                given_up = true;
                break;
            }
            self.tell_state().await?;
            if !killed && self.state.starts_with("1 of") {
                self.restart().await?;
                killed = true;
            }
            for Told { id, reason, note } in events(&self.world) {
                if !known.contains(&id) && self.told.insert(id) {
                    self.line(label(&reason), note.strip_prefix("not purged: ").unwrap_or(&note))?;
                    ended |= reason == until;
                }
            }
            self.tell_calls()?;
            sleep(LOOK_EVERY).await;
        }
        let purged = self.purges() - purges;
        let called = self.calls_since(calls);
        let took = self.began.elapsed();
        let ended = killed && !given_up;
        self.chapters.push(Chapter { number, title, expected, purged, called, ended, took });
        Ok(())
    }

    async fn restart(&mut self) -> io::Result<()> {
        if let Some(life) = self.life.take() {
            life.kill()?;
        }
        self.line("kill -9", "the controller is gone; pods go on becoming ready without it")?;
        sleep(self.pace.away).await;
        let life = Life::start(&self.world, self.pace.settings()).await?;
        self.line("restart", "a new controller reads the ledger and goes on")?;
        self.life = Some(life);
        Ok(())
    }

    async fn observe(&self) -> crate::actors::observation::Observation {
        match &self.life {
            Some(life) => life.observe().await,
            None => Default::default(),
        }
    }

    /// Tells what the rollout waits for, whenever that changes; without the countdown, which always changes.
    async fn tell_state(&mut self) -> io::Result<()> {
        let seen = self.observe().await;
        let Some(rollout) = seen.rollouts.first() else { return Ok(()) };
        let (what, state) = match rollout.purges.as_slice() {
            [] if rollout.phase == "rolling" => (
                "waiting",
                rollout.state.rsplit_once(", ").map_or(rollout.state.as_str(), |(state, _)| state).to_owned(),
            ),
            [] => return Ok(()),
            [first, ..] => ("site found", format!("{HOST} is served by {}", first.distribution)),
        };
        if state != self.state {
            self.line(what, &state)?;
            self.state = state;
        }
        Ok(())
    }

    fn tell_calls(&mut self) -> io::Result<()> {
        let received = self.world.receiver.received();
        for call in received.iter().skip(self.calls) {
            let body = String::from_utf8_lossy(&call.request.body);
            self.line("webhook", &format!("{} {} with {body}, answered 204", call.request.method, call.request.path))?;
        }
        self.calls = received.len();
        Ok(())
    }

    fn calls_since(&self, before: usize) -> usize {
        self.world.receiver.received().len() - before
    }

    fn purges(&self) -> usize {
        self.world.cloudfront.invalidations().len()
    }

    /// True if no rollout is in flight and the controller has nothing left to do.
    async fn quiet(&self) -> bool {
        let seen = self.observe().await;
        let rolling = seen.rollouts.iter().any(|rollout| rollout.phase == "rolling");
        seen.synced && !rolling && seen.deliveries.is_empty() && (seen.rollouts.is_empty())
    }

    fn line(&self, what: &str, text: &str) -> io::Result<()> {
        line(self.began, what, text)
    }

    /// Prints what was announced beside what happened; whether all so many chapters agree.
    fn table(&self, announced: usize) -> io::Result<bool> {
        let well = table(&self.chapters, announced)?;
        say(&match self.purges() {
            0 => "\nCloudFront was asked for nothing.".to_owned(),
            1 => "\nCloudFront was asked for 1 invalidation.".to_owned(),
            purges => format!(
                "\nCloudFront was asked for {purges} invalidations, one for each version that reached the edge."
            ),
        })?;
        Ok(well)
    }

    async fn stay(&self) -> io::Result<()> {
        let Some(life) = &self.life else { return Ok(()) };
        say(&format!(
            "\nStill running; end it with Ctrl-C. In another shell:\n\
             \n  status page   http://{}/\
             \n  settings      . {}\
             \n  ask why       {} explain -n {NAMESPACE} {NAME}\
             \n  roll out      kubectl -n {NAMESPACE} set image deployment/{NAME} {NAME}={}\
             \n  look closer   kubectl -n {NAMESPACE} get deployments,pods,ingresses,events",
            life.address(),
            self.world.leave_settings()?.display(),
            program(),
            image("1.3"),
        ))?;
        tokio::signal::ctrl_c().await
    }
}
