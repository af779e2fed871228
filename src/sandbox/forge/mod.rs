//! Stand-ins for the forges where pull requests live: GitHub, GitLab, Bitbucket Server and Cloud, and Gitea, each with one repository and
//! its own rules about pull requests.
//!
//! What they have in common is here: requests, their states, and what people do to them. How each says it, and what it refuses,
//! is in a file each. The branches belong to a git host ([`Branches`]); a table will do where no commit is looked at.
//!
//! Faults (refusals, rate limits, redirects, endless bodies, lost answers) are injected into the [`super::http::Server`].
//!
//! Not for git, nor for what of these APIs allclear does not use.

mod bitbucket_cloud;
mod bitbucket_server;
mod gitea;
mod github;
mod gitlab;
mod notes;
mod site;

pub use bitbucket_cloud::{EMAIL, account};
pub use notes::CommitState;
pub use site::Site;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::git::GitHost;
use super::http::{Reply, Request, StandIn};

/// Which forge to stand in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    GitHub,
    GitLab,
    BitbucketServer,
    BitbucketCloud,
    Gitea,
}

/// What a forge knows of the branches of its repository.
pub trait Branches: Send + Sync {
    /// The commit at the head of a branch; `None` if there is no such branch.
    fn tip(&self, branch: &str) -> Option<String>;
    /// Whether `head` has commits that `base` has not.
    fn is_ahead(&self, base: &str, head: &str) -> bool;
    /// Makes `base` contain `head`.
    fn merge(&self, base: &str, head: &str);
}

/// Branches as a table; one is ahead of another that has another commit.
#[derive(Debug, Default)]
pub struct Table(Mutex<BTreeMap<String, String>>);

/// A stand-in. Give it to [`super::http::Server::start`] and keep an `Arc` of it for steering and assertions.
pub struct ForgeHost {
    kind: Kind,
    /// `shop/web`.
    repository: String,
    token: String,
    branches: Arc<dyn Branches>,
    /// Who can be asked for a review.
    members: Vec<String>,
    state: Mutex<State>,
    judge: Mutex<Option<Judge>>,
}

/// Who answers those that ask for a token of a GitHub App.
type Judge = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

#[derive(Default)]
struct State {
    requests: Vec<Pull>,
    states: Vec<CommitState>,
    /// Counts all changes: the age of what was made, and the mark of what is read.
    changes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Its number, from 1.
    pub number: u64,
    /// What is to be merged.
    pub head: String,
    pub base: String,
    pub title: String,
    pub body: String,
    /// Whether it is open, merged or closed.
    pub state: PullState,
    /// What was said in it, oldest first.
    pub comments: Vec<String>,
    /// People who were asked to review it, and teams as `team:NAME`.
    pub reviewers: Vec<String>,
    pub labels: Vec<String>,
    /// As its forge knows that apart from the title; GitLab and Gitea know it by the title alone.
    pub draft: bool,
    /// How the forge is to merge it by itself, if it is, and which commit.
    pub merge_later: Option<(String, String)>,
    /// Nothing that the base branch requires is left to wait for.
    pub is_clean: bool,
    /// Its head has a pipeline, as GitLab has it.
    pub has_pipeline: bool,
    /// Counts its changes, from 0.
    pub version: u64,
    /// The commit at its head when it was last known.
    pub commit: String,
    /// Whether it comes from another repository with a branch of the same name.
    pub from_fork: bool,
}

/// The state of a [`Pull`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullState {
    /// It waits for people.
    Open,
    /// Its commits are in the base.
    Merged,
    /// It was closed otherwise.
    Closed,
}

/// What is wanted of a new request.
struct Wanted {
    head: String,
    base: String,
    title: String,
    body: String,
    draft: bool,
}

/// Why there is no new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// There is an open one of this number already.
    Duplicate(u64),
    NoHead,
    NoBase,
    /// There is nothing to merge.
    Empty,
}

/// What one of the APIs is asked.
struct Asked<'a> {
    request: &'a Request,
    /// What follows the repository in the path.
    path: Vec<&'a str>,
    document: Value,
}

