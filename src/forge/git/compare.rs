//! Whether paths have the same content in two commits. An object's id is its content, so folders are read only down to where the two
//! part, and no file at all.
//!
//! - A server that leaves out what is not asked for sends two commits and a few folders, one for each step of a path.
//! - Another one sends all folders, or all files, as for a promotion.
//!
//! Not for what has changed there, nor for what a link leads to.

use std::collections::BTreeSet;

use purge::ports::Retry;

use super::failure::Failure;
use super::object::Kind;
use super::objects::Commit;
use super::tree::{Entry, Mode};
use super::{Objects, Oid, Remote};

/// What is known of two commits by the folders that are here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    Alike,
    Differ,
    /// These folders are needed to tell.
    Needs(BTreeSet<Oid>),
}

impl Remote {
    pub(super) async fn compared(&self, commits: [Oid; 2], paths: &[String]) -> Result<bool, Failure> {
        let unfiltered = match self.filters().await? {
            false => None,
            true => match self.compared_step_by_step(commits, paths).await {
                // It leaves out files at most, or gives out no folders by their ids.
                Err(failure) if failure.answered => Some(failure),
                known => return known,
            },
        };
        let whole = async {
            let objects = self.trees(&commits.into()).await?;
            match known(&objects, commits, paths)? {
                Known::Alike => Ok(true),
                Known::Differ => Ok(false),
                Known::Needs(_) => Err(Failure::answer("the server did not send all folders")),
            }
        };
        whole.await.map_err(|failure| match unfiltered {
            Some(first) => failure.after(&first),
            None => failure,
        })
    }

    async fn compared_step_by_step(&self, commits: [Oid; 2], paths: &[String]) -> Result<bool, Failure> {
        let mut objects = Objects::new(self.bounds);
        self.commits_alone(&commits, &mut objects).await?;
        loop {
            match known(&objects, commits, paths)? {
                Known::Alike => return Ok(true),
                Known::Differ => return Ok(false),
                Known::Needs(folders) => self.folders_alone(&folders, &mut objects).await?,
            }
        }
    }
}

impl Failure {
    /// This one, of the whole commits, after that of the request for a few folders. Commits that are too large are no answer for ever
    /// where that request may be answered later.
    fn after(self, first: &Self) -> Self {
        let is_passing = first.broken && self.retry == Retry::Never && !self.denied;
        let retry = if is_passing { Retry::Later } else { self.retry };
        let cause = match self.cause.contains(&first.cause) {
            true => self.cause,
            false => format!("{}; before that: {}", self.cause, first.cause),
        };
        Self { cause, retry, ..self }
    }
}

fn known(objects: &Objects, commits: [Oid; 2], paths: &[String]) -> Result<Known, Failure> {
    let root = |commit: Oid| {
        let why = format!("the server did not send commit {commit} whole");
        let commit = objects.of_kind(commit, Kind::Commit).and_then(Commit::read);
        commit.map(|commit| Some(commit.tree)).ok_or_else(|| Failure::answer(why))
    };
    let [one, other] = commits;
    let roots = [root(one)?, root(other)?];
    // Also what links lead to is the same then.
    if roots[0] == roots[1] {
        return Ok(Known::Alike);
    }
    let mut needs = BTreeSet::new();
    for path in paths {
        match of_path(objects, roots, path)? {
            Known::Alike => {}
            Known::Differ => return Ok(Known::Differ),
            Known::Needs(folders) => needs.extend(folders),
        }
    }
    Ok(if needs.is_empty() { Known::Alike } else { Known::Needs(needs) })
}

/// The same of one path of two commits that are not the same; `sides`: their folders.
fn of_path(objects: &Objects, mut sides: [Option<Oid>; 2], path: &str) -> Result<Known, Failure> {
    let mut names = path.split('/').filter(|name| !name.is_empty()).peekable();
    if names.peek().is_none() {
        return Ok(Known::Differ);
    }
    while let Some(name) = names.next() {
        let [one, other] = sides;
        // A folder is read also where both sides have the same: a link in it leads to what may differ.
        let missing: BTreeSet<Oid> = sides.into_iter().flatten().filter(|tree| objects.get(*tree).is_none()).collect();
        if !missing.is_empty() {
            return Ok(Known::Needs(missing));
        }
        let (one, other) = (entry(objects, one, name)?, entry(objects, other, name)?);
        if [&one, &other].into_iter().flatten().any(Entry::is_link) {
            return Ok(Known::Differ);
        }
        let content = |entry: &Option<Entry<'_>>| entry.as_ref().map(|entry| (entry.mode_text.to_vec(), entry.id));
        if names.peek().is_none() {
            return Ok(if content(&one) == content(&other) { Known::Alike } else { Known::Differ });
        }
        let folder =
            |entry: Option<Entry<'_>>| entry.filter(|entry| entry.mode() == Mode::Folder).map(|entry| entry.id);
        sides = [folder(one), folder(other)];
        if sides == [None, None] {
            return Ok(Known::Alike);
        }
    }
    Ok(Known::Alike)
}

fn entry<'a>(objects: &'a Objects, tree: Option<Oid>, name: &str) -> Result<Option<Entry<'a>>, Failure> {
    let Some(tree) = tree else { return Ok(None) };
    Ok(objects.names(tree)?.into_iter().find(|entry| entry.name == name.as_bytes()))
}

#[cfg(test)]
mod tests;
