//! The story of a Pipeline: a revision goes from staging to prod, which is in two clusters, by pull requests that a person merges and
//! a deployer rolls out.

mod props;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use self::props::{deploy, manifest, pipeline, secret};
use crate::demo::narration::{image, program, refused, say};
use crate::demo::stage::{Controller, Part};
use crate::demo::story::{self, Came, Stopwatch, Waits};
use crate::demo::telling::{Heading, Pace, Wishes};
use objects::pipeline::view::{EnvironmentView, View};
use sandbox::cloudfront::Status;
use sandbox::forge::{ForgeHost, Hosted, Pull, PullState, Site};
use sandbox::git::GitHost;
use sandbox::http::{Action, Fault, Server, When};
use sandbox::kubernetes::Kind;
use sandbox::proxy::{Direction, Mode, Proxy};
use sandbox::world::{Outside, World};

/// Where the Pipeline is, and its name; the app has the same name.
const NAMESPACE: &str = "shop";
const NAME: &str = "web";
const STAGING: &str = "staging";
const PROD: &str = "prod";

/// The host of git and of its forge, as the Pipeline names it.
const FORGE: &str = "gitea.example.com";
const REPOSITORY: &str = "shop/web.git";

/// The file that the deployer rolls out in prod, and its marker.
const FILE: &str = "prod/web.yaml";

/// The token of the forge; only its Secret may show it.
const TOKEN: &str = "sandbox-token-that-no-log-may-show";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    Promoted,
    CutOff,
    Approved,
    TakenBack,
    Killed,
}

pub const SCENES: [(Heading, Scene); 5] = [
    (Heading::new("promoted", "staging, then its edge, then prod: 1.0 → 1.1"), Scene::Promoted),
    (Heading::new("cut-off", "prod's second cluster is cut off: nothing moves until it is back"), Scene::CutOff),
    (Heading::new("approved", "a person must say yes, and the old yes is nothing for a new revision"), Scene::Approved),
    (Heading::new("taken-back", "staging is taken back to what prod has: the open request goes"), Scene::TakenBack),
    (Heading::new("killed", "killed between the push and the request: there is one request"), Scene::Killed),
];

impl Scene {
    /// What runs everywhere when it begins.
    fn from(self) -> &'static str {
        match self {
            Scene::Promoted => "1.0",
            Scene::CutOff => "1.1",
            Scene::Approved => "1.2",
            Scene::TakenBack | Scene::Killed => "1.4",
        }
    }

    /// Whether staging is done only when its edge is purged.
    fn is_purged(self) -> bool {
        matches!(self, Scene::Promoted | Scene::CutOff)
    }
}

/// Tells it. Whether it came out as announced.
pub async fn tell(wishes: &Wishes) -> io::Result<bool> {
    let scenes = wishes.chosen(&SCENES);
    let first = scenes.first().map_or(Scene::Promoted, |(_, _, first)| *first);
    story::tell(Story::prepare(first, wishes.pace()).await?, &scenes, wishes).await
}

struct Story {
    pace: &'static Pace,
    /// The cluster that allclear runs in, and the other one.
    here: World,
    there: World,
    /// The line to the other one.
    line: Proxy,
    git: Arc<GitHost>,
    forge: Arc<ForgeHost>,
    site: Server,
    controller: Controller,
    /// What was said last about prod.
    state: String,
    /// Requests and their states, as they were told.
    told: BTreeMap<u64, (String, PullState)>,
    watch: Stopwatch,
    _parts: Vec<Part>,
}

