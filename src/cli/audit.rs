//! `allclear audit`: whether allclear has kept its promises, by the logs of all members and by other witnesses.
//!
//! The verdicts are those of the crate `audit`, which has no line of what it judges. Nothing is connected to and nothing is changed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use audit::{Change, Invalidations, Logs, Objects, Report, Verdict};
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::answer::{EXIT_FAILED, EXIT_INVALID, Outcome, answer, invalid};
use crate::cli::arguments::{AuditArguments, named};
use crate::looking::page::Page;
use kernel::text::visible;

/// Longest line that is read, in bytes; one of allclear's has 32 KiB at most. The rest of a longer one is passed over.
const LINE_BYTES_MAX: usize = 256 << 10;

/// Largest list of objects or invalidations that is read, in bytes: some 40,000 ReplicaSets.
const WITNESS_BYTES_MAX: u64 = 256 << 20;

/// What the command prints.
#[derive(Debug, Serialize)]
struct Audit {
    #[serde(flatten)]
    report: Report,
    logs: Vec<Log>,
    #[serde(skip)]
    all_changes: bool,
}

/// A log that was read.
#[derive(Debug, Serialize)]
struct Log {
    member: String,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    lines: u64,
    /// Lines that are none of allclear's, or cannot be read.
    passed_over: u64,
    starts: u64,
}

/// Answers. Exit codes: 0 held, 1 a promise was broken, 2 something cannot be told or read.
pub fn audit(arguments: &AuditArguments) -> Outcome {
    let mut logs = Logs::default();
    for text in &arguments.logs {
        if let Err(why) = log(&mut logs, text) {
            return invalid(&why);
        }
    }
    let (objects, invalidations) = match (objects(&logs, arguments), invalidations(arguments)) {
        (Ok(objects), Ok(invalidations)) => (objects, invalidations),
        (Err(why), _) | (_, Err(why)) => return invalid(&why),
    };
    let report = audit::judge(&logs, &objects, &invalidations);
    let code = match report.verdict() {
        Verdict::Held => 0,
        Verdict::Broken => EXIT_FAILED,
        Verdict::CannotBeTold => EXIT_INVALID,
    };
    let time = |at_us: i64| Timestamp::from_microsecond(at_us).ok();
    let read = |log: &audit::MemberLog| Log {
        member: log.name.clone(),
        from: log.span_us.and_then(|(first, _)| time(first)),
        to: log.span_us.and_then(|(_, last)| time(last)),
        lines: log.lines,
        passed_over: log.strange,
        starts: log.lives,
    };
    let logs = logs.members().iter().map(read).collect();
    answer(&Audit { report, logs, all_changes: arguments.changes }, arguments.output.into(), code)
}

/// Why an input was not read: which it is, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("{0} cannot be read: {1}")]
    File(String, io::Error),
    #[error("{0} is too large: at most 256 MiB are read")]
    TooLarge(String),
    #[error("{0}: {1}")]
    Refused(String, String),
    #[error("--objects {0} is of no member whose log was given; write MEMBER=FILE with one of: {1}")]
    NoMember(String, String),
}

fn log(logs: &mut Logs, text: &str) -> Result<(), Unread> {
    if text == "-" {
        let member = logs.begin("-");
        return lines(io::stdin().lock(), |line| logs.take(member, line))
            .map_err(|error| Unread::File("-".to_owned(), error));
    }
    let (name, path) = named(text);
    let unread = |error| Unread::File(path.display().to_string(), error);
    let file = File::open(&path).map_err(unread)?;
    let member = logs.begin(&name);
    lines(BufReader::with_capacity(64 << 10, file), |line| logs.take(member, line)).map_err(unread)
}

/// Gives each line, the first [`LINE_BYTES_MAX`] of it. What is no UTF-8 is replaced.
fn lines(mut from: impl BufRead, mut take: impl FnMut(&str)) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        if from.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            skip_line(&mut from)?;
        }
        take(String::from_utf8_lossy(&line).trim_end());
    }
}

