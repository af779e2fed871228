//! The table of faults: `make faults` runs every row and prints what came of it; a few run in every `make test`.
//!
//! A row is a function that fails, or says what it has seen. One of which the stand-ins cannot express a part is *partly run*:
//! the line says what was not run, and it never counts as passed.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};

use crate::group::{api, kills, members, outcomes, partitions, redis, watches};

/// Rows at once. Each has three programs and three Redis servers, which mostly wait for each other.
const AT_ONCE: usize = 2;

/// The rows that run in every `make test`: one of each kind, about a minute together.
const REPRESENTATIVE: [&str; 10] = ["K6", "K7", "W1", "A3", "A5", "R2", "R9", "D2", "D5", "G3"];

/// How a row ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As the table says; with what was seen.
    Passed(String),
    /// The part of it that was run came out as the table says; with what was not run.
    Partly(String),
    Failed(String),
}

impl Outcome {
    /// It came out as the table says.
    pub fn passed(seen: impl Into<String>) -> Self {
        Self::Passed(seen.into())
    }
}

pub struct Row {
    id: &'static str,
    fault: &'static str,
    run: fn() -> LocalBoxFuture<'static, Outcome>,
}

impl Row {
    /// The row of this id, in few words, and what runs it.
    pub const fn new(id: &'static str, fault: &'static str, run: fn() -> LocalBoxFuture<'static, Outcome>) -> Self {
        Self { id, fault, run }
    }
}

/// Every row for groups.
fn rows() -> Vec<Row> {
    let parts = [
        kills::rows(),
        watches::rows(),
        api::rows(),
        redis::rows(),
        partitions::rows(),
        members::rows(),
        outcomes::rows(),
    ];
    parts.into_iter().flatten().collect()
}

/// The rows of these ids; all of them if none is named. A name that is no row's would be a test of nothing.
fn chosen(ids: &[&str]) -> Vec<Row> {
    let mut rows = rows();
    let unknown: Vec<&&str> = ids.iter().filter(|id| !rows.iter().any(|row| row.id == **id)).collect();
    assert!(unknown.is_empty(), "there are no rows {unknown:?}; rows are written K6, G3, K×K");
    rows.retain(|row| ids.is_empty() || ids.contains(&row.id));
    rows
}

/// Runs rows and prints a line for each; returns those that failed.
async fn run(rows: Vec<Row>) -> Vec<String> {
    let began = Instant::now();
    let runs = rows.into_iter().map(|row| async move {
        let began = Instant::now();
        let outcome = AssertUnwindSafe((row.run)()).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|panic| Outcome::Failed(words(panic.as_ref())));
        let line = line(&row, &outcome, began.elapsed());
        println!("{line}");
        (row.id, outcome)
    });
    let outcomes: Vec<(&str, Outcome)> = futures_util::stream::iter(runs).buffer_unordered(AT_ONCE).collect().await;
    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|(_, outcome)| is(outcome)).count();
    println!(
        "{} rows: {} passed, {} partly run, {} failed; {:.0} s",
        outcomes.len(),
        count(|outcome| matches!(outcome, Outcome::Passed(_))),
        count(|outcome| matches!(outcome, Outcome::Partly(_))),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        began.elapsed().as_secs_f64(),
    );
    let failed = outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Failed(_)));
    failed.map(|(id, _)| (*id).to_owned()).collect()
}

fn line(row: &Row, outcome: &Outcome, took: Duration) -> String {
    let (verdict, seen) = match outcome {
        Outcome::Passed(seen) => ("passed", seen.as_str()),
        Outcome::Partly(seen) => ("partly run", seen.as_str()),
        Outcome::Failed(seen) => ("FAILED", seen.as_str()),
    };
    let Row { id, fault, .. } = row;
    format!("{id:<4} {fault:<58} {verdict:<10} {:>5.1} s  {seen}", took.as_secs_f64())
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked without words").to_owned()
}

// Faults: R4, R6, R7, R9, R8, R10, R11, D1, D2, D3, D5, G1, G2, G3
/// The whole table, or the rows `FAULTS` names (`FAULTS=K6,R2 make faults`).
#[tokio::test]
#[ignore = "takes minutes; `make faults` runs it"]
async fn faults_table() {
    let wanted = std::env::var("FAULTS").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
    let failed = run(chosen(&wanted)).await;
    assert!(failed.is_empty(), "{failed:?}");
}

// Faults: R7, R9, D5
#[tokio::test]
async fn a_group_ends_every_representative_fault_as_the_table_says() {
    let failed = run(chosen(&REPRESENTATIVE)).await;
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn every_row_has_a_name_of_its_own_and_none_is_missing() {
    let ids: Vec<&str> = rows().iter().map(|row| row.id).collect();
    let series = [("K", 17), ("W", 8), ("A", 5), ("R", 11), ("D", 3), ("G", 3)];
    let expected = series.iter().flat_map(|(series, last)| (1..=*last).map(move |number| format!("{series}{number}")));
    // D4 needs no process.
    let expected: BTreeSet<String> = expected.chain(["D5".to_owned()]).collect();
    let known: BTreeSet<String> = ids.iter().filter(|id| !id.contains('×')).map(ToString::to_string).collect();
    assert_eq!(known, expected);
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{ids:?}");
}

#[test]
fn a_row_that_does_not_exist_is_not_run_in_silence() {
    assert_eq!(chosen(&["K6", "K×K"]).len(), 2);
    assert_eq!(chosen(&[]).len(), rows().len());
    assert!(std::panic::catch_unwind(|| chosen(&["K6", "k7"])).is_err());
}
