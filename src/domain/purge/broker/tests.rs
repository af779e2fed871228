use super::board_state::DISBELIEVED_MAX;
use super::ours::ABSENT_MAX;
use super::waking::WANTED_MAX;
use super::*;
use crate::agreement::board::{Heard, POSTINGS_MAX};
use crate::agreement::roster::{Stands, settings};
use crate::bounds::policy::Policy;
use crate::records::record::Change;
use crate::records::record_codec::decode;

mod names;
mod notice;
mod said;
mod strangers;
mod twins;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn id(name: &str) -> WorkloadId {
    WorkloadId::deployment("shop", name)
}

fn record(seq: u64, revision: u64) -> Record {
    decode(format!(r#"{{"r":{revision},"u":"u","s":{seq},"v":{{"web":"shop/web:1.2"}}}}"#).as_bytes()).unwrap()
}

fn identity(trust: Trust) -> Identity {
    Identity {
        member: "eu-1".into(),
        origin: "o1".into(),
        boot: String::new(),
        version: "0.1.0".into(),
        stands: Stands::default(),
        listen_only: false,
        trust,
    }
}

fn broker(pin: Option<&[&str]>, boards: usize) -> Broker {
    let roster = pin.map(|members| {
        let members: BTreeSet<Member> = members.iter().map(|member| Member::from(*member)).collect();
        let pin = Pin { of: members.len(), members, ..Pin::default() };
        Roster::new("eu-1".into(), "o1".into(), BTreeSet::new(), settings(&Policy::default(), false), Some(pin))
    });
    Broker::new(identity(Trust::Signed), roster, (0..boards).map(|board| format!("redis-{board}")).collect())
}

fn alone(boards: usize) -> Broker {
    let mut broker = broker(None, boards);
    let started = broker.tick(at(0));
    assert_eq!(started.iter().filter(|effect| matches!(effect, Effect::ReadLedger)).count(), 1);
    broker.step(at(0), Event::LedgerRead(Ok(None)));
    broker
}

/// A group of two whose servers have said who they are, and whose first reads are answered.
fn grouped() -> Broker {
    let mut broker = broker(Some(&["eu-1", "eu-2"]), 2);
    broker.tick(at(0));
    broker.step(at(0), Event::LedgerRead(Ok(None)));
    for board in 0..2 {
        broker.step(at(0), Event::Identified(board, Ok(format!("id-{board}"))));
        broker.step(at(0), Event::Read(board, Ok(Box::default())));
    }
    broker
}

/// One rollout, in words.
fn saying(workload: WorkloadId, seq: u64) -> BTreeMap<WorkloadId, Saying> {
    [(workload, Saying { seq: Seq(seq), words: "waits".to_owned(), since_ms: Some(40) })].into()
}

fn posts(effects: &[Effect]) -> Vec<(usize, usize)> {
    let posts = effects.iter().filter_map(|effect| match effect {
        Effect::Post(board, postings) => Some((*board, postings.len())),
        _ => None,
    });
    posts.collect()
}

fn heard(workload: &WorkloadId, record: Record) -> Heard {
    let said = record.into();
    Heard { member: "eu-2".into(), workload: workload.clone(), origin: "o2".into(), said }
}

fn news(heard: Vec<Heard>) -> Result<Box<News>, NoAnswer> {
    Ok(Box::new(News { heard, ..News::default() }))
}

fn published(broker: &mut Broker, name: &str, record: Record) -> Vec<Effect> {
    broker.step(at(1), Event::Published(id(name), Box::new(record)))
}

fn timeout<T>() -> Result<T, NoAnswer> {
    Err(PortError::passing("failed to ask", "timeout").into())
}

fn posted(count: usize) -> Result<Vec<Posted>, NoAnswer> {
    Ok(vec![Posted::Current; count])
}

#[test]
fn alone_the_view_is_our_own_record_and_nothing_holds_it() {
    let mut broker = alone(1);
    assert_eq!(posts(&published(&mut broker, "web", record(1, 1))), [(0, 1)]);
    let view = broker.view(at(1), &id("web"));
    assert_eq!((view.hold, view.config.as_str(), view.members.len()), (None, "", 1));
    let effects = broker.step(at(2), Event::Read(0, news(vec![heard(&id("web"), record(1, 1))])));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Tell(_) | Effect::Want(_))), "{effects:?}");
    assert_eq!(broker.seen(at(2)), None);
}