impl ForgeHost {
    /// A forge with one repository, `shop/web`, open to those with this token. Its members are ann and bob.
    pub fn new(kind: Kind, repository: &str, token: &str, branches: Arc<dyn Branches>) -> Self {
        let (repository, token) = (repository.to_owned(), token.to_owned());
        let members = ["ann", "bob"].map(str::to_owned).into();
        Self { kind, repository, token, branches, members, state: Mutex::default(), judge: Mutex::default() }
    }

    /// Apps are installed from now on: this answers all that they ask for themselves.
    pub fn install_apps(&self, judge: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        *self.judge.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(judge));
    }

    /// What an App is answered; `None` where none is known.
    fn judged(&self, request: &Request) -> Option<Reply> {
        self.judge.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|judge| judge(request))
    }

    /// All requests, oldest first.
    pub fn pulls(&self) -> Vec<Pull> {
        let mut state = self.lock();
        state.notice(&*self.branches, self.kind);
        state.requests.clone()
    }

    /// A person merges a request.
    pub fn merge(&self, number: u64) {
        let mut state = self.lock();
        if let Some(pull) = state.changed(number) {
            self.branches.merge(&pull.base, &pull.head);
            pull.state = PullState::Merged;
        }
    }

    /// A person closes a request.
    pub fn close(&self, number: u64) {
        if let Some(pull) = self.lock().changed(number) {
            pull.state = PullState::Closed;
        }
    }

    /// A person edits a request, or something else happens to it.
    pub fn edit(&self, number: u64, edit: impl FnOnce(&mut Pull)) {
        if let Some(pull) = self.lock().changed(number) {
            edit(pull);
        }
    }

    /// Adds a request that was there before; its number is set.
    pub fn add(&self, pull: Pull) -> u64 {
        let mut state = self.lock();
        let number = state.requests.len() as u64 + 1;
        state.requests.push(Pull { number, ..pull });
        number
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pull {
    /// An open request without comments, reviewers and labels.
    pub fn new(head: &str, base: &str, title: &str, body: &str) -> Self {
        let [head, base, title, body] = [head, base, title, body].map(str::to_owned);
        Self {
            number: 0,
            head,
            base,
            title,
            body,
            state: PullState::Open,
            comments: Vec::new(),
            reviewers: Vec::new(),
            labels: Vec::new(),
            draft: false,
            merge_later: None,
            is_clean: false,
            has_pipeline: false,
            version: 0,
            commit: "0".repeat(40),
            from_fork: false,
        }
    }

    fn is_open(&self) -> bool {
        self.state == PullState::Open
    }
}

impl State {
    /// Sees what happened to the branches. GitHub and Gitea close a request whose branch is gone; the others wait for it.
    fn notice(&mut self, branches: &dyn Branches, kind: Kind) {
        for pull in self.requests.iter_mut().filter(|pull| pull.is_open() && !pull.from_fork) {
            match branches.tip(&pull.head) {
                Some(tip) if tip != pull.commit => {
                    pull.commit = tip;
                    // The others go on, where whoever pushed may merge.
                    pull.merge_later.take_if(|_| kind == Kind::GitLab);
                }
                None if matches!(kind, Kind::GitHub | Kind::Gitea) => pull.state = PullState::Closed,
                Some(_) | None => continue,
            }
            pull.version += 1;
            self.changes += 1;
        }
    }

    fn pull(&self, number: u64) -> Option<&Pull> {
        self.requests.iter().find(|pull| pull.number == number)
    }

    /// A request that is about to be changed.
    fn changed(&mut self, number: u64) -> Option<&mut Pull> {
        let pull = self.requests.iter_mut().find(|pull| pull.number == number)?;
        self.changes += 1;
        pull.version += 1;
        Some(pull)
    }

    /// Opens a request. All forges but Bitbucket Cloud refuse a second one from the same branch; GitLab takes one without a difference.
    fn create(&mut self, branches: &dyn Branches, kind: Kind, wanted: Wanted) -> Result<&Pull, Refusal> {
        let Wanted { head, base, title, body, draft } = wanted;
        let commit = branches.tip(&head).ok_or(Refusal::NoHead)?;
        branches.tip(&base).ok_or(Refusal::NoBase)?;
        let is_same = |pull: &&Pull| pull.is_open() && !pull.from_fork && pull.head == head && pull.base == base;
        if let Some(open) = self.requests.iter().find(is_same) {
            return Err(Refusal::Duplicate(open.number));
        }
        if kind != Kind::GitLab && !branches.is_ahead(&base, &head) {
            return Err(Refusal::Empty);
        }
        self.changes += 1;
        let number = self.requests.len() as u64 + 1;
        self.requests.push(Pull { number, commit, draft, ..Pull::new(&head, &base, &title, &body) });
        self.pull(number).ok_or(Refusal::NoHead)
    }
}

impl Asked<'_> {
    fn text(&self, key: &str) -> Option<String> {
        self.document.get(key)?.as_str().map(str::to_owned)
    }

    fn query(&self, key: &str) -> Option<&str> {
        self.request.query.get(key).map(String::as_str)
    }

    /// One page of what is listed, by the names that this API has for them.
    fn page<T>(&self, all: Vec<T>, size_key: &str, default: usize, max: usize) -> Vec<T> {
        let number = |key| self.query(key).and_then(|value| value.parse::<usize>().ok());
        let size = number(size_key).unwrap_or(default).clamp(1, max);
        let page = number("page").unwrap_or(1).max(1);
        all.into_iter().skip((page - 1) * size).take(size).collect()
    }

    /// The request that is asked about.
    fn found<'a>(&self, state: &'a State) -> Option<&'a Pull> {
        state.pull(self.path.get(1)?.parse().ok()?)
    }

    /// The same, about to be changed.
    fn changed<'a>(&self, state: &'a mut State) -> Option<&'a mut Pull> {
        state.changed(self.path.get(1)?.parse().ok()?)
    }

    /// Gives a request the title and the text of the document, as far as it has them.
    fn rewrite(&self, pull: &mut Pull, body: &str) {
        pull.title = self.text("title").unwrap_or_else(|| pull.title.clone());
        pull.body = self.text(body).unwrap_or_else(|| pull.body.clone());
    }

    /// The texts of a list.
    fn texts(&self, key: &str) -> Vec<String> {
        let all = self.document.get(key).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Puts labels on a request, as GitHub and Gitea do.
    fn label(&self, state: &mut State) -> Option<Reply> {
        let pull = self.changed(state)?;
        add(&mut pull.labels, self.texts("labels"));
        let labels: Vec<Value> = pull.labels.iter().map(|name| serde_json::json!({"name": name})).collect();
        Some(json(200, &labels.into()))
    }

    /// Asks for reviews of a request, as GitHub and Gitea do: all, or none where one may not be asked.
    fn ask(&self, state: &mut State, members: &[String]) -> Result<(), Option<String>> {
        let (users, teams) = (self.texts("reviewers"), self.texts("team_reviewers"));
        if let Some(stranger) = users.iter().find(|user| !members.contains(user)) {
            return Err(Some(stranger.clone()));
        }
        let pull = self.changed(state).ok_or(None)?;
        add(
            &mut pull.reviewers,
            users.into_iter().chain(teams.into_iter().map(|team| format!("team:{team}"))).collect(),
        );
        Ok(())
    }

    /// Says something in a request.
    fn comment(&self, state: &mut State) -> Option<Reply> {
        let pull = self.changed(state)?;
        pull.comments.extend(self.text("body"));
        Some(json(201, &serde_json::json!({"id": pull.comments.len(), "body": self.text("body")})))
    }

    /// What is wanted of a new request, by the names that this API has for the two branches and for the text.
    fn wanted(&self, [head, base, body]: [&str; 3]) -> Option<Wanted> {
        let body = self.text(body).unwrap_or_default();
        let draft = self.document.get("draft").and_then(Value::as_bool).unwrap_or_default();
        Some(Wanted { head: self.text(head)?, base: self.text(base)?, title: self.text("title")?, body, draft })
    }
}

