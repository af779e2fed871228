//! The story of a Repo: each new commit runs a Job, once, whatever happens meanwhile.
//!
//! The git host is real git, and so are allclear's own containers; `pods` says what the others do.

mod pods;
mod props;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use self::pods::Pods;
use self::props::{Told, repo, repository, told};
use crate::demo::narration::{program, refused, say};
use crate::demo::stage::{Controller, Part};
use crate::demo::story::{self, Came, Stopwatch, Waits};
use crate::demo::telling::{Heading, Pace, Wishes};
use objects::repo::view::View;
use sandbox::git::GitHost;
use sandbox::http::{Action, Fault, Request, Server, When};
use sandbox::kubernetes::Kind;
use sandbox::world::World;

/// Where the Repos are, and the first one's name.
const NAMESPACE: &str = "platform";
const NAME: &str = "infra";

/// Another Repo, and one without a repository.
const OTHER: &str = "dns";
const BROKEN: &str = "gone";

/// The git host, as Repos name it.
const GIT: &str = "git.example.com";

/// The file that says which servers there are to be.
const FILE: &str = "servers.txt";

/// Time in which something would happen that must not.
const NOTHING_HAPPENS: Duration = Duration::from_millis(1_500);

/// Hexadecimal digits of a commit, the shortest of the hashes that are told, and how many of them are shown.
const HASH: usize = 40;
const SHOWN: usize = 8;

/// The chapters. Each begins with a commit that is applied, and with approvals off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    Applied,
    Overtaken,
    Approved,
    Killed,
    Broken,
}

pub const SCENES: [(Heading, Scene); 5] = [
    (Heading::new("applied", "a commit runs a Job, and the receiver is told"), Scene::Applied),
    (Heading::new("overtaken", "two more commits while it runs: the newest follows"), Scene::Overtaken),
    (Heading::new("approved", "yes to a plan; a server made by hand makes the yes void"), Scene::Approved),
    (Heading::new("killed", "killed between make and start, and in the middle of an apply"), Scene::Killed),
    (Heading::new("broken", "a Repo whose URL leads nowhere: the others go on"), Scene::Broken),
];

/// Tells it. Whether it came out as announced.
pub async fn tell(wishes: &Wishes) -> io::Result<bool> {
    story::tell(Story::prepare(wishes.pace()).await?, &wishes.chosen(&SCENES), wishes).await
}

struct Story {
    world: World,
    git: Arc<GitHost>,
    /// In front of git.
    site: Server,
    pods: Arc<Pods>,
    controller: Controller,
    /// Deliveries that were shown, and containers.
    shown: (BTreeSet<String>, usize),
    watch: Stopwatch,
    _parts: [Part; 2],
}

impl Story {
    /// Brings up a cluster, git, a receiver and the controller.
    async fn prepare(pace: &'static Pace) -> io::Result<Self> {
        let mut world = World::new(pace.timings, None).await?;
        world.kubernetes.set_installed("allclear.dev", true);
        world.set("ALLCLEAR__REPO__STEP_IMAGE", "registry.example.com/allclear:demo");
        props::subscribe(&world)?;
        let git = Arc::new(GitHost::within(world.directory())?);
        for name in [NAME, OTHER] {
            git.create(&repository(name), &[])?;
        }
        let site = Server::start(Arc::<GitHost>::clone(&git)).await?;
        let (pods, running) = Pods::start(&world, site.address());
        let parts = [running, Part::cluster(&world.kubernetes)];
        let (controller, shown, watch) = (Controller::default(), Default::default(), Stopwatch::default());
        let mut story = Self { world, git, site, pods, controller, shown, watch, _parts: parts };
        story.introduce()?;
        story.start().await?;
        let first = story.commit(NAME, &["web"])?;
        story.apply(repo(NAME, "Auto"))?;
        story.until_applied(NAME, &first).await?;
        Ok(story)
    }

    fn introduce(&self) -> io::Result<()> {
        say(&format!(
            "allclear demo repo: each new commit runs a Job, all on this machine's loopback\n\
             \n  cluster   {}   allclear is here, and the Repo {NAMESPACE}/{NAME}\
             \n  git       {}   stands in for https://{GIT}; its {FILE} says which servers there are to be\
             \n  receiver  {}   is told of runs\
             \n\nallclear's own containers are real: source, report and verify. A stand-in for Terraform plans and applies.",
            self.world.api.url(),
            self.site.url(),
            self.world.hook.url(),
        ))
    }

    async fn start(&mut self) -> io::Result<()> {
        let stand_ins = [(GIT.to_owned(), self.site.address())].into();
        self.controller.start(&self.world, &[], stand_ins).await
    }