impl Story {
    /// Brings up two clusters, git, a forge, a deployer and the controller, as this chapter finds them.
    async fn prepare(first: Scene, pace: &'static Pace) -> io::Result<Self> {
        let from = first.from();
        let outside = Outside::new(Some(pace.completes_after)).await?;
        let here = World::beside("eu-1", pace.timings, outside.clone()).await?;
        let there = World::beside("us-1", pace.timings, outside).await?;
        here.kubernetes.set_installed("allclear.dev", true);
        here.add_site(STAGING, NAME, &image(from), "staging.example.com", "E2STAGING")?;
        here.add_site(PROD, NAME, &image(from), "www.example.com", "E2PROD")?;
        there.kubernetes.deploy_undated(PROD, NAME, &image(from), 3).map_err(refused)?;
        let git = Arc::new(GitHost::within(here.directory())?);
        git.require_basic("oauth2", TOKEN);
        git.create(REPOSITORY, &[])?;
        git.commit(REPOSITORY, "main", &[(FILE, manifest(from).as_bytes())])?;
        let branches = Arc::new(Hosted(Arc::clone(&git), REPOSITORY.to_owned()));
        let forge = Arc::new(ForgeHost::new(sandbox::forge::Kind::Gitea, "shop/web", TOKEN, branches));
        let site = Server::start(Arc::new(Site { git: Arc::clone(&git), forge: Arc::clone(&forge) })).await?;
        let wire = Proxy::start(there.api.address())?;
        let kubeconfig = there.kubernetes.kubeconfig_at(&format!("http://{}", wire.address()));
        for object in [
            secret("us-1", &[("kubeconfig", &kubeconfig)], None),
            secret("forge", &[("token", TOKEN)], Some(FORGE)),
            pipeline(first.is_purged(), false),
        ] {
            here.kubernetes.apply(object).map_err(refused)?;
        }
        let clusters = vec![here.kubernetes.clone(), there.kubernetes.clone()];
        let mut parts: Vec<Part> = clusters.iter().map(Part::cluster).collect();
        parts.push(Part::play(deploy(Arc::clone(&git), clusters)));
        let mut story = Self {
            pace,
            here,
            there,
            line: wire,
            git,
            forge,
            site,
            controller: Controller::default(),
            state: String::new(),
            told: BTreeMap::new(),
            watch: Stopwatch::default(),
            _parts: parts,
        };
        story.introduce()?;
        story.start().await?;
        story.until("the Pipeline is seen at rest", |_, view| is_settled(view, from)).await?;
        Ok(story)
    }

    fn introduce(&self) -> io::Result<()> {
        say(&format!(
            "allclear demo pipeline: a revision goes from staging to prod, all on this machine's loopback\n\
             \n  eu-1        {}   staging/web and prod/web; allclear and the Pipeline {NAMESPACE}/{NAME} are here\
             \n  us-1        {}   prod/web; allclear may only read here\
             \n  git, forge  {}   stand in for https://{FORGE}; the branch main says what prod runs\
             \n  CloudFront  {}   E2STAGING for staging, E2PROD for prod",
            self.here.api.url(),
            self.line.address(),
            self.site.url(),
            self.here.cdn.url(),
        ))
    }

    async fn start(&mut self) -> io::Result<()> {
        let stand_ins = BTreeMap::from([(FORGE.to_owned(), self.site.address())]);
        self.controller.start(&self.here, self.pace.settings(), stand_ins).await
    }

    /// 1: a revision settles in staging, its edge is purged, a person merges the request, and prod has it.
    async fn promoted(&mut self, tag: &str) -> io::Result<Came> {
        let before = self.forge.pulls().len();
        self.release(tag)?;
        self.until("a request is open", |story, _| story.open().is_some()).await?;
        let purged = self.purges("E2STAGING");
        self.merge()?;
        self.until("prod has it", |_, view| is_done(view, "1.1")).await?;
        Ok(Came::words(
            "1 request after 1 purge of staging",
            format!("{} request after {purged} purge of staging", self.forge.pulls().len() - before),
        ))
    }

    /// 2: prod's other cluster cannot be reached: nothing moves, and it says why; then it heals.
    async fn cut_off(&mut self, tag: &str) -> io::Result<Came> {
        let before = self.forge.pulls().len();
        self.set_line(Mode::Reset);
        self.say("us-1", "the line to its API server is cut")?;
        self.release(tag)?;
        self.until("it says why", |_, view| prod(view).waits.is_some_and(|why| why.contains("us-1/prod/web"))).await?;
        // Long enough for staging to be done, and for anything that should not happen.
        self.pause(Duration::from_secs(3)).await?;
        let meanwhile = self.forge.pulls().len();
        self.set_line(Mode::Pass);
        self.say("us-1", "the line is mended")?;
        self.until_merged("1.2").await?;
        Ok(Came::words(
            "no request while it was away, 1 afterwards",
            format!(
                "{} while it was away, {} afterwards",
                many(meanwhile - before),
                self.forge.pulls().len() - meanwhile
            ),
        ))
    }

