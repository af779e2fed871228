//! `allclear demo`: ends with exit code 0 only if every chapter came out as announced.

use std::fmt::Write as _;
use std::process::ExitCode;

use crate::cli::answer::{EXIT_INVALID, Outcome, failed, print};
use crate::demo;

/// What the demo tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Story {
    /// A rollout, in one cluster or in several, and its purge
    Rollout,
    /// A Pipeline that promotes from staging to prod; needs git
    Pipeline,
    /// A Repo, whose commits run Jobs; needs git
    Repo,
    /// Looks at the edge after a purge, and a second purge; takes a minute
    Edge,
}

/// What a person asks the demo for.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The story to tell
    #[arg(value_enum, default_value_t = Story::Rollout)]
    story: Story,
    /// Clusters that serve the same site, each with a controller and a Redis of its own; more than one are a group
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=i64::from(demo::CLUSTERS_MAX)))]
    clusters: u8,
    /// Tell this chapter only, and what it goes on from; `list` prints the chapters of the story
    #[arg(long, value_name = "NAME")]
    chapter: Option<String>,
    /// Leave out the pauses that are there for reading
    #[arg(long)]
    fast: bool,
    /// Keep running afterwards, and say which address to open
    #[arg(long)]
    stay: bool,
}

pub fn demo(arguments: Arguments) -> ExitCode {
    let Arguments { story, clusters, chapter, fast, stay } = arguments;
    let story = match (story, clusters) {
        (Story::Rollout, 0 | 1) => demo::Story::Alone,
        (Story::Rollout, clusters) => demo::Story::Group(clusters),
        (Story::Pipeline, _) => demo::Story::Pipeline,
        (Story::Repo, _) => demo::Story::Repo,
        (Story::Edge, _) => demo::Story::Edge,
    };
    if let Some(answer) = chapter.as_deref().and_then(|name| without_telling(story, name)) {
        return print(&answer);
    }
    match demo::tell(story, &demo::Wishes { chapter, fast, stay }) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => failed(&"the demo did not come out as announced; see the table above"),
        Err(error) => failed(&format!("the demo could not be run: {error}")),
    }
}

/// The list of chapters, where it is asked for, or why there is no chapter of this name.
fn without_telling(story: demo::Story, name: &str) -> Option<Outcome> {
    let headings = story.headings();
    if name == "list" {
        let width = headings.iter().map(|heading| heading.name.len()).max().unwrap_or(0);
        let mut out = String::new();
        for demo::Heading { name, title, goes_on } in headings {
            let first = if goes_on { " (the chapter before it is told first)" } else { "" };
            // Writing to a String never fails.
            let _ = writeln!(out, "{name:<width$}  {title}{first}");
        }
        return Some(Outcome { out, err: String::new(), code: 0 });
    }
    let names: Vec<&str> = headings.iter().map(|heading| heading.name).collect();
    if names.contains(&name) {
        return None;
    }
    let meant = nearest(name, &names).map_or_else(|| ".".to_owned(), |meant| format!("; did you mean {meant}?"));
    let err = format!("error: this story has no chapter {name:?}{meant} Its chapters: {}\n", names.join(", "));
    Some(Outcome { out: String::new(), err, code: EXIT_INVALID })
}

/// The name that was most likely meant: at most a third of its letters away, or begun by what is given.
fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    let given = given.to_lowercase();
    let distance = |name: &str| strsim::osa_distance(&given, name);
    let begun = names.iter().find(|name| !given.is_empty() && name.starts_with(&given));
    let near = names.iter().min_by_key(|name| distance(name)).filter(|name| distance(name) <= name.len().div_ceil(3));
    begun.or(near).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [demo::Story; 5] =
        [demo::Story::Alone, demo::Story::Group(3), demo::Story::Pipeline, demo::Story::Repo, demo::Story::Edge];

    #[test]
    fn every_story_lists_its_chapters_and_each_can_be_told() {
        for story in ALL {
            let listed = without_telling(story, "list").unwrap();
            let names: Vec<&str> = listed.out.lines().filter_map(|line| line.split(' ').next()).collect();
            assert!(listed.code == 0 && names.len() >= 2, "{story:?}: {}", listed.out);
            for name in &names {
                assert_eq!(without_telling(story, name), None, "{story:?}: {name}");
            }
            let unique: std::collections::BTreeSet<&&str> = names.iter().collect();
            assert_eq!(unique.len(), names.len(), "{story:?}");
        }
    }

    #[test]
    fn an_unknown_chapter_is_refused_with_the_one_that_was_meant() {
        let said = |name: &str| {
            let refused = without_telling(demo::Story::Alone, name).unwrap();
            assert_eq!((refused.code, refused.out.as_str()), (2, ""));
            refused.err
        };
        let known = "Its chapters: rollout, broken, back, old, killed, moved, aborted\n";
        assert_eq!(
            said("rolout"),
            format!("error: this story has no chapter \"rolout\"; did you mean rollout? {known}")
        );
        assert_eq!(said("kill"), format!("error: this story has no chapter \"kill\"; did you mean killed? {known}"));
        assert_eq!(said("zebra"), format!("error: this story has no chapter \"zebra\". {known}"));
        assert_eq!(said("promoted"), format!("error: this story has no chapter \"promoted\". {known}"));
        assert_eq!(said(""), format!("error: this story has no chapter \"\". {known}"));
    }
}
