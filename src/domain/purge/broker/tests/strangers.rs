//! What a writer of one board can do to the broker: forge copies, forge our own, and wake it in a loop.

use super::*;

fn broker(trust: Trust) -> Broker {
    let members: BTreeSet<Member> = ["eu-1", "eu-2"].map(Member::from).into();
    let pin = Pin { of: 2, members, ..Pin::default() };
    let settings = settings(&Policy::default(), trust.is_proof());
    let roster = Roster::new("eu-1".into(), "o1".into(), BTreeSet::new(), settings, Some(pin));
    let mut broker = Broker::new(identity(trust), Some(roster), vec!["redis-0".to_owned(), "redis-1".to_owned()]);
    broker.tick(at(0));
    broker.step(at(0), Event::LedgerRead(Ok(None)));
    for board in 0..2 {
        broker.step(at(0), Event::Identified(board, Ok(format!("id-{board}"))));
        broker.step(at(0), Event::Read(board, Ok(Box::default())));
    }
    broker
}

/// Shows 20,000 copies, 500 at a time, and counts the workloads that were woken.
fn show(broker: &mut Broker, copy: impl Fn(usize) -> Heard) {
    for page in 0..40 {
        let copies = (0..500).map(|number| copy(page * 500 + number)).collect();
        broker.step(at(1), Event::Read(0, news(copies)));
    }
}

fn made_up(number: usize) -> WorkloadId {
    id(&format!("made-up-{number:05}"))
}

// Faults: T8
#[test]
fn copies_that_matter_to_nobody_here_take_no_memory() {
    for member in ["eu-2", "us-9"] {
        let mut broker = broker(Trust::Unsigned);
        show(&mut broker, |number| Heard { member: member.into(), ..heard(&made_up(number), record(2, 1)) });
        println!("T8: bytes kept of 20,000 copies that {member} shows at rest {} (aim 0)", broker.peer_records.bytes());
        assert_eq!(broker.peer_records.bytes(), 0);
    }
    let mut broker = broker(Trust::Unsigned);
    show(&mut broker, |number| Heard { member: "us-9".into(), ..heard(&made_up(number), seeking(1)) });
    assert_eq!(broker.peer_records.bytes(), 0, "who is no member is waited for by nobody");
}

// Faults: T8
#[test]
fn copies_that_ask_for_us_take_a_bounded_memory_and_no_place_from_what_is_under_way() {
    let mut broker = broker(Trust::Unsigned);
    published(&mut broker, "web", record(2, 1));
    show(&mut broker, |number| heard(&made_up(number), Record { uid: "u".repeat(15_000), ..seeking(1) }));
    let bytes = broker.peer_records.bytes();
    println!("T8: bytes kept of 20,000 copies of 15 KiB that ask for a rollout {bytes} (aim {})", 16 << 20);
    assert!(bytes <= 5 << 20, "{bytes}");
    broker.step(at(2), Event::Read(0, news(vec![heard(&id("web"), record(2, 1))])));
    let view = broker.view(at(2), &id("web"));
    assert!(view.members[&Member::from("eu-2")].is_some(), "the copies of what is under way have a place of their own");
    assert!(broker.troubles(at(2)).iter().any(|said| said.to_string().contains("more than are kept")));
}

/// A board has a copy of our own record that is newer than our ledger.
fn own_copy_is_newer(broker: &mut Broker) -> Vec<Effect> {
    published(broker, "web", record(2, 1));
    broker.step(at(2), Event::Posted(0, Ok(vec![Posted::Newer(Seq(90), 4)])));
    broker.step(at(2), Event::RecordLoaded(id("web"), Ok((Some(Box::new(record(2, 1))), Seq(0).into()))))
}

// Faults: T8
#[test]
fn a_copy_of_our_own_record_holds_us_with_a_key_and_without_one_is_told() {
    let mut keyed = broker(Trust::Signed);
    own_copy_is_newer(&mut keyed);
    assert!(keyed.view(at(2), &id("web")).hold.is_some());
    for trust in [Trust::Unsigned, Trust::UnsignedOnPurpose] {
        let mut open = broker(trust);
        let effects = own_copy_is_newer(&mut open);
        let told = |effects: &[Effect]| effects.iter().filter(|effect| matches!(effect, Effect::TellDoubt(_))).count();
        assert_eq!(told(&effects), 1, "{effects:?}");
        let view = open.view(at(2), &id("web"));
        assert_eq!((view.hold, view.set_back, view.above), (None, None, Some(Seq(90))));
        assert!(
            open.troubles(at(2)).iter().any(|said| said.to_string().contains("nothing proves either")),
            "said in status too"
        );
        let in_a_day: usize = (1..24 * 60).map(|minute| told(&open.tick(at(2 + minute * 60)))).sum();
        println!("T8: warnings in the day after a forged copy of our own {in_a_day} (aim 23)");
        assert_eq!(in_a_day, 23, "and then every hour");
        // Our number goes above it, so that the others hear of us.
        published(&mut open, "web", record(91, 2));
        assert_eq!(open.view(at(3), &id("web")).above, None);
        assert!(!open.troubles(at(3)).iter().any(|said| said.to_string().contains("nothing proves either")));
    }
}