    /// 3: a person has to say yes; the revision moves meanwhile, and the old yes is void.
    async fn approved(&mut self, old: &str, new: &str) -> io::Result<Came> {
        self.here.kubernetes.apply(pipeline(false, true)).map_err(refused)?;
        self.say("kubectl apply", "promotion.manual: true; from here on without staging's edge, to be quicker")?;
        self.release(old)?;
        self.until("it asks", |_, view| prod(view).question.is_some_and(|asked| asked.revision.0 == "1.3")).await?;
        let first = self.ticket().await;
        self.release(new)?;
        self.until("it asks anew", |_, view| prod(view).question.is_some_and(|asked| asked.revision.0 == "1.4"))
            .await?;
        let before = self.forge.pulls().len();
        self.answer(&first)?;
        self.pause(Duration::from_secs(2)).await?;
        let by_old = self.forge.pulls().len() - before;
        let second = self.ticket().await;
        self.answer(&second)?;
        self.until_merged("1.4").await?;
        let by_new = self.forge.pulls().len() - before;
        Ok(Came::words(
            "no request by the old yes, 1 by the new",
            format!("{} by the old yes, {by_new} by the new", many(by_old)),
        ))
    }

    /// 4: staging goes back to what prod has: the request that is open is closed.
    async fn taken_back(&mut self, tag: &str, back: &str) -> io::Result<Came> {
        self.here.kubernetes.apply(pipeline(false, false)).map_err(refused)?;
        self.release(tag)?;
        self.until("a request is open", |story, _| story.open().is_some()).await?;
        self.release(back)?;
        self.until("the request is closed", |story, _| story.open().is_none()).await?;
        let ended = self.forge.pulls().last().map(|pull| pull.state);
        Ok(Came::words(
            "the request is closed, prod stays at 1.4",
            format!(
                "{}, prod stays at {}",
                match ended {
                    Some(PullState::Closed) => "the request is closed",
                    Some(PullState::Open) => "the request is open",
                    Some(PullState::Merged) => "the request is merged",
                    None => "there is no request",
                },
                self.prod_runs()
            ),
        ))
    }

    /// 5: the controller dies after the push, before the forge received the request.
    async fn killed(&mut self, tag: &str) -> io::Result<Came> {
        let is_creation =
            |request: &sandbox::http::Request| request.method == "POST" && request.path.ends_with("/pulls");
        self.site.inject(Fault::once(When::Before, Action::Hold).matching(is_creation));
        let (before, seen) = (self.forge.pulls().len(), self.site.seen().len());
        self.release(tag)?;
        let asked = move |story: &Self| {
            story.site.seen().iter().skip(seen).any(|one| one.method == "POST" && one.path.ends_with("/pulls"))
        };
        self.until("the forge is asked", move |story, _| asked(story)).await?;
        self.controller.kill()?;
        self.say("kill -9", "the branch is pushed; the forge never heard of a request")?;
        self.start().await?;
        self.say("restart", "a new controller reads the Pipeline's status and goes on")?;
        self.until_merged("1.6").await?;
        Ok(Came::words("1 request", format!("{} request", self.forge.pulls().len() - before)))
    }

    fn set_line(&self, mode: Mode) {
        self.line.set(Direction::ToServer, mode);
        self.line.set(Direction::ToClient, mode);
    }

    /// Merges the request, once it is open, and waits until prod has this revision.
    async fn until_merged(&mut self, tag: &str) -> io::Result<()> {
        self.until("a request is open", |story, _| story.open().is_some()).await?;
        self.merge()?;
        self.until("prod has it", |_, view| is_done(view, tag)).await
    }

    fn release(&self, tag: &str) -> io::Result<()> {
        self.here.kubernetes.set_image(STAGING, NAME, NAME, &image(tag)).map_err(refused)?;
        self.say("staging", &format!("kubectl -n {STAGING} set image deployment/{NAME} {NAME}={}", image(tag)))
    }

    fn merge(&self) -> io::Result<()> {
        let Some(pull) = self.open() else { return Ok(()) };
        self.forge.merge(pull.number);
        self.say("a person merges", &format!("#{}; the deployer rolls it out in both clusters", pull.number))
    }

    /// Answers a ticket as `kubectl annotate` does.
    fn answer(&self, ticket: &str) -> io::Result<()> {
        let annotations = json!({"allclear.dev/approve": ticket, "allclear.dev/approved-by": "ann"});
        let change = json!({"metadata": {"annotations": annotations}});
        let answered = self.here.kubernetes.patch(Kind::Pipeline, NAMESPACE, NAME, &change);
        answered.map_err(refused)?;
        self.say("ann says yes", &format!("kubectl annotate pipeline {NAME} allclear.dev/approve={ticket}"))
    }

    async fn ticket(&self) -> String {
        let seen = self.controller.observe().await.promoting.unwrap_or_default();
        let question = seen.pipelines.first().and_then(|view| prod(view).question);
        question.map(|question| question.ticket).unwrap_or_default()
    }

