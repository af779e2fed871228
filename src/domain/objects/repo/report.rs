//! What is said of a run where people read its commit: the state of the commit, and a comment on the open requests that have it at their
//! head.
//!
//! It is a function of the run alone, so it is the same however often it is said. Numbers are in it, and addresses where they are asked
//! for; never a value, nor what a container wrote: those who read a request need not be those who may read the namespace.
//!
//! Not for when it is said; that is `reporting`. Nor for how a forge takes it; that is the crate `forge`.

use std::fmt::Write as _;

use crate::repo::reported::{Change, Listed};
use crate::repo::spec::ReportTo;
use crate::repo::status::{Action, Phase, Run};
use kernel::id::{CommitId, ObjectId, RepoId, RunSeq, digest};
use kernel::text;

/// Bytes of the words beside a commit's state: GitHub takes 140 characters.
const SUMMARY_BYTES_MAX: usize = 140;

/// Bytes of the name of a commit's state: GitHub and GitLab take 255 characters.
const CONTEXT_BYTES_MAX: usize = 255;

/// Bytes of an address in a comment.
const ADDRESS_BYTES_MAX: usize = 200;

/// How a run ends that was to apply something, and whose plan then had nothing in it.
const CHANGED_NOTHING: &str = "the plan changes nothing";

/// What is to be said of one run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Saying {
    pub repo: RepoId,
    /// Of the Repo. The marks of its comments are made of it.
    pub uid: String,
    /// The address of the repository.
    pub url: String,
    pub to: ReportTo,
    pub revision: CommitId,
    pub standing: Standing,
    /// One line of words.
    pub summary: String,
    /// The comment, in Markdown; `None` where there is nothing yet that a person would read.
    pub comment: Option<String>,
    /// The commit has this state already: only requests are looked for that have come since.
    pub again: bool,
}

/// How a commit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    Pending,
    Success,
    Failure,
}

impl Standing {
    const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

impl Saying {
    /// What is said, in one hash. Which Secret it is said with is not in it.
    pub fn hash(&self) -> String {
        let Self { repo, uid, url, to, revision, standing, summary, comment, again: _ } = self;
        let name = repo.display_name();
        let comment = comment.as_deref().unwrap_or_default();
        let fixed = [to.provider.name(), url, uid, &name, revision.as_str(), standing.name(), summary, comment];
        digest("saying", fixed)
    }

    /// The name of the commit's state: one of each Repo.
    pub fn context(&self) -> String {
        text::clean(&format!("allclear/{}", self.repo.display_name()), CONTEXT_BYTES_MAX)
    }

