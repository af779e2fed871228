//! What earlier releases wrote is read as it was meant, and finished by the rules of their time (decision 41). The records are
//! those that their programs wrote into their ledgers in two demos; the README of each below `tests/fixtures` says how.

use std::collections::BTreeSet;

use kernel::id::{Component, Member, Seq, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::DistributionId;
use notices::delivery::{Content, Delivery, State};
use purge::agreement::group::{Known, NumberedView, Told, View, alone};
use purge::bounds::policy::Policy;
use purge::records::record::{Outcome, Phase, Published, PurgeState, Record};
use purge::records::record_codec::{CodecError, decode, decode_published, encode, encode_published};
use purge::records::rules::Rules;
use purge::rollouts::rollout::{Effect, Event, Identity, Rollout};

const ALONE: &str = include_str!("../fixtures/53842b8/alone.jsonl");
const GROUP: &str = include_str!("../fixtures/53842b8/group.jsonl");

/// The last release before a number of a rollout had a nonce (decision 48).
const BEFORE_NONCES: [&str; 2] =
    [include_str!("../fixtures/9be76b7/alone.jsonl"), include_str!("../fixtures/9be76b7/group.jsonl")];

fn records(text: &str) -> Vec<Record> {
    text.lines().map(|line| decode(line.as_bytes()).unwrap()).collect()
}

fn demo() -> DistributionId {
    "E2DEMO".parse().unwrap()
}

/// What was recorded under the first of these references, before any of its purges was created, and what came of it.
fn before_and_after(records: &[Record]) -> (Record, Record) {
    let before = records.iter().find(|record| record.votes.iter().any(|vote| vote.purges.listed.is_empty())).unwrap();
    let matched = |record: &&Record| {
        record.votes.iter().any(|vote| !vote.purges.listed.is_empty() && vote.vector == before.votes[0].vector)
    };
    (before.clone(), records.iter().find(matched).unwrap().clone())
}

/// Lets this program find the record of another life, its vote decided, and matches its plan with `E2DEMO`: the record it
/// stores then.
fn matched(group: &str, before: &Record, view: impl Fn(&Record) -> View) -> Record {
    let (member, Component { origin, .. }) = before.votes[0].vector.0.first_key_value().unwrap();
    let identity = Identity {
        workload: WorkloadId::deployment("shop", "web"),
        member: member.clone(),
        group: group.to_owned(),
        grouped: before.votes[0].vector.0.len() > 1,
        origin: origin.clone(),
        epoch_ms: 0,
        keeps_times: false,
    };
    let mut machine = Rollout::resume(identity, Policy::default(), Seq(0), Some(before.clone()));
    let mut now = Timestamp::from_millis(0);
    let mut waiting = machine.step(now, Event::Missed);
    for _ in 0..100 {
        let Some(effect) = waiting.pop() else {
            // The turn of this member comes, where others could do the same.
            now = machine.next_deadline().unwrap();
            waiting = machine.tick(now);
            continue;
        };
        match effect {
            Effect::Publish(record) => {
                waiting.extend(machine.step(now, Event::ViewChanged(NumberedView { number: 0, view: view(&record) })));
            }
            Effect::Match(vector, plan) => {
                assert_eq!(plan.hosts.iter().map(|host| host.as_str()).collect::<Vec<_>>(), ["www.example.com"]);
                waiting.extend(machine.step(now, Event::Matched(vector, plan, BTreeSet::from([demo()]).into())));
            }
            Effect::Store(record) if !record.votes[0].purges.listed.is_empty() => return *record,
            Effect::Store(_) => waiting.extend(machine.step(now, Event::Stored)),
            _ => {}
        }
    }
    panic!("the vote was not gone on with");
}

// A new field that is written at its default would grow ten thousand idle records, and hide them from the release before.
#[test]
fn each_record_of_an_earlier_release_is_written_back_as_it_was() {
    for line in [ALONE, GROUP].into_iter().chain(BEFORE_NONCES).flat_map(str::lines) {
        assert_eq!(encode(&decode(line.as_bytes()).unwrap()).unwrap(), line);
    }
}

#[test]
fn what_the_first_release_recorded_is_read_as_it_was_meant() {
    let alone = records(ALONE);
    let last = alone.last().unwrap();
    assert_eq!((last.seq, last.closed, &last.phase), (Seq(6), Seq(6), &Phase::Complete));
    assert!(!last.is_open() && last.version.iter().all(|(_, image)| image.tag() == Some("1.2")));
    let outcomes: Vec<_> = last.history.iter().map(|closed| (closed.seq.0, closed.outcome.clone())).collect();
    assert_eq!(outcomes, [(4, Outcome::Returned), (5, Outcome::Purged), (6, Outcome::Purged)]);
    assert!(alone.iter().any(|record| matches!(record.phase, Phase::Failed(_))));

    let group = records(GROUP);
    let votes = || alone.iter().chain(&group).flat_map(|record| &record.votes);
    assert!(votes().all(|vote| vote.cast.rules == Rules::FIRST), "they were cast before rules had numbers");
    let made =
        |state: PurgeState| votes().any(|vote| vote.purges.listed.get(&demo()).is_some_and(|made| made.state == state));
    assert!([PurgeState::Wanted, PurgeState::Created, PurgeState::Completed].into_iter().all(made));
    assert!(group.iter().any(|record| record.votes.iter().any(|vote| vote.vector.0.len() == 3)));
}

#[test]
fn a_vote_of_an_earlier_release_is_gone_on_with_under_the_reference_of_that_release() {
    for release in [ALONE, BEFORE_NONCES[0]] {
        let (before, after) = before_and_after(&records(release));
        let (member, Component { origin, .. }) = before.votes[0].vector.0.first_key_value().unwrap();
        let stored = matched("default", &before, |record| alone(member, origin, Some(record)));
        assert_eq!(stored.votes[0].purges.listed, after.votes[0].purges.listed);
        let form = |record| encode(record).unwrap()[..6].to_owned();
        assert_eq!(form(&stored), form(&after), "that release could take the ledger back");
    }
}

#[test]
fn members_that_voted_under_an_earlier_release_purge_under_its_reference() {
    for release in [GROUP, BEFORE_NONCES[1]] {
        let (before, after) = before_and_after(&records(release));
        let vector = &before.votes[0].vector;
        let stored = matched("default", &before, |record| {
            let known = |(member, component): (&Member, &Component)| {
                let (origin, published) = (component.origin.clone(), record.clone().into());
                (member.clone(), Some(Known { origin, current: true, alive: true, published, told: Told::default() }))
            };
            View { members: vector.0.iter().map(known).collect(), ..View::default() }
        });
        assert_eq!(stored.votes[0].purges.listed, after.votes[0].purges.listed);
    }
}

// A board of the first release sorts copies by these numbers, and its members read this text.
#[test]
fn that_a_workload_is_absent_is_published_as_in_the_first_release() {
    let line = r#"{"r":18446744073709551615,"u":"","s":4,"v":{},"p":"absent","k":4}"#;
    assert_eq!(encode_published(&Published::Absent(Seq(4))).unwrap(), line);
    assert_eq!(decode_published(line.as_bytes()).unwrap(), Published::Absent(Seq(4)));
    assert!(decode(line.as_bytes()).is_err(), "no ledger holds it");
    let newer = line.replacen('{', r#"{"z":99,"#, 1);
    assert!(matches!(decode_published(newer.as_bytes()), Err(CodecError::Newer { found: 99 })));
}

// Between two releases, or two replicas of one, each reads the other's outbox.
#[test]
fn a_delivery_about_a_deployment_is_written_as_it_always_was_and_read_back() {
    let records = records(ALONE);
    let notice = records.iter().flat_map(|record| &record.untold).next().unwrap();
    let new = Delivery::new(notice, "release-bot", Content::Json("{}".to_owned()));
    let dead = Delivery { attempts: 10, state: State::Dead { reason: "no answer".to_owned() }, ..new.clone() };
    let id = r#""id":"50d2cbdb81100feee820fbbac975a286","notice":"msg_3067b63ae217a60c69f9b0bacf11181b""#;
    let about = r#""kind":"rollout.started","workload":"deployment/shop/web","hook":"release-bot""#;
    let written = |content: &str, attempts: u32, state: &str| {
        let rest = format!(r#""attempts":{attempts},"created_ms":1795309611407,"state":{state}"#);
        format!(r#"{{{id},{about},"content":{content},{rest}}}"#)
    };
    let lines = [
        (new.clone(), written(r#"{"json":"{}"}"#, 0, r#""pending""#)),
        (Delivery { content: Content::Parameters, ..new }, written(r#""parameters""#, 0, r#""pending""#)),
        (dead.clone(), written(r#"{"json":"{}"}"#, 10, r#"{"dead":{"reason":"no answer"}}"#)),
        (
            Delivery {
                trouble: "answered 500".to_owned(),
                asked: Some("2026-11-23T10:00:00Z".to_owned()),
                trace: "4bf92f3577b34da6a3ce929d0e0e4736".to_owned(),
                ..dead
            },
            // Without `asked`, each start would send what was given up once more.
            written(r#"{"json":"{}"}"#, 10, r#"{"dead":{"reason":"no answer"}}"#).replace(
                "}}}",
                r#"}},"trouble":"answered 500","asked":"2026-11-23T10:00:00Z","trace":"4bf92f3577b34da6a3ce929d0e0e4736"}"#,
            ),
        ),
    ];
    for (delivery, line) in lines {
        assert_eq!(serde_json::to_string(&delivery).unwrap(), line);
        assert_eq!(serde_json::from_str::<Delivery>(&line).unwrap(), delivery);
    }
}
