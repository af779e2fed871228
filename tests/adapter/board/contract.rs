//! What every board promises, clause by clause.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt as _;
use kernel::id::{Member, Nonce, Origin, Seq, WorkloadId};
use purge::agreement::roster::{Heartbeat, Said, Saying};
use purge::ports::{Board, Cursor, Flow, Heard, News, POSTINGS_MAX, Posted, Posting};
use purge::records::record::{Published, Record};
use purge::records::record_codec::decode;

use super::Bench;

/// Everything here happens within milliseconds; two busy cores take longer.
pub const WITHIN: Duration = Duration::from_secs(60);

pub fn web() -> WorkloadId {
    WorkloadId::deployment("shop", "web")
}

pub fn app(number: usize) -> WorkloadId {
    WorkloadId::deployment(format!("team-{}", number % 50), format!("app-{number}"))
}

pub fn record(seq: u64, revision: u64) -> Record {
    decode(format!(r#"{{"r":{revision},"u":"u","s":{seq},"v":{{"web":"shop/web:1.2"}}}}"#).as_bytes()).unwrap()
}

pub fn show(seq: u64, revision: u64) -> Posting {
    record(seq, revision).into()
}

pub fn forget(seq: u64, revision: u64) -> Posting {
    Posting::Forget(Seq(seq), revision)
}

pub fn newer(seq: u64, revision: u64) -> Posted {
    Posted::Newer(Seq(seq), revision)
}

/// Posts one and answers for it.
pub async fn post(board: &dyn Board, origin: &str, posting: Posting) -> Posted {
    let mut answers = board.post(&Origin(origin.to_owned()), &[(web(), posting)]).await.unwrap();
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// What eu-1 is heard to have said of `web`.
pub fn heard(origin: &str, said: Posting) -> Heard {
    Heard { member: "eu-1".into(), workload: web(), origin: origin.into(), said }
}

/// Reads from the beginning, to the end.
pub async fn all(board: &dyn Board) -> Vec<Heard> {
    read(board, &mut Cursor::default()).await.heard
}

/// Reads to the end.
pub async fn read(board: &dyn Board, cursor: &mut Cursor) -> News {
    let mut whole = News::default();
    loop {
        let news = board.read(cursor).await.unwrap();
        *cursor = news.cursor;
        whole.heard.extend(news.heard);
        whole.rejected.extend(news.rejected);
        whole.lost |= news.lost;
        whole.beats = news.beats;
        if !news.more {
            return whole;
        }
    }
}

pub async fn woken(wakes: &mut Flow<()>) {
    tokio::time::timeout(WITHIN, wakes.next()).await.expect("a wake-up").expect("for ever");
}

pub async fn what_one_member_posts_the_others_hear_once(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    let mut cursor = Cursor::default();
    assert_eq!(read(&*two, &mut cursor).await, News::default());
    assert_eq!(post(&*one, "a", show(1, 1)).await, Posted::Current);
    assert_eq!(read(&*two, &mut cursor).await.heard, [heard("a", show(1, 1))]);
    assert_eq!(read(&*two, &mut cursor).await.heard, []);
    assert_eq!(all(&*one).await, [], "nobody hears himself");
    assert_eq!(all(&*bench.handle("eu-3")).await, [heard("a", show(1, 1))]);
}

pub async fn only_what_changed_is_heard_again(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    let some: Vec<_> = (0..10).map(|number| (app(number), show(1, 1))).collect();
    assert_eq!(one.post(&"a".into(), &some).await.unwrap(), [const { Posted::Current }; 10]);
    let mut cursor = Cursor::default();
    let first = read(&*two, &mut cursor).await.heard;
    assert_eq!(
        first.iter().map(|heard| heard.workload.clone()).collect::<Vec<_>>(),
        (0..10).map(app).collect::<Vec<_>>()
    );
    // All again, as after a doubt: only the one that changed is news.
    let mut again = some.clone();
    again[7].1 = show(1, 2);
    assert_eq!(one.post(&"a".into(), &again).await.unwrap(), [const { Posted::Current }; 10]);
    let news = read(&*two, &mut cursor).await.heard;
    assert_eq!(news.iter().map(|heard| &heard.workload).collect::<Vec<_>>(), [&app(7)]);
    assert_eq!(news[0].said, show(1, 2));
}

pub async fn an_older_state_changes_nothing(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    // 9 before 10 is where numbers differ from their digits; 2^53 is where those of Lua end.
    let max = u64::MAX;
    for ((seq, revision), answer, there) in [
        ((1, 9), Posted::Current, (1, 9)),
        ((1, 10), Posted::Current, (1, 10)),
        ((1, 9), newer(1, 10), (1, 10)),
        ((1, 10), Posted::Current, (1, 10)),
        ((1, max - 1), Posted::Current, (1, max - 1)),
        ((1, max), Posted::Current, (1, max)),
        ((1, max - 1), newer(1, max), (1, max)),
        ((max, 1), Posted::Current, (max, 1)),
        ((max - 1, max), newer(max, 1), (max, 1)),
    ] {
        assert_eq!(post(&*one, "a", show(seq, revision)).await, answer, "{seq} {revision}");
        assert_eq!(all(&*two).await, [heard("a", show(there.0, there.1))], "{seq} {revision}");
    }
    assert_eq!(post(&*one, "a", forget(max, 0)).await, newer(max, 1));
}

pub async fn a_new_ledger_replaces_the_records_of_the_old_one(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    assert_eq!(post(&*one, "a", show(7, 7)).await, Posted::Current);
    assert_eq!(post(&*one, "b", show(1, 1)).await, Posted::Current);
    assert_eq!(all(&*two).await, [heard("b", show(1, 1))]);
    // The old ledger's removal is about the old ledger's record.
    assert_eq!(post(&*one, "a", forget(9, 9)).await, Posted::Current);
    assert_eq!(all(&*two).await, [heard("b", show(1, 1))]);
}

pub async fn a_workload_that_was_created_again_is_shown_although_its_revisions_begin_anew(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    for ((seq, revision), answer) in [((9, 30), Posted::Current), ((10, 1), Posted::Current), ((9, 31), newer(10, 1))] {
        assert_eq!(post(&*one, "a", show(seq, revision)).await, answer);
    }
    assert_eq!(post(&*one, "a", forget(9, 31)).await, newer(10, 1), "what it is about is gone, another one is there");
    assert_eq!(all(&*two).await, [heard("a", show(10, 1))]);
}

/// A ledger that was set back gives a number out again: only the nonce tells the two apart.
pub async fn a_rollout_that_another_one_had_the_number_of_takes_the_place_of_its_copy(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    let with = |nonce| Posting::from(Record { nonce: Nonce(nonce), ..record(3, 5) });
    let mut cursor = Cursor::default();
    for nonce in [7, 8] {
        assert_eq!(post(&*one, "a", with(nonce)).await, Posted::Current);
        assert_eq!(read(&*two, &mut cursor).await.heard, [heard("a", with(nonce))]);
    }
}

pub async fn a_removal_is_heard_and_holds_against_a_late_record(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    let mut cursor = Cursor::default();
    post(&*one, "a", show(2, 5)).await;
    read(&*two, &mut cursor).await;
    for _ in 0..2 {
        assert_eq!(post(&*one, "a", forget(2, 5)).await, Posted::Current);
    }
    assert_eq!(read(&*two, &mut cursor).await.heard, [heard("a", forget(2, 5))]);
    assert_eq!(post(&*one, "a", show(2, 5)).await, newer(2, 5));
    assert_eq!(read(&*two, &mut cursor).await.heard, []);
    assert_eq!(post(&*one, "a", show(3, 1)).await, Posted::Current);
    assert_eq!(read(&*two, &mut cursor).await.heard, [heard("a", show(3, 1))]);
    // Removing what never was there is no failure, and tells whoever has heard of it elsewhere.
    assert_eq!(one.post(&"a".into(), &[(app(1), forget(1, 1))]).await.unwrap(), [Posted::Current]);
}

pub async fn a_loss_is_noticed_once_even_if_something_was_posted_since(bench: &dyn Bench) {
    let one = bench.handle("eu-1");
    let lost =
        async || [read(&*one, &mut Cursor::default()).await.lost, read(&*one, &mut Cursor::default()).await.lost];
    assert_eq!(lost().await, [false, false], "nothing was posted, so nothing is lost");
    post(&*one, "a", show(1, 1)).await;
    post(&*one, "a", show(1, 2)).await;
    assert_eq!(lost().await, [false, false]);
    bench.wipe();
    assert_eq!(lost().await, [true, false]);
    post(&*one, "a", show(1, 3)).await;
    bench.wipe();
    post(&*one, "a", show(1, 4)).await;
    post(&*one, "a", show(1, 5)).await;
    assert_eq!(lost().await, [true, false]);
    // Another life cannot know what was lost before it; it posts everything anyway.
    bench.wipe();
    assert!(!read(&*bench.handle("eu-1"), &mut Cursor::default()).await.lost);
}

/// Also if as much was posted since as had been heard before.
pub async fn what_was_posted_anew_after_a_loss_is_heard_again(bench: &dyn Bench) {
    for (before, since) in [(20, 3), (3, 20), (3, 3)] {
        bench.wipe();
        let two = bench.handle("eu-2");
        let mut cursor = Cursor::default();
        let one = bench.handle("eu-1");
        for revision in 1..=before {
            post(&*one, "a", show(1, revision)).await;
        }
        assert_eq!(read(&*two, &mut cursor).await.heard.len(), 1);
        bench.wipe();
        // Of the same life, which knows what it had posted, or of the next, which does not.
        let one = if since == 3 { bench.handle("eu-1") } else { one };
        let some: Vec<_> = (0..since).map(|number| (app(number), show(1, 1))).collect();
        one.post(&"a".into(), &some).await.unwrap();
        assert_eq!(read(&*two, &mut cursor).await.heard.len(), since, "{before} before, {since} since");
        assert_eq!(read(&*two, &mut cursor).await.heard.len(), 0);
    }
}

pub async fn many_records_are_heard_in_several_answers(bench: &dyn Bench) {
    let (one, three, two) = (bench.handle("eu-1"), bench.handle("eu-3"), bench.handle("eu-2"));
    let some: Vec<_> = (0..1_200).map(|number| (app(number), show(1, 1))).collect();
    for (board, origin) in [(&one, "a"), (&three, "c")] {
        for some in some.chunks(POSTINGS_MAX) {
            board.post(&origin.into(), some).await.unwrap();
        }
    }
    let mut cursor = Cursor::default();
    let mut found: BTreeMap<(Member, WorkloadId), usize> = BTreeMap::new();
    for answers in 1.. {
        let news = two.read(&cursor).await.unwrap();
        assert!(news.heard.len() <= POSTINGS_MAX);
        for heard in news.heard {
            *found.entry((heard.member, heard.workload)).or_default() += 1;
        }
        cursor = news.cursor;
        if !news.more {
            break;
        }
        assert!(answers < 10, "it never ends");
    }
    assert_eq!(found.len(), 2_400);
    assert!(found.values().all(|times| *times == 1));
}

pub async fn a_record_too_long_is_refused_alone(bench: &dyn Bench) {
    let one = bench.handle("eu-1");
    let mut long = record(1, 1);
    long.conditions.insert("x".repeat(70_000));
    let some = [(app(1), show(1, 1)), (web(), long.into()), (app(2), show(1, 1))];
    let answers = one.post(&"a".into(), &some).await.unwrap();
    assert!(matches!(&answers[..], [Posted::Current, Posted::Refused(_), Posted::Current]), "{answers:?}");
    assert_eq!(all(&*bench.handle("eu-2")).await.len(), 2);
}

pub async fn an_absent_workload_gives_way_to_a_later_one(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    let absent = || Posting::Show(Published::Absent(Seq(4)));
    post(&*one, "a", show(4, 9)).await;
    for _ in 0..2 {
        assert_eq!(post(&*one, "a", absent()).await, Posted::Current);
        assert_eq!(all(&*two).await, [heard("a", absent())]);
    }
    assert_eq!(post(&*one, "a", show(4, 10)).await, newer(4, u64::MAX));
    assert_eq!(post(&*one, "a", show(5, 1)).await, Posted::Current);
    assert_eq!(all(&*two).await, [heard("a", show(5, 1))]);
}

pub fn beat(member: &str, at_ms: i64) -> Heartbeat {
    let saying = Saying { seq: Seq(4), words: "waits for \"eu-2\"".to_owned(), since_ms: Some(at_ms - 1) };
    let said = Said::of([(web(), saying)].into());
    Heartbeat { member: member.into(), origin: "a".into(), at_ms, said, ..Heartbeat::default() }
}

pub async fn beats_are_heard_and_answer_with_the_earlier_one(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    assert_eq!(one.beat(&beat("eu-1", 1)).await.unwrap(), None);
    assert_eq!(one.beat(&beat("eu-1", 2)).await.unwrap(), Some(beat("eu-1", 1)));
    two.beat(&beat("eu-2", 1)).await.unwrap();
    // Another cluster that took our name.
    assert_eq!(bench.handle("eu-2").beat(&beat("eu-2", 7)).await.unwrap(), Some(beat("eu-2", 1)));
    for board in [one, two] {
        let mut beats = read(&*board, &mut Cursor::default()).await.beats;
        beats.sort_by_key(|beat| beat.member.clone());
        assert_eq!(beats, [beat("eu-1", 2), beat("eu-2", 7)]);
    }
}

pub async fn a_member_is_woken_by_others_and_not_by_itself(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    let mut wakes = one.wake_ups();
    woken(&mut wakes).await;
    for revision in 1..4 {
        post(&*two, "b", show(1, revision)).await;
        woken(&mut wakes).await;
    }
    // What is to be woken by is always there within this time, on a quiet machine: it cannot fail by chance.
    let quiet = Duration::from_millis(200);
    post(&*one, "a", show(1, 1)).await;
    assert!(tokio::time::timeout(quiet, wakes.next()).await.is_err(), "by itself");
    post(&*two, "b", show(1, 3)).await;
    assert!(tokio::time::timeout(quiet, wakes.next()).await.is_err(), "by nothing new");
}

pub async fn a_beat_wakes_the_others_if_it_is_news(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1"), bench.handle("eu-2"));
    let mut wakes = one.wake_ups();
    woken(&mut wakes).await;
    let quiet = Duration::from_millis(200);
    let first = beat("eu-2", 1);
    two.beat(&first).await.unwrap();
    woken(&mut wakes).await;
    two.beat(&Heartbeat { at_ms: 2, ..first.clone() }).await.unwrap();
    assert!(tokio::time::timeout(quiet, wakes.next()).await.is_err(), "it only says that its member lives");
    two.beat(&Heartbeat { members: BTreeSet::from(["eu-9".into()]), ..first }).await.unwrap();
    woken(&mut wakes).await;
}

pub async fn two_ways_to_one_server_are_one_server(bench: &dyn Bench) {
    let (one, two) = (bench.handle("eu-1").identity().await.unwrap(), bench.handle("eu-2").identity().await.unwrap());
    assert!(!one.is_empty());
    assert_eq!(one, two);
}

/// Faults R1 to R4 in short: whatever is lost on the way, late or repeated, the newest state is what stays.
pub async fn shuffled_histories_end_in_the_newest_state(bench: &dyn Bench) {
    const HISTORIES: usize = 2_000;
    const WRITES: u64 = 24;
    let one = bench.handle("eu-1");
    let mut chance = Chance(7);
    let mut expected = BTreeMap::new();
    let mut arriving: Vec<Vec<(WorkloadId, Posting)>> = vec![Vec::new(); 40];
    for number in 0..HISTORIES {
        let states: Vec<(u64, u64)> =
            (0..WRITES).map(|at| (1 + at / 5, 1 + at % 5 + chance.below(3) * (1 << 60))).collect();
        let mut writes = Vec::new();
        for (seq, revision) in states {
            let removed = revision % 5 == 0 && chance.below(2) == 0;
            writes.push(if removed { forget(seq, revision) } else { show(seq, revision) });
        }
        // Lost, late, repeated: any of them, any number of times, in any order.
        for _ in 0..WRITES {
            let write = chance.one_of(&mut writes).clone();
            let best = expected.entry(app(number)).or_insert_with(|| write.clone());
            if rank(&write) > rank(best) {
                *best = write.clone();
            }
            chance.one_of(&mut arriving).push((app(number), write));
        }
    }
    for lap in arriving {
        for some in lap.chunks(POSTINGS_MAX) {
            one.post(&"a".into(), some).await.unwrap();
        }
    }
    let there: BTreeMap<_, _> = all(&*bench.handle("eu-2")).await.into_iter().map(|h| (h.workload, h.said)).collect();
    assert_eq!(there, expected);
}

fn rank(posting: &Posting) -> (Seq, u64, bool) {
    let (seq, revision) = posting.state();
    (seq, revision, matches!(posting, Posting::Forget(..)))
}

/// The same numbers in every run (Knuth's MMIX).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_of<'a, T>(&mut self, all: &'a mut [T]) -> &'a mut T {
        let at = self.below(all.len() as u64);
        &mut all[usize::try_from(at).unwrap()]
    }
}