impl StandIn for ForgeHost {
    fn answer(&self, request: &Request) -> Reply {
        let document = if request.body.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&request.body) };
        let mut state = self.lock();
        state.notice(&*self.branches, self.kind);
        match document {
            Ok(document) => match self.kind {
                Kind::GitHub => github::answer(self, &mut state, request, document),
                Kind::GitLab => gitlab::answer(self, &mut state, request, document),
                Kind::BitbucketServer => bitbucket_server::answer(self, &mut state, request, document),
                Kind::BitbucketCloud => bitbucket_cloud::answer(self, &mut state, request, document),
                Kind::Gitea => gitea::answer(self, &mut state, request, document),
            },
            Err(_no_json) => message(400, "Problems parsing JSON"),
        }
    }
}

/// Adds what is not there yet.
fn add(all: &mut Vec<String>, more: Vec<String>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// The path below the repository, if it begins so.
fn below<'a>(request: &'a Request, prefix: &str) -> Option<Vec<&'a str>> {
    let rest = request.path.strip_prefix(prefix)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    Some(rest.split('/').filter(|part| !part.is_empty()).collect())
}

fn json(status: u16, document: &Value) -> Reply {
    Reply::full(status, "application/json; charset=utf-8", document.to_string())
}

fn message(status: u16, message: &str) -> Reply {
    json(status, &serde_json::json!({ "message": message }))
}