// Faults: T8
#[test]
fn a_group_without_a_key_is_warned_of_until_it_is_said_to_be_meant() {
    let warned =
        |trust| broker(trust).troubles(at(1)).iter().any(|said| said.to_string().contains("group.unsigned = true"));
    assert_eq!([Trust::Unsigned, Trust::UnsignedOnPurpose, Trust::Signed].map(warned), [true, false, false]);
}

/// Goes on for this long while a stranger announces news at every millisecond; every read is answered a millisecond later with
/// these copies that are not believed. Returns the reads of board 0 and the lines about it.
fn flooded(seconds: u64, rejected: usize) -> (usize, usize) {
    let mut broker = broker(Trust::Signed);
    let (mut reads, mut lines) = (0, 0);
    let mut asked = false;
    for millis in 1_000..1_000 + seconds * 1_000 {
        let now = Timestamp::from_millis(millis);
        let mut effects = broker.step(now, Event::Woken(0));
        if std::mem::take(&mut asked) {
            let rejected = vec!["the copy of eu-2's deployment/shop/web: wrongly signed".to_owned(); rejected];
            effects.extend(broker.step(now, Event::Read(0, Ok(Box::new(News { rejected, ..News::default() })))));
        }
        for effect in effects {
            asked |= matches!(effect, Effect::Read(0, ..));
            reads += usize::from(matches!(effect, Effect::Read(0, ..)));
            lines += usize::from(matches!(effect, Effect::TellRejected(0, ..)));
        }
    }
    (reads, lines)
}

// Faults: T9
#[test]
fn whoever_publishes_in_a_loop_has_a_board_read_a_few_times_a_second() {
    let (reads, _) = flooded(60, 0);
    let per_second = f64::from(u32::try_from(reads).unwrap()) / 60.0;
    println!("T9: reads a second of a board on which somebody publishes in a loop {per_second:.1} (aim 10)");
    assert!(per_second <= 10.0 && per_second > 5.0, "{per_second}");
}

// Faults: T9
#[test]
fn copies_that_are_not_believed_are_told_once_a_minute_with_their_number() {
    let (reads, lines) = flooded(180, 500);
    println!("T9: lines in 180 s about {} forged copies {lines} (aim 3)", reads * 500);
    assert_eq!(lines, 3);
}

// Faults: T13
#[test]
fn names_that_are_made_up_are_remembered_in_bounds() {
    let mut broker = broker(Trust::Signed);
    for page in 0..200 {
        let names = (0..100).map(|number| (Member(format!("made-up-{page}-{number}")), "wrongly signed".to_owned()));
        let news = News { disbelieved: names.collect(), ..News::default() };
        broker.step(at(1), Event::Read(0, Ok(Box::new(news))));
    }
    for number in 0..20_000 {
        broker.step(at(1), Event::Absent(made_up(number), Seq(0)));
    }
    let (names, absent) = (broker.boards[0].disbelieved.len(), broker.ours.absent().count());
    println!(
        "T13: names remembered of 20,000 {names} (aim {DISBELIEVED_MAX}), absent workloads {absent} (aim {ABSENT_MAX})"
    );
    assert!(names <= DISBELIEVED_MAX && absent <= ABSENT_MAX);
}

#[test]
fn a_member_whose_key_differs_is_named_and_is_not_down() {
    let mut broker = grouped();
    let disbelieved = BTreeMap::from([("eu-2".into(), "wrongly signed".to_owned())]);
    broker.step(at(1), Event::Read(0, Ok(Box::new(News { disbelieved, ..News::default() }))));
    let seen = broker.seen(at(1)).unwrap();
    assert_eq!(seen.members[1].disbelieved.as_deref(), Some("wrongly signed"));
    let [hold] = &seen.holds[..] else { panic!("{:?}", seen.holds) };
    assert!(hold.reason == Reason::Key && hold.words.contains("eu-2: wrongly signed"), "{hold:?}");
    assert!(broker.seen(at(60)).unwrap().holds.is_empty(), "nothing of it was seen any more");
}
