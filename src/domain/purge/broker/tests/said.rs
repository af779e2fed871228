//! What members say of themselves in their beats, and what becomes of it here.

use super::*;
use crate::agreement::roster::Said;
use crate::bounds::policy::Agreement;
use crate::records::record::Published;
use kernel::id::Kind;

#[test]
fn words_about_an_earlier_rollout_are_not_shown_of_a_later_one() {
    let mut broker = grouped();
    published(&mut broker, "web", seeking(1));
    let rolling = Record { phase: crate::records::record::Phase::Rolling, ..record(3, 1) };
    broker.step(at(1), Event::Read(0, news(vec![heard(&id("web"), rolling)])));
    let says = |seqs: &[(WorkloadId, Seq)], count| {
        let words = BTreeMap::from([(id("web"), "ImagePullBackOff".to_owned())]);
        let said = Said { words, seqs: seqs.iter().cloned().collect(), since: BTreeMap::new() };
        let beat = Heartbeat { member: "eu-2".into(), origin: "o2".into(), count, said, ..Heartbeat::default() };
        Event::Read(0, Ok(Box::new(News { beats: vec![beat], ..News::default() })))
    };
    let own = |broker: &Broker| {
        let view = broker.view(at(1), &id("web"));
        view.members[&Member::from("eu-2")].as_ref().and_then(|known| known.told.own.clone())
    };
    broker.step(at(1), says(&[(id("web"), Seq(2))], 1));
    assert_eq!(own(&broker), None, "they are of the rollout before");
    broker.step(at(2), says(&[], 2));
    assert_eq!(own(&broker), None, "an older program does not say what they are about");
    let effects = broker.step(at(3), says(&[(id("web"), Seq(3))], 3));
    assert_eq!(own(&broker).as_deref(), Some("ImagePullBackOff"));
    assert!(effects.contains(&Effect::Tell(id("web"))));
}

/// Goal: each member's part is shown with its own reason, beside the version that it is about; after the end it stays for people, and
/// is no memory for decisions. Method: one other member rolls out, says why it waits, goes silent, ends, and comes back with a later one.
#[test]
fn the_parts_of_all_members_are_shown_in_flight_and_after_the_end_and_how_old_they_are() {
    let mut broker = grouped();
    published(&mut broker, "web", seeking(1));
    let rolling = Record { phase: crate::records::record::Phase::Rolling, ..record(3, 1) };
    broker.step(at(1), Event::Read(0, news(vec![heard(&id("web"), rolling)])));
    let saying = Saying { seq: Seq(3), words: "ImagePullBackOff".to_owned(), since_ms: Some(1_000) };
    let said = Said::of([(id("web"), saying)].into());
    let beat =
        Heartbeat { member: "eu-2".into(), origin: "o2".into(), count: 1, said, at_ms: 9_000, ..Heartbeat::default() };
    broker.step(at(1), Event::Read(0, Ok(Box::new(News { beats: vec![beat], ..News::default() }))));
    let shown = |broker: &Broker, seconds| {
        let members = broker.parts(at(seconds), &id("web")).members;
        assert_eq!(members.iter().map(|part| part.member.as_str()).collect::<Vec<_>>(), ["eu-1", "eu-2"]);
        members
    };
    let members = shown(&broker, 2);
    assert_eq!((members[0].is_self, members[0].seq, members[0].says.as_deref()), (true, Some(2), None));
    let theirs = &members[1];
    assert_eq!((theirs.phase.as_str(), theirs.seq, theirs.for_s), ("rolling", Some(3), Some(8)));
    assert_eq!((theirs.says.as_deref(), &theirs.silent), (Some("ImagePullBackOff"), &None));
    assert!(shown(&broker, 60)[1].silent.as_ref().is_some_and(|why| why.contains("has not been heard from")));

    // A later one there has another reason, or none yet.
    let later = |revision| Record { phase: crate::records::record::Phase::Complete, ..record(5, revision) };
    broker.step(at(3), Event::Read(0, news(vec![heard(&id("web"), later(1))])));
    assert_eq!((shown(&broker, 4)[1].seq, &shown(&broker, 4)[1].says), (Some(5), &None));
    broker.step(at(5), Event::Left(id("web")));
    assert_eq!(broker.lately().collect::<Vec<_>>(), [id("web")]);
    let members = shown(&broker, 6);
    assert_eq!((members[0].seq, members[1].seq), (Some(2), Some(5)));
    let view = broker.view(at(6), &id("web"));
    assert!(view.members.values().all(Option::is_none), "nothing is decided by what is kept for people");
    broker.step(at(7), Event::Read(0, news(vec![heard(&id("web"), later(9))])));
    assert_eq!(shown(&broker, 8)[1].seq, Some(5));
    broker.step(at(9), Event::Forgotten(id("web"), Seq(2), 9));
    assert_eq!(broker.lately().count(), 0);
}

fn db() -> WorkloadId {
    WorkloadId::new(Kind::StatefulSet, "shop", "db")
}

fn kinds(kinds: &[Kind]) -> Stands {
    let mut stands = Stands::default();
    stands.follow(&kinds.iter().copied().collect());
    stands
}