/// An answer that can be asked for only if it changed.
fn marked(request: &Request, document: &Value) -> Reply {
    let sum = document.to_string().bytes().fold(5_381_u64, |sum, byte| sum.wrapping_mul(33) ^ u64::from(byte));
    let mark = format!("W/\"{sum:016x}\"");
    let reply = if request.header("if-none-match") == Some(&mark) { Reply::empty(304) } else { json(200, document) };
    reply.header("etag", mark)
}

/// A moment for the age of what was made: one second later with each request.
fn moment(number: u64) -> String {
    let at = jiff::Timestamp::from_second(1_700_000_000 + i64::try_from(number).unwrap_or_default());
    at.unwrap_or_default().to_string()
}

impl Table {
    /// Puts a branch at a commit, made if need be.
    pub fn set(&self, branch: &str, commit: &str) {
        self.lock().insert(branch.to_owned(), commit.to_owned());
    }

    pub fn remove(&self, branch: &str) {
        self.lock().remove(branch);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Branches for Table {
    fn tip(&self, branch: &str) -> Option<String> {
        self.lock().get(branch).cloned()
    }

    fn is_ahead(&self, base: &str, head: &str) -> bool {
        self.tip(base) != self.tip(head)
    }

    fn merge(&self, base: &str, head: &str) {
        if let Some(tip) = self.tip(head) {
            self.set(base, &tip);
        }
    }
}

/// The branches of one repository of a git host: its path there, `shop/web.git`.
#[derive(Debug)]
pub struct Hosted(pub Arc<GitHost>, pub String);

impl Branches for Hosted {
    fn tip(&self, branch: &str) -> Option<String> {
        self.0.git(&self.1, &["rev-parse", "--quiet", "--verify", &format!("refs/heads/{branch}")]).ok()
    }

    fn is_ahead(&self, base: &str, head: &str) -> bool {
        let range = format!("refs/heads/{base}..refs/heads/{head}");
        self.0.git(&self.1, &["rev-list", "--count", &range]).is_ok_and(|count| count != "0")
    }

    fn merge(&self, base: &str, head: &str) {
        let [base, head] = [base, head].map(|branch| format!("refs/heads/{branch}"));
        let git = |arguments: &[&str]| self.0.git(&self.1, arguments);
        let merged = git(&["merge-tree", "--write-tree", &base, &head]).and_then(|tree| {
            let person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
            let commit = ["commit-tree", &tree, "-p", &base, "-p", &head, "-m", "Merge"];
            let commit = git(&[&person[..], &commit[..]].concat())?;
            git(&["update-ref", &base, &commit])
        });
        if let Err(error) = merged {
            tracing::warn!(%error, "stand-in forge could not merge");
        }
    }
}

impl fmt::Debug for ForgeHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForgeHost")
            .field("kind", &self.kind)
            .field("repository", &self.repository)
            .finish_non_exhaustive()
    }
}