    /// 1: a commit runs a Job, and the receiver is notified.
    async fn applied(&mut self) -> io::Result<Came> {
        let jobs = self.jobs();
        let commit = self.push(NAME, &["db", "web"])?;
        self.until_applied(NAME, &commit).await?;
        let told = self.told_of(&commit);
        let times = |kind: &str| told.iter().filter(|told| told.kind == kind).count();
        let (started, completed) = (times("run.started"), times("run.completed"));
        Ok(Came::words(
            "1 Job, told started 1 time, completed 1 time",
            format!("{} Job, told started {started} time, completed {completed} time", self.jobs() - jobs),
        ))
    }

    /// 2: two more commits come while one is applied.
    async fn overtaken(&mut self) -> io::Result<Came> {
        let jobs = self.jobs();
        self.pods.hold(true);
        self.push_until_it_runs(&["cache", "db", "web"]).await?;
        let skipped = self.push(NAME, &["db", "mail", "web"])?;
        self.until_queued(&skipped).await?;
        let newest = self.push(NAME, &["db", "queue", "web"])?;
        self.until_queued(&newest).await?;
        self.say("apply", "its container is let go on")?;
        self.pods.hold(false);
        self.until_applied(NAME, &newest).await?;
        let named: BTreeSet<String> = self.told_of(&newest).into_iter().flat_map(|told| told.skipped).collect();
        let named = if named == BTreeSet::from([skipped]) { "1 is named skipped" } else { "not so named" };
        Ok(Came::words(
            "3 commits, 2 Jobs, 1 is named skipped",
            format!("3 commits, {} Jobs, {named}", self.jobs() - jobs),
        ))
    }

    /// 3: a person says yes to a plan; what it would change is another thing by then.
    async fn approved(&mut self) -> io::Result<Came> {
        self.apply(repo(NAME, "Plan"))?;
        self.say("kubectl apply", "approval: Plan")?;
        let commit = self.push(NAME, &["db", "mail", "queue", "web"])?;
        let first = self.until_asked(&commit, "").await?;
        self.pods.make_by_hand(NAME, "rogue");
        self.say("somebody", "makes the server rogue by hand")?;
        let applies = self.applies();
        self.answer(&first)?;
        let second = self.until_asked(&commit, &first).await?;
        let by_first = self.applies() - applies;
        self.answer(&second)?;
        self.until_applied(NAME, &commit).await?;
        Ok(Came::words(
            "0 applies by the first yes, 1 by the second",
            format!("{by_first} applies by the first yes, {} by the second", self.applies() - applies - by_first),
        ))
    }

    /// 4: the controller dies after a Job was made, when it is not started yet; and in the middle of an apply.
    async fn killed(&mut self) -> io::Result<Came> {
        self.apply(repo(NAME, "Auto"))?;
        let (jobs, applies) = (self.jobs(), self.applies());
        let is_start = |request: &Request| request.method == "PATCH" && request.path.contains("/jobs/");
        let starts = |story: &Self| {
            let seen = story.world.api.seen();
            seen.iter().filter(|one| one.method == "PATCH" && one.path.contains("/jobs/")).count()
        };
        let before = starts(self);
        self.world.api.inject(Fault::once(When::Before, Action::Hold).matching(is_start));
        let commit = self.push(NAME, &["db", "mail", "web"])?;
        self.until("the Job is to be started", move |story, _| starts(story) > before).await?;
        let jobs_now = self.world.kubernetes.list(Kind::Job, NAMESPACE);
        let suspended = jobs_now.iter().filter(|job| job.pointer("/spec/suspend") == Some(&Value::Bool(true))).count();
        self.kill(&format!("{suspended} Job is made and suspended"))?;
        self.world.api.clear_faults();
        self.restart().await?;
        self.until_applied(NAME, &commit).await?;
        let first = (self.jobs() - jobs, self.applies() - applies);
        self.pods.hold(true);
        let commit = self.push_until_it_runs(&["cache", "db", "mail", "web"]).await?;
        self.kill("the apply runs on")?;
        self.restart().await?;
        self.pause(NOTHING_HAPPENS).await?;
        self.pods.hold(false);
        self.until_applied(NAME, &commit).await?;
        let second = (self.jobs() - jobs - first.0, self.applies() - applies - first.1);
        let both = [first, second].map(|(jobs, applies)| format!("{jobs} Job and {applies} apply"));
        Ok(Came::words("1 Job and 1 apply, then 1 Job and 1 apply", both.join(", then ")))
    }