    /// What marks the comment on the request of this number: that begins with it. Nobody can guess it before it is there, for the UID is
    /// said nowhere else on the forge: so the oldest comment that begins with it is ours, however many copies others make. Only who may
    /// edit an older comment can put it there.
    pub fn mark(&self, number: u64) -> String {
        let hash = digest("comment", [self.uid.as_str(), &self.url, &number.to_string()]);
        format!("<!-- allclear {hash} -->")
    }
}

/// What a run says, in its own words.
struct Words {
    standing: Standing,
    /// About the commit.
    said: String,
    is_commented: bool,
}

/// What is to be said of a run; nothing of one that something else took the place of, or that the program before ours made.
pub fn saying(
    repo: &RepoId,
    uid: &str,
    url: &str,
    to: &ReportTo,
    run: &Run,
    changes: Option<&Listed>,
) -> Option<Saying> {
    if run.attempt.seq == RunSeq::default() {
        return None;
    }
    let words = words(run)?;
    let is_of = |changes: &&Listed| run.plan.as_ref().is_some_and(|plan| plan.job == changes.job);
    let changes = changes.filter(is_of).filter(|_| !has_changed_nothing(run));
    let comment = words.is_commented.then(|| comment(repo, run, &words, changes));
    Some(Saying {
        repo: repo.clone(),
        uid: uid.to_owned(),
        url: url.to_owned(),
        to: to.clone(),
        revision: run.revision.clone(),
        standing: words.standing,
        summary: text::clean(&words.said, SUMMARY_BYTES_MAX),
        comment,
        again: false,
    })
}

/// Its last plan had nothing in it; the one that it was approved for may have had.
fn has_changed_nothing(run: &Run) -> bool {
    run.phase == Phase::Succeeded && (run.attempt.action != Action::Apply || run.message == CHANGED_NOTHING)
}

fn words(run: &Run) -> Option<Words> {
    let words = |standing, said: String, is_commented| Some(Words { standing, said, is_commented });
    let plan = run.plan.as_ref();
    let would = plan.map(|plan| plan.counts.map_or_else(|| "something".to_owned(), |counts| counts.to_string()));
    let is_planning = run.attempt.action != Action::Apply;
    match run.phase {
        Phase::Superseded => None,
        Phase::Succeeded => {
            let said = match (would, has_changed_nothing(run)) {
                (_, true) => "nothing to change".to_owned(),
                (Some(would), false) => format!("applied: {would}"),
                (None, false) => "applied".to_owned(),
            };
            words(Standing::Success, said, true)
        }
        Phase::Planned if !run.is_open() => {
            let would = would.unwrap_or_else(|| "nothing".to_owned());
            words(Standing::Success, format!("an apply would change {would}"), true)
        }
        Phase::Planned => {
            let would = would.unwrap_or_else(|| "something".to_owned());
            words(Standing::Pending, format!("an apply would change {would}; it waits for a yes"), true)
        }
        // The apply, or what comes after it.
        Phase::Failed => words(Standing::Failure, "the run failed".to_owned(), true),
        Phase::Lost => words(Standing::Failure, "the apply is lost: what it did is not known".to_owned(), true),
        Phase::Waiting | Phase::Starting | Phase::Started => {
            let failing = run.failing;
            match (failing.applies > 0, failing.before > 0, is_planning, would) {
                (true, ..) => words(Standing::Failure, "the run failed, and is tried again".to_owned(), true),
                (_, true, true, _) => words(Standing::Failure, "the plan failed, and is tried again".to_owned(), true),
                (_, true, false, _) => {
                    words(Standing::Failure, "the apply could not begin, and is tried again".to_owned(), true)
                }
                (.., true, _) => words(Standing::Pending, "it is to be planned".to_owned(), false),
                (.., false, Some(would)) => {
                    words(Standing::Pending, format!("an apply would change {would}; it is to be applied"), true)
                }
                (.., false, None) => words(Standing::Pending, "it is to be applied".to_owned(), false),
            }
        }
    }
}

fn comment(repo: &RepoId, run: &Run, words: &Words, changes: Option<&Listed>) -> String {
    let name = repo.display_name();
    let revision = run.revision.short();
    let mut all = format!("**{}** `{revision}`: {}\n", code(&name), words.said);
    // Writing to a text cannot fail.
    if let Some(Listed { listed, more, job: _ }) = changes.filter(|_| words.standing != Standing::Failure) {
        all.push('\n');
        for Change { action, address } in listed {
            let _ = writeln!(all, "- {action} {}", code(address));
        }
        if *more > 0 {
            let _ = writeln!(all, "- and {more} more");
        }
    }
    let (what, command) = match words.standing {
        Standing::Failure => ("Why", format!("allclear explain repo/{name}")),
        _ if run.plan.is_some() => ("The plan", format!("allclear repo logs {name} --step plan")),
        _ => ("More", format!("allclear explain repo/{name}")),
    };
    let _ = write!(all, "\n{what}: `{command}`\n");
    all
}

/// A text of others in Markdown: not a link, not a mention, not markup, and one line.
fn code(text: &str) -> String {
    format!("`{}`", text::clean(text, ADDRESS_BYTES_MAX).replace('`', "'"))
}
