//! Who the members are, and whether they are of one mind (rows D1–D3 and D5; D4 is proved by the roster's own tests).

use std::time::Duration;

use futures_util::FutureExt;
use sandbox::http::{Action, Fault, Reply, Request, When};
use serde_json::Value;
use support::process::{PATIENCE, Process};

use crate::group::field::Field;
use crate::group::oracles::{Want, judge, words};
use crate::group::table::{Outcome, Row};
use crate::scene::NAME;

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("D1", "two programs in one cluster", || d1().boxed_local()),
        Row::new("D2", "one member has another configuration", || d2().boxed_local()),
        Row::new("D3", "a member too few, and one too many", || d3().boxed_local()),
        Row::new("D5", "a configuration loses the other members", || d5().boxed_local()),
    ]
}

/// How long a group that may not purge is watched not to.
const PATIENTLY: Duration = Duration::from_secs(2);

async fn d1() -> Outcome {
    let field = Field::new().await;
    let second = Process::start(&["run"], field[1].environment.clone());
    let up = async |_: &Field| second.state().await["synced"] == true;
    field.wait_until("the second program of one cluster is up", up).await;
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    field.roll_out("1.2");
    judge(&field, Want::purged(2, 3)).await;
    Outcome::Partly("two rollouts, one purge each; an older version beside this one: not run, there is none".to_owned())
}

async fn d2() -> Outcome {
    let mut field = Field::prepare().await;
    field[2].set("ALLCLEAR__PURGE__ON_ROLLBACK", "purge");
    field.members.iter_mut().for_each(|member| member.launch(&["run"]));
    for member in &field.members {
        member.wait_until_started().await;
    }
    field.roll_out("1.1");
    let says = async |field: &Field| {
        let words = words(field, 0).await;
        ["ap-1", "another configuration", "purge.on_rollback"].iter().all(|word| words.contains(word))
    };
    field.wait_until("it says that the configurations differ", says).await;
    let still = async |field: &Field| field.purges().is_empty();
    field.holds_for(PATIENTLY, "nothing is purged on a mixed vote", still).await;
    field.kill(2);
    field[2].set("ALLCLEAR__PURGE__ON_ROLLBACK", "if-served");
    field.revive(2).await;
    field.wait_until("it is purged when they agree", async |field| field.purges().len() == 1).await;
    let seq = field.records().iter().flatten().map(|record| record.seq.0).max().unwrap_or_default();
    judge(&field, Want::purged(1, seq.min(2))).await;
    Outcome::passed("waited, and named the member and the setting; purged once when they agreed")
}

async fn d3() -> Outcome {
    let mut field = Field::prepare().await;
    for at in [0, 1] {
        field[at].launch(&["run"]);
    }
    for at in [0, 1] {
        field[at].wait_until_started().await;
    }
    field.roll_out("1.1");
    let says = async |field: &Field| {
        let words = words(field, 0).await;
        words.contains("2 of 3 members")
    };
    field.wait_until("it says who is not known", says).await;
    let still = async |field: &Field| field.purges().is_empty();
    field.holds_for(PATIENTLY, "nothing is purged without the third", still).await;
    field[2].launch(&["run"]);
    field[2].wait_until_started().await;
    field.wait_until("it is purged when all are known", async |field| field.purges().len() == 1).await;

    // Another one comes, of whom nobody has told the members: same servers, another name.
    let mut environment = field[2].environment.clone();
    environment.insert("ALLCLEAR__GROUP__MEMBER".to_owned(), "intruder".to_owned());
    environment.insert("ALLCLEAR__LEDGER__BACKEND".to_owned(), "memory".to_owned());
    let intruder = Process::start(&["run"], environment);
    let up = async |_: &Field| intruder.state().await["synced"] == true;
    field.wait_until("the fourth is up", up).await;
    let beats = async |field: &Field| {
        let known = field.web.servers[0].say(&["SMEMBERS", "allclear:{default}:members"]).unwrap_or_default();
        known.contains("intruder")
    };
    field.wait_until("the fourth is on the boards", beats).await;
    field.roll_out("1.2");
    let still = async |field: &Field| field.purges().len() == 1;
    field.holds_for(PATIENTLY, "nothing is purged while there is one too many", still).await;
    drop(intruder);
    forget_and_replace().await;
    Outcome::passed("two of three, four of three: waited; one forgotten: went on; its place taken: waited for and with")
}