    /// 5: a Repo whose URL leads nowhere.
    async fn broken(&mut self) -> io::Result<Came> {
        self.apply(repo(BROKEN, "Auto"))?;
        self.say("kubectl apply", &format!("Repo {BROKEN}: https://{GIT}/{}", repository(BROKEN)))?;
        self.until("it says why", |_, views| is_unready(views, BROKEN)).await?;
        let there = self.commit(OTHER, &["ns1", "ns2"])?;
        self.apply(repo(OTHER, "Auto"))?;
        self.say("kubectl apply", &format!("Repo {OTHER}: https://{GIT}/{}", repository(OTHER)))?;
        let here = self.push(NAME, &["db", "proxy", "web"])?;
        self.until_applied(OTHER, &there).await?;
        self.until_applied(NAME, &here).await?;
        let views = self.listen().await?.unwrap_or_default();
        let broken = if is_unready(&views, BROKEN) { "GitFailed" } else { "not told" };
        let right = [(OTHER, &there), (NAME, &here)].into_iter().filter(|(name, at)| is_applied(&views, name, at));
        Ok(Came::words("GitFailed; 2 others applied", format!("{broken}; {} others applied", right.count())))
    }

    /// Waits until a commit is applied, and the receiver was notified.
    async fn until_applied(&mut self, name: &'static str, commit: &str) -> io::Result<()> {
        let commit = commit.to_owned();
        self.until("it is applied and told", move |story, views| {
            let told = story.told_of(&commit);
            let is_told = |kind: &str| told.iter().any(|told| told.kind == kind);
            // Deliveries run side by side: the first may come last.
            is_applied(views, name, &commit) && is_told("run.started") && is_told("run.completed")
        })
        .await
    }

    /// Waits until a commit is the next one.
    async fn until_queued(&mut self, commit: &str) -> io::Result<()> {
        let commit = commit.to_owned();
        self.until("it is next", move |_, views| {
            view(views, NAME).and_then(|view| view.queued.as_ref()).is_some_and(|next| next.revision.as_str() == commit)
        })
        .await
    }

    /// Waits until a person is asked about a commit, with another ticket than this one. Returns the ticket.
    async fn until_asked(&mut self, commit: &str, old: &str) -> io::Result<String> {
        let (commit, old) = (commit.to_owned(), old.to_owned());
        let ticket =
            |views: &[View]| view(views, NAME).and_then(|view| view.question.clone()).map(|asked| asked.ticket);
        self.until("it asks", move |story, views| {
            let is_told = story.told_of(&commit).iter().filter(|told| told.kind == "run.waiting").count();
            ticket(views).is_some_and(|ticket| ticket != old) && is_told > usize::from(!old.is_empty())
        })
        .await?;
        Ok(self.listen().await?.and_then(|views| ticket(&views)).unwrap_or_default())
    }

    /// The receiver's notices about a commit, each once.
    fn told_of(&self, commit: &str) -> Vec<Told> {
        let mut seen = BTreeSet::new();
        let all = told(&self.world).into_iter();
        all.filter(|one| one.revision == commit && seen.insert(one.id.clone())).collect()
    }

    /// Commits that these servers are wanted.
    fn commit(&self, name: &str, servers: &[&str]) -> io::Result<String> {
        let file = servers.iter().map(|server| format!("{server}\n")).collect::<String>();
        self.git.commit(&repository(name), "main", &[(FILE, file.as_bytes())])
    }

    /// Commits, and asks for a look at once, as `allclear repo poke` does.
    fn push(&self, name: &str, servers: &[&str]) -> io::Result<String> {
        let commit = self.commit(name, servers)?;
        let poke = json!({"metadata": {"annotations": {"allclear.dev/requested-at": commit}}});
        self.patch(name, &poke)?;
        let servers = servers.join(", ");
        self.say("git push", &format!("{commit} wants {servers}; then: allclear repo poke {NAMESPACE}/{name}"))?;
        Ok(commit)
    }

    /// Pushes a commit, and waits until its apply has begun.
    async fn push_until_it_runs(&mut self, servers: &[&str]) -> io::Result<String> {
        let applies = self.applies();
        let commit = self.push(NAME, servers)?;
        self.until("it is being applied", move |story, _| story.applies() > applies).await?;
        self.say("apply", "its container runs")?;
        Ok(commit)
    }

    /// Answers a ticket as `allclear repo approve` does.
    fn answer(&self, ticket: &str) -> io::Result<()> {
        let annotations = json!({"allclear.dev/approve": ticket, "allclear.dev/approved-by": "ann"});
        self.patch(NAME, &json!({"metadata": {"annotations": annotations}}))?;
        self.say("ann says yes", &format!("allclear repo approve {NAMESPACE}/{NAME} --ticket {ticket}"))
    }