/// Goal: of a member that may not list a kind, a wait for it names that and the cure, for as long as it lasts. Method: its beats say so,
/// and then that it may.
#[test]
fn a_member_that_does_not_follow_a_kind_is_waited_for_with_that_reason() {
    let mut broker = grouped();
    broker.step(at(0), Event::Follows(Kind::ALL.into()));
    for workload in [db(), id("web")] {
        broker.step(at(1), Event::Published(workload, Box::new(record(2, 1))));
    }
    let says = |stands, count| {
        let beat = Heartbeat { member: "eu-2".into(), origin: "o2".into(), count, stands, ..Heartbeat::default() };
        Event::Read(0, Ok(Box::new(News { beats: vec![beat], ..News::default() })))
    };
    let unfollowed = |broker: &Broker, workload: WorkloadId| broker.view(at(1), &workload).unfollowed;
    let effects = broker.step(at(1), says(kinds(&[Kind::Deployment, Kind::DaemonSet, Kind::Rollout]), 1));
    assert!(effects.contains(&Effect::Tell(db())), "its rollout learns why it waits");
    let words = "does not follow StatefulSets: it cannot list them: it has no right to (apply deploy/base/cluster-role.yaml there), \
                 or its API server fails at them; allclear check says which there, or leave the kind out of workloads.kinds \
                 everywhere";
    assert_eq!(unfollowed(&broker, db()), BTreeMap::from([("eu-2".into(), words.to_owned())]));
    assert_eq!(unfollowed(&broker, id("web")), BTreeMap::new());
    let view = broker.view(at(1), &db());
    let group::Verdict::Waiting(waiting) = group::judge(&view, &"eu-1".into(), &Default::default()) else {
        panic!("nothing is agreed on without it")
    };
    assert_eq!(waiting[&Member::from("eu-2")], words);
    let seen = broker.seen(at(1)).unwrap().members;
    assert_eq!(seen.iter().map(|member| member.unfollowed.len()).collect::<Vec<_>>(), [0, 1]);

    let effects = broker.step(at(2), says(kinds(&Kind::ALL), 2));
    assert!(effects.contains(&Effect::Tell(db())));
    assert_eq!(unfollowed(&broker, db()), BTreeMap::new());
}

#[test]
fn of_a_kind_that_is_not_followed_here_no_rollout_is_woken_and_the_others_are_told() {
    let mut broker = grouped();
    let wants = |broker: &mut Broker, seconds| {
        let effects = broker.tick(at(seconds));
        (effects.contains(&Effect::Want(db())), effects.contains(&Effect::GatherWords))
    };
    broker.step(at(1), Event::Follows([Kind::Deployment].into()));
    let waits = Record { change: Change::Changed, ..record(3, 1) };
    let effects = broker.step(at(1), Event::Read(0, news(vec![heard(&db(), waits)])));
    assert!(!effects.contains(&Effect::Want(db())));
    assert_eq!(wants(&mut broker, 10), (false, true));
    // The right is given.
    let effects = broker.step(at(11), Event::Follows(Kind::ALL.into()));
    assert!(effects.contains(&Effect::GatherWords), "a beat is due at once");
    let beat = |effects: Vec<Effect>| {
        effects.into_iter().find_map(|effect| match effect {
            Effect::Heartbeat(0, beat) => Some(beat.stands.kinds.len()),
            _ => None,
        })
    };
    assert_eq!(beat(broker.step(at(11), Event::WordsGathered(BTreeMap::new(), 77))), Some(Kind::ALL.len()));
    assert!(!broker.step(at(12), Event::Follows(Kind::ALL.into())).contains(&Effect::GatherWords), "no news");
    assert!(wants(&mut broker, 17).0);
}

fn watching(namespaces: &[&str]) -> Stands {
    let watch = namespaces.iter().map(|name| (*name).to_owned()).collect();
    Stands { watch, ..kinds(&Kind::ALL) }
}

/// Goal: a member that does not watch a namespace is no member without the workload, whatever `group.absent` says. Method: its copy says
/// *absent*, as an earlier release's would, or one from before its setting was changed; then it watches the namespace.
#[test]
fn a_member_that_does_not_watch_a_namespace_cannot_say_that_a_workload_of_it_is_absent() {
    let mut broker = grouped();
    published(&mut broker, "web", record(2, 1));
    let absent = Heard {
        member: "eu-2".into(),
        workload: id("web"),
        origin: "o2".into(),
        said: Posting::Show(Published::Absent(Seq(1))),
    };
    broker.step(at(1), Event::Read(0, news(vec![absent])));
    let judged = |broker: &mut Broker, stands, count| {
        let beat = Heartbeat { member: "eu-2".into(), origin: "o2".into(), count, stands, ..Heartbeat::default() };
        let effects = broker.step(at(1), Event::Read(0, Ok(Box::new(News { beats: vec![beat], ..News::default() }))));
        assert!(effects.contains(&Effect::Tell(id("web"))), "its rollout learns why it waits");
        let ignoring = Agreement { absent_left_out: true, ..Agreement::default() };
        match group::judge(&broker.view(at(1), &id("web")), &"eu-1".into(), &ignoring) {
            group::Verdict::Waiting(mut waiting) => waiting.remove(&Member::from("eu-2")),
            group::Verdict::Candidate(_) => None,
        }
    };
    let words = "does not watch namespace shop, so it cannot say what its cluster serves: add it to watch.namespaces there, or have an \
                 allclear of another group.name follow it";
    assert_eq!(judged(&mut broker, watching(&["blog"]), 1).as_deref(), Some(words));
    assert_eq!(judged(&mut broker, watching(&["blog", "shop"]), 2), None, "it can now");
}

#[test]
fn in_a_namespace_that_is_not_watched_here_no_rollout_is_woken() {
    let wants = |watched: &[&str]| {
        let mut broker = grouped();
        broker.identity.stands = watching(watched);
        let waits = Record { change: Change::Changed, ..record(3, 1) };
        let effects = broker.step(at(1), Event::Read(0, news(vec![heard(&id("web"), waits)])));
        effects.into_iter().chain(broker.tick(at(10))).filter(|effect| *effect == Effect::Want(id("web"))).count()
    };
    assert_eq!(wants(&["blog"]), 0);
    assert_eq!(wants(&["blog", "shop"]), 2, "at once and again");
}
