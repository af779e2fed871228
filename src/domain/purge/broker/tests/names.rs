//! Workloads that the group knows by another name than ours (decision 55).

use super::*;
use crate::agreement::group::Naming;
use crate::records::record::Vote;
use kernel::names::group_name::Alias;

fn eu() -> WorkloadId {
    WorkloadId::deployment("prod", "web-eu")
}

/// A record that says to go by `shop/web`, of a workload that was made in this year.
fn called(year: u16, seq: u64) -> Record {
    let alias = Alias { name: id("web"), created: format!("{year}-01-01T00:00:00Z") };
    Record { group_name: Some(Box::new(alias)), ..record(seq, 1) }
}

fn voting(record: Record) -> Record {
    let json = serde_json::json!({"v": {}, "s": record.seq, "i": record.version, "p": ["/*"]});
    Record { votes: vec![serde_json::from_value::<Vote>(json).unwrap()], ..record }
}

fn seeking(seq: u64) -> Record {
    Record { change: Change::Changed, ..record(seq, 1) }
}

/// A broker that has not read its ledger.
fn begun() -> Broker {
    let mut broker = broker(Some(&["eu-1", "eu-2"]), 2);
    assert!(broker.tick(at(0)).contains(&Effect::ReadLedger));
    for board in 0..2 {
        broker.step(at(0), Event::Identified(board, Ok(format!("id-{board}"))));
        broker.step(at(0), Event::Read(board, Ok(Box::default())));
    }
    broker
}

fn ledger(records: &[(WorkloadId, Record)]) -> Event {
    let records = records.iter().map(|(id, record)| (id.clone(), record.clone().into())).collect();
    Event::LedgerRead(Ok(Some(("o1".into(), records))))
}

fn over(records: &[(WorkloadId, Record)]) -> Broker {
    let mut broker = begun();
    let effects = broker.step(at(0), ledger(records));
    shown(&mut broker, effects);
    broker
}

/// What is shown to the first board now, by what the group calls it; each posting is taken.
fn shown(broker: &mut Broker, mut effects: Vec<Effect>) -> BTreeMap<WorkloadId, Posting> {
    let of_first = |effect: Effect| if let Effect::Post(0, postings) = effect { Some(postings) } else { None };
    let mut shown = BTreeMap::new();
    while let Some(postings) = effects.into_iter().find_map(of_first) {
        let count = postings.len();
        shown.extend(postings);
        effects = broker.step(at(1), Event::Posted(0, posted(count)));
    }
    shown
}

fn publish(broker: &mut Broker, id: &WorkloadId, record: &Record) -> Vec<Effect> {
    broker.step(at(1), Event::Published(id.clone(), Box::new(record.clone())))
}

/// The same, and what is shown to the first board then.
fn published_as(broker: &mut Broker, id: &WorkloadId, record: &Record) -> BTreeMap<WorkloadId, Posting> {
    let effects = publish(broker, id, record);
    shown(broker, effects)
}

/// Of these, who has the name, by what their views say.
fn bearers<'a>(broker: &Broker, all: &'a [WorkloadId]) -> Vec<&'a WorkloadId> {
    let has = |id: &&WorkloadId| !matches!(broker.view(at(1), id).naming, Naming::Refused(_));
    all.iter().filter(has).collect()
}

#[test]
fn the_group_knows_it_by_that_name_and_rollouts_by_their_own() {
    let mut broker = over(&[]);
    assert_eq!(published_as(&mut broker, &eu(), &called(2026, 3)), [(id("web"), called(2026, 3).into())].into());
    let effects = broker.step(at(2), Event::Read(0, news(vec![heard(&id("web"), seeking(5))])));
    assert!(effects.contains(&Effect::Tell(eu())), "{effects:?}");
    let view = broker.view(at(2), &eu());
    let theirs = view.members[&Member::from("eu-2")].as_ref().unwrap();
    assert_eq!((theirs.published.seq(), view.naming), (Seq(5), Naming::Stands));
    assert_eq!(view.members[&Member::from("eu-1")].as_ref().unwrap().published, called(2026, 3).into());
    broker.step(at(3), Event::Left(eu()));
    let effects = broker.tick(at(20));
    assert!(effects.contains(&Effect::Want(eu())), "{effects:?}");
    let effects = broker.step(at(20), Event::WordsGathered(saying(eu(), 3), 7));
    let beat =
        effects.iter().find_map(|effect| if let Effect::Heartbeat(_, beat) = effect { Some(beat) } else { None });
    assert_eq!(beat.unwrap().said.words.keys().collect::<Vec<_>>(), [&id("web")]);
}

#[test]
fn the_one_really_called_so_stays_else_the_older_whatever_comes_first_and_whenever_it_restarts() {
    let (old, young) = (WorkloadId::deployment("prod", "z-old"), WorkloadId::deployment("prod", "a-young"));
    let all = [(id("web"), record(1, 1)), (old.clone(), called(2020, 5)), (young.clone(), called(2025, 9))];
    let ids = all.clone().map(|(id, _)| id);
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        // So many of them are in the ledger when the last life begins; the others come afterwards, one by one.
        for known in 0..=all.len() {
            for (real, expected) in [(true, &ids[0]), (false, &old)] {
                let order = order.into_iter().filter(|which| real || *which != 0).collect::<Vec<_>>();
                let (before, after) = order.split_at(known.min(order.len()));
                let mut broker = over(&before.iter().map(|which| all[*which].clone()).collect::<Vec<_>>());
                for which in after {
                    published_as(&mut broker, &all[*which].0, &all[*which].1);
                }
                let there: Vec<WorkloadId> = order.iter().map(|which| ids[*which].clone()).collect();
                assert_eq!(bearers(&broker, &there), [expected], "{order:?}, {known} known");
                for refused in there.iter().filter(|id| *id != expected) {
                    let view = broker.view(at(1), refused);
                    assert_eq!(view.members, BTreeMap::new());
                    assert!(view.hold.unwrap().contains("is that of another workload of this cluster"));
                }
            }
        }
    }
}