#[test]
fn only_the_newest_state_waits_for_a_board_and_another_board_does_not() {
    let mut broker = alone(2);
    assert_eq!(posts(&published(&mut broker, "web", record(1, 1))), [(0, 1), (1, 1)]);
    for revision in 2..5 {
        assert_eq!(posts(&published(&mut broker, "web", record(1, revision))), []);
    }
    assert_eq!(posts(&published(&mut broker, "api", record(1, 1))), []);
    let effects = broker.step(at(1), Event::Posted(1, posted(1)));
    assert_eq!(posts(&effects), [(1, 2)], "board 0 has not answered, and nobody waits for it");
    let Some(Effect::Post(_, postings)) = effects.into_iter().next() else { panic!("a post") };
    assert!(postings.contains(&(id("web"), record(1, 4).into())));
}

#[test]
fn a_post_that_failed_is_made_again_after_a_while_unless_something_newer_came() {
    let mut broker = alone(1);
    published(&mut broker, "web", record(1, 1));
    published(&mut broker, "web", record(1, 2));
    assert_eq!(posts(&broker.step(at(1), Event::Posted(0, timeout()))), []);
    assert_eq!(broker.troubles(at(1)), [Trouble::Board("failed to ask: timeout".to_owned())]);
    let again = broker.next_deadline().unwrap();
    assert!(again > at(1) && again <= at(6), "{again:?}");
    let effects = broker.tick(at(6));
    let post = effects.iter().find(|effect| matches!(effect, Effect::Post(..)));
    let expected = Effect::Post(0, vec![(id("web"), record(1, 2).into())]);
    assert_eq!(post, Some(&expected));
    broker.step(at(6), Event::Posted(0, posted(1)));
    assert_eq!(broker.troubles(at(6)), []);
}

#[test]
fn a_record_that_keeps_a_batch_from_being_posted_is_left_behind_by_the_others() {
    let mut broker = alone(1);
    let all: Records = (0..40).map(|n| (id(&format!("app-{n:02}")), record(1, 1).into())).collect();
    let bad = id("app-07");
    let mut now = 1;
    let mut done = BTreeSet::new();
    let mut effects = broker.step(at(now), Event::Shown(all));
    for _ in 0..60 {
        let batch = effects.into_iter().find_map(|effect| match effect {
            Effect::Post(_, postings) => Some(postings),
            _ => None,
        });
        let Some(batch) = batch else {
            now += 6;
            effects = broker.tick(at(now));
            continue;
        };
        let fails = batch.iter().any(|(workload, _)| *workload == bad);
        if !fails {
            done.extend(batch.iter().map(|(workload, _)| workload.clone()));
        }
        let answer = if fails { timeout() } else { posted(batch.len()) };
        effects = broker.step(at(now), Event::Posted(0, answer));
    }
    assert_eq!(done.len(), 39);
}

