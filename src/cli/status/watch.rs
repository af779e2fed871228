//! The status again and again until Ctrl-C. On a terminal it is drawn over the last one; in a pipe each change is a line, so that a log
//! has what happened and not what stayed; as JSON each answer is whole.
//!
//! Not for what a status says; that is in `shown`.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use super::shown::{Fact, Shown};
use super::{Asked, answer, read};
use crate::adapters::clock::SystemClock;
use crate::cli::answer::{Format, Output, refused};
use crate::cli::screen::{self, draw_over};
use crate::looking::page::time;
use kernel::text::visible;
use purge::ports::Clock;

/// How often a watched status is read again.
const READ_EVERY: Duration = Duration::from_secs(2);

/// The status again and again until Ctrl-C, or until its reader is gone.
pub async fn watch(asked: &Asked<'_>, output: Output) -> ExitCode {
    let watching = async {
        let mut last = None;
        loop {
            let written = match output {
                Output::Drawn(screen) if screen.columns.is_some() => drawn(asked, last.is_none()).await,
                Output::Drawn(_) | Output::Table => said(asked, &mut last).await,
                Output::Json | Output::Both => whole(asked).await,
            };
            if written.is_err() {
                return;
            }
            last.get_or_insert_default();
            tokio::time::sleep(READ_EVERY).await;
        }
    };
    tokio::select! {
        () = watching => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    ExitCode::SUCCESS
}

/// Over the last one. The terminal may have another size by now.
async fn drawn(asked: &Asked<'_>, is_first: bool) -> io::Result<()> {
    let outcome = match read(asked).await {
        Ok((state, _)) => answer(&state, Format::Table.into(), 0),
        Err(why) => refused(&why),
    };
    draw_over(&format!("{}{}", outcome.out, outcome.err), "every 2 s; Ctrl-C ends it", is_first)
}

/// As JSON, one after the other.
async fn whole(asked: &Asked<'_>) -> io::Result<()> {
    let outcome = match read(asked).await {
        Ok((state, _)) => answer(&state, Output::Json, 0),
        Err(why) => refused(&why),
    };
    screen::write_err(&outcome.err);
    screen::write_out(&format!("{}\n", outcome.out))
}

type Facts = BTreeMap<String, Fact>;

/// What has changed since `last`, a line each, with the time at which that was seen.
async fn said(asked: &Asked<'_>, last: &mut Option<Facts>) -> io::Result<()> {
    let seen = read(asked).await.and_then(|(state, complete)| {
        let is_whole = complete && is_known(&state);
        let shown: Shown =
            serde_json::from_value(state).map_err(|error| format!("the state is of another form: {error}"))?;
        Ok((shown.facts(), is_whole))
    });
    let facts = match seen {
        Ok((facts, true)) => facts,
        Ok((facts, false)) => beside(last.as_ref(), facts),
        Err(why) => beside(last.as_ref(), Facts::from([(UNREAD.to_owned(), Fact::new(why, "read again"))])),
    };
    let at = time(SystemClock::default().wall_ms());
    let lines: String =
        changes(last.as_ref(), &facts).into_iter().map(|line| format!("{at} {}\n", visible(&line))).collect();
    *last = Some(facts);
    screen::write_out(&lines)
}

/// Whether a running allclear knows all of it: not while it lists the workloads, nor while another replica leads.
fn is_known(state: &Value) -> bool {
    state.get("synced") != Some(&Value::Bool(false)) && state.get("standing_by").is_none_or(Value::is_null)
}

/// With what was known before: what could not be read now has not ended.
fn beside(last: Option<&Facts>, now: Facts) -> Facts {
    let mut facts = last.cloned().unwrap_or_default();
    facts.extend(now);
    facts
}

/// What is said of a status that could not be read.
const UNREAD: &str = "status";

/// What is another than before, a line each. What only counts time on is none.
fn changes(before: Option<&Facts>, after: &Facts) -> Vec<String> {
    let known = |about: &String| before.and_then(|before| before.get(about));
    let is_new = |(about, fact): &(&String, &Fact)| known(about).is_none_or(|old| !old.is_as(fact));
    let said = |about: &String, words: &str| match words {
        "" => about.clone(),
        words => format!("{about}: {words}"),
    };
    let new = after.iter().filter(is_new).map(|(about, fact)| said(about, &fact.words));
    let over = before.into_iter().flatten().filter(|(about, _)| !after.contains_key(*about));
    let over = over.map(|(about, fact)| said(about, fact.end));
    let lines: Vec<String> = new.chain(over).collect();
    if before.is_none() && lines.is_empty() { vec!["nothing is in flight".to_owned()] } else { lines }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(all: &[(&str, &str)]) -> Facts {
        all.iter().map(|(about, words)| ((*about).to_owned(), Fact::new(*words, "gone"))).collect()
    }

    #[test]
    fn what_could_not_be_read_has_not_ended() {
        let before = facts(&[("shop/web", "rolling"), ("shop/db", "rolling")]);
        let partly = beside(Some(&before), facts(&[("shop/db", "complete")]));
        assert_eq!(changes(Some(&before), &partly), ["shop/db: complete"]);
        assert_eq!(changes(Some(&partly), &facts(&[])), ["shop/db: gone", "shop/web: gone"]);
        for (state, known) in [
            (json!({}), true),
            (json!({"synced": true, "standing_by": null}), true),
            (json!({"synced": false}), false),
            (json!({"synced": true, "standing_by": "allclear-2"}), false),
        ] {
            assert_eq!(is_known(&state), known, "{state}");
        }
    }

    #[test]
    fn in_a_pipe_a_change_is_a_line_and_passing_time_is_none() {
        let first = facts(&[("shop/web", "2 of 5 pods ready, at most 13m 30s of 15m left"), ("shop/db", "rolling")]);
        let begin = ["shop/db: rolling", "shop/web: 2 of 5 pods ready, at most 13m 30s of 15m left"];
        assert_eq!(changes(None, &first), begin);
        let later = facts(&[("shop/web", "2 of 5 pods ready, at most 13m 28s of 15m left"), ("shop/db", "rolling")]);
        assert_eq!(changes(Some(&first), &later), [""; 0]);
        let more = facts(&[("shop/web", "3 of 5 pods ready, at most 13m 26s of 15m left")]);
        let two = ["shop/web: 3 of 5 pods ready, at most 13m 26s of 15m left", "shop/db: gone"];
        assert_eq!(changes(Some(&later), &more), two);
        assert_eq!(changes(None, &Facts::new()), ["nothing is in flight"]);
        assert_eq!(changes(Some(&Facts::new()), &Facts::new()), [""; 0]);
    }
}