    fn open(&self) -> Option<Pull> {
        self.forge.pulls().into_iter().find(|pull| pull.state == PullState::Open)
    }

    fn purges(&self, distribution: &str) -> usize {
        let all = self.here.cloudfront.invalidations();
        all.iter().filter(|purge| purge.distribution == distribution && purge.status == Status::Completed).count()
    }

    fn prod_runs(&self) -> String {
        let running: BTreeSet<String> = [&self.here, &self.there]
            .into_iter()
            .filter_map(|world| world.kubernetes.get(Kind::Deployment, PROD, NAME))
            .map(|object| {
                object
                    .pointer("/spec/template/spec/containers/0/image")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            })
            .map(|image| image.rsplit_once(':').map(|(_, tag)| tag.to_owned()).unwrap_or_default())
            .collect();
        running.into_iter().collect::<Vec<_>>().join(" and ")
    }

    fn say(&self, what: &str, text: &str) -> io::Result<()> {
        self.watch.line(what, text)
    }
}

impl story::Story for Story {
    type Scene = Scene;

    const COLUMNS: &'static [&'static str] = &["came"];

    fn watch(&mut self) -> &mut Stopwatch {
        &mut self.watch
    }

    async fn chapter(&mut self, scene: Scene) -> io::Result<Came> {
        self.state.clear();
        match scene {
            Scene::Promoted => self.promoted("1.1").await,
            Scene::CutOff => self.cut_off("1.2").await,
            Scene::Approved => self.approved("1.3", "1.4").await,
            Scene::TakenBack => self.taken_back("1.5", "1.4").await,
            Scene::Killed => self.killed("1.6").await,
        }
    }

    fn staying(&self) -> io::Result<String> {
        let kubeconfig = self.here.kubeconfig();
        let kubeconfig = kubeconfig.display();
        Ok(format!(
            "\nStill running; end it with Ctrl-C.\n\
             \n  status page   {}\
             \n  ask why       {} --kubeconfig {kubeconfig} explain pipeline/{NAMESPACE}/{NAME}\
             \n  new revision  kubectl --kubeconfig {kubeconfig} -n {STAGING} set image deployment/{NAME} {NAME}={}\
             \n  the request   merge it by pushing to main, or close it: {}",
            self.controller.page(),
            program(),
            image("1.7"),
            self.git.directory(REPOSITORY).display(),
        ))
    }

    fn end(self) -> io::Result<()> {
        self.controller.stop()
    }
}

impl Waits for Story {
    type Seen = View;

    /// Tells what is new about prod and its requests.
    async fn listen(&mut self) -> io::Result<Option<View>> {
        let seen = self.controller.observe().await;
        for pull in self.forge.pulls() {
            let now = (pull.title.clone(), pull.state);
            if self.told.get(&pull.number) == Some(&now) {
                continue;
            }
            let what = match pull.state {
                PullState::Open => "request open",
                PullState::Merged => "request merged",
                PullState::Closed => "request closed",
            };
            if self.watch.has_begun() {
                self.say(what, &format!("#{} {}", pull.number, pull.title))?;
            }
            self.told.insert(pull.number, now);
        }
        let Some(view) = seen.promoting.and_then(|promoting| promoting.pipelines.into_iter().next()) else {
            return Ok(None);
        };
        let state = waits(&prod(&view));
        if state != self.state && self.watch.has_begun() {
            self.say("prod", &state)?;
            self.state = state;
        }
        Ok(Some(view))
    }

    fn standing(view: &View) -> String {
        waits(&prod(view))
    }
}

/// Prod is the last environment of the Pipeline that is played with.
fn prod(view: &View) -> EnvironmentView {
    view.environments.last().cloned().unwrap_or_default()
}

/// What it waits for, or what comes next.
fn waits(environment: &EnvironmentView) -> String {
    environment.waits.as_ref().unwrap_or(&environment.next).clone()
}

/// Whether all environments are settled at this revision.
fn is_settled(view: &View, tag: &str) -> bool {
    view.environments.iter().all(|environment| {
        environment.unsettled.is_none() && environment.revisions.iter().all(|revision| revision.0 == tag)
    })
}

/// Whether prod is done at this revision.
fn is_done(view: &View, tag: &str) -> bool {
    is_settled(view, tag) && prod(view).promotion.is_some_and(|promotion| promotion.phase == "Completed")
}

fn many(requests: usize) -> String {
    if requests == 0 { "no request".to_owned() } else { format!("{requests} requests") }
}