#[test]
fn what_is_too_much_for_a_dead_board_is_read_from_the_ledger_when_it_is_back() {
    let mut broker = alone(1);
    let many: Records = (0..3_000).map(|n| (id(&format!("app-{n}")), record(1, 1).into())).collect();
    broker.step(at(1), Event::Shown(many.clone()));
    broker.step(at(1), Event::Forgotten(id("gone"), Seq(4), 2));
    let effects = broker.step(at(2), Event::Posted(0, timeout()));
    assert!(!effects.contains(&Effect::ReadLedger), "not while it fails");
    assert!(broker.boards_seen(at(2))[0].waiting <= 1_002, "{:?}", broker.boards_seen(at(2)));
    let effects = broker.tick(at(10));
    let posting = posts(&effects)[0].1;
    let effects = broker.step(at(10), Event::Posted(0, posted(posting)));
    assert!(effects.contains(&Effect::ReadLedger));
    // Removed while the ledger was read: what was read may be older.
    broker.step(at(10), Event::Forgotten(id("app-7"), Seq(1), 1));
    broker.step(at(10), Event::LedgerRead(Ok(Some(("o1".into(), many)))));
    assert!(broker.boards_seen(at(10))[0].waiting >= 2_999);
    let mut last = Vec::new();
    for _ in 0..40 {
        let effects = broker.step(at(11), Event::Posted(0, posted(POSTINGS_MAX)));
        last.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Post(_, postings) => Some(postings),
            _ => None,
        }));
    }
    let of_it = last.into_iter().flatten().filter(|(workload, _)| *workload == id("app-7"));
    assert_eq!(of_it.map(|(_, said)| said).collect::<Vec<_>>(), [Posting::Forget(Seq(1), 1)]);
}

#[test]
fn a_board_that_lost_something_gets_everything_again_and_only_that_one() {
    let mut broker = alone(2);
    broker.step(at(1), Event::Read(0, Ok(Box::default())));
    let lost = News { lost: true, ..News::default() };
    let effects = broker.step(at(1), Event::Read(1, Ok(Box::new(lost))));
    assert!(effects.contains(&Effect::ReadLedger));
    let all = BTreeMap::from([(id("web"), record(1, 1).into()), (id("api"), record(1, 1).into())]);
    let effects = broker.step(at(1), Event::LedgerRead(Ok(Some(("o1".into(), all.clone())))));
    assert_eq!(posts(&effects), [(1, 2)]);
    // A ledger of another origin is not ours to post.
    broker.step(at(1), Event::Posted(1, posted(2)));
    broker.step(at(8), Event::Read(1, Ok(Box::new(News { lost: true, ..News::default() }))));
    let effects = broker.step(at(8), Event::LedgerRead(Ok(Some(("o9".into(), all)))));
    assert_eq!(posts(&effects), []);
}

#[test]
fn boards_are_polled_every_five_seconds_and_at_once_when_woken() {
    let mut broker = alone(1);
    broker.step(at(0), Event::Read(0, Ok(Box::default())));
    let due = broker.next_deadline().unwrap().as_millis();
    assert!((4_000..6_000).contains(&due), "{due}");
    let effects = broker.step(at(1), Event::Woken(0));
    assert!(matches!(effects[..], [Effect::Read(0, ..)]), "{effects:?}");
    for _ in 0..10 {
        assert_eq!(broker.step(at(1), Event::Woken(0)), [], "one read at a time");
    }
    let effects = broker.step(at(1), Event::Read(0, Ok(Box::default())));
    assert!(matches!(effects[..], [Effect::Read(0, ..)]), "once more for all that came meanwhile: {effects:?}");
}

#[test]
fn copies_are_told_to_whoever_follows_and_wake_up_somebody_where_nobody_does() {
    let mut broker = grouped();
    published(&mut broker, "web", record(1, 1));
    let waiting = Record { change: Change::Changed, ..record(2, 1) };
    let both = vec![heard(&id("web"), record(3, 1)), heard(&id("api"), waiting), heard(&id("idle"), record(1, 1))];
    let effects = broker.step(at(2), Event::Read(0, news(both)));
    let told: Vec<_> = effects.iter().filter(|effect| matches!(effect, Effect::Tell(_) | Effect::Want(_))).collect();
    assert_eq!(told, [&Effect::Want(id("api")), &Effect::Tell(id("web"))]);
    let known = broker.view(at(2), &id("web")).members[&Member::from("eu-2")].clone().unwrap();
    assert_eq!((known.origin, known.published), ("o2".into(), record(3, 1).into()));
    // Again with every beat, until a rollout follows or we are known not to have it.
    assert!(broker.tick(at(6)).contains(&Effect::Want(id("api"))));
    broker.step(at(7), Event::Absent(id("api"), Seq(4)));
    assert!(!broker.tick(at(12)).contains(&Effect::Want(id("api"))));
    assert_eq!(posts(&broker.step(at(12), Event::Posted(0, posted(1)))), [(0, 1)], "and that is posted");
}