fn skip_line(from: &mut impl BufRead) -> io::Result<()> {
    loop {
        let held = from.fill_buf()?;
        let end = held.iter().position(|byte| *byte == b'\n');
        let (used, done) = (end.map_or(held.len(), |at| at.saturating_add(1)), end.is_some() || held.is_empty());
        from.consume(used);
        if done {
            return Ok(());
        }
    }
}

fn objects(logs: &Logs, arguments: &AuditArguments) -> Result<Vec<(usize, Objects)>, Unread> {
    let mut read = Vec::new();
    for text in &arguments.objects {
        let (member, path) = named(text);
        let names = || logs.members().iter().map(|log| log.name.as_str());
        let Some(at) = names().position(|name| name == member) else {
            return Err(Unread::NoMember(text.clone(), names().collect::<Vec<_>>().join(", ")));
        };
        let objects = Objects::read(&whole(&path)?);
        read.push((at, objects.map_err(|why| Unread::Refused(path.display().to_string(), why.0))?));
    }
    Ok(read)
}

fn invalidations(arguments: &AuditArguments) -> Result<Invalidations, Unread> {
    let mut read = Invalidations::default();
    for text in &arguments.invalidations {
        let (distribution, path) = named(text);
        let said = read.read(&distribution, &whole(&path)?);
        said.map_err(|why| Unread::Refused(path.display().to_string(), why.0))?;
    }
    Ok(read)
}

fn whole(path: &Path) -> Result<String, Unread> {
    let unread = |error| Unread::File(path.display().to_string(), error);
    let mut text = String::new();
    File::open(path).map_err(unread)?.take(WITNESS_BYTES_MAX).read_to_string(&mut text).map_err(unread)?;
    if u64::try_from(text.len()).is_ok_and(|length| length >= WITNESS_BYTES_MAX) {
        return Err(Unread::TooLarge(path.display().to_string()));
    }
    Ok(text)
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for log in &self.logs {
            let time = |at: Option<Timestamp>| at.map_or_else(|| "?".to_owned(), |at| format!("{at:.0}"));
            let passed =
                if log.passed_over == 0 { String::new() } else { format!(", {} passed over", log.passed_over) };
            let (from, to) = (time(log.from), time(log.to));
            writeln!(f, "{}: {} lines{passed}, {} starts, {from} to {to}", log.member, log.lines, log.starts)?;
        }
        writeln!(f)?;
        for judgement in &self.report.promises {
            writeln!(f, "{:<14} {}: {}", judgement.verdict, judgement.promise.words(), judgement.words)?;
            for evidence in &judgement.evidence {
                writeln!(f, "               {}  {}", visible(&evidence.place), visible(&evidence.words))?;
            }
        }
        let changes = &self.report.changes;
        let open = changes.iter().filter(|change| change.end.is_none());
        let listed: Vec<&Change> = if self.all_changes { changes.iter().collect() } else { open.collect() };
        let words = if self.all_changes { "changes" } else { "changes that have not ended in these logs" };
        writeln!(f, "\n{} {words}, of {}", listed.len(), changes.len())?;
        let mut page = Page { f };
        for change in listed {
            page.part(&visible(&change.workload), told(change).iter().map(|line| visible(line).into_owned()))?;
        }
        Ok(())
    }
}

/// A change in lines: what, where, when, and how it ended.
fn told(change: &Change) -> Vec<String> {
    let members: Vec<String> = change.members.iter().map(|(member, seq)| format!("{member}: rollout {seq}")).collect();
    let mut lines = vec![format!("{} ({})", change.change, members.join(", "))];
    let stations =
        [("seen", change.seen), ("complete", change.complete), ("purged", change.purged), ("ended", change.ended)];
    let stations: Vec<String> =
        stations.into_iter().filter_map(|(name, at)| at.map(|at| format!("{name} {at:.0}"))).collect();
    lines.push(stations.join(", "));
    if !change.why.is_empty() {
        lines.push(change.why.clone());
    }
    lines
}