/// An optional Secret was deleted, and made again without the addresses of the others, or without one of them.
async fn d5() -> Outcome {
    const REMOTES: &str = "REMOTE_REDIS_HOSTS";
    let mut field = Field::new().await;
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    let remotes = field[2].environment.get(REMOTES).cloned().expect("it has two");
    let (one, _) = remotes.split_once(',').expect("they are two");
    for (left, says) in [(None, "1 Redis server is"), (Some(one), "2 different Redis servers are")] {
        field.kill(2);
        match left {
            Some(left) => field[2].set(REMOTES, left),
            None => drop(field[2].environment.remove(REMOTES)),
        }
        // What it was holding for the others, and what it finds at its start.
        field[2].roll_out("1.2");
        field.revive(2).await;
        let held = async |field: &Field| {
            let words = words(field, 2).await;
            words.contains("the ledger has 3 members") && words.contains(says) && words.contains("group leave")
        };
        field.wait_until("it says what it has lost", held).await;
        let still = async |field: &Field| field.purges().len() == 1;
        field.holds_for(PATIENTLY, "nothing is purged alone", still).await;
    }
    field.kill(2);
    field[2].environment.remove(REMOTES);
    begins_anew_once_it_knows_of_members(&mut field).await;
    field.kill(2);
    field[2].set(REMOTES, &remotes);
    field.revive(2).await;
    for at in [0, 1] {
        field[at].roll_out("1.2");
    }
    field.wait_until("it is purged with the others", async |field| field.purges().len() == 2).await;

    field.kill(2);
    field[2].environment.remove(REMOTES);
    field.revive(2).await;
    let mut command = Process::start(&["group", "leave", "--yes"], field[2].environment.clone());
    let status = command.ended(PATIENCE).await.expect("the command ends");
    assert!(status.success(), "allclear group leave: {status}\n{}", command.tail());
    field[2].roll_out("1.3");
    field.wait_until("who has left purges alone", async |field| field.purges().len() == 3).await;
    Outcome::passed("all others lost, and one of two: held with the cure; given back: one purge with them; left: alone")
}

/// The third has lost the others, and its ledger is away while it starts: it serves probes as if alone. Once it can open its ledger it
/// finds the members there, and ends before it has done anything; the next one holds.
async fn begins_anew_once_it_knows_of_members(field: &mut Field) {
    let away = Fault::once(When::Before, Action::Answer(Reply::empty(500))).times(u32::MAX);
    let is_ledger = |request: &Request| request.path.contains("/namespaces/default/configmaps");
    field[2].world.api.inject(away.matching(is_ledger));
    field[2].launch(&["run"]);
    let unread = async |field: &Field| field.process(2).said("the members in the ledger cannot be read yet");
    field.wait_until("it goes on as configured", unread).await;
    field.clear_faults();
    let mut process = field[2].take_process();
    let status = process.ended(PATIENCE).await.expect("it begins anew");
    let why = "the ledger has members, and could not be read when this process began";
    assert!(!status.success() && process.said(why), "{status}\n{}", process.tail());
    assert_eq!(field.purges().len(), 1, "nothing was purged alone");
    field.revive(2).await;
    let held = async |field: &Field| words(field, 2).await.contains("the ledger has 3 members");
    field.wait_until("the next one holds", held).await;
}

/// A cluster is lost, forgotten, and another one takes its place.
async fn forget_and_replace() {
    let mut field = Field::new().await;
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    field.kill(2);
    field.roll_out("1.2");
    let still = async |field: &Field| field.purges().len() == 1;
    field.holds_for(PATIENTLY, "nothing is purged without the one that is lost", still).await;
    for at in [0, 1] {
        let mut command = Process::start(&["group", "forget", "ap-1", "--yes"], field[at].environment.clone());
        let status = command.ended(PATIENCE).await.expect("the command ends");
        assert!(status.success(), "allclear group forget: {status}\n{}", command.tail());
    }
    field.wait_until("it is purged without the forgotten one", async |field| field.purges().len() == 2).await;
    // A member that joins while a purge is under way is a new agreement about that version, with a purge of its own.
    let over = async |field: &Field| [0, 1].iter().all(|at| field[*at].is_over(NAME, 3));
    field.wait_until("that is over", over).await;

    field[2].set("ALLCLEAR__GROUP__MEMBER", "ap-2");
    field[2].set("ALLCLEAR__LEDGER__BACKEND", "memory");
    field[2].launch(&["run"]);
    let joined = async |field: &Field| {
        let agreement = field[0].process().state().await["agreement"].clone();
        let joined = |member: &Value| member["name"] == "ap-2" && member["agreed"] == true;
        agreement["hold"].is_null() && agreement["members"].as_array().is_some_and(|members| members.iter().any(joined))
    };
    field.wait_until("the one in its place is a member", joined).await;
    for at in [0, 1] {
        field[at].roll_out("1.3");
    }
    let still = async |field: &Field| field.purges().len() == 2;
    field.holds_for(PATIENTLY, "nothing is purged before the new one is as far", still).await;
    field[2].roll_out("1.3");
    field.wait_until("it is purged when the new one is as far", async |field| field.purges().len() == 3).await;
}