#[test]
fn another_ledger_of_a_member_is_read_from_the_beginning() {
    let mut broker = grouped();
    let beat =
        |origin: &str, at_ms| Heartbeat { member: "eu-2".into(), origin: origin.into(), at_ms, ..Heartbeat::default() };
    let seen = |beats, cursor: u64| {
        let cursor = Cursor(BTreeMap::from([("eu-2".into(), cursor)]));
        Event::Read(0, Ok(Box::new(News { beats, cursor, ..News::default() })))
    };
    broker.step(at(1), seen(vec![beat("o2", 1)], 7));
    broker.step(at(2), Event::Woken(0));
    broker.step(at(2), seen(vec![beat("o3", 2)], 9));
    broker.step(at(2), Event::Woken(0));
    let effects = broker.step(at(2), seen(vec![beat("o3", 3)], 9));
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Read(0, cursor, _) if cursor.0.is_empty())),
        "{effects:?}"
    );
    // And the answer to a read that was under way on another board does not undo that.
    let cursor = Cursor(BTreeMap::from([("eu-2".into(), 5)]));
    broker.step(at(2), Event::Read(1, Ok(Box::new(News { cursor, ..News::default() }))));
    let next = broker.step(at(20), Event::Woken(1));
    assert!(
        !next.iter().any(|effect| matches!(effect, Effect::Read(1, cursor, _) if !cursor.0.is_empty())),
        "{next:?}"
    );
}

#[test]
fn a_newer_copy_of_our_own_record_is_compared_with_the_ledger() {
    let mut broker = grouped();
    published(&mut broker, "web", record(2, 1));
    let effects = broker.step(at(2), Event::Posted(0, Ok(vec![Posted::Newer(Seq(3), 4)])));
    assert!(effects.contains(&Effect::LoadRecord(id("web"))));
    assert_eq!(broker.view(at(2), &id("web")).hold, None, "another process of ours may have written it");
    let effects = broker.step(at(2), Event::RecordLoaded(id("web"), Ok((Some(Box::new(record(2, 1))), Seq(0).into()))));
    assert!(effects.contains(&Effect::Tell(id("web"))));
    let hold = broker.view(at(2), &id("web")).hold.unwrap();
    assert!(hold.starts_with("StateRegressed") && hold.contains("rollout 3 (revision 4)"), "{hold}");
    assert_eq!(broker.view(at(2), &id("api")).hold, None);
    published(&mut broker, "web", Record { change: Change::Changed, ..record(4, 9) });
    assert!(broker.view(at(3), &id("web")).hold.is_some(), "a rollout is no adoption");
    published(&mut broker, "web", record(5, 10));
    assert_eq!(broker.view(at(3), &id("web")).hold, None);
    // What was removed meanwhile is no loss.
    published(&mut broker, "api", record(2, 1));
    broker.step(at(4), Event::Posted(1, Ok(vec![Posted::Newer(Seq(2), 1), Posted::Newer(Seq(2), 1)])));
    broker.step(at(4), Event::RecordLoaded(id("api"), Ok((None, Seq(2).into()))));
    assert_eq!(broker.view(at(4), &id("api")).hold, None);
}

#[test]
fn beats_go_to_every_board_and_say_whom_we_agree_with() {
    let mut broker = grouped();
    let effects = broker.step(at(5), Event::WordsGathered(saying(id("web"), 2), 77));
    let beats: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Heartbeat(board, beat) => Some((*board, beat)),
            _ => None,
        })
        .collect();
    assert_eq!(beats.iter().map(|(board, _)| *board).collect::<Vec<_>>(), [0, 1]);
    let beat = beats[0].1;
    assert_eq!((beat.members.len(), beat.at_ms, beat.said.words.len()), (2, 77, 1));
    assert_eq!(beat.config, broker.view(at(5), &id("web")).config);
}

