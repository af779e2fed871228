//! What the stories have in common: the world they play in, and how they are told.
#![allow(clippy::indexing_slicing, reason = "reading a JSON value by index never panics")]

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use sandbox::kubernetes::Kind;
use sandbox::world::World;

pub const NAMESPACE: &str = "shop";
pub const NAME: &str = "web";
pub const HOST: &str = "www.example.com";
pub const DISTRIBUTION: &str = "E2DEMO";
const IMAGE: &str = "registry.example.com/shop/web";

/// The tag whose image does not exist.
pub const BROKEN: &str = "2.0";

/// How often the world is looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

/// No chapter takes longer; one that does has failed.
pub const CHAPTER_MAX: Duration = Duration::from_secs(20);

/// One Event on the workload.
pub struct Told {
    pub id: String,
    pub reason: String,
    /// Without what its label says already.
    pub note: String,
}

/// The image of [`NAME`] with this tag.
pub fn image(tag: &str) -> String {
    format!("{IMAGE}:{tag}")
}

/// What a stand-in refused, as an error.
pub fn refused(failure: impl fmt::Debug) -> io::Error {
    io::Error::other(format!("{failure:?}"))
}

/// Prints a text and a line break.
pub fn say(text: &str) -> io::Result<()> {
    say_raw(&format!("{text}\n"))
}

/// Prints a text in one write.
pub fn say_raw(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// How wide and how high the terminal is, in columns and rows, if there is one.
pub fn size() -> Option<(usize, usize)> {
    terminal_size::terminal_size().map(|(columns, rows)| (usize::from(columns.0), usize::from(rows.0)))
}

/// Columns of a line before its text.
const MARGIN: usize = 33;

/// Columns of text at least: on a terminal that is narrower, lines break as the terminal breaks them.
const TEXT_MIN: usize = 30;

/// Prints what happened, with the time since its chapter began: in colour and within its width where it is a terminal.
pub fn line(since: Duration, what: &str, text: &str) -> io::Result<()> {
    let paint = if has_colours() { colour(what) } else { "" };
    let width = size().map(|(width, _)| width);
    say(&laid_out(since, what, text, width, paint))
}

/// A line; `width` in columns where there is an end to them, `paint` as a terminal's sequence where it has colours.
fn laid_out(since: Duration, what: &str, text: &str, width: Option<usize>, paint: &str) -> String {
    let room = width.and_then(|width| width.checked_sub(MARGIN)).filter(|room| *room >= TEXT_MIN);
    let text = room.map_or_else(|| text.to_owned(), |room| broken(text, room).join(&format!("\n{:MARGIN$}", "")));
    let end = if paint.is_empty() { "" } else { PLAIN };
    format!("  {:5.2} s  {paint}{what:<21}{end} {text}", since.as_secs_f64())
}

/// A text in lines of at most so many characters; a word that is longer has a line of its own.
pub fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The sequences of terminals (ECMA-48, 8.3.117).
pub const PLAIN: &str = "\u{1b}[0m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const RED: &str = "\u{1b}[31m";
const BLUE: &str = "\u{1b}[36m";

/// Whether the owner of standard output wants colours, by `--color` and by what other programs go by, too.
pub fn has_colours() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

/// The colour of what a line is about.
pub fn colour(what: &str) -> &'static str {
    match what {
        "rollout complete" | "invalidation done" | "webhook" | "edge fresh" | "edge renewed" => GREEN,
        "rollout failed" | "given up" | "kill -9" | "edge stale" => RED,
        "waiting" | "waits" | "not purged" | "purged once more" => YELLOW,
        _ => BLUE,
    }
}

/// How this program was called.
pub fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "allclear".to_owned())
}

/// What a line is about, by the Event's reason.
pub fn label(reason: &str) -> &str {
    match reason {
        "RolloutStarted" => "change seen",
        "RolloutCompleted" => "rollout complete",
        "RolloutSuperseded" => "rollout superseded",
        "RolloutFailed" => "rollout failed",
        "PurgeStarted" => "invalidation created",
        "PurgeCompleted" => "invalidation done",
        "PurgeSkipped" => "not purged",
        "PurgeRepeated" => "purged once more",
        "EdgeRenewed" => "edge renewed",
        "EdgeFresh" => "edge fresh",
        "EdgeUnknown" => "edge unknown",
        "EdgeStale" => "edge stale",
        other => other,
    }
}

/// Whether the Deployment is complete.
pub fn settled(world: &World) -> bool {
    let deployment = world.kubernetes.get(Kind::Deployment, NAMESPACE, NAME);
    deployment.is_some_and(|object| object["status"]["availableReplicas"] == 3)
}

/// The Events on the workload, oldest first.
pub fn events(world: &World) -> Vec<Told> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut events = world.kubernetes.list(Kind::Event, NAMESPACE);
    let version = |event: &serde_json::Value| text(&event["metadata"]["resourceVersion"]).parse::<u64>();
    events.sort_by_key(|event| version(event).unwrap_or_default());
    let told = |event: &serde_json::Value| Told {
        id: text(&event["metadata"]["name"]),
        reason: text(&event["reason"]),
        note: text(&event["note"]).trim_start_matches("not purged: ").to_owned(),
    };
    events.iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "CloudFront reports the purge completed: E2DEMO by invalidation I0000000000003 (web: 1.0 → 1.2), and E2OTHER by \
                        invalidation I0000000000004 (web: 1.0 → 1.2), as it was announced";

    #[test]
    fn a_line_fits_into_its_terminal_and_loses_no_word() {
        for width in [80, 120] {
            let text = laid_out(Duration::from_millis(4_540), "invalidation done", NOTE, Some(width), "");
            assert!(text.lines().count() > 1 && text.lines().all(|line| line.chars().count() <= width), "{text}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&text), words(&format!("4.54 s invalidation done {NOTE}")));
            assert!(
                text.lines()
                    .skip(1)
                    .all(|line| line.starts_with(&" ".repeat(MARGIN)) && line.chars().nth(MARGIN) != Some(' '))
            );
        }
        for narrow in [None, Some(20), Some(MARGIN + TEXT_MIN - 1)] {
            assert_eq!(laid_out(Duration::ZERO, "webhook", NOTE, narrow, "").lines().count(), 1);
        }
    }

    #[test]
    fn colours_end_before_the_text_and_are_nowhere_else() {
        let text = laid_out(Duration::ZERO, "rollout failed", NOTE, Some(80), colour("rollout failed"));
        assert_eq!(text.matches('\u{1b}').count(), 2);
        assert!(text.contains(&format!("{RED}rollout failed       {PLAIN} CloudFront")), "{text}");
        assert!(!laid_out(Duration::ZERO, "rollout failed", NOTE, Some(80), "").contains('\u{1b}'));
    }
}