#[test]
fn whoever_has_votes_under_a_name_keeps_it_until_they_have_ended() {
    for lives in [1, 2] {
        let mut broker = over(&[(eu(), voting(called(2020, 7)))]);
        if lives == 2 {
            broker = over(&[(eu(), voting(called(2020, 7))), (id("web"), record(1, 1))]);
        }
        published_as(&mut broker, &eu(), &voting(called(2020, 7)));
        let posted = published_as(&mut broker, &id("web"), &record(1, 1));
        assert_eq!(posted, BTreeMap::new(), "the group counts on the votes");
        assert!(matches!(broker.view(at(1), &eu()).naming, Naming::Leaves(_)), "and none is added");
        assert!(matches!(broker.view(at(1), &id("web")).naming, Naming::Refused(_)));
        let effects = publish(&mut broker, &eu(), &called(2020, 7));
        assert!(effects.contains(&Effect::Tell(id("web"))) && effects.contains(&Effect::Tell(eu())), "{effects:?}");
        assert_eq!(shown(&mut broker, effects), [(id("web"), record(1, 1).into())].into());
        assert_eq!(bearers(&broker, &[eu(), id("web")]), [&id("web")]);
        // It goes on above what the other had: nothing was lost.
        publish(&mut broker, &id("web"), &record(1, 2));
        let effects = broker.step(at(2), Event::Posted(0, Ok(vec![Posted::Newer(Seq(7), 1)])));
        assert!(effects.contains(&Effect::LoadRecord(id("web"))), "{effects:?}");
        broker.step(at(2), Event::RecordLoaded(id("web"), Ok((Some(Box::new(record(1, 2))), Seq(0).into()))));
        let view = broker.view(at(2), &id("web"));
        assert_eq!((view.hold, view.set_back, view.above), (None, None, Some(Seq(7))));
        assert_eq!(broker.doubt(), None);
    }
}

#[test]
fn a_number_that_nothing_of_ours_had_under_the_name_is_a_set_back_as_ever() {
    for (theirs, floor, held) in [(7, 6, false), (8, 6, true), (7, 0, true)] {
        let mut broker = over(&[]);
        publish(&mut broker, &eu(), &called(2020, 3));
        broker.step(at(2), Event::Posted(0, Ok(vec![Posted::Newer(Seq(theirs), 1)])));
        broker.step(at(2), Event::RecordLoaded(eu(), Ok((Some(Box::new(called(2020, 3))), Seq(floor).into()))));
        let view = broker.view(at(2), &eu());
        assert_eq!((view.hold.is_some(), view.above.is_some()), (held, !held), "{theirs} above a floor of {floor}");
    }
}

#[test]
fn the_name_that_is_left_is_absent_and_so_is_ones_own_while_one_goes_by_another() {
    let mut broker = over(&[]);
    published_as(&mut broker, &eu(), &called(2020, 3));
    let absent = |seq| Posting::Show(crate::records::record::Published::Absent(Seq(seq)));
    let now = published_as(&mut broker, &eu(), &record(5, 2));
    assert_eq!(now, [(id("web"), absent(4)), (eu(), record(5, 2).into())].into());

    // A member asks for it by its own name.
    let mut broker = over(&[(eu(), called(2020, 3))]);
    let effects = broker.step(at(2), Event::Read(0, news(vec![heard(&eu(), seeking(2))])));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Want(_))), "{effects:?}");
    assert_eq!(shown(&mut broker, effects).get(&eu()), Some(&absent(4)));
}

#[test]
fn nothing_is_shown_and_nobody_woken_before_all_names_are_known() {
    let mut broker = begun();
    let effects = publish(&mut broker, &eu(), &called(2020, 3));
    assert_eq!(posts(&effects), []);
    assert!(broker.view(at(1), &eu()).hold.is_some_and(|hold| hold.contains("is being read from the ledger")));
    let effects = broker.step(at(2), Event::Read(0, news(vec![heard(&id("web"), seeking(5))])));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Want(_))), "it may be one of ours: {effects:?}");
    assert_eq!(posts(&broker.step(at(2), Event::LedgerRead(timeout()))), []);
    assert!(broker.tick(at(20)).contains(&Effect::ReadLedger));
    let effects = broker.step(at(20), ledger(&[(id("web"), record(1, 1)), (eu(), called(2020, 2))]));
    assert!(effects.contains(&Effect::Tell(eu())), "{effects:?}");
    assert_eq!(shown(&mut broker, effects), [(id("web"), record(1, 1).into())].into());
    assert_eq!(bearers(&broker, &[eu(), id("web")]), [&id("web")]);
}

#[test]
fn a_refused_one_takes_the_name_when_the_other_is_gone() {
    let mut broker = over(&[]);
    published_as(&mut broker, &id("web"), &record(4, 1));
    assert_eq!(published_as(&mut broker, &eu(), &called(2020, 2)), BTreeMap::new());
    let effects = broker.step(at(2), Event::Forgotten(id("web"), Seq(4), 1));
    assert!(effects.contains(&Effect::Tell(eu())), "{effects:?}");
    assert_eq!(shown(&mut broker, effects), [(id("web"), called(2020, 2).into())].into());
    assert_eq!(broker.view(at(2), &eu()).naming, Naming::Stands);
}