#[test]
fn each_beat_is_later_than_the_one_before_even_if_the_clock_is_set_back() {
    let mut broker = grouped();
    let mut at_ms = Vec::new();
    for wall in [77, 77, 5] {
        let effects = broker.step(at(1), Event::WordsGathered(BTreeMap::new(), wall));
        at_ms.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Heartbeat(0, beat) => Some(beat.at_ms),
            _ => None,
        }));
        broker.step(at(1), Event::Beaten(0, Ok(None)));
    }
    assert_eq!(at_ms, [77, 78, 79]);
}

#[test]
fn a_silent_member_posts_and_beats_nothing_and_agrees_on_nothing() {
    let mut broker = grouped();
    broker.identity.listen_only = true;
    let effects = published(&mut broker, "web", record(1, 1));
    assert_eq!(posts(&effects), []);
    assert!(!broker.tick(at(6)).iter().any(|effect| matches!(effect, Effect::GatherWords | Effect::Heartbeat(..))));
    assert!(broker.view(at(6), &id("web")).hold.unwrap().contains("dry run"));
}

#[test]
fn a_dead_server_is_asked_again_and_counts_as_unknown_meanwhile() {
    let mut broker = grouped();
    broker.step(at(1), Event::Woken(1));
    broker.step(at(1), Event::Read(1, timeout()));
    assert_eq!(broker.servers().unidentified.len(), 1);
    assert_eq!(broker.view(at(1), &id("web")).hold, None, "the pin stands");
    // It comes back as another server than any before: it was started again.
    broker.step(at(3), Event::Identified(1, Ok("id-9".into())));
    assert_eq!(broker.servers().distinct, 2);
    assert!(broker.view(at(3), &id("web")).hold.is_none());
}

#[test]
fn a_beat_goes_out_at_once_when_the_members_are_agreed_on() {
    let mut broker = grouped();
    broker.tick(at(1));
    assert!(!broker.tick(at(2)).contains(&Effect::GatherWords));
    let members = ["eu-1".into()].into();
    let effects = broker.step(at(2), Event::PinRead(Ok(Some(Pin { members, of: 2, ..Pin::default() }))));
    assert!(effects.contains(&Effect::GatherWords));
}

#[test]
fn what_was_published_since_is_not_overwritten_by_what_the_ledger_said_before() {
    let mut broker = grouped();
    published(&mut broker, "web", record(2, 5));
    let effects = broker.step(at(2), Event::Posted(0, Ok(vec![Posted::Newer(Seq(2), 6)])));
    assert!(effects.contains(&Effect::LoadRecord(id("web"))));
    // Revision 6 was another process's, and 7 followed it, before the ledger's answer came.
    let newest = record(2, 7);
    let mut effects = published(&mut broker, "web", newest.clone());
    effects
        .extend(broker.step(at(2), Event::RecordLoaded(id("web"), Ok((Some(Box::new(record(2, 6))), Seq(0).into())))));
    effects.extend(broker.step(at(2), Event::Posted(1, posted(1))));
    effects.extend(broker.step(at(3), Event::Posted(0, posted(1))));
    effects.extend(broker.tick(at(4)));
    let last = effects.iter().rev().find_map(|effect| match effect {
        Effect::Post(0, postings) => Some(postings.clone()),
        _ => None,
    });
    assert_eq!(last.unwrap(), [(id("web"), newest.into())]);
}

/// The workloads that are woken when this much time has passed.
fn woken(broker: &mut Broker, seconds: u64) -> Vec<WorkloadId> {
    let effects = broker.tick(at(seconds));
    effects.into_iter().filter_map(|effect| if let Effect::Want(id) = effect { Some(id) } else { None }).collect()
}

fn seeking(revision: u64) -> Record {
    Record { change: Change::Changed, ..record(2, revision) }
}

