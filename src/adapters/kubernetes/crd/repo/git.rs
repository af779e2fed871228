//! What a Repo says about git, checked: an address that we may use, names that git can have, and a folder of the repository.
//!
//! Not for asking git.

use std::collections::BTreeSet;

use kernel::id::NotACommitId;
use kernel::names::ssh_url::SshUrl;
use kernel::text::is_hidden;
use objects::repo::spec::{Source, Wanted};
use url::Url;

use super::super::checks::{InvalidSpec, at_most, given, invalid, object_name, repository};
use super::raw_spec as raw;

/// Longest address and longest path of a folder, in bytes.
const TEXT_BYTES_MAX: usize = 1024;

/// Paths beside `path` that may be watched.
const WATCHED_MAX: usize = 50;

/// Longest name of a branch or a tag, in bytes: that of a file on the usual file systems, which is what git keeps them as.
const REF_BYTES_MAX: usize = 255;

/// Where commits come from.
pub fn source(raw: &raw::RepoSpec) -> Result<Source, InvalidSpec> {
    let secret = raw.secret_ref.as_ref().map(|secret| secret.name.clone());
    if let Some(name) = &secret {
        object_name(name, "secretRef.name")?;
    }
    let path = given(&raw.path).map_or_else(|| Ok(String::new()), |path| within(&path, "path"))?;
    let watched = watched(raw.watch_paths.as_deref(), &path)?;
    let url = address(&raw.url)?;
    if SshUrl::is_meant(&url) && secret.is_none() {
        return invalid(
            "url is one of SSH, which needs a Secret with the keys identity and known_hosts: name it in secretRef",
        );
    }
    Ok(Source { url, wanted: wanted(raw.wanted.as_ref())?, path, secret, watched })
}

fn address(text: &str) -> Result<String, InvalidSpec> {
    if text.is_empty() {
        return invalid("url is empty");
    }
    if text.len() > TEXT_BYTES_MAX {
        return invalid(format!("url is longer than {TEXT_BYTES_MAX} bytes"));
    }
    // A URL's parser takes line breaks out, so that it would not see what git sees.
    if text.chars().any(|character| is_hidden(character) || character.is_whitespace()) {
        return invalid("url has blanks or hidden characters in it");
    }
    let text = repository(text, "url")?;
    if SshUrl::is_meant(&text) {
        return Ok(text);
    }
    let url = Url::parse(&text).map_err(|_| InvalidSpec("url is no URL".to_owned()))?;
    if url.query().is_some() || url.fragment().is_some() {
        return invalid("url has a query or a fragment in it: leave out ? and # and what follows");
    }
    if url.path() == "/" {
        return invalid("url names a host and no repository");
    }
    Ok(text)
}

fn wanted(raw: Option<&raw::Ref>) -> Result<Wanted, InvalidSpec> {
    let Some(raw::Ref { branch, tag, commit }) = raw else { return Ok(Wanted::Head) };
    match (given(branch), given(tag), given(commit)) {
        (None, None, None) => Ok(Wanted::Head),
        (Some(branch), None, None) => Ok(Wanted::Branch(ref_name(branch, "branch")?)),
        (None, Some(tag), None) => Ok(Wanted::Tag(ref_name(tag, "tag")?)),
        (None, None, Some(commit)) => {
            commit.parse().map(Wanted::Commit).map_err(|why: NotACommitId| InvalidSpec(format!("ref.commit: {why}")))
        }
        _ => invalid("ref is at most one of branch, tag and commit"),
    }
}

/// A name that git accepts (<https://git-scm.com/docs/git-check-ref-format>), and that no command takes for an option.
fn ref_name(name: String, what: &str) -> Result<String, InvalidSpec> {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let is_refused = |character: char| {
        is_hidden(character)
            || character.is_whitespace()
            || matches!(character, '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    };
    let is_name = name.len() <= REF_BYTES_MAX
        && !name.starts_with('-')
        && !name.ends_with('.')
        && name != "@"
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(is_refused)
        && name.split('/').all(is_part);
    if is_name { Ok(name) } else { invalid(format!("ref.{what} is no name that git accepts for a {what}: {name:?}")) }
}

/// A path of the repository without anything that leads out of it; empty for the root.
fn within(text: &str, field: &str) -> Result<String, InvalidSpec> {
    if text.len() > TEXT_BYTES_MAX {
        return invalid(format!("{field} is longer than {TEXT_BYTES_MAX} bytes"));
    }
    if text.starts_with('/') {
        return invalid(format!("{field} is relative to the repository's root: leave out the / at its beginning"));
    }
    if text.contains(|character| is_hidden(character) || character == '\\') {
        return invalid(format!("{field} has hidden characters or a \\ in it"));
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return invalid(format!("{field} has .. in it, which would lead out of the repository"));
    }
    Ok(parts.join("/"))
}

/// The paths beside `path` that concern the Repo, in order and each once.
fn watched(raw: Option<&[String]>, path: &str) -> Result<Option<Vec<String>>, InvalidSpec> {
    let Some(raw) = raw else { return Ok(None) };
    at_most(WATCHED_MAX, raw.len(), "watchPaths")?;
    if path.is_empty() && !raw.is_empty() {
        return invalid(
            "watchPaths names paths beside path, and path is not given: then the whole repository counts. Set path, or make \
             watchPaths empty",
        );
    }
    let mut paths = BTreeSet::new();
    for (index, text) in raw.iter().enumerate() {
        let field = format!("watchPaths[{index}]");
        // Taken literally it would be no file's name, and what it was to watch would seem never to change.
        if text.contains(['*', '?', '[']) {
            return invalid(format!("{field} has *, ? or [ in it: give folders and files, no patterns"));
        }
        let watched = within(text, &field)?;
        if watched.is_empty() {
            return invalid(format!("{field} is the whole repository: leave watchPaths out, and each commit is run"));
        }
        paths.insert(watched);
    }
    Ok(Some(paths.into_iter().collect()))
}