    fn apply(&self, object: Value) -> io::Result<()> {
        self.world.kubernetes.apply(object).map(drop).map_err(refused)
    }

    fn patch(&self, name: &str, change: &Value) -> io::Result<()> {
        let patched = self.world.kubernetes.patch(Kind::Repo, NAMESPACE, name, change);
        patched.map(drop).map_err(refused)
    }

    fn kill(&mut self, meanwhile: &str) -> io::Result<()> {
        self.controller.kill()?;
        self.say("kill -9", meanwhile)
    }

    async fn restart(&mut self) -> io::Result<()> {
        self.start().await?;
        self.say("restart", "a new controller reads the Repo's status and goes on")
    }

    /// Jobs that were made so far.
    fn jobs(&self) -> usize {
        self.world.kubernetes.list(Kind::Job, NAMESPACE).len()
    }

    /// Applies that were begun so far.
    fn applies(&self) -> usize {
        self.world.kubernetes.started_containers().iter().filter(|run| run.container == "apply").count()
    }

    /// Prints what happened. Hashes are shortened, so that a line is a line.
    fn say(&self, what: &str, text: &str) -> io::Result<()> {
        let is_digit = |c: char| c.is_ascii_hexdigit();
        let short = |word: &str| match word.trim_end_matches(|c| !is_digit(c)) {
            hash if hash.len() >= HASH && hash.chars().all(is_digit) => {
                word.replace(hash, &hash.chars().take(SHOWN).collect::<String>())
            }
            _ => word.to_owned(),
        };
        self.watch.line(what, &text.split_inclusive(' ').map(short).collect::<String>())
    }
}

impl story::Story for Story {
    type Scene = Scene;

    const COLUMNS: &'static [&'static str] = &["came"];

    fn watch(&mut self) -> &mut Stopwatch {
        &mut self.watch
    }

    async fn chapter(&mut self, scene: Scene) -> io::Result<Came> {
        match scene {
            Scene::Applied => self.applied().await,
            Scene::Overtaken => self.overtaken().await,
            Scene::Approved => self.approved().await,
            Scene::Killed => self.killed().await,
            Scene::Broken => self.broken().await,
        }
    }

    fn staying(&self) -> io::Result<String> {
        let kubeconfig = self.world.kubeconfig();
        let kubeconfig = kubeconfig.display();
        Ok(format!(
            "\nStill running; end it with Ctrl-C.\n\
             \n  status page  {}\
             \n  ask why      {} --kubeconfig {kubeconfig} explain repo/{NAMESPACE}/{NAME}\
             \n  new commit   push to {}",
            self.controller.page(),
            program(),
            self.git.directory(&repository(NAME)).display(),
        ))
    }

    fn end(self) -> io::Result<()> {
        // The script holds the cluster that holds it.
        self.world.kubernetes.set_job_script(None);
        self.controller.stop()
    }
}

impl Waits for Story {
    type Seen = Vec<View>;

    /// Tells the news: ended containers, and the receiver's new notices. Returns the controller's view.
    async fn listen(&mut self) -> io::Result<Option<Vec<View>>> {
        let is_told = self.watch.has_begun();
        for ended in self.pods.ended_after(self.shown.1) {
            self.shown.1 += 1;
            let words = ended.words.lines().next().unwrap_or_default();
            if is_told && !words.is_empty() {
                let code = if ended.code == 0 { String::new() } else { format!(" (exit code {})", ended.code) };
                self.say(&ended.container, &format!("{}: {words}{code}", ended.job))?;
            }
        }
        for one in told(&self.world) {
            if self.shown.0.insert(one.id.clone()) && is_told {
                self.say(&one.kind, &one.message)?;
            }
        }
        Ok(Some(self.controller.observe().await.running.map(|running| running.repos).unwrap_or_default()))
    }

    fn standing(views: &Vec<View>) -> String {
        let all: Vec<_> = views.iter().map(|view| (&view.id.name, &view.waits, &view.next)).collect();
        format!("{all:?}")
    }
}

fn view<'a>(views: &'a [View], name: &str) -> Option<&'a View> {
    views.iter().find(|view| view.id.name == name)
}

/// Whether this commit is applied.
fn is_applied(views: &[View], name: &str, commit: &str) -> bool {
    let run = view(views, name).and_then(|view| view.run.as_ref());
    run.is_some_and(|run| run.revision.as_str() == commit && run.phase == "Succeeded")
}

/// True if its condition shows that git fails.
fn is_unready(views: &[View], name: &str) -> bool {
    view(views, name).and_then(View::ready).is_some_and(|ready| ready.reason == "GitFailed")
}
