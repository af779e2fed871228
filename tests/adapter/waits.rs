//! The exit codes of `allclear wait`: each row of docs/commands.md, tried.

use std::time::Duration;

use allclear::cli::wait::{Wait, wait};
use allclear::looking::Question;
use purge::records::record::{Failure, Phase, Record};
use purge::rollouts::goal::Goal;
use serde_json::json;

use crate::readers::{World, text};

/// The rows: the code, and when it comes.
fn rows() -> Vec<(u8, String)> {
    let page = text("docs/commands.md");
    let table = page.split("### Exit codes of a wait").nth(1).unwrap();
    let lines =
        table.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        (cells.next().unwrap().parse().unwrap(), cells.next().unwrap().to_owned())
    };
    lines.map(row).collect()
}

#[tokio::test]
async fn each_exit_code_of_a_wait_is_that_of_the_table() {
    let rows = rows();
    assert_eq!(rows.len(), 7, "{rows:?}");
    let mut wrong = Vec::new();
    for (code, when) in rows {
        let named = |name: &str| Question { namespace: None, name: Some(name.to_owned()) };
        let (world, question) = match when.as_str() {
            "the goal is reached" => (World::at_rest().await, named("shop/web")),
            "its rollout failed, or it can no longer be reached" => {
                let world = World::start().await;
                let failed = |record: &mut Record| record.phase = Phase::Failed(Failure::TimedOut);
                world.record("shop/web:2", &json!("complete"), failed).await;
                (world, named("shop/web"))
            }
            "there is no such workload" => (World::start().await, named("shop/wbe")),
            "there is no ledger" => (World::unrecorded().await, named("shop/web")),
            "a right is missing" => {
                let world = World::start().await;
                world.only(&std::collections::BTreeSet::new());
                (world, named("shop/web"))
            }
            "the name is none, or the arguments are refused" => (World::start().await, named("a/b/c/d")),
            "the time is over" => (World::start().await, named("shop/web")),
            other => panic!("no test of {other:?}"),
        };
        let bounds = Wait { goal: Goal::Complete, at_most: Duration::from_millis(800) };
        let ended = wait(&world.sources, &question, bounds, &mut |_| {}).await;
        if ended.code != code {
            wrong.push(format!("{when}: {ended:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