#[test]
fn a_forgotten_member_wakes_nobody_and_one_without_a_part_to_play_rests() {
    let mut broker = grouped();
    let stranger = Heard { member: "us-1".into(), ..heard(&id("web"), seeking(1)) };
    assert!(!broker.step(at(1), Event::Read(0, news(vec![stranger]))).contains(&Effect::Want(id("web"))));
    assert_eq!(woken(&mut broker, 10), []);
    assert!(
        broker
            .step(at(11), Event::Read(0, news(vec![heard(&id("web"), seeking(1))])))
            .contains(&Effect::Want(id("web")))
    );
    // It is woken, looks, and ends: twice, and then not for a while.
    let mut wakes = Vec::new();
    for round in 3..40 {
        if woken(&mut broker, round * 5) == [id("web")] {
            wakes.push(round * 5);
            broker.step(at(round * 5), Event::Published(id("web"), Box::new(record(2, 1))));
            broker.step(at(round * 5), Event::Left(id("web")));
        }
    }
    assert_eq!(wakes, [15, 20, 80, 140]);
    let again = broker.step(at(196), Event::Read(0, news(vec![heard(&id("web"), seeking(2))])));
    assert!(again.contains(&Effect::Want(id("web"))), "news wakes it at once");
}

#[test]
fn with_more_than_can_be_woken_at_a_time_all_have_their_turn() {
    let mut broker = grouped();
    let names: Vec<WorkloadId> = (0..250).map(|n| id(&format!("web-{n:03}"))).collect();
    broker.step(at(1), Event::Read(0, news(names.iter().map(|id| heard(id, seeking(1))).collect())));
    let mut seen = BTreeSet::new();
    for round in 1..4 {
        let woken = woken(&mut broker, 10 * round);
        assert!(woken.len() <= WANTED_MAX);
        seen.extend(woken);
    }
    assert_eq!(seen.len(), 250, "nobody answered, and still");
}

fn told(effects: &[Effect]) -> Vec<String> {
    let tells = effects.iter().filter_map(|effect| match effect {
        Effect::TellHold(hold) => Some(format!("held by {}", hold.reason.name())),
        Effect::TellRelease(reason) => Some(format!("released by {}", reason.name())),
        Effect::TellHeldUp(workload, hold) => Some(format!("{} held up by {}", workload.name, hold.reason.name())),
        _ => None,
    });
    tells.collect()
}

#[test]
fn a_hold_is_told_once_when_it_has_lasted_once_on_each_workload_that_waits_and_once_when_it_ends() {
    let mut broker = grouped();
    let beat = |rules: &str, count| {
        let own = broker.membership.roster.as_ref().map(Roster::settings).unwrap_or_default();
        let settings =
            own.into_iter().map(|(name, value)| if name == "rules" { (name, rules.into()) } else { (name, value) });
        let (settings, members) = (settings.collect(), BTreeSet::from(["eu-1".into(), "eu-2".into()]));
        Heartbeat {
            member: "eu-2".into(),
            origin: "o2".into(),
            boot: "x".into(),
            count,
            settings,
            members,
            ..Heartbeat::default()
        }
    };
    let (other, config) = (beat("99", 1), broker.membership.standing.config.clone());
    let same = Heartbeat { config, ..beat(&broker.membership.roster.as_ref().unwrap().settings()["rules"], 2) };
    let heard = |beat: Heartbeat| Event::Read(0, Ok(Box::new(News { beats: vec![beat], ..News::default() })));
    published(&mut broker, "web", seeking(1));
    published(&mut broker, "idle", record(1, 1));
    assert_eq!(told(&broker.step(at(2), heard(other))), Vec::<String>::new());
    assert!(broker.next_deadline().unwrap() <= at(22));
    assert_eq!(told(&broker.tick(at(21))), Vec::<String>::new(), "it may pass by itself");
    assert_eq!(told(&broker.tick(at(22))), ["held by configuration", "web held up by configuration"]);
    assert_eq!(told(&broker.tick(at(23))), Vec::<String>::new());
    let late = broker.step(at(24), Event::Published(id("late"), Box::new(seeking(1))));
    assert_eq!(told(&late), ["late held up by configuration"]);
    assert_eq!(told(&broker.step(at(30), heard(same))), ["released by configuration"]);
    assert!(broker.seen(at(30)).unwrap().holds.is_empty());
}
